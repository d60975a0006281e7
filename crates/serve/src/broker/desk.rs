//! What the broker knows, and what it answers: sessions, their last turns, and the one turn that was captured. No sockets
//! here, so that every message can be tried without any.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use super::msgpack::{Value, map};

/// Sessions at once, and the longest name of one.
const SESSIONS: usize = 4096;
const NAME: usize = 256;

/// What a peer may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// It has a session.
    Wrapper,
    /// It asks.
    Client,
}

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Turns of a session.
    pub ring: usize,
    /// Bytes of a turn.
    pub turn: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { ring: 32, turn: 4 << 20 }
    }
}

/// Where a captured turn goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sink {
    /// The desktop's clipboard.
    Clipboard,
    /// A file.
    File(PathBuf),
}

/// What is to be done beside answering.
#[derive(Debug, PartialEq)]
pub(super) enum Effect {
    /// Send this to another peer.
    Send(u64, Value),
    /// Have this written somewhere, and answer when it is.
    Write(Sink, Arc<[u8]>),
}

struct Turn {
    number: u64,
    timestamp: u64,
    content: Arc<[u8]>,
    interrupted: bool,
    truncated: bool,
}

struct Session {
    /// Who speaks for it; `None` when that one is gone.
    owner: Option<u64>,
    pid: u64,
    pattern: String,
    turns: VecDeque<Turn>,
    count: u64,
}

/// The desk.
pub(super) struct Desk {
    limits: Limits,
    sessions: BTreeMap<String, Session>,
    buffer: Option<(String, Arc<[u8]>)>,
}

/// The answer to a message.
pub(super) type Answer = Result<Vec<(String, Value)>, &'static str>;

fn fields<const N: usize>(list: [(&str, Value); N]) -> Vec<(String, Value)> {
    list.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
}

impl Desk {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, sessions: BTreeMap::new(), buffer: None }
    }

    /// Takes a message of a peer that has said who it is.
    pub(super) fn take(
        &mut self,
        peer: u64,
        role: Role,
        message: &Value,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Answer {
        let kind = message.get("type").and_then(Value::as_str).ok_or("malformed")?;
        let wrappers = ["register", "deregister", "turn_completed"];
        let clients =
            ["list_sessions", "list_turns", "get_turn", "capture", "capture_by_id", "paste", "deliver"];
        match role {
            Role::Wrapper if clients.contains(&kind) => return Err("forbidden"),
            Role::Client if wrappers.contains(&kind) => return Err("forbidden"),
            _ => {}
        }
        let text = |name: &str| message.get(name).and_then(Value::as_str).ok_or("missing_field");
        match kind {
            "register" => self.register(peer, text("session")?, message),
            "deregister" => {
                self.owned(peer, text("session")?)?;
                self.sessions.remove(text("session")?);
                Ok(Vec::new())
            }
            "turn_completed" => self.turn_completed(peer, text("session")?, message, now_ms),
            "list_sessions" => Ok(fields([("sessions", self.list())])),
            "list_turns" => {
                let limit = message.get("limit").and_then(Value::as_u64).unwrap_or(u64::MAX);
                let name = text("session")?;
                let session = self.sessions.get(name).ok_or("session_not_found")?;
                let skip = session.turns.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
                let turns = session.turns.iter().skip(skip).map(|t| Value::Map(brief(name, t))).collect();
                Ok(fields([("turns", Value::Array(turns))]))
            }
            "get_turn" => {
                let (name, turn) = self.find(text("turn_id")?)?;
                let mut all = brief(name, turn);
                all.push(("content".into(), Value::Bin(turn.content.to_vec())));
                Ok(all)
            }
            "capture" => {
                let name = text("session")?;
                let session = self.sessions.get(name).ok_or("session_not_found")?;
                let turn = session.turns.back().ok_or("no_turn")?;
                let (captured, answer) =
                    ((format!("{name}:{}", turn.number), Arc::clone(&turn.content)), brief(name, turn));
                self.buffer = Some(captured);
                Ok(answer)
            }
            "capture_by_id" => {
                let id = text("turn_id")?;
                let (name, turn) = self.find(id)?;
                let (captured, answer) = ((id.to_owned(), Arc::clone(&turn.content)), brief(name, turn));
                self.buffer = Some(captured);
                Ok(answer)
            }
            "paste" => self.inject(text("session")?, message, effects),
            "deliver" => match text("sink")? {
                "inject" => self.inject(text("session")?, message, effects),
                "clipboard" => self.write(Sink::Clipboard, effects),
                "file" => {
                    let path = PathBuf::from(text("path")?);
                    if !path.is_absolute() {
                        return Err("malformed");
                    }
                    self.write(Sink::File(path), effects)
                }
                _ => Err("unknown_sink"),
            },
            _ => Err("unknown_type"),
        }
    }

    /// A peer is gone: its sessions stay to be read, and nobody speaks for them.
    pub(super) fn gone(&mut self, peer: u64) {
        for session in self.sessions.values_mut().filter(|s| s.owner == Some(peer)) {
            session.owner = None;
        }
    }

    fn register(&mut self, peer: u64, name: &str, message: &Value) -> Answer {
        if name.is_empty() || name.len() > NAME || name.chars().any(char::is_control) {
            return Err("malformed");
        }
        let pid = message.get("pid").and_then(Value::as_u64).ok_or("missing_field")?;
        let pattern = message.get("pattern").and_then(Value::as_str).unwrap_or("");
        let pattern: String = pattern.chars().take(2000).collect();
        match self.sessions.get_mut(name) {
            Some(session) if session.owner.is_some() => return Err("duplicate_session"),
            // Its wrapper lost the broker and is back.
            Some(session) => (session.owner, session.pid, session.pattern) = (Some(peer), pid, pattern),
            None => {
                self.make_room()?;
                let session = Session { owner: Some(peer), pid, pattern, turns: VecDeque::new(), count: 0 };
                self.sessions.insert(name.to_owned(), session);
            }
        }
        Ok(Vec::new())
    }

    /// Sessions that nobody speaks for make way for others.
    fn make_room(&mut self) -> Result<(), &'static str> {
        if self.sessions.len() < SESSIONS {
            return Ok(());
        }
        let stale = self.sessions.iter().find(|(_, s)| s.owner.is_none()).map(|(name, _)| name.clone());
        self.sessions.remove(&stale.ok_or("too_many_sessions")?);
        Ok(())
    }

    /// Only who registered a session speaks for it.
    fn owned(&mut self, peer: u64, name: &str) -> Result<&mut Session, &'static str> {
        let session = self.sessions.get_mut(name).ok_or("session_not_found")?;
        if session.owner == Some(peer) { Ok(session) } else { Err("forbidden") }
    }

    fn turn_completed(&mut self, peer: u64, name: &str, message: &Value, now_ms: u64) -> Answer {
        let limits = self.limits;
        let session = self.owned(peer, name)?;
        let content = message.get("content").and_then(Value::as_bytes).ok_or("missing_field")?;
        let flag = |name: &str| message.get(name).and_then(Value::as_bool).unwrap_or(false);
        if content.is_empty() && !flag("interrupted") {
            return Err("malformed");
        }
        session.count += 1;
        let turn = Turn {
            number: session.count,
            timestamp: message.get("timestamp").and_then(Value::as_u64).unwrap_or(now_ms),
            truncated: flag("truncated") || content.len() > limits.turn,
            content: content[..content.len().min(limits.turn)].into(),
            interrupted: flag("interrupted"),
        };
        let id = format!("{name}:{}", turn.number);
        if session.turns.len() >= limits.ring.max(1) {
            session.turns.pop_front();
        }
        session.turns.push_back(turn);
        Ok(fields([("turn_id", Value::Str(id))]))
    }

    fn list(&self) -> Value {
        let one = |(name, s): (&String, &Session)| {
            map([
                ("session", Value::Str(name.clone())),
                ("pid", Value::Uint(s.pid)),
                ("pattern", Value::Str(s.pattern.clone())),
                ("turns", Value::Uint(s.turns.len() as u64)),
                ("connected", Value::Bool(s.owner.is_some())),
            ])
        };
        Value::Array(self.sessions.iter().map(one).collect())
    }

    fn find<'a>(&'a self, id: &'a str) -> Result<(&'a str, &'a Turn), &'static str> {
        let (name, number) = id.rsplit_once(':').ok_or("turn_not_found")?;
        let number: u64 = number.parse().map_err(|_| "turn_not_found")?;
        let session = self.sessions.get(name).ok_or("session_not_found")?;
        let turn = session.turns.iter().find(|t| t.number == number).ok_or("turn_not_found")?;
        Ok((name, turn))
    }

    fn inject(&mut self, name: &str, message: &Value, effects: &mut Vec<Effect>) -> Answer {
        let session = self.sessions.get(name).ok_or("session_not_found")?;
        let (id, content) = self.buffer.as_ref().ok_or("buffer_empty")?;
        let owner = session.owner.ok_or("session_disconnected")?;
        let raw = message.get("raw").and_then(Value::as_bool).unwrap_or(false);
        let mut inject = fields([
            ("type", "inject".into()),
            ("id", Value::Uint(0)),
            ("content", Value::Bin(content.to_vec())),
        ]);
        inject.push(("session".into(), name.into()));
        if raw {
            inject.push(("raw".into(), Value::Bool(true)));
        }
        let answer =
            fields([("turn_id", Value::Str(id.clone())), ("byte_length", Value::Uint(content.len() as u64))]);
        effects.push(Effect::Send(owner, Value::Map(inject)));
        Ok(answer)
    }

    fn write(&self, sink: Sink, effects: &mut Vec<Effect>) -> Answer {
        let (id, content) = self.buffer.as_ref().ok_or("buffer_empty")?;
        effects.push(Effect::Write(sink, Arc::clone(content)));
        Ok(fields([("turn_id", Value::Str(id.clone())), ("byte_length", Value::Uint(content.len() as u64))]))
    }
}

fn brief(session: &str, turn: &Turn) -> Vec<(String, Value)> {
    fields([
        ("turn_id", Value::Str(format!("{session}:{}", turn.number))),
        ("timestamp", Value::Uint(turn.timestamp)),
        ("byte_length", Value::Uint(turn.content.len() as u64)),
        ("interrupted", Value::Bool(turn.interrupted)),
        ("truncated", Value::Bool(turn.truncated)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message<const N: usize>(kind: &str, list: [(&str, Value); N]) -> Value {
        let mut all = fields([("type", kind.into()), ("id", Value::Uint(7))]);
        all.extend(fields(list));
        Value::Map(all)
    }

    #[test]
    fn each_has_its_say_and_no_more() {
        let mut desk = Desk::new(Limits { ring: 2, turn: 4 });
        let mut effects = Vec::new();
        let mut ask = |peer, role, m: Value| desk.take(peer, role, &m, 5, &mut effects);
        let register = || {
            message("register", [("session", "s".into()), ("pid", Value::Uint(1)), ("pattern", "$".into())])
        };
        let turn = |text: &str| {
            message("turn_completed", [("session", "s".into()), ("content", Value::Bin(text.into()))])
        };
        let of = |kind: &str| message(kind, [("session", "s".into())]);
        let id = |kind: &str, id: &str| message(kind, [("turn_id", id.into())]);
        assert_eq!(ask(1, Role::Client, of("capture")), Err("session_not_found"));
        assert_eq!(ask(1, Role::Client, of("paste")), Err("session_not_found"));
        assert_eq!(ask(1, Role::Client, register()), Err("forbidden"));
        assert_eq!(ask(2, Role::Wrapper, register()), Ok(Vec::new()));
        assert_eq!(ask(3, Role::Wrapper, register()), Err("duplicate_session"));
        assert_eq!(ask(3, Role::Wrapper, turn("lie")), Err("forbidden"));
        assert_eq!(ask(3, Role::Wrapper, of("deregister")), Err("forbidden"));
        assert_eq!(ask(2, Role::Wrapper, message("list_sessions", [])), Err("forbidden"));
        assert_eq!(ask(1, Role::Client, of("capture")), Err("no_turn"));
        assert_eq!(ask(1, Role::Client, of("paste")), Err("buffer_empty"));
        assert_eq!(ask(2, Role::Wrapper, turn("")), Err("malformed"), "no empty turns");
        for text in ["one", "two", "three"] {
            assert!(ask(2, Role::Wrapper, turn(text)).is_ok());
        }
        assert_eq!(ask(1, Role::Client, id("get_turn", "s:1")), Err("turn_not_found"), "it left the ring");
        let third = Value::Map(ask(1, Role::Client, id("get_turn", "s:3")).expect("there"));
        assert_eq!(third.get("content"), Some(&Value::Bin(b"thre".to_vec())));
        assert_eq!(third.get("truncated"), Some(&Value::Bool(true)));
        assert!(ask(1, Role::Client, id("capture_by_id", "s:2")).is_ok());
        assert!(ask(1, Role::Client, of("paste")).is_ok());
        let bad = [
            (message("deliver", [("sink", "moon".into())]), "unknown_sink"),
            (message("deliver", [("sink", "file".into())]), "missing_field"),
            (message("deliver", [("sink", "file".into()), ("path", "x".into())]), "malformed"),
            (message("fly", []), "unknown_type"),
            (message("get_turn", []), "missing_field"),
            (Value::Nil, "malformed"),
        ];
        for (m, wanted) in bad {
            assert_eq!(ask(1, Role::Client, m), Err(wanted));
        }
        assert!(
            matches!(effects.as_slice(), [Effect::Send(2, m)] if m.get("content") == Some(&Value::Bin(b"two".to_vec())))
        );
        desk.gone(2);
        assert_eq!(desk.take(1, Role::Client, &of("paste"), 5, &mut effects), Err("session_disconnected"));
        assert_eq!(
            desk.take(3, Role::Wrapper, &register(), 5, &mut effects),
            Ok(Vec::new()),
            "it is free again"
        );
    }
}
