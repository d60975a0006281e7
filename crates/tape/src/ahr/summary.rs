//! What a recording comes to: the counts that `verify` and `info` print.

use std::io::Read;
use std::time::Duration;

use bytes::Bytes;
use tapdeck_term::Size;

use super::block::{Block, BlockItem, BlockReader};
use super::damage::{Damage, DamageKind};
use super::header::Header;
use super::mark::Mark;
use super::record::{Body, Record};
use super::times::leaps;
use crate::Result;

/// How the recorded program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With an exit code.
    Exit(u32),
    /// By a signal.
    Signal(u32),
}

/// Counts over a recording, or over as much of it as was added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Blocks that could be read.
    pub blocks: u64,
    /// Bytes of the file in these blocks.
    pub file_bytes: u64,
    /// Bytes of records in these blocks, decompressed.
    pub record_bytes: u64,
    /// Records.
    pub records: u64,
    /// DATA records.
    pub outputs: u64,
    /// Bytes of output.
    pub output_bytes: u64,
    /// INPUT records.
    pub inputs: u64,
    /// Bytes of input.
    pub input_bytes: u64,
    /// RESIZE records.
    pub resizes: u64,
    /// MARK records.
    pub marks: u64,
    /// SNAPSHOT records.
    pub snapshots: u64,
    /// PART records.
    pub parts: u64,
    /// Records of kinds that this version does not know.
    pub unknown: u64,
    /// The first size: columns and rows.
    pub first_size: Option<Size>,
    /// The last size: columns and rows.
    pub last_size: Option<Size>,
    /// Time of the first record.
    pub first_ts: Option<u64>,
    /// Time of the last record.
    pub last_ts: Option<u64>,
    /// Records whose time is before that of their predecessor: the wall clock was set back.
    pub backward_steps: u64,
    /// Offset of the first byte of output: not 0 where the recording was begun late.
    pub begins_at: u64,
    /// Offset behind the last byte of output.
    pub end_off: u64,
    /// Bytes of output that the recording itself says are lost (lag, disk, an earlier repair).
    pub declared_loss: u64,
    /// As many of them as an earlier repair cut out.
    pub repaired_loss: u64,
    /// Bytes of output missing between one DATA and the next, or what a block says comes next, for
    /// whatever reason.
    pub missing_bytes: u64,
    /// DATA records that begin before the end of the one before.
    pub overlaps: u64,
    /// How often the recording was paused.
    pub pauses: u64,
    /// How long it was paused in sum, in nanoseconds.
    pub paused_ns: u64,
    /// When the pause began that it ends in.
    pub paused_at: Option<u64>,
    /// Bytes of output that draw the screen again behind pauses.
    pub redrawn_bytes: u64,
    /// How the program ended, if the recording says so.
    pub ending: Option<Ending>,
    /// Whether the last block read says that it is the last.
    pub has_last_block: bool,
    /// Damaged ranges.
    pub damages: Vec<Damage>,
    /// Damaged ranges beyond the first [`Summary::MAX_DAMAGES`].
    pub more_damages: u64,
    /// The time before that of the last record, and where the block of the last record lies.
    before_last: Option<u64>,
    place: (u64, u64),
    last_block: Option<(Header, Bytes)>,
}

impl Summary {
    /// So many damaged ranges are kept; a file of nothing but damage must not fill memory.
    pub const MAX_DAMAGES: usize = 10_000;

    /// Reads a whole recording.
    ///
    /// # Errors
    /// When the reader fails, and when the recording was written for a later version.
    pub fn of(reader: impl Read) -> Result<Self> {
        let mut summary = Self::default();
        let mut blocks = BlockReader::new(reader);
        while let Some(item) = blocks.next_item()? {
            match item {
                BlockItem::Block(block) => summary.add_block(&block),
                BlockItem::Damage(damage) => summary.add_damage(damage),
            }
        }
        Ok(summary)
    }

    /// Whether nothing is damaged. A recording that its program survived (no ending) is whole too.
    pub fn is_whole(&self) -> bool {
        self.damages.is_empty() && self.overlaps == 0 && self.missing_bytes <= self.declared_loss
    }

    /// Bytes of output that were lost while recording, as the recording says itself.
    pub fn lost_while_recording(&self) -> u64 {
        self.declared_loss.saturating_sub(self.repaired_loss)
    }

    /// From the first record to the last.
    pub fn duration(&self) -> Duration {
        Duration::from_nanos(self.last_ts.unwrap_or(0).saturating_sub(self.first_ts.unwrap_or(0)))
    }

    /// How long it was paused, with the pause that it ends in.
    pub fn paused(&self) -> Duration {
        let open = self.paused_at.map_or(0, |at| self.last_ts.unwrap_or(at).saturating_sub(at));
        Duration::from_nanos(self.paused_ns.saturating_add(open))
    }

    /// Adds a block and its records.
    pub(crate) fn add_block(&mut self, block: &Block) {
        self.blocks += 1;
        self.file_bytes += block.len;
        self.record_bytes += block.bytes.len() as u64;
        self.has_last_block = block.header.is_last() && !block.partial;
        if block.repeats(&mut self.last_block) {
            return self.add_damage(about(block, DamageKind::Repeated));
        }
        if self.blocks == 1 && self.damages.is_empty() {
            self.begins_at = begin(block);
            self.end_off = self.begins_at;
        }
        // The header tells the time of the first record.
        if self.last_ts.is_none() {
            self.before_last = Some(block.header.start_ts_ns);
        }
        for record in block.records().flatten() {
            self.check_time(record.ts_ns);
            self.place = (block.offset, block.len);
            self.add_record(&record);
        }
        self.check_offset(block);
    }

    /// What the header says of where output stands. It alone tells of output that is missing when
    /// none follows.
    fn check_offset(&mut self, block: &Block) {
        let says = block.header.start_byte_off;
        let wrong = match block.start_off {
            Some(first) => first != says,
            None => says < self.end_off,
        };
        if wrong {
            self.add_damage(about(block, DamageKind::Mismatch("where its output begins")));
        } else if block.start_off.is_none() {
            self.missing_bytes = self.missing_bytes.saturating_add(says - self.end_off);
            self.end_off = says;
        }
    }

    /// Adds a damaged range.
    pub(crate) fn add_damage(&mut self, damage: Damage) {
        if self.damages.len() < Self::MAX_DAMAGES {
            self.damages.push(damage);
        } else {
            self.more_damages += 1;
        }
    }

    /// What the time of the next record says of that of the last.
    fn check_time(&mut self, ts: u64) {
        let Some(last) = self.last_ts else { return };
        let before = self.before_last.replace(last).unwrap_or(last);
        if leaps(before, last, ts) {
            let (offset, len) = self.place;
            self.before_last = Some(before);
            self.first_ts = self.first_ts.map(|first| if first == last { before } else { first });
            let (after_ts, before_ts) = (Some(before), Some(ts));
            self.add_damage(Damage { after_ts, before_ts, ..Damage::new(offset, len, DamageKind::BadTime) });
        }
    }

    fn add_record(&mut self, record: &Record) {
        self.records += 1;
        self.first_ts.get_or_insert(record.ts_ns);
        if self.last_ts.is_some_and(|last| record.ts_ns < last) {
            self.backward_steps += 1;
        }
        self.last_ts = Some(record.ts_ns);
        match &record.body {
            Body::Data { off, bytes } => {
                self.outputs += 1;
                self.output_bytes += bytes.len() as u64;
                self.missing_bytes = self.missing_bytes.saturating_add(off.saturating_sub(self.end_off));
                self.overlaps += u64::from(*off < self.end_off);
                self.end_off = off.saturating_add(bytes.len() as u64);
            }
            Body::Resize(size) => {
                self.resizes += 1;
                self.first_size.get_or_insert(*size);
                self.last_size = Some(*size);
            }
            Body::Input { bytes } => {
                self.inputs += 1;
                self.input_bytes += bytes.len() as u64;
            }
            Body::Mark { code, val } => {
                self.marks += 1;
                let mark = Mark::from_raw(*code, *val);
                self.declared_loss += mark.lost_output();
                match mark {
                    Mark::Exit(code) => self.ending = Some(Ending::Exit(code)),
                    Mark::Signal(number) => self.ending = Some(Ending::Signal(number)),
                    Mark::Paused => {
                        self.pauses += 1;
                        self.paused_at = Some(record.ts_ns);
                    }
                    Mark::Resumed(drawn) => {
                        let since = self.paused_at.take().unwrap_or(record.ts_ns);
                        self.paused_ns = self.paused_ns.saturating_add(record.ts_ns.saturating_sub(since));
                        self.redrawn_bytes += u64::from(drawn);
                    }
                    Mark::Repaired(n) => self.repaired_loss += u64::from(n),
                    _ => {}
                }
            }
            Body::Snapshot { .. } => self.snapshots += 1,
            Body::Part { .. } => self.parts += 1,
            Body::Unknown { .. } => self.unknown += 1,
        }
    }
}

/// Where the output of a recording begins, by its first block. One that was begun late says so with
/// the size that opens it; otherwise the block before is gone.
pub(super) fn begin(first: &Block) -> u64 {
    let mut records = first.records().flatten().map(|record| record.body);
    if !matches!(records.next(), Some(Body::Resize(_))) {
        return 0;
    }
    let lost: u64 =
        records
            .take_while(|body| !matches!(body, Body::Data { .. }))
            .map(|body| {
                if let Body::Mark { code, val } = body { Mark::from_raw(code, val).lost_output() } else { 0 }
            })
            .sum();
    first.sound_start().unwrap_or(0).saturating_sub(lost)
}

/// Damage of a block that could be read.
fn about(block: &Block, kind: DamageKind) -> Damage {
    Damage::new(block.offset, block.len, kind)
}
