//! Processes as `/proc` shows them: their parents, sessions and terminals.

use std::fs;
use std::io::Read;

/// No process has more ancestors than this.
const DEPTH: usize = 256;
/// What is read of a command line.
const COMMAND: u64 = 16 << 10;
/// Processes that are looked at to find out who is at a terminal.
const FAMILY: usize = 64;

/// What is known of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// `R`, `S`, `T`, `Z` …
    pub(crate) state: char,
    /// The process above it; 0 for the first.
    pub parent: u32,
    /// The group of processes that it belongs to.
    pub group: i32,
    /// The session of processes that it belongs to.
    pub session: i32,
    /// Its controlling terminal; 0 for none.
    pub(crate) terminal: i32,
    /// The group of processes in the foreground of that terminal; -1 for none.
    pub foreground: i32,
}

impl Process {
    /// The process of this number, if there is one.
    pub fn find(pid: u32) -> Option<Self> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The second field is the program's name in brackets and may hold anything, brackets and
        // spaces included.
        let rest = &stat[stat.iter().rposition(|b| *b == b')')? + 1..];
        let rest = String::from_utf8_lossy(rest);
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let session = fields.next()?.parse().ok()?;
        let terminal = fields.next()?.parse().ok()?;
        let foreground = fields.next()?.parse().ok()?;
        Some(Self { state, parent, group, session, terminal, foreground })
    }

    /// Whether it has ended and only waits to be noticed.
    pub fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

/// The command line of a process, as far as it is not longer than reasonable; empty for one that
/// has ended.
pub fn command(pid: u32) -> Vec<String> {
    let mut line = Vec::new();
    if let Ok(file) = fs::File::open(format!("/proc/{pid}/cmdline")) {
        // A process that ends meanwhile has no command line.
        let _ = file.take(COMMAND).read_to_end(&mut line);
    }
    let words = line.split(|b| *b == 0).map(|w| String::from_utf8_lossy(w).into_owned());
    let mut words: Vec<String> = words.collect();
    words.pop_if(|w| w.is_empty());
    words
}

/// The processes of a group, as far as they descend from the one that leads it; that one first.
pub fn group(leader: u32) -> Vec<u32> {
    let mut found = vec![leader];
    let mut at = 0;
    while let Some(&pid) = found.get(at) {
        at += 1;
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        let children = children.split_ascii_whitespace().filter_map(|c| c.parse().ok());
        let same = |pid: &u32| {
            Process::find(*pid).is_some_and(|p| i64::from(p.group) == i64::from(leader) && !p.is_dead())
        };
        found.extend(children.filter(same).take(FAMILY.saturating_sub(found.len())));
    }
    found
}

/// Whether no shell would continue this process's group if it stopped: no ancestor of it is in the
/// same session. The system lets no terminal stop such a group (the first of a window, of `setsid`,
/// of a service).
pub(crate) fn is_orphaned() -> bool {
    let Some(own) = Process::find(std::process::id()) else { return false };
    let is_minded = |process: &Process| {
        Process::find(process.parent).is_some_and(|p| p.session == own.session && p.group != own.group)
    };
    let all = crate::process_table::by_session();
    let mut members = all.get(&own.session).into_iter().flatten().filter(|(_, p)| p.group == own.group);
    !is_minded(&own) && !members.any(|(_, p)| !p.is_dead() && is_minded(p))
}

/// The numbers of all processes.
pub(crate) fn all() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
}

/// The processes above this one, nearest first.
pub fn parents(pid: u32) -> impl Iterator<Item = u32> {
    let parent = |pid: u32| Process::find(pid).map(|p| p.parent).filter(|p| *p != 0);
    std::iter::successors(parent(pid), move |pid| parent(*pid)).take(DEPTH)
}

/// The processes above this one that gave a terminal to those below them, nearest first: terminal
/// emulators, and programs such as `script`. One that merely started a terminal emulator is none of
/// them.
pub fn terminals_above(pid: u32) -> Vec<u32> {
    let mut below = Process::find(pid).map_or(0, |p| p.terminal);
    let mut found = Vec::new();
    for parent in parents(pid) {
        let Some(process) = Process::find(parent) else { break };
        if process.terminal != below && below != 0 {
            found.push(parent);
        }
        below = process.terminal;
    }
    found
}

/// Whether what this process shows, the terminals of process `host` show too: it runs on one that
/// `host` gave, or on one of a program that is itself in the foreground of such a terminal. A
/// window that was opened from there shows nothing there.
pub fn shows_on_terminal_of(host: u32) -> bool {
    let own = std::process::id();
    let Some(below) = Process::find(own).map(|p| p.terminal).filter(|t| *t != 0) else { return false };
    // One that was left behind by its parents is still on their terminal.
    let given = |pid: u32| Process::find(pid).is_some_and(|p| p.parent == host && p.terminal == below);
    if Process::find(host).is_some_and(|p| p.terminal != below) && all().into_iter().any(given) {
        return true;
    }
    let mut below = below;
    for parent in parents(own) {
        let Some(process) = Process::find(parent) else { return false };
        if process.terminal != below {
            if parent == host {
                return true;
            }
            if process.terminal == 0 || process.foreground != process.group {
                return false;
            }
            below = process.terminal;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_go_up_to_the_first() {
        let own = std::process::id();
        let found: Vec<u32> = parents(own).collect();
        assert!(!found.is_empty() && found.len() < DEPTH, "{found:?}");
        assert!(!found.contains(&own) && all().contains(&own));
        assert!(Process::find(own).is_some_and(|p| !p.is_dead() && p.parent == found[0]));
        assert!(terminals_above(own).iter().all(|pid| found.contains(pid)));
    }
}
