//! The native recorder: turns the log's events into records, and tells of the session in the
//! sidecars. It sleeps until a block's worth is pending or its block is old enough.

use std::io::{self, BufReader, Write};
use std::path::Path;
use std::vec::Drain;

use tapdeck_core::{Entry, Event, Exit, Lag, Offset, ReaderId, Stamp, Stream, WallTime, WinSize};
use tapdeck_tape::ahr::{BLOCK_LIMIT, BlockBuilder, Mark, Record, labels_of};
use tapdeck_tape::meta::{self, Meta};
use tapdeck_tape::scrub::{scrub_line, scrub_meta};

use super::file::{RecordingFile, sidecar};
use super::live::{Indexing, LiveIndex};
use super::scrub::Held;
use super::seal::{SEALED_SIDECARS, Sealing};
use super::sidecars::Sidecars;
use super::snapshots::{Snapshots, end_line, open_lines};
use super::{BLOCK_AGE, RecordOptions, RecorderTap, Report, events};
use crate::clock::Clock;
use crate::disk::DiskFile;
use crate::inbox::Anchor;
use crate::out_file::OutFile;
use crate::shared::SharedLog;
use crate::source::Source;
use crate::tap::{Tap, Wake};

mod blocks;

use blocks::Disk;

/// A native recording in the making.
pub(super) struct NativeTap {
    file: RecordingFile,
    sidecars: Sidecars,
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
    events: Option<DiskFile>,
    /// Lines for the events' file that are written with the block in hand, and the time of the
    /// oldest.
    pending_events: Vec<u8>,
    pending_since: Option<WallTime>,
    /// `meta.json` has been written.
    described: bool,
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
        sidecars: Sidecars,
        log: SharedLog,
        reader: ReaderId,
        clock: Clock,
        options: RecordOptions,
        meta: Meta,
    ) -> Self {
        let base_off = file.start_off();
        let is_encrypted = options.encrypt.is_some();
        let snapshots = Snapshots::new(&file, log.clone(), reader, !is_encrypted);
        // Keyframes are screens in the clear.
        let when = if is_encrypted { LiveIndex::Off } else { options.index };
        let index = Indexing::new(&file, sidecars.path("ahx"), when, meta.pipes);
        let report = Report::nothing(file.path().to_owned());
        let markers = if file.written() > 0 { last_marker(file.path()) } else { 0 };
        Self {
            file,
            sidecars,
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
            events: None,
            pending_events: Vec::new(),
            pending_since: None,
            described: false,
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
        self.push_meta();
    }

    /// When the block in hand is old enough to be written.
    fn block_due(&self) -> Option<WallTime> {
        self.builder.first_ts().map(|first| WallTime::from_nanos(first) + BLOCK_AGE)
    }

    /// When the lines of the events' file are old enough to be written.
    fn events_due(&self) -> Option<WallTime> {
        self.pending_since.map(|since| since + BLOCK_AGE)
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
            // Snapshots that came together share a block and a sync; what follows them does not.
            let more = entries.peek().is_some_and(|e| matches!(e.event, Event::Snapshot { .. }));
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
                if !self.described {
                    self.push_meta();
                }
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
                self.snapshots.add(entry.seq, id, &label, anchor);
                self.push(Record::snapshot(ts, id, anchor.byte.0, &*label));
                if let Some(tree) = tree {
                    self.write_event(&events::tree(ts, id, anchor.byte.0, &tree));
                }
            }
            Event::Marker { label, by } => {
                self.markers += 1;
                self.push(Record::mark(ts, Mark::Label(self.markers)));
                self.write_event(&events::marker(ts, self.markers, &label, &by));
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

    /// Puts the snapshots in hand on disk, record and line, and only then answers their callers.
    fn commit_snapshots(&mut self) {
        self.write_block(false);
        if self.refusal.is_none() {
            self.sync();
        }
        let refusal = match (&self.refusal, &self.disk) {
            (Some(refusal), _) => Some(refusal.clone()),
            (None, Disk::Broken) => {
                Some(self.report.trouble.clone().unwrap_or_else(|| "it cannot be relied on".into()))
            }
            (None, _) => None,
        };
        if let Err(trouble) = self.snapshots.commit(refusal) {
            self.note_trouble(trouble);
        }
    }

    fn write_meta(&mut self) {
        let path = match self.closing {
            true => sidecar(self.file.path(), "meta.json"),
            false => self.sidecars.path("meta.json"),
        };
        if let Some(seal) = &self.seal
            && let Err(e) = seal.sign(self.file.path(), &mut self.meta, self.closing)
        {
            self.note_trouble(format!("the seal could not be written: {e}"));
        }
        let told =
            if self.options.encrypt.is_some() { self.meta.without_content() } else { self.meta.clone() };
        let written = told.to_bytes().map_err(io::Error::other).and_then(|b| OutFile::replace(&path, &b));
        if let Err(e) = written {
            self.note_trouble(format!("{}: {e}", path.display()));
        }
    }

    fn write_event(&mut self, line: &str) {
        let scrubbed = self.held.as_mut().map(|h| scrub_line(line.as_bytes(), h.scrubber()));
        if self.options.encrypt.is_some() {
            let line = scrubbed.unwrap_or_else(|| line.as_bytes().to_vec());
            self.push(Record::sidecar(self.last_ts, "events.jsonl", line));
            return;
        }
        self.pending_events.extend_from_slice(scrubbed.as_deref().unwrap_or(line.as_bytes()));
        self.pending_since.get_or_insert_with(|| self.clock.now().wall);
    }

    /// Puts what an encrypted recording says of the program into the recording itself.
    fn push_meta(&mut self) {
        // A recording that is continued has it from the first time.
        if self.options.encrypt.is_none() || self.base_off > 0 {
            return;
        }
        match self.meta.to_line() {
            Ok(line) => self.push(Record::sidecar(self.last_ts, "meta.json", line)),
            Err(e) => self.note_trouble(format!("the recording could not be described: {e}")),
        }
    }

    /// Puts files that were made elsewhere beside the recording.
    fn publish(&mut self, suffixes: &[&str]) {
        for suffix in suffixes {
            if let Err(e) = self.sidecars.publish(suffix) {
                let path = sidecar(self.file.path(), suffix);
                self.note_trouble(format!("{}: {e}", path.display()));
            }
        }
    }

    /// Writes what goes with the recording.
    pub(super) fn write_beside(&mut self) {
        if !self.described {
            self.described = true;
            self.write_meta();
        }
        self.pending_since = None;
        let lines = std::mem::take(&mut self.pending_events);
        if lines.is_empty() {
            return;
        }
        if self.events.is_none() {
            let opened = open_lines(&self.sidecars.path("events.jsonl"));
            self.events = opened.and_then(|mut file| end_line(&mut file).map(|()| file)).ok();
        }
        let written = self.events.as_mut().map(|f| f.write_all(&lines));
        if !matches!(written, Some(Ok(()))) {
            self.note_trouble("the events' file could not be written");
        }
    }
}

/// The number of the last marker in a recording that is continued.
fn last_marker(recording: &Path) -> u32 {
    let events = Source::find(recording, None, None).ok().and_then(|source| source.sidecar("events.jsonl"));
    let labels = events.and_then(|events| labels_of(BufReader::new(events)).ok());
    labels.and_then(|labels| labels.last_key_value().map(|(n, _)| *n)).unwrap_or(0)
}

impl Tap for NativeTap {
    fn take(&mut self, entries: Drain<'_, Entry>, now: Stamp) {
        if let Some(held) = &mut self.held {
            entries.for_each(|entry| held.push(entry));
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
        let events = self.events_due();
        let Some(due) = held.into_iter().chain(block).chain(events).min() else { return Wake::default() };
        let weight = BLOCK_LIMIT.saturating_sub(self.builder.len());
        Wake { weight, after: Some(due.since(now.wall)) }
    }

    fn due(&mut self, now: Stamp) {
        self.release(now.wall, false);
        if self.block_due().is_some_and(|due| now.wall >= due) {
            self.write_block(false);
        }
        if self.events_due().is_some_and(|due| now.wall >= due) {
            self.write_beside();
        }
    }

    fn flush(&mut self, now: Stamp) {
        self.release(now.wall, true);
        self.write_block(false);
        self.write_beside();
        self.sync();
    }

    fn closed(&mut self, now: Stamp) {
        self.release(now.wall, true);
        self.closing = true;
        if let Some(held) = &mut self.held {
            // What was learned since the session began may stand in its command line.
            scrub_meta(&mut self.meta, held.scrubber());
            self.push_meta();
        }
        self.write_block(true);
        // It is described below, when everything about it is known.
        self.described = true;
        self.write_beside();
        self.sync();
        if self.report.trouble.is_none() {
            self.report.trouble = self.file.tampering().map(Into::into);
        }
        self.meta.sha256 = Some(self.file.digest());
        self.publish(&SEALED_SIDECARS);
        self.publish(&["seal"]);
        self.write_meta();
        self.report.index_trouble = self.index.finish();
        self.publish(&["ahx"]);
        self.sidecars.finish();
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
