//! A program that is a function: `runner(console)` on a thread of this process.
//!
//! It writes with [`Console::emit`] and asks for lines with [`Console::read_line`]. Unlike a
//! terminal, it can say exactly when it waits for input: that is the "your turn" event.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use tapdeck_core::{Exit, Stamp, Stream, WinSize};

use super::{Backend, EndOfInput, Got, StopSignal, Watch};
use crate::signals;

/// Output or input that may stand unread before its writer waits.
const QUEUE_LIMIT: usize = 256 * 1024;

/// Exit code of a runner that panicked, as the standard library gives it.
const PANICKED: i32 = 101;

#[derive(Default)]
struct State {
    output: VecDeque<u8>,
    input: VecDeque<u8>,
    input_ended: bool,
    /// The last line ended with a carriage return: a line feed behind it belongs to that.
    after_return: bool,
    /// The runner waits for a line, and the driver has not been told yet.
    turn: bool,
    stopped: bool,
    exit: Option<Exit>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    wake: OwnedFd,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_driver(&self) {
        // A full counter means that the driver is awake already.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

/// The runner's side.
pub struct Console {
    shared: Arc<Shared>,
}

crate::opaque::opaque_debug!(Console);

impl Console {
    /// Writes output; waits while too much stands unread. An error means that the runner is to end.
    pub fn emit(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let mut state = self.shared.lock();
            while state.output.len() >= QUEUE_LIMIT && !state.stopped {
                state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.stopped {
                return Err(stopped());
            }
            let (now, later) = bytes.split_at(bytes.len().min(QUEUE_LIMIT - state.output.len()));
            state.output.extend(now);
            bytes = later;
            drop(state);
            self.shared.wake_driver();
        }
        Ok(())
    }

    /// The next line without its end, or `None` when input has ended. An error means that the
    /// runner is to end.
    pub fn read_line(&self) -> io::Result<Option<Vec<u8>>> {
        let mut state = self.shared.lock();
        let mut announced = false;
        loop {
            if state.stopped {
                return Err(stopped());
            }
            if state.after_return && !state.input.is_empty() {
                state.after_return = false;
                if state.input.front() == Some(&b'\n') {
                    state.input.pop_front();
                }
            }
            if let Some(end) = state.input.iter().position(|b| *b == b'\n' || *b == b'\r') {
                let line = state.input.drain(..end).collect();
                state.after_return = state.input.pop_front() == Some(b'\r');
                // There is room again for input that had to wait.
                self.shared.wake_driver();
                return Ok(Some(line));
            }
            if state.input_ended || state.input.len() >= QUEUE_LIMIT {
                let rest: Vec<u8> = state.input.drain(..).collect();
                return Ok((!rest.is_empty()).then_some(rest));
            }
            if !announced {
                announced = true;
                state.turn = true;
                self.shared.wake_driver();
            }
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn stopped() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the session was stopped")
}

/// The backend around a runner.
pub struct InProcess {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

crate::opaque::opaque_debug!(InProcess);

impl InProcess {
    /// Starts a runner. What it returns is the session's exit code.
    pub fn start(runner: impl FnOnce(&Console) -> io::Result<i32> + Send + 'static) -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new(), wake });
        let console = Console { shared: shared.clone() };
        let thread = std::thread::Builder::new().name("tapdeck-runner".into()).spawn(move || {
            let code = match catch_unwind(AssertUnwindSafe(|| runner(&console))) {
                Ok(Ok(code)) => code,
                Ok(Err(_)) => 1,
                Err(_) => PANICKED,
            };
            // One that took too long has been given up.
            console.shared.lock().exit.get_or_insert(Exit::Code(code));
            console.shared.wake_driver();
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }
}

impl Backend for InProcess {
    fn watch(&self) -> Watch<'_> {
        Watch { readable: [Some(self.shared.wake.as_fd()), None], ..Watch::default() }
    }

    fn read(&mut self, buf: &mut [u8], _now: Stamp) -> io::Result<Got> {
        let mut count = [0; 8];
        // It fails only when there is nothing to take back.
        let _ = rustix::io::read(&self.shared.wake, &mut count);
        let mut state = self.shared.lock();
        let n = state.output.len().min(buf.len());
        if n > 0 {
            for (to, from) in buf.iter_mut().zip(state.output.drain(..n)) {
                *to = from;
            }
            self.shared.changed.notify_all();
            // There may be more, or a turn behind it.
            self.shared.wake_driver();
            return Ok(Got::Bytes(Stream::Out, n));
        }
        if std::mem::take(&mut state.turn) {
            return Ok(Got::Turn);
        }
        Ok(if state.exit.is_some() { Got::Closed } else { Got::Nothing })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.shared.lock();
        let room = QUEUE_LIMIT.saturating_sub(state.input.len());
        if room == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let n = bytes.len().min(room);
        state.input.extend(&bytes[..n]);
        self.shared.changed.notify_all();
        Ok(n)
    }

    fn end_input(&mut self, _line_open: bool, _quiet: Duration) -> io::Result<EndOfInput> {
        self.shared.lock().input_ended = true;
        self.shared.changed.notify_all();
        Ok(EndOfInput::Told)
    }

    fn resize(&mut self, _size: WinSize) -> io::Result<()> {
        Ok(())
    }

    fn signal(&mut self, signal: i32) -> io::Result<()> {
        if signals::ends(signal)? { self.stop(StopSignal::Terminate) } else { Ok(()) }
    }

    /// A runner that waits in `emit` or `read_line` ends by that. One that is busy elsewhere cannot
    /// be forced: a kill gives it up, and its thread goes on without a session.
    fn stop(&mut self, how: StopSignal) -> io::Result<()> {
        let mut state = self.shared.lock();
        state.stopped = true;
        if how == StopSignal::Kill && state.exit.is_none() {
            state.exit = Some(Exit::Signal(how.signal()));
            self.thread = None;
        }
        drop(state);
        self.shared.changed.notify_all();
        self.shared.wake_driver();
        Ok(())
    }

    fn freeze(&mut self, _frozen: bool) -> io::Result<()> {
        Ok(())
    }

    fn exited(&mut self) -> io::Result<Option<Exit>> {
        let exit = self.shared.lock().exit;
        if exit.is_some()
            && let Some(thread) = self.thread.take()
        {
            // It has said that it is done; its panic, if any, was caught and counted.
            let _ = thread.join();
        }
        Ok(exit)
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        // Whatever it does, it is not waited for.
        let _ = self.stop(StopSignal::Kill);
    }
}
