//! The block header: 44 bytes, little-endian, no padding. Parsing answers only whether the bytes
//! can be a header; whether the block that follows is whole is for [`super::BlockReader`] to find
//! out.

use crate::xxh64::Xxh64;

/// The four bytes that open every block.
pub const MAGIC: [u8; 4] = *b"AHRC";
/// The version of a plain block.
pub(crate) const VERSION: u16 = 1;
/// The version of an encrypted block.
pub(crate) const ENCRYPTED: u16 = 2;
/// The length of a header as written.
pub const HEADER_LEN: usize = 44;
/// The length of the header of an encrypted block: it tells where the block's output ends, too.
pub(crate) const ENCRYPTED_HEADER_LEN: usize = HEADER_LEN + 8;
/// A block that claims to hold more than this is taken for damaged, before any memory is taken for
/// it.
pub(crate) const MAX_UNCOMPRESSED: u32 = 64 << 20;
/// A payload that claims to be longer than this is taken for damaged. Brotli never needs more than
/// a few bytes a megabyte beyond the input.
pub(crate) const MAX_COMPRESSED: u32 = MAX_UNCOMPRESSED + (1 << 16);

/// No program writes more than this; a larger offset is damage, and sums with it would overflow.
pub const MAX_OFFSET: u64 = 1 << 62;

/// Longest header that a later writer of version 1 might use; what lies beyond the known 44 is
/// skipped.
const MAX_HEADER_LEN: u16 = 1024;
/// The shortest record is a RESIZE.
const MIN_RECORD: u32 = 16;
const FLAG_LAST: u8 = 1;
const FLAG_CHECKSUM: u8 = 2;
const FLAG_PART: u8 = 4;

/// What a block says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Format version.
    pub version: u16,
    /// Length of the header as it claims; the original writer says 48 and means 44.
    pub header_len: u16,
    /// Wall clock of the first record, in nanoseconds.
    pub start_ts_ns: u64,
    /// Offset in the program's output just before the first DATA record.
    pub start_byte_off: u64,
    /// Length of the records once decompressed.
    pub uncompressed_len: u32,
    /// Length of the brotli stream that follows.
    pub compressed_len: u32,
    /// Number of records.
    pub record_count: u32,
    /// Bit 0: the session ends with this block, or ended before it; a recording that was continued
    /// has more behind it. Bit 1: there is a checksum. Bit 2: there are PART records.
    pub flags: u8,
    /// The low half of the payload's XXH64 if there is a checksum, otherwise zero.
    pub checksum: u32,
    /// Three bytes kept for later; zero.
    pub reserved: [u8; 3],
}

impl Header {
    /// Whether the writer meant this block to be the last one.
    pub(crate) fn is_last(&self) -> bool {
        self.flags & FLAG_LAST != 0
    }

    /// The flags of a block with a checksum.
    pub(crate) fn flags(last: bool, part: bool) -> u8 {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        FLAG_CHECKSUM | flag(last, FLAG_LAST) | flag(part, FLAG_PART)
    }

    /// Whether the block holds parts. A plain one then holds nothing else.
    pub(crate) fn has_part(&self) -> bool {
        self.flags & FLAG_PART != 0
    }

    /// Whether the payload is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.version == ENCRYPTED
    }

    /// Whether the version can be read.
    pub(crate) fn is_known(&self) -> bool {
        matches!(self.version, VERSION | ENCRYPTED)
    }

    /// Whether a payload has the checksum that is stated, if one is.
    pub(crate) fn fits(&self, payload: &[u8]) -> bool {
        self.flags & FLAG_CHECKSUM == 0 || self.checksum == checksum(payload)
    }

    /// Whether an encrypted block, header and all, has the checksum that it states.
    pub(super) fn fits_encrypted(&self, block: &[u8]) -> bool {
        self.checksum == encrypted_checksum(*self, block)
    }

    /// The header as it stands in the file.
    pub fn to_bytes(self) -> [u8; HEADER_LEN] {
        let mut out = [0; HEADER_LEN];
        out[0..4].copy_from_slice(&MAGIC);
        out[4..6].copy_from_slice(&self.version.to_le_bytes());
        out[6..8].copy_from_slice(&self.header_len.to_le_bytes());
        out[8..16].copy_from_slice(&self.start_ts_ns.to_le_bytes());
        out[16..24].copy_from_slice(&self.start_byte_off.to_le_bytes());
        out[24..28].copy_from_slice(&self.uncompressed_len.to_le_bytes());
        out[28..32].copy_from_slice(&self.compressed_len.to_le_bytes());
        out[32..36].copy_from_slice(&self.record_count.to_le_bytes());
        out[36] = self.flags;
        out[37..41].copy_from_slice(&self.checksum.to_le_bytes());
        out[41..44].copy_from_slice(&self.reserved);
        out
    }

    /// Reads the fields of a header; `None` when the bytes are too few or lack the magic.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let b: &[u8; HEADER_LEN] = bytes.first_chunk()?;
        if b[0..4] != MAGIC {
            return None;
        }
        Some(Self {
            version: u16_at(b, 4),
            header_len: u16_at(b, 6),
            start_ts_ns: u64_at(b, 8),
            start_byte_off: u64_at(b, 16),
            uncompressed_len: u32_at(b, 24),
            compressed_len: u32_at(b, 28),
            record_count: u32_at(b, 32),
            flags: b[36],
            checksum: u32_at(b, 37),
            reserved: [b[41], b[42], b[43]],
        })
    }

    /// Says what is impossible in this header, if anything is. The version is not looked at.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        if self.header_len < HEADER_LEN as u16 || self.header_len > MAX_HEADER_LEN {
            Some("impossible header length")
        } else if self.is_encrypted() && usize::from(self.header_len) < ENCRYPTED_HEADER_LEN {
            Some("impossible header length of an encrypted block")
        } else if self.uncompressed_len > MAX_UNCOMPRESSED {
            Some("impossible length of records")
        } else if self.compressed_len == 0 || self.compressed_len > MAX_COMPRESSED {
            Some("impossible length of payload")
        } else if self.start_byte_off > MAX_OFFSET {
            Some("impossible offset")
        } else if self.record_count > self.uncompressed_len / MIN_RECORD {
            Some("more records than the block can hold")
        } else {
            None
        }
    }

    /// Whether a magic met while looking for the next block is likely to be one.
    pub(crate) fn is_plausible(&self) -> bool {
        self.is_known()
            && self.fault().is_none()
            && self.reserved == [0; 3]
            && self.flags <= FLAG_LAST | FLAG_CHECKSUM | FLAG_PART
            && (self.checksum == 0 || self.flags & FLAG_CHECKSUM != 0)
    }
}

/// Puts the message that holds a block, encrypted, into a block. `None` if there is no block.
#[cfg(feature = "encrypt")]
pub(crate) fn encrypted_block(block: &[u8], message: &[u8], end_off: u64) -> Option<Vec<u8>> {
    let header = Header {
        version: ENCRYPTED,
        header_len: ENCRYPTED_HEADER_LEN as u16,
        compressed_len: u32::try_from(message.len()).ok()?,
        ..Header::from_bytes(block)?
    };
    let mut out = [&header.to_bytes()[..], &end_off.to_le_bytes(), message].concat();
    let checksum = encrypted_checksum(header, &out);
    out[..HEADER_LEN].copy_from_slice(&Header { checksum, ..header }.to_bytes());
    Some(out)
}

/// The checksum of an encrypted block: a recorder that continues the file believes its header.
fn encrypted_checksum(header: Header, block: &[u8]) -> u32 {
    let mut hash = Xxh64::new();
    hash.update(&Header { checksum: 0, ..header }.to_bytes());
    hash.update(block.get(HEADER_LEN..).unwrap_or_default());
    hash.digest() as u32
}

/// Whether the header of an encrypted block says what the block inside does.
pub(super) fn agrees(outer: &Header, inner: &Header) -> bool {
    let Header { version, header_len, compressed_len, checksum, .. } = *inner;
    Header { version, header_len, compressed_len, checksum, ..*outer } == *inner
}

/// Where the output of an encrypted block ends, as its header says.
pub(super) fn end_off_of(encrypted: &[u8]) -> Option<u64> {
    let end = encrypted.get(HEADER_LEN..)?.first_chunk().map(|b| u64::from_le_bytes(*b));
    end.filter(|end| *end <= MAX_OFFSET)
}

/// The checksum of a payload. Brotli has none: a stream in which a sector was lost may come out as
/// other bytes.
pub(crate) fn checksum(payload: &[u8]) -> u32 {
    let mut hash = Xxh64::new();
    hash.update(payload);
    hash.digest() as u32
}

fn u16_at(b: &[u8], i: usize) -> u16 {
    u16::from_le_bytes([b[i], b[i + 1]])
}

fn u32_at(b: &[u8], i: usize) -> u32 {
    u32::from_le_bytes([b[i], b[i + 1], b[i + 2], b[i + 3]])
}

fn u64_at(b: &[u8], i: usize) -> u64 {
    u64::from(u32_at(b, i)) | u64::from(u32_at(b, i + 4)) << 32
}
