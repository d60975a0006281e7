//! What a recording that is converted says of itself besides its events, and the files beside what
//! comes of it.

use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};

use tapdeck_core::WallTime;
use tapdeck_host::{Source, timing_names};
use tapdeck_tape::ahr::parts::EVENTS;
use tapdeck_tape::ahr::{AhrWriter, CarriedEvents};
use tapdeck_tape::event::Count;
use tapdeck_tape::meta::{Edit, Meta};
use tapdeck_tape::{Container, Format, Header, Loss, is_turn};

use super::{Conversion, ConvertError, Main, Seen, To};
use crate::OutFile;

/// What a native recording that is read says of itself.
#[derive(Default)]
pub(super) struct Beside {
    pub(super) meta: Option<Meta>,
    pub(super) events: Option<Box<dyn Read + Send>>,
    pub(super) instructions: Option<Box<dyn Read + Send>>,
}

impl Beside {
    pub(super) fn of(source: &Source) -> Self {
        Self {
            meta: source.meta(),
            events: source.sidecar(EVENTS).map(|events| Box::new(events) as _),
            instructions: source.instruction_lines(),
        }
    }

    /// The events, for a native recording that is written.
    pub(super) fn take_events(&mut self) -> Option<Box<dyn Read + Send>> {
        Some(Box::new(BufReader::new(self.events.take()?)))
    }

    /// What has no place in the target.
    pub(super) fn left_behind(self, input: &Path, to: To) -> Result<Option<(Loss, Count)>, ConvertError> {
        let Some(events) = self.events else { return Ok(None) };
        let mut events = CarriedEvents::new(BufReader::new(events));
        let mut count = Count::default();
        let failed = |source| ConvertError::Read { path: input.to_owned(), source };
        while let Some(line) = events.next_up_to(u64::MAX).map_err(failed)? {
            if to.has_turns() && is_turn(&line) {
                continue;
            }
            count.events += 1;
            count.bytes += line.len() as u64;
        }
        Ok((count.events > 0).then_some((Loss::Beside, count)))
    }
}

impl Conversion {
    /// Where the timing file of a typescript goes.
    pub(super) fn timing_path(&self, main: &Main<'_>, from: Container) -> Result<PathBuf, ConvertError> {
        // Only one of the two is a typescript, so there is no doubt whose timing it is.
        let spare = self.timing.clone().filter(|_| from.format != Format::Typescript);
        let beside = || timing_names(main.path()).into_iter().next().filter(|_| !main.is_stream());
        let path = self.out_timing.clone().or(spare).or_else(beside).ok_or(ConvertError::NoTimingFile)?;
        if is_same(&path, main.path()) { Err(ConvertError::SameTimingFile(path)) } else { Ok(path) }
    }
}

/// Whether two names would be one file, which need not be there yet.
fn is_same(a: &Path, b: &Path) -> bool {
    let place = |path: &Path| {
        let path = std::path::absolute(path).ok()?;
        let folder = path.parent()?;
        Some((
            std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned()),
            path.file_name()?.to_owned(),
        ))
    };
    place(a).is_some_and(|a| place(b) == Some(a))
}

/// The description of a new native recording: what the old one said, where there was one, and how
/// it ended.
pub(super) fn new_meta(header: &Header, old: Option<Meta>, seen: &Seen) -> Meta {
    let fresh = AhrWriter::meta(header);
    let mut meta = Meta { sha256: None, digest: None, seal: None, ..old.unwrap_or(fresh) };
    meta.tapdeck = Some(env!("CARGO_PKG_VERSION").into());
    meta.theme.clone_from(&header.theme);
    meta.exit = seen.ending.map(Into::into).or(meta.exit);
    if meta.started_at > WallTime::ZERO {
        meta.ended_at = Some(meta.started_at + seen.end.since_start());
    }
    meta
}

/// The sidecar of an edited recording: what is not the old one's any more comes from the edit.
pub(super) fn edited_meta(header: &Header, old: Option<Meta>, seen: &Seen, history: Vec<Edit>) -> Meta {
    let edited = AhrWriter::meta(header);
    let mut meta = new_meta(header, old.map(|old| Meta { exit: None, ..old }), seen);
    meta.title = edited.title;
    meta.started_at = edited.started_at;
    (meta.cols, meta.rows) = (edited.cols, edited.rows);
    meta.idle_limit_ms = edited.idle_limit_ms;
    meta.pipes = edited.pipes;
    meta.extra.remove("firstByte");
    if let Some(first) = edited.extra.get("firstByte") {
        meta.extra.insert("firstByte", first);
    }
    meta.ended_at = (meta.started_at > WallTime::ZERO).then(|| meta.started_at + seen.end.since_start());
    meta.history = history;
    meta
}

/// A file beside the output.
pub(super) struct Side {
    file: OutFile,
    path: PathBuf,
}

impl Side {
    pub(super) fn create(path: PathBuf, overwrite: bool) -> Result<Self, ConvertError> {
        let file = OutFile::create(&path, overwrite).map_err(ConvertError::write(&path))?;
        Ok(Self { file, path })
    }

    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<(), ConvertError> {
        self.file.write_all(bytes).map_err(ConvertError::write(&self.path))
    }

    pub(super) fn commit(self) -> Result<(), ConvertError> {
        self.file.commit().map_err(ConvertError::write(&self.path))
    }
}
