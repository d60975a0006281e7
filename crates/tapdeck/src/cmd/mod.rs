//! The subcommands, one file each.

use clap::Subcommand;

use crate::ending::Ending;

mod info;
mod rec;
mod run;
mod verify;

/// What to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    Run(run::RunArgs),
    Rec(rec::RecArgs),
    Verify(verify::VerifyArgs),
    Info(info::InfoArgs),
}

/// Runs a subcommand.
pub(crate) fn run(command: Command) -> Ending {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Rec(args) => rec::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Info(args) => info::run(&args),
    }
}
