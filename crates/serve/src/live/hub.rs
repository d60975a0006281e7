//! The thread that serves a session's clients.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tapdeck_core::{Entry, Exit, Offset, ReaderId, ReaderKind, Seq, Time};
use tapdeck_host::{Bell, Session};
use tapdeck_proto::attach::Said;
use tapdeck_proto::bus;

use super::LiveOptions;
use super::access::Access;
use super::auth::{Grants, role_on_bus};
use super::client::{BusState, Client, Kind};
use super::session::{LiveSession, recording_event, recording_notice};
use super::turns::Turns;
use crate::admission::{Limits, Policy, Source};
use crate::door::Door;

/// How much is read from the log at a time.
const PIECE: usize = 256 * 1024;
/// How much output may be pending before the model is brought up to date, while no client follows.
const IDLE_PIECE: usize = 7 << 20;
/// The least time between two reads of the log while it is flooding, and what may gather meanwhile.
const GATHER: Duration = Duration::from_millis(2);
/// The least time between two looks at the program's state, while no client follows.
const GLANCE: Duration = Duration::from_millis(25);
/// A turn that takes longer than this is followed by a rest, so that clients that follow a flood
/// take a bounded share of the machine.
const SHORT_TURN: Duration = Duration::from_millis(1);
/// A turn passes on output for at most this long.
const LONG_TURN: Duration = Duration::from_millis(4);
/// The length of a rest, as a multiple of the turn before it.
const REST: u32 = 3;
/// How long no connection is accepted after one could not be, for lack of descriptors most likely.
const BREATH: Duration = Duration::from_millis(50);
/// How long the last screen of a program stays at most after a client was told that it has ended.
const TOLD: Duration = Duration::from_secs(600);
/// How long clients have at the end to take the last of it.
const FAREWELL: Duration = Duration::from_secs(2);
/// How long the end of a program is kept from clients while its recordings are finished.
const SETTLE: Duration = Duration::from_secs(2);
/// How often input that found no room is offered again.
const RETRY: Duration = Duration::from_millis(5);

/// The service: the session, and its clients.
pub(super) struct Hub {
    pub(super) session: LiveSession,
    pub(super) clients: BTreeMap<u64, Client>,
    pub(super) policy: Policy,
    /// When connections are accepted again.
    accepts_at: Time,
    doors: Vec<(Door, Arc<Grants>)>,
    reader: ReaderId,
    bell: Bell,
    stop: Arc<AtomicBool>,
    linger: Option<Duration>,
    pumped: Time,
    rest_until: Time,
    entries: Vec<Entry>,
}

/// The exit code of a command whose session broke down.
const BROKE_DOWN: i32 = 4;

impl Hub {
    pub(super) fn new(session: Session, options: LiveOptions, bell: Bell, stop: Arc<AtomicBool>) -> Self {
        let reader = session.log.reader_from_start(ReaderKind::Lossy);
        session.log.watch_recordings(&bell);
        let (mut ring, mut follow) = (1, None);
        if let Some(turns) = options.turns {
            session.glass.detect(turns.rules, turns.limits);
            (ring, follow) = (turns.ring, turns.follow);
        }
        let session = LiveSession {
            access: Access::new(session.handle, session.glass),
            log: session.log,
            clock: session.clock,
            about: options.about,
            has_terminal: session.has_terminal,
            pid: session.pid,
            admin: options.admin,
            turns: Turns::new(ring, follow, (options.on_state, options.on_turn), bell.clone()),
            size: session.size,
            holder: None,
            suspended: false,
            waiting: false,
            exit: None,
            exit_at: Time::ZERO,
            settled: false,
            failures_told: 0,
            pause_told: false,
            lost: false,
            looked: false,
            told_at: None,
            last_output: Time::ZERO,
            prompt: String::new(),
            passed: Offset(0),
            full: None,
            pastes: 0,
        };
        Self {
            session,
            clients: BTreeMap::new(),
            policy: Policy::new(Limits::small()),
            accepts_at: Time::ZERO,
            doors: options.doors.into_iter().map(|(door, grants)| (door, Arc::new(grants))).collect(),
            reader,
            bell,
            stop,
            linger: options.linger,
            pumped: Time::ZERO,
            rest_until: Time::ZERO,
            entries: Vec::new(),
        }
    }

    /// Serves until it is told to stop and everybody has been told.
    pub(super) fn run(&mut self) {
        let (mut farewell, mut linger) = (None, None);
        self.session.join_broker();
        loop {
            let now = self.session.clock.now().mono;
            let stopping = self.stop.load(Ordering::Acquire);
            if stopping && self.session.exit.is_none() {
                self.notice_loss(now);
            }
            let until = stopping.then(|| *linger.get_or_insert_with(|| self.lingers_until(now)));
            // A client that was told had its chance: a script that never looks must not keep the
            // screen for ever.
            let until = until.map(|until| self.session.told_at.map_or(until, |told| until.min(told + TOLD)));
            let enough = self.session.looked || self.session.access.driver().is_dismissed();
            if until.is_some_and(|until| enough || now >= until) {
                let until = *farewell.get_or_insert_with(|| now + FAREWELL);
                self.pump(now);
                self.say_goodbye();
                if self.clients.values().all(|c| c.conn.queue.is_empty()) || now >= until {
                    break;
                }
            }
            let resting = !stopping && now < self.rest_until;
            let ready = self.wait(now, farewell.or(until), resting);
            let now = self.session.clock.now().mono;
            if ready.bell {
                self.bell.quieten();
            }
            let resting = !stopping && now < self.rest_until;
            if !resting {
                self.pump(now);
            }
            self.follow_recordings(now);
            let asked = !ready.readable.is_empty();
            for door in ready.doors {
                self.accept(door, now);
            }
            for number in ready.readable {
                self.serve_client(number, now);
            }
            self.retry_held();
            // A request is answered even during a rest.
            if resting && !asked {
                continue;
            }
            if self.turns_are_due(now) {
                self.follow_turns();
            }
            self.drive_pastes(now);
            self.drive_answers(now);
            self.send_frames(now);
            self.finish_captures(now);
            self.flush(now);
            let then = self.session.clock.now().mono;
            if then > now + SHORT_TURN && self.clients.values().any(Client::follows) {
                self.rest_until = then + REST * then.since(now);
            }
        }
        for client in self.clients.values_mut() {
            client.conn.shutdown();
        }
    }

    /// Ends the session. A session that broke down, for instance because its container's engine is
    /// gone, has no end in its log. Its observers see it end as the command that ran it did.
    fn notice_loss(&mut self, now: Time) {
        self.pump(now);
        if self.session.exit.is_none() && self.session.log.is_closed() {
            self.session.lost = true;
            self.session.exit = Some(Exit::Code(BROKE_DOWN));
            self.session.exit_at = now;
        }
    }

    /// Tells clients of recordings that have failed, and of the program's end once its recordings
    /// have ended, too: what is told of them is then final.
    fn follow_recordings(&mut self, now: Time) {
        for failed in self.session.log.failed_recordings(self.session.failures_told) {
            self.session.failures_told += 1;
            self.announce(recording_event(&failed));
            if let Some(notice) = recording_notice(&failed) {
                self.tell_attached(&notice);
            }
        }
        let (paused, by) = self.session.log.is_paused();
        if paused != self.session.pause_told {
            self.session.pause_told = paused;
            if let Some(recording) = self.session.log.recording() {
                self.announce(recording_event(&recording));
            }
            self.tell_attached(&Said::Paused { paused, by: by.to_string() });
        }
        let LiveSession { exit, exit_at, settled, log, .. } = &self.session;
        if exit.is_some() && !settled && (!log.is_recording() || now >= *exit_at + SETTLE) {
            self.say_goodbye();
        }
    }

    fn lingers_until(&self, now: Time) -> Time {
        now + self.linger.unwrap_or_default()
    }

    /// Waits until something is to be done.
    fn wait(&mut self, now: Time, farewell: Option<Time>, resting: bool) -> Ready {
        let mut deadline = Deadline(farewell);
        self.arm_log(now, resting, &mut deadline);
        if self.session.exit.is_some() && !self.session.settled {
            deadline.sooner(self.session.exit_at + SETTLE);
        }
        // A rest is short, and nothing that is due is late for it.
        if !resting {
            if let Some(at) = self.session.access.look_at() {
                deadline.sooner(at);
            }
            for client in self.clients.values() {
                self.add_deadlines(client, now, &mut deadline);
            }
        }
        let opens_at = self.opens_at(now);
        if let Some(at) = opens_at.filter(|at| *at > now) {
            deadline.sooner(at);
        }
        self.wait_at_all(deadline.timeout(now), resting, opens_at.is_some_and(|at| at <= now))
    }

    /// Has the log ring the bell when there is enough to read. In a flood the log is read now and
    /// then, in large pieces; otherwise as soon as output comes.
    fn arm_log(&self, now: Time, resting: bool, deadline: &mut Deadline) {
        let log = &self.session.log;
        // A log that is closed and read has nothing more to tell, and would say so again and again.
        let tells = !log.is_closed() || log.pending(self.reader) > 0;
        if resting {
            deadline.sooner(self.rest_until);
        } else if tells && self.clients.values().any(Client::follows) {
            if now >= self.pumped + GATHER {
                log.arm(self.reader, 1, &self.bell);
            } else {
                log.arm(self.reader, 16 * PIECE, &self.bell);
                deadline.sooner(self.pumped + GATHER);
            }
        } else if tells && self.session.exit.is_none() {
            // While no client follows, the program's state is looked at now and then.
            if let Some(at) = self.next_glance() {
                deadline.sooner(at);
            }
            if now >= self.pumped + GLANCE {
                log.arm(self.reader, 1, &self.bell);
            } else {
                log.arm(self.reader, IDLE_PIECE, &self.bell);
                deadline.sooner(self.pumped + GLANCE);
            }
        }
    }

    /// Adds the times at which a client must be served.
    fn add_deadlines(&self, client: &Client, now: Time, deadline: &mut Deadline) {
        if client.is_silent() {
            deadline.sooner(client.conn.came + self.policy.limits().grace);
        }
        for at in [client.conn.stuck(), client.conn.held_until].into_iter().flatten() {
            deadline.sooner(at);
        }
        match &client.kind {
            Kind::Bus(bus) => {
                if let Some(sub) = &bus.sub
                    && self.session.wants_frame(client, sub)
                {
                    deadline.sooner(sub.last_frame + sub.interval);
                }
                if let Some(paste) = &bus.paste {
                    deadline.sooner(paste.work.next_look(now));
                }
                if let Some(answer) = &bus.answer {
                    deadline.sooner(answer.work.next_look(now));
                }
                if let Some(capture) = &bus.capture {
                    deadline.sooner(capture.work.next_look(now));
                }
            }
            Kind::Wire(w) if w.held.is_some() => deadline.sooner(now + RETRY),
            // The client has taken its queue and is owed the screen; no other event may ever wake
            // it.
            Kind::Wire(w) if w.missed.is_some() && client.conn.queue.is_empty() => deadline.sooner(now),
            _ => {}
        }
    }

    /// Waits at the bell, the doors and the clients.
    fn wait_at_all(&self, timeout: Option<Timespec>, resting: bool, open: bool) -> Ready {
        let mut fds = vec![PollFd::from_borrowed_fd(self.bell.fd(), PollFlags::IN)];
        if open {
            fds.extend(self.doors.iter().map(|(d, _)| PollFd::from_borrowed_fd(d.fd(), PollFlags::IN)));
        }
        let doors = fds.len() - 1;
        for client in self.clients.values() {
            let mut flags = PollFlags::empty();
            let held = matches!(&client.kind, Kind::Wire(w) if w.held.is_some());
            flags.set(PollFlags::IN, !held && !client.conn.closing);
            let rests = resting && client.follows();
            let sends = !client.conn.queue.is_empty() && client.conn.held_until.is_none();
            flags.set(PollFlags::OUT, sends && !rests);
            fds.push(PollFd::new(&client.conn.socket, flags));
        }
        if poll(&mut fds, timeout.as_ref()).is_err() {
            return Ready::default();
        }
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let readable = fds[1 + doors..]
            .iter()
            .zip(self.clients.keys())
            .filter(|(fd, _)| fd.revents().intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR))
            .map(|(_, n)| *n)
            .collect();
        Ready {
            bell: is_ready(&fds[0]),
            doors: (0..doors).filter(|i| is_ready(&fds[1 + i])).collect(),
            readable,
        }
    }

    fn accept(&mut self, door: usize, now: Time) {
        while self.opens_at(now).is_some_and(|at| at <= now) {
            let (door, grants) = &self.doors[door];
            match door.accept() {
                // The peer is a process of another user; it sees a closed connection.
                Ok(None) => {}
                Ok(Some(conn)) => {
                    let Ok(entered) = self.policy.enter(Source::of(conn.peer()), false, now) else {
                        continue;
                    };
                    let client = Client::new(conn, Arc::clone(grants), now);
                    if client.conn.socket.set_nonblocking(true).is_ok() {
                        self.clients.insert(entered.ticket, client);
                    } else {
                        self.policy.leave(entered.ticket, now);
                    }
                    self.send_away(entered.evicted);
                }
                Err(e) if matches!(e.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {
                    let evicted = self.policy.evict(now);
                    self.send_away(evicted);
                    self.accepts_at = now + BREATH;
                    break;
                }
            }
        }
    }

    /// Returns when the next connection may be accepted; `None` while no further client can be let
    /// in.
    fn opens_at(&self, now: Time) -> Option<Time> {
        let wait = self.policy.wait(now).unwrap_or_default();
        (!self.policy.is_full()).then(|| self.accepts_at.max(now + wait))
    }

    /// Disconnects a client that has to make room for another.
    fn send_away(&mut self, evicted: Option<u64>) {
        if let Some(client) = evicted.and_then(|number| self.clients.get_mut(&number)) {
            client.conn.gone = true;
        }
    }

    /// Lets in a client that has said who it is, and delays the refusal of one that guesses.
    fn judge(&mut self, number: u64, now: Time) {
        let Some(client) = self.clients.get_mut(&number) else { return };
        if std::mem::take(&mut client.guessed) {
            let failure = self.policy.fail(number, now);
            client.conn.held_until = Some(now + failure.delay);
            client.conn.closing |= failure.is_last;
        }
        if !client.is_silent() && self.policy.admit(number).is_err() {
            client.conn.gone = true;
        }
    }

    fn serve_client(&mut self, number: u64, now: Time) {
        let Some(client) = self.clients.get_mut(&number) else { return };
        if !client.conn.read() {
            return;
        }
        if matches!(client.kind, Kind::Unknown) {
            // A negotiation begins with the high byte of a length under 16 MiB, a verb with a
            // letter.
            client.kind = match client.conn.inbox.first() {
                Some(0) => Kind::Wire(super::attach::unopened()),
                _ => Kind::Bus(Box::new(BusState::new())),
            };
        }
        match client.kind {
            Kind::Wire(_) => self.serve_wire(number, now),
            _ => self.serve_bus(number, now),
        }
        self.judge(number, now);
    }

    /// Returns the clients as `INFO` lists them.
    pub(super) fn roster(&self) -> Vec<bus::Client> {
        let listed = self.clients.values().filter(|c| c.party.is_some());
        let entry = |c: &Client| bus::Client {
            name: c.name.clone(),
            role: role_on_bus(c.authority.role()),
            pid: c.conn.socket.pid(),
            attached: c.attached().is_some(),
        };
        listed.map(entry).collect()
    }

    /// Takes all deliveries a step further.
    fn drive_pastes(&mut self, now: Time) {
        let ticket = |client: &Client| match &client.kind {
            Kind::Bus(bus) => bus.paste.as_ref().map(|pending| pending.work.ticket()),
            _ => None,
        };
        let Some(first) = self.clients.values().filter_map(ticket).min() else { return };
        for client in self.clients.values_mut() {
            self.session.drive_paste(client, first, now);
        }
    }

    /// Takes all answers to questions a step further.
    fn drive_answers(&mut self, now: Time) {
        for client in self.clients.values_mut() {
            self.session.drive_answer(client, now);
        }
    }

    /// Answers the clients whose command has come to its end.
    fn finish_captures(&mut self, now: Time) {
        let capturing = |c: &Client| matches!(&c.kind, Kind::Bus(bus) if bus.capture.is_some());
        if !self.clients.values().any(capturing) {
            return;
        }
        let look = self.session.access.look();
        // Output that the model has seen and the captures have not would make an answer too short.
        if look.offset() != self.session.passed {
            return;
        }
        for client in self.clients.values_mut() {
            let capture = client.bus().and_then(|bus| bus.capture.as_mut());
            if let Some(answer) = capture.and_then(|c| c.work.answer(&look, now)) {
                client.answer_capture(answer);
            }
        }
    }

    /// Reads the log and passes on what is in it by now.
    pub(super) fn pump(&mut self, now: Time) {
        let follows = self.clients.values().any(Client::follows);
        let end = self.session.log.end();
        let mut next = Seq(0);
        let mut entries = std::mem::take(&mut self.entries);
        while next < end {
            entries.clear();
            if let Some(lag) = self.session.log.read(self.reader, PIECE, &mut entries) {
                self.note_lag(lag.offsets.start, lag.offsets.end);
            }
            if entries.is_empty() {
                break;
            }
            // Only a read that found entries calls for a rest: resting after nothing would never
            // end.
            self.pumped = now;
            for entry in entries.drain(..) {
                next = entry.seq.next();
                self.pass_on(&entry, now);
            }
            // Followers get it piece by piece, so that queues fill no more than they must.
            if follows {
                self.flush(now);
                if self.session.exit.is_none() && self.session.clock.now().mono > now + LONG_TURN {
                    break;
                }
            }
        }
        self.entries = entries;
        if !self.clients.values().any(Client::follows) && self.log_is_ahead() {
            drop(self.session.access.look());
        }
        self.pass_signals();
    }

    /// Whether the model is so far behind that it is brought up to date although no client looks.
    fn log_is_ahead(&self) -> bool {
        self.session.log.offset() > self.session.access.seen() + IDLE_PIECE
    }
}

/// The earliest of several points in time.
struct Deadline(Option<Time>);

impl Deadline {
    fn sooner(&mut self, at: Time) {
        self.0 = Some(self.0.map_or(at, |set| set.min(at)));
    }

    /// The time that is left, for a poll.
    fn timeout(&self, now: Time) -> Option<Timespec> {
        self.0.map(|at| {
            let left = at.since(now).max(Duration::from_micros(100));
            Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() }
        })
    }
}

/// What is ready.
#[derive(Default)]
struct Ready {
    bell: bool,
    doors: Vec<usize>,
    readable: Vec<u64>,
}
