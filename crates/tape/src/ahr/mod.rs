//! `.ahr`, the native recording: an append-only row of self-describing blocks.
//!
//! A block is a header of 44 bytes and a brotli stream of records. Each stands on its own, so a
//! recorder that dies loses the block in progress and nothing else, a damaged block costs only
//! itself, and a reader can start at any of them. The byte stream inside is what the program wrote,
//! exact.
//!
//! Writing: push [`Record`]s into a [`BlockBuilder`] and write what [`BlockBuilder::finish`]
//! returns. Reading: a [`Reader`] for records, a [`BlockReader`] for whole blocks, [`Scan`] for
//! headers only. [`Summary`] counts what passes and [`tail`] tells where an existing file can be
//! continued. [`Parts`] finds what the recording says of itself. An encrypted block
//! ([`crate::encryption`]) holds a plain one.

mod block;
mod build;
mod carry;
mod codec;
mod damage;
mod events;
mod frames;
mod header;
mod mark;
mod mend;
pub mod parts;
mod reader;
mod record;
mod repair;
mod scan;
mod summary;
mod times;

pub use block::{Block, BlockItem, BlockReader};
pub use build::{BlockBuilder, CutBlock};
pub use carry::CarriedEvents;
pub use codec::Quality;
pub(crate) use codec::{compress as compress_into, decompress_exact};
pub use damage::{Damage, DamageKind};
pub use events::{AhrEvents, AhrWriter, labels_of};
pub use frames::Frames;
#[cfg(feature = "encrypt")]
pub(crate) use header::encrypted_block;
pub use header::{HEADER_LEN, Header, MAGIC, MAX_OFFSET};
pub(crate) use header::{MAX_COMPRESSED, VERSION};
pub use mark::Mark;
pub use parts::{PartReader, Parts, Place, part_blocks};
pub use reader::{Item, Reader};
pub use record::{Body, Record};
pub use repair::Repair;
pub use scan::{BlockInfo, Scan, ScanItem, Tail, tail};
pub use summary::{Ending, Summary};
pub(crate) use times::leaps;

/// The records of a block come to at most this many bytes when this crate writes them.
pub const BLOCK_LIMIT: usize = 256 * 1024;

#[cfg(test)]
mod tests;
