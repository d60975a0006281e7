//! From a session's log to a timeline: what was delivered is matched with what was sent, and what
//! only the test knows (signals, names of moments) is put in its place.

use std::collections::VecDeque;
use std::vec::Drain;

use bytes::Bytes;
use tapdeck_core::check::{Cause, End, Input, Moment, Pos, Screen, Timeline, What, signal_name};
use tapdeck_core::{Author, Entry, Event, Exit, Lag, Seq, Stamp, Time};
use tapdeck_host::Tap;
use tapdeck_term::Size;

/// Input that was sent; the log tells when it was delivered, and in which pieces.
#[derive(Debug)]
pub(crate) struct Sent {
    /// Bytes not yet delivered.
    pub(crate) left: usize,
    /// The key, told once.
    pub(crate) key: Option<String>,
    /// It is a paste.
    pub(crate) paste: bool,
}

/// A tap that keeps the screen and the timeline of a session under test.
pub(crate) struct Collector {
    pub(crate) screen: Screen,
    /// How the program ended.
    pub(crate) exit: Option<Exit>,
    /// When the screen last changed.
    pub(crate) changed: Time,
    /// What was sent and has not been seen delivered.
    pub(crate) sent: VecDeque<Sent>,
    size: Size,
    moments: Vec<(Time, What)>,
    /// The first size in the log is the one at the start.
    started: bool,
    ended: Option<Time>,
    lost: u64,
}

impl Collector {
    pub(crate) fn new(size: Size) -> Self {
        Self {
            screen: Screen::new(size),
            exit: None,
            changed: Time::ZERO,
            sent: VecDeque::new(),
            size,
            moments: Vec::new(),
            started: false,
            ended: None,
            lost: 0,
        }
    }

    /// Puts an entry of the log on the timeline; returns what it is there.
    fn place(&mut self, entry: &Entry) -> Vec<What> {
        let found = match &entry.event {
            Event::Output { bytes, .. } => vec![What::Output(bytes.clone())],
            Event::Input { by: Author::Party(_), bytes, .. } => label(bytes, &mut self.sent),
            Event::Input { bytes, by, .. } => {
                let reply = *by == Author::Reply;
                vec![What::Input(Input { bytes: bytes.clone(), reply, ..Input::default() })]
            }
            Event::Resize(size) => {
                let size = Size::new(size.cols, size.rows);
                if std::mem::replace(&mut self.started, true) { vec![What::Resize(size)] } else { Vec::new() }
            }
            Event::Signal(number) => vec![What::Signal(signal_name(*number))],
            Event::Exit(exit) => {
                self.exit = Some(*exit);
                self.ended = Some(entry.at.mono);
                Vec::new()
            }
            _ => Vec::new(),
        };
        // What was put in place later than this entry's time was seen before it all the same.
        for (at, _) in self.moments.iter_mut().rev() {
            if *at <= entry.at.mono {
                break;
            }
            *at = entry.at.mono;
        }
        self.moments.extend(found.iter().map(|what| (entry.at.mono, what.clone())));
        found
    }

    /// Puts something behind everything that was taken so far.
    pub(crate) fn insert(&mut self, now: Time, what: What) {
        self.moments.push((now, what));
    }

    /// The timeline, in milliseconds.
    pub(crate) fn finish(
        &mut self,
        now: Time,
        exit: Exit,
        cause: Cause,
        eof: bool,
        leaked: Option<u32>,
    ) -> Timeline {
        let end_at = self.ended.unwrap_or(now);
        let whole = |at: Time| Time::from_millis(at.as_millis());
        let pos = |i: usize, at: Time| Pos { time: whole(at.min(end_at)), seq: Seq(i as u64 + 1) };
        let moments: Vec<Moment> = std::mem::take(&mut self.moments)
            .into_iter()
            .enumerate()
            .map(|(i, (at, what))| Moment { at: pos(i, at), what })
            .collect();
        let end = End { at: pos(moments.len(), end_at), exit: Some(exit), cause, eof: Some(eof), leaked };
        Timeline { size: self.size, moments, end, beside: Vec::new() }
    }
}

impl Tap for Collector {
    fn take(&mut self, entries: Drain<'_, Entry>, _now: Stamp) {
        for entry in entries {
            let at = entry.at.mono;
            for what in self.place(&entry) {
                let shown = self.screen.advance(Pos::before(at), &what);
                if shown.is_some_and(|c| !c.rows.is_empty()) {
                    self.changed = at;
                }
            }
        }
    }

    /// The test was too slow to read it.
    fn lagged(&mut self, lag: &Lag, _now: Stamp) {
        self.lost += lag.bytes();
    }
}

fn label(bytes: &Bytes, sent: &mut VecDeque<Sent>) -> Vec<What> {
    let mut found = Vec::new();
    let mut rest = bytes.clone();
    while !rest.is_empty() {
        let Some(front) = sent.front_mut() else {
            found.push(What::Input(Input { bytes: rest, ..Input::default() }));
            break;
        };
        let piece = rest.split_to(front.left.min(rest.len()));
        front.left -= piece.len();
        found.push(What::Input(Input {
            bytes: piece,
            key: front.key.take(),
            paste: front.paste,
            reply: false,
        }));
        if front.left == 0 {
            sent.pop_front();
        }
    }
    found
}
