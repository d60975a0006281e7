//! Messages of the tty wire over a network: refusals, and control messages in both directions.
//!
//! A refusal is a length-prefixed JSON object. Control messages are JSON objects in chunks, with a
//! `type`. Receivers ignore types that they do not know.

use serde::{Deserialize, Serialize};

/// Why a server does not open a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The exit code by which a shell would say the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// A word for programs.
    #[serde(default = "unknown")]
    pub error: String,
    /// A sentence for people.
    #[serde(default = "unknown")]
    pub message: String,
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// A control message of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// A message of the client was wrong, or the session broke.
    Error {
        /// The type of the client's message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        about: Option<String>,
        /// A sentence for people.
        #[serde(default = "unknown")]
        message: String,
    },
    /// Nothing; it shows whether the connection still stands.
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
