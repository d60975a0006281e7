//! `tapdeck peek`: what is on a session's screen, without attaching.

use clap::Args;
use serde_json::{Value, json};

use crate::ending::{Ending, print, print_json};
use crate::failure::Result;
use crate::sessions::{Which, ask, connect, find};

/// Print a session's screen.
#[derive(Args)]
#[command(after_help = "\
--since takes the number that --json gives as \"seq\", and prints the rows that were written to
since then, those that have scrolled away included.

Examples:
  tapdeck peek build
  tapdeck peek build --scrollback | less
  tapdeck peek build --json | jq .seq
  tapdeck peek build --since 4096")]
pub(crate) struct PeekArgs {
    #[command(flatten)]
    which: Which,
    /// With colours
    #[arg(long, conflicts_with = "json")]
    ansi: bool,
    /// Rows, styles, cursor, modes, title and place, as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// The rows that scrolled away, too
    #[arg(long)]
    scrollback: bool,
    /// Only what was written since this place in the output
    #[arg(long, value_name = "SEQ", conflicts_with_all = ["scrollback", "ansi"])]
    since: Option<u64>,
}

pub(crate) fn run(args: &PeekArgs) -> Result {
    let listing = find(args.which.session.as_deref())?;
    let mut bus = connect(&listing, "peek", "observer")?;
    let request = json!({"ansi": args.ansi, "scrollback": args.scrollback, "since": args.since});
    let frame = ask(&mut bus, "SNAP", &request.to_string())?;
    if args.json {
        print_json(&frame);
        return Ok(Ending::Done);
    }
    let key = if args.ansi {
        "ansi"
    } else if args.since.is_some() || args.scrollback {
        "lines"
    } else {
        "rows"
    };
    let rows: Vec<&str> = frame[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    // Empty rows below the last one that is used say nothing.
    let used = rows.iter().rposition(|r| !r.is_empty()).map_or(0, |i| i + 1);
    for row in &rows[..used] {
        print(format_args!("{row}\n"));
    }
    Ok(Ending::Done)
}
