//! Recordings of failed runs: the last few are kept in the state folder.

use std::path::{Path, PathBuf};

use tapdeck::testing::Report;
use tapdeck_host::cassette::{CassetteFolder, diagnostics_folder, new_uuid};
use tapdeck_host::{Clock, disk};
use tapdeck_tape::cassette::Files;

use crate::failure::{Failure, Result};

const SUFFIX: &str = ".cassette";

/// Keeps the recordings of the runs that failed, and removes the oldest beyond this many. Returns
/// where they are.
pub(super) fn keep(reports: &[Report], at_most: usize) -> Result<Vec<PathBuf>> {
    let folder = diagnostics_folder().with_file_name("failed-tests");
    let failed = reports.iter().filter_map(|r| Some((r, r.evidence.as_ref()?.recording.as_ref()?)));
    let mut kept = Vec::new();
    for (report, files) in failed {
        let wrong = |e: &dyn std::fmt::Display| {
            Failure::io(format!("the failed run cannot be kept in {}: {e}", folder.display()))
        };
        disk::create_folders(&folder).map_err(|e| wrong(&e))?;
        // An id begins with the time, so that names are in the order of time.
        let id = new_uuid(Clock::start().wall_start()).map_err(|e| wrong(&e))?;
        let name: String =
            report.name.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).take(60).collect();
        let path = folder.join(format!("{id}-{name}{SUFFIX}"));
        write(&path, files).map_err(|e| wrong(&e))?;
        kept.push(path);
    }
    if !kept.is_empty() {
        forget(&folder, at_most)
            .map_err(|e| Failure::io(format!("{} cannot be cleared: {e}", folder.display())))?;
    }
    Ok(kept)
}

fn write(path: &Path, files: &Files) -> std::result::Result<(), tapdeck_host::cassette::CommitError> {
    let mut folder = CassetteFolder::create(path, false)?;
    folder.append_all(files)?;
    folder.commit()
}

/// Removes all but the newest.
fn forget(folder: &Path, at_most: usize) -> std::io::Result<()> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(folder)?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with(SUFFIX))
        .collect();
    all.sort();
    let old = all.len().saturating_sub(at_most);
    for path in &all[..old] {
        for entry in std::fs::read_dir(path)? {
            disk::remove_file(&entry?.path())?;
        }
        disk::remove_folder(path)?;
    }
    Ok(())
}
