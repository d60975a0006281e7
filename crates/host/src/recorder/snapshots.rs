//! The snapshots that wait to be on disk, and `NAME.snapshots.jsonl`, which lists those that are.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use tapdeck_core::{ReaderId, Seq};

use super::{RecordingFile, sidecar};
use crate::disk::{self, DiskFile};
use crate::inbox::{Anchor, SnapshotError};
use crate::shared::SharedLog;

/// Answers the callers that took snapshots, once these are on disk. When this is dropped, by a
/// panic of the recorder too, callers that still wait hear that the session is not recorded any
/// more.
pub(super) struct Snapshots {
    path: PathBuf,
    file: Option<DiskFile>,
    log: SharedLog,
    reader: ReaderId,
    waiting: Vec<(Seq, Anchor)>,
    lines: Vec<u8>,
    /// Whether they are listed beside the recording.
    listed: bool,
}

impl Snapshots {
    pub(super) fn new(recording: &RecordingFile, log: SharedLog, reader: ReaderId, listed: bool) -> Self {
        let path = sidecar(recording.path(), "snapshots.jsonl");
        if recording.written() == 0 {
            // Anchors in a recording that is no more would be taken for anchors in this one.
            // There is none, most often.
            let _ = disk::remove_file(&path);
        }
        Self { path, file: None, log, reader, waiting: Vec::new(), lines: Vec::new(), listed }
    }

    /// Whether there are any to put on disk.
    pub(super) fn waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(super) fn add(&mut self, seq: Seq, id: u64, label: &str, anchor: Anchor) {
        self.waiting.push((seq, anchor));
        let line = serde_json::json!({
            "id": id,
            "ts_ns": anchor.at.as_nanos(),
            "label": label,
            "kind": "ipc",
            "anchor_byte": anchor.byte.0,
        });
        self.lines.extend_from_slice(line.to_string().as_bytes());
        self.lines.push(b'\n');
    }

    /// With the recording itself on disk, or refused: writes the lines, and answers every caller.
    /// The error says what is wrong with the list.
    pub(super) fn commit(&mut self, refusal: Option<String>) -> Result<(), String> {
        let lines = std::mem::take(&mut self.lines);
        let listed = match refusal {
            Some(why) => Err(SnapshotError::Failed(why)),
            None if !self.listed => Ok(()),
            None => self
                .append(&lines)
                .map_err(|e| SnapshotError::Failed(format!("{}: {e}", self.path.display()))),
        };
        let answer = |anchor| listed.clone().map(|()| anchor);
        for (seq, anchor) in self.waiting.drain(..) {
            self.log.answer(seq, answer(anchor));
        }
        listed.map_err(|e| e.to_string())
    }

    /// Appends lines in one write, wholly or not at all, and has them on disk.
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(open(&self.path)?),
        };
        append_to(file, lines)
    }
}

impl Drop for Snapshots {
    fn drop(&mut self) {
        self.log.unset_recorder(self.reader);
    }
}

/// Appends lines to a sidecar, wholly or not at all, and has them on disk. Others may do the same
/// meanwhile.
pub fn append_lines(path: &Path, lines: &[u8]) -> io::Result<()> {
    let mut file = open(path)?;
    flock(&file, FlockOperation::LockExclusive)?;
    append_to(&mut file, lines)
}

fn append_to(file: &mut DiskFile, lines: &[u8]) -> io::Result<()> {
    let before = file.metadata()?.len();
    let written = end_line(file).and_then(|()| file.write_all(lines)).and_then(|()| file.sync());
    if written.is_err() {
        // The error that is returned says more than a second one.
        let _ = file.resize(before);
    }
    written
}

fn open(path: &Path) -> io::Result<DiskFile> {
    let file = open_lines(path)?;
    disk::sync_folder_of(path)?;
    Ok(file)
}

/// Opens or creates a private file of lines, to append to it.
pub(super) fn open_lines(path: &Path) -> io::Result<DiskFile> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    DiskFile::open(path, &options)
}

/// Ends a line that a power cut left torn, so that the next one does not become a part of it.
pub(super) fn end_line(file: &mut DiskFile) -> io::Result<()> {
    let Some(last) = file.metadata()?.len().checked_sub(1) else { return Ok(()) };
    let mut byte = [0];
    file.read_exact_at(&mut byte, last)?;
    if byte == *b"\n" { Ok(()) } else { file.write_all(b"\n") }
}
