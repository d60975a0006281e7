//! The driver loop: one thread, one session.
//!
//! Each turn waits for whatever is ready, reads the clock once, and serves in this order: the program's output
//! goes to the user's terminal before anything else happens to it, then into the log; input goes to the
//! program first, then into the log. Nothing here waits for a reader, and neither direction waits for the
//! other: output that the user's terminal does not take stops the reading of more output, input that the
//! program does not take stops the reading of more input, and that is all.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tapdeck_core::{Event, Exit, Gate, LogLimits, PartyId, Role, Stamp, Stream, WinSize};

use crate::backend::{Backend, EndOfInput, Got, Stop};
use crate::clock::Clock;
use crate::inbox::{Handle, Request};
use crate::outer::{Outer, Signals, Typed};
use crate::shared::SharedLog;
use crate::sys;

const MS: u64 = 1_000_000;

/// The user's keys wait here while the program does not read; then the terminal makes the user wait.
const INPUT_LIMIT: usize = 256 * 1024;
/// Room for one read of output. The kernel gives a terminal's output in pieces of about 4 KiB.
const READ_SIZE: usize = 64 * 1024;
/// Reads between two looks at everything else, and the size below which a read means that there is no more.
const BURST: usize = 32;
const BURST_GOES_ON: usize = 2048;

/// After the program's end: how long its terminal must be quiet before it counts as drained when somebody
/// else still holds it, and how long to wait for that at most.
const DRAIN_QUIET_NS: u64 = 60 * MS;
const DRAIN_LIMIT_NS: u64 = 1_000 * MS;
/// The same while suspending: time for the program to put its screen in order.
const SUSPEND_QUIET_NS: u64 = 40 * MS;
const SUSPEND_LIMIT_NS: u64 = 300 * MS;

/// How often to look whether a background process has come to the foreground.
const FOREGROUND_CHECK_NS: u64 = 250 * MS;
/// How often the end of input is offered again, at first and at most.
const END_RETRY_NS: std::ops::RangeInclusive<u64> = 20 * MS..=500 * MS;

/// What a session is told to be.
#[derive(Debug, Clone)]
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
        }
    }
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The program ended by itself, or by a signal that was passed on.
    Program,
    /// Somebody cancelled it.
    Cancelled,
    /// Its time was over.
    TimedOut,
    /// Nobody reads its output any more.
    OutputClosed,
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// How the program ended.
    pub exit: Exit,
    /// Why.
    pub ended: Ended,
}

/// Where the stopping of a program has got to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stopping {
    next: Stop,
    at_ns: u64,
}

/// Where the end of input has got to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InputEnd {
    /// Input may still come.
    Open,
    /// It has ended; offer that to the program at this time, then after this long again.
    Offer { at_ns: u64, again_ns: u64 },
    /// The program knows.
    Told,
}

/// A session, ready to run.
pub struct Driver<B> {
    backend: B,
    clock: Clock,
    config: Config,
    log: SharedLog,
    gate: Gate,
    handle: Handle,
    outer: Option<Outer>,
    signals: Option<Signals>,
    modes: tapdeck_term::ModeWatch,
    /// The person at the outer terminal.
    local: PartyId,
    buf: BytesMut,
    size: WinSize,
    input_end: InputEnd,
    stopping: Option<Stopping>,
    ended: Ended,
    exit: Option<Exit>,
    closed: bool,
    last_output_ns: u64,
}

impl<B: Backend> Driver<B> {
    /// A session around a backend, as yet without a user's terminal. The log must begin with the size.
    pub fn new(backend: B, clock: Clock, config: Config, log: SharedLog) -> io::Result<Self> {
        let lease_ns = u64::try_from(config.lease.as_nanos()).unwrap_or(u64::MAX);
        let mut gate = Gate::new(lease_ns, INPUT_LIMIT);
        let local = gate.join("local", Role::Human);
        Ok(Self {
            backend,
            clock,
            size: config.size,
            config,
            log,
            gate,
            handle: Handle::new()?,
            outer: None,
            signals: None,
            modes: tapdeck_term::ModeWatch::default(),
            local,
            buf: BytesMut::new(),
            input_end: InputEnd::Open,
            stopping: None,
            ended: Ended::Program,
            exit: None,
            closed: false,
            last_output_ns: 0,
        })
    }

    /// Puts the user's terminal, and the process's signals, in front of the session.
    pub fn with_outer(mut self, outer: Outer, signals: Signals) -> Self {
        self.outer = Some(outer);
        self.signals = Some(signals);
        self
    }

    /// With nobody at a terminal, but with the process's signals passed on.
    pub fn with_signals(mut self, signals: Signals) -> Self {
        self.signals = Some(signals);
        self
    }

    /// The session's log, for readers.
    pub fn log(&self) -> SharedLog {
        self.log.clone()
    }

    /// A way for other threads to act on the session.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Runs the session to its end. The user's terminal is given back on every way out.
    pub fn run(mut self) -> io::Result<Outcome> {
        let result = self.run_to_the_end();
        self.log.close();
        let outcome = match result {
            Ok(exit) => Ok(Outcome { exit, ended: self.ended }),
            Err(e) => {
                let _ = self.backend.stop(Stop::Kill);
                Err(e)
            }
        };
        let restored = self.outer.as_mut().map_or(Ok(()), Outer::give_back);
        outcome.and_then(|o| restored.map(|()| o))
    }

    fn run_to_the_end(&mut self) -> io::Result<Exit> {
        if let Some(outer) = &mut self.outer {
            outer.take()?;
        }
        let started = self.clock.now();
        if let Some(timeout) = self.config.timeout {
            let at_ns = started.mono_ns.saturating_add(nanos(timeout));
            self.stopping = Some(Stopping { next: Stop::Terminate, at_ns });
            self.ended = Ended::TimedOut;
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

    /// Waits for something to do.
    fn wait(&mut self) -> io::Result<Ready> {
        let now = self.clock.now();
        let outer_blocked = self.outer.as_ref().is_some_and(Outer::is_blocked);
        let watch = self.backend.watch();
        let mut deadline = self.next_deadline(now);
        if !outer_blocked {
            deadline = earlier(deadline, watch.read_at_ns);
        }
        let wants_write = self.gate.waiting() > 0;
        let mut fds = Vec::with_capacity(8);
        let mut add = |fd, flags| {
            fds.push(PollFd::from_borrowed_fd(fd, flags));
            fds.len() - 1
        };
        // The program's terminal is readable and writable through one descriptor; ask for both at once.
        let mut reads = [None; 2];
        for (slot, fd) in reads.iter_mut().zip(watch.readable) {
            if let Some(fd) = fd
                && !outer_blocked
            {
                *slot = Some(add(fd, PollFlags::IN));
            }
        }
        let write = watch.writable.filter(|_| wants_write).map(|fd| add(fd, PollFlags::OUT));
        let exit = watch.exit.filter(|_| self.exit.is_none()).map(|fd| add(fd, PollFlags::IN));
        let inbox = add(self.handle.fd(), PollFlags::IN);
        let signals = self.signals.as_ref().map(|s| add(s.fd(), PollFlags::IN));
        let outer = self.outer.as_ref();
        let stdin = outer
            .filter(|_| self.gate.has_room() && self.exit.is_none())
            .and_then(Outer::stdin_fd)
            .map(|fd| add(fd, PollFlags::IN));
        let stdout = outer.and_then(Outer::blocked_fd).map(|fd| add(fd, PollFlags::OUT));

        let timeout = deadline.map(|at| {
            let left = Duration::from_nanos(at.saturating_sub(now.mono_ns));
            Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: i64::from(left.subsec_nanos()) }
        });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        let is_ready = |slot: Option<usize>| slot.is_some_and(|i| !fds[i].revents().is_empty());
        let due = !outer_blocked && watch.read_at_ns.is_some();
        Ok(Ready {
            output: reads.into_iter().any(is_ready) || due,
            input: is_ready(write),
            exit: is_ready(exit),
            inbox: is_ready(Some(inbox)),
            signals: is_ready(signals),
            typed: is_ready(stdin),
            unblocked: is_ready(stdout),
        })
    }

    fn next_deadline(&self, now: Stamp) -> Option<u64> {
        let mut at = self.stopping.map(|s| s.at_ns);
        at = earlier(at, self.gate.stick().lease_ends_ns());
        if let InputEnd::Offer { at_ns, .. } = self.input_end {
            at = earlier(at, Some(at_ns));
        }
        if self.outer.as_ref().is_some_and(Outer::waits_for_foreground) {
            at = earlier(at, Some(now.mono_ns + FOREGROUND_CHECK_NS));
        }
        if self.exit.is_some() {
            at = earlier(at, Some(self.last_output_ns + DRAIN_QUIET_NS));
        }
        at
    }

    fn serve(&mut self, ready: Ready, now: Stamp) -> io::Result<()> {
        if ready.unblocked {
            self.serve_user(|outer| outer.flush());
        }
        if ready.output {
            self.pump_output(now)?;
        }
        if ready.typed {
            self.pump_typed(now)?;
        }
        if ready.input {
            self.deliver(now)?;
        }
        if ready.inbox {
            self.serve_inbox(now)?;
        }
        if ready.signals {
            self.serve_signals(now)?;
        }
        if ready.exit || self.backend.watch().exit.is_none() {
            self.notice_exit(now)?;
        }
        self.serve_deadlines(now)
    }

    /// The program's output: to the user first, then to the log.
    fn pump_output(&mut self, now: Stamp) -> io::Result<()> {
        for _ in 0..BURST {
            if self.outer.as_ref().is_some_and(Outer::is_blocked) {
                break;
            }
            if self.buf.len() < READ_SIZE / 4 {
                self.buf = BytesMut::zeroed(READ_SIZE);
            }
            match self.backend.read(&mut self.buf[..], now)? {
                Got::Bytes(stream, n) => {
                    self.closed = false;
                    let bytes = self.buf.split_to(n).freeze();
                    self.serve_user(|outer| outer.write(stream, &bytes));
                    self.modes.feed(&bytes);
                    self.last_output_ns = now.mono_ns;
                    self.log.append(Event::Output { stream, bytes }, now);
                    if n < BURST_GOES_ON {
                        break;
                    }
                }
                Got::Resized(size) => self.resized(size, now),
                Got::Turn => {
                    self.log.append(Event::Wait, now);
                }
                Got::Nothing => break,
                Got::Closed => {
                    self.closed = true;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Writes to the user's terminal, and takes note when it is gone.
    fn serve_user(&mut self, write: impl FnOnce(&mut Outer) -> io::Result<()>) {
        let Some(outer) = &mut self.outer else { return };
        if let Err(e) = write(outer) {
            outer.abandon();
            // A reader that has had enough (`… | head`) and a terminal that is gone are no errors of ours;
            // neither leaves anybody to tell of others.
            let _ = e;
            self.outer_is_gone();
        }
    }

    fn outer_is_gone(&mut self) {
        self.outer = None;
        if self.exit.is_none() && self.ended == Ended::Program {
            self.ended = Ended::OutputClosed;
            self.stopping = Some(Stopping { next: Stop::HangUp, at_ns: 0 });
        }
    }

    /// The user's input: to the program first, then to the log.
    fn pump_typed(&mut self, now: Stamp) -> io::Result<()> {
        let Some(outer) = &mut self.outer else { return Ok(()) };
        match outer.read()? {
            Typed::Bytes(bytes) => {
                if self.gate.stick().driver() != Some(self.local) {
                    // Whoever sits at the terminal may always take over, and does so by typing.
                    let _ = self.gate.take(self.local, now);
                }
                // There was room when the terminal was asked, and the stick is ours.
                let _ = self.gate.offer(self.local, None, bytes, now);
                self.deliver(now)?;
                self.log_changes(now);
            }
            Typed::Nothing => {}
            Typed::End => {
                self.input_end = InputEnd::Offer { at_ns: now.mono_ns, again_ns: *END_RETRY_NS.start() };
            }
        }
        Ok(())
    }

    /// Writes what waits at the gate, as far as the program takes it.
    fn deliver(&mut self, now: Stamp) -> io::Result<()> {
        while let Some(bytes) = self.gate.poll_write() {
            match self.backend.write(bytes) {
                Ok(0) => break,
                Ok(n) => {
                    if let Some(delivered) = self.gate.wrote(n) {
                        self.log.append(Event::Input { by: delivered.by, bytes: delivered.bytes }, now);
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // The program's side is closed: nothing can be delivered any more.
                Err(_) => self.gate.close(),
            }
        }
        Ok(())
    }

    fn log_changes(&mut self, now: Stamp) {
        while let Some(change) = self.gate.poll_change() {
            self.log.append(Event::Driver(change), now);
        }
    }

    fn serve_inbox(&mut self, now: Stamp) -> io::Result<()> {
        for request in self.handle.drain() {
            // A receiver that is gone no longer wants the answer.
            match request {
                Request::Cancel => {
                    self.ended = Ended::Cancelled;
                    self.begin_stop(now, Stop::Terminate);
                }
                Request::Signal(signal) => self.forward(signal),
                Request::Resize(size) => self.resize(size, now)?,
                Request::Join(name, role, reply) => {
                    let _ = reply.send(self.gate.join(&name, role));
                }
                Request::Leave(id) => self.gate.leave(id),
                Request::Claim(id, reply) => {
                    let _ = reply.send(self.gate.claim(id, now));
                }
                Request::Take(id, reply) => {
                    let _ = reply.send(self.gate.take(id, now));
                }
                Request::Release(id, reply) => {
                    let _ = reply.send(self.gate.release(id));
                }
                Request::Input(id, fence, bytes, reply) => {
                    let _ = reply.send(self.gate.offer(id, fence, bytes, now));
                    self.deliver(now)?;
                }
            }
            self.log_changes(now);
        }
        Ok(())
    }

    fn serve_signals(&mut self, now: Stamp) -> io::Result<()> {
        while let Some(signal) = self.signals.as_ref().and_then(Signals::next) {
            match signal {
                libc::SIGWINCH => {
                    if let Some(size) = self.outer.as_ref().and_then(Outer::size) {
                        self.resize(size, now)?;
                    }
                }
                libc::SIGTSTP => {
                    self.forward(libc::SIGTSTP);
                    self.suspend()?;
                }
                libc::SIGCONT => self.continued(now)?,
                libc::SIGCHLD => {
                    if std::process::id() == 1 {
                        sys::reap_adopted(self.backend.pid());
                    }
                    self.notice_exit(now)?;
                    if self.exit.is_none() && self.outer.is_some() && self.backend.stopped() {
                        self.suspend()?;
                    }
                }
                libc::SIGTERM => {
                    self.forward(signal);
                    self.escalate(now, Stop::HangUp, self.config.hang_up_after);
                }
                libc::SIGHUP => {
                    let _ = self.backend.stop(Stop::HangUp);
                    self.escalate(now, Stop::Kill, self.config.kill_after);
                }
                _ => self.forward(signal),
            }
        }
        Ok(())
    }

    /// Passes a signal on. A program that is gone already cannot be told, and need not be.
    fn forward(&mut self, signal: i32) {
        let _ = self.backend.signal(signal);
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

    fn resized(&mut self, size: WinSize, now: Stamp) {
        self.size = size;
        self.log.append(Event::Resize(size), now);
    }

    /// Stops the program and this process together, with the terminal handed back meanwhile.
    fn suspend(&mut self) -> io::Result<()> {
        let began = self.clock.now().mono_ns;
        self.last_output_ns = began;
        let quiet_or_late = |driver: &Self, now: u64| {
            now >= driver.last_output_ns + SUSPEND_QUIET_NS || now >= began + SUSPEND_LIMIT_NS
        };
        // A program that handles the signal puts its screen in order first.
        loop {
            let now = self.clock.now();
            self.pump_output(now)?;
            if quiet_or_late(self, now.mono_ns) || self.outer.as_ref().is_some_and(Outer::is_blocked) {
                break;
            }
            let watch = self.backend.watch();
            let Some(fd) = watch.readable[0] else { break };
            let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
            let _ = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 10 * MS.cast_signed() }));
        }
        let _ = self.backend.freeze(true);
        self.log.append(Event::Suspended, self.clock.now());
        self.log.flush(Duration::from_millis(500));
        let undo = Bytes::from(self.modes.undo());
        self.show_now(undo);
        if let Some(outer) = &mut self.outer {
            outer.give_back()?;
        }
        sys::stop_self()?;
        self.continued(self.clock.now())
    }

    /// Takes the terminal again and lets the program go on, after this process was stopped.
    fn continued(&mut self, now: Stamp) -> io::Result<()> {
        if let Some(outer) = &mut self.outer {
            outer.take()?;
            if outer.waits_for_foreground() {
                // Continued in the background: the program goes on, its keyboard stays away.
                let _ = self.backend.freeze(false);
                self.forward(libc::SIGCONT);
                return Ok(());
            }
        }
        let redo = Bytes::from(self.modes.redo());
        self.show_now(redo);
        self.log.append(Event::Resumed, now);
        if let Some(size) = self.outer.as_ref().and_then(Outer::size) {
            self.resize(size, now)?;
        }
        let _ = self.backend.freeze(false);
        self.forward(libc::SIGCONT);
        // Whatever was on the screen has scrolled or been painted over: ask for a new picture.
        if self.modes.alternate() {
            self.forward(libc::SIGWINCH);
        }
        Ok(())
    }

    /// Writes bytes of our own to a terminal that shows the session.
    fn show_now(&mut self, bytes: Bytes) {
        let shown = self.outer.as_ref().is_some_and(|o| o.shows_on_terminal() && !o.is_blocked());
        if shown && !bytes.is_empty() {
            self.serve_user(|outer| outer.write(Stream::Out, &bytes));
        }
    }

    /// Begins to stop the program now, harder each time.
    fn begin_stop(&mut self, now: Stamp, how: Stop) {
        self.stopping = Some(Stopping { next: how, at_ns: now.mono_ns });
    }

    /// Plans a harder stop, unless one is planned already.
    fn escalate(&mut self, now: Stamp, next: Stop, after: Duration) {
        if self.stopping.is_none() || self.ended == Ended::TimedOut {
            self.ended = Ended::Program;
            self.stopping = Some(Stopping { next, at_ns: now.mono_ns.saturating_add(nanos(after)) });
        }
    }

    fn serve_deadlines(&mut self, now: Stamp) -> io::Result<()> {
        if let Some(Stopping { next, at_ns }) = self.stopping
            && now.mono_ns >= at_ns
            && self.exit.is_none()
        {
            self.backend.stop(next)?;
            let (then, after) = match next {
                Stop::Terminate => (Stop::HangUp, self.config.hang_up_after),
                Stop::HangUp => (Stop::Kill, self.config.kill_after),
                // Again and again: a process that could not be killed then may be now.
                Stop::Kill => (Stop::Kill, Duration::from_millis(100)),
            };
            self.stopping = Some(Stopping { next: then, at_ns: now.mono_ns.saturating_add(nanos(after)) });
        }
        self.gate.expire(now);
        self.log_changes(now);
        if let InputEnd::Offer { at_ns, again_ns } = self.input_end
            && now.mono_ns >= at_ns
            && self.exit.is_none()
        {
            self.offer_end(now, again_ns)?;
        }
        if let Some(outer) = &mut self.outer
            && outer.waits_for_foreground()
        {
            outer.take()?;
            if !outer.waits_for_foreground()
                && let Some(size) = outer.size()
            {
                self.resize(size, now)?;
            }
        }
        Ok(())
    }

    /// Tells the program that no more input will come, as a terminal does: whenever it has read everything
    /// and asks for more.
    fn offer_end(&mut self, now: Stamp, again_ns: u64) -> io::Result<()> {
        let mut next_ns = (again_ns * 2).min(*END_RETRY_NS.end());
        if self.gate.waiting() == 0 {
            match self.backend.end_input(self.gate.line_open()) {
                Ok(EndOfInput::Told) => {
                    self.input_end = InputEnd::Told;
                    return Ok(());
                }
                Ok(EndOfInput::Send(byte, times)) => {
                    self.gate.end_of_input(Bytes::from(vec![byte; times]));
                    self.deliver(now)?;
                }
                Ok(EndOfInput::NotYet) => next_ns = again_ns.min(*END_RETRY_NS.end()),
                // Nobody holds the terminal: nobody to tell.
                Err(_) => {}
            }
        }
        self.input_end = InputEnd::Offer { at_ns: now.mono_ns + next_ns, again_ns: next_ns };
        Ok(())
    }

    fn notice_exit(&mut self, now: Stamp) -> io::Result<()> {
        if self.exit.is_none()
            && let Some(exit) = self.backend.exited()?
        {
            self.exit = Some(exit);
            // The quiet time counts from here.
            self.last_output_ns = now.mono_ns;
            self.stopping = Some(Stopping { next: Stop::Kill, at_ns: now.mono_ns + DRAIN_LIMIT_NS });
        }
        Ok(())
    }

    /// The exit, once everything that the program wrote has been passed on.
    fn finished(&mut self, now: Stamp) -> io::Result<Option<Exit>> {
        let Some(exit) = self.exit else { return Ok(None) };
        if self.outer.as_ref().is_some_and(Outer::is_blocked) {
            return Ok(None);
        }
        if !self.closed {
            self.pump_output(now)?;
        }
        let quiet = now.mono_ns >= self.last_output_ns + DRAIN_QUIET_NS;
        let late = self.stopping.is_some_and(|s| now.mono_ns >= s.at_ns);
        Ok((self.closed || quiet || late).then_some(exit))
    }

    /// The last things: whoever was cancelled leaves nobody behind, and a terminal whose program died in the
    /// middle of things gets its modes back.
    fn finish(&mut self, exit: Exit) -> io::Result<()> {
        if self.ended != Ended::Program {
            self.backend.stop(Stop::Kill)?;
        }
        if matches!(exit, Exit::Signal(_)) {
            let undo = Bytes::from(self.modes.undo());
            self.show_now(undo);
        }
        self.log.append(Event::Exit(exit), self.clock.now());
        Ok(())
    }
}

impl<B> Drop for Driver<B> {
    fn drop(&mut self) {
        self.log.close();
        if std::thread::panicking()
            && let Some(outer) = &mut self.outer
            && outer.shows_on_terminal()
        {
            outer.abandon();
            let _ = outer.write(Stream::Out, &Bytes::from(self.modes.undo()));
        }
    }
}

struct Ready {
    output: bool,
    input: bool,
    exit: bool,
    inbox: bool,
    signals: bool,
    typed: bool,
    unblocked: bool,
}

fn earlier(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

fn nanos(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}
