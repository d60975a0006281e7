//! The folder of attempts: the worktrees of branched sessions, and their recordings.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tapdeck_core::WallTime;
use tapdeck_host::{Clock, Source, state_folder};
use tapdeck_tape::ahr::parts::EVENTS;
use tapdeck_tape::meta::{Meta, Parent};
use tapdeck_tape::{
    RecordedConversation, RecordedTree, conversations_of, files_not_kept, place_trees, trees_of,
};

use crate::failure::{Failure, Result};
use crate::sessions;

/// The longest part of a recording's name that goes into the name of an attempt: a session's name
/// has at most 64 characters.
const NAME: usize = 48;
/// More attempts than this are not looked for.
const MAX: usize = 10_000;

/// How long a new recording may take until it can be read, and how often it is looked at.
const LISTED: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);

/// The folder of attempts.
pub(super) fn folder() -> PathBuf {
    state_folder().join("branches")
}

/// The recording of the attempt of this name.
pub(super) fn recording(name: &Path) -> PathBuf {
    let mut file = name.as_os_str().to_owned();
    file.push(".ahr");
    folder().join(file)
}

/// A new attempt.
pub(super) struct Attempt {
    /// The name of its session.
    pub(super) name: String,
    /// Where its worktree goes, unless the user says.
    pub(super) worktree: PathBuf,
    pub(super) recording: PathBuf,
}

/// A name that no attempt and no live session has: that of the recording, with a number behind it.
pub(super) fn name(recording: &Path) -> Result<Attempt> {
    let folder = folder();
    let stem = recording.file_stem().unwrap_or_default().to_string_lossy();
    let is_fit = |c: &char| c.is_alphanumeric() || "-_.".contains(*c);
    let stem: String = stem.chars().map(|c| if is_fit(&c) { c } else { '-' }).take(NAME).collect();
    let live = sessions::alive()?.1;
    let attempt = |n: usize| {
        let name = format!("{stem}-{n}");
        let (worktree, recording) = (folder.join(&name), folder.join(format!("{name}.ahr")));
        Attempt { name, worktree, recording }
    };
    let is_free = |attempt: &Attempt| {
        let is_live = live.iter().any(|session| session.name.as_deref() == Some(&attempt.name));
        !is_live && !attempt.worktree.exists() && !attempt.recording.exists()
    };
    let free = (1..=MAX).map(attempt).find(is_free);
    free.ok_or_else(|| Failure::usage(format!("{} has {MAX} attempts: remove some", folder.display())))
}

/// Waits until a recording that has just begun says what it was branched from, so that it is listed
/// from then on.
pub(super) fn wait_for(recording: &Path) {
    let clock = Clock::start();
    let is_listed =
        || Source::find(recording, None, None).is_ok_and(|s| s.meta().is_some_and(|m| m.parent.is_some()));
    while clock.elapsed() < LISTED && !is_listed() {
        std::thread::park_timeout(LOOK);
    }
}

/// The kept trees of a recording.
pub(super) fn trees(source: &Source) -> Result<Vec<RecordedTree>> {
    let Some(events) = source.sidecar(EVENTS) else { return Ok(Vec::new()) };
    let mut trees = trees_of(std::io::BufReader::new(events)).map_err(|e| source.read_error(e))?;
    place_trees(&mut trees, &source.turns()?);
    Ok(trees)
}

/// Why the files of a recording could not be kept, if that failed.
pub(super) fn not_kept(source: &Source) -> Result<Option<String>> {
    let Some(events) = source.sidecar(EVENTS) else { return Ok(None) };
    let all = files_not_kept(std::io::BufReader::new(events)).map_err(|e| source.read_error(e))?;
    Ok(all.into_iter().next())
}

/// The newest conversation of a recording until a moment: that of the agent at that time.
pub(super) fn conversation(source: &Source, until: WallTime) -> Result<Option<RecordedConversation>> {
    let Some(events) = source.sidecar(EVENTS) else { return Ok(None) };
    let all = conversations_of(std::io::BufReader::new(events)).map_err(|e| source.read_error(e))?;
    Ok(all.into_iter().rev().find(|conversation| conversation.at <= until))
}

/// A recorded attempt.
pub(super) struct Found {
    pub(super) source: Source,
    pub(super) meta: Meta,
    pub(super) parent: Parent,
}

/// The attempts in the folder, by the time of their start.
pub(super) fn all() -> Vec<Found> {
    let entries = std::fs::read_dir(folder()).into_iter().flatten().flatten().take(MAX);
    let recordings =
        entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "ahr"));
    let read = |path: PathBuf| {
        // A recording that cannot be read is none of an attempt that could be shown.
        let source = Source::find(&path, None, None).ok()?;
        let mut meta = source.meta()?;
        let parent = meta.parent.take()?;
        Some(Found { source, meta, parent })
    };
    let mut found: Vec<Found> = recordings.filter_map(read).collect();
    found.sort_by_key(|attempt| attempt.meta.started_at);
    found
}

/// Whether an attempt was branched from this recording.
pub(super) fn is_child(parent: &Parent, path: &Path, started: WallTime) -> bool {
    let is_same_path = path.canonicalize().is_ok_and(|path| path == Path::new(&parent.path));
    match started == WallTime::ZERO || parent.started_at == WallTime::ZERO {
        true => is_same_path,
        // It may have been moved since; one that has its name now may be another.
        false => parent.started_at == started,
    }
}
