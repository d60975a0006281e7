//! What happens in a session, told as it happens.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use std::vec::Drain;

use tapdeck_core::turns::AgentState;
use tapdeck_core::{Entry, Event, Exit, Lag, Stamp};
use tapdeck_host::{Tap, TapReader};

use super::Session;
use crate::Screen;

/// Something that happened in a session.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Update {
    /// The screen changed; this is the newest one.
    Frame(Box<Screen>),
    /// A turn is over.
    Turn {
        /// Its number in the session, from 1.
        number: u32,
        /// What was asked, as the program showed it.
        input: String,
        /// What the program answered, as it showed it.
        text: String,
        /// It was interrupted.
        interrupted: bool,
    },
    /// The program's state changed.
    State {
        /// What it is doing now.
        state: AgentState,
        /// The rule that says so.
        rule: String,
    },
    /// Another party holds the stick, or none.
    Holder(Option<Arc<str>>),
    /// The subscriber was too slow: this many bytes of output passed unseen. The next frame is
    /// whole.
    Gap(u64),
    /// The program ended; nothing follows.
    Closed(Option<Exit>),
}

/// The updates of a session, from the moment it was subscribed to. As an iterator it waits for the
/// next one, and ends after [`Update::Closed`].
///
/// It keeps the session alive: dropping the last [`Session`] stops the program only when this is
/// dropped, too.
#[derive(Debug)]
pub struct Updates(Source);

#[derive(Debug)]
enum Source {
    Local(Box<Local>),
    #[cfg(feature = "live")]
    Remote(Box<RemoteUpdates>),
    #[cfg(feature = "net")]
    Wire(Box<crate::wire_session::WireUpdates>),
}

impl Updates {
    pub(super) fn local(session: Session) -> Self {
        Self(Source::Local(Box::new(Local::new(session))))
    }

    #[cfg(feature = "live")]
    pub(crate) fn remote(updates: RemoteUpdates) -> Self {
        Self(Source::Remote(Box::new(updates)))
    }

    #[cfg(feature = "net")]
    pub(crate) fn wire(updates: crate::wire_session::WireUpdates) -> Self {
        Self(Source::Wire(Box::new(updates)))
    }

    /// The next update, if one comes within this time.
    pub fn next_within(&mut self, limit: Duration) -> Option<Update> {
        self.advance(Some(limit))
    }

    fn advance(&mut self, limit: Option<Duration>) -> Option<Update> {
        match &mut self.0 {
            Source::Local(local) => local.advance(limit),
            #[cfg(feature = "live")]
            Source::Remote(remote) => remote.advance(limit),
            #[cfg(feature = "net")]
            Source::Wire(session) => session.advance(limit),
        }
    }
}

impl Iterator for Updates {
    type Item = Update;

    fn next(&mut self) -> Option<Update> {
        self.advance(None)
    }
}

/// The updates of a session of another process, over a bus of their own.
#[cfg(feature = "live")]
#[derive(Debug)]
pub(crate) struct RemoteUpdates {
    pub(crate) session: Arc<crate::remote::BusSession>,
    pub(crate) bus: tapdeck_serve::client::Bus,
    pub(crate) closed: bool,
}

#[cfg(feature = "live")]
impl RemoteUpdates {
    fn advance(&mut self, limit: Option<Duration>) -> Option<Update> {
        let clock = tapdeck_host::Clock::start();
        while !self.closed {
            let waited = clock.elapsed();
            let left = limit.map(|limit| limit.saturating_sub(waited));
            let update = match self.bus.next(left) {
                Ok(Some(frame)) => self.session.update(&frame),
                Ok(None) => return None,
                Err(_) => Some(Update::Closed(None)),
            };
            self.closed = matches!(update, Some(Update::Closed(_)));
            if update.is_some() {
                return update;
            }
        }
        None
    }
}

/// The updates of a session of this process.
struct Local {
    reader: TapReader,
    told: Told,
    closed: bool,
}

/// What the subscriber is to be told.
struct Told {
    session: Session,
    ready: VecDeque<Update>,
    exit: Option<Exit>,
}

impl Local {
    fn new(session: Session) -> Self {
        let reader = TapReader::from_end(&session.0.log, session.0.clock);
        let told = Told { session, ready: VecDeque::new(), exit: None };
        Self { reader, told, closed: false }
    }

    fn advance(&mut self, limit: Option<Duration>) -> Option<Update> {
        let clock = self.told.session.0.clock;
        let since = clock.now().mono;
        loop {
            if let Some(update) = self.told.ready.pop_front() {
                return Some(update);
            }
            if self.closed {
                return None;
            }
            let waited = clock.now().mono.since(since);
            let left = limit.map(|limit| limit.saturating_sub(waited));
            if !self.reader.wait(left) {
                self.closed = true;
                return Some(Update::Closed(self.told.exit));
            }
            self.reader.read(&mut self.told, usize::MAX);
            if self.told.ready.is_empty() && left.is_some_and(|left| left.is_zero()) {
                return None;
            }
        }
    }
}

impl Tap for Told {
    fn take(&mut self, entries: Drain<'_, Entry>, _now: Stamp) {
        let shows = |entry: &Entry| matches!(entry.event, Event::Output { .. } | Event::Resize(_));
        if entries.as_slice().iter().any(shows) {
            self.ready.push_back(Update::Frame(Box::new(self.session.screen())));
        }
        for entry in entries {
            match &entry.event {
                Event::Holder(change) => self.ready.push_back(Update::Holder(change.to.clone())),
                Event::TurnEnded(turn) => self.ready.push_back(Update::Turn {
                    number: turn.number,
                    input: turn.input.clone(),
                    text: turn.text.clone(),
                    interrupted: turn.interrupted,
                }),
                Event::State(judgement) => self
                    .ready
                    .push_back(Update::State { state: judgement.state, rule: judgement.rule.clone() }),
                // The log closes behind it, when the last turn has been told, too.
                Event::Exit(exit) => self.exit = Some(*exit),
                _ => {}
            }
        }
    }

    fn lagged(&mut self, lag: &Lag, _now: Stamp) {
        self.ready.push_back(Update::Gap(lag.bytes()));
    }
}

impl fmt::Debug for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Local").field("session", &self.told.session).finish_non_exhaustive()
    }
}
