//! The bodies and queries that the API does not share with the bus or the page.

use serde::{Deserialize, Serialize};

use crate::bus::{AgentState, Exit, Question, Turn};
use crate::fields;
use crate::page::{ListedRecording, ListedSession};

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Problem {
    /// The HTTP status code.
    pub status: u16,
    /// A word for programs, such as `not_found`.
    pub error: String,
    /// A sentence for people.
    pub message: String,
}

/// The live sessions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionList {
    /// The sessions.
    pub sessions: Vec<ListedSession>,
}

/// The recordings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecordingList {
    /// The recordings, the newest first.
    pub recordings: Vec<ListedRecording>,
}

/// What a recording holds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RecordingInfo {
    /// Its format.
    pub format: String,
    /// Its title.
    pub title: Option<String>,
    /// The command line that was recorded.
    pub command: Option<String>,
    /// When it begins, in nanoseconds since 1970.
    pub started_ns: Option<u64>,
    /// The width of the terminal at the beginning.
    pub cols: Option<u16>,
    /// The height of the terminal at the beginning.
    pub rows: Option<u16>,
    /// How long it is.
    pub duration_ms: u64,
    /// The bytes of output.
    pub output_bytes: u64,
    /// The pieces of recorded input.
    pub inputs: u64,
    /// The markers and snapshots.
    pub moments: u64,
    /// How the program ended, where that is recorded.
    pub exit: Option<Exit>,
    /// Whether it is encrypted.
    pub encrypted: bool,
    /// Why it cannot be read to its end.
    pub broke_off: Option<String>,
}

/// The turns of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnList {
    /// The turns, the oldest first.
    pub turns: Vec<Turn>,
}

/// The form of a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ScreenFormat {
    /// Rows, cells, cursor and modes.
    #[default]
    Json,
    /// The rows as plain text.
    Text,
    /// The rows with escape sequences for colors.
    Ansi,
}

/// The query of `getScreen`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ScreenQuery {
    /// The form of the reply.
    pub format: ScreenFormat,
    /// The rows above the screen, too.
    pub scrollback: bool,
    /// Only the rows that were written since this offset in the output.
    pub since: Option<u64>,
}

/// The query of `listTurns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct TurnsQuery {
    /// Only so many, the newest.
    pub limit: Option<u64>,
    /// With their texts.
    pub whole: bool,
}

/// The query of `showTurn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct TurnQuery {
    /// With the bytes that the program wrote, in base64.
    pub raw: bool,
}

/// The query of `sessionEvents`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct EventsQuery {
    /// The screen as an event `screen` whenever it has changed, too.
    pub screen: bool,
}

/// The query of `waitFor`: exactly one condition, and a timeout.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct WaitQuery {
    /// States of the program, separated by commas, such as `idle,blocked`.
    pub state: Option<String>,
    /// A regular expression that a row of the screen matches.
    pub text: Option<String>,
    /// Milliseconds without output.
    pub idle_ms: Option<u64>,
    /// The program's exit.
    pub exit: bool,
    /// How long to wait; 30 s by default, an hour at most.
    pub timeout_ms: Option<u64>,
}

/// A condition that holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Waited {
    /// What the program is doing.
    pub state: AgentState,
    /// How the program ended, if it has.
    #[serde(deserialize_with = "fields::nullable")]
    pub exit: Option<Exit>,
}

/// The body of `typeText`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TypeText {
    /// The text.
    pub text: String,
}

/// The body of `pressKeys`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PressKeys {
    /// Keys by their names, such as `Up`, `C-c` and `Enter`.
    pub keys: Vec<String>,
}

/// The body of `ask`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// The prompt.
    pub text: String,
    /// How long the answer may take; ten minutes by default, an hour at most.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

/// What became of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum AskOutcome {
    /// The program has answered, and is idle.
    Answered,
    /// The program asks back, and waits for an answer.
    Blocked,
    /// The prompt was not submitted.
    Undelivered,
    /// The prompt was submitted, and the program is not done in time.
    Timeout,
    /// The program ended before it had answered.
    Ended,
}

/// The answer to a prompt, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Asked {
    /// What became of the prompt.
    pub outcome: AskOutcome,
    /// The text of the answer.
    #[serde(deserialize_with = "fields::nullable")]
    pub answer: Option<String>,
    /// The turn that the prompt began; it still runs if the program asks back or is not done.
    #[serde(deserialize_with = "fields::nullable")]
    pub turn_id: Option<String>,
    /// Whether text is missing from the answer.
    pub truncated: bool,
    /// Whether the answer was interrupted.
    pub interrupted: bool,
    /// What the program is doing now.
    pub state: AgentState,
    /// The question that the program asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// How the outcome is known.
    pub evidence: String,
}

/// The body of `takeStick`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Take {
    /// For how long; 60 s by default, ten minutes at most. Every request that drives renews it.
    pub lease_ms: Option<u64>,
}

/// The stick, for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lease {
    /// The client that drives.
    #[serde(deserialize_with = "fields::nullable")]
    pub driver: Option<String>,
    /// The number of the change.
    pub fence: u64,
    /// How long it is held without a request that drives.
    pub lease_ms: u64,
}
