//! `tapdeck cassette`: golden masters, a folder of evidence about one run that tests are made of.

mod frames;
mod record;
mod verify;

use clap::{Args, Subcommand};

pub(crate) use verify::check_one;

use crate::ending::Report;
use crate::failure::Result;

/// Record, check and rebuild cassettes: recorded runs for tests that need no program.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tapdeck cassette record hello -- sh -c 'echo hello'
  tapdeck cassette verify hello
  tapdeck cassette frames --show hello
  tapdeck convert hello -o hello.ahr     like any other recording")]
pub(crate) struct CassetteArgs {
    #[command(subcommand)]
    command: CassetteCommand,
}

#[derive(Subcommand)]
enum CassetteCommand {
    Record(Box<record::RecordArgs>),
    Verify(verify::VerifyArgs),
    Frames(frames::FramesArgs),
}

impl CassetteArgs {
    pub(super) fn report(&self) -> Report {
        match &self.command {
            CassetteCommand::Record(args) if args.json => Report::JsonBeside,
            _ => Report::Text,
        }
    }
}

pub(crate) fn run(args: &CassetteArgs) -> Result {
    match &args.command {
        CassetteCommand::Record(args) => record::run(args),
        CassetteCommand::Verify(args) => verify::run(args),
        CassetteCommand::Frames(args) => frames::run(args),
    }
}
