//! The broker: turns across sessions. Wrappers report their sessions and each completed turn.
//! Clients list them, capture one, and have it delivered to another session, a file or the
//! clipboard. The messages are in [`tapdeck_proto::broker`].

use std::io::{self, Read, Write};
use std::path::PathBuf;

use tapdeck_proto::broker::{ErrorCode, Hello, MAX_FRAME, Message, Role};

mod client;
mod ledger;
mod server;
mod wrapper;

pub use client::{BrokerClient, BrokerError};
pub use ledger::{Limits, Sink};
pub use server::Broker;
pub(crate) use wrapper::Wrapper;

/// Returns where the broker listens.
///
/// # Errors
/// Without `XDG_RUNTIME_DIR` there is no folder that only the user can reach.
pub(crate) fn socket() -> io::Result<PathBuf> {
    let folder = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|p| p.is_absolute());
    let none = || {
        let why = "XDG_RUNTIME_DIR is not set: the broker needs a folder that is this user's alone";
        io::Error::new(io::ErrorKind::NotFound, why)
    };
    Ok(folder.ok_or_else(none)?.join("tapdeck").join("broker.sock"))
}

/// Reads a frame, waiting for it.
fn read_frame(from: &mut impl Read) -> io::Result<Message> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    if length > MAX_FRAME {
        return Err(wrong(format!("a frame of {length} bytes")));
    }
    let mut body = Vec::new();
    // Grows with what comes, not with what the length claims.
    from.take(length as u64).read_to_end(&mut body)?;
    if body.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Message::decode(&body).map_err(|e| wrong(e.to_string()))
}

/// Greets the broker as a peer of this role.
fn greet(stream: &mut (impl Read + Write), role: Role) -> io::Result<()> {
    stream.write_all(&Hello { role }.frame())?;
    let why = match read_frame(stream)?.response().map(|response| response.outcome) {
        Some(Ok(_)) => return Ok(()),
        Some(Err(refusal)) => refusal.code,
        None => ErrorCode::Malformed,
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why.to_string()))
}
