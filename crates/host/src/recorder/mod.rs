//! The recorder: a reader of the log, on a thread of its own, that turns events into blocks on disk.
//!
//! It is the one lossless reader. It sleeps until a block's worth is pending or the block in hand is old
//! enough, so the path between program and terminal never pays for compression or disk. When the program
//! writes faster than the compressor likes, blocks are compressed less; when the disk refuses, the session goes
//! on, the loss is counted, written down where it can be, and reported once at the end.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use tapdeck_core::{Entry, Event, Exit, Lag, ReaderId, ReaderKind, Stream, WinSize};
use tapdeck_tape::ahr::{BLOCK_LIMIT, BlockBuilder, Mark, Quality, Record};
use tapdeck_tape::meta::{self, Meta};
use tapdeck_tape::scrub::{scrub_line, scrub_meta};
use tapdeck_tape::seal::SealKey;
use tapdeck_tape::{Format, Losses};

use crate::clock::Clock;
use crate::inbox::Anchor;
use crate::shared::{SharedLog, Woken};

mod events;
mod file;
mod live;
mod name;
mod other;
mod scrub;
mod seal;
mod snapshots;

use file::replace_file;
pub use file::{CreateError, IfExists, RecordingFile, file_digest, forget_sidecars, sidecar};
use live::Indexing;
pub use live::LiveIndex;
pub use name::{calendar, default_path, state_folder};
use other::OtherTask;
pub use other::can_record;
use scrub::Held;
pub use seal::SEALED_SIDECARS;
use seal::Sealing;
use snapshots::Snapshots;
pub use snapshots::append_lines;

/// A block is closed this long after its first record, so that it is on disk within 250 ms.
const BLOCK_AGE_NS: u64 = 180_000_000;
/// Blocks that fill up faster than these times come from a program in a hurry, and are compressed less.
const HURRY: [(u64, Quality); 2] = [(8_000_000, Quality::Brotli(0)), (100_000_000, Quality::Brotli(1))];
/// At full speed only output that shrinks to less than this many percent is compressed; every so many blocks it is
/// tried.
const WORTH_IT_PERCENT: usize = 28;
const TRY_EVERY: u32 = 8;
/// With this much pending even that is too slow, and blocks are stored as they are.
const STORE_PENDING: usize = 6 << 20;
/// After the disk was full, how long before it is tried again.
const RETRY_NS: u64 = 1_000_000_000;

/// What to record, and what to say about it.
#[derive(Debug, Clone)]
pub struct RecordOptions {
    /// Brotli quality, 0 to 11.
    pub quality: u8,
    /// Record what is typed as well.
    pub input: bool,
    /// The command line.
    pub argv: Vec<OsString>,
    /// The folder that it runs in.
    pub cwd: Option<PathBuf>,
    /// A title for people.
    pub title: Option<String>,
    /// Where snapshots are announced.
    pub ipc: Option<String>,
    /// The key to seal it with; native recordings only.
    pub seal: Option<SealKey>,
    /// When its index is written; native recordings only.
    pub index: LiveIndex,
    /// What is to be masked before it is written.
    pub scrub: Option<std::sync::Arc<tapdeck_core::scrub::Rules>>,
}

/// What became of a recording.
#[derive(Debug)]
pub struct Report {
    /// Where it is.
    pub path: PathBuf,
    /// Its length on disk.
    pub file_bytes: u64,
    /// Bytes of output in this session.
    pub output_bytes: u64,
    /// How long the session lasted.
    pub duration: Duration,
    /// Bytes of output that are not in the file.
    pub lost_bytes: u64,
    /// What went wrong, in a sentence; `None` when all is well.
    pub trouble: Option<String>,
    /// What the format could not carry.
    pub losses: Losses,
    /// Why there is no index, or less of one; that costs nothing but time.
    pub index_trouble: Option<String>,
    /// What was masked, where that was asked for.
    pub scrubbed: Option<tapdeck_core::scrub::Report>,
}

impl Report {
    fn nothing(path: PathBuf) -> Self {
        Self {
            path,
            file_bytes: 0,
            output_bytes: 0,
            duration: Duration::ZERO,
            lost_bytes: 0,
            trouble: None,
            losses: Losses::default(),
            scrubbed: None,
            index_trouble: None,
        }
    }
}

/// A recorder at work.
pub struct Recorder {
    thread: JoinHandle<Report>,
    path: PathBuf,
    log: SharedLog,
    reader: ReaderId,
}

impl Recorder {
    /// Starts recording what the log holds and will hold.
    pub fn start(
        file: RecordingFile,
        log: SharedLog,
        clock: Clock,
        options: RecordOptions,
        size: WinSize,
    ) -> io::Result<Self> {
        let reader = log.reader_from_start(ReaderKind::Lossless);
        Self::begin(file, log, reader, clock, options, size, None)
    }

    /// Starts recording a session that runs already, with as much of its past as the log still holds. Says where in
    /// the session's output the recording begins.
    pub fn start_late(
        file: RecordingFile,
        log: SharedLog,
        clock: Clock,
        options: RecordOptions,
    ) -> io::Result<(Self, u64)> {
        let (reader, from, at, size) = log.late_reader();
        // With its beginning still in the log, the session's first event gives the size.
        let late =
            (size != WinSize::default()).then(|| (from, at.unwrap_or_else(|| clock.now()).wall_ns, size));
        Ok((Self::begin(file, log, reader, clock, options, size, late)?, from))
    }

    fn begin(
        file: RecordingFile,
        log: SharedLog,
        reader: ReaderId,
        clock: Clock,
        options: RecordOptions,
        size: WinSize,
        late: Option<(u64, u64, WinSize)>,
    ) -> io::Result<Self> {
        let path = file.path().to_owned();
        let builder = std::thread::Builder::new().name("tapdeck-recorder".into());
        if file.container().format != Format::Ahr || file.container().zst {
            let kept = log.clone();
            let task = OtherTask { file, log, reader, clock, options, size };
            return Ok(Self { thread: builder.spawn(move || task.run())?, path, log: kept, reader });
        }
        let mut meta = first_meta(&options, clock, size);
        if file.written() > 0
            && let Ok(bytes) = std::fs::read(sidecar(&path, "meta.json"))
            && let Ok(old) = Meta::from_bytes(&bytes)
        {
            // A recording that is continued began when, where and as it began.
            meta = Meta { exit: None, ended_at_ns: None, sha256: None, ..old };
        }
        meta.extra.remove("ipc");
        if let Some(ipc) = &options.ipc {
            meta.extra.insert("ipc".into(), ipc.as_str().into());
        }
        // Snapshots are announced to one recording of a session, the first.
        if !log.is_recorded() {
            log.set_recorder(reader);
        }
        let seal = options.seal.clone().map(|key| Sealing::begin(&path, key)).transpose()?;
        let kept = log.clone();
        let mut held = options.scrub.clone().map(|rules| Held::new(rules, size, options.input));
        if let Some(held) = &mut held {
            scrub_meta(&mut meta, held.scrubber());
        }
        let mut task = Task::new(file, log, reader, clock, options, meta);
        task.seal = seal;
        if let Some((from, ts, size)) = late {
            if let Some(held) = &mut held {
                held.lost(from);
            }
            task.begin_late(from, ts, size);
        }
        task.held = held;
        let thread = builder.spawn(move || task.run())?;
        Ok(Self { thread, path, log: kept, reader })
    }

    /// Where it records to.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Ends the recording before the session ends.
    pub fn stop(self) -> Report {
        self.log.retire(self.reader);
        self.finish()
    }

    /// Waits until everything is on disk. The log must have been closed.
    pub fn finish(self) -> Report {
        self.thread.join().unwrap_or_else(|_| Report {
            trouble: Some("the recorder broke down; what it had written is whole".into()),
            ..Report::nothing(self.path)
        })
    }
}

fn first_meta(options: &RecordOptions, clock: Clock, size: WinSize) -> Meta {
    let mut meta = Meta::new();
    meta.set_argv(options.argv.iter().map(|a| a.as_bytes()));
    meta.started_at_ns = clock.wall_start_ns();
    meta.cwd = options.cwd.as_ref().map(|p| p.to_string_lossy().into_owned());
    let size = size.or_default();
    (meta.cols, meta.rows) = (size.cols, size.rows);
    meta.brotli_q = Some(options.quality);
    meta.host = Some(meta::Host { os: std::env::consts::OS.into(), arch: std::env::consts::ARCH.into() });
    meta.term = std::env::var("TERM").ok();
    meta.title.clone_from(&options.title);
    meta.tapdeck = Some(env!("CARGO_PKG_VERSION").into());
    meta
}

/// The state of the disk.
enum Disk {
    Fine,
    /// Full; to be tried again at this time.
    Full(u64),
    /// Not to be trusted again.
    Broken,
}

struct Task {
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
    lost: u64,
    output_bytes: u64,
    trouble: Option<String>,
    events: Option<std::fs::File>,
    /// Why the last block was not written, since somebody last asked.
    refusal: Option<String>,
    snapshots: Snapshots,
    seal: Option<Sealing>,
    /// What is held back to be scrubbed.
    held: Option<Held>,
    index: Indexing,
    /// The block in hand was filled by a program in a hurry.
    hurry: bool,
    /// The session is over: whatever can still be written is tried at once.
    closing: bool,
}

impl Task {
    fn new(
        file: RecordingFile,
        log: SharedLog,
        reader: ReaderId,
        clock: Clock,
        options: RecordOptions,
        meta: Meta,
    ) -> Self {
        let base_off = file.start_off();
        let snapshots = Snapshots::new(&file, log.clone(), reader);
        let index = Indexing::new(&file, options.index);
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
            lost: 0,
            output_bytes: 0,
            trouble: None,
            events: None,
            refusal: None,
            snapshots,
            seal: None,
            held: None,
            index,
            hurry: false,
            closing: false,
        }
    }

    /// The recording begins in the middle of the session, at this byte and time, in this size.
    fn begin_late(&mut self, from: u64, ts: u64, size: WinSize) {
        self.builder = BlockBuilder::new(self.base_off + from);
        self.size = size;
        self.meta.extra.insert("firstByte".into(), from.into());
        let size = size.or_default();
        self.push(Record::resize(ts, size.cols, size.rows));
    }

    fn run(mut self) -> Report {
        self.write_meta();
        loop {
            let woken = self.sleep();
            self.take_entries();
            let now = self.clock.now().wall_ns;
            self.release(now, woken != Woken::Ready);
            let old = self.builder.first_ts().is_some_and(|first| now >= first + BLOCK_AGE_NS);
            if old || woken == Woken::Flush {
                self.write_block(false);
            }
            match woken {
                Woken::Ready => {}
                Woken::Flush => {
                    self.sync();
                    self.log.flushed();
                }
                Woken::Closed => break,
            }
        }
        self.finish()
    }

    /// Sleeps until there is enough to do, or the block in hand is old enough.
    fn sleep(&self) -> Woken {
        let held = self.held.as_ref().and_then(Held::due_ns);
        let block = self.builder.first_ts().map(|first| first + BLOCK_AGE_NS);
        let Some(due) = held.into_iter().chain(block).min() else {
            return self.log.wait(self.reader, 1, None);
        };
        let due = due.saturating_sub(self.clock.now().wall_ns);
        let room = BLOCK_LIMIT.saturating_sub(self.builder.len()).max(1);
        self.log.wait(self.reader, room, Some(Duration::from_nanos(due)))
    }

    fn take_entries(&mut self) {
        let mut entries = Vec::new();
        loop {
            if let Some(lag) = self.log.read(self.reader, BLOCK_LIMIT, &mut entries) {
                self.note_lag(&lag);
            }
            if entries.is_empty() {
                return;
            }
            if let Some(held) = &mut self.held {
                entries.drain(..).for_each(|entry| held.push(entry));
                self.release(self.clock.now().wall_ns, false);
            } else {
                self.take_all(entries.drain(..));
            }
        }
    }

    /// Takes what has been held back long enough, or all of it.
    fn release(&mut self, now: u64, all: bool) {
        if let Some(held) = &mut self.held {
            let entries = held.release(now, all);
            self.take_all(entries.into_iter());
        }
    }

    fn take_all(&mut self, entries: impl Iterator<Item = Entry>) {
        let mut entries = entries.peekable();
        while let Some(entry) = entries.next() {
            self.take(entry);
            // Snapshots that came together share a block and a sync; what follows them does not.
            let more = entries.peek().is_some_and(|e| matches!(e.event, Event::Snapshot { .. }));
            if !more && self.snapshots.waiting() {
                self.commit_snapshots();
            }
        }
    }

    fn take(&mut self, entry: Entry) {
        let ts = entry.at.wall_ns;
        match entry.event {
            Event::Output { stream, bytes } => {
                if stream != self.stream {
                    self.stream = stream;
                    self.push(Record::mark(ts, Mark::Stream(if stream == Stream::Out { 1 } else { 2 })));
                }
                self.output_bytes += bytes.len() as u64;
                self.push(Record::data(ts, self.base_off + entry.offset, bytes));
            }
            Event::Input { bytes, .. } if self.options.input => self.push(Record::input(ts, bytes)),
            Event::Resize(size) => {
                self.size = size;
                let size = size.or_default();
                self.push(Record::resize(ts, size.cols, size.rows));
            }
            Event::Driver(change) => {
                self.push(Record::mark(ts, Mark::Stick(change.fence.0 as u32)));
                self.write_event(&events::driver(ts, &change));
            }
            Event::Snapshot { id, label } => {
                if !self.snapshots.waiting() {
                    self.refusal = None;
                }
                let anchor = Anchor { byte: self.base_off + entry.offset, ts_ns: ts };
                self.snapshots.add(entry.seq, id, &label, anchor);
                self.push(Record::snapshot(ts, id, anchor.byte, &*label));
            }
            Event::TurnStarted { number, .. } => self.push(Record::mark(ts, Mark::TurnStart(number))),
            Event::TurnEnded(turn) => {
                self.push(Record::mark(ts, Mark::TurnEnd(turn.number)));
                self.write_event(&events::turn(ts, self.base_off, &turn));
            }
            Event::State(judgement) => self.write_event(&events::state(ts, &judgement)),
            Event::Suspended => self.push(Record::mark(ts, Mark::ChildSuspended)),
            Event::Resumed => self.push(Record::mark(ts, Mark::ChildResumed)),
            Event::Exit(exit) => {
                let mark = match exit {
                    Exit::Code(code) => Mark::Exit(code.cast_unsigned()),
                    Exit::Signal(signal) => Mark::Signal(signal.cast_unsigned()),
                };
                self.push(Record::mark(ts, mark));
                self.meta.exit = Some(match exit {
                    Exit::Code(code) => meta::Exit::Code(code),
                    Exit::Signal(signal) => meta::Exit::Signal(signal),
                });
                self.meta.ended_at_ns = Some(ts);
            }
            _ => {}
        }
    }

    fn note_lag(&mut self, lag: &Lag) {
        self.log.answer_lost(lag);
        let lost = lag.offsets.end - lag.offsets.start;
        // What was held back comes before the gap.
        self.release(u64::MAX, true);
        if let Some(held) = &mut self.held {
            held.lost(lost);
        }
        self.lost += lost;
        self.output_bytes += lost;
        self.trouble.get_or_insert_with(|| "the disk was too slow".into());
        let ts = self.clock.now().wall_ns;
        for piece in Mark::pieces(lost) {
            self.push(Record::mark(ts, Mark::OutputLag(piece)));
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

    /// How hard to compress the block in hand.
    fn quality(&mut self) -> Quality {
        let asked = Quality::Brotli(self.options.quality);
        // The records' own time: ours would count a backlog as leisure.
        let took = self.builder.first_ts().map_or(0, |first| self.last_ts.saturating_sub(first));
        let hurry = HURRY.iter().find(|(filled_in, _)| took < *filled_in);
        self.hurry = self.builder.is_full() && hurry.is_some();
        if !self.builder.is_full() || self.options.quality <= 1 {
            return asked;
        }
        if self.log.pending(self.reader) >= STORE_PENDING {
            return Quality::Stored;
        }
        let Some((_, quality)) = hurry else { return asked };
        // At full speed every processor is busy passing bytes on, and compressing slows the program down. That is
        // worth it only for output that shrinks well; a block now and then shows whether it does.
        self.hurried = self.hurried.wrapping_add(1);
        let worth_it = self.shrinks || self.hurried.is_multiple_of(TRY_EVERY);
        if *quality == Quality::Brotli(0) && !worth_it { Quality::Stored } else { *quality }
    }

    fn write_block(&mut self, last: bool) {
        if self.builder.is_empty() && !last {
            return;
        }
        let now = self.clock.now().wall_ns;
        let output = std::mem::take(&mut self.in_block);
        let try_it = match self.disk {
            Disk::Fine => true,
            // Somebody who waits for an answer is worth another try.
            Disk::Full(retry_at) => self.closing || self.snapshots.waiting() || now >= retry_at,
            Disk::Broken => false,
        };
        let told = if try_it { self.tell_loss(now, output) } else { Err(io::ErrorKind::StorageFull.into()) };
        let quality = self.quality();
        let raw_len = self.builder.len();
        let block = self.builder.finish(quality, last);
        if quality == Quality::Brotli(0) {
            self.shrinks = block.len() * 100 < raw_len * WORTH_IT_PERCENT;
        }
        let written = told.and_then(|()| self.file.write_block(block));
        // Only what reached the disk is sealed.
        if written.is_ok()
            && let Some(Err(e)) = self.seal.as_mut().map(|seal| seal.block(block))
        {
            self.trouble.get_or_insert_with(|| format!("the seal could not be written: {e}"));
        }
        match written {
            Ok(()) => {
                self.disk = Disk::Fine;
                self.index.wrote(self.file.written(), self.builder.byte_off(), self.hurry);
            }
            Err(e) => {
                self.lost += output;
                self.refused += output;
                self.refusal = Some(e.to_string());
                if try_it {
                    self.note_refusal(&e, now);
                }
            }
        }
    }

    fn note_refusal(&mut self, e: &io::Error, now: u64) {
        let may_pass = matches!(e.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        self.disk = if may_pass { Disk::Full(now + RETRY_NS) } else { Disk::Broken };
        self.trouble.get_or_insert_with(|| e.to_string());
    }

    /// Writes down what was lost, and the size that a reader could not know of: in a block of its own before the
    /// one in hand, because a gap that is explained only later, or never, is taken for damage.
    fn tell_loss(&mut self, now: u64, in_hand: u64) -> io::Result<()> {
        if self.refused == 0 {
            return Ok(());
        }
        let ts = self.builder.first_ts().unwrap_or(now);
        let mut builder = BlockBuilder::new(self.builder.byte_off().saturating_sub(in_hand));
        let size = self.size.or_default();
        let marks = Mark::pieces(self.refused).map(|piece| Record::mark(ts, Mark::DiskLoss(piece)));
        for record in marks.chain([Record::resize(ts, size.cols, size.rows)]) {
            // Some hundred small records at most: they fit.
            let _ = builder.push(record);
        }
        let block = builder.finish(Quality::Stored, false);
        self.file.write_block(block)?;
        self.refused = 0;
        if let Some(Err(e)) = self.seal.as_mut().map(|seal| seal.block(block)) {
            self.trouble.get_or_insert_with(|| format!("the seal could not be written: {e}"));
        }
        Ok(())
    }

    fn sync(&mut self) {
        if let Err(e) = self.file.sync() {
            // What a failed sync left behind is unknown, and asking again would say that all is well.
            self.disk = Disk::Broken;
            self.trouble.get_or_insert_with(|| e.to_string());
        }
    }

    /// Puts the snapshots in hand on disk, record and line, and only then says so to whoever took them.
    fn commit_snapshots(&mut self) {
        self.write_block(false);
        if self.refusal.is_none() {
            self.sync();
        }
        let refusal = match (&self.refusal, &self.disk) {
            (Some(refusal), _) => Some(refusal.clone()),
            (None, Disk::Broken) => {
                Some(self.trouble.clone().unwrap_or_else(|| "it cannot be relied on".into()))
            }
            (None, _) => None,
        };
        if let Err(trouble) = self.snapshots.commit(refusal) {
            self.trouble.get_or_insert(trouble);
        }
    }

    fn finish(mut self) -> Report {
        self.closing = true;
        if matches!(self.disk, Disk::Full(_)) {
            // There may be room for the end, and then for what was lost.
            self.write_block(false);
        }
        self.write_block(true);
        self.sync();
        if self.trouble.is_none() {
            self.trouble = self.file.tampering().map(Into::into);
        }
        if let Some(held) = &mut self.held {
            // What was learned since the session began may stand in its command line.
            scrub_meta(&mut self.meta, held.scrubber());
        }
        self.meta.sha256 = Some(self.file.digest());
        self.write_meta();
        self.log.remove_reader(self.reader);
        let index_trouble = self.index.finish();
        Report {
            path: self.file.path().to_owned(),
            file_bytes: self.file.written(),
            output_bytes: self.output_bytes,
            duration: Duration::from_nanos(self.clock.now().mono_ns),
            lost_bytes: self.lost,
            trouble: self.trouble,
            losses: Losses::default(),
            scrubbed: self.held.as_ref().map(Held::report),
            index_trouble,
        }
    }

    fn write_meta(&mut self) {
        let path = sidecar(self.file.path(), "meta.json");
        if let Some(seal) = &self.seal
            && let Err(e) = seal.sign(self.file.path(), &mut self.meta, self.closing)
        {
            self.trouble.get_or_insert_with(|| format!("the seal could not be written: {e}"));
        }
        let written = self.meta.to_bytes().map_err(io::Error::other).and_then(|b| replace_file(&path, &b));
        if let Err(e) = written {
            self.trouble.get_or_insert_with(|| format!("{}: {e}", path.display()));
        }
    }

    fn write_event(&mut self, line: &str) {
        let scrubbed = self.held.as_mut().map(|h| scrub_line(line.as_bytes(), h.scrubber()));
        let line = scrubbed.as_deref().unwrap_or(line.as_bytes());
        if self.events.is_none() {
            let path = sidecar(self.file.path(), "events.jsonl");
            let mut options = OpenOptions::new();
            options.append(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
            self.events = options.open(path).ok();
        }
        let written = self.events.as_mut().map(|f| f.write_all(line));
        if !matches!(written, Some(Ok(()))) {
            self.trouble.get_or_insert_with(|| "the events' file could not be written".into());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn sidecars_stand_beside_the_recording() {
        assert_eq!(sidecar(Path::new("a/demo.ahr"), "meta.json"), Path::new("a/demo.meta.json"));
        assert_eq!(sidecar(Path::new("demo"), "meta.json"), Path::new("demo.meta.json"));
    }
}
