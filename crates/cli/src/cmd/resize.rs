//! `tapdeck resize`: sets the size of a session's terminal.

use clap::Args;
use tapdeck_core::WinSize;
use tapdeck_proto::bus::{Resize, Role};

use crate::ending::Ending;
use crate::failure::Result;
use crate::parse;
use crate::sessions::{ask, connect, find};

/// Set the size of a session's terminal.
#[derive(Args)]
#[command(after_help = "Example:\n  tapdeck resize build 120x40")]
pub(crate) struct ResizeArgs {
    /// Id or name of the session
    #[arg(value_name = "SESSION")]
    session: String,
    /// The size
    #[arg(value_name = "COLSxROWS", value_parser = parse::size)]
    size: WinSize,
}

pub(crate) fn run(args: &ResizeArgs) -> Result {
    let listing = find(Some(&args.session))?;
    let mut bus = connect(&listing, "resize", Role::Human)?;
    ask(&mut bus, &Resize { cols: args.size.cols, rows: args.size.rows })?;
    Ok(Ending::Done)
}
