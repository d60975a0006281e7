//! The events of a cassette, merged from its streams, and the lines that they stand in.

use bytes::Bytes;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use tapdeck_term::Size;

use crate::{JsonValue, base64};

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct CassetteEvent {
    /// Its number: from 1, without gaps, over all streams. Order is by this.
    pub seq: u64,
    /// Milliseconds since the start, a multiple of the manifest's resolution; never less than
    /// before.
    pub t_ms: u64,
    /// What happened.
    pub kind: EventKind,
}

/// What happened, as the streams of a cassette tell it. It differs from [`crate::Kind`] in what
/// only a cassette keeps: offsets, frames, keys and authors of input.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum EventKind {
    /// The program was given bytes.
    Input(Input),
    /// The terminal took this size.
    Resize(Size),
    /// A signal was sent to the program's foreground.
    Signal {
        /// Its name, such as `SIGINT`.
        name: String,
    },
    /// The program wrote bytes.
    Output {
        /// Where they begin in the whole output.
        offset: u64,
        /// The bytes, exactly.
        bytes: Bytes,
    },
    /// A picture of the screen was taken: `frames[n]` of the cassette.
    Frame(usize),
    /// Something that is not bytes happened.
    Service(JsonValue),
    /// The run ended.
    Final,
}

/// Bytes that the program was given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Input {
    /// The bytes, exactly.
    pub bytes: Bytes,
    /// The key that they stand for, as tmux names it, when they are one.
    pub key: Option<String>,
    /// Whether a bracketed paste begins or ends in them.
    pub paste: Option<Paste>,
    /// Their author: `user`, `reply` (the terminal answered a question), `end_of_input`, or a
    /// party's name.
    pub source: Option<String>,
}

/// Where bytes stand in a bracketed paste.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Paste {
    /// It begins in them.
    Start,
    /// They are within it.
    Middle,
    /// It ends in them.
    End,
    /// It begins and ends in them.
    Whole,
}

/// A line of `input.jsonl`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct InputLine {
    pub(crate) seq: u64,
    pub(crate) t_ms: u64,
    #[serde(flatten)]
    pub(crate) body: InputBody,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum InputBody {
    Input {
        bytes: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        paste: Option<Paste>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<String>,
    },
    Resize {
        rows: u16,
        cols: u16,
    },
    Signal {
        name: String,
    },
}

impl InputBody {
    /// What happened, or what is wrong with it.
    pub(crate) fn into_kind(self) -> Result<EventKind, &'static str> {
        Ok(match self {
            Self::Input { bytes, key, paste, source } => {
                let bytes = base64::decode(&bytes).ok_or("bytes are not base64")?;
                EventKind::Input(Input { bytes: bytes.into(), key, paste, source })
            }
            Self::Resize { rows: 0, .. } | Self::Resize { cols: 0, .. } => return Err("a size of 0"),
            Self::Resize { rows, cols } => EventKind::Resize(Size { cols, rows }),
            Self::Signal { name } => EventKind::Signal { name },
        })
    }
}

/// A line of `output.jsonl`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OutputLine {
    pub(crate) seq: u64,
    pub(crate) t_ms: u64,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sha256: Option<String>,
    /// Bytes within the line, which version 1 forbids.
    #[serde(default, skip_serializing)]
    pub(crate) bytes: Option<IgnoredAny>,
    #[serde(default, skip_serializing)]
    pub(crate) data: Option<IgnoredAny>,
}

/// A line of `service-events.jsonl`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ServiceLine {
    pub(crate) seq: u64,
    pub(crate) t_ms: u64,
    #[serde(deserialize_with = "present")]
    pub(crate) payload: JsonValue,
}

/// A value that may be `null` but must be there.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<JsonValue, D::Error> {
    JsonValue::deserialize(from)
}
