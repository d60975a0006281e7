//! Clients of a live session: [`Bus`] asks and listens in text, [`Attachment`] takes the terminal
//! itself.

use std::io::{self, Read};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use tapdeck_core::Exit;
use tapdeck_host::backend::NewHost;
use tapdeck_host::{Clock, signals};
use tapdeck_proto::tty::Control;

pub use crate::conn::Conn;
use crate::door::{Address, is_trusted};
use crate::live::Queue;
use crate::wire::{self, WireError};

mod ask;
mod attachment;
mod bus;
mod list;
#[cfg(feature = "mcp")]
mod name;
mod program;
mod wait;

pub use ask::{AskOutcome, Asked, answer, ask, explain, submit, turns};
#[cfg(feature = "mcp")]
pub(crate) use ask::{Asking, Looked, is_closed, release};
pub use attachment::{Attach, Attachment, Incoming};
pub use bus::{Bus, Frame, Hello};
pub use list::{
    ANSWER, Described, FindError, Said, about, alive, connect_to, connect_to_watch, connect_within,
    describe_all, find,
};
#[cfg(feature = "mcp")]
pub(crate) use list::{has_ended, pick};
#[cfg(feature = "mcp")]
pub(crate) use name::name_on_bus;
pub use program::RemoteProgram;
pub use tapdeck_core::turns::Choice;
pub use tapdeck_proto::bus::Role;
pub use wait::{Condition, Met, RowsFrom, Wait, WaitError};

/// How long a session may take to accept a client.
const CONNECT: Duration = Duration::from_secs(5);

/// Why a client could not do what it wanted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No server listens there.
    #[error("no server listens at {0}")]
    NotListening(Address),
    /// The server belongs to another user.
    #[error("{0} belongs to another user")]
    NotOurs(Address),
    /// The session refused.
    #[error("refused: {0}")]
    Denied(String),
    /// The server's host shows its key for the first time, and no user has confirmed it.
    #[error("{} is not known yet; its fingerprint is {}", .0.name, .0.fingerprint)]
    NewHost(NewHost),
    /// The server refused to open a session.
    #[error("refused: {message} ({error})")]
    Refused {
        /// A word for programs.
        error: String,
        /// A sentence for people.
        message: String,
        /// What a shell would say of a program that did not start.
        code: Option<i32>,
    },
    /// The session does not answer.
    #[error("the session did not answer within {} s", .0.as_secs())]
    Late(Duration),
    /// The session has ended the conversation.
    #[error("the session has ended the connection")]
    Ended,
    /// What cannot be sent.
    #[error("this cannot be sent: {0}")]
    Unfit(&'static str),
    /// What came makes no sense.
    #[error("the session's answer makes no sense: {0}")]
    Nonsense(String),
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
}

#[cfg(feature = "net")]
use crate::net::proof::credentials;

/// Returns the token and the proof to put into a negotiation. Only networks have proofs.
#[cfg(not(feature = "net"))]
fn credentials(_: &Conn, token: Option<&str>) -> Result<(Option<String>, Option<String>), ClientError> {
    Ok((token.map(str::to_owned), None))
}

/// Sends a negotiation and waits for the answer. Returns the first message, which should be
/// `opened`, and the bytes behind it. The connection is non-blocking from here on.
fn handshake(
    conn: &mut Conn,
    request: &impl Serialize,
    at_most: Duration,
) -> Result<(Control, Vec<u8>), ClientError> {
    conn.set_nonblocking(true)?;
    let mut queue = Queue::default();
    queue.push(wire::framed(request));
    let mut inbox = Vec::new();
    let clock = Clock::start();
    loop {
        // A server that refuses before it has read everything has sent its refusal.
        match queue.flush(conn) {
            Err(e) if matches!(e.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {
                queue = Queue::default();
            }
            other => other?,
        }
        match wire::take_answer(&mut inbox) {
            Ok(Some(chunk)) => {
                let opened = Control::parse(&chunk.payload);
                return opened.map(|o| (o, inbox)).map_err(|e| ClientError::Nonsense(e.to_string()));
            }
            Ok(None) => {}
            Err(WireError::Refused { error, message, code }) => {
                return Err(ClientError::Refused { error, message, code });
            }
            Err(e) => return Err(ClientError::Nonsense(e.to_string())),
        }
        let mut flags = PollFlags::IN;
        flags.set(PollFlags::OUT, !queue.is_empty() || conn.has_unsent());
        let mut fds = [PollFd::new(&*conn, flags)];
        // A connection that is kept up from here wakes us for reasons of its own, too.
        let left = at_most.saturating_sub(clock.elapsed());
        let limit =
            Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: i64::from(left.subsec_nanos()) };
        if !conn.has_more() && poll(&mut fds, Some(&limit)).map_err(io::Error::from)? == 0 {
            return Err(ClientError::Late(at_most));
        }
        let mut piece = [0; 4096];
        match conn.read(&mut piece) {
            Ok(0) => return Err(ClientError::Ended),
            Ok(n) => inbox.extend_from_slice(&piece[..n]),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Returns how a program ended, from what the session says of it.
pub fn exit_of(exit: &tapdeck_proto::bus::Exit) -> Exit {
    match exit.signal.as_deref().map(|name| signals::number(name).or_else(|| name.parse().ok())) {
        Some(signal) => Exit::Signal(signal.unwrap_or(exit.code - 128)),
        None => Exit::Code(exit.code),
    }
}

/// Connects to an address.
pub(crate) fn connect(address: &Address) -> Result<Conn, ClientError> {
    let failed = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            ClientError::NotListening(address.clone())
        }
        _ => ClientError::Io(e),
    };
    match address {
        Address::Unix(path) => {
            let stream = UnixStream::connect(path).map_err(failed)?;
            if !is_trusted(&stream) {
                return Err(ClientError::NotOurs(address.clone()));
            }
            Ok(Conn::Unix(stream))
        }
        Address::Tcp(tcp) => {
            let stream = TcpStream::connect_timeout(tcp, CONNECT).map_err(failed)?;
            // Keys and their echoes are small, and nothing is gained by waiting for more.
            let _ = stream.set_nodelay(true);
            Ok(Conn::Tcp(stream))
        }
    }
}
