//! Rows that have left the screen, packed into chunks.
//!
//! A chunk is a stretch of records with the places where they end. Rows go in at the back and are
//! dropped at the front; a chunk whose rows are all dropped is used again for new ones. A chunk
//! that holds no wrapped row and none wider than the screen need not be touched when the width
//! changes.

use crate::cell::Cell;
use crate::clusters::Clusters;
use crate::grid::RowMeta;
use crate::pack::{Packed, pack};
use crate::style::Styles;
use std::collections::VecDeque;

const CHUNK: usize = 32 << 10;

#[derive(Clone, Debug, Default)]
pub(crate) struct Chunk {
    base: u64,
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// The widest row in it, in cells.
    pub(crate) widest: usize,
    /// Whether one of its rows goes on in the next.
    pub(crate) wraps: bool,
}

impl Chunk {
    /// Room for a chunk's worth at once: growing by doubling would leave half of it unused.
    fn roomy() -> Self {
        Self {
            bytes: Vec::with_capacity(CHUNK + (1 << 10)),
            ends: Vec::with_capacity(256),
            ..Self::default()
        }
    }

    fn row(&self, i: usize) -> Packed<'_> {
        let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        Packed::open(&self.bytes[start..self.ends[i] as usize], self.base)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Scrollback {
    chunks: VecDeque<Chunk>,
    /// Rows at the front of the first chunk that are dropped.
    skip: usize,
    len: usize,
    limit: usize,
    byte_limit: usize,
    bytes: usize,
    evicted: u64,
    /// How many rows had been evicted when all were forgotten last.
    cleared: u64,
    spare: Option<Chunk>,
}

impl Scrollback {
    pub(crate) fn new(limit: usize, byte_limit: usize) -> Self {
        let chunks = VecDeque::new();
        Self { chunks, skip: 0, len: 0, limit, byte_limit, bytes: 0, evicted: 0, cleared: 0, spare: None }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// How many rows had been evicted when all were forgotten last.
    pub(crate) fn cleared(&self) -> u64 {
        self.cleared
    }

    /// How many rows of plain text are kept, if that does not depend on what is in them.
    pub(crate) fn rows_kept(&self, cols: usize) -> Option<usize> {
        // Whole chunks are counted, and a packed row has a few bytes in front.
        let most = self.limit.saturating_mul(2 * cols + 64).saturating_add(4 * CHUNK);
        (most < self.byte_limit).then_some(self.limit)
    }

    /// Counts rows that came and went without being looked at.
    pub(crate) fn count_evicted(&mut self, rows: u64) {
        self.evicted += rows;
    }

    #[inline]
    pub(crate) fn push(&mut self, cells: &[Cell], meta: &RowMeta, styles: &Styles, clusters: &Clusters) {
        if self.limit == 0 {
            self.evicted += 1;
            return;
        }
        if self.chunks.back().is_none_or(|c| c.bytes.len() >= CHUNK) {
            let mut chunk = self.spare.take().unwrap_or_else(Chunk::roomy);
            chunk.base = meta.written;
            self.chunks.push_back(chunk);
        }
        let Some(chunk) = self.chunks.back_mut() else { return };
        let before = chunk.bytes.len();
        pack(&mut chunk.bytes, chunk.base, cells, meta, styles, clusters);
        self.bytes += chunk.bytes.len() - before;
        chunk.ends.push(chunk.bytes.len() as u32);
        chunk.widest = chunk.widest.max(cells.len());
        chunk.wraps |= meta.wrapped;
        self.len += 1;
        while self.len > self.limit || (self.bytes > self.byte_limit && self.len > 1) {
            self.drop_front();
        }
    }

    fn drop_front(&mut self) {
        self.len -= 1;
        self.skip += 1;
        self.evicted += 1;
        if self.skip == self.chunks[0].ends.len() {
            self.skip = 0;
            if let Some(mut chunk) = self.chunks.pop_front() {
                self.bytes -= chunk.bytes.len();
                chunk.bytes.clear();
                chunk.ends.clear();
                chunk.widest = 0;
                chunk.wraps = false;
                self.spare = Some(chunk);
            }
        }
    }

    /// Drops the oldest rows.
    pub(crate) fn forget(&mut self, rows: usize) {
        for _ in 0..rows.min(self.len) {
            self.drop_front();
        }
    }

    /// Takes away the newest row.
    pub(crate) fn pop(&mut self) {
        let Some(chunk) = self.chunks.back_mut() else { return };
        chunk.ends.pop();
        let end = chunk.ends.last().map_or(0, |&e| e as usize);
        self.bytes -= chunk.bytes.len() - end;
        chunk.bytes.truncate(end);
        self.len -= 1;
        if chunk.ends.is_empty() || (self.chunks.len() == 1 && self.len == 0) {
            if self.chunks.len() == 1 {
                self.skip = 0;
            }
            if let Some(c) = self.chunks.pop_back() {
                self.bytes -= c.bytes.len();
            }
        }
    }

    /// Forgets all rows; they count as evicted.
    pub(crate) fn clear(&mut self) {
        self.evicted += self.len as u64;
        self.cleared = self.evicted;
        self.chunks.clear();
        self.skip = 0;
        self.len = 0;
        self.bytes = 0;
    }

    /// All rows, oldest first.
    pub(crate) fn rows(&self) -> impl DoubleEndedIterator<Item = Packed<'_>> {
        self.chunks.iter().enumerate().flat_map(|(n, c)| {
            let first = if n == 0 { self.skip } else { 0 };
            (first..c.ends.len()).map(move |i| c.row(i))
        })
    }

    /// The newest row.
    pub(crate) fn last(&self) -> Option<Packed<'_>> {
        let c = self.chunks.back()?;
        (self.len > 0).then(|| c.row(c.ends.len() - 1))
    }

    /// Row `i`, counted from the oldest.
    pub(crate) fn get(&self, i: usize) -> Option<Packed<'_>> {
        let mut behind = self.len.checked_sub(i + 1)?;
        // From the nearer end: what is looked at most are the newest rows.
        if behind < i {
            for c in self.chunks.iter().rev() {
                let rows = c.ends.len();
                if behind < rows {
                    return Some(c.row(rows - 1 - behind));
                }
                behind -= rows;
            }
            return None;
        }
        let mut i = i + self.skip;
        for c in &self.chunks {
            if i < c.ends.len() {
                return Some(c.row(i));
            }
            i -= c.ends.len();
        }
        None
    }

    /// Takes all rows out, chunk by chunk; the caller pushes back what it makes of them.
    pub(crate) fn take(&mut self) -> (VecDeque<Chunk>, usize) {
        let chunks = std::mem::take(&mut self.chunks);
        let skip = std::mem::take(&mut self.skip);
        self.len = 0;
        self.bytes = 0;
        (chunks, skip)
    }

    /// Puts back a chunk as it was.
    pub(crate) fn push_chunk(&mut self, chunk: Chunk, skip: usize) {
        if self.chunks.is_empty() {
            self.skip = skip;
            self.len += chunk.ends.len() - skip;
            self.bytes += chunk.bytes.len();
            self.chunks.push_back(chunk);
        } else {
            debug_assert_eq!(skip, 0);
            self.len += chunk.ends.len();
            self.bytes += chunk.bytes.len();
            self.chunks.push_back(chunk);
        }
        while self.len > self.limit {
            self.drop_front();
        }
    }

    /// The rows of a chunk from `skip` on.
    pub(crate) fn chunk_rows(chunk: &Chunk, skip: usize) -> impl Iterator<Item = Packed<'_>> {
        (skip..chunk.ends.len()).map(move |i| chunk.row(i))
    }

    /// Bytes held, for the memory figure.
    pub(crate) fn memory(&self) -> usize {
        self.chunks.iter().map(|c| c.bytes.capacity() + c.ends.capacity() * 4).sum()
    }
}
