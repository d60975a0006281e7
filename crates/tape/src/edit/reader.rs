//! Reading a recording as its edit leaves it.

use std::collections::VecDeque;

use bytes::Bytes;
use tapdeck_core::Time;
use tapdeck_term::{Settings, Term};

use super::{Moved, Plan, Removed, Spot};
use crate::Result;
use crate::event::{Event, EventReader, Header, Item, Kind};

/// What draws a screen again is handed on in pieces of at most this size, which no format finds too
/// long.
const PIECE: usize = 32 * 1024;
/// The memory that the scrollback of the carried screen may take.
const SCROLLBACK_BYTES: usize = 64 << 20;

/// A terminal that follows a recording to carry its screen over a cut.
pub(super) fn follower(header: &Header) -> Term {
    let settings = Settings::default().replies(false).newline_mode(header.pipes);
    Term::new(header.size.unwrap_or_default(), settings.scrollback_bytes(SCROLLBACK_BYTES))
}

/// Output in pieces, all at one time.
pub(super) fn pieces(time: Time, bytes: Vec<u8>) -> impl Iterator<Item = Item> {
    let bytes = Bytes::from(bytes);
    let starts = (0..bytes.len()).step_by(PIECE);
    starts.map(move |start| {
        let piece = bytes.slice(start..bytes.len().min(start + PIECE));
        Item::Event(Event::new(time, Kind::Output(piece)))
    })
}

/// A place at which the edit does something.
enum Act {
    /// A range to remove begins or ends.
    Begin,
    End,
    Mark(String),
}

/// Reads a recording as its edit leaves it.
pub struct EditReader<R> {
    inner: R,
    header: Header,
    /// What is still to be done, and where.
    acts: VecDeque<(Spot, Act)>,
    pace: Pace,
    drop_input: bool,
    /// Follows the recording while a cut lies ahead.
    term: Option<Term>,
    /// Inside of a cut: where it began, and the terminal as it was there.
    cut: Option<(Spot, Option<Term>)>,
    index: u64,
    old_off: u64,
    new_off: u64,
    ready: VecDeque<Item>,
    moved: Moved,
    removed: Removed,
    kept: u64,
    over: bool,
}

impl<R> std::fmt::Debug for EditReader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EditReader").field("index", &self.index).finish_non_exhaustive()
    }
}

/// From times of the recording to those of the edit.
struct Pace {
    /// Time removed so far, by cuts and from pauses.
    cut: u64,
    idle: u64,
    limit: Option<u64>,
    speed: f64,
    /// The last event, in old time and without the time removed by cuts.
    last: (u64, u64),
}

impl Pace {
    /// The new time of an event.
    fn time(&mut self, old: Time, moved: &mut Moved) -> Time {
        let old = old.as_nanos();
        let at = old.saturating_sub(self.cut).max(self.last.1);
        let pause = at - self.last.1;
        if let Some(limit) = self.limit.filter(|limit| pause > *limit) {
            moved.knot(Time::from_nanos(self.last.0), self.scaled(self.last.1));
            self.idle += pause - limit;
            moved.knot(Time::from_nanos(old), self.scaled(at));
        }
        self.last = (old, at);
        self.scaled(at)
    }

    fn scaled(&self, at: u64) -> Time {
        let time = Time::from_nanos(at.saturating_sub(self.idle));
        if self.speed == 1.0 { time } else { time.scaled(1.0 / self.speed) }
    }

    /// A range of time was removed.
    fn skip(&mut self, from: Time, to: Time) {
        self.cut += to.since(from).as_nanos() as u64;
        self.last.0 = to.as_nanos();
    }
}

impl<R: EventReader> EditReader<R> {
    /// Reads `inner` as this plan for it says. If the plan removes its start, that is read at once.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn new(inner: R, plan: Plan) -> Result<Self> {
        let mut header = inner.header().clone();
        let mut acts: Vec<(Spot, Act)> = Vec::new();
        for (start, end) in &plan.removed {
            acts.extend([(*start, Act::Begin), (*end, Act::End)]);
        }
        acts.extend(plan.marks.into_iter().map(|(at, label)| (at, Act::Mark(label))));
        // A marker at the end of a range stands behind it, and one at its start before it.
        acts.sort_by_key(|(at, act)| {
            (
                *at,
                match act {
                    Act::End => 0,
                    Act::Mark(_) => 1,
                    Act::Begin => 2,
                },
            )
        });
        match plan.title {
            Some(title) if title.is_empty() => header.title = None,
            Some(title) => header.title = Some(title),
            None => {}
        }
        header.idle_limit = match plan.idle_limit {
            // What is left of the pauses is wanted.
            Some(_) => None,
            None => header.idle_limit.map(|limit| Time::from(limit).scaled(1.0 / plan.speed).since_start()),
        };
        let started = header.started.unwrap_or_default();
        let first = header.first_byte;
        let mut moved = Moved::new((started, started), plan.speed);
        moved.base(first, first);
        let mut this = Self {
            term: (!plan.removed.is_empty()).then(|| follower(&header)),
            inner,
            header,
            acts: acts.into(),
            pace: Pace {
                cut: 0,
                idle: 0,
                limit: plan.idle_limit.map(|limit| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX)),
                speed: plan.speed,
                last: (0, 0),
            },
            drop_input: plan.drop_input,
            cut: None,
            index: 0,
            old_off: first,
            new_off: first,
            ready: VecDeque::new(),
            moved,
            removed: Removed::default(),
            kept: 0,
            over: false,
        };
        if let Some((Spot { index: 0, within: 0, .. }, Act::Begin)) = this.acts.front() {
            this.header.first_byte = 0;
            this.new_off = 0;
            this.act_up_to(0);
            while this.cut.is_some() && !this.over {
                this.step()?;
            }
        }
        Ok(this)
    }

    /// Where everything went and what was removed, when all was read.
    pub fn into_moved(self) -> (Moved, Removed) {
        (self.moved, self.removed)
    }

    /// How many events of the recording were kept so far.
    pub fn kept(&self) -> u64 {
        self.kept
    }

    /// How much was removed so far.
    pub fn removed(&self) -> Removed {
        self.removed
    }

    /// Reads one item of the recording.
    fn step(&mut self) -> Result<()> {
        match self.inner.next_item()? {
            Some(Item::Event(event)) => {
                self.event(event);
                self.index += 1;
            }
            Some(note) => self.ready.push_back(note),
            None => {
                self.over = true;
                // What is to be done at the end.
                self.act_up_to(u64::MAX);
            }
        }
        Ok(())
    }

    fn event(&mut self, event: Event) {
        let Event { time, kind } = event;
        self.act_up_to(0);
        let Kind::Output(mut bytes) = kind else { return self.pass(time, kind) };
        let mut done = 0;
        while let Some((at, _)) = self.acts.front()
            && at.index == self.index
            && at.within < done + bytes.len() as u64
        {
            let within = at.within;
            let part = bytes.split_to(usize::try_from(within - done).unwrap_or_default().min(bytes.len()));
            done = within;
            if !part.is_empty() {
                self.pass(time, Kind::Output(part));
            }
            self.act_up_to(within);
        }
        self.pass(time, Kind::Output(bytes));
    }

    /// Passes an event on, or removes it.
    fn pass(&mut self, time: Time, kind: Kind) {
        let len = match &kind {
            Kind::Output(bytes) => bytes.len() as u64,
            Kind::Lost(bytes) => *bytes,
            _ => 0,
        };
        self.old_off = self.old_off.saturating_add(len);
        if let Some(term) = &mut self.term {
            match &kind {
                Kind::Output(bytes) => {
                    term.feed(bytes);
                }
                Kind::Resize(size) => {
                    term.resize(*size);
                }
                _ => {}
            }
        }
        let is_dropped = self.drop_input && matches!(kind, Kind::Input(_));
        if self.cut.is_some() || is_dropped {
            let removed = &mut self.removed;
            match &kind {
                Kind::Marker(_) => removed.markers += 1,
                Kind::Snapshot { .. } => removed.snapshots += 1,
                Kind::Input(_) => removed.inputs += 1,
                Kind::Output(_) => removed.output_bytes += len,
                _ => {}
            }
            removed.events += u64::from(!matches!(kind, Kind::Marker(_) | Kind::Snapshot { .. }));
            return;
        }
        self.kept += 1;
        self.new_off = self.new_off.saturating_add(len);
        let kind = match kind {
            Kind::Snapshot { id, anchor, label } => {
                Kind::Snapshot { id, anchor: self.moved.offset(anchor), label }
            }
            kind => kind,
        };
        let time = self.pace.time(time, &mut self.moved);
        self.ready.push_back(Item::Event(Event::new(time, kind)));
    }

    /// Does what is to be done before so many bytes of the event at hand.
    fn act_up_to(&mut self, within: u64) {
        while let Some((at, act)) =
            self.acts.pop_front_if(|(at, _)| (at.index, at.within) <= (self.index, within) || self.over)
        {
            match act {
                Act::Begin => {
                    self.cut = Some((Spot { offset: self.old_off, ..at }, self.term.clone()));
                }
                Act::End => self.end_cut(at.time),
                Act::Mark(label) => {
                    let time = self.pace.time(at.time, &mut self.moved);
                    self.ready.push_back(Item::Event(Event::new(time, Kind::Marker(label))));
                }
            }
        }
    }

    /// Goes on behind a cut, with the screen as it is there.
    fn end_cut(&mut self, end: Time) {
        let Some((start, before)) = self.cut.take() else { return };
        if self.over {
            return self.moved.gap((start.time, Time::MAX), (start.offset, u64::MAX), self.new_off);
        }
        let (from, to) = (start.time.min(end), end);
        self.moved.gap((from, to), (start.offset, self.old_off), self.new_off);
        let is_first = start.index == 0 && start.within == 0;
        let time = self.pace.time(from, &mut self.moved);
        self.moved.knot(from, time);
        self.pace.skip(from, to);
        self.moved.knot(to, time);
        let Some(term) = &self.term else { return };
        let bytes = match before {
            Some(before) if !is_first => {
                if term.size() != before.size() {
                    self.ready.push_back(Item::Event(Event::new(time, Kind::Resize(term.size()))));
                }
                term.dump_since(&before)
            }
            _ => {
                self.header.size = Some(term.size());
                // Times of day stay true.
                self.header.started = self.header.started.map(|started| started + to.since_start());
                self.moved.restarted(self.header.started.unwrap_or_default());
                term.dump()
            }
        };
        self.new_off = self.new_off.saturating_add(bytes.len() as u64);
        self.moved.base(self.old_off, self.new_off);
        self.ready.extend(pieces(time, bytes));
        if !self.acts.iter().any(|(_, act)| matches!(act, Act::End)) {
            self.term = None;
        }
    }
}

impl<R: EventReader> EventReader for EditReader<R> {
    fn header(&self) -> &Header {
        &self.header
    }

    fn next_item(&mut self) -> Result<Option<Item>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(Some(item));
            }
            if self.over {
                return Ok(None);
            }
            self.step()?;
        }
    }

    fn position(&self) -> u64 {
        self.inner.position()
    }
}
