//! `tapdeck explain`: the state of a session's program, and the rule that found it.

use std::time::Duration;

use clap::Args;

use crate::ending::{Ending, print, print_json};
use crate::failure::Result;
use crate::human;
use crate::sessions::{Which, ask, connect, find};

/// Say what a session's program is doing, and why that is thought.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tapdeck explain build
  tapdeck explain build --json")]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    which: Which,
    /// As JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(crate) fn run(args: &ExplainArgs) -> Result {
    let listing = find(args.which.session.as_deref())?;
    let mut bus = connect(&listing, "explain", "observer")?;
    let value = ask(&mut bus, "EXPLAIN", "")?;
    if args.json {
        print_json(&value);
        return Ok(Ending::Done);
    }
    let text = |key: &str| human::printable(value[key].as_str().unwrap_or("-"));
    let since = Duration::from_millis(value["since_ms"].as_u64().unwrap_or(0));
    print(format_args!("state     {} for {}\n", text("state"), human::duration(since)));
    print(format_args!("because   {} ({})\n", text("rule"), text("evidence")));
    for row in value["rows"].as_array().into_iter().flatten() {
        let line = human::printable(row["text"].as_str().unwrap_or(""));
        print(format_args!("row {:<5} {line}\n", row["row"].as_u64().unwrap_or(0)));
    }
    print(format_args!("rules     {}\n", text("agent")));
    if value["prompt"].as_str().is_some_and(|p| !p.is_empty()) {
        print(format_args!("prompt    {:?}\n", value["prompt"].as_str().unwrap_or("")));
    }
    if value["title"].as_str().is_some_and(|p| !p.is_empty()) {
        print(format_args!("title     {}\n", text("title")));
    }
    print(format_args!("turns     {}\n", value["turns"].as_u64().unwrap_or(0)));
    Ok(Ending::Done)
}
