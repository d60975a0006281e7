//! Backends: where a program runs.
//!
//! A backend gives bytes, takes bytes, and can be resized, signalled and stopped. The trait is what
//! the driver loop needs and nothing more, so a backend that injects faults, or one with no process
//! behind it at all, is a few lines in a test.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use tapdeck_core::{Exit, Stamp, Stream, Time, WinSize};

#[cfg(feature = "docker")]
mod docker;
mod in_process;
mod local;
mod pipes;
mod place;
#[cfg(any(feature = "docker", feature = "ssh"))]
mod remote;
mod replay;
mod spawn;
#[cfg(feature = "ssh")]
mod ssh;

#[cfg(feature = "docker")]
pub use docker::{NoEngine, container_engine};
pub use in_process::{Console, InProcess};
pub use local::{LocalPty, TerminalSetup};
pub use pipes::Pipes;
pub use place::{Container, DockerPlace, NewHost, NonInteractive, Place, PlaceError, Prompter, SshPlace};
pub use replay::{Pace, Replay};
pub use spawn::{CommandSpec, Descriptors, SpawnError, SpawnErrorKind, command_line};

/// What a read gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Got {
    /// This many bytes, from this stream.
    Bytes(Stream, usize),
    /// The recorded terminal had this size from here on (replay only).
    Resized(WinSize),
    /// The program waits for a line ("your turn"; in-process only).
    Turn,
    /// Nothing now.
    Nothing,
    /// Nothing now, and nothing before a process opens the terminal again, if ever.
    Closed,
}

/// What to do about the end of input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndOfInput {
    /// Deliver this byte so many times: the terminal's own spelling.
    Send(u8, usize),
    /// The program has been told.
    Told,
    /// Not now; ask again.
    NotYet,
}

/// The signal that stops a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    /// As a terminal that goes away: SIGHUP, then SIGCONT.
    HangUp,
    /// SIGTERM, then SIGCONT.
    Terminate,
    /// SIGKILL.
    Kill,
}

impl StopSignal {
    /// Returns the signal's number.
    pub fn signal(self) -> i32 {
        match self {
            Self::HangUp => libc::SIGHUP,
            Self::Terminate => libc::SIGTERM,
            Self::Kill => libc::SIGKILL,
        }
    }
}

/// What a driver waits for on a backend's behalf.
#[derive(Debug, Default)]
pub struct Watch<'a> {
    /// Readable means: call [`Backend::read`].
    pub readable: [Option<BorrowedFd<'a>>; 2],
    /// Writable means: [`Backend::write`] can take more.
    pub writable: Option<BorrowedFd<'a>>,
    /// Readable means: call [`Backend::flush`], if not [`Backend::read`]. It is polled even while
    /// the program's output is not taken, for backends that have a connection to keep up.
    pub upkeep: Option<BorrowedFd<'a>>,
    /// Readable means: call [`Backend::exited`].
    pub exit: Option<BorrowedFd<'a>>,
    /// Call [`Backend::read`] at this time of the session's clock.
    pub read_at: Option<Time>,
    /// Something that was taken waits to be sent: call [`Backend::flush`] when [`Watch::writable`]
    /// is writable.
    pub unsent: bool,
}

/// A place where a program runs.
///
/// No call may wait. What an error means: `WouldBlock` from [`Backend::read`] is [`Got::Nothing`]
/// and from [`Backend::write`] "not now"; after `Interrupted` the same call is made again. Any
/// other error of `write` or [`Backend::end_input`] says that the program's input is not read any
/// more, and the session goes on without input; one of [`Backend::signal`] or [`Backend::freeze`]
/// that it was not done. Any other error of `read`, [`Backend::flush`], [`Backend::resize`],
/// [`Backend::stop`] or [`Backend::exited`] ends the session: the program is killed, and the error
/// is what [`crate::Driver::run`] returns.
pub trait Backend: Send {
    /// What to wait for.
    fn watch(&self) -> Watch<'_>;

    /// Reads what is there, without waiting.
    fn read(&mut self, buf: &mut [u8], now: Stamp) -> io::Result<Got>;

    /// Writes what can be taken, without waiting; `WouldBlock` when nothing can.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Whether the program reads lines and has its terminal show nothing of them, as far as that
    /// can be known.
    fn hides_input(&self) -> bool {
        false
    }

    /// Whether the program reads keys rather than lines, as far as that can be known.
    fn reads_keys(&self) -> bool {
        false
    }

    /// Sends what was taken and could not be sent at once, and does whatever else a connection
    /// needs to be kept up.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Says that no more input will come. `line_open` tells whether the last line lacks its end,
    /// `quiet` for how long nothing has passed in either direction.
    fn end_input(&mut self, line_open: bool, quiet: Duration) -> io::Result<EndOfInput>;

    /// Sets the terminal's size.
    fn resize(&mut self, size: WinSize) -> io::Result<()>;

    /// Sends a signal to the terminal's foreground process group.
    fn signal(&mut self, signal: i32) -> io::Result<()>;

    /// Stops the program and everything it started in its session.
    fn stop(&mut self, how: StopSignal) -> io::Result<()>;

    /// Freezes (`true`) or continues (`false`) the program and everything it started in its
    /// session.
    fn freeze(&mut self, frozen: bool) -> io::Result<()>;

    /// How the program ended, once it has.
    fn exited(&mut self) -> io::Result<Option<Exit>>;

    /// Whether the program has stopped itself or been stopped, said once for each stop.
    fn stopped(&mut self) -> bool {
        false
    }

    /// Whether the program waits for input, as far as can be seen: it has left the terminal's line
    /// mode, or no process of its foreground is at work. `None` where that cannot be seen.
    fn waits_for_input(&self) -> Option<bool> {
        None
    }

    /// How many bytes a line of input may have: a terminal in line mode drops the rest.
    fn longest_line(&self) -> Option<usize> {
        None
    }

    /// Whether the program has a terminal that it may ask questions of.
    fn has_terminal(&self) -> bool {
        false
    }

    /// Whether the program's lines end without a carriage return and yet begin at the left, as
    /// those of a program on pipes.
    fn bare_lines(&self) -> bool {
        !self.has_terminal()
    }

    /// How many processes that the program started in its session are still there.
    fn survivors(&self) -> usize {
        0
    }

    /// The program's process, where there is one.
    fn pid(&self) -> Option<i32> {
        None
    }
}

impl<B: Backend + ?Sized> Backend for Box<B> {
    fn watch(&self) -> Watch<'_> {
        (**self).watch()
    }
    fn read(&mut self, buf: &mut [u8], now: Stamp) -> io::Result<Got> {
        (**self).read(buf, now)
    }
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (**self).write(bytes)
    }
    fn hides_input(&self) -> bool {
        (**self).hides_input()
    }
    fn reads_keys(&self) -> bool {
        (**self).reads_keys()
    }
    fn flush(&mut self) -> io::Result<()> {
        (**self).flush()
    }
    fn end_input(&mut self, line_open: bool, quiet: Duration) -> io::Result<EndOfInput> {
        (**self).end_input(line_open, quiet)
    }
    fn resize(&mut self, size: WinSize) -> io::Result<()> {
        (**self).resize(size)
    }
    fn signal(&mut self, signal: i32) -> io::Result<()> {
        (**self).signal(signal)
    }
    fn stop(&mut self, how: StopSignal) -> io::Result<()> {
        (**self).stop(how)
    }
    fn freeze(&mut self, frozen: bool) -> io::Result<()> {
        (**self).freeze(frozen)
    }
    fn stopped(&mut self) -> bool {
        (**self).stopped()
    }
    fn exited(&mut self) -> io::Result<Option<Exit>> {
        (**self).exited()
    }
    fn waits_for_input(&self) -> Option<bool> {
        (**self).waits_for_input()
    }
    fn longest_line(&self) -> Option<usize> {
        (**self).longest_line()
    }
    fn has_terminal(&self) -> bool {
        (**self).has_terminal()
    }
    fn bare_lines(&self) -> bool {
        (**self).bare_lines()
    }
    fn survivors(&self) -> usize {
        (**self).survivors()
    }
    fn pid(&self) -> Option<i32> {
        (**self).pid()
    }
}
