//! One recorder an account: two at once would share a quota, a session store and a login. The lock
//! is the kernel's, so it ends with the process that holds it however that ends; the file tells
//! others who it is.

use std::fs::OpenOptions;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde_json::{Value, json};

use super::rfc3339;
use crate::clock::Clock;
use crate::disk::DiskFile;

/// How often a lock that another has is tried.
const POLL: Duration = Duration::from_millis(100);

/// An account that could not be locked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Another recorder uses it.
    #[error("the account {account:?} is in use by process {pid} since {since}: wait for it, or end it")]
    Held {
        /// Which account.
        account: String,
        /// Who has it.
        pid: u64,
        /// Since when.
        since: String,
    },
    /// The lock file could not be used.
    #[error("cannot lock {}: {why}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
}

/// An account that is ours until this is dropped.
#[derive(Debug)]
pub struct AccountLock {
    file: DiskFile,
    stale: Option<u64>,
}

impl AccountLock {
    /// Locks an account, or says at once who has it.
    ///
    /// # Errors
    /// When another process has it, or the file cannot be used.
    pub fn take(folder: &Path, account: &str, now: &str) -> Result<Self, LockError> {
        let name: String = account
            .chars()
            .map(|c| if c.is_alphanumeric() || "-_.@".contains(c) { c } else { '_' })
            .collect();
        let path = folder.join(format!("{name}.lock"));
        let fail = |why: io::Error| LockError::Io { path: path.clone(), why };
        std::fs::create_dir_all(folder).map_err(fail)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = DiskFile::open(&path, &options).map_err(fail)?;
        let mut text = String::new();
        let held = match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => false,
            Err(Errno::WOULDBLOCK) => true,
            Err(e) => return Err(fail(e.into())),
        };
        (&*file).take(4096).read_to_string(&mut text).map_err(fail)?;
        let before: Option<Value> = serde_json::from_str(&text).ok();
        let pid = before.as_ref().and_then(|v| v.get("pid")).and_then(Value::as_u64);
        if held {
            let since = before.as_ref().and_then(|v| v.get("since")).and_then(Value::as_str);
            return Err(LockError::Held {
                account: account.to_owned(),
                pid: pid.unwrap_or(0),
                since: since.unwrap_or("an unknown time").to_owned(),
            });
        }
        let line = json!({"pid": std::process::id(), "since": now, "account": account});
        let write = |file: &mut DiskFile| {
            file.resize(0)?;
            (&**file).rewind()?;
            writeln!(file, "{line}")
        };
        write(&mut file).map_err(fail)?;
        // The process that wrote that is gone: this one has its lock.
        Ok(Self { file, stale: pid })
    }

    /// Locks an account, waiting this long at most for another that has it.
    ///
    /// # Errors
    /// As [`Self::take`], when the time is over.
    pub fn wait(folder: &Path, account: &str, clock: &Clock, limit: Duration) -> Result<Self, LockError> {
        let deadline = clock.elapsed() + limit;
        loop {
            let now = rfc3339(clock.wall_start() + clock.elapsed());
            match Self::take(folder, account, &now) {
                Err(LockError::Held { .. }) if clock.elapsed() < deadline => {
                    // The kernel announces a free lock only to a wait without a limit.
                    std::thread::park_timeout(POLL.min(deadline - clock.elapsed().min(deadline)));
                }
                taken => return taken,
            }
        }
    }

    /// The process that had the lock before and died with it.
    pub fn stale(&self) -> Option<u64> {
        self.stale
    }
}

impl Drop for AccountLock {
    fn drop(&mut self) {
        // Emptied, not removed: a name that comes and goes can be locked twice.
        let _ = self.file.resize(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_and_a_dead_holder_is_no_obstacle() {
        let folder = tempfile::tempdir().expect("a folder");
        let lock = AccountLock::take(folder.path(), "team/../a", "now").expect("free");
        let held = AccountLock::take(folder.path(), "team/../a", "later").expect_err("held");
        assert!(held.to_string().contains(&format!("process {} since now", std::process::id())), "{held}");
        assert!(AccountLock::take(folder.path(), "other", "now").is_ok());
        drop(lock);
        let lock = AccountLock::take(folder.path(), "team/../a", "now").expect("free again");
        assert_eq!(lock.stale(), None);
        drop(lock);
        // Two locks of one process are two as well: the second waits for the first.
        let clock = Clock::start();
        let lock = AccountLock::take(folder.path(), "waited", "now").expect("free");
        let limit = Duration::from_millis(20);
        assert!(AccountLock::wait(folder.path(), "waited", &clock, limit).is_err());
        let at = folder.path().to_owned();
        let waiting = std::thread::spawn(move || {
            AccountLock::wait(&at, "waited", &Clock::start(), Duration::from_secs(60)).is_ok()
        });
        drop(lock);
        assert!(waiting.join().expect("it ends"));
        let name = folder.path().join("crashed.lock");
        std::fs::write(&name, "{\"pid\": 999999999, \"since\": \"then\"}").expect("written");
        let lock = AccountLock::take(folder.path(), "crashed", "now").expect("stale");
        assert_eq!(lock.stale(), Some(999_999_999));
    }
}
