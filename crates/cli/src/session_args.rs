//! The arguments that describe a session to be started, for every command that starts one.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tapdeck_core::WinSize;
use tapdeck_host::backend::{CommandSpec, Descriptors};
use tapdeck_host::{Ended, Glass, Handle, HeldSignals, Launch, LaunchError, Outcome, Session};

use crate::ending::{print, say};
use crate::failure::{Failure, Result};
use crate::parse;
use crate::place::PlaceArgs;

/// The program's environment.
#[derive(Args, Clone)]
pub(crate) struct VariableArgs {
    /// Set an environment variable: NAME=VALUE, or with --on just NAME to pass yours
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = parse::variable, hide_short_help = true)]
    env: Vec<(String, Option<OsString>)>,
}

impl VariableArgs {
    pub(crate) fn apply(&self, launch: &mut Launch) {
        apply(&self.env, launch);
    }
}

fn apply(env: &[(String, Option<OsString>)], launch: &mut Launch) {
    for (name, value) in env {
        let value = value.clone().or_else(|| std::env::var_os(name));
        launch.command.env.extend(value.map(|value| (name.into(), Some(value))));
    }
}

/// The program's environment, and what of it is recorded.
#[derive(Args, Clone)]
pub(crate) struct RecordedVariableArgs {
    /// Note this environment variable in the recording: NAME; or set it for the program:
    /// NAME=VALUE; repeatable
    ///
    /// No variable is in a recording unless you name it. A variable that you set is not noted. With
    /// --on, NAME passes your variable to the program, and is not noted either.
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = parse::variable, hide_short_help = true)]
    env: Vec<(String, Option<OsString>)>,
}

impl RecordedVariableArgs {
    pub(crate) fn apply(&self, launch: &mut Launch) {
        apply(&self.env, launch);
    }

    /// The variables to note in the recording. Elsewhere than here, a name passes a variable on,
    /// which may be a secret.
    pub(crate) fn recorded(&self, is_local: bool) -> Vec<(String, String)> {
        let named = self.env.iter().filter(|(_, value)| is_local && value.is_none());
        let value = |name: &String| Some(std::env::var_os(name)?.to_string_lossy().into_owned());
        named.filter_map(|(name, _)| Some((name.clone(), value(name)?))).collect()
    }
}

/// How the program is run.
#[derive(Args, Clone)]
pub(crate) struct SessionArgs {
    /// Working directory of the program
    #[arg(long, value_name = "FOLDER")]
    cwd: Option<PathBuf>,
    /// Run on pipes instead of a terminal, with separate standard output and error
    #[arg(long, hide_short_help = true)]
    no_pty: bool,
    /// Do not use this terminal; only print the final screen at the end
    #[arg(long)]
    headless: bool,
    /// Size of the program's terminal [default: that of your terminal]
    #[arg(long, alias = "window-size", value_name = "COLSxROWS", value_parser = parse::size)]
    size: Option<WinSize>,
    /// Stop the program after this time
    #[arg(long, value_name = "TIME", value_parser = parse::duration, hide_short_help = true)]
    timeout: Option<Duration>,
    #[command(flatten)]
    place: PlaceArgs,
}

impl SessionArgs {
    /// Describes the session that these arguments ask for.
    pub(crate) fn launch(&self, command: &[OsString]) -> Result<Launch> {
        let place = self.place.place().map_err(Failure::usage)?;
        let argv = if command.is_empty() && place.is_local() {
            let shell = std::env::var_os("SHELL").filter(|s| !s.is_empty());
            vec![shell.unwrap_or_else(|| "/bin/sh".into())]
        } else {
            command.to_vec()
        };
        let mut spec = CommandSpec::new(argv);
        spec.cwd.clone_from(&self.cwd);
        spec.descriptors = Descriptors::inherited();
        let mut launch = Launch::new(spec);
        launch.place = place;
        launch.no_pty = self.no_pty;
        launch.headless = self.headless;
        launch.size = self.size;
        launch.timeout = self.timeout;
        Ok(launch)
    }

    /// The size of this terminal for a detached session, unless another was asked for.
    pub(crate) fn detached_size(&self) -> Option<WinSize> {
        if self.size.is_some() {
            return None;
        }
        tapdeck_host::terminal_size()
    }

    /// What shows the final screen of a session without a terminal, if that is to be printed.
    pub(crate) fn final_screen(&self, session: &Session, quiet: bool, detached: bool) -> Option<FinalScreen> {
        let wanted = self.headless && !quiet && !detached;
        wanted.then(|| FinalScreen { glass: session.glass.clone(), handle: session.handle.clone() })
    }

    /// Prints what the exit status does not tell.
    pub(crate) fn comment_on(&self, outcome: &Outcome) {
        if outcome.left_raw {
            say("the terminal's settings could not be put back: type `stty sane`");
        }
        if let Ended::OutputFailed(error) = outcome.ended {
            let why = std::io::Error::from_raw_os_error(error);
            say(format_args!("cannot write the output: {why}; the program was hung up on"));
        }
        if outcome.ended == Ended::RecordingFailed {
            say("the program was ended because its recording failed (--strict)");
        }
        if outcome.ended == Ended::TimedOut {
            say(format_args!("ended after {:?}, the time limit", self.timeout.unwrap_or_default()));
        }
    }
}

/// The final screen of a session without a terminal.
pub(crate) struct FinalScreen {
    glass: Glass,
    handle: Handle,
}

impl FinalScreen {
    /// Prints the rows down to the last one with text. The session has ended.
    pub(crate) fn print(&self) {
        let rows: Vec<String> = {
            let look = self.glass.look(&self.handle);
            look.term().screen().map(|line| line.text()).collect()
        };
        let used = rows.iter().rposition(|row| !row.trim_end().is_empty()).map_or(0, |last| last + 1);
        for row in &rows[..used] {
            print(format_args!("{}\n", row.trim_end()));
        }
    }
}

/// Holds signals back until the session handles them, so that its files and sockets are always
/// removed.
pub(crate) fn hold_signals() -> Result<HeldSignals> {
    Ok(HeldSignals::hold().map_err(LaunchError::Setup)?)
}
