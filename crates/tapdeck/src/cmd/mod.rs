//! The subcommands, one file each.

use clap::Subcommand;

use crate::ending::{Ending, code, output_failed, say};

mod branch_points;
mod cassette;
mod convert;
mod index;
mod info;
mod ipc;
mod play;
mod rec;
mod render;
mod repair;
mod run;
mod scrub;
mod snapshot;
mod test;
mod verify;
#[cfg(feature = "tui")]
mod view;

/// What to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    Run(run::RunArgs),
    Rec(rec::RecArgs),
    Snapshot(snapshot::SnapshotArgs),
    Play(play::PlayArgs),
    #[cfg(feature = "tui")]
    View(view::ViewArgs),
    Convert(convert::ConvertArgs),
    Verify(verify::VerifyArgs),
    Repair(repair::RepairArgs),
    Index(index::IndexArgs),
    BranchPoints(branch_points::BranchPointsArgs),
    Info(info::InfoArgs),
    Cassette(cassette::CassetteArgs),
    Test(test::TestArgs),
    Scrub(scrub::ScrubCommand),
    /// Feed bytes to the terminal model and print the final screen
    Render(render::RenderArgs),
}

/// Runs a subcommand.
pub(crate) fn run(command: Command) -> Ending {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Rec(args) => rec::run(&args),
        Command::Snapshot(args) => snapshot::run(&args),
        Command::Play(args) => play::run(&args),
        #[cfg(feature = "tui")]
        Command::View(args) => view::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Repair(args) => repair::run(&args),
        Command::Index(args) => index::run(&args),
        Command::BranchPoints(args) => branch_points::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Cassette(args) => cassette::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Scrub(args) => scrub::run(&args),
        Command::Render(args) => outcome(render::run(&args)),
    }
}

/// The ending of a command that reports its errors as a chain of causes.
fn outcome(result: anyhow::Result<()>) -> Ending {
    let Err(e) = result else { return Ending::Code(0) };
    match e.root_cause().downcast_ref::<std::io::Error>() {
        Some(io) if io.kind() == std::io::ErrorKind::BrokenPipe => output_failed(io),
        Some(io) if io.kind() == std::io::ErrorKind::NotFound => {
            say(format_args!("{e:#}"));
            Ending::Code(code::NOT_FOUND)
        }
        _ => {
            say(format_args!("{e:#}"));
            Ending::Code(code::IO)
        }
    }
}
