//! `tapdeck page-player`: the process that plays a recording for a browser. The page starts it; it
//! shuts itself in before it reads a byte of the recording.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use tapdeck_host::Source;
use tapdeck_host::sandbox::{Sandbox, limit_memory};
use tapdeck_serve::web::{RecordingTask, describe_recording, play_recording, recording_text};

use crate::ending::Ending;
use crate::failure::{Failure, Result};
use crate::keys::IdentityArgs;
use crate::sandboxed;

/// The memory that a recording may take: an index with keyframes and the scrollback are a fraction
/// of it.
const MEMORY: u64 = 1 << 30;

/// Play a recording for the page, at standard input.
#[derive(Args)]
#[command(hide = true)]
pub(crate) struct PagePlayerArgs {
    /// The recording
    file: PathBuf,
    /// Write a description of it instead
    #[arg(long)]
    describe: bool,
    /// Write its lines instead
    #[arg(long, conflicts_with = "describe")]
    text: bool,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(crate) fn run(args: &PagePlayerArgs) -> Result {
    let failed = |e: std::io::Error| Failure::io(format!("cannot play {}: {e}", args.file.display()));
    let page = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned().map_err(failed)?);
    args.identity.load([args.file.as_path()])?;
    limit_memory(MEMORY).map_err(failed)?;
    Sandbox { readable: Source::files(&args.file) }.enter().map_err(failed)?;
    let done = match (args.describe, args.text) {
        (true, _) => describe_recording(&args.file, page),
        (_, true) => recording_text(&args.file, page),
        _ => play_recording(&args.file, page),
    };
    done.map_err(failed)?;
    Ok(Ending::Done)
}

/// Makes the command that plays a recording for the page.
pub(crate) fn command(
    identity: &IdentityArgs,
) -> impl Fn(&Path, RecordingTask) -> Command + Send + Sync + 'static {
    let play = sandboxed::command(&["page-player"], identity);
    let describe = sandboxed::command(&["page-player", "--describe"], identity);
    let text = sandboxed::command(&["page-player", "--text"], identity);
    move |recording, task| match task {
        RecordingTask::Play => play(recording),
        RecordingTask::Describe => describe(recording),
        RecordingTask::Text => text(recording),
    }
}
