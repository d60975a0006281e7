//! What a session pushes to subscribers. [`Event`] is the part of a session's log that clients are
//! told of beside the output, in the words of the protocol.

use serde::{Deserialize, Serialize};

use super::{AgentState, Frame, RecordingState, json};

/// What a session sends without being asked.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Push {
    /// The program's output, byte by byte.
    Out(Vec<u8>),
    /// The screen.
    Frame(Frame),
    /// Something has happened.
    Event(Event),
}

impl Push {
    /// Reads a frame. `Ok(None)` when it is not pushed, or by a session that knows more.
    ///
    /// # Errors
    /// When the payload cannot be read.
    pub fn parse(verb: &str, payload: &str) -> Result<Option<Self>, serde_json::Error> {
        Ok(Some(match verb {
            "OUT" => Push::Out(read_output(payload)?),
            "FRAME" => Push::Frame(serde_json::from_str(payload)?),
            "EVENT" => Push::Event(serde_json::from_str(payload)?),
            _ => return Ok(None),
        }))
    }

    /// Returns the verb.
    pub fn verb(&self) -> &'static str {
        match self {
            Push::Out(_) => "OUT",
            Push::Frame(_) => "FRAME",
            Push::Event(_) => "EVENT",
        }
    }

    /// Writes the payload.
    pub fn payload(&self) -> String {
        match self {
            Push::Out(bytes) => write_output(bytes),
            Push::Frame(frame) => json(frame),
            Push::Event(event) => json(event),
        }
    }
}

/// Reads output: a JSON string with a character for each byte.
///
/// # Errors
/// When it is no JSON string.
pub fn read_output(payload: &str) -> Result<Vec<u8>, serde_json::Error> {
    let text: String = serde_json::from_str(payload)?;
    Ok(text.chars().filter_map(|c| u8::try_from(u32::from(c)).ok()).collect())
}

/// Writes output as a JSON string with a character for each byte.
pub fn write_output(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + bytes.len() / 4 + 2);
    out.push('"');
    for &b in bytes {
        match b {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0..0x20 | 0x7f..0xa0 => {
                const DIGITS: &[u8; 16] = b"0123456789abcdef";
                out.push_str("\\u00");
                out.push(char::from(DIGITS[usize::from(b >> 4)]));
                out.push(char::from(DIGITS[usize::from(b & 15)]));
            }
            _ => out.push(char::from(b)),
        }
    }
    out.push('"');
    out
}

/// Something that has happened in a session: the payload of `EVENT`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "name", rename_all = "UPPERCASE")]
#[non_exhaustive]
pub enum Event {
    /// A program inside the host process waits for a line of input.
    Wait,
    /// The bell has rung.
    Bell,
    /// The stick has changed hands.
    Driver {
        /// The client that drives now.
        who: Option<String>,
        /// The same: an older name of the field.
        driver: Option<String>,
        /// The client that drove before.
        from: Option<String>,
        /// Why it changed.
        why: Why,
        /// The number of the change.
        fence: u64,
    },
    /// Output was dropped because the client read too slowly.
    Gap {
        /// The first byte that is missing.
        from: u64,
        /// The byte behind the last one.
        to: u64,
        /// How many they are.
        bytes: u64,
    },
    /// The program's prompt was seen for the first time.
    Ready {
        /// The offset in the program's output.
        seq: u64,
    },
    /// A turn has ended.
    Turn(Turn),
    /// The state of the program has changed.
    State(Judged),
    /// A recording of the session has failed: output is missing from it.
    Recording {
        /// Its path.
        path: String,
        /// How it is doing.
        state: RecordingState,
        /// What went wrong.
        error: Option<String>,
    },
    /// The program has ended. The subscription is over.
    Closed {
        /// How it ended.
        exit: Exit,
    },
    /// An event that this version does not know.
    #[serde(other)]
    Unknown,
}

/// Why the stick changed hands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Why {
    /// It was free, and a client claimed it.
    Claimed,
    /// A client took it from another.
    Taken,
    /// The holder gave it up.
    Released,
    /// The holder left.
    Left,
    /// The holder's lease ran out.
    Expired,
    /// A reason that this version does not know.
    #[serde(other)]
    Other,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Exit {
    /// The exit code, 128 and more for a signal.
    pub code: i32,
    /// The signal that ended it, by name without `SIG`, or by number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// What went wrong with the session's recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording_error: Option<String>,
}

/// A turn: what was asked and answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Turn {
    /// `SESSION:NUMBER`.
    pub turn_id: String,
    /// When it ended, in milliseconds since 1970.
    pub timestamp: u64,
    /// How many bytes the program wrote.
    pub byte_length: usize,
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// Whether the answer was longer than is kept.
    pub truncated: bool,
    /// Its text, where that was asked for.
    #[serde(flatten)]
    pub detail: Option<TurnDetail>,
}

/// All there is to say about a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnDetail {
    /// The answer as it was shown.
    pub text: String,
    /// What was asked.
    pub input: String,
    /// Where the answer begins in the output.
    pub start_byte: u64,
    /// Where it ends.
    pub end_byte: u64,
    /// When the question was submitted, in nanoseconds since 1970.
    pub start_ns: u64,
    /// When the answer ended.
    pub end_ns: u64,
    /// What told of its end.
    pub evidence: String,
    /// What the answer is made of, where that was asked for and the program itself writes it down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Vec<Part>>,
    /// The answer as the program wrote it, in base64, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
}

/// A part of an answer, as the program itself wrote it down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Part {
    /// Text.
    Text {
        /// The text, in Markdown if the program writes that.
        text: String,
    },
    /// A tool that the program ran.
    Tool {
        /// The name of the tool.
        tool: String,
        /// What it worked on: a command, a file.
        about: String,
        /// What it returned, once it has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<String>,
        /// Whether it failed, or was denied.
        #[serde(default, skip_serializing_if = "crate::fields::is_false")]
        failed: bool,
    },
}

/// What the program is doing, and the evidence for it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Judged {
    /// What it is doing.
    pub state: AgentState,
    /// The kind of evidence.
    pub evidence: String,
    /// The rule that says so.
    pub rule: String,
    /// The rows that it rests on.
    pub rows: Vec<JudgedRow>,
    /// Since when, in nanoseconds since 1970.
    pub since_ns: u64,
    /// Evidence that says otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<Contradiction>,
}

/// Evidence that speaks against a judgement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Contradiction {
    /// What the program would be doing.
    pub state: AgentState,
    /// The kind of evidence.
    pub evidence: String,
    /// The rule that says so.
    pub rule: String,
}

/// A row of the screen that a judgement rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JudgedRow {
    /// Its number on the screen.
    pub row: u16,
    /// Its text.
    pub text: String,
}

/// A change of state as hooks get it: the event, and the session that it happened in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateChange {
    /// Always `STATE`.
    pub name: String,
    /// The session's id.
    pub session: String,
    /// The session's name.
    pub session_name: Option<String>,
    /// The state.
    #[serde(flatten)]
    pub judged: Judged,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_comes_back_as_a_character() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(read_output(&write_output(&bytes)).expect("JSON"), bytes);
        assert!(!write_output(&bytes).contains('\n'), "one frame stays one line");
    }
}
