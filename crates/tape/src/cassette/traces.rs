//! The streams of a cassette's folder, one event at a time: for a recorder that reads what it has
//! written, and for what a failed or killed run has left, which no reader takes for evidence.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tapdeck_core::Time;

use super::events::{InputLine, OutputLine, ServiceLine};
use super::files::{limit_of, open_plain};
use super::{
    Cassette, CassetteEvent, Closing, EventKind, Exit, Files, Manifest, Recording, Refusal, ScrubReport,
    names,
};

/// The longest line of a stream, and the longest chunk of output.
const MAX_LINE: u64 = 64 << 20;

/// The events of a folder's streams but its frames, by number. A stream that breaks off has no more
/// events.
#[derive(Debug)]
pub struct Traces {
    raw: BufReader<File>,
    read: u64,
    output: Lines,
    input: Lines,
    service: Lines,
    next: [Option<CassetteEvent>; 3],
}

impl Traces {
    /// Opens the streams of a folder.
    ///
    /// # Errors
    /// When there is no output. Other streams may be missing.
    pub fn open(folder: &Path) -> Result<Self, Refusal> {
        let fail = |source| Refusal::File { file: names::RAW.into(), source };
        let raw = open_plain(&folder.join(names::RAW)).map_err(fail)?;
        let lines = |name| Lines(open_plain(&folder.join(name)).ok().map(BufReader::new), Vec::new());
        let mut this = Self {
            raw: BufReader::with_capacity(1 << 16, raw),
            read: 0,
            output: lines(names::OUTPUT),
            input: lines(names::INPUT),
            service: lines(names::SERVICE),
            next: [None, None, None],
        };
        for stream in 0..this.next.len() {
            this.next[stream] = this.read(stream);
        }
        Ok(this)
    }

    fn read(&mut self, stream: usize) -> Option<CassetteEvent> {
        match stream {
            0 => self.read_output(),
            1 => {
                let line: InputLine = self.input.next()?;
                let kind = line.body.into_kind().ok()?;
                Some(CassetteEvent { seq: line.seq, t_ms: line.t_ms, kind })
            }
            _ => {
                let line: ServiceLine = self.service.next()?;
                let kind = EventKind::Service(line.payload);
                Some(CassetteEvent { seq: line.seq, t_ms: line.t_ms, kind })
            }
        }
    }

    fn read_output(&mut self) -> Option<CassetteEvent> {
        let OutputLine { seq, t_ms, offset, length, .. } = self.output.next()?;
        if offset != self.read || length > MAX_LINE {
            return None;
        }
        let mut bytes = Vec::new();
        (&mut self.raw).take(length).read_to_end(&mut bytes).ok()?;
        self.read += length;
        let whole = bytes.len() as u64 == length;
        whole.then(|| CassetteEvent { seq, t_ms, kind: EventKind::Output { offset, bytes: bytes.into() } })
    }
}

impl Iterator for Traces {
    type Item = CassetteEvent;

    fn next(&mut self) -> Option<CassetteEvent> {
        let heads = self.next.iter().enumerate();
        let seqs = heads.filter_map(|(stream, head)| Some((head.as_ref()?.seq, stream)));
        let (_, stream) = seqs.min()?;
        let event = self.next[stream].take();
        self.next[stream] = self.read(stream);
        event
    }
}

#[derive(Debug)]
struct Lines(Option<BufReader<File>>, Vec<u8>);

impl Lines {
    fn next<T: DeserializeOwned>(&mut self) -> Option<T> {
        self.1.clear();
        self.0.as_mut()?.take(MAX_LINE).read_until(b'\n', &mut self.1).ok()?;
        let line = self.1.strip_suffix(b"\n")?;
        serde_json::from_slice(line).ok()
    }
}

/// What a failed run says of itself.
#[derive(Deserialize)]
struct Failed {
    #[serde(default)]
    exit: Option<Exit>,
    #[serde(default)]
    reason: Option<String>,
}

/// Whether a folder holds what a run has left that is no evidence.
pub fn is_traces(folder: &Path) -> bool {
    folder.join(names::RAW).is_file()
        && !folder.join(names::MANIFEST).exists()
        && folder.join(names::FAILED_MANIFEST).is_file()
}

/// Reads a cassette, or what a failed or killed run has left, for a person to look at. Frames are
/// derived, and the end is where the traces end: its metadata says `failed`, with the reason.
///
/// # Errors
/// As [`Cassette::open`].
pub fn open_for_viewing(path: &Path) -> Result<Cassette, Refusal> {
    if !is_traces(path) {
        return Cassette::open(path);
    }
    let manifest = Manifest::from_bytes(&small(path, names::FAILED_MANIFEST)?)?;
    let failed = small(path, names::FAILURE).ok();
    let failed: Option<Failed> = failed.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let resolution = manifest.timing.resolution();
    let mut recording = Recording::new(manifest.terminal.initial_size(), resolution);
    let mut end = Time::ZERO;
    for event in Traces::open(path)? {
        end = Time::from_millis(event.t_ms);
        recording.event(event);
    }
    let scrubbed = small(path, names::SCRUB).ok();
    let scrubbed = scrubbed.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let mut closing = Closing::new(manifest).scrub_report(scrubbed.unwrap_or_else(ScrubReport::not_scrubbed));
    if let Some(Failed { exit, reason }) = failed {
        closing.outcome.exit = exit.unwrap_or_default();
        if let Some(reason) = reason {
            closing.outcome.metadata.insert("failed", reason);
        }
    }
    let files: Files = recording.finish_in_memory(end, closing)?;
    Cassette::from_files(&files)
}

/// Reads a file of one object.
fn small(folder: &Path, name: &str) -> Result<Vec<u8>, Refusal> {
    let fail = |source| Refusal::File { file: name.into(), source };
    let mut bytes = Vec::new();
    let file = open_plain(&folder.join(name)).map_err(fail)?;
    file.take(limit_of(name)).read_to_end(&mut bytes).map_err(fail)?;
    Ok(bytes)
}
