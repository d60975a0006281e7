//! `tapdeck tail`: prints what a session writes.

use clap::Args;
use serde_json::json;

use crate::ending::{Ending, print_bytes, say};
use crate::failure::Result;
use crate::sessions::{Which, ask, connect, find};

/// Print what a session has written lately, byte for byte.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tapdeck tail build             what it still remembers
  tapdeck tail -f build          and go on with what it writes from now on
  tapdeck tail -f build | grep --line-buffered error")]
pub(crate) struct TailArgs {
    #[command(flatten)]
    which: Which,
    /// Go on until the program ends
    #[arg(short, long)]
    follow: bool,
    /// Begin at this place in the output instead of 64 KB back
    #[arg(long, value_name = "SEQ")]
    since: Option<u64>,
}

pub(crate) fn run(args: &TailArgs) -> Result {
    let listing = find(args.which.session.as_deref())?;
    let mut bus = connect(&listing, "tail", "observer")?;
    let info = ask(&mut bus, "INFO", "brief")?;
    let end = info["seq"].as_u64().unwrap_or(0);
    let since = args.since.unwrap_or_else(|| end.saturating_sub(64 * 1024));
    bus.send("SUB", &json!({"frames": "none", "since": since}).to_string())?;
    let mut at = since.min(end);
    while args.follow || at < end {
        let Some(frame) = bus.next(None)? else { break };
        match frame.verb.as_str() {
            "OUT" => {
                let text: String = serde_json::from_str(&frame.payload).unwrap_or_default();
                let mut bytes: Vec<u8> =
                    text.chars().filter_map(|c| u8::try_from(u32::from(c)).ok()).collect();
                if !args.follow {
                    // Output after the request is only for --follow.
                    bytes.truncate(usize::try_from(end - at).unwrap_or(usize::MAX));
                }
                at += bytes.len() as u64;
                print_bytes(&bytes);
            }
            "EVENT" => {
                let event = frame.json();
                match event["name"].as_str() {
                    Some("GAP") => {
                        at = event["to"].as_u64().unwrap_or(at);
                        say(format_args!("{} bytes are missing here", event["bytes"]));
                    }
                    Some("CLOSED") => break,
                    _ => {}
                }
            }
            _ => {}
        }
    }
    Ok(Ending::Done)
}
