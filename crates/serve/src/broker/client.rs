//! A client of the broker: one request at a time.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use tapdeck_proto::broker::{Answer, ErrorCode, Request, Role};

use super::{greet, read_frame, socket};
use crate::door::is_trusted;

/// How long the broker may take to answer.
const ANSWER: Duration = Duration::from_secs(20);

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrokerError {
    /// No broker listens.
    #[error("no broker is running")]
    NotThere,
    /// It refused.
    #[error("{}", sentence(.error, .message.as_deref()))]
    Refused {
        /// A word for programs.
        error: ErrorCode,
        /// A sentence for people.
        message: Option<String>,
    },
    /// The connection failed.
    #[error("the broker does not answer: {0}")]
    Io(#[from] io::Error),
}

/// Explains an error to people.
fn sentence(error: &ErrorCode, message: Option<&str>) -> String {
    let known = match error {
        ErrorCode::SessionNotFound => "the broker knows no such session",
        ErrorCode::TurnNotFound => "the broker has no such turn, or no more",
        ErrorCode::NoTurn => "the session has not completed a turn yet",
        ErrorCode::BufferEmpty => "nothing has been captured yet",
        ErrorCode::SessionDisconnected => "the session has ended, or has lost the broker",
        ErrorCode::SinkFailed => "it could not be delivered",
        ErrorCode::Busy => "the broker is busy with other deliveries: try again",
        other => return format!("the broker refuses: {}", message.unwrap_or(other.name())),
    };
    match message {
        Some(message) => format!("{known}: {message}"),
        None => known.to_owned(),
    }
}

/// A connection to the broker.
#[derive(Debug)]
pub struct BrokerClient {
    stream: UnixStream,
    next: u64,
}

impl BrokerClient {
    /// Connects to the broker of this user.
    ///
    /// # Errors
    /// When no broker runs, or it is another user's.
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
        greet(&mut stream, Role::Client)?;
        Ok(Self { stream, next: 1 })
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// When the broker refuses, or does not answer in time.
    pub fn ask(&mut self, request: &Request) -> Result<Answer, BrokerError> {
        let id = self.next;
        self.next += 1;
        self.stream.write_all(&request.frame(id))?;
        loop {
            let response = read_frame(&mut self.stream)?.response().filter(|response| response.id == id);
            if let Some(response) = response {
                let refused = |refusal: tapdeck_proto::broker::Refusal| BrokerError::Refused {
                    error: refusal.code,
                    message: refusal.message,
                };
                return response.outcome.map_err(refused);
            }
        }
    }
}
