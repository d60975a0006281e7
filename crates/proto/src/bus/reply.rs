//! What a session answers.

use serde::{Deserialize, Serialize};

use super::answer::{Answered, Question};
use super::{AgentState, Contents, Exit, Judged, PaintedRows, Role, Screen, Turn, json};
use crate::fields;

macro_rules! replies {
    ($($verb:literal $variant:ident($payload:ty),)+) => {
        /// The reply to a request.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum Reply {
            $(#[doc = concat!("`", $verb, "`")] $variant($payload),)+
        }

        /// Returns the types of all replies.
        #[cfg(feature = "schema")]
        pub fn reply_messages() -> Vec<crate::schema::Message> {
            vec![$(crate::schema::Message::new::<$payload>($verb),)+]
        }

        impl Reply {
            /// Reads a reply. `Ok(None)` when the verb is not a reply's.
            ///
            /// # Errors
            /// When the payload cannot be read.
            pub fn parse(verb: &str, payload: &str) -> Result<Option<Self>, serde_json::Error> {
                match verb {
                    $($verb => serde_json::from_str(payload).map(Self::$variant).map(Some),)+
                    _ => Ok(None),
                }
            }

            /// Returns the verb.
            pub fn verb(&self) -> &'static str {
                match self { $(Self::$variant(_) => $verb,)+ }
            }

            /// Writes the payload.
            pub fn payload(&self) -> String {
                match self { $(Self::$variant(payload) => json(payload),)+ }
            }
        }

        $(impl From<$payload> for Reply {
            fn from(payload: $payload) -> Self {
                Self::$variant(payload)
            }
        })+
    };
}

replies! {
    "OK" Ok(Done),
    "DENIED" Denied(Denied),
    "FRAME" Frame(Screen),
    "INFO" Info(Info),
    "ROWS" Rows(PaintedRows<'static>),
    "FIND" Find(Found),
    "RESP" Resp(Captured),
    "PASTE" Paste(Pasted),
    "ANSWER" Answer(Answered),
    "TURNS" Turns(Vec<Turn>),
    "TURN" Turn(Turn),
    "EXPLAIN" Explain(Explained),
}

/// The payload of `OK`, which depends on the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
#[expect(missing_docs, reason = "the payloads say it")]
pub enum Done {
    Welcome(Welcome),
    Taken(Taken),
    Driver(Subscribed),
    Typed(Typed),
    Brokered(Brokered),
    Resized(Resized),
    Recorded(Recorded),
    Instructed(Instructed),
    Paused(Paused),
    Nothing(Nothing),
}

macro_rules! done {
    ($($payload:ident as $variant:ident,)+) => {
        $(impl From<$payload> for Reply {
            fn from(payload: $payload) -> Self {
                Reply::Ok(Done::$variant(payload))
            }
        })+
    };
}

done! {
    Welcome as Welcome,
    Taken as Taken,
    Subscribed as Driver,
    Typed as Typed,
    Brokered as Brokered,
    Resized as Resized,
    Recorded as Recorded,
    Instructed as Instructed,
    Paused as Paused,
    Nothing as Nothing,
}

/// To `HELLO`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Welcome {
    /// The name that the client got.
    #[serde(default)]
    pub name: String,
    /// The client that drives.
    #[serde(default)]
    pub driver: Option<String>,
    /// The role that the client got.
    #[serde(default)]
    pub role: Role,
    /// Replies carry the id of their request. This tells a welcome from other payloads of `OK`.
    pub ids: bool,
}

/// To `SUB`: the state from which events go on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Subscribed {
    /// The client that drives.
    #[serde(deserialize_with = "fields::nullable")]
    pub driver: Option<String>,
}

/// To `RELEASE`.
pub type Released = Subscribed;

/// To `TAKE`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Taken {
    /// The client that drives.
    #[serde(deserialize_with = "fields::nullable")]
    pub driver: Option<String>,
    /// The number of the change, for `KEY`.
    pub fence: u64,
}

/// To `KEY`; `seq` with `confirm` only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Typed {
    /// The offset in the program's output.
    pub seq: u64,
}

/// To `BROKER`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Brokered {
    /// Whether the session has registered with a broker.
    pub broker: bool,
}

/// To `RESIZE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[expect(missing_docs, reason = "the names say it")]
pub struct Resized {
    pub cols: u16,
    pub rows: u16,
}

/// To `REC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recorded {
    /// Where the recording begins, as a byte of the output; to a `stop`, where it ends.
    pub from: u64,
}

/// To `INSTRUCT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Instructed {
    /// The id of the instruction.
    pub id: u64,
}

/// To `PAUSE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Paused {
    /// Whether the recordings of the session are paused now.
    pub paused: bool,
}

/// To requests with nothing to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Nothing {}

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Denied {
    /// Why.
    #[serde(default)]
    pub error: String,
    /// The client that drives, where that is the reason: `Some(None)` when no client does.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "fields::present")]
    pub driver: Option<Option<String>>,
}

impl Denied {
    /// Returns a refusal for a reason that has nothing to do with the stick.
    pub fn because(error: impl ToString) -> Self {
        Self { error: error.to_string(), driver: None }
    }
}

/// The state of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RecordingState {
    /// It is being written.
    Running,
    /// It is paused: what happens now is not in it.
    Paused,
    /// It is complete.
    Finished,
    /// Something is missing from it, whether it is still written or not.
    Failed,
    /// A state that this version does not know.
    #[default]
    #[serde(other)]
    Unknown,
}

impl RecordingState {
    /// Returns the state's name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            RecordingState::Running => "running",
            RecordingState::Paused => "paused",
            RecordingState::Finished => "finished",
            RecordingState::Failed => "failed",
            RecordingState::Unknown => "unknown",
        }
    }
}

/// The state of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SessionState {
    /// Its program runs.
    Running,
    /// Its program is suspended.
    Suspended,
    /// Its program has ended.
    Exited,
    /// It is not known how its program ended.
    Lost,
    /// A state that this version does not know.
    #[default]
    #[serde(other)]
    Unknown,
}

impl SessionState {
    /// Returns the state's name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            SessionState::Running => "running",
            SessionState::Suspended => "suspended",
            SessionState::Exited => "exited",
            SessionState::Lost => "lost",
            SessionState::Unknown => "unknown",
        }
    }
}

/// `INFO`: a session, with its screen or without.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Info {
    /// What it is.
    #[serde(flatten)]
    pub about: About,
    /// What it does.
    #[serde(flatten)]
    pub status: Status,
    /// What is on its screen, where that was asked for.
    #[serde(flatten)]
    pub contents: Option<Contents>,
}

/// What a session is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct About {
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
}

/// What a session does.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Status {
    /// Whether its program runs.
    pub state: SessionState,
    /// Whether the program has ended.
    pub done: bool,
    /// How it ended.
    pub exit: Option<Exit>,
    /// The program's process.
    pub pid: Option<i32>,
    /// The client that drives.
    pub driver: Option<String>,
    /// A program inside the host process waits for a line of input.
    pub waiting: bool,
    /// The recording that failed, or else the one that is written, or else the newest.
    pub recording: Option<String>,
    /// How that recording is doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording_state: Option<RecordingState>,
    /// What went wrong with that recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording_error: Option<String>,
    /// The screen's width.
    pub cols: u16,
    /// The screen's height.
    pub rows_n: u16,
    /// The window's title.
    pub title: String,
    /// The offset in the program's output.
    pub seq: u64,
    /// How long the program has written nothing.
    pub idle_ms: u64,
    /// How long the session has run.
    pub age_ms: u64,
    /// The clients.
    pub clients: Vec<Client>,
    /// The oldest byte of the output that is kept.
    pub ring_from: u64,
    /// What the program is doing.
    pub agent_state: AgentState,
    /// The rules that its state is found by.
    pub agent: Option<String>,
    /// The turns so far.
    pub turns: u32,
}

/// A client of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Client {
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// Its process, where that is known.
    pub pid: Option<i32>,
    /// Whether it shows the session on a terminal.
    pub attached: bool,
}

/// `FIND`: where a text stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Found {
    /// The text.
    pub text: String,
    /// Each hit as `[row, col, width]`, the newest last.
    pub hits: Vec<(u64, u16, u16)>,
    /// There are older ones.
    pub more: bool,
    /// The number of the screen's first row.
    pub top: u64,
    /// The number of the oldest row that is kept.
    pub first: u64,
}

/// `RESP`: what a command wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Captured {
    /// Its output, without control sequences.
    pub text: String,
    /// The time limit was over first.
    pub timeout: bool,
    /// Some of it was left out.
    pub truncated: bool,
    /// The command was interrupted.
    pub cancelled: bool,
}

/// What became of a paste.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Enter was taken.
    Submitted,
    /// The text is there; Enter was not asked for.
    Pasted,
    /// Something did not happen in time.
    Stalled,
    /// Nothing was sent, because the program would take it for something else.
    Blocked,
}

impl Outcome {
    /// Returns the outcome's name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Submitted => "submitted",
            Outcome::Pasted => "pasted",
            Outcome::Stalled => "stalled",
            Outcome::Blocked => "blocked",
        }
    }
}

/// `PASTE`: what became of a paste, and how that is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pasted {
    /// What became of it.
    pub outcome: Outcome,
    /// How that is known.
    pub evidence: String,
    /// The offset in the program's output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The offset in the program's output when Enter was sent. The turn that this prompt began
    /// starts there or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entered: Option<u64>,
    /// What the program is doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Judged>,
    /// The row of the cursor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<String>,
}

/// `EXPLAIN`: the program's state, and the evidence for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explained {
    /// The state.
    #[serde(flatten)]
    pub judged: Judged,
    /// The rules that it is found by.
    pub agent: String,
    /// What the prompt looks like.
    pub prompt: Option<String>,
    /// Whether the program is at its prompt.
    pub ready: bool,
    /// The turns so far.
    pub turns: u32,
    /// The turn that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// The window's title.
    pub title: String,
    /// How long it has been in this state.
    pub since_ms: u64,
    /// The question that the program asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// The keys that break off what the program is doing, by their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interrupt: Vec<String>,
    /// The recording that failed, or else the one that is written, or else the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<String>,
    /// How that recording is doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording_state: Option<RecordingState>,
    /// What went wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording_error: Option<String>,
}
