//! Where a player's events come from: the blocks of a native recording, which can be entered at any
//! of them, or the reader of any other format, which can only be read from its start.

use std::fs::File;
use std::io::Empty;
use std::sync::Arc;
use std::time::Duration;

use tapdeck_core::{Exit, Offset, Time};
use tapdeck_tape::ahr::{self, Body, Mark};
use tapdeck_tape::{EventReader, Item, Kind};

use super::PlayError;
use crate::ahead::Blocks;
use crate::source::{Source, SourceError};

/// The next event of a recording.
pub(super) struct Got {
    /// When it happened, since the start.
    pub(super) at: Time,
    /// Where it stands in the output.
    pub(super) off: Offset,
    pub(super) event: Kind,
    /// It was recorded in a pause or is the first behind one, so what is in front is no time to
    /// show.
    pub(super) after_pause: bool,
    /// Where to enter so that this event comes next, if one can.
    pub(super) spot: Option<Spot>,
}

/// A place where a recording can be entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spot {
    Start,
    /// At a block, with the clocks as they were before it.
    Block {
        offset: u64,
        time: Time,
        last_ts: Option<u64>,
    },
    /// Behind so many events, at this place in the output.
    Events {
        count: u64,
        off: Offset,
    },
}

/// A recording being read.
pub(super) enum Feed {
    Native(Box<Native>),
    Other(Other),
}

impl Feed {
    pub(super) fn next(&mut self) -> Result<Option<Got>, PlayError> {
        match self {
            Feed::Native(native) => native.next(),
            Feed::Other(other) => other.next(),
        }
    }

    pub(super) fn go_to(&mut self, spot: Spot) -> Result<(), PlayError> {
        match self {
            Feed::Native(native) => {
                native.go_to(spot);
                Ok(())
            }
            Feed::Other(other) => other.go_to(spot),
        }
    }

    /// Opens the recording again behind the last event read, to find what was added to it since.
    pub(super) fn resume(&mut self) -> Result<(), PlayError> {
        match self {
            Feed::Native(native) => native.resume(),
            Feed::Other(other) => other.go_to(Spot::Events { count: other.count, off: other.off }),
        }
    }
}

/// Counts what is met for the first time: a player that goes back meets everything again.
#[derive(Default)]
struct Once {
    up_to: u64,
    count: u64,
}

impl Once {
    fn met(&mut self, at: u64) {
        if at >= self.up_to {
            self.up_to = at + 1;
            self.count += 1;
        }
    }
}

/// A native recording.
pub(super) struct Native {
    source: Source,
    file: Arc<File>,
    reader: ahr::Reader<Empty>,
    time: Time,
    last_ts: Option<u64>,
    block: Option<u64>,
    /// Where the present block is entered, and how many events of it have been read.
    entry: Spot,
    read: u64,
    /// The recording is paused, or has gone on and nothing has happened since.
    paused: bool,
    resumed: bool,
    damages: Once,
}

impl Native {
    pub(super) fn open(source: &Source) -> Result<Self, PlayError> {
        let fail = |why| SourceError::Open { path: source.path().to_owned(), why };
        let file = Arc::new(source.file().map_err(fail)?);
        let reader = reader_at(&file, 0);
        let source = source.clone();
        Ok(Self {
            source,
            file,
            reader,
            time: Time::ZERO,
            last_ts: None,
            block: None,
            entry: Spot::Start,
            read: 0,
            paused: false,
            resumed: false,
            damages: Once::default(),
        })
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Wall clock of the last record read.
    pub(super) fn last_ts(&self) -> Option<u64> {
        self.last_ts
    }

    /// Damaged ranges met so far.
    pub(super) fn damages(&self) -> u64 {
        self.damages.count
    }

    fn next(&mut self) -> Result<Option<Got>, PlayError> {
        let mut spot = None;
        loop {
            let record = match self.reader.next_item().map_err(|why| self.source.read_error(why))? {
                None => return Ok(None),
                Some(ahr::Item::Damage(damage)) => {
                    self.damages.met(damage.offset);
                    continue;
                }
                Some(ahr::Item::Record(record)) => record,
            };
            let block = self.reader.block().map(|(offset, _)| offset);
            if let Some(offset) = block.filter(|_| block != self.block) {
                self.block = block;
                let entry = Spot::Block { offset, time: self.time, last_ts: self.last_ts };
                (spot, self.entry, self.read) = (Some(entry), entry, 0);
            }
            // A clock that was set back must not make time run backwards: it stands still instead.
            let last = self.last_ts.replace(record.ts_ns).unwrap_or(record.ts_ns);
            self.time += Duration::from_nanos(record.ts_ns.saturating_sub(last));
            let mut off = Offset(0);
            let event = match record.body {
                Body::Data { bytes, off: at } => {
                    off = Offset(at);
                    Kind::Output(bytes)
                }
                Body::Resize(size) => Kind::Resize(size),
                Body::Input { bytes } => Kind::Input(bytes),
                Body::Mark { code, val } => match Mark::from_raw(code, val) {
                    Mark::Exit(code) => Kind::Exit(Exit::Code(code.cast_signed())),
                    Mark::Signal(signal) => Kind::Exit(Exit::Signal(signal.cast_signed())),
                    mark @ (Mark::Paused | Mark::Resumed(_)) => {
                        self.paused = mark == Mark::Paused;
                        self.resumed = !self.paused;
                        continue;
                    }
                    _ => continue,
                },
                _ => continue,
            };
            self.read += 1;
            let after_pause = self.paused | std::mem::take(&mut self.resumed);
            return Ok(Some(Got { at: self.time, off, event, after_pause, spot }));
        }
    }

    fn resume(&mut self) -> Result<(), PlayError> {
        let read = self.read;
        self.go_to(self.entry);
        // The last block may have been incomplete: its events are the same, and there are more.
        while self.read < read && self.next()?.is_some() {}
        Ok(())
    }

    fn go_to(&mut self, spot: Spot) {
        let (offset, time, last_ts) = match spot {
            Spot::Block { offset, time, last_ts } => (offset, time, last_ts),
            _ => (0, Time::ZERO, None),
        };
        self.reader = reader_at(&self.file, offset);
        (self.time, self.last_ts, self.block) = (time, last_ts, None);
        (self.entry, self.read) = (spot, 0);
        (self.paused, self.resumed) = (false, false);
    }
}

fn reader_at(file: &Arc<File>, offset: u64) -> ahr::Reader<Empty> {
    Blocks::open(file.clone(), offset, Arc::default()).into_records()
}

/// A recording in any other format.
pub(super) struct Other {
    source: Source,
    reader: Box<dyn EventReader>,
    count: u64,
    off: Offset,
    items: u64,
    notes: Once,
}

impl Other {
    pub(super) fn open(source: &Source) -> Result<Self, PlayError> {
        let reader = source.open()?;
        Ok(Self {
            source: source.clone(),
            reader,
            count: 0,
            off: Offset(0),
            items: 0,
            notes: Once::default(),
        })
    }

    pub(super) fn reader(&self) -> &dyn EventReader {
        &*self.reader
    }

    /// Remarks of the reader so far.
    pub(super) fn notes(&self) -> u64 {
        self.notes.count
    }

    fn next(&mut self) -> Result<Option<Got>, PlayError> {
        loop {
            let item = self.reader.next_item().map_err(|why| self.source.read_error(why))?;
            self.items += 1;
            let event = match item {
                None => return Ok(None),
                Some(Item::Note(_)) => {
                    self.notes.met(self.items);
                    continue;
                }
                Some(Item::Event(event)) => event,
            };
            let spot = Some(Spot::Events { count: self.count, off: self.off });
            self.count += 1;
            let off = self.off;
            let kind = match event.kind {
                Kind::Output(bytes) => {
                    self.off += bytes.len();
                    Kind::Output(bytes)
                }
                Kind::Lost(bytes) => {
                    self.off = self.off + bytes;
                    continue;
                }
                kind @ (Kind::Resize(_) | Kind::Input(_) | Kind::Exit(_)) => kind,
                _ => continue,
            };
            return Ok(Some(Got { at: event.time, off, event: kind, after_pause: false, spot }));
        }
    }

    fn go_to(&mut self, spot: Spot) -> Result<(), PlayError> {
        let (count, off) = match spot {
            Spot::Events { count, off } => (count, off),
            _ => (0, Offset(0)),
        };
        self.reader = self.source.open()?;
        (self.count, self.off, self.items) = (0, off, 0);
        // Passing events over is much faster than showing them to the model again.
        while self.count < count {
            match self.reader.next_item().map_err(|why| self.source.read_error(why))? {
                None => break,
                Some(Item::Event(_)) => self.count += 1,
                Some(Item::Note(_)) => {}
            }
            self.items += 1;
        }
        Ok(())
    }
}
