//! Turns and states of the session: passes on, keeps and records what the model's detector finds.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tapdeck_core::base64;
use tapdeck_core::turns::{
    AgentState, Contradiction, Evidence, Judgement, Limits, Notice, Part, Rules, RunningTurn, Turn,
};
use tapdeck_core::{Offset, Stamp, Time};
use tapdeck_host::{Bell, Clock, JournalWatch, Look};
use tapdeck_proto::{attach, bus};

use super::answer::question_of;
use super::client::Kind;
use super::hub::Hub;
use super::session::{LiveSession, recording_state};
use crate::broker::Wrapper;

/// Turns that are kept, unless told otherwise.
const RING: usize = 32;
/// Without clients, the least time between two looks that nothing else asks for.
const RARE: Duration = Duration::from_millis(100);

/// A change of the program at the terminal.
#[derive(Debug, Clone)]
pub enum NestedProgram {
    /// A program with rules of its own was started from the first one.
    Started(Arc<Rules>),
    /// The first program is back.
    Ended,
}

/// Called whenever turns are looked for, with the session's first process and the time. Returns a
/// change of the program at the terminal since the last call.
pub type Follow = Box<dyn FnMut(u32, Time) -> Option<NestedProgram> + Send>;

/// How turns are found and kept.
#[non_exhaustive]
pub struct TurnOptions {
    pub(super) rules: Arc<Rules>,
    pub(super) limits: Limits,
    pub(super) ring: usize,
    pub(super) follow: Option<Follow>,
}

impl TurnOptions {
    /// Finds turns by these rules, which say what prompts and screens mean.
    pub fn new(rules: Arc<Rules>) -> Self {
        Self { rules, limits: Limits::default(), ring: RING, follow: None }
    }

    /// Sets how much is kept of one turn.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how many turns are kept; 32 by default.
    #[must_use]
    pub fn ring(mut self, ring: usize) -> Self {
        self.ring = ring;
        self
    }

    /// Sets what notices programs with other rules that are started from the first one.
    #[must_use]
    pub fn follow(mut self, follow: impl Into<Option<Follow>>) -> Self {
        self.follow = follow.into();
        self
    }
}

impl std::fmt::Debug for TurnOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TurnOptions")
            .field("limits", &self.limits)
            .field("ring", &self.ring)
            .finish_non_exhaustive()
    }
}

/// Called when the state of the session's program has changed.
pub type OnState = Box<dyn FnMut(&bus::StateChange) + Send>;

/// Called when a turn of the session is over. It must not wait for the session.
pub type OnTurn = Box<dyn FnMut(&Turn) + Send>;

/// The turns of a session.
pub(super) struct Turns {
    kept: VecDeque<Arc<Turn>>,
    ring: usize,
    pub(super) on_state: Option<OnState>,
    on_turn: Option<OnTurn>,
    /// The broker that knows of this session.
    broker: Option<Wrapper>,
    /// When it last looked.
    followed: Time,
    follow: Option<Follow>,
    journals: Journals,
}

/// The journals of the program, as its rules describe them.
struct Journals {
    /// The rules that the files below are from.
    rules: Option<Arc<Rules>>,
    watch: Option<JournalWatch>,
    /// The output until which the reader of the files knows of life at the terminal.
    seen: Offset,
    bell: Bell,
}

impl Journals {
    /// Passes on what the journals say, and has them read while the program is in use.
    fn follow(&mut self, look: &mut Look<'_>, leader: Option<u32>, clock: Clock) {
        let Some(rules) = look.detector().map(|detector| detector.shared_rules()) else { return };
        if self.rules.as_ref().is_none_or(|known| !Arc::ptr_eq(known, &rules)) {
            self.watch = match leader.filter(|_| !rules.journals().is_empty()) {
                Some(leader) => {
                    let journals = rules.journals().to_vec();
                    // Without them, the program is judged by its screen.
                    JournalWatch::start(journals, leader, self.bell.clone(), clock).ok()
                }
                None => None,
            };
            self.rules = Some(rules);
        }
        let Some(watch) = self.watch.as_ref().filter(|_| leader.is_some()) else { return };
        let reports = watch.take();
        if !reports.is_empty() {
            look.report(reports, clock.now());
        }
        let works = look.detector().is_some_and(|d| d.judgement().state == AgentState::Working);
        if works || look.offset() != self.seen {
            self.seen = look.offset();
            watch.poke();
        }
    }
}

impl Turns {
    pub(super) fn new(
        ring: usize,
        follow: Option<Follow>,
        (on_state, on_turn): (Option<OnState>, Option<OnTurn>),
        bell: Bell,
    ) -> Self {
        Self {
            kept: VecDeque::new(),
            ring: ring.max(1),
            on_state,
            on_turn,
            broker: None,
            followed: Time::ZERO,
            follow,
            journals: Journals { rules: None, watch: None, seen: Offset(0), bell },
        }
    }

    /// Whether the program's journals have said something that was not passed on.
    fn has_reports(&self) -> bool {
        self.journals.watch.as_ref().is_some_and(JournalWatch::has_news)
    }

    /// Keeps a turn, and tells the broker of it.
    fn keep(&mut self, turn: &Arc<Turn>) {
        if self.broker.as_ref().is_some_and(|broker| !broker.tell(turn)) {
            self.broker = None;
        }
        if self.kept.len() == self.ring {
            self.kept.pop_front();
        }
        self.kept.push_back(Arc::clone(turn));
    }

    fn find(&self, number: u64) -> Option<&Arc<Turn>> {
        self.kept.iter().find(|t| u64::from(t.number) == number)
    }
}

fn turn_id(session: &str, number: u32) -> String {
    format!("{session}:{number}")
}

/// Returns a turn as lists show it.
fn brief(session: &str, turn: &Turn) -> bus::Turn {
    bus::Turn {
        turn_id: turn_id(session, turn.number),
        timestamp: turn.end.at.wall.as_millis(),
        byte_length: turn.raw.len(),
        interrupted: turn.interrupted,
        truncated: turn.truncated,
        detail: None,
    }
}

/// Returns a turn with its text.
fn whole(session: &str, turn: &Turn, raw: bool, parts: Option<usize>) -> bus::Turn {
    let detail = bus::TurnDetail {
        text: turn.text.clone(),
        input: turn.input.clone(),
        start_byte: turn.start.byte.0,
        end_byte: turn.end.byte.0,
        start_ns: turn.start.at.wall.as_nanos(),
        end_ns: turn.end.at.wall.as_nanos(),
        evidence: turn.evidence.name().to_owned(),
        parts: parts.map(|from| parts_of(&turn.parts, &turn.text, from)),
        raw: raw.then(|| base64::encode(&turn.raw)),
    };
    bus::Turn { detail: Some(detail), ..brief(session, turn) }
}

/// Returns the parts of an answer from one on, each with its text.
fn parts_of(parts: &[Part], text: &str, from: usize) -> Vec<bus::Part> {
    let mut lines = text.lines();
    let mut first = true;
    let mut part = |part: &Part| match part {
        Part::Text { lines: n, .. } => {
            // A blank line stands between two.
            if !std::mem::take(&mut first) {
                lines.next();
            }
            bus::Part::Text { text: lines.by_ref().take(*n).collect::<Vec<_>>().join("\n") }
        }
        Part::Tool(run) => bus::Part::Tool {
            tool: run.name.clone(),
            about: run.about.clone(),
            result: run.result.clone(),
            failed: run.failed,
        },
    };
    let mut all: Vec<bus::Part> = parts.iter().map(&mut part).collect();
    all.drain(..from.min(parts.len()));
    all
}

/// Returns what was submitted and is not over.
fn running(session: &str, turn: &RunningTurn, end: Offset, now: Stamp, parts: Option<usize>) -> bus::Turn {
    // Where parts are asked for, they have the text.
    let text = if parts.is_some() && turn.has_journal { String::new() } else { turn.text.clone() };
    let detail = bus::TurnDetail {
        text,
        input: turn.input.clone(),
        start_byte: turn.start.byte.0,
        end_byte: end.0,
        start_ns: turn.start.at.wall.as_nanos(),
        end_ns: now.wall.as_nanos(),
        evidence: if turn.has_journal { Evidence::Journal } else { Evidence::Screen }.name().to_owned(),
        parts: parts.map(|from| parts_of(&turn.parts, &turn.text, from)),
        raw: None,
    };
    bus::Turn {
        turn_id: format!("{session}:{}", turn.number),
        timestamp: now.wall.as_millis(),
        byte_length: usize::try_from(end.0.saturating_sub(turn.start.byte.0)).unwrap_or(usize::MAX),
        interrupted: false,
        truncated: false,
        detail: Some(detail),
    }
}

/// Returns a judgement as data.
pub(super) fn judged(judgement: &Judgement) -> bus::Judged {
    let row = |(row, text): &(u16, String)| bus::JudgedRow { row: *row, text: text.clone() };
    let against = |other: &Contradiction| bus::Contradiction {
        state: state_of(other.state),
        evidence: other.evidence.name().to_owned(),
        rule: other.rule.clone(),
    };
    bus::Judged {
        state: state_of(judgement.state),
        evidence: judgement.evidence.name().to_owned(),
        rule: judgement.rule.clone(),
        rows: judgement.rows.iter().map(row).collect(),
        since_ns: judgement.since.wall.as_nanos(),
        against: judgement.against.iter().map(against).collect(),
    }
}

/// Returns the bus's word for what a program is doing.
pub(super) fn state_of(state: AgentState) -> bus::AgentState {
    match state {
        AgentState::Unknown => bus::AgentState::Unknown,
        AgentState::Working => bus::AgentState::Working,
        AgentState::Blocked => bus::AgentState::Blocked,
        AgentState::Idle => bus::AgentState::Idle,
        AgentState::Done => bus::AgentState::Done,
    }
}

impl Hub {
    /// Returns whether to look for turns. Without clients a flood is looked at rarely: the longer
    /// it is left alone, the less of it has to be drawn.
    pub(super) fn turns_are_due(&self, now: Time) -> bool {
        let asked = !self.clients.is_empty() || self.session.exit.is_some();
        asked
            || self.session.access.look_at().is_some_and(|at| now >= at)
            || self.next_glance().is_some_and(|at| now >= at)
            || self.session.turns.has_reports()
    }

    /// Returns when to look at output that has not been looked at.
    pub(super) fn next_glance(&self) -> Option<Time> {
        let session = &self.session;
        session.access.is_behind().then_some(session.turns.followed + RARE)
    }

    /// Lets the detector look, and passes on what it found.
    pub(super) fn follow_turns(&mut self) {
        for notice in self.session.take_notices() {
            self.session.access.driver().found(&notice);
            match &notice {
                Notice::Ready(place) => self.announce(bus::Event::Ready { seq: place.byte.0 }),
                Notice::Completed(turn) => self.turn_ended(turn),
                Notice::Nothing { submitted } => self.answer_captures(submitted.0, "", false, false),
                Notice::State(judgement) => self.state_changed(judgement),
                _ => {}
            }
        }
    }

    fn state_changed(&mut self, judgement: &Judgement) {
        let judged = judged(judgement);
        self.tell_attached(&attach::Said::State { state: judged.state, rule: judged.rule.clone() });
        self.announce(bus::Event::State(judged.clone()));
        let about = &self.session.about;
        if let Some(on_state) = &mut self.session.turns.on_state {
            on_state(&bus::StateChange {
                name: "STATE".to_owned(),
                session: about.id.clone(),
                session_name: about.name.clone(),
                judged,
            });
        }
    }

    fn turn_ended(&mut self, turn: &Arc<Turn>) {
        self.session.turns.keep(turn);
        if let Some(on_turn) = &mut self.session.turns.on_turn {
            on_turn(turn);
        }
        self.announce(bus::Event::Turn(brief(&self.session.about.id, turn)));
        self.answer_captures(turn.start.byte.0, &turn.text, turn.truncated, turn.interrupted);
    }

    /// Answers the clients whose command has just ended, at this byte or before.
    fn answer_captures(&mut self, byte: u64, text: &str, truncated: bool, interrupted: bool) {
        for client in self.clients.values_mut() {
            let Kind::Bus(bus) = &client.kind else { continue };
            let capture = bus.capture.as_ref().map(|pending| &pending.work);
            if let Some(answer) = capture.and_then(|c| c.turn_ended(byte, text, truncated, interrupted)) {
                client.answer_capture(answer);
            }
        }
    }
}

impl LiveSession {
    /// Lets the detector look, and returns what it found.
    fn take_notices(&mut self) -> Vec<Notice> {
        let now = self.clock.now();
        self.turns.followed = now.mono;
        let mut look = self.access.look();
        look.tick(now);
        let leader = self.pid.and_then(|pid| u32::try_from(pid).ok()).filter(|_| self.exit.is_none());
        if let (Some(follow), Some(leader)) = (&mut self.turns.follow, leader) {
            match follow(leader, now.mono) {
                Some(NestedProgram::Started(rules)) => look.set_nested(Some(rules), now),
                Some(NestedProgram::Ended) => look.set_nested(None, now),
                None => {}
            }
        }
        self.turns.journals.follow(&mut look, leader, self.clock);
        look.take_notices()
    }

    /// Registers the session with the broker. Returns whether there is one.
    pub(super) fn join_broker(&mut self) -> bool {
        // A connection that is left over from a broker that died is closed first.
        self.turns.broker = None;
        let past = self.turns.kept.iter().cloned().collect();
        self.turns.broker = self.access.join_broker(&self.about, past);
        self.turns.broker.is_some()
    }

    /// Answers `TURNS`.
    pub(super) fn list_turns(&self, asked: bus::Turns) -> Vec<bus::Turn> {
        let limit = asked.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let skip = self.turns.kept.len().saturating_sub(limit);
        let id = &self.about.id;
        let show = |t: &Arc<Turn>| if asked.whole { whole(id, t, false, None) } else { brief(id, t) };
        self.turns.kept.iter().skip(skip).map(show).collect()
    }

    /// Answers `TURN`.
    pub(super) fn show_turn(&mut self, asked: bus::WhichTurn) -> Result<bus::Turn, bus::Denied> {
        if asked.running {
            let now = self.clock.now();
            let look = self.access.look();
            let turn = look.detector().and_then(|detector| detector.answer_so_far(look.term()));
            let turn = turn.ok_or_else(|| bus::Denied::because("nothing that was submitted is running"))?;
            return Ok(running(&self.about.id, &turn, look.offset(), now, asked.parts));
        }
        let found = match asked.number {
            Some(number) => self.turns.find(number),
            None => self.turns.kept.back(),
        };
        match (found, asked.number) {
            (Some(turn), _) => Ok(whole(&self.about.id, turn, asked.raw, asked.parts)),
            (None, None) => Err(bus::Denied::because("there is no turn yet")),
            (None, Some(number)) => {
                Err(bus::Denied::because(format!("there is no turn {number}, or it is kept no more")))
            }
        }
    }

    /// Answers `EXPLAIN`.
    pub(super) fn explain(&mut self) -> Result<bus::Explained, bus::Denied> {
        let now = self.clock.now().mono;
        let recording = self.log.recording();
        let look = self.access.look();
        let Some(detector) = look.detector() else {
            return Err(bus::Denied::because("this session does not look for turns and states"));
        };
        Ok(bus::Explained {
            judged: judged(detector.judgement()),
            agent: detector.rules().name.clone(),
            prompt: detector.prompt().map(str::to_owned),
            ready: detector.is_ready(),
            turns: detector.turns(),
            turn_id: detector.running_turn().map(|number| turn_id(&self.about.id, number)),
            title: look.term().title().to_owned(),
            question: detector.dialog(look.term()).as_ref().map(question_of),
            interrupt: detector.rules().interrupt(),
            since_ms: Time::from(now.since(detector.judgement().since.mono)).as_millis(),
            recording: recording.as_ref().map(|r| r.path.to_string_lossy().into_owned()),
            recording_state: recording.as_ref().map(recording_state),
            recording_error: recording.and_then(|r| r.error),
        })
    }
}
