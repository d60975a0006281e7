use std::io::Cursor;

use tapdeck_core::Time;
use tapdeck_term::Size;

use super::*;
use crate::ahr::{BlockBuilder, Quality, Record, Summary};

/// A session that scrolls, colours, jumps about and changes size.
fn recording(lines: u64) -> Vec<u8> {
    let mut builder = BlockBuilder::new(0);
    let mut file = Vec::new();
    let mut off = 0;
    fn push(builder: &mut BlockBuilder, file: &mut Vec<u8>, record: Record, flush: bool) {
        assert_eq!(builder.push(record), None);
        if flush {
            file.extend_from_slice(builder.finish(Quality::Brotli(1), false));
        }
    }
    push(&mut builder, &mut file, Record::resize(1_000_000_000, Size::new(60, 12)), false);
    for i in 0..lines {
        // The wall clock is set back once.
        let ts = 1_000_000_000 + i * 1_000_000 - if i > 300 { 500_000_000 } else { 0 };
        let text = format!("\x1b[3{}mline {i}\x1b[0m\r\n\x1b7\x1b[1;40H{i}\x1b8", i % 8);
        let len = text.len() as u64;
        push(&mut builder, &mut file, Record::data(ts, off, text.into_bytes()), i % 20 == 19);
        off += len;
        if i % 500 == 250 {
            push(&mut builder, &mut file, Record::resize(ts, Size::new(60 + (i % 7) as u16, 12)), false);
            push(&mut builder, &mut file, Record::snapshot(ts, i, off, format!("s{i}")), true);
        }
    }
    file.extend_from_slice(builder.finish(Quality::Brotli(1), true));
    file
}

fn index_of(file: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    build_index::<crate::Error>(file, IndexOptions::default().every_bytes(8_000), |piece| {
        out.extend_from_slice(piece);
        Ok(())
    })
    .unwrap();
    out
}

fn screen(term: &tapdeck_term::Term) -> Vec<u8> {
    term.dump_screen()
}

fn no_index(file: &[u8]) -> Seeker<Cursor<&[u8]>, Cursor<&[u8]>> {
    Seeker::new(Cursor::new(file), None, 0)
}

#[test]
fn an_index_opens_the_same_screen_as_a_replay() {
    // A keyframe that is off by one record shows a screen that never was.
    let file = recording(2_000);
    let ahx = index_of(&file);
    let mut index = Index::load(Cursor::new(&ahx)).unwrap();
    assert!(index.check(Cursor::new(&file)).unwrap());
    assert!(index.keyframes.len() > 5, "{}", index.keyframes.len());
    assert_eq!(index.moments.len(), 4);
    assert_eq!(index.moments[1].label, "s750");
    let summary = Summary::of(&file[..]).unwrap();
    let total = index.end.unwrap().1;
    assert_eq!(index.end, Some((file.len() as u64, total, summary.output_bytes)));
    let mut with = Seeker::new(Cursor::new(&file[..]), Some((index, Cursor::new(&ahx))), 0);
    let mut without = no_index(&file);
    for i in 0..60_u64 {
        let target = if i % 2 == 0 {
            Target::Time(Time::from_nanos(total.as_nanos() * i / 59))
        } else {
            Target::Byte(summary.output_bytes * i / 59)
        };
        let fast = with.seek(target).unwrap();
        let slow = without.seek(target).unwrap();
        assert_eq!((fast.time, fast.byte_off), (slow.time, slow.byte_off), "{target:?}");
        assert!(screen(&fast.term) == screen(&slow.term), "{target:?}");
    }
    // Going on from a moment ends where everything ends.
    let mut head = with.seek(Target::Byte(summary.output_bytes / 2 + 3)).unwrap();
    head.advance(Target::Time(Time::MAX)).unwrap();
    let end = without.seek(Target::Time(Time::MAX)).unwrap();
    assert_eq!(head.byte_off, summary.output_bytes);
    assert!(screen(&head.term) == screen(&end.term));
}

#[test]
fn a_stale_index_is_not_believed() {
    let file = recording(1_000);
    let ahx = index_of(&file);
    // Another recording of the same length, a longer one, and one that was cut.
    let other = recording(1_001);
    let mut index = Index::load(Cursor::new(&ahx)).unwrap();
    assert!(!index.check(Cursor::new(&other)).unwrap());
    let all = Index::load(Cursor::new(&ahx)).unwrap().keyframes.len();
    let mut longer = file.clone();
    longer.extend_from_slice(&recording(30));
    let mut index = Index::load(Cursor::new(&ahx)).unwrap();
    assert!(!index.check(Cursor::new(&longer)).unwrap());
    assert_eq!(index.keyframes.len(), all, "what was indexed before still holds");
    let mut index = Index::load(Cursor::new(&ahx)).unwrap();
    assert!(!index.check(Cursor::new(&file[..file.len() / 2])).unwrap());
    assert!(index.keyframes.len() < all);
    let mut changed = file.clone();
    changed[20] ^= 1;
    let mut index = Index::load(Cursor::new(&ahx)).unwrap();
    assert!(!index.check(Cursor::new(&changed)).unwrap());
    assert_eq!(index.keyframes.len(), 0);
}

#[test]
fn a_damaged_index_costs_time_and_nothing_else() {
    let file = recording(600);
    let ahx = index_of(&file);
    let target = Target::Time(Time::from_millis(500));
    let want = screen(&no_index(&file).seek(target).unwrap().term);
    for at in (0..ahx.len()).step_by(37) {
        for cut in [false, true] {
            let mut broken = ahx.clone();
            if cut {
                broken.truncate(at);
            } else {
                broken[at] ^= 0x55;
            }
            let Ok(mut index) = Index::load(Cursor::new(&broken)) else { continue };
            let _ = index.check(Cursor::new(&file)).unwrap();
            let mut seeker = Seeker::new(Cursor::new(&file[..]), Some((index, Cursor::new(&broken))), 0);
            let head = seeker.seek(target).unwrap();
            assert!(screen(&head.term) == want, "damage at {at}");
        }
    }
}
