//! Repair: a clean copy of a damaged recording that loses nothing else. Whole blocks are copied as they
//! are, the readable part of a torn one is written anew, and where output is missing a mark says how much,
//! so that a later look at the copy finds the gap explained.

use std::io::Read;

use super::block::{Block, BlockItem, BlockReader};
use super::build::BlockBuilder;
use super::codec::Quality;
use super::damage::{Damage, DamageKind};
use super::header::{HEADER_LEN, Header};
use super::mark::Mark;
use super::record::{Body, Record};
use super::summary::Summary;
use super::times::{LEAP, NEVER, falls, leaps};
use crate::Result;

/// Copies a recording piece by piece.
#[derive(Debug)]
pub struct Repair<R> {
    blocks: BlockReader<R>,
    builder: BlockBuilder,
    last_ts: Option<u64>,
    next_off: u64,
    /// Output that is missing, and as much of it as marks speak of.
    missing: u64,
    declared: u64,
    /// A block that waits for the one behind it, which tells whether its last record is in order.
    held: Option<Block>,
    out: Vec<u8>,
    before: Summary,
    copied: u64,
}

impl<R: Read> Repair<R> {
    /// Of a recording from its start.
    pub fn new(inner: R) -> Self {
        Self {
            blocks: BlockReader::new(inner).keeping_raw(),
            builder: BlockBuilder::new(0),
            last_ts: None,
            next_off: 0,
            missing: 0,
            declared: 0,
            held: None,
            out: Vec::new(),
            before: Summary::default(),
            copied: 0,
        }
    }

    /// The next bytes of the clean copy; `None` at its end.
    ///
    /// # Errors
    /// When the reader fails, or the recording is of a later version.
    pub fn next_piece(&mut self) -> Result<Option<&[u8]>> {
        self.out.clear();
        while self.out.is_empty() {
            let next = self.blocks.next_item()?;
            let over = next.is_none();
            let (held, damage) = match next {
                Some(BlockItem::Block(block)) => (self.held.replace(block), None),
                Some(BlockItem::Damage(damage)) => (self.held.take(), Some(damage)),
                None => (self.held.take(), None),
            };
            if held.is_none() && over {
                return Ok(None);
            }
            if let Some(block) = held {
                self.block(&block, damage.as_ref().and_then(|damage| damage.before_ts));
            }
            if let Some(damage) = damage {
                self.damage(damage);
            }
        }
        Ok(Some(&self.out))
    }

    /// What the part of the recording read so far comes to, as it was.
    pub fn before(&self) -> &Summary {
        &self.before
    }

    /// Blocks copied as they were.
    pub fn blocks_copied(&self) -> u64 {
        self.copied
    }

    fn block(&mut self, block: &Block, behind_damage: Option<u64>) {
        self.before.add_block(block);
        let mut records: Vec<Record> = block.records().flatten().collect();
        let changed = self.mend(block, behind_damage, &mut records);
        self.last_ts = records.last().map(|r| r.ts_ns).or(self.last_ts);
        let len = block.bytes.len();
        let header = &block.header;
        let agrees = !changed
            && header.record_count as u64 == block.record_count
            && header.uncompressed_len as usize == len;
        match &block.raw {
            Some(raw) if !block.partial && agrees && is_plain(header, raw.len()) => {
                self.copied += 1;
                self.out.extend_from_slice(raw);
            }
            // The header is wrong or says 48 for 44: same payload, header as it should be.
            Some(raw)
                if !block.partial && agrees && header.compressed_len as usize + HEADER_LEN == raw.len() =>
            {
                self.copied += 1;
                let header = Header { header_len: HEADER_LEN as u16, ..*header };
                self.out.extend_from_slice(&header.to_bytes());
                self.out.extend_from_slice(&raw[HEADER_LEN..]);
            }
            _ => {
                for record in records {
                    self.push(record);
                }
                let last = header.is_last() && !block.partial;
                self.out.extend_from_slice(self.builder.finish(Quality::default(), last));
            }
        }
    }

    /// Puts times and offsets right that those around them prove wrong, and a mark where output is missing that no
    /// mark speaks of. Says whether anything was done.
    fn mend(&mut self, block: &Block, behind_damage: Option<u64>, records: &mut Vec<Record>) -> bool {
        let next = self.held.as_ref().map(|next| next.header);
        let next_ts = self
            .held
            .as_ref()
            .and_then(|next| next.records().flatten().next())
            .map(|r| r.ts_ns)
            .or(behind_damage);
        let mut changed = false;
        let start = block.header.start_ts_ns;
        let mut last = self.last_ts.unwrap_or(start);
        for i in 0..records.len() {
            let behind = records.get(i + 1).map(|r| r.ts_ns).or(next_ts);
            let ts = records[i].ts_ns;
            // One damaged byte of a compressed block can show in many times: the next block bears none of that.
            let sure = next_ts.or(behind);
            let mended = match (behind, sure) {
                (Some(behind), _) if leaps(last, ts, behind) => behind,
                (_, Some(sure)) if sure >= last && ts.saturating_sub(sure) > NEVER => sure,
                // Nothing comes before the first block, but its time stands in its header too.
                (_, Some(sure)) if self.last_ts.is_none() && falls(start, ts, sure) => last,
                // Behind the last block there is none; a header of its own still vouches for a recording continued
                // years later.
                _ if next_ts.is_none()
                    && (i > 0 || self.last_ts.is_some())
                    && ts.saturating_sub(last.max(start)) > NEVER =>
                {
                    last
                }
                _ => ts,
            };
            changed |= mended != ts;
            records[i].ts_ns = mended;
            last = mended;
        }
        // The header has the time of the first record, and whoever seeks goes by it.
        changed |= records.first().is_some_and(|first| first.ts_ns.abs_diff(start) > LEAP);
        let mut behind = next.map(|n| n.start_byte_off);
        let mut hints = vec![None; records.len()];
        for (hint, record) in hints.iter_mut().zip(records.iter()).rev() {
            if let Body::Data { off, .. } = record.body {
                *hint = behind.replace(off);
            }
        }
        let mut gap_at = None;
        for (i, record) in records.iter_mut().enumerate() {
            match &mut record.body {
                Body::Data { off, bytes } => {
                    let end = self.next_off.saturating_add(bytes.len() as u64);
                    if *off != self.next_off && hints[i] == Some(end) {
                        *off = self.next_off;
                        changed = true;
                    }
                    let gap = off.saturating_sub(self.next_off);
                    if gap > 0 {
                        gap_at = gap_at.or(Some(i));
                    }
                    self.missing = self.missing.saturating_add(gap);
                    self.next_off = off.saturating_add(bytes.len() as u64);
                }
                Body::Mark { code, val } => {
                    if let Mark::OutputLag(n) | Mark::DiskLoss(n) | Mark::Repaired(n) =
                        Mark::from_raw(*code, *val)
                    {
                        self.declared += u64::from(n);
                    }
                }
                _ => {}
            }
        }
        if let Some(at) = gap_at.filter(|_| self.missing > self.declared) {
            let ts = records[at].ts_ns;
            let marks: Vec<Record> = self.declare(self.missing - self.declared, ts);
            records.splice(at..at, marks);
            changed = true;
        }
        changed
    }

    /// Marks for output that is missing.
    fn declare(&mut self, bytes: u64, ts: u64) -> Vec<Record> {
        let marks = Mark::pieces(bytes).map(|n| {
            self.declared += u64::from(n);
            Record::mark(ts, Mark::Repaired(n))
        });
        marks.collect()
    }

    fn damage(&mut self, damage: Damage) {
        // What is lost before the first block has no time yet: that block is given the mark.
        if let Some(ts) = self.last_ts.filter(|_| damage.kind.is_loss()) {
            for mark in self.declare(damage.lost_bytes.unwrap_or(0), ts) {
                self.push(mark);
            }
            self.out.extend_from_slice(self.builder.finish(Quality::default(), false));
        }
        self.before.add_damage(damage);
    }

    fn push(&mut self, record: Record) {
        let mut rest = Some(record);
        while let Some(record) = rest {
            rest = self.builder.push(record);
            if self.builder.is_full() {
                self.out.extend_from_slice(self.builder.finish(Quality::default(), false));
            }
        }
    }
}

/// Whether a block can be copied without touching its header.
fn is_plain(header: &Header, len: usize) -> bool {
    usize::from(header.header_len) == HEADER_LEN && HEADER_LEN + header.compressed_len as usize == len
}

impl DamageKind {
    /// Whether a clean end of the file is all that is missing.
    pub fn is_torn(&self) -> bool {
        matches!(self, Self::TornHeader | Self::TornPayload)
    }
}
