//! The cassette's recorder: a tap on a thread of its own, as the native recorder is. Numbers are
//! given in the order of the log, times are those of the session's monotonic clock.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::vec::Drain;

use serde_json::json;
use tapdeck_core::scrub::Rules;
use tapdeck_core::{Author, Entry, Event, Exit, Lag, Stamp, Time, WallTime, WinSize};
use tapdeck_tape::JsonValue;
use tapdeck_tape::cassette::{
    Closing, Final, Input, Manifest, Recording, names, service_payload, signal_name,
};
use tapdeck_tape::scrub::scrub_json;

use super::scrub::{beside, scrub_again, stored};
use super::{CassetteFolder, CommitError, FailedRun};
use crate::clock::Clock;
use crate::leftovers::Leftover;
use crate::recorder::{Held, Withheld, stars};
use crate::shared::SharedLog;
use crate::tap::{Tap, TapReader, TapThread, Wake};

/// So much is taken from the log at once, and so long it may wait there.
const CHUNK: usize = 64 * 1024;
const AGE: Duration = Duration::from_millis(50);

/// A recorder at work.
#[derive(Debug)]
pub struct CassetteRecorder(TapThread<Withheld<Work>>);

/// What it has recorded, as yet without a name.
pub struct Recorded(Work);

crate::opaque::opaque_debug!(Recorded);

struct Work {
    folder: CassetteFolder,
    /// What is held back to be scrubbed. With rules nothing goes to disk before it has been.
    held: Option<Held>,
    recording: Recording,
    size: WinSize,
    exit: Option<Exit>,
    /// Service events that the session has passed on.
    told: usize,
    /// The signals that were sent to the program.
    signals: Vec<i32>,
    end: Time,
    lost: u64,
    trouble: Option<CommitError>,
    /// Entries came since the last wait, and before it. While they do, many are taken at once.
    came: bool,
    busy: bool,
}

impl CassetteRecorder {
    /// Starts recording what the log holds and will hold, with times of this resolution.
    ///
    /// # Errors
    /// When no thread can be had.
    pub fn start(
        mut folder: CassetteFolder,
        log: SharedLog,
        clock: Clock,
        size: WinSize,
        resolution: Duration,
        rules: Option<Arc<Rules>>,
    ) -> io::Result<Self> {
        let reader = TapReader::from_start(&log, clock);
        let size = size.or_default();
        let mut held = rules.map(|rules| Held::new(rules, size, true).keep_late());
        if let Some(about) = folder.about() {
            (about.terminal.initial_rows, about.terminal.initial_cols) = (size.rows, size.cols);
            about.timing.resolution_ms = u64::try_from(resolution.as_millis()).unwrap_or(u64::MAX).max(1);
            if let Some(held) = &mut held {
                let mut masked = Closing::new(about.clone());
                beside(&mut masked, held.scrubber());
                held.scrubber().forget_fields();
                *about = masked.manifest;
            }
        }
        folder.describe_traces().map_err(io::Error::other)?;
        log.wait_for_reader(reader.id());
        let work = Work {
            folder,
            held,
            recording: Recording::new(size.size(), resolution),
            size,
            exit: None,
            told: 0,
            signals: Vec::new(),
            end: Time::ZERO,
            lost: 0,
            trouble: None,
            came: false,
            busy: false,
        };
        let work = Withheld::new(work, Arc::default(), size);
        Ok(Self(TapThread::start("tapdeck-cassette", reader, work)?))
    }

    /// Waits until everything is recorded. The log must have been closed.
    ///
    /// # Errors
    /// When the recorder broke down.
    pub fn finish(self) -> io::Result<Recorded> {
        self.0
            .finish()
            .map(|tap| Recorded(tap.into_inner()))
            .map_err(|_| io::Error::other("the cassette's recorder broke down"))
    }
}

impl Work {
    fn push(&mut self, entry: Entry) {
        let at = entry.at.mono;
        self.end = self.end.max(at);
        let rec = &mut self.recording;
        match entry.event {
            Event::Output { bytes, .. } => rec.output(at, &bytes),
            Event::Input { by, bytes, hidden } => {
                // A password is nothing to keep; that one was typed, and how long it was, is.
                let bytes = if hidden { stars(&bytes) } else { bytes };
                let source = Some(match by {
                    Author::Party(party) if &*party.name == "local" => "user".to_owned(),
                    Author::Party(party) => party.name.to_string(),
                    Author::Reply => "reply".to_owned(),
                    Author::EndOfInput => "end_of_input".to_owned(),
                });
                rec.input(at, &Input { bytes, source, ..Input::default() });
            }
            Event::Resize(size) => {
                let size = size.or_default();
                // The first event of a session is its size, which the manifest tells.
                if std::mem::replace(&mut self.size, size) != size {
                    rec.resize(at, size.size());
                }
            }
            Event::Signal(number) => {
                rec.signal(at, &signal_name(number));
                if !self.signals.contains(&number) {
                    self.signals.push(number);
                }
            }
            Event::Service(payload) => {
                self.told += 1;
                let payload = self.masked(service_payload(&payload));
                self.recording.service(at, payload);
            }
            Event::Snapshot { id, label, .. } => {
                let anchor = rec.output_bytes();
                let label = label.to_string();
                let body =
                    json!({"type": "tapdeck.snapshot", "id": id, "anchor_byte": anchor, "label": label});
                rec.service(at, JsonValue::of(&body));
            }
            Event::Marker { label, by } => {
                let body = json!({"type": "tapdeck.marker", "label": &*label, "by": &*by});
                rec.service(at, JsonValue::of(&body));
            }
            Event::Holder(change) => {
                let name = |n: &Option<Arc<str>>| n.as_deref().map(str::to_owned);
                let body =
                    json!({"type": "tapdeck.driver", "from": name(&change.from), "to": name(&change.to)});
                rec.service(at, JsonValue::of(&body));
            }
            Event::Suspended => rec.service(at, typed("tapdeck.suspended")),
            Event::Resumed => rec.service(at, typed("tapdeck.resumed")),
            Event::Wait => rec.service(at, typed("tapdeck.wait")),
            Event::Exit(exit) => self.exit = Some(exit),
            _ => {}
        }
    }

    fn masked(&mut self, mut payload: JsonValue) -> JsonValue {
        if let Some(held) = &mut self.held {
            scrub_json(&mut payload, held.scrubber());
        }
        payload
    }

    /// Takes what has been held back long enough, or all of it, and writes it.
    fn release(&mut self, now: WallTime, all: bool) {
        if let Some(held) = &mut self.held {
            held.release(now, all).into_iter().for_each(|entry| self.push(entry));
        }
        self.write();
    }

    fn write(&mut self) {
        let Self { folder, recording, trouble, .. } = self;
        let done = recording.drain(|name, bytes| match trouble {
            // Once refused, what follows would have a hole before it.
            Some(_) => Ok(()),
            None => folder.append(name, bytes),
        });
        if let Err(e) = done {
            *trouble = Some(e);
        }
    }
}

impl Tap for Work {
    fn take(&mut self, entries: Drain<'_, Entry>, now: Stamp) {
        self.came = true;
        match &mut self.held {
            Some(held) => entries.for_each(|entry| held.push(entry, now.wall)),
            None => entries.for_each(|entry| self.push(entry)),
        }
        self.release(now.wall, false);
    }

    fn lagged(&mut self, lag: &Lag, _now: Stamp) {
        self.release(WallTime::MAX, true);
        if let Some(held) = &mut self.held {
            held.lost(lag.bytes());
        }
        self.lost += lag.bytes();
    }

    fn next_wake(&self, now: Stamp) -> Wake {
        let wake = if self.busy { Wake { weight: CHUNK, after: Some(AGE) } } else { Wake::default() };
        let held = self.held.as_ref().and_then(Held::due).map(|due| due.since(now.wall));
        Wake { after: wake.after.into_iter().chain(held).min(), ..wake }
    }

    fn due(&mut self, now: Stamp) {
        self.release(now.wall, false);
        self.busy = std::mem::take(&mut self.came);
    }

    fn flush(&mut self, now: Stamp) {
        self.release(now.wall, true);
    }

    fn closed(&mut self, now: Stamp) {
        self.release(WallTime::MAX, true);
        if self.exit.is_none() {
            self.end = self.end.max(now.mono);
        }
    }
}

/// A service event that says nothing but its type.
fn typed(kind: &str) -> JsonValue {
    JsonValue::of(&json!({ "type": kind }))
}

/// Says in `final.json` which processes were left behind.
pub fn name_leftovers(outcome: &mut Final, left: &[Leftover]) {
    outcome.metadata.insert("leaked_processes", left.len());
    if !left.is_empty() {
        let commands: Vec<&str> = left.iter().map(|left| left.command.as_str()).collect();
        outcome.metadata.insert("leaked", JsonValue::of(&commands));
    }
}

impl Recorded {
    /// How the program ended.
    pub fn exit(&self) -> Option<Exit> {
        self.0.exit
    }

    /// Adds those of a source's events that came when the session had ended. All of them are given,
    /// in the order in which they were passed on.
    pub fn add_late_events(&mut self, all: &[String]) {
        for payload in all.get(self.0.told..).unwrap_or_default() {
            let payload = self.0.masked(service_payload(payload));
            self.0.recording.service(self.0.end, payload);
        }
    }

    /// The signal by which the program was told to end, if it was: one that means just that, or one
    /// that did it.
    pub fn stopped_by(&self) -> Option<i32> {
        let ends = |signal: i32| {
            matches!(signal, libc::SIGTERM | libc::SIGHUP | libc::SIGKILL)
                || self.0.exit == Some(Exit::Signal(signal))
        };
        self.0.signals.iter().copied().rfind(|signal| ends(*signal))
    }

    /// Why this can be no evidence, if it cannot: output was lost, or the disk refused.
    pub fn trouble(&self) -> Option<String> {
        if self.0.lost > 0 {
            return Some(format!("{} bytes of output were lost: the disk was too slow", self.0.lost));
        }
        let outgrown = || self.0.recording.outgrown().map(|r| r.to_string());
        self.0.trouble.as_ref().map(ToString::to_string).or_else(outgrown)
    }

    /// Bytes of output.
    pub fn output_bytes(&self) -> u64 {
        self.0.recording.output_bytes()
    }

    /// How long the run took.
    pub fn duration(&self) -> Duration {
        self.0.end.since_start()
    }

    /// Writes the rest and puts the cassette in its place.
    ///
    /// # Errors
    /// When the disk refuses or something is in the way: nothing is in its place then but what was
    /// before.
    pub fn accept(self, closing: Closing) -> Result<Manifest, CommitError> {
        let mut folder = self.0.folder;
        let manifest = finish(&mut folder, self.0.recording, self.0.end, self.0.held, closing)?;
        folder.commit()?;
        Ok(manifest)
    }

    /// Leaves what there is under a folder for diagnostics.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn reject(
        self,
        diagnostics: &Path,
        now: WallTime,
        reason: &FailedRun,
        closing: Closing,
    ) -> Result<PathBuf, CommitError> {
        let mut folder = self.0.folder;
        // As much as there is: the disk may be what failed, and the traces are there already.
        let _ = finish(&mut folder, self.0.recording, self.0.end, self.0.held, closing);
        folder.fail(diagnostics, now, reason)
    }
}

/// Writes all that is missing of a cassette, and masks what was recognised too late.
fn finish(
    folder: &mut CassetteFolder,
    mut recording: Recording,
    end: Time,
    held: Option<Held>,
    mut closing: Closing,
) -> Result<Manifest, CommitError> {
    recording.drain(|name, bytes| folder.append(name, bytes))?;
    if let Some(refusal) = recording.outgrown() {
        return Err(refusal.into());
    }
    if let Some(held) = held {
        closing.scrub_report = stored(&held.report(), &closing.scrub_report);
        // Without output there is no file of it yet.
        folder.append(names::RAW, &[])?;
        let (size, resolution) = recording.began();
        let mut masked = Recording::new(size, resolution);
        let mut again = folder.begin_again()?;
        let changed = scrub_again(folder.path(), held.into_parts(), &mut closing, |event| {
            masked.event(event);
            masked.drain(|name, bytes| again.append(name, bytes))
        })?;
        if changed {
            recording = masked;
            folder.exchange(again)?;
        }
    }
    recording.finish(end, closing, |name, bytes| folder.append(name, bytes))
}
