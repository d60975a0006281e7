//! The health of a recording, and a clean copy of a damaged one.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::Path;

use tapdeck_host::{Source, find_sidecar, forget_sidecars, sidecar};
use tapdeck_tape::ahr::{Repair, Summary};
use tapdeck_tape::meta::Meta;
use tapdeck_tape::{Container, Format, Item};

use super::{ConvertError, MAX_NOTES, is_existing_same};
use crate::OutFile;

/// Whether a file is the one that its sidecar describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Digest {
    /// It is.
    Matches,
    /// It is not.
    Differs,
    /// The sidecar says nothing of it, or there is none.
    Unknown,
}

impl Digest {
    /// Compares a recording with the digest in its sidecar.
    pub fn of(source: &Source) -> Self {
        let Some(expected) = source.meta().and_then(|m| m.sha256) else { return Self::Unknown };
        match source.file().and_then(tapdeck_host::digest_of) {
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
    /// Whether it is the file that its sidecar describes.
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
            problems.push(format!("{missing} bytes of output are missing"));
        }
        if summary.overlaps > 0 {
            problems.push(format!("output overlaps {} times", summary.overlaps));
        }
        if digest == Digest::Differs {
            problems.push("the file is not the one that its meta.json describes".into());
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
    /// Whether the recording is the file that its sidecar describes.
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

/// Writes a clean copy of a native recording, with its sidecars. A seal is not copied: it spoke of
/// the other file.
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
    let create = |path: &Path| OutFile::create(path, overwrite).map_err(ConvertError::write(path));
    let mut out = create(to)?;
    let meta_path = sidecar(to, "meta.json");
    let old_meta = source.meta();
    let meta_file = old_meta.as_ref().map(|_| create(&meta_path)).transpose()?;
    let mut sidecars = Vec::new();
    for suffix in ["events.jsonl", "snapshots.jsonl"] {
        let Ok(mut from) = File::open(find_sidecar(path, suffix)) else { continue };
        let path = sidecar(to, suffix);
        let mut copy = create(&path)?;
        io::copy(&mut from, &mut copy).map_err(ConvertError::write(&path))?;
        sidecars.push((path, copy));
    }
    let digest = Digest::of(source);
    let mut repair = Repair::new(BufReader::with_capacity(1 << 16, file));
    let mut written = 0;
    while let Some(piece) = repair.next_piece().map_err(read)? {
        written += piece.len() as u64;
        out.write_all(piece).map_err(ConvertError::write(to))?;
    }
    if written == 0 {
        return Err(ConvertError::Nothing(path.to_owned()));
    }
    if overwrite {
        forget_sidecars(to).map_err(ConvertError::write(to))?;
    }
    out.commit().map_err(ConvertError::write(to))?;
    for (path, copy) in sidecars {
        copy.commit().map_err(ConvertError::write(&path))?;
    }
    if let (Some(meta), Some(mut file)) = (old_meta, meta_file) {
        let sha256 = tapdeck_host::file_digest(to).map_err(ConvertError::write(to))?;
        let meta = if source.is_encrypted() { meta.without_content() } else { meta };
        let mut copy = Meta { sha256: Some(sha256), seal: None, ..meta };
        if digest == Digest::Differs {
            // The new digest is the copy's. It must not hide that the original differs from its
            // digest.
            copy.extra.insert("repairedFromSha256Mismatch", true);
        }
        let bytes = copy.to_bytes().map_err(read)?;
        file.write_all(&bytes).and_then(|()| file.commit()).map_err(ConvertError::write(&meta_path))?;
    }
    let copy = File::open(to).map_err(ConvertError::write(to))?;
    let after = Summary::of(BufReader::with_capacity(1 << 16, copy)).map_err(read)?;
    let blocks_copied = repair.blocks_copied();
    Ok(Repaired { before: repair.before().clone(), after, digest, blocks_copied, written })
}
