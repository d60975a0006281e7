//! Puts a kept tree back, into a worktree of its own.

use std::fs;
use std::io;
use std::path::Path;

use tapdeck_host::{OutFile, disk};

use super::TreeError;
use super::git::Git;
use super::repository::Repository;
use super::scratch::Scratch;

impl Repository {
    /// Makes a worktree with exactly the files of a commit, at a path where nothing is. The commit
    /// is checked out detached, so no branch is made.
    ///
    /// # Errors
    /// When there is something at the path, or git refuses.
    pub fn restore(&self, commit: &str, to: &Path) -> Result<(), TreeError> {
        let failed = |why| TreeError::Io { path: to.to_owned(), why };
        let is_free = match fs::read_dir(to) {
            Ok(mut entries) => entries.next().is_none(),
            Err(e) => e.kind() == io::ErrorKind::NotFound,
        };
        if !is_free {
            return Err(TreeError::Taken(to.to_owned()));
        }
        if let Some(parent) = to.parent() {
            disk::create_folders(parent).map_err(failed)?;
        }
        // A worktree that was deleted by hand is still in git's list.
        Git::in_folder(&self.root).args(["worktree", "prune"]).bytes()?;
        let add = ["worktree", "add", "--quiet", "--detach", "--no-checkout"];
        Git::in_folder(&self.root).args(add).args([to.as_os_str(), commit.as_ref()]).bytes()?;
        let filled = self.fill(commit, to);
        if filled.is_err() {
            // The error says more than that of a worktree that stays.
            let _ = self.remove_worktree(to);
        }
        filled
    }

    /// Removes a worktree with all that is in it.
    ///
    /// # Errors
    /// When git refuses.
    pub fn remove_worktree(&self, path: &Path) -> Result<(), TreeError> {
        let remove = ["worktree", "remove", "--force"];
        Git::in_folder(&self.root).args(remove).args([path]).bytes().map(|_| ())
    }

    /// Writes the files of a commit, byte for byte.
    fn fill(&self, commit: &str, to: &Path) -> Result<(), TreeError> {
        let worktree = Self::find(to)?;
        let scratch = Scratch::open(&worktree)?;
        scratch.forget()?;
        // The list of untracked files is made by the git that uses the index next.
        let git = || scratch.git().args(["-c", "core.untrackedCache=false"]);
        git().args(["read-tree", commit]).bytes()?;
        git().args(["checkout-index", "--all", "--force", "--index"]).bytes()?;
        // It knows the files, so git shows what is changed from here on without reading them again.
        let path = worktree.own.join("index");
        let copied = fs::read(scratch.index()).and_then(|index| OutFile::replace(&path, &index));
        copied.map_err(|why| TreeError::Io { path, why })
    }
}
