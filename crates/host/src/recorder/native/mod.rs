//! The native recorder: turns the log's events into records, and tells of the session in parts. It
//! sleeps until a block's worth is pending or its block is old enough.

use std::io::BufReader;
use std::path::Path;
use std::vec::Drain;

use tapdeck_core::{
    Entry, Event, Exit, Instruction, Lag, Offset, ReaderId, Seq, Stamp, Stream, WallTime, WinSize,
};
use tapdeck_tape::ahr::parts::EVENTS;
use tapdeck_tape::ahr::{BLOCK_LIMIT, BlockBuilder, Mark, Record, labels_of};
use tapdeck_tape::meta::{self, Meta};
use tapdeck_tape::scrub::scrub_line;

use super::file::RecordingFile;
use super::live::{Indexing, LiveIndex};
use super::scrub::Held;
use super::seal::Sealing;
use super::snapshots::Snapshots;
use super::{BLOCK_AGE, RecordOptions, RecorderTap, Report, events};
use crate::clock::Clock;
use crate::inbox::Anchor;
use crate::shared::SharedLog;
use crate::source::Source;
use crate::tap::{Tap, Wake};

mod blocks;
mod parts;

use blocks::Disk;
use parts::Pending;

/// A native recording in the making.
pub(super) struct NativeTap {
    file: RecordingFile,
    log: SharedLog,
    reader: ReaderId,
    clock: Clock,
    options: RecordOptions,
    meta: Meta,
    builder: BlockBuilder,
    base_off: u64,
    stream: Stream,
    size: WinSize,
    /// Time of the newest record.
    last_ts: u64,
    /// Whether output at full speed is worth compressing, and how many blocks of it there were.
    shrinks: bool,
    hurried: u32,
    disk: Disk,
    /// Output in the block in hand, and output that the disk refused since it last took something.
    in_block: u64,
    refused: u64,
    parts: Pending,
    /// Why the last block was not written, since this was last asked for.
    refusal: Option<String>,
    snapshots: Snapshots,
    /// The number of the last marker.
    markers: u32,
    pub(super) seal: Option<Sealing>,
    /// What is held back to be scrubbed.
    pub(super) held: Option<Held>,
    index: Indexing,
    /// The block in hand was filled by a program in a hurry.
    hurry: bool,
    /// The session is over: whatever can still be written is tried at once.
    closing: bool,
    /// How the program ended, and whether the block with that was refused.
    ending: Option<Mark>,
    ending_refused: bool,
    /// What is known of the recording so far.
    report: Report,
}

impl NativeTap {
    pub(super) fn new(
        file: RecordingFile,
        log: SharedLog,
        reader: ReaderId,
        clock: Clock,
        options: RecordOptions,
        meta: Meta,
    ) -> Self {
        let base_off = file.start_off();
        let is_encrypted = options.encrypt.is_some();
        let snapshots = Snapshots::new(log.clone(), reader);
        // The index is made from the blocks on disk, for which the recorder has no key.
        let when = if is_encrypted { LiveIndex::Off } else { options.index };
        let index = Indexing::new(&file, when, meta.pipes);
        let place = (file.written() > 0).then(|| file.place());
        let report = Report::nothing(file.path().to_owned());
        let markers = if file.written() > 0 { last_marker(file.path()) } else { 0 };
        Self {
            file,
            log,
            reader,
            clock,
            options,
            meta,
            builder: BlockBuilder::new(base_off),
            base_off,
            stream: Stream::Out,
            size: WinSize::default(),
            last_ts: 0,
            shrinks: true,
            hurried: 0,
            disk: Disk::Fine,
            in_block: 0,
            refused: 0,
            parts: Pending::behind(place),
            refusal: None,
            snapshots,
            markers,
            seal: None,
            held: None,
            index,
            hurry: false,
            closing: false,
            ending: None,
            ending_refused: false,
            report,
        }
    }

    /// The recording begins in the middle of the session, at this byte and time, in this size.
    pub(super) fn begin_late(&mut self, from: Offset, at: WallTime, size: WinSize) {
        self.builder = BlockBuilder::new(self.base_off + from.0);
        self.size = size;
        self.meta.extra.insert("firstByte", from.0);
        let size = size.or_default();
        self.push(Record::resize(at.as_nanos(), size.into()));
    }

    /// When the block in hand is old enough to be written.
    fn block_due(&self) -> Option<WallTime> {
        self.builder.first_ts().map(|first| WallTime::from_nanos(first) + BLOCK_AGE)
    }

    /// Takes what has been held back long enough, or all of it.
    fn release(&mut self, now: WallTime, all: bool) {
        if let Some(held) = &mut self.held {
            let entries = held.release(now, all);
            self.take_all(entries.into_iter());
        }
    }

    fn take_all(&mut self, entries: impl Iterator<Item = Entry>) {
        let mut entries = entries.peekable();
        while let Some(entry) = entries.next() {
            self.take_entry(entry);
            // Those that came together share a block and a sync; what follows them does not.
            let is_awaited = |e: &Entry| matches!(e.event, Event::Snapshot { .. } | Event::Instruction(_));
            let more = entries.peek().is_some_and(is_awaited);
            if !more && self.snapshots.waiting() {
                self.commit_snapshots();
            }
        }
    }

    fn take_entry(&mut self, entry: Entry) {
        let ts = entry.at.wall.as_nanos();
        match entry.event {
            Event::Output { stream, bytes } => {
                if stream != self.stream {
                    self.stream = stream;
                    self.push(Record::mark(ts, Mark::Stream(if stream == Stream::Out { 1 } else { 2 })));
                }
                self.report.output_bytes += bytes.len() as u64;
                self.push(Record::data(ts, self.base_off + entry.offset.0, bytes));
            }
            Event::Input { bytes, hidden, .. } if self.options.input.keeps(hidden) => {
                self.push(Record::input(ts, bytes));
            }
            Event::Input { bytes, .. } if self.options.input.any() => {
                let n = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                self.push(Record::mark(ts, Mark::InputLag(n)));
            }
            Event::Resize(size) => {
                self.size = size;
                let size = size.or_default();
                self.push(Record::resize(ts, size.into()));
            }
            Event::Holder(change) => {
                self.push(Record::mark(ts, Mark::Stick(change.fence.0 as u32)));
                self.write_event(&events::holder(ts, &change));
            }
            Event::Snapshot { id, label, tree } => {
                if !self.snapshots.waiting() {
                    self.refusal = None;
                }
                let anchor = Anchor { byte: entry.offset + self.base_off, at: entry.at.wall };
                self.snapshots.add(entry.seq, anchor, &events::snapshot(ts, id, &label, anchor.byte.0));
                self.push(Record::snapshot(ts, id, anchor.byte.0, &*label));
                if let Some(tree) = tree {
                    self.write_event(&events::tree(ts, id, anchor.byte.0, &tree));
                }
            }
            Event::Instruction(asked) => {
                self.take_instruction(&asked, entry.seq, entry.offset, entry.at.wall)
            }
            Event::Marker { label, by } => {
                self.markers += 1;
                self.push(Record::mark(ts, Mark::Label(self.markers)));
                self.write_event(&events::marker(ts, self.markers, &label, &by));
            }
            Event::RecordingPaused { by } => {
                self.push(Record::mark(ts, Mark::Paused));
                self.write_event(&events::paused(ts, &by));
            }
            Event::RecordingResumed { by, redraw, .. } => {
                let drawn = u32::try_from(redraw.len()).unwrap_or(u32::MAX);
                self.push(Record::mark(ts, Mark::Resumed(drawn)));
                self.write_event(&events::resumed(ts, &by));
            }
            Event::TurnStarted { number, .. } => self.push(Record::mark(ts, Mark::TurnStart(number))),
            Event::TurnEnded(turn) => {
                self.push(Record::mark(ts, Mark::TurnEnd(turn.number)));
                self.write_event(&events::turn(ts, self.base_off, &turn));
            }
            Event::State(judgement) => self.write_event(&events::state(ts, &judgement)),
            Event::Decided(decision) => self.write_event(&events::question(ts, &decision)),
            Event::FilesNotKept(why) => self.write_event(&events::files_not_kept(ts, &why)),
            Event::Conversation { agent, id } => self.write_event(&events::conversation(ts, &agent, &id)),
            Event::Suspended => self.push(Record::mark(ts, Mark::ChildSuspended)),
            Event::Resumed => self.push(Record::mark(ts, Mark::ChildResumed)),
            Event::Exit(exit) => {
                let mark = match exit {
                    Exit::Code(code) => Mark::Exit(code.cast_unsigned()),
                    Exit::Signal(signal) => Mark::Signal(signal.cast_unsigned()),
                };
                self.push(Record::mark(ts, mark));
                self.ending = Some(mark);
                self.meta.exit = Some(match exit {
                    Exit::Code(code) => meta::Exit::Code(code),
                    Exit::Signal(signal) => meta::Exit::Signal(signal),
                });
                self.meta.ended_at = Some(entry.at.wall);
            }
            _ => {}
        }
    }

    fn push(&mut self, record: Record) {
        self.last_ts = record.ts_ns;
        let mut rest = Some(record);
        while let Some(record) = rest {
            let before = self.builder.byte_off();
            rest = self.builder.push(record);
            self.in_block += self.builder.byte_off() - before;
            if self.builder.is_full() {
                self.write_block(false);
            }
        }
    }

    /// Takes an instruction, which stands behind no more than has been written.
    fn take_instruction(&mut self, asked: &Instruction, seq: Seq, written: Offset, at: WallTime) {
        if !self.snapshots.waiting() {
            self.refusal = None;
        }
        let written = written + self.base_off;
        let byte = asked.anchor.map_or(written, |anchor| written.min(Offset(anchor)));
        let line = tapdeck_tape::Instruction::recorded(asked, byte, at).to_line();
        let scrubbed = self.held.as_mut().map(|held| scrub_line(&line, held.scrubber()));
        self.snapshots.add_instruction(seq, Anchor { byte, at }, scrubbed.as_deref().unwrap_or(&line));
    }

    /// Puts the snapshots and instructions in hand on disk, and only then answers their callers.
    fn commit_snapshots(&mut self) {
        self.write_block(false);
        let lines = self.snapshots.take_lines();
        if self.refusal.is_none() {
            self.write_event(&lines.events);
            let kept = self.write_instructions(&lines.instructions);
            self.sync();
            if !kept {
                self.refusal =
                    Some(self.report.trouble.clone().unwrap_or_else(|| "the disk takes none".into()));
            }
        }
        let refusal = match (&self.refusal, &self.disk) {
            (Some(refusal), _) => Some(refusal.clone()),
            (None, Disk::Broken) => {
                Some(self.report.trouble.clone().unwrap_or_else(|| "it cannot be relied on".into()))
            }
            (None, _) => None,
        };
        if let Some(why) = &refusal {
            self.note_trouble(why.clone());
        }
        self.snapshots.commit(refusal);
    }
}

/// The number of the last marker in a recording that is continued.
fn last_marker(recording: &Path) -> u32 {
    let events = Source::find(recording, None, None).ok().and_then(|source| source.sidecar(EVENTS));
    let labels = events.and_then(|events| labels_of(BufReader::new(events)).ok());
    labels.and_then(|labels| labels.last_key_value().map(|(n, _)| *n)).unwrap_or(0)
}

impl Tap for NativeTap {
    fn started(&mut self, _now: Stamp) {
        self.describe();
    }

    fn take(&mut self, entries: Drain<'_, Entry>, now: Stamp) {
        if let Some(held) = &mut self.held {
            entries.for_each(|entry| held.push(entry, now.wall));
            self.release(now.wall, false);
        } else {
            self.take_all(entries);
        }
    }

    fn lagged(&mut self, lag: &Lag, now: Stamp) {
        self.log.answer_lost(lag);
        let lost = lag.bytes();
        // What was held back comes before the gap.
        self.release(WallTime::MAX, true);
        if let Some(held) = &mut self.held {
            held.lost(lost);
        }
        self.report.lost_bytes += lost;
        self.report.output_bytes += lost;
        self.note_trouble("the disk was too slow");
        for piece in Mark::pieces(lost) {
            self.push(Record::mark(now.wall.as_nanos(), Mark::OutputLag(piece)));
        }
    }

    fn next_wake(&self, now: Stamp) -> Wake {
        let held = self.held.as_ref().and_then(Held::due);
        let block = self.block_due();
        let parts = self.parts.due();
        let Some(due) = held.into_iter().chain(block).chain(parts).min() else { return Wake::default() };
        let weight = BLOCK_LIMIT.saturating_sub(self.builder.len());
        Wake { weight, after: Some(due.since(now.wall)) }
    }

    fn due(&mut self, now: Stamp) {
        self.release(now.wall, false);
        if self.block_due().is_some_and(|due| now.wall >= due) {
            self.write_block(false);
        }
        if self.parts.due().is_some_and(|due| now.wall >= due) {
            self.write_parts();
        }
    }

    fn flush(&mut self, now: Stamp) {
        self.release(now.wall, true);
        self.write_block(false);
        self.write_parts();
        self.sync();
    }

    fn closed(&mut self, now: Stamp) {
        self.release(now.wall, true);
        self.closing = true;
        self.write_block(true);
        self.close_parts();
        self.report.duration = self.clock.elapsed();
        self.log.note_recording(self.file.path(), true, self.report.trouble.as_ref());
    }
}

impl RecorderTap for NativeTap {
    fn report(self: Box<Self>) -> Report {
        let scrubbed = self.held.as_ref().map(Held::report);
        Report { file_bytes: self.file.written(), scrubbed, ..self.report }
    }
}
