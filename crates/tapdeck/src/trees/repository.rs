//! The repository around a folder.

use std::path::{Path, PathBuf};

use super::TreeError;
use super::git::{self, Git, first_line};

/// New files of a working tree that are named.
const NEW_FILES: usize = 20;

/// A repository with a working tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The root of the working tree.
    pub root: PathBuf,
    /// The given folder below the root; empty where it is the root.
    pub below: PathBuf,
    /// The folder with the objects and references, which all its worktrees share.
    pub(super) common: PathBuf,
    /// The folder of this worktree in it.
    pub(super) own: PathBuf,
    /// `sha1` or `sha256`.
    pub(super) object_format: String,
}

impl Repository {
    /// Finds the repository around a folder.
    ///
    /// # Errors
    /// When there is none, or none with a working tree, or git refuses to say.
    pub fn find(folder: &Path) -> Result<Self, TreeError> {
        let ran = Git::in_folder(folder)
            .args(["rev-parse", "--is-inside-work-tree", "--show-object-format", "--path-format=absolute"])
            .args(["--git-common-dir", "--git-dir", "--show-prefix", "--show-toplevel"])
            .run()?;
        let no_tree = || TreeError::NoWorkingTree(folder.to_owned());
        if !ran.success {
            return Err(match ran.err.contains("not a git repository") {
                true => TreeError::NoRepository(folder.to_owned()),
                // Inside a bare repository it fails after its first line.
                false if ran.out.starts_with(b"false") => no_tree(),
                false => TreeError::Git { what: "git rev-parse".to_owned(), why: first_line(&ran.err) },
            });
        }
        let mut lines = ran.out.split(|byte| *byte == b'\n');
        let mut next = || lines.next().unwrap_or_default();
        if next() != b"true" {
            return Err(no_tree());
        }
        let object_format = String::from_utf8_lossy(next()).into_owned();
        let (common, own, below, root) =
            (git::path(next()), git::path(next()), git::path(next()), git::path(next()));
        if !root.is_absolute() || !common.is_absolute() {
            return Err(no_tree());
        }
        Ok(Self { root, below, common, own, object_format })
    }

    /// The commit that is checked out; `None` before the first.
    pub(super) fn head(&self) -> Option<String> {
        let args = ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"];
        Git::in_folder(&self.root).args(args).line().ok().filter(|commit| !commit.is_empty())
    }

    /// Whether the repository has a commit.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn has_commit(&self, commit: &str) -> Result<bool, TreeError> {
        let commit = format!("{commit}^{{commit}}");
        Ok(Git::in_folder(&self.root).args(["cat-file", "-e", &commit]).run()?.success)
    }

    /// What changed from one commit or tree to another, as `git diff --stat` shows it.
    ///
    /// # Errors
    /// When one of them is gone.
    pub fn diff_stat(&self, from: &str, to: &str) -> Result<String, TreeError> {
        let args = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", "--stat=80", from, to, "--"];
        Git::in_folder(&self.root).args(args).line()
    }

    /// What the working tree has changed since a commit, as `git diff --stat` shows it, with the
    /// names of new files behind it.
    ///
    /// # Errors
    /// When the commit is gone.
    pub fn worktree_stat(&self, from: &str) -> Result<String, TreeError> {
        let args = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", "--stat=80", from, "--"];
        let mut stat = Git::in_folder(&self.root).args(args).line()?;
        let args = ["ls-files", "--others", "--exclude-standard"];
        let new = Git::in_folder(&self.root).args(args).line()?;
        for name in new.lines().take(NEW_FILES) {
            stat.push_str(&format!("{} {name} | new", if stat.is_empty() { "" } else { "\n" }));
        }
        let more = new.lines().count().saturating_sub(NEW_FILES);
        if more > 0 {
            stat.push_str(&format!("\n {more} more new files"));
        }
        Ok(stat)
    }

    /// What changed from one commit or tree to another, as a patch.
    ///
    /// # Errors
    /// When one of them is gone.
    pub fn diff(&self, from: &str, to: &str) -> Result<Vec<u8>, TreeError> {
        let args = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", from, to, "--"];
        Git::in_folder(&self.root).args(args).bytes()
    }
}
