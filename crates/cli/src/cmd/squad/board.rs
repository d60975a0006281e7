//! `tapdeck squad board`: the sessions of a squad side by side.
#![cfg(feature = "tui")]

use clap::Args;

use super::locate::Which;
use crate::cmd::dash;
use crate::failure::Result;

/// Show the sessions of a squad side by side.
///
/// The same as `tapdeck dash` with a filter.
#[derive(Args)]
#[command(after_help = "\
The keys are those of tapdeck dash; ? shows them.

Example:
  tapdeck squad board")]
pub(crate) struct BoardArgs {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    dash: dash::DashArgs,
}

pub(crate) fn run(args: &BoardArgs) -> Result {
    let found = args.which.find()?;
    dash::show_filtered(&args.dash, &format!("{}/", found.name))
}
