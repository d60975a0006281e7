//! `tapdeck resize`: sets the size of a session's terminal.

use clap::Args;
use tapdeck_core::WinSize;
use tapdeck_proto::bus::{Resize, Role};

use crate::ending::Ending;
use crate::failure::Result;
use crate::parse;
use crate::sessions::{Which, ask, connect, find};

/// Resize a session's terminal.
#[derive(Args)]
#[command(
    allow_missing_positional = true,
    after_help = "Examples:\n  tapdeck resize build 120x40\n  tapdeck resize 120x40"
)]
pub(crate) struct ResizeArgs {
    #[command(flatten)]
    which: Which,
    /// The new size
    #[arg(value_name = "COLSxROWS", value_parser = parse::size, required = true)]
    size: WinSize,
}

pub(crate) fn run(args: &ResizeArgs) -> Result {
    let listing = find(args.which.session.as_deref())?;
    let mut bus = connect(&listing, "resize", Role::Human)?;
    ask(&mut bus, &Resize { cols: args.size.cols, rows: args.size.rows })?;
    Ok(Ending::Done)
}
