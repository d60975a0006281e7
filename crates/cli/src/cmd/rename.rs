//! `tapdeck rename`: gives a session another name.

use clap::Args;
use tapdeck_host::registry::Listing;
use tapdeck_proto::bus::{Rename, Role};

use crate::ending::Ending;
use crate::failure::{Failure, Result};
use crate::parse;
use crate::sessions::{Which, alive, ask, connect, find};

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
    let name = &args.name;
    let has =
        |other: &Listing| other.id != listing.id && (other.name.as_ref() == Some(name) || other.id == *name);
    if let Some(other) = alive()?.1.iter().find(|other| has(other)) {
        let how = format!("give another name, or end that session with tapdeck kill {}", other.id);
        return Err(Failure::usage(format!("the name {name:?} is taken by session {}: {how}", other.id)));
    }
    let mut bus = connect(&listing, "rename", Role::Human)?;
    ask(&mut bus, &Rename { name: args.name.clone() })?;
    Ok(Ending::Done)
}
