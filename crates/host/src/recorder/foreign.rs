//! Recording straight into a format of others. The rules are those of the native recording: a
//! thread of its own, written within a quarter of a second, whole to the last write. But these
//! formats cannot say that something is missing from their middle. When the disk refuses, the
//! recording ends there and the loss is reported.
//!
//! Unlike the native recording, this one does not make the program wait for a slow disk. Its memory
//! is bounded all the same: the log holds back at most [`LogLimits::cap`](tapdeck_core::LogLimits)
//! (32 MiB), and this tap writes what it has encoded after each piece that it reads. What the disk
//! does not take in time is lost, counted, and reported at the end.

use std::ffi::OsString;
use std::io;
use std::time::Duration;
use std::vec::Drain;

use tapdeck_core::{Entry, Event, Lag, Stamp, Time, WinSize};
use tapdeck_tape::ahr::{AhrWriter, Mark, Quality};
use tapdeck_tape::scrub::scrub_header;
use tapdeck_tape::zst::ZstWriter;
use tapdeck_tape::{EventWriter, Format, Header, Kind, Parts, writer};

use super::failure::refusal;
use super::scrub::Held;
use super::{BLOCK_AGE, KeepInput, RecordOptions, RecorderTap, RecordingFile, Report, stars};
use crate::clock::Clock;
use crate::shared::SharedLog;
use crate::tap::{Tap, Wake};

/// This much is written at once, at the latest.
const CHUNK: usize = 64 * 1024;

/// A recording in a format of others in the making.
pub(super) struct ForeignTap {
    file: RecordingFile,
    log: SharedLog,
    input: KeepInput,
    size: WinSize,
    writer: Box<dyn EventWriter>,
    zst: Option<ZstWriter>,
    parts: Parts,
    /// When the oldest event came that is not written yet, and output among these.
    since: Option<Time>,
    pending: u64,
    broken: bool,
    /// Since when the recording is paused, and how long it was in sum. No format but our own can
    /// tell of a pause, so the others have none of its time.
    pause: Option<Time>,
    paused: Duration,
    /// The last two places where the recording can end, the later one last.
    ends: [End; 2],
    /// What is held back to be scrubbed.
    held: Option<Held>,
    /// What is known of the recording so far.
    report: Report,
}

/// A place where the recording can end.
#[derive(Clone, Default)]
struct End {
    /// Of the file and of the timing file.
    lengths: (u64, u64),
    /// Output between the place before and this one.
    output: u64,
    /// What ends a compressed stream here.
    closing: Vec<u8>,
}

impl ForeignTap {
    /// Begins a recording, with its header in hand.
    pub(super) fn new(
        file: RecordingFile,
        options: &RecordOptions,
        clock: Clock,
        size: WinSize,
        log: SharedLog,
    ) -> io::Result<Self> {
        let container = file.container();
        let size = size.or_default();
        let quality = Quality::Brotli(options.quality);
        let made: Option<Box<dyn EventWriter>> = match container.format {
            Format::Ahr => Some(Box::new(AhrWriter::new(quality))),
            format => writer(format, quality),
        };
        let Some(mut writer) = made else {
            let why = format!("{} cannot be written", container.format);
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        };
        let zst = container.zst.then(|| ZstWriter::new(3)).transpose().map_err(io::Error::other)?;
        let mut held = options.scrub.clone().map(|rules| Held::new(rules, size, options.input.any()));
        let mut first = header(options, clock, size);
        first.pipes = log.is_on_pipes();
        if let Some(held) = &mut held {
            first = scrub_header(&first, held.scrubber());
        }
        let mut parts = Parts::default();
        writer.begin(&first, &mut parts);
        let report = Report::nothing(file.path().to_owned());
        Ok(Self {
            file,
            log,
            input: options.input,
            size,
            writer,
            zst,
            parts,
            since: None,
            pending: 0,
            broken: false,
            pause: None,
            paused: Duration::ZERO,
            ends: Default::default(),
            held,
            report,
        })
    }

    /// Writes what has been held back long enough, or all of it.
    fn release(&mut self, now: Stamp, all: bool) {
        let ready = self.held.as_mut().map(|held| held.release(now.wall, all));
        ready.into_iter().flatten().for_each(|entry| self.push(entry));
    }

    fn push(&mut self, entry: Entry) {
        let kind = match entry.event {
            Event::Output { bytes, .. } => {
                self.report.output_bytes += bytes.len() as u64;
                self.pending += bytes.len() as u64;
                Kind::Output(bytes)
            }
            Event::Input { bytes, hidden, .. } if self.input.keeps(hidden) => Kind::Input(bytes),
            Event::Input { bytes, .. } if self.input.any() => Kind::Input(stars(&bytes)),
            Event::Resize(size) => {
                let size = size.or_default();
                // The first event of a session is its size, which the header has told.
                if std::mem::replace(&mut self.size, size) == size {
                    return;
                }
                Kind::Resize(size.into())
            }
            Event::Marker { label, .. } => Kind::Marker(label.to_string()),
            Event::Exit(exit) => Kind::Exit(exit),
            Event::RecordingPaused { .. } => {
                self.pause = Some(entry.at.mono);
                Mark::Paused.into()
            }
            Event::RecordingResumed { redraw, .. } => {
                let since = self.pause.take().unwrap_or(entry.at.mono);
                self.paused += entry.at.mono.since(since);
                Mark::Resumed(u32::try_from(redraw.len()).unwrap_or(u32::MAX)).into()
            }
            _ => return,
        };
        self.event(entry.at.mono, kind);
    }

    fn event(&mut self, at: Time, kind: Kind) {
        self.since.get_or_insert(at);
        let shown = match self.file.container().format {
            Format::Ahr => at,
            _ => self.pause.unwrap_or(at) - self.paused,
        };
        self.writer.event(&tapdeck_tape::Event::new(shown, kind), &mut self.parts);
    }

    fn write_parts(&mut self) {
        self.writer.flush(&mut self.parts);
        let written = match &mut self.zst {
            _ if self.broken => Ok(()),
            Some(zst) => zst.step(&mut self.parts.main).and_then(|()| {
                self.parts.main.extend(zst.flush()?);
                Ok(())
            }),
            None => Ok(()),
        };
        self.write(written.map_err(io::Error::other));
    }

    fn write(&mut self, ready: io::Result<()>) {
        self.since = None;
        let output = std::mem::take(&mut self.pending);
        let written = ready.and_then(|()| match self.broken {
            true => Err(io::ErrorKind::StorageFull.into()),
            // The timing first: bytes without a time are lost to a reader, a time without bytes is
            // an end.
            false => self
                .file
                .write_beside(&self.parts.timing)
                .and_then(|()| self.file.write_block(&self.parts.main)),
        });
        self.parts.clear();
        match written {
            Ok(()) => {
                let closing = self.zst.as_ref().map(ZstWriter::end_here).unwrap_or_default();
                self.ends.swap(0, 1);
                self.ends[1] = End { lengths: self.file.lengths(), output, closing };
            }
            Err(e) => {
                self.report.lost_bytes += output;
                if !self.broken {
                    self.break_off(&e);
                    self.report.whole = self.end_early();
                }
            }
        }
    }

    /// Ends the recording where the disk did. Where not even the end has room, it takes that of
    /// what came last.
    fn end_early(&mut self) -> bool {
        let [before, last] = std::mem::take(&mut self.ends);
        for end in [last, before] {
            let closing = if self.zst.is_some() { &end.closing[..] } else { &[] };
            let cut = end.lengths.0 > 0 && self.file.cut_to(end.lengths).is_ok();
            if cut && self.file.write_block(closing).is_ok() {
                return true;
            }
            self.report.lost_bytes += end.output;
        }
        false
    }

    fn sync(&mut self) {
        if let Err(e) = self.file.sync() {
            self.break_off(&e);
        }
    }

    /// Writes nothing more from here on.
    fn break_off(&mut self, e: &io::Error) {
        self.broken = true;
        self.report.trouble.get_or_insert_with(|| refusal(e));
        self.log.note_recording(self.file.path(), true, self.report.trouble.as_ref());
    }
}

impl Tap for ForeignTap {
    fn started(&mut self, _now: Stamp) {
        // At once, so that whatever is refused later, the file is a recording.
        self.write_parts();
    }

    fn take(&mut self, entries: Drain<'_, Entry>, now: Stamp) {
        for entry in entries {
            match &mut self.held {
                Some(held) => held.push(entry, now.wall),
                None => self.push(entry),
            }
        }
        self.release(now, false);
        if self.parts.main.len() >= CHUNK {
            self.write_parts();
        }
    }

    fn lagged(&mut self, lag: &Lag, now: Stamp) {
        let lost = lag.bytes();
        // What was held back comes before the gap.
        self.release(now, true);
        if let Some(held) = &mut self.held {
            held.lost(lost);
        }
        self.report.lost_bytes += lost;
        self.report.output_bytes += lost;
        self.report.trouble.get_or_insert_with(|| "the disk was too slow".into());
        self.log.note_recording(self.file.path(), self.broken, self.report.trouble.as_ref());
        self.event(now.mono, Kind::Lost(lost));
    }

    fn next_wake(&self, now: Stamp) -> Wake {
        let write = self.since.map(|since| (since + BLOCK_AGE).since(now.mono));
        let held = self.held.as_ref().and_then(Held::due).map(|at| at.since(now.wall));
        match write.into_iter().chain(held).min() {
            Some(left) => Wake { weight: CHUNK, after: Some(left) },
            None => Wake::default(),
        }
    }

    fn due(&mut self, now: Stamp) {
        self.release(now, false);
        if self.since.is_some_and(|since| now.mono >= since + BLOCK_AGE) {
            self.write_parts();
        }
    }

    fn flush(&mut self, now: Stamp) {
        self.release(now, true);
        self.write_parts();
        self.sync();
    }

    fn closed(&mut self, now: Stamp) {
        self.release(now, true);
        self.writer.finish(&mut self.parts);
        self.write_parts();
        if let Some(zst) = self.zst.take() {
            let end = zst.finish().map(|end| self.parts.main.extend(end));
            self.write(end.map_err(io::Error::other));
        }
        self.sync();
        if self.report.trouble.is_none() {
            self.report.trouble = self.file.tampering().map(Into::into);
        }
        self.report.losses = self.writer.losses().clone();
        self.report.duration = now.mono.since_start();
        self.log.note_recording(self.file.path(), true, self.report.trouble.as_ref());
    }
}

impl RecorderTap for ForeignTap {
    fn report(self: Box<Self>) -> Report {
        let scrubbed = self.held.as_ref().map(Held::report);
        Report { file_bytes: self.file.written(), scrubbed, ..self.report }
    }
}

fn header(options: &RecordOptions, clock: Clock, size: WinSize) -> Header {
    let mut header = Header {
        size: Some(size.size()),
        started: Some(clock.wall_start()),
        command: Some(command_line(&options.argv)),
        title: options.title.clone(),
        tags: options.tags.clone(),
        env: options.env.clone(),
        idle_limit: options.idle_limit,
        term: std::env::var("TERM").ok(),
        ..Header::default()
    };
    if let Ok(shell) = std::env::var("SHELL") {
        header.env.entry("SHELL".to_owned()).or_insert(shell);
    }
    header
}

/// The words so that a shell would split them again.
fn command_line(argv: &[OsString]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@%^".contains(c);
    let word = |word: &OsString| match word.to_string_lossy() {
        text if !text.is_empty() && text.chars().all(plain) => text.into_owned(),
        text => format!("'{}'", text.replace('\'', "'\\''")),
    };
    argv.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Whether a recording can be made directly in a format.
pub fn can_record(format: Format) -> bool {
    // DOS art has no times and another character set: a recording of it would be none. A cassette
    // has a recorder of its own.
    !matches!(format, Format::CastV1 | Format::ThreeA | Format::Ans | Format::Cassette)
}
