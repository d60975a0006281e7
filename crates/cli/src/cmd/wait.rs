//! `tapdeck wait`: waits until a condition holds in a session, without polling.

use std::collections::HashSet;
use std::time::Duration;

use clap::Args;
use regex::Regex;
use serde_json::json;
use tapdeck_core::turns::AgentState;
use tapdeck_host::Clock;
use tapdeck_proto::bus::{self, Contents, Event, Exit, Frame, InfoWanted, Push, Role, Snap, Sub};
use tapdeck_serve::client::{ANSWER, Bus, ClientError, connect_within};

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
    condition: Condition,
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
struct Condition {
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

/// How long the screen stays unchanged before a row counts as a prompt.
const SETTLED: Duration = Duration::from_millis(150);

pub(crate) fn run(args: &WaitArgs) -> Result {
    if (args.new || args.since.is_some()) && args.condition.text.is_none() {
        return Err(Failure::usage("--new and --since go with --text"));
    }
    let clock = Clock::start();
    let Met { exit, state } = wait(args, &clock)?;
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

/// A condition that holds.
struct Met {
    /// The exit of a program that ended.
    exit: Option<Exit>,
    /// What the program is doing.
    state: bus::AgentState,
}

/// Waits for the condition.
fn wait(args: &WaitArgs, clock: &Clock) -> Result<Met> {
    let now = || clock.elapsed();
    let listing = find(args.which.session.as_deref())?;
    // A session that does not answer is waited for no longer than one that does.
    let patience = || ANSWER.min(args.timeout.saturating_sub(now()));
    let failed = |e| match e {
        ClientError::Late(_) if now() >= args.timeout => args.timed_out("the session does not answer"),
        e => Failure::from(e),
    };
    let mut bus = connect_within(&listing, "wait", Role::Observer, patience()).map_err(failed)?;
    let info = bus.request(&InfoWanted::Full, patience()).map_err(failed)?;
    let mut idle_since = now().saturating_sub(Duration::from_millis(info.status.idle_ms.min(3_600_000)));
    // The clock starts with this process, but idle time before that counts, too.
    let mut idle_before = Duration::from_millis(info.status.idle_ms).saturating_sub(now());
    let frames = Sub { max_fps: Some(60), looks: false, ..Sub::default() };
    bus.request(&frames, patience()).map_err(failed)?;
    let mut state = info.status.agent_state;
    if !args.condition.state.is_empty()
        && !info.status.done
        && let Ok(again) = bus.request(&InfoWanted::Brief, patience())
    {
        // The state may have changed between the request and the subscription.
        state = again.status.agent_state;
    }
    let mut screen = info.contents.unwrap_or_default();
    let mut written = args.start(info.status.seq).map(|since| Written::new(since, &mut screen));
    if let Some(written) = &mut written {
        written.keep(&mut bus, &mut screen, patience());
    }
    loop {
        if args.condition.state.iter().any(|s| state.name() == s.name())
            || args.condition.holds(&screen, now().saturating_sub(idle_since) + idle_before)
        {
            return Ok(Met { exit: None, state });
        }
        let Some(left) = args.timeout.checked_sub(now()) else {
            return Err(args.timed_out(&args.condition.unmet()));
        };
        // The end of an idle time is not an event: look again when it may have passed.
        let quiet =
            args.condition.quiet().map(|q| q.saturating_sub(now().saturating_sub(idle_since) + idle_before));
        let left = quiet.map_or(left, |q| left.min(q.max(Duration::from_millis(1))));
        match bus.next(Some(left))?.and_then(|frame| frame.push()) {
            Some(Push::Frame(Frame::Screen(frame))) => {
                screen = frame.contents;
                if let Some(written) = &mut written {
                    written.keep(&mut bus, &mut screen, patience());
                }
            }
            Some(Push::Out(_)) => (idle_since, idle_before) = (now(), Duration::ZERO),
            Some(Push::Event(Event::State(judged))) => state = judged.state,
            Some(Push::Event(Event::Closed { exit })) => {
                if let Some(written) = &mut written {
                    written.keep(&mut bus, &mut screen, patience());
                }
                args.condition.check_ended(&screen)?;
                return Ok(Met { exit: Some(exit), state: bus::AgentState::Done });
            }
            _ => {}
        }
    }
}

impl WaitArgs {
    /// The place in the output from which rows count, if not all do; `end` is where it ends now.
    fn start(&self, end: u64) -> Option<u64> {
        self.since.or(self.new.then_some(end))
    }

    fn timed_out(&self, why: &str) -> Failure {
        Failure::check(format!("timed out after {:?}: {why}", self.timeout))
    }
}

/// The rows that were written from a place in the output on.
struct Written {
    since: u64,
    /// The rows that were on the screen at first.
    before: HashSet<String>,
}

impl Written {
    /// Leaves no row on the screen: none is known to be new.
    fn new(since: u64, screen: &mut Contents) -> Self {
        Self { since, before: screen.rows.drain(..).collect() }
    }

    /// Leaves only the rows that were written since, with those that have scrolled away.
    fn keep(&mut self, bus: &mut Bus, screen: &mut Contents, patience: Duration) {
        let asked = Snap { since: Some(self.since), ..Snap::default() };
        match bus.request(&asked, patience).ok().and_then(|answer| answer.lines) {
            Some(lines) => screen.rows = lines,
            // The session is gone: of its last screen, what was not there before is new.
            None => screen.rows.retain(|row| !self.before.contains(row)),
        }
    }
}

impl Condition {
    /// How long the program must be silent for the condition to hold.
    fn quiet(&self) -> Option<Duration> {
        self.idle.or(self.prompt.then_some(SETTLED))
    }

    fn holds(&self, screen: &Contents, idle: Duration) -> bool {
        if let Some(text) = &self.text {
            return matches(text, screen);
        }
        let quiet = self.quiet().is_some_and(|q| idle >= q);
        quiet && (!self.prompt || is_at_prompt(screen))
    }

    /// Why the condition does not hold, for a timeout.
    fn unmet(&self) -> String {
        match self {
            Self { text: Some(text), .. } => format!("no row matched {:?}", text.as_str()),
            Self { idle: Some(_), .. } => "the program kept writing".to_owned(),
            Self { state, .. } if !state.is_empty() => {
                let names: Vec<&str> = state.iter().map(|state| state.name()).collect();
                format!("the program is not {}", names.join(" or "))
            }
            Self { prompt: true, .. } => "no prompt was seen".to_owned(),
            _ => "the program has not ended".to_owned(),
        }
    }

    /// Fails if the program ended before the condition held.
    fn check_ended(&self, screen: &Contents) -> Result<()> {
        let is_so = self.exit
            || self.state.contains(&AgentState::Done)
            || self.idle.is_some()
            || self.text.as_ref().is_some_and(|text| matches(text, screen));
        if is_so { Ok(()) } else { Err(Failure::check("the program has ended")) }
    }
}

fn matches(text: &Regex, screen: &Contents) -> bool {
    screen.rows.iter().any(|row| text.is_match(row))
}

/// Whether the text in front of the cursor ends as prompts do.
fn is_at_prompt(screen: &Contents) -> bool {
    let row = screen.rows.get(usize::from(screen.cy)).map_or("", String::as_str);
    let text: String = row.chars().take(usize::from(screen.cx)).collect();
    let text = text.trim_end();
    text.ends_with(['$', '#', '%', '>', ':', '?', '❯', '›', '»', 'λ', ')', ']'])
}
