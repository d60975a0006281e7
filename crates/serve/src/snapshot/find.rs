//! Finds the recorder that a process runs under, without its environment: sockets are named after
//! the recorder's process, which is an ancestor of every process in its session.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tapdeck_host::processes::parents;
use tapdeck_host::registry;

use crate::door::{Address, socket_name};

/// Returns the nearest recorder above this process, or the one with a given process id.
pub fn find(recorder: Option<u32>) -> Option<Address> {
    // One read for all: the recorder's runtime folder may be another than ours, and then only the
    // kernel knows its socket.
    let known = fs::read("/proc/net/unix").unwrap_or_default();
    let known = String::from_utf8_lossy(&known);
    let socket_of = |pid| socket_of(pid, &known).map(Address::Unix);
    match recorder {
        Some(pid) => socket_of(pid),
        None => parents(std::process::id()).find_map(socket_of),
    }
}

fn socket_of(pid: u32, known: &str) -> Option<PathBuf> {
    let name = socket_name(pid);
    let usual = registry::folder().map(|folder| folder.join(&name)).ok().filter(|path| is_of(path, pid));
    usual.or_else(|| {
        // The path is the last column and may hold spaces; no other holds a slash.
        let paths = known.lines().filter_map(|line| line.find('/').map(|at| PathBuf::from(&line[at..])));
        let mut named = paths.filter(|path| path.file_name().is_some_and(|n| *n == *name));
        named.find(|path| is_of(path, pid))
    })
}

/// Returns whether a socket exists and belongs to the same user as the process that it is named
/// after: any user can choose a name.
fn is_of(path: &Path, pid: u32) -> bool {
    let owner = |path: &Path| fs::symlink_metadata(path).ok().map(|m| m.uid());
    owner(path).is_some_and(|uid| Some(uid) == owner(Path::new(&format!("/proc/{pid}"))))
}
