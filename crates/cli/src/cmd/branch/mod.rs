//! `tapdeck branch`: goes back to a moment of a recorded session and continues differently from
//! there, with the files as they were.

mod attempts;
mod compare;
mod moment;
mod tree;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tapdeck::trees::{Repository, TreeError};
use tapdeck_core::WallTime;
use tapdeck_host::{Source, disk};
use tapdeck_proto::bus::{Outcome, Role};
use tapdeck_tape::RecordedTree;
use tapdeck_tape::meta::{Meta, Parent};

use crate::ending::{Ending, Kind, print, print_json, say};
use crate::failure::{Failure, Result};
use crate::input::InputArgs;
use crate::prompts::{Delivery, is_delivered};
use crate::sessions::{connect, find};
use crate::{detached_host, human, parse};
use moment::Where;

pub(crate) use tree::{BranchesArgs, list};

/// The size of a terminal that the recording does not know.
const SIZE: (u16, u16) = (120, 40);

/// What belongs to a new attempt alone.
const NOT_COMPARED: [&str; 8] =
    ["file", "at", "instruction", "worktree", "no_resume", "agent", "prompt", "command"];

/// Go back to a moment of a recorded session and continue from there.
#[derive(Args)]
#[command(after_help = "\
Needs a recording made with rec --snapshots git. Takes the newest files that were kept before the
moment, makes a git worktree of them, and starts the program there as a detached session, recorded
with its own snapshots. Your own working tree, branches and index stay as they are.

Moments:
  turn:2     the end of turn 2; turn:0 is the start of the session
  line:120   the last change of line 120, as tapdeck branch-points numbers them
  1:23, 90s  a time since the start; 50% is half of it
  @LABEL     a marker or snapshot
  byte:4096  an offset in the output

Without CMD, the recorded command is started. An agent that can resume its conversation does so, if
its rules say how and the recording has the conversation's id.

--json prints the session, worktree, commit and parent.

--compare shows the last screens of two attempts side by side, and the difference of the files that
were kept last. It takes the names that tapdeck branches shows, or recordings. The exit code is 0 if
screens and files are equal, and 1 if they differ.

Examples:
  tapdeck branch demo.ahr --at turn:2 --instruction 'Use a queue instead'
  tapdeck branch demo.ahr --at line:120 -- bash
  tapdeck branch demo.ahr --at turn:2 --json | jq -r .worktree
  tapdeck branches demo.ahr
  tapdeck branch --compare demo-1 demo-2")]
pub(crate) struct BranchArgs {
    /// The recording
    #[arg(value_name = "FILE", required_unless_present = "compare")]
    file: Option<PathBuf>,
    /// The moment to go back to: turn:N, line:N, byte:N, a time, a share or @LABEL
    #[arg(long, value_name = "WHERE", value_parser = Where::parse, required_unless_present = "compare")]
    at: Option<Where>,
    /// Compare the screens and files of two attempts
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with_all = NOT_COMPARED)]
    compare: Option<Vec<PathBuf>>,
    /// Prompt for the program, submitted when it is ready
    #[arg(long, value_name = "TEXT")]
    instruction: Option<String>,
    /// Folder for the worktree; it must not exist or be empty [default: in Tapdeck's state folder]
    #[arg(long, value_name = "DIR")]
    worktree: Option<PathBuf>,
    /// The repository with the kept files, if it was moved
    #[arg(long, value_name = "DIR")]
    repository: Option<PathBuf>,
    /// Start a new conversation, even if the agent can resume the recorded one
    #[arg(long)]
    no_resume: bool,
    /// Agent rules for detecting turns and states [default: those for the command]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Regular expression for the program's prompt, as with rec
    #[arg(long, value_name = "RE")]
    prompt: Option<String>,
    /// Timeout of each step of submitting the instruction
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse::duration)]
    timeout: Duration,
    #[command(flatten)]
    input: InputArgs,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    /// The program and its arguments, after `--` [default: the recorded command]
    #[arg(value_name = "CMD", last = true)]
    command: Vec<OsString>,
}

/// Whether a session can be branched by the files that were kept with its recording.
#[cfg(feature = "tui")]
pub(crate) fn has_kept_files(source: &Source) -> bool {
    attempts::trees(source).is_ok_and(|trees| trees.iter().any(|tree| tree.provider == "git"))
}

pub(crate) fn run(args: &BranchArgs) -> Result {
    match (&args.compare, &args.file, &args.at) {
        (Some(names), _, _) => compare::compare(args, names),
        (None, Some(file), Some(at)) => {
            branch(args, file, at).map_err(|failure| failure.about("file", file.to_string_lossy()))
        }
        _ => Err(Failure::usage("give a recording and --at")),
    }
}

fn branch(args: &BranchArgs, file: &Path, at: &Where) -> Result {
    let source = args.input.find(file)?;
    let path = file.canonicalize().map_err(|e| Failure::file(file, &e))?;
    let shown = human::printable(&file.to_string_lossy());
    let trees = attempts::trees(&source)?;
    if trees.is_empty() {
        let why = attempts::not_kept(&source)?.map(|why| human::printable(&why));
        let why = why.unwrap_or_else(|| "record with rec --snapshots git".into());
        return Err(Failure::not_found(format!("{shown}: no files were kept with it: {why}")));
    }
    let tree = at.tree_before(&source, &trees)?;
    let meta = source.meta().unwrap_or_default();
    let repository = repository(tree, args.repository.as_deref())?;
    let command = command(args, &source, &meta, tree.at)?;
    let attempt = attempts::name(&path)?;
    let worktree = match &args.worktree {
        Some(given) => std::path::absolute(given)?,
        None => attempt.worktree.clone(),
    };
    let failed = |e: std::io::Error| Failure::write(&attempt.recording, &e);
    disk::create_folders(&attempts::folder()).map_err(failed)?;
    repository.restore(&tree.commit, &worktree).map_err(refused)?;
    let parent = Parent {
        path: path.to_string_lossy().into_owned(),
        started_at: meta.started_at,
        at: at.text().to_owned(),
        snapshot: tree.snapshot,
        commit: tree.commit.clone(),
        worktree: worktree.to_string_lossy().into_owned(),
        instruction: args.instruction.clone(),
    };
    let mut host = host_args(&attempt, &worktree.join(&tree.below), &meta, &parent)?;
    for (option, value) in [("--agent", &args.agent), ("--prompt", &args.prompt)] {
        host.extend(value.as_ref().map(|value| OsString::from(format!("{option}={value}"))));
    }
    host.push("--".into());
    host.extend(command);
    let session = detached_host::start_quietly(host, Vec::new()).inspect_err(|_| {
        // Nothing was done in it yet. The first error is the one to report.
        let _ = repository.remove_worktree(&worktree);
    })?;
    attempts::wait_for(&attempt.recording);
    if args.json {
        print_json(&json!({
            "session": session, "name": attempt.name, "worktree": worktree.to_string_lossy(),
            "commit": tree.commit, "recording": attempt.recording.to_string_lossy(), "parent": parent,
        }));
    } else {
        let files = human::printable(&worktree.to_string_lossy());
        print(format_args!(
            "session {session} ({}) in {files}\nfiles of {}, turn {}\n",
            attempt.name,
            human::moment(tree.at),
            tree.turn
        ));
    }
    match &args.instruction {
        Some(text) => instruct(&session, text, args.timeout),
        None => Ok(Ending::Done),
    }
}

/// The repository that has the files.
fn repository(tree: &RecordedTree, given: Option<&Path>) -> Result<Repository> {
    if tree.provider != "git" {
        let (id, provider) = (human::printable(&tree.commit), &tree.provider);
        return Err(Failure::usage(format!(
            "the files of that moment were kept by a {provider}, as {id:?}: put them back with it, and start the program there"
        )));
    }
    let folder = given.unwrap_or(Path::new(&tree.folder));
    let moved = "give --repository if it was moved, or masked in the recording";
    if !folder.is_dir() {
        return Err(Failure::not_found(format!("there is no folder {}: {moved}", folder.display())));
    }
    let repository = Repository::find(folder).map_err(|e| match e {
        TreeError::NoRepository(_) => Failure::not_found(format!("{e} any more: {moved}")),
        e => refused(e),
    })?;
    if !repository.has_commit(&tree.commit).map_err(refused)? {
        let (commit, root) = (&tree.commit, repository.root.display());
        if given.is_some() {
            return Err(Failure::not_found(format!(
                "{root} does not have commit {commit}: the files were kept in the repository of {}",
                human::printable(&tree.folder)
            )));
        }
        return Err(Failure::not_found(format!(
            "{root} does not have commit {commit} any more: its reference {} was deleted",
            tree.reference.as_deref().unwrap_or_default()
        )));
    }
    Ok(repository)
}

#[expect(clippy::needless_pass_by_value, reason = "handed to map_err")]
fn refused(e: TreeError) -> Failure {
    match e {
        TreeError::Taken(_) => Failure::usage(format!("{e}: name another folder with --worktree")),
        _ => Failure::io(e.to_string()),
    }
}

/// The command of the new session.
fn command(args: &BranchArgs, source: &Source, meta: &Meta, until: WallTime) -> Result<Vec<OsString>> {
    if !args.command.is_empty() {
        return Ok(args.command.clone());
    }
    let recorded: Vec<OsString> = meta.argv().into_iter().map(OsString::from_vec).collect();
    if recorded.is_empty() {
        let path = source.path().display();
        return Err(Failure::usage(format!("{path} does not say what was run: give a command after --")));
    }
    let conversation = match args.no_resume {
        true => None,
        false => attempts::conversation(source, until)?,
    };
    let words = || meta.cmd_b64.is_none().then_some(&meta.cmd);
    if let Some((conversation, words)) = conversation.zip(words())
        && let Some(resumed) = tapdeck::turns::load()?.resumed(&conversation.agent, words, &conversation.id)
    {
        return Ok(resumed.into_iter().map(OsString::from).collect());
    }
    Ok(recorded)
}

/// The arguments of the host that runs and records the session.
fn host_args(
    attempt: &attempts::Attempt,
    folder: &Path,
    meta: &Meta,
    parent: &Parent,
) -> Result<Vec<OsString>> {
    let (cols, rows) = if meta.cols > 0 && meta.rows > 0 { (meta.cols, meta.rows) } else { SIZE };
    let parent = serde_json::to_string(parent).map_err(|e| Failure::internal(e.to_string()))?;
    let mut args: Vec<OsString> =
        ["rec", "--detached-host", "--snapshots=git", "--name"].map(Into::into).to_vec();
    args.push(attempt.name.clone().into());
    args.push(format!("--size={cols}x{rows}").into());
    args.push(format!("--parent={parent}").into());
    args.push("--cwd".into());
    args.push(folder.into());
    args.push(attempt.recording.clone().into());
    Ok(args)
}

/// Submits the instruction once the program is ready.
fn instruct(session: &str, text: &str, step_limit: Duration) -> Result {
    let listing = find(Some(session))?;
    let mut bus = connect(&listing, "branch", Role::Human)?;
    let delivery = Delivery { enter: true, raw: false, clear: false, queue: true, step_limit };
    let outcome = delivery.paste(&mut bus, text)?;
    if is_delivered(&outcome) {
        return Ok(Ending::Done);
    }
    let why = human::printable(&outcome.evidence);
    say(format_args!(
        "the instruction was not submitted, {}: {why}; submit it with tapdeck paste {session}",
        outcome.outcome.name()
    ));
    Ok(Ending::Failed(if outcome.outcome == Outcome::Blocked { Kind::AsksBack } else { Kind::Check }))
}
