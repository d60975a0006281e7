//! Where an edit moved times and offsets to, for what a recording says of itself.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};
use tapdeck_core::{Time, WallTime};

use crate::lines::Lines;
use crate::turns::RecordedTurn;

/// Changes of pace beyond this many are thinned out; times between two are interpolated.
const MAX_KNOTS: usize = 1 << 20;

/// How much an edit removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Removed {
    /// Events of the recording, markers and snapshots not counted.
    pub events: u64,
    /// Bytes of output among them.
    pub output_bytes: u64,
    /// Pieces of input, by a cut or because the input was dropped.
    pub inputs: u64,
    /// Markers.
    pub markers: u64,
    /// Snapshots.
    pub snapshots: u64,
    /// Turns, among them those of which a part was cut.
    pub turns: u64,
    /// Instructions.
    pub instructions: u64,
    /// Events of other kinds, such as changes of state.
    pub others: u64,
}

impl Removed {
    /// Each kind of which something was removed, with its count, such as `2 turns`.
    pub fn counts(&self) -> impl Iterator<Item = String> {
        let all = [
            (self.events, "event", ""),
            (self.output_bytes, "byte", " of output"),
            (self.inputs, "piece", " of input"),
            (self.markers, "marker", ""),
            (self.snapshots, "snapshot", ""),
            (self.turns, "turn", ""),
            (self.instructions, "instruction", ""),
            (self.others, "other event", ""),
        ];
        let some = all.into_iter().filter(|(count, ..)| *count > 0);
        some.map(|(count, what, more)| {
            let plural = if count == 1 { "" } else { "s" };
            format!("{count} {what}{plural}{more}")
        })
    }
}

/// A range that was removed: after the first time and up to the second, and from the first offset
/// to before the second.
#[derive(Debug, Clone, Copy)]
struct Gap {
    times: (u64, u64),
    bytes: (u64, u64),
    /// Where in the new output it is.
    new: u64,
}

/// Times and offsets of a recording, and what became of them.
#[derive(Debug, Clone, Default)]
pub struct Moved {
    /// Times at which the pace changes, before and after.
    knots: Vec<(u64, u64)>,
    gaps: Vec<Gap>,
    /// Offsets from which on the distance is another, before and after.
    bases: Vec<(u64, u64)>,
    speed: f64,
    started: (WallTime, WallTime),
    /// What is added to the ids of instructions, so that two copies of a recording have their own.
    ids: u64,
}

impl Moved {
    pub(super) fn new(started: (WallTime, WallTime), speed: f64) -> Self {
        Self { speed, started, ..Self::default() }
    }

    /// Moves everything by the same: to a later time and offset.
    pub(super) fn by(started: (WallTime, WallTime), time: Time, offsets: (u64, u64)) -> Self {
        let mut moved = Self { ids: offsets.1, ..Self::new(started, 1.0) };
        moved.knot(Time::ZERO, time);
        moved.base(offsets.0, offsets.1);
        moved
    }

    pub(super) fn restarted(&mut self, started: WallTime) {
        self.started.1 = started;
    }

    pub(super) fn knot(&mut self, old: Time, new: Time) {
        if self.knots.len() >= MAX_KNOTS {
            let mut nth = 0;
            self.knots.retain(|_| {
                nth += 1;
                nth % 2 == 1
            });
        }
        self.knots.push((old.as_nanos(), new.as_nanos()));
    }

    pub(super) fn base(&mut self, old: u64, new: u64) {
        self.bases.push((old, new));
    }

    pub(super) fn gap(&mut self, times: (Time, Time), bytes: (u64, u64), new: u64) {
        self.gaps.push(Gap { times: (times.0.as_nanos(), times.1.as_nanos()), bytes, new });
    }

    /// Where a time is now.
    pub fn time(&self, old: Time) -> Time {
        let old = old.as_nanos();
        let behind = self.knots.partition_point(|(at, _)| *at <= old);
        let (from, to) = behind.checked_sub(1).map_or((0, 0), |i| self.knots[i]);
        let new = match self.knots.get(behind) {
            Some((at, end)) if at - from == end.saturating_sub(to) => to + (old - from),
            Some((at, end)) => {
                let share = (old - from) as f64 / (at - from) as f64;
                to + ((end.saturating_sub(to)) as f64 * share) as u64
            }
            None if self.speed == 1.0 => to.saturating_add(old - from),
            None => to.saturating_add(((old - from) as f64 / self.speed.max(1e-9)) as u64),
        };
        Time::from_nanos(new)
    }

    /// Where an offset is now; one that was removed is where the cut is.
    pub fn offset(&self, old: u64) -> u64 {
        if let Some(gap) = self.gap_at(old) {
            return gap.new;
        }
        let behind = self.bases.partition_point(|(at, _)| *at <= old);
        let (from, to) = behind.checked_sub(1).map_or((0, 0), |i| self.bases[i]);
        to.saturating_add(old - from)
    }

    fn gap_at(&self, offset: u64) -> Option<&Gap> {
        self.gaps.iter().find(|gap| (gap.bytes.0..gap.bytes.1).contains(&offset))
    }

    fn removes_time(&self, time: Time) -> bool {
        let time = time.as_nanos();
        self.gaps.iter().any(|gap| gap.times.0 < time && time <= gap.times.1)
    }

    /// Whether a part of the output between two offsets was removed.
    fn removes_part(&self, start: u64, end: u64) -> bool {
        let mut gaps = self.gaps.iter().map(|gap| gap.bytes).filter(|(from, to)| from < to);
        gaps.any(|(from, to)| from < end.max(start + 1) && start < to)
    }

    fn wall(&self, old: WallTime) -> WallTime {
        let since = old.since(self.started.0);
        self.started.1 + self.time(since.into()).since_start()
    }

    /// A turn at its new place; `None` when a part of it was removed, which its text would show.
    pub fn turn(&self, turn: &RecordedTurn) -> Option<RecordedTurn> {
        (!self.removes_part(turn.start_byte, turn.end_byte)).then(|| RecordedTurn {
            start_byte: self.offset(turn.start_byte),
            end_byte: self.offset(turn.end_byte),
            start: self.wall(turn.start),
            end: self.wall(turn.end),
            ..turn.clone()
        })
    }

    /// A line of a part at its new place, without its end; `None` when it is about something
    /// that was removed.
    fn line(&self, line: &[u8], removed: &mut Removed) -> Option<Vec<u8>> {
        // What makes no sense may be about what was removed.
        let Ok(mut object) = serde_json::from_slice::<Map<String, Value>>(line) else {
            removed.others += u64::from(!line.trim_ascii().is_empty());
            return None;
        };
        let number = |object: &Map<String, Value>, key: &str| object.get(key).and_then(Value::as_u64);
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        let is_instruction = kind.is_empty() && object.contains_key("text");
        let gone = match (kind.as_str(), number(&object, "start_byte"), number(&object, "end_byte")) {
            (_, Some(start), Some(end)) => self.removes_part(start, end),
            _ if is_instruction => {
                number(&object, "anchor_byte").is_some_and(|anchor| self.gap_at(anchor).is_some())
            }
            _ => number(&object, "ts_ns")
                .is_some_and(|ts| self.removes_time(WallTime::from_nanos(ts).since(self.started.0).into())),
        };
        if gone {
            // Markers and snapshots are counted where their records are.
            match kind.as_str() {
                "turn" => removed.turns += 1,
                "marker" => {}
                _ if is_instruction => removed.instructions += 1,
                _ if object.contains_key("id") && object.contains_key("anchor_byte") => {}
                _ => removed.others += 1,
            }
            return None;
        }
        for key in ["ts_ns", "start_ns", "end_ns"] {
            // When an instruction was written is no time of the session.
            if let Some(at) = number(&object, key).filter(|_| !is_instruction) {
                object.insert(key.to_owned(), self.wall(WallTime::from_nanos(at)).as_nanos().into());
            }
        }
        self.offsets(&mut object);
        if let Some(Value::Object(snapshot)) = object.get_mut("snapshot") {
            self.offsets(snapshot);
        }
        if is_instruction {
            // Its place tells the line, which may have another number now.
            object.remove("line");
            // Those of earlier versions have the time in place of an id.
            let id = number(&object, "id").filter(|id| *id > 0).or_else(|| number(&object, "ts_ns"));
            if let Some(id) = id {
                object.insert("id".to_owned(), id.wrapping_add(self.ids).into());
            }
        }
        serde_json::to_vec(&object).ok()
    }

    fn offsets(&self, object: &mut Map<String, Value>) {
        for key in ["start_byte", "end_byte", "anchor_byte"] {
            if let Some(at) = object.get(key).and_then(Value::as_u64) {
                object.insert(key.to_owned(), self.offset(at).into());
            }
        }
    }
}

/// A part of lines, read as an edit leaves it.
#[derive(Debug)]
pub struct MovedLines<R> {
    lines: Lines<R>,
    by: Vec<Arc<Moved>>,
    removed: Arc<Mutex<Removed>>,
    ready: VecDeque<u8>,
}

impl<R: Read> MovedLines<R> {
    /// Reads a part, moved by each of these in order. What is left out is counted.
    pub fn new(part: R, by: Vec<Arc<Moved>>, removed: Arc<Mutex<Removed>>) -> Self {
        Self { lines: Lines::new(part), by, removed, ready: VecDeque::new() }
    }
}

impl<R: Read> Read for MovedLines<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.ready.is_empty() {
            let Some(line) = self.lines.next_line().map_err(io::Error::other)? else { return Ok(0) };
            let mut removed = self.removed.lock().unwrap_or_else(PoisonError::into_inner);
            let moved = self.by.iter().try_fold(line.text.to_vec(), |line, by| by.line(&line, &mut removed));
            if let Some(line) = moved {
                self.ready.extend(line);
                self.ready.push_back(b'\n');
            }
        }
        self.ready.read(buf)
    }
}
