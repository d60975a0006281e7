//! Keeps a working tree as a commit below `refs/tapdeck`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::TreeError;
use super::git::{Git, first_line};
use super::repository::Repository;
use super::scratch::Scratch;

/// The author of the commits.
const NAME: &str = "Tapdeck";
const MAIL: &str = "tapdeck@localhost";

/// A working tree that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The repository that has it.
    pub repository: Repository,
    /// The commit.
    pub commit: String,
    /// Its tree.
    pub tree: String,
    /// The reference that keeps it.
    pub reference: String,
    /// The number in the reference.
    pub number: u64,
}

/// Keeps the working trees of one session.
#[derive(Debug)]
pub struct Snapshots {
    session: String,
    last: Option<Kept>,
    count: u64,
    /// The user's index when the files that are tracked and ignored were last listed.
    listed: Option<(SystemTime, u64)>,
    /// What could not be kept, once each.
    remarks: Vec<String>,
    /// Files that are not to be kept.
    without: Vec<PathBuf>,
}

impl Snapshots {
    /// For a session of this name, which must be its own for ever.
    pub fn new(session: &str) -> Self {
        Self {
            session: session.to_owned(),
            last: None,
            count: 0,
            listed: None,
            remarks: Vec::new(),
            without: Vec::new(),
        }
    }

    /// Leaves these files out, such as the recording of the session.
    #[must_use]
    pub fn without(mut self, files: Vec<PathBuf>) -> Self {
        self.without = files;
        self
    }

    /// What could not be kept as it is, one sentence each.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// The tree that was kept last.
    pub fn last(&self) -> Option<&Kept> {
        self.last.as_ref()
    }

    /// Keeps the working tree around a folder. Returns `None` where nothing has changed since the
    /// last time, and writes nothing then.
    ///
    /// # Errors
    /// When there is no repository, or git fails.
    pub fn take(&mut self, folder: &Path, message: &str) -> Result<Option<&Kept>, TreeError> {
        let repository = Repository::find(folder)?;
        let scratch = Scratch::open(&repository)?;
        let is_same = self.last.as_ref().is_some_and(|last| last.repository.root == repository.root);
        if !is_same {
            self.listed = None;
        }
        let tree = match self.write_tree(&repository, &scratch) {
            Ok(tree) => tree,
            // Objects that only this index knew may be gone, or another git has removed them.
            Err(TreeError::Git { .. }) => {
                scratch.forget()?;
                self.listed = None;
                self.write_tree(&repository, &scratch)?
            }
            Err(e) => return Err(e),
        };
        if is_same && self.last.as_ref().is_some_and(|last| last.tree == tree) {
            return Ok(None);
        }
        let before = self.last.as_ref().filter(|_| is_same).map(|last| last.commit.clone());
        let commit = self.commit(&scratch, &tree, before.or_else(|| repository.head()), message)?;
        let number = self.count + 1;
        let reference = format!("refs/tapdeck/{}/{number}", self.session);
        let update = ["-c", "core.logAllRefUpdates=false", "update-ref", &reference, &commit];
        Git::in_folder(&repository.root).args(update).bytes()?;
        self.count = number;
        self.last = Some(Kept { repository, commit, tree, reference, number });
        Ok(self.last.as_ref())
    }

    /// Brings the index up to the working tree, and writes it as a tree.
    fn write_tree(&mut self, repository: &Repository, scratch: &Scratch) -> Result<String, TreeError> {
        let mut add: Vec<OsString> = Vec::new();
        // The user's own list of ignored files is a setting that counts.
        let excludes = ["config", "--type=path", "--get", "core.excludesFile"];
        if let Ok(file) = Git::in_folder(&repository.root).args(excludes).line() {
            add.extend(["-c".into(), format!("core.excludesFile={file}").into()]);
        }
        self.add_ignored(repository, scratch)?;
        add.extend(["add", "--all", "--ignore-errors", "--", "."].map(OsString::from));
        for own in self.without.iter().filter_map(|file| file.strip_prefix(&repository.root).ok()) {
            let mut without = OsString::from(":(exclude,top,literal)");
            without.push(own);
            add.push(without);
        }
        let ran = scratch.git().args(&add).run()?;
        // What it says at first is why, for instance that no object can be written.
        let failed = || TreeError::Git { what: "git add".to_owned(), why: first_line(&ran.err) };
        if !ran.success && !ran.err.lines().any(|line| line.starts_with("error: ")) {
            return Err(failed());
        }
        let tree = scratch.git().args(["write-tree"]).line();
        let tree = tree.map_err(|e| if ran.success { e } else { failed() })?;
        for line in ran.err.lines() {
            self.note(line);
        }
        Ok(tree)
    }

    /// Adds the files that the user has git track although they are ignored.
    fn add_ignored(&mut self, repository: &Repository, scratch: &Scratch) -> Result<(), TreeError> {
        let about = fs::metadata(repository.own.join("index")).ok();
        let now = about.and_then(|about| Some((about.modified().ok()?, about.len())));
        if now.is_none() || now == self.listed {
            return Ok(());
        }
        let list = ["ls-files", "-z", "--cached", "--ignored", "--exclude-standard"];
        let paths = Git::in_folder(&repository.root).args(list).bytes()?;
        if !paths.is_empty() {
            let add = ["update-index", "-z", "--add", "--remove", "--stdin"];
            let ran = scratch.git().args(add).input(paths).run()?;
            ran.err.lines().for_each(|line| self.note(line));
        }
        self.listed = now;
        Ok(())
    }

    fn commit(
        &self,
        scratch: &Scratch,
        tree: &str,
        parent: Option<String>,
        message: &str,
    ) -> Result<String, TreeError> {
        let mut git = scratch.git();
        for who in ["AUTHOR", "COMMITTER"] {
            git = git.env(&format!("GIT_{who}_NAME"), NAME).env(&format!("GIT_{who}_EMAIL"), MAIL);
        }
        let parent = parent.map(|parent| ["-p".to_owned(), parent]);
        let message = format!("{message}\n\nFiles of a session recorded by Tapdeck.\n");
        git.args(["-c", "commit.gpgSign=false", "commit-tree", tree])
            .args(parent.into_iter().flatten())
            .input(message.into_bytes())
            .line()
    }

    /// Notes what git says about a file that is not kept as it is.
    fn note(&mut self, line: &str) {
        let remark = if let Some(path) = line.strip_prefix("warning: adding embedded git repository: ") {
            format!("{path} is a repository of its own, of which only the commit is kept")
        } else if let Some(rest) = line.strip_prefix("error: ") {
            rest.to_owned()
        } else {
            return;
        };
        // A folder that cannot be read may have any number of files.
        if self.remarks.len() < 20 && !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }
}
