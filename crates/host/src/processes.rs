//! Processes as `/proc` shows them: their parents, sessions and terminals.

use std::fs;

/// More parents than this nobody has.
const DEPTH: usize = 256;

/// What is known of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// `R`, `S`, `T`, `Z` …
    pub state: char,
    /// The process above it; 0 for the first.
    pub parent: u32,
    /// The session of processes that it belongs to.
    pub session: i32,
    /// Its controlling terminal; 0 for none.
    pub terminal: i32,
}

impl Process {
    /// The process of this number, if there is one.
    pub fn find(pid: u32) -> Option<Self> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The second field is the program's name in brackets and may hold anything, brackets and spaces included.
        let rest = &stat[stat.iter().rposition(|b| *b == b')')? + 1..];
        let rest = String::from_utf8_lossy(rest);
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let session = fields.nth(1)?.parse().ok()?;
        let terminal = fields.next()?.parse().ok()?;
        Some(Self { state, parent, session, terminal })
    }

    /// Whether it has ended and only waits to be noticed.
    pub fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

/// The numbers of all processes.
pub fn all() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
}

/// The processes above this one, nearest first.
pub fn parents(pid: u32) -> impl Iterator<Item = u32> {
    let parent = |pid: u32| Process::find(pid).map(|p| p.parent).filter(|p| *p != 0);
    std::iter::successors(parent(pid), move |pid| parent(*pid)).take(DEPTH)
}

/// The processes above this one that gave a terminal to those below them, nearest first: terminal emulators, and programs
/// such as `script`. One that merely started a terminal emulator is none of them.
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
