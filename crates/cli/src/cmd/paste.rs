//! `tapdeck paste`: pastes a prompt into a session, and tells whether the program took it.

use std::time::Duration;

use clap::Args;
use tapdeck_proto::bus::{Role, Take};
use tapdeck_serve::client;

use crate::ending::{Ending, print, print_json, say};
use crate::failure::Result;
use crate::human;
use crate::parse;
use crate::prompts::{Delivery, from_stdin, is_delivered};
use crate::sender::SenderArgs;
use crate::sessions::{ask, find};

/// Paste a prompt into a session, submit it and confirm that it was accepted.
#[derive(Args)]
#[command(
    override_usage = "tapdeck paste [OPTIONS] [SESSION] [TEXT]\n       tapdeck paste [OPTIONS] -- TEXT",
    after_help = "\
The first argument is the session. To paste into the only session, put -- before the text, or give
the text on standard input and no arguments.

Waits until the program is ready, pastes the text, waits until its end is on the screen, presses
Enter once and checks that the program accepted it. Prints submitted, stalled or blocked, and the
reason. The exit code is 0 only for submitted. A text that was not accepted is deleted again.
Several prompts at the same time are delivered in order. Control characters are removed. Text of
several lines needs a program in bracketed paste mode; in others, each line end would submit.

Examples:
  tapdeck paste claude 'fix the failing test'
  tapdeck paste claude - < prompt.md
  tapdeck paste -- 'fix the failing test'    into the only session
  tapdeck paste build 'make test' --json"
)]
pub(crate) struct PasteArgs {
    /// Id or name of a live session, or a unique prefix
    #[arg(value_name = "SESSION")]
    session: Option<String>,
    /// The text [default: `-`, standard input]
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    text: Option<String>,
    /// Text behind --
    #[arg(value_name = "TEXT", last = true, hide = true, conflicts_with = "text")]
    rest: Option<String>,
    /// Do not press Enter
    #[arg(long)]
    no_enter: bool,
    /// Send the text unchanged, including control characters and line ends
    #[arg(long)]
    raw: bool,
    /// Delete what stands in the input field first
    #[arg(long)]
    clear: bool,
    /// Wait your turn, up to an hour: behind other prompts, and while the program is at work
    #[arg(long)]
    queue: bool,
    /// Timeout of each step
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = parse::duration)]
    timeout: Duration,
    #[command(flatten)]
    sender: SenderArgs,
    /// Print the outcome as JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(crate) fn run(args: &PasteArgs) -> Result {
    let text = match args.text.as_deref().or(args.rest.as_deref()) {
        None | Some("-") => from_stdin()?,
        Some(text) => text.to_owned(),
    };
    let listing = find(args.session.as_deref())?;
    let role = if args.sender.bot { Role::Bot } else { Role::Human };
    // The delivery claims the stick: a prompt that waits for another must not hold it.
    let mut bus = client::connect_to_watch(&listing, "paste", role)?;
    if args.sender.takeover {
        ask(&mut bus, &Take)?;
    }
    let delivery = Delivery {
        enter: !args.no_enter,
        raw: args.raw,
        clear: args.clear,
        queue: args.queue,
        step_limit: args.timeout,
    };
    let outcome = delivery.paste(&mut bus, &text)?;
    let what = outcome.outcome.name();
    if args.json {
        print_json(&outcome);
    } else {
        let why = human::printable(&outcome.evidence);
        if is_delivered(&outcome) {
            print(format_args!("{what}: {why}\n"))
        } else {
            say(format_args!("{what}: {why}"))
        }
    }
    Ok(Ending::of_check(is_delivered(&outcome)))
}
