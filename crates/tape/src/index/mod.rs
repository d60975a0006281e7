//! The index, the part `ahx` of a native recording, or the file `NAME.ahx` beside an older one:
//! keyframes, so that it opens at any moment without being replayed from the start. A keyframe is a
//! dump of the terminal as it was before some block, and where that block is. The index is only a
//! help: it can be made again from the recording at any
//! time, is believed only as far as it matches, and without one everything still works, from the
//! start.
//!
//! It is a head and then entries, appended as the recording grows:
//!
//! | part | bytes |
//! | --- | --- |
//! | head | `AHXI`, version u32, start of the recording in ns u64 |
//! | entry | tag u8, length u32, check u64 (BLAKE3 over tag and body, cut), body |
//! | body of a keyframe (1) | place; chain 32 bytes; cols, rows u16; length u32, dump as brotli |
//! | body of a moment (2) | time, output offset, kind (0 marker, 1 snapshot), id u64; label |
//! | body of an end (3) | file length, time, output offset u64; chain 32 bytes |
//!
//! The place of a keyframe is four u64: the offset of its block, the time, the output offset and
//! the wall clock of the record before.
//!
//! The chain is BLAKE3 over the hash before and a block's header, for every block before the entry:
//! reading the headers alone, without a payload, proves that the index belongs to the recording.
//! All integers are little-endian; an entry with an unknown tag is skipped.

mod build;
mod load;
mod seek;

pub use build::{IndexBuilder, IndexOptions, build_index, index_blocks};
pub use load::{Index, Keyframe};
pub use seek::{Playhead, Seeker, Target};

use crate::ahr::HEADER_LEN;

pub(crate) const MAGIC: [u8; 4] = *b"AHXI";
pub(crate) const VERSION: u32 = 1;
/// A dump of two screens of a million cells each is some megabytes.
pub(crate) const MAX_BODY: u32 = 64 << 20;
pub(crate) const MAX_DUMP: u32 = 64 << 20;

pub(crate) const KEYFRAME: u8 = 1;
pub(crate) const MOMENT: u8 = 2;
pub(crate) const END: u8 = 3;

/// The hash over the headers of blocks so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chain([u8; 32]);

impl Chain {
    pub(crate) fn new() -> Self {
        Self([0; 32])
    }

    pub(crate) fn add(&mut self, header: &[u8; HEADER_LEN]) {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0);
        hasher.update(header);
        self.0 = *hasher.finalize().as_bytes();
    }
}

fn check(tag: u8, body: &[u8]) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[tag]);
    hasher.update(body);
    let mut cut = [0; 8];
    cut.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    cut
}

#[cfg(test)]
mod tests;
