//! What must hold before a run is recorded, and the facts that go into its manifest: the program is
//! there and may be executed, a check of the user's passes, and the environment is made of what is
//! allowed and nothing else.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Access, access};
use tapdeck_core::{Event, Exit, LogLimits, ReaderKind, WallTime, WinSize};

use crate::backend::{CommandSpec, Pipes, SpawnError};
use crate::clock::Clock;
use crate::driver::{Config, Driver, Ended};
use crate::recorder::calendar;
use crate::shared::SharedLog;
use crate::user_side::Signals;

/// Variables that a recorded program is given unless told otherwise: enough to find programs and a
/// home, and to speak UTF-8.
pub const DEFAULT_ENV: [&str; 11] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "COLORTERM"];

/// The longest that a check may take.
const CHECK_LIMIT: Duration = Duration::from_secs(60);
/// So much of its output is kept.
const CHECK_OUTPUT: usize = 64 * 1024;

/// A run that must not be recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PreflightError {
    /// There is no such program.
    #[error("{0}: command not found: nothing was recorded")]
    NotFound(String),
    /// It may not be executed.
    #[error("{0}: is there, but may not be executed: nothing was recorded")]
    NotExecutable(String),
    /// The check did not pass.
    #[error("the check {check:?} {how}, so nothing was recorded{}", said(output))]
    CheckFailed {
        /// The check.
        check: String,
        /// What became of it.
        how: String,
        /// What it printed.
        output: String,
    },
    /// The check could not be run.
    #[error("the check could not be run: {0}")]
    Check(String),
}

fn said(output: &str) -> String {
    match output.lines().rev().find(|l| !l.trim().is_empty()) {
        Some(line) => format!("; it said: {line}"),
        None => String::new(),
    }
}

/// Where the program is, as an exec would find it.
///
/// # Errors
/// When it is not there, or may not be executed.
pub fn find_program(program: &OsStr, cwd: Option<&Path>) -> Result<PathBuf, PreflightError> {
    let name = || program.to_string_lossy().into_owned();
    let usable = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    if program.as_bytes().contains(&b'/') {
        let path = cwd.unwrap_or(Path::new("")).join(program);
        return match (path.exists(), usable(&path)) {
            (_, true) => Ok(path),
            (true, _) => Err(PreflightError::NotExecutable(name())),
            _ => Err(PreflightError::NotFound(name())),
        };
    }
    let folders = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let mut blocked = false;
    for folder in std::env::split_paths(&folders) {
        let path = folder.join(program);
        if usable(&path) {
            return Ok(path);
        }
        blocked |= path.is_file();
    }
    Err(if blocked { PreflightError::NotExecutable(name()) } else { PreflightError::NotFound(name()) })
}

/// The environment that a program will have, made from nothing.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    vars: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// From the present environment, by names; `given` adds or replaces values.
    pub fn from_allowlist<'a>(
        names: impl IntoIterator<Item = &'a str>,
        given: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        let mut vars = BTreeMap::new();
        for name in names {
            if let Some(value) = std::env::var_os(name) {
                vars.insert(name.into(), value);
            }
        }
        vars.extend(given);
        Self { vars }
    }

    /// Sets a variable that has no value yet.
    pub fn default_value(&mut self, name: &str, value: &str) {
        self.vars.entry(name.into()).or_insert_with(|| value.into());
    }

    /// A variable's value.
    pub fn get(&self, name: &str) -> Option<String> {
        self.vars.get(OsStr::new(name)).map(|v| v.to_string_lossy().into_owned())
    }

    /// The names of all variables.
    pub fn names(&self) -> Vec<String> {
        self.vars.keys().map(|k| k.to_string_lossy().into_owned()).collect()
    }

    /// The names of the variables of this process that the program will not have.
    pub fn removed(&self) -> Vec<String> {
        let mut names: Vec<String> = std::env::vars_os()
            .filter(|(key, _)| !self.vars.contains_key(key))
            .map(|(key, _)| key.to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Makes it a command's whole environment.
    pub fn apply(&self, spec: &mut CommandSpec) {
        spec.env = std::env::vars_os()
            .filter(|(key, _)| !self.vars.contains_key(key))
            .map(|(key, _)| (key, None))
            .chain(self.vars.iter().map(|(k, v)| (k.clone(), Some(v.clone()))))
            .collect();
    }
}

/// Runs a check through the shell, in the environment of the run; returns what it printed.
///
/// # Errors
/// When it does not end with exit code 0 in time.
pub fn check_command(
    check: &str,
    environment: &Environment,
    cwd: Option<&Path>,
) -> Result<String, PreflightError> {
    let mut spec = CommandSpec::new(["/bin/sh", "-c", check]);
    spec.cwd = cwd.map(Path::to_owned);
    environment.apply(&mut spec);
    let (ended, exit, output) = run_quietly(&spec)?;
    let how = match (ended, exit) {
        (Ended::TimedOut, _) => format!("took longer than {} s", CHECK_LIMIT.as_secs()),
        (_, Exit::Code(0)) => return Ok(output),
        (_, Exit::Code(code)) => format!("ended with exit code {code}"),
        (_, Exit::Signal(signal)) => format!("was ended by signal {signal}"),
    };
    Err(PreflightError::CheckFailed { check: check.to_owned(), how, output })
}

/// Runs a command on pipes with nothing to read, and returns how it ended and what it printed.
pub(crate) fn run_quietly(spec: &CommandSpec) -> Result<(Ended, Exit, String), PreflightError> {
    let broken = |e: io::Error| PreflightError::Check(e.to_string());
    let signals = Signals::install().map_err(broken)?;
    let backend = Pipes::spawn(spec, signals.inherited())
        .map_err(|e: SpawnError| PreflightError::Check(e.to_string()))?;
    let clock = Clock::start();
    let log = SharedLog::new(LogLimits::new(CHECK_OUTPUT, 4 * CHECK_OUTPUT));
    log.append(Event::Resize(WinSize::cells(80, 24)), clock.now());
    let reader = log.reader_from_start(ReaderKind::Lossy);
    let config = Config::default().timeout(CHECK_LIMIT);
    let driver = Driver::new(backend, clock, config, log.clone()).map_err(broken)?;
    let outcome = driver.with(None, Some(signals)).run().map_err(broken)?;
    let mut entries = Vec::new();
    log.read(reader, usize::MAX, &mut entries);
    let mut output = Vec::new();
    for entry in entries {
        if let Event::Output { bytes, .. } = entry.event {
            output.extend_from_slice(&bytes);
        }
    }
    Ok((outcome.ended, outcome.exit, String::from_utf8_lossy(&output).into_owned()))
}

/// The commit that the folder's work tree stands at, if it is one. Read from the files of git, so
/// that it needs no git.
pub fn git_sha(folder: &Path) -> Option<String> {
    let mut at = folder.canonicalize().ok()?;
    let dot_git = loop {
        let candidate = at.join(".git");
        if candidate.exists() {
            break candidate;
        }
        at = at.parent()?.to_owned();
    };
    let read = |path: PathBuf| fs::read_to_string(path).ok().filter(|t| t.len() < 1 << 20);
    let git = match dot_git.is_dir() {
        true => dot_git,
        false => at.join(read(dot_git)?.trim().strip_prefix("gitdir: ")?),
    };
    let head = read(git.join("HEAD"))?;
    let head = head.trim();
    let Some(name) = head.strip_prefix("ref: ") else { return is_sha(head).then(|| head.to_owned()) };
    // A linked work tree keeps its branches in the main one.
    let common = read(git.join("commondir")).map_or_else(|| git.clone(), |c| git.join(c.trim()));
    let loose = [&git, &common].into_iter().find_map(|g| read(g.join(name)));
    let sha = loose.map(|t| t.trim().to_owned()).or_else(|| {
        let packed = read(common.join("packed-refs"))?;
        let line = packed.lines().find(|l| l.ends_with(&format!(" {name}")))?;
        line.split(' ').next().map(str::to_owned)
    });
    sha.filter(|s| is_sha(s))
}

fn is_sha(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// A new UUID (version 7: the time, then chance).
///
/// # Errors
/// When the system gives no random bytes.
pub fn new_uuid(now: WallTime) -> io::Result<String> {
    let mut b = [0_u8; 16];
    fs::File::open("/dev/urandom")?.read_exact(&mut b)?;
    b[..6].copy_from_slice(&now.as_millis().to_be_bytes()[2..]);
    b[6] = b[6] & 0x0f | 0x70;
    b[8] = b[8] & 0x3f | 0x80;
    let hex: String = b.iter().map(|b| format!("{b:02x}")).collect();
    Ok([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
}

/// A moment as `2026-03-04T05:06:07Z`.
pub fn rfc3339(at: WallTime) -> String {
    let c = calendar(at);
    let part = |at: std::ops::Range<usize>| c.get(at).unwrap_or_default();
    format!("{}-{}-{}T{}:{}:{}Z", part(0..4), part(4..6), part(6..8), part(9..11), part(11..13), part(13..15))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_ids() {
        let now = WallTime::from_secs(1_709_251_199);
        assert_eq!(rfc3339(now), "2024-02-29T23:59:59Z");
        let id = new_uuid(now).expect("an id");
        assert!(tapdeck_tape::cassette::is_uuid(&id) && id.as_bytes()[14] == b'7', "{id}");
    }

    #[test]
    fn a_commit_is_read_from_loose_and_packed_branches() {
        let folder = tempfile::tempdir().expect("a folder");
        let git = folder.path().join(".git");
        let sub = folder.path().join("a/b");
        fs::create_dir_all(git.join("refs/heads")).expect("made");
        fs::create_dir_all(&sub).expect("made");
        assert_eq!(git_sha(&sub), None);
        let sha = "0123456789abcdef0123456789abcdef01234567";
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").expect("written");
        fs::write(git.join("packed-refs"), format!("# pack\n{sha} refs/heads/main\n")).expect("written");
        assert_eq!(git_sha(&sub).as_deref(), Some(sha));
        let newer = sha.replace('0', "f");
        fs::write(git.join("refs/heads/main"), format!("{newer}\n")).expect("written");
        assert_eq!(git_sha(&sub), Some(newer));
        fs::write(git.join("HEAD"), format!("{sha}\n")).expect("written");
        assert_eq!(git_sha(&sub).as_deref(), Some(sha));
    }
}
