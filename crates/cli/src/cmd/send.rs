//! `tapdeck send`: keys for a session.

use clap::Args;
use tapdeck_proto::bus::Typing;
use tapdeck_term::keys::KeyPress;

use crate::ending::Ending;
use crate::failure::{Failure, Result};
use crate::sender::{SenderArgs, nothing_to_send};

/// Send keys to a session.
#[derive(Args)]
#[command(
    override_usage = "tapdeck send [OPTIONS] SESSION KEY...\n       tapdeck send [OPTIONS] -- KEY...",
    after_help = "\
The first argument is the session. To send keys to the only session, put -- before them.

Keys have tmux's names: Enter, Tab, BSpace, Escape, Up, F5, C-c, M-x, S-Left. A single character
stands for itself. Keys are encoded for the program's terminal modes.

Examples:
  tapdeck send build C-c --takeover
  tapdeck send -- C-c               to the only session
  tapdeck send build Up Enter
  tapdeck send build : w q Enter"
)]
pub(crate) struct SendArgs {
    /// Id or name of a live session, or a unique prefix
    #[arg(value_name = "SESSION")]
    session: Option<String>,
    /// The keys to send, in order
    #[arg(value_name = "KEY")]
    keys: Vec<String>,
    /// Keys behind --
    #[arg(value_name = "KEY", last = true, hide = true)]
    rest: Vec<String>,
    #[command(flatten)]
    sender: SenderArgs,
}

pub(crate) fn run(args: &SendArgs) -> Result {
    let keys: Vec<String> = args.keys.iter().chain(&args.rest).cloned().collect();
    let session = args.session.as_deref();
    if keys.is_empty() {
        return Err(nothing_to_send(session, "keys", "send"));
    }
    for key in &keys {
        key.parse::<KeyPress>().map_err(|e| Failure::usage(e.to_string()))?;
    }
    args.sender.send(session, Typing { keys: Some(keys), ..Typing::default() })?;
    Ok(Ending::Done)
}
