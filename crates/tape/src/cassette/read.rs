//! Reading a cassette: everything is checked before anything is believed, in an order in which the
//! first fault found is the one that explains the others.

use std::path::Path;

use super::events::{InputLine, OutputLine, ServiceLine};
use super::{
    CassetteEvent, Discovery, EventKind, Files, Final, Frame, Manifest, Quota, Refusal, ScrubReport,
    digest_hex, names,
};
use bytes::Bytes;
use serde::de::DeserializeOwned;

/// More events than this are no golden master.
const MAX_EVENTS: usize = 10_000_000;

/// A cassette that was accepted: whole, in order, and with the output that was recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Cassette {
    /// What was run, how and on what.
    pub manifest: Manifest,
    /// All events by `seq`; the last is [`EventKind::Final`].
    pub events: Vec<CassetteEvent>,
    /// The stored frames. They are derived: to assert on the screen, derive it anew with
    /// [`super::Model`].
    pub frames: Vec<Frame>,
    /// How it ended.
    pub outcome: Final,
    /// What was redacted.
    pub scrub_report: ScrubReport,
    /// What a quota or status probe found.
    pub quota: Option<Quota>,
    /// What a model or reasoning probe found.
    pub discovery: Option<Discovery>,
    raw: Bytes,
}

impl Cassette {
    /// Reads a cassette from a folder or a `.tar.zst` archive.
    ///
    /// # Errors
    /// A [`Refusal`] that says what is wrong with it.
    pub fn open(path: &Path) -> Result<Self, Refusal> {
        Self::from_files(&Files::read(path)?)
    }

    /// Reads a cassette from its files.
    ///
    /// # Errors
    /// A [`Refusal`] that says what is wrong with it.
    pub fn from_files(files: &Files) -> Result<Self, Refusal> {
        let parts = Parts::parse(files)?;
        parts.check_output()?;
        parts.check_order()?;
        Ok(parts.into_cassette())
    }

    /// The whole output, exactly.
    pub fn raw(&self) -> &Bytes {
        &self.raw
    }
}

/// The content of a cassette, each file understood by itself and nothing compared yet.
pub(crate) struct Parts {
    pub(crate) manifest: Manifest,
    pub(crate) raw: Bytes,
    output: Vec<OutputLine>,
    /// By `seq`, with the line that each stands in. Chunks have no bytes before they are checked.
    events: Vec<Placed>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) outcome: Final,
    scrub_report: ScrubReport,
    quota: Option<Quota>,
    discovery: Option<Discovery>,
}

struct Placed {
    file: &'static str,
    line: u64,
    event: CassetteEvent,
}

impl Placed {
    fn place(&self) -> String {
        if self.line == 0 { self.file.to_owned() } else { format!("{} line {}", self.file, self.line) }
    }
}

impl Parts {
    /// Version, files, fields and features.
    pub(crate) fn parse(files: &Files) -> Result<Self, Refusal> {
        let manifest = Manifest::from_bytes(files.need(names::MANIFEST)?)?;
        for name in names::REQUIRED {
            files.need(name)?;
        }
        let raw = files.need(names::RAW)?.clone();
        let mut events = Vec::new();
        let mut push = |file, line, seq, t_ms, kind| {
            if events.len() >= MAX_EVENTS {
                let what = format!("there are more than {MAX_EVENTS} events");
                return Err(Refusal::malformed(file, line, what));
            }
            events.push(Placed { file, line, event: CassetteEvent { seq, t_ms, kind } });
            Ok(())
        };
        lines(files, names::INPUT, |n, line: InputLine| {
            let kind = line.body.into_kind().map_err(|what| Refusal::malformed(names::INPUT, n, what))?;
            push(names::INPUT, n, line.seq, line.t_ms, kind)
        })?;
        let mut output = Vec::new();
        lines(files, names::OUTPUT, |n, line: OutputLine| {
            if line.bytes.is_some() || line.data.is_some() {
                let what = "bytes stand in the line; version 1 keeps them in output.raw alone";
                return Err(Refusal::malformed(names::OUTPUT, n, what));
            }
            // Bytes are given to the event when the chunk is known to lie within the output.
            let kind = EventKind::Output { offset: line.offset, bytes: Bytes::new() };
            push(names::OUTPUT, n, line.seq, line.t_ms, kind)?;
            output.push(line);
            Ok(())
        })?;
        let mut frames = Vec::new();
        lines(files, names::FRAMES, |n, frame: Frame| {
            push(names::FRAMES, n, frame.seq, frame.t_ms, EventKind::Frame(frames.len()))?;
            frames.push(frame);
            Ok(())
        })?;
        lines(files, names::SERVICE, |n, line: ServiceLine| {
            push(names::SERVICE, n, line.seq, line.t_ms, EventKind::Service(line.payload))
        })?;
        let outcome: Final = object(files, names::FINAL)?;
        push(names::FINAL, 0, outcome.seq, outcome.t_ms, EventKind::Final)?;
        let scrub_report = object(files, names::SCRUB)?;
        let quota = files.get(names::QUOTA).map(|_| object(files, names::QUOTA)).transpose()?;
        let discovery = files.get(names::DISCOVERY).map(|_| object(files, names::DISCOVERY)).transpose()?;
        // Stable, so that of two events with one number the earlier file's is named first.
        events.sort_by_key(|p| p.event.seq);
        Ok(Self { manifest, raw, output, events, frames, outcome, scrub_report, quota, discovery })
    }

    /// Chunks lie within the output and cover it; the bytes are those recorded, whole and chunk by
    /// chunk.
    pub(crate) fn check_output(&self) -> Result<(), Refusal> {
        self.check_chunks()?;
        self.check_digests()
    }

    pub(crate) fn check_chunks(&self) -> Result<(), Refusal> {
        let raw = self.raw.len() as u64;
        let mut end = 0;
        for (line, chunk) in (1..).zip(&self.output) {
            let OutputLine { seq, offset, length, .. } = *chunk;
            if offset.checked_add(length).is_none_or(|end| end > raw) {
                return Err(Refusal::OffsetRange { seq, line, offset, length, raw });
            }
            if offset != end {
                return Err(Refusal::OffsetGap { seq, line, want: end, found: offset });
            }
            end += length;
        }
        if end != raw {
            return Err(Refusal::Uncovered { covered: end, raw });
        }
        Ok(())
    }

    pub(crate) fn check_digests(&self) -> Result<(), Refusal> {
        // The chunks first: they tell where the difference is.
        for (line, chunk) in (1..).zip(&self.output) {
            let OutputLine { seq, offset, length, .. } = *chunk;
            let bytes = &self.raw[offset as usize..(offset + length) as usize];
            if chunk.sha256.as_ref().is_some_and(|want| *want != digest_hex(bytes)) {
                return Err(Refusal::ChunkDigest { seq, line, offset, length });
            }
        }
        let want = &self.manifest.content_digest.sha256;
        let found = digest_hex(&self.raw);
        if *want != found {
            return Err(Refusal::Digest { want: want.clone(), found });
        }
        Ok(())
    }

    /// Numbers without a gap, the end last, times that never go back.
    pub(crate) fn check_order(&self) -> Result<(), Refusal> {
        self.check_seq()?;
        self.check_time()
    }

    pub(crate) fn check_seq(&self) -> Result<(), Refusal> {
        let mut before: Option<&Placed> = None;
        for placed in &self.events {
            let seq = placed.event.seq;
            let last_seq = before.map_or(0, |b| b.event.seq);
            if let Some(before) = before
                && seq == last_seq
            {
                return Err(Refusal::SeqRepeated { seq, first: before.place(), second: placed.place() });
            }
            if seq == 0 {
                return Err(Refusal::malformed(placed.file, placed.line, "seq is 0; it counts from 1"));
            }
            if seq != last_seq + 1 {
                let found_in = placed.place();
                return Err(Refusal::SeqGap { missing: last_seq + 1, found: seq, found_in });
            }
            if let Some(before) = before
                && before.event.kind == EventKind::Final
            {
                let what = format!("seq {seq} comes after the end of the run (seq {last_seq})");
                return Err(Refusal::malformed(placed.file, placed.line, what));
            }
            before = Some(placed);
        }
        self.check_lines()
    }

    pub(crate) fn check_time(&self) -> Result<(), Refusal> {
        let mut before = 0;
        for placed in &self.events {
            let CassetteEvent { seq, t_ms: found, .. } = placed.event;
            if found < before {
                return Err(Refusal::TimeBack { seq, found, before, found_in: placed.place() });
            }
            before = found;
        }
        Ok(())
    }

    /// Within a file the lines are in order, or chunks would not be what their numbers say.
    fn check_lines(&self) -> Result<(), Refusal> {
        let mut last = std::collections::BTreeMap::new();
        for placed in &self.events {
            if let Some(line) = last.insert(placed.file, placed.line)
                && line > placed.line
            {
                let what = format!("seq {} stands before lower ones: lines are in order", placed.event.seq);
                return Err(Refusal::malformed(placed.file, placed.line, what));
            }
        }
        Ok(())
    }

    /// Number and time of every event, by number.
    pub(crate) fn times(&self) -> impl Iterator<Item = (u64, u64)> {
        self.events.iter().map(|p| (p.event.seq, p.event.t_ms))
    }

    pub(crate) fn all_chunks_have_digests(&self) -> bool {
        self.output.iter().all(|chunk| chunk.sha256.is_some())
    }

    /// The events by number, each chunk with its bytes. Only after [`Self::check_chunks`].
    pub(crate) fn into_cassette(self) -> Cassette {
        let mut chunks = self.output.iter();
        let mut events = Vec::with_capacity(self.events.len());
        for placed in self.events {
            let mut event = placed.event;
            if let EventKind::Output { offset, bytes } = &mut event.kind
                && let Some(chunk) = chunks.next()
            {
                let start = *offset as usize;
                *bytes = self.raw.slice(start..start + chunk.length as usize);
            }
            events.push(event);
        }
        Cassette {
            manifest: self.manifest,
            events,
            frames: self.frames,
            outcome: self.outcome,
            scrub_report: self.scrub_report,
            quota: self.quota,
            discovery: self.discovery,
            raw: self.raw,
        }
    }
}

/// Each line of a stream.
fn lines<T: DeserializeOwned>(
    files: &Files,
    name: &'static str,
    mut each: impl FnMut(u64, T) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let bytes = files.need(name)?;
    let mut rest: &[u8] = bytes;
    let mut number = 0;
    while !rest.is_empty() {
        number += 1;
        let end = memchr::memchr(b'\n', rest);
        let line = &rest[..end.unwrap_or(rest.len())];
        rest = end.map_or(&[], |end| &rest[end + 1..]);
        let value = serde_json::from_slice(line).map_err(|e| Refusal::json(name, number, &e))?;
        each(number, value)?;
    }
    Ok(())
}

fn object<T: DeserializeOwned>(files: &Files, name: &'static str) -> Result<T, Refusal> {
    serde_json::from_slice(files.need(name)?).map_err(|e| Refusal::json(name, 0, &e))
}
