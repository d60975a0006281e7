//! The snapshots and instructions that wait to be on disk.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use tapdeck_core::{ReaderId, Seq};

use crate::disk::{self, DiskFile};
use crate::inbox::{Anchor, SnapshotError};
use crate::shared::SharedLog;

/// Answers the callers that took snapshots or gave instructions, once these are on disk. When this
/// is dropped, by a panic of the recorder too, callers that still wait hear that the session is not
/// recorded any more.
pub(super) struct Snapshots {
    log: SharedLog,
    reader: ReaderId,
    waiting: Vec<(Seq, Anchor)>,
    /// Lines about them: of events, and of instructions.
    lines: Lines,
}

#[derive(Default)]
pub(super) struct Lines {
    pub(super) events: String,
    pub(super) instructions: Vec<u8>,
}

impl Snapshots {
    pub(super) fn new(log: SharedLog, reader: ReaderId) -> Self {
        Self { log, reader, waiting: Vec::new(), lines: Lines::default() }
    }

    /// Whether there are any to put on disk.
    pub(super) fn waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(super) fn add(&mut self, seq: Seq, anchor: Anchor, line: &str) {
        self.waiting.push((seq, anchor));
        self.lines.events.push_str(line);
    }

    pub(super) fn add_instruction(&mut self, seq: Seq, anchor: Anchor, line: &[u8]) {
        self.waiting.push((seq, anchor));
        self.lines.instructions.extend_from_slice(line);
    }

    /// The lines about those that wait.
    pub(super) fn take_lines(&mut self) -> Lines {
        std::mem::take(&mut self.lines)
    }

    /// With the recording on disk, or refused: answers every caller.
    pub(super) fn commit(&mut self, refusal: Option<String>) {
        let answer = |anchor| refusal.clone().map_or(Ok(anchor), |why| Err(SnapshotError::Failed(why)));
        for (seq, anchor) in self.waiting.drain(..) {
            self.log.answer(seq, answer(anchor));
        }
    }
}

impl Drop for Snapshots {
    fn drop(&mut self) {
        self.log.unset_recorder(self.reader);
    }
}

/// Appends lines to a file, wholly or not at all, and has them on disk. Others may do the same
/// meanwhile.
pub fn append_lines(path: &Path, lines: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    let mut file = DiskFile::open(path, &options)?;
    disk::sync_folder_of(path)?;
    flock(&file, FlockOperation::LockExclusive)?;
    let before = file.metadata()?.len();
    let written = end_line(&mut file).and_then(|()| file.write_all(lines)).and_then(|()| file.sync());
    if written.is_err() {
        // The error that is returned says more than a second one.
        let _ = file.resize(before);
    }
    written
}

/// Ends a line that a power cut left torn, so that the next one does not become a part of it.
fn end_line(file: &mut DiskFile) -> io::Result<()> {
    let Some(last) = file.metadata()?.len().checked_sub(1) else { return Ok(()) };
    let mut byte = [0];
    file.read_exact_at(&mut byte, last)?;
    if byte == *b"\n" { Ok(()) } else { file.write_all(b"\n") }
}
