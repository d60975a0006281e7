//! A cassette in the common language of recordings, both ways, so that it converts from and to all
//! formats. Output keeps every byte and every chunk; what has no form of its own in a cassette
//! becomes a service event and comes back as what it was.

use bytes::Bytes;
use serde_json::{Map, Value, json};
use tapdeck_core::check;
use tapdeck_core::{Time, WallTime};

use super::{Cassette, CassetteEvent, Closing, EventKind, Exit, Input, Recording};
use crate::event::{Event, EventReader, Field, Header, Item, Kind, Losses};
use crate::{JsonValue, Result};

/// Reads a cassette as a recording.
#[derive(Debug)]
pub struct CassetteReader {
    header: Header,
    events: std::vec::IntoIter<CassetteEvent>,
    exit: Exit,
    position: u64,
}

impl CassetteReader {
    /// Over a cassette that was accepted.
    pub fn new(cassette: Cassette) -> Self {
        let terminal = &cassette.manifest.terminal;
        let text = |key: &str| cassette.manifest.optional.get(key);
        let header = Header {
            size: Some(terminal.initial_size()),
            started: text("started_at_ns").and_then(|v| v.as_u64()).map(WallTime::from_nanos),
            command: Some(cassette.manifest.command.argv.join(" ")).filter(|c| !c.is_empty()),
            argv: cassette.manifest.command.argv.clone(),
            title: text("title").and_then(|v| v.as_str().map(Into::into)),
            term: terminal.term.clone(),
            pipes: text("pipes").and_then(|v| v.as_bool()).unwrap_or_default(),
            ..Header::default()
        };
        let exit = cassette.outcome.exit.clone();
        Self { header, events: cassette.events.into_iter(), exit, position: 0 }
    }

    fn kind(&self, kind: EventKind) -> Option<Kind> {
        Some(match kind {
            EventKind::Output { bytes, .. } => Kind::Output(bytes),
            EventKind::Input(input) => Kind::Input(input.bytes),
            EventKind::Resize(size) => Kind::Resize(size),
            EventKind::Signal { name } => Kind::Other { code: "signal".into(), data: name.into() },
            EventKind::Service(payload) => of_payload(payload),
            // Frames are derived from the rest.
            EventKind::Frame(_) => return None,
            EventKind::Final => match (&self.exit.code, &self.exit.signal) {
                (Some(code), _) => Kind::Exit(tapdeck_core::Exit::Code(*code)),
                (None, Some(name)) => Kind::Exit(tapdeck_core::Exit::Signal(signal_number(name)?)),
                // How long it lasted is worth knowing all the same.
                (None, None) => Kind::Output(Bytes::new()),
            },
        })
    }
}

impl EventReader for CassetteReader {
    fn header(&self) -> &Header {
        &self.header
    }

    fn next_item(&mut self) -> Result<Option<Item>> {
        while let Some(event) = self.events.next() {
            let time = Time::from_millis(event.t_ms);
            if let Some(kind) = self.kind(event.kind) {
                if let Kind::Output(bytes) = &kind {
                    self.position += bytes.len() as u64;
                }
                return Ok(Some(Item::Event(Event::new(time, kind))));
            }
        }
        Ok(None)
    }

    fn position(&self) -> u64 {
        self.position
    }
}

/// Takes the events of any recording. The caller finishes it with what [`Closing`] wants, after
/// [`from_header`] and [`Taken`] have filled in what the recording told.
#[derive(Debug, Default)]
pub struct Taken {
    /// How it ended.
    pub exit: Exit,
    /// When the last event happened.
    pub end: Time,
    /// Bytes that the recording says it lost: this is no golden master of the whole output.
    pub lost: u64,
}

impl Taken {
    /// Adds one event to a cassette in the making.
    pub fn event(&mut self, recording: &mut Recording, event: Event) {
        let at = event.time;
        self.end = self.end.max(at);
        match event.kind {
            Kind::Output(bytes) => recording.output(at, &bytes),
            Kind::Input(bytes) => recording.input(at, &Input { bytes, ..Input::default() }),
            Kind::Resize(size) => recording.resize(at, size),
            Kind::Exit(exit) => self.exit = exit.into(),
            Kind::Other { code, data: JsonValue(Value::String(name)) } if code == "signal" => {
                recording.signal(at, &name)
            }
            kind => {
                if let Kind::Lost(bytes) = kind {
                    self.lost += bytes;
                }
                recording.service(at, to_payload(kind));
            }
        }
    }
}

/// What of a recording's header has no place in a cassette.
pub fn header_losses(header: &Header) -> Losses {
    let mut losses = Losses::default();
    losses.drop_fields(header, &[Field::Command, Field::Title, Field::Term, Field::Pipes]);
    losses
}

/// Fills in what a recording's header tells.
pub fn from_header(closing: &mut Closing, header: &Header) {
    let manifest = &mut closing.manifest;
    manifest.terminal.term.clone_from(&header.term);
    manifest.command.argv = match header.argv.is_empty() {
        true => header.command.iter().cloned().collect(),
        false => header.argv.clone(),
    };
    if let Some(name) = header.command.as_ref().and_then(|c| c.split_whitespace().next()) {
        manifest.harness.name = name.rsplit('/').next().unwrap_or(name).to_owned();
    }
    if let Some(title) = &header.title {
        manifest.optional.insert("title", title.as_str());
    }
    if header.pipes {
        manifest.optional.insert("pipes", true);
    }
    if let Some(started) = header.started {
        manifest.optional.insert("started_at_ns", started.as_nanos());
    }
}

const PREFIX: &str = "tapdeck.";

/// An event that has no stream of its own, as a service event.
fn to_payload(kind: Kind) -> JsonValue {
    let (name, mut body) = match kind {
        Kind::Marker(label) => ("marker", json!({"label": label})),
        Kind::Mark { code, val } => ("mark", json!({"code": code, "val": val})),
        Kind::Snapshot { id, anchor, label } => {
            ("snapshot", json!({"id": id, "anchor_byte": anchor, "label": label}))
        }
        Kind::Lost(bytes) => ("lost", json!({"bytes": bytes})),
        // A service event of another cassette is what it was.
        Kind::Other { code, data } if code == "service" => return data,
        Kind::Other { code, data } => ("other", json!({"code": code, "data": data})),
        _ => ("other", json!({})),
    };
    if let Some(body) = body.as_object_mut() {
        body.insert("type".into(), format!("{PREFIX}{name}").into());
    }
    JsonValue(body)
}

/// A service event as it was given; what is no JSON is kept as text and says so.
pub fn service_payload(text: &str) -> JsonValue {
    let value: Value = serde_json::from_str(text)
        .unwrap_or_else(|e| json!({"type": "tapdeck.malformed_event", "text": text, "why": e.to_string()}));
    JsonValue(value)
}

/// The reverse of [`to_payload`].
fn of_payload(payload: JsonValue) -> Kind {
    let known = || -> Option<Kind> {
        let body: &Map<String, Value> = payload.0.as_object()?;
        let number = |key: &str| body.get(key).and_then(Value::as_u64);
        let small = |key: &str| number(key).and_then(|n| u32::try_from(n).ok());
        let text = |key: &str| body.get(key).and_then(Value::as_str).map(str::to_owned);
        Some(match body.get("type")?.as_str()?.strip_prefix(PREFIX)? {
            "marker" => Kind::Marker(text("label")?),
            "mark" => Kind::Mark { code: small("code")?, val: small("val")? },
            "snapshot" => {
                Kind::Snapshot { id: number("id")?, anchor: number("anchor_byte")?, label: text("label")? }
            }
            "lost" => Kind::Lost(number("bytes")?),
            "other" => Kind::Other { code: text("code")?, data: JsonValue(body.get("data")?.clone()) },
            _ => return None,
        })
    };
    known().unwrap_or_else(|| Kind::Other { code: "service".into(), data: payload.clone() })
}

/// A signal's name; one without a name is called by its number.
pub fn signal_name(number: i32) -> String {
    format!("SIG{}", check::signal_name(number))
}

/// The reverse of [`signal_name`].
pub(crate) fn signal_number(name: &str) -> Option<i32> {
    name.strip_prefix("SIG").and_then(check::signal_number)
}

#[cfg(test)]
mod tests {
    use super::super::Files;
    use super::super::tests::closing;
    use super::*;
    use std::time::Duration;

    use crate::testing::{read_all, sample_events};

    #[test]
    fn every_event_of_a_recording_comes_back() {
        let (header, mut events) = sample_events();
        events.insert(
            3,
            Event::new(Time::from_millis(3), Kind::Snapshot { id: 7, anchor: 12, label: "s".into() }),
        );
        events.insert(3, Event::new(Time::from_millis(3), Kind::Mark { code: 262, val: 1 }));
        events.insert(3, Event::new(Time::from_millis(3), Kind::Lost(5)));
        let files = make(&header, &events);
        let cassette = Cassette::from_files(&files).unwrap();
        let (back_header, back, _) = read_all(CassetteReader::new(cassette));
        assert_eq!((back_header.size, back_header.title), (header.size, header.title));
        assert_eq!(back_header.started, header.started);
        // Times are whole milliseconds here.
        let floored: Vec<Event> =
            events.into_iter().map(|e| Event::new(Time::from_millis(e.time.as_millis()), e.kind)).collect();
        assert_eq!(back, floored);
    }

    fn make(header: &Header, events: &[Event]) -> Files {
        let mut closing = closing();
        from_header(&mut closing, header);
        let mut recording = Recording::new(header.size.unwrap_or_default(), Duration::from_millis(1));
        let mut taken = Taken::default();
        for event in events {
            taken.event(&mut recording, event.clone());
        }
        closing.outcome.exit = taken.exit;
        recording.finish_in_memory(taken.end, closing).unwrap()
    }

    #[test]
    fn signals_have_names() {
        for number in [1, 2, 9, 15, 28, 31, 34, 64] {
            assert_eq!(signal_number(&signal_name(number)), Some(number));
        }
        assert_eq!((signal_name(15), signal_number("SIGx")), ("SIGTERM".into(), None));
    }
}
