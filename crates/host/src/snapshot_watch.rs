//! The snapshots of a recording in progress, as they come.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use tapdeck_core::WallTime;
use tapdeck_tape::ahr::parts::EVENTS;
use tapdeck_tape::ahr::{MAGIC, Parts};
use tapdeck_tape::{Moment, snapshots_of};

/// So much of the events is read at a time.
const STEP: u64 = 4 << 20;

/// Watches a native recording. Only headers are read, and the blocks that hold parts.
#[derive(Debug)]
pub struct SnapshotWatch {
    recording: PathBuf,
    len: u64,
    parts: Parts,
    /// How far the events have been read: to the end of a line.
    read: u64,
}

impl SnapshotWatch {
    /// Of a recording that need not be there yet.
    pub fn new(recording: PathBuf) -> Self {
        Self { recording, len: 0, parts: Parts::default(), read: 0 }
    }

    /// The snapshots that were recorded since the last look. Those of an encrypted recording cannot
    /// be read without a key.
    pub fn look(&mut self) -> Vec<Moment> {
        let Ok(mut file) = File::open(&self.recording) else { return Vec::new() };
        let len = file.metadata().map_or(0, |m| m.len());
        let mut head = [0; MAGIC.len()];
        if len == self.len || file.read_exact(&mut head).is_err() || head != MAGIC {
            return Vec::new();
        }
        if len < self.len {
            *self = Self::new(std::mem::take(&mut self.recording));
        }
        self.len = len;
        // What cannot be read now may be readable when there is more.
        if self.parts.extend(&file).is_err() {
            return Vec::new();
        }
        let mut found = Vec::new();
        while let Some(lines) = self.next_lines(&file) {
            found.extend(snapshots_of(&lines[..], WallTime::ZERO).unwrap_or_default());
        }
        found
    }

    /// The next whole lines of the events, if there are any.
    fn next_lines(&mut self, file: &File) -> Option<Vec<u8>> {
        let mut events = self.parts.open(EVENTS, file)?;
        events.seek(SeekFrom::Start(self.read)).ok()?;
        let mut lines = Vec::new();
        events.take(STEP).read_to_end(&mut lines).ok()?;
        let whole = match lines.iter().rposition(|b| *b == b'\n') {
            Some(end) => end + 1,
            // A line of this length is none of a snapshot.
            None if lines.len() as u64 == STEP => lines.len(),
            None => return None,
        };
        self.read += whole as u64;
        lines.truncate(whole);
        Some(lines)
    }
}
