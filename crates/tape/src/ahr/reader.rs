//! Records from a stream: the [`BlockReader`] with its blocks opened.

use std::fmt;
use std::io::Read;

use super::block::{Block, BlockItem, BlockReader};
use super::damage::{Damage, DamageKind};
use super::header::Header;
use super::record::{Record, Records};
use super::summary::begin;
use super::times::{LEAP, leaps};
use crate::Result;

/// What a [`Reader`] gives.
#[derive(Debug, Clone)]
pub enum Item {
    /// A record.
    Record(Record),
    /// A range of the file that could not be read.
    Damage(Damage),
}

/// Reads the records of a recording in order, past whatever is damaged. Its memory does not depend
/// on the recording's length.
#[derive(Debug)]
pub struct Reader<R> {
    blocks: Source<R>,
    block: Option<Block>,
    records: Option<Records>,
    failed: bool,
    judging: bool,
    last_ts: Option<u64>,
    /// What was read to judge a time, and what is to be said of it.
    early: Option<BlockItem>,
    note: Option<Damage>,
}

enum Source<R> {
    Here(Box<BlockReader<R>>),
    Given { next: Box<Feed>, offset: u64 },
}

/// The source of blocks that another thread reads.
type Feed = dyn FnMut() -> Result<Option<BlockItem>> + Send;

impl<R: fmt::Debug> fmt::Debug for Source<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here(blocks) => f.debug_tuple("Here").field(blocks).finish(),
            Self::Given { offset, .. } => {
                f.debug_struct("Given").field("offset", offset).finish_non_exhaustive()
            }
        }
    }
}

impl<R: Read> Reader<R> {
    /// From the start of a recording.
    pub fn new(inner: R) -> Self {
        Self::over(BlockReader::new(inner))
    }

    /// From wherever `blocks` stands.
    pub fn over(blocks: BlockReader<R>) -> Self {
        Self::of(Source::Here(Box::new(blocks)))
    }

    /// From blocks that the caller reads: a [`BlockReader`] on a thread of its own, behind a
    /// channel, makes a replay as fast as the slower of decompressing and showing, not as both
    /// together.
    pub fn given(next: impl FnMut() -> Result<Option<BlockItem>> + Send + 'static) -> Self {
        Self::of(Source::Given { next: Box::new(next), offset: 0 })
    }

    fn of(blocks: Source<R>) -> Self {
        Self {
            blocks,
            block: None,
            records: None,
            failed: false,
            judging: false,
            last_ts: None,
            early: None,
            note: None,
        }
    }

    /// Gives a record whose time leaps ahead and comes back the time of the next one, and says so:
    /// a player must not wait for centuries.
    #[must_use]
    pub fn with_sound_times(mut self) -> Self {
        self.judging = true;
        self
    }

    /// The block that the last record came from: where it lies and what its header says.
    pub fn block(&self) -> Option<(u64, &Header)> {
        self.block.as_ref().map(|b| (b.offset, &b.header))
    }

    /// Where output begins, if the block in hand is the file's first.
    pub(super) fn begins_at(&self) -> u64 {
        self.block.as_ref().filter(|block| block.offset == 0).map_or(0, begin)
    }

    /// How far in the file the reader has come.
    pub fn position(&self) -> u64 {
        match &self.blocks {
            Source::Here(blocks) => blocks.offset(),
            Source::Given { offset, .. } => *offset,
        }
    }

    /// The next record or damage; `None` at the end.
    ///
    /// # Errors
    /// When the underlying reader fails, and when the recording was written for a later version.
    pub fn next_item(&mut self) -> Result<Option<Item>> {
        if let Some(note) = self.note.take() {
            return Ok(Some(Item::Damage(note)));
        }
        loop {
            if let Some(Ok(record)) = self.records.as_mut().and_then(Iterator::next) {
                return Ok(Some(Item::Record(self.judged(record)?)));
            }
            // Lets go of the buffer before the next block wants it.
            (self.records, self.block) = (None, None);
            let next = match self.early.take() {
                Some(early) => Some(early),
                None => self.next_block()?,
            };
            match next {
                Some(BlockItem::Block(block)) => {
                    self.records = Some(block.records());
                    self.block = Some(block);
                }
                Some(BlockItem::Damage(damage)) => return Ok(Some(Item::Damage(damage))),
                None => return Ok(None),
            }
        }
    }

    fn next_block(&mut self) -> Result<Option<BlockItem>> {
        Ok(match &mut self.blocks {
            Source::Here(blocks) => blocks.next_item()?,
            Source::Given { next, offset } => {
                let next = next()?;
                *offset = next.as_ref().map_or(*offset, BlockItem::end);
                next
            }
        })
    }

    /// A record with the time of the next one, where its own cannot be.
    fn judged(&mut self, mut record: Record) -> Result<Record> {
        let start = self.block.as_ref().map(|b| b.header.start_ts_ns);
        let last = self.last_ts.replace(record.ts_ns).or(start).unwrap_or(record.ts_ns);
        if self.judging
            && record.ts_ns.saturating_sub(last) > LEAP
            && let Some(next) = self.next_ts()?
            && leaps(last, record.ts_ns, next)
        {
            record.ts_ns = next;
            self.last_ts = Some(next);
            self.note = self.block.as_ref().map(|block| Damage {
                after_ts: Some(last),
                before_ts: Some(next),
                ..Damage::new(block.offset, block.len, DamageKind::BadTime)
            });
        }
        Ok(record)
    }

    /// The time of the record behind the one in hand, if there is one.
    fn next_ts(&mut self) -> Result<Option<u64>> {
        if let Some(Ok(next)) = self.records.clone().as_mut().and_then(Iterator::next) {
            return Ok(Some(next.ts_ns));
        }
        if self.early.is_none() {
            self.early = self.next_block()?;
        }
        Ok(match &self.early {
            Some(BlockItem::Block(block)) => Some(block.header.start_ts_ns),
            Some(BlockItem::Damage(damage)) => damage.before_ts,
            None => None,
        })
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Item>;

    fn next(&mut self) -> Option<Self::Item> {
        // An error ends the iteration; it would come again for ever.
        if self.failed {
            return None;
        }
        let next = self.next_item().transpose();
        self.failed = matches!(next, Some(Err(_)));
        next
    }
}
