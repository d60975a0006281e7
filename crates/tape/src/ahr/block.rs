//! Blocks from a stream, whatever happened to it. The reader believes as little as it can: a header
//! is taken at its word only when what follows agrees, and after damage it looks for the next magic
//! that can be a header. Memory is bounded by the largest block allowed, whatever the file claims.
//!
//! Resynchronising has one hazard: a program may have printed a recording, so that the payload of a
//! stored block holds whole blocks of another file. A damaged block whose end is in order is
//! therefore skipped as one piece, and only a header that cannot be trusted makes the search start
//! inside it.

use std::collections::VecDeque;
use std::io::Read;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};
use memchr::memmem;

use super::codec::{self, Decoded};
use super::damage::{Damage, DamageKind};
use super::header::{ENCRYPTED, HEADER_LEN, Header, MAGIC, VERSION, agrees, end_off_of};
use super::record::{Body, Records, Walk, walk, walk_torn};
use crate::window::Window;
use crate::{Error, FilePosition, Result, encryption};

/// Look at this much at a time when searching.
const SEARCH_STEP: usize = 64 * 1024;

/// So much may come out of blocks whatever their length, and beyond that at most this many bytes
/// for each byte of the file: a full block of one character repeated comes to half of it.
const FREE: u64 = 64 << 20;
const MAX_RATIO: u64 = 8192;

/// Whether so much came out of so many bytes of a file as no session makes.
pub(super) fn is_bomb(out: u64, taken: u64) -> bool {
    out > FREE && out / MAX_RATIO > taken
}

/// A block that could be read, at least in part.
#[derive(Debug, Clone)]
pub struct Block {
    /// Where its header begins in the file.
    pub offset: u64,
    /// How many bytes of the file it takes.
    pub len: u64,
    /// What its header says.
    pub header: Header,
    /// Its records, decompressed: whole ones only.
    pub bytes: Bytes,
    /// How many records these are.
    pub record_count: u64,
    /// Offset in the output of the first DATA, if there is one.
    pub start_off: Option<u64>,
    /// Offset in the output behind the last DATA, if there is one.
    pub end_off: Option<u64>,
    /// Time of the last record, if there is one.
    pub last_ts: Option<u64>,
    /// Whether the block held more than could be read.
    pub partial: bool,
    /// The block as it stands in the file, if the reader was asked to keep that.
    pub raw: Option<Bytes>,
    /// Whether it is encrypted in the file. The header is then that of the block inside, if it
    /// could be decrypted.
    pub encrypted: bool,
}

impl Block {
    /// The records, in order.
    pub(crate) fn records(&self) -> Records {
        Records::new(self.bytes.clone())
    }

    /// Whether it is the block before it once more, which is remembered for the next time. Only of
    /// input, a long paste, may two blocks in a row be alike.
    pub(super) fn repeats(&self, before: &mut Option<(Header, Bytes)>) -> bool {
        // Where its output begins tells one with output from any other.
        let bytes = if self.start_off.is_some() { Bytes::new() } else { self.bytes.clone() };
        let this = Some((self.header, bytes));
        let alike = *before == this;
        *before = this;
        alike && self.records().flatten().any(|record| !matches!(record.body, Body::Input { .. }))
    }

    /// Where its output begins, unless header and first DATA contradict each other.
    pub(super) fn sound_start(&self) -> Option<u64> {
        let start = self.header.start_byte_off;
        (self.start_off.unwrap_or(start) == start).then_some(start)
    }
}

/// What a [`BlockReader`] finds.
#[derive(Debug, Clone)]
pub enum BlockItem {
    /// A block.
    Block(Block),
    /// A range that could not be read, or only in part; in that case it follows the block that it
    /// is about.
    Damage(Damage),
}

impl BlockItem {
    /// Where it ends in the file.
    pub fn end(&self) -> u64 {
        match self {
            Self::Block(block) => block.offset + block.len,
            Self::Damage(damage) => damage.offset + damage.len,
        }
    }
}

/// Reads blocks one after another.
#[derive(Debug)]
pub struct BlockReader<R> {
    window: Window<R>,
    pool: BytesMut,
    ready: VecDeque<BlockItem>,
    /// Damage that waits to learn what the next good block begins with.
    open: Option<Damage>,
    next_off: Option<u64>,
    last_ts: Option<u64>,
    good: u64,
    foreign: Option<(u64, u16)>,
    /// The first block for which no key was at hand.
    locked: Option<u64>,
    /// The position was found by searching, not by following a block.
    searched: bool,
    keep_raw: bool,
    /// Encrypted blocks are given without their records.
    closed: bool,
    /// Where the reader began, and how much has been decompressed since.
    began: u64,
    out: u64,
    /// How much was taken from the file, where that is compressed once more.
    taken: Option<Arc<AtomicU64>>,
}

/// What was found at the reader's position.
enum Found {
    Block { block: Block, len: usize, about: Option<DamageKind>, lost: Option<u64> },
    Damage { kind: DamageKind, skip: Skip, records: Option<u64> },
    End,
}

/// How to go on behind damage.
enum Skip {
    Exactly(usize),
    ToNextMagic,
}

impl<R: Read> BlockReader<R> {
    /// From the start of a recording.
    pub fn new(inner: R) -> Self {
        Self::starting_at(inner, 0)
    }

    /// From a reader that stands at `offset`, so that places in the file are reported as they are.
    pub fn starting_at(inner: R, offset: u64) -> Self {
        Self {
            window: Window::new(inner, offset),
            pool: BytesMut::new(),
            ready: VecDeque::new(),
            open: None,
            next_off: (offset == 0).then_some(0),
            last_ts: None,
            good: 0,
            foreign: None,
            locked: None,
            searched: offset != 0,
            keep_raw: false,
            closed: false,
            began: offset,
            out: 0,
            taken: None,
        }
    }

    /// Goes on behind a good block, after which the program had written so much.
    #[must_use]
    pub fn behind(mut self, next_off: u64, last_ts: Option<u64>) -> Self {
        (self.next_off, self.last_ts) = (Some(next_off), last_ts);
        (self.good, self.searched) = (1, false);
        self
    }

    /// Bounds what comes out by what was taken from a file, which is compressed as a whole.
    #[must_use]
    pub(crate) fn taken_from(mut self, count: Arc<AtomicU64>) -> Self {
        self.taken = Some(count);
        self
    }

    /// Refuses blocks that expand beyond anything that a session makes.
    fn check_ratio(&mut self, block: &Block) -> Result<()> {
        self.out += block.bytes.len() as u64;
        let read = self.window.offset() - self.began;
        let taken = self.taken.as_ref().map_or(read, |taken| taken.load(Ordering::Relaxed));
        if is_bomb(self.out, taken) {
            let what = "expands beyond any recording: a decompression bomb";
            return Err(Error::malformed(FilePosition::Byte(block.offset), what));
        }
        Ok(())
    }

    /// Keeps each block as it stands in the file, for copying.
    #[must_use]
    pub(crate) fn keeping_raw(mut self) -> Self {
        self.keep_raw = true;
        self
    }

    /// Gives encrypted blocks without their records, so that no key is needed.
    #[must_use]
    pub(crate) fn leaving_encrypted(mut self) -> Self {
        self.closed = true;
        self
    }

    /// Where in the file the reader stands: behind the block or damage that was read last.
    pub fn offset(&self) -> u64 {
        self.window.offset()
    }

    /// The next block or damage; `None` at the end.
    ///
    /// # Errors
    /// When the underlying reader fails, when the recording was written for a later version, and
    /// when it is encrypted and no identity of this process fits any block.
    pub fn next_item(&mut self) -> Result<Option<BlockItem>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(Some(item));
            }
            let offset = self.window.offset();
            match self.look()? {
                Found::Block { block, len, about, lost } => {
                    self.window.consume(len);
                    self.check_ratio(&block)?;
                    self.good += 1;
                    self.searched = false;
                    self.close_damage(Some(&block));
                    self.next_off = block.end_off.or(Some(block.header.start_byte_off));
                    self.last_ts = block.last_ts.or(self.last_ts);
                    self.ready.push_back(BlockItem::Block(block));
                    if let Some(kind) = about {
                        let mut damage = self.damage(offset, len as u64, kind);
                        damage.lost_records = lost;
                        if kind.is_loss() {
                            self.open = Some(damage);
                        } else {
                            self.ready.push_back(BlockItem::Damage(damage));
                        }
                    }
                }
                Found::Damage { kind, skip, records } => {
                    match skip {
                        Skip::Exactly(n) => self.window.consume(n),
                        Skip::ToNextMagic => self.search()?,
                    }
                    let mut damage = self.damage(offset, self.window.offset() - offset, kind);
                    damage.lost_records = records;
                    if let Some(earlier) = self.open.replace(damage) {
                        self.ready.push_back(BlockItem::Damage(earlier));
                    }
                }
                Found::End => {
                    if let (0, Some((at, found))) = (self.good, self.foreign) {
                        return Err(Error::Version {
                            at: FilePosition::Byte(at),
                            format: "ahr",
                            found: u64::from(found),
                            known: u64::from(ENCRYPTED),
                        });
                    }
                    if let (0, Some(at)) = (self.good, self.locked) {
                        return Err(Error::Locked { at: FilePosition::Byte(at) });
                    }
                    self.close_damage(None);
                    if self.ready.is_empty() {
                        return Ok(None);
                    }
                }
            }
        }
    }

    fn damage(&self, offset: u64, len: u64, kind: DamageKind) -> Damage {
        Damage { after_ts: self.last_ts, ..Damage::new(offset, len, kind) }
    }

    /// Completes the damage in hand with what the next good block tells.
    fn close_damage(&mut self, next: Option<&Block>) {
        let Some(mut damage) = self.open.take() else { return };
        if let Some(next) = next {
            damage.before_ts = Some(next.header.start_ts_ns);
            let lost = next.sound_start().zip(self.next_off).and_then(|(start, end)| start.checked_sub(end));
            damage.lost_bytes = lost;
        }
        self.ready.push_back(BlockItem::Damage(damage));
    }

    /// Looks at what is at the current position, without moving.
    fn look(&mut self) -> Result<Found> {
        let have = self.window.fill(HEADER_LEN)?;
        if have == 0 {
            return Ok(Found::End);
        }
        let data = self.window.data();
        let search = |kind| Found::Damage { kind, skip: Skip::ToNextMagic, records: None };
        if !is_boundary(data, 0) {
            return Ok(search(DamageKind::Garbage));
        }
        let Some(header) = Header::from_bytes(data) else {
            let kind = DamageKind::TornHeader;
            return Ok(Found::Damage { kind, skip: Skip::Exactly(have), records: None });
        };
        if !header.is_known() {
            if header.version > VERSION && self.window.offset() == 0 {
                self.foreign = Some((self.window.offset(), header.version));
            }
            return Ok(search(DamageKind::OtherVersion(header.version)));
        }
        if let Some(what) = header.fault() {
            return Ok(search(DamageKind::BadHeader(what)));
        }
        if header.is_encrypted() { self.look_at_message(&header) } else { self.look_at_payload(&header) }
    }

    /// Looks at an encrypted block. Its checksum tells damage from a key that does not fit.
    fn look_at_message(&mut self, header: &Header) -> Result<Found> {
        let start = usize::from(header.header_len);
        let len = start + header.compressed_len as usize;
        let have = self.window.fill(len + HEADER_LEN)?;
        let offset = self.window.offset();
        let data = self.window.data();
        let records = Some(u64::from(header.record_count));
        if have < len && !holds_header(data, HEADER_LEN..have) {
            let kind = DamageKind::TornPayload;
            return Ok(Found::Damage { kind, skip: Skip::Exactly(have), records });
        }
        let whole = data.get(..len).unwrap_or_default();
        let sound = !whole.is_empty() && header.fits_encrypted(whole);
        let damaged = |kind| match sound || (is_boundary(data, len) && !self.searched) {
            true => Found::Damage { kind, skip: Skip::Exactly(len), records },
            false => Found::Damage { kind, skip: Skip::ToNextMagic, records: None },
        };
        let raw = self.keep_raw.then(|| Bytes::copy_from_slice(whole));
        let mut about = None;
        let block = if self.closed {
            if !sound {
                return Ok(damaged(DamageKind::BadPayload));
            }
            Block {
                offset,
                len: len as u64,
                header: *header,
                bytes: Bytes::new(),
                record_count: u64::from(header.record_count),
                start_off: None,
                end_off: end_off_of(data),
                last_ts: Some(header.start_ts_ns),
                partial: false,
                raw,
                encrypted: true,
            }
        } else {
            // The message vouches for what is in it, whatever became of the header.
            let plain = whole.get(start..).and_then(encryption::decrypt);
            let opened = plain.as_deref().map(|plain| Block::open(offset, plain, &mut self.pool));
            let opened = match opened {
                Some(Some(opened)) => opened,
                None if sound => {
                    self.locked.get_or_insert(offset);
                    return Ok(damaged(DamageKind::OtherKey));
                }
                _ => return Ok(damaged(DamageKind::BadPayload)),
            };
            let end = opened.end_off.is_none() || opened.end_off == end_off_of(data);
            if !(sound && end && agrees(header, &opened.header)) {
                about = Some(DamageKind::Mismatch("it differs from the encrypted one"));
            }
            Block { len: len as u64, raw, encrypted: true, ..opened }
        };
        Ok(Found::Block { block, len, about, lost: None })
    }

    fn look_at_payload(&mut self, header: &Header) -> Result<Found> {
        let declared = usize::from(header.header_len);
        let payload_len = header.compressed_len as usize;
        let have = self.window.fill(declared + payload_len + HEADER_LEN)?;
        let offset = self.window.offset();
        let data = self.window.data();

        // The original writer says 48 where 44 is true. What lies behind the payload tells which it
        // is, and where that was damaged too, the payload itself does.
        let starts = if declared == HEADER_LEN {
            [Some(HEADER_LEN), None]
        } else if is_boundary(data, declared + payload_len) && !is_boundary(data, HEADER_LEN + payload_len) {
            [Some(declared), Some(HEADER_LEN)]
        } else {
            [Some(HEADER_LEN), Some(declared)]
        };

        let mut torn = None;
        for start in starts.into_iter().flatten().filter(|&start| start <= have) {
            let input = &data[start..have.min(start + payload_len)];
            let out = &mut self.pool;
            let decoded = codec::decompress(input, header.uncompressed_len as usize, out);
            let mut found = walk(out);
            if found.error.is_some() || matches!(decoded, Decoded::Short { .. }) {
                found = walk_torn(out);
            }
            // The pool gets the memory back by itself once the last holder of the block is gone.
            let bytes = out.split().freeze();
            let block = |len: usize, partial: bool| Block {
                offset,
                len: len as u64,
                header: *header,
                bytes: bytes.slice(..found.len),
                record_count: found.count,
                start_off: found.start_off,
                end_off: found.end_off,
                last_ts: found.last_ts,
                partial,
                raw: self.keep_raw.then(|| Bytes::copy_from_slice(&data[..len])),
                encrypted: false,
            };
            match decoded {
                Decoded::Whole { read, written } => {
                    let Ok(about) = judge(header, read, written, &found) else { continue };
                    if !header.fits(&data[start..start + read]) {
                        continue;
                    }
                    // Where bytes are missing from a block, its stream may run on into the next one
                    // and still come out right. So a block must end where something begins, or at
                    // least hold nothing that looks like the next one.
                    if !is_boundary(data, start + read)
                        && (read != payload_len || holds_header(data, start..start + read))
                    {
                        continue;
                    }
                    let lost = u64::from(header.record_count).saturating_sub(found.count);
                    let partial = about.is_some_and(|kind| kind.is_loss());
                    let (len, lost) = (start + read, partial.then_some(lost));
                    return Ok(Found::Block { block: block(len, partial), len, about, lost });
                }
                Decoded::Short { .. } if start + payload_len > have && torn.is_none() => {
                    torn =
                        Some((block(have, true), u64::from(header.record_count).saturating_sub(found.count)));
                }
                Decoded::Short { .. } | Decoded::Broken => {}
            }
        }

        if let Some((block, lost)) = torn
            && !holds_header(data, HEADER_LEN..have)
        {
            // The file ends here. What could be decompressed is a true beginning of the block.
            let (kind, lost) = (DamageKind::TornPayload, Some(lost));
            return Ok(match block.record_count {
                0 => Found::Damage { kind, skip: Skip::Exactly(have), records: lost },
                _ => Found::Block { block, len: have, about: Some(kind), lost },
            });
        }
        let end =
            starts.into_iter().flatten().map(|start| start + payload_len).find(|&end| is_boundary(data, end));
        Ok(match end {
            Some(end) if !self.searched => Found::Damage {
                kind: DamageKind::BadPayload,
                skip: Skip::Exactly(end),
                records: Some(u64::from(header.record_count)),
            },
            _ => Found::Damage { kind: DamageKind::BadPayload, skip: Skip::ToNextMagic, records: None },
        })
    }

    /// Moves to the next thing that can be a header, at least one byte on, or to the end.
    fn search(&mut self) -> Result<()> {
        self.searched = true;
        self.window.consume(1);
        loop {
            let have = self.window.fill(SEARCH_STEP)?;
            match memmem::find(self.window.data(), &MAGIC) {
                Some(at) => {
                    self.window.consume(at);
                    // A header cut by the end of the file is still worth naming.
                    let cut = self.window.fill(HEADER_LEN)? < HEADER_LEN;
                    if cut || Header::from_bytes(self.window.data()).is_some_and(|h| h.is_plausible()) {
                        return Ok(());
                    }
                    self.window.consume(1);
                }
                None if have < SEARCH_STEP => {
                    self.window.consume(have);
                    return Ok(());
                }
                // The last bytes may be the beginning of a magic.
                None => self.window.consume(have - (MAGIC.len() - 1)),
            }
        }
    }
}

/// Whether the header and the payload agree. A header may be wrong in one thing that the payload
/// itself tells; when it is wrong in more, the payload cannot be believed either.
fn judge(header: &Header, read: usize, written: usize, found: &Walk) -> Result<Option<DamageKind>, ()> {
    let faults = [
        (read != header.compressed_len as usize, "length of the payload"),
        (written != header.uncompressed_len as usize, "length of the records"),
        (found.error.is_none() && found.count != u64::from(header.record_count), "number of records"),
    ];
    let mut faults = faults.iter().filter(|(wrong, _)| *wrong).map(|(_, what)| *what);
    match (faults.next(), faults.next(), found.error) {
        (None, _, None) => Ok(None),
        (None, _, Some(e)) => Ok(Some(DamageKind::BadRecord { at: e.at, what: e.what })),
        (Some(what), None, None) => Ok(Some(DamageKind::Mismatch(what))),
        _ => Err(()),
    }
}

/// Whether a block may begin at `at`, or the file end there; `data` goes to the file's end if it is
/// short.
pub(super) fn is_boundary(data: &[u8], at: usize) -> bool {
    match data.get(at..) {
        Some(rest) => rest.starts_with(&MAGIC) || (rest.len() < MAGIC.len() && MAGIC.starts_with(rest)),
        None => false,
    }
}

/// Whether something that can be a header begins within `range`.
fn holds_header(data: &[u8], range: Range<usize>) -> bool {
    let end = data.len().min(range.end + MAGIC.len() - 1);
    memmem::find_iter(&data[range.start..end], &MAGIC)
        .any(|at| Header::from_bytes(&data[range.start + at..]).is_some_and(|header| header.is_plausible()))
}
