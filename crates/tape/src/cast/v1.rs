//! asciicast version 1: one JSON object with all of the output in it. Its text is kept, within
//! bounds, and its events are made one by one: as values they would take fifty times the room.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use tapdeck_core::Time;

use crate::event::{Event, Header, Kind, known_size, seconds};
use crate::{Error, FilePosition, Result};

#[derive(Deserialize)]
struct File<'a> {
    version: u64,
    width: u64,
    height: u64,
    command: Option<String>,
    title: Option<String>,
    #[serde(default)]
    env: Option<BTreeMap<String, Option<String>>>,
    #[serde(borrow)]
    stdout: &'a RawValue,
}

/// A delay and what was written after it; strings without escapes are not copied.
#[derive(Deserialize)]
struct Output<'a>(f64, #[serde(borrow)] Cow<'a, str>);

/// The events of a file.
#[derive(Debug)]
pub(crate) struct Events {
    text: Vec<u8>,
    /// Behind the bracket or comma in front of the next event.
    at: usize,
    /// Where the list ends.
    end: usize,
    time: Time,
    count: u64,
}

/// Reads all but the events.
pub(crate) fn parse(text: Vec<u8>) -> Result<(Header, Events)> {
    let file: File<'_> = serde_json::from_slice(&text).map_err(|e| {
        Error::malformed(FilePosition::Line(e.line() as u64), format!("not an asciicast: {e}"))
    })?;
    if file.version != 1 {
        let what = format!("asciicast version {} does not begin with a header line", file.version);
        return Err(Error::malformed(FilePosition::Line(1), what));
    }
    let header = Header {
        size: known_size(file.width, file.height),
        command: file.command,
        title: file.title,
        term: file.env.as_ref().and_then(|env| env.get("TERM").cloned().flatten()),
        env: file.env.into_iter().flatten().filter_map(|(k, v)| Some((k, v?))).collect(),
        ..Header::default()
    };
    let list = file.stdout.get();
    if !list.starts_with('[') {
        return Err(Error::malformed(FilePosition::Line(1), "not an asciicast: stdout is not a list"));
    }
    let start = list.as_ptr().addr() - text.as_ptr().addr();
    let (at, end) = (start + 1, start + list.len() - 1);
    Ok((header, Events { text, at, end, time: Time::ZERO, count: 0 }))
}

impl Events {
    pub(crate) fn next(&mut self) -> Result<Option<Event>> {
        let rest = self.text.get(self.at..self.end).unwrap_or_default();
        if rest.trim_ascii().is_empty() {
            return Ok(None);
        }
        self.count += 1;
        let number = self.count;
        let malformed =
            |what: String| Error::malformed(FilePosition::Line(1), format!("event {number} {what}"));
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter();
        // The list is well-formed, so a value stands here.
        let Output(delay, text) = match values.next() {
            Some(output) => output.map_err(|e| malformed(format!("is not a delay and a text: {e}")))?,
            None => return Ok(None),
        };
        let delay = seconds(delay).ok_or_else(|| malformed(format!("has an impossible delay of {delay}")))?;
        let length = values.byte_offset();
        let text = Bytes::from(text.into_owned());
        // A comma and spaces may follow.
        let behind = &rest[length..];
        self.at += length + memchr::memchr(b',', behind).map_or(behind.len(), |comma| comma + 1);
        self.time += delay;
        Ok(Some(Event::new(self.time, Kind::Output(text))))
    }
}
