//! A session's side of the broker: registers it, tells of its turns, and pastes what is injected.
//!
//! Two threads wait at the one socket, so that a broker that is slow or gone costs the session nothing.

use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use bytes::Bytes;
use tapdeck_core::turns::Turn;
use tapdeck_core::{PartyId, Refused, Role};
use tapdeck_host::{Glass, Handle};
use tapdeck_term::keys;

use super::msgpack::{Value, map};
use super::{frame, greet, read_frame, socket};
use crate::door::is_trusted;

/// Turns that wait for a broker that takes its time; more are not told of.
const WAITING: usize = 64;
/// How long a broker may take to say hello.
const HELLO: Duration = Duration::from_secs(2);

/// What is offered at a time, and how often in vain.
const PIECE: usize = 32 * 1024;
const TRIES: u32 = 1000;

/// A session that is known to a broker.
pub(crate) struct Wrapper {
    tell: SyncSender<Arc<Turn>>,
    stream: UnixStream,
    session: String,
}

impl Wrapper {
    /// Registers a session, if a broker is there. Its last turns are told at once.
    pub(crate) fn join(
        session: &str,
        pattern: &str,
        handle: &Handle,
        glass: &Glass,
        past: impl Iterator<Item = Arc<Turn>>,
    ) -> Option<Self> {
        let mut stream = UnixStream::connect(socket().ok()?).ok().filter(is_trusted)?;
        stream.set_read_timeout(Some(HELLO)).ok()?;
        stream.set_write_timeout(Some(HELLO)).ok()?;
        greet(&mut stream, "wrapper").ok()?;
        let register = map([
            ("type", "register".into()),
            ("id", Value::Uint(1)),
            ("session", session.into()),
            ("pid", Value::Uint(u64::from(std::process::id()))),
            ("pattern", pattern.into()),
        ]);
        stream.write_all(&frame(&register)).ok()?;
        let answer = read_frame(&mut stream).ok()?;
        if answer.get("status").and_then(Value::as_str) != Some("ok") {
            return None;
        }
        stream.set_read_timeout(None).ok()?;
        let (tell, turns) = sync_channel(WAITING);
        for turn in past {
            let _ = tell.try_send(turn);
        }
        let (writing, reading) = (stream.try_clone().ok()?, stream.try_clone().ok()?);
        let name = session.to_owned();
        let thread = |what: &str| std::thread::Builder::new().name(format!("tapdeck-{what}"));
        thread("turns-out").spawn(move || write_turns(writing, &name, &turns)).ok()?;
        let (handle, glass) = (handle.clone(), glass.clone());
        thread("turns-in").spawn(move || read_injections(reading, &handle, &glass)).ok()?;
        Some(Self { tell, stream, session: session.to_owned() })
    }

    /// Tells of a turn; says whether anybody listens.
    pub(crate) fn tell(&self, turn: &Arc<Turn>) -> bool {
        !matches!(self.tell.try_send(Arc::clone(turn)), Err(TrySendError::Disconnected(_)))
    }
}

impl Drop for Wrapper {
    fn drop(&mut self) {
        let goodbye = map([
            ("type", "deregister".into()),
            ("id", Value::Uint(0)),
            ("session", self.session.as_str().into()),
        ]);
        let _ = self.stream.write_all(&frame(&goodbye));
        // Both threads wait at the socket.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

fn write_turns(mut stream: UnixStream, session: &str, turns: &Receiver<Arc<Turn>>) {
    let mut id = 2;
    while let Ok(turn) = turns.recv() {
        let message = map([
            ("type", "turn_completed".into()),
            ("id", Value::Uint(id)),
            ("session", session.into()),
            ("content", Value::Bin(turn.text.clone().into_bytes())),
            ("interrupted", Value::Bool(turn.interrupted)),
            ("truncated", Value::Bool(turn.truncated)),
            ("timestamp", Value::Uint(turn.end.at.wall_ns / 1_000_000)),
        ]);
        id += 1;
        if stream.write_all(&frame(&message)).is_err() {
            return;
        }
    }
}

fn read_injections(mut stream: UnixStream, handle: &Handle, glass: &Glass) {
    // One party for all: to leave would take back what the program has not read yet.
    // Who reaches the broker is this user, as is who sits at the session: it is a person's paste.
    let Ok(party) = handle.join("broker", Role::Human) else { return };
    while let Ok(message) = read_frame(&mut stream) {
        if message.get("type").and_then(Value::as_str) != Some("inject") {
            continue;
        }
        let Some(content) = message.get("content").and_then(Value::as_bytes) else { continue };
        let raw = message.get("raw").and_then(Value::as_bool).unwrap_or(false);
        // From here on nobody else can make the program something that runs each line.
        if !matches!(handle.take(party), Ok(Ok(_))) {
            continue;
        }
        let bytes =
            if raw { content.to_vec() } else { pasted(&String::from_utf8_lossy(content), handle, glass) };
        offer(handle, party, bytes.into());
        // Whoever typed before goes on by typing.
        let _ = handle.release(party);
    }
    handle.leave(party);
}

/// Offers it piece by piece, as fast as the program reads, until it has read everything: what it has not read when the
/// stick is given back is dropped. One that does not read at all gets no more.
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

/// What a person would paste. Where line ends would submit, they are blanks: where nobody asked for brackets, and where a
/// shell asked for them but is at work on a line, and may give way to a program that did not.
fn pasted(text: &str, handle: &Handle, glass: &Glass) -> Vec<u8> {
    let look = glass.look(handle);
    let modes = look.term().modes();
    let text = text.trim_end_matches(['\n', '\r']);
    if modes.bracketed_paste() && !look.detector().is_some_and(|d| d.is_changing()) {
        return keys::paste(text, &modes);
    }
    keys::paste(&text.replace("\r\n", " ").replace(['\n', '\r', '\t'], " "), &modes)
}
