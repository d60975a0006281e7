//! The attach wire: control messages between a live session and a terminal that shows and drives it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bus::{AgentState, Exit, NO_SIZE};

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
    /// The session's terminal has another size.
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
    /// The program does something else than before.
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
    /// Output was left out. `dump` bytes follow that draw the screen anew, up to `live`.
    Gap(Gap),
    /// A message was refused.
    Error {
        /// The type of the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        about: Option<String>,
        /// Why.
        message: String,
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
    /// The width in pixels, 0 when it is not known.
    #[serde(default)]
    pub pixel_width: u16,
    /// The height in pixels.
    #[serde(default)]
    pub pixel_height: u16,
}

impl Size {
    /// Reads a size out of a message; `None` when it has none.
    pub fn from_message(message: &Value) -> Option<Self> {
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

/// A size that is none.
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
    /// Gives the stick up.
    Release,
    /// Says how large the client's terminal is.
    Resize(Size),
    /// Sends a signal.
    Signal {
        /// Its name.
        name: String,
    },
}

impl Asked {
    /// Reads a message; `Ok(None)` for one that this version does not know.
    ///
    /// # Errors
    /// When a `resize` has no size in it.
    pub fn from_message(message: &Value) -> Result<Option<Self>, NoSize> {
        let text = |key: &str| message.get(key).and_then(Value::as_str).unwrap_or_default();
        Ok(Some(match text("type") {
            "take" => Asked::Take,
            "release" => Asked::Release,
            "resize" => Asked::Resize(Size::from_message(message).ok_or(NoSize)?),
            "signal" => Asked::Signal { name: text("name").to_owned() },
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
        }
    }
}
