//! Keeps what happens in a pause out of a recording: a tap in front of every recorder. Behind a
//! pause it hands on what draws the screen again, and the offsets of the output are those of the
//! recording, which has none of what the program wrote in between.

use std::collections::VecDeque;
use std::sync::Arc;
use std::vec::Drain;

use bytes::{Buf, Bytes};
use tapdeck_core::turns::{Judgement, OutputPoint, Turn};
use tapdeck_core::{Change, Entry, Event, Lag, Offset, Seq, Stamp, Stream, Time, WinSize};

use super::RecorderTap;
use super::Report;
use crate::shared::SharedLog;
use crate::tap::{Tap, Wake};

/// What draws the screen again is handed on in pieces of this size, which no format finds too long.
const PIECE: usize = 32 * 1024;
/// What is known of older pauses is let go: no turn is that long.
const MAX_GAPS: usize = 10_000;

/// A recorder that gets nothing of what happens in a pause.
pub(super) struct Pausing<T> {
    inner: T,
    log: SharedLog,
    /// Nothing was taken yet.
    fresh: bool,
    pause: Option<Pause>,
    places: Places,
    /// The size that the recording knows.
    size: WinSize,
    /// How much of the input to come was typed in the last pause.
    undelivered: usize,
    /// When the last turn was over.
    turn_over: Time,
    ready: Vec<Entry>,
}

/// A pause that is not over.
struct Pause {
    /// Where it began in the output of the program, and when.
    from: Offset,
    at: Stamp,
    /// What is to be known behind it: what the program does, and the stick's holder.
    state: Option<Arc<Judgement>>,
    holder: Option<Change>,
}

/// From the program's output to that of the recording.
#[derive(Default)]
struct Places {
    /// Bytes that the recording does not have, and bytes that it has besides.
    dropped: u64,
    added: u64,
    gaps: VecDeque<Gap>,
}

/// A pause that is over.
struct Gap {
    /// What of the output is in it, and when it was.
    bytes: (Offset, Offset),
    times: (Time, Time),
    /// Where its end is in the recording, in front of what draws the screen again and behind it.
    place: (Offset, Offset),
}

impl Places {
    fn now(&self, offset: Offset) -> Offset {
        Offset((offset.0 + self.added).saturating_sub(self.dropped))
    }

    /// Closes a pause, in which so much was written, behind which so much is added.
    fn close(&mut self, bytes: (Offset, Offset), times: (Time, Time), added: u64) {
        let at = self.now(bytes.0);
        self.dropped += bytes.1 - bytes.0;
        self.added += added;
        if self.gaps.len() == MAX_GAPS {
            self.gaps.pop_front();
        }
        self.gaps.push_back(Gap { bytes, times, place: (at, at + added) });
    }

    /// Where a point of the output is in the recording, whichever pauses came behind it.
    fn of(&self, point: OutputPoint) -> Offset {
        let mut place = self.now(point.byte);
        for gap in self.gaps.iter().rev() {
            let behind =
                point.byte > gap.bytes.1 || (point.byte == gap.bytes.1 && point.at.mono >= gap.times.1);
            if behind {
                break;
            }
            let before =
                point.byte < gap.bytes.0 || (point.byte == gap.bytes.0 && point.at.mono <= gap.times.0);
            place = match before {
                true => Offset(gap.place.0.0.saturating_sub(gap.bytes.0 - point.byte)),
                false => gap.place.1,
            };
        }
        place
    }

    /// Whether a pause was between two times.
    fn overlaps(&self, from: Time, to: Time) -> bool {
        self.gaps.iter().rev().any(|gap| gap.times.0 < to && from < gap.times.1)
    }

    /// Whether a time was in a pause.
    fn contains(&self, at: Time) -> bool {
        self.gaps.iter().rev().any(|gap| gap.times.0 < at && at < gap.times.1)
    }
}

impl<T: Tap> Pausing<T> {
    /// For a session that has this size at its start.
    pub(super) fn new(inner: T, log: SharedLog, size: WinSize) -> Self {
        Self {
            inner,
            log,
            fresh: true,
            pause: None,
            places: Places::default(),
            size,
            undelivered: 0,
            turn_over: Time::ZERO,
            ready: Vec::new(),
        }
    }

    /// Finds out whether the recording is paused at an entry, where that cannot be known from those
    /// before it.
    fn look(&mut self, seq: Seq, offset: Offset, at: Stamp) {
        let paused = self.log.is_paused_at(seq);
        match (&self.pause, paused) {
            (None, true) => self.begin(seq, offset, at, "".into()),
            (Some(_), false) => {
                self.end(seq, offset, at, ("".into(), self.size, Bytes::new()));
            }
            _ => {}
        }
    }

    fn begin(&mut self, seq: Seq, from: Offset, at: Stamp, by: Arc<str>) {
        let offset = self.places.now(from);
        self.ready.push(Entry { seq, offset, at, event: Event::RecordingPaused { by } });
        self.pause = Some(Pause { from, at, state: None, holder: None });
    }

    fn end(&mut self, seq: Seq, to: Offset, at: Stamp, (by, size, redraw): (Arc<str>, WinSize, Bytes)) {
        let Some(Pause { from, at: began, state, holder }) = self.pause.take() else { return };
        let mut offset = self.places.now(from);
        self.places.close((from, to), (began.mono, at.mono), redraw.len() as u64);
        let mut push = |offset, event| self.ready.push(Entry { seq, offset, at, event });
        push(offset, Event::RecordingResumed { by, size, redraw: redraw.clone(), undelivered: 0 });
        if size != self.size {
            self.size = size;
            push(offset, Event::Resize(size));
        }
        for start in (0..redraw.len()).step_by(PIECE) {
            let bytes = redraw.slice(start..redraw.len().min(start + PIECE));
            let end = offset + bytes.len();
            push(offset, Event::Output { stream: Stream::Out, bytes });
            offset = end;
        }
        if let Some(change) = holder {
            push(offset, Event::Holder(change));
        }
        if let Some(judgement) = state {
            // Its rows may be gone from the screen.
            push(offset, Event::State(Arc::new(Judgement { rows: Vec::new(), ..(*judgement).clone() })));
        }
    }

    fn push(&mut self, mut entry: Entry) {
        if std::mem::take(&mut self.fresh) {
            self.look(entry.seq, entry.offset, entry.at);
        }
        let Entry { seq, offset, at, .. } = entry;
        match entry.event {
            Event::RecordingPaused { by } => {
                if self.pause.is_none() {
                    self.begin(seq, offset, at, by);
                }
                return;
            }
            Event::RecordingResumed { by, size, redraw, undelivered } => {
                self.undelivered = undelivered;
                return self.end(seq, offset, at, (by, size, redraw));
            }
            Event::Input { ref mut bytes, .. } if self.undelivered > 0 && self.pause.is_none() => {
                let typed_before = self.undelivered.min(bytes.len());
                self.undelivered -= typed_before;
                bytes.advance(typed_before);
                if bytes.is_empty() {
                    return;
                }
            }
            Event::Resize(size) if self.pause.is_none() => self.size = size,
            Event::State(ref mut judgement) if self.places.contains(judgement.since.mono) => {
                *judgement = Arc::new(Judgement { rows: Vec::new(), ..(**judgement).clone() });
            }
            Event::TurnEnded(ref mut turn) => {
                let kept = self.kept(turn);
                self.turn_over = turn.end.at.mono;
                match kept {
                    Some(kept) => *turn = Arc::new(kept),
                    None => return,
                }
            }
            // Its texts were shown in a pause, if only there.
            Event::Decided(ref decision) if self.places.contains(decision.asked.mono) => return,
            _ => {}
        }
        match &mut self.pause {
            None => entry.offset = self.places.now(offset),
            Some(pause) => {
                entry.offset = self.places.now(pause.from);
                match entry.event {
                    Event::Snapshot { .. }
                    | Event::Marker { .. }
                    | Event::Instruction(_)
                    | Event::FilesNotKept(_)
                    | Event::Conversation { .. }
                    | Event::Suspended
                    | Event::Resumed
                    | Event::Exit(_) => {}
                    Event::State(judgement) => {
                        pause.state = Some(judgement);
                        return;
                    }
                    Event::Holder(change) => {
                        pause.holder = Some(change);
                        return;
                    }
                    _ => return,
                }
            }
        }
        self.ready.push(entry);
    }

    /// What a recording may have of a turn. Of one that a pause was in, the text is not known to be
    /// free of what came in the pause.
    fn kept(&self, turn: &Turn) -> Option<Turn> {
        let (from, to) = (turn.start.at.mono, turn.end.at.mono);
        if self.pause.is_some() || (self.places.contains(from) && self.places.contains(to)) {
            return None;
        }
        let mut kept = turn.clone();
        kept.start.byte = self.places.of(turn.start);
        kept.end.byte = self.places.of(turn.end).max(kept.start.byte);
        if self.places.overlaps(from, to) {
            (kept.text, kept.parts, kept.truncated) = (String::new(), Vec::new(), true);
        }
        if self.places.overlaps(self.turn_over, from) || self.places.contains(from) {
            kept.input = String::new();
        }
        Some(kept)
    }

    fn pass_on(&mut self, now: Stamp) {
        if !self.ready.is_empty() {
            self.inner.take(self.ready.drain(..), now);
        }
    }
}

impl<T: Tap> Tap for Pausing<T> {
    fn started(&mut self, now: Stamp) {
        self.inner.started(now);
    }

    fn take(&mut self, entries: Drain<'_, Entry>, now: Stamp) {
        for entry in entries {
            self.push(entry);
        }
        if !self.ready.is_empty() {
            self.inner.take(self.ready.drain(..), now);
        }
    }

    fn lagged(&mut self, lag: &Lag, now: Stamp) {
        self.fresh = false;
        if self.pause.is_some() && self.log.is_paused_at(lag.seqs.end) {
            // What was lost is nothing that would have been recorded, but a snapshot, of which its
            // caller has to be told.
            let at = self.pause.as_ref().map_or(lag.offsets.end, |pause| self.places.now(pause.from));
            return self.inner.lagged(&Lag { seqs: lag.seqs.clone(), offsets: at..at }, now);
        }
        // The loss is told where the program was heard last.
        self.look(lag.seqs.end, lag.offsets.start, now);
        if self.pause.is_some() {
            self.inner.lagged(lag, now);
            self.pause.as_mut().into_iter().for_each(|pause| pause.from = lag.offsets.end);
            return self.pass_on(now);
        }
        self.pass_on(now);
        self.inner.lagged(lag, now);
    }

    fn next_wake(&self, now: Stamp) -> Wake {
        self.inner.next_wake(now)
    }

    fn due(&mut self, now: Stamp) {
        self.inner.due(now);
    }

    fn flush(&mut self, now: Stamp) {
        self.inner.flush(now);
    }

    fn closed(&mut self, now: Stamp) {
        self.inner.closed(now);
    }
}

impl RecorderTap for Pausing<Box<dyn RecorderTap>> {
    fn report(self: Box<Self>) -> Report {
        self.inner.report()
    }
}

#[cfg(test)]
mod tests;
