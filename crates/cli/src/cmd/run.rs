//! `tapdeck run`: a program on a terminal, with nothing between it and the user that either could
//! notice.

use std::ffi::OsString;

use clap::Args;
use tapdeck_serve::client::Attach;

use crate::cmd::attach::{ViewArgs, attach_to};
use crate::door_args::{DoorArgs, OpenDoors};
use crate::ending::Ending;
use crate::failure::Result;
use crate::session_args::{SessionArgs, VariableArgs, hold_signals};
use crate::sessions::find_exactly;
use crate::shell_integration::ShellIntegrationArgs;
use crate::{detached_host, snapshot_door};

/// Run a program as a live session.
#[derive(Args)]
#[command(after_help = "\
Exits with the program's exit code, or by the same signal. If the program cannot be started, the
exit code is 127 (not found), 126 (not executable) or 125 (no such folder, no free terminal).

The program always gets a terminal, even if standard output is a pipe or a file: it may write colors
and progress bars, its lines end with CR LF, and standard error is merged into standard output.
--no-pty runs it on pipes instead, as a shell does.

Examples:
  tapdeck run                            your shell
  tapdeck run -- vim notes.txt
  tapdeck run --timeout 10m -- make test
  tapdeck run --shell-integration -- zsh  with exact turns; see tapdeck turns
  tapdeck run -d --name build -- bash    in the background; see tapdeck attach, ls, peek, send
  tapdeck run -A --name work             attach to work if it runs
  tapdeck run --on docker:debian:12 --mount .:/work --cwd /work -- bash
  tapdeck run --on ssh:ada@example.org   a shell on another host
  tapdeck run --bus unix:/run/user/1000/agent.sock -- claude
  tapdeck run --no-pty -- sh -c 'echo out; echo err >&2' 2>errors")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    session: SessionArgs,
    #[command(flatten)]
    doors: DoorArgs,
    #[command(flatten)]
    variables: VariableArgs,
    #[command(flatten)]
    shell: ShellIntegrationArgs,
    /// Set TAPDECK_SESSION in the program's environment
    #[arg(long)]
    export_session: bool,
    /// If a session of this name runs already, attach to it instead
    #[arg(short = 'A', long, requires = "name", conflicts_with = "detach")]
    or_attach: bool,
    /// With --headless, do not print the final screen
    #[arg(short, long)]
    quiet: bool,
    /// The program and its arguments [default: your shell]
    #[arg(value_name = "CMD", trailing_var_arg = true)]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &RunArgs) -> Result {
    if let Some(name) = args.doors.name.as_deref().filter(|_| args.or_attach)
        && let Some(listing) = find_exactly(name)?
    {
        return attach_to(&listing, ViewArgs::default().options()?, Attach::new("attach"));
    }
    let mut launch = args.session.launch(&args.command)?;
    args.variables.apply(&mut launch);
    let shell = args.shell.prepare(&launch)?;
    if args.doors.detach && !args.doors.detached_host {
        return detached_host::detach(args.session.detached_size());
    }
    if args.doors.detached_host {
        detached_host::prepare(&mut launch, &args.doors);
    }
    let _held = hold_signals()?;
    let doors = args.doors.open(&launch, None, None)?;
    if args.export_session {
        launch.command.env.extend(snapshot_door::exports(doors.as_ref().map(OpenDoors::id), None));
    }
    if let Some(shell) = &shell {
        shell.apply(&mut launch);
    }
    let mut screen = None;
    let finished = launch.run_with(None, |session| {
        screen = args.session.final_screen(&session, args.quiet, args.doors.detached_host);
        doors.and_then(|d| d.serve(session))
    });
    let outcome = finished.outcome?;
    if let Some(screen) = screen {
        screen.print();
    }
    args.session.comment_on(&outcome);
    Ok(Ending::of(&outcome))
}
