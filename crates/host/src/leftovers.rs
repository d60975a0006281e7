//! Processes that a session leaves behind: those of its terminal's session, and those that took
//! their leave of it. A daemon with a session of its own is told by the home folder that only its
//! program was given, or, where this process has one session alone, by its descent: what loses its
//! parent becomes a child of this process.

use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid};

use crate::clock::Clock;
use crate::processes::{self, Process};

/// How long a process that was told to end may take to be gone.
const GRACE: Duration = Duration::from_millis(1500);
/// How often to look for what those that were killed had left.
const ROUNDS: usize = 20;
/// Characters of a command line that are told.
const COMMAND: usize = 200;

/// A process that was left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Its number.
    pub pid: u32,
    /// Its command line.
    pub command: String,
}

/// Looks for the processes that a session leaves behind.
#[derive(Debug)]
pub struct Leftovers {
    session: Option<i32>,
    home: Option<PathBuf>,
    /// The descendants of this process from before the session, if it adopts orphans.
    before: Option<Vec<u32>>,
}

impl Leftovers {
    /// For one of several sessions of this process: by the number of its session of processes, and
    /// by the home folder that no other has.
    pub fn of_session(session: Option<i32>, home: Option<PathBuf>) -> Self {
        Self { session, home, before: None }
    }

    /// For the only session of this process, which has yet to start. While the value lives, what
    /// loses its parent becomes a child of this process.
    pub fn adopt() -> Self {
        let adopts = set_child_subreaper(Some(getpid())).is_ok();
        Self { session: None, home: None, before: adopts.then(descendants) }
    }

    /// Returns the processes that are left, once those that were about to end had time to; `None`
    /// if they cannot be counted.
    pub fn wait(&self, clock: &Clock) -> Option<Vec<Leftover>> {
        if self.session.is_none() && self.home.is_none() && self.before.is_none() {
            return None;
        }
        let deadline = clock.elapsed() + GRACE;
        loop {
            let left = self.look();
            if left.is_empty() || clock.elapsed() >= deadline {
                return Some(left.into_iter().map(describe).collect());
            }
            // The end of another process's child is not announced.
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    /// Kills those that are left, and what those leave.
    pub fn kill(&self) {
        for _ in 0..ROUNDS {
            // The number of a session alone does not tell: another may have it by now.
            let ours: Vec<u32> = self.look().into_iter().filter(|pid| self.is_certain(*pid)).collect();
            if ours.is_empty() {
                return;
            }
            for pid in ours.into_iter().filter_map(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) {
                // It may have ended meanwhile, and only a child of this process is waited for.
                let _ = kill_process(pid, Signal::KILL);
                let _ = waitpid(Some(pid), WaitOptions::empty());
            }
        }
    }

    fn look(&self) -> Vec<u32> {
        processes::all().into_iter().filter(|pid| self.is_ours(*pid)).collect()
    }

    fn is_ours(&self, pid: u32) -> bool {
        let Some(process) = Process::find(pid).filter(|p| !p.is_dead()) else { return false };
        Some(process.session) == self.session || self.is_certain(pid)
    }

    fn is_certain(&self, pid: u32) -> bool {
        let adopted = self.before.as_ref().is_some_and(|before| !before.contains(&pid) && is_descendant(pid));
        adopted || self.has_home(pid)
    }

    fn has_home(&self, pid: u32) -> bool {
        let Some(home) = &self.home else { return false };
        let wanted = [b"HOME=", home.as_os_str().as_encoded_bytes()].concat();
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|b| *b == 0).any(|v| v == wanted)
    }
}

impl Drop for Leftovers {
    fn drop(&mut self) {
        if self.before.is_some() {
            // It was set by this process, so it can be unset.
            let _ = set_child_subreaper(None);
        }
    }
}

fn describe(pid: u32) -> Leftover {
    let mut command: String = processes::command(pid).join(" ").chars().take(COMMAND).collect();
    if command.is_empty() {
        command = format!("process {pid}");
    }
    Leftover { pid, command }
}

fn is_descendant(pid: u32) -> bool {
    let own = std::process::id();
    processes::parents(pid).any(|parent| parent == own)
}

fn descendants() -> Vec<u32> {
    processes::all().into_iter().filter(|pid| is_descendant(*pid)).collect()
}
