//! `tapdeck wait`: waits until a condition holds in a session, without polling.

use std::time::Duration;

use clap::Args;
use regex::Regex;
use serde_json::json;
use tapdeck_core::turns::AgentState;
use tapdeck_host::Clock;
use tapdeck_serve::client::{Condition, Met, RowsFrom, Wait, WaitError};

use crate::ending::{Ending, Kind, print_json, say};
use crate::failure::{Failure, Result};
use crate::parse;
use crate::sessions::{Which, find};

/// Wait until a condition holds in a session.
#[derive(Args)]
#[command(after_help = "\
Exit codes:
  0   the condition holds
  1   timeout, or the program exited first
  3   no such session
  4   --exit: the program exited, but its recording failed

--text also matches rows that are already on the screen. --new and --since match only later output,
including rows that have scrolled off. --exit waits for the recording to be complete, too, and
prints the program's exit as JSON; its exit code does not change that of this command. --json prints
the time waited and the state of the program, or the error.

Examples:
  tapdeck wait build --text '[0-9]+ passed' --new --timeout 5m
  tapdeck wait build --text 'listening on' --new
  tapdeck wait build --idle 500ms
  tapdeck wait claude --state idle,blocked --json | jq -r .state
  tapdeck wait build --exit | jq .code")]
pub(crate) struct WaitArgs {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    condition: ConditionArgs,
    /// With --text, match only rows written from now on
    #[arg(long, conflicts_with = "since")]
    new: bool,
    /// With --text, match only rows written since this output offset, the "seq" of peek --json
    #[arg(long, value_name = "SEQ")]
    since: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Maximum time to wait
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse::duration)]
    timeout: Duration,
}

/// The condition to wait for.
#[derive(Args)]
#[group(required = true, multiple = false)]
struct ConditionArgs {
    /// Until a row of the screen matches this regular expression
    #[arg(long, value_name = "RE", value_parser = parse::regex)]
    text: Option<Regex>,
    /// Until there is no output for this time; a plain number is in milliseconds
    #[arg(long, value_name = "TIME", value_parser = parse::duration_ms)]
    idle: Option<Duration>,
    /// Until the program exits
    #[arg(long)]
    exit: bool,
    /// Until the program is in this state: working, blocked, idle, done or unknown; or in one of
    /// several, such as idle,blocked
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    state: Vec<AgentState>,
    /// Until the cursor is behind a prompt and the screen does not change
    #[arg(long)]
    prompt: bool,
}

pub(crate) fn run(args: &WaitArgs) -> Result {
    if (args.new || args.since.is_some()) && args.condition.text.is_none() {
        return Err(Failure::usage("--new and --since go with --text"));
    }
    let clock = Clock::start();
    let Met { exit, state, .. } = wait(args)?;
    if args.condition.exit {
        print_json(&exit);
    } else if args.json {
        let waited_ms = clock.now().mono.as_nanos() / 1_000_000;
        print_json(&json!({"waited_ms": waited_ms, "exit": exit, "state": state}));
    }
    match exit.and_then(|exit| exit.recording_error).filter(|_| args.condition.exit) {
        Some(why) => {
            say(format_args!("the recording failed: {why}"));
            Ok(Ending::Failed(Kind::Io))
        }
        None => Ok(Ending::Done),
    }
}

/// Waits for the condition.
fn wait(args: &WaitArgs) -> Result<Met> {
    let listing = find(args.which.session.as_deref())?;
    let wait = Wait { condition: args.condition.parse(), rows: args.rows(), timeout: args.timeout };
    wait.run(&listing, "wait", None).map_err(|e| match e {
        WaitError::Client(e) => Failure::from(e),
        e => Failure::check(e.to_string()),
    })
}

impl WaitArgs {
    /// The rows that --text looks at.
    fn rows(&self) -> RowsFrom {
        match self.since {
            Some(since) => RowsFrom::Offset(since),
            None if self.new => RowsFrom::Now,
            None => RowsFrom::Screen,
        }
    }
}

impl ConditionArgs {
    /// The one condition that was given.
    fn parse(&self) -> Condition {
        match self {
            Self { text: Some(text), .. } => Condition::Text(text.clone()),
            Self { idle: Some(time), .. } => Condition::Idle(*time),
            Self { state, .. } if !state.is_empty() => Condition::States(state.clone()),
            Self { prompt: true, .. } => Condition::Prompt,
            _ => Condition::Exit,
        }
    }
}
