//! Between cassettes and the timelines that checks look at.

use std::time::Duration;

use serde_json::{Value, json};
use tapdeck_core::check::{Cause, End, Input, Json, Moment, Pos, Timeline, What, signal_name, signal_number};
use tapdeck_core::{Seq, Time};

use crate::cassette::{
    self, Cassette, Closing, EventKind, Files, Paste, Recording, Refusal, names, service_payload,
};
use crate::{Extra, JsonValue};

/// The type of the service events that give a moment its name; it is that of the markers of other
/// formats.
const MARK: &str = "tapdeck.marker";

/// The timeline of a cassette.
pub fn timeline(cassette: &Cassette) -> Timeline {
    let terminal = &cassette.manifest.terminal;
    let moments = cassette.events.iter().filter_map(|event| {
        let what = match &event.kind {
            EventKind::Output { bytes, .. } => What::Output(bytes.clone()),
            EventKind::Input(input) => What::Input(Input {
                bytes: input.bytes.clone(),
                key: input.key.clone(),
                paste: input.paste.is_some(),
                reply: input.source.as_deref() == Some("reply"),
            }),
            EventKind::Resize(size) => What::Resize(*size),
            EventKind::Signal { name } => {
                What::Signal(signal_number(name).map_or_else(|| name.clone(), signal_name))
            }
            EventKind::Service(value) => match mark_of(&value.0) {
                Some(name) => What::Mark(name.into()),
                None => What::Service(from_json(&value.0)),
            },
            _ => return None,
        };
        Some(Moment { at: Pos { time: Time::from_millis(event.t_ms), seq: Seq(event.seq) }, what })
    });
    let outcome = &cassette.outcome;
    let fact = |name: &str| outcome.metadata.get(name);
    let cause = match fact("ended").as_ref().and_then(JsonValue::as_str) {
        Some("timed_out" | "timeout") => Cause::Timeout,
        Some("cancelled") => Cause::Cancelled,
        _ => Cause::Program,
    };
    let signal = outcome.exit.signal.as_deref().and_then(signal_number);
    let exit = outcome.exit.code.map(tapdeck_core::Exit::Code).or(signal.map(tapdeck_core::Exit::Signal));
    let leaked = fact("leaked_processes").and_then(|n| n.as_u64()).and_then(|n| u32::try_from(n).ok());
    Timeline {
        size: terminal.initial_size(),
        moments: moments.collect(),
        end: End {
            at: Pos { time: Time::from_millis(outcome.t_ms), seq: Seq(outcome.seq) },
            exit,
            cause,
            eof: fact("eof").and_then(|eof| eof.as_bool()),
            leaked,
        },
        beside: beside(cassette),
    }
}

/// What a cassette keeps beside its events.
fn beside(cassette: &Cassette) -> Vec<(&'static str, Json)> {
    fn value(part: &impl serde::Serialize) -> Json {
        // They were read as JSON, so they can be written as such.
        from_json(&serde_json::to_value(part).unwrap_or_default())
    }
    let mut all = vec![
        (names::MANIFEST, value(&cassette.manifest)),
        (names::FINAL, value(&cassette.outcome)),
        (names::SCRUB, value(&cassette.scrub_report)),
    ];
    all.extend(cassette.quota.as_ref().map(|quota| (names::QUOTA, value(quota))));
    all.extend(cassette.discovery.as_ref().map(|discovery| (names::DISCOVERY, value(discovery))));
    all
}

/// Adds the facts about a session's end that go into `final.json`.
pub(crate) fn add_metadata(end: &End, facts: &mut Extra) {
    let ended = match end.cause {
        Cause::Program => "program",
        Cause::Timeout => "timed_out",
        Cause::Cancelled => "cancelled",
    };
    facts.insert("ended", ended);
    if let Some(eof) = end.eof {
        facts.insert("eof", eof);
    }
    if let Some(leaked) = end.leaked {
        facts.insert("leaked_processes", leaked);
    }
}

/// The files of a cassette with this timeline in it. `closing` says the rest; its outcome's exit
/// and metadata are the timeline's.
///
/// # Errors
/// When it is larger than a cassette may be.
pub fn record(timeline: &Timeline, resolution: Duration, mut closing: Closing) -> Result<Files, Refusal> {
    let mut recording = Recording::new(timeline.size, resolution);
    let mut in_paste = false;
    for Moment { at, what } in &timeline.moments {
        let at = at.time;
        match what {
            What::Output(bytes) => recording.output(at, bytes),
            What::Input(input) => {
                let paste = input.paste.then(|| paste_of(&input.bytes, &mut in_paste));
                let source = Some(if input.reply { "reply" } else { "test" }.to_owned());
                let input =
                    cassette::Input { bytes: input.bytes.clone(), key: input.key.clone(), paste, source };
                recording.input(at, &input);
            }
            What::Resize(size) => recording.resize(at, *size),
            What::Signal(name) => recording.signal(at, &format!("SIG{name}")),
            What::Service(value) => recording.service(at, JsonValue(to_json(value))),
            What::Mark(name) => {
                recording.service(at, JsonValue(json!({ "type": MARK, "label": &**name })));
            }
            _ => {}
        }
    }
    let end = &timeline.end;
    closing.outcome.exit = end.exit.map(Into::into).unwrap_or_default();
    add_metadata(end, &mut closing.outcome.metadata);
    recording.finish_in_memory(end.at.time, closing)
}

fn paste_of(bytes: &[u8], open: &mut bool) -> Paste {
    let (starts, ends) = (bytes.starts_with(b"\x1b[200~"), bytes.ends_with(b"\x1b[201~"));
    let within = std::mem::replace(open, (*open || starts) && !ends);
    match (starts, ends) {
        (true, false) => Paste::Start,
        (false, true) if within => Paste::End,
        (false, false) if within => Paste::Middle,
        _ => Paste::Whole,
    }
}

fn mark_of(value: &Value) -> Option<&str> {
    (value.get("type")?.as_str()? == MARK).then(|| value.get("label")?.as_str())?
}

/// A JSON value as checks look at it.
/// A service event as it was given.
pub fn service_event(text: &str) -> Json {
    from_json(&service_payload(text).0)
}

pub(super) fn from_json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(b) => Json::Bool(*b),
        Value::Number(n) => Json::Number(n.as_f64().unwrap_or(f64::NAN)),
        Value::String(s) => Json::Text(s.clone()),
        Value::Array(items) => Json::List(items.iter().map(from_json).collect()),
        Value::Object(fields) => Json::Map(fields.iter().map(|(k, v)| (k.clone(), from_json(v))).collect()),
    }
}

fn to_json(value: &Json) -> Value {
    match value {
        Json::Null => Value::Null,
        Json::Bool(b) => Value::Bool(*b),
        // Whole numbers stay whole, as they were in the file that they came from.
        Json::Number(n) if n.fract() == 0.0 && n.abs() < 9e15 => Value::from(*n as i64),
        Json::Number(n) => Value::from(*n),
        Json::Text(s) => Value::String(s.clone()),
        Json::List(items) => Value::Array(items.iter().map(to_json).collect()),
        Json::Map(fields) => Value::Object(fields.iter().map(|(k, v)| (k.clone(), to_json(v))).collect()),
    }
}
