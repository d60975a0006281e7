//! Opening a recording at a moment: the nearest keyframe before it, then the records in between.

use std::io::{Read, Seek, SeekFrom};
use std::time::Duration;

use tapdeck_core::Time;
use tapdeck_term::{Settings, Size, Term};

use super::{Index, Keyframe};
use crate::ahr::{BlockReader, Body, Item, Reader, Record};
use crate::event::clamp_size;
use crate::{Error, FilePosition, Result};

/// A moment to go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Everything up to and including that time.
    Time(Time),
    /// So many bytes of output.
    Byte(u64),
}

/// A recording that can be opened anywhere.
#[derive(Debug)]
pub struct Seeker<R, I> {
    recording: R,
    index: Option<(Index, I)>,
    scrollback: usize,
}

/// The recording at a moment, ready to go on.
#[derive(Debug)]
pub struct Playhead<R> {
    /// The screen.
    pub term: Term,
    /// When the last record was that it has seen, since the start.
    pub time: Time,
    /// How much the program had written.
    pub byte_off: u64,
    reader: Reader<R>,
    last_ts: Option<u64>,
    /// A record that was read but lies beyond the target, or the part of it that does.
    ahead: Option<Record>,
}

impl<R: Read + Seek, I: Read + Seek> Seeker<R, I> {
    /// With an index that was checked against the recording, and its file; or with none.
    pub fn new(recording: R, index: Option<(Index, I)>, scrollback: usize) -> Self {
        Self { recording, index, scrollback }
    }

    /// The index, if there is one.
    pub fn index(&self) -> Option<&Index> {
        self.index.as_ref().map(|(index, _)| index)
    }

    /// Goes to a moment. A keyframe that turns out damaged is passed over for the one before it.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn seek(&mut self, target: Target) -> Result<Playhead<&mut R>> {
        let mut head = None;
        if let Some((index, file)) = &mut self.index {
            let before = |k: &Keyframe| match target {
                Target::Time(t) => k.time < t,
                Target::Byte(b) => k.byte_off <= b,
            };
            let mut n = index.keyframes.partition_point(before);
            while n > 0 && head.is_none() {
                n -= 1;
                let keyframe = index.keyframes[n];
                if let Ok(dump) = index.dump(file, &keyframe) {
                    head = Some((keyframe, dump));
                }
            }
        }
        let settings = Settings::default().scrollback(self.scrollback).replies(false);
        let (offset, time, byte_off, last_ts, term) = match head {
            Some((k, dump)) => {
                let mut term = Term::new(k.size, settings);
                // Provenance of what the dump draws is not known any more; it is all before this
                // point.
                term.feed_at(&dump, k.byte_off.saturating_sub(dump.len() as u64));
                (k.block_offset, k.time, k.byte_off, Some(k.last_ts), term)
            }
            None => (0, Time::ZERO, 0, None, Term::new(Size::default(), settings)),
        };
        self.recording
            .seek(SeekFrom::Start(offset))
            .map_err(|source| Error::Read { at: FilePosition::Byte(offset), source })?;
        let reader = Reader::over(BlockReader::starting_at(&mut self.recording, offset));
        let mut head = Playhead { term, time, byte_off, reader, last_ts, ahead: None };
        head.advance(target)?;
        Ok(head)
    }
}

impl<R: Read> Playhead<R> {
    /// Goes on to a later moment.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn advance(&mut self, target: Target) -> Result<()> {
        while let Some(record) = self.next_record()? {
            let last = self.last_ts.unwrap_or(record.ts_ns);
            let time = self.time + Duration::from_nanos(record.ts_ns.saturating_sub(last));
            let record = match target {
                Target::Time(t) if time > t => {
                    self.ahead = Some(record);
                    return Ok(());
                }
                Target::Time(_) => record,
                Target::Byte(limit) => match split(record, limit) {
                    (Some(record), None) => record,
                    (now, later) => {
                        self.ahead = later;
                        if let Some(record) = now {
                            self.take(record);
                        }
                        return Ok(());
                    }
                },
            };
            self.take(record);
        }
        Ok(())
    }

    /// The next record without showing it; for callers that go on by themselves.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub(crate) fn next_record(&mut self) -> Result<Option<Record>> {
        if let Some(record) = self.ahead.take() {
            return Ok(Some(record));
        }
        loop {
            match self.reader.next_item()? {
                Some(Item::Record(record)) => return Ok(Some(record)),
                Some(Item::Damage(_)) => {}
                None => return Ok(None),
            }
        }
    }

    /// Shows a record.
    pub fn take(&mut self, record: Record) {
        let last = self.last_ts.replace(record.ts_ns).unwrap_or(record.ts_ns);
        self.time += Duration::from_nanos(record.ts_ns.saturating_sub(last));
        match record.body {
            Body::Data { off, bytes } => {
                self.term.feed_at(&bytes, off);
                self.byte_off = off.saturating_add(bytes.len() as u64);
            }
            Body::Resize(size) => {
                self.term.resize(clamp_size(size.cols.into(), size.rows.into()));
            }
            _ => {}
        }
    }
}

/// Parts a record at an offset in the output: what is before, and what is not.
fn split(record: Record, limit: u64) -> (Option<Record>, Option<Record>) {
    let Body::Data { off, bytes } = &record.body else {
        return (Some(record), None);
    };
    let end = off.saturating_add(bytes.len() as u64);
    if end <= limit {
        return (Some(record), None);
    }
    if *off >= limit {
        return (None, Some(record));
    }
    let cut = (limit - off) as usize;
    let before = Record::data(record.ts_ns, *off, bytes.slice(..cut));
    let after = Record::data(record.ts_ns, limit, bytes.slice(cut..));
    (Some(before), Some(after))
}
