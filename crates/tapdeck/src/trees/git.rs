//! git as it is used here: nothing of the environment or the user's settings changes what it does,
//! and nothing of the user's is changed.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::TreeError;
use super::tool::{self, Ran};

/// How long git may take. The first look at a large working tree reads all of it.
const LIMIT: Duration = Duration::from_secs(120);

/// A call of git.
#[derive(Debug)]
pub(super) struct Git {
    command: Command,
    shown: String,
    input: Vec<u8>,
}

impl Git {
    /// Calls git in a folder, as its user would, but without the variables that a hook or an alias
    /// sets, without hooks, prompts and watchers.
    pub(super) fn in_folder(folder: &Path) -> Self {
        #[expect(clippy::disallowed_methods, reason = "git is no program of a session")]
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os() {
            if name.as_bytes().starts_with(b"GIT_") {
                command.env_remove(name);
            }
        }
        command.current_dir(folder);
        // Its messages are read.
        command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0");
        for setting in ["core.hooksPath=/dev/null", "core.fsmonitor=false", "advice.addEmbeddedRepo=false"] {
            command.arg("-c").arg(setting);
        }
        Self { command, shown: "git".to_owned(), input: Vec::new() }
    }

    pub(super) fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        for arg in args {
            self.shown.push(' ');
            self.shown.push_str(&arg.as_ref().to_string_lossy());
            self.command.arg(arg);
        }
        self
    }

    pub(super) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(super) fn input(mut self, bytes: Vec<u8>) -> Self {
        self.input = bytes;
        self
    }

    /// Runs it, whatever it says.
    ///
    /// # Errors
    /// When it cannot be run to its end.
    pub(super) fn run(self) -> Result<Ran, TreeError> {
        let shown = self.shown;
        tool::run(self.command, self.input, LIMIT).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => TreeError::NoGit,
            _ => TreeError::Git { what: shown, why: e.to_string() },
        })
    }

    /// Runs it, and returns what it printed.
    ///
    /// # Errors
    /// When it fails.
    pub(super) fn bytes(self) -> Result<Vec<u8>, TreeError> {
        let shown = self.shown.clone();
        let ran = self.run()?;
        match ran.success {
            true => Ok(ran.out),
            false => Err(TreeError::Git { what: shown, why: first_line(&ran.err) }),
        }
    }

    /// Runs it, and returns the line that it printed.
    ///
    /// # Errors
    /// When it fails.
    pub(super) fn line(self) -> Result<String, TreeError> {
        let out = self.bytes()?;
        Ok(String::from_utf8_lossy(out.strip_suffix(b"\n").unwrap_or(&out)).into_owned())
    }
}

/// What git says went wrong, on one line.
pub(super) fn first_line(err: &str) -> String {
    let lines = err.lines().map(str::trim).filter(|line| !line.is_empty());
    let fatal = lines.clone().find(|line| line.starts_with("fatal: ") || line.starts_with("error: "));
    let line = fatal.or_else(|| lines.clone().next()).unwrap_or("it failed");
    line.trim_start_matches("fatal: ").trim_start_matches("error: ").to_owned()
}

/// A path that git printed.
pub(super) fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}
