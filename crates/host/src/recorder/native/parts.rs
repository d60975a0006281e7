//! What a recording says of itself: its description, its events, its index and its seal, on their
//! way into blocks of their own.

use tapdeck_core::WallTime;
use tapdeck_tape::ahr::parts::{EVENTS, INDEX, INSTRUCTIONS, META, SEAL};
use tapdeck_tape::ahr::{Place, Quality, part_blocks};
use tapdeck_tape::scrub::{scrub_line, scrub_meta};

use super::super::BLOCK_AGE;
use super::super::seal::Sealing;
use super::super::sidecars::{sidecar, write_sidecars};
use super::NativeTap;
use super::blocks::{Disk, append};
use crate::disk;

/// So much waits for a disk that is full.
const MAX_WAITING: usize = 8 << 20;

/// Parts that are not on disk yet.
#[derive(Default)]
pub(super) struct Pending {
    meta: Vec<u8>,
    events: Vec<u8>,
    instructions: Vec<u8>,
    index: Vec<u8>,
    /// When the oldest came; `None` while nothing is worth a block.
    since: Option<WallTime>,
    /// Where the next block of parts belongs.
    pub(super) place: Option<Place>,
}

impl Pending {
    /// Nothing, behind a recording that is continued.
    pub(super) fn behind(place: Option<Place>) -> Self {
        Self { place, ..Self::default() }
    }

    /// Whether there are any.
    pub(super) fn waiting(&self) -> bool {
        [&self.meta, &self.events, &self.instructions, &self.index].iter().any(|bytes| !bytes.is_empty())
    }

    /// When they are old enough to be written.
    pub(super) fn due(&self) -> Option<WallTime> {
        self.since.map(|since| since + BLOCK_AGE)
    }
}

impl NativeTap {
    /// Says that there is something to write.
    pub(super) fn parts_wait(&mut self) {
        if self.parts.since.is_none() {
            self.parts.since = Some(self.clock.now().wall);
        }
    }

    pub(super) fn write_event(&mut self, line: &str) {
        let scrubbed = self.held.as_mut().map(|h| scrub_line(line.as_bytes(), h.scrubber()));
        let line = scrubbed.as_deref().unwrap_or(line.as_bytes());
        if self.parts.events.len() + line.len() > MAX_WAITING {
            self.note_trouble("events are missing from it: the disk takes none");
            return;
        }
        self.parts.events.extend_from_slice(line);
        self.parts_wait();
    }

    /// Writes instructions, with the parts that wait. Returns whether the disk has taken them; what
    /// it did not take is not tried again.
    pub(super) fn write_instructions(&mut self, lines: &[u8]) -> bool {
        self.parts.instructions.extend_from_slice(lines);
        self.write_parts();
        let kept = self.parts.instructions.is_empty();
        self.parts.instructions.clear();
        kept
    }

    /// Describes the recording. What is to be masked may be learned later, so such a recording is
    /// described in full at its end alone.
    pub(super) fn describe(&mut self) {
        if !self.closing && self.held.is_some() {
            let full = self.meta.clone();
            self.meta = full.without_content();
            self.push_meta();
            self.meta = full;
        } else {
            self.push_meta();
        }
    }

    fn push_meta(&mut self) {
        if let Some(seal) = &self.seal
            && let Err(e) = seal.sign(&mut self.meta, self.closing)
        {
            self.note_trouble(format!("the seal could not be written: {e}"));
        }
        match self.meta.to_line() {
            Ok(line) => self.parts.meta = line,
            Err(e) => self.note_trouble(format!("the recording could not be described: {e}")),
        }
        self.parts_wait();
    }

    /// Writes the parts that wait, if the disk is worth a try. They stand behind the last block on
    /// disk, whatever is in hand.
    pub(super) fn write_parts(&mut self) {
        self.parts.since = None;
        let ready = self.index.take();
        self.parts.index.extend_from_slice(&ready);
        // A recording begins with its size.
        if self.file.written() == 0 && !self.builder.is_empty() {
            self.write_block(false);
        }
        let Some(place) = self.parts.place.filter(|_| self.file.written() > 0) else { return };
        let now = self.clock.now().wall;
        let worth_a_try = match self.disk {
            Disk::Fine => true,
            Disk::Full(retry_at) => self.closing || now >= retry_at,
            Disk::Broken => false,
        };
        // Nothing but the last description is behind the head of the seal.
        let seal = self.seal.as_ref().filter(|_| self.meta.digest.is_none());
        let seal_lines = seal.map_or(&[][..], Sealing::lines);
        let sealed = seal_lines.len();
        let Pending { meta, events, instructions, index, .. } = &self.parts;
        let all = [
            (META, &meta[..]),
            (EVENTS, events),
            (INSTRUCTIONS, instructions),
            (INDEX, index),
            (SEAL, seal_lines),
        ];
        // What the disk does not take now goes with the next block that it takes.
        if !worth_a_try || all.iter().all(|(_, bytes)| bytes.is_empty()) {
            return;
        }
        let blocks = part_blocks(&all, place, Quality::Brotli(self.options.quality), self.closing);
        let blocks: Vec<(&[u8], u64)> = blocks.iter().map(|block| (&block[..], place.byte_off)).collect();
        let marks = (self.seal.as_mut(), self.options.encrypt.as_ref());
        match append(&mut self.file, marks, &blocks) {
            Ok(()) => {
                self.parts = Pending::behind(Some(place));
                if let Some(seal) = &mut self.seal {
                    seal.wrote(sealed);
                }
                self.index.wrote(self.file.written(), self.builder.byte_off() - self.in_block, false);
            }
            Err(e) => self.note_refusal(&e, now),
        }
    }

    /// The end of the recording: everything that it says of itself, and at last what it comes to.
    pub(super) fn close_parts(&mut self) {
        // Of a short session, the last description is the only one.
        self.parts.meta.clear();
        // What its session could not be given while it was recorded waits beside it.
        let beside = sidecar(self.file.path(), INSTRUCTIONS);
        // Most often there is none.
        let instructions = std::fs::read(&beside).unwrap_or_default();
        self.parts.instructions.extend_from_slice(&instructions);
        self.write_parts();
        let kept = self.parts.instructions.is_empty();
        let (index, trouble) = self.index.finish();
        self.report.index_trouble = trouble;
        self.parts.index.extend_from_slice(&index);
        self.write_parts();
        self.sync();
        if kept && !instructions.is_empty() && matches!(self.disk, Disk::Fine) {
            // One that stays is read as well, and says the same.
            let _ = disk::remove_file(&beside);
        }
        if self.report.trouble.is_none() {
            self.report.trouble = self.file.tampering().map(Into::into);
        }
        if let Some(held) = &mut self.held {
            // What was learned since the session began may stand in its command line.
            scrub_meta(&mut self.meta, held.scrubber());
        }
        self.meta.digest = Some(self.file.digest());
        // The head of the seal is behind everything else.
        self.describe();
        self.write_parts();
        self.sync();
        if self.options.sidecars
            && let Err(e) = write_sidecars(self.file.path())
        {
            self.note_trouble(e.to_string());
        }
    }
}
