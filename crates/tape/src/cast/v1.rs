//! asciicast version 1: one JSON object with all of the output in it, so it is read whole, within
//! bounds.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use serde::Deserialize;
use tapdeck_core::Time;

use crate::event::{Event, Header, Kind, known_size, seconds};
use crate::{Error, Place, Result};

#[derive(Deserialize)]
struct File {
    version: u64,
    width: u64,
    height: u64,
    command: Option<String>,
    title: Option<String>,
    #[serde(default)]
    env: Option<BTreeMap<String, Option<String>>>,
    stdout: Vec<(f64, String)>,
}

pub(crate) fn parse(text: &[u8]) -> Result<(Header, VecDeque<Event>)> {
    let file: File = serde_json::from_slice(text)
        .map_err(|e| Error::malformed(Place::Line(e.line() as u64), format!("not an asciicast: {e}")))?;
    if file.version != 1 {
        let what = format!("asciicast version {} does not begin with a header line", file.version);
        return Err(Error::malformed(Place::Line(1), what));
    }
    let header = Header {
        size: known_size(file.width, file.height),
        command: file.command,
        title: file.title,
        term: file.env.as_ref().and_then(|env| env.get("TERM").cloned().flatten()),
        env: file.env.into_iter().flatten().filter_map(|(k, v)| Some((k, v?))).collect(),
        ..Header::default()
    };
    let mut time = Time::ZERO;
    let mut events = VecDeque::with_capacity(file.stdout.len());
    for (i, (delay, text)) in file.stdout.into_iter().enumerate() {
        let delay = seconds(delay).ok_or_else(|| {
            Error::malformed(Place::Line(1), format!("impossible delay {delay} at event {}", i + 1))
        })?;
        time += delay;
        events.push_back(Event::new(time, Kind::Output(Bytes::from(text))));
    }
    Ok((header, events))
}
