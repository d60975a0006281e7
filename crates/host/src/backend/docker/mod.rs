//! A program in a container, through the engine's interface: a new container that goes with the
//! session, or one more program in a container that runs already.
//!
//! The connection that carries the program's input and output is a plain socket, which the driver
//! waits at as it does at a terminal. An [`EngineWorker`] makes all other requests to the engine,
//! on another thread.

mod engine;
mod frames;
mod http;
mod locate;
mod order;
mod secure;
mod start;
mod worker;

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use tapdeck_core::check::signal_name;
use tapdeck_core::{Exit, Stamp, Stream, Time, WinSize};

use super::remote::{Drain, Keys, Verdict};
use super::{Backend, EndOfInput, Got, StopSignal, Watch};
use frames::{Frames, Took};
use http::Socket;
use worker::EngineWorker;

/// The engine that containers would run on: where it is, and what it speaks.
///
/// # Errors
/// When no engine can be reached.
pub fn container_engine() -> Result<String, NoEngine> {
    let endpoint = locate::endpoint(|var| std::env::var(var).ok()).map_err(NoEngine)?;
    Ok(engine::Engine::greet(endpoint, None).map_err(|e| NoEngine(e.to_string()))?.describe())
}

/// No engine for containers can be reached; says why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoEngine(String);

/// A program in a container.
pub(super) struct Docker {
    tube: Tube,
    keys: Keys,
    drain: Drain,
    input_ended: bool,
    /// Dropped first: whatever still runs is stopped then.
    worker: EngineWorker,
    verdict: Arc<Verdict>,
    /// Dropped last: what is to be done if this process is killed.
    _will: Option<crate::sys::LastWill>,
}

/// A program's input and output.
struct Tube {
    /// The connection, until the output has ended.
    stream: Option<Socket>,
    /// What came through it before the session began.
    early: Vec<u8>,
    /// Standard output and error, apart; with a terminal there is only one stream.
    frames: Option<Frames>,
}

impl Tube {
    /// Whether there is something to read that the system does not know of.
    fn has_more(&self) -> bool {
        !self.early.is_empty() || self.stream.as_ref().is_some_and(Socket::left)
    }

    /// Reads what is there, without waiting.
    fn take(&mut self, buf: &mut [u8]) -> io::Result<(Stream, Took)> {
        let (early, stream) = (&mut self.early, &mut self.stream);
        match &mut self.frames {
            Some(frames) => frames.read(buf, |buf| take(early, stream, buf)),
            None => Ok((Stream::Out, take(early, stream, buf)?)),
        }
    }
}

/// Reads from the stream without waiting, what came early first.
fn take(early: &mut Vec<u8>, stream: &mut Option<Socket>, buf: &mut [u8]) -> io::Result<Took> {
    if !early.is_empty() {
        let n = early.len().min(buf.len());
        buf[..n].copy_from_slice(&early[..n]);
        early.drain(..n);
        return Ok(Took::Bytes(n));
    }
    let Some(socket) = stream else { return Ok(Took::End) };
    match socket.read(buf) {
        Ok(n) if n > 0 => Ok(Took::Bytes(n)),
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Ok(Took::Nothing)
        }
        // An engine that goes away says how the program ended no more: that is noticed where it is
        // asked.
        Ok(_) => Ok(Took::End),
        Err(e) if e.kind() == io::ErrorKind::ConnectionReset => Ok(Took::End),
        Err(e) => Err(e),
    }
}

/// Whether the program is gone, or has closed its input: what is typed then goes nowhere.
fn is_gone(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

impl Backend for Docker {
    fn watch(&self) -> Watch<'_> {
        let stream = self.tube.stream.as_ref().map(AsFd::as_fd);
        Watch {
            readable: [stream, None],
            writable: stream,
            exit: (!self.drain.begun()).then(|| self.verdict.fd()),
            read_at: if self.tube.has_more() { Some(Time::ZERO) } else { self.drain.look_at() },
            unsent: self.tube.stream.as_ref().is_some_and(Socket::unsent),
            ..Watch::default()
        }
    }

    fn read(&mut self, buf: &mut [u8], now: Stamp) -> io::Result<Got> {
        match self.tube.take(buf)? {
            (stream, Took::Bytes(n)) => {
                self.drain.passed(now);
                Ok(Got::Bytes(stream, n))
            }
            (_, Took::Nothing) if !self.drain.over(now) => Ok(Got::Nothing),
            _ => {
                if self.tube.stream.take().is_some() {
                    self.worker.order(|w| w.ended = true);
                }
                Ok(Got::Closed)
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(stream) = self.tube.stream.as_mut().filter(|_| !self.input_ended) else {
            return Ok(bytes.len());
        };
        match stream.write(bytes) {
            Err(e) if is_gone(&e) => {
                self.input_ended = true;
                Ok(bytes.len())
            }
            other => other,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.tube.stream.as_mut().map_or(Ok(()), Write::flush) {
            Err(e) if is_gone(&e) => {
                self.input_ended = true;
                Ok(())
            }
            other => other,
        }
    }

    fn end_input(&mut self, line_open: bool, quiet: Duration) -> io::Result<EndOfInput> {
        if self.has_terminal() {
            return Ok(self.keys.end_of_input(line_open, quiet));
        }
        if !std::mem::replace(&mut self.input_ended, true)
            && let Some(stream) = &mut self.tube.stream
        {
            stream.end_sending()?;
        }
        Ok(EndOfInput::Told)
    }

    fn resize(&mut self, size: WinSize) -> io::Result<()> {
        if self.has_terminal() {
            self.worker.order(|w| w.resize = Some(size));
        }
        Ok(())
    }

    fn signal(&mut self, signal: i32) -> io::Result<()> {
        // The engine reaches the first process only; the terminal's own keys reach its foreground
        // process group.
        if self.has_terminal()
            && let Some(key) = self.keys.of_signal(signal)
        {
            return self.write(&[key]).map(drop);
        }
        self.worker.order(|w| w.signal(signal_name(signal), false));
        Ok(())
    }

    fn stop(&mut self, how: StopSignal) -> io::Result<()> {
        self.worker.order(|w| w.signal(signal_name(how.signal()), true));
        Ok(())
    }

    fn freeze(&mut self, frozen: bool) -> io::Result<()> {
        self.worker.order(|w| w.freeze = Some(frozen));
        Ok(())
    }

    fn exited(&mut self) -> io::Result<Option<Exit>> {
        let Some(verdict) = self.verdict.get() else { return Ok(None) };
        self.drain.begin();
        // What it wrote last may still be on its way.
        if self.tube.stream.is_some() || !self.tube.early.is_empty() {
            return Ok(None);
        }
        verdict.map(Some).map_err(io::Error::other)
    }

    fn has_terminal(&self) -> bool {
        self.tube.frames.is_none()
    }
}
