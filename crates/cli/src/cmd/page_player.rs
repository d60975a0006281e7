//! `tapdeck page-player`: the process that plays a recording for a browser. The page starts it; it
//! shuts itself in before it reads a byte of the recording.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use tapdeck_host::Source;
use tapdeck_host::sandbox::{Sandbox, limit_memory};
use tapdeck_serve::web::play_recording;

use crate::ending::Ending;
use crate::failure::{Failure, Result};
use crate::keys::IdentityArgs;

/// The memory that a recording may take: an index with keyframes and the scrollback are a fraction
/// of it.
const MEMORY: u64 = 1 << 30;

/// Play a recording for the page, at standard input.
#[derive(Args)]
#[command(hide = true)]
pub(crate) struct PagePlayerArgs {
    /// The recording
    file: PathBuf,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(crate) fn run(args: &PagePlayerArgs) -> Result {
    let failed = |e: std::io::Error| Failure::io(format!("cannot play {}: {e}", args.file.display()));
    let page = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned().map_err(failed)?);
    args.identity.load([args.file.as_path()])?;
    limit_memory(MEMORY).map_err(failed)?;
    Sandbox { readable: Source::files(&args.file) }.enter().map_err(failed)?;
    play_recording(&args.file, page).map_err(failed)?;
    Ok(Ending::Done)
}

/// Makes the command that plays a recording for the page.
pub(crate) fn command(identity: &IdentityArgs) -> impl Fn(&Path) -> Command + Send + Sync + 'static {
    let identity = identity.file().map(|file| [OsString::from("--identity"), file.into_os_string()]);
    move |recording| {
        #[expect(clippy::disallowed_methods, reason = "it starts this program itself, not a session's")]
        let mut command = Command::new("/proc/self/exe");
        // What else the environment holds is not for a process that may be taken over.
        let kept = ["HOME", "XDG_STATE_HOME", "TAPDECK_LOG"];
        command.env_clear().envs(kept.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.arg0("tapdeck").arg("page-player").args(identity.iter().flatten()).arg("--").arg(recording);
        command
    }
}
