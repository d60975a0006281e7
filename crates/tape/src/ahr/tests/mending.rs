//! What `verify` must find and `repair` put right.

use std::time::Duration;

use super::super::times::NEVER;
use super::*;

fn repaired(file: &[u8]) -> Vec<u8> {
    let mut repair = Repair::new(file);
    let mut out = Vec::new();
    while let Some(piece) = repair.next_piece().unwrap() {
        out.extend_from_slice(piece);
    }
    out
}

#[test]
fn a_repair_loses_nothing_and_explains_the_rest() {
    let blocks = sample();
    let file = file_of(&blocks);
    assert!(repaired(&file) == file, "a whole file is copied as it is");

    let mut quirky = file.clone();
    let mut at = 0;
    for (bytes, _) in &blocks {
        quirky[at + 6] = 48;
        at += bytes.len();
    }
    assert!(repaired(&quirky) == file, "the original writer's headers are put right");

    let start: usize = blocks[..5].iter().map(|(b, _)| b.len()).sum();
    for (at, len) in [(start + 50, 20), (start, 4), (start + 24, 8), (start + 32, 1), (file.len() - 20, 20)] {
        let mut damaged = file.clone();
        damaged[at..at + len].fill(0xee);
        let before = read(&damaged);
        let copy = repaired(&damaged);
        let summary = Summary::of(&copy[..]).unwrap();
        assert!(summary.is_whole(), "{at}+{len}: {:?} missing {}", summary.damages, summary.missing_bytes);
        let kept: Vec<Record> = read(&copy).0.into_iter().filter(|r| !is_repair_mark(r)).collect();
        assert_eq!(kept, before.0);
        assert!(repaired(&copy) == copy);
    }
    let torn = repaired(&file[..file.len() - 3]);
    assert!(Summary::of(&torn[..]).unwrap().is_whole());
}

/// A copy whose first block was lost began in 1970, lasted half a century, and could not be played.
#[test]
fn a_repaired_copy_lasts_no_longer_than_the_recording() {
    const START: u64 = 1_780_000_000_000_000_000;
    const S: u64 = 1_000_000_000;
    for quality in [Quality::Stored, Quality::Brotli(4)] {
        let data = |n: u64| Record::data(START + n * S, n * 4, &b"text"[..]);
        let records = vec![
            vec![Record::resize(START, Size::new(80, 24)), data(0)],
            vec![data(1), data(2), Record::snapshot(START + 2 * S, 1, 12, "here")],
            vec![data(3), Record::mark(START + 4 * S, Mark::Exit(0))],
        ];
        let blocks = blocks_of(records, quality);
        let file = file_of(&blocks);
        let last_block = file.len() - blocks[2].0.len();
        let check = |damaged: &[u8], at: usize, what: String| {
            let copy = repaired(damaged);
            let summary = Summary::of(&copy[..]).unwrap();
            let first = summary.first_ts.unwrap_or(START);
            // A last time that is wrong by less than a year cannot be told from a long rest.
            let longest = if at >= last_block { NEVER } else { 60 * S } + 4 * S;
            assert!(summary.duration() <= Duration::from_nanos(longest), "{what}: {:?}", summary.duration());
            assert!(first >= START - 60 * S, "{what}: begins at {first}");
        };
        for (at, how) in (0..file.len()).flat_map(|at| (0..9).map(move |how| (at, how))) {
            let mut damaged = file.clone();
            damaged[at] = if how == 8 { 0 } else { damaged[at] ^ 1 << how };
            check(&damaged, at, format!("{quality:?}, byte {at}, way {how}"));
        }
        let mut from = 0;
        for (n, (bytes, _)) in blocks.iter().enumerate() {
            let mut damaged = file.clone();
            damaged[from..from + bytes.len()].fill(0);
            from += bytes.len();
            check(&damaged, 0, format!("{quality:?}, block {n}"));
            assert!(Summary::of(&repaired(&damaged)[..]).unwrap().is_whole(), "{quality:?}, block {n}");
        }
    }
}

fn is_repair_mark(record: &Record) -> bool {
    matches!(record.body, Body::Mark { code, val } if matches!(Mark::from_raw(code, val), Mark::Repaired(_)))
}

/// A damaged bit in a time or an offset, wherever in a block, costs neither the time nor the place
/// of anything else.
#[test]
fn a_time_or_an_offset_that_cannot_be_is_found_and_put_right() {
    const S: u64 = 1_000_000_000;
    let build = |change: &dyn Fn(usize, &mut Record)| {
        let (mut builder, mut file) = (BlockBuilder::new(0), Vec::new());
        for n in 0..9usize {
            let mut record = Record::data(1_000 * S + n as u64 * S, n as u64 * 4, &b"text"[..]);
            change(n, &mut record);
            assert_eq!(builder.push(record), None);
            if n % 3 == 2 {
                file.extend_from_slice(builder.finish(Quality::Stored, n == 8));
            }
        }
        file
    };
    let whole = build(&|_, _| {});
    assert!(Summary::of(&whole[..]).unwrap().is_whole());
    // The last record of all has nothing behind it that would prove it wrong; the time of the first
    // of all stands in the header as well, which a builder fills with the same wrong one.
    for at in 1..8 {
        for bit in [42, 50, 62] {
            let late = build(&|n, r| r.ts_ns ^= if n == at { 1 << bit } else { 0 });
            let summary = Summary::of(&late[..]).unwrap();
            let up = (1_000 * S + at as u64 * S) >> bit & 1 == 0;
            assert_eq!(summary.is_whole(), !up, "record {at}, bit {bit}");
            let records: Vec<Record> = Reader::new(&late[..])
                .with_sound_times()
                .filter_map(|item| if let Item::Record(r) = item.unwrap() { Some(r) } else { None })
                .collect();
            if up {
                assert_eq!(summary.damages[0].kind, DamageKind::BadTime);
                assert!(records.iter().all(|r| r.ts_ns <= 1_008 * S), "record {at}, bit {bit}");
                assert!(Summary::of(&repaired(&late)[..]).unwrap().is_whole(), "record {at}, bit {bit}");
            }
            let astray = build(&|n, r| {
                if let Body::Data { off, .. } = &mut r.body {
                    *off ^= if n == at { 1 << (bit - 20) } else { 0 };
                }
            });
            assert!(!Summary::of(&astray[..]).unwrap().is_whole());
            let copy = Summary::of(&repaired(&astray)[..]).unwrap();
            assert!(copy.is_whole(), "record {at}, bit {bit}: {copy:?}");
            assert_eq!((copy.output_bytes, copy.missing_bytes), (36, 0), "record {at}, bit {bit}");
        }
    }
    // Output that is missing in the middle of a block is spoken of in the copy.
    let gap = build(&|n, r| {
        if let Body::Data { off, .. } = &mut r.body {
            *off += if n >= 4 { 100 } else { 0 };
        }
    });
    assert!(!Summary::of(&gap[..]).unwrap().is_whole());
    let copy = Summary::of(&repaired(&gap)[..]).unwrap();
    assert!(copy.is_whole());
    assert_eq!((copy.output_bytes, copy.missing_bytes, copy.declared_loss), (36, 100, 100));
}

/// Blocks as a terminal gives them: some hundred small records, so that a damaged bit of the
/// payload shows anywhere.
fn busy() -> Vec<(Vec<u8>, Vec<Record>)> {
    const START: u64 = 1_780_000_000_000_000_000;
    let mut off = 0;
    let mut all = vec![vec![Record::resize(START, Size::new(80, 24))], vec![], vec![], vec![]];
    for (b, block) in all.iter_mut().enumerate().take(3) {
        for i in 0..9 {
            let ts = START + b as u64 * 180_000_000 + i * 41_237;
            let text = format!("line {} of block {b}\r\n", i * 7919 % 1000);
            let len = text.len() as u64;
            block.push(Record::data(ts, off, text.into_bytes()));
            off += len;
            if i % 5 == 3 {
                block.push(Record::input(ts + 5, &b"y"[..]));
            }
        }
    }
    // The usual end: no output behind it.
    all[3].push(Record::mark(START + 700_000_000, Mark::Exit(0)));
    blocks_of(all, Quality::Brotli(4))
}

fn must_be_mended(damaged: &[u8], what: &str) {
    let copy = repaired(damaged);
    if copy.is_empty() {
        return;
    }
    let s = Summary::of(&copy[..]).unwrap();
    assert!(
        s.is_whole(),
        "{what}: {:?}, missing {}, declared {}, overlaps {}",
        s.damages,
        s.missing_bytes,
        s.declared_loss,
        s.overlaps
    );
    // The program wrote no more than this: what is said to be lost must be what can be.
    assert!(s.output_bytes <= 10_000 && s.declared_loss <= 10_000_000_000, "{what}: {s:?}");
    assert!(repaired(&copy) == copy, "{what}: a mended copy is mended again");
}

/// One flipped bit made copies that were damaged still, with a terabyte declared lost.
#[test]
fn whatever_bit_is_flipped_the_copy_is_whole() {
    // As we write it, and as the original writer did.
    for (quirk, from) in [(44, 0), (48, 1)] {
        let mut blocks = busy();
        blocks.iter_mut().for_each(|(bytes, _)| bytes[6] = quirk);
        let file = file_of(&blocks);
        assert!(Summary::of(&file[..]).unwrap().is_whole());
        for at in (from..file.len() * 8).step_by(1 + from * 4) {
            let mut damaged = file.clone();
            damaged[at / 8] ^= 1 << (at % 8);
            must_be_mended(&damaged, &format!("byte {}, bit {}, header {quirk}", at / 8, at % 8));
        }
    }
}

/// A block cut out was not noticed when no output followed it, and one that was there twice, or in
/// another's place, was copied so.
#[test]
fn blocks_removed_repeated_and_out_of_place_are_found_and_mended() {
    let blocks = busy();
    let n = blocks.len();
    let output = |file: &[u8]| Summary::of(file).unwrap().output_bytes;
    let whole = output(&file_of(&blocks));
    let join = |order: &[usize]| -> Vec<u8> { order.iter().flat_map(|&i| blocks[i].0.clone()).collect() };
    for i in 0..n {
        let found = |order: Vec<usize>, what: &str| {
            let file = join(&order);
            assert!(!Summary::of(&file[..]).unwrap().is_whole(), "{what} {i}");
            must_be_mended(&file, &format!("{what} {i}"));
            let copy = repaired(&file);
            (Summary::of(&copy[..]).unwrap(), copy)
        };
        let twice = (0..n).flat_map(|j| if i == j { vec![j, j] } else { vec![j] }).collect();
        assert!(found(twice, "twice").1 == file_of(&blocks), "twice {i}");
        // Nothing stands behind the last block that would miss it.
        if i < n - 1 {
            let lost: u64 = blocks[i]
                .1
                .iter()
                .map(|r| if let Body::Data { bytes, .. } = &r.body { bytes.len() as u64 } else { 0 })
                .sum();
            let (summary, _) = found((0..n).filter(|&j| j != i).collect(), "removed");
            assert_eq!((summary.missing_bytes, summary.declared_loss), (lost, lost), "removed {i}");
            assert_eq!((summary.repaired_loss, summary.output_bytes), (lost, whole - lost), "removed {i}");
        }
        for j in i + 1..n {
            let mut order: Vec<usize> = (0..n).collect();
            order.swap(i, j);
            assert!(found(order, "swapped").1 == file_of(&blocks), "swapped {i} and {j}");
        }
    }
    // The header of each block says where output stands, with output in it or not.
    let mut at = blocks[0].0.len();
    for (bytes, _) in &blocks[1..] {
        let mut file = file_of(&blocks);
        file[at + 16..at + 24].fill(0);
        at += bytes.len();
        assert!(!Summary::of(&file[..]).unwrap().is_whole());
        assert!(repaired(&file) == file_of(&blocks));
    }
}

/// A recording that was begun late was called damaged, for all that had gone by before.
#[test]
fn a_recording_begun_late_is_whole() {
    let build = |records: &[Record]| {
        let mut builder = BlockBuilder::new(5_000);
        for record in records {
            assert_eq!(builder.push(record.clone()), None);
        }
        let mut file = builder.finish(Quality::Stored, false).to_vec();
        assert_eq!(builder.push(Record::mark(9, Mark::Exit(0))), None);
        file.extend_from_slice(builder.finish(Quality::Stored, true));
        file
    };
    let size = Record::resize(1, Size::new(80, 24));
    let late = build(&[size.clone(), Record::data(2, 5_000, &b"late"[..])]);
    let lagging =
        build(&[size.clone(), Record::mark(2, Mark::OutputLag(70)), Record::data(2, 5_070, &b"late"[..])]);
    for (file, missing) in [(late.clone(), 0), (build(&[size]), 0), (lagging, 70)] {
        let summary = Summary::of(&file[..]).unwrap();
        assert!(summary.is_whole(), "{summary:?}");
        assert_eq!((summary.begins_at, summary.missing_bytes), (5_000, missing));
        assert!(repaired(&file) == file);
    }
    // Without the size that opens it, its beginning is gone.
    assert!(!Summary::of(&build(&[Record::data(2, 5_000, &b"late"[..])])[..]).unwrap().is_whole());
    // Its copy begins as late.
    let (header, events, _) =
        crate::testing::read_all(AhrEvents::new(&late[..], None, Default::default()).unwrap());
    let copy = crate::testing::write_all(&mut AhrWriter::new(Quality::Stored), &header, &events).main;
    let summary = Summary::of(&copy[..]).unwrap();
    assert_eq!((summary.begins_at, summary.end_off, summary.declared_loss), (5_000, 5_004, 0));
}
