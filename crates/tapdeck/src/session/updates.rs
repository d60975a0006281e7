//! What happens in a session, told as it happens.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tapdeck_core::turns::{Judgement, Turn};
use tapdeck_core::{Event, Exit, ReaderId, ReaderKind};
use tapdeck_host::Woken;

use super::Session;
use crate::Screen;

/// Something that happened in a session.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Update {
    /// The screen changed; this is the newest one.
    Frame(Box<Screen>),
    /// A turn is over: what was asked, and what the program answered.
    Turn(Arc<Turn>),
    /// The program's state changed.
    State(Arc<Judgement>),
    /// Another party holds the stick, or none.
    Holder(Option<Arc<str>>),
    /// The subscriber was too slow: this many bytes of output passed unseen. The next frame is whole.
    Gap(u64),
    /// The program ended; nothing follows.
    Closed(Option<Exit>),
}

/// The updates of a session, from the moment it was subscribed to. As an iterator it waits for the next one, and ends
/// after [`Update::Closed`].
pub struct Updates {
    session: Session,
    reader: ReaderId,
    ready: VecDeque<Update>,
    exit: Option<Exit>,
    closed: bool,
}

impl Updates {
    pub(super) fn local(session: Session) -> Self {
        let reader = session.0.log.reader_from_end(ReaderKind::Lossy);
        Self { session, reader, ready: VecDeque::new(), exit: None, closed: false }
    }

    /// The next update, if one comes within this time.
    pub fn next_within(&mut self, limit: Duration) -> Option<Update> {
        self.advance(Some(limit))
    }

    fn advance(&mut self, limit: Option<Duration>) -> Option<Update> {
        let clock = self.session.0.clock;
        let since = clock.now().mono_ns;
        loop {
            if let Some(update) = self.ready.pop_front() {
                return Some(update);
            }
            if self.closed {
                return None;
            }
            let waited = Duration::from_nanos(clock.now().mono_ns.saturating_sub(since));
            let left = limit.map(|limit| limit.saturating_sub(waited));
            let woken = self.session.0.log.wait(self.reader, 1, left);
            if !self.read() && woken == Woken::Closed {
                self.closed = true;
                self.ready.push_back(Update::Closed(self.exit));
            } else if self.ready.is_empty() && left.is_some_and(|left| left.is_zero()) {
                return None;
            }
        }
    }

    /// Takes what the log holds; `false` when that was nothing.
    fn read(&mut self) -> bool {
        let mut entries = Vec::new();
        if let Some(lag) = self.session.0.log.read(self.reader, usize::MAX, &mut entries) {
            self.ready.push_back(Update::Gap(lag.offsets.end - lag.offsets.start));
        }
        let shows = |event: &Event| matches!(event, Event::Output { .. } | Event::Resize(_));
        if entries.iter().any(|entry| shows(&entry.event)) {
            self.ready.push_back(Update::Frame(Box::new(self.session.screen())));
        }
        for entry in &entries {
            match &entry.event {
                Event::Holder(change) => self.ready.push_back(Update::Holder(change.to.clone())),
                Event::TurnEnded(turn) => self.ready.push_back(Update::Turn(Arc::clone(turn))),
                Event::State(judgement) => self.ready.push_back(Update::State(Arc::clone(judgement))),
                // The log closes behind it, when the last turn has been told, too.
                Event::Exit(exit) => self.exit = Some(*exit),
                _ => {}
            }
        }
        !entries.is_empty()
    }
}

impl Iterator for Updates {
    type Item = Update;

    fn next(&mut self) -> Option<Update> {
        self.advance(None)
    }
}

impl Drop for Updates {
    fn drop(&mut self) {
        self.session.0.log.remove_reader(self.reader);
    }
}

impl fmt::Debug for Updates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Updates").field("session", &self.session).finish_non_exhaustive()
    }
}
