//! What a reader says about the parts of a recording that it could not give back.

use std::fmt;

use tapdeck_core::count;

/// A damaged range of the file, and what is known of what it held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Where the range begins in the file.
    pub offset: u64,
    /// How long it is.
    pub len: u64,
    /// What is wrong with it.
    pub kind: DamageKind,
    /// How many records were lost, where a header that can be believed says so.
    pub lost_records: Option<u64>,
    /// How many bytes of output were lost: known when a later block tells where it starts.
    pub lost_bytes: Option<u64>,
    /// Time of the last record before the range.
    pub after_ts: Option<u64>,
    /// Time of the first record behind it.
    pub before_ts: Option<u64>,
}

impl Damage {
    /// Of which nothing else is known yet.
    pub(super) fn new(offset: u64, len: u64, kind: DamageKind) -> Self {
        Self { offset, len, kind, lost_records: None, lost_bytes: None, after_ts: None, before_ts: None }
    }
}

/// What is wrong with a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DamageKind {
    /// The file ends within a block header.
    TornHeader,
    /// The file ends within a block; the records that could still be read were given.
    TornPayload,
    /// No block begins here.
    Garbage,
    /// The header holds something impossible.
    BadHeader(&'static str),
    /// The header says a version that cannot be read, among others that can.
    OtherVersion(u16),
    /// The block is encrypted to keys of which none is at hand.
    OtherKey,
    /// The payload is not what was written.
    BadPayload,
    /// The payload could be read, and the header says something else of it; nothing is lost.
    Mismatch(&'static str),
    /// The time of a record in the block leaps far ahead of those before and behind it; nothing is
    /// lost.
    BadTime,
    /// The block is the one before it once more; nothing is lost.
    Repeated,
    /// The block is whole until a record that cannot be read; those before it were given.
    BadRecord {
        /// Offset within the decompressed block.
        at: usize,
        /// What is wrong there.
        what: &'static str,
    },
}

impl DamageKind {
    /// Whether something of the recording is missing because of it.
    pub fn is_loss(&self) -> bool {
        !matches!(self, Self::Mismatch(_) | Self::BadTime | Self::Repeated)
    }

    /// A word for machines.
    pub fn name(&self) -> &'static str {
        match self {
            Self::TornHeader => "torn-header",
            Self::TornPayload => "torn-payload",
            Self::Garbage => "garbage",
            Self::BadHeader(_) => "bad-header",
            Self::OtherVersion(_) => "other-version",
            Self::OtherKey => "other-key",
            Self::BadPayload => "bad-payload",
            Self::Mismatch(_) => "mismatch",
            Self::BadTime => "bad-time",
            Self::Repeated => "repeated",
            Self::BadRecord { .. } => "bad-record",
        }
    }
}

impl fmt::Display for DamageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TornHeader => write!(f, "the file ends within a block header"),
            Self::TornPayload => write!(f, "the file ends within a block"),
            Self::Garbage => write!(f, "not a block"),
            Self::BadHeader(what) => write!(f, "bad block header: {what}"),
            Self::OtherVersion(v) => write!(f, "block of unknown version {v}"),
            Self::OtherKey => write!(f, "the block is encrypted to another key"),
            Self::BadPayload => write!(f, "the block's payload is damaged"),
            Self::Mismatch(what) => write!(f, "the block's header is wrong: {what}"),
            Self::BadTime => write!(f, "a time in the block leaps ahead and comes back"),
            Self::Repeated => write!(f, "the block before it stands here once more"),
            Self::BadRecord { at, what } => write!(f, "{what} at {at} within the block"),
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {} ({} of the file", self.offset, self.kind, count(self.len, "byte"))?;
        if let Some(n) = self.lost_records {
            write!(f, ", {}", count(n, "record"))?;
        }
        if let Some(n) = self.lost_bytes {
            write!(f, ", {} of output", count(n, "byte"))?;
        }
        if let (Some(a), Some(b)) = (self.after_ts, self.before_ts) {
            write!(f, ", {:.3} s of the session", b.saturating_sub(a) as f64 / 1e9)?;
        }
        write!(f, ")")
    }
}
