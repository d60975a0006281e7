//! Every format, cut at every byte: what comes before the cut is read, nothing is made up, and a
//! file that ends in the middle of something never passes for one that ends well.

use bytes::Bytes;
use tapdeck_core::{Exit, Time, WallTime};
use tapdeck_tape::ahr::Quality;
use tapdeck_tape::zst::ZstWriter;
use tapdeck_tape::{Beside, Container, Event, Format, Header, Item, Kind, Parts, open, writer};
use tapdeck_term::Size;

/// What a reader made of a file.
#[derive(Debug, PartialEq)]
struct Got {
    events: Vec<Event>,
    /// Whether it remarked on something, or gave up.
    spoke: bool,
}

impl Got {
    fn output(&self) -> Vec<u8> {
        let bytes = self.events.iter().filter_map(|e| match &e.kind {
            Kind::Output(bytes) => Some(&bytes[..]),
            _ => None,
        });
        bytes.collect::<Vec<_>>().concat()
    }
}

fn read(container: Container, main: &[u8], timing: &[u8]) -> Got {
    let beside = Beside::default().timing(timing);
    let Ok(mut reader) = open(container, main, beside) else {
        return Got { events: Vec::new(), spoke: true };
    };
    let mut got = Got { events: Vec::new(), spoke: false };
    for n in 0.. {
        assert!(n <= 2 * (main.len() + timing.len()) + 100, "{container:?} does not end");
        match reader.next_item() {
            Ok(Some(Item::Event(event))) => got.events.push(event),
            Ok(Some(Item::Note(_))) => got.spoke = true,
            Ok(None) => break,
            Err(_) => {
                got.spoke = true;
                break;
            }
        }
    }
    got
}

fn sample(format: Format) -> Parts {
    let header = Header {
        size: Some(Size::new(40, 5)),
        started: Some(WallTime::from_secs(1_700_000_000)),
        title: Some("töst".to_owned()),
        ..Header::default()
    };
    let output =
        |ms, text: &'static [u8]| Event::new(Time::from_millis(ms), Kind::Output(Bytes::from_static(text)));
    let events = [
        output(0, b"one\r\n\x1b[31mtwo"),
        Event::new(Time::from_millis(1), Kind::Input(Bytes::from_static(b"q\r"))),
        Event::new(Time::from_millis(2), Kind::Resize(Size::new(50, 6))),
        output(3, "\x1b[m\r\nthree \"quoted\" é\r\n".as_bytes()),
        Event::new(Time::from_millis(4), Kind::Marker("here".to_owned())),
        output(5, b"the end\r\n"),
        Event::new(Time::from_millis(6), Kind::Exit(Exit::Code(3))),
    ];
    let mut target = writer(format, Quality::Brotli(1)).expect("it can be written");
    let mut parts = Parts::default();
    target.begin(&header, &mut parts);
    for event in &events {
        target.event(event, &mut parts);
    }
    target.finish(&mut parts);
    parts
}

const PLAIN: [Format; 9] = [
    Format::Ahr,
    Format::CastV1,
    Format::CastV2,
    Format::CastV3,
    Format::Ttyrec,
    Format::Typescript,
    Format::ThreeA,
    Format::Ans,
    Format::Raw,
];

fn parts_of(format: Format) -> Parts {
    if format == Format::CastV1 {
        let main = br#"{"version":1,"width":80,"height":24,"stdout":[[0.1,"one"],[0.2,"two\u00e9"]]}"#;
        return Parts { main: main.to_vec(), ..Parts::default() };
    }
    sample(format)
}

#[test]
fn every_format_cut_at_every_byte() {
    for format in PLAIN {
        for zst in [false, true] {
            let parts = parts_of(format);
            let mut main = parts.main.clone();
            if zst {
                let mut packer = ZstWriter::new(3).expect("zstd");
                packer.step(&mut main).expect("packed");
                main.extend(packer.finish().expect("packed"));
            }
            let container = Container { format, zst };
            let whole = read(container, &main, &parts.timing);
            assert!(!whole.spoke && !whole.events.is_empty(), "{container:?}: {whole:?}");
            for cut in 0..main.len() {
                let got = read(container, &main[..cut], &parts.timing);
                check(container, &whole, &got, &format!("byte {cut}"));
                assert!(got.spoke || !zst, "{container:?} cut at byte {cut} in silence");
            }
            for cut in 0..parts.timing.len() {
                let got = read(container, &main, &parts.timing[..cut]);
                // Without its timing, input cannot be told from output: all of it is given, and
                // that is said.
                if got.spoke {
                    continue;
                }
                check(container, &whole, &got, &format!("byte {cut} of the timing"));
            }
        }
    }
}

fn check(container: Container, whole: &Got, got: &Got, place: &str) {
    let format = container.format;
    if format == Format::ThreeA {
        // The sequences that draw a picture are the reader's own: there is no telling which came
        // first.
        return;
    }
    let (all, part) = (whole.output(), got.output());
    // A few letters of the line that `script` puts first cannot be told from the program's own.
    let letters = format == Format::Typescript && b"Script".starts_with(&part[..]);
    assert!(all.starts_with(&part) || letters, "{container:?} cut at {place} made something up: {part:?}");
    // A bare stream of bytes ends where it ends.
    let bare = matches!(format, Format::Raw | Format::Ans);
    if !got.spoke && !bare {
        assert!(whole.events.starts_with(&got.events), "{container:?} cut at {place} in silence: {got:?}");
    }
}
