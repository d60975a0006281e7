//! Messages of the broker: turns across sessions.
//!
//! A frame is a length (`u32`, big-endian) and a MessagePack map with `type` and `id`. A peer's
//! first message is [`Hello`]. Afterwards a wrapper and a client send [`Request`]s, which the
//! broker answers with a [`Response`] of the same id; the broker sends an [`Inject`] to the wrapper
//! of a session.
//!
//! Frames come from untrusted peers. [`Message::decode`] refuses maps that are nested deeper than
//! any message, and allocates no memory for a length that the bytes at hand do not cover. A field
//! of the wrong kind makes a request malformed. Unknown fields are ignored, so that newer peers can
//! talk to older ones.

use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// The protocol's version.
pub const VERSION: u64 = 1;
/// The longest body of a frame.
pub const MAX_FRAME: usize = 16 << 20;
/// The longest value of an environment variable.
const MAX_VARIABLE: usize = 4096;
/// Deeper than any message is nested.
const DEPTH: usize = 16;

/// What a peer is to the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename_all = "lowercase"))]
pub enum Role {
    /// It wraps a session, and reports its turns.
    Wrapper,
    /// It lists, captures and delivers turns.
    Client,
}

impl Role {
    /// Returns the word that a [`Hello`] carries.
    pub fn name(self) -> &'static str {
        match self {
            Role::Wrapper => "wrapper",
            Role::Client => "client",
        }
    }
}

/// The first message of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// What the peer is.
    pub role: Role,
}

/// Where a captured turn goes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(tag = "sink", rename_all = "lowercase"))]
pub enum Target {
    /// The prompt of a session; `raw` keeps control characters.
    Inject {
        /// The session's name.
        session: String,
        /// Whether to deliver the exact bytes.
        #[cfg_attr(feature = "schema", schemars(default))]
        raw: bool,
    },
    /// The clipboard of the desktop that these variables of the client name; without any of them,
    /// of the broker's own.
    Clipboard(Desktop),
    /// A file at an absolute path.
    File {
        /// The path.
        path: String,
    },
}

/// The desktop that a client's environment names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Desktop {
    /// `DISPLAY`.
    pub display: Option<String>,
    /// `WAYLAND_DISPLAY`.
    pub wayland_display: Option<String>,
    /// `XAUTHORITY`.
    pub xauthority: Option<String>,
}

impl Desktop {
    /// Whether it names a display.
    pub fn is_named(&self) -> bool {
        self.display.is_some() || self.wayland_display.is_some()
    }
}

/// A request to the broker.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(tag = "type", rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Request {
    /// Registers a session.
    Register {
        /// The session's name.
        session: String,
        /// The process id of the wrapper.
        pid: u64,
        /// The pattern by which it finds prompts.
        #[cfg_attr(feature = "schema", schemars(default))]
        pattern: String,
    },
    /// The session has ended.
    Deregister {
        /// The session's name.
        session: String,
    },
    /// The session has completed a turn.
    TurnCompleted {
        /// The session's name.
        session: String,
        /// The answer.
        content: Blob,
        /// Whether the user interrupted it.
        #[cfg_attr(feature = "schema", schemars(default))]
        interrupted: bool,
        /// Whether some of it is missing.
        #[cfg_attr(feature = "schema", schemars(default))]
        truncated: bool,
        /// When it ended, in milliseconds since 1970; the broker's time if left out.
        timestamp: Option<u64>,
    },
    /// Lists all sessions.
    ListSessions,
    /// Lists the turns of a session.
    ListTurns {
        /// The session's name.
        session: String,
        /// Only the last so many.
        limit: Option<u64>,
    },
    /// Returns a turn with its content.
    GetTurn {
        /// The turn's id.
        turn_id: String,
    },
    /// Captures the last turn of a session.
    Capture {
        /// The session's name.
        session: String,
    },
    /// Captures a turn.
    CaptureById {
        /// The turn's id.
        turn_id: String,
    },
    /// Pastes the captured turn into a session.
    Paste {
        /// The session's name.
        session: String,
        /// Whether to deliver the exact bytes.
        #[cfg_attr(feature = "schema", schemars(default))]
        raw: bool,
    },
    /// Delivers the captured turn.
    Deliver(Target),
}

impl Request {
    /// Returns the role of the peers that send requests of this type; `None` for an unknown type.
    pub fn sender(kind: &str) -> Option<Role> {
        match kind {
            "register" | "deregister" | "turn_completed" => Some(Role::Wrapper),
            "list_sessions" | "list_turns" | "get_turn" | "capture" | "capture_by_id" | "paste"
            | "deliver" => Some(Role::Client),
            _ => None,
        }
    }

    /// Returns the frame of this request.
    pub fn frame(&self, id: u64) -> Vec<u8> {
        let text = |text: &str| Some(text.to_owned());
        let of = |kind| Fields { kind, id, ..Fields::default() };
        let fields = match self {
            Request::Register { session, pid, pattern } => {
                Fields { session: text(session), pid: Some(*pid), pattern: text(pattern), ..of("register") }
            }
            Request::Deregister { session } => Fields { session: text(session), ..of("deregister") },
            Request::TurnCompleted { session, content, interrupted, truncated, timestamp } => Fields {
                session: text(session),
                content: Some(content.clone()),
                interrupted: Some(*interrupted),
                truncated: Some(*truncated),
                timestamp: *timestamp,
                ..of("turn_completed")
            },
            Request::ListSessions => of("list_sessions"),
            Request::ListTurns { session, limit } => {
                Fields { session: text(session), limit: *limit, ..of("list_turns") }
            }
            Request::GetTurn { turn_id } => Fields { turn_id: text(turn_id), ..of("get_turn") },
            Request::Capture { session } => Fields { session: text(session), ..of("capture") },
            Request::CaptureById { turn_id } => Fields { turn_id: text(turn_id), ..of("capture_by_id") },
            Request::Paste { session, raw } => {
                Fields { session: text(session), raw: raw.then_some(true), ..of("paste") }
            }
            Request::Deliver(Target::Inject { session, raw }) => {
                Fields { sink: Some("inject"), session: text(session), raw: Some(*raw), ..of("deliver") }
            }
            Request::Deliver(Target::Clipboard(desktop)) => Fields {
                sink: Some("clipboard"),
                display: desktop.display.clone(),
                wayland_display: desktop.wayland_display.clone(),
                xauthority: desktop.xauthority.clone(),
                ..of("deliver")
            },
            Request::Deliver(Target::File { path }) => {
                Fields { sink: Some("file"), path: text(path), ..of("deliver") }
            }
        };
        frame(&fields)
    }
}

/// Delivers the captured turn to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Inject {
    /// The session's name.
    pub session: String,
    /// The bytes.
    pub content: Blob,
    /// Whether to deliver the exact bytes.
    #[cfg_attr(feature = "schema", schemars(default))]
    pub raw: bool,
}

impl Inject {
    /// Returns the frame of this message.
    pub fn frame(&self) -> Vec<u8> {
        frame(&Fields {
            kind: "inject",
            content: Some(self.content.clone()),
            session: Some(self.session.clone()),
            raw: self.raw.then_some(true),
            ..Fields::default()
        })
    }
}

impl Hello {
    /// Returns the frame of this message.
    pub fn frame(self) -> Vec<u8> {
        let (version, role) = (Some(VERSION), Some(self.role.name()));
        frame(&Fields { kind: "hello", version, role, ..Fields::default() })
    }
}

/// What the broker says of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnInfo {
    /// The turn's id: the session's name, a colon and a number.
    pub turn_id: String,
    /// When it ended, in milliseconds since 1970.
    pub timestamp: u64,
    /// How long its content is.
    pub byte_length: u64,
    /// Whether the user interrupted it.
    pub interrupted: bool,
    /// Whether some of it is missing.
    pub truncated: bool,
}

/// What the broker says of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionInfo {
    /// The session's name.
    pub session: String,
    /// The process id of its wrapper.
    pub pid: u64,
    /// The pattern by which it finds prompts.
    pub pattern: String,
    /// How many turns the broker keeps.
    pub turns: u64,
    /// Whether its wrapper is connected.
    pub connected: bool,
}

/// What a request brings.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(untagged))]
#[non_exhaustive]
pub enum Answer {
    /// Success: `register`, `deregister`.
    Done,
    /// All sessions: `list_sessions`.
    Sessions {
        /// The sessions.
        sessions: Vec<SessionInfo>,
    },
    /// Turns of a session: `list_turns`.
    Turns {
        /// The turns, the oldest first.
        turns: Vec<TurnInfo>,
    },
    /// A turn, with its content: `get_turn`; without it: `capture`, `capture_by_id`.
    Turn {
        /// The turn.
        #[cfg_attr(feature = "schema", schemars(flatten))]
        turn: TurnInfo,
        /// Its content.
        content: Option<Blob>,
    },
    /// The turn got this id: `turn_completed`.
    Recorded {
        /// The turn's id.
        turn_id: String,
    },
    /// The captured turn was delivered: `paste`, `deliver`.
    Delivered {
        /// The turn's id.
        turn_id: String,
        /// How many bytes it has.
        byte_length: u64,
    },
}

impl Answer {
    /// Returns the id of the turn that the answer is about.
    pub fn turn_id(&self) -> Option<&str> {
        match self {
            Answer::Turn { turn, .. } => Some(&turn.turn_id),
            Answer::Recorded { turn_id } | Answer::Delivered { turn_id, .. } => Some(turn_id),
            _ => None,
        }
    }

    /// Returns how many bytes that turn has.
    pub fn byte_length(&self) -> Option<u64> {
        match self {
            Answer::Turn { turn, .. } => Some(turn.byte_length),
            Answer::Delivered { byte_length, .. } => Some(*byte_length),
            _ => None,
        }
    }
}

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// A word for programs.
    pub code: ErrorCode,
    /// A sentence for people, if there is more to say than the word.
    pub message: Option<String>,
}

impl From<ErrorCode> for Refusal {
    fn from(code: ErrorCode) -> Self {
        Self { code, message: None }
    }
}

/// An answer to a request, or to the greeting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The id of the request.
    pub id: u64,
    /// What it brings.
    pub outcome: Result<Answer, Refusal>,
}

impl Response {
    /// Returns the frame of this response.
    pub fn frame(&self) -> Vec<u8> {
        self.frame_as("response")
    }

    /// Returns the frame that answers a [`Hello`].
    pub fn hello_frame(outcome: Result<(), ErrorCode>) -> Vec<u8> {
        let outcome = outcome.map(|()| Answer::Done).map_err(Refusal::from);
        Response { id: 0, outcome }.frame_as("hello_ack")
    }

    fn frame_as(&self, kind: &'static str) -> Vec<u8> {
        let of = |status| Fields { kind, id: self.id, status: Some(status), ..Fields::default() };
        let ok = || of("ok");
        let fields = match &self.outcome {
            Err(Refusal { code, message }) => {
                Fields { error: Some(code.name().to_owned()), message: message.clone(), ..of("error") }
            }
            Ok(Answer::Done) => ok(),
            Ok(Answer::Sessions { sessions }) => Fields { sessions: Some(sessions), ..ok() },
            Ok(Answer::Turns { turns }) => Fields { turns: Some(turns), ..ok() },
            Ok(Answer::Turn { turn, content }) => Fields {
                turn_id: Some(turn.turn_id.clone()),
                timestamp: Some(turn.timestamp),
                byte_length: Some(turn.byte_length),
                interrupted: Some(turn.interrupted),
                truncated: Some(turn.truncated),
                content: content.clone(),
                ..ok()
            },
            Ok(Answer::Recorded { turn_id }) => Fields { turn_id: Some(turn_id.clone()), ..ok() },
            Ok(Answer::Delivered { turn_id, byte_length }) => {
                Fields { turn_id: Some(turn_id.clone()), byte_length: Some(*byte_length), ..ok() }
            }
        };
        frame(&fields)
    }
}

macro_rules! error_codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Why the broker refuses.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[non_exhaustive]
        pub enum ErrorCode {
            $($(#[$doc])* #[cfg_attr(feature = "schema", schemars(rename = $name))] $variant,)*
            /// A word of a newer broker.
            #[cfg_attr(feature = "schema", schemars(skip))]
            Other(String),
        }

        impl ErrorCode {
            /// Returns the word on the wire.
            pub fn name(&self) -> &str {
                match self {
                    $(ErrorCode::$variant => $name,)*
                    ErrorCode::Other(name) => name,
                }
            }
        }

        impl From<&str> for ErrorCode {
            fn from(name: &str) -> Self {
                match name {
                    $($name => ErrorCode::$variant,)*
                    other => ErrorCode::Other(other.to_owned()),
                }
            }
        }
    };
}

error_codes! {
    /// The session does not exist.
    SessionNotFound = "session_not_found",
    /// The turn does not exist, or was dropped.
    TurnNotFound = "turn_not_found",
    /// The session has not completed a turn.
    NoTurn = "no_turn",
    /// No turn has been captured.
    BufferEmpty = "buffer_empty",
    /// The session's wrapper is not connected.
    SessionDisconnected = "session_disconnected",
    /// The turn could not be written.
    SinkFailed = "sink_failed",
    /// Too many deliveries are in progress.
    Busy = "busy",
    /// The frame is not a message, or a field has an invalid value.
    Malformed = "malformed",
    /// A required field is missing.
    MissingField = "missing_field",
    /// The peer's role does not allow the request.
    Forbidden = "forbidden",
    /// Unknown request type.
    UnknownType = "unknown_type",
    /// Unknown sink.
    UnknownSink = "unknown_sink",
    /// Another wrapper has registered the session.
    DuplicateSession = "duplicate_session",
    /// The broker has reached its session limit.
    TooManySessions = "too_many_sessions",
    /// The peer uses another protocol version.
    VersionMismatch = "version_mismatch",
    /// The frame exceeds the size limit.
    PayloadTooLarge = "payload_too_large",
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Bytes, which MessagePack tells from text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("format" = "bytes")))]
pub struct Blob(#[cfg_attr(feature = "schema", schemars(with = "String"))] pub Vec<u8>);

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

/// The fields of every message that is written. Those that are `None` are left out.
#[derive(Default, Serialize)]
struct Fields<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sink: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pattern: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    display: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wayland_display: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    xauthority: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    byte_length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interrupted: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Blob>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sessions: Option<&'a [SessionInfo]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turns: Option<&'a [TurnInfo]>,
}

fn frame(fields: &Fields<'_>) -> Vec<u8> {
    // Numbers, texts and bytes always encode, and a vector takes them all.
    let body = rmp_serde::to_vec_named(fields).unwrap_or_default();
    let mut out = u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes().to_vec();
    out.extend_from_slice(&body);
    out
}

/// The body of a frame is no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("malformed message: {0}")]
pub struct Malformed(String);

/// A message that was read, before it is known what it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Message {
    #[serde(rename = "type")]
    kind: Scalar,
    id: Scalar,
    status: Scalar,
    error: Scalar,
    message: Scalar,
    version: Scalar,
    role: Scalar,
    sink: Scalar,
    session: Scalar,
    pid: Scalar,
    pattern: Scalar,
    path: Scalar,
    display: Scalar,
    wayland_display: Scalar,
    xauthority: Scalar,
    limit: Scalar,
    turn_id: Scalar,
    timestamp: Scalar,
    byte_length: Scalar,
    interrupted: Scalar,
    truncated: Scalar,
    raw: Scalar,
    content: Scalar,
    sessions: Option<Vec<SessionInfo>>,
    turns: Option<Vec<TurnInfo>>,
}

impl Message {
    /// Decodes the body of a frame.
    ///
    /// # Errors
    /// When the bytes are no MessagePack map, more than one, or nested too deep.
    pub fn decode(body: &[u8]) -> Result<Self, Malformed> {
        let mut rest = body;
        let mut decoder = rmp_serde::Deserializer::new(&mut rest);
        decoder.set_max_depth(DEPTH);
        let message = MapOnly::deserialize(&mut decoder).map_err(|e| Malformed(e.to_string()))?;
        if rest.is_empty() { Ok(message.0) } else { Err(Malformed("more than one value".into())) }
    }

    /// Returns the id, if there is one.
    pub fn id(&self) -> Option<u64> {
        self.id.number()
    }

    /// Reads the greeting of a peer.
    ///
    /// # Errors
    /// When it is no greeting, of another version, or of an unknown role.
    pub fn hello(&self) -> Result<Hello, ErrorCode> {
        match (self.kind.text(), self.version.number()) {
            (Some("hello"), Some(VERSION)) => {}
            (Some("hello"), _) => return Err(ErrorCode::VersionMismatch),
            _ => return Err(ErrorCode::Malformed),
        }
        let role = [Role::Wrapper, Role::Client].into_iter().find(|r| self.role.text() == Some(r.name()));
        Ok(Hello { role: role.ok_or(ErrorCode::Malformed)? })
    }

    /// Reads a request of a peer.
    ///
    /// # Errors
    /// When it is no request, lacks a field, or is not for peers of this role.
    pub fn request(&self, from: Role) -> Result<Request, ErrorCode> {
        let kind = self.kind.text().ok_or(ErrorCode::Malformed)?;
        if Request::sender(kind).ok_or(ErrorCode::UnknownType)? != from {
            return Err(ErrorCode::Forbidden);
        }
        let text = |field: &Scalar| field.checked(Scalar::text).map(|text| text.map(str::to_owned));
        let needed = |field: &Scalar| text(field)?.ok_or(ErrorCode::MissingField);
        let flag = |field: &Scalar| field.checked(Scalar::flag).map(|on| on.unwrap_or(false));
        let session = || needed(&self.session);
        Ok(match kind {
            "register" => Request::Register {
                session: session()?,
                pid: self.pid.checked(Scalar::number)?.ok_or(ErrorCode::MissingField)?,
                pattern: text(&self.pattern)?.unwrap_or_default(),
            },
            "deregister" => Request::Deregister { session: session()? },
            "turn_completed" => Request::TurnCompleted {
                session: session()?,
                content: self.content.checked(Scalar::bytes)?.ok_or(ErrorCode::MissingField)?,
                interrupted: flag(&self.interrupted)?,
                truncated: flag(&self.truncated)?,
                timestamp: self.timestamp.checked(Scalar::number)?,
            },
            "list_sessions" => Request::ListSessions,
            "list_turns" => {
                Request::ListTurns { session: session()?, limit: self.limit.checked(Scalar::number)? }
            }
            "get_turn" => Request::GetTurn { turn_id: needed(&self.turn_id)? },
            "capture" => Request::Capture { session: session()? },
            "capture_by_id" => Request::CaptureById { turn_id: needed(&self.turn_id)? },
            "paste" => Request::Paste { session: session()?, raw: flag(&self.raw)? },
            _ => Request::Deliver(match needed(&self.sink)?.as_str() {
                "inject" => Target::Inject { session: session()?, raw: flag(&self.raw)? },
                "clipboard" => Target::Clipboard(Desktop {
                    display: variable(text(&self.display)?)?,
                    wayland_display: variable(text(&self.wayland_display)?)?,
                    xauthority: variable(text(&self.xauthority)?)?,
                }),
                "file" => Target::File { path: needed(&self.path)? },
                _ => return Err(ErrorCode::UnknownSink),
            }),
        })
    }

    /// Reads a response of the broker; `None` when it is none.
    pub fn response(&self) -> Option<Response> {
        let kind = self.kind.text()?;
        if kind != "response" && kind != "hello_ack" {
            return None;
        }
        let outcome = if self.status.text() == Some("ok") {
            Ok(self.answer())
        } else {
            let code = self.error.text().unwrap_or("malformed").into();
            Err(Refusal { code, message: self.message.text().map(str::to_owned) })
        };
        Some(Response { id: self.id()?, outcome })
    }

    /// Reads the captured turn that is meant for a session; `None` when it is another message.
    pub fn inject(&self) -> Option<Inject> {
        if self.kind.text() != Some("inject") {
            return None;
        }
        Some(Inject {
            session: self.session.text().unwrap_or_default().to_owned(),
            content: self.content.bytes()?,
            raw: self.raw.flag().unwrap_or(false),
        })
    }

    fn answer(&self) -> Answer {
        if let Some(sessions) = self.sessions.clone() {
            return Answer::Sessions { sessions };
        }
        if let Some(turns) = self.turns.clone() {
            return Answer::Turns { turns };
        }
        let Some(turn_id) = self.turn_id.text().map(str::to_owned) else { return Answer::Done };
        match (self.timestamp.number(), self.byte_length.number()) {
            (Some(timestamp), byte_length) => {
                let turn = TurnInfo {
                    turn_id,
                    timestamp,
                    byte_length: byte_length.unwrap_or(0),
                    interrupted: self.interrupted.flag().unwrap_or(false),
                    truncated: self.truncated.flag().unwrap_or(false),
                };
                Answer::Turn { turn, content: self.content.bytes() }
            }
            (None, Some(byte_length)) => Answer::Delivered { turn_id, byte_length },
            (None, None) => Answer::Recorded { turn_id },
        }
    }
}

/// Checks the value of an environment variable.
fn variable(value: Option<String>) -> Result<Option<String>, ErrorCode> {
    match value {
        Some(value) if value.len() > MAX_VARIABLE || value.contains('\0') => Err(ErrorCode::Malformed),
        value => Ok(value),
    }
}

/// A message must be a map: serde would take a list as one, too.
struct MapOnly(Message);

impl<'de> Deserialize<'de> for MapOnly {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Map;
        impl<'de> Visitor<'de> for Map {
            type Value = Message;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Message, A::Error> {
                Message::deserialize(serde::de::value::MapAccessDeserializer::new(map))
            }
        }
        from.deserialize_any(Map).map(MapOnly)
    }
}

/// The value of a field, as far as messages use it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Scalar {
    /// The field is missing, or nil.
    #[default]
    None,
    /// A kind that no field has.
    Other,
    Flag(bool),
    Number(u64),
    Text(String),
    Bytes(Vec<u8>),
}

impl Scalar {
    /// Returns the value as the kind that the field must have; `None` if the field is missing.
    fn checked<'a, T>(&'a self, read: impl Fn(&'a Self) -> Option<T>) -> Result<Option<T>, ErrorCode> {
        match self {
            Scalar::None => Ok(None),
            value => read(value).map(Some).ok_or(ErrorCode::Malformed),
        }
    }

    fn text(&self) -> Option<&str> {
        if let Scalar::Text(text) = self { Some(text) } else { None }
    }

    fn number(&self) -> Option<u64> {
        if let Scalar::Number(n) = self { Some(*n) } else { None }
    }

    fn flag(&self) -> Option<bool> {
        if let Scalar::Flag(on) = self { Some(*on) } else { None }
    }

    /// Returns bytes; text counts as bytes.
    fn bytes(&self) -> Option<Blob> {
        match self {
            Scalar::Bytes(bytes) => Some(Blob(bytes.clone())),
            Scalar::Text(text) => Some(Blob(text.clone().into_bytes())),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Scalar;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_bool<E>(self, on: bool) -> Result<Scalar, E> {
                Ok(Scalar::Flag(on))
            }

            fn visit_u64<E>(self, n: u64) -> Result<Scalar, E> {
                Ok(Scalar::Number(n))
            }

            fn visit_i64<E>(self, n: i64) -> Result<Scalar, E> {
                Ok(u64::try_from(n).map_or(Scalar::Other, Scalar::Number))
            }

            fn visit_f64<E>(self, _: f64) -> Result<Scalar, E> {
                Ok(Scalar::Other)
            }

            fn visit_unit<E>(self) -> Result<Scalar, E> {
                Ok(Scalar::None)
            }

            fn visit_none<E>(self) -> Result<Scalar, E> {
                Ok(Scalar::None)
            }

            fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar::Text(text.to_owned()))
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Scalar, E> {
                Ok(Scalar::Bytes(bytes.to_vec()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Scalar, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Scalar::Other)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Scalar::Other)
            }
        }
        from.deserialize_any(Any)
    }
}
