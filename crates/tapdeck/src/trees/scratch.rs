//! A git folder of our own for a user's working tree. It has an index of its own and no settings or
//! attributes of the user, so files are kept and put back byte for byte: no line ends are
//! converted, no filters run. Objects are those of the user's repository.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use tapdeck_host::{OutFile, disk, state_folder};

use super::TreeError;
use super::git::Git;
use super::repository::Repository;

/// Every conversion is off, whatever the attributes of the working tree ask for.
const ATTRIBUTES: &str = "* -text !eol !crlf !filter !ident !working-tree-encoding\n";
/// The link that names the working tree.
const LINK: &str = "worktree";
/// A lock that git left is of a git that was killed, once it is older than git may take.
const STALE: Duration = Duration::from_secs(150);

/// A git folder of our own, held by this process alone.
#[derive(Debug)]
pub(super) struct Scratch {
    folder: PathBuf,
    objects: PathBuf,
    root: PathBuf,
    /// Its lock is released when it is closed.
    _lock: File,
}

impl Scratch {
    /// Opens the folder for a repository's working tree. Waits for another process that has it.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(super) fn open(repository: &Repository) -> Result<Self, TreeError> {
        let all = state_folder().join("trees");
        let failed = |why: io::Error| TreeError::Io { path: all.clone(), why };
        let about = fs::metadata(&repository.root).map_err(failed)?;
        let folder = all.join(format!("{:x}-{:x}", about.dev(), about.ino()));
        if !folder.join("HEAD").exists() {
            prune(&all);
        }
        Self::prepare(&folder, repository).map_err(|why| TreeError::Io { path: folder, why })
    }

    fn prepare(folder: &Path, repository: &Repository) -> io::Result<Self> {
        for part in ["refs", "objects", "info"] {
            disk::create_folders(&folder.join(part))?;
        }
        let lock = File::create(folder.join("lock"))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        let link = folder.join(LINK);
        if fs::read_link(&link).ok().as_deref() != Some(&repository.root) {
            // The number of a folder that is gone is used again: its index is of no use.
            remove(&folder.join("index"))?;
            remove(&link)?;
            disk::symlink(&repository.root, &link)?;
        }
        let sha256 = repository.object_format == "sha256";
        let extensions = if sha256 { "[extensions]\n\tobjectFormat = sha256\n" } else { "" };
        let config = format!(
            "[core]\n\trepositoryFormatVersion = {}\n\tbare = false\n\tfileMode = true\n\tsymlinks = true\n\
             \tuntrackedCache = true\n\tlogAllRefUpdates = false\n[index]\n\tversion = 4\n\
             [gc]\n\tauto = 0\n{extensions}",
            u8::from(sha256)
        );
        let exclude = fs::read(repository.common.join("info/exclude")).unwrap_or_default();
        // A power cut leaves each of these whole, and they are made anew where they differ.
        let files = [("config", config.as_bytes()), ("info/attributes", ATTRIBUTES.as_bytes())];
        for (name, content) in files.into_iter().chain([
            ("info/exclude", &exclude[..]),
            // Without it, git does not take the folder for one of its own.
            ("HEAD", b"ref: refs/heads/none\n"),
        ]) {
            let path = folder.join(name);
            if fs::read(&path).ok().as_deref() != Some(content) {
                OutFile::replace(&path, content)?;
            }
        }
        let index_lock = folder.join("index.lock");
        let age = |about: fs::Metadata| about.modified().ok()?.elapsed().ok();
        if index_lock.metadata().ok().and_then(age).is_some_and(|age| age > STALE) {
            remove(&index_lock)?;
        }
        Ok(Self {
            folder: folder.to_owned(),
            objects: repository.common.join("objects"),
            root: repository.root.clone(),
            _lock: lock,
        })
    }

    /// Calls git with the working tree of the repository.
    pub(super) fn git(&self) -> Git {
        Git::in_folder(&self.root)
            .env("GIT_DIR", &self.folder)
            .env("GIT_WORK_TREE", &self.root)
            .env("GIT_OBJECT_DIRECTORY", &self.objects)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_ATTR_NOSYSTEM", "1")
    }

    /// What is known of the files.
    pub(super) fn index(&self) -> PathBuf {
        self.folder.join("index")
    }

    /// Forgets what is known of the files, so that all are read anew.
    ///
    /// # Errors
    /// When the index cannot be removed.
    pub(super) fn forget(&self) -> Result<(), TreeError> {
        let path = self.index();
        remove(&path).map_err(|why| TreeError::Io { path, why })
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match disk::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Removes the folders of working trees that are gone.
fn prune(all: &Path) {
    for folder in fs::read_dir(all).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let Ok(root) = fs::read_link(folder.join(LINK)) else { continue };
        // Without the folder around it, its disk may only be unmounted.
        if !root.exists() && root.parent().is_some_and(Path::is_dir) {
            // The next one tries again.
            let _ = disk::remove_folder(&folder);
        }
    }
}
