//! `tapdeck type`: text for a session.

use std::io::Read;

use clap::Args;
use tapdeck_proto::bus::Typing;

use crate::ending::Ending;
use crate::failure::{Failure, Result};
use crate::sender::SenderArgs;

/// The most characters that one request carries.
const PIECE: usize = 32 * 1024;

/// Type text into a session.
#[derive(Args)]
#[command(after_help = "\
Line ends are typed as Enter. Nothing else is added: --enter presses Enter at the end.

Examples:
  tapdeck type build 'make test' --enter
  tapdeck type build - < script.sh")]
pub(crate) struct TypeArgs {
    /// Id or name of the session
    #[arg(value_name = "SESSION")]
    session: String,
    /// The text; `-` for standard input
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    text: String,
    /// Press Enter at the end
    #[arg(short, long)]
    enter: bool,
    #[command(flatten)]
    sender: SenderArgs,
}

pub(crate) fn run(args: &TypeArgs) -> Result {
    let mut text = args.text.clone();
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
    args.sender.send_all(&args.session, pieces)?;
    Ok(Ending::Done)
}
