//! `tapdeck answer`, `approve` and `deny`: answer the question that a session's program asks.

use std::time::Duration;

use clap::Args;
use tapdeck_core::turns::Choice;
use tapdeck_proto::bus::{AnswerOutcome, Question, Role, Take};
use tapdeck_serve::client;

use crate::ending::{Ending, print, print_json, say};
use crate::failure::{Failure, Result};
use crate::human;
use crate::parse;
use crate::sender::SenderArgs;
use crate::sessions::{ask, connect, find};

/// Answer the question that a session's program asks.
#[derive(Args)]
#[command(after_help = "\
CHOICE is yes, no, the number of an option, its label or a unique part of it. At a question that takes
text, such as a password, other text is typed, and Enter pressed. Without CHOICE, prints the question
and its options.

yes never picks an option that also grants later requests, such as \"don't ask again\". Waits until
the dialog takes keys, and confirms that it has gone. If the question changes meanwhile, nothing is
sent.

Exit codes:
  0   answered; without CHOICE: the program asks something
  1   not answered, or the program asks nothing
  3   no such session

Examples:
  tapdeck answer claude
  tapdeck answer claude yes
  tapdeck answer claude 2
  tapdeck answer build --text - < password.txt")]
pub(crate) struct AnswerArgs {
    /// Id or name of a live session, or a unique prefix
    #[arg(value_name = "SESSION")]
    session: String,
    /// yes, no, an option's number or label, or text
    #[arg(value_name = "CHOICE", allow_hyphen_values = true)]
    choice: Option<String>,
    /// Type this text, or `-` for standard input, even if it looks like an option
    #[arg(long, value_name = "TEXT", conflicts_with = "choice", allow_hyphen_values = true)]
    text: Option<String>,
    #[command(flatten)]
    how: HowArgs,
}

/// Consent to what a session's program asks, this once.
#[derive(Args)]
#[command(after_help = "\
The same as tapdeck answer SESSION yes.

Examples:
  tapdeck approve claude
  tapdeck wait claude --state blocked && tapdeck approve claude")]
pub(crate) struct ApproveArgs {
    /// Id or name of a live session, or a unique prefix
    #[arg(value_name = "SESSION")]
    session: String,
    #[command(flatten)]
    how: HowArgs,
}

/// Refuse what a session's program asks.
#[derive(Args)]
#[command(after_help = "\
The same as tapdeck answer SESSION no. Without such an option, presses Escape if the dialog says that
Escape cancels it.

Examples:
  tapdeck deny claude")]
pub(crate) struct DenyArgs {
    /// Id or name of a live session, or a unique prefix
    #[arg(value_name = "SESSION")]
    session: String,
    #[command(flatten)]
    how: HowArgs,
}

/// How a question is answered.
#[derive(Args)]
pub(crate) struct HowArgs {
    /// Maximum time to wait until the answer is taken
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse::duration)]
    timeout: Duration,
    #[command(flatten)]
    sender: SenderArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl AnswerArgs {
    pub(super) fn reports_json(&self) -> bool {
        self.how.json
    }
}

impl ApproveArgs {
    pub(super) fn reports_json(&self) -> bool {
        self.how.json
    }
}

impl DenyArgs {
    pub(super) fn reports_json(&self) -> bool {
        self.how.json
    }
}

pub(crate) fn run(args: &AnswerArgs) -> Result {
    match (&args.choice, &args.text) {
        (Some(choice), _) => args.how.answer(&args.session, &Choice::named(choice)),
        (None, Some(text)) if text == "-" => {
            args.how.answer(&args.session, &Choice::Text(crate::prompts::from_stdin()?))
        }
        (None, Some(text)) => args.how.answer(&args.session, &Choice::Text(text.clone())),
        (None, None) => show(&args.session, args.how.json),
    }
}

pub(crate) fn approve(args: &ApproveArgs) -> Result {
    args.how.answer(&args.session, &Choice::Yes)
}

pub(crate) fn deny(args: &DenyArgs) -> Result {
    args.how.answer(&args.session, &Choice::No)
}

/// Prints the question that the program asks.
fn show(session: &str, as_json: bool) -> Result {
    let mut bus = connect(&find(Some(session))?, "answer", Role::Observer)?;
    let explained = client::explain(&mut bus)?;
    let state = explained.judged.state.name();
    let Some(question) = explained.question else {
        return Err(Failure::check(format!("the program is {state}, and asks nothing")).about("state", state));
    };
    if as_json {
        print_json(&question);
    } else {
        print(format_args!("{}", described(&question)));
    }
    Ok(Ending::Done)
}

impl HowArgs {
    fn answer(&self, session: &str, choice: &Choice) -> Result {
        let listing = find(Some(session))?;
        let role = if self.sender.bot { Role::Bot } else { Role::Human };
        let mut bus = connect(&listing, "answer", role)?;
        if self.sender.takeover {
            ask(&mut bus, &Take)?;
        }
        let answered = client::answer(&mut bus, choice, Some(self.timeout))?;
        let taken = answered.outcome == AnswerOutcome::Answered;
        if self.json {
            print_json(&answered);
            return Ok(Ending::of_check(taken));
        }
        if let Some(question) = &answered.question {
            print(format_args!("{}", described(question)));
        }
        if let Some(sent) = &answered.sent {
            print(format_args!("sent      {}\n", human::printable(sent)));
        }
        let what = answered.outcome.name().replace('_', " ");
        let why = human::printable(&answered.evidence);
        if taken {
            print(format_args!("{what}: {why}\n"));
        } else {
            say(format_args!("{what}: {why}"));
        }
        Ok(Ending::of_check(taken))
    }
}

/// Returns a question as people read it: what it is about, then a line for each option.
pub(crate) fn described(question: &Question) -> String {
    let mut text = String::new();
    let mut line = |row: &str| {
        text.push_str(&human::printable(row));
        text.push('\n');
    };
    for row in &question.detail {
        line(row);
    }
    if !question.detail.iter().any(|row| row.trim() == question.text) {
        line(&question.text);
    }
    for option in &question.options {
        let mark = if option.marked { '>' } else { ' ' };
        line(&format!("{mark} {}. {}", option.number, option.label));
    }
    if question.takes_text {
        line(if question.secret { "  (takes text, which is hidden)" } else { "  (takes text)" });
    }
    text
}
