//! A git worktree for an agent: made when the agent is first started, removed only if nothing in it
//! would be lost.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

/// The most of a diff that is shown, in bytes.
const MAX_DIFF: usize = 64 << 10;

/// git refused something.
#[derive(Debug, thiserror::Error)]
#[error("git {}: {why}", args.join(" "))]
pub struct WorktreeError {
    /// What git was asked for.
    pub args: Vec<String>,
    /// What it said.
    pub why: String,
}

/// A worktree of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Worktree {
    /// Its folder.
    pub path: PathBuf,
    /// Its branch.
    pub branch: String,
    /// Whether the branch was made for it.
    pub made_branch: bool,
    /// The repository's own folder.
    pub repository: PathBuf,
    /// The commit that the work started from.
    pub base: String,
}

/// What became of a worktree that was to be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removal {
    /// It is gone.
    Removed,
    /// It was kept, for this reason.
    Kept(String),
}

impl Worktree {
    /// Makes a worktree of the repository at `folder`. An existing one at the same path is used
    /// again.
    ///
    /// # Errors
    /// When `folder` is in no repository, or git refuses.
    pub fn make(folder: &Path, path: &Path, branch: &str) -> Result<Self, WorktreeError> {
        let root = git(folder, &["rev-parse", "--show-toplevel"])?;
        let repository = PathBuf::from(root.trim_end());
        let base = git(folder, &["rev-parse", "HEAD"])?.trim_end().to_owned();
        let shown = path.to_string_lossy();
        let reference = format!("refs/heads/{branch}");
        let has_branch = git(folder, &["rev-parse", "--verify", "--quiet", &reference]).is_ok();
        if path.join(".git").exists() {
            let at = git(path, &["rev-parse", "--abbrev-ref", "HEAD"])?.trim_end().to_owned();
            return Ok(Self { path: path.to_owned(), branch: at, made_branch: false, repository, base });
        }
        // A worktree that was deleted by hand is still in git's list.
        git(folder, &["worktree", "prune"])?;
        match has_branch {
            true => git(folder, &["worktree", "add", "--quiet", &shown, branch])?,
            false => git(folder, &["worktree", "add", "--quiet", "-b", branch, &shown, "HEAD"])?,
        };
        Ok(Self {
            path: path.to_owned(),
            branch: branch.to_owned(),
            made_branch: !has_branch,
            repository,
            base,
        })
    }

    /// The folder in the worktree that corresponds to a folder of the repository.
    ///
    /// # Errors
    /// When git refuses.
    pub fn folder_for(&self, folder: &Path) -> Result<PathBuf, WorktreeError> {
        let prefix = git(folder, &["rev-parse", "--show-prefix"])?;
        Ok(self.path.join(prefix.trim_end()))
    }

    /// All changes since the work started, new files too, at most 64 KiB of them.
    ///
    /// # Errors
    /// When git refuses.
    pub fn diff(&self) -> Result<String, WorktreeError> {
        let mut diff = git(&self.path, &["diff", "--no-color", "--no-ext-diff", &self.base])?;
        let new = git(&self.path, &["ls-files", "--others", "--exclude-standard", "-z"])?;
        for file in new.split('\0').filter(|file| !file.is_empty()) {
            if diff.len() > MAX_DIFF {
                break;
            }
            // It exits with 1 because the files differ, which they do.
            let args = ["diff", "--no-color", "--no-ext-diff", "--no-index", "--", "/dev/null", file];
            diff += &run(&self.path, &args)?.1;
        }
        if diff.len() > MAX_DIFF {
            let cut = (0..=MAX_DIFF).rev().find(|at| diff.is_char_boundary(*at)).unwrap_or(0);
            diff.truncate(cut);
            diff.push_str("\n[the rest of the diff is left out]\n");
        }
        Ok(diff)
    }

    /// Removes the worktree, and the branch if it was made for it. Keeps both if there is work that
    /// is neither committed nor merged into the branch that the repository is on.
    ///
    /// # Errors
    /// When git refuses.
    pub fn remove(&self) -> Result<Removal, WorktreeError> {
        if !self.path.exists() {
            git(&self.repository, &["worktree", "prune"])?;
            return Ok(Removal::Removed);
        }
        if !git(&self.path, &["status", "--porcelain"])?.trim().is_empty() {
            return Ok(Removal::Kept("it has uncommitted changes".to_owned()));
        }
        let range = format!("HEAD..refs/heads/{}", self.branch);
        let unmerged = git(&self.repository, &["rev-list", "--count", &range])?;
        if unmerged.trim() != "0" {
            let commits = if unmerged.trim() == "1" { "commit" } else { "commits" };
            let why = format!("branch {} has {} unmerged {commits}", self.branch, unmerged.trim());
            return Ok(Removal::Kept(why));
        }
        git(&self.repository, &["worktree", "remove", &self.path.to_string_lossy()])?;
        if self.made_branch {
            git(&self.repository, &["branch", "--quiet", "-d", &self.branch])?;
        }
        Ok(Removal::Removed)
    }
}

/// Runs git in a folder and returns what it printed.
fn git(folder: &Path, args: &[&str]) -> Result<String, WorktreeError> {
    let failed = |why: &str| WorktreeError {
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        why: why.to_owned(),
    };
    match run(folder, args)? {
        (true, out, _) => Ok(out),
        (false, _, said) => {
            Err(failed(said.lines().next().unwrap_or("it failed").trim_start_matches("fatal: ")))
        }
    }
}

/// Whether git succeeded, and what it printed on standard output and error.
fn run(folder: &Path, args: &[&str]) -> Result<(bool, String, String), WorktreeError> {
    #[expect(clippy::disallowed_methods, reason = "git is no program of a session")]
    let mut command = Command::new("git");
    // Those of a hook that this process may run in would point to another repository.
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(variable);
    }
    command.arg("-C").arg(folder).args(args).stdin(Stdio::null());
    let out = command.output().map_err(|e| WorktreeError {
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        why: match e.kind() {
            std::io::ErrorKind::NotFound => "git is not installed".to_owned(),
            _ => e.to_string(),
        },
    })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((out.status.success(), text(&out.stdout), text(&out.stderr)))
}
