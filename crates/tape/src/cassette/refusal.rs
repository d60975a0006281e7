//! Why a cassette is refused. Each reason is a variant of its own and its message is for a reader
//! that has never seen a cassette: which file, which line, what is wrong there.

use std::io;

/// A cassette that was not accepted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It could not be read from disk.
    #[error("cannot be read: {0}")]
    Io(#[source] io::Error),
    /// One of its files could not be read.
    #[error("{file} cannot be read: {source}")]
    File {
        /// Which.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// Neither a folder with a manifest nor a compressed archive of one.
    #[error("is not a cassette: neither a folder nor a .tar.zst archive with a manifest.json")]
    NotACassette,
    /// The archive is damaged.
    #[error("the archive is damaged at byte {at}: {what}")]
    Archive {
        /// Where, in the uncompressed archive.
        at: u64,
        /// What is wrong.
        what: String,
    },
    /// A file is larger than any cassette's.
    #[error("{file} is larger than {limit} bytes, the most that a cassette may hold there")]
    TooLarge {
        /// Which.
        file: String,
        /// The limit.
        limit: u64,
    },
    /// It was written for a later version of the format.
    #[error(
        "manifest.json: the cassette has version {found}; this program reads up to {known}: a newer one is needed"
    )]
    Version {
        /// The version found.
        found: u64,
        /// The highest version known.
        known: u64,
    },
    /// It was changed after it was committed, so that its frames cannot be derived anew.
    #[error("{}; its frames are left as they are", faults.join("; "))]
    Changed {
        /// What was changed.
        faults: Vec<String>,
    },
    /// A file that every cassette has is missing.
    #[error("{file} is missing: the cassette is not whole")]
    MissingFile {
        /// Which.
        file: &'static str,
    },
    /// A field that must be there is missing.
    #[error("{file}{}: the field {field:?} is missing", at_line(*line))]
    MissingField {
        /// In which file.
        file: &'static str,
        /// In which line, from 1; 0 for files that are one object.
        line: u64,
        /// Which field.
        field: String,
    },
    /// Something is not what the format asks for.
    #[error("{file}{}: {what}", at_line(*line))]
    Malformed {
        /// In which file.
        file: &'static str,
        /// In which line, from 1; 0 for files that are one object.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// It needs something that this program cannot do.
    #[error("manifest.json: the cassette requires the feature {0:?}, which this program does not know")]
    UnknownFeature(String),
    /// The output is not what was recorded.
    #[error("output.raw is not what was recorded: its sha256 is {found}, the manifest says {want}")]
    Digest {
        /// By the manifest.
        want: String,
        /// By the bytes.
        found: String,
    },
    /// A piece of the output is not what was recorded.
    #[error(
        "output.raw is not what was recorded: the {length} bytes at offset {offset} (seq {seq}, output.jsonl line {line}) \
         have another sha256 than output.jsonl says"
    )]
    ChunkDigest {
        /// Which chunk.
        seq: u64,
        /// Its line in `output.jsonl`.
        line: u64,
        /// Where it is.
        offset: u64,
        /// Its length.
        length: u64,
    },
    /// A chunk lies outside of the output.
    #[error(
        "output.jsonl line {line}: offset {offset} and length {length} (seq {seq}) lie outside of output.raw, \
         which has {raw} bytes"
    )]
    OffsetRange {
        /// Which chunk.
        seq: u64,
        /// Its line.
        line: u64,
        /// Its offset.
        offset: u64,
        /// Its length.
        length: u64,
        /// Length of the output.
        raw: u64,
    },
    /// Chunks overlap, or leave bytes out.
    #[error(
        "output.jsonl line {line}: the chunk begins at offset {found} (seq {seq}), the one before ends at {want}"
    )]
    OffsetGap {
        /// Which chunk.
        seq: u64,
        /// Its line.
        line: u64,
        /// Where it should begin.
        want: u64,
        /// Where it begins.
        found: u64,
    },
    /// The last chunk ends before the output does.
    #[error("output.jsonl covers {covered} bytes, but output.raw has {raw}")]
    Uncovered {
        /// Bytes that belong to a chunk.
        covered: u64,
        /// Length of the output.
        raw: u64,
    },
    /// An event is missing.
    #[error(
        "seq {missing} is missing: {found_in} goes on with seq {found}, so an event was lost or renumbered"
    )]
    SeqGap {
        /// The first number that is missing.
        missing: u64,
        /// The number found instead.
        found: u64,
        /// The file and line where it was found.
        found_in: String,
    },
    /// Two events have one number.
    #[error("seq {seq} is there twice: in {first} and in {second}")]
    SeqRepeated {
        /// The number.
        seq: u64,
        /// File and line of the one.
        first: String,
        /// File and line of the other.
        second: String,
    },
    /// Time goes back.
    #[error(
        "{found_in}: t_ms {found} (seq {seq}) is earlier than {before} of the event before it: time never goes back"
    )]
    TimeBack {
        /// Which event.
        seq: u64,
        /// Its time.
        found: u64,
        /// The time of the event before it.
        before: u64,
        /// Its file and line.
        found_in: String,
    },
    /// Frames were derived by another emulator than this one.
    #[error(
        "manifest.json: the frames were derived by {found}, this program has {ours}: derive them anew, \
         after a look at the differences, or use the program that recorded them"
    )]
    Emulator {
        /// The manifest's.
        found: String,
        /// This program's.
        ours: String,
    },
}

fn at_line(line: u64) -> String {
    if line == 0 { String::new() } else { format!(" line {line}") }
}

impl Refusal {
    pub(crate) fn malformed(file: &'static str, line: u64, what: impl Into<String>) -> Self {
        Self::Malformed { file, line, what: what.into() }
    }

    /// A refusal from what the JSON parser said.
    pub(crate) fn json(file: &'static str, line: u64, e: &serde_json::Error) -> Self {
        let message = e.to_string();
        if let Some(field) = message.strip_prefix("missing field `").and_then(|m| m.split('`').next()) {
            return Self::MissingField { file, line, field: field.to_owned() };
        }
        if line > 0 {
            // The parser's own line is always 1 within a line.
            let what = message.replace(" at line 1 column ", " at column ");
            return Self::Malformed { file, line, what };
        }
        Self::Malformed { file, line, what: message }
    }
}
