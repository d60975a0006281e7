//! The one place that changes files for good: it creates, writes, cuts, names, removes and syncs
//! them.
//!
//! Each function is a plain call to the system. With the feature `simulate`, which only tests use,
//! each change is also noted in a journal, from which the tests make the states that a power cut
//! could leave behind.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, linkat, renameat_with};

#[cfg(feature = "simulate")]
pub mod journal;

#[cfg(feature = "simulate")]
use journal::Noting;

/// A change that was made.
#[cfg_attr(not(feature = "simulate"), expect(dead_code, reason = "only a journal reads it"))]
enum Change<'a> {
    Opened(&'a Path, &'a File),
    Nameless(&'a File),
    /// Bytes at an offset, or else up to the file's cursor.
    Wrote(&'a File, Option<u64>, &'a [u8]),
    Cut(&'a File, u64),
    Synced(&'a File),
    Linked(&'a Path),
    Renamed(&'a Path, &'a Path),
    Exchanged(&'a Path, &'a Path),
    Removed(&'a Path),
    MadeFolder(&'a Path),
    MadeLink(&'a Path, &'a Path),
    SyncedFolder(&'a Path),
}

/// Outside of tests nothing is noted.
#[cfg(not(feature = "simulate"))]
struct Noting;

#[cfg(not(feature = "simulate"))]
impl Noting {
    fn begin() -> Self {
        Self
    }

    fn begin_sync() -> Self {
        Self
    }

    fn done(self, _: Change<'_>) {}
}

/// A file that outlives a power cut, as far as it was synced. It can be read like any other; what
/// changes it is here.
#[derive(Debug)]
pub struct DiskFile(File);

impl DiskFile {
    /// Opens or creates a file. Its name is on disk once its folder is synced.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &Path, options: &OpenOptions) -> io::Result<Self> {
        let noting = Noting::begin();
        let file = options.open(path)?;
        noting.done(Change::Opened(path, &file));
        Ok(Self(file))
    }

    /// Creates a file in a folder, without a name.
    ///
    /// # Errors
    /// When the file system has no such files, or refuses.
    pub fn nameless(folder: &Path, mode: Mode) -> io::Result<Self> {
        let noting = Noting::begin();
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::open(folder, flags, mode)?.into();
        noting.done(Change::Nameless(&file));
        Ok(Self(file))
    }

    /// Gives a file without a name its name, which must be free.
    ///
    /// # Errors
    /// When there is a file of that name, or the system refuses.
    pub fn link(&self, to: &Path) -> io::Result<()> {
        let noting = Noting::begin();
        let own = format!("/proc/self/fd/{}", self.0.as_raw_fd());
        linkat(CWD, own.as_str(), CWD, to, AtFlags::SYMLINK_FOLLOW)?;
        noting.done(Change::Linked(to));
        Ok(())
    }

    /// Writes all bytes at an offset.
    ///
    /// # Errors
    /// When the disk refuses; some of the bytes may be written.
    pub fn write_all_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let noting = Noting::begin();
        self.0.write_all_at(bytes, at)?;
        noting.done(Change::Wrote(&self.0, Some(at), bytes));
        Ok(())
    }

    /// Cuts the file, or fills it up with zeros.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn resize(&self, len: u64) -> io::Result<()> {
        let noting = Noting::begin();
        self.0.set_len(len)?;
        noting.done(Change::Cut(&self.0, len));
        Ok(())
    }

    /// Waits until what was written is on disk.
    ///
    /// # Errors
    /// When the disk failed to keep it. What is on disk is unknown then.
    pub fn sync(&self) -> io::Result<()> {
        let noting = Noting::begin_sync();
        self.0.sync_data()?;
        noting.done(Change::Synced(&self.0));
        Ok(())
    }

    /// Returns another handle of the same file.
    ///
    /// # Errors
    /// When the process has too many descriptors.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }
}

impl Deref for DiskFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl AsFd for DiskFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Write for DiskFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let noting = Noting::begin();
        let written = self.0.write(bytes)?;
        noting.done(Change::Wrote(&self.0, None, bytes.get(..written).unwrap_or_default()));
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Renames a file or a folder, and replaces what has the new name.
///
/// # Errors
/// When the system refuses.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let noting = Noting::begin();
    fs::rename(from, to)?;
    noting.done(Change::Renamed(from, to));
    Ok(())
}

/// Renames a file or a folder to a name that must be free.
///
/// # Errors
/// When the name is taken, or the file system cannot do that in one step.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    let noting = Noting::begin();
    renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?;
    noting.done(Change::Renamed(from, to));
    Ok(())
}

/// Exchanges the names of two files or folders in one step.
///
/// # Errors
/// When one of them is missing, or the file system cannot do that.
pub fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    let noting = Noting::begin();
    renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)?;
    noting.done(Change::Exchanged(a, b));
    Ok(())
}

/// Gives a file another name, which must be free.
///
/// # Errors
/// When there is a file of that name, or the system refuses.
pub fn hard_link(from: &Path, to: &Path) -> io::Result<()> {
    let noting = Noting::begin();
    fs::hard_link(from, to)?;
    noting.done(Change::Linked(to));
    Ok(())
}

/// Creates a symbolic link.
///
/// # Errors
/// When there is a file of that name, or the system refuses.
pub fn symlink(target: &Path, link: &Path) -> io::Result<()> {
    let noting = Noting::begin();
    std::os::unix::fs::symlink(target, link)?;
    noting.done(Change::MadeLink(target, link));
    Ok(())
}

/// Removes a file.
///
/// # Errors
/// When there is none, or the system refuses.
pub fn remove_file(path: &Path) -> io::Result<()> {
    let noting = Noting::begin();
    fs::remove_file(path)?;
    noting.done(Change::Removed(path));
    Ok(())
}

/// Removes a folder with everything in it.
///
/// # Errors
/// When there is none, or the system refuses; some of it may be removed.
pub fn remove_folder(path: &Path) -> io::Result<()> {
    let noting = Noting::begin();
    fs::remove_dir_all(path)?;
    noting.done(Change::Removed(path));
    Ok(())
}

/// Creates a private folder, which must not exist.
///
/// # Errors
/// When it exists, or the system refuses.
pub fn create_folder(path: &Path) -> io::Result<()> {
    let noting = Noting::begin();
    DirBuilder::new().mode(0o700).create(path)?;
    noting.done(Change::MadeFolder(path));
    Ok(())
}

/// Creates those folders of a path that are missing, private, and has their names on disk.
///
/// # Errors
/// When one cannot be created or synced.
pub fn create_folders(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        create_folders(parent)?;
    }
    match create_folder(path) {
        // Another process may have been faster.
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists || !path.is_dir() => Err(e),
        _ => sync_folder_of(path),
    }
}

/// Waits until the names in a folder are on disk.
///
/// # Errors
/// When the disk failed to keep them.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    let noting = Noting::begin_sync();
    // One that may not be read cannot be opened, and some file systems have nothing to sync. The
    // names are there all the same, and reach the disk when the system thinks fit.
    let Ok(opened) = File::open(folder) else { return Ok(()) };
    match opened.sync_all() {
        Err(e) if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {}
        synced => synced?,
    }
    noting.done(Change::SyncedFolder(folder));
    Ok(())
}

/// Waits until the name of a file is on disk.
///
/// # Errors
/// When the disk failed to keep it.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    sync_folder(parent_of(path))
}

/// The folder that a file is in.
pub(crate) fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
