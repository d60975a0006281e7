//! What the driver waits for: every descriptor and every deadline of a session in one poll.

use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tapdeck_core::{Stamp, Time};

use super::keys::OwnKeys;
use super::life::DRAIN_QUIET;
use super::{Driver, InputEnd};
use crate::backend::{Backend, Watch};
use crate::user_side::UserSide;

/// How often to look whether a background process has come to the foreground.
const FOREGROUND_CHECK: Duration = Duration::from_millis(250);

/// How often to look whether the recorder has caught up.
const RECORDER_CHECK: Duration = Duration::from_millis(2);

/// How long input of a client may wait before the driver probes whether the client is still there.
const PROBE: Duration = Duration::from_millis(500);

/// What is ready to be served.
pub(super) struct Ready {
    pub(super) output: bool,
    pub(super) input: bool,
    /// The backend's connection wants to be kept up.
    pub(super) upkeep: bool,
    pub(super) exit: bool,
    pub(super) inbox: bool,
    pub(super) signals: bool,
    pub(super) typed: bool,
    pub(super) unblocked: bool,
    /// The client has hung up, and nothing that it sent before can be taken.
    pub(super) lost: bool,
    /// Nothing has happened for a while in which input of the client waits.
    pub(super) probe: bool,
}

/// Which entry of the poll stands for what.
struct Slots {
    reads: [Option<usize>; 2],
    write: Option<usize>,
    upkeep: Option<usize>,
    exit: Option<usize>,
    inbox: usize,
    signals: Option<usize>,
    stdin: Option<usize>,
    stdout: Option<usize>,
    socket: Option<usize>,
}

impl<B: Backend> Driver<B> {
    /// Waits for something to do.
    pub(super) fn wait(&mut self) -> io::Result<Ready> {
        let now = self.clock.now();
        let behind = self.waits_for_recorder(now);
        let user_blocked = behind || self.user.as_ref().is_some_and(UserSide::is_blocked);
        let room = self.gate.has_room() && self.exit.is_none();
        let watch = self.backend.watch();
        let (mut fds, slots) = self.descriptors(&watch, user_blocked, room);
        let typed = self.user.as_ref().is_some_and(|user| user.has_typed(room));
        let stalled = slots.socket.is_some() && !room && self.exit.is_none();
        let probe_at = now.mono + PROBE;

        let mut deadline = self.next_deadline(now);
        if behind {
            deadline = earlier(deadline, Some(now.mono + RECORDER_CHECK));
        }
        if !user_blocked {
            deadline = earlier(deadline, watch.read_at);
        }
        if typed {
            deadline = Some(now.mono);
        }
        if stalled {
            deadline = earlier(deadline, Some(probe_at));
        }
        let timeout = deadline.map(|at| {
            let left = at.since(now.mono);
            Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: i64::from(left.subsec_nanos()) }
        });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        let due = !user_blocked && watch.read_at.is_some();
        let probe = stalled && self.clock.now().mono >= probe_at;
        let ready = slots.ready(&fds, room);
        // What came during the wait has rung the inbox: the next turn sees it without another
        // wait.
        Ok(Ready { output: ready.output || due, typed: ready.typed || typed, probe, ..ready })
    }

    /// The descriptors to wait at. The program's terminal is readable and writable through one
    /// descriptor; both are asked for at once.
    fn descriptors<'a>(
        &'a self,
        watch: &Watch<'a>,
        user_blocked: bool,
        room: bool,
    ) -> (Vec<PollFd<'a>>, Slots) {
        let wants_write = self.gate.waiting() > 0 || watch.unsent;
        let mut fds = Vec::with_capacity(8);
        let mut add = |fd, flags| {
            fds.push(PollFd::from_borrowed_fd(fd, flags));
            fds.len() - 1
        };
        let reads = watch.readable.map(|fd| fd.filter(|_| !user_blocked).map(|fd| add(fd, PollFlags::IN)));
        let write = watch.writable.filter(|_| wants_write).map(|fd| add(fd, PollFlags::OUT));
        // Reading keeps the backend's connection up. Where nothing is read, it is kept up by
        // itself.
        let upkeep = watch.upkeep.filter(|_| user_blocked).map(|fd| add(fd, PollFlags::IN));
        let exit = watch.exit.filter(|_| self.exit.is_none()).map(|fd| add(fd, PollFlags::IN));
        let inbox = add(self.handle.fd(), PollFlags::IN);
        let signals = self.signals.as_ref().map(|s| add(s.fd(), PollFlags::IN));
        let user = self.user.as_ref();
        let stdin = user.filter(|_| room).and_then(UserSide::stdin_fd).map(|fd| add(fd, PollFlags::IN));
        let stdout = user.and_then(UserSide::blocked_fd).map(|fd| add(fd, PollFlags::OUT));
        // That the client is gone matters even while nothing is wanted of it. For a program that
        // goes on without it, the end of its input matters only when that can be taken.
        let waits = !room && user.is_some_and(UserSide::goes_on_alone);
        let socket = user.and_then(UserSide::socket_fd).map(|(fd, unsent)| {
            let mut flags = if waits { PollFlags::empty() } else { PollFlags::RDHUP };
            flags.set(PollFlags::IN, room);
            flags.set(PollFlags::OUT, unsent);
            add(fd, flags)
        });
        (fds, Slots { reads, write, upkeep, exit, inbox, signals, stdin, stdout, socket })
    }

    fn next_deadline(&self, now: Stamp) -> Option<Time> {
        let mut at = self.stopping.map(|s| s.at);
        at = earlier(at, self.gate.stick().lease_end());
        at = earlier(at, self.own_keys.as_ref().and_then(OwnKeys::due));
        if let InputEnd::Offer { at: offer, .. } = self.input_end {
            at = earlier(at, Some(offer));
        }
        if self.user.as_ref().is_some_and(UserSide::waits_for_foreground) {
            at = earlier(at, Some(now.mono + FOREGROUND_CHECK));
        }
        if self.exit.is_some() {
            at = earlier(at, Some(self.last_output + DRAIN_QUIET));
        }
        at
    }
}

impl Slots {
    /// What the poll found. `room` tells whether input can be taken.
    fn ready(&self, fds: &[PollFd<'_>], room: bool) -> Ready {
        let is_ready = |slot: Option<usize>| slot.is_some_and(|i| !fds[i].revents().is_empty());
        let socket = self.socket.map_or(PollFlags::empty(), |i| fds[i].revents());
        let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
        let hung_up = socket.intersects(gone);
        Ready {
            output: self.reads.into_iter().any(is_ready),
            input: is_ready(self.write),
            upkeep: is_ready(self.upkeep),
            exit: is_ready(self.exit),
            inbox: is_ready(Some(self.inbox)),
            signals: is_ready(self.signals),
            typed: is_ready(self.stdin) || socket.contains(PollFlags::IN) || (hung_up && room),
            unblocked: is_ready(self.stdout) || socket.contains(PollFlags::OUT),
            lost: hung_up && !room,
            probe: false,
        }
    }
}

fn earlier(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
