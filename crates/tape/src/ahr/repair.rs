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
use super::record::Record;
use crate::Result;

/// Copies a recording piece by piece.
#[derive(Debug)]
pub struct Repair<R> {
    blocks: BlockReader<R>,
    builder: BlockBuilder,
    last_ts: u64,
    out: Vec<u8>,
    damages: Vec<Damage>,
    copied: u64,
}

impl<R: Read> Repair<R> {
    /// Of a recording from its start.
    pub fn new(inner: R) -> Self {
        Self {
            blocks: BlockReader::new(inner).keeping_raw(),
            builder: BlockBuilder::new(0),
            last_ts: 0,
            out: Vec::new(),
            damages: Vec::new(),
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
            match self.blocks.next_item()? {
                None => return Ok(None),
                Some(BlockItem::Block(block)) => self.block(&block),
                Some(BlockItem::Damage(damage)) => self.damage(damage),
            }
        }
        Ok(Some(&self.out))
    }

    /// What was wrong with the part of the recording read so far.
    pub fn damages(&self) -> &[Damage] {
        &self.damages
    }

    /// Blocks copied as they were.
    pub fn blocks_copied(&self) -> u64 {
        self.copied
    }

    fn block(&mut self, block: &Block) {
        self.last_ts = block.last_ts.unwrap_or(self.last_ts);
        let len = block.bytes.len();
        let header = &block.header;
        let agrees =
            header.record_count as u64 == block.record_count && header.uncompressed_len as usize == len;
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
                for record in block.records().flatten() {
                    self.push(record);
                }
                let last = header.is_last() && !block.partial;
                self.out.extend_from_slice(self.builder.finish(Quality::default(), last));
            }
        }
    }

    fn damage(&mut self, damage: Damage) {
        if damage.kind.is_loss() {
            for n in Mark::pieces(damage.lost_bytes.unwrap_or(0)) {
                self.push(Record::mark(self.last_ts, Mark::Repaired(n)));
            }
            self.out.extend_from_slice(self.builder.finish(Quality::default(), false));
        }
        if self.damages.len() < super::Summary::MAX_DAMAGES {
            self.damages.push(damage);
        }
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
