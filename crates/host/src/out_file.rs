//! A file that appears whole or not at all. It is written without a name where the system can do
//! that, so that not even a killed process leaves half of it behind, and is given its name at the
//! end.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;

use crate::disk::{self, DiskFile};

/// A file in the making.
#[derive(Debug)]
pub struct OutFile {
    file: DiskFile,
    path: PathBuf,
    place: Place,
    overwrite: bool,
    /// The file that is to be replaced, locked: no recorder begins to write to it meanwhile.
    _old: Option<File>,
}

#[derive(Debug)]
enum Place {
    /// It has no name yet.
    Nameless,
    /// It has another name, to be removed if nothing comes of it.
    Temporary(PathBuf),
    /// It is a device or a pipe, and gets its bytes at once.
    Direct,
}

impl OutFile {
    /// Begins a file, private to the user. Without `overwrite` one that exists is an error, now or
    /// at the end.
    ///
    /// # Errors
    /// When it cannot be created: `AlreadyExists`, or `ResourceBusy` while another process records
    /// into it.
    pub fn create(path: &Path, overwrite: bool) -> io::Result<Self> {
        Self::begin(path, overwrite, Mode::RUSR | Mode::WUSR)
    }

    /// Begins a file for others to read: with the permissions that the umask leaves, or those of
    /// the file that it replaces.
    ///
    /// # Errors
    /// As [`OutFile::create`].
    pub fn create_shared(path: &Path, overwrite: bool) -> io::Result<Self> {
        let all = Mode::from_raw_mode(0o666);
        let this = Self::begin(path, overwrite, all)?;
        if let Ok(old) = fs::metadata(&this.path)
            && !matches!(this.place, Place::Direct)
        {
            this.file.set_permissions(old.permissions())?;
        }
        Ok(this)
    }

    /// Puts a small private file in the place of whatever has this name, a link included. The old
    /// or the new content is there, never half of one, and the new one once this returns.
    ///
    /// # Errors
    /// When it cannot be written; then the old one is still there.
    pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
        Self::replace_with(path, &mut &*content)
    }

    /// Puts a private file with this content in the place of whatever has this name.
    pub(crate) fn replace_with(path: &Path, content: &mut impl io::Read) -> io::Result<()> {
        let mut this = Self::replacing(path)?;
        io::copy(content, &mut this)?;
        this.commit()
    }

    /// Begins a private file that takes the place of whatever has this name, a link included.
    pub(crate) fn replacing(path: &Path) -> io::Result<Self> {
        Self::nameless(path.to_owned(), true, Mode::RUSR | Mode::WUSR, None)
    }

    /// Has what was written so far reach the disk.
    ///
    /// # Errors
    /// When it does not.
    pub fn sync(&self) -> io::Result<()> {
        match self.place {
            Place::Direct => Ok(()),
            _ => self.file.sync(),
        }
    }

    fn begin(path: &Path, overwrite: bool, mode: Mode) -> io::Result<Self> {
        // What a link points at is replaced, not the link.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match fs::metadata(&path).map(|m| m.file_type()) {
            Ok(kind) if kind.is_char_device() || kind.is_fifo() => {
                let file = DiskFile::open(&path, OpenOptions::new().write(true))?;
                return Ok(Self { file, path, place: Place::Direct, overwrite, _old: None });
            }
            Ok(kind) if kind.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(_) if !overwrite => return Err(io::ErrorKind::AlreadyExists.into()),
            _ => {}
        }
        let old = lock_old(&path)?;
        Self::nameless(path, overwrite, mode, old)
    }

    /// Begins a file without a name, or with a hidden one where the system wants a name.
    fn nameless(path: PathBuf, overwrite: bool, mode: Mode, old: Option<File>) -> io::Result<Self> {
        if let Ok(file) = DiskFile::nameless(disk::parent_of(&path), mode) {
            return Ok(Self { file, path, place: Place::Nameless, overwrite, _old: old });
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(mode.as_raw_mode());
        let (file, temporary) = with_temporary(&path, |temporary| DiskFile::open(temporary, &options))?;
        Ok(Self { file, path, place: Place::Temporary(temporary), overwrite, _old: old })
    }

    /// Gives the file its name: once this returns it is there, whole, and stays after a power cut.
    ///
    /// # Errors
    /// When it cannot be written, or a file of its name has come meanwhile.
    pub fn commit(mut self) -> io::Result<()> {
        match &self.place {
            Place::Direct => return self.file.flush(),
            _ => self.file.sync()?,
        }
        if matches!(self.place, Place::Nameless) {
            // A name that is free is taken in one step, with no other name before it.
            match self.file.link(&self.path) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && self.overwrite => {}
                linked => return linked.and_then(|()| disk::sync_folder_of(&self.path)),
            }
            let ((), temporary) = with_temporary(&self.path, |temporary| self.file.link(temporary))?;
            self.place = Place::Temporary(temporary);
        }
        if let Place::Temporary(temporary) = &self.place {
            if self.overwrite {
                disk::rename(temporary, &self.path)?;
            } else {
                // A link refuses a name that is taken, where a rename would replace it.
                disk::hard_link(temporary, &self.path)?;
                disk::remove_file(temporary)?;
            }
        }
        self.place = Place::Direct;
        disk::sync_folder_of(&self.path)
    }
}

impl Write for OutFile {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.file.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for OutFile {
    fn drop(&mut self) {
        if let Place::Temporary(path) = &self.place {
            // Nothing can be done about a file that stays.
            let _ = disk::remove_file(path);
        }
    }
}

/// Locks a file that is to be replaced, as a recorder locks the file that it writes; an error when
/// one does.
fn lock_old(path: &Path) -> io::Result<Option<File>> {
    // One that cannot be read cannot be locked, and can be replaced all the same.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(old) = open(path, flags, Mode::empty()) else { return Ok(None) };
    match flock(&old, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => {
            let why = "it is being recorded by another process";
            Err(io::Error::new(io::ErrorKind::ResourceBusy, why))
        }
        // Some file systems know no locks, so no recorder can hold one there.
        _ => Ok(Some(old.into())),
    }
}

/// Makes something under a hidden name beside a path, which no other thread or process uses.
fn with_temporary<T>(path: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(T, PathBuf)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}-{}.tmp", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
    let temporary = path.with_file_name(name);
    let made = match make(&temporary) {
        // A process that had this number was cut off, and left it.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            disk::remove_file(&temporary)?;
            make(&temporary)?
        }
        made => made?,
    };
    Ok((made, temporary))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_there_before_the_end_and_nothing_is_replaced_unasked() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out");
        let names = || fs::read_dir(folder.path()).expect("listed").count();
        let mut file = OutFile::create(&path, false).expect("begun");
        file.write_all(b"half").expect("written");
        drop(file);
        assert_eq!(names(), 0, "what was given up leaves nothing");
        let mut file = OutFile::create(&path, false).expect("begun");
        file.write_all(b"whole").expect("written");
        fs::write(&path, "another process was faster").expect("written");
        let refused = file.commit().expect_err("it is there");
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert!(OutFile::create(&path, false).is_err());
        let mut file = OutFile::create(&path, true).expect("begun");
        file.write_all(b"whole").expect("written");
        file.commit().expect("named");
        assert_eq!((fs::read(&path).expect("read"), names()), (b"whole".to_vec(), 1));
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).expect("there").permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
}
