//! The journal of a test: every change that [`disk`](super) makes in this process while it is kept.

use std::fs::File;
use std::io::Seek;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Change;

/// A file's number, as long as the file exists.
pub type Inode = (u64, u64);

/// A change, in the words of a file system.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Op {
    /// A file was opened or created, and has this length.
    Open(PathBuf, Inode, u64),
    /// A file was created that has no name.
    Nameless(Inode),
    /// Bytes were written at an offset.
    Write(Inode, u64, Arc<[u8]>),
    /// The length was set.
    SetLen(Inode, u64),
    /// Of the first so many changes of the journal, this file's content is on disk.
    Sync(Inode, usize),
    /// A file got a name.
    Link(PathBuf, Inode),
    /// A name became another one, and replaced what had that.
    Rename(PathBuf, PathBuf),
    /// Two names were exchanged.
    Exchange(PathBuf, PathBuf),
    /// A file, or a folder with everything in it, was removed.
    Remove(PathBuf),
    /// A folder was created.
    Folder(PathBuf),
    /// A symbolic link to a target was created.
    Symlink(PathBuf, PathBuf),
    /// Of the first so many changes of the journal, the names in this folder are on disk.
    SyncFolder(PathBuf, usize),
}

static KEPT: Mutex<Option<Vec<Op>>> = Mutex::new(None);
static CHANGED: Condvar = Condvar::new();

fn lock() -> MutexGuard<'static, Option<Vec<Op>>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins a journal. There is one in a process.
pub fn start() {
    *lock() = Some(Vec::new());
}

/// Returns how many changes there were so far.
pub fn len() -> usize {
    lock().as_ref().map_or(0, Vec::len)
}

/// Waits until the changes satisfy a condition. Returns whether they did in time.
pub fn wait(at_most: Duration, mut until: impl FnMut(&[Op]) -> bool) -> bool {
    let waited =
        CHANGED.wait_timeout_while(lock(), at_most, |ops| !until(ops.as_deref().unwrap_or_default()));
    !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
}

/// Ends the journal, and returns it.
pub fn end() -> Vec<Op> {
    lock().take().unwrap_or_default()
}

/// A change on its way. Other changes wait for it, so that the journal has their true order; those
/// during a sync do not.
pub(super) enum Noting {
    /// Nothing is noted.
    Not,
    Change(MutexGuard<'static, Option<Vec<Op>>>),
    Sync(usize),
}

impl Noting {
    pub(super) fn begin() -> Self {
        let kept = lock();
        if kept.is_some() { Self::Change(kept) } else { Self::Not }
    }

    pub(super) fn begin_sync() -> Self {
        Self::Sync(len())
    }

    pub(super) fn done(self, change: Change<'_>) {
        let (mut kept, before) = match self {
            Self::Not => return,
            Self::Change(kept) => (kept, 0),
            Self::Sync(before) => (lock(), before),
        };
        if let Some(ops) = &mut *kept {
            ops.extend(op(change, before));
            CHANGED.notify_all();
        }
    }
}

/// Says what was changed; `None` where that can no longer be found out.
fn op(change: Change<'_>, before: usize) -> Option<Op> {
    let inode = |file: &File| file.metadata().ok().map(|m| (m.dev(), m.ino()));
    let own = Path::to_owned;
    Some(match change {
        Change::Opened(path, file) => Op::Open(own(path), inode(file)?, file.metadata().ok()?.len()),
        Change::Nameless(file) => Op::Nameless(inode(file)?),
        Change::Wrote(file, Some(at), bytes) => Op::Write(inode(file)?, at, bytes.into()),
        Change::Wrote(mut file, None, bytes) => {
            let end = file.stream_position().ok()?;
            Op::Write(inode(file)?, end.checked_sub(bytes.len() as u64)?, bytes.into())
        }
        Change::Cut(file, len) => Op::SetLen(inode(file)?, len),
        Change::Synced(file) => Op::Sync(inode(file)?, before),
        Change::Linked(to) => {
            let there = to.symlink_metadata().ok()?;
            Op::Link(own(to), (there.dev(), there.ino()))
        }
        Change::Renamed(from, to) => Op::Rename(own(from), own(to)),
        Change::Exchanged(a, b) => Op::Exchange(own(a), own(b)),
        Change::Removed(path) => Op::Remove(own(path)),
        Change::MadeFolder(path) => Op::Folder(own(path)),
        Change::MadeLink(target, path) => Op::Symlink(own(path), own(target)),
        Change::SyncedFolder(path) => Op::SyncFolder(own(path), before),
    })
}
