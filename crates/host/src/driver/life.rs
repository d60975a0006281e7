//! A session's life beside its bytes: signals, stopping and going on together, the end.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tapdeck_core::{Event, Exit, Stamp, Stream, Time};

use super::{Driver, Ended, Stopping};
use crate::backend::{Backend, StopSignal};
use crate::recorder::{FailureAction, OnFailure};
use crate::user_side::{Signals, UserSide};
use crate::{processes, sys};

/// After the program's end: how long its terminal must be quiet before it counts as drained when
/// another process still holds it, and how long to wait for that at most.
pub(super) const DRAIN_QUIET: Duration = Duration::from_millis(60);
const DRAIN_LIMIT: Duration = Duration::from_secs(1);
/// The same while suspending: time for the program to put its screen in order.
const SUSPEND_QUIET: Duration = Duration::from_millis(40);
const SUSPEND_LIMIT: Duration = Duration::from_millis(300);

/// Tells why the shell has the terminal again.
const SUSPENDED: &[u8] =
    b"\r\ntapdeck: the program is suspended because its recording failed; fg continues it\r\n";

impl<B: Backend> Driver<B> {
    pub(super) fn serve_signals(&mut self, now: Stamp) -> io::Result<()> {
        while let Some(signal) = self.signals.as_ref().and_then(Signals::next) {
            match signal {
                libc::SIGWINCH => {
                    if let Some(size) = self.user.as_ref().and_then(UserSide::size) {
                        self.user_resized(size, now)?;
                    }
                }
                libc::SIGTSTP => {
                    self.forward(libc::SIGTSTP, now);
                    self.suspend()?;
                }
                libc::SIGCONT => self.continued(now)?,
                libc::SIGCHLD => {
                    if std::process::id() == 1 {
                        sys::reap_adopted(self.backend.pid());
                    }
                    self.notice_exit(now)?;
                    if self.exit.is_none() && self.user.is_some() && self.backend.stopped() {
                        self.suspend()?;
                    }
                }
                libc::SIGTERM => {
                    self.told_to_end = true;
                    self.handle.dismiss();
                    self.forward(signal, now);
                    self.escalate(now, StopSignal::HangUp, self.config.hang_up_after);
                }
                libc::SIGHUP => self.hang_up(now),
                _ => self.forward(signal, now),
            }
        }
        Ok(())
    }

    /// The user's terminal is gone, and with it the program's: it is told as a terminal would tell
    /// it.
    pub(super) fn hang_up(&mut self, now: Stamp) {
        if !std::mem::replace(&mut self.hung_up, true) {
            self.told_to_end = true;
            self.handle.dismiss();
            // A program that is gone needs no signal, and a kill follows.
            let _ = self.backend.stop(StopSignal::HangUp);
            self.log.append(Event::Signal(libc::SIGHUP), now);
            self.escalate(now, StopSignal::Kill, self.config.kill_after);
        }
    }

    /// Tells the user's terminal of a recording that failed, and suspends or ends the program, as
    /// the recording was told.
    pub(super) fn recording_failed(&mut self, then: OnFailure, now: Stamp) -> io::Result<()> {
        // Behind what the terminal has not taken yet: an alert is not to be lost.
        let alert = then.alert();
        self.uncover();
        if !alert.is_empty() && self.user.as_ref().is_some_and(UserSide::shows_on_terminal) {
            self.serve_user(|user| user.write(Stream::Out, &alert));
        }
        match then.action {
            FailureAction::GoOn => {}
            FailureAction::Suspend if self.exit.is_none() => self.hold(now)?,
            FailureAction::Suspend => {}
            FailureAction::End => {
                if self.ended == Ended::Program {
                    self.ended = Ended::RecordingFailed;
                }
                self.begin_stop(now, StopSignal::Terminate);
            }
        }
        Ok(())
    }

    /// Suspends the program: with this process where a shell can continue it, otherwise alone,
    /// until this process or the session is sent a SIGCONT.
    fn hold(&mut self, now: Stamp) -> io::Result<()> {
        if self.user.as_ref().is_some_and(UserSide::is_stdio) && !processes::is_orphaned() {
            self.forward(libc::SIGTSTP, now);
            self.says_why = true;
            return self.suspend();
        }
        // A program that is gone cannot be frozen.
        let _ = self.backend.freeze(true);
        tracing::info!("suspended because the recording failed");
        self.held = true;
        self.log.append(Event::Suspended, now);
        Ok(())
    }

    /// Stops the program and this process together, with the terminal handed back meanwhile.
    fn suspend(&mut self) -> io::Result<()> {
        // Where this process cannot be stopped, a program that was stays so until another process
        // continues it.
        if processes::is_orphaned() {
            return Ok(());
        }
        let began = self.clock.now().mono;
        self.last_output = began;
        let quiet_or_late = |driver: &Self, now: Time| {
            now >= driver.last_output + SUSPEND_QUIET || now >= began + SUSPEND_LIMIT
        };
        // A program that handles the signal puts its screen in order first.
        loop {
            let now = self.clock.now();
            self.pump_output(now)?;
            if quiet_or_late(self, now.mono) || self.user.as_ref().is_some_and(UserSide::is_blocked) {
                break;
            }
            let watch = self.backend.watch();
            let Some(fd) = watch.readable[0] else { break };
            let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
            // An error ends the wait early, and the loop looks again.
            let _ = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 10_000_000 }));
        }
        // A program that is gone cannot be frozen.
        let _ = self.backend.freeze(true);
        tracing::info!("suspended");
        self.log.append(Event::Suspended, self.clock.now());
        self.log.flush(Duration::from_millis(500));
        let undo = Bytes::from(self.modes.undo());
        self.show_now(undo);
        if std::mem::take(&mut self.says_why) {
            self.show_now(Bytes::from_static(SUSPENDED));
        }
        if let Some(user) = &mut self.user {
            user.give_back()?;
        }
        sys::stop_self()?;
        self.continued(self.clock.now())
    }

    /// Takes the terminal again and lets the program go on, after this process was stopped.
    pub(super) fn continued(&mut self, now: Stamp) -> io::Result<()> {
        self.held = false;
        if let Some(user) = &mut self.user {
            user.take()?;
        }
        // Continued in the background, the program goes on, but its picture and its keyboard stay
        // away.
        if !self.user.as_ref().is_some_and(UserSide::waits_for_foreground) {
            self.come_to_front(now)?;
        }
        tracing::info!("resumed");
        self.log.append(Event::Resumed, now);
        // A program that is gone need not go on.
        let _ = self.backend.freeze(false);
        self.forward(libc::SIGCONT, now);
        Ok(())
    }

    /// Whether output is to be kept from the user's terminal because that is another program's for
    /// the moment. A program of lines writes among the other's, as it would without us; one that
    /// has the screen to itself would have been stopped, and is only not shown.
    pub(super) fn withholds(&self) -> bool {
        self.user.as_ref().is_some_and(UserSide::waits_for_foreground)
            && (self.modes.alternate() || self.backend.reads_keys())
    }

    /// The user's terminal is ours again, after it was another program's: brings the session's
    /// picture back.
    pub(super) fn come_to_front(&mut self, now: Stamp) -> io::Result<()> {
        if std::mem::take(&mut self.withheld) || self.modes.alternate() {
            // What was not shown, and what was on the other screen, only the model knows. What the
            // other program has left goes up, whole.
            let rows = if self.modes.alternate() { 0 } else { self.own_size.or_default().rows };
            let mut picture = "\n".repeat(rows.into()).into_bytes();
            picture.extend(self.glass.painted());
            self.show_now(picture.into());
        } else {
            let redo = Bytes::from(self.modes.redo());
            self.show_now(redo);
        }
        if let Some(size) = self.user.as_ref().and_then(UserSide::size) {
            self.user_resized(size, now)?;
        }
        // Whatever was on the screen has scrolled or been painted over: ask for a new picture.
        if self.modes.alternate() {
            self.forward(libc::SIGWINCH, now);
        }
        Ok(())
    }

    pub(super) fn notice_exit(&mut self, now: Stamp) -> io::Result<()> {
        if self.exit.is_none()
            && let Some(exit) = self.backend.exited()?
        {
            tracing::debug!(?exit, "program exited");
            self.exit = Some(exit);
            // The quiet time counts from here.
            self.last_output = now.mono;
            let at = now.mono + DRAIN_LIMIT;
            self.stopping = Some(Stopping { next: StopSignal::Kill, at, limit: false });
        }
        Ok(())
    }

    /// The exit, once everything that the program wrote has been passed on.
    pub(super) fn finished(&mut self, now: Stamp) -> io::Result<Option<Exit>> {
        let Some(exit) = self.exit else { return Ok(None) };
        let late = self.stopping.is_some_and(|s| now.mono >= s.at);
        if let Some(user) = &mut self.user
            && user.is_blocked()
        {
            // A user's terminal that takes nothing is waited for, as the program itself would have
            // waited; but not by a process that was told to end.
            if !(late && self.told_to_end) {
                return Ok(None);
            }
            user.abandon();
        }
        if self.waits_for_recorder(now) {
            return Ok(None);
        }
        if !self.closed {
            self.pump_output(now)?;
        }
        let quiet = now.mono >= self.last_output + DRAIN_QUIET;
        Ok((self.closed || quiet || late).then_some(exit))
    }

    /// Does the last things: a cancelled program leaves no process behind, and a terminal whose
    /// program was killed gets its modes back.
    pub(super) fn finish(&mut self, exit: Exit) -> io::Result<()> {
        if self.ended != Ended::Program {
            self.backend.stop(StopSignal::Kill)?;
        }
        self.uncover();
        if matches!(exit, Exit::Signal(_)) {
            let undo = Bytes::from(self.modes.undo());
            self.show_now(undo);
        }
        self.log.append(Event::Exit(exit), self.clock.now());
        Ok(())
    }
}
