//! Turns and states of the session: what the model's detector finds is passed on, kept for whoever asks, and recorded.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};
use tapdeck_core::base64;
use tapdeck_core::turns::{Judgement, Limits, Notice, Rules, Turn};

use super::client::{Client, Kind};
use super::hub::Hub;
use crate::broker::Wrapper;

/// Turns that are kept, unless told otherwise.
pub const RING: usize = 32;
/// With nobody connected, the least time between two looks that nothing else asks for.
const RARE_NS: u64 = 100_000_000;

/// Who is at the terminal, when that may have changed.
#[derive(Debug, Clone)]
pub enum Guest {
    /// A program that has rules of its own.
    Comes(Arc<Rules>),
    /// The one that the session began with.
    Goes,
}

/// Asked whenever turns are looked for, with the session's first process and the time; answers when somebody else is at
/// the terminal than before.
pub type Follow = Box<dyn FnMut(u32, u64) -> Option<Guest> + Send>;

/// How turns are found and kept.
pub struct TurnOptions {
    /// What prompts and screens mean.
    pub rules: Arc<Rules>,
    /// Bytes of one turn that are kept.
    pub limits: Limits,
    /// Turns that are kept.
    pub ring: usize,
    /// Notices programs with other rules that are started from the first one.
    pub follow: Option<Follow>,
}

/// Called when the state of the session's program has changed.
pub type OnState = Box<dyn FnMut(&Value) + Send>;

/// The turns of a session.
pub(super) struct Turns {
    kept: VecDeque<Arc<Turn>>,
    ring: usize,
    pub(super) on_state: Option<OnState>,
    /// The broker that knows of this session.
    broker: Option<Wrapper>,
    /// When it last looked.
    followed_ns: u64,
    follow: Option<Follow>,
}

impl Turns {
    pub(super) fn new(ring: usize, follow: Option<Follow>, on_state: Option<OnState>) -> Self {
        Self { kept: VecDeque::new(), ring: ring.max(1), on_state, broker: None, followed_ns: 0, follow }
    }

    fn keep(&mut self, turn: &Arc<Turn>) {
        if self.kept.len() == self.ring {
            self.kept.pop_front();
        }
        self.kept.push_back(Arc::clone(turn));
    }

    fn find(&self, number: u64) -> Option<&Arc<Turn>> {
        self.kept.iter().find(|t| u64::from(t.number) == number)
    }
}

/// A turn as lists show it.
pub(super) fn brief(session: &str, turn: &Turn) -> Value {
    json!({
        "turn_id": format!("{session}:{}", turn.number),
        "timestamp": turn.end.at.wall_ns / 1_000_000,
        "byte_length": turn.raw.len(),
        "interrupted": turn.interrupted,
        "truncated": turn.truncated,
    })
}

/// All there is to say about a turn.
fn whole(session: &str, turn: &Turn, raw: bool) -> Value {
    let mut value = brief(session, turn);
    value["text"] = json!(turn.text);
    value["input"] = json!(turn.input);
    value["start_byte"] = json!(turn.start.byte);
    value["end_byte"] = json!(turn.end.byte);
    value["start_ns"] = json!(turn.start.at.wall_ns);
    value["end_ns"] = json!(turn.end.at.wall_ns);
    value["evidence"] = json!(turn.evidence.name());
    if raw {
        value["raw"] = json!(base64::encode(&turn.raw));
    }
    value
}

/// A judgement as data.
pub(super) fn judged(judgement: &Judgement) -> Value {
    let rows: Vec<Value> =
        judgement.rows.iter().map(|(row, text)| json!({"row": row, "text": text})).collect();
    json!({
        "state": judgement.state.name(),
        "evidence": judgement.evidence.name(),
        "rule": judgement.rule,
        "rows": rows,
        "since_ns": judgement.since.wall_ns,
    })
}

impl Hub {
    /// With nobody to hear of it, a flood is looked at rarely: the longer it is left alone, the less of it has to be drawn.
    pub(super) fn turns_are_due(&self, now: u64) -> bool {
        let asked = !self.clients.is_empty() || self.exit.is_some();
        asked
            || self.glass.look_ns().is_some_and(|at| now >= at)
            || self.next_glance_ns().is_some_and(|at| now >= at)
    }

    /// When to look at what has happened and nobody has looked at yet.
    pub(super) fn next_glance_ns(&self) -> Option<u64> {
        self.glass.is_behind().then_some(self.turns.followed_ns + RARE_NS)
    }

    /// Lets the detector look, and passes on what it found.
    pub(super) fn follow_turns(&mut self) {
        let now = self.clock.now();
        self.turns.followed_ns = now.mono_ns;
        let glass = self.glass.clone();
        let handle = self.handle.clone();
        let mut look = glass.look(&handle);
        look.tick(now);
        let leader = self.pid.and_then(|pid| u32::try_from(pid).ok()).filter(|_| self.exit.is_none());
        if let (Some(follow), Some(leader)) = (&mut self.turns.follow, leader) {
            match follow(leader, now.mono_ns) {
                Some(Guest::Comes(rules)) => look.set_guest(Some(rules), now),
                Some(Guest::Goes) => look.set_guest(None, now),
                None => {}
            }
        }
        let notices = look.take_notices();
        drop(look);
        for notice in notices {
            self.handle.found(&notice);
            match &notice {
                Notice::Ready(place) => self.announce(&json!({"name": "READY", "seq": place.byte})),
                Notice::Completed(turn) => self.turn_ended(turn),
                Notice::Nothing { submitted } => self.answer_captures(*submitted, "", false, false),
                Notice::State(judgement) => {
                    let mut event = judged(judgement);
                    event["name"] = json!("STATE");
                    self.announce(&event);
                    self.tell_attached(&json!({
                        "type": "state",
                        "state": judgement.state.name(),
                        "rule": judgement.rule,
                    }));
                    event["session"] = json!(self.about.id);
                    event["session_name"] = json!(self.about.name);
                    if let Some(on_state) = &mut self.turns.on_state {
                        on_state(&event);
                    }
                }
                _ => {}
            }
        }
    }

    fn turn_ended(&mut self, turn: &Arc<Turn>) {
        self.turns.keep(turn);
        if self.turns.broker.as_ref().is_some_and(|b| !b.tell(turn)) {
            self.turns.broker = None;
        }
        let mut event = brief(&self.about.id, turn);
        event["name"] = json!("TURN");
        self.announce(&event);
        self.answer_captures(turn.start.byte, &turn.text, turn.truncated, turn.interrupted);
    }

    /// Answers those whose command has just ended, at this byte or before.
    fn answer_captures(&mut self, byte: u64, text: &str, truncated: bool, interrupted: bool) {
        for client in self.clients.values_mut() {
            if let Kind::Bus(bus) = &mut client.kind
                && let Some(answer) =
                    bus.capture.as_ref().and_then(|c| c.turn_ended(byte, text, truncated, interrupted))
            {
                bus.capture = None;
                let id = bus.capture_id.take();
                client.say_to(id, "RESP", &answer);
            }
        }
    }

    /// Makes the session known to a broker, if there is one.
    pub(super) fn join_broker(&mut self) -> bool {
        let glass = self.glass.clone();
        let pattern = glass.look(&self.handle).detector().map(|d| d.rules().pattern().to_owned());
        let past: Vec<Arc<Turn>> = self.turns.kept.iter().cloned().collect();
        // A connection that is left over from a broker that died is closed first.
        self.turns.broker = None;
        self.turns.broker = pattern
            .and_then(|p| Wrapper::join(&self.about.id, &p, &self.handle, &self.glass, past.into_iter()));
        self.turns.broker.is_some()
    }

    /// `TURNS {limit}`: what is kept, the oldest first.
    pub(super) fn list_turns(&mut self, client: &mut Client, payload: &str) {
        let Some(request) = super::asked::asked(client, payload) else { return };
        let limit = request.get("limit").and_then(Value::as_u64).unwrap_or(u64::MAX);
        let skip = self.turns.kept.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
        let full = request.get("whole").and_then(Value::as_bool).unwrap_or(false);
        let id = &self.about.id;
        let show = |t: &Arc<Turn>| if full { whole(id, t, false) } else { brief(id, t) };
        let turns: Vec<Value> = self.turns.kept.iter().skip(skip).map(show).collect();
        client.say("TURNS", &Value::from(turns));
    }

    /// `TURN {number}`: one of them, with everything; without a number the last.
    pub(super) fn show_turn(&mut self, client: &mut Client, payload: &str) {
        let Some(request) = super::asked::asked(client, payload) else { return };
        let raw = request.get("raw").and_then(Value::as_bool).unwrap_or(false);
        let number = match request.get("number") {
            None | Some(Value::Null) => None,
            Some(number) => match number.as_u64() {
                Some(number) => Some(number),
                None => return client.say("DENIED", &json!({"error": "turns are numbered from 1"})),
            },
        };
        let found = match number {
            Some(number) => self.turns.find(number),
            None => self.turns.kept.back(),
        };
        match (found, number) {
            (Some(turn), _) => client.say("TURN", &whole(&self.about.id, turn, raw)),
            (None, None) => client.say("DENIED", &json!({"error": "there is no turn yet"})),
            (None, Some(number)) => {
                let error = format!("there is no turn {number}, or it is kept no more");
                client.say("DENIED", &json!({"error": error}));
            }
        }
    }

    /// `EXPLAIN`: the state, and all that it rests on.
    pub(super) fn explain(&mut self, client: &mut Client) {
        let glass = self.glass.clone();
        let look = glass.look(&self.handle);
        let Some(detector) = look.detector() else {
            return client.say("DENIED", &json!({"error": "nobody looks for turns and states here"}));
        };
        let mut value = judged(detector.judgement());
        value["agent"] = json!(detector.rules().name);
        value["prompt"] = json!(detector.prompt());
        value["ready"] = json!(detector.is_ready());
        value["turns"] = json!(detector.turns());
        value["title"] = json!(look.term().title());
        let since = detector.judgement().since.mono_ns;
        value["since_ms"] = json!(self.clock.now().mono_ns.saturating_sub(since) / 1_000_000);
        client.say("EXPLAIN", &value);
    }
}
