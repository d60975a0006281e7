//! Repair: a clean copy of a damaged recording that loses nothing else. Whole blocks are copied as
//! they are, the readable part of a torn one is written anew, blocks out of place are put back, and
//! where output is missing a mark says how much, so that a later look at the copy finds the gap
//! explained.

use std::collections::VecDeque;
use std::io::Read;

use bytes::Bytes;

use super::block::{Block, BlockItem, BlockReader};
use super::build::BlockBuilder;
use super::codec::Quality;
use super::header::{HEADER_LEN, Header};
use super::mark::Mark;
use super::mend::{Around, mend_offsets, mend_times};
use super::parts::Place;
use super::record::{Body, Record};
use super::summary::{Summary, begin};
use super::times::LEAP;
use crate::Result;

/// So many blocks, of so many bytes, are looked at for one that belongs before the next.
const AHEAD_BLOCKS: usize = 64;
const AHEAD_BYTES: usize = 32 << 20;

/// Copies a recording piece by piece.
#[derive(Debug)]
pub struct Repair<R> {
    blocks: BlockReader<R>,
    over: bool,
    /// What was read and not copied yet. What is behind a block tells whether its last record is in
    /// order.
    ahead: VecDeque<BlockItem>,
    builder: BlockBuilder,
    last_ts: Option<u64>,
    last_block: Option<(Header, Bytes)>,
    next_off: u64,
    /// Output that is missing, and as much of it as marks speak of.
    missing: u64,
    declared: u64,
    /// Nothing was copied yet, nor found damaged.
    fresh: bool,
    out: Vec<u8>,
    before: Summary,
    copied: u64,
}

impl<R: Read> Repair<R> {
    /// Of a recording from its start.
    pub fn new(inner: R) -> Self {
        Self {
            blocks: BlockReader::new(inner).keeping_raw(),
            over: false,
            ahead: VecDeque::new(),
            builder: BlockBuilder::new(0),
            last_ts: None,
            last_block: None,
            next_off: 0,
            missing: 0,
            declared: 0,
            fresh: true,
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
            while self.ahead.is_empty() && self.read()? {}
            self.put_in_order()?;
            match self.ahead.pop_front() {
                Some(BlockItem::Block(block)) => {
                    while self.next_block().is_none() && self.read()? {}
                    self.block(&block);
                    self.fresh = false;
                }
                // What it cost shows in where the next block begins.
                Some(BlockItem::Damage(_)) => self.fresh = false,
                None => return Ok(None),
            }
        }
        Ok(Some(&self.out))
    }

    /// What the part of the recording read so far comes to, as it was.
    pub fn before(&self) -> &Summary {
        &self.before
    }

    /// Where parts may be added behind what was copied so far.
    pub fn place(&self) -> Place {
        Place { ts_ns: self.last_ts.unwrap_or(0), byte_off: self.next_off }
    }

    /// Blocks copied as they were.
    pub fn blocks_copied(&self) -> u64 {
        self.copied
    }

    /// Reads another item; not at the end.
    fn read(&mut self) -> Result<bool> {
        if self.over {
            return Ok(false);
        }
        let Some(item) = self.blocks.next_item()? else {
            self.over = true;
            return Ok(false);
        };
        match &item {
            BlockItem::Block(block) => self.before.add_block(block),
            BlockItem::Damage(damage) => self.before.add_damage(damage.clone()),
        }
        self.ahead.push_back(item);
        Ok(true)
    }

    fn next_block(&self) -> Option<&Block> {
        blocks_in(&self.ahead).next().map(|(_, block)| block)
    }

    /// Where output is missing before the next block, a block further on may have it. A wrong
    /// offset alone moves nothing: what is out of place is out of order in time as well.
    fn put_in_order(&mut self) -> Result<()> {
        let Some(BlockItem::Block(front)) = self.ahead.front() else { return Ok(()) };
        let from = if self.fresh { begin(front) } else { self.next_off };
        let Some(start) = front.sound_start().filter(|&start| start > from) else { return Ok(()) };
        loop {
            let bytes: usize = blocks_in(&self.ahead).map(|(_, block)| block.bytes.len()).sum();
            if self.ahead.len() >= AHEAD_BLOCKS || bytes >= AHEAD_BYTES || !self.read()? {
                break;
            }
        }
        let Some(BlockItem::Block(front)) = self.ahead.front() else { return Ok(()) };
        let earlier = blocks_in(&self.ahead)
            .filter(|(_, block)| block.header.start_ts_ns <= front.header.start_ts_ns)
            .filter_map(|(i, block)| Some((block.sound_start()?, i)))
            .filter(|&(at, _)| at >= from && at < start)
            .min();
        if let Some(block) = earlier.and_then(|(_, i)| self.ahead.remove(i)) {
            self.ahead.push_front(block);
        }
        Ok(())
    }

    fn block(&mut self, block: &Block) {
        if self.is_spare(block) {
            return;
        }
        let header = &block.header;
        let mut records: Vec<Record> = block.records().flatten().collect();
        let around = self.around(block);
        // What is encrypted was checked as a whole, and is copied as it is.
        let mut changed = !block.encrypted && mend_times(&mut records, &around);
        if self.fresh {
            self.next_off = begin(block);
        }
        let placed = mend_offsets(&mut records, self.next_off, &around);
        changed |= placed.changed;
        self.declared += records.iter().map(lost_output).sum::<u64>();
        self.missing = self.missing.saturating_add(placed.missing);
        let gap = self.missing.saturating_sub(self.declared);
        if gap > 0 {
            // Before a block that can be copied as it is, the mark has a block of its own.
            match (self.last_ts, placed.gap_at) {
                (Some(ts), Some(at)) if !records[..at].iter().any(is_data) => self.declare_apart(gap, ts),
                (Some(ts), None) => self.declare_apart(gap, ts),
                _ if block.encrypted => self.declare_apart(gap, header.start_ts_ns),
                (_, at) => {
                    let at = at.unwrap_or(0);
                    let ts = records.get(at).map_or(header.start_ts_ns, |r| r.ts_ns);
                    let marks = self.declare(gap, ts);
                    records.splice(at..at, marks);
                    changed = true;
                }
            }
        }
        self.next_off = placed.end;
        self.last_ts = records.last().map(|r| r.ts_ns).or(self.last_ts);
        self.builder.go_on_at(placed.start);
        self.write(block, records, changed, placed.start);
    }

    /// Whether all that the block holds is there already: it was written twice, or stands too far
    /// behind its place.
    fn is_spare(&mut self, block: &Block) -> bool {
        let twin = block.repeats(&mut self.last_block);
        let behind = !self.fresh
            && block.start_off.is_some()
            && block.sound_start().is_some_and(|start| start < self.next_off)
            && block.end_off.is_some_and(|end| end <= self.next_off);
        twin || behind
    }

    fn around(&self, block: &Block) -> Around {
        let next = self.next_block();
        let first = match self.ahead.front() {
            Some(BlockItem::Damage(damage)) => damage.before_ts,
            _ => next.and_then(|next| next.records().flatten().next()).map(|r| r.ts_ns),
        };
        Around {
            header: block.header,
            partial: block.partial,
            last_ts: self.last_ts,
            next_ts: first,
            next_starts: next.map(|next| (next.header.start_byte_off, next.start_off)),
        }
    }

    fn write(&mut self, block: &Block, records: Vec<Record>, changed: bool, start: u64) {
        let header = &block.header;
        let agrees = !changed
            && !block.partial
            && u64::from(header.record_count) == block.record_count
            && header.uncompressed_len as usize == block.bytes.len();
        let first_ts = records.first().map_or(header.start_ts_ns, |first| first.ts_ns);
        // A seek goes by the header. It may say 48 for 44, too.
        let right = Header {
            header_len: HEADER_LEN as u16,
            start_byte_off: start,
            start_ts_ns: if first_ts.abs_diff(header.start_ts_ns) > LEAP {
                first_ts
            } else {
                header.start_ts_ns
            },
            ..*header
        };
        match &block.raw {
            Some(raw) if block.encrypted => {
                self.copied += 1;
                self.out.extend_from_slice(raw);
            }
            Some(raw) if agrees && header.compressed_len as usize + HEADER_LEN == raw.len() => {
                self.copied += 1;
                self.out.extend_from_slice(&right.to_bytes());
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

    /// Marks for output that is missing.
    fn declare(&mut self, bytes: u64, ts: u64) -> Vec<Record> {
        let marks = Mark::pieces(bytes).map(|n| {
            self.declared += u64::from(n);
            Record::mark(ts, Mark::Repaired(n))
        });
        marks.collect()
    }

    fn declare_apart(&mut self, bytes: u64, ts: u64) {
        self.builder.go_on_at(self.next_off);
        for mark in self.declare(bytes, ts) {
            self.push(mark);
        }
        self.out.extend_from_slice(self.builder.finish(Quality::default(), false));
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

fn blocks_in(items: &VecDeque<BlockItem>) -> impl Iterator<Item = (usize, &Block)> {
    items.iter().enumerate().filter_map(|(i, item)| match item {
        BlockItem::Block(block) => Some((i, block)),
        BlockItem::Damage(_) => None,
    })
}

fn is_data(record: &Record) -> bool {
    matches!(record.body, Body::Data { .. })
}

fn lost_output(record: &Record) -> u64 {
    match record.body {
        Body::Mark { code, val } => Mark::from_raw(code, val).lost_output(),
        _ => 0,
    }
}
