//! A client of the broker: one question at a time.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::msgpack::Value;
use super::{frame, greet, read_frame, socket};
use crate::door::is_trusted;

/// How long the broker may take to answer.
const ANSWER: Duration = Duration::from_secs(20);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrokerError {
    /// Nobody listens.
    #[error("no broker is running: start one with tapdeck broker")]
    NotThere,
    /// It refused.
    #[error("{}", sentence(.error, .message.as_deref()))]
    Refused {
        /// The error's name.
        error: String,
        /// What the broker has to say about it.
        message: Option<String>,
    },
    /// The connection failed.
    #[error("the broker does not answer: {0}")]
    Io(#[from] io::Error),
}

/// What an error means, for people.
fn sentence(error: &str, message: Option<&str>) -> String {
    let known = match error {
        "session_not_found" => "the broker knows no such session: see tapdeck ls",
        "turn_not_found" => "the broker has no such turn, or no more: see tapdeck turns",
        "no_turn" => "the session has not completed a turn yet",
        "buffer_empty" => "nothing has been captured yet: see tapdeck capture",
        "session_disconnected" => "the session has ended, or has lost the broker",
        "sink_failed" => "it could not be delivered",
        "busy" => "the broker is busy with other deliveries: try again",
        other => return format!("the broker refuses: {}", message.unwrap_or(other)),
    };
    match message {
        Some(message) => format!("{known}: {message}"),
        None => known.to_owned(),
    }
}

/// A connection to the broker.
#[derive(Debug)]
pub struct Asked {
    stream: UnixStream,
    next: u64,
}

impl Asked {
    /// Connects to the broker of this user.
    ///
    /// # Errors
    /// When there is none, or it is somebody else's.
    pub fn connect() -> Result<Self, BrokerError> {
        let mut stream = match UnixStream::connect(socket()?) {
            Ok(stream) => stream,
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                return Err(BrokerError::NotThere);
            }
            Err(e) => return Err(e.into()),
        };
        if !is_trusted(&stream) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is another user's").into());
        }
        stream.set_read_timeout(Some(ANSWER))?;
        stream.set_write_timeout(Some(ANSWER))?;
        greet(&mut stream, "client")?;
        Ok(Self { stream, next: 1 })
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// When it is refused, or nothing comes.
    pub fn ask<const N: usize>(
        &mut self,
        kind: &str,
        fields: [(&str, Value); N],
    ) -> Result<Value, BrokerError> {
        let id = self.next;
        self.next += 1;
        let mut message = vec![("type".to_owned(), kind.into()), ("id".to_owned(), Value::Uint(id))];
        message.extend(fields.into_iter().map(|(k, v)| (k.to_owned(), v)));
        self.stream.write_all(&frame(&Value::Map(message)))?;
        loop {
            let answer = read_frame(&mut self.stream)?;
            if answer.get("id").and_then(Value::as_u64) != Some(id) {
                continue;
            }
            return match answer.get("status").and_then(Value::as_str) {
                Some("ok") => Ok(answer),
                _ => {
                    let error = answer.get("error").and_then(Value::as_str).unwrap_or("malformed");
                    let message = answer.get("message").and_then(Value::as_str).map(str::to_owned);
                    Err(BrokerError::Refused { error: error.to_owned(), message })
                }
            };
        }
    }
}
