//! `tapdeck wait`: until something is so in a session, without asking again and again.

use std::time::Duration;

use clap::Args;
use regex::Regex;
use serde_json::{Value, json};
use tapdeck_core::turns::AgentState;
use tapdeck_host::Clock;

use crate::ending::{Ending, print, print_json};
use crate::failure::{Failure, Result};
use crate::parse;
use crate::sessions::{Which, ask, connect, find};

/// Wait for a session.
#[derive(Args)]
#[command(after_help = "\
Ends with 0 when it is so, with 1 when the time is over or the program ends first, and with 3 when
there is no such session. --exit ends with 0 whatever the program's own code, and prints how it
ended as JSON. --json says how long it took, or what went wrong, as JSON too.

Examples:
  tapdeck wait build --text 'tests? passed' --timeout 5m
  tapdeck wait build --idle 500
  tapdeck wait build --exit | jq .code")]
pub(crate) struct WaitArgs {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    what: What,
    /// Answer in JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Give up after this long
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse::duration)]
    timeout: Duration,
}

/// What for.
#[derive(Args)]
#[group(required = true, multiple = false)]
struct What {
    /// A row of the screen matches this regular expression
    #[arg(long, value_name = "RE", value_parser = Regex::new)]
    text: Option<Regex>,
    /// Nothing was written for this many milliseconds
    #[arg(long, value_name = "MS")]
    idle: Option<u64>,
    /// The program has ended
    #[arg(long)]
    exit: bool,
    /// The program is doing this: working, blocked, idle, done or unknown
    #[arg(long, value_name = "STATE")]
    state: Option<AgentState>,
    /// The cursor stands behind something that looks like a prompt, and nothing moves
    #[arg(long)]
    prompt: bool,
}

/// How long a prompt must stand.
const SETTLED: Duration = Duration::from_millis(150);

pub(crate) fn run(args: &WaitArgs) -> Result {
    let clock = Clock::start();
    let exit = wait(args, &clock)?;
    if args.what.exit {
        print(format_args!(
            "{exit}
"
        ));
    } else if args.json {
        let waited_ms = clock.now().mono_ns / 1_000_000;
        print_json(&json!({"waited_ms": waited_ms, "exit": exit}));
    }
    Ok(Ending::Done)
}

/// Waits for the condition. Returns the exit of a program that ended, or null.
fn wait(args: &WaitArgs, clock: &Clock) -> Result<Value> {
    let now = || Duration::from_nanos(clock.now().mono_ns);
    let listing = find(args.which.session.as_deref())?;
    let mut bus = connect(&listing, "wait", "observer")?;
    let info = ask(&mut bus, "INFO", "")?;
    let mut idle_since =
        now().saturating_sub(Duration::from_millis(info["idle_ms"].as_u64().unwrap_or(0).min(3_600_000)));
    // The clock starts with this process, but idle time before that counts, too.
    let mut idle_before = Duration::from_millis(info["idle_ms"].as_u64().unwrap_or(0)).saturating_sub(now());
    ask(&mut bus, "SUB", &json!({"max_fps": 60, "looks": false}).to_string())?;
    let mut state = info["agent_state"].as_str().unwrap_or("unknown").to_owned();
    if args.what.state.is_some()
        && info["done"] != true
        && let Ok(again) = ask(&mut bus, "INFO", "brief")
    {
        // The state may have changed between the request and the subscription.
        state = again["agent_state"].as_str().unwrap_or("unknown").to_owned();
    }
    let mut frame = info;
    loop {
        if args.what.state.is_some_and(|s| state == s.name())
            || args.what.holds(&frame, now().saturating_sub(idle_since) + idle_before)
        {
            return Ok(Value::Null);
        }
        let Some(left) = args.timeout.checked_sub(now()) else {
            return Err(Failure::check(format!("not so within {:?}", args.timeout)));
        };
        // The end of an idle time is not an event: look again when it may have passed.
        let quiet =
            args.what.quiet().map(|q| q.saturating_sub(now().saturating_sub(idle_since) + idle_before));
        let left = quiet.map_or(left, |q| left.min(q.max(Duration::from_millis(1))));
        match bus.next(Some(left))? {
            None => {}
            Some(got) if got.verb == "FRAME" => {
                frame = got.json();
            }
            Some(got) if got.verb == "OUT" => (idle_since, idle_before) = (now(), Duration::ZERO),
            Some(got) if got.verb == "EVENT" => {
                let event = got.json();
                if event["name"] == "STATE" {
                    state = event["state"].as_str().unwrap_or("unknown").to_owned();
                }
                if event["name"] == "CLOSED" {
                    args.what.ended(&frame)?;
                    return Ok(event["exit"].clone());
                }
            }
            Some(_) => {}
        }
    }
}

impl What {
    fn quiet(&self) -> Option<Duration> {
        self.idle.map(Duration::from_millis).or(self.prompt.then_some(SETTLED))
    }

    fn holds(&self, frame: &Value, idle: Duration) -> bool {
        if let Some(text) = &self.text {
            return matches(text, frame);
        }
        let quiet = self.quiet().is_some_and(|q| idle >= q);
        quiet && (!self.prompt || at_prompt(frame))
    }

    /// Fails if the program has ended without the condition.
    fn ended(&self, frame: &Value) -> Result<()> {
        let is_so = self.exit
            || self.state == Some(AgentState::Done)
            || self.idle.is_some()
            || self.text.as_ref().is_some_and(|text| matches(text, frame));
        if is_so { Ok(()) } else { Err(Failure::check("the program has ended")) }
    }
}

fn matches(text: &Regex, frame: &Value) -> bool {
    frame["rows"].as_array().into_iter().flatten().filter_map(Value::as_str).any(|row| text.is_match(row))
}

/// Whether the text in front of the cursor ends as prompts do.
fn at_prompt(frame: &Value) -> bool {
    let row = usize::try_from(frame["cy"].as_u64().unwrap_or(0)).unwrap_or(0);
    let col = usize::try_from(frame["cx"].as_u64().unwrap_or(0)).unwrap_or(0);
    let text: String = frame["rows"][row].as_str().unwrap_or("").chars().take(col).collect();
    let text = text.trim_end();
    text.ends_with(['$', '#', '%', '>', ':', '?', '❯', '›', '»', 'λ', ')', ']'])
}
