//! The local backend: a program on a pseudo-terminal of its own.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, Winsize, tcgetattr, tcgetpgrp,
    tcgetwinsize, tcsetattr, tcsetwinsize,
};
use tapdeck_core::{Exit, Stamp, Stream, Time, WinSize};

use super::spawn::{Controlling, Leader};
use super::{Backend, CommandSpec, EndOfInput, Got, SpawnError, StopSignal, Watch};
use crate::sys::InheritedSignals;

/// How long to leave a closed terminal alone before looking whether a process has opened it again.
const REOPEN_CHECK: Duration = Duration::from_millis(50);

/// What a terminal keeps of a line in line mode, its end not counted.
const LONGEST_LINE: usize = 4095;

/// How long a session must be quiet before the end of input is given to a program that may be
/// waiting for it in a way that cannot be seen.
const END_PATIENCE: Duration = Duration::from_secs(1);

/// How the new terminal begins.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct TerminalSetup {
    pub(crate) size: WinSize,
    pub(crate) termios: Option<Termios>,
    pub(crate) tty_settings: Vec<(String, u8)>,
    pub(crate) no_echo: bool,
    pub(crate) stoppable: bool,
}

impl TerminalSetup {
    /// Sets the size.
    #[must_use]
    pub fn size(mut self, size: WinSize) -> Self {
        self.size = size;
        self
    }

    /// Sets the settings; those of the system by default.
    #[must_use]
    pub fn termios(mut self, termios: impl Into<Option<Termios>>) -> Self {
        self.termios = termios.into();
        self
    }

    /// Sets single settings, by the names of [`crate::tty_settings`], on top of those.
    #[must_use]
    pub fn tty_settings(mut self, tty_settings: Vec<(String, u8)>) -> Self {
        self.tty_settings = tty_settings;
        self
    }

    /// Sets whether input is not echoed. Without a user that types, piped input would be shown
    /// twice.
    #[must_use]
    pub fn no_echo(mut self, no_echo: bool) -> Self {
        self.no_echo = no_echo;
        self
    }

    /// Sets whether Ctrl-Z can stop the program, as it can a job of a shell. That is for sessions
    /// that are stopped and continued along with the program: nothing else would continue it.
    #[must_use]
    pub fn stoppable(mut self, stoppable: bool) -> Self {
        self.stoppable = stoppable;
        self
    }
}

/// A program on a pseudo-terminal.
pub struct LocalPty {
    leader: Leader,
    master: OwnedFd,
    /// When to look again at a terminal that every process has closed.
    closed_until: Option<Time>,
    /// Whether the end of input was typed since the program left line mode.
    end_sent_raw: bool,
}

crate::opaque::opaque_debug!(LocalPty);

impl LocalPty {
    /// Starts a program on a new terminal, which becomes the controlling one of a new session.
    pub fn spawn(
        spec: &CommandSpec,
        signals: InheritedSignals,
        setup: &TerminalSetup,
    ) -> Result<Self, SpawnError> {
        let (master, slave) = open_pair(setup).map_err(SpawnError::Terminal)?;
        let stdio = || slave.try_clone().map(Stdio::from).map_err(SpawnError::Terminal);
        let stdio = [stdio()?, stdio()?, stdio()?];
        let terminal = Controlling { master: master.as_fd(), stoppable: setup.stoppable };
        let leader = Leader::spawn(spec, signals, Some(terminal), stdio)?;
        Ok(Self { leader, master, closed_until: None, end_sent_raw: false })
    }

    fn foreground(&self) -> Option<rustix::process::Pid> {
        tcgetpgrp(&self.master).ok()
    }

    /// Whether everything that was written to the program has been read by it, the end of input
    /// included.
    fn input_taken(&self) -> io::Result<bool> {
        let slave = ioctl_tiocgptpeer(&self.master, PEER)?;
        let mut fds = [rustix::event::PollFd::new(&slave, rustix::event::PollFlags::IN)];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        rustix::event::poll(&mut fds, Some(&now))?;
        Ok(!fds[0].revents().contains(rustix::event::PollFlags::IN))
    }
}

const PEER: OpenptFlags = OpenptFlags::RDWR.union(OpenptFlags::NOCTTY).union(OpenptFlags::CLOEXEC);

fn open_pair(setup: &TerminalSetup) -> io::Result<(OwnedFd, OwnedFd)> {
    let master = openpt(PEER)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let slave = ioctl_tiocgptpeer(&master, PEER)?;
    let mut termios = match &setup.termios {
        Some(outer) => outer.clone(),
        None => {
            let mut own = tcgetattr(&slave)?;
            own.input_modes |= InputModes::IUTF8;
            own
        }
    };
    for (name, value) in &setup.tty_settings {
        if !crate::tty_settings::set(&mut termios, name, *value) {
            let why = format!("no setting of a terminal is called {name:?}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
    }
    if setup.no_echo {
        termios.local_modes -= LocalModes::ECHO;
    }
    tcsetattr(&slave, OptionalActions::Now, &termios)?;
    tcsetwinsize(&master, winsize(setup.size))?;
    fcntl_setfl(&master, fcntl_getfl(&master)? | OFlags::NONBLOCK)?;
    Ok((master, slave))
}

fn winsize(size: WinSize) -> Winsize {
    Winsize { ws_row: size.rows, ws_col: size.cols, ws_xpixel: size.x_pixels, ws_ypixel: size.y_pixels }
}

impl Backend for LocalPty {
    fn watch(&self) -> Watch<'_> {
        let master = self.master.as_fd();
        Watch {
            readable: [self.closed_until.is_none().then_some(master), None],
            writable: Some(master),
            exit: Some(self.leader.exit_fd()),
            read_at: self.closed_until,
            ..Watch::default()
        }
    }

    fn read(&mut self, buf: &mut [u8], now: Stamp) -> io::Result<Got> {
        match rustix::io::read(&self.master, buf) {
            Ok(0) => Ok(Got::Nothing),
            Ok(n) => {
                self.closed_until = None;
                Ok(Got::Bytes(Stream::Out, n))
            }
            // No process has the terminal open. That can change while the program lives, and cannot
            // be waited for.
            Err(rustix::io::Errno::IO) => {
                self.closed_until = Some(now.mono + REOPEN_CHECK);
                Ok(Got::Closed)
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {
                self.closed_until = None;
                Ok(Got::Nothing)
            }
            Err(e) => Err(e.into()),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(&self.master, bytes)?)
    }

    fn hides_input(&self) -> bool {
        // A line editor has no lines from its terminal, and shows what is typed itself.
        tcgetattr(&self.master).is_ok_and(|t| {
            t.local_modes.contains(LocalModes::ICANON) && !t.local_modes.contains(LocalModes::ECHO)
        })
    }

    fn reads_keys(&self) -> bool {
        tcgetattr(&self.master).is_ok_and(|t| !t.local_modes.contains(LocalModes::ICANON))
    }

    fn end_input(&mut self, line_open: bool, quiet: Duration) -> io::Result<EndOfInput> {
        // Before the program has read what is there, the end of input would be lost if it then left
        // the line mode; and two ends in a row would be two ends.
        if !self.input_taken()? {
            return Ok(EndOfInput::NotYet);
        }
        let termios = tcgetattr(&self.master)?;
        let eof = termios.special_codes[SpecialCodeIndex::VEOF];
        if eof == 0 {
            return Ok(EndOfInput::NotYet);
        }
        let long = quiet >= END_PATIENCE;
        if termios.local_modes.contains(LocalModes::ICANON) {
            self.end_sent_raw = false;
            // An end that no process waits for would turn into a stray byte if the program left
            // line mode before it reads. A program that waits in another way than by reading gets
            // it after a while.
            if !long && !self.leader.reads_terminal(self.foreground()) {
                return Ok(EndOfInput::NotYet);
            }
            // The first one after an open line only hands that line over.
            return Ok(EndOfInput::Send(eof, if line_open { 2 } else { 1 }));
        }
        // Outside line mode it is a key like any other, which line editors take for the end: type
        // it once.
        if !long || std::mem::replace(&mut self.end_sent_raw, true) {
            return Ok(EndOfInput::NotYet);
        }
        Ok(EndOfInput::Send(eof, 1))
    }

    fn resize(&mut self, size: WinSize) -> io::Result<()> {
        let new = winsize(size);
        let old = tcgetwinsize(&self.master)?;
        if (old.ws_row, old.ws_col, old.ws_xpixel, old.ws_ypixel)
            != (new.ws_row, new.ws_col, new.ws_xpixel, new.ws_ypixel)
        {
            tcsetwinsize(&self.master, new)?;
        }
        Ok(())
    }

    fn signal(&mut self, signal: i32) -> io::Result<()> {
        self.leader.signal_group(self.foreground(), signal)
    }

    fn stop(&mut self, how: StopSignal) -> io::Result<()> {
        self.leader.stop(how);
        Ok(())
    }

    fn freeze(&mut self, frozen: bool) -> io::Result<()> {
        self.leader.freeze(frozen);
        Ok(())
    }

    fn waits_for_input(&self) -> Option<bool> {
        Some(self.reads_keys() || self.leader.waits_for_input(self.foreground()))
    }

    fn longest_line(&self) -> Option<usize> {
        let termios = tcgetattr(&self.master).ok()?;
        termios.local_modes.contains(LocalModes::ICANON).then_some(LONGEST_LINE)
    }

    fn stopped(&mut self) -> bool {
        self.leader.stopped()
    }

    fn exited(&mut self) -> io::Result<Option<Exit>> {
        self.leader.exited()
    }

    fn has_terminal(&self) -> bool {
        true
    }

    fn survivors(&self) -> usize {
        self.leader.survivors()
    }

    fn pid(&self) -> Option<i32> {
        Some(self.leader.pid().as_raw_nonzero().get())
    }
}
