//! The review of changed texts: each is shown, and accepted, rejected or left for later. What is
//! not accepted stays as it was.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tapdeck::OutFile;
use tapdeck::testing::{Change, How, Outcome, Report};
use tapdeck_host::disk;

use crate::ending::{print, say};
use crate::failure::{Failure, Result};
use crate::human;

/// What the reviewer says of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    Accept,
    Reject,
    /// Undecided: the new text is left beside the old one.
    Skip,
}

/// A change of a file, and what became of it.
pub(super) struct Update {
    path: PathBuf,
    difference: String,
    decision: Decision,
    written: bool,
}

impl Update {
    pub(super) fn is_written(&self) -> bool {
        self.written
    }

    pub(super) fn as_json(&self) -> Value {
        let decision = match self.decision {
            Decision::Accept => "accepted",
            Decision::Reject => "rejected",
            Decision::Skip => "skipped",
        };
        json!({
            "path": self.path.to_string_lossy(),
            "difference": self.difference,
            "decision": decision,
            "written": self.written,
        })
    }
}

/// Reviews the changes that the reports want. A recording that was made anew is kept if all its
/// changes are accepted, and the report is then that of what was kept. With JSON on standard output
/// everything else goes to standard error.
pub(super) fn update(reports: &mut [Report], how: How, accept: bool, json: bool) -> Result<Vec<Update>> {
    // What is recorded anew is kept whole or not at all.
    let is_open = |r: &Report| how != How::Record || r.pending.is_some();
    let tell = Tell { json };
    let mut updates = decide(reports.iter().filter(|r| is_open(r)), accept, tell);
    let decided = |path: &Path| updates.iter().find(|u| u.path == path).map(|u| u.decision);
    let mut written = BTreeSet::new();
    for report in reports.iter_mut().filter(|r| is_open(r)) {
        let is_accepted = |c: &&Change| decided(&c.path) == Some(Decision::Accept);
        for change in report.changes.iter().filter(|c| decided(&c.path) == Some(Decision::Skip)) {
            let beside = beside(&change.path);
            write(&beside, &change.text)?;
            tell.say(format_args!("left the new text in {}\n", human::printable(&beside.to_string_lossy())));
        }
        let accepted: Vec<PathBuf> =
            report.changes.iter().filter(is_accepted).map(|c| c.path.clone()).collect();
        let Some(pending) = report.pending.take() else {
            for change in report.changes.iter().filter(is_accepted) {
                write(&change.path, &change.text)?;
            }
            written.extend(accepted);
            continue;
        };
        if accepted.len() < report.changes.len() {
            let name = human::printable(&report.name);
            tell.say(format_args!(
                "{name}: the new recording is not kept, because not all of its texts are accepted\n"
            ));
            continue;
        }
        *report = pending.accept();
        if matches!(report.outcome, Outcome::Passed) {
            written.extend(accepted);
        }
    }
    for update in &mut updates {
        update.written = written.contains(&update.path);
        if update.written {
            // What an earlier review left there is decided now; mostly there is nothing.
            let _ = disk::remove_file(&beside(&update.path));
            tell.say(format_args!("updated {}\n", human::printable(&update.path.to_string_lossy())));
        }
    }
    if !updates.is_empty() && written.is_empty() {
        say("nothing was changed");
    }
    Ok(updates)
}

/// Has each change decided on, once for each file.
fn decide<'a>(reports: impl Iterator<Item = &'a Report>, accept: bool, tell: Tell) -> Vec<Update> {
    let mut changes: BTreeMap<&Path, &Change> = BTreeMap::new();
    let mut contrary = BTreeSet::new();
    for change in reports.flat_map(|r| &r.changes) {
        if let Some(other) = changes.insert(&change.path, change)
            && other.text != change.text
        {
            say(format_args!("{}: two checks want different texts in it", change.path.display()));
            contrary.insert(&*change.path);
        }
    }
    if changes.is_empty() {
        tell.say(format_args!("nothing to update\n"));
    }
    let mut reviewer = Reviewer::new(accept, changes.len(), tell);
    let each = changes.into_values().map(|change| {
        let decision = reviewer.decide(change, contrary.contains(&*change.path));
        let Change { path, difference, .. } = change.clone();
        Update { path, difference, decision, written: false }
    });
    each.collect()
}

/// Where a text waits that was neither accepted nor rejected.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

fn write(path: &Path, text: &str) -> Result<()> {
    let written = OutFile::create_shared(path, true).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.commit()
    });
    written.map_err(|e| Failure::io(format!("{} cannot be written: {e}", path.display())))
}

/// Where the review is shown.
#[derive(Clone, Copy)]
struct Tell {
    json: bool,
}

impl Tell {
    fn say(self, text: std::fmt::Arguments<'_>) {
        if self.json {
            // With standard error gone as well, there is no place left for the message.
            let _ = std::io::stderr().write_fmt(text);
        } else {
            print(text);
        }
    }
}

/// Asks a person about each change, unless all are accepted or there is no terminal to ask at.
struct Reviewer {
    all: Option<Decision>,
    count: usize,
    asked: usize,
    tell: Tell,
}

impl Reviewer {
    fn new(accept: bool, count: usize, tell: Tell) -> Self {
        let all = if accept {
            Some(Decision::Accept)
        } else if count > 0 && !std::io::stdin().is_terminal() {
            say(
                "standard input is no terminal, so nothing is changed: use --accept to change without asking",
            );
            Some(Decision::Reject)
        } else {
            None
        };
        Self { all, count, asked: 0, tell }
    }

    fn decide(&mut self, change: &Change, is_contrary: bool) -> Decision {
        self.asked += 1;
        let path = human::printable(&change.path.to_string_lossy());
        let lines: String = change.difference.lines().map(|l| human::printable(l) + "\n").collect();
        self.tell.say(format_args!("\n{path} would change:\n{lines}"));
        if is_contrary {
            return Decision::Reject;
        }
        if let Some(all) = self.all {
            return all;
        }
        let file = change.path.file_name().unwrap_or_default().to_string_lossy();
        let file = human::printable(&file);
        loop {
            self.tell.say(format_args!(
                "\n{file} ({} of {}): [a]ccept, [r]eject, [s]kip, accept [A]ll, [q]uit? ",
                self.asked, self.count
            ));
            // Without the question on the screen, the answer is no.
            let _ = std::io::stdout().flush();
            let mut answer = String::new();
            let read = std::io::stdin().lock().read_line(&mut answer);
            let (decision, for_all) = match answer.trim() {
                "a" | "accept" | "y" | "yes" => (Decision::Accept, false),
                "r" | "reject" | "n" | "no" => (Decision::Reject, false),
                "s" | "skip" => (Decision::Skip, false),
                "A" | "all" => (Decision::Accept, true),
                "q" | "quit" => (Decision::Reject, true),
                // The end of the input is no.
                _ if !matches!(read, Ok(1..)) => (Decision::Reject, true),
                _ => continue,
            };
            self.all = for_all.then_some(decision);
            return decision;
        }
    }
}
