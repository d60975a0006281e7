//! Starting a session from a description of it: signals, user's terminal, backend, recorder and
//! driver, wired in the one order that works.

use std::io;
use std::time::Duration;

use tapdeck_core::{Event, LogLimits, WinSize};

use crate::backend::{Backend, CommandSpec, NonInteractive, Place, Prompter, SpawnError, TerminalSetup};
use crate::clock::Clock;
use crate::driver::{Config, Driver, Outcome};
use crate::glass::Glass;
use crate::inbox::Handle;
use crate::processes;
use crate::recorder::{RecordOptions, Recorder, RecordingFile, Report};
use crate::shared::SharedLog;
use crate::sys::InheritedSignals;
use crate::user_side::{Signals, TerminalPrompter, UserSide};

/// Bytes of the past that a session keeps: minutes of what an agent writes.
const RING: usize = 8 << 20;

/// A session to start in the foreground of this process.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Launch {
    /// What to run.
    pub command: CommandSpec,
    /// Where.
    pub place: Place,
    /// Run on pipes instead of a terminal.
    pub no_pty: bool,
    /// Leave this process's terminal alone: no input, no output.
    pub headless: bool,
    /// There is no input: the program finds its end from the start.
    pub no_input: bool,
    /// The terminal's size, if not the user's.
    pub size: Option<WinSize>,
    /// End the program after this long.
    pub timeout: Option<Duration>,
    /// The session's clock, if it is not to start with the session.
    pub clock: Option<Clock>,
    /// Bytes of the past to keep for clients that come late.
    pub ring: usize,
    /// Settings of the program's terminal, by the names of [`crate::tty_settings`], where it has
    /// none to take them from. Another name is an error: see [`crate::tty_settings::is_known`].
    pub tty_settings: Vec<(String, u8)>,
    /// How long a program whose user has gone may take to end before it is killed.
    pub kill_after: Duration,
}

/// What starts a session's program, given the signals that it is to have, the user's side, the
/// size, and the prompter.
pub type Start<'a> = dyn Fn(
        InheritedSignals,
        Option<&UserSide>,
        WinSize,
        &mut dyn Prompter,
    ) -> Result<Box<dyn Backend>, LaunchError>
    + 'a;

/// A session that runs, for those who open doors to it.
#[derive(Debug)]
pub struct Session {
    /// To act on it.
    pub handle: Handle,
    /// What it does.
    pub log: SharedLog,
    /// What it shows.
    pub glass: Glass,
    /// Its clock.
    pub clock: Clock,
    /// Its size at the start.
    pub size: WinSize,
    /// Whether the program has a terminal.
    pub has_terminal: bool,
    /// The program's process.
    pub pid: Option<i32>,
}

/// A recording to make of it.
#[derive(Debug)]
pub struct Recording {
    /// Where.
    pub file: RecordingFile,
    /// What, and what to say about it.
    pub options: RecordOptions,
}

/// A session that has ended.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub outcome: Result<Outcome, LaunchError>,
    /// What became of its recording.
    pub report: Option<Report>,
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
    /// The place where it was to run could not be reached.
    #[error("{why}")]
    Place {
        /// What went wrong.
        why: String,
    },
    /// The session broke down.
    #[error("the session broke down: {0}")]
    Drive(#[source] io::Error),
}

impl Launch {
    /// A session for this command, with everything else as usual.
    pub fn new(command: CommandSpec) -> Self {
        Self {
            command,
            place: Place::Local,
            no_pty: false,
            headless: false,
            no_input: false,
            size: None,
            timeout: None,
            clock: None,
            ring: RING,
            tty_settings: Vec::new(),
            kill_after: Config::default().kill_after,
        }
    }

    /// The command as it is shown to people; where the place decides what runs, that is the place.
    pub fn shown_command(&self) -> Vec<String> {
        self.place.shown_command(&self.command)
    }

    /// Runs the session to its end. Call before starting any thread: the signals of this process
    /// become the session's. A recording is whole however the session ends; none is made of a
    /// program that could not be started.
    pub fn run(&self, recording: Option<Recording>) -> Finished {
        self.run_with(recording, |_| ())
    }

    /// The same, with doors: `open` is given the session once the program runs, may start threads,
    /// and what it returns is dropped when the recording is finished. It is called on the thread
    /// that drives the session afterwards, so whatever waits for the session's answers belongs on a
    /// thread that it starts (see [`Handle`]).
    pub fn run_with<D>(&self, recording: Option<Recording>, open: impl FnOnce(Session) -> D) -> Finished {
        self.run_on(
            &|signals, user, size, prompter| self.start_backend(signals, user, size, prompter),
            recording,
            open,
        )
    }

    /// The same, with the program somewhere else: `backend` starts it.
    pub fn run_on<D>(
        &self,
        backend: &Start<'_>,
        recording: Option<Recording>,
        open: impl FnOnce(Session) -> D,
    ) -> Finished {
        finished(self.with_signals().and_then(|(signals, user)| {
            let inherited = signals.inherited();
            self.drive(backend, (inherited, Some(signals)), user, starter(recording), finish, open)
        }))
    }

    /// Runs the session to its end on the calling thread, for a client at the other end of `user`
    /// or for none. The signals of this process are not the session's; the program gets the given
    /// ones.
    pub fn run_served<D>(
        &self,
        signals: InheritedSignals,
        user: Option<UserSide>,
        recording: Option<Recording>,
        open: impl FnOnce(Session) -> D,
    ) -> Finished {
        let backend = |signals, user: Option<&UserSide>, size, prompter: &mut dyn Prompter| {
            self.start_backend(signals, user, size, prompter)
        };
        self.run_served_on(&backend, signals, user, recording, open)
    }

    /// Does the same as [`Launch::run_served`] with a program that `backend` starts.
    pub fn run_served_on<D>(
        &self,
        backend: &Start<'_>,
        signals: InheritedSignals,
        user: Option<UserSide>,
        recording: Option<Recording>,
        open: impl FnOnce(Session) -> D,
    ) -> Finished {
        finished(self.drive(backend, (signals, None), user, starter(recording), finish, open))
    }

    /// The same with a recorder of any kind: `start` is given the log before the program's first
    /// byte is in it,
    /// `finish` is called when the log is closed, before the doors are.
    ///
    /// # Errors
    /// When the session could not be set up or its program not started: `start` is not called
    /// then, and there is nothing to finish.
    pub fn run_recorded<R, T, D>(
        &self,
        start: impl FnOnce(&SharedLog, Clock, WinSize) -> io::Result<R>,
        finish: impl FnOnce(R) -> T,
        open: impl FnOnce(Session) -> D,
    ) -> Result<(Result<Outcome, LaunchError>, T), LaunchError> {
        let (signals, user) = self.with_signals()?;
        let backend = |signals, user: Option<&UserSide>, size, prompter: &mut dyn Prompter| {
            self.start_backend(signals, user, size, prompter)
        };
        self.drive(&backend, (signals.inherited(), Some(signals)), user, start, finish, open)
    }

    /// Takes over the signals and, unless told to leave it alone, the terminal of this process.
    fn with_signals(&self) -> Result<(Signals, Option<UserSide>), LaunchError> {
        let signals = Signals::install().map_err(LaunchError::Setup)?;
        let user = (!self.headless).then(|| UserSide::from_stdio(!self.no_pty)).transpose();
        Ok((signals, user.map_err(LaunchError::Setup)?))
    }

    fn drive<R, T, D>(
        &self,
        backend: &Start<'_>,
        (inherited, signals): (InheritedSignals, Option<Signals>),
        user: Option<UserSide>,
        start: impl FnOnce(&SharedLog, Clock, WinSize) -> io::Result<R>,
        finish: impl FnOnce(R) -> T,
        open: impl FnOnce(Session) -> D,
    ) -> Result<(Result<Outcome, LaunchError>, T), LaunchError> {
        let clock = self.clock.unwrap_or_else(Clock::start);
        let user_size = user.as_ref().and_then(UserSide::size);
        let mut size = self.size.or(user_size).unwrap_or(WinSize::cells(80, 24));
        let limits = LogLimits::default().keep(self.ring);
        let log = SharedLog::new(limits);
        let mut backend = match &signals {
            Some(signals) => {
                backend(inherited, user.as_ref(), size, &mut TerminalPrompter::new(Some(signals)))?
            }
            None => backend(inherited, user.as_ref(), size, &mut NonInteractive)?,
        };
        // A far place takes its time, in which the user's terminal may have changed.
        let now = self.size.or_else(|| user.as_ref().and_then(UserSide::size)).unwrap_or(size);
        if now != size {
            backend.resize(now).map_err(LaunchError::Setup)?;
            size = now;
        }
        let config = Config::default()
            .size(size)
            .timeout(self.timeout)
            .kill_after(self.kill_after)
            .log(limits)
            .no_input(self.no_input);
        if backend.bare_lines() {
            log.set_pipes();
        }
        // The first event of every session is its true size.
        log.append(Event::Resize(size), clock.now());
        let recorder = start(&log, clock, size).map_err(LaunchError::Setup)?;
        let mut doors = None;
        let (has_terminal, pid) = (backend.has_terminal(), backend.pid());
        tracing::info!(cols = size.cols, rows = size.rows, has_terminal, pid, "session started");
        let driver = Driver::new(backend, clock, config, log.clone()).map_err(LaunchError::Setup);
        let outcome = driver.and_then(|driver| {
            let driver = driver.with(user, signals);
            let (handle, glass) = (driver.handle(), driver.glass());
            handle.driven_here();
            doors = Some(open(Session { handle, log: log.clone(), glass, clock, size, has_terminal, pid }));
            driver.run().map_err(LaunchError::Drive)
        });
        match &outcome {
            Ok(outcome) => {
                let Outcome { exit, ended, survivors, .. } = outcome;
                tracing::info!(?exit, ?ended, survivors, "session ended");
            }
            Err(e) => tracing::error!(error = %e, "session broke down"),
        }
        log.close();
        let report = finish(recorder);
        // Last, so that a caller that waits for its snapshot can still be answered.
        drop(doors);
        Ok((outcome, report))
    }

    fn start_backend(
        &self,
        signals: InheritedSignals,
        user: Option<&UserSide>,
        size: WinSize,
        prompter: &mut dyn Prompter,
    ) -> Result<Box<dyn Backend>, LaunchError> {
        let setup = (!self.no_pty).then(|| TerminalSetup {
            size,
            termios: user.and_then(UserSide::termios),
            tty_settings: self.tty_settings.clone(),
            no_echo: user.is_some_and(|o| !o.is_interactive()),
            stoppable: user.is_some_and(UserSide::is_stdio) && !processes::is_orphaned(),
        });
        tracing::debug!(place = %self.place, pty = setup.is_some(), "starting the program");
        Ok(self.place.start(&self.command, setup.as_ref(), signals, prompter)?)
    }
}

fn starter(
    recording: Option<Recording>,
) -> impl FnOnce(&SharedLog, Clock, WinSize) -> io::Result<Option<Recorder>> {
    |log, clock, size| {
        recording.map(|r| Recorder::start(r.file, log.clone(), clock, r.options, size)).transpose()
    }
}

fn finish(recorder: Option<Recorder>) -> Option<Report> {
    recorder.map(Recorder::finish)
}

fn finished(ran: Result<(Result<Outcome, LaunchError>, Option<Report>), LaunchError>) -> Finished {
    match ran {
        Ok((outcome, report)) => Finished { outcome, report },
        Err(e) => Finished { outcome: Err(e), report: None },
    }
}
