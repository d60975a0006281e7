//! The bus: text frames between a live session and the programs that watch and drive it.
//!
//! A frame is a [`Line`]: a verb, perhaps `#` and an id, a space and a payload. Clients send a
//! [`Request`]; the session answers with a [`Reply`] and pushes a [`Push`] to subscribers. A client
//! knows the reply's type by the request's: see [`Ask`].
//!
//! To add a verb, add its payload type in `request.rs`, its reply in `reply.rs` if that is new, and
//! a line in the table of [`verbs!`](self).

mod answer;
mod frame;
mod push;
mod reply;
mod request;
mod theme;
mod which_turn;

use std::fmt;

pub use answer::{Answer, AnswerOutcome, Answered, Choice, MAX_ANSWER, Meaning, Question};
pub use frame::{
    Change, Colour, Contents, Cursor, CursorShape, Frame, More, Paint, PaintCursor, PaintRow, PaintStyle,
    PaintedRows, Piece, Run, Screen,
};
pub use push::{
    Contradiction, Event, Exit, Judged, JudgedRow, Part, Push, StateChange, Turn, TurnDetail, Why,
    read_output, write_output,
};
pub use reply::{
    About, Brokered, Captured, Client, Denied, Done, Explained, Found, Info, Instructed, Nothing, Outcome,
    Pasted, Paused, Recorded, RecordingState, Released, Reply, Resized, SessionState, Status, Subscribed,
    Taken, Typed, Welcome,
};
pub use request::{
    Ack, Ask, Broker, Button, Cmd, Explain, Find, Frames, Hello, InfoWanted, Instruct, Key, Kill,
    Line as TypedLine, MAX_LABEL, MAX_NEEDLE, MAX_PASTE, Mark, Mouse, MouseKind, Paste, Pause, Reads, Rec,
    Release, Rename, Request, RequestError, Resize, Rows, Snap, SnapshotPlace, Sub, Take, Turns, Typing,
    VERBS, Verb,
};
pub use theme::{Hex, HexError, PaintTheme};
pub use which_turn::WhichTurn;
#[cfg(feature = "schema")]
pub use {reply::reply_messages, request::exchanges};

/// The longest frame in either direction, unless a client agreed on more.
pub const MAX_FRAME: usize = 256 * 1024;
/// The longest frame that a client can agree on.
pub const MAX_AGREED: usize = 16 << 20;
/// The refusal of a size that is none.
pub const NO_SIZE: &str = "a size has cols and rows, from 1 to 10000";
/// The refusal of an id that cannot be one.
pub const NO_ID: &str = "behind the # of a verb stands an id of 1 to 32 letters, digits, - and _";

/// A client's role at a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A person.
    Human,
    /// A program that drives.
    Bot,
    /// A client that only watches.
    #[default]
    Observer,
}

impl Role {
    /// Returns the role with this name, in any spelling that clients use.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "human" | "interactive" => Some(Role::Human),
            "bot" | "ai" | "agent" | "controller" => Some(Role::Bot),
            "observer" | "viewer" => Some(Role::Observer),
            _ => None,
        }
    }

    /// Returns the role's name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Role::Human => "human",
            Role::Bot => "bot",
            Role::Observer => "observer",
        }
    }
}

/// What the session's program is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum AgentState {
    /// It works.
    Working,
    /// It waits for an answer other than a prompt.
    Blocked,
    /// It waits at its prompt.
    Idle,
    /// It has ended.
    Done,
    /// No rule tells, or the session's version knows states that this one does not.
    #[default]
    #[serde(other)]
    Unknown,
}

impl AgentState {
    /// Returns the state's name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            AgentState::Working => "working",
            AgentState::Blocked => "blocked",
            AgentState::Idle => "idle",
            AgentState::Done => "done",
            AgentState::Unknown => "unknown",
        }
    }
}

/// A frame of the bus, without its line end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// The verb, as it was written.
    pub verb: &'a str,
    /// The id behind the verb's `#`. [`Line::has_valid_id`] checks it.
    pub id: Option<&'a str>,
    /// The rest of the line.
    pub payload: &'a str,
}

impl<'a> Line<'a> {
    /// Splits a line. A carriage return at its end is not part of the payload.
    pub fn split(line: &'a str) -> Self {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let (verb, payload) = line.split_once(' ').unwrap_or((line, ""));
        let (verb, id) = verb.split_once('#').map_or((verb, None), |(verb, id)| (verb, Some(id)));
        Self { verb, id, payload }
    }

    /// Returns whether the line has no id, or one of 1 to 32 letters, digits, `-` and `_`.
    pub fn has_valid_id(&self) -> bool {
        let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        self.id.is_none_or(|id| (1..=32).contains(&id.len()) && id.bytes().all(fits))
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verb)?;
        if let Some(id) = self.id {
            write!(f, "#{id}")?;
        }
        if self.payload.is_empty() { Ok(()) } else { write!(f, " {}", self.payload) }
    }
}

/// Serialises a message. These types have no maps with other keys than texts, so it cannot fail.
pub(crate) fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
