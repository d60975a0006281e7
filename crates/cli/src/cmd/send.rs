//! `tapdeck send`: keys for a session.

use clap::Args;
use tapdeck_proto::bus::Typing;
use tapdeck_term::keys::KeyPress;

use crate::ending::Ending;
use crate::failure::{Failure, Result};
use crate::sender::SenderArgs;

/// Send keys to a session.
#[derive(Args)]
#[command(after_help = "\
Keys have the names that tmux gives them: Enter, Tab, BSpace, Escape, Up, F5, C-c, M-x, S-Left; a
single character is itself. They are sent as the program's modes want them.

Examples:
  tapdeck send build C-c --takeover
  tapdeck send build Up Enter
  tapdeck send build : w q Enter")]
pub(crate) struct SendArgs {
    /// Id or name of the session
    #[arg(value_name = "SESSION")]
    session: String,
    /// The keys, in order
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<String>,
    #[command(flatten)]
    sender: SenderArgs,
}

pub(crate) fn run(args: &SendArgs) -> Result {
    for key in &args.keys {
        key.parse::<KeyPress>().map_err(|e| Failure::usage(e.to_string()))?;
    }
    args.sender.send(&args.session, Typing { keys: Some(args.keys.clone()), ..Typing::default() })?;
    Ok(Ending::Done)
}
