//! `tapdeck capture`: captures a turn at the broker.

use clap::Args;
use serde_json::json;
use tapdeck_serve::broker::Asked;
use tapdeck_serve::broker::msgpack::Value;

use crate::ending::{Ending, print, print_json};
use crate::failure::Result;
use crate::sessions::{id_or_name, split_turn_id};

/// Capture the last turn of a session, or one by its id, at the broker.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tapdeck capture claude
  tapdeck capture 4711:3 --json")]
pub(crate) struct CaptureArgs {
    /// Id or name of a session, or the id of a turn
    #[arg(value_name = "SESSION|TURN")]
    what: String,
    /// What was captured, as JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(crate) fn run(args: &CaptureArgs) -> Result {
    let mut broker = Asked::connect()?;
    let (session, number) = split_turn_id(&args.what);
    let id = id_or_name(session);
    let answer = match number {
        Some(number) => broker.ask("capture_by_id", [("turn_id", Value::Str(format!("{id}:{number}")))])?,
        None => broker.ask("capture", [("session", Value::Str(id))])?,
    };
    let text = |name: &str| answer.get(name).and_then(Value::as_str).unwrap_or("-").to_owned();
    let number = |name: &str| answer.get(name).and_then(Value::as_u64).unwrap_or(0);
    let flag = |name: &str| answer.get(name).and_then(Value::as_bool).unwrap_or(false);
    if args.json {
        let captured = json!({
            "turn_id": text("turn_id"),
            "timestamp": number("timestamp"),
            "byte_length": number("byte_length"),
            "interrupted": flag("interrupted"),
            "truncated": flag("truncated"),
        });
        print_json(&captured);
    } else {
        let cut = if flag("truncated") { ", not all of the answer" } else { "" };
        print(format_args!("captured {}, {} bytes{cut}\n", text("turn_id"), number("byte_length")));
    }
    Ok(Ending::Done)
}
