//! Parts: named streams inside a recording, for everything that is no event of its program. Each
//! is cut into PART records, which stand in blocks of their own: a reader that does not know them
//! loses nothing else.
//!
//! | part | content |
//! | --- | --- |
//! | `meta.json` | an object a line, each whole; the last one counts |
//! | `events.jsonl` | turns, states, changes of control, labels of markers, snapshots |
//! | `instructions.jsonl` | instructions; a later line with the same id replaces an earlier one |
//! | `ahx` | the index; a record that begins with the head of an index begins it anew |
//! | `seal` | the hash after every block of a sealed recording, a line each |
//!
//! [`Parts`] knows where the records of each part lie, and [`PartReader`] reads one from there: a
//! part is never in memory as a whole unless a caller asks for that. [`part_blocks`] makes blocks.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use bytes::Bytes;

use super::block::{Block, BlockItem, BlockReader, is_bomb};
use super::build::BlockBuilder;
use super::codec::Quality;
use super::damage::DamageKind;
use super::record::{Body, Record};
use super::scan::{Scan, ScanItem};
use crate::{Error, FilePosition, Result};

/// The part with the facts of the session.
pub const META: &str = "meta.json";
/// The part with what happened beside the bytes of the program.
pub const EVENTS: &str = "events.jsonl";
/// The part with instructions.
pub const INSTRUCTIONS: &str = "instructions.jsonl";
/// The part with the index.
pub const INDEX: &str = "ahx";
/// The part with the lines of the seal.
pub const SEAL: &str = "seal";

/// The most of one part that is read into memory.
const MAX_PART: u64 = 64 << 20;
/// The most records of parts in a recording: two days of one every 100 ms.
const MAX_PIECES: usize = 2_000_000;

/// Where the parts of a recording lie.
#[derive(Debug, Clone, Default)]
pub struct Parts {
    parts: BTreeMap<String, Arc<Part>>,
    pieces: usize,
    /// Where the last block ends that was looked at, and how much came out of those opened.
    end: u64,
    out: u64,
    /// Whether a block could be read, and the first that could not for want of a key.
    opened: bool,
    locked: Option<u64>,
}

#[derive(Debug, Clone, Default)]
struct Part {
    pieces: Vec<Piece>,
    len: u64,
}

/// One PART record.
#[derive(Debug, Clone, Copy)]
struct Piece {
    /// Where its block begins in the file.
    block: u64,
    /// Where its bytes begin in the part.
    start: u64,
    /// Where they lie in the decompressed block.
    at: u32,
    len: u32,
}

impl Parts {
    /// Finds the parts of a recording. Reads all headers, and the blocks that hold parts.
    ///
    /// # Errors
    /// When the reader fails, when the recording has more parts than any session makes, and when it
    /// is encrypted and no identity of this process fits.
    pub fn of(recording: impl Read + Seek) -> Result<Self> {
        let mut parts = Self::default();
        parts.extend(recording)?;
        Ok(parts)
    }

    /// Takes what was added to the recording since the last look.
    ///
    /// # Errors
    /// As [`Parts::of`].
    pub fn extend<R: Read + Seek>(&mut self, mut recording: R) -> Result<()> {
        let mut places = Vec::new();
        let mut scan = Scan::starting_at(&mut recording, self.end)?;
        while let Some(item) = scan.next_item()? {
            let ScanItem::Block(info) = item else { continue };
            self.end = info.offset + info.len;
            // Of an encrypted recording, a block must be opened to know whether a key fits.
            let has_part = info.header.has_part();
            if (has_part || (info.header.is_encrypted() && !self.opened)) && places.len() <= MAX_PIECES {
                places.push((info.offset, has_part));
            }
        }
        for (offset, has_part) in places {
            if !has_part && self.opened {
                continue;
            }
            match open_block(&mut recording, offset) {
                Ok(Some(block)) => {
                    self.opened |= block.encrypted;
                    self.out += block.bytes.len() as u64;
                    if is_bomb(self.out, self.end) {
                        let what = "expands beyond any recording: a decompression bomb";
                        return Err(Error::malformed(FilePosition::Byte(offset), what));
                    }
                    self.take(&block)?;
                }
                // What is damaged is reported by the readers of the recording itself.
                Ok(None) => {}
                Err(Error::Locked { .. }) => {
                    self.locked.get_or_insert(offset);
                }
                Err(e) => return Err(e),
            }
        }
        // One block that can be read is enough: others may be for other readers.
        match self.locked.filter(|_| !self.opened) {
            Some(at) => Err(Error::Locked { at: FilePosition::Byte(at) }),
            None => Ok(()),
        }
    }

    fn take(&mut self, block: &Block) -> Result<()> {
        let mut records = block.records();
        while let Some(Ok(record)) = records.next() {
            let Body::Part { name, bytes } = record.body else { continue };
            self.pieces += 1;
            if self.pieces > MAX_PIECES {
                let what = "there are more parts than a session makes";
                return Err(Error::malformed(FilePosition::Byte(block.offset), what));
            }
            let begins = name == INDEX && bytes.starts_with(&crate::index::MAGIC);
            let part = Arc::make_mut(self.parts.entry(name).or_default());
            if begins {
                *part = Part::default();
            }
            // A block is at most some megabytes long.
            let at = records.position().saturating_sub(bytes.len()) as u32;
            let piece = Piece { block: block.offset, start: part.len, at, len: bytes.len() as u32 };
            part.len += bytes.len() as u64;
            part.pieces.push(piece);
        }
        Ok(())
    }

    /// The names of the parts, with their lengths.
    pub fn list(&self) -> impl Iterator<Item = (&str, u64)> {
        self.parts.iter().map(|(name, part)| (name.as_str(), part.len))
    }

    /// The length of a part; `None` if there is no such part.
    pub fn len_of(&self, name: &str) -> Option<u64> {
        self.parts.get(name).map(|part| part.len)
    }

    /// The names and lengths of what was added behind a recording that ended at this offset with
    /// the block that holds its last `meta.json`.
    pub fn behind(&self, end: u64) -> Vec<(&str, u64)> {
        let added = |name: &str, part: &Part| -> u64 {
            let own = |piece: &&Piece| piece.block > end || (piece.block == end && name != META);
            part.pieces.iter().filter(own).map(|piece| u64::from(piece.len)).sum()
        };
        let all = self.parts.iter().map(|(name, part)| (name.as_str(), added(name, part)));
        all.filter(|(_, len)| *len > 0).collect()
    }

    /// Opens a part; `None` if there is no such part.
    pub fn open<R: Read + Seek>(&self, name: &str, recording: R) -> Option<PartReader<R>> {
        let part = self.parts.get(name)?.clone();
        Some(PartReader { recording, part, pos: 0, block: None })
    }

    /// Reads a part into memory; empty if there is none.
    ///
    /// # Errors
    /// When the reader fails, and when the part is longer than 64 MiB.
    pub fn read(&self, name: &str, recording: impl Read + Seek) -> Result<Vec<u8>> {
        let Some(mut reader) = self.open(name, recording) else { return Ok(Vec::new()) };
        let at = FilePosition::Byte(reader.part.pieces.first().map_or(0, |piece| piece.block));
        if reader.part.len > MAX_PART {
            return Err(Error::malformed(at, format!("the part {name} is longer than 64 MiB")));
        }
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).map_err(|source| Error::Read { at, source })?;
        Ok(bytes)
    }
}

/// Reads a part, block by block.
#[derive(Debug)]
pub struct PartReader<R> {
    recording: R,
    part: Arc<Part>,
    pos: u64,
    /// The block read last, and where it begins.
    block: Option<(u64, Bytes)>,
}

impl<R: Read + Seek> Read for PartReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let pieces = &self.part.pieces;
        let next = pieces.partition_point(|piece| piece.start + u64::from(piece.len) <= self.pos);
        let Some(piece) = pieces.get(next) else { return Ok(0) };
        if self.block.as_ref().is_none_or(|(offset, _)| *offset != piece.block) {
            let block = open_block(&mut self.recording, piece.block).map_err(io::Error::other)?;
            let block = block.ok_or_else(|| io::Error::other("the recording was changed meanwhile"))?;
            self.block = Some((piece.block, block.bytes));
        }
        let from = piece.at as usize + (self.pos - piece.start) as usize;
        let to = piece.at as usize + piece.len as usize;
        let bytes = self.block.as_ref().and_then(|(_, bytes)| bytes.get(from..to)).unwrap_or_default();
        let n = bytes.len().min(buf.len());
        buf[..n].copy_from_slice(&bytes[..n]);
        self.pos += n as u64;
        Ok(n)
    }
}

impl<R: Read + Seek> Seek for PartReader<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let to = match to {
            SeekFrom::Start(to) => Some(to),
            SeekFrom::End(by) => self.part.len.checked_add_signed(by),
            SeekFrom::Current(by) => self.pos.checked_add_signed(by),
        };
        self.pos = to.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.pos)
    }
}

/// Opens the block at an offset; `None` if it is damaged.
fn open_block<R: Read + Seek>(recording: &mut R, offset: u64) -> Result<Option<Block>> {
    let at = FilePosition::Byte(offset);
    recording.seek(SeekFrom::Start(offset)).map_err(|source| Error::Read { at, source })?;
    match BlockReader::starting_at(recording, offset).next_item()? {
        Some(BlockItem::Block(block)) if block.offset == offset => Ok(Some(block)),
        Some(BlockItem::Damage(damage)) if damage.kind == DamageKind::OtherKey => Err(Error::Locked { at }),
        _ => Ok(None),
    }
}

/// Where blocks of parts stand among the others: behind the block that ends so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Time of its last record. Parts have it too, so that they take no time of a replay.
    pub ts_ns: u64,
    /// How much the program had written.
    pub byte_off: u64,
}

/// Makes blocks that hold these bytes of parts, by name. `last` says that the session has ended.
pub fn part_blocks(parts: &[(&str, &[u8])], at: Place, quality: Quality, last: bool) -> Vec<Vec<u8>> {
    let mut builder = BlockBuilder::small(at.byte_off);
    let mut blocks = Vec::new();
    for (name, bytes) in parts.iter().filter(|(_, bytes)| !bytes.is_empty()) {
        let mut rest = Some(Record::part(at.ts_ns, *name, Bytes::copy_from_slice(bytes)));
        while let Some(record) = rest {
            rest = builder.push(record);
            if builder.is_full() {
                blocks.push(builder.finish(quality, last).to_vec());
            }
        }
    }
    if !builder.is_empty() {
        blocks.push(builder.finish(quality, last).to_vec());
    }
    blocks
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use tapdeck_term::Size;

    use super::*;
    use crate::ahr::Summary;

    fn block(records: Vec<Record>, at: u64) -> Vec<u8> {
        let mut builder = BlockBuilder::new(at);
        for record in records {
            assert_eq!(builder.push(record), None);
        }
        builder.finish(Quality::default(), false).to_vec()
    }

    fn read(parts: &Parts, name: &str, file: &[u8]) -> Vec<u8> {
        parts.read(name, Cursor::new(file)).expect("in memory")
    }

    #[test]
    fn parts_come_back_from_between_the_blocks() {
        let noise: Vec<u8> =
            (0..700_000_u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        let at = Place { ts_ns: 5, byte_off: 3 };
        let mut file = block(vec![Record::resize(1, Size::new(80, 24)), Record::data(5, 0, &b"abc"[..])], 0);
        for parts in
            [&[("events.jsonl", &b"one\ntw"[..]), ("x", &noise[..])][..], &[("events.jsonl", b"o\n")]]
        {
            file.extend(part_blocks(parts, at, Quality::default(), false).concat());
            file.extend(block(vec![Record::data(5, 3, &b""[..])], 3));
        }
        let end = file.len() as u64;
        let parts = Parts::of(Cursor::new(&file)).expect("found");
        assert_eq!(read(&parts, EVENTS, &file), b"one\ntwo\n");
        assert!(read(&parts, "x", &file) == noise);
        assert_eq!((parts.len_of(META), parts.len_of("x")), (None, Some(noise.len() as u64)));
        let summary = Summary::of(&file[..]).expect("read");
        assert!(
            summary.is_whole() && summary.parts > 10 && summary.duration().as_nanos() == 4,
            "{summary:?}"
        );

        // Any piece of it, whatever lies around.
        let mut reader = parts.open("x", Cursor::new(&file)).expect("there");
        for from in [0, 1, 262_100, 300_000, noise.len() - 1, noise.len(), noise.len() + 9] {
            let mut some = vec![0; 40];
            reader.seek(SeekFrom::Start(from as u64)).expect("sought");
            let n = reader.read(&mut some).expect("read");
            assert!(noise.get(from..).unwrap_or_default().starts_with(&some[..n]), "{from}");
            assert_eq!(n == 0, from >= noise.len());
        }

        // What is added later is found from there on, and named.
        let mut parts = parts;
        file.extend(part_blocks(&[(META, b"{}\n")], at, Quality::default(), false).concat());
        file.extend(part_blocks(&[(EVENTS, b"three\n")], at, Quality::default(), false).concat());
        parts.extend(Cursor::new(&file)).expect("found");
        assert_eq!(read(&parts, EVENTS, &file), b"one\ntwo\nthree\n");
        assert_eq!(parts.behind(end), [(EVENTS, 6)]);
    }

    #[test]
    fn an_index_that_begins_anew_replaces_the_one_before() {
        let at = Place { ts_ns: 1, byte_off: 0 };
        let mut file = block(vec![Record::resize(1, Size::new(80, 24))], 0);
        for piece in [&b"AHXI old"[..], b" and more", b"AHXI new", b" and more"] {
            file.extend(part_blocks(&[(INDEX, piece)], at, Quality::default(), false).concat());
        }
        let parts = Parts::of(Cursor::new(&file)).expect("found");
        assert_eq!(read(&parts, INDEX, &file), b"AHXI new and more");
    }

    /// A recording of a later version lost the rest of a block with the first record that was not
    /// known.
    #[test]
    fn records_of_a_later_version_are_passed_over_and_kept() {
        let unknown =
            Record { ts_ns: 2, body: Body::Unknown { tag: 77, bytes: Bytes::from_static(b"later") } };
        let records = vec![
            Record::resize(1, Size::new(80, 24)),
            unknown.clone(),
            Record::part(2, "of-a-later-version", &b"also"[..]),
            Record::data(3, 0, &b"abc"[..]),
        ];
        let mut file = block(records.clone(), 0);
        let all = |file: &[u8]| -> Vec<Record> {
            let items = crate::ahr::Reader::new(file).map(|item| item.expect("read"));
            items.filter_map(|i| if let crate::ahr::Item::Record(r) = i { Some(r) } else { None }).collect()
        };
        assert_eq!(all(&file), records);
        assert_eq!(Summary::of(&file[..]).expect("read").unknown, 1);
        // A repair that has to write the block anew keeps them, too.
        file.truncate(file.len() - 1);
        let mut repair = crate::ahr::Repair::new(&file[..]);
        let mut clean = Vec::new();
        while let Some(piece) = repair.next_piece().expect("read") {
            clean.extend_from_slice(piece);
        }
        assert!(all(&clean).contains(&unknown), "{:?}", all(&clean));
        // The name of a part must end within it.
        let mut bad = Vec::new();
        Record::part(1, "name", &b""[..]).encode(&mut bad);
        bad[16] = 200;
        bad.resize(300, 0);
        assert_eq!(crate::ahr::record::walk(&bad).count, 0);
    }
}
