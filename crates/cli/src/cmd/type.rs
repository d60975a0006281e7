//! `tapdeck type`: text for a session.

use std::io::Read;

use clap::Args;
use tapdeck_proto::bus::Typing;

use crate::ending::Ending;
use crate::failure::{Failure, Result};
use crate::sender::{SenderArgs, nothing_to_send};

/// The most characters that one request carries.
const PIECE: usize = 32 * 1024;

/// Type text into a session.
#[derive(Args)]
#[command(
    override_usage = "tapdeck type [OPTIONS] SESSION TEXT\n       tapdeck type [OPTIONS] -- TEXT",
    after_help = "\
The first argument is the session. To type into the only session, put -- before the text. Line ends
are typed as Enter. Enter is not pressed after the text without --enter.

Examples:
  tapdeck type build 'make test' --enter
  tapdeck type --enter -- 'make test'      into the only session
  tapdeck type build - < script.sh"
)]
pub(crate) struct TypeArgs {
    /// Id or name of a live session, or a unique prefix
    #[arg(value_name = "SESSION")]
    session: Option<String>,
    /// The text, or `-` for standard input
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    text: Option<String>,
    /// Text behind --
    #[arg(value_name = "TEXT", last = true, hide = true, conflicts_with = "text")]
    rest: Option<String>,
    /// Press Enter after the text
    #[arg(short, long)]
    enter: bool,
    #[command(flatten)]
    sender: SenderArgs,
}

pub(crate) fn run(args: &TypeArgs) -> Result {
    let session = args.session.as_deref();
    let Some(mut text) = args.text.clone().or_else(|| args.rest.clone()) else {
        return Err(nothing_to_send(session, "text", "type"));
    };
    if text == "-" {
        text.clear();
        let read = std::io::stdin().read_to_string(&mut text);
        read.map_err(|e| Failure::io(format!("cannot read the text: {e}")))?;
    }
    if args.enter {
        text.push('\n');
    }
    let chars: Vec<char> = text.chars().collect();
    let pieces =
        chars.chunks(PIECE).map(|piece| Typing { text: Some(piece.iter().collect()), ..Typing::default() });
    args.sender.send_all(session, pieces)?;
    Ok(Ending::Done)
}
