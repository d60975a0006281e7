//! The broker's state and its answers: sessions, their last turns, and the captured turn. There are
//! no sockets here, so that tests can try every message.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use tapdeck_core::WallTime;
use tapdeck_proto::broker::{
    Answer, Blob, Desktop, ErrorCode, Inject, Request, SessionInfo, Target, TurnInfo,
};

/// Sessions at once, and the longest name of one.
const SESSIONS: usize = 4096;
const NAME: usize = 256;

/// How much the broker keeps.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Limits {
    /// Turns of a session.
    pub ring: usize,
    /// Bytes of a turn.
    pub turn: usize,
    /// Bytes of all turns.
    pub total: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { ring: 32, turn: 4 << 20, total: 256 << 20 }
    }
}

impl Limits {
    /// Sets how many turns of a session are kept; 32 by default.
    #[must_use]
    pub fn ring(mut self, ring: usize) -> Self {
        self.ring = ring;
        self
    }

    /// Sets the most bytes of a turn; 4 MiB by default.
    #[must_use]
    pub fn turn(mut self, turn: usize) -> Self {
        self.turn = turn;
        self
    }

    /// Sets the most bytes of all turns together; 256 MiB by default. Beyond that, the session that
    /// has the most loses its oldest turn.
    #[must_use]
    pub fn total(mut self, total: usize) -> Self {
        self.total = total;
        self
    }
}

/// Where the broker itself writes a captured turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sink {
    /// The clipboard of a desktop.
    Clipboard(Desktop),
    /// A file.
    File(PathBuf),
}

/// What is to be done besides answering.
#[derive(Debug, PartialEq)]
pub(super) enum Effect {
    /// Send this to another peer.
    Send(u64, Inject),
    /// Write this, and answer once it is written.
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
    /// The peer that registered it; `None` once that peer is gone.
    owner: Option<u64>,
    pid: u64,
    pattern: String,
    turns: VecDeque<Turn>,
    count: u64,
    /// Bytes of its turns.
    held: usize,
}

impl Session {
    fn drop_oldest(&mut self) -> usize {
        let freed = self.turns.pop_front().map_or(0, |turn| turn.size());
        self.held -= freed;
        freed
    }
}

impl Turn {
    /// Bytes of memory, about.
    fn size(&self) -> usize {
        self.content.len() + size_of::<Self>()
    }
}

/// All sessions and turns that the broker knows.
pub(super) struct Ledger {
    limits: Limits,
    sessions: BTreeMap<String, Session>,
    /// Bytes of all turns.
    held: usize,
    captured: Option<(String, Arc<[u8]>)>,
}

type Answered = Result<Answer, ErrorCode>;

impl Ledger {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, sessions: BTreeMap::new(), held: 0, captured: None }
    }

    /// Serves a request of a peer.
    pub(super) fn serve(
        &mut self,
        peer: u64,
        request: Request,
        now: WallTime,
        effects: &mut Vec<Effect>,
    ) -> Answered {
        match request {
            Request::Register { session, pid, pattern } => self.register(peer, session, pid, &pattern),
            Request::Deregister { session } => {
                self.owned(peer, &session)?;
                self.remove(&session);
                Ok(Answer::Done)
            }
            Request::TurnCompleted { session, content, interrupted, truncated, timestamp } => {
                let timestamp = timestamp.unwrap_or(now.as_millis());
                let turn = Turn { number: 0, timestamp, content: content.0.into(), interrupted, truncated };
                self.turn_completed(peer, &session, turn)
            }
            Request::ListSessions => Ok(Answer::Sessions { sessions: self.list() }),
            Request::ListTurns { session, limit } => {
                let turns = &self.session(&session)?.turns;
                let limit = limit.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
                let last = turns.iter().skip(turns.len().saturating_sub(limit));
                Ok(Answer::Turns { turns: last.map(|turn| info(&session, turn)).collect() })
            }
            Request::GetTurn { turn_id } => {
                let (name, turn) = self.find(&turn_id)?;
                let content = Some(Blob(turn.content.to_vec()));
                Ok(Answer::Turn { turn: info(name, turn), content })
            }
            Request::Capture { session } => {
                let turn = self.session(&session)?.turns.back().ok_or(ErrorCode::NoTurn)?;
                let (about, content) = (info(&session, turn), Arc::clone(&turn.content));
                Ok(self.capture(about, content))
            }
            Request::CaptureById { turn_id } => {
                let (name, turn) = self.find(&turn_id)?;
                let (about, content) = (info(name, turn), Arc::clone(&turn.content));
                Ok(self.capture(about, content))
            }
            Request::Paste { session, raw } => self.inject(session, raw, effects),
            Request::Deliver(Target::Inject { session, raw }) => self.inject(session, raw, effects),
            Request::Deliver(Target::Clipboard(desktop)) => self.write(Sink::Clipboard(desktop), effects),
            Request::Deliver(Target::File { path }) => {
                let path = PathBuf::from(path);
                if !path.is_absolute() {
                    return Err(ErrorCode::Malformed);
                }
                self.write(Sink::File(path), effects)
            }
            _ => Err(ErrorCode::UnknownType),
        }
    }

    /// Notes that a peer is gone. Its sessions stay to be read, without an owner.
    pub(super) fn peer_gone(&mut self, peer: u64) {
        for session in self.sessions.values_mut().filter(|s| s.owner == Some(peer)) {
            session.owner = None;
        }
    }

    fn register(&mut self, peer: u64, name: String, pid: u64, pattern: &str) -> Answered {
        if name.is_empty() || name.len() > NAME || name.chars().any(char::is_control) {
            return Err(ErrorCode::Malformed);
        }
        let pattern: String = pattern.chars().take(2000).collect();
        match self.sessions.get_mut(&name) {
            Some(session) if session.owner.is_some() => return Err(ErrorCode::DuplicateSession),
            // Its wrapper lost the connection and is back.
            Some(session) => (session.owner, session.pid, session.pattern) = (Some(peer), pid, pattern),
            None => {
                self.make_room()?;
                let session =
                    Session { owner: Some(peer), pid, pattern, turns: VecDeque::new(), count: 0, held: 0 };
                self.sessions.insert(name, session);
            }
        }
        Ok(Answer::Done)
    }

    /// Removes a session without an owner when there are too many.
    fn make_room(&mut self) -> Result<(), ErrorCode> {
        if self.sessions.len() < SESSIONS {
            return Ok(());
        }
        let stale = self.sessions.iter().find(|(_, s)| s.owner.is_none()).map(|(name, _)| name.clone());
        self.remove(&stale.ok_or(ErrorCode::TooManySessions)?);
        Ok(())
    }

    fn remove(&mut self, name: &str) {
        self.held -= self.sessions.remove(name).map_or(0, |session| session.held);
    }

    /// Drops turns until all that are left fit. The newest turn of the session that has just
    /// reported one stays.
    fn fit(&mut self, reporter: &str) {
        while self.held > self.limits.total {
            let can_lose = |(name, session): &(&String, &mut Session)| {
                session.turns.len() > usize::from(name.as_str() == reporter)
            };
            let largest = self.sessions.iter_mut().filter(can_lose).max_by_key(|(_, session)| session.held);
            let Some((_, session)) = largest else { return };
            self.held -= session.drop_oldest();
        }
    }

    fn session(&self, name: &str) -> Result<&Session, ErrorCode> {
        self.sessions.get(name).ok_or(ErrorCode::SessionNotFound)
    }

    /// Returns a session of this peer. Only the peer that registered a session reports its turns.
    fn owned(&mut self, peer: u64, name: &str) -> Result<&mut Session, ErrorCode> {
        let session = self.sessions.get_mut(name).ok_or(ErrorCode::SessionNotFound)?;
        if session.owner == Some(peer) { Ok(session) } else { Err(ErrorCode::Forbidden) }
    }

    fn turn_completed(&mut self, peer: u64, name: &str, mut turn: Turn) -> Answered {
        let limits = self.limits;
        let session = self.owned(peer, name)?;
        if turn.content.is_empty() && !turn.interrupted {
            return Err(ErrorCode::Malformed);
        }
        session.count += 1;
        turn.number = session.count;
        if turn.content.len() > limits.turn {
            turn.truncated = true;
            turn.content = turn.content[..limits.turn].into();
        }
        let turn_id = format!("{name}:{}", turn.number);
        let mut freed = 0;
        if session.turns.len() >= limits.ring.max(1) {
            freed = session.drop_oldest();
        }
        let size = turn.size();
        session.held += size;
        session.turns.push_back(turn);
        self.held = self.held + size - freed;
        self.fit(name);
        Ok(Answer::Recorded { turn_id })
    }

    fn list(&self) -> Vec<SessionInfo> {
        let one = |(name, session): (&String, &Session)| SessionInfo {
            session: name.clone(),
            pid: session.pid,
            pattern: session.pattern.clone(),
            turns: session.turns.len() as u64,
            connected: session.owner.is_some(),
        };
        self.sessions.iter().map(one).collect()
    }

    fn find<'a>(&'a self, id: &'a str) -> Result<(&'a str, &'a Turn), ErrorCode> {
        let (name, number) = id.rsplit_once(':').ok_or(ErrorCode::TurnNotFound)?;
        let number: u64 = number.parse().map_err(|_| ErrorCode::TurnNotFound)?;
        let session = self.session(name)?;
        let turn = session.turns.iter().find(|t| t.number == number).ok_or(ErrorCode::TurnNotFound)?;
        Ok((name, turn))
    }

    fn capture(&mut self, about: TurnInfo, content: Arc<[u8]>) -> Answer {
        self.captured = Some((about.turn_id.clone(), content));
        Answer::Turn { turn: about, content: None }
    }

    fn inject(&mut self, session: String, raw: bool, effects: &mut Vec<Effect>) -> Answered {
        let owner = self.session(&session)?.owner;
        let (answer, content) = self.captured()?;
        let owner = owner.ok_or(ErrorCode::SessionDisconnected)?;
        effects.push(Effect::Send(owner, Inject { session, content: Blob(content.to_vec()), raw }));
        Ok(answer)
    }

    fn write(&self, sink: Sink, effects: &mut Vec<Effect>) -> Answered {
        let (answer, content) = self.captured()?;
        effects.push(Effect::Write(sink, content));
        Ok(answer)
    }

    /// Returns the answer to a delivery of the captured turn, and its content.
    fn captured(&self) -> Result<(Answer, Arc<[u8]>), ErrorCode> {
        let (id, content) = self.captured.as_ref().ok_or(ErrorCode::BufferEmpty)?;
        let answer = Answer::Delivered { turn_id: id.clone(), byte_length: content.len() as u64 };
        Ok((answer, Arc::clone(content)))
    }
}

fn info(session: &str, turn: &Turn) -> TurnInfo {
    TurnInfo {
        turn_id: format!("{session}:{}", turn.number),
        timestamp: turn.timestamp,
        byte_length: turn.content.len() as u64,
        interrupted: turn.interrupted,
        truncated: turn.truncated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: WallTime = WallTime::from_millis(5);

    /// Twelve sessions held 1.6 GB: only the turns of each were bounded.
    #[test]
    fn all_turns_together_are_bounded() {
        let total = 100_000;
        let mut ledger = Ledger::new(Limits::default().turn(10_000).total(total));
        let mut effects = Vec::new();
        let mut ask = |ledger: &mut Ledger, request| ledger.serve(1, request, NOW, &mut effects);
        let turn = |session: &str, size: usize| Request::TurnCompleted {
            session: session.to_owned(),
            content: Blob(vec![b'x'; size]),
            interrupted: false,
            truncated: false,
            timestamp: None,
        };
        for n in 0..12 {
            let session = format!("s{n}");
            assert!(ask(&mut ledger, Request::Register { session, pid: 1, pattern: String::new() }).is_ok());
        }
        // A small session keeps its turns while large ones lose theirs.
        assert!(ask(&mut ledger, turn("s0", 50)).is_ok());
        for _ in 0..40 {
            for n in 1..12 {
                assert!(ask(&mut ledger, turn(&format!("s{n}"), 9_000)).is_ok());
                let held: usize = ledger.sessions.values().flat_map(|s| &s.turns).map(Turn::size).sum();
                assert!(held == ledger.held && held <= total, "{held}");
            }
        }
        assert_eq!(ledger.sessions["s0"].turns.len(), 1);
        let last = ask(&mut ledger, Request::Capture { session: "s11".into() });
        assert!(matches!(last, Ok(Answer::Turn { turn, .. }) if turn.turn_id == "s11:40"));
        for n in 0..12 {
            assert!(ask(&mut ledger, Request::Deregister { session: format!("s{n}") }).is_ok());
        }
        assert_eq!(ledger.held, 0);
    }

    #[test]
    fn each_peer_reaches_its_own_sessions_only() {
        let mut ledger = Ledger::new(Limits::default().ring(2).turn(4));
        let mut effects = Vec::new();
        let mut ask = |peer, request| ledger.serve(peer, request, NOW, &mut effects);
        let session = || "s".to_owned();
        let register = || Request::Register { session: session(), pid: 1, pattern: "$".into() };
        let turn = |text: &str| Request::TurnCompleted {
            session: session(),
            content: Blob(text.into()),
            interrupted: false,
            truncated: false,
            timestamp: None,
        };
        let capture = || Request::Capture { session: session() };
        let paste = || Request::Paste { session: session(), raw: false };
        assert_eq!(ask(1, capture()), Err(ErrorCode::SessionNotFound));
        assert_eq!(ask(1, paste()), Err(ErrorCode::SessionNotFound));
        assert_eq!(ask(2, register()), Ok(Answer::Done));
        assert_eq!(ask(3, register()), Err(ErrorCode::DuplicateSession));
        assert_eq!(ask(3, turn("lie")), Err(ErrorCode::Forbidden));
        assert_eq!(ask(3, Request::Deregister { session: session() }), Err(ErrorCode::Forbidden));
        assert_eq!(ask(1, capture()), Err(ErrorCode::NoTurn));
        assert_eq!(ask(1, paste()), Err(ErrorCode::BufferEmpty));
        assert_eq!(ask(2, turn("")), Err(ErrorCode::Malformed), "no empty turns");
        for text in ["one", "two", "three"] {
            assert!(ask(2, turn(text)).is_ok());
        }
        let get = |id: &str| Request::GetTurn { turn_id: id.into() };
        assert_eq!(ask(1, get("s:1")), Err(ErrorCode::TurnNotFound), "it left the ring");
        let Ok(Answer::Turn { turn: third, content }) = ask(1, get("s:3")) else {
            panic!("the third is there")
        };
        assert_eq!((content, third.truncated), (Some(Blob(b"thre".to_vec())), true));
        assert!(ask(1, Request::CaptureById { turn_id: "s:2".into() }).is_ok());
        assert!(ask(1, paste()).is_ok());
        let relative = Request::Deliver(Target::File { path: "x".into() });
        assert_eq!(ask(1, relative), Err(ErrorCode::Malformed));
        assert!(matches!(&effects[..], [Effect::Send(2, inject)] if inject.content.0 == b"two"));
        ledger.peer_gone(2);
        assert_eq!(ledger.serve(1, paste(), NOW, &mut effects), Err(ErrorCode::SessionDisconnected));
        assert_eq!(ledger.serve(3, register(), NOW, &mut effects), Ok(Answer::Done), "it has no owner");
    }
}
