//! `tapdeck test --watch`: tests run again when a file that they depend on changes. Files are
//! looked at, rather than announced by the system, so that it works on every file system.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tapdeck::testing::{Case, Report};
use tapdeck_host::{Keyboard, Pressed};

use super::{Job, Ran, TestArgs, case_of, is_good, once};
use crate::ending::{Ending, print, say};
use crate::failure::{Failure, Result};
use crate::human::count;

/// How often to look.
const EVERY: Duration = Duration::from_millis(250);

/// Files that are looked at in one folder, at most.
const MAX_FILES: usize = 10_000;

/// What tells a changed file.
type Stamp = (i64, i64, u64, u64);

/// The tests as they are now, each with the state of the files that it depends on.
type Seen = BTreeMap<Case, BTreeMap<PathBuf, Option<Stamp>>>;

/// Runs the tests, and again those that a change touches, until a signal ends it. The exit code is
/// that of the last run.
pub(super) fn watch(args: &TestArgs, job: &Job) -> Result {
    let io = |e: std::io::Error| Failure::io(format!("cannot watch: {e}"));
    let mut signals = Keyboard::ends_only().map_err(io)?;
    let mut seen = look(&args.cases()?);
    let mut wanted: BTreeSet<Case> = seen.keys().cloned().collect();
    let mut failed = BTreeSet::new();
    loop {
        clear();
        let cases: Vec<Case> = wanted.iter().cloned().collect();
        match once(args, job, &cases, Some(&mut signals))? {
            Ran::Stopped(_) => return Ok(Ending::of_check(failed.is_empty())),
            Ran::All(reports) => note(args, &reports, &mut failed),
        }
        let files = seen.values().flat_map(BTreeMap::keys).collect::<BTreeSet<_>>().len();
        print(format_args!("\nwatching {}; Ctrl-C ends this\n", count(files as u64, "file")));
        loop {
            if let Pressed::Signal(_) = signals.wait(Some(EVERY)).map_err(io)? {
                return Ok(Ending::of_check(failed.is_empty()));
            }
            let now = match args.cases() {
                Ok(cases) => look(&cases),
                // A file that is being replaced is missing for a moment.
                Err(_) => continue,
            };
            if now == seen {
                continue;
            }
            // An editor or a compiler may still be writing.
            let settled = settle(args, now, &mut signals).map_err(io)?;
            let Some(now) = settled else { return Ok(Ending::of_check(failed.is_empty())) };
            wanted = now
                .iter()
                .filter(|(case, files)| seen.get(case) != Some(files))
                .map(|(c, _)| c.clone())
                .collect();
            failed.retain(|case| now.contains_key(case));
            seen = now;
            if !wanted.is_empty() {
                wanted.extend(failed.iter().cloned());
                break;
            }
        }
    }
}

/// Waits until nothing changes any more; `None` if a signal came.
fn settle(args: &TestArgs, mut now: Seen, signals: &mut Keyboard) -> std::io::Result<Option<Seen>> {
    loop {
        if let Pressed::Signal(_) = signals.wait(Some(EVERY))? {
            return Ok(None);
        }
        let next = args.cases().map_or_else(|_| Seen::new(), |cases| look(&cases));
        if !next.is_empty() && next == now {
            return Ok(Some(now));
        }
        now = next;
    }
}

/// Keeps which tests fail.
fn note(args: &TestArgs, reports: &[Report], failed: &mut BTreeSet<Case>) {
    for report in reports {
        let case = case_of(report);
        if is_good(args, report) {
            failed.remove(&case);
        } else {
            failed.insert(case);
        }
    }
}

/// Clears the screen and what scrolled off it, on a terminal.
fn clear() {
    let mut out = std::io::stdout();
    if out.is_terminal()
        && let Err(e) = out.write_all(b"\x1b[H\x1b[2J\x1b[3J").and_then(|()| out.flush())
    {
        say(format_args!("the screen cannot be cleared: {e}"));
    }
}

fn look(cases: &[Case]) -> Seen {
    let of_case = |case: &Case| {
        let mut files = BTreeMap::new();
        for path in case.sources() {
            stamp(&path, &mut files);
        }
        (case.clone(), files)
    };
    cases.iter().map(of_case).collect()
}

/// Notes the state of a file, or of all files in a folder.
fn stamp(path: &Path, files: &mut BTreeMap<PathBuf, Option<Stamp>>) {
    let mut open = vec![path.to_owned()];
    while let Some(path) = open.pop().filter(|_| files.len() < MAX_FILES) {
        let meta = std::fs::metadata(&path).ok();
        if meta.as_ref().is_some_and(std::fs::Metadata::is_dir) {
            let inside = std::fs::read_dir(&path).into_iter().flatten().flatten();
            // A link to a folder may lead back here.
            let is_link = |path: &Path| path.is_symlink() && path.is_dir();
            open.extend(inside.map(|entry| entry.path()).filter(|path| !is_link(path)));
        }
        files.insert(path, meta.map(|meta| (meta.mtime(), meta.mtime_nsec(), meta.len(), meta.ino())));
    }
}
