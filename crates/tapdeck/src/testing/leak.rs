//! Who is left when a session is over: processes of its terminal's session, and those that took
//! their leave of it but
//! still have the home folder that only this program was given.

use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tapdeck_host::Clock;
use tapdeck_host::processes::Process;

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

    /// Kills the processes that a test left running. Returns how many there were, after those that
    /// were about to end had time to; `None` if they cannot be counted.
    pub(crate) fn clear(&self, clock: &Clock) -> Option<u32> {
        let deadline = clock.elapsed() + GRACE;
        loop {
            let left = self.look()?;
            if left.is_empty() || clock.elapsed() >= deadline {
                // A supervisor restarts its child, unless both are killed.
                for _ in 0..3 {
                    // The home tells them apart: another process may have the session's number by
                    // now.
                    let ours = self.look()?.into_iter().filter(|pid| self.has_home(*pid));
                    for pid in ours.filter_map(Pid::from_raw) {
                        // It may have ended meanwhile.
                        let _ = kill_process(pid, Signal::KILL);
                    }
                }
                return Some(left.len() as u32);
            }
            // The end of another process's child is not announced.
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    fn look(&self) -> Option<Vec<i32>> {
        let entries = std::fs::read_dir("/proc").ok()?.flatten();
        let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
        Some(pids.filter(|pid| self.is_ours(*pid)).collect())
    }

    fn is_ours(&self, pid: i32) -> bool {
        let process = u32::try_from(pid).ok().and_then(Process::find);
        let Some(process) = process.filter(|p| !p.is_dead()) else { return false };
        Some(process.session) == self.session || self.has_home(pid)
    }

    fn has_home(&self, pid: i32) -> bool {
        let Some(home) = &self.home else { return false };
        let wanted = [b"HOME=", home.as_os_str().as_encoded_bytes()].concat();
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|b| *b == 0).any(|v| v == wanted)
    }
}
