//! The user's keyboard, for commands that show something and obey keys: raw keys, signals and time
//! in one wait.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::termios::isatty;
use tapdeck_core::WinSize;

use super::signals::{ENDS, Signals};
use super::tty::{Take, Tty, window_size};
use crate::sys::{self, FAULTS, InheritedSignals};

/// How often to look whether a background process has come to the foreground.
const FOREGROUND_CHECK: Duration = Duration::from_millis(250);

/// What ended a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pressed {
    /// These bytes were typed.
    Keys(Vec<u8>),
    /// This process is asked to end.
    Signal(i32),
    /// This process is asked to stop: call [`Keyboard::suspend`].
    Suspend,
    /// The terminal has another size, or this process was stopped meanwhile: paint again.
    Repaint,
    /// Nothing within the time, or something on one of the other descriptors.
    Nothing,
}

/// The user's keyboard in raw mode, or the lack of one.
pub struct Keyboard {
    tty: Option<Tty>,
    /// Where keys come from, if not from standard input.
    own: Option<OwnedFd>,
    signals: Signals,
}

crate::opaque::opaque_debug!(Keyboard);

impl Keyboard {
    /// Takes the keyboard, if standard input and output are a terminal.
    pub fn take() -> io::Result<Self> {
        Self::take_dressed(b"", b"")
    }

    /// The same, with bytes to be written whenever the terminal is taken, and others whenever it is
    /// given back: at the end, when this process is suspended, and by a panic.
    pub fn take_dressed(on: &[u8], off: &[u8]) -> io::Result<Self> {
        let signals = Signals::install()?;
        let (stdin, stdout) = (rustix::stdio::stdin(), rustix::stdio::stdout());
        let tty = if isatty(stdin) && isatty(stdout) {
            let mut tty = Tty::new(stdin.try_clone_to_owned()?, Take::Raw)?.dressed(on, off);
            tty.take()?;
            Some(tty)
        } else {
            None
        };
        Ok(Self { tty, own: None, signals })
    }

    /// Takes the keyboard of the terminal that shows the output, even where standard input is
    /// something else.
    pub fn take_of_terminal() -> io::Result<Self> {
        let mut this = Self::take()?;
        if this.tty.is_none() && isatty(rustix::stdio::stdout()) {
            let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
            // A process without a controlling terminal has no user to press keys.
            if let Ok(own) = open("/dev/tty", flags, Mode::empty()) {
                let mut tty = Tty::new(own.try_clone()?, Take::Raw)?;
                tty.take()?;
                (this.tty, this.own) = (Some(tty), Some(own));
            }
        }
        Ok(this)
    }

    /// Changes what is written when the terminal is taken again after a suspension, and when it is
    /// given back. Writes nothing now.
    pub fn dress(&mut self, on: &[u8], off: &[u8]) {
        if let Some(tty) = &mut self.tty {
            tty.redress(on, off);
        }
    }

    /// No keyboard: signals alone, with the terminal left as it is.
    pub fn signals_only() -> io::Result<Self> {
        Ok(Self { tty: None, own: None, signals: Signals::install()? })
    }

    /// The same, for those signals alone that tell this process to end.
    pub fn ends_only() -> io::Result<Self> {
        Ok(Self { tty: None, own: None, signals: Signals::install_ends()? })
    }

    /// The signals that a program started by this process is to have.
    pub fn inherited(&self) -> InheritedSignals {
        self.signals.inherited()
    }

    /// Whether there is a user to press keys.
    pub fn is_there(&self) -> bool {
        self.tty.is_some()
    }

    /// The size of the terminal that shows the output, if one does.
    pub fn screen_size(&self) -> Option<WinSize> {
        window_size(rustix::stdio::stdout()).ok()
    }

    /// Waits for a key or a signal, at most so long; without a limit, until one comes.
    pub fn wait(&mut self, at_most: Option<Duration>) -> io::Result<Pressed> {
        self.wait_beside(at_most, &mut [])
    }

    /// The same, but something to read on another descriptor ends the wait too.
    pub fn wait_with(&mut self, at_most: Option<Duration>, others: &[BorrowedFd<'_>]) -> io::Result<Pressed> {
        let mut others: Vec<_> =
            others.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        self.wait_beside(at_most, &mut others)
    }

    /// The same, and ends too when one of `others` has something; look there when nothing was
    /// pressed.
    pub fn wait_beside(
        &mut self,
        at_most: Option<Duration>,
        others: &mut [PollFd<'_>],
    ) -> io::Result<Pressed> {
        let keys = self.own.as_ref().map_or(rustix::stdio::stdin(), AsFd::as_fd);
        // Nothing tells that a shell has brought this process to the foreground.
        let waits = self.tty.as_ref().is_some_and(|tty| !tty.is_taken());
        let at_most =
            if waits { Some(at_most.map_or(FOREGROUND_CHECK, |d| d.min(FOREGROUND_CHECK))) } else { at_most };
        let mut fds = vec![PollFd::from_borrowed_fd(self.signals.fd(), PollFlags::IN)];
        if self.tty.as_ref().is_some_and(Tty::is_taken) {
            fds.push(PollFd::from_borrowed_fd(keys, PollFlags::IN));
        }
        let own = fds.len();
        fds.extend(others.iter().cloned());
        let limit = at_most
            .map(|d| Timespec { tv_sec: d.as_secs().cast_signed(), tv_nsec: i64::from(d.subsec_nanos()) });
        match poll(&mut fds, limit.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        let typed = fds[1..own].iter().any(|fd| !fd.revents().is_empty());
        drop(fds);
        if waits && self.taken_now()? {
            return Ok(Pressed::Repaint);
        }
        let keys = self.own.as_ref().map_or(rustix::stdio::stdin(), AsFd::as_fd);
        while let Some(signal) = self.signals.next() {
            match signal {
                libc::SIGWINCH => return Ok(Pressed::Repaint),
                libc::SIGTSTP => return Ok(Pressed::Suspend),
                libc::SIGCONT => {
                    self.tty.as_mut().map_or(Ok(()), Tty::take)?;
                    return Ok(Pressed::Repaint);
                }
                // There is no program to pass these on to.
                signal if ENDS.contains(&signal) || FAULTS.contains(&signal) || signal == libc::SIGXCPU => {
                    return Ok(Pressed::Signal(signal));
                }
                _ => {}
            }
        }
        if typed {
            let mut buf = [0; 1024];
            return Ok(match rustix::io::read(keys, &mut buf) {
                Ok(0) | Err(rustix::io::Errno::IO) => Pressed::Signal(libc::SIGHUP),
                Ok(n) => Pressed::Keys(buf[..n].to_vec()),
                Err(_) => Pressed::Nothing,
            });
        }
        Ok(Pressed::Nothing)
    }

    /// Tries again to take a terminal that was another process's before.
    fn taken_now(&mut self) -> io::Result<bool> {
        let Some(tty) = &mut self.tty else { return Ok(false) };
        tty.take()?;
        Ok(tty.is_taken())
    }

    /// Stops this process with the terminal given back meanwhile. Everything is to be painted again
    /// then.
    pub fn suspend(&mut self) -> io::Result<()> {
        if let Some(tty) = &mut self.tty {
            tty.give_back()?;
            sys::stop_self()?;
            tty.take()?;
        }
        Ok(())
    }
}
