//! `tapdeck branch --compare`: the last screens of two attempts side by side, and what their files
//! have in difference.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tapdeck::diff::{Comparison, Shown};
use tapdeck::trees::Repository;
use tapdeck_cli::color::Color;
use tapdeck_host::Source;
use tapdeck_term::printable_lines;

use super::{BranchArgs, attempts};
use crate::cmd::diff;
use crate::ending::{Ending, output_failed, print_json};
use crate::failure::{Failure, Result};
use crate::human;

/// One of the two attempts.
struct Side {
    source: Source,
    /// Its recording, as it was named.
    name: String,
    screen: Option<Shown>,
    /// The newest files that were kept of it.
    commit: String,
    /// Folders that may be in the repository with that.
    folders: Vec<PathBuf>,
}

pub(super) fn compare(args: &BranchArgs, names: &[PathBuf]) -> Result {
    let [a, b] = names else { return Err(Failure::usage("--compare takes two attempts")) };
    let (a, b) = (Side::find(args, a)?, Side::find(args, b)?);
    let repository = repository(args, &a, &b)?;
    let changes = |e| Failure::io(format!("cannot compare the files: {e}"));
    let stat = repository.diff_stat(&a.commit, &b.commit).map_err(changes)?;
    let patch = repository.diff(&a.commit, &b.commit).map_err(changes)?;
    let rows = diff::changed(a.screen.as_ref(), b.screen.as_ref());
    let equal = patch.is_empty() && rows.is_empty();
    let patch = String::from_utf8_lossy(&patch);
    if args.json {
        let rows: Vec<usize> = rows.into_iter().map(|row| row + 1).collect();
        print_json(&json!({
            "equal": equal,
            "a": a.to_json(),
            "b": b.to_json(),
            "changed_rows": rows,
            "diff_stat": stat,
            "diff": patch,
        }));
    } else {
        let mut text = diff::side_by_side(
            [&a.name, &b.name],
            a.screen.as_ref(),
            b.screen.as_ref(),
            Color::default().is_on(),
        );
        match patch.is_empty() {
            true => text.push_str("\nthe files are equal\n"),
            false => text.push_str(&printable_lines(&format!("\n{stat}\n\n{patch}"))),
        }
        io::stdout().write_all(text.as_bytes()).unwrap_or_else(|e| output_failed(&e));
    }
    Ok(Ending::of_check(equal))
}

impl Side {
    /// Finds an attempt by its name, or a recording by its path.
    fn find(args: &BranchArgs, name: &Path) -> Result<Self> {
        // The worktree of an attempt may be a folder of that name.
        let is_name = !name.is_file() && name.components().count() == 1;
        let recording = is_name.then(|| attempts::recording(name)).filter(|path| path.exists());
        let path = recording.as_deref().unwrap_or(name);
        let source = args.input.find(path)?;
        let name = human::printable(&name.to_string_lossy());
        let parent = source.meta().and_then(|meta| meta.parent);
        let trees = attempts::trees(&source)?;
        let newest = trees.iter().rev().find(|tree| tree.provider == "git");
        let mut folders: Vec<PathBuf> = newest.iter().map(|tree| PathBuf::from(&tree.folder)).collect();
        if let Some(parent) = &parent {
            // The worktree may be gone. The repository that it was one of has the commits, too.
            folders.push(PathBuf::from(&parent.worktree));
            let of_parent = Source::find(Path::new(&parent.path), None, None).ok();
            let trees = of_parent.and_then(|source| attempts::trees(&source).ok()).unwrap_or_default();
            folders.extend(trees.into_iter().map(|tree| tree.folder.into()));
        }
        // Before its first files are kept, an attempt has those that it began with.
        let commit = newest.map(|tree| tree.commit.clone()).or(parent.map(|parent| parent.commit));
        let commit = commit.ok_or_else(|| {
            Failure::not_found(format!(
                "{name}: no files were kept with it by git: record with rec --snapshots git"
            ))
        })?;
        let screen = Comparison::default().last(&source)?;
        Ok(Self { source, name, screen, commit, folders })
    }

    fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "recording": self.source.path().to_string_lossy(),
            "commit": self.commit,
            "screen": self.screen.as_ref().map(diff::screen_json),
        })
    }
}

/// The repository that has the files of both.
fn repository(args: &BranchArgs, a: &Side, b: &Side) -> Result<Repository> {
    let folders = match &args.repository {
        Some(given) => vec![given],
        None => a.folders.iter().chain(&b.folders).collect(),
    };
    let mut repositories = folders.into_iter().filter_map(|folder| Repository::find(folder).ok());
    let has_both = |repository: &Repository| {
        [&a.commit, &b.commit].iter().all(|commit| repository.has_commit(commit).unwrap_or(false))
    };
    repositories.find(has_both).ok_or_else(|| {
        Failure::not_found(format!(
            "no repository has the files of both {} and {}: give --repository if it was moved",
            a.name, b.name
        ))
    })
}
