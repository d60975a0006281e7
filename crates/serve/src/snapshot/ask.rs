//! The client: one notice, one answer.

use std::io;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::frames::NoFrame;
use crate::conn::Conn;
use crate::door::{Address, is_trusted};
use tapdeck_proto::snapshot::{Request, Response, Taken, WireError};

/// Why a notice was not recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// No recorder listens there.
    #[error("no recorder listens at {0}")]
    NotListening(Address),
    /// The recorder is another user's.
    #[error("{0} belongs to another user")]
    NotOurs(Address),
    /// The notice cannot be sent.
    #[error("this cannot be sent: {0}")]
    Unfit(#[source] WireError),
    /// The recorder refused.
    #[error("the recorder refused: {0}")]
    Refused(String),
    /// The answer is no message.
    #[error("the recorder's answer makes no sense: {0}")]
    Nonsense(String),
    /// The connection failed.
    #[error("the connection to the recorder failed: {0}")]
    Io(#[source] io::Error),
}

/// Sends a snapshot or an instruction to the recorder at this address, and waits for the answer at
/// most this long.
pub fn ask(address: &Address, request: &Request, within: Duration) -> Result<Taken, AskError> {
    let frame = request.to_frame().map_err(AskError::Unfit)?;
    let mut conn = connect(address)?;
    let sent = conn.write_frame(&frame, within);
    // A recorder that hangs up early may have said why.
    let answer = conn.read_frame(within, within);
    let bytes = match (answer, sent) {
        (Ok(bytes), _) => bytes,
        (Err(_), Err(e)) => return Err(AskError::Io(e)),
        (Err(NoFrame::Late { .. }), _) => {
            return Err(AskError::Io(io::Error::new(io::ErrorKind::TimedOut, "it does not answer")));
        }
        (Err(NoFrame::End | NoFrame::Half), _) => {
            return Err(AskError::Io(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "it ended without an answer",
            )));
        }
        (Err(NoFrame::Wire(e)), _) => return Err(AskError::Nonsense(e.to_string())),
        (Err(NoFrame::Io(e)), _) => return Err(AskError::Io(e)),
    };
    let id = match request {
        Request::Snapshot(snapshot) => Some(snapshot.id),
        // A new instruction gets its id from the recorder.
        Request::Instruction(instruction) => Some(instruction.id).filter(|id| *id != 0),
    };
    match Response::from_bytes(&bytes) {
        Ok(Response::Success(taken)) if id.is_none_or(|id| id == taken.id) => Ok(taken),
        Ok(Response::Success(taken)) => {
            Err(AskError::Nonsense(format!("it answers for number {} instead", taken.id)))
        }
        Ok(Response::Failure(why)) => Err(AskError::Refused(why)),
        Err(e) => Err(AskError::Nonsense(e.to_string())),
    }
}

fn connect(address: &Address) -> Result<Conn, AskError> {
    let failed = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => AskError::NotListening(address.clone()),
        _ => AskError::Io(e),
    };
    match address {
        Address::Unix(path) => {
            let stream = UnixStream::connect(path).map_err(failed)?;
            if !is_trusted(&stream) {
                return Err(AskError::NotOurs(address.clone()));
            }
            Ok(Conn::Unix(stream))
        }
        Address::Tcp(address) => TcpStream::connect(address).map(Conn::Tcp).map_err(failed),
    }
}
