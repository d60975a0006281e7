//! The driver loop: one thread, one session.
//!
//! Each turn waits for whatever is ready, reads the clock once, and serves in this order: the
//! program's output goes to the user's terminal before anything else happens to it, then into the
//! log; input goes to the program first, then into the log. Nothing here waits for a reader, and
//! neither direction waits for the other: output that the user's terminal does not take stops the
//! reading of more output, input that the program does not take stops the reading of more input,
//! and that is all.

mod input;
mod keys;
mod life;
mod pause;
mod requests;
mod snapshot;
mod wait;

use std::fmt;
use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tapdeck_core::{Event, Exit, Gate, Group, LogLimits, PartyId, Role, Stamp, Stream, Time, WinSize};
use tapdeck_term::ModeWatch;

use crate::backend::{Backend, Got, StopSignal};
use crate::clock::Clock;
use crate::glass::Glass;
use crate::inbox::Handle;
use crate::shared::SharedLog;
use crate::user_side::{Signals, UserSide};
use input::InputEnd;
use keys::OwnKeys;
use pause::Pause;
use wait::Ready;

/// The user's keys wait here while the program does not read; then the terminal makes the user
/// wait.
const INPUT_LIMIT: usize = 256 * 1024;
/// Room for one read of output. The kernel gives a terminal's output in pieces of about 4 KiB.
const READ_SIZE: usize = 64 * 1024;
/// Reads between two looks at everything else, and the size below which a read means that there is
/// no more.
const BURST: usize = 32;
const BURST_GOES_ON: usize = 2048;
/// With this much not yet taken by the recorder, the program is made to wait for it, as for a slow
/// terminal; but only while the recorder gets on, and for no longer than this when it does not: a
/// full or stuck disk stops no program.
const RECORDER_BEHIND: usize = 24 << 20;
const RECORDER_STUCK: Duration = Duration::from_millis(500);

/// What a session is told to be.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// The terminal's size at the start.
    pub size: WinSize,
    /// End the program after this long.
    pub timeout: Option<Duration>,
    /// How long a program that was asked to end may take before its terminal hangs up.
    pub hang_up_after: Duration,
    /// How long before it is killed.
    pub kill_after: Duration,
    /// How long a bot may hold the stick without writing.
    pub lease: Duration,
    /// What the log keeps.
    pub log: LogLimits,
    /// There is no input: the program finds its end from the start.
    pub no_input: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            size: WinSize::cells(80, 24),
            timeout: None,
            hang_up_after: Duration::from_secs(2),
            kill_after: Duration::from_secs(10),
            lease: Duration::from_secs(60),
            log: LogLimits::default(),
            no_input: false,
        }
    }
}

impl Config {
    /// Sets the terminal's size at the start; 80 columns and 24 rows by default.
    #[must_use]
    pub fn size(mut self, size: WinSize) -> Self {
        self.size = size;
        self
    }

    /// Ends the program after this long; never by default.
    #[must_use]
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeout = timeout.into();
        self
    }

    /// Sets how long a program that was asked to end may take before its terminal hangs up; two
    /// seconds by default.
    #[must_use]
    pub fn hang_up_after(mut self, hang_up_after: Duration) -> Self {
        self.hang_up_after = hang_up_after;
        self
    }

    /// Sets how long a program that was asked to end may take before it is killed; ten seconds by
    /// default.
    #[must_use]
    pub fn kill_after(mut self, kill_after: Duration) -> Self {
        self.kill_after = kill_after;
        self
    }

    /// Sets how long a bot may hold the stick without writing; a minute by default.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets what the log keeps.
    #[must_use]
    pub fn log(mut self, log: LogLimits) -> Self {
        self.log = log;
        self
    }

    /// Sets whether there is no input, so that the program finds its end from the start.
    #[must_use]
    pub fn no_input(mut self, no_input: bool) -> Self {
        self.no_input = no_input;
        self
    }
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The program ended by itself, or by a signal that was passed on.
    Program,
    /// It was cancelled.
    Cancelled,
    /// Its time was over.
    TimedOut,
    /// The reader of its output is gone.
    OutputClosed,
    /// Its output could not be written: the system's error number.
    OutputFailed(i32),
    /// Its recording failed, and it was to end then.
    RecordingFailed,
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// How the program ended.
    pub exit: Exit,
    /// Why.
    pub ended: Ended,
    /// The user's terminal could not be given back as it was.
    pub left_raw: bool,
    /// Processes that the program started in its session and left behind.
    pub survivors: usize,
    /// The program's terminal was closed by all who held it, so that everything written to it has
    /// been read.
    pub eof: bool,
}

/// Where the stopping of a program has got to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stopping {
    next: StopSignal,
    at: Time,
    /// It is the time limit, as yet only planned.
    limit: bool,
}

/// A session, ready to run.
pub struct Driver<B> {
    backend: B,
    clock: Clock,
    config: Config,
    log: SharedLog,
    gate: Gate,
    handle: Handle,
    user: Option<UserSide>,
    signals: Option<Signals>,
    modes: ModeWatch,
    /// The session's model, which answers the program's questions where no terminal of the user's
    /// does.
    glass: Glass,
    answers: bool,
    /// The person at the user's terminal.
    local: PartyId,
    /// That user pipes input and does not type it.
    is_piped: bool,
    buf: BytesMut,
    size: WinSize,
    /// The size that the user's terminal would have the session in, and whether another party has
    /// set another.
    own_size: WinSize,
    sized_elsewhere: bool,
    /// Output was kept from the user's terminal, which is another program's for the moment.
    withheld: bool,
    input_end: InputEnd,
    stopping: Option<Stopping>,
    /// The program is suspended because its recording failed.
    held: bool,
    /// The recordings are paused.
    pause: Option<Pause>,
    /// Keys that the user types for us.
    own_keys: Option<OwnKeys>,
    /// The user's terminal is to say so.
    says_why: bool,
    /// This process was told to end, whatever the program's output is doing.
    told_to_end: bool,
    hung_up: bool,
    ended: Ended,
    exit: Option<Exit>,
    closed: bool,
    last_output: Time,
    /// When something last passed in either direction.
    last_traffic: Time,
    /// How far the recorder had got when it was last seen to get on, and when that was.
    recorder_at: (u64, Time),
}

/// The name of the user's terminal among the parties.
const LOCAL: &str = "local";

impl<B> fmt::Debug for Driver<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("size", &self.size).finish_non_exhaustive()
    }
}

impl<B: Backend> Driver<B> {
    /// A session around a backend, as yet without a user's terminal. The log must begin with the
    /// size.
    pub fn new(backend: B, clock: Clock, config: Config, log: SharedLog) -> io::Result<Self> {
        let mut gate = Gate::new(config.lease, INPUT_LIMIT);
        let local = gate.join(LOCAL, Role::Human);
        gate.share(local, Group::OWNER);
        let glass = Glass::new(&log, config.size, backend.bare_lines());
        let handle = Handle::new()?;
        log.set_driver(handle.clone());
        Ok(Self {
            backend,
            clock,
            size: config.size,
            own_size: config.size,
            sized_elsewhere: false,
            withheld: false,
            config,
            log,
            gate,
            handle,
            user: None,
            is_piped: false,
            signals: None,
            modes: ModeWatch::default(),
            glass,
            answers: false,
            local,
            buf: BytesMut::new(),
            input_end: InputEnd::Open,
            stopping: None,
            held: false,
            pause: None,
            own_keys: None,
            says_why: false,
            told_to_end: false,
            hung_up: false,
            ended: Ended::Program,
            exit: None,
            closed: false,
            last_output: Time::ZERO,
            last_traffic: Time::ZERO,
            recorder_at: (0, Time::ZERO),
        })
    }

    /// Puts the user's terminal, and the process's signals, in front of the session.
    pub fn with_user(self, user: UserSide, signals: Option<Signals>) -> Self {
        self.with(Some(user), signals)
    }

    /// Puts a user's side, if there is one, in front of the session, and passes the process's
    /// signals on, if they are the session's.
    pub(crate) fn with(mut self, mut user: Option<UserSide>, signals: Option<Signals>) -> Self {
        if let Some(user) = &mut user {
            user.wake_by(&self.handle);
        }
        self.is_piped = user.as_ref().is_some_and(|user| !user.is_interactive());
        self.user = user;
        self.signals = signals;
        self
    }

    /// The session's model.
    pub fn glass(&self) -> Glass {
        self.glass.clone()
    }

    /// A way for other threads to act on the session.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Runs the session to its end. The user's terminal is given back on every way out.
    pub fn run(mut self) -> io::Result<Outcome> {
        self.handle.driven_here();
        let result = self.run_to_the_end();
        let survivors = self.backend.survivors();
        // Callers that wait for the driver hear at once that it has ended.
        self.handle.close();
        self.log.close();
        if result.is_err() {
            // The first error is the one to report.
            let _ = self.backend.stop(StopSignal::Kill);
        }
        let restored = self.user.as_mut().map_or(Ok(()), UserSide::give_back);
        // A terminal that has hung up needs nothing back.
        let left_raw = restored.is_err_and(|e| e.raw_os_error() != Some(libc::EIO));
        Ok(Outcome { exit: result?, ended: self.ended, left_raw, survivors, eof: self.closed })
    }

    fn run_to_the_end(&mut self) -> io::Result<Exit> {
        if self.config.no_input {
            self.end_typed(self.clock.now());
        }
        // Exactly one party answers: the terminal that shows the session, or the model when there
        // is none.
        if !self.user.as_ref().is_some_and(UserSide::answers) {
            self.let_model_answer();
        }
        if let Some(user) = &mut self.user {
            user.take()?;
        }
        let started = self.clock.now();
        if let Some(timeout) = self.config.timeout {
            let at = started.mono + timeout;
            self.stopping = Some(Stopping { next: StopSignal::Terminate, at, limit: true });
        }
        loop {
            let ready = self.wait()?;
            let now = self.clock.now();
            self.serve(ready, now)?;
            if let Some(exit) = self.finished(now)? {
                self.finish(exit)?;
                return Ok(exit);
            }
        }
    }

    fn serve(&mut self, ready: Ready, now: Stamp) -> io::Result<()> {
        if ready.unblocked {
            self.serve_user(|user| user.flush());
        }
        if ready.output {
            self.pump_output(now)?;
            self.glass.keep_up();
        }
        // A terminal that has another size is told so before what was typed at it since.
        if ready.signals {
            self.serve_signals(now)?;
        }
        if ready.typed {
            self.pump_typed(now)?;
        }
        if ready.probe
            && let Some(user) = &mut self.user
        {
            user.probe();
        }
        if ready.lost
            && let Some(typed) = self.user.as_mut().map(UserSide::lost)
        {
            self.take_typed(typed, now)?;
        }
        if ready.input || ready.upkeep {
            self.backend.flush()?;
        }
        // A backend without a descriptor to wait for is asked on every turn.
        if ready.input || (self.gate.waiting() > 0 && self.backend.watch().writable.is_none()) {
            self.deliver(now)?;
        }
        if ready.inbox {
            self.serve_inbox(now)?;
        }
        if ready.exit || self.backend.watch().exit.is_none() {
            self.notice_exit(now)?;
        }
        self.serve_deadlines(now)
    }

    /// Whether the program has to wait for the recorder, which is behind but gets on.
    fn waits_for_recorder(&mut self, now: Stamp) -> bool {
        let Some((behind, got)) = self.log.recorder_lag() else { return false };
        if behind < RECORDER_BEHIND {
            return false;
        }
        if got != self.recorder_at.0 {
            self.recorder_at = (got, now.mono);
        }
        now.mono < self.recorder_at.1 + RECORDER_STUCK
    }

    /// The program's output: to the user first, then to the log.
    fn pump_output(&mut self, now: Stamp) -> io::Result<()> {
        if self.waits_for_recorder(now) {
            return Ok(());
        }
        for _ in 0..BURST {
            if self.user.as_ref().is_some_and(UserSide::is_blocked) {
                break;
            }
            match self.read_output(now)? {
                Got::Bytes(_, n) if n < BURST_GOES_ON => break,
                Got::Nothing | Got::Closed => break,
                _ => {}
            }
        }
        if let Some(user) = &mut self.user {
            user.settle();
        }
        Ok(())
    }

    /// One read of the program's output, and everything that is done with it.
    fn read_output(&mut self, now: Stamp) -> io::Result<Got> {
        if self.buf.len() < READ_SIZE / 4 {
            self.buf = BytesMut::zeroed(READ_SIZE);
        }
        let got = loop {
            match self.backend.read(&mut self.buf[..], now) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break Got::Nothing,
                other => break other?,
            }
        };
        match got {
            Got::Bytes(stream, n) => {
                self.closed = false;
                let bytes = self.buf.split_to(n).freeze();
                if self.withholds() {
                    self.withheld = true;
                } else {
                    self.uncover();
                    self.serve_user(|user| user.write(stream, &bytes));
                }
                if n < BURST_GOES_ON {
                    self.modes.feed(&bytes);
                } else {
                    self.modes.skim(&bytes);
                }
                self.last_output = now.mono;
                self.last_traffic = now.mono;
                self.log.append(Event::Output { stream, bytes }, now);
                self.glass.keep_close();
                // The question is in the log before its answer.
                self.answer(now)?;
            }
            Got::Resized(size) => self.resized(size, now),
            Got::Turn => {
                self.log.append(Event::Wait, now);
            }
            Got::Nothing => {}
            Got::Closed => self.closed = true,
        }
        Ok(got)
    }

    /// Lets the model see the output, if it is the one to answer, and delivers its answers.
    fn answer(&mut self, now: Stamp) -> io::Result<()> {
        if self.answers {
            let replies = self.glass.answers();
            if !replies.is_empty() {
                self.gate.reply(replies.into());
                self.deliver(now)?;
            }
        }
        Ok(())
    }

    /// Writes to the user's terminal, and takes note when it is gone.
    fn serve_user(&mut self, write: impl FnOnce(&mut UserSide) -> io::Result<()>) {
        let Some(user) = &mut self.user else { return };
        if let Err(e) = write(user) {
            user.abandon();
            // A reader that has had enough (`… | head`) and a terminal that is gone are no
            // errors, and leave no user to tell.
            match e.raw_os_error() {
                Some(libc::EIO) => self.hang_up(self.clock.now()),
                Some(error) if error != libc::EPIPE => self.user_is_gone(Ended::OutputFailed(error)),
                _ => self.user_is_gone(Ended::OutputClosed),
            }
        }
    }

    fn let_model_answer(&mut self) {
        if self.backend.has_terminal() {
            self.glass.set_replies(true);
            self.answers = true;
        }
    }

    fn user_is_gone(&mut self, ended: Ended) {
        tracing::debug!(?ended, "the user's side is gone");
        self.user = None;
        if self.exit.is_none() && self.ended == Ended::Program {
            self.ended = ended;
            self.stopping = Some(Stopping { next: StopSignal::HangUp, at: Time::ZERO, limit: false });
        }
    }

    fn log_changes(&mut self, now: Stamp) {
        while let Some(change) = self.gate.poll_change() {
            let (from, to) = (change.from.as_deref(), change.to.as_deref());
            tracing::debug!(from, to, why = change.why.name(), "stick changed hands");
            self.log.append(Event::Holder(change), now);
        }
    }

    /// Passes a signal on. A program that is gone already cannot be told, and need not be.
    fn forward(&mut self, signal: i32, now: Stamp) {
        if self.backend.signal(signal).is_ok() {
            tracing::debug!(signal, "signal passed on");
            self.log.append(Event::Signal(signal), now);
        }
    }

    fn resize(&mut self, size: WinSize, now: Stamp) -> io::Result<()> {
        if size != self.size {
            // What was written before the change belongs before it in the log.
            self.pump_output(now)?;
            self.backend.resize(size)?;
            self.resized(size, now);
        }
        Ok(())
    }

    /// The user's terminal has this size from here on, and with it the session, unless another
    /// holder of the stick has set another size.
    fn user_resized(&mut self, size: WinSize, now: Stamp) -> io::Result<()> {
        self.own_size = size;
        let holder = self.gate.stick().holder();
        if self.sized_elsewhere && holder.is_some_and(|holder| holder != self.local) {
            return Ok(());
        }
        self.sized_elsewhere = false;
        self.resize(size, now)
    }

    fn resized(&mut self, size: WinSize, now: Stamp) {
        self.size = size;
        tracing::debug!(cols = size.cols, rows = size.rows, "resized");
        self.log.append(Event::Resize(size), now);
    }

    /// Writes bytes of our own to a terminal that shows the session.
    fn show_now(&mut self, bytes: Bytes) {
        self.uncover();
        let shown = self.user.as_ref().is_some_and(|o| o.shows_on_terminal() && !o.is_blocked());
        if shown && !bytes.is_empty() {
            self.serve_user(|user| user.write(Stream::Out, &bytes));
        }
    }

    /// Begins to stop the program now, harder each time.
    fn begin_stop(&mut self, now: Stamp, how: StopSignal) {
        self.stopping = Some(Stopping { next: how, at: now.mono, limit: false });
    }

    /// Plans a harder stop, unless one is planned already.
    fn escalate(&mut self, now: Stamp, next: StopSignal, after: Duration) {
        if self.stopping.is_none_or(|s| s.limit) {
            let at = now.mono + after;
            self.stopping = Some(Stopping { next, at, limit: false });
        }
    }

    fn serve_deadlines(&mut self, now: Stamp) -> io::Result<()> {
        if let Some(Stopping { next, at, limit }) = self.stopping
            && now.mono >= at
            && self.exit.is_none()
        {
            if limit {
                self.ended = Ended::TimedOut;
            }
            tracing::debug!(signal = next.signal(), limit, "stopping the program");
            self.backend.stop(next)?;
            self.log.append(Event::Signal(next.signal()), now);
            let (then, after) = match next {
                StopSignal::Terminate => (StopSignal::HangUp, self.config.hang_up_after),
                StopSignal::HangUp => (StopSignal::Kill, self.config.kill_after),
                // Again and again: a process that could not be killed then may be now.
                StopSignal::Kill => (StopSignal::Kill, Duration::from_millis(100)),
            };
            let at = now.mono + after;
            self.stopping = Some(Stopping { next: then, at, limit: false });
            // Where nothing tells of the end, it may have come by this, and nothing else would wake
            // us.
            if self.backend.watch().exit.is_none() {
                self.notice_exit(now)?;
            }
        }
        self.gate.expire(now);
        self.log_changes(now);
        self.serve_notice(now);
        if let InputEnd::Offer { at, again } = self.input_end
            && now.mono >= at
            && self.exit.is_none()
        {
            self.offer_end(now, again)?;
        }
        if let Some(user) = &mut self.user
            && user.waits_for_foreground()
        {
            user.take()?;
            if !user.waits_for_foreground() {
                self.come_to_front(now)?;
            }
        }
        Ok(())
    }
}

impl<B> Drop for Driver<B> {
    fn drop(&mut self) {
        self.log.close();
        self.handle.close();
        if std::thread::panicking()
            && let Some(user) = &mut self.user
            && user.shows_on_terminal()
        {
            user.abandon();
            // This thread panics already; a terminal that is gone needs nothing back.
            let _ = user.write(Stream::Out, &Bytes::from(self.modes.undo()));
        }
    }
}
