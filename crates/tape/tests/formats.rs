//! All formats together: conversions between any two, and ten thousand accidents.

use bytes::Bytes;
use tapdeck_core::{Exit, Time, WallTime};
use tapdeck_tape::ahr::Quality;
use tapdeck_tape::{
    Beside, Container, Event, EventReader, Format, Header, Item, Kind, Parts, convert_to_parts, open, writer,
};
use tapdeck_term::Size;

const WRITABLE: [Format; 7] = [
    Format::Ahr,
    Format::CastV2,
    Format::CastV3,
    Format::Ttyrec,
    Format::Typescript,
    Format::Ans,
    Format::Raw,
];

/// A session in memory.
struct Session {
    header: Header,
    events: std::vec::IntoIter<Event>,
}

impl EventReader for Session {
    fn header(&self) -> &Header {
        &self.header
    }

    fn next_item(&mut self) -> tapdeck_tape::Result<Option<Item>> {
        Ok(self.events.next().map(Item::Event))
    }

    fn position(&self) -> u64 {
        0
    }
}

fn session(outputs: &[&[u8]]) -> Session {
    let header = Header {
        size: Some(Size::new(90, 20)),
        started: Some(WallTime::from_secs(1_700_000_000)),
        command: Some("make".to_owned()),
        ..Header::default()
    };
    let mut events: Vec<Event> = (0..)
        .zip(outputs)
        .map(|(i, bytes)| Event::new(Time::from_millis(10 * i), Kind::Output(Bytes::copy_from_slice(bytes))))
        .collect();
    let end = Time::from_millis(10 * events.len() as u64);
    events.insert(1, Event::new(Time::ZERO, Kind::Input(Bytes::from_static(b"q\r"))));
    events.push(Event::new(end, Kind::Exit(Exit::Code(0))));
    Session { header, events: events.into_iter() }
}

fn reader_of(format: Format, parts: &Parts) -> Box<dyn EventReader + '_> {
    let container = Container { format, zst: false };
    let beside = Beside::default().timing(&parts.timing[..]);
    open(container, &parts.main[..], beside).unwrap()
}

fn output_of(reader: &mut dyn EventReader) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(item) = reader.next_item().unwrap() {
        if let Item::Event(Event { kind: Kind::Output(bytes), .. }) = item {
            out.extend_from_slice(&bytes);
        }
    }
    out
}

#[test]
fn any_format_becomes_any_other_and_keeps_its_output() {
    // ASCII with escapes is what every format can carry.
    let outputs: [&[u8]; 4] = [b"\x1b[2J\x1b[Hone\r\n", b"two\x1b[31m", b"\x1b[0m three", b"\r\nfour"];
    let want = outputs.concat();
    for from in WRITABLE {
        let mut source = writer(from, Quality::default()).unwrap();
        let (first, _) = convert_to_parts(&mut session(&outputs), &mut *source).unwrap();
        for to in WRITABLE {
            let mut target = writer(to, Quality::default()).unwrap();
            let (second, report) = convert_to_parts(&mut *reader_of(from, &first), &mut *target).unwrap();
            assert!(report.notes.is_empty(), "{from} to {to}: {:?}", report.notes);
            let got = output_of(&mut *reader_of(to, &second));
            assert_eq!(String::from_utf8_lossy(&got), String::from_utf8_lossy(&want), "{from} to {to}");
            if !matches!(to, Format::Ans | Format::Raw) {
                let detected = Container::detect(None, &second.main, false);
                assert_eq!(detected.map(|c| c.format), Some(to), "{from} to {to}");
            }
        }
    }
}

#[test]
fn all_bytes_survive_where_bytes_can_be_carried() {
    let all: Vec<u8> = (0..=255).collect();
    let outputs = [&all[..], b"\xff\xfe\xe2\x82", b"\xac\x00"];
    let want = outputs.concat();
    for from in [Format::Ahr, Format::Ttyrec, Format::Typescript, Format::Raw] {
        let mut source = writer(from, Quality::default()).unwrap();
        let (first, _) = convert_to_parts(&mut session(&outputs), &mut *source).unwrap();
        let mut target = writer(Format::Ahr, Quality::Stored).unwrap();
        let (second, _) = convert_to_parts(&mut *reader_of(from, &first), &mut *target).unwrap();
        assert_eq!(output_of(&mut *reader_of(Format::Ahr, &second)), want, "{from}");
    }
}

#[test]
fn names_tell_what_content_cannot() {
    let of = |name: &str| Container::of_name(name).map(|c| (c.format, c.zst));
    assert_eq!(of("a.cast.zst"), Some((Format::CastV3, true)));
    assert_eq!(of("A.AHR"), Some((Format::Ahr, false)));
    assert_eq!(of("typescript"), Some((Format::Typescript, false)));
    assert_eq!(of("x.ttyrec.zst"), Some((Format::Ttyrec, true)));
    assert_eq!(of("notes.txt"), None);
    assert_eq!(Container::detect(Some("x.ahr"), b"something else", false), None);
    let named = Container::detect(Some("x.ahr"), b"{\"version\": 2, \"width\": 80}\n", false);
    assert_eq!(named.map(|c| c.format), Some(Format::CastV2), "the content is believed, not the name");
    assert_eq!(Container::detect(None, b"", false), None);
    let mut packed = b"{\"version\": 3, \"term\": {\"cols\": 80, \"rows\": 24}}\n".repeat(50);
    let mut zst = tapdeck_tape::zst::ZstWriter::new(3).unwrap();
    zst.step(&mut packed).unwrap();
    packed.extend(zst.finish().unwrap());
    let inside = Container::sniff(None, &packed);
    assert_eq!(inside, Some(Container { format: Format::CastV3, zst: true }));
    assert!(open(inside.unwrap(), &packed[..], Beside::default()).is_ok());
}

/// A small generator: the accidents must be the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

#[test]
fn ten_thousand_corruptions_neither_panic_nor_hang() {
    let long: Vec<u8> = (0..3000_u32).flat_map(|i| format!("line {i}\r\n").into_bytes()).collect();
    let pieces: Vec<&[u8]> = long.chunks(700).collect();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let three_a =
        b"@3a\ncolors yes\ndelay 10 1:5\ncol + fg:red bg:00ff00\n\n@body\nab+1\ncd12\n\nef++\n".to_vec();
    let v1 = b"{\"version\":1,\"width\":80,\"height\":24,\"stdout\":[[0.1,\"a\"],[0.2,\"b\"]]}".to_vec();
    let mut files: Vec<(Format, Parts)> = WRITABLE
        .iter()
        .map(|&format| {
            let mut target = writer(format, Quality::Brotli(1)).unwrap();
            (format, convert_to_parts(&mut session(&pieces), &mut *target).unwrap().0)
        })
        .collect();
    files.push((Format::ThreeA, Parts { main: three_a, ..Parts::default() }));
    files.push((Format::CastV1, Parts { main: v1, ..Parts::default() }));
    for round in 0..10_000 {
        let (format, parts) = &files[round % files.len()];
        let mut broken = parts.clone();
        let spoil_timing = !broken.timing.is_empty() && dice.roll(2) == 0;
        let bytes = if spoil_timing { &mut broken.timing } else { &mut broken.main };
        for _ in 0..=dice.roll(3) {
            let at = dice.roll(bytes.len().max(1));
            let end = bytes.len().min(at + 1 + dice.roll(64));
            match dice.roll(6) {
                0 => bytes.truncate(at),
                1 => bytes[at..end].fill(0),
                2 => bytes[at..end].iter_mut().for_each(|b| *b = !*b),
                3 => drop(bytes.drain(at..end)),
                4 => {
                    let copy = bytes[at..end].to_vec();
                    bytes.splice(at..at, copy);
                }
                _ if at < end => bytes[at] ^= 1 << dice.roll(8),
                _ => {}
            }
            if bytes.is_empty() {
                break;
            }
        }
        let beside = Beside::default().timing(&broken.timing[..]);
        let container = Container { format: *format, zst: false };
        let Ok(mut reader) = open(container, &broken.main[..], beside) else { continue };
        let mut last = Time::ZERO;
        // No file can hold more events than bytes, whatever was done to it.
        for n in 0.. {
            assert!(n <= 2 * (broken.main.len() + broken.timing.len()) + 10, "{format} does not end");
            match reader.next_item() {
                Ok(Some(Item::Event(event))) => {
                    assert!(event.time >= last, "{format}: time goes back");
                    last = event.time;
                }
                Ok(Some(Item::Note(note))) => assert!(!note.what.is_empty()),
                Ok(None) => break,
                Err(e) => {
                    assert!(e.to_string().starts_with("byte ") || e.to_string().starts_with("line "), "{e}");
                    break;
                }
            }
        }
    }
}
