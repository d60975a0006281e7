//! Writing asciicast 2 and 3.

use std::io::Write as _;

use serde_json::{Map, Value, json};
use tapdeck_core::{Exit, WallTime};
use tapdeck_term::Size;

use super::CastVersion;
use crate::event::{Event, EventWriter, Field, Header, Kind, Loss, Losses, Parts};
use crate::utf8::Utf8;

/// Writes an asciicast.
#[derive(Debug)]
pub struct CastWriter {
    version: CastVersion,
    output: Utf8,
    input: Utf8,
    text: String,
    /// Time of the event before, in microseconds: relative times must add up without drift.
    last_us: u64,
    losses: Losses,
}

impl CastWriter {
    /// In the given version.
    pub fn new(version: CastVersion) -> Self {
        Self {
            version,
            output: Utf8::default(),
            input: Utf8::default(),
            text: String::new(),
            last_us: 0,
            losses: Losses::default(),
        }
    }

    fn line(&mut self, time_us: u64, code: &str, data: &Value, out: &mut Vec<u8>) {
        self.open_line(time_us, code, out);
        put_json(out, data);
        out.extend_from_slice(b"]\n");
    }

    fn open_line(&mut self, time_us: u64, code: &str, out: &mut Vec<u8>) {
        let time_us = time_us.max(self.last_us);
        let shown = match self.version {
            CastVersion::V2 => time_us,
            CastVersion::V3 => time_us - self.last_us,
        };
        self.last_us = time_us;
        put(out, format_args!("[{}.{:06},", shown / 1_000_000, shown % 1_000_000));
        put_json(out, code);
        out.push(b',');
    }

    /// Output or input as text; nothing is written while only part of a character is there.
    fn text(&mut self, time_us: u64, code: &str, bytes: &[u8], out: &mut Vec<u8>) {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        let decoder = if code == "o" { &mut self.output } else { &mut self.input };
        let lost = decoder.push(bytes, &mut text);
        if lost > 0 {
            self.losses.add(Loss::InvalidUtf8, lost);
        }
        if !text.is_empty() || bytes.is_empty() {
            self.open_line(time_us, code, out);
            put_json(out, &text);
            out.extend_from_slice(b"]\n");
        }
        self.text = text;
    }
}

impl EventWriter for CastWriter {
    fn begin(&mut self, header: &Header, out: &mut Parts) {
        use Field::{Command, Env, Extra, IdleLimit, Pipes, Tags, Term, Theme, Title};
        let carried = [Command, Title, Term, Env, IdleLimit, Theme, Pipes, Extra, Tags];
        // Only version 3 has tags.
        let carried = if self.version == CastVersion::V3 { &carried[..] } else { &carried[..8] };
        self.losses.drop_fields(header, carried);
        let mut head = Map::new();
        let Size { cols, rows } = header.size.unwrap_or_default();
        let mut extra = header.extra.0.clone();
        let mut term = match extra.remove("term") {
            Some(Value::Object(term)) => term,
            _ => Map::new(),
        };
        let mut env = header.env.clone();
        match self.version {
            CastVersion::V2 => {
                head.insert("width".into(), cols.into());
                head.insert("height".into(), rows.into());
                if let Some(theme) = &header.theme {
                    head.insert("theme".into(), theme.0.clone());
                }
                if let Some(kind) = &header.term {
                    env.entry("TERM".into()).or_insert_with(|| kind.clone());
                }
            }
            CastVersion::V3 => {
                term.insert("cols".into(), cols.into());
                term.insert("rows".into(), rows.into());
                if let Some(kind) = &header.term {
                    term.insert("type".into(), kind.as_str().into());
                }
                if let Some(theme) = &header.theme {
                    term.insert("theme".into(), theme.0.clone());
                }
                head.insert("term".into(), Value::Object(term));
                if !header.tags.is_empty() {
                    head.insert("tags".into(), header.tags.iter().map(tag_text).collect());
                }
            }
        }
        if let Some(started) = header.started.filter(|&at| at > WallTime::ZERO) {
            head.insert("timestamp".into(), started.as_secs().into());
        }
        if let Some(limit) = header.idle_limit {
            head.insert("idle_time_limit".into(), json!(limit.as_secs_f64()));
        }
        if let Some(command) = &header.command {
            head.insert("command".into(), command.as_str().into());
        }
        if let Some(title) = &header.title {
            head.insert("title".into(), title.as_str().into());
        }
        if !env.is_empty() {
            head.insert("env".into(), json!(env));
        }
        for (key, value) in extra {
            head.entry(key).or_insert(value);
        }
        head.remove("version");
        // The version comes first: some tools look no further to tell what they have.
        let version = if self.version == CastVersion::V2 { 2 } else { 3 };
        put(&mut out.main, format_args!("{{\"version\":{version},"));
        let mut rest = Vec::new();
        put_json(&mut rest, &head);
        out.main.extend_from_slice(rest.get(1..).unwrap_or_default());
        out.main.push(b'\n');
    }

    fn event(&mut self, event: &Event, out: &mut Parts) {
        let out = &mut out.main;
        let us = event.time.as_micros();
        match &event.kind {
            Kind::Output(bytes) => self.text(us, "o", bytes, out),
            Kind::Input(bytes) => self.text(us, "i", bytes, out),
            Kind::Resize(size) => self.line(us, "r", &size.to_string().into(), out),
            Kind::Marker(label) => self.line(us, "m", &label.as_str().into(), out),
            Kind::Snapshot { label, .. } => {
                // A marker keeps the moment and the name; the id and the anchor have no place.
                self.losses.drop_event(&event.kind);
                self.line(us, "m", &label.as_str().into(), out);
            }
            Kind::Exit(_) if self.version == CastVersion::V2 => {
                self.losses.drop_event(&event.kind);
            }
            Kind::Exit(Exit::Code(code)) => self.line(us, "x", &code.to_string().into(), out),
            Kind::Exit(Exit::Signal(number)) => {
                self.losses.add(Loss::Signal, 0);
                self.line(us, "x", &(128 + number).to_string().into(), out);
            }
            Kind::Other { code, data } => self.line(us, code, &data.0, out),
            Kind::Mark { .. } | Kind::Lost(_) => self.losses.drop_event(&event.kind),
        }
    }

    fn finish(&mut self, out: &mut Parts) {
        for code in ["o", "i"] {
            let mut text = String::new();
            let decoder = if code == "o" { &mut self.output } else { &mut self.input };
            let lost = decoder.finish(&mut text);
            if lost > 0 {
                self.losses.add(Loss::InvalidUtf8, lost);
                self.line(self.last_us, code, &text.into(), &mut out.main);
            }
        }
    }

    fn losses(&self) -> &Losses {
        &self.losses
    }
}

/// A tag as asciicast has it: one text.
fn tag_text((name, value): (&String, &String)) -> Value {
    if value.is_empty() { name.as_str().into() } else { format!("{name}={value}").into() }
}

fn put(out: &mut Vec<u8>, args: std::fmt::Arguments<'_>) {
    // Writing to memory cannot fail.
    let _ = out.write_fmt(args);
}

fn put_json<T: serde::Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    // Neither can this: maps have string keys and numbers are finite.
    let _ = serde_json::to_writer(out, value);
}
