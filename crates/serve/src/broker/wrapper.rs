//! A session's side of the broker: registers the session, reports its turns, pastes injected turns.
//!
//! Two threads wait at the one socket, so that a slow broker never delays the session, neither at
//! its start nor at its end.

use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use bytes::Bytes;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use tapdeck_core::turns::Turn;
use tapdeck_core::{PartyId, Refused, Role};
use tapdeck_host::{Handle, Look};
use tapdeck_proto::broker::{self, Blob, Request};
use tapdeck_term::keys;

use super::{greet, read_frame, socket};
use crate::door::is_trusted;
use crate::live::Access;

/// Turns that wait for a slow broker; further ones are not reported.
const WAITING: usize = 64;
/// How long a broker may take to answer the greeting, and how long the session waits for that, so
/// that a client that comes at once finds it with the broker.
const HELLO: Duration = Duration::from_secs(2);
const NOTICED: Duration = Duration::from_millis(50);

/// Bytes that are offered at a time, and how often they may be refused.
const PIECE: usize = 32 * 1024;
const TRIES: u32 = 1000;

/// A session that is known to a broker.
pub(crate) struct Wrapper {
    tell: SyncSender<Arc<Turn>>,
    stream: UnixStream,
    session: String,
}

impl Wrapper {
    /// Registers a session, if a broker runs. Reports its last turns at once.
    pub(crate) fn join(
        session: &str,
        pattern: &str,
        access: Access,
        past: impl Iterator<Item = Arc<Turn>>,
    ) -> Option<Self> {
        let stream = connect().filter(is_trusted)?;
        let (tell, turns) = sync_channel(WAITING);
        for turn in past {
            // More than fit are not reported.
            let _ = tell.try_send(turn);
        }
        let register = Request::Register {
            session: session.to_owned(),
            pid: u64::from(std::process::id()),
            pattern: pattern.to_owned(),
        };
        let (joined, has_joined) = sync_channel(1);
        let (writing, name) = (stream.try_clone().ok()?, session.to_owned());
        let registers = move || {
            let reading = register_at(&writing, &register);
            // The session may have stopped waiting.
            let _ = joined.send(());
            let Some(reading) = reading else { return };
            let spawned = thread("turns-in").spawn(move || read_injections(reading, access));
            if spawned.is_ok() {
                write_turns(writing, &name, &turns);
            }
        };
        thread("turns-out").spawn(registers).ok()?;
        // A broker that hangs is no reason to wait.
        let _ = has_joined.recv_timeout(NOTICED);
        Some(Self { tell, stream, session: session.to_owned() })
    }

    /// Reports a turn. Returns whether the broker is still connected.
    pub(crate) fn tell(&self, turn: &Arc<Turn>) -> bool {
        !matches!(self.tell.try_send(Arc::clone(turn)), Err(TrySendError::Disconnected(_)))
    }
}

impl Drop for Wrapper {
    fn drop(&mut self) {
        let goodbye = Request::Deregister { session: self.session.clone() };
        // A broker that is gone needs no goodbye, and one that hangs gets none.
        if self.stream.set_nonblocking(true).is_ok() {
            let _ = self.stream.write_all(&goodbye.frame(0));
        }
        // Both threads wait at the socket.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

fn thread(what: &str) -> std::thread::Builder {
    std::thread::Builder::new().name(format!("tapdeck-{what}"))
}

/// Connects to the broker if one runs and has room. Does not wait.
fn connect() -> Option<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).ok()?;
    rustix::net::connect(&fd, &SocketAddrUnix::new(socket().ok()?).ok()?).ok()?;
    let stream = UnixStream::from(fd);
    stream.set_nonblocking(false).ok()?;
    Some(stream)
}

/// Greets the broker and registers the session. Returns the stream to read from.
fn register_at(stream: &UnixStream, register: &Request) -> Option<UnixStream> {
    let mut stream = stream.try_clone().ok()?;
    stream.set_read_timeout(Some(HELLO)).ok()?;
    stream.set_write_timeout(Some(HELLO)).ok()?;
    greet(&mut stream, broker::Role::Wrapper).ok()?;
    stream.write_all(&register.frame(1)).ok()?;
    read_frame(&mut stream).ok()?.response()?.outcome.ok()?;
    stream.set_read_timeout(None).ok()?;
    Some(stream)
}

fn write_turns(mut stream: UnixStream, session: &str, turns: &Receiver<Arc<Turn>>) {
    let mut id = 2;
    while let Ok(turn) = turns.recv() {
        let report = Request::TurnCompleted {
            session: session.to_owned(),
            content: Blob(turn.text.clone().into_bytes()),
            interrupted: turn.interrupted,
            truncated: turn.truncated,
            timestamp: Some(turn.end.at.wall.as_millis()),
        };
        let frame = report.frame(id);
        id += 1;
        if stream.write_all(&frame).is_err() {
            return;
        }
    }
}

fn read_injections(mut stream: UnixStream, mut access: Access) {
    // One party for all: leaving would drop what the program has not read yet.
    // Only this user reaches the broker, so an injected turn is a person's paste.
    let Ok(party) = access.driver().join("broker", Role::Human) else { return };
    while let Ok(message) = read_frame(&mut stream) {
        let Some(inject) = message.inject() else { continue };
        // While this party holds the stick, no other can start a program that runs each line.
        if !matches!(access.driver().take(party), Ok(Ok(_))) {
            continue;
        }
        let content = inject.content.0;
        let bytes =
            if inject.raw { content } else { pasted(&String::from_utf8_lossy(&content), &access.look()) };
        offer(access.driver(), party, bytes.into());
        // The former holder claims the stick again by typing.
        let _ = access.driver().release(party);
    }
    access.driver().leave(party);
}

/// Offers bytes as fast as the program reads, until it has read all of them: releasing the stick
/// drops the rest. Gives up on a program that does not read.
fn offer(handle: &Handle, party: PartyId, bytes: Bytes) {
    let mut rest = bytes;
    let mut tries = 0;
    let is_read = || handle.undelivered().map_or(true, |n| n == 0);
    while (!rest.is_empty() || !is_read()) && tries < TRIES {
        if rest.is_empty() {
            tries += 1;
            std::thread::park_timeout(Duration::from_millis(10));
            continue;
        }
        let piece = rest.slice(..rest.len().min(PIECE));
        match handle.input(party, None, piece.clone()) {
            Ok(Ok(())) => (rest, tries) = (rest.slice(piece.len()..), 0),
            Ok(Err(Refused::Full { .. })) => {
                tries += 1;
                std::thread::park_timeout(Duration::from_millis(10));
            }
            _ => return,
        }
    }
}

/// Encodes text as a person would paste it. Line ends become blanks where they would submit:
/// without bracketed paste, and while a shell that asked for it runs a line, because its program
/// may not have.
fn pasted(text: &str, look: &Look<'_>) -> Vec<u8> {
    let modes = look.term().modes();
    let text = text.trim_end_matches(['\n', '\r']);
    if modes.bracketed_paste() && !look.detector().is_some_and(|d| d.is_changing()) {
        return keys::paste(text, &modes);
    }
    keys::paste(&text.replace("\r\n", " ").replace(['\n', '\r', '\t'], " "), &modes)
}
