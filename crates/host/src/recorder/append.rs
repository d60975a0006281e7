//! Additions to a recording that is finished: instructions, an index, what older versions kept in
//! files beside it. They are parts behind its last block. No recorder may write to it meanwhile; an
//! addition that fails is cut off again.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use tapdeck_tape::ahr::parts::{EVENTS, INDEX, INSTRUCTIONS, META, SEAL};
use tapdeck_tape::ahr::{self, Parts, Place, Quality, part_blocks};
use tapdeck_tape::meta::{FileDigest, Meta};

use super::salvage::tail_of;
use super::sidecars::{SIDECARS, find_sidecar, forget_working_copies, snapshot_lines};
use crate::disk::{self, DiskFile};
use crate::source::Source;

/// So much of a part is read at a time, a little less than fits in a block.
const PIECE: usize = 192 * 1024;
/// The longest `meta.json`, and the longest list of instructions or snapshots that is compared.
const MAX_META: u64 = 16 << 20;
const MAX_LINES: u64 = 64 << 20;
/// The list of snapshots beside a recording.
const SNAPSHOTS: &str = "snapshots.jsonl";

/// An addition that could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// A process records into it.
    #[error("{} is being recorded by another process", .0.display())]
    Busy(PathBuf),
    /// It ends within a block.
    #[error("{} ends within a block: nothing can be added before it is repaired", .0.display())]
    Torn(PathBuf),
    /// It is encrypted, and its public keys are not known.
    #[error("{} is encrypted: what is added to it would stand in the clear", .0.display())]
    Encrypted(PathBuf),
    /// It is no native recording, or cannot be read.
    #[error("{}: {why}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        why: tapdeck_tape::Error,
    },
    /// A sidecar is there and is not what it should be.
    #[error("{} makes no sense: {why}", path.display())]
    Sidecar {
        /// Which.
        path: PathBuf,
        /// Why.
        why: tapdeck_tape::Error,
    },
    /// The system refused.
    #[error("cannot write {}: {why}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
}

/// A recording to which parts are added. Without [`Addition::commit`], all of it is undone.
#[derive(Debug)]
pub struct Addition {
    file: DiskFile,
    path: PathBuf,
    /// Where it ended before, and where it ends now.
    before: u64,
    end: u64,
    place: Place,
    is_last: bool,
}

impl Addition {
    /// Opens a recording, and keeps others from writing to it.
    ///
    /// # Errors
    /// When it is recorded, torn or encrypted, is no native recording, or may not be written.
    pub fn begin(recording: &Path) -> Result<Self, AppendError> {
        let system = |why| AppendError::Write { path: recording.to_owned(), why };
        let path = fs::canonicalize(recording).map_err(system)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK);
        let file = DiskFile::open(&path, &options).map_err(system)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => Err(AppendError::Busy(recording.to_owned())),
            // Some file systems know no locks, so no recorder can hold one there.
            _ => Self::to(file, recording),
        }
    }

    fn to(file: DiskFile, recording: &Path) -> Result<Self, AppendError> {
        let path = recording.to_owned();
        let mut head = [0; ahr::HEADER_LEN];
        let read = file.read_exact_at(&mut head, 0).is_ok();
        if read && ahr::Header::from_bytes(&head).is_some_and(|header| header.is_encrypted()) {
            return Err(AppendError::Encrypted(path));
        }
        let tail = tail_of(&file).map_err(|why| AppendError::Read { path: path.clone(), why })?;
        if tail.is_torn() || tail.blocks == 0 {
            return Err(AppendError::Torn(path));
        }
        let place = Place { ts_ns: tail.last_ts.unwrap_or(0), byte_off: tail.next_off };
        Ok(Self { file, path, before: tail.end, end: tail.end, place, is_last: tail.is_last })
    }

    /// Adds to a part.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn add(&mut self, part: &str, bytes: &[u8]) -> Result<(), AppendError> {
        let blocks = part_blocks(&[(part, bytes)], self.place, Quality::default(), self.is_last).concat();
        let written = self.file.write_all_at(&blocks, self.end);
        written.map_err(|why| AppendError::Write { path: self.path.clone(), why })?;
        self.end += blocks.len() as u64;
        Ok(())
    }

    /// Adds all that a reader gives to a part.
    ///
    /// # Errors
    /// When it cannot be read, or the disk refuses.
    pub fn add_from(&mut self, part: &str, mut from: impl Read) -> Result<(), AppendError> {
        let mut piece = Vec::new();
        loop {
            piece.clear();
            let read = (&mut from).take(PIECE as u64).read_to_end(&mut piece);
            match read.map_err(|why| AppendError::Write { path: self.path.clone(), why })? {
                0 => return Ok(()),
                _ => self.add(part, &piece)?,
            }
        }
    }

    /// Has all of it on disk.
    ///
    /// # Errors
    /// When the disk did not keep it; then it is undone.
    pub fn commit(mut self) -> Result<(), AppendError> {
        self.file.sync().map_err(|why| AppendError::Write { path: self.path.clone(), why })?;
        self.before = self.end;
        Ok(())
    }
}

impl Drop for Addition {
    fn drop(&mut self) {
        if self.before < self.end || self.file.metadata().is_ok_and(|m| m.len() > self.before) {
            // Where that fails, too, the recording ends with what could be written of the addition,
            // which is reported as a torn block.
            let _ = self.file.resize(self.before);
        }
    }
}

/// Adds lines to a part of a recording, and has them on disk.
///
/// # Errors
/// When nothing can be added; then nothing is.
pub fn append_part(recording: &Path, part: &str, lines: &[u8]) -> Result<(), AppendError> {
    let mut addition = Addition::begin(recording)?;
    addition.add(part, lines)?;
    addition.commit()
}

/// Changes what a finished recording says of itself, and returns what it says then. Only the last
/// description of a recording counts, so the changed one is added behind it. What stands beside an
/// older recording is put into it first.
///
/// # Errors
/// When nothing can be added; then nothing is.
pub fn describe(recording: &Path, change: impl FnOnce(&mut Meta)) -> Result<Meta, AppendError> {
    let mut addition = Addition::begin(recording)?;
    let adopted = addition.adopt()?;
    let read = |why| AppendError::Read { path: recording.to_owned(), why };
    let parts = Parts::of(&*addition.file).map_err(read)?;
    let before = Meta::of_part(&parts.read(META, &*addition.file).map_err(read)?);
    let mut meta = match &before {
        Some(before) => before.clone(),
        None => Meta::new(),
    };
    change(&mut meta);
    if before.as_ref() != Some(&meta) {
        addition.add(META, &meta.to_line().map_err(read)?)?;
    }
    addition.commit()?;
    let removed = remove(recording, &adopted.added);
    removed.map_err(|why| AppendError::Write { path: recording.to_owned(), why })?;
    Ok(meta)
}

/// Whether a process records into a file, or replaces it.
pub fn is_locked(path: &Path) -> bool {
    let locked = |file: File| flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK);
    File::open(path).is_ok_and(locked)
}

/// What became of the files beside a recording.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Adopted {
    /// They are in the recording now.
    pub added: Vec<PathBuf>,
    /// The recording had in itself what they say.
    pub known: Vec<PathBuf>,
    /// They say something else than the recording, and are left alone.
    pub left: Vec<PathBuf>,
}

/// Puts into a recording what files beside it say and it does not, and removes those files.
///
/// # Errors
/// When nothing can be added; then nothing is.
pub fn adopt_sidecars(recording: &Path) -> Result<Adopted, AppendError> {
    let mut addition = Addition::begin(recording)?;
    let adopted = addition.adopt()?;
    addition.commit()?;
    let gone: Vec<PathBuf> = adopted.added.iter().chain(&adopted.known).cloned().collect();
    remove(recording, &gone).map_err(|why| AppendError::Write { path: recording.to_owned(), why })?;
    Ok(adopted)
}

/// Puts into a recording that is about to be continued what files beside it say and it does not.
/// Returns its new length.
pub(super) fn adopt_before_append(file: &DiskFile, recording: &Path) -> Result<u64, AppendError> {
    let system = |why| AppendError::Write { path: recording.to_owned(), why };
    let mut addition = match Addition::to(file.try_clone().map_err(system)?, recording) {
        // What stands beside an encrypted one holds nothing that is not in it, but the end.
        Err(AppendError::Encrypted(_) | AppendError::Torn(_)) => {
            return file.metadata().map(|m| m.len()).map_err(system);
        }
        addition => addition?,
    };
    let adopted = addition.adopt()?;
    let len = addition.end;
    addition.commit()?;
    remove(recording, &adopted.added).map_err(system)?;
    Ok(len)
}

fn remove(recording: &Path, adopted: &[PathBuf]) -> io::Result<()> {
    if adopted.is_empty() {
        return Ok(());
    }
    for path in adopted {
        disk::remove_file(path)?;
    }
    forget_working_copies(recording);
    disk::sync_folder_of(recording)
}

impl Addition {
    /// Adds what the sidecars say and the recording does not.
    fn adopt(&mut self) -> Result<Adopted, AppendError> {
        let read = |why| AppendError::Read { path: self.path.clone(), why };
        let parts = Parts::of(&*self.file).map_err(read)?;
        let mut adopted = Adopted::default();
        for suffix in SIDECARS {
            let path = find_sidecar(&self.path, suffix);
            let Ok(mut file) = File::open(&path) else { continue };
            let part = match suffix {
                "ahx" => INDEX,
                "seal" => SEAL,
                "instructions.jsonl" => INSTRUCTIONS,
                "events.jsonl" => EVENTS,
                other => other,
            };
            let unreadable = |why| AppendError::Write { path: path.clone(), why };
            let list = match parts.open(part, &*self.file) {
                // An instruction to a live session waits beside it, and goes with those within.
                Some(inside) if part == INSTRUCTIONS => {
                    let lines = new_lines(inside, file).map_err(unreadable)?;
                    match lines.is_empty() {
                        true => &mut adopted.known,
                        false => {
                            self.add(part, &lines)?;
                            &mut adopted.added
                        }
                    }
                }
                Some(mut inside) => {
                    let is_known = if part == META {
                        let mut within = Vec::new();
                        inside.read_to_end(&mut within).map_err(unreadable)?;
                        let metas = Meta::of_lines(&within);
                        self.meta_of(&path, &mut file).is_ok_and(|meta| metas.contains(&meta))
                    } else {
                        is_beginning(inside, &file)
                    };
                    if is_known { &mut adopted.known } else { &mut adopted.left }
                }
                // One that describes itself has its snapshots among its events.
                None if part == SNAPSHOTS && parts.len_of(META).is_some() => {
                    let within = snapshots_of(&self.path).map_err(unreadable)?;
                    let beside = snapshots_in(file).map_err(unreadable)?;
                    if beside.is_subset(&within) { &mut adopted.known } else { &mut adopted.left }
                }
                None if part == META => {
                    let meta = self.meta_of(&path, &mut file)?;
                    let line = self.described(meta);
                    let line = line.map_err(|why| AppendError::Sidecar { path: path.clone(), why })?;
                    self.add(META, &line)?;
                    &mut adopted.added
                }
                None => {
                    self.add_from(part, file)?;
                    &mut adopted.added
                }
            };
            list.push(path);
        }
        Ok(adopted)
    }

    /// What `meta.json` beside the recording says.
    fn meta_of(&self, path: &Path, file: &mut File) -> Result<Meta, AppendError> {
        let mut text = Vec::new();
        let read = file.take(MAX_META).read_to_end(&mut text);
        read.map_err(|why| AppendError::Write { path: path.to_owned(), why })?;
        Meta::from_bytes(&text).map_err(|why| AppendError::Sidecar { path: path.to_owned(), why })
    }

    /// What `meta.json` beside a recording said, as a line in it.
    fn described(&self, mut meta: Meta) -> tapdeck_tape::Result<Vec<u8>> {
        // A seal covers the digest as it was written.
        if meta.seal.is_none() {
            meta.digest = meta.sha256.take().map(|sha256| FileDigest { bytes: self.before, sha256 });
        }
        meta.to_line()
    }
}

/// Whether a part begins with all that a reader gives: a part only grows, and a copy does not.
fn is_beginning(part: impl Read, copy: impl Read) -> bool {
    let mut within = io::BufReader::new(part).bytes();
    let mut copy = io::BufReader::new(copy).bytes();
    copy.all(|byte| matches!((byte, within.next()), (Ok(a), Some(Ok(b))) if a == b))
}

/// The lines of a file that are not in a part.
fn new_lines(part: impl Read, file: impl Read) -> io::Result<Vec<u8>> {
    let lines = |from| io::BufReader::new(Read::take(from, MAX_LINES)).split(b'\n');
    let within: HashSet<Vec<u8>> = lines(Box::new(part) as Box<dyn Read + '_>).collect::<io::Result<_>>()?;
    let mut new = Vec::new();
    for line in lines(Box::new(file)) {
        let line = line?;
        if !within.contains(&line) {
            new.extend_from_slice(&line);
            new.push(b'\n');
        }
    }
    Ok(new)
}

/// The snapshots of a recording: their ids and places.
fn snapshots_of(recording: &Path) -> io::Result<HashSet<(u64, u64)>> {
    let lines = Source::find(recording, None, None).and_then(|source| snapshot_lines(&source));
    snapshots_in(&lines.map_err(io::Error::other)?[..])
}

/// The snapshots that lines tell of.
fn snapshots_in(lines: impl Read) -> io::Result<HashSet<(u64, u64)>> {
    let mut found = HashSet::new();
    for line in io::BufReader::new(lines.take(MAX_LINES)).lines() {
        let line: serde_json::Value = serde_json::from_str(&line?).unwrap_or_default();
        let number = |key: &str| line[key].as_u64().unwrap_or(u64::MAX);
        found.insert((number("id"), number("anchor_byte")));
    }
    Ok(found)
}
