//! The user's side of a session: the terminal that the user sits at, or what stands in for it.
//!
//! It is standard input and output of this process, or a client elsewhere, behind a descriptor or
//! behind two queues. Bytes pass through unchanged, and neither direction waits for the other.

use std::io;
use std::os::fd::BorrowedFd;

use bytes::Bytes;
use rustix::termios::Termios;
use tapdeck_core::{Stream, WinSize};

mod channel;
mod keyboard;
mod prompter;
mod queues;
mod signals;
mod socket;
mod stdio;
mod tty;

use crate::inbox::Handle;
pub use channel::Sink;
pub use keyboard::{Keyboard, Pressed};
pub use prompter::TerminalPrompter;
use queues::QueueSide;
pub use queues::{QueuesClosed, UserProfile, UserQueues};
pub use signals::{HeldSignals, Signals};
use socket::SocketSide;
pub use socket::{SocketInput, UserSocket};
use stdio::Stdio;
pub use tty::{restore_sane_settings, restore_terminal_on_panic};

/// What a read from the user gave.
pub(crate) enum Typed {
    Bytes(Bytes),
    Nothing,
    /// The terminal elsewhere has this size from here on.
    Resized(WinSize),
    /// A signal for the foreground process group.
    Signal(i32),
    End,
    /// The terminal is gone.
    HungUp,
    /// The client is gone, and the program goes with it.
    Gone,
    /// The client is gone, and the session goes on without it.
    Left,
}

/// The size of the first terminal found on standard input, output or error.
pub fn terminal_size() -> Option<WinSize> {
    let candidates = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    candidates.into_iter().find_map(|fd| tty::window_size(fd).ok())
}

/// The user's side of a session: a terminal, or what stands in for one.
#[derive(Debug)]
#[non_exhaustive]
pub enum UserSide {
    /// Standard input, output and error of this process.
    Stdio(Box<Stdio>),
    /// A client that another thread serves through two bounded queues.
    Queues(QueueSide),
    /// A client behind a descriptor, which the driver serves itself.
    Socket(SocketSide),
}

impl UserSide {
    /// Opens standard input, output and error of this process. With `terminal` the program gets a
    /// terminal, too: only then is the user's taken.
    pub fn from_stdio(terminal: bool) -> io::Result<Self> {
        Ok(Self::Stdio(Box::new(Stdio::open(terminal)?)))
    }

    /// Makes the side of a client that another thread serves, and that thread's end of the queues.
    pub fn queues(profile: UserProfile) -> (Self, UserQueues) {
        let (inside, queues) = queues::pair(profile);
        (Self::Queues(inside), queues)
    }

    /// Makes the side of a client that can be reached through a descriptor.
    pub fn socket(profile: UserProfile, socket: impl UserSocket + 'static) -> Self {
        Self::Socket(SocketSide { socket: Box::new(socket), profile })
    }

    fn stdio(&self) -> Option<&Stdio> {
        match self {
            Self::Stdio(stdio) => Some(stdio),
            Self::Queues(_) | Self::Socket(_) => None,
        }
    }

    /// Whether it is standard input and output of this process.
    pub(crate) fn is_stdio(&self) -> bool {
        self.stdio().is_some()
    }

    /// Settings for the program's terminal, taken from the user's. In the background those are
    /// another program's for the moment (a shell's line editor's), and of no use.
    pub fn termios(&self) -> Option<Termios> {
        self.stdio().and_then(Stdio::termios)
    }

    /// Whether the user's keys arrive as they are typed.
    pub fn is_interactive(&self) -> bool {
        match self {
            Self::Stdio(stdio) => stdio.is_interactive(),
            Self::Queues(queues) => queues.profile().types,
            Self::Socket(side) => side.profile.types,
        }
    }

    /// The size of the first terminal found on standard input, output or error.
    pub(crate) fn size(&self) -> Option<WinSize> {
        self.stdio().and_then(Stdio::size)
    }

    /// Takes the terminal, if it is there to be taken. One that has hung up says so elsewhere.
    pub(crate) fn take(&mut self) -> io::Result<()> {
        match self {
            Self::Stdio(stdio) => stdio.take(),
            Self::Queues(_) | Self::Socket(_) => Ok(()),
        }
    }

    pub(crate) fn give_back(&mut self) -> io::Result<()> {
        match self {
            Self::Stdio(stdio) => stdio.give_back(),
            Self::Queues(_) | Self::Socket(_) => Ok(()),
        }
    }

    /// Has the driver woken when something happens that no descriptor tells.
    pub(crate) fn wake_by(&mut self, handle: &Handle) {
        if let Self::Queues(queues) = self {
            queues.wake_by(handle);
        }
    }

    /// Whether there is a terminal that is not ours yet because this process is in the background.
    pub(crate) fn waits_for_foreground(&self) -> bool {
        self.stdio().is_some_and(Stdio::waits_for_foreground)
    }

    /// Whether a terminal of this process shows the output, so that modes left behind matter.
    pub(crate) fn shows_on_terminal(&self) -> bool {
        self.stdio().is_some_and(Stdio::shows_on_terminal)
    }

    /// Whether there is a terminal that answers the program's questions.
    pub(crate) fn answers(&self) -> bool {
        match self {
            Self::Stdio(stdio) => stdio.shows_on_terminal(),
            Self::Queues(queues) => queues.profile().answers,
            Self::Socket(side) => side.profile.answers,
        }
    }

    pub(crate) fn stdin_fd(&self) -> Option<BorrowedFd<'_>> {
        self.stdio().and_then(Stdio::stdin_fd)
    }

    /// Whether something was typed that no descriptor tells of. `room` says whether input is
    /// wanted; that the client is gone matters in any case.
    pub(crate) fn has_typed(&self, room: bool) -> bool {
        match self {
            Self::Stdio(_) => false,
            Self::Queues(queues) => queues.has_typed(room),
            Self::Socket(side) => room && side.socket.has_more(),
        }
    }

    pub(crate) fn blocked_fd(&self) -> Option<BorrowedFd<'_>> {
        self.stdio().and_then(Stdio::blocked_fd)
    }

    pub(crate) fn is_blocked(&self) -> bool {
        match self {
            Self::Stdio(stdio) => stdio.is_blocked(),
            Self::Queues(queues) => queues.is_blocked(),
            Self::Socket(side) => side.is_blocked(),
        }
    }

    /// Bytes that the user's side has not taken yet.
    pub(crate) fn backlog(&self) -> usize {
        match self {
            Self::Stdio(stdio) => stdio.backlog(),
            Self::Queues(queues) => queues.backlog(),
            Self::Socket(side) => side.socket.backlog(),
        }
    }

    pub(crate) fn read(&mut self) -> io::Result<Typed> {
        match self {
            Self::Stdio(stdio) => stdio.read(),
            Self::Queues(queues) => Ok(queues.read()),
            Self::Socket(side) => Ok(side.read()),
        }
    }

    pub(crate) fn write(&mut self, stream: Stream, bytes: &Bytes) -> io::Result<()> {
        match self {
            Self::Stdio(stdio) => stdio.write(stream, bytes),
            Self::Queues(queues) => {
                queues.write(stream, bytes);
                Ok(())
            }
            Self::Socket(side) => {
                side.socket.write(stream, bytes);
                Ok(())
            }
        }
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdio(stdio) => stdio.flush(),
            Self::Queues(_) => Ok(()),
            Self::Socket(side) => {
                side.socket.flush();
                Ok(())
            }
        }
    }

    /// Sends what was written in one go, where it was not sent at once.
    pub(crate) fn settle(&mut self) {
        if let Self::Socket(side) = self {
            side.socket.flush();
        }
    }

    /// Finds out whether the client is still there.
    pub(crate) fn probe(&mut self) {
        if let Self::Socket(side) = self {
            side.socket.probe();
        }
    }

    /// The client's descriptor, and whether something waits to be sent through it.
    pub(crate) fn socket_fd(&self) -> Option<(BorrowedFd<'_>, bool)> {
        match self {
            Self::Socket(side) => Some((side.socket.fd(), side.socket.backlog() > 0)),
            Self::Stdio(_) | Self::Queues(_) => None,
        }
    }

    /// Whether the session goes on when its user has gone.
    pub(crate) fn goes_on_alone(&self) -> bool {
        match self {
            Self::Queues(queues) => queues.profile().stays,
            Self::Socket(side) => side.profile.stays,
            Self::Stdio(_) => false,
        }
    }

    /// What it means that the client has hung up, when there is no room to read what it sent
    /// before.
    pub(crate) fn lost(&mut self) -> Typed {
        match self {
            Self::Socket(side) => side.lost(),
            Self::Stdio(_) | Self::Queues(_) => Typed::Nothing,
        }
    }

    pub(crate) fn abandon(&mut self) {
        match self {
            Self::Stdio(stdio) => stdio.abandon(),
            Self::Queues(queues) => queues.abandon(),
            Self::Socket(side) => side.socket.abandon(),
        }
    }
}
