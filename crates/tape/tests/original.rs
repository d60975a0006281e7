//! The original format in both directions: its writer's recordings are read, and a reader that
//! knows the original specification alone reads ours.

use std::io::Cursor;

use tapdeck_tape::ahr::parts::{EVENTS, META};
use tapdeck_tape::ahr::{
    AhrWriter, Body, Item, Mark, Parts as Held, Place, Quality, Reader, Summary, part_blocks,
};
use tapdeck_tape::{Event, EventWriter, Header, Kind, Parts, Size, Time, WallTime};

/// A record of the original format.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Rec {
    Data(u64, Vec<u8>),
    Resize(u16, u16),
    Input(Vec<u8>),
    Mark(u32, u32),
    Snapshot(u64, u64, Vec<u8>),
}

/// Reads a recording as the original specification says. A block is given up at the first record
/// whose tag is not in it; the next block stands on its own. Returns the records and how many
/// blocks were given up.
fn read_original(file: &[u8]) -> (Vec<Rec>, usize) {
    fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
        bytes.get(at..)?.first_chunk().copied()
    }
    fn record(b: &[u8]) -> Option<(Rec, usize)> {
        let bytes = |at: usize, len: usize| b.get(at..at + len).map(<[u8]>::to_vec);
        let u16_at = |at| number(b, at).map(u16::from_le_bytes);
        let u32_at = |at| number(b, at).map(u32::from_le_bytes);
        let u64_at = |at| number(b, at).map(u64::from_le_bytes);
        Some(match *b.first()? {
            0 => {
                let len = u32_at(20)? as usize;
                (Rec::Data(u64_at(12)?, bytes(24, len)?), 24 + len)
            }
            1 => (Rec::Resize(u16_at(12)?, u16_at(14)?), 16),
            2 => {
                let len = u32_at(12)? as usize;
                (Rec::Input(bytes(16, len)?), 16 + len)
            }
            3 => (Rec::Mark(u32_at(12)?, u32_at(16)?), 20),
            4 => {
                let len = usize::from(u16_at(28)?);
                (Rec::Snapshot(u64_at(12)?, u64_at(20)?, bytes(30, len)?), 30 + len)
            }
            _ => return None,
        })
    }
    let (mut records, mut given_up, mut pos) = (Vec::new(), 0, 0);
    while pos < file.len() {
        let u32_at = |at| u32::from_le_bytes(number(file, pos + at).expect("a header"));
        assert_eq!(u32_at(0), 0x4352_4841, "the magic");
        assert_eq!(file[pos + 4..pos + 6], [1, 0], "the version");
        let (unpacked, packed, count) = (u32_at(24) as usize, u32_at(28) as usize, u32_at(32));
        // The struct has 44 bytes, whatever its field says.
        let payload = &file[pos + 44..pos + 44 + packed];
        let mut segment = Vec::new();
        std::io::Read::read_to_end(&mut brotlic::DecompressorReader::new(payload), &mut segment)
            .expect("a brotli stream");
        assert_eq!(segment.len(), unpacked, "the length of the records");
        let (mut rest, mut read) = (&segment[..], 0);
        while let Some((found, len)) = record(rest) {
            records.push(found);
            rest = &rest[len..];
            read += 1;
        }
        match rest.is_empty() {
            true => assert_eq!(read, count, "the number of records"),
            false => given_up += 1,
        }
        pos += 44 + packed;
    }
    (records, given_up)
}

/// Reads the same with our reader, parts aside.
fn read_ours(file: &[u8]) -> Vec<Rec> {
    let records = Reader::new(file).map(|item| match item.expect("read") {
        Item::Record(record) => record.body,
        Item::Damage(damage) => panic!("{damage}"),
    });
    let rec = |body| match body {
        Body::Data { off, bytes } => Some(Rec::Data(off, bytes.to_vec())),
        Body::Resize(size) => Some(Rec::Resize(size.cols, size.rows)),
        Body::Input { bytes } => Some(Rec::Input(bytes.to_vec())),
        Body::Mark { code, val } => Some(Rec::Mark(code, val)),
        Body::Snapshot { id, anchor, label } => Some(Rec::Snapshot(id, anchor, label.into_bytes())),
        _ => None,
    };
    records.filter_map(rec).collect()
}

/// A long session with every kind of event, and parts between and behind its blocks.
fn session() -> Vec<u8> {
    let header = Header {
        size: Some(Size::new(100, 30)),
        started: Some(WallTime::from_secs(1_700_000_000)),
        title: Some("a title".into()),
        ..Header::default()
    };
    let events = "{\"ts_ns\":1700000000500000000,\"kind\":\"state\",\"state\":\"idle\"}\n".repeat(5);
    let mut writer = AhrWriter::new(Quality::default()).carrying(Some(Box::new(Cursor::new(events))));
    let mut parts = Parts::default();
    writer.begin(&header, &mut parts);
    let mut output = 0;
    for i in 0..3_000_u64 {
        let text = format!("line {i} {}\r\n", "x".repeat((i * 7919 % 400) as usize));
        output += text.len() as u64;
        let kind = match i % 10 {
            3 => Kind::Input(b"ls\r"[..].into()),
            5 => Kind::Resize(Size::new(80 + (i % 40) as u16, 24)),
            7 => Kind::Snapshot { id: i, anchor: output, label: format!("nach {i} Zügen") },
            9 => Kind::Marker(format!("marker {i}")),
            _ => Kind::Output(text.into_bytes().into()),
        };
        writer.event(&Event::new(Time::from_millis(i), kind), &mut parts);
    }
    writer.finish(&mut parts);
    let Place { ts_ns, byte_off } = parts.place.expect("a native recording");
    let place = Place { ts_ns, byte_off };
    for part in [(META, &b"{\"version\":1}\n"[..]), (EVENTS, b"{}\n"), ("of-a-later-version", &[7; 300_000])]
    {
        parts.main.extend(part_blocks(&[part], place, Quality::default(), true).concat());
    }
    parts.main
}

#[test]
fn a_reader_of_the_original_format_loses_nothing_but_parts() {
    let file = session();
    let (theirs, given_up) = read_original(&file);
    assert!(theirs == read_ours(&file));
    assert!(theirs.len() >= 3_000 && given_up >= 5, "{} records, {given_up} blocks", theirs.len());
    // What was given up held parts alone.
    let held = Held::of(Cursor::new(&file)).expect("found");
    assert_eq!(held.list().count(), 3);
}

#[test]
fn recordings_of_the_original_writer_are_read() {
    let hello = include_bytes!("original/original-hello.ahr");
    assert_eq!(read_ours(hello), [Rec::Data(0, b"hello world\r\n".to_vec())]);
    assert_eq!(read_original(hello).0, read_ours(hello));

    let whole = include_bytes!("original/original-writer.ahr");
    let (theirs, given_up) = read_original(whole);
    assert_eq!((&theirs, given_up), (&read_ours(whole), 0));
    let has = |kind: fn(&Rec) -> bool| theirs.iter().any(kind);
    assert!(has(|r| matches!(r, Rec::Data(..))) && has(|r| matches!(r, Rec::Resize(..))));
    assert!(has(|r| matches!(r, Rec::Input(_))) && has(|r| matches!(r, Rec::Mark(..))));
    assert!(has(|r| matches!(r, Rec::Snapshot(..))));

    let cut = include_bytes!("original/original-writer-truncated.ahr");
    let (summary, of_whole) = (Summary::of(&cut[..]).expect("read"), Summary::of(&whole[..]).expect("read"));
    assert!(of_whole.is_whole() && !summary.is_whole());
    assert!(summary.records > 0 && summary.records < of_whole.records);
    assert!(matches!(Mark::from_raw(1, 2), Mark::Other { .. }), "its marks have no meaning that we know");
}
