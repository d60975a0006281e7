use std::io::Cursor;

use super::*;
use crate::ahr::parts::{META, SEAL};
use crate::ahr::{BlockBuilder, Parts, Place, Quality, Record, part_blocks};

struct Sealed {
    blocks: Vec<Vec<u8>>,
    lines: Vec<Vec<u8>>,
    meta: Meta,
    open: Meta,
}

const SNAPSHOTS: &[u8] = b"{\"id\":1}\n";

fn sealed() -> Sealed {
    let mut sealer = Sealer::new(SealKey::new(b"secret"), &[7; 16]);
    let mut builder = BlockBuilder::new(0);
    let mut meta = Meta::new();
    meta.set_argv(["make"]);
    sealer.open_meta(&mut meta).unwrap();
    let open = meta.clone();
    let (mut blocks, mut lines) = (Vec::new(), Vec::new());
    for i in 0..6_u64 {
        assert_eq!(builder.push(Record::data(i, i * 100, vec![i as u8; 100])), None);
        let block = builder.finish(Quality::default(), i == 5).to_vec();
        lines.push(sealer.block(&block));
        blocks.push(block);
    }
    sealer.close_meta(&mut meta, &[("snapshots.jsonl", SNAPSHOTS)]).unwrap();
    // As it comes back from the file.
    let meta = Meta::from_bytes(&meta.to_bytes().unwrap()).unwrap();
    Sealed { blocks, lines, meta, open }
}

fn check(blocks: &[Vec<u8>], meta: &Meta, lines: Option<&[Vec<u8>]>, snapshots: Option<&[u8]>) -> SealReport {
    let file = blocks.concat();
    let lines = lines.map(<[_]>::concat);
    let sidecars: Vec<(&str, &[u8])> = snapshots.iter().map(|s| ("snapshots.jsonl", *s)).collect();
    verify(&file[..], meta, lines.as_deref(), &sidecars, &SealKey::new(b"secret")).unwrap()
}

#[test]
fn an_untouched_recording_is_proven() {
    let s = sealed();
    for lines in [None, Some(&s.lines[..])] {
        let report = check(&s.blocks, &s.meta, lines, Some(SNAPSHOTS));
        assert_eq!((report.verdict, report.blocks), (Verdict::Intact, 6), "{:?}", report.problems);
    }
    let file = s.blocks.concat();
    let other = SealKey::new(b"other");
    let report = verify(&file[..], &s.meta, None::<&[u8]>, &[], &other).unwrap();
    assert_eq!(report.verdict, Verdict::WrongKey);
    let report = verify(&file[..], &Meta::new(), None::<&[u8]>, &[], &other).unwrap();
    assert_eq!(report.verdict, Verdict::Unsealed);
}

#[test]
fn every_way_to_tamper_shows() {
    // Evidence that can be shortened or edited unseen is none.
    let s = sealed();
    for with_lines in [false, true] {
        let lines = |n: usize| with_lines.then_some(&s.lines[..n]);
        let bad = |blocks: &[Vec<u8>], meta: &Meta, n: usize, snapshots: Option<&[u8]>, what: &str| {
            let report = check(blocks, meta, lines(n), snapshots);
            assert_eq!(report.verdict, Verdict::Broken, "{what}, lines {with_lines}");
        };
        let ok = Some(SNAPSHOTS);
        bad(&s.blocks[..5], &s.meta, 5, ok, "cut with its lines");
        bad(&s.blocks[..5], &s.meta, 6, ok, "cut");
        bad(&s.blocks[1..], &s.meta, 6, ok, "first removed");
        let mut blocks = s.blocks.clone();
        blocks.swap(2, 3);
        bad(&blocks, &s.meta, 6, ok, "exchanged");
        let mut blocks = s.blocks.clone();
        blocks.push(s.blocks[0].clone());
        bad(&blocks, &s.meta, 6, ok, "added");
        let mut builder = BlockBuilder::new(0);
        assert_eq!(builder.push(Record::data(2, 200, vec![b'!'; 100])), None);
        let mut blocks = s.blocks.clone();
        blocks[2] = builder.finish(Quality::default(), false).to_vec();
        bad(&blocks, &s.meta, 6, ok, "rewritten");
        bad(&s.blocks, &s.meta, 6, Some(b"{\"id\":2}\n"), "sidecar changed");
        bad(&s.blocks, &s.meta, 6, None, "sidecar removed");
        let mut meta = s.meta.clone();
        meta.set_argv(["true"]);
        bad(&s.blocks, &meta, 6, ok, "meta changed");
        let mut meta = s.meta.clone();
        meta.seal.as_mut().unwrap().head = None;
        bad(&s.blocks[..5], &meta, 5, ok, "head removed");
    }
}

#[test]
fn a_change_is_located() {
    let s = sealed();
    let mut blocks = s.blocks.clone();
    let last = blocks[3].len() - 2;
    blocks[3][last] ^= 1;
    let report = check(&blocks, &s.meta, Some(&s.lines), Some(SNAPSHOTS));
    assert_eq!(report.first_bad, Some(s.blocks[..3].concat().len() as u64));
    assert_eq!((report.blocks, report.problems.len()), (5, 1), "{:?}", report.problems);
}

#[test]
fn what_a_dead_recorder_left_is_proven_as_far_as_it_goes() {
    let s = sealed();
    let report = check(&s.blocks[..4], &s.open, Some(&s.lines[..4]), None);
    assert_eq!((report.verdict, report.blocks), (Verdict::Unfinished, 4), "{:?}", report.problems);
    // A block whose line was not written any more, and a torn line.
    let mut lines = s.lines[..4].to_vec();
    lines[3].truncate(20);
    let report = check(&s.blocks[..4], &s.open, Some(&lines), None);
    assert_eq!((report.verdict, report.blocks), (Verdict::Unfinished, 3), "{:?}", report.problems);
    let mut blocks = s.blocks[..4].to_vec();
    blocks[1][50] ^= 1;
    assert_eq!(check(&blocks, &s.open, Some(&s.lines[..4]), None).verdict, Verdict::Broken);
}

#[test]
fn a_continued_recording_stays_sealed() {
    let s = sealed();
    let key = || SealKey::new(b"secret");
    let seal = s.open.seal.as_ref().unwrap();
    let mut sealer = Sealer::resume(key(), seal, &s.lines[..3].concat()[..]).unwrap();
    assert_eq!(sealer.bytes(), s.blocks[..3].concat().len() as u64);
    let lines: Vec<Vec<u8>> = s.blocks[3..].iter().map(|block| sealer.block(block)).collect();
    assert_eq!(lines, s.lines[3..], "as if it had never stopped");
    let mut meta = s.open.clone();
    sealer.close_meta(&mut meta, &[]).unwrap();
    assert_eq!(check(&s.blocks, &meta, Some(&s.lines), None).verdict, Verdict::Intact);
    assert!(Sealer::resume(SealKey::new(b"other"), seal, &b""[..]).is_err());
    assert!(Sealer::resume(key(), seal, &s.lines[1..].concat()[..]).is_err());
}

/// The header of the last block, which holds the head of the seal, could be changed unseen: also
/// whether the session has ended.
#[test]
fn a_change_of_any_bit_of_a_sealed_recording_shows() {
    let key = SealKey::new(b"secret");
    let mut sealer = Sealer::new(key.clone(), &[7; 16]);
    let mut builder = BlockBuilder::new(0);
    assert_eq!(builder.push(Record::resize(1, tapdeck_term::Size::new(80, 24))), None);
    assert_eq!(builder.push(Record::data(2, 0, &b"hello"[..])), None);
    let mut file = builder.finish(Quality::default(), false).to_vec();
    let mut lines = sealer.block(&file);
    let place = Place { ts_ns: 2, byte_off: 5 };
    let mut meta = Meta::new();
    meta.set_argv(["echo", "hello"]);
    sealer.open_meta(&mut meta).unwrap();
    for last in [false, true] {
        let parts = [(META, &meta.to_line().unwrap()[..]), (SEAL, &lines[..])];
        let block = part_blocks(&parts, place, Quality::default(), last).concat();
        lines = sealer.block(&block);
        file.extend(block);
    }
    sealer.close_meta(&mut meta, &[]).unwrap();
    let head = [(META, &meta.to_line().unwrap()[..])];
    file.extend(part_blocks(&head, place, Quality::default(), true).concat());

    let verdict = |file: &[u8]| -> Option<Verdict> {
        let parts = Parts::of(Cursor::new(file)).ok()?;
        let metas = Meta::of_lines(&parts.read(META, Cursor::new(file)).ok()?);
        let meta = sealed_meta(&metas, &key).or(metas.last())?;
        let lines = parts.open(SEAL, Cursor::new(file));
        Some(verify(file, meta, lines, &[], &key).ok()?.verdict)
    };
    assert_eq!(verdict(&file), Some(Verdict::Intact));
    let unseen = |bit: &usize| {
        let mut changed = file.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        verdict(&changed) == Some(Verdict::Intact)
    };
    let unseen: Vec<(usize, usize)> =
        (0..file.len() * 8).filter(unseen).map(|bit| (bit / 8, bit % 8)).collect();
    assert_eq!(unseen, [], "of {} bytes", file.len());
}
