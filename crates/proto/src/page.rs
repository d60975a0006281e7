//! The page: messages about sessions and recordings, and commands to a recording that is played.
//!
//! Messages are lines of the bus without an id. A live session's socket speaks [`crate::bus`].

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::PayloadError;
use crate::bus::{AgentState, Ask, Exit, Find, PaintTheme, Rows};

/// What the page says to a recording that is played.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Command {
    /// `ACK`: a frame has been drawn.
    Ack,
    /// `PLAY`, from the start when it is at its end.
    Play,
    /// `PAUSE`
    Pause,
    /// `SPEED {speed}`
    Speed(f64),
    /// `IDLE {ms}`: the longest pause; without a number pauses are as recorded.
    Idle(Option<u64>),
    /// `SEEK {ms}` or `{moment}`, by its place in the list.
    Seek {
        /// The time.
        ms: u64,
        /// The moment.
        moment: Option<u64>,
    },
    /// `HOP {by}`: to the moment before or behind, as the sign says.
    Hop(Option<i64>),
    /// `STEP {by}`: to the output before or behind.
    Step(i64),
    /// `THEME {fg, bg, cursor, ansi}`: the colors, or why they cannot be read.
    Theme(Result<PaintTheme, PayloadError>),
    /// `ROWS`, or why it cannot be read.
    Rows(Result<Rows, PayloadError>),
    /// `FIND`, or why it cannot be read.
    Find(Result<Find, PayloadError>),
}

impl Command {
    /// Reads a command; `None` for one that this version does not know. Fields of the wrong kind
    /// count as left out.
    pub fn parse(line: &str) -> Option<Self> {
        let (verb, payload) = line.split_once(' ').unwrap_or((line, ""));
        let value: Value = serde_json::from_str(payload).unwrap_or_default();
        let number = |key: &str| value.get(key).and_then(Value::as_u64);
        let by = || value.get("by").and_then(Value::as_i64);
        Some(match verb {
            "ACK" => Command::Ack,
            "PLAY" => Command::Play,
            "PAUSE" => Command::Pause,
            "SPEED" => Command::Speed(value.get("speed").and_then(Value::as_f64).unwrap_or(1.0)),
            "IDLE" => Command::Idle(number("ms")),
            "SEEK" => Command::Seek { ms: number("ms").unwrap_or(0), moment: number("moment") },
            "HOP" => Command::Hop(by()),
            "STEP" => Command::Step(by().unwrap_or(1)),
            "THEME" => {
                Command::Theme(serde_json::from_str(payload).map_err(|e| PayloadError::Field(e.to_string())))
            }
            "ROWS" => Command::Rows(Rows::from_payload(payload)),
            "FIND" => Command::Find(Find::from_payload(payload)),
            _ => return None,
        })
    }
}

/// `WELCOME`: a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlayWelcome {
    /// Its title.
    pub title: Option<String>,
    /// What was recorded.
    pub command: Option<Vec<String>>,
}

/// `STATE`: where a recording is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlayState {
    /// The current position.
    pub at_ms: u64,
    /// The duration, as far as it is known.
    pub duration_ms: u64,
    /// Whether it is playing.
    pub playing: bool,
    /// The playback speed.
    pub speed: f64,
    /// The longest pause.
    pub idle_ms: Option<u64>,
    /// Whether a seek is in progress.
    pub seeking: bool,
    /// Number of damaged ranges skipped.
    pub damages: u64,
}

/// A moment of `MOMENTS`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlayedMoment {
    /// When.
    pub ms: u64,
    /// What it is called.
    pub label: String,
    /// The snapshot's id; none for a marker.
    pub snapshot: Option<u64>,
}

/// `ERROR`: why it cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Failed {
    /// The reason.
    pub error: String,
}

/// `LIST`: what there is to see.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct List {
    /// The live sessions.
    pub sessions: Vec<ListedSession>,
    /// The recordings, the newest first.
    pub recordings: Vec<ListedRecording>,
}

/// A recording in the page's list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedRecording {
    /// Its path from the folder on.
    pub name: String,
    /// Its length in bytes.
    pub size: u64,
    /// When it was last written, in milliseconds since 1970.
    pub modified_ms: u64,
}

/// A session in the page's list: what is worth showing, without what changes all the time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedSession {
    /// Its name for programs.
    pub id: String,
    /// Its name for people.
    pub name: Option<String>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The folder that the program began in.
    pub cwd: String,
    /// It has no terminal of its own.
    pub detached: bool,
    /// When it began, in nanoseconds since 1970.
    pub started_ns: u64,
    /// How many clients it has.
    pub clients: usize,
    /// Whether its program runs, or `silent` when the session does not answer.
    pub state: String,
    /// Why it does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What a session that answers says of itself.
    #[serde(flatten)]
    pub shown: Option<ShownStatus>,
}

/// What a session that answers says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[expect(missing_docs, reason = "see crate::bus::Status")]
pub struct ShownStatus {
    pub agent_state: AgentState,
    pub agent: Option<String>,
    pub driver: Option<String>,
    pub cols: u16,
    pub rows_n: u16,
    pub title: String,
    pub exit: Option<Exit>,
    pub recording: Option<String>,
}
