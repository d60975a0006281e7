//! `tapdeck rename`: gives a session another name.

use clap::Args;
use tapdeck_proto::bus::{Rename, Role};

use crate::ending::Ending;
use crate::failure::Result;
use crate::parse;
use crate::sessions::{Which, ask, connect, find};

/// Rename a session.
#[derive(Args)]
#[command(
    allow_missing_positional = true,
    after_help = "\
The name must not be that of another live session.

Examples:
  tapdeck rename build nightly
  tapdeck rename nightly            the only session
  tapdeck rename 4711 build"
)]
pub(crate) struct RenameArgs {
    #[command(flatten)]
    which: Which,
    /// The new name
    #[arg(value_name = "NAME", value_parser = parse::session_name, required = true)]
    name: String,
}

pub(crate) fn run(args: &RenameArgs) -> Result {
    let listing = find(args.which.session.as_deref())?;
    let mut bus = connect(&listing, "rename", Role::Human)?;
    ask(&mut bus, &Rename { name: args.name.clone() })?;
    Ok(Ending::Done)
}
