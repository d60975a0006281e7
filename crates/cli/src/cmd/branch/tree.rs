//! `tapdeck branches`: the attempts that were branched from a recording, and from each other.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tapdeck::trees::Repository;
use tapdeck_core::WallTime;
use tapdeck_host::registry::Listing;
use tapdeck_host::{Clock, Source};
use tapdeck_proto::bus::{AgentState, InfoWanted, Role};
use tapdeck_serve::client::{ANSWER, connect_to_watch};
use tapdeck_tape::RecordedTree;
use tapdeck_tape::meta::{Exit, Meta};

use super::attempts::{self, Found};
use crate::ending::{Ending, print, print_json};
use crate::failure::Result;
use crate::human;
use crate::input::InputArgs;
use crate::sessions::alive;

/// Attempts of attempts are shown this deep.
const DEPTH: usize = 32;

/// Show the sessions branched from a recording, with their state and changes.
#[derive(Args)]
#[command(after_help = "\
Shows each attempt below the one it was branched from: its moment, state, duration and instruction,
and what it changed since then, as git diff --stat shows it. --json also has the kept files of the
recording.

Examples:
  tapdeck branches demo.ahr
  tapdeck branches demo.ahr --json | jq '.branches[] | {name, state}'")]
pub(crate) struct BranchesArgs {
    /// The recording
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    input: InputArgs,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cmd) json: bool,
}

/// An attempt, as it is shown.
#[derive(Debug, Serialize)]
struct Shown {
    name: String,
    recording: String,
    /// The id of its session, while that is live.
    session: Option<String>,
    /// What its program does, or how it ended.
    state: String,
    duration_ms: u64,
    at: String,
    instruction: Option<String>,
    worktree: String,
    commit: String,
    /// What the attempt changed; absent where that cannot be told any more.
    diff_stat: Option<String>,
    branches: Vec<Shown>,
}

/// The recording, and what was branched from it.
#[derive(Debug, Serialize)]
struct Root {
    file: String,
    /// The kept files that a session can be branched from.
    kept: Vec<RecordedTree>,
    branches: Vec<Shown>,
}

pub(crate) fn list(args: &BranchesArgs) -> Result {
    let source = args.input.find(&args.file)?;
    let started = source.meta().map(|meta| meta.started_at).unwrap_or_default();
    let all = attempts::all();
    let live = alive().map(|(_, listings)| listings).unwrap_or_default();
    let branches = below(&all, &live, &args.file, started, 0);
    let file = args.file.to_string_lossy().into_owned();
    if args.json {
        print_json(&Root { file, kept: attempts::trees(&source)?, branches });
        return Ok(Ending::Done);
    }
    let mut text = format!("{}\n", human::printable(&file));
    if branches.is_empty() {
        text.push_str("  no branches: make one with tapdeck branch\n");
    }
    branches.iter().for_each(|attempt| describe(attempt, 1, &mut text));
    print(format_args!("{text}"));
    Ok(Ending::Done)
}

/// The attempts that were branched from a recording.
fn below(all: &[Found], live: &[Listing], path: &Path, started: WallTime, depth: usize) -> Vec<Shown> {
    let children = all.iter().filter(|attempt| attempts::is_child(&attempt.parent, path, started));
    let show = |attempt: &Found| {
        let path = attempt.source.path();
        let branches = match depth < DEPTH {
            true => below(all, live, path, attempt.meta.started_at, depth + 1),
            false => Vec::new(),
        };
        shown(attempt, live, branches)
    };
    children.map(show).collect()
}

fn shown(attempt: &Found, live: &[Listing], branches: Vec<Shown>) -> Shown {
    let Found { source, meta, parent } = attempt;
    let recording = source.path().to_string_lossy().into_owned();
    let session = live.iter().find(|session| session.recording.as_deref() == Some(&recording));
    Shown {
        name: source.path().file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        state: state(session, meta),
        session: session.map(|session| session.id.clone()),
        duration_ms: duration(source, meta, session.is_some()),
        at: parent.at.clone(),
        instruction: parent.instruction.clone(),
        worktree: parent.worktree.clone(),
        commit: parent.commit.clone(),
        diff_stat: session.and_then(|_| changes_now(attempt)).or_else(|| diff_stat(attempt)),
        recording,
        branches,
    }
}

/// What a program does, or how it ended.
fn state(session: Option<&Listing>, meta: &Meta) -> String {
    if let Some(session) = session {
        let asked = connect_to_watch(session, "branches", Role::Human)
            .and_then(|mut bus| bus.request(&InfoWanted::Brief, ANSWER));
        return match asked {
            Ok(info) if !info.status.done => match info.status.agent_state {
                AgentState::Unknown => info.status.state.name().to_owned(),
                state => state.name().to_owned(),
            },
            Ok(_) => ended(meta),
            Err(_) => "does not answer".to_owned(),
        };
    }
    ended(meta)
}

fn ended(meta: &Meta) -> String {
    match meta.exit {
        Some(Exit::Code(code)) => format!("exit code {code}"),
        Some(Exit::Signal(signal)) => format!("killed by signal {signal}"),
        None => "ended".to_owned(),
    }
}

/// How long an attempt has lasted.
fn duration(source: &Source, meta: &Meta, is_live: bool) -> u64 {
    let end = meta.ended_at.or_else(|| {
        if is_live {
            return Some(Clock::start().wall_start());
        }
        let modified = std::fs::metadata(source.path()).ok()?.modified().ok()?;
        Some(WallTime::ZERO + modified.duration_since(std::time::UNIX_EPOCH).ok()?)
    });
    let lasted = end.map(|end| end.since(meta.started_at)).unwrap_or_default();
    u64::try_from(lasted.as_millis()).unwrap_or(u64::MAX)
}

/// What an attempt that runs has changed so far, in its worktree.
fn changes_now(attempt: &Found) -> Option<String> {
    let worktree = Path::new(&attempt.parent.worktree);
    Repository::find(worktree).ok()?.worktree_stat(&attempt.parent.commit).ok()
}

/// What an attempt has changed: from the commit that it began with to the newest that was kept.
fn diff_stat(attempt: &Found) -> Option<String> {
    let trees = attempts::trees(&attempt.source).ok()?;
    let newest = trees.iter().rev().find(|tree| tree.provider == "git")?;
    // The worktree may be gone; the repository that it was one of has the commits, too.
    let parent = Source::find(Path::new(&attempt.parent.path), None, None).ok();
    let parents = parent.and_then(|parent| attempts::trees(&parent).ok()).unwrap_or_default();
    let folders = [&newest.folder].into_iter().chain(parents.iter().map(|tree| &tree.folder));
    let repository = folders.filter_map(|folder| Repository::find(Path::new(folder)).ok()).next()?;
    repository.diff_stat(&attempt.parent.commit, &newest.commit).ok()
}

fn describe(attempt: &Shown, depth: usize, text: &mut String) {
    let pad = "  ".repeat(depth);
    let mut line = |more: &str| text.push_str(&format!("{pad}{}\n", human::printable(more)));
    let Shown { name, at, state, .. } = attempt;
    let lasted = human::duration(std::time::Duration::from_millis(attempt.duration_ms));
    line(&format!("{name}  from {at}  {state}  {lasted}"));
    if let Some(instruction) = &attempt.instruction {
        line(&format!("  {}", human::shortened(instruction, 90)));
    }
    match attempt.diff_stat.as_deref() {
        Some("") => line("  no changes"),
        Some(stat) => stat.lines().for_each(|stat| line(&format!("  {}", stat.trim_end()))),
        None if attempt.session.is_some() => line("  its files were not kept yet"),
        None => line("  its changes are not known: the repository or its commits are gone"),
    }
    attempt.branches.iter().for_each(|attempt| describe(attempt, depth + 1, text));
}
