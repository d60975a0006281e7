//! Messages of the tty wire over a network: negotiations, refusals, and control messages in both
//! directions.
//!
//! A negotiation and a refusal are length-prefixed JSON objects. Control messages are JSON objects
//! in chunks, with a `type`. Receivers ignore types that they do not know.

use std::collections::BTreeMap;

use serde::de::{DeserializeOwned, Deserializer};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::attach::Size;
use crate::fields;

/// A message that is no JSON object, or has a field of the wrong kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("malformed JSON: {0}")]
pub struct Malformed(String);

/// Names the kinds of the fields that a message may have, so that an error can name the field.
pub(crate) struct Kinds {
    pub(crate) texts: &'static [&'static str],
    pub(crate) flags: &'static [&'static str],
    pub(crate) numbers: &'static [&'static str],
}

impl Kinds {
    /// Reads a JSON object whose fields have these kinds.
    pub(crate) fn read<T: DeserializeOwned>(&self, message: &[u8]) -> Result<T, Malformed> {
        let value = object(message)?;
        self.check(&value).map_err(Malformed)?;
        serde_json::from_value(value).map_err(|e| Malformed(e.to_string()))
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        self.texts.iter().try_for_each(|key| fields::text(value, key).map(drop))?;
        self.flags.iter().try_for_each(|key| fields::flag(value, key, false).map(drop))?;
        self.numbers.iter().try_for_each(|key| fields::number(value, key).map(drop))
    }
}

fn object(message: &[u8]) -> Result<Value, Malformed> {
    match serde_json::from_slice(message) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err(Malformed("not an object".into())),
        Err(e) => Err(Malformed(e.to_string())),
    }
}

/// How a session's bytes travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Carriage {
    /// In chunks, as they are.
    #[default]
    Raw,
}

impl<'de> Deserialize<'de> for Carriage {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        fields::by(from, |value| match value.as_str() {
            None | Some("raw") => Ok(Self::Raw),
            Some(other) => Err(format!("there is no carriage {other:?}: it is \"raw\"")),
        })
    }
}

/// A session that a client wants to have opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Negotiation {
    /// How the output bytes are sent.
    pub carriage: Carriage,
    /// Where to run the program, or `attach` for an existing session.
    #[serde(deserialize_with = "backend")]
    pub backend: String,
    /// The client's credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Proof that the client has a token, instead of the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
    /// The client's terminal. Without one, the program runs on pipes.
    #[serde(deserialize_with = "tty")]
    pub tty: Option<Tty>,
    /// Program and arguments; empty for the user's shell.
    #[serde(deserialize_with = "cmd")]
    pub cmd: Vec<String>,
    /// The working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Environment variables to set.
    #[serde(deserialize_with = "env")]
    pub env: BTreeMap<String, String>,
    /// Name of the session, or of the client if it attaches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether the session continues after the client disconnects.
    #[serde(deserialize_with = "fields::or_default")]
    pub detached: bool,
    /// For the backend `docker`: the container that the program runs in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// For the backend `docker`: the image of a new container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// For the backend `ssh`: the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// For the backend `ssh`: the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// For the backend `ssh`: the port, from 1 to 65535.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u64>,
}

impl Default for Negotiation {
    fn default() -> Self {
        Self {
            carriage: Carriage::Raw,
            backend: LOCAL.to_owned(),
            token: None,
            proof: None,
            tty: None,
            cmd: Vec::new(),
            cwd: None,
            env: BTreeMap::new(),
            name: None,
            detached: false,
            container: None,
            image: None,
            host: None,
            user: None,
            port: None,
        }
    }
}

/// The backend of a client that names none.
const LOCAL: &str = "local";

impl Negotiation {
    const KINDS: Kinds = Kinds {
        texts: &[
            "carriage",
            "backend",
            "token",
            "proof",
            "cwd",
            "name",
            "container",
            "image",
            "host",
            "user",
        ],
        flags: &["detached"],
        numbers: &["port"],
    };

    /// Reads a negotiation. Fields that are left out or `null` have their defaults, and unknown
    /// fields are ignored.
    ///
    /// # Errors
    /// When it is no JSON object, or a field has the wrong kind.
    pub fn parse(message: &[u8]) -> Result<Self, Malformed> {
        Self::KINDS.read(message)
    }
}

/// The client's terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tty {
    /// The terminal type, as in `TERM`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub term: Option<String>,
    /// Its size, if the client says one.
    #[serde(flatten, deserialize_with = "size")]
    pub size: Option<Size>,
    /// Terminal modes, by their names in the SSH protocol.
    #[serde(default, deserialize_with = "modes")]
    pub modes: BTreeMap<String, u8>,
    /// Whether the client's terminal answers the program's queries.
    #[serde(default = "fields::yes", deserialize_with = "fields::or_yes")]
    pub answers: bool,
}

impl Default for Tty {
    fn default() -> Self {
        Self { term: None, size: None, modes: BTreeMap::new(), answers: true }
    }
}

fn backend<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_else(|| LOCAL.to_owned()))
}

/// Reads a terminal; `null` stands for none.
pub(crate) fn tty<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Tty>, D::Error> {
    const KINDS: Kinds = Kinds { texts: &["term"], flags: &["answers"], numbers: &[] };
    fields::by(from, |value| match value {
        Value::Null => Ok(None),
        Value::Object(_) => {
            KINDS.check(value)?;
            Tty::deserialize(value).map(Some).map_err(|e| e.to_string())
        }
        _ => Err("\"tty\" is an object or null".to_owned()),
    })
}

fn size<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Size>, D::Error> {
    fields::by(from, |value| match (value.get("cols"), value.get("rows")) {
        (None, None) => Ok(None),
        _ => Size::from_message(value).map(Some).ok_or("\"tty\" has cols and rows, from 1 to 10000"),
    })
}

fn modes<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, u8>, D::Error> {
    fields::by(from, |value| {
        let all = match value {
            Value::Null => return Ok(BTreeMap::new()),
            Value::Object(all) => all,
            _ => return Err("\"modes\" is an object"),
        };
        let mode = |(name, value): (&String, &Value)| {
            let value = value.as_u64().or(value.as_bool().map(u64::from));
            let value = value.and_then(|v| u8::try_from(v).ok());
            Ok((name.clone(), value.ok_or("\"modes\" has numbers up to 255")?))
        };
        all.iter().map(mode).collect()
    })
}

fn cmd<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    fields::by(from, |value| {
        let args = match value {
            Value::Null => return Ok(Vec::new()),
            Value::Array(args) => args,
            _ => return Err("\"cmd\" is a list of texts"),
        };
        let arg = |arg: &Value| match arg.as_str() {
            Some(arg) if arg.contains('\0') => Err("\"cmd\" has a NUL in it, which no argument can have"),
            Some(arg) => Ok(arg.to_owned()),
            None => Err("\"cmd\" is a list of texts"),
        };
        args.iter().map(arg).collect()
    })
}

fn env<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    fields::by(from, |value| {
        let wrong = "\"env\" has names and texts";
        let all = match value {
            Value::Null => return Ok(BTreeMap::new()),
            Value::Object(all) => all,
            _ => return Err(wrong),
        };
        let variable = |(name, value): (&String, &Value)| {
            let value = value.as_str().filter(|v| !v.contains('\0')).ok_or(wrong)?;
            let fits = !name.is_empty() && !name.contains(['=', '\0']);
            if fits { Ok((name.clone(), value.to_owned())) } else { Err(wrong) }
        };
        all.iter().map(variable).collect()
    })
}

/// Why a client is not let in, as a word for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RefusalCode {
    /// The credential does not allow the request. Checked first.
    Forbidden,
    /// The negotiation is not a JSON object, or a field has the wrong type.
    MalformedNegotiation,
    /// Unknown backend.
    UnknownBackend,
    /// The session cannot be started; `code` is the exit code of a shell: 127, 126, or 4 when the
    /// place cannot be reached.
    AllocateFailed,
    /// The server has reached its session limit.
    TooManySessions,
    /// The server has reached its connection limit.
    TooManyConnections,
    /// The session to attach to does not exist.
    NoSuchSession,
    /// Internal server error.
    Internal,
}

impl RefusalCode {
    /// Returns the word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            RefusalCode::Forbidden => "forbidden",
            RefusalCode::MalformedNegotiation => "malformed_negotiation",
            RefusalCode::UnknownBackend => "unknown_backend",
            RefusalCode::AllocateFailed => "allocate_failed",
            RefusalCode::TooManySessions => "too_many_sessions",
            RefusalCode::TooManyConnections => "too_many_connections",
            RefusalCode::NoSuchSession => "no_such_session",
            RefusalCode::Internal => "internal",
        }
    }
}

/// Why a server does not open a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refusal {
    /// The exit code by which a shell would say the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// A word for programs: see [`RefusalCode`].
    #[serde(default = "unknown")]
    pub error: String,
    /// A sentence for people.
    #[serde(default = "unknown")]
    pub message: String,
}

impl Refusal {
    /// Reads a refusal.
    ///
    /// # Errors
    /// When it is no JSON object, or a field has the wrong kind.
    pub fn parse(message: &[u8]) -> Result<Self, Malformed> {
        serde_json::from_value(object(message)?).map_err(|e| Malformed(e.to_string()))
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// A control message of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "lowercase")]
#[non_exhaustive]
pub enum ServerControl {
    /// The session runs.
    Opened {
        /// Its id.
        session: String,
    },
    /// The program has ended.
    Exit {
        /// The exit code; for a signal 128 and its number.
        #[serde(default = "one")]
        code: i32,
        /// The name of the signal that ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<String>,
    },
    /// The client sent an invalid message, or the session failed.
    Error {
        /// The type of the client's message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        about: Option<String>,
        /// A sentence for people.
        #[serde(default = "unknown")]
        message: String,
    },
    /// Keepalive; the client ignores it.
    Ping,
    /// A message of a newer server.
    #[serde(other)]
    Unknown,
}

fn one() -> i32 {
    1
}

/// A control message of the client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "lowercase")]
#[non_exhaustive]
pub enum ClientControl {
    /// The client's terminal has this size.
    Resize {
        /// Columns, from 1 to 10000.
        cols: u64,
        /// Rows, from 1 to 10000.
        rows: u64,
        /// Width in pixels; 0 if unknown.
        #[serde(default)]
        pixel_width: u64,
        /// Height in pixels; 0 if unknown.
        #[serde(default)]
        pixel_height: u64,
    },
    /// Sends a signal to the program.
    Signal {
        /// Its name, with or without `SIG`.
        #[serde(default)]
        name: String,
    },
    /// The client's input has ended.
    Eof,
    /// A message of a newer client.
    #[serde(other)]
    Unknown,
}

/// A control message of which only the form is known: it is a JSON object.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Control(pub(crate) Value);

impl Control {
    /// Reads the payload of a chunk.
    ///
    /// # Errors
    /// When it is no JSON object.
    pub fn parse(message: &[u8]) -> Result<Self, Malformed> {
        object(message).map(Self)
    }

    /// Returns the message's type.
    pub fn name(&self) -> Option<&str> {
        self.0.get("type")?.as_str()
    }

    /// Returns the size in the message, if it has one that a terminal can have.
    pub fn size(&self) -> Option<Size> {
        Size::from_message(&self.0)
    }

    /// Reads the message as one of a sender; `None` when it has the wrong form.
    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        T::deserialize(&self.0).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_refusals_are_those_of_the_schema() {
        for code in [
            RefusalCode::Forbidden,
            RefusalCode::MalformedNegotiation,
            RefusalCode::UnknownBackend,
            RefusalCode::AllocateFailed,
            RefusalCode::TooManySessions,
            RefusalCode::TooManyConnections,
            RefusalCode::NoSuchSession,
            RefusalCode::Internal,
        ] {
            assert_eq!(serde_json::to_value(code).expect("JSON"), code.name());
        }
    }

    #[test]
    fn a_negotiation_says_what_is_wanted_or_which_field_is_wrong() {
        let ask = r#"{
            "carriage": "raw", "backend": "local", "cmd": ["sh", "-c", "x"], "cwd": "/",
            "env": {"A": "b"}, "token": "t", "detached": true, "container": "c1", "port": 22,
            "tty": {"term": "vt100", "cols": 100, "rows": 30, "pixel_width": 5, "pixel_height": 70000,
                    "modes": {"ECHO": 0, "ICANON": true}, "of_another_version": 1},
            "of_another_version": [1]
        }"#;
        let wanted = Negotiation::parse(ask.as_bytes()).expect("fine");
        assert_eq!((wanted.cmd.len(), wanted.env["A"].as_str(), wanted.detached), (3, "b", true));
        let tty = wanted.tty.clone().expect("a terminal");
        let size = Size { cols: 100, rows: 30, pixel_width: 5, pixel_height: u16::MAX };
        assert_eq!((tty.size, tty.answers), (Some(size), true));
        assert_eq!(tty.modes, BTreeMap::from([("ECHO".to_owned(), 0), ("ICANON".to_owned(), 1)]));
        assert_eq!((wanted.container.as_deref(), wanted.port), (Some("c1"), Some(22)));
        let written = serde_json::to_vec(&wanted).expect("JSON");
        assert_eq!(Negotiation::parse(&written), Ok(wanted), "there and back");

        let nulls = r#"{"carriage": null, "backend": null, "cmd": null, "env": null, "tty": null,
            "detached": null, "token": null, "proof": null, "port": null}"#;
        for least in ["{}", nulls] {
            assert_eq!(Negotiation::parse(least.as_bytes()), Ok(Negotiation::default()), "{least}");
        }
        let tty = r#"{"tty": {"modes": null, "answers": null, "term": null}}"#;
        let tty = Negotiation::parse(tty.as_bytes()).expect("fine").tty;
        assert_eq!(tty, Some(Tty::default()));
        for (wrong, error) in [
            ("[]", "not an object"),
            (r#"{"carriage": "boat"}"#, r#"there is no carriage "boat": it is "raw""#),
            (r#"{"carriage": 1}"#, r#""carriage" is a text, and not 1"#),
            (r#"{"backend": 1}"#, r#""backend" is a text, and not 1"#),
            (r#"{"cmd": "ls"}"#, r#""cmd" is a list of texts"#),
            (r#"{"cmd": ["a\u0000b"]}"#, r#""cmd" has a NUL in it, which no argument can have"#),
            (r#"{"env": {"A=B": "c"}}"#, r#""env" has names and texts"#),
            (r#"{"env": []}"#, r#""env" has names and texts"#),
            (r#"{"cwd": "a\u0000"}"#, r#""cwd" has a NUL in it"#),
            (r#"{"tty": 5}"#, r#""tty" is an object or null"#),
            (r#"{"tty": {"cols": 0, "rows": 5}}"#, r#""tty" has cols and rows, from 1 to 10000"#),
            (r#"{"tty": {"cols": 70000, "rows": 5}}"#, r#""tty" has cols and rows, from 1 to 10000"#),
            (r#"{"tty": {"rows": 5}}"#, r#""tty" has cols and rows, from 1 to 10000"#),
            (r#"{"tty": {"cols": null}}"#, r#""tty" has cols and rows, from 1 to 10000"#),
            (r#"{"tty": {"answers": "no"}}"#, r#""answers" is true or false, and not "no""#),
            (r#"{"tty": {"term": 5}}"#, r#""term" is a text, and not 5"#),
            (r#"{"tty": {"modes": {"VINTR": 300}}}"#, r#""modes" has numbers up to 255"#),
            (r#"{"tty": {"modes": []}}"#, r#""modes" is an object"#),
            (r#"{"token": 5}"#, r#""token" is a text, and not 5"#),
            (r#"{"name": ["n"]}"#, r#""name" is a text, and not a list"#),
            (r#"{"detached": "yes"}"#, r#""detached" is true or false, and not "yes""#),
            (r#"{"host": {}}"#, r#""host" is a text, and not an object"#),
            (r#"{"port": "22"}"#, r#""port" is a number from 0 up, and not "22""#),
        ] {
            let found = Negotiation::parse(wrong.as_bytes()).expect_err("it makes no sense");
            assert_eq!(found.to_string(), format!("malformed JSON: {error}"), "{wrong}");
        }
    }
}
