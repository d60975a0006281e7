//! The health of a recording, and a clean copy of a damaged one.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use tapdeck_host::{RunningDigest, Source, forget_sidecars};
use tapdeck_tape::ahr::parts::{EVENTS, INSTRUCTIONS, META};
use tapdeck_tape::ahr::{Quality, Repair, Summary, part_blocks};
use tapdeck_tape::meta::Meta;
use tapdeck_tape::{Container, Format, Item};

use super::{ConvertError, MAX_NOTES, PIECE, is_existing_same};
use crate::OutFile;

/// Whether a recording is what it was when it was finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Digest {
    /// It is.
    Matches,
    /// It is not.
    Differs,
    /// It was never finished, or does not say.
    Unknown,
}

impl Digest {
    /// Compares a recording with the digest that it had when it was finished. What was added later
    /// makes no difference.
    pub fn of(source: &Source) -> Self {
        let Some(meta) = source.meta() else { return Self::Unknown };
        let (bytes, expected) = match (meta.digest, meta.sha256) {
            (Some(digest), _) => (digest.bytes, digest.sha256),
            // One that was adopted speaks of the file as it was before.
            (None, Some(sha256)) if source.parts().len_of(META).is_some() && !source.is_encrypted() => {
                (meta.seal.and_then(|seal| seal.bytes()).unwrap_or(u64::MAX), sha256)
            }
            (None, Some(sha256)) => (u64::MAX, sha256),
            (None, None) => return Self::Unknown,
        };
        let found = source.file().map(|file| file.take(bytes)).and_then(tapdeck_host::digest_of);
        match found {
            Ok(found) if found == expected => Self::Matches,
            Ok(_) => Self::Differs,
            Err(_) => Self::Unknown,
        }
    }
}

/// What a look through a whole recording found.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Health {
    /// What is wrong, in sentences; empty for a recording that is whole.
    pub problems: Vec<String>,
    /// What is in it, of a native recording.
    pub summary: Option<Summary>,
    /// Whether it is what it was when it was finished.
    pub digest: Digest,
}

impl Health {
    /// Whether nothing is wrong.
    pub fn is_whole(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Reads a whole native recording.
///
/// # Errors
/// When it cannot be read, or not one block of it is whole.
pub fn summarise(source: &Source) -> Result<Summary, ConvertError> {
    let path = source.path();
    let file = source.file().map_err(|why| reading(path, why))?;
    let read = |e| ConvertError::Read { path: path.to_owned(), source: e };
    let summary = Summary::of(BufReader::with_capacity(1 << 16, file)).map_err(read)?;
    if summary.blocks == 0 { Err(ConvertError::Nothing(path.to_owned())) } else { Ok(summary) }
}

fn reading(path: &Path, why: io::Error) -> ConvertError {
    tapdeck_host::SourceError::Open { path: path.to_owned(), why }.into()
}

fn is_native(container: Container) -> bool {
    container == Container { format: Format::Ahr, zst: false }
}

/// Looks through a whole recording.
pub(crate) fn check(source: &Source) -> Result<Health, ConvertError> {
    if is_native(source.container()) {
        let summary = summarise(source)?;
        let digest = Digest::of(source);
        let mut problems: Vec<String> = summary.damages.iter().map(ToString::to_string).collect();
        if summary.missing_bytes > summary.declared_loss {
            let missing = summary.missing_bytes - summary.declared_loss;
            problems.push(format!("{} of output missing", tapdeck_core::count(missing, "byte")));
        }
        if summary.overlaps > 0 {
            problems.push(format!("output overlaps {}", tapdeck_core::times(summary.overlaps)));
        }
        if digest == Digest::Differs {
            problems.push("it is not what it was when it was finished: SHA-256 differs".into());
        }
        return Ok(Health { problems, summary: Some(summary), digest });
    }
    let mut reader = source.open()?;
    let mut problems = Vec::new();
    loop {
        match reader.next_item() {
            Ok(Some(Item::Note(note))) if problems.len() < MAX_NOTES => problems.push(note.to_string()),
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(e) => {
                problems.push(e.to_string());
                break;
            }
        }
    }
    Ok(Health { problems, summary: None, digest: Digest::Unknown })
}

/// A recording that was repaired.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Repaired {
    /// What was in the recording.
    pub before: Summary,
    /// What is in the copy.
    pub after: Summary,
    /// Whether the recording is what it was when it was finished.
    pub digest: Digest,
    /// Blocks that were copied as they are.
    pub blocks_copied: u64,
    /// Bytes that were written.
    pub written: u64,
}

impl Repaired {
    /// Bytes of output that are lost, as far as the recording tells.
    pub fn lost_bytes(&self) -> u64 {
        self.after.missing_bytes.saturating_sub(self.before.declared_loss)
    }
}

/// Writes a clean copy of a native recording, with everything that it says of itself, and what
/// stands beside an older one. A seal does not hold for the copy.
///
/// # Errors
/// When the recording is of another format or cannot be read, or the copy cannot be written.
pub fn repair(source: &Source, to: &Path, overwrite: bool) -> Result<Repaired, ConvertError> {
    let path = source.path();
    if !is_native(source.container()) {
        return Err(ConvertError::NotNative { path: path.to_owned(), container: source.container() });
    }
    // Evidence is never replaced by its repair, not even when asked.
    if is_existing_same(to, path) {
        return Err(ConvertError::SameFile(to.to_owned()));
    }
    let read = |e| ConvertError::Read { path: path.to_owned(), source: e };
    let file = source.file().map_err(|why| reading(path, why))?;
    let mut out = OutFile::create(to, overwrite).map_err(ConvertError::write(to))?;
    let digest = Digest::of(source);
    let mut repair = Repair::new(BufReader::with_capacity(1 << 16, file));
    let mut running = RunningDigest::default();
    let mut put = |bytes: &[u8], running: &mut RunningDigest| {
        running.update(bytes);
        out.write_all(bytes).map_err(ConvertError::write(to))
    };
    while let Some(piece) = repair.next_piece().map_err(read)? {
        put(piece, &mut running)?;
    }
    if running.digest().bytes == 0 {
        return Err(ConvertError::Nothing(path.to_owned()));
    }
    let is_last = repair.before().has_last_block;
    let mut add = |name: &str, bytes: &[u8], running: &mut RunningDigest| {
        put(&part_blocks(&[(name, bytes)], repair.place(), Quality::default(), is_last).concat(), running)
    };
    // Those of an encrypted recording are in it, and nothing is added in the clear.
    for suffix in [EVENTS, "snapshots.jsonl", INSTRUCTIONS] {
        let inside = source.parts().len_of(suffix).is_some() || source.is_encrypted();
        let Some(mut beside) = source.sidecar(suffix).filter(|_| !inside) else { continue };
        let mut piece = vec![0; PIECE];
        loop {
            let n = beside.read(&mut piece).map_err(|why| reading(path, why))?;
            if n == 0 {
                break;
            }
            add(suffix, &piece[..n], &mut running)?;
        }
    }
    if let Some(meta) = source.meta() {
        let mut copy = Meta { sha256: None, seal: None, ..meta };
        if source.is_encrypted() {
            let Meta { exit, ended_at, .. } = copy;
            copy = Meta { continuation: true, exit, ended_at, ..Meta::new() };
        }
        copy.digest = Some(running.digest());
        if digest == Digest::Differs {
            // The new digest is the copy's. It must not hide that the original differs from its
            // digest.
            copy.extra.insert("repairedFromSha256Mismatch", true);
        }
        let line = copy.to_line().map_err(read)?;
        add(META, &line, &mut running)?;
    }
    if overwrite {
        forget_sidecars(to).map_err(ConvertError::write(to))?;
    }
    out.commit().map_err(ConvertError::write(to))?;
    let copy = File::open(to).map_err(ConvertError::write(to))?;
    let after = Summary::of(BufReader::with_capacity(1 << 16, copy)).map_err(read)?;
    let (written, blocks_copied) = (running.digest().bytes, repair.blocks_copied());
    Ok(Repaired { before: repair.before().clone(), after, digest, blocks_copied, written })
}
