//! `tapdeck ask`: submits a prompt to a session, and prints the answer.

use std::time::Duration;

use clap::Args;
use tapdeck_proto::bus::{MAX_PASTE, Role, Take};
use tapdeck_serve::client::{self, AskOutcome, Asked};

use super::answer::described;
use crate::ending::{Ending, Kind, print, print_json, say};
use crate::failure::{Failure, Result};
use crate::human;
use crate::parse;
use crate::sender::SenderArgs;
use crate::sessions::{ask, find};

/// Submit a prompt to a session and print the answer.
#[derive(Args)]
#[command(after_help = "\
Waits until the program is ready, pastes the prompt, presses Enter and confirms that it was accepted,
as tapdeck paste does. Then waits until the program is idle again, and prints the text of the answer
to this prompt. If the program asks back, prints its question on standard error: answer it with
tapdeck answer, then wait with tapdeck wait SESSION --state idle,blocked.

Exit codes:
  0   answered
  1   not submitted, timeout, or the answer is incomplete
  3   no such session
  6   the program asks back

Examples:
  tapdeck ask claude 'Which tests fail?'
  tapdeck ask claude - --timeout 10m < prompt.md
  tapdeck ask claude 'Fix them' --json | jq -r .outcome")]
pub(crate) struct AskArgs {
    /// Id or name of a live session, or a unique prefix
    #[arg(value_name = "SESSION")]
    session: String,
    /// The prompt [default: `-`, standard input]
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    text: Option<String>,
    /// Maximum time to wait for the answer
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = parse::duration)]
    timeout: Duration,
    /// Accept an answer that is incomplete, without a warning
    #[arg(long)]
    allow_truncated: bool,
    #[command(flatten)]
    sender: SenderArgs,
    /// Print the answer and its outcome as JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(crate) fn run(args: &AskArgs) -> Result {
    let text = match args.text.as_deref() {
        None | Some("-") => crate::prompts::from_stdin()?,
        Some(text) => text.to_owned(),
    };
    if text.len() > MAX_PASTE {
        return Err(Failure::usage(format!("the text is longer than {} MiB", MAX_PASTE >> 20)));
    }
    let listing = find(Some(&args.session))?;
    let role = if args.sender.bot { Role::Bot } else { Role::Human };
    // The paste claims the stick: a prompt that waits for another must not hold it.
    let mut bus = client::connect_to_watch(&listing, "ask", role)?;
    if args.sender.takeover {
        ask(&mut bus, &Take)?;
    }
    let asked = client::ask(&mut bus, &text, args.timeout)?;
    if args.json {
        print_json(&asked);
    } else {
        report(&asked, args);
    }
    Ok(match asked.outcome {
        AskOutcome::Answered => {
            Ending::of_check(args.allow_truncated || !(asked.truncated || asked.interrupted))
        }
        AskOutcome::Blocked => Ending::Failed(Kind::AsksBack),
        _ => Ending::Failed(Kind::Check),
    })
}

fn report(asked: &Asked, args: &AskArgs) {
    if let Some(answer) = asked.answer.as_deref().filter(|answer| !answer.is_empty()) {
        let end = if answer.ends_with('\n') { "" } else { "\n" };
        print(format_args!("{answer}{end}"));
    }
    let name = human::printable(&args.session);
    if asked.outcome != AskOutcome::Answered {
        say(format_args!("{}: {}", asked.outcome.name(), human::printable(&asked.evidence)));
    } else if asked.interrupted && !args.allow_truncated {
        say("the answer is incomplete: it was interrupted; give --allow-truncated to accept that");
    } else if asked.truncated && !args.allow_truncated {
        say(
            "the answer is incomplete: its beginning is no longer on the screen; give --allow-truncated to accept that",
        );
    }
    let Some(question) = &asked.question else { return };
    for line in described(question).lines() {
        say(line);
    }
    say(format_args!("answer with: tapdeck answer {name} CHOICE"));
}
