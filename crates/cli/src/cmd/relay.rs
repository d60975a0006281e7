//! `tapdeck relay`: submits the last answer of one session as the prompt of another.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use tapdeck_proto::bus::{Role, Take, WhichTurn};

use crate::ending::{Ending, print, print_json, say};
use crate::failure::{Failure, Result};
use crate::human;
use crate::parse;
use crate::prompts::{Delivery, is_delivered};
use crate::sender::SenderArgs;
use crate::sessions::{ask, connect, find, split_turn_id};

/// Submit one session's last answer as a prompt to another session.
#[derive(Args)]
#[command(after_help = "\
Prints whether the prompt was submitted. Needs no broker.

Examples:
  tapdeck relay codex claude
  tapdeck relay 4711:3 claude --before 'Review this answer:'")]
pub(crate) struct RelayArgs {
    /// The session whose last answer to send, or the id of a turn
    #[arg(value_name = "FROM")]
    from: String,
    /// The session to send it to
    #[arg(value_name = "TO")]
    to: String,
    /// Text to put before the answer
    #[arg(long, value_name = "TEXT")]
    before: Option<String>,
    /// Paste without pressing Enter
    #[arg(long)]
    no_enter: bool,
    /// Relay an answer even if only a part of it is known
    #[arg(long)]
    allow_truncated: bool,
    #[command(flatten)]
    sender: SenderArgs,
    /// Timeout of each step
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse::duration)]
    timeout: Duration,
    /// Print the outcome as JSON
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
    let asked = WhichTurn { number, ..WhichTurn::default() };
    let turn = ask(&mut connect(&from, "relay", Role::Observer)?, &asked)?;
    let answer = turn.detail.map(|detail| detail.text.trim_end().to_owned()).unwrap_or_default();
    if answer.is_empty() {
        return Err(Failure::check("that turn has no text"));
    }
    if turn.interrupted && !args.allow_truncated {
        let why = "that answer was interrupted; --allow-truncated relays it all the same";
        return Err(Failure::check(why));
    }
    if turn.truncated && !args.allow_truncated {
        let why = "only a part of that answer is known; --allow-truncated relays it all the same";
        return Err(Failure::check(why));
    }
    let text = match &args.before {
        Some(before) => format!("{before}\n{answer}"),
        None => answer,
    };
    let mut bus = connect(&to, "relay", if args.sender.bot { Role::Bot } else { Role::Human })?;
    if args.sender.takeover {
        ask(&mut bus, &Take)?;
    }
    let delivery =
        Delivery { enter: !args.no_enter, raw: false, clear: false, queue: false, step_limit: args.timeout };
    let outcome = delivery.paste(&mut bus, &text)?;
    if turn.truncated {
        say("only a part of that answer is known, and no more of it was passed on");
    }
    let delivered = is_delivered(&outcome);
    let id = &turn.turn_id;
    if args.json {
        let mut outcome = serde_json::to_value(&outcome).unwrap_or_default();
        outcome["turn_id"] = json!(id);
        outcome["truncated"] = json!(turn.truncated);
        print_json(&outcome);
    } else {
        let (what, why) = (outcome.outcome.name(), human::printable(&outcome.evidence));
        if delivered {
            print(format_args!("{id} {what}: {why}\n"))
        } else {
            say(format_args!("{what}: {why}"))
        }
    }
    Ok(Ending::of_check(delivered))
}
