//! A program under test: started on a terminal of its own, driven by keys, and waited for by what
//! it shows. Nothing in
//! here sleeps: every wait ends with the output that it waits for, or at its limit with a picture
//! of the screen.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use tapdeck_core::check::{Condition, Fact, Frame, View, What, seconds, signal_number};
use tapdeck_core::{Event, Exit, LogLimits, PartyId, Refused, Role, Time, WinSize};
use tapdeck_host::backend::{
    Backend, CommandSpec, LocalPty, NonInteractive, Place, SpawnError, TerminalSetup,
};
use tapdeck_host::leftovers::Leftovers;
use tapdeck_host::service_events::{self, Reading};
use tapdeck_host::{Clock, Config, Driver, Ended, Handle, Outcome, SharedLog, TapReader, Unanswered};
use tapdeck_term::keys::{self, KeyPress};
use tapdeck_term::{Modes, Size};

use super::collect::{Collector, Sent};
use super::finished::{Finished, ended, stored};
use super::halt::{Halt, Held};
use super::picture;
use super::{AtCaller, TestError, TestResult};

/// The default time limit of a wait.
const PATIENCE: Duration = Duration::from_secs(10);
/// How much of a session is kept for its readers: a test looks at everything that happened.
const LOG: LogLimits = LogLimits::new(64 << 20, 256 << 20);

/// A program to test, before it is started.
#[derive(Debug, Clone)]
pub struct Program {
    command: CommandSpec,
    size: Size,
    timeout: Duration,
    patience: Duration,
    home: Option<PathBuf>,
    place: Place,
    halt: Halt,
}

impl Program {
    /// A program and its arguments, on a terminal of 80 columns and 24 rows. It gets this
    /// process's environment with
    /// `TERM=xterm-256color`.
    pub fn new(argv: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        let mut command = CommandSpec::new(argv);
        command.env.push(("TERM".into(), Some("xterm-256color".into())));
        Self {
            command,
            size: Size::new(80, 24),
            timeout: Duration::from_secs(60),
            patience: PATIENCE,
            home: None,
            place: Place::Local,
            halt: Halt::default(),
        }
    }

    /// The terminal's size.
    pub fn size(mut self, cols: u16, rows: u16) -> Self {
        self.size = Size::new(cols, rows);
        self
    }

    /// Sets a variable of its environment.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.command.env.push((name.into(), Some(value.into())));
        self
    }

    /// Gives it these variables of this process's environment and no others; what [`Program::env`]
    /// sets later comes on
    /// top.
    pub fn only_env<'a>(mut self, allowed: impl IntoIterator<Item = &'a str>) -> Self {
        let allowed: Vec<&str> = allowed.into_iter().collect();
        let names = std::env::vars_os().map(|(name, _)| name);
        let gone = names.filter(|n| !allowed.iter().any(|a| n.as_os_str() == *a));
        self.command.env.extend(gone.map(|name| (name, None)));
        self
    }

    /// Runs the program at another place, for instance in a container:
    /// `.on("docker:debian".parse()?)`. It gets that place's environment with the variables of
    /// [`Program::env`]. Processes that it leaves running are not counted.
    pub fn on(mut self, place: Place) -> Self {
        self.place = place;
        self
    }

    /// Lets it be ended from another thread.
    pub fn under(mut self, halt: &Halt) -> Self {
        self.halt = halt.clone();
        self
    }

    /// The folder to run in.
    pub fn cwd(mut self, folder: impl Into<PathBuf>) -> Self {
        self.command.cwd = Some(folder.into());
        self
    }

    /// A home folder of its own, by which whatever it leaves running can be found.
    pub(crate) fn home(mut self, folder: &Path) -> Self {
        self.home = Some(folder.to_owned());
        self.env("HOME", folder)
    }

    /// Ends the program after this long. The default is a minute.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit;
        self
    }

    /// Sets how long each wait may take. The default is ten seconds.
    pub fn patience(mut self, limit: Duration) -> Self {
        self.patience = limit;
        self
    }

    /// Starts it.
    ///
    /// # Errors
    /// When there is no such program, or no terminal to be had.
    #[track_caller]
    pub fn start(self) -> TestResult<Session> {
        let io = |e: std::io::Error| TestError::new(format!("the session cannot be set up: {e}"));
        let win = WinSize::cells(self.size.cols, self.size.rows);
        let setup = TerminalSetup::default().size(win);
        let clock = Clock::start();
        let failed = |e: SpawnError| TestError::new(e.to_string());
        let signals = self.halt.signals();
        if self.halt.is_called() {
            return Err(TestError::new("it was told not to"));
        }
        let mut pid = None;
        let (backend, leftovers): (Box<dyn Backend>, _) = if self.place.is_local() {
            let backend = LocalPty::spawn(&self.command, signals, &setup).map_err(failed).at_caller()?;
            pid = backend.pid();
            let leftovers = Leftovers::of_session(backend.pid(), self.home.clone());
            (Box::new(backend), Some(leftovers))
        } else {
            (
                self.place
                    .start(&self.command, Some(&setup), signals, &mut NonInteractive)
                    .map_err(failed)
                    .at_caller()?,
                None,
            )
        };
        // The driver takes its time a little later.
        let limit = (self.timeout, clock.now().mono + self.timeout);
        let log = SharedLog::new(LOG);
        log.append(Event::Resize(win), clock.now());
        let reader = TapReader::from_start(&log, clock);
        // A program that does not end when asked has no time to lose in a test.
        let config = Config::default()
            .size(win)
            .timeout(self.timeout)
            .hang_up_after(Duration::from_millis(500))
            .kill_after(Duration::from_secs(2))
            .lease(Duration::MAX)
            .log(LOG);
        let driver = Driver::new(backend, clock, config, log.clone()).map_err(io).at_caller()?;
        let handle = driver.handle();
        let held = self.halt.hold(&handle);
        let thread = std::thread::Builder::new()
            .name("session".into())
            .spawn(move || driver.run())
            .map_err(io)
            .at_caller()?;
        // The program may have ended already; then there is no party to join, and no input to send.
        let me = handle.join("test", Role::Human).ok();
        if let Some(Ok(Err(e))) = me.map(|me| handle.take(me)) {
            return Err(TestError::new(e.to_string()));
        }
        Ok(Session {
            handle,
            me,
            reader,
            clock,
            seen: Collector::new(self.size),
            thread: Some(thread),
            patience: self.patience,
            limit,
            leftovers,
            events: None,
            pid,
            _held: held,
        })
    }
}

/// A running program.
pub struct Session {
    handle: Handle,
    /// The party that types; `None` if the program ended before it could join.
    me: Option<PartyId>,
    reader: TapReader,
    clock: Clock,
    /// What has been read of the log.
    seen: Collector,
    thread: Option<JoinHandle<std::io::Result<Outcome>>>,
    patience: Duration,
    /// The program's time limit, and when it is over.
    limit: (Duration, Time),
    /// Who is left of it, where that can be seen.
    leftovers: Option<Leftovers>,
    /// Where service events come from.
    events: Option<Reading>,
    /// The program's process, on this machine.
    pid: Option<i32>,
    /// By which it may be ended from outside.
    _held: Held,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("patience", &self.patience).finish_non_exhaustive()
    }
}

impl Session {
    /// The program's process, where it runs on this machine.
    pub(super) fn pid(&self) -> Option<i32> {
        self.pid
    }

    /// Starts a program with everything else as usual; [`Program`] says more.
    ///
    /// # Errors
    /// When it cannot be started.
    #[track_caller]
    pub fn start(argv: impl IntoIterator<Item = impl Into<OsString>>) -> TestResult<Self> {
        Program::new(argv).start()
    }

    /// Presses a key, by its name (`Enter`, `C-c`, `F10`, `q`), as the modes in force want it
    /// written.
    ///
    /// # Errors
    /// When there is no such key, or the program has ended.
    #[track_caller]
    pub fn send(&mut self, key: &str) -> TestResult {
        let press: KeyPress =
            key.parse().map_err(|e: keys::KeyNameError| TestError::new(e.to_string())).at_caller()?;
        self.press(press)
    }

    /// Presses a key.
    ///
    /// # Errors
    /// When the program has ended.
    #[track_caller]
    pub fn press(&mut self, key: KeyPress) -> TestResult {
        let bytes = keys::encode(key, &self.modes());
        self.give(bytes, Some(key.to_string()), false)
    }

    /// Types a text, line ends as the Enter key.
    ///
    /// # Errors
    /// When the program has ended.
    #[track_caller]
    pub fn type_text(&mut self, text: &str) -> TestResult {
        let bytes = keys::text(text, &self.modes());
        self.give(bytes, None, false)
    }

    /// Pastes a text, in brackets where the program asked for them.
    ///
    /// # Errors
    /// When the program has ended.
    #[track_caller]
    pub fn paste(&mut self, text: &str) -> TestResult {
        let bytes = keys::paste(text, &self.modes());
        self.give(bytes, None, true)
    }

    /// Says that the terminal's window has the focus, or lost it; a program that did not ask is
    /// not told.
    ///
    /// # Errors
    /// When the program has ended.
    #[track_caller]
    pub fn focus(&mut self, gained: bool) -> TestResult {
        let bytes = keys::focus(gained, &self.modes());
        self.give(bytes, None, false)
    }

    /// Gives the program bytes.
    ///
    /// # Errors
    /// When the program has ended.
    #[track_caller]
    pub fn write(&mut self, bytes: impl Into<Vec<u8>>) -> TestResult {
        self.give(bytes.into(), None, false)
    }

    #[track_caller]
    fn give(&mut self, bytes: Vec<u8>, key: Option<String>, paste: bool) -> TestResult {
        if bytes.is_empty() {
            return Ok(());
        }
        let deadline = self.deadline(self.patience);
        let bytes = Bytes::from(bytes);
        loop {
            let answer = self.me.map(|me| self.handle.input(me, None, bytes.clone()));
            match answer.unwrap_or(Err(Unanswered::SessionOver)) {
                Ok(Ok(())) => break,
                // The program is busy: it takes more when it has written.
                Ok(Err(Refused::Full { .. })) if self.pump_until(deadline) => {}
                Ok(Err(e)) => return Err(self.wrong(e.to_string())),
                Err(_) => {
                    // How it ended may not have been read yet.
                    self.pump_until(deadline);
                    let how = self.ended().unwrap_or_else(|| "the program has ended".to_owned());
                    return Err(self.wrong(format!("{how}, so it takes no input")));
                }
            }
        }
        self.seen.sent.push_back(Sent { left: bytes.len(), key, paste });
        Ok(())
    }

    /// Sets the terminal's size.
    pub fn resize(&mut self, cols: u16, rows: u16) {
        self.handle.resize(WinSize::cells(cols, rows));
        // In order: what is looked at next has the new size.
        let deadline = self.deadline(self.patience);
        while self.seen.screen.term().size() != Size::new(cols, rows)
            && self.seen.exit.is_none()
            && self.pump_until(deadline)
        {}
    }

    /// Sends a signal, by its name, to the terminal's foreground process group.
    ///
    /// # Errors
    /// When there is no such signal.
    #[track_caller]
    pub fn signal(&mut self, name: &str) -> TestResult {
        let number = signal_number(name)
            .ok_or_else(|| TestError::new(format!("no signal is called {name:?}")))
            .at_caller()?;
        self.handle.signal(number);
        Ok(())
    }

    /// Gives this moment a name, to which checks can refer.
    pub fn snapshot(&mut self, name: &str) {
        self.pump(None);
        self.mark(name);
    }

    /// Gives the place a name up to which the screen has been looked at.
    pub(crate) fn read_events(&mut self, source: service_events::Source) -> std::io::Result<()> {
        self.events = Some(source.read(self.handle.clone())?);
        Ok(())
    }

    pub(crate) fn mark(&mut self, name: &str) {
        self.seen.insert(self.clock.now().mono, What::Mark(name.into()));
    }

    /// Waits until a text is on the screen.
    ///
    /// # Errors
    /// With a picture of the screen, when the time is over or the program has ended.
    #[track_caller]
    pub fn expect(&mut self, text: &str) -> TestResult {
        self.expect_that(&Condition { facts: vec![Fact::Contains(text.to_owned())], ..Condition::default() })
    }

    /// Waits until a condition holds that is written as in a scenario file: `{contains: ready,
    /// alternate: true}`. Files
    /// in it are looked for from the folder of the test.
    ///
    /// # Errors
    /// As [`Session::expect`]; also when the condition is not understood.
    #[track_caller]
    pub fn expect_screen(&mut self, condition: &str) -> TestResult {
        let read = tapdeck_tape::scenario::condition(condition, &stored);
        self.expect_that(&read.map_err(|e| TestError::new(e.to_string())).at_caller()?)
    }

    /// Waits until a condition holds.
    ///
    /// # Errors
    /// As [`Session::expect`].
    #[track_caller]
    pub fn expect_that(&mut self, condition: &Condition) -> TestResult {
        self.expect_within(condition, self.patience)
    }

    /// Waits until a condition holds, this long at most.
    ///
    /// # Errors
    /// As [`Session::expect`].
    #[track_caller]
    pub fn expect_within(&mut self, condition: &Condition, limit: Duration) -> TestResult {
        if let Some(why) = condition.unread() {
            return Err(self.wrong(why));
        }
        let deadline = self.deadline(limit);
        let mut last = None;
        loop {
            if self.is_complete() {
                let frame = self.seen.screen.frame();
                let Err(wrong) = condition.check(View { frame: &frame, term: self.seen.screen.term() })
                else {
                    return Ok(());
                };
                last = Some((frame, wrong));
            }
            // One piece of output after the other: a state that lasts no longer than that counts
            // too.
            if self.step_until(deadline) {
                continue;
            }
            let why = self.why_over(limit);
            let Some((frame, wrong)) = last else {
                let what = "the program did not end its synchronised update";
                return Err(self.wrong(format!("waited in vain for: {condition}; {why}: {what}")));
            };
            let shot = picture::screen("the screen", &frame, &wrong.spots);
            let texts = wrong.texts.as_ref().map(|(a, b)| picture::difference(a, b)).unwrap_or_default();
            return Err(TestError::with(
                format!("waited in vain for: {condition}; {why}: {}", wrong.message),
                shot + &texts,
            ));
        }
    }

    /// Why a wait is over.
    fn why_over(&self, limit: Duration) -> String {
        self.ended().unwrap_or_else(|| format!("{} have passed", seconds(limit)))
    }

    /// How the program has ended, if it has.
    fn ended(&self) -> Option<String> {
        let exit = self.seen.exit?;
        Some(match self.is_over_limit() {
            true => format!("its time limit of {} has ended the program", seconds(self.limit.0)),
            false => format!("the program {}", ended(exit)),
        })
    }

    /// Waits until the screen has stayed the same for this long.
    ///
    /// # Errors
    /// As [`Session::expect`].
    #[track_caller]
    pub fn wait_stable(&mut self, quiet: Duration) -> TestResult {
        self.stable_within(quiet, &Condition::default(), self.patience)
    }

    /// Waits until the part of the screen that a condition looks at has stayed the same for this
    /// long, and the condition holds. What is compared is the text, with masks and normalisation:
    /// output that changes nothing there does not disturb it.
    ///
    /// # Errors
    /// As [`Session::expect`].
    #[track_caller]
    pub fn stable_within(&mut self, quiet: Duration, condition: &Condition, limit: Duration) -> TestResult {
        if let Some(why) = condition.unread() {
            return Err(self.wrong(why));
        }
        let deadline = self.deadline(limit);
        let began = self.clock.now().mono;
        let text = |frame: &Frame| condition.look.shown(frame).join("\n");
        let (mut same, mut at): (Option<(String, Time)>, Time) = (None, began);
        let mut changes = None;
        loop {
            let mut why = None;
            if self.is_complete() {
                let frame = self.seen.screen.frame();
                let view = View { frame: &frame, term: self.seen.screen.term() };
                why = condition.check(view).err();
                let shown = text(&frame);
                same = match same.take() {
                    _ if why.is_some() => None,
                    Some((before, since)) if before == shown => Some((before, since)),
                    before => {
                        changes = before.map(|(before, _)| picture::difference(&before, &shown)).or(changes);
                        Some((shown, at.max(began)))
                    }
                };
            }
            let due = same.as_ref().map(|(_, since)| *since + quiet);
            // A screen lasts until the next piece of output, or until now.
            let next = self.seen.next();
            let until = next.unwrap_or_else(|| self.clock.now().mono);
            let lasted = due.is_some_and(|due| due <= until) && (next.is_some() || self.is_complete());
            if lasted || (next.is_none() && self.seen.exit.is_some()) {
                return match why {
                    None if !lasted && self.is_over_limit() => Err(self.wrong(self.why_over(limit))),
                    None => Ok(()),
                    Some(wrong) => Err(self.wrong(format!("{}: {}", self.why_over(limit), wrong.message))),
                };
            }
            if let Some(came) = self.seen.step() {
                at = came;
                continue;
            }
            let now = self.clock.now().mono;
            if now >= deadline {
                let message = match why {
                    Some(wrong) => wrong.message,
                    None => format!("the screen never stayed the same for {}", seconds(quiet)),
                };
                let frame = self.seen.screen.frame();
                let shot = picture::screen("the screen", &frame, &[]);
                let last = changes.map(|c| format!("  what changed last:\n{c}")).unwrap_or_default();
                let passed = format!("waited in vain, {} have passed", seconds(limit));
                return Err(TestError::with(format!("{passed}: {message}"), shot + &last));
            }
            let wake = self.seen.due(now).or(due).unwrap_or(deadline);
            self.read_until(wake.min(deadline));
        }
    }

    /// Waits until the program has ended, and says how.
    ///
    /// # Errors
    /// With a picture of the screen, when the time is over.
    #[track_caller]
    pub fn wait_exit(&mut self) -> TestResult<Exit> {
        self.exit_within(self.patience)
    }

    #[track_caller]
    pub(crate) fn exit_within(&mut self, limit: Duration) -> TestResult<Exit> {
        let deadline = self.deadline(limit);
        while self.seen.exit.is_none() && self.pump_until(deadline) {}
        match self.seen.exit {
            Some(_) if self.is_over_limit() => Err(self.wrong(self.why_over(limit))),
            Some(exit) => Ok(exit),
            None => Err(self.wrong(format!("the program has not ended after {}", seconds(limit)))),
        }
    }

    /// Whether its time limit has ended the program.
    pub(crate) fn is_over_limit(&self) -> bool {
        self.seen.ended.is_some_and(|at| at >= self.limit.1)
    }

    /// The screen as text, as far as it has come.
    pub fn text(&mut self) -> String {
        self.pump(None);
        self.seen.screen.frame().text()
    }

    /// A picture of the screen, as far as it has come.
    pub fn frame(&mut self) -> Arc<Frame> {
        self.pump(None);
        self.seen.screen.frame()
    }

    /// Ends the program: asks first, then insists.
    pub fn cancel(&mut self) {
        self.handle.cancel();
    }

    /// Waits until the program has ended by itself or by its time limit, and gives everything that
    /// happened.
    ///
    /// # Errors
    /// When the session broke down.
    #[track_caller]
    pub fn finish(mut self) -> TestResult<Finished> {
        let broke = |e: String| TestError::new(format!("the session broke down: {e}"));
        while self.reader.wait(None) {
            self.take();
        }
        let Some(thread) = self.thread.take() else { return Err(broke("it is over".into())) };
        let outcome = thread
            .join()
            .map_err(|_| broke("its thread panicked".into()))
            .at_caller()?
            .map_err(|e| broke(e.to_string()))
            .at_caller()?;
        if let Some(events) = self.events.take() {
            self.seen.insert_late(self.clock.now().mono, &events.finish());
        }
        let cause = match outcome.ended {
            Ended::TimedOut => tapdeck_core::check::Cause::Timeout,
            Ended::Cancelled => tapdeck_core::check::Cause::Cancelled,
            _ => tapdeck_core::check::Cause::Program,
        };
        let left = self.leftovers.as_ref().and_then(|left| left.wait(&self.clock));
        self.leftovers.iter().for_each(Leftovers::kill);
        let leaked = left.as_ref().map(|left| left.len() as u32);
        let left = left.into_iter().flatten().map(|left| left.command).collect();
        let timeline = self.seen.finish(self.clock.now().mono, outcome.exit, cause, outcome.eof, leaked);
        Ok(Finished { exit: outcome.exit, timeline, left })
    }

    fn deadline(&self, limit: Duration) -> Time {
        self.clock.now().mono + limit
    }

    /// Takes what is there, or waits for something until the deadline. Whether there is any point
    /// in asking again.
    fn pump_until(&mut self, deadline: Time) -> bool {
        self.pump(Some(deadline))
    }

    fn pump(&mut self, deadline: Option<Time>) -> bool {
        if self.take() {
            return true;
        }
        let Some(deadline) = deadline else { return false };
        self.sleep(deadline) && (self.take() || self.clock.now().mono < deadline)
    }

    /// As [`Self::pump_until`], but one piece of output at a time; also returns when the screen
    /// counts although its update has not ended.
    fn step_until(&mut self, deadline: Time) -> bool {
        if self.seen.step().is_some() {
            return true;
        }
        let due = self.seen.due(self.clock.now().mono).filter(|due| *due < deadline);
        let more = self.read_until(due.unwrap_or(deadline));
        self.seen.step().is_some()
            || (more && self.clock.now().mono < deadline)
            || (due.is_some() && self.seen.exit.is_none())
    }

    /// Reads an entry, or waits for one until the deadline; whether there is any point in asking
    /// again.
    fn read_until(&mut self, deadline: Time) -> bool {
        self.reader.read(&mut self.seen, 1)
            || (self.sleep(deadline) && {
                self.reader.read(&mut self.seen, 1);
                true
            })
    }

    /// Whether the screen is one that checks may see.
    fn is_complete(&self) -> bool {
        self.seen.due(self.clock.now().mono).is_none()
    }

    /// Waits for an entry; `false` when there will be none before the deadline.
    fn sleep(&self, deadline: Time) -> bool {
        let left = deadline.since(self.clock.now().mono);
        if left.is_zero() || self.seen.exit.is_some() {
            return false;
        }
        self.reader.wait(Some(left))
    }

    fn take(&mut self) -> bool {
        let mut taken = self.reader.read(&mut self.seen, usize::MAX);
        while self.seen.step().is_some() {
            taken = true;
        }
        taken
    }

    /// How long a wait may take that does not say.
    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// The terminal's size.
    pub(crate) fn size(&self) -> Size {
        self.seen.screen.term().size()
    }

    /// The time of the session.
    pub(crate) fn now(&self) -> Time {
        self.clock.now().mono
    }

    /// The modes in force, as far as the output has come.
    pub(crate) fn modes(&mut self) -> Modes {
        self.pump(None);
        self.seen.screen.term().modes()
    }

    #[track_caller]
    pub(crate) fn wrong(&mut self, message: String) -> TestError {
        let frame = self.seen.screen.frame();
        TestError::with(message, picture::screen("the screen", &frame, &[]))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.handle.cancel();
            // The test is over: how the session ended and what it left interest no caller.
            let _ = thread.join();
            let _ = self.leftovers.as_ref().map(|left| left.wait(&self.clock));
            self.leftovers.iter().for_each(Leftovers::kill);
        }
    }
}
