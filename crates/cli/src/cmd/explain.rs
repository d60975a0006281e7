//! `tapdeck explain`: the state of a session's program, and the rule that found it.

use std::time::Duration;

use clap::Args;
use tapdeck_proto::bus::{Explain, Role};

use crate::ending::{Ending, print, print_json};
use crate::failure::Result;
use crate::human;
use crate::sessions::{Which, ask, connect, find};

/// Show a session's detected state, and the rule and rows behind it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tapdeck explain build
  tapdeck explain build --json")]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    which: Which,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(crate) fn run(args: &ExplainArgs) -> Result {
    let listing = find(args.which.session.as_deref())?;
    let mut bus = connect(&listing, "explain", Role::Observer)?;
    let value = ask(&mut bus, &Explain)?;
    if args.json {
        print_json(&value);
        return Ok(Ending::Done);
    }
    let judged = &value.judged;
    let since = Duration::from_millis(value.since_ms);
    print(format_args!("state     {} for {}\n", judged.state.name(), human::duration(since)));
    let (rule, evidence) = (human::printable(&judged.rule), human::printable(&judged.evidence));
    print(format_args!("because   {rule} ({evidence})\n"));
    for row in &judged.rows {
        print(format_args!("row {:<5} {}\n", row.row, human::printable(&row.text)));
    }
    for other in &judged.against {
        let (rule, evidence) = (human::printable(&other.rule), human::printable(&other.evidence));
        print(format_args!("but       {}, by {rule} ({evidence})\n", other.state.name()));
    }
    if let Some(question) = &value.question {
        print(format_args!("question  {}\n", human::printable(&question.text)));
        for option in &question.options {
            print(format_args!("option    {}. {}\n", option.number, human::printable(&option.label)));
        }
    }
    print(format_args!("rules     {}\n", human::printable(&value.agent)));
    if let Some(prompt) = value.prompt.filter(|p| !p.is_empty()) {
        print(format_args!("prompt    {prompt:?}\n"));
    }
    if !value.title.is_empty() {
        print(format_args!("title     {}\n", human::printable(&value.title)));
    }
    print(format_args!("turns     {}\n", value.turns));
    if let Some(path) = &value.recording {
        let state = match (value.recording_state.unwrap_or_default(), &value.recording_error) {
            (_, Some(error)) => format!("failed: {error}"),
            (state, None) => state.name().to_owned(),
        };
        print(format_args!("recording {} {}\n", human::printable(path), human::printable(&state)));
    }
    Ok(Ending::Done)
}
