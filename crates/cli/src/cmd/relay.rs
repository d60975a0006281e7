//! `tapdeck relay`: submits the last answer of one session as the prompt of another.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::ending::{Ending, print, print_json, say};
use crate::failure::{Failure, Result};
use crate::human;
use crate::prompts::{Delivery, is_delivered};
use crate::sessions::{ask, connect, find, split_turn_id};

/// Submit the last answer of one session as the prompt of another, and say whether it was taken.
#[derive(Args)]
#[command(after_help = "\
Works with and without a broker.

Examples:
  tapdeck relay codex claude
  tapdeck relay 4711:3 claude --before 'Review this answer:'")]
pub(crate) struct RelayArgs {
    /// The session whose last answer it is, or the id of a turn
    #[arg(value_name = "FROM")]
    from: String,
    /// The session that gets it
    #[arg(value_name = "TO")]
    to: String,
    /// Text to put in front of it
    #[arg(long, value_name = "TEXT")]
    before: Option<String>,
    /// Only paste it, without Enter
    #[arg(long)]
    no_enter: bool,
    /// How long each step may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
    /// The outcome as JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(crate) fn run(args: &RelayArgs) -> Result {
    let (from, number) = split_turn_id(&args.from);
    let from = find(Some(from))?;
    let to = find(Some(&args.to))?;
    if from.id == to.id {
        return Err(Failure::usage("a session cannot be relayed to itself"));
    }
    let request = number.map_or_else(|| json!({}), |n| json!({"number": n}));
    let turn = ask(&mut connect(&from, "relay", "observer")?, "TURN", &request.to_string())?;
    let answer = turn["text"].as_str().unwrap_or("").trim_end().to_owned();
    if answer.is_empty() {
        return Err(Failure::check("that turn has no text"));
    }
    let text = match &args.before {
        Some(before) => format!("{before}\n{answer}"),
        None => answer,
    };
    let mut bus = connect(&to, "relay", "human")?;
    let delivery =
        Delivery { enter: !args.no_enter, raw: false, step_limit: Duration::from_secs(args.timeout) };
    let mut outcome = delivery.paste(&mut bus, &text)?;
    outcome["turn_id"] = turn["turn_id"].clone();
    outcome["truncated"] = turn["truncated"].clone();
    if turn["truncated"] == true {
        say("only the end of that answer was in sight, and no more of it was passed on");
    }
    let delivered = is_delivered(&outcome);
    let what = outcome["outcome"].as_str().unwrap_or("stalled");
    if args.json {
        print_json(&outcome);
    } else {
        let why = human::printable(outcome["evidence"].as_str().unwrap_or(""));
        let id = outcome["turn_id"].as_str().unwrap_or("-");
        if delivered {
            print(format_args!("{id} {what}: {why}\n"))
        } else {
            say(format_args!("{what}: {why}"))
        }
    }
    Ok(Ending::of_check(delivered))
}
