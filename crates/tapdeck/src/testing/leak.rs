//! Who is left when a session is over: processes of its terminal's session, and those that took their leave of it but
//! still have the home folder that only this program was given.

use std::path::PathBuf;
use std::time::Duration;

use tapdeck_host::Clock;

/// How long a process that was told to end may take to be gone.
const GRACE: Duration = Duration::from_millis(1500);

#[derive(Debug)]
pub(crate) struct Leftovers {
    session: Option<i32>,
    home: Option<PathBuf>,
}

impl Leftovers {
    pub(crate) fn new(session: Option<i32>, home: Option<PathBuf>) -> Self {
        Self { session, home }
    }

    /// How many there are, once those that are on their way out have gone; `None` where nobody can tell.
    pub(crate) fn count(&self, clock: &Clock) -> Option<u32> {
        let deadline = clock.now().mono_ns + GRACE.as_nanos() as u64;
        loop {
            let count = self.look()?;
            if count == 0 || clock.now().mono_ns >= deadline {
                return Some(count);
            }
            // Nothing announces the end of somebody else's child.
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    fn look(&self) -> Option<u32> {
        let mut count = 0;
        for entry in std::fs::read_dir("/proc").ok()?.flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse::<i32>().ok()) else { continue };
            count += u32::from(self.is_ours(pid));
        }
        Some(count)
    }

    fn is_ours(&self, pid: i32) -> bool {
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
        // pid (comm) state ppid pgrp session …
        let fields: Vec<&str> = stat[stat.rfind(')').map_or(0, |i| i + 1)..].split_whitespace().collect();
        if matches!(fields.first(), Some(&("Z" | "X"))) {
            return false;
        }
        let session = fields.get(3).and_then(|s| s.parse().ok());
        if self.session.is_some() && session == self.session {
            return true;
        }
        let Some(home) = &self.home else { return false };
        let wanted = [b"HOME=", home.as_os_str().as_encoded_bytes()].concat();
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|b| *b == 0).any(|v| v == wanted)
    }
}
