//! The user's side of a session as this process's standard input, output and error.
//!
//! It may be a terminal on both sides, on one side, or no terminal at all.

use std::io;
use std::os::fd::BorrowedFd;

use bytes::{Bytes, BytesMut};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::termios::{Termios, isatty};
use tapdeck_core::{Stream, WinSize};

use super::channel::{Channel, Sink};
use super::tty::{Take, Tty};
use super::{Typed, terminal_size};

/// Standard input, output and error.
pub struct Stdio {
    stdin: Option<Channel>,
    stdout: Sink,
    stderr: Sink,
    tty: Option<Tty>,
    stdin_is_tty: bool,
    buf: BytesMut,
}

crate::opaque::opaque_debug!(Stdio);

const READ_SIZE: usize = 64 * 1024;

impl Stdio {
    /// Opens them anew. `terminal` says whether the program gets a terminal too: only then is the
    /// user's taken.
    pub(super) fn open(terminal: bool) -> io::Result<Self> {
        let (stdin, stdout, stderr) =
            (rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr());
        let (stdin_is_tty, stdout_is_tty) = (isatty(stdin), isatty(stdout));
        // With output going elsewhere (`tapdeck run -- ls | less`), the terminal is another
        // program's to set.
        let tty = match (stdin_is_tty, stdout_is_tty) {
            _ if !terminal => None,
            (true, true) => Some(Tty::new(stdin.try_clone_to_owned()?, Take::Raw)?),
            (false, true) => Some(Tty::new(stdout.try_clone_to_owned()?, Take::OutputOnly)?),
            _ => None,
        };
        Ok(Self {
            stdin: Some(Channel::open(stdin, OFlags::RDONLY)?),
            stdout: Sink::new(Channel::open(stdout, OFlags::WRONLY)?),
            stderr: Sink::new(Channel::open(stderr, OFlags::WRONLY)?),
            tty,
            stdin_is_tty,
            buf: BytesMut::new(),
        })
    }

    /// Settings for the program's terminal, taken from the user's. In the background those are
    /// another program's for the moment (a shell's line editor's), and of no use.
    pub(super) fn termios(&self) -> Option<Termios> {
        self.tty.as_ref().filter(|tty| tty.in_foreground()).map(|tty| tty.original().clone())
    }

    /// Whether the user's keys arrive as they are typed.
    pub(super) fn is_interactive(&self) -> bool {
        self.stdin_is_tty && self.tty.is_some()
    }

    /// The size of the first terminal found on standard input, output or error.
    pub(super) fn size(&self) -> Option<WinSize> {
        if let Some(tty) = &self.tty {
            return tty.size().ok();
        }
        terminal_size()
    }

    /// Takes the terminal, if it is there to be taken. One that has hung up says so elsewhere.
    pub(super) fn take(&mut self) -> io::Result<()> {
        match self.tty.as_mut().map_or(Ok(()), Tty::take) {
            Err(e) if e.raw_os_error() == Some(libc::EIO) => Ok(()),
            other => other,
        }
    }

    pub(super) fn give_back(&mut self) -> io::Result<()> {
        self.tty.as_mut().map_or(Ok(()), Tty::give_back)
    }

    /// Whether there is a terminal that is not ours yet because this process is in the background.
    pub(super) fn waits_for_foreground(&self) -> bool {
        self.tty.as_ref().is_some_and(|tty| !tty.is_taken())
    }

    /// Whether a terminal shows the output, so that modes left behind matter.
    pub(super) fn shows_on_terminal(&self) -> bool {
        self.tty.is_some()
    }

    pub(super) fn stdin_fd(&self) -> Option<BorrowedFd<'_>> {
        if self.stdin_is_tty && self.waits_for_foreground() {
            return None;
        }
        self.stdin.as_ref().map(Channel::fd)
    }

    pub(super) fn blocked_fd(&self) -> Option<BorrowedFd<'_>> {
        [&self.stdout, &self.stderr].into_iter().find(|s| s.is_blocked()).map(Sink::fd)
    }

    pub(super) fn is_blocked(&self) -> bool {
        self.stdout.is_blocked() || self.stderr.is_blocked()
    }

    /// Bytes that the user's side has not taken yet.
    pub(super) fn backlog(&self) -> usize {
        self.stdout.backlog() + self.stderr.backlog()
    }

    pub(super) fn read(&mut self) -> io::Result<Typed> {
        let Some(stdin) = &self.stdin else { return Ok(Typed::Nothing) };
        if self.buf.len() < READ_SIZE / 2 {
            self.buf = BytesMut::zeroed(READ_SIZE);
        }
        match rustix::io::read(stdin.fd(), &mut self.buf[..]) {
            // A terminal in raw mode has no end of input other than its own.
            Ok(0) if self.is_interactive() => {
                self.stdin = None;
                Ok(Typed::HungUp)
            }
            Ok(0) => {
                self.stdin = None;
                Ok(Typed::End)
            }
            Ok(n) => Ok(Typed::Bytes(self.buf.split_to(n).freeze())),
            Err(Errno::AGAIN | Errno::INTR) => Ok(Typed::Nothing),
            Err(Errno::IO) => {
                self.stdin = None;
                Ok(Typed::HungUp)
            }
            Err(e) => Err(e.into()),
        }
    }

    pub(super) fn write(&mut self, stream: Stream, bytes: &Bytes) -> io::Result<()> {
        match stream {
            Stream::Out => self.stdout.write(bytes),
            Stream::Err => self.stderr.write(bytes),
        }
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()?;
        self.stderr.flush()
    }

    pub(super) fn abandon(&mut self) {
        self.stdout.abandon();
        self.stderr.abandon();
    }
}
