//! Starting a session from a description of it: signals, user's terminal, backend, recorder and driver, wired
//! in the one order that works.

use std::io;
use std::time::Duration;

use tapdeck_core::WinSize;

use crate::backend::{Backend, CommandSpec, LocalPty, Pipes, SpawnError, TerminalSetup};
use crate::clock::Clock;
use crate::driver::{Config, Driver, Outcome};
use crate::outer::{Outer, Signals};

/// A session to start in the foreground of this process.
#[derive(Debug, Clone)]
pub struct Launch {
    /// What to run.
    pub command: CommandSpec,
    /// Run on pipes instead of a terminal.
    pub no_pty: bool,
    /// Leave this process's terminal alone: no input, no output.
    pub headless: bool,
    /// The terminal's size, if not the user's.
    pub size: Option<WinSize>,
    /// End the program after this long.
    pub timeout: Option<Duration>,
}

/// A session that could not be started or driven.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The program did not start.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The terminal or the signals of this process could not be set up.
    #[error("cannot set up this terminal: {0}")]
    Setup(#[source] io::Error),
    /// The session broke down.
    #[error("the session broke down: {0}")]
    Drive(#[source] io::Error),
}

impl Launch {
    /// A session for this command, with everything else as usual.
    pub fn new(command: CommandSpec) -> Self {
        Self { command, no_pty: false, headless: false, size: None, timeout: None }
    }

    /// Runs the session to its end. Call before starting any thread: the signals of this process become the
    /// session's.
    pub fn run(&self) -> Result<Outcome, LaunchError> {
        let clock = Clock::start();
        let signals = Signals::install().map_err(LaunchError::Setup)?;
        let outer = if self.headless {
            None
        } else {
            Some(Outer::from_stdio(!self.no_pty).map_err(LaunchError::Setup)?)
        };
        let outer_size = outer.as_ref().and_then(Outer::size);
        let size = self.size.or(outer_size).unwrap_or(WinSize::cells(80, 24));
        if self.no_pty {
            let backend = Pipes::spawn(&self.command, signals.inherited())?;
            self.drive(backend, clock, signals, outer, size)
        } else {
            let setup = TerminalSetup {
                size,
                termios: outer.as_ref().and_then(Outer::termios),
                no_echo: outer.as_ref().is_some_and(|o| !o.is_interactive()),
            };
            let backend = LocalPty::spawn(&self.command, signals.inherited(), &setup)?;
            self.drive(backend, clock, signals, outer, size)
        }
    }

    fn drive(
        &self,
        backend: impl Backend,
        clock: Clock,
        signals: Signals,
        outer: Option<Outer>,
        size: WinSize,
    ) -> Result<Outcome, LaunchError> {
        let config = Config { size, timeout: self.timeout, ..Config::default() };
        let driver = Driver::new(backend, clock, config).map_err(LaunchError::Setup)?;
        let driver = match outer {
            Some(outer) => driver.with_outer(outer, signals),
            None => driver.with_signals(signals),
        };
        driver.run().map_err(LaunchError::Drive)
    }
}
