//! The recording's file: created so that nothing is lost, written so that it is whole after every
//! accident.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use sha2::{Digest, Sha256};
use tapdeck_tape::ahr::{self, Place};
use tapdeck_tape::meta::FileDigest;
use tapdeck_tape::{Container, Format};

use super::append::adopt_before_append;
use super::salvage::{self, Mended};
use super::sidecars::{SIDECARS, forget_sidecars, sidecar, twin};
use super::syncing::{INTERVAL, SyncLevel, Syncer};
use crate::disk::{self, DiskFile};
use crate::source::timing_names;

/// What to do when the file is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IfExists {
    /// Refuse.
    #[default]
    Refuse,
    /// Begin it anew.
    Overwrite,
    /// Go on where it ends.
    Append,
}

/// A recording that could not be begun.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// It is there already.
    #[error("{} exists", .0.display())]
    Exists(PathBuf),
    /// The recording is gone, but not what a user wrote about it.
    #[error("{} is left of an earlier recording", .0.display())]
    Left(PathBuf),
    /// What would stand beside it is another recording's.
    #[error("{} belongs to {}: give another name", left.display(), of.display())]
    Shared {
        /// What is there.
        left: PathBuf,
        /// The recording that it speaks of.
        of: PathBuf,
    },
    /// Another process is writing it.
    #[error("{} is being recorded by another process", .0.display())]
    Busy(PathBuf),
    /// It is not a file.
    #[error("{} is {what}: a recording needs a regular file", path.display())]
    NotAFile {
        /// Where.
        path: PathBuf,
        /// What it is instead.
        what: &'static str,
    },
    /// The folder that it would be in is not there.
    #[error("cannot write {}: there is no folder {}", path.display(), folder.display())]
    NoFolder {
        /// The recording.
        path: PathBuf,
        /// The folder.
        folder: PathBuf,
    },
    /// It cannot be continued.
    #[error("{} cannot be continued: {why}", path.display())]
    CannotAppend {
        /// Where.
        path: PathBuf,
        /// Why not.
        why: tapdeck_tape::Error,
    },
    /// The system refused.
    #[error("cannot write {}: {why}", path.display())]
    System {
        /// Where.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
}

impl CreateError {
    /// Whether the fault lies in what was asked for, rather than in the system.
    pub fn is_refusal(&self) -> bool {
        !matches!(self, CreateError::System { .. } | CreateError::NoFolder { .. })
    }
}

/// A file that the recorder has not begun to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unwritten {
    /// It was created for this recording, and goes if none is made.
    Created,
    /// It holds an earlier recording, which stays if none is made.
    Replaced,
}

/// A recording's file, locked for this process.
pub struct RecordingFile {
    file: DiskFile,
    path: PathBuf,
    /// Length of what is whole.
    good_len: u64,
    start_off: u64,
    /// Time of the last record of a file that is continued.
    last_ts: u64,
    digest: RunningDigest,
    container: Container,
    /// The timing file of a typescript.
    beside: Option<Box<RecordingFile>>,
    /// It was shorter than what had been written to it.
    cut: bool,
    room: u64,
    /// The file that this one replaced. Its lock is kept: another process may have opened it before
    /// it was replaced.
    former: Option<DiskFile>,
    sync: SyncLevel,
    /// Syncs from time to time, once something was written.
    syncer: Option<Syncer>,
    mended: Option<Mended>,
    /// Whether a file that is continued begins with an encrypted block.
    encrypted: Option<bool>,
    /// What the file is until the recorder begins to write; `None` from then on.
    unwritten: Option<Unwritten>,
}

impl fmt::Debug for RecordingFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordingFile").field("path", &self.path).finish_non_exhaustive()
    }
}

const NATIVE: Container = Container { format: Format::Ahr, zst: false };

impl RecordingFile {
    /// Creates a file, or overwrites one, for a recording in any format, with the timing file of a
    /// typescript.
    pub fn open_as(path: &Path, container: Container, overwrite: bool) -> Result<Self, CreateError> {
        let if_exists = if overwrite { IfExists::Overwrite } else { IfExists::Refuse };
        let timing = timing_names(path).into_iter().next().filter(|_| container.format == Format::Typescript);
        if let Some(timing) = timing.as_deref().filter(|t| !overwrite && t.exists()) {
            return Err(CreateError::Exists(timing.to_owned()));
        }
        let mut this = Self::open(path, if_exists)?;
        this.container = container;
        this.beside = timing.map(|timing| Self::open(&timing, if_exists)).transpose()?.map(Box::new);
        Ok(this)
    }

    /// Creates a file, or opens one to be overwritten or continued. The file is private and locked.
    /// A file that is to be overwritten is emptied when the recorder starts; one that was created
    /// is removed again if no recorder starts.
    ///
    /// # Errors
    /// When the folder is not there, or the file cannot be created or may not be used.
    pub fn open(path: &Path, if_exists: IfExists) -> Result<Self, CreateError> {
        let system = |why| CreateError::System { path: path.to_owned(), why };
        if let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty() && !p.exists()) {
            return Err(CreateError::NoFolder { path: path.to_owned(), folder: folder.to_owned() });
        }
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        options.custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK);
        if let Some(what) = fs::symlink_metadata(path).ok().and_then(|m| not_a_file(m.file_type())) {
            return Err(CreateError::NotAFile { path: path.to_owned(), what });
        }
        if let Some(of) = twin(path).filter(|twin| !path.exists() && twin.is_file())
            && let Some(left) = SIDECARS.iter().map(|s| sidecar(path, s)).find(|left| left.exists())
        {
            return Err(CreateError::Shared { left, of });
        }
        // What a person wrote about a recording that is gone is theirs.
        let theirs = ["instructions.jsonl", "snapshots.jsonl"].map(|suffix| sidecar(path, suffix));
        if if_exists != IfExists::Overwrite
            && !path.exists()
            && let Some(left) = theirs.into_iter().find(|left| left.exists())
        {
            return Err(CreateError::Left(left));
        }
        let created = DiskFile::open(path, options.clone().create_new(true));
        let (file, is_new) = match created {
            Ok(file) => (file, true),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                if if_exists == IfExists::Refuse {
                    return Err(CreateError::Exists(path.to_owned()));
                }
                (DiskFile::open(path, &options).map_err(system)?, false)
            }
            Err(e) => return Err(system(e)),
        };
        if let Some(what) = not_a_file(file.metadata().map_err(system)?.file_type()) {
            return Err(CreateError::NotAFile { path: path.to_owned(), what });
        }
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| CreateError::Busy(path.to_owned()))?;
        // What is refused is left exactly as it was.
        let tail = (!is_new && if_exists == IfExists::Append).then(|| salvage::tail_of(&file));
        let tail =
            tail.transpose().map_err(|why| CreateError::CannotAppend { path: path.to_owned(), why })?;
        file.set_permissions(fs::Permissions::from_mode(0o600)).map_err(system)?;
        let mut this = Self {
            file,
            path: path.to_owned(),
            good_len: 0,
            start_off: 0,
            last_ts: 0,
            digest: RunningDigest::default(),
            container: NATIVE,
            beside: None,
            cut: false,
            room: 0,
            former: None,
            sync: SyncLevel::None,
            syncer: None,
            mended: None,
            encrypted: None,
            unwritten: match (is_new, if_exists) {
                (true, _) => Some(Unwritten::Created),
                (false, IfExists::Overwrite) => Some(Unwritten::Replaced),
                _ => None,
            },
        };
        if let Some(tail) = tail {
            this.continue_behind(&tail).map_err(system)?;
        }
        Ok(this)
    }

    /// Makes room for the recording: empties a file that is to be overwritten, and removes what
    /// spoke of the recording that was there.
    pub(super) fn begin(&mut self, sync: SyncLevel) -> io::Result<()> {
        if let Some(beside) = &mut self.beside {
            beside.begin(sync)?;
        }
        self.sync = sync;
        if let Some(unwritten) = self.unwritten.take() {
            // This has the new file's name on disk, too.
            forget_sidecars(&self.path)?;
            self.file.resize(0)?;
            if unwritten == Unwritten::Replaced {
                // Otherwise a power cut could leave blocks of the old recording behind new ones.
                self.file.sync()?;
            }
        } else if self.good_len > 0 {
            let before = self.good_len;
            self.good_len = adopt_before_append(&self.file, &self.path).map_err(io::Error::other)?;
            let mut whole = &*self.file;
            io::Seek::seek(&mut whole, io::SeekFrom::Start(before))?;
            io::copy(&mut whole, &mut self.digest)?;
        }
        Ok(())
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The format to write.
    pub fn container(&self) -> Container {
        self.container
    }

    /// Whether it continues an encrypted recording, or a plain one; `None` if there is no block to
    /// tell.
    pub fn continues_encrypted(&self) -> Option<bool> {
        self.encrypted
    }

    /// Bytes of output that the file holds already.
    pub(crate) fn start_off(&self) -> u64 {
        self.start_off
    }

    /// Where parts go in a file that is continued.
    pub(super) fn place(&self) -> Place {
        Place { ts_ns: self.last_ts, byte_off: self.start_off }
    }

    /// What a torn end cost when the file was continued, if it had one.
    pub fn mended(&self) -> Option<Mended> {
        self.mended
    }

    /// Length of what is whole.
    pub(crate) fn written(&self) -> u64 {
        self.good_len
    }

    /// The file for a reader with offsets of its own.
    pub(super) fn share(&self) -> io::Result<File> {
        File::try_clone(&self.file)
    }

    /// Appends a block, wholly or not at all.
    ///
    /// # Errors
    /// When the disk refuses the block, or has failed to keep earlier ones.
    pub(super) fn write_block(&mut self, block: &[u8]) -> io::Result<()> {
        self.sync_failure()?;
        // Writing behind the end of a file that was cut would fill it up with nothing, and hide
        // that.
        self.cut |= self.file.metadata().is_ok_and(|m| m.len() < self.good_len);
        if let Err(e) = self.file.write_all_at(block, self.good_len) {
            self.room = self.file.metadata().map_or(0, |m| m.len().saturating_sub(self.good_len));
            // Cut off what was half written, so that the file ends with a whole block.
            let _ = self.file.resize(self.good_len);
            return Err(e);
        }
        self.good_len += block.len() as u64;
        self.digest.update(block);
        match self.sync {
            SyncLevel::None => Ok(()),
            SyncLevel::Block => self.file.sync().map_err(not_kept),
            SyncLevel::Interval => self.sync_soon(),
        }
    }

    /// Has the file synced by a thread, which is started here if it does not run yet.
    fn sync_soon(&mut self) -> io::Result<()> {
        if self.syncer.is_none() {
            let file = self.file.try_clone()?;
            self.syncer = Some(Syncer::start(INTERVAL, move || file.sync())?);
        }
        if let Some(syncer) = &self.syncer {
            syncer.wrote();
        }
        Ok(())
    }

    /// Why the thread could not sync, if it could not.
    fn sync_failure(&self) -> io::Result<()> {
        self.syncer.as_ref().and_then(Syncer::failure).map_or(Ok(()), |e| Err(not_kept(e)))
    }

    /// How many bytes of the block that was last refused would have fitted.
    pub(super) fn room(&self) -> usize {
        usize::try_from(self.room).unwrap_or(usize::MAX)
    }

    /// Appends to the timing file, where there is one.
    pub(super) fn write_beside(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.beside {
            Some(beside) if !bytes.is_empty() => beside.write_block(bytes),
            _ => Ok(()),
        }
    }

    /// How much of the file, and of the timing file, is whole.
    pub(super) fn lengths(&self) -> (u64, u64) {
        (self.good_len, self.beside.as_ref().map_or(0, |beside| beside.good_len))
    }

    /// Goes back to lengths that were whole. The digest is the native recording's alone, which
    /// never goes back.
    pub(super) fn cut_to(&mut self, (len, beside_len): (u64, u64)) -> io::Result<()> {
        if let Some(beside) = &mut self.beside {
            beside.cut_to((beside_len, 0))?;
        }
        self.good_len = len;
        self.file.resize(len)
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.beside.as_ref().map_or(Ok(()), |beside| beside.sync())?;
        self.sync_failure()?;
        self.file.sync()
    }

    /// Length and SHA-256 of the file so far.
    pub(super) fn digest(&self) -> FileDigest {
        self.digest.digest()
    }

    /// What has happened to the file behind the recorder's back, if anything.
    pub(super) fn tampering(&self) -> Option<&'static str> {
        let own = self.file.metadata().ok()?;
        if own.nlink() == 0 {
            return Some("was deleted while it was recorded");
        }
        if self.cut || own.len() < self.good_len {
            return Some("was cut while it was recorded");
        }
        match fs::symlink_metadata(&self.path) {
            Ok(there) if (there.dev(), there.ino()) == (own.dev(), own.ino()) => None,
            _ => Some("was moved or replaced while it was recorded"),
        }
    }

    fn continue_behind(&mut self, tail: &ahr::Tail) -> io::Result<()> {
        if tail.fragment || !tail.salvaged.is_empty() {
            let (file, mended) = salvage::mend(&self.file, &self.path, tail)?;
            self.former = Some(std::mem::replace(&mut self.file, file));
            self.mended = Some(mended);
        }
        let mut head = [0; ahr::HEADER_LEN];
        let read = self.file.read_exact_at(&mut head, 0).is_ok();
        let header = read.then(|| ahr::Header::from_bytes(&head)).flatten();
        self.encrypted = header.map(|header| header.is_encrypted());
        self.start_off = tail.next_off;
        self.last_ts = tail.last_ts.unwrap_or(0);
        // Of what else follows the last whole block nothing is cut off: it may still be worth
        // something, and a reader finds the next block behind it.
        self.good_len = self.file.metadata()?.len();
        let mut whole = &*self.file;
        io::Seek::rewind(&mut whole)?;
        io::copy(&mut whole, &mut self.digest)?;
        Ok(())
    }
}

impl Drop for RecordingFile {
    fn drop(&mut self) {
        if self.unwritten == Some(Unwritten::Created) {
            // Nothing was recorded. A file that cannot be removed is empty, and harms nothing.
            let _ = disk::remove_file(&self.path);
        }
    }
}

/// What a failed sync left behind is unknown, so it is no error that passes.
fn not_kept(e: io::Error) -> io::Error {
    io::Error::other(format!("the disk did not keep what was written: {e}"))
}

fn not_a_file(kind: fs::FileType) -> Option<&'static str> {
    match kind {
        k if k.is_file() => None,
        k if k.is_dir() => Some("a folder"),
        k if k.is_symlink() => Some("a symbolic link"),
        k if k.is_fifo() => Some("a pipe"),
        k if k.is_socket() => Some("a socket"),
        _ => Some("a device"),
    }
}

/// The length and the SHA-256 of a file in the making.
#[derive(Debug, Clone, Default)]
pub struct RunningDigest {
    bytes: u64,
    sha256: Sha256,
}

impl io::Write for RunningDigest {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl RunningDigest {
    /// Takes what was written.
    pub fn update(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.sha256.update(bytes);
    }

    /// What all of it comes to so far.
    pub fn digest(&self) -> FileDigest {
        FileDigest { bytes: self.bytes, sha256: hex(self.sha256.clone()) }
    }
}

/// SHA-256 of a file, in hexadecimal.
pub fn file_digest(path: &Path) -> io::Result<String> {
    digest_of(File::open(path)?)
}

/// The same of anything that can be read.
pub fn digest_of(mut from: impl io::Read) -> io::Result<String> {
    let mut hash = Sha256::new();
    io::copy(&mut from, &mut hash)?;
    Ok(hex(hash))
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
}
