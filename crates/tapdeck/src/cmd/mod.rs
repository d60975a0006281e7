//! The subcommands, one file each.

use clap::Subcommand;

use crate::ending::Ending;

mod run;

/// What to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    Run(run::RunArgs),
}

/// Runs a subcommand.
pub(crate) fn run(command: Command) -> Ending {
    match command {
        Command::Run(args) => run::run(&args),
    }
}
