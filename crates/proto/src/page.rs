//! The page: its HTTP bodies, messages about sessions and recordings, and commands to a recording
//! that is played.
//!
//! Messages are lines of the bus without an id. A live session's socket speaks [`crate::bus`].

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::PayloadError;
use crate::bus::{
    self, AgentState, Ask, Denied, Exit, Find, Found, Paint, PaintTheme, PaintedRows, Rows, json,
};
use crate::fields;

macro_rules! commands {
    ($($(#[$doc:meta])* $verb:literal $variant:ident $(($payload:ty))?,)+) => {
        /// What the page says to a recording that is played.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Command {
            $($(#[$doc])* $variant $(($payload))?,)+
        }

        impl Command {
            /// Reads a command; `Ok(None)` for one that this version does not know.
            ///
            /// # Errors
            /// When the payload cannot be read.
            pub fn parse(line: &str) -> Result<Option<Self>, PayloadError> {
                let (verb, payload) = line.split_once(' ').unwrap_or((line, ""));
                Ok(Some(match verb {
                    $($verb => Self::$variant $((<$payload as Read>::read(payload)?))?,)+
                    _ => return Ok(None),
                }))
            }
        }

        /// Returns the types of the commands that have a payload.
        #[cfg(feature = "schema")]
        pub fn command_messages() -> Vec<crate::schema::Message> {
            vec![$($(crate::schema::Message::new::<$payload>($verb),)?)+]
        }
    };
}

commands! {
    /// A frame has been drawn.
    "ACK" Ack,
    /// Plays, from the start when it is at its end.
    "PLAY" Play,
    /// Stops playing.
    "PAUSE" Pause,
    /// Sets the speed.
    "SPEED" Speed(Speed),
    /// Sets the longest pause.
    "IDLE" Idle(Idle),
    /// Goes to a time or a moment.
    "SEEK" Seek(Seek),
    /// Goes to the moment before or behind.
    "HOP" Hop(Hop),
    /// Goes to the output before or behind.
    "STEP" Step(Step),
    /// Sets the colors.
    "THEME" Theme(PaintTheme),
    /// Asks for rows.
    "ROWS" Rows(Rows),
    /// Searches.
    "FIND" Find(Find),
}

/// The payload of a command.
trait Read: Sized {
    fn read(payload: &str) -> Result<Self, PayloadError>;
}

macro_rules! lenient {
    ($($payload:ty,)+) => {
        $(impl Read for $payload {
            fn read(payload: &str) -> Result<Self, PayloadError> {
                Ok(fields::lenient_object(payload))
            }
        })+
    };
}

lenient! { Speed, Idle, Seek, Hop, Step, }

impl Read for PaintTheme {
    fn read(payload: &str) -> Result<Self, PayloadError> {
        let value: Value = serde_json::from_str(payload).map_err(|e| PayloadError::Form(e.to_string()))?;
        if !value.is_object() {
            return Err(PayloadError::Form("expected an object".into()));
        }
        // Not `fields::object`: `ansi` is a list here and a flag in requests of the bus.
        serde_json::from_value(value).map_err(|e| PayloadError::Field(e.to_string()))
    }
}

impl Read for Rows {
    fn read(payload: &str) -> Result<Self, PayloadError> {
        Self::from_payload(payload)
    }
}

impl Read for Find {
    fn read(payload: &str) -> Result<Self, PayloadError> {
        Self::from_payload(payload)
    }
}

/// `SPEED`: how fast to play.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Speed {
    /// Times the recorded speed.
    #[serde(deserialize_with = "speed")]
    pub speed: f64,
}

impl Default for Speed {
    fn default() -> Self {
        Self { speed: 1.0 }
    }
}

fn speed<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(fields::lenient(from)?.unwrap_or(1.0))
}

/// `IDLE`: the longest pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Idle {
    /// Milliseconds; without them pauses are as recorded.
    #[serde(deserialize_with = "fields::lenient")]
    pub ms: Option<u64>,
}

/// `SEEK`: where to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Seek {
    /// The time.
    #[serde(deserialize_with = "time")]
    pub ms: u64,
    /// The moment, by its place in the list.
    #[serde(deserialize_with = "fields::lenient")]
    pub moment: Option<u64>,
}

fn time<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    Ok(fields::lenient(from)?.unwrap_or(0))
}

/// `HOP`: to the moment before or behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Hop {
    /// Its sign says which.
    #[serde(deserialize_with = "fields::lenient")]
    pub by: Option<i64>,
}

/// `STEP`: to the output before or behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Step {
    /// Its sign says which.
    #[serde(deserialize_with = "forward")]
    pub by: i64,
}

impl Default for Step {
    fn default() -> Self {
        Self { by: 1 }
    }
}

fn forward<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    Ok(fields::lenient(from)?.unwrap_or(1))
}

/// A message to the page.
pub trait PageMessage: Serialize + Sized {
    /// The verb.
    const VERB: &'static str;

    /// Writes the message: the verb and its payload.
    fn line(&self) -> String {
        format!("{} {}", Self::VERB, json(self))
    }
}

macro_rules! said {
    ($($name:literal $verb:literal $message:ty,)+ ; $($bus_verb:literal $bus_message:ty,)+) => {
        $(impl PageMessage for $message {
            const VERB: &'static str = $verb;
        })+
        $(impl PageMessage for $bus_message {
            const VERB: &'static str = $bus_verb;
        })+

        /// Returns the types of the messages to the page that the bus does not have.
        #[cfg(feature = "schema")]
        pub fn messages() -> Vec<crate::schema::Message> {
            vec![$(crate::schema::Message::new::<$message>($name),)+]
        }
    };
}

said! {
    "list" "LIST" List,
    "welcome" "WELCOME" SessionWelcome,
    "play-welcome" "WELCOME" PlayWelcome,
    "play-state" "STATE" PlayState,
    "play-moments" "MOMENTS" PlayMoments,
    "play-error" "ERROR" Failed,
    ;
    "FRAME" Paint<'_>,
    "ROWS" PaintedRows<'_>,
    "FIND" Found,
    "DENIED" Denied,
}

/// The body of a request: an object with the right fields, or something else. Where the form is
/// wrong, the handler chooses the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body<T> {
    /// An object with the right fields.
    Object(T),
    /// Other JSON.
    Other,
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Body<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        // serde reads a struct from a list of its fields, too.
        let object = Some(Value::deserialize(from)?).filter(Value::is_object);
        let read = object.and_then(|object| serde_json::from_value(object).ok());
        Ok(read.map_or(Body::Other, Body::Object))
    }
}

/// The body of `POST /login`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Login {
    /// The token that is exchanged for a cookie.
    pub token: String,
}

/// Does not show the token.
impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").finish_non_exhaustive()
    }
}

/// The most that the page offers to a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum PageScope {
    /// To start sessions, and drive them.
    Open,
    /// To drive sessions.
    Attach,
    /// To watch.
    Observe,
}

/// The reply to a login.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoggedIn {
    /// The most that the page offers to the user.
    pub scope: PageScope,
    /// The theme that the page shows until its user chooses another.
    pub theme: String,
    /// The themes that the page offers.
    pub themes: Vec<NamedTheme>,
}

/// A theme of the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamedTheme {
    /// Its name.
    pub name: String,
    /// Whether its background is light.
    pub light: bool,
    /// Its colors.
    #[serde(flatten)]
    pub colours: PaintTheme,
}

/// The body of a request to start a session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct OpenSession {
    /// The command; the user's shell without one.
    pub command: Option<CommandLine>,
    /// A name for the session.
    pub name: Option<String>,
    /// The folder to start in, as an absolute path.
    pub cwd: Option<String>,
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "a command is a text or a list of texts")]
pub enum CommandLine {
    /// One line, which is split into words as a shell does.
    Line(String),
    /// The program and its arguments.
    Words(Vec<String>),
}

/// The reply to a request that started a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Started {
    /// The session's name for programs.
    pub id: String,
}

/// Returns the types of the bodies of HTTP requests and replies.
#[cfg(feature = "schema")]
pub fn bodies() -> Vec<crate::schema::Message> {
    use crate::schema::Message;
    vec![
        Message::new::<Login>("login"),
        Message::new::<LoggedIn>("logged-in"),
        Message::new::<OpenSession>("open-session"),
        Message::new::<Started>("started"),
    ]
}

/// `WELCOME`: a live session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionWelcome {
    /// What the session said to the page's server.
    #[serde(flatten)]
    pub bus: bus::Welcome,
    /// The session's name for programs.
    pub id: String,
    /// Its name for people.
    pub session: Option<String>,
    /// The program and its arguments.
    pub command: Vec<String>,
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

/// `MOMENTS`: the moments of a recording, when they are known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct PlayMoments(pub Vec<PlayedMoment>);

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
    /// Its clients.
    pub clients: Vec<bus::Client>,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording_error: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_from_objects_alone() {
        let read = |line: &str| Command::parse(line).expect(line).expect(line);
        assert_eq!(read("PLAY"), Command::Play);
        assert_eq!(read("SPEED {\"speed\": 2}"), Command::Speed(Speed { speed: 2.0 }));
        for wrong in ["SPEED", "SPEED {\"speed\": \"x\"}", "SPEED [2]", "SPEED {"] {
            assert_eq!(read(wrong), Command::Speed(Speed::default()), "{wrong}");
        }
        assert_eq!(read("IDLE {\"ms\": null}"), Command::Idle(Idle { ms: None }));
        let seek = Seek { ms: 5, moment: None };
        assert_eq!(read("SEEK {\"ms\": 5, \"moment\": -1}"), Command::Seek(seek));
        assert_eq!(read("SEEK [5, 1]"), Command::Seek(Seek::default()));
        assert_eq!(read("HOP {\"by\": -1}"), Command::Hop(Hop { by: Some(-1) }));
        assert_eq!(read("STEP"), Command::Step(Step { by: 1 }));
        let colors = vec!["\"0102ff\""; 16].join(",");
        let theme = format!(
            "{{\"name\":\"x\",\"fg\":\"010203\",\"bg\":\"040506\",\"cursor\":\"070809\",\"ansi\":[{colors}]}}"
        );
        assert!(
            matches!(read(&format!("THEME {theme}")), Command::Theme(theme) if theme.ansi[15] == bus::Hex(1, 2, 255))
        );
        for wrong in ["THEME", "THEME []", "ROWS {}", "ROWS [0, 5]", "FIND {\"text\": \"\"}"] {
            assert!(Command::parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Command::parse("NOSUCHVERB {}"), Ok(None));
    }

    #[test]
    fn a_body_is_an_object() {
        let read = |text: &str| serde_json::from_str::<Body<Login>>(text).expect("JSON");
        assert_eq!(read("{\"token\": \"x\"}"), Body::Object(Login { token: "x".into() }));
        for wrong in ["[\"x\"]", "\"x\"", "{}", "{\"token\": 5}", "null", "[{\"token\": \"x\"}]"] {
            assert_eq!(read(wrong), Body::Other, "{wrong}");
        }
    }

    #[test]
    fn a_message_is_a_line() {
        assert_eq!(Failed { error: "no".into() }.line(), "ERROR {\"error\":\"no\"}");
        assert_eq!(PlayMoments(Vec::new()).line(), "MOMENTS []");
    }
}
