//! The recording's promises, tested from outside: what goes in comes out, and damage costs what it
//! covers.

use std::io::Cursor;

use proptest::collection::vec;
use proptest::prelude::*;

use tapdeck_term::Size;

use super::*;
use crate::Error;

mod mending;

/// Blocks of a recording as (bytes, records), so that a test knows what each part of the file
/// holds.
fn blocks_of(records: Vec<Vec<Record>>, quality: Quality) -> Vec<(Vec<u8>, Vec<Record>)> {
    let mut builder = BlockBuilder::new(0);
    let n = records.len();
    records
        .into_iter()
        .enumerate()
        .map(|(i, block)| {
            for record in &block {
                assert_eq!(builder.push(record.clone()), None);
            }
            (builder.finish(quality, i + 1 == n).to_vec(), block)
        })
        .collect()
}

/// Many small blocks with every kind of record.
fn sample() -> Vec<(Vec<u8>, Vec<Record>)> {
    let mut off = 0;
    let mut all = vec![vec![Record::resize(1, Size::new(80, 24))]];
    for i in 0..12_u64 {
        let ts = 1_000 + i * 10;
        let text: Vec<u8> = (0..200 + i * 31).map(|j| ((j * j + i * 7) % 251) as u8).collect();
        let len = text.len() as u64;
        all.push(vec![
            Record::data(ts, off, text),
            Record::input(ts + 1, b"ls\r\x00\xff".to_vec()),
            Record::mark(ts + 2, Mark::TurnStart(i as u32)),
            Record::snapshot(ts + 3, i, off + len, "vor dem Schluß"),
        ]);
        off += len;
    }
    all.push(vec![Record::mark(2_000, Mark::Exit(7))]);
    blocks_of(all, Quality::Brotli(4))
}

fn file_of(blocks: &[(Vec<u8>, Vec<Record>)]) -> Vec<u8> {
    blocks.iter().flat_map(|(bytes, _)| bytes.clone()).collect()
}

fn read(file: &[u8]) -> (Vec<Record>, Vec<Damage>) {
    let (mut records, mut damages) = (Vec::new(), Vec::new());
    for item in Reader::new(file) {
        match item.expect("a damaged file is no error") {
            Item::Record(record) => records.push(record),
            Item::Damage(damage) => damages.push(damage),
        }
    }
    (records, damages)
}

/// All records of blocks that do not touch `range`, in order, must be among `got`, in order.
fn assert_outside(blocks: &[(Vec<u8>, Vec<Record>)], range: std::ops::Range<usize>, got: &[Record]) {
    let mut at = 0;
    let mut got = got.iter();
    for (bytes, records) in blocks {
        let (start, end) = (at, at + bytes.len());
        at = end;
        if end <= range.start || start >= range.end {
            for want in records {
                assert!(
                    got.any(|r| r == want),
                    "lost {want:?} of the block at {start}..{end}, damage {range:?}"
                );
            }
        }
    }
}

#[test]
fn every_kind_of_record_comes_back() {
    let blocks = sample();
    let (records, damages) = read(&file_of(&blocks));
    assert_eq!(damages, []);
    assert_eq!(records, blocks.into_iter().flat_map(|(_, r)| r).collect::<Vec<_>>());
}

#[test]
fn a_record_larger_than_a_block_is_split_not_lost() {
    // A paste or a burst of a megabyte arrives as one record.
    let data: Vec<u8> = (0..1_000_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for quality in [Quality::Stored, Quality::Brotli(0), Quality::Brotli(4)] {
        let mut builder = BlockBuilder::new(0);
        let mut file = Vec::new();
        let all = [
            Record::resize(1, Size::new(80, 24)),
            Record::data(2, 0, data.clone()),
            Record::input(3, data.clone()),
            Record::snapshot(4, 1, 1_000_000, "x".repeat(70_000)),
            Record::mark(5, Mark::Signal(9)),
        ];
        for record in all {
            let mut rest = Some(record);
            while let Some(record) = rest {
                rest = builder.push(record);
                assert!(builder.len() <= BLOCK_LIMIT);
                if builder.is_full() {
                    file.extend_from_slice(builder.finish(quality, false));
                }
            }
        }
        assert_eq!(builder.byte_off(), 1_000_000);
        file.extend_from_slice(builder.finish(quality, true));
        let (records, damages) = read(&file);
        assert_eq!(damages, []);
        let (mut output, mut input) = (Vec::new(), Vec::new());
        for record in &records {
            match &record.body {
                Body::Data { off, bytes } => {
                    assert_eq!(*off, output.len() as u64);
                    output.extend_from_slice(bytes);
                }
                Body::Input { bytes } => input.extend_from_slice(bytes),
                Body::Snapshot { label, .. } => assert_eq!(label.len(), 65_535),
                _ => {}
            }
        }
        assert!(output == data && input == data);
        let summary = Summary::of(&file[..]).unwrap();
        assert!(summary.is_whole() && summary.has_last_block);
        assert_eq!((summary.output_bytes, summary.ending), (1_000_000, Some(Ending::Signal(9))));
    }
}

#[test]
fn the_original_writers_header_length_is_understood() {
    // Its files say 48 and mean 44; believing them loses every block.
    let mut blocks = sample();
    for (bytes, _) in &mut blocks {
        bytes[6] = 48;
    }
    let file = file_of(&blocks);
    let (records, damages) = read(&file);
    assert_eq!(damages, []);
    assert_eq!(records.len(), blocks.iter().map(|(_, r)| r.len()).sum::<usize>());
    for cut in 0..file.len() {
        assert_outside(&blocks, cut..file.len(), &read(&file[..cut]).0);
    }
    let scanned: Vec<_> = Scan::new(Cursor::new(&file)).unwrap().map(|i| i.unwrap()).collect();
    assert_eq!(scanned.len(), blocks.len());

    // A header that is 48 long in truth is one too.
    for (bytes, _) in &mut blocks {
        bytes.splice(44..44, [0; 4]);
    }
    let (records, damages) = read(&file_of(&blocks));
    assert_eq!(damages, []);
    assert_eq!(records.len(), blocks.iter().map(|(_, r)| r.len()).sum::<usize>());
}

#[test]
fn a_later_version_is_refused_and_a_flipped_one_is_not() {
    let mut blocks = sample();
    blocks[0].0[4] = 3;
    let (records, damages) = read(&file_of(&blocks));
    assert_outside(&blocks, 0..1, &records);
    assert_eq!(damages[0].kind, DamageKind::OtherVersion(3));
    for (bytes, _) in &mut blocks {
        bytes[4] = 3;
    }
    let e = Reader::new(&file_of(&blocks)[..]).next_item().unwrap_err();
    assert!(matches!(e, Error::Version { found: 3, known: 2, .. }), "{e}");
    assert!(e.to_string().starts_with("byte 0: ahr version 3"), "{e}");
    // The error comes once: a caller that only counts must not count for ever.
    assert_eq!(Reader::new(&file_of(&blocks)[..]).count(), 1);
    assert_eq!(Scan::new(Cursor::new(file_of(&blocks))).unwrap().count(), 1);
}

#[test]
fn a_torn_block_gives_what_it_still_holds() {
    // The machine died while the last block was being written: its beginning is as good as any
    // other.
    let records: Vec<Record> = (0..100).map(|i| Record::data(i, i * 1000, vec![i as u8; 1000])).collect();
    let blocks = blocks_of(vec![records.clone()], Quality::Stored);
    let file = file_of(&blocks);
    let (got, damages) = read(&file[..file.len() / 2]);
    assert!(got.len() > 45 && got[..] == records[..got.len()]);
    assert_eq!(damages[0].kind, DamageKind::TornPayload);
    assert_eq!(damages[0].lost_records, Some(100 - got.len() as u64));
    // With nothing behind it, it is believed only for as long as it makes sense.
    let wrong = [
        Record::data(1 << 60, 40_000, vec![40; 1000]),
        Record::data(40, 1 << 50, vec![40; 1000]),
        Record::data(40, 39_999, vec![40; 1000]),
    ];
    for wrong in wrong {
        let mut records = records.clone();
        records[40] = wrong;
        let file = file_of(&blocks_of(vec![records.clone()], Quality::Stored));
        let (got, damages) = read(&file[..file.len() / 2]);
        assert_eq!((&got[..], damages[0].lost_records), (&records[..40], Some(60)));
    }
}

#[test]
fn blocks_read_elsewhere_give_the_same() {
    let blocks = sample();
    let mut file = file_of(&blocks);
    let check = |file: &[u8]| {
        let here: Vec<String> = Reader::new(file).map(|i| format!("{i:?}")).collect();
        let mut source = BlockReader::new(Cursor::new(file.to_vec()));
        let given: Reader<Cursor<Vec<u8>>> = Reader::given(move || source.next_item());
        assert_eq!(given.map(|i| format!("{i:?}")).collect::<Vec<_>>(), here);
    };
    check(&file);
    check(&file[..file.len() - 5]);
    file[300..320].fill(0);
    check(&file);
}

#[test]
fn damage_says_what_it_cost() {
    let blocks = sample();
    let mut file = file_of(&blocks);
    let start: usize = blocks[..5].iter().map(|(b, _)| b.len()).sum();
    file[start + 44..start + 60].fill(0xff);
    let (_, damages) = read(&file);
    assert_eq!(damages.len(), 1, "{damages:?}");
    let damage = &damages[0];
    assert_eq!((damage.offset, damage.len), (start as u64, blocks[5].0.len() as u64));
    assert_eq!(damage.kind, DamageKind::BadPayload);
    assert_eq!((damage.lost_records, damage.lost_bytes), (Some(4), Some(200 + 4 * 31)));
    assert_eq!((damage.after_ts, damage.before_ts), (Some(1_033), Some(1_050)));
}

#[test]
fn a_printed_recording_is_not_taken_for_this_one() {
    // A user runs `cat old.ahr` in a session that is stored uncompressed, and that block is
    // damaged later: the blocks inside it are bytes of output, not events of this session.
    let inner = file_of(&sample());
    let blocks = blocks_of(
        vec![
            vec![Record::resize(1, Size::new(80, 24))],
            vec![Record::data(2, 0, vec![b'a'; 500]), Record::data(2, 500, inner.clone())],
            vec![Record::data(3, 500 + inner.len() as u64, b"after".to_vec())],
        ],
        Quality::Stored,
    );
    let mut file = file_of(&blocks);
    assert_eq!(read(&file).0.len(), 4);
    file[blocks[0].0.len() + 45] ^= 0xff;
    let (records, damages) = read(&file);
    assert_eq!(damages.len(), 1);
    assert_eq!(records.len(), 2);
}

#[test]
fn lengths_that_lie_take_no_memory() {
    let mut header = Header::from_bytes(&sample()[1].0).unwrap();
    header.uncompressed_len = u32::MAX;
    header.compressed_len = u32::MAX;
    let (records, damages) = read(&header.to_bytes());
    assert!(records.is_empty());
    assert!(matches!(damages[..], [Damage { kind: DamageKind::BadHeader(_), .. }]));
}

#[test]
fn a_recording_can_be_continued() {
    // Continuing at the wrong offset would shift every later anchor; behind a torn block it would
    // be lost.
    let blocks = sample();
    let file = file_of(&blocks);
    let whole = tail(Cursor::new(&file)).unwrap();
    let total: u64 = (0..12).map(|i| 200 + i * 31).sum();
    assert_eq!((whole.end, whole.next_off, whole.is_torn()), (file.len() as u64, total, false));
    assert!(whole.is_last);
    assert_eq!(whole.blocks, 14);

    let before_last = file.len() - blocks[13].0.len();
    let torn = tail(Cursor::new(&file[..file.len() - 1])).unwrap();
    assert_eq!((torn.end, torn.next_off, torn.is_torn()), (before_last as u64, total, true));
    assert!(!torn.is_last);

    let mut broken = file.clone();
    broken[before_last + 44..].fill(0xff);
    let broken = tail(Cursor::new(&broken)).unwrap();
    assert_eq!((broken.end, broken.next_off, broken.is_torn()), (before_last as u64, total, true));
    assert_eq!(tail(Cursor::new(&[])).unwrap().next_off, 0);

    // What a torn block still holds must not be cut off with it.
    let records: Vec<Record> = (0..10).map(|i| Record::data(i, i * 100, vec![i as u8; 100])).collect();
    let file = file_of(&blocks_of(vec![records.clone()], Quality::Stored));
    let torn = tail(Cursor::new(&file[..file.len() - 20])).unwrap();
    assert_eq!((torn.end, torn.next_off, torn.is_torn()), (0, 900, true));
    assert_eq!(torn.salvaged, records[..9]);
}

#[test]
fn marks_keep_their_meaning_and_unknown_ones_their_value() {
    for code in 0..300 {
        for val in [0, 1, u32::MAX] {
            assert_eq!(Mark::from_raw(code, val).to_raw(), (code, val));
        }
    }
    assert_eq!(Mark::from_raw(1, 2), Mark::Other { code: 1, val: 2 }, "the original writer's own");
    let parts: Vec<u32> = Mark::pieces(10_000_000_000).collect();
    assert_eq!(parts.iter().map(|&p| u64::from(p)).sum::<u64>(), 10_000_000_000);
    assert_eq!(Mark::pieces(0).count(), 0);
}

#[test]
fn every_truncation_keeps_the_whole_blocks() {
    let blocks = sample();
    let file = file_of(&blocks);
    for cut in 0..file.len() {
        let (records, damages) = read(&file[..cut]);
        assert_outside(&blocks, cut..file.len(), &records);
        let mut ends = blocks.iter().scan(0, |at, (b, _)| {
            *at += b.len();
            Some(*at)
        });
        assert_eq!(damages.is_empty(), cut == 0 || ends.any(|end| end == cut), "cut at {cut}");
        let torn = tail(Cursor::new(&file[..cut])).unwrap();
        assert_eq!(torn.is_torn(), !damages.is_empty(), "cut at {cut}");
    }
}

fn body() -> impl Strategy<Value = Body> {
    prop_oneof![
        4 => (any::<u64>(), vec(any::<u8>(), 0..300))
            .prop_map(|(off, b)| Body::Data { off: off >> 2, bytes: b.into() }),
        1 => any::<(u16, u16)>().prop_map(|(cols, rows)| Body::Resize(Size { cols, rows })),
        1 => vec(any::<u8>(), 0..50).prop_map(|b| Body::Input { bytes: b.into() }),
        1 => any::<(u32, u32)>().prop_map(|(code, val)| Body::Mark { code, val }),
        1 => (any::<u64>(), any::<u64>(), ".{0,20}")
            .prop_map(|(id, anchor, label)| Body::Snapshot { id, anchor, label }),
    ]
}

fn records() -> impl Strategy<Value = Vec<Vec<Record>>> {
    vec(vec((any::<u64>(), body()).prop_map(|(ts_ns, body)| Record { ts_ns, body }), 1..12), 1..8)
}

fn quality() -> impl Strategy<Value = Quality> {
    prop_oneof![Just(Quality::Stored), (0_u8..=5).prop_map(Quality::Brotli)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn round_trip(records in records(), quality in quality()) {
        let blocks = blocks_of(records.clone(), quality);
        let (got, damages) = read(&file_of(&blocks));
        prop_assert_eq!(damages, vec![]);
        prop_assert_eq!(got, records.into_iter().flatten().collect::<Vec<_>>());
    }

    #[test]
    fn any_damage_costs_only_what_it_covers(
        records in records(),
        quality in quality(),
        at in any::<prop::sample::Index>(),
        len in 1_usize..200,
        how in 0..4,
        noise in vec(any::<u8>(), 200),
    ) {
        let blocks = blocks_of(records, quality);
        let mut file = file_of(&blocks);
        let start = at.index(file.len());
        let end = (start + len).min(file.len());
        match how {
            0 => file[start..end].fill(0),
            1 => file[start..end].iter_mut().for_each(|b| *b ^= 0xff),
            2 => file[start] ^= 1 << (len % 8),
            _ => file[start..end].copy_from_slice(&noise[..end - start]),
        }
        let range = if how == 2 { start..start + 1 } else { start..end };
        match Reader::new(&file[..]).collect::<Result<Vec<_>, _>>() {
            Ok(_) => assert_outside(&blocks, range, &read(&file).0),
            // A single block with a flipped version cannot be told from a later format.
            Err(e) => prop_assert!(blocks.len() == 1 || range.len() > 40, "{}", e),
        }
        let _ = Scan::new(Cursor::new(&file)).unwrap().count();
    }

    #[test]
    fn removed_and_inserted_bytes_cost_only_their_block(
        records in records(),
        at in any::<prop::sample::Index>(),
        len in 1_usize..100,
        noise in vec(any::<u8>(), 0..60),
    ) {
        let blocks = blocks_of(records, Quality::Brotli(1));
        let mut file = file_of(&blocks);
        let start = at.index(file.len());
        let end = (start + len).min(file.len());
        // If exactly as much is missing as the next blocks are long, they look like the rest of
        // this one.
        let missing = (end - start).saturating_sub(noise.len());
        prop_assume!(missing < 60);
        file.splice(start..end, noise);
        if let Ok(items) = Reader::new(&file[..]).collect::<Result<Vec<_>, _>>() {
            let got: Vec<Record> = items.into_iter().filter_map(|i| match i {
                Item::Record(r) => Some(r),
                Item::Damage(_) => None,
            }).collect();
            assert_outside(&blocks, start..end, &got);
        }
    }

    #[test]
    fn noise_neither_panics_nor_hangs(bytes in vec(any::<u8>(), 0..2000), magics in vec(any::<prop::sample::Index>(), 0..6)) {
        let mut bytes = bytes;
        for at in magics {
            let at = at.index(bytes.len() + 1);
            bytes.splice(at..at, *b"AHRC\x01\x00\x2c\x00");
        }
        let _ = Reader::new(&bytes[..]).count();
        let _ = tail(Cursor::new(&bytes));
    }
}

/// A block that did not fit on a disk was dropped whole.
#[test]
fn a_block_is_cut_down_to_the_room_that_there_is() {
    let mut x = 1_u64;
    let mut random = || {
        x = (x ^ (x << 13)) ^ ((x ^ (x << 13)) >> 7);
        x ^= x << 17;
        x as u8
    };
    let noise: Vec<u8> = (0..100_000).map(|_| random()).collect();
    let mut builder = BlockBuilder::new(7);
    for (n, piece) in noise.chunks(999).enumerate() {
        assert!(builder.push(Record::data(n as u64, 7 + 999 * n as u64, piece.to_vec())).is_none());
    }
    let block = builder.finish(Quality::default(), false).to_vec();
    for room in [0, 40, 100, 1_000, 5_000, 50_000, block.len() - 1] {
        let Some(cut) = CutBlock::new(&block, room) else {
            assert!(room < 200, "{room}");
            continue;
        };
        assert!(cut.bytes.len() <= room && cut.bytes.len() * 3 > room * 2, "{room}: {}", cut.bytes.len());
        let summary = Summary::of(&cut.bytes[..]).expect("read");
        assert_eq!((summary.output_bytes, summary.end_off - 7), (cut.output, cut.output));
        assert!(summary.damages.is_empty());
    }
}
