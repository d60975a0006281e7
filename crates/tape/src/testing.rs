//! Helpers of the tests: one session that uses every kind of event, and loops that read and write
//! it.

use bytes::Bytes;
use tapdeck_core::{Exit, Time, WallTime};
use tapdeck_term::Size;

use crate::event::{Event, EventReader, EventWriter, Header, Item, Kind, Note, Parts};

/// A session with every kind of event, invalid UTF-8 and split characters included.
pub(crate) fn sample_events() -> (Header, Vec<Event>) {
    let header = Header {
        size: Some(Size::new(100, 30)),
        started: Some(WallTime::from_nanos(1_700_000_000_123_456_000)),
        command: Some("vim \"a b\"".into()),
        title: Some("Größe </script>".into()),
        term: Some("xterm-256color".into()),
        env: [("SHELL".to_owned(), "/bin/sh".to_owned())].into(),
        tags: [("agent".to_owned(), "claude".to_owned()), ("keep".to_owned(), String::new())].into(),
        ..Header::default()
    };
    let out = |ms: u64, bytes: &'static [u8]| {
        Event::new(Time::from_millis(ms), Kind::Output(Bytes::from_static(bytes)))
    };
    let events = vec![
        out(0, b"\x1b[2J\x1b[Hhello\r\n"),
        out(1, "sch\u{f6}n \u{20ac}".as_bytes()),
        Event::new(Time::from_millis(2), Kind::Input(Bytes::from_static(b"ls\r"))),
        Event::new(Time::from_micros(3_500), Kind::Resize(Size::new(132, 43))),
        out(4, b"\xe2\x82"),
        out(5, b"\xac \xff\xfe\x00 end"),
        Event::new(Time::from_millis(6), Kind::Marker("here".into())),
        out(1_500, b"late\r\n"),
        Event::new(Time::from_millis(1_501), Kind::Exit(Exit::Code(3))),
    ];
    (header, events)
}

pub(crate) fn write_all(writer: &mut dyn EventWriter, header: &Header, events: &[Event]) -> Parts {
    let mut parts = Parts::default();
    writer.begin(header, &mut parts);
    for event in events {
        writer.event(event, &mut parts);
    }
    writer.finish(&mut parts);
    parts
}

pub(crate) fn read_all(mut reader: impl EventReader) -> (Header, Vec<Event>, Vec<Note>) {
    let (mut events, mut notes) = (Vec::new(), Vec::new());
    while let Some(item) = reader.next_item().expect("readable") {
        match item {
            Item::Event(event) => events.push(event),
            Item::Note(note) => notes.push(note),
        }
    }
    (reader.header().clone(), events, notes)
}

/// All output, joined.
pub(crate) fn output_of(events: &[Event]) -> Vec<u8> {
    let mut out = Vec::new();
    for event in events {
        if let Kind::Output(bytes) = &event.kind {
            out.extend_from_slice(bytes);
        }
    }
    out
}
