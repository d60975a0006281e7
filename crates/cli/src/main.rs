//! The `tapdeck` command: parses what was typed, runs one subcommand, and ends as it says.

use clap::Parser;

mod cmd;
mod complete;
mod config;
mod detached_host;
mod door_args;
mod ending;
mod failure;
mod formats;
mod groups;
mod health;
mod help;
mod hooks;
mod input;
mod kept_files;
mod keys;
mod locate;
mod log;
#[cfg(feature = "raster")]
mod look_args;
mod parse;
mod place;
mod progress;
mod prompts;
#[cfg(any(feature = "mcp", feature = "web"))]
mod sandboxed;
mod screen;
mod scrubbing;
mod seal_key;
mod sender;
mod session_args;
mod sessions;
mod shell_integration;
mod snapshot_door;
mod unreadable;
mod usage;
mod version;

use cmd::Command;
use ending::{Ending, Kind, Report};
use failure::Failure;
use tapdeck_cli::human;

/// Run a program on a terminal, and record, replay, share and test the session.
#[derive(Parser)]
#[command(name = "tapdeck", version, long_version = version::long(), after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  tapdeck tour                           learn the main commands in two minutes
  tapdeck rec demo.ahr -- bash           record a session, byte for byte
  tapdeck play demo.ahr                  watch it again; ? shows the keys
  tapdeck view demo.ahr                  read it, search it, move through it in time
  tapdeck convert demo.ahr -o demo.cast  convert it to another format
  tapdeck run -d --name w -- claude      start a program in the background
  tapdeck attach w                       bring it to this terminal; Ctrl-\\ d leaves it
  tapdeck wait w --state idle            wait until the agent is idle
  tapdeck test cassettes/                check what programs did, without running them

tapdeck COMMAND --help describes a command, tapdeck man COMMAND prints its manual page.";

fn main() {
    complete::answer();
    tapdeck_host::restore_terminal_on_panic();
    let ending = match Cli::try_parse() {
        // The message has been printed, with the terminal given back, by the time this returns.
        Ok(cli) => {
            let run = || logged(&cli.command);
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(run))
                .unwrap_or(Ending::Failed(Kind::Internal))
        }
        Err(e) => usage::report(&e),
    };
    ending.end()
}

/// Runs a command, with a log of its start and its end. A server starts its log itself.
fn logged(command: &Command) -> Ending {
    if !command.starts_log()
        && let Err(why) = log::start()
    {
        return Failure::usage(why).report(Report::Text);
    }
    tracing::info!(version = env!("CARGO_PKG_VERSION"), pid = std::process::id(), "started");
    let ending = cmd::run(command);
    tracing::info!(?ending, "ended");
    ending
}
