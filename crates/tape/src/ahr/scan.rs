//! Headers without payloads, for questions that need no byte of the output: how long, how large,
//! where is the moment T, where does the file end. Payloads are skipped by seeking; where a header
//! does not lead to the next one, the stretch is read in full until it does again.

use std::io::{Read, Seek, SeekFrom};

use super::block::{Block, BlockItem, BlockReader};
use super::damage::{Damage, DamageKind};
use super::header::{HEADER_LEN, Header, MAGIC};
use super::record::Record;
use crate::{Error, FilePosition, Result};

/// A block's place in the file and its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockInfo {
    /// Where the header begins.
    pub offset: u64,
    /// Length of header and payload.
    pub len: u64,
    /// What the header says.
    pub header: Header,
}

/// What a [`Scan`] finds.
#[derive(Debug, Clone)]
pub enum ScanItem {
    /// A block whose header leads to the next block or to the end of the file.
    Block(BlockInfo),
    /// A stretch that does not.
    Damage(Damage),
}

/// So much is read at once where blocks are large, and where they are small: the header of a small
/// one is mostly there already, with its neighbours.
const LARGE_STEP: usize = 512;
const SMALL_STEP: usize = 64 * 1024;
const SMALL: u64 = 8 * 1024;

/// Goes from header to header.
#[derive(Debug)]
pub struct Scan<R> {
    inner: R,
    pos: u64,
    end: u64,
    /// What was read last, where it begins, and how much to read next.
    view: Vec<u8>,
    view_at: u64,
    step: usize,
    ready: Vec<ScanItem>,
    failed: bool,
}

impl<R: Read + Seek> Scan<R> {
    /// Over a whole recording.
    ///
    /// # Errors
    /// When the file cannot be seeked.
    pub fn new(inner: R) -> Result<Self> {
        Self::starting_at(inner, 0)
    }

    /// From an offset at which a block begins.
    ///
    /// # Errors
    /// When the file cannot be seeked.
    pub(super) fn starting_at(mut inner: R, pos: u64) -> Result<Self> {
        let end = inner.seek(SeekFrom::End(0)).map_err(|e| read_error(0, e))?;
        let (view, step) = (Vec::new(), LARGE_STEP);
        Ok(Self { inner, pos, end, view, view_at: 0, step, ready: Vec::new(), failed: false })
    }

    /// Length of the file.
    pub fn file_len(&self) -> u64 {
        self.end
    }

    /// The next block or damage; `None` at the end.
    ///
    /// # Errors
    /// When the underlying reader fails, and when the recording was written for a later version.
    pub fn next_item(&mut self) -> Result<Option<ScanItem>> {
        if let Some(item) = self.ready.pop() {
            return Ok(Some(item));
        }
        if self.pos >= self.end {
            return Ok(None);
        }
        if let Some(info) = self.header_at(self.pos)? {
            self.pos += info.len;
            self.step = if info.len < SMALL { SMALL_STEP } else { LARGE_STEP };
            return Ok(Some(ScanItem::Block(info)));
        }
        self.read_through()
    }

    /// The header at `pos`, if it leads somewhere.
    fn header_at(&mut self, pos: u64) -> Result<Option<BlockInfo>> {
        let mut buf = [0; HEADER_LEN];
        if !self.read_at(pos, &mut buf)? {
            return Ok(None);
        }
        let Some(header) = Header::from_bytes(&buf) else { return Ok(None) };
        if !header.is_known() || header.fault().is_some() {
            return Ok(None);
        }
        // The original writer says 48 where 44 is true.
        let starts = [HEADER_LEN as u64, u64::from(header.header_len)];
        for start in starts.into_iter().skip(usize::from(header.is_encrypted())) {
            let len = start + u64::from(header.compressed_len);
            let next = pos + len;
            let mut magic = [0; MAGIC.len()];
            if next == self.end || (self.read_at(next, &mut magic)? && magic == MAGIC) {
                return Ok(Some(BlockInfo { offset: pos, len, header }));
            }
        }
        Ok(None)
    }

    /// Reads in full from the current position until a block is found again.
    fn read_through(&mut self) -> Result<Option<ScanItem>> {
        self.inner.seek(SeekFrom::Start(self.pos)).map_err(|e| read_error(self.pos, e))?;
        let mut blocks = BlockReader::starting_at(&mut self.inner, self.pos).leaving_encrypted();
        let mut found = Vec::new();
        loop {
            match blocks.next_item()? {
                Some(BlockItem::Damage(damage)) => found.push(ScanItem::Damage(damage)),
                Some(BlockItem::Block(block)) => {
                    found.push(ScanItem::Block(BlockInfo {
                        offset: block.offset,
                        len: block.len,
                        header: block.header,
                    }));
                    self.pos = block.offset + block.len;
                    break;
                }
                None => {
                    self.pos = self.end;
                    break;
                }
            }
        }
        found.reverse();
        self.ready = found;
        Ok(self.ready.pop())
    }

    fn read_at(&mut self, pos: u64, buf: &mut [u8]) -> Result<bool> {
        if pos.saturating_add(buf.len() as u64) > self.end {
            return Ok(false);
        }
        if let Some(found) = self.in_view(pos, buf.len()) {
            buf.copy_from_slice(found);
            return Ok(true);
        }
        self.view.clear();
        self.view_at = pos;
        self.inner.seek(SeekFrom::Start(pos)).map_err(|e| read_error(pos, e))?;
        let want = self.step.max(buf.len()) as u64;
        (&mut self.inner).take(want).read_to_end(&mut self.view).map_err(|e| read_error(pos, e))?;
        // Where the file became shorter meanwhile there is less.
        let found = self.in_view(pos, buf.len());
        Ok(found.map(|found| buf.copy_from_slice(found)).is_some())
    }

    fn in_view(&self, pos: u64, len: usize) -> Option<&[u8]> {
        let from = usize::try_from(pos.checked_sub(self.view_at)?).ok()?;
        self.view.get(from..from.checked_add(len)?)
    }
}

impl<R: Read + Seek> Iterator for Scan<R> {
    type Item = Result<ScanItem>;

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

/// How a recording ends, for a recorder that goes on with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tail {
    /// Where the last whole block ends; the next one is to be written here.
    pub end: u64,
    /// Length of the file. If it is beyond `end`, the tail is torn: cut it off before writing.
    pub file_len: u64,
    /// Records that a torn last block still gave; write them again at `end` before anything new.
    pub salvaged: Vec<Record>,
    /// All that follows `end` is the beginning of a block that gives not one record.
    pub fragment: bool,
    /// Offset in the output with which the next DATA begins, salvaged ones included.
    pub next_off: u64,
    /// Time of the last record.
    pub last_ts: Option<u64>,
    /// Whether the last block says that it is the last.
    pub is_last: bool,
    /// Number of blocks.
    pub blocks: u64,
    /// Damaged stretches before `end`.
    pub damages: u64,
}

impl Tail {
    /// Whether something follows the last whole block.
    pub fn is_torn(&self) -> bool {
        self.end < self.file_len
    }
}

/// Finds where and with which offset a recording can be continued. Only headers and the last block
/// are read, unless the file is damaged.
///
/// # Errors
/// When the underlying reader fails, and when the recording was written for a later version.
pub fn tail<R: Read + Seek>(mut inner: R) -> Result<Tail> {
    let mut scan = Scan::new(&mut inner)?;
    let mut tail = Tail {
        end: 0,
        file_len: scan.file_len(),
        salvaged: Vec::new(),
        next_off: 0,
        last_ts: None,
        is_last: false,
        blocks: 0,
        damages: 0,
        fragment: false,
    };
    let mut last: Option<BlockInfo> = None;
    let mut clean = true;
    while let Some(item) = scan.next_item()? {
        match item {
            ScanItem::Block(info) => {
                tail.blocks += 1;
                last = Some(info);
            }
            ScanItem::Damage(damage) => {
                clean = false;
                tail.fragment = tail.is_fragment(&damage);
            }
        }
    }
    let Some(last) = last else { return Ok(tail) };

    // A header that leads to the end of the file proves nothing about its payload, so the last
    // block is opened; if anything is wrong anywhere, the whole file is read.
    inner.seek(SeekFrom::Start(last.offset)).map_err(|e| read_error(last.offset, e))?;
    if clean
        && let Some(BlockItem::Block(block)) =
            BlockReader::starting_at(&mut inner, last.offset).leaving_encrypted().next_item()?
        && (block.offset, block.len, block.partial) == (last.offset, last.len, false)
    {
        tail.settle(&block);
        return Ok(tail);
    }
    inner.seek(SeekFrom::Start(0)).map_err(|e| read_error(0, e))?;
    let mut blocks = BlockReader::new(&mut inner).leaving_encrypted();
    tail.blocks = 0;
    let mut pending = 0;
    while let Some(item) = blocks.next_item()? {
        match item {
            BlockItem::Block(block) if block.partial && block.offset + block.len == tail.file_len => {
                tail.salvaged = block.records().flatten().collect();
                tail.next_off = block.end_off.unwrap_or(tail.next_off);
                tail.last_ts = block.last_ts.or(tail.last_ts);
            }
            BlockItem::Block(block) => {
                tail.blocks += 1;
                tail.damages += std::mem::take(&mut pending);
                tail.settle(&block);
            }
            BlockItem::Damage(damage) => {
                pending += 1;
                tail.fragment = tail.salvaged.is_empty() && tail.is_fragment(&damage);
            }
        }
    }
    Ok(tail)
}

impl Tail {
    /// Whether a damage is a block that the end of the file cuts off, right behind the last whole
    /// one.
    fn is_fragment(&self, damage: &Damage) -> bool {
        matches!(damage.kind, DamageKind::TornHeader | DamageKind::TornPayload)
            && damage.offset == self.end
            && damage.offset + damage.len == self.file_len
    }

    fn settle(&mut self, block: &Block) {
        self.end = block.offset + block.len;
        self.next_off = block.end_off.unwrap_or(block.header.start_byte_off);
        self.last_ts = block.last_ts.or(Some(block.header.start_ts_ns));
        self.is_last = block.header.is_last();
    }
}

fn read_error(at: u64, source: std::io::Error) -> Error {
    Error::Read { at: FilePosition::Byte(at), source }
}
