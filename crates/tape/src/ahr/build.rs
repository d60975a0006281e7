//! Building blocks. The builder collects records until its owner closes the block, because the
//! limit is reached, the timer fired, a snapshot must be safe or the session ended; it has no timer
//! of its own. Its buffers are used again for every block, so a recorder at full speed allocates
//! nothing here.

use super::BLOCK_LIMIT;
use super::block::{BlockItem, BlockReader};
use super::codec::{self, Quality};
#[cfg(doc)]
use super::header::MAX_OFFSET;
use super::header::{HEADER_LEN, Header, VERSION, checksum};
use super::record::{Body, DATA_HEAD, INPUT_HEAD, PART_HEAD, Record};

/// A record is not split for less room than this: a few bytes at the end of a block are not worth a
/// record.
const MIN_PIECE: usize = 256;

/// A beginning of a block, as a block of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutBlock {
    /// The block, header and payload.
    pub bytes: Vec<u8>,
    /// Bytes of output in it.
    pub output: u64,
}

impl CutBlock {
    /// Cuts a block down to at most `room` bytes, for a disk that has no room for all of it. Costs
    /// a few compressions. `None` if nothing of it fits.
    pub fn new(block: &[u8], room: usize) -> Option<Self> {
        let Ok(Some(BlockItem::Block(whole))) = BlockReader::new(block).next_item() else { return None };
        let mut budget = whole.bytes.len().min(whole.bytes.len() * room / block.len().max(1));
        while budget > DATA_HEAD {
            let mut builder = BlockBuilder::new(whole.header.start_byte_off);
            let mut output = 0;
            for record in whole.records().flatten() {
                let left = budget.saturating_sub(builder.len());
                // A snapshot that was refused must not be there.
                let keep = !matches!(record.body, Body::Snapshot { .. });
                let Some(record) = record.cut_to(left).filter(|_| keep) else { break };
                if let Body::Data { bytes, .. } = &record.body {
                    output += bytes.len() as u64;
                }
                // The records come from one block, so they fit in one.
                let _ = builder.push(record);
            }
            let bytes = builder.finish(Quality::default(), false);
            if bytes.is_empty() {
                return None;
            }
            if bytes.len() <= room {
                return Some(Self { bytes: bytes.to_vec(), output });
            }
            budget = budget / 4 * 3;
        }
        None
    }
}

/// Collects records into blocks of a recording.
#[derive(Debug)]
pub struct BlockBuilder {
    records: Vec<u8>,
    out: Vec<u8>,
    count: u32,
    first_ts: Option<u64>,
    last_ts: u64,
    start_off: Option<u64>,
    next_off: u64,
    full: bool,
    part: bool,
}

impl BlockBuilder {
    /// `byte_off` is how much the program had written before: 0, or what [`super::tail`] found in a
    /// file that is continued.
    pub fn new(byte_off: u64) -> Self {
        Self { records: Vec::with_capacity(BLOCK_LIMIT), ..Self::small(byte_off) }
    }

    /// A builder whose memory grows as records come, for a block that is small most often.
    pub(super) fn small(byte_off: u64) -> Self {
        Self {
            records: Vec::new(),
            out: Vec::new(),
            count: 0,
            first_ts: None,
            last_ts: 0,
            start_off: None,
            next_off: byte_off,
            full: false,
            part: false,
        }
    }

    /// Takes a record, or as much of it as fits, and gives back the rest, for which the block has
    /// to be finished first:
    ///
    /// ```
    /// # use tapdeck_tape::ahr::{BlockBuilder, Quality, Record};
    /// # let (mut builder, mut file) = (BlockBuilder::new(0), Vec::new());
    /// let mut rest = Some(Record::data(1, 0, vec![b'x'; 1_000_000]));
    /// while let Some(record) = rest {
    ///     rest = builder.push(record);
    ///     if builder.is_full() {
    ///         file.extend_from_slice(builder.finish(Quality::default(), false));
    ///     }
    /// }
    /// ```
    ///
    /// DATA, INPUT and PART are split; of what else there is, only a record of an unknown kind can
    /// be larger than a block, and gets one of its own. Offsets are at most [`MAX_OFFSET`].
    #[must_use = "the rest of the record would be lost"]
    pub fn push(&mut self, record: Record) -> Option<Record> {
        let room = self.room();
        let alone = self.count == 0 && matches!(record.body, Body::Unknown { .. });
        if record.encoded_len() <= room || alone {
            self.append(&record);
            return None;
        }
        let ts_ns = record.ts_ns;
        let head = match &record.body {
            Body::Data { .. } => DATA_HEAD,
            Body::Input { .. } => INPUT_HEAD,
            Body::Part { name, .. } => PART_HEAD + name.len(),
            _ => usize::MAX,
        };
        if room < head.saturating_add(MIN_PIECE) {
            self.full = true;
            return Some(record);
        }
        let fits = room - head;
        let rest = match record.body {
            Body::Data { off, mut bytes } => {
                let piece = bytes.split_to(fits);
                self.append(&Record::data(ts_ns, off, piece));
                Record::data(ts_ns, off.saturating_add(fits as u64), bytes)
            }
            Body::Input { mut bytes } => {
                let piece = bytes.split_to(fits);
                self.append(&Record::input(ts_ns, piece));
                Record::input(ts_ns, bytes)
            }
            Body::Part { name, mut bytes } => {
                let piece = bytes.split_to(fits);
                self.append(&Record::part(ts_ns, name.clone(), piece));
                Record::part(ts_ns, name, bytes)
            }
            body => Record { ts_ns, body },
        };
        self.full = true;
        Some(rest)
    }

    /// Whether the block should be finished before anything else is pushed.
    pub fn is_full(&self) -> bool {
        self.full || self.room() == 0
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Length of the records so far, uncompressed.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// When the block was begun: the time of its first record. A timer counts from here.
    pub fn first_ts(&self) -> Option<u64> {
        self.first_ts
    }

    /// How much the program has written, lost bytes included, as far as records tell.
    pub fn byte_off(&self) -> u64 {
        self.next_off
    }

    /// Says that the program had written so much when the next record came: of a block without
    /// DATA, that is where its output begins.
    pub(super) fn go_on_at(&mut self, byte_off: u64) {
        self.next_off = byte_off;
    }

    /// Closes the block and returns it, header and payload, ready to be written at the file's end;
    /// the builder is then empty. Nothing comes of an empty block unless it is the last one, which
    /// says that the recording ended as it should.
    pub fn finish(&mut self, quality: Quality, last: bool) -> &[u8] {
        self.out.clear();
        if self.count == 0 && !last {
            return &self.out;
        }
        self.out.resize(HEADER_LEN, 0);
        codec::compress(&self.records, quality, &mut self.out);
        let header = Header {
            version: VERSION,
            header_len: HEADER_LEN as u16,
            start_ts_ns: self.first_ts.unwrap_or(self.last_ts),
            start_byte_off: self.start_off.unwrap_or(self.next_off),
            // Both fit: the records are at most a block's limit, or one record where that is
            // larger.
            uncompressed_len: self.records.len() as u32,
            compressed_len: (self.out.len() - HEADER_LEN) as u32,
            record_count: self.count,
            flags: Header::flags(last, self.part),
            checksum: checksum(&self.out[HEADER_LEN..]),
            reserved: [0; 3],
        };
        self.out[..HEADER_LEN].copy_from_slice(&header.to_bytes());
        self.records.clear();
        self.count = 0;
        self.first_ts = None;
        self.start_off = None;
        self.full = false;
        self.part = false;
        &self.out
    }

    fn room(&self) -> usize {
        BLOCK_LIMIT.saturating_sub(self.records.len())
    }

    fn append(&mut self, record: &Record) {
        record.encode(&mut self.records);
        self.count += 1;
        self.first_ts.get_or_insert(record.ts_ns);
        self.last_ts = record.ts_ns;
        if let Body::Data { off, bytes } = &record.body {
            self.start_off.get_or_insert(*off);
            self.next_off = off.saturating_add(bytes.len() as u64);
        }
        self.part |= record.is_part();
    }
}
