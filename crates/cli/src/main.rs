//! The `tapdeck` command: parses what was typed, runs one subcommand, and ends as it says.

use clap::Parser;

mod cmd;
mod config;
mod detached_host;
mod ending;
mod failure;
mod formats;
mod health;
mod hooks;
mod input;
mod log;
mod nearest;
mod parse;
mod place;
mod progress;
mod prompts;
mod screen;
mod scrubbing;
mod seal_key;
mod sender;
mod service_events;
mod session_args;
mod sessions;
mod snapshot_door;
mod usage;

use cmd::Command;
use ending::{Ending, Kind, Report};
use failure::Failure;
use tapdeck_cli::human;

/// Run a program on a terminal, and make the session something to record, replay, share and test.
#[derive(Parser)]
#[command(name = "tapdeck", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  tapdeck run -- vim notes.txt          run a program that cannot tell it is watched
  tapdeck rec demo.ahr -- bash          record a session, byte for byte
  tapdeck play demo.ahr                 watch it again, in its own time
  tapdeck view demo.ahr                 read and search it, move through it in time
  tapdeck play --fast demo.ahr          print everything it left on the screen and above
  tapdeck snapshot --id 42              put a snapshot of the files into the recording around it
  tapdeck convert demo.ahr -o demo.cast convert it to another format
  tapdeck verify demo.ahr               check that every block is whole
  tapdeck cassette record DIR -- top    keep a run as evidence, to make tests of
  tapdeck test cassettes/               check what programs did, without them";

fn main() {
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
