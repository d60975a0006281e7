//! From a session's log to a timeline: what was delivered is matched with what was sent, and what
//! only the test knows (signals, names of moments) is put in its place.

use std::collections::VecDeque;
use std::vec::Drain;

use bytes::Bytes;
use tapdeck_core::check::{
    Cause, End, Input, Moment, Pos, Screen, Timeline, Updates, What, pieces, signal_name,
};
use tapdeck_core::{Author, Entry, Event, Exit, Lag, Seq, Stamp, Time};
use tapdeck_host::Tap;
use tapdeck_tape::scenario::service_event;
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

/// A piece of what was read.
struct Pending {
    at: Time,
    what: What,
    /// It goes on with the piece before it.
    continues: bool,
}

/// A tap that keeps the screen and the timeline of a session under test.
pub(crate) struct Collector {
    pub(crate) screen: Screen,
    /// How the program ended.
    pub(crate) exit: Option<Exit>,
    /// What was sent and has not been seen delivered.
    pub(crate) sent: VecDeque<Sent>,
    /// What has been read and not yet been put on the screen.
    pending: VecDeque<Pending>,
    updates: Updates,
    size: Size,
    moments: Vec<(Time, What)>,
    /// Service events that the session has passed on.
    told: usize,
    /// The first size in the log is the one at the start.
    started: bool,
    /// When it ended.
    pub(crate) ended: Option<Time>,
    lost: u64,
}

impl Collector {
    pub(crate) fn new(size: Size) -> Self {
        Self {
            screen: Screen::new(size),
            exit: None,
            sent: VecDeque::new(),
            pending: VecDeque::new(),
            updates: Updates::default(),
            size,
            moments: Vec::new(),
            told: 0,
            started: false,
            ended: None,
            lost: 0,
        }
    }

    /// What an entry of the log is on the timeline.
    fn read(&mut self, entry: &Entry) -> Vec<What> {
        match &entry.event {
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
            Event::Service(payload) => {
                self.told += 1;
                vec![What::Service(service_event(payload))]
            }
            Event::Exit(exit) => {
                self.exit = Some(*exit);
                self.ended = Some(entry.at.mono);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Puts the next piece of what was read on the screen and the timeline; returns when it came.
    pub(crate) fn step(&mut self) -> Option<Time> {
        let Pending { at, what, continues } = self.pending.pop_front()?;
        if self.screen.advance(Pos::before(at), &what).is_some() {
            self.updates.note(self.screen.term().modes().synchronised(), at);
        }
        // What was put in place later than this entry's time was seen before it all the same.
        for (earlier, _) in self.moments.iter_mut().rev() {
            if *earlier <= at {
                break;
            }
            *earlier = at;
        }
        match (self.moments.last_mut(), &what) {
            // A piece of output stays one, unless something was put in between.
            (Some((_, What::Output(before))), What::Output(more)) if continues => {
                *before = [&before[..], &more[..]].concat().into();
            }
            _ => self.moments.push((at, what)),
        }
        Some(at)
    }

    /// When the next piece came that is not yet on the screen.
    pub(crate) fn next(&self) -> Option<Time> {
        self.pending.front().map(|p| p.at)
    }

    /// When the screen counts although an update of it has not ended; `None` if it counts now.
    pub(crate) fn due(&self, now: Time) -> Option<Time> {
        self.updates.due(now).filter(|_| self.exit.is_none() || !self.pending.is_empty())
    }

    /// Puts those of a source's events that came when the session had ended behind everything.
    pub(crate) fn insert_late(&mut self, now: Time, all: &[String]) {
        for payload in all.get(self.told..).unwrap_or_default() {
            self.insert(now, What::Service(service_event(payload)));
        }
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
            for what in self.read(&entry) {
                let parts = match &what {
                    What::Output(bytes) => pieces(bytes).into_iter().map(What::Output).collect(),
                    _ => vec![what],
                };
                let parts = parts.into_iter().enumerate();
                self.pending.extend(parts.map(|(i, what)| Pending { at, what, continues: i > 0 }));
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
