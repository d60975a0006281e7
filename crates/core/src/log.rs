//! The event log: stored once, read by many, each from a cursor of its own.
//!
//! The writer never waits. A reader that falls behind what the log keeps is told the exact range it
//! lost the next time it reads. Only a reader declared lossless can hold entries back, and only up
//! to a cap, so memory is bounded whatever a reader does.

use std::collections::VecDeque;
use std::ops::{Add, AddAssign, Range, Sub};

use crate::event::{Event, WinSize};
use crate::time::Stamp;

/// What an entry costs beyond its payload; part of the bound, or a flood of one-byte events would
/// escape it.
const ENTRY_COST: usize = size_of::<Entry>();

/// Position of an entry in the log, from 0, or of a moment in a timeline, from 1; without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Seq(pub u64);

impl Seq {
    /// Returns the place behind this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// A place in the program's output: how many bytes of it are in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Offset(pub u64);

impl Offset {
    /// Behind all output.
    pub const MAX: Self = Self(u64::MAX);
}

impl Add<u64> for Offset {
    type Output = Self;

    /// Returns the place so many bytes on.
    fn add(self, bytes: u64) -> Self {
        Self(self.0.saturating_add(bytes))
    }
}

impl Add<usize> for Offset {
    type Output = Self;

    fn add(self, bytes: usize) -> Self {
        self + bytes as u64
    }
}

impl AddAssign<usize> for Offset {
    fn add_assign(&mut self, bytes: usize) {
        *self = *self + bytes;
    }
}

impl Sub for Offset {
    type Output = u64;

    /// Returns the bytes between two places, or zero if the other one is later.
    fn sub(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// One event with its place and time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Place in the log.
    pub seq: Seq,
    /// Place in the output.
    pub offset: Offset,
    /// When it happened.
    pub at: Stamp,
    /// What happened.
    pub event: Event,
}

impl Entry {
    fn weight(&self) -> usize {
        self.event.payload_len() + ENTRY_COST
    }
}

/// How much the log keeps.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct LogLimits {
    /// Weight that is kept for late and slow readers when no reader holds more.
    pub keep: usize,
    /// Weight up to which a lossless reader may hold entries back.
    pub cap: usize,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self::new(1 << 20, 32 << 20)
    }
}

impl LogLimits {
    /// Keeps this weight for late and slow readers, and lets lossless readers hold back that
    /// weight.
    pub const fn new(keep: usize, cap: usize) -> Self {
        Self { keep, cap }
    }

    /// Sets the weight that is kept for late and slow readers; 1 MiB by default.
    #[must_use]
    pub fn keep(mut self, keep: usize) -> Self {
        self.keep = keep;
        self
    }

    /// Sets the weight up to which a lossless reader may hold entries back; 32 MiB by default.
    #[must_use]
    pub fn cap(mut self, cap: usize) -> Self {
        self.cap = cap;
        self
    }
}

/// Whether a reader may hold the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReaderKind {
    /// Holds entries back until read, up to the cap.
    Lossless,
    /// Never holds anything back; lags when slow.
    Lossy,
}

/// A reader's name within its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReaderId(usize);

/// What a slow reader lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lag {
    /// Entries that are gone: from, and up to but not including.
    pub seqs: Range<Seq>,
    /// Output that is gone.
    pub offsets: Range<Offset>,
}

impl Lag {
    /// Returns how many bytes of output are gone.
    pub fn bytes(&self) -> u64 {
        self.offsets.end - self.offsets.start
    }
}

#[derive(Debug)]
struct Reader {
    kind: ReaderKind,
    /// The next entry to read, with the output offset and the weight appended before it.
    next: Seq,
    offset: Offset,
    consumed: u64,
}

/// The log of one session.
#[derive(Debug)]
pub struct Log {
    limits: LogLimits,
    entries: VecDeque<Entry>,
    /// Weight of `entries`.
    held: usize,
    /// Weight of everything ever appended.
    appended: u64,
    /// Sequence number and output offset behind the last entry.
    end: Seq,
    offset: Offset,
    readers: Vec<Option<Reader>>,
    /// The size that was set last before the oldest entry kept.
    size_before: WinSize,
}

impl Log {
    /// An empty log.
    pub fn new(limits: LogLimits) -> Self {
        Self {
            limits,
            entries: VecDeque::new(),
            held: 0,
            appended: 0,
            end: Seq(0),
            offset: Offset(0),
            readers: Vec::new(),
            size_before: WinSize::default(),
        }
    }

    /// How much it keeps.
    pub fn limits(&self) -> LogLimits {
        self.limits
    }

    /// Appends an event and returns its place. Never waits for a reader.
    pub fn append(&mut self, event: Event, at: Stamp) -> Seq {
        let entry = Entry { seq: self.end, offset: self.offset, at, event };
        if let Event::Output { bytes, .. } = &entry.event {
            self.offset += bytes.len();
        }
        let seq = entry.seq;
        self.held += entry.weight();
        self.appended += entry.weight() as u64;
        self.end = seq.next();
        self.entries.push_back(entry);
        if self.held > self.limits.keep {
            self.trim();
        }
        seq
    }

    /// Place behind the output so far.
    pub fn offset(&self) -> Offset {
        self.offset
    }

    /// The place that the next entry will get.
    pub fn end(&self) -> Seq {
        self.end
    }

    /// The number of the oldest entry still kept, or of the next one if there is none.
    pub fn first(&self) -> Seq {
        self.start().0
    }

    /// Where the oldest entry still kept stands in the output, its time, and the terminal's size
    /// before it.
    pub fn oldest(&self) -> (Offset, Option<Stamp>, WinSize) {
        (self.start().1, self.entries.front().map(|e| e.at), self.size_before)
    }

    /// Adds a reader that starts at the oldest entry still kept.
    pub fn reader_from_start(&mut self, kind: ReaderKind) -> ReaderId {
        let (next, offset) = self.start();
        self.add_reader(Reader { kind, next, offset, consumed: self.appended - self.held as u64 })
    }

    /// Adds a reader that starts behind the newest entry.
    pub fn reader_from_end(&mut self, kind: ReaderKind) -> ReaderId {
        self.add_reader(Reader { kind, next: self.end, offset: self.offset, consumed: self.appended })
    }

    /// Removes a reader; what only it held is let go.
    pub fn remove_reader(&mut self, id: ReaderId) {
        if let Some(slot) = self.readers.get_mut(id.0) {
            *slot = None;
            self.trim();
        }
    }

    /// Weight of what the reader has not read yet, lost entries included.
    pub fn pending(&self, id: ReaderId) -> usize {
        let reader = self.readers.get(id.0).and_then(Option::as_ref);
        reader.map_or(0, |r| usize::try_from(self.appended - r.consumed).unwrap_or(usize::MAX))
    }

    /// Weight that the reader has read so far, lost entries included.
    pub fn consumed(&self, id: ReaderId) -> u64 {
        self.readers.get(id.0).and_then(Option::as_ref).map_or(0, |r| r.consumed)
    }

    /// Moves entries of at least one and about `max_weight` into `into` and says what was lost
    /// before them.
    pub fn read(&mut self, id: ReaderId, max_weight: usize, into: &mut Vec<Entry>) -> Option<Lag> {
        let (start, start_offset) = self.start();
        let trimmed = self.appended - self.held as u64;
        let reader = self.readers.get_mut(id.0)?.as_mut()?;
        let lag = (reader.next < start).then(|| {
            let lag = Lag { seqs: reader.next..start, offsets: reader.offset..start_offset };
            (reader.next, reader.offset, reader.consumed) = (start, start_offset, trimmed);
            lag
        });
        let first = usize::try_from(reader.next.0 - start.0).unwrap_or(usize::MAX);
        let mut weight = 0;
        for entry in self.entries.iter().skip(first) {
            if weight >= max_weight && weight > 0 {
                break;
            }
            weight += entry.weight();
            reader.next = entry.seq.next();
            reader.offset = entry.offset;
            if let Event::Output { bytes, .. } = &entry.event {
                reader.offset += bytes.len();
            }
            into.push(entry.clone());
        }
        reader.consumed += weight as u64;
        if self.held > self.limits.keep {
            self.trim();
        }
        lag
    }

    fn start(&self) -> (Seq, Offset) {
        self.entries.front().map_or((self.end, self.offset), |e| (e.seq, e.offset))
    }

    fn add_reader(&mut self, reader: Reader) -> ReaderId {
        if let Some(free) = self.readers.iter().position(Option::is_none) {
            self.readers[free] = Some(reader);
            return ReaderId(free);
        }
        self.readers.push(Some(reader));
        ReaderId(self.readers.len() - 1)
    }

    fn trim(&mut self) {
        let lossless = self.readers.iter().flatten().filter(|r| r.kind == ReaderKind::Lossless);
        let held_from = lossless.map(|r| r.next).min().unwrap_or(self.end);
        while self.held > self.limits.keep {
            let Some(front) = self.entries.front() else { break };
            // The newest entry is kept whatever it weighs: otherwise no reader could ever read it.
            if front.seq >= held_from && (self.held <= self.limits.cap || self.entries.len() == 1) {
                break;
            }
            self.held -= front.weight();
            if let Event::Resize(size) = front.event {
                self.size_before = size;
            }
            self.entries.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::event::Stream;
    use crate::time::{Time, WallTime};

    fn out(n: usize) -> Event {
        Event::Output { stream: Stream::Out, bytes: Bytes::from(vec![b'x'; n]) }
    }

    fn at(ns: u64) -> Stamp {
        Stamp { mono: Time::from_nanos(ns), wall: WallTime::from_nanos(ns) }
    }

    #[test]
    fn offsets_count_output_only() {
        let mut log = Log::new(LogLimits::default());
        log.append(out(5), at(1));
        log.append(Event::Wait, at(2));
        log.append(out(7), at(3));
        let r = log.reader_from_start(ReaderKind::Lossy);
        let mut got = Vec::new();
        assert_eq!(log.read(r, usize::MAX, &mut got), None);
        let places: Vec<_> = got.iter().map(|e| (e.seq.0, e.offset.0, e.at.mono.as_nanos())).collect();
        assert_eq!(places, [(0, 0, 1), (1, 5, 2), (2, 5, 3)]);
        assert_eq!((log.offset(), log.end()), (Offset(12), Seq(3)));
    }

    #[test]
    fn a_slow_lossy_reader_is_told_the_range() {
        let mut log = Log::new(LogLimits { keep: 4 * (100 + ENTRY_COST), cap: 1 << 20 });
        let r = log.reader_from_start(ReaderKind::Lossy);
        for i in 0..10 {
            log.append(out(100), at(i));
        }
        let mut got = Vec::new();
        let lag = log.read(r, usize::MAX, &mut got).expect("it lagged");
        assert_eq!(lag, Lag { seqs: Seq(0)..Seq(6), offsets: Offset(0)..Offset(600) });
        assert_eq!((got.len(), got[0].offset), (4, Offset(600)));
        assert_eq!(log.read(r, usize::MAX, &mut got), None, "a lag is told once");
    }

    #[test]
    fn a_lossless_reader_holds_up_to_the_cap() {
        let one = 100 + ENTRY_COST;
        let mut log = Log::new(LogLimits { keep: 2 * one, cap: 6 * one });
        let r = log.reader_from_start(ReaderKind::Lossless);
        for i in 0..6 {
            log.append(out(100), at(i));
        }
        let mut got = Vec::new();
        assert_eq!(log.read(r, usize::MAX, &mut got), None);
        assert_eq!(got.len(), 6);
        for i in 0..9 {
            log.append(out(100), at(i));
        }
        got.clear();
        let lag = log.read(r, usize::MAX, &mut got).expect("past the cap it is told");
        assert_eq!((lag.seqs.start, got.len() as u64 + lag.seqs.end.0 - lag.seqs.start.0), (Seq(6), 9));
        assert_eq!(lag.bytes(), 100 * (lag.seqs.end.0 - lag.seqs.start.0));
    }

    #[test]
    fn a_lossless_reader_that_keeps_up_loses_nothing_however_low_the_cap() {
        let mut log = Log::new(LogLimits { keep: 0, cap: 10 });
        let r = log.reader_from_start(ReaderKind::Lossless);
        let mut got = Vec::new();
        for i in 0..3 {
            log.append(out(100), at(i));
            assert_eq!(log.read(r, usize::MAX, &mut got), None);
        }
        assert_eq!((got.len(), log.held), (3, 0));
    }

    #[test]
    fn a_removed_reader_holds_nothing() {
        let one = 100 + ENTRY_COST;
        let mut log = Log::new(LogLimits { keep: one, cap: 100 * one });
        let r = log.reader_from_start(ReaderKind::Lossless);
        for i in 0..50 {
            log.append(out(100), at(i));
        }
        assert_eq!(log.held, 50 * one);
        log.remove_reader(r);
        assert_eq!(log.held, one);
    }

    proptest! {
        /// Whatever is appended, read and lost in whatever order: the reader sees every byte once,
        /// in order, or is told that it is gone; and the bound holds.
        #[test]
        fn every_byte_is_read_or_reported(
            steps in prop::collection::vec((0usize..300, prop::bool::ANY, 1usize..2000), 1..200),
            lossless in prop::bool::ANY,
        ) {
            let limits = LogLimits { keep: 3000, cap: 6000 };
            let mut log = Log::new(limits);
            let kind = if lossless { ReaderKind::Lossless } else { ReaderKind::Lossy };
            let r = log.reader_from_start(kind);
            let (mut seen, mut next) = (Offset(0), Seq(0));
            let mut got = Vec::new();
            let mut check = |log: &mut Log, max| {
                got.clear();
                if let Some(lag) = log.read(r, max, &mut got) {
                    assert_eq!((lag.seqs.start, lag.offsets.start), (next, seen));
                    (next, seen) = (lag.seqs.end, lag.offsets.end);
                }
                for e in &got {
                    assert_eq!((e.seq, e.offset), (next, seen));
                    next = next.next();
                    seen += e.event.payload_len();
                }
                !got.is_empty()
            };
            for (n, read, max) in steps {
                log.append(out(n), at(0));
                prop_assert!(log.held <= limits.cap + 300 + ENTRY_COST);
                if read {
                    check(&mut log, max);
                }
            }
            while check(&mut log, 1000) {}
            prop_assert_eq!((seen, next), (log.offset(), log.end()));
            prop_assert_eq!(log.pending(r), 0);
        }
    }
}
