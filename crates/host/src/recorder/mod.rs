//! The recorder: a tap that turns events into blocks on disk, on a thread of its own.
//!
//! It sleeps until a block's worth is pending or the block in hand is old enough, so the path
//! between program and terminal never pays for compression or disk. When the program writes faster
//! than the compressor likes, blocks are compressed less. When the disk refuses, the session goes
//! on; the loss is counted, written down where it can be, and reported once at the end.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tapdeck_core::withhold::SecretPrompts;
use tapdeck_core::{Offset, ReaderId, ReaderKind, WallTime, WinSize};
use tapdeck_tape::encryption::Recipients;
use tapdeck_tape::meta::{self, Meta, Parent};
use tapdeck_tape::scrub::scrub_meta;
use tapdeck_tape::seal::SealKey;
use tapdeck_tape::{Format, Losses};

use crate::clock::Clock;
use crate::shared::SharedLog;
use crate::source::Source;
use crate::tap::{Tap, TapPanicked, TapReader, TapThread};

mod append;
mod events;
mod failure;
mod file;
mod foreign;
mod live;
mod name;
mod native;
mod pausing;
mod salvage;
mod scrub;
mod seal;
mod sidecars;
mod snapshots;
mod syncing;
mod withhold;

pub use append::{Addition, Adopted, AppendError, adopt_sidecars, append_part, describe, is_locked};
pub use failure::{FailureAction, OnFailure};
pub use file::{CreateError, IfExists, RecordingFile, RunningDigest, digest_of, file_digest};
use foreign::ForeignTap;
pub use foreign::can_record;
pub use live::LiveIndex;
pub use name::{NAME_PLACEHOLDERS, calendar, home_folder, recording_name, recordings_folder, state_folder};
use native::NativeTap;
use pausing::Pausing;
pub use salvage::Mended;
pub(crate) use scrub::Held;
use seal::Sealing;
pub(crate) use sidecars::SIDECARS;
pub use sidecars::{SEALED_SIDECARS, find_sidecar, forget_sidecars, sidecar, write_sidecars};
pub use snapshots::append_lines;
pub use syncing::SyncLevel;
pub(crate) use withhold::{Withheld, stars};

/// A block is closed this long after its first record, so that it is on disk within 250 ms.
const BLOCK_AGE: Duration = Duration::from_millis(180);

/// What is recorded of what is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeepInput {
    /// Nothing.
    #[default]
    Nothing,
    /// All of it, but where the program has its terminal show nothing, draws a mask such as `*`, or
    /// asks for a password: of that, how much.
    Shown,
    /// Everything.
    Everything,
}

impl KeepInput {
    /// As it is asked for: whether it is kept, and whether that goes for what is not shown, too.
    pub fn asked(input: bool, hidden: bool) -> Self {
        match (input, hidden) {
            (false, _) => KeepInput::Nothing,
            (true, false) => KeepInput::Shown,
            (true, true) => KeepInput::Everything,
        }
    }

    /// Whether anything is.
    pub(crate) fn any(self) -> bool {
        self != KeepInput::Nothing
    }

    /// Whether this is.
    pub(crate) fn keeps(self, hidden: bool) -> bool {
        self == KeepInput::Everything || (self == KeepInput::Shown && !hidden)
    }
}

/// What to record, and what to say about it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RecordOptions {
    pub(crate) quality: u8,
    pub(crate) input: KeepInput,
    pub(crate) prompts: Arc<SecretPrompts>,
    pub(crate) argv: Vec<OsString>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) title: Option<String>,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) continues: Option<String>,
    pub(crate) parent: Option<Parent>,
    pub(crate) idle_limit: Option<Duration>,
    pub(crate) ipc: Option<String>,
    pub(crate) seal: Option<SealKey>,
    pub(crate) encrypt: Option<Recipients>,
    pub(crate) index: LiveIndex,
    pub(crate) sync: SyncLevel,
    pub(crate) on_failure: OnFailure,
    pub(crate) scrub: Option<Arc<tapdeck_core::scrub::Rules>>,
    pub(crate) sidecars: bool,
}

impl Default for RecordOptions {
    /// Output alone, compressed as usual, with nothing said about it.
    fn default() -> Self {
        Self {
            quality: 4,
            input: KeepInput::default(),
            prompts: Arc::default(),
            argv: Vec::new(),
            cwd: None,
            title: None,
            tags: BTreeMap::new(),
            env: BTreeMap::new(),
            continues: None,
            parent: None,
            idle_limit: None,
            ipc: None,
            seal: None,
            encrypt: None,
            index: LiveIndex::default(),
            sync: SyncLevel::default(),
            on_failure: OnFailure::default(),
            scrub: None,
            sidecars: false,
        }
    }
}

impl RecordOptions {
    /// Sets the Brotli quality, 0 to 11; 4 by default.
    #[must_use]
    pub fn quality(mut self, quality: u8) -> Self {
        self.quality = quality;
        self
    }

    /// Sets what is recorded of what is typed; nothing by default.
    #[must_use]
    pub fn input(mut self, input: KeepInput) -> Self {
        self.input = input;
        self
    }

    /// Sets the rules by which a screen asks for a secret, so that the answer is not recorded.
    #[must_use]
    pub fn secret_prompts(mut self, prompts: Arc<SecretPrompts>) -> Self {
        self.prompts = prompts;
        self
    }

    /// Sets the command line that the recording names.
    #[must_use]
    pub fn argv(mut self, argv: Vec<OsString>) -> Self {
        self.argv = argv;
        self
    }

    /// Sets the folder that the recording names.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<Option<PathBuf>>) -> Self {
        self.cwd = cwd.into();
        self
    }

    /// Sets a title for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<Option<String>>) -> Self {
        self.title = title.into();
        self
    }

    /// Sets tags for people and tools: names and values, which may be empty.
    #[must_use]
    pub fn tags(mut self, tags: impl IntoIterator<Item = (String, String)>) -> Self {
        self.tags = tags.into_iter().collect();
        self
    }

    /// Sets environment variables that the recording names; none by default.
    #[must_use]
    pub fn env(mut self, env: impl IntoIterator<Item = (String, String)>) -> Self {
        self.env = env.into_iter().collect();
        self
    }

    /// Names the earlier recording that this one continues.
    #[must_use]
    pub fn continues(mut self, recording: impl Into<Option<String>>) -> Self {
        self.continues = recording.into();
        self
    }

    /// Names the recording that this session was branched from.
    #[must_use]
    pub fn parent(mut self, parent: impl Into<Option<Parent>>) -> Self {
        self.parent = parent.into();
        self
    }

    /// Sets the longest pause that a player should make.
    #[must_use]
    pub fn idle_limit(mut self, idle_limit: impl Into<Option<Duration>>) -> Self {
        self.idle_limit = idle_limit.into();
        self
    }

    /// Sets the address that the recording names as the place where snapshots are announced.
    #[must_use]
    pub fn ipc(mut self, ipc: impl Into<Option<String>>) -> Self {
        self.ipc = ipc.into();
        self
    }

    /// Sets when the recording is synced to disk; about a second after it was written by default.
    #[must_use]
    pub fn sync(mut self, sync: SyncLevel) -> Self {
        self.sync = sync;
        self
    }

    /// Sets what to do when the recording fails; the session goes on by default.
    #[must_use]
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.on_failure = on_failure;
        self
    }

    /// Sets the key to seal the recording with; native recordings only.
    #[must_use]
    pub fn seal(mut self, seal: impl Into<Option<SealKey>>) -> Self {
        self.seal = seal.into();
        self
    }

    /// Sets the keys that can read the recording; native recordings only. There is no index then.
    #[must_use]
    pub fn encrypt(mut self, encrypt: impl Into<Option<Recipients>>) -> Self {
        self.encrypt = encrypt.into();
        self
    }

    /// Sets when the index is written; native recordings only.
    #[must_use]
    pub fn index(mut self, index: LiveIndex) -> Self {
        self.index = index;
        self
    }

    /// Sets the rules by which text is masked before it is written.
    #[must_use]
    pub fn scrub(mut self, scrub: impl Into<Option<Arc<tapdeck_core::scrub::Rules>>>) -> Self {
        self.scrub = scrub.into();
        self
    }

    /// Sets whether `meta.json` and the other sidecars are written beside the recording at its end,
    /// for tools that want files; native recordings only.
    #[must_use]
    pub fn sidecars(mut self, sidecars: bool) -> Self {
        self.sidecars = sidecars;
        self
    }
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
    /// What is in the file is a recording, whatever is missing from it.
    pub whole: bool,
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
            whole: true,
            trouble: None,
            losses: Losses::default(),
            scrubbed: None,
            index_trouble: None,
        }
    }
}

impl RecordOptions {
    /// By which rules input is withheld, where any is recorded and not all of it.
    fn withholds(&self, size: WinSize) -> Option<(Arc<SecretPrompts>, WinSize)> {
        (self.input == KeepInput::Shown).then(|| (Arc::clone(&self.prompts), size))
    }
}

/// A tap that records.
trait RecorderTap: Tap + Send {
    /// What became of the recording; asked after its end.
    fn report(self: Box<Self>) -> Report;
}

impl RecorderTap for Withheld<Box<dyn RecorderTap>> {
    fn report(self: Box<Self>) -> Report {
        self.into_inner().report()
    }
}

/// A recorder at work.
#[derive(Debug)]
pub struct Recorder {
    tap: TapThread<Box<dyn RecorderTap>>,
    path: PathBuf,
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

    /// Starts recording a session that runs already, with as much of its past as the log still
    /// holds. Says where in the session's output the recording begins.
    pub fn start_late(
        file: RecordingFile,
        log: SharedLog,
        clock: Clock,
        options: RecordOptions,
    ) -> io::Result<(Self, Offset)> {
        let (reader, from, at, size) = log.late_reader();
        // With its beginning still in the log, the session's first event gives the size.
        let late = (size != WinSize::default()).then(|| (from, at.unwrap_or_else(|| clock.now()).wall, size));
        Ok((Self::begin(file, log, reader, clock, options, size, late)?, from))
    }

    fn begin(
        mut file: RecordingFile,
        log: SharedLog,
        reader: ReaderId,
        clock: Clock,
        options: RecordOptions,
        size: WinSize,
        late: Option<(Offset, WallTime, WinSize)>,
    ) -> io::Result<Self> {
        if file.continues_encrypted().is_some_and(|encrypted| encrypted != options.encrypt.is_some()) {
            let what = "a recording is either encrypted or not: it cannot be continued as the other";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        file.begin(options.sync)?;
        let path = file.path().to_owned();
        log.begin_recording(&path, options.on_failure);
        let tap_reader = TapReader::new(&log, reader, clock);
        if file.container().format != Format::Ahr || file.container().zst {
            let withholds = options.withholds(size);
            let tap = ForeignTap::new(file, &options, clock, size, log)?;
            return Self::run(tap_reader, Box::new(tap), withholds, size, path);
        }
        let mut meta = first_meta(&options, clock, size);
        meta.pipes = log.is_on_pipes();
        if file.written() > 0 {
            match Source::find(&path, None, None).map(|source| source.meta()) {
                // A recording that is continued began when, where and as it began.
                Ok(Some(old)) => {
                    meta = Meta { exit: None, ended_at: None, sha256: None, digest: None, seal: None, ..old };
                    meta.title = options.title.clone().or(meta.title);
                    meta.tags.extend(options.tags.clone());
                    meta.env.extend(options.env.clone());
                }
                Ok(None) => {}
                // There is no key for what it says.
                Err(_) => meta.continuation = options.encrypt.is_some(),
            }
        }
        meta.extra.remove("ipc");
        if let Some(ipc) = &options.ipc {
            meta.extra.insert("ipc", ipc.as_str());
        }
        // Snapshots are announced to one recording of a session, the first.
        if !log.is_recorded() {
            log.set_recorder(reader);
        }
        let seal = options.seal.clone().map(Sealing::begin).transpose()?;
        let mut held = options.scrub.clone().map(|rules| Held::new(rules, size, options.input.any()));
        if let Some(held) = &mut held {
            scrub_meta(&mut meta, held.scrubber());
        }
        let withholds = options.withholds(size);
        let mut tap = NativeTap::new(file, log, reader, clock, options, meta);
        tap.seal = seal;
        if let Some((from, at, size)) = late {
            if let Some(held) = &mut held {
                held.lost(from.0);
            }
            tap.begin_late(from, at, size);
        }
        tap.held = held;
        Self::run(tap_reader, Box::new(tap), withholds, size, path)
    }

    fn run(
        reader: TapReader,
        mut tap: Box<dyn RecorderTap>,
        withholds: Option<(Arc<SecretPrompts>, WinSize)>,
        size: WinSize,
        path: PathBuf,
    ) -> io::Result<Self> {
        if let Some((prompts, size)) = withholds {
            tap = Box::new(Withheld::new(tap, prompts, size));
        }
        let tap: Box<dyn RecorderTap> = Box::new(Pausing::new(tap, reader.log().clone(), size));
        let tap = TapThread::start("tapdeck-recorder", reader, tap)?;
        tracing::info!(path = %path.display(), "recording started");
        Ok(Self { tap, path })
    }

    /// Where it records to.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Ends the recording before the session ends.
    pub fn stop(self) -> Report {
        let log = self.tap.log().clone();
        let report = report(self.tap.stop(), self.path);
        log.forget_recording(&report.path);
        report
    }

    /// Waits until everything is on disk. The log must have been closed.
    pub fn finish(self) -> Report {
        let log = self.tap.log().clone();
        let report = report(self.tap.finish(), self.path);
        // A recorder that broke down could not say so itself.
        log.note_recording(&report.path, true, report.trouble.as_ref());
        report
    }
}

fn report(tap: Result<Box<dyn RecorderTap>, TapPanicked>, path: PathBuf) -> Report {
    let report = match tap {
        Ok(tap) => tap.report(),
        Err(TapPanicked) => Report {
            trouble: Some("the recorder broke down; what it had written is whole".into()),
            ..Report::nothing(path)
        },
    };
    let Report { file_bytes, output_bytes, lost_bytes, .. } = report;
    let path = report.path.display();
    tracing::info!(%path, file_bytes, output_bytes, lost_bytes, "recording finished");
    for trouble in [&report.trouble, &report.index_trouble].into_iter().flatten() {
        tracing::warn!(%path, trouble, "recording has trouble");
    }
    report
}

fn first_meta(options: &RecordOptions, clock: Clock, size: WinSize) -> Meta {
    let mut meta = Meta::new();
    meta.set_argv(options.argv.iter().map(|a| a.as_bytes()));
    meta.started_at = clock.wall_start();
    meta.cwd = options.cwd.as_ref().map(|p| p.to_string_lossy().into_owned());
    let size = size.or_default();
    (meta.cols, meta.rows) = (size.cols, size.rows);
    meta.brotli_q = Some(options.quality);
    meta.host = Some(meta::Host { os: std::env::consts::OS.into(), arch: std::env::consts::ARCH.into() });
    meta.term = std::env::var("TERM").ok();
    meta.title.clone_from(&options.title);
    meta.tags.clone_from(&options.tags);
    meta.env.clone_from(&options.env);
    meta.continues.clone_from(&options.continues);
    meta.parent.clone_from(&options.parent);
    meta.set_idle_limit(options.idle_limit);
    meta.tapdeck = Some(env!("CARGO_PKG_VERSION").into());
    meta
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
