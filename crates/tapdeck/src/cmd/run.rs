//! `tapdeck run`: a program on a terminal, with nothing between it and the user that either could notice.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tapdeck_core::WinSize;
use tapdeck_host::backend::CommandSpec;
use tapdeck_host::{Ended, Launch, Outcome};

use crate::ending::{Ending, say};
use crate::parse;

/// Run a program as a live session, transparently.
#[derive(Args)]
#[command(after_help = "\
Ends as the program ends: with its exit code, or by the same signal.

Examples:
  tapdeck run                            your shell
  tapdeck run -- vim notes.txt
  tapdeck run --timeout 10m -- make test
  tapdeck run --no-pty -- sh -c 'echo out; echo err >&2' 2>errors")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    session: SessionArgs,
    /// The program and its arguments; your shell when left out
    #[arg(value_name = "CMD", trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// What `run` and `rec` have in common.
#[derive(Args)]
pub(crate) struct SessionArgs {
    /// Run in this folder
    #[arg(long, value_name = "FOLDER")]
    cwd: Option<PathBuf>,
    /// Run on pipes instead of a terminal; standard output and error stay apart
    #[arg(long)]
    no_pty: bool,
    /// Leave this terminal alone: nothing is shown, nothing is typed
    #[arg(long)]
    headless: bool,
    /// Size of the program's terminal, if not yours
    #[arg(long, value_name = "COLSxROWS", value_parser = parse::size)]
    window_size: Option<WinSize>,
    /// End the program after this long
    #[arg(long, value_name = "TIME", value_parser = parse::duration)]
    timeout: Option<Duration>,
}

impl SessionArgs {
    /// The session that these arguments describe.
    pub(crate) fn launch(&self, command: &[OsString]) -> Launch {
        let argv = if command.is_empty() {
            let shell = std::env::var_os("SHELL").filter(|s| !s.is_empty());
            vec![shell.unwrap_or_else(|| "/bin/sh".into())]
        } else {
            command.to_vec()
        };
        let mut spec = CommandSpec::new(argv);
        spec.cwd.clone_from(&self.cwd);
        let mut launch = Launch::new(spec);
        launch.no_pty = self.no_pty;
        launch.headless = self.headless;
        launch.size = self.window_size;
        launch.timeout = self.timeout;
        launch
    }

    /// Says what the exit status alone would not.
    pub(crate) fn comment_on(&self, outcome: &Outcome) {
        if outcome.left_raw {
            say("the terminal's settings could not be put back: type `stty sane`");
        }
        if outcome.ended == Ended::TimedOut {
            say(format_args!("ended after {:?}, the time limit", self.timeout.unwrap_or_default()));
        }
    }
}

pub(crate) fn run(args: &RunArgs) -> Ending {
    match args.session.launch(&args.command).run(None).outcome {
        Ok(outcome) => {
            args.session.comment_on(&outcome);
            Ending::of(&outcome)
        }
        Err(e) => {
            say(&e);
            Ending::of_launch_error(&e)
        }
    }
}
