//! `tapdeck squad up`: starts what does not run, and supervises it.

use std::ffi::OsString;

use clap::Args;
use rustix::process::setsid;
use tapdeck::squad::State;

use super::locate::{self, Supervision, Which};
use super::supervisor::{NOT_STARTED, Supervisor};
use crate::detached_host;
use crate::ending::{Ending, Kind, print};
use crate::failure::{Failure, Result};

/// Start the agents of a squad that do not run, and supervise them.
#[derive(Args)]
#[command(after_help = "\
Agents that run already are left alone, so up can be repeated: after a change of the file, after a
reboot, at login. The new supervisor takes over from the one before.

The supervisor sends first prompts, passes answers on, holds the vote and restarts agents. Ctrl-C ends
the supervisor; the agents go on. tapdeck squad down ends them, too.

Examples:
  tapdeck squad up
  tapdeck squad up -d work/squad.toml")]
pub(crate) struct UpArgs {
    #[command(flatten)]
    which: Which,
    /// Supervise in the background: return when the first agents run
    #[arg(short, long)]
    detach: bool,
    /// This process is the supervisor in the background
    #[arg(long, hide = true)]
    supervisor: bool,
}

pub(crate) fn run(args: &UpArgs) -> Result {
    let found = args.which.find()?;
    // The file is read before anything is stopped.
    let squad = locate::read(&found.file)?;
    if args.detach && !args.supervisor {
        let file = found.file.into_os_string();
        let args = ["squad", "up", "--supervisor"].map(OsString::from).into_iter().chain([file]);
        print(format_args!("{}\n", detached_host::start(args.collect())?.replace('\t', "\n")));
        // The supervisor has written down by now what could not be started.
        let state = State::load(&squad.name)?.unwrap_or_default();
        let failed = state.agents.values().any(|saved| saved.ended.as_deref() == Some(NOT_STARTED));
        return Ok(if failed { Ending::Failed(Kind::Check) } else { Ending::Done });
    }
    if args.supervisor {
        // Fails for the leader of a process group, which its parent has put into a session already.
        let _ = setsid();
    }
    let supervision = Supervision::take_over(&squad.name)?;
    let mut supervisor = Supervisor::new(squad, !args.supervisor)?;
    let ended = supervisor.run(|summary| {
        if args.supervisor {
            detached_host::announce(&summary.replace('\n', "\t"));
        }
    });
    drop(supervision);
    ended.map_err(|e| Failure::io(format!("the supervisor failed: {e}")))
}
