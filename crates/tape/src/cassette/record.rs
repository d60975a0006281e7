//! Making a cassette: events go in with the time of a monotonic clock, the lines of its files come
//! out. All numbering is done here, in one counter over all streams, so that a recorder cannot get
//! it wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use tapdeck_core::Time;
use tapdeck_term::Size;

use super::check::Digester;
use super::events::{InputBody, InputLine, OutputLine, ServiceLine};
use super::files::limit_of;
use super::keys::{PasteWatch, key_name};
use super::{
    CassetteEvent, Discovery, EventKind, Final, Frame, Input, Manifest, Model, Quota, Refusal, Resize,
    ScrubReport, check, digest_hex, names,
};
use crate::seal::SealKey;
use crate::{JsonValue, base64};

/// The streams of a cassette, in the order of [`Recording::drain`].
const STREAMS: [&str; 5] = [names::RAW, names::OUTPUT, names::INPUT, names::FRAMES, names::SERVICE];

/// A cassette in the making.
///
/// A frame is taken when the picture has changed and time moves on to the next tick, or something
/// other than output happens: so there is at most one a tick, and what was on the screen when a key
/// was pressed is always among them.
#[derive(Debug)]
pub struct Recording {
    resolution_ms: u64,
    /// Rows and columns at the start.
    first_size: Size,
    seq: u64,
    t_ms: u64,
    offset: u64,
    model: Model,
    /// Output or a resize came since the last frame.
    due: bool,
    last: Option<Frame>,
    resizes: Vec<Resize>,
    paste: PasteWatch,
    /// The last service event of the program's own.
    told: Option<JsonValue>,
    streams: [Stream; 5],
}

#[derive(Debug, Default)]
struct Stream {
    pending: Vec<u8>,
    len: u64,
    digest: Digester,
}

/// What goes into a cassette beside its events.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Closing {
    /// Everything but the digests, the sizes, the resolution and the emulator, which are filled in.
    pub manifest: Manifest,
    /// Everything but `seq`, `t_ms`, `duration_ms` and `final_text`, which are filled in.
    pub outcome: Final,
    /// What was redacted.
    pub scrub_report: ScrubReport,
    /// What a quota or status probe found.
    pub quota: Option<Quota>,
    /// What a model or reasoning probe found.
    pub discovery: Option<Discovery>,
    /// The key that the cassette is sealed with.
    pub seal: Option<SealKey>,
}

impl Closing {
    /// Returns what a run has that is told nothing but its manifest: no rule was applied, nothing
    /// was probed.
    pub fn new(manifest: Manifest) -> Self {
        let (outcome, scrub_report) = (Final::default(), ScrubReport::not_scrubbed());
        Self { manifest, outcome, scrub_report, quota: None, discovery: None, seal: None }
    }

    /// Says how the run ended.
    #[must_use]
    pub fn outcome(mut self, outcome: Final) -> Self {
        self.outcome = outcome;
        self
    }

    /// Says what was redacted; nothing by default.
    #[must_use]
    pub fn scrub_report(mut self, scrub_report: ScrubReport) -> Self {
        self.scrub_report = scrub_report;
        self
    }

    /// Adds what a quota or status probe found.
    #[must_use]
    pub fn quota(mut self, quota: impl Into<Option<Quota>>) -> Self {
        self.quota = quota.into();
        self
    }

    /// Adds what a model or reasoning probe found.
    #[must_use]
    pub fn discovery(mut self, discovery: impl Into<Option<Discovery>>) -> Self {
        self.discovery = discovery.into();
        self
    }

    /// Seals the cassette with a key.
    #[must_use]
    pub fn seal(mut self, key: impl Into<Option<SealKey>>) -> Self {
        self.seal = key.into();
        self
    }
}

/// A cassette knows no size of 0, which means that the recorder had no terminal.
fn at_least_one(size: Size) -> Size {
    Size::new(size.cols.max(1), size.rows.max(1))
}

impl Recording {
    /// Begins with a terminal of this size. Times will be multiples of `resolution`, which is taken
    /// in whole milliseconds, at least one.
    pub fn new(size: Size, resolution: Duration) -> Self {
        let size = at_least_one(size);
        let resolution_ms = u64::try_from(resolution.as_millis()).unwrap_or(u64::MAX);
        Self {
            resolution_ms: resolution_ms.max(1),
            first_size: size,
            seq: 0,
            t_ms: 0,
            offset: 0,
            model: Model::new(size),
            due: false,
            last: None,
            resizes: Vec::new(),
            paste: PasteWatch::default(),
            told: None,
            streams: Default::default(),
        }
    }

    /// The program wrote bytes, at this time since the start.
    pub fn output(&mut self, at: Time, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let tick = self.tick(at);
        if tick > self.t_ms {
            self.take_frame();
        }
        let (seq, t_ms) = self.number(tick);
        let (offset, length) = (self.offset, bytes.len() as u64);
        self.offset += length;
        let sha256 = Some(digest_hex(bytes));
        self.line(names::OUTPUT, &OutputLine { seq, t_ms, offset, length, sha256, bytes: None, data: None });
        self.put(names::RAW, bytes);
        self.model.output(bytes);
        self.due = true;
    }

    /// The program was given bytes. The key that they stand for and where they stand in a paste are
    /// found out where they are not given.
    pub fn input(&mut self, at: Time, input: &Input) {
        let Input { bytes, mut key, mut paste, source } = input.clone();
        let typed = !matches!(source.as_deref(), Some("reply" | "end_of_input"));
        if typed && paste.is_none() {
            paste = self.paste.next(&bytes);
        }
        if typed && key.is_none() && paste.is_none() {
            key = key_name(&bytes, &self.model.term().modes());
        }
        let bytes = base64::encode(&bytes);
        self.input_line(at, InputBody::Input { bytes, key, paste, source });
    }

    /// The terminal took a size.
    pub fn resize(&mut self, at: Time, size: Size) {
        let size = at_least_one(size);
        let Size { cols, rows } = size;
        let (seq, t_ms) = self.input_line(at, InputBody::Resize { rows, cols });
        self.resizes.push(Resize { seq, t_ms, rows, cols });
        self.model.resize(size);
        self.due = true;
    }

    /// A signal was sent to the program.
    pub fn signal(&mut self, at: Time, name: &str) {
        self.input_line(at, InputBody::Signal { name: name.into() });
    }

    /// Something that is not bytes happened.
    pub fn service(&mut self, at: Time, payload: JsonValue) {
        self.take_frame();
        let tick = self.tick(at);
        let (seq, t_ms) = self.number(tick);
        let line = ServiceLine { seq, t_ms, payload };
        self.line(names::SERVICE, &line);
        let kind = line.payload.get("type");
        if !kind.as_ref().and_then(JsonValue::as_str).is_some_and(|kind| kind.starts_with("tapdeck.")) {
            self.told = Some(line.payload);
        }
    }

    /// An event of another cassette happened, at its own time. Frames and the end are not taken.
    pub fn event(&mut self, event: CassetteEvent) {
        let at = Time::from_millis(event.t_ms);
        match event.kind {
            EventKind::Output { bytes, .. } => self.output(at, &bytes),
            EventKind::Input(input) => self.input(at, &input),
            EventKind::Resize(size) => self.resize(at, size),
            EventKind::Signal { name } => self.signal(at, &name),
            EventKind::Service(payload) => self.service(at, payload),
            EventKind::Frame(_) | EventKind::Final => {}
        }
    }

    fn input_line(&mut self, at: Time, body: InputBody) -> (u64, u64) {
        self.take_frame();
        let tick = self.tick(at);
        let (seq, t_ms) = self.number(tick);
        self.line(names::INPUT, &InputLine { seq, t_ms, body });
        (seq, t_ms)
    }

    /// The picture, if it changed since it was last taken.
    fn take_frame(&mut self) {
        if !std::mem::take(&mut self.due) {
            return;
        }
        let frame = self.model.frame(self.seq + 1, self.t_ms);
        if self.last.as_ref().is_some_and(|last| last.shows_same(&frame)) {
            // Nothing new to see: the bytes count towards the next frame.
            return;
        }
        self.model.framed();
        self.seq += 1;
        self.line(names::FRAMES, &frame);
        self.last = Some(frame);
    }

    fn tick(&self, at: Time) -> u64 {
        let ms = at.as_millis();
        ms - ms % self.resolution_ms
    }

    /// The next number, and the tick, which never goes back.
    fn number(&mut self, tick: u64) -> (u64, u64) {
        self.seq += 1;
        self.t_ms = self.t_ms.max(tick);
        (self.seq, self.t_ms)
    }

    fn line(&mut self, name: &'static str, line: &impl Serialize) {
        // Our own types have text keys and no failing serialiser.
        let mut bytes = serde_json::to_vec(line).unwrap_or_default();
        bytes.push(b'\n');
        self.put(name, &bytes);
    }

    fn put(&mut self, name: &'static str, bytes: &[u8]) {
        if let Some(stream) = STREAMS.iter().position(|s| *s == name).map(|i| &mut self.streams[i]) {
            stream.len += bytes.len() as u64;
            // Past its bound a cassette cannot be accepted any more; memory stays bounded
            // meanwhile.
            if stream.len <= limit_of(name) {
                stream.pending.extend_from_slice(bytes);
                stream.digest.update(bytes);
            }
        }
    }

    /// The file that has outgrown its bound, if any: the recording cannot become a cassette.
    pub fn outgrown(&self) -> Option<Refusal> {
        let mut files = STREAMS.iter().zip(&self.streams);
        let (name, _) = files.find(|(name, stream)| stream.len > limit_of(name))?;
        Some(Refusal::TooLarge { file: (*name).into(), limit: limit_of(name) })
    }

    /// Hands over what is to be appended to each file.
    ///
    /// # Errors
    /// What `each` failed with.
    pub fn drain<E>(&mut self, mut each: impl FnMut(&'static str, &[u8]) -> Result<(), E>) -> Result<(), E> {
        for (name, stream) in STREAMS.iter().zip(&mut self.streams) {
            if !stream.pending.is_empty() {
                each(name, &stream.pending)?;
                stream.pending.clear();
            }
        }
        Ok(())
    }

    /// Bytes of output so far.
    pub fn output_bytes(&self) -> u64 {
        self.offset
    }

    /// The size of the terminal at the start, and the resolution of times.
    pub fn began(&self) -> (Size, Duration) {
        (self.first_size, Duration::from_millis(self.resolution_ms))
    }

    /// The terminal as it is now.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Ends the run at this time; the files that are one object each are handed over after the
    /// streams. The manifest comes last: a folder without it is no cassette.
    ///
    /// # Errors
    /// What `each` failed with, or that a file has outgrown its bound.
    pub fn finish<E: From<Refusal>>(
        mut self,
        at: Time,
        closing: Closing,
        mut each: impl FnMut(&'static str, &[u8]) -> Result<(), E>,
    ) -> Result<Manifest, E> {
        self.take_frame();
        if let Some(refusal) = self.outgrown() {
            return Err(refusal.into());
        }
        let tick = self.tick(at);
        let (seq, t_ms) = self.number(tick);
        let Closing { mut manifest, mut outcome, scrub_report, quota, discovery, seal } = closing;
        (outcome.seq, outcome.t_ms, outcome.duration_ms) = (seq, t_ms, at.as_millis());
        outcome.final_text = Some(final_text(&self.model));
        outcome.fill_from(self.told.as_ref());
        self.drain(&mut each)?;
        let mut files = BTreeMap::new();
        for (name, stream) in STREAMS.iter().zip(self.streams) {
            let digest = stream.digest.finish();
            if *name == names::RAW {
                manifest.content_digest.sha256 = digest;
            } else {
                files.insert((*name).into(), digest);
            }
            if stream.len == 0 {
                // An empty file is a file too.
                each(name, &[])?;
            }
        }
        let mut object = |name: &'static str, bytes: Vec<u8>| {
            files.insert(name.into(), digest_hex(&bytes));
            each(name, &bytes)
        };
        object(names::FINAL, check::pretty(&outcome))?;
        object(names::SCRUB, check::pretty(&scrub_report))?;
        if let Some(quota) = quota {
            object(names::QUOTA, check::pretty(&quota))?;
        }
        if let Some(discovery) = discovery {
            object(names::DISCOVERY, check::pretty(&discovery))?;
        }
        (manifest.terminal.initial_rows, manifest.terminal.initial_cols) =
            (self.first_size.rows, self.first_size.cols);
        manifest.terminal.resizes = self.resizes;
        manifest.terminal.emulator = super::Emulator::ours();
        manifest.timing.resolution_ms = self.resolution_ms;
        manifest.content_digest.files = files;
        let bytes = manifest.bound_bytes(&[], seal.as_ref());
        each(names::MANIFEST, &bytes)?;
        Ok(manifest)
    }

    /// Finishes the cassette with all files in memory. Nothing must have been drained before.
    ///
    /// # Errors
    /// That a file has outgrown its bound.
    pub fn finish_in_memory(self, at: Time, closing: Closing) -> Result<super::Files, Refusal> {
        let mut files = super::Files::default();
        self.finish(at, closing, |name, bytes| {
            files.put(name, Bytes::copy_from_slice(bytes));
            Ok::<_, Refusal>(())
        })?;
        Ok(files)
    }
}

/// The text of the screen, rows without trailing blanks, blank rows at the end left off.
pub(crate) fn final_text(model: &Model) -> String {
    let rows: Vec<String> = model.term().screen().map(|line| line.text()).collect();
    let shown = rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1);
    rows[..shown].join("\n")
}
