//! `tapdeck mark`: marks this moment in the recordings of a session.

use clap::Args;
use tapdeck_proto::bus::{Mark, Role};

use crate::ending::Ending;
use crate::failure::{Failure, Result};
use crate::sessions::{Which, around, ask, connect, find};

/// Add a marker to the recordings of a session.
#[derive(Args)]
#[command(after_help = "\
Players jump from marker to marker with [ and ], and their labels stand in exports. The marker is at
the newest output of the session. C-\\ m adds one in attach, and m in view.

Examples:
  tapdeck mark build 'tests begin'
  tapdeck mark 'tests begin'         the session around this command, or the only one
  tapdeck mark                       the same, without a label
  tapdeck mark build \"\"             without a label")]
pub(crate) struct MarkArgs {
    #[command(flatten)]
    which: Which,
    /// Label of the marker
    ///
    /// If there is one argument, it is the label.
    #[arg(value_name = "LABEL")]
    label: Option<String>,
}

pub(crate) fn run(args: &MarkArgs) -> Result {
    let (session, label) = match (args.which.session.clone(), args.label.clone()) {
        (label, None) => (None, label.unwrap_or_default()),
        (session, Some(label)) => (session, label),
    };
    if label.chars().any(char::is_control) {
        return Err(Failure::usage("a label has no line ends and no control characters"));
    }
    let listing = find(session.or_else(around).as_deref())?;
    let mut bus = connect(&listing, "mark", Role::Human)?;
    ask(&mut bus, &Mark { label })?;
    Ok(Ending::Done)
}
