//! The broker: turns across sessions. Wrappers tell it of their sessions and of each turn that is over; clients list them,
//! capture one, and have it delivered to another session, a file or the clipboard.
//!
//! A frame is a length (`u32`, big-endian) and a MessagePack map with `type` and `id`. The first is `hello`.

use std::io::{self, Read, Write};
use std::path::PathBuf;

mod client;
mod desk;
pub mod msgpack;
mod server;
mod wrapper;

pub use client::{Asked, BrokerError};
pub use desk::{Limits, Sink};
pub use server::{Broker, WriteSink};
pub(crate) use wrapper::Wrapper;

use msgpack::Value;

/// The protocol's version.
const VERSION: u64 = 1;
/// The longest frame.
const MAX_FRAME: usize = 16 << 20;

/// Where the broker listens.
///
/// # Errors
/// Without `XDG_RUNTIME_DIR` there is no place that is the user's alone.
pub fn socket() -> io::Result<PathBuf> {
    let folder = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|p| p.is_absolute());
    let none = || {
        let why = "XDG_RUNTIME_DIR is not set: the broker needs a folder that is this user's alone";
        io::Error::new(io::ErrorKind::NotFound, why)
    };
    Ok(folder.ok_or_else(none)?.join("tapdeck").join("broker.sock"))
}

/// A message as a frame.
fn frame(message: &Value) -> Vec<u8> {
    let body = message.encode();
    let mut out = u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes().to_vec();
    out.extend_from_slice(&body);
    out
}

/// Reads a frame, waiting for it.
fn read_frame(from: &mut impl Read) -> io::Result<Value> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    if length > MAX_FRAME {
        return Err(wrong(format!("a frame of {length} bytes")));
    }
    let mut body = Vec::new();
    // As much as really comes, whatever the length says.
    from.take(length as u64).read_to_end(&mut body)?;
    if body.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Value::decode(&body).map_err(|e| wrong(e.to_string()))
}

/// Says who this is, and hears whether that is welcome.
fn greet(stream: &mut (impl Read + Write), role: &str) -> io::Result<()> {
    let hello = msgpack::map([
        ("type", "hello".into()),
        ("id", Value::Uint(0)),
        ("version", Value::Uint(VERSION)),
        ("role", role.into()),
    ]);
    stream.write_all(&frame(&hello))?;
    let answer = read_frame(stream)?;
    match answer.get("status").and_then(Value::as_str) {
        Some("ok") => Ok(()),
        _ => {
            let why = answer.get("error").and_then(Value::as_str).unwrap_or("no reason was given");
            Err(io::Error::new(io::ErrorKind::PermissionDenied, why.to_owned()))
        }
    }
}
