//! The one error of this crate. Each variant carries the place in the recording that it is about,
//! because "malformed file" without a position is of no use to the person that has to look at the
//! file.

use std::fmt;
use std::io;

/// What most functions of this crate return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A place in a file, in the unit in which a person would look for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilePosition {
    /// A byte offset, from 0.
    Byte(u64),
    /// A line of text, from 1.
    Line(u64),
}

impl fmt::Display for FilePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Byte(n) => write!(f, "byte {n}"),
            Self::Line(n) => write!(f, "line {n}"),
        }
    }
}

/// Why a recording could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The underlying reader failed.
    #[error("{at}: reading failed: {source}")]
    Read {
        /// How far the reading had come.
        at: FilePosition,
        /// What the reader said.
        source: io::Error,
    },
    /// The underlying writer failed.
    #[error("{at}: writing failed: {source}")]
    Write {
        /// How far the writing had come.
        at: FilePosition,
        /// What the writer said.
        source: io::Error,
    },
    /// The file was written for a later version of its format.
    #[error("{at}: {format} version {found} is newer than version {known}, the last that can be read here")]
    Version {
        /// Where the version stands.
        at: FilePosition,
        /// The format's name.
        format: &'static str,
        /// The version found.
        found: u64,
        /// The highest version that can be read.
        known: u64,
    },
    /// The recording is encrypted.
    #[error("{at}: the recording is encrypted, and no given identity can read it")]
    Locked {
        /// Where the first block stands that could not be decrypted.
        at: FilePosition,
    },
    /// A cassette was refused.
    #[error(transparent)]
    Cassette(#[from] crate::cassette::Refusal),
    /// The file is not what its format asks for.
    #[error("{at}: {what}")]
    Malformed {
        /// Where.
        at: FilePosition,
        /// What is wrong there.
        what: String,
    },
}

impl Error {
    pub(crate) fn malformed(at: FilePosition, what: impl Into<String>) -> Self {
        Self::Malformed { at, what: what.into() }
    }
}
