//! `tapdeck recording-text`: the process that reads a recording for a client of MCP. The server
//! starts it; it shuts itself in before it reads a byte of the recording.

use std::io::{BufWriter, stdout};
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use tapdeck_host::Source;
use tapdeck_host::sandbox::{Sandbox, limit_memory};
use tapdeck_serve::mcp::write_recording;

use crate::ending::Ending;
use crate::failure::{Failure, Result};
use crate::keys::IdentityArgs;

/// The memory that a recording may take.
const MEMORY: u64 = 1 << 30;

/// Print the text of a recording, for the server.
#[derive(Args)]
#[command(hide = true)]
pub(crate) struct RecordingTextArgs {
    /// The recording
    file: PathBuf,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(crate) fn run(args: &RecordingTextArgs) -> Result {
    let failed = |e: std::io::Error| Failure::io(e.to_string());
    args.identity.load([args.file.as_path()])?;
    limit_memory(MEMORY).map_err(failed)?;
    Sandbox { readable: Source::files(&args.file) }.enter().map_err(failed)?;
    write_recording(&args.file, BufWriter::new(stdout().lock())).map_err(failed)?;
    Ok(Ending::Done)
}

/// Makes the command that reads a recording.
pub(crate) fn command(identity: &IdentityArgs) -> impl Fn(&Path) -> Command + Send + Sync + 'static {
    crate::sandboxed::command(&["recording-text"], identity)
}
