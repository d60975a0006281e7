//! The tty wire: a terminal session as a stream of chunks.
//!
//! A client negotiates with one length-prefixed JSON object. The server refuses in the same
//! framing, or goes on in chunks of a type byte, a length and a payload. The two cannot be
//! confused: a refusal begins with a zero byte, and a server never sends standard input, whose type
//! is zero.

use serde::Serialize;
use tapdeck_host::backend::SpawnErrorKind;
use tapdeck_proto::tty::{Malformed, Refusal, RefusalCode};

mod decoder;
mod size;

pub use decoder::{Decoder, MAX_CONTROL, Piece};
pub use size::{win_size, wire_size};
pub use tapdeck_proto::tty::{Negotiation, Tty};

/// Returns the code by which a server tells its client why a program did not start: the exit code
/// that the command would have, had it been started there.
pub fn start_code(kind: SpawnErrorKind) -> i32 {
    match kind {
        SpawnErrorKind::Unreachable => 4,
        SpawnErrorKind::NotStarted => 125,
        SpawnErrorKind::NotExecutable => 126,
        SpawnErrorKind::NotFound => 127,
        SpawnErrorKind::CalledOff(signal) => 128 + signal,
    }
}

/// The longest negotiation of a client that has not shown its credential yet.
pub const MAX_NEGOTIATION: usize = 64 * 1024;
/// The longest chunk.
pub const MAX_CHUNK: usize = 16 << 20;

/// What a chunk carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkKind {
    /// Input of the program.
    Stdin,
    /// Output of the program.
    Stdout,
    /// Standard error of the program, where it is separate.
    Stderr,
    /// A JSON object about the session.
    Control,
}

impl ChunkKind {
    fn code(self) -> u8 {
        match self {
            ChunkKind::Stdin => 0,
            ChunkKind::Stdout => 1,
            ChunkKind::Stderr => 2,
            ChunkKind::Control => 3,
        }
    }
}

/// One chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// What it carries.
    pub kind: ChunkKind,
    /// The payload.
    pub payload: Vec<u8>,
}

/// Why bytes are not of this wire, or the server's refusal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The message is longer than allowed.
    #[error("a {what} of {len} bytes: at most {limit} are allowed")]
    TooLong {
        /// The kind of message.
        what: &'static str,
        /// The length that it declares.
        len: usize,
        /// The length that is allowed.
        limit: usize,
    },
    /// There is no such type of chunk.
    #[error("chunk type {0} does not exist")]
    UnknownType(u8),
    /// The message is no JSON object, or has a field of the wrong kind.
    #[error(transparent)]
    Json(#[from] Malformed),
    /// The server refuses.
    #[error("refused: {message} ({error})")]
    Refused {
        /// A word for programs.
        error: String,
        /// A sentence for people.
        message: String,
        /// The exit code by which a shell would say the same, if it could.
        code: Option<i32>,
    },
}

/// Returns the five bytes in front of a chunk's payload.
pub fn chunk_head(kind: ChunkKind, len: usize) -> [u8; 5] {
    let mut head = [kind.code(); 5];
    head[1..].copy_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes());
    head
}

/// Encodes a message as JSON. Messages have texts for keys, so that this cannot fail.
fn json(message: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(message).unwrap_or_default()
}

/// Encodes a whole control chunk.
pub fn control(message: &impl Serialize) -> Vec<u8> {
    let body = json(message);
    let mut out = chunk_head(ChunkKind::Control, body.len()).to_vec();
    out.extend_from_slice(&body);
    out
}

/// Frames a negotiation or a refusal.
pub fn framed(message: &impl Serialize) -> Vec<u8> {
    let body = json(message);
    let mut out = u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes().to_vec();
    out.extend_from_slice(&body);
    out
}

/// Frames a refusal.
pub fn refusal(error: RefusalCode, message: &str) -> Vec<u8> {
    framed(&Refusal { code: None, error: error.name().to_owned(), message: message.to_owned() })
}

/// Takes the body of a negotiation or a refusal off the front of the buffer; `None` while some of
/// it is missing.
///
/// # Errors
/// When it is longer than `limit`.
pub fn take_framed(buf: &mut Vec<u8>, limit: usize) -> Result<Option<Vec<u8>>, WireError> {
    let Some(head) = buf.first_chunk::<4>() else { return Ok(None) };
    let len = u32::from_be_bytes(*head) as usize;
    if len > limit {
        return Err(WireError::TooLong { what: "negotiation", len, limit });
    }
    let Some(body) = buf.get(4..4 + len) else { return Ok(None) };
    let body = body.to_vec();
    buf.drain(..4 + len);
    Ok(Some(body))
}

/// Takes a chunk off the front of the buffer; `None` while some of it is missing. Type 4 is an
/// older spelling of control.
///
/// # Errors
/// When there is no such type, or the chunk is longer than `limit`.
pub fn take_chunk(buf: &mut Vec<u8>, limit: usize) -> Result<Option<Chunk>, WireError> {
    let Some(head) = buf.first_chunk::<5>() else {
        return buf.first().map_or(Ok(None), |code| kind_of(*code).map(|_| None));
    };
    let kind = kind_of(head[0])?;
    let len = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    if len > limit.min(MAX_CHUNK) {
        return Err(WireError::TooLong { what: "chunk", len, limit: limit.min(MAX_CHUNK) });
    }
    let Some(body) = buf.get(5..5 + len) else { return Ok(None) };
    let payload = body.to_vec();
    buf.drain(..5 + len);
    Ok(Some(Chunk { kind, payload }))
}

fn kind_of(code: u8) -> Result<ChunkKind, WireError> {
    match code {
        0 => Ok(ChunkKind::Stdin),
        1 => Ok(ChunkKind::Stdout),
        2 => Ok(ChunkKind::Stderr),
        3 | 4 => Ok(ChunkKind::Control),
        other => Err(WireError::UnknownType(other)),
    }
}

/// Takes the server's first message off the front of the buffer; `None` while some of it is
/// missing.
///
/// # Errors
/// When the server refuses, or the bytes are not of this wire.
pub fn take_answer(buf: &mut Vec<u8>) -> Result<Option<Chunk>, WireError> {
    if buf.first() != Some(&0) {
        return take_chunk(buf, MAX_CHUNK);
    }
    let Some(body) = take_framed(buf, MAX_CHUNK)? else { return Ok(None) };
    let Refusal { code, error, message } = Refusal::parse(&body)?;
    Err(WireError::Refused { error, message, code })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tapdeck_proto::tty::ServerControl;

    use super::*;

    #[test]
    fn a_refusal_is_told_from_a_chunk_by_its_first_byte() {
        let mut buf = refusal(RefusalCode::Forbidden, "no");
        assert_eq!(
            take_answer(&mut buf),
            Err(WireError::Refused { error: "forbidden".into(), message: "no".into(), code: None })
        );
        let mut buf = control(&ServerControl::Ping);
        let chunk = take_answer(&mut buf).expect("fine").expect("whole");
        assert_eq!(chunk.kind, ChunkKind::Control);
    }

    #[test]
    fn lengths_are_refused_before_they_are_waited_for() {
        let mut buf = vec![1, 0xff, 0xff, 0xff, 0xff];
        assert!(matches!(take_chunk(&mut buf, MAX_CHUNK), Err(WireError::TooLong { .. })));
        let mut buf = vec![0xff; 4];
        assert!(matches!(take_framed(&mut buf, MAX_NEGOTIATION), Err(WireError::TooLong { .. })));
        let mut buf = vec![9];
        assert_eq!(take_chunk(&mut buf, 10), Err(WireError::UnknownType(9)));
    }

    proptest! {
        /// Any chunks, cut anywhere, come back as they were.
        #[test]
        fn chunks_survive_any_split(
            chunks in prop::collection::vec((0usize..4, prop::collection::vec(any::<u8>(), 0..50)), 0..10),
            cut in 1usize..20,
        ) {
            let kinds = [ChunkKind::Stdin, ChunkKind::Stdout, ChunkKind::Stderr, ChunkKind::Control];
            let sent: Vec<Chunk> =
                chunks.into_iter().map(|(k, payload)| Chunk { kind: kinds[k], payload }).collect();
            let mut stream = Vec::new();
            for chunk in &sent {
                stream.extend_from_slice(&chunk_head(chunk.kind, chunk.payload.len()));
                stream.extend_from_slice(&chunk.payload);
            }
            let (mut buf, mut got) = (Vec::new(), Vec::new());
            for piece in stream.chunks(cut) {
                buf.extend_from_slice(piece);
                while let Some(chunk) = take_chunk(&mut buf, MAX_CHUNK).expect("valid") {
                    got.push(chunk);
                }
            }
            prop_assert!(buf.is_empty());
            prop_assert_eq!(got, sent);
        }

        /// Random bytes are refused or waited for, never a panic.
        #[test]
        fn nonsense_does_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            // Whatever they return: a panic would fail the test.
            let _ = take_chunk(&mut bytes.clone(), 1000);
            let _ = take_answer(&mut bytes.clone());
            let _ = take_framed(&mut bytes.clone(), 1000);
        }
    }
}
