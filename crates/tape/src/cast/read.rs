//! Reading asciicast, all versions. Versions 2 and 3 are streamed line by line.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::io::Read;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value};
use tapdeck_core::{Exit, Time, WallTime};
use tapdeck_term::Size;

use super::{halves, v1};
use crate::event::{Event, EventReader, Header, Item, Kind, Note, known_size, seconds};
use crate::lines::Lines;
use crate::{Error, Extra, FilePosition, JsonValue, Result};

/// The newest version that can be read.
const NEWEST: u64 = 3;
/// A version 1 file is one JSON object, whose text is kept; larger ones were never made.
const MAX_V1: usize = 32 << 20;
/// JSON of any shape takes fifty times its length in memory, so it is kept short: a header, and the
/// data of an event that is no text.
const MAX_VALUE: usize = 1 << 20;

/// Reads an asciicast of any version.
#[derive(Debug)]
pub struct CastReader<R> {
    lines: Lines<R>,
    header: Header,
    relative: bool,
    time: Time,
    ready: VecDeque<Event>,
    /// The events of a version 1 file.
    whole: Option<v1::Events>,
    noted_order: bool,
    noted_halves: bool,
    done: bool,
}

/// What tells version 1, whose first line may hold all of the output, from the others.
#[derive(Deserialize)]
struct Version {
    version: u64,
}

#[derive(Deserialize)]
struct HeadLine {
    version: u64,
    width: Option<u64>,
    height: Option<u64>,
    term: Option<Term>,
    timestamp: Option<f64>,
    idle_time_limit: Option<f64>,
    command: Option<String>,
    title: Option<String>,
    env: Option<BTreeMap<String, Option<String>>>,
    theme: Option<Value>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

#[derive(Deserialize)]
struct Term {
    cols: Option<u64>,
    rows: Option<u64>,
    #[serde(rename = "type")]
    kind: Option<String>,
    theme: Option<Value>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

impl HeadLine {
    /// What the version asks for, if it is not there.
    fn lacks(&self) -> Option<&'static str> {
        let there = match (self.version, &self.term) {
            (3, Some(term)) => term.cols.zip(term.rows),
            (3, None) => None,
            _ => self.width.zip(self.height),
        };
        let needed = if self.version == 3 { "term.cols and term.rows" } else { "width and height" };
        there.is_none().then_some(needed)
    }
}

/// The usual event; strings without escapes are not copied.
#[derive(Deserialize)]
struct Line<'a>(f64, #[serde(borrow)] Cow<'a, str>, #[serde(borrow)] Cow<'a, str>);

impl<R: Read> CastReader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// When the reader fails, or the file is not an asciicast of a known version.
    pub fn new(inner: R) -> Result<Self> {
        let mut lines = Lines::new(inner);
        let mut head = Vec::new();
        let mut at = 1;
        while let Some(line) = lines.next_line()? {
            let text = line.text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line.text);
            at = line.number;
            if !text.trim_ascii().is_empty() && !text.starts_with(b"#") {
                head = text.to_vec();
                break;
            }
        }
        let mut reader = Self {
            lines,
            header: Header::default(),
            relative: false,
            time: Time::ZERO,
            ready: VecDeque::new(),
            whole: None,
            noted_order: false,
            noted_halves: false,
            done: false,
        };
        match serde_json::from_slice::<Version>(&head).map(|head| head.version) {
            Ok(found) if found > NEWEST => {
                let (at, format) = (FilePosition::Line(at), "asciicast");
                return Err(Error::Version { at, format, found, known: NEWEST });
            }
            Ok(2..) => {
                let malformed = |what: String| Error::malformed(FilePosition::Line(at), what);
                if head.len() > MAX_VALUE {
                    return Err(malformed(format!("the header is longer than {} MiB", MAX_VALUE >> 20)));
                }
                let head: HeadLine =
                    serde_json::from_slice(&head).map_err(|e| malformed(format!("not an asciicast: {e}")))?;
                if let Some(needed) = head.lacks() {
                    let what = format!("not an asciicast: version {} needs {needed}", head.version);
                    return Err(Error::malformed(FilePosition::Line(at), what));
                }
                reader.relative = head.version == 3;
                reader.header = head.into();
            }
            // Version 1 may be on one line or on many.
            Ok(_) | Err(_) => {
                if !head.trim_ascii_start().starts_with(b"{") {
                    return Err(Error::malformed(FilePosition::Line(at), "not an asciicast: no header"));
                }
                head.push(b'\n');
                head.extend(reader.lines.rest(MAX_V1)?);
                let (header, events) = v1::parse(head)?;
                (reader.header, reader.whole) = (header, Some(events));
            }
        }
        Ok(reader)
    }

    fn event(&mut self, time: f64, code: &str, data: Value, at: FilePosition) -> Result<Item> {
        let Some(length) = seconds(time.abs()) else {
            return Err(Error::malformed(at, format!("impossible time {time}")));
        };
        let forward = if self.relative {
            (time >= 0.0).then(|| self.time + length)
        } else {
            (time >= 0.0 && Time::from(length) >= self.time).then(|| length.into())
        };
        if let Some(time) = forward {
            self.time = time;
        }
        let kind = match (code, data) {
            ("o", Value::String(text)) => Kind::Output(Bytes::from(text)),
            ("i", Value::String(text)) => Kind::Input(Bytes::from(text)),
            ("m", Value::String(text)) => Kind::Marker(text),
            ("r", Value::String(text)) => match parse_size(&text) {
                Some(size) => Kind::Resize(size),
                None => return Ok(Note::item(at, format!("ignored an impossible size {text:?}"))),
            },
            ("x", Value::String(text)) if text.trim().parse::<i32>().is_ok() => {
                Kind::Exit(Exit::Code(text.trim().parse().unwrap_or_default()))
            }
            ("o" | "i" | "m" | "r", _) => {
                return Err(Error::malformed(at, format!("the data of event {code:?} is not text")));
            }
            (code, data) => Kind::Other { code: code.to_owned(), data: JsonValue(data) },
        };
        let event = Event::new(self.time, kind);
        if forward.is_none() && !self.noted_order {
            self.noted_order = true;
            self.ready.push_back(event);
            return Ok(Note::item(at, "time goes back here; such times were moved forward"));
        }
        Ok(Item::Event(event))
    }
}

impl<R: Read> EventReader for CastReader<R> {
    fn header(&self) -> &Header {
        &self.header
    }

    fn next_item(&mut self) -> Result<Option<Item>> {
        if let Some(event) = self.ready.pop_front() {
            return Ok(Some(Item::Event(event)));
        }
        if let Some(events) = &mut self.whole {
            let event = events.next();
            if !matches!(event, Ok(Some(_))) {
                (self.whole, self.done) = (None, true);
            }
            return event.map(|event| event.map(Item::Event));
        }
        while !self.done {
            let Some(line) = self.lines.next_line()? else {
                self.done = true;
                break;
            };
            let at = FilePosition::Line(line.number);
            let text = line.text.trim_ascii();
            if text.is_empty() || text.starts_with(b"#") {
                continue;
            }
            let mut parsed = parse(text);
            let mut mended = false;
            if parsed.is_err()
                && let Some(text) = halves::replace(text)
            {
                parsed = parse(&text);
                mended = parsed.is_ok();
            }
            let (time, code, data) = match parsed {
                Ok(parsed) => parsed,
                Err(_) if !line.ended => {
                    self.done = true;
                    return Ok(Some(Note::damage(at, "the file ends within this line")));
                }
                Err(e) => {
                    self.done = true;
                    return Err(Error::malformed(at, format!("not an event: {e}")));
                }
            };
            let item = self.event(time, &code, data, at);
            self.done |= item.is_err();
            if mended && !std::mem::replace(&mut self.noted_halves, true) {
                let item = item?;
                if let Item::Event(event) = item {
                    self.ready.push_back(event);
                }
                return Ok(Some(Note::item(at, "halves of characters (surrogates), which are replaced")));
            }
            return item.map(Some);
        }
        Ok(None)
    }

    fn position(&self) -> u64 {
        self.lines.position()
    }
}

/// Time, code and data of an event.
fn parse(text: &[u8]) -> serde_json::Result<(f64, String, Value)> {
    match serde_json::from_slice::<Line<'_>>(text) {
        Ok(Line(time, code, data)) => Ok((time, code.into_owned(), Value::String(data.into_owned()))),
        // An unknown kind of event may carry anything.
        Err(_) if text.len() > MAX_VALUE => {
            let what = format!("longer than {} MiB, and its data is not text", MAX_VALUE >> 20);
            Err(serde::de::Error::custom(what))
        }
        Err(e) => serde_json::from_slice(text).map_err(|_| e),
    }
}

impl From<HeadLine> for Header {
    fn from(head: HeadLine) -> Self {
        let mut extra = head.extra;
        let (mut cols, mut rows, mut kind, mut theme) = (head.width, head.height, None, head.theme);
        if let Some(term) = head.term {
            (cols, rows, kind) = (term.cols, term.rows, term.kind);
            theme = term.theme.or(theme);
            if !term.extra.is_empty() {
                extra.insert("term".to_owned(), Value::Object(term.extra));
            }
        }
        let tags = extra.get("tags").and_then(tags);
        if tags.is_some() {
            extra.remove("tags");
        }
        // What only describes the events that follow would be wrong in a copy.
        extra.remove("duration");
        let env: BTreeMap<_, _> = head.env.into_iter().flatten().filter_map(|(k, v)| Some((k, v?))).collect();
        Self {
            size: cols.zip(rows).and_then(|(cols, rows)| known_size(cols, rows)),
            started: head.timestamp.filter(|t| (0.0..1e11).contains(t)).and_then(|t| {
                let ns = t * 1e9;
                (ns < u64::MAX as f64).then_some(WallTime::from_nanos(ns as u64))
            }),
            command: head.command,
            argv: Vec::new(),
            folder: None,
            title: head.title,
            term: kind.or_else(|| env.get("TERM").cloned()),
            env,
            tags: tags.unwrap_or_default(),
            idle_limit: head.idle_time_limit.and_then(seconds),
            theme: theme.map(JsonValue),
            pipes: false,
            first_byte: 0,
            extra: Extra(extra),
        }
    }
}

/// Tags by name. `None` for what would not be written again as it is: such stays with the fields
/// that are kept.
fn tags(value: &Value) -> Option<BTreeMap<String, String>> {
    let texts: Vec<&str> = value.as_array()?.iter().map(Value::as_str).collect::<Option<_>>()?;
    let pairs = texts.iter().map(|text| text.split_once('=').unwrap_or((text, "")));
    let tags: BTreeMap<String, String> = pairs
        .filter(|(name, _)| !name.is_empty())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    (tags.len() == texts.len()).then_some(tags)
}

/// `80x24`, brought into bounds; `None` when it is no size at all.
fn parse_size(text: &str) -> Option<Size> {
    let (cols, rows) = text.split_once('x')?;
    known_size(cols.trim().parse().ok()?, rows.trim().parse().ok()?)
}
