//! Files beside a recording: what older recordings have there instead of in themselves, and what
//! is written there for tools that want it.
//!
//! While it is recorded, and after its recorder was killed, an older recording has them in the
//! state folder.

use std::fs::{self, Metadata};
use std::io::{self, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tapdeck_tape::ahr::parts::{EVENTS, INSTRUCTIONS, META};
use tapdeck_tape::{Item, Kind, WallTime};

use super::name::known_state_folder;
use crate::disk;
use crate::out_file::OutFile;
use crate::source::{Source, SourceError};

/// What may stand beside a recording.
pub(crate) const SIDECARS: [&str; 6] = [META, EVENTS, "snapshots.jsonl", INSTRUCTIONS, "seal", "ahx"];

/// The sidecars that the seal of an older recording covers, by the ends of their names.
pub const SEALED_SIDECARS: [&str; 2] = [EVENTS, "snapshots.jsonl"];

/// In a folder of working copies, the link that names the recording.
const LINK: &str = "recording";

/// The path of a file that goes with a recording: `demo.ahr` → `demo.meta.json`.
pub fn sidecar(recording: &Path, suffix: &str) -> PathBuf {
    if recording.extension().is_some_and(|e| e == "ahr") {
        return recording.with_extension(suffix);
    }
    let mut name = recording.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(suffix);
    recording.with_file_name(name)
}

/// The other name whose recording has its files in the same places: `demo` and `demo.ahr`.
pub(super) fn twin(recording: &Path) -> Option<PathBuf> {
    if recording.extension().is_some_and(|e| e == "ahr") {
        return Some(recording.with_extension(""));
    }
    let mut name = recording.file_name()?.to_owned();
    name.push(".ahr");
    Some(recording.with_file_name(name))
}

/// Finds a file that goes with a recording: beside it, or in the state folder. Without one, returns
/// its place beside the recording.
pub fn find_sidecar(recording: &Path, suffix: &str) -> PathBuf {
    let beside = sidecar(recording, suffix);
    if beside.symlink_metadata().is_ok() {
        return beside;
    }
    let working = existing_folder(recording).map(|folder| folder.join(suffix));
    working.filter(|path| path.is_file()).unwrap_or(beside)
}

/// Removes what stands beside a recording that is about to be replaced: it speaks of the old one,
/// and would be believed of the new.
///
/// # Errors
/// When that cannot be had on disk.
pub fn forget_sidecars(recording: &Path) -> io::Result<()> {
    for suffix in SIDECARS {
        // Most of them are not there. What the new recording has in itself is believed first.
        let _ = disk::remove_file(&sidecar(recording, suffix));
    }
    forget_working_copies(recording);
    disk::sync_folder_of(recording)
}

/// Removes what a killed recorder of an earlier version left in the state folder.
pub(super) fn forget_working_copies(recording: &Path) {
    if let Some(folder) = existing_folder(recording) {
        // One that stays harms nothing: what the recording has in itself is believed first.
        let _ = disk::remove_folder(&folder);
    }
}

/// Writes beside a recording what it has in itself, for tools that want files: `meta.json`,
/// `events.jsonl`, `snapshots.jsonl` and `instructions.jsonl`, those of them that say anything.
///
/// # Errors
/// When the recording cannot be read, or a file cannot be written.
pub fn write_sidecars(recording: &Path) -> Result<(), SourceError> {
    let source = Source::find(recording, None, None)?;
    let fail = |path: &Path| {
        let path = path.to_owned();
        move |why| SourceError::Open { path, why }
    };
    let put = |suffix: &str, content: &mut dyn io::Read| {
        let path = sidecar(recording, suffix);
        let mut content = BufReader::new(content);
        let some = io::BufRead::fill_buf(&mut content).is_ok_and(|bytes| !bytes.is_empty());
        if !some {
            // Most often there is none; one that is left of another recording must not speak for
            // this one.
            let _ = disk::remove_file(&path);
            return Ok(());
        }
        OutFile::replace_with(&path, &mut content).map_err(fail(&path))
    };
    let meta = source.meta().and_then(|meta| meta.to_bytes().ok()).unwrap_or_default();
    put(META, &mut &meta[..])?;
    for suffix in [EVENTS, INSTRUCTIONS] {
        match source.sidecar(suffix) {
            Some(mut part) => put(suffix, &mut part)?,
            None => put(suffix, &mut io::empty())?,
        }
    }
    put("snapshots.jsonl", &mut &snapshot_lines(&source)?[..])
}

/// The snapshots of a recording, a line each.
pub(super) fn snapshot_lines(source: &Source) -> Result<Vec<u8>, SourceError> {
    let mut lines = Vec::new();
    let mut reader = source.open()?;
    let started = reader.header().started.unwrap_or(WallTime::ZERO);
    while let Some(item) = reader.next_item().map_err(|e| source.read_error(e))? {
        let Item::Event(event) = item else { continue };
        let Kind::Snapshot { id, anchor, label } = event.kind else { continue };
        let at = started + event.time.since_start();
        let line = serde_json::json!({
            "id": id, "ts_ns": at.as_nanos(), "label": label, "kind": "ipc", "anchor_byte": anchor,
        });
        lines.extend_from_slice(line.to_string().as_bytes());
        lines.push(b'\n');
    }
    Ok(lines)
}

fn existing_folder(recording: &Path) -> Option<PathBuf> {
    let path = fs::canonicalize(recording).ok()?;
    let folder = folder_of(&known_state_folder()?.join("unfinished"), &fs::metadata(&path).ok()?);
    // A file's number is used again when the file is gone.
    (fs::read_link(folder.join(LINK)).ok()? == path).then_some(folder)
}

fn folder_of(all: &Path, recording: &Metadata) -> PathBuf {
    all.join(format!("{:x}-{:x}", recording.dev(), recording.ino()))
}
