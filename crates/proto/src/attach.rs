//! The attach wire: control messages between a live session and a terminal that shows and drives
//! it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bus::{AgentState, Exit, NO_SIZE};
use crate::fields::{self, is_false};
use crate::tty::{Carriage, Control, Kinds, Malformed, Tty, tty};

/// A client's request to be attached to a session that runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Join {
    /// How the output bytes are sent.
    pub carriage: Carriage,
    /// Always `attach`; a session checks it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// The client's credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Proof that the client has a token, instead of the token, at a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
    /// Name of the client, for display.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The session to attach to, at a server with several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Whether the client is view-only.
    #[serde(deserialize_with = "fields::or_default", skip_serializing_if = "is_false")]
    pub read_only: bool,
    /// Whether the client takes the stick from its holder.
    #[serde(deserialize_with = "fields::or_default", skip_serializing_if = "is_false")]
    pub takeover: bool,
    /// Whether the client, and other people with the same token, type without asking each other
    /// for the stick.
    #[serde(deserialize_with = "fields::or_default", skip_serializing_if = "is_false")]
    pub share: bool,
    /// Whether the client does not claim the stick, but may take it later.
    #[serde(deserialize_with = "fields::or_default", skip_serializing_if = "is_false")]
    pub watch: bool,
    /// Whether the dump draws the screen without the scrollback.
    #[serde(deserialize_with = "fields::or_default", skip_serializing_if = "is_false")]
    pub screen_only: bool,
    /// Whether to send `rows`: where the rows of the dump end.
    #[serde(deserialize_with = "fields::or_default", skip_serializing_if = "is_false")]
    pub rows: bool,
    /// The client's own terminal. One without a size leaves the session's size as it is.
    #[serde(deserialize_with = "tty", skip_serializing_if = "Option::is_none")]
    pub tty: Option<Tty>,
}

impl Join {
    const KINDS: Kinds = Kinds {
        texts: &["carriage", "backend", "token", "proof", "name", "session"],
        flags: &["read_only", "takeover", "share", "watch", "screen_only", "rows"],
        numbers: &[],
    };

    /// Reads a request. Fields that are left out or `null` have their defaults, and unknown fields
    /// are ignored.
    ///
    /// # Errors
    /// When it is no JSON object, or a field has the wrong kind.
    pub fn parse(message: &[u8]) -> Result<Self, Malformed> {
        Self::KINDS.read(message)
    }

    /// Returns the size of the client's terminal, if it says one.
    pub fn size(&self) -> Option<Size> {
        self.tty.as_ref().and_then(|tty| tty.size)
    }
}

/// What a session tells an attached client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Said {
    /// The client is attached. `dump` bytes of output follow that draw the screen.
    Opened(Opened),
    /// Where rows of the dump end, and the byte of the output that wrote to each last.
    Rows {
        /// Each as `[end, offset]`.
        rows: Vec<(usize, u64)>,
    },
    /// The dump is over. The stream follows.
    Live,
    /// The session's terminal was resized.
    #[expect(missing_docs, reason = "the names say it")]
    Resize { cols: u16, rows: u16 },
    /// The stick has changed hands.
    Driver {
        /// The client that drives now.
        driver: Option<String>,
        /// Whether that is this client.
        #[serde(default)]
        you: bool,
    },
    /// The state of the program has changed.
    State {
        /// What it does.
        state: AgentState,
        /// The rule that says so.
        #[serde(default)]
        rule: String,
    },
    /// Input was refused.
    Denied {
        /// The client that drives.
        driver: Option<String>,
        /// Why.
        #[serde(default)]
        error: String,
    },
    /// Output was dropped. `dump` bytes follow that redraw the screen, then `live`.
    Gap(Gap),
    /// A message was refused.
    Error {
        /// The type of the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        about: Option<String>,
        /// Why.
        message: String,
    },
    /// The client's `mark` was added to the recording.
    Marked,
    /// The recordings of the session were paused, or go on. A client is told when it joins, too.
    Paused {
        /// Whether they are paused.
        paused: bool,
        /// The client that did so.
        #[serde(default)]
        by: String,
    },
    /// A recording of the session has failed: output is missing from it.
    Recording {
        /// Its path.
        path: String,
        /// What went wrong.
        error: String,
    },
    /// The program has ended. The connection ends, too.
    Exit(Exit),
    /// A message that this version does not know.
    #[serde(other)]
    Unknown,
}

/// A session to which a client is attached.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Opened {
    /// The session's id.
    pub session: String,
    /// The name that the client got.
    pub name: String,
    /// The width of the session's terminal.
    pub cols: u16,
    /// Its height.
    pub rows: u16,
    /// The client that drives.
    pub driver: Option<String>,
    /// Whether that is this client.
    pub you: bool,
    /// Whether the client may only watch.
    pub read_only: bool,
    /// Where the stream goes on behind the dump, as a byte of the output.
    pub offset: u64,
    /// The length of the dump.
    pub dump: usize,
    /// What the program is doing.
    pub state: AgentState,
}

/// Output that was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gap {
    /// The first byte that is missing.
    pub from: u64,
    /// The byte behind the last one.
    pub to: u64,
    /// How many they are.
    pub bytes: u64,
    /// The width of the session's terminal.
    pub cols: u16,
    /// Its height.
    pub rows: u16,
    /// The length of the dump.
    pub dump: usize,
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Size {
    /// Columns, from 1 to 10000.
    pub cols: u16,
    /// Rows, from 1 to 10000.
    pub rows: u16,
    /// The width in pixels, 0 if unknown.
    #[serde(default)]
    pub pixel_width: u16,
    /// The height in pixels.
    #[serde(default)]
    pub pixel_height: u16,
}

impl Size {
    /// Reads a size out of a message; `None` when it has none.
    pub(crate) fn from_message(message: &Value) -> Option<Self> {
        let number = |key: &str| message.get(key)?.as_u64().and_then(|n| u16::try_from(n).ok());
        let side = |key: &str| number(key).filter(|n| (1..=10_000).contains(n));
        let pixels = |key: &str| {
            let n = message.get(key).and_then(Value::as_u64);
            n.map_or(0, |n| u16::try_from(n).unwrap_or(u16::MAX))
        };
        let (pixel_width, pixel_height) = (pixels("pixel_width"), pixels("pixel_height"));
        Some(Self { cols: side("cols")?, rows: side("rows")?, pixel_width, pixel_height })
    }
}

/// A size that no terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{NO_SIZE}")]
pub struct NoSize;

/// What an attached client asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Asked {
    /// Takes the stick.
    Take,
    /// Releases the stick.
    Release,
    /// Sets the size of the client's terminal.
    Resize(Size),
    /// Sends a signal.
    Signal {
        /// Its name.
        name: String,
    },
    /// Marks this moment in the recordings of the session; the answer is `marked`.
    Mark {
        /// A name for the moment; may be empty.
        label: String,
    },
    /// Pauses the recordings of the session, or lets them go on; the answer is `paused`.
    Pause {
        /// Which of the two; left out for the one that they do not do now.
        #[serde(skip_serializing_if = "Option::is_none")]
        pause: Option<bool>,
    },
    /// Ends the program: SIGTERM, then SIGHUP, then SIGKILL.
    Kill,
}

impl Asked {
    /// Reads a message; `Ok(None)` for one that this version does not know.
    ///
    /// # Errors
    /// When a `resize` has no size in it.
    pub fn from_message(message: &Control) -> Result<Option<Self>, NoSize> {
        let text = |key: &str| message.0.get(key).and_then(Value::as_str).unwrap_or_default();
        Ok(Some(match text("type") {
            "take" => Asked::Take,
            "release" => Asked::Release,
            "resize" => Asked::Resize(message.size().ok_or(NoSize)?),
            "signal" => Asked::Signal { name: text("name").to_owned() },
            "mark" => Asked::Mark { label: text("label").to_owned() },
            "pause" => Asked::Pause { pause: message.0.get("pause").and_then(Value::as_bool) },
            "kill" => Asked::Kill,
            _ => return Ok(None),
        }))
    }

    /// Returns the message's type.
    pub fn name(&self) -> &'static str {
        match self {
            Asked::Take => "take",
            Asked::Release => "release",
            Asked::Resize(_) => "resize",
            Asked::Signal { .. } => "signal",
            Asked::Mark { .. } => "mark",
            Asked::Pause { .. } => "pause",
            Asked::Kill => "kill",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_the_wrong_kind_is_refused_by_name() {
        let ask = r#"{"backend": "attach", "session": "build", "read_only": true, "takeover": null,
            "tty": {"cols": 100, "rows": 30}, "cmd": "ls", "of_another_version": [1]}"#;
        let join = Join::parse(ask.as_bytes()).expect("fine");
        assert_eq!((join.session.as_deref(), join.read_only, join.takeover), (Some("build"), true, false));
        assert_eq!(join.size().map(|size| (size.cols, size.rows)), Some((100, 30)));
        let written = serde_json::to_vec(&join).expect("JSON");
        assert_eq!(Join::parse(&written), Ok(join), "there and back");
        let unsized_tty = Join::parse(br#"{"tty": {"term": "vt100"}}"#).expect("fine");
        assert_eq!(unsized_tty.size(), None);
        for (key, value) in [
            ("read_only", "\"yes\""),
            ("read_only", "1"),
            ("takeover", "\"no\""),
            ("watch", "0"),
            ("screen_only", "[]"),
            ("rows", "24"),
            ("session", "5"),
            ("session", r#""a\u0000b""#),
            ("name", "{}"),
            ("token", r#"["t"]"#),
            ("carriage", "\"boat\""),
            ("tty", "true"),
            ("tty", r#"{"cols": 70000, "rows": 24}"#),
            ("tty", r#"{"cols": -1, "rows": 24}"#),
        ] {
            let ask = format!(r#"{{"backend": "attach", "{key}": {value}}}"#);
            let error = Join::parse(ask.as_bytes()).expect_err("it makes no sense").to_string();
            assert!(error.contains(key), "{ask}: {error}");
        }
    }
}
