//! The outer terminal: the one that the user sits at, or what stands in for it.
//!
//! It is this process's own standard input and output, or somebody elsewhere, behind a descriptor or at a port; whatever
//! it is, bytes pass through unchanged and without one direction waiting for the other.

use std::io;
use std::os::fd::BorrowedFd;

use bytes::Bytes;
use rustix::termios::Termios;
use tapdeck_core::{Stream, WinSize};

mod channel;
mod far;
mod keyboard;
mod port;
mod prompter;
mod signals;
mod stdio;
mod tty;

use crate::inbox::Handle;
pub use channel::Sink;
use far::FarSide;
pub use far::{Far, FarInput};
pub use keyboard::{Keyboard, Pressed};
use port::Inside;
pub use port::{Port, PortClosed, Whose};
pub(crate) use prompter::TerminalPrompter;
pub use signals::{HeldSignals, Signals};
use stdio::Stdio;
pub use tty::restore_terminal_on_panic;

/// What a read from the user gave.
pub(crate) enum Typed {
    Bytes(Bytes),
    Nothing,
    /// The terminal elsewhere has this size from here on.
    Resized(WinSize),
    /// A signal for whoever has the foreground.
    Signal(i32),
    End,
    /// The terminal is gone.
    HungUp,
    /// Whoever had the session elsewhere has gone, and the program goes with them.
    Gone,
    /// Whoever had the session elsewhere has left it to itself.
    Left,
}

/// The size of the first terminal found on standard input, output or error.
pub fn terminal_size() -> Option<WinSize> {
    let candidates = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    candidates.into_iter().find_map(|fd| tty::window_size(fd).ok())
}

/// The user's side of a session.
pub struct Outer(Kind);

enum Kind {
    Stdio(Box<Stdio>),
    Port(Inside),
    Far(FarSide),
}

impl Outer {
    /// The outer side made of this process's standard input, output and error. `terminal` says whether the
    /// program gets a terminal too: only then is the user's taken.
    pub fn from_stdio(terminal: bool) -> io::Result<Self> {
        Ok(Self(Kind::Stdio(Box::new(Stdio::open(terminal)?))))
    }

    /// An outer side for somebody elsewhere, and the port at which they are served.
    pub fn port(whose: Whose) -> (Self, Port) {
        let (inside, port) = port::pair(whose);
        (Self(Kind::Port(inside)), port)
    }

    /// An outer side for somebody elsewhere who can be reached through a descriptor.
    pub fn far(whose: Whose, far: impl Far + 'static) -> Self {
        Self(Kind::Far(FarSide { far: Box::new(far), whose }))
    }

    fn stdio(&self) -> Option<&Stdio> {
        match &self.0 {
            Kind::Stdio(stdio) => Some(stdio),
            Kind::Port(_) | Kind::Far(_) => None,
        }
    }

    /// Settings for the program's terminal, taken from the user's. In the background those are somebody else's
    /// for the moment (a shell's line editor's), and of no use.
    pub fn termios(&self) -> Option<Termios> {
        self.stdio().and_then(Stdio::termios)
    }

    /// Whether the user's keys arrive as they are typed.
    pub fn is_interactive(&self) -> bool {
        match &self.0 {
            Kind::Stdio(stdio) => stdio.is_interactive(),
            Kind::Port(port) => port.whose().types,
            Kind::Far(side) => side.whose.types,
        }
    }

    /// The size of the first terminal found on standard input, output or error.
    pub fn size(&self) -> Option<WinSize> {
        self.stdio().and_then(Stdio::size)
    }

    /// Takes the terminal, if it is there to be taken. One that has hung up says so elsewhere.
    pub(crate) fn take(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Kind::Stdio(stdio) => stdio.take(),
            Kind::Port(_) | Kind::Far(_) => Ok(()),
        }
    }

    pub(crate) fn give_back(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Kind::Stdio(stdio) => stdio.give_back(),
            Kind::Port(_) | Kind::Far(_) => Ok(()),
        }
    }

    /// Has the driver woken when something happens that no descriptor tells.
    pub(crate) fn wake_by(&mut self, handle: &Handle) {
        if let Kind::Port(port) = &mut self.0 {
            port.wake_by(handle);
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
        match &self.0 {
            Kind::Stdio(stdio) => stdio.shows_on_terminal(),
            Kind::Port(port) => port.whose().answers,
            Kind::Far(side) => side.whose.answers,
        }
    }

    pub(crate) fn stdin_fd(&self) -> Option<BorrowedFd<'_>> {
        self.stdio().and_then(Stdio::stdin_fd)
    }

    /// Whether something was typed that no descriptor tells of. `room` says whether input is wanted; that somebody
    /// has gone matters in any case.
    pub(crate) fn has_typed(&self, room: bool) -> bool {
        match &self.0 {
            Kind::Stdio(_) => false,
            Kind::Port(port) => port.has_typed(room),
            Kind::Far(side) => room && side.far.has_more(),
        }
    }

    pub(crate) fn blocked_fd(&self) -> Option<BorrowedFd<'_>> {
        self.stdio().and_then(Stdio::blocked_fd)
    }

    pub(crate) fn is_blocked(&self) -> bool {
        match &self.0 {
            Kind::Stdio(stdio) => stdio.is_blocked(),
            Kind::Port(port) => port.is_blocked(),
            Kind::Far(side) => side.is_blocked(),
        }
    }

    /// Bytes that the user's side has not taken yet.
    pub(crate) fn backlog(&self) -> usize {
        match &self.0 {
            Kind::Stdio(stdio) => stdio.backlog(),
            Kind::Port(port) => port.backlog(),
            Kind::Far(side) => side.far.backlog(),
        }
    }

    pub(crate) fn read(&mut self) -> io::Result<Typed> {
        match &mut self.0 {
            Kind::Stdio(stdio) => stdio.read(),
            Kind::Port(port) => Ok(port.read()),
            Kind::Far(side) => Ok(side.read()),
        }
    }

    pub(crate) fn write(&mut self, stream: Stream, bytes: &Bytes) -> io::Result<()> {
        match &mut self.0 {
            Kind::Stdio(stdio) => stdio.write(stream, bytes),
            Kind::Port(port) => {
                port.write(stream, bytes);
                Ok(())
            }
            Kind::Far(side) => {
                side.far.write(stream, bytes);
                Ok(())
            }
        }
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Kind::Stdio(stdio) => stdio.flush(),
            Kind::Port(_) => Ok(()),
            Kind::Far(side) => {
                side.far.flush();
                Ok(())
            }
        }
    }

    /// Sends what was written in one go, where it was not sent at once.
    pub(crate) fn settle(&mut self) {
        if let Kind::Far(side) = &mut self.0 {
            side.far.flush();
        }
    }

    /// Has the far side show whether it is still there.
    pub(crate) fn probe(&mut self) {
        if let Kind::Far(side) = &mut self.0 {
            side.far.probe();
        }
    }

    /// The far side's descriptor, and whether something waits to be sent through it.
    pub(crate) fn far_fd(&self) -> Option<(BorrowedFd<'_>, bool)> {
        match &self.0 {
            Kind::Far(side) => Some((side.far.fd(), side.far.backlog() > 0)),
            Kind::Stdio(_) | Kind::Port(_) => None,
        }
    }

    /// Whether the session goes on when its user has gone.
    pub(crate) fn goes_on_alone(&self) -> bool {
        match &self.0 {
            Kind::Port(port) => port.whose().stays,
            Kind::Far(side) => side.whose.stays,
            Kind::Stdio(_) => false,
        }
    }

    /// What it means that the far side has hung up, for who cannot read what it sent before.
    pub(crate) fn lost(&mut self) -> Typed {
        match &mut self.0 {
            Kind::Far(side) => side.lost(),
            Kind::Stdio(_) | Kind::Port(_) => Typed::Nothing,
        }
    }

    pub(crate) fn abandon(&mut self) {
        match &mut self.0 {
            Kind::Stdio(stdio) => stdio.abandon(),
            Kind::Port(port) => port.abandon(),
            Kind::Far(side) => side.far.abandon(),
        }
    }
}
