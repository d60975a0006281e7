//! Waits until a condition holds in a session, without polling.

use std::collections::HashSet;
use std::time::Duration;

use regex::Regex;
use tapdeck_core::turns::AgentState;
use tapdeck_host::Clock;
use tapdeck_host::registry::Listing;
use tapdeck_proto::bus::AgentState as AgentStateNow;
use tapdeck_proto::bus::{Contents, Event, Exit, Explain, Frame, Info, InfoWanted, Push, Role, Snap, Sub};

use super::{ANSWER, Bus, ClientError, connect_within};

/// How long the screen stays unchanged before a row counts as a prompt.
const SETTLED: Duration = Duration::from_millis(150);
/// How often a wait that can be cancelled looks whether it is.
const CANCELLED: Duration = Duration::from_millis(100);
/// How long a session may take to tell what its program asks, once the time is over.
const ASKED: Duration = Duration::from_millis(500);

/// The condition that a wait is for.
#[derive(Debug, Clone)]
pub enum Condition {
    /// A row matches this regular expression.
    Text(Regex),
    /// There has been no output for this time.
    Idle(Duration),
    /// The program has exited.
    Exit,
    /// The program is in one of these states.
    States(Vec<AgentState>),
    /// The cursor is behind a prompt, and the screen does not change.
    Prompt,
}

/// The rows that [`Condition::Text`] looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RowsFrom {
    /// Rows on the screen, now or later.
    #[default]
    Screen,
    /// Rows that are written from now on, also those that have scrolled off.
    Now,
    /// Rows that were written since this offset in the output, also those that have scrolled off.
    Offset(u64),
}

/// A wait for a condition.
#[derive(Debug, Clone)]
pub struct Wait {
    /// The condition.
    pub condition: Condition,
    /// The rows that count.
    pub rows: RowsFrom,
    /// The longest time to wait.
    pub timeout: Duration,
}

/// A condition that holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Met {
    /// The exit of a program that ended meanwhile.
    pub exit: Option<Exit>,
    /// What the program is doing.
    pub state: AgentStateNow,
}

/// Why a wait ended before its condition held.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The time is over.
    #[error("timed out after {after:?}: {why}")]
    TimedOut {
        /// The longest time to wait.
        after: Duration,
        /// Why the condition does not hold.
        why: String,
    },
    /// The program has ended.
    #[error("the program {}", how_ended(.0))]
    Ended(Exit),
    /// The caller has cancelled the wait.
    #[error("cancelled")]
    Cancelled,
    /// The session cannot be reached.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// What a wait knows of the session.
struct Watched {
    screen: Contents,
    state: AgentStateNow,
    /// When the output stopped, on the wait's clock, and for how long it had stopped before.
    idle_since: Duration,
    idle_before: Duration,
}

impl Wait {
    /// Waits for the condition in a session, as an observer of this name.
    ///
    /// # Errors
    /// When the condition does not hold in time, cannot hold any more, or the session does not
    /// answer; and soon after `is_cancelled` returns `true`.
    pub fn run(
        &self,
        listing: &Listing,
        name: &str,
        is_cancelled: Option<&dyn Fn() -> bool>,
    ) -> Result<Met, WaitError> {
        let clock = Clock::start();
        self.follow(listing, name, &clock, is_cancelled).map_err(|e| match e {
            WaitError::Client(ClientError::Late(_)) if clock.elapsed() >= self.timeout => {
                self.timed_out("the session does not answer".to_owned())
            }
            e => e,
        })
    }

    fn follow(
        &self,
        listing: &Listing,
        name: &str,
        clock: &Clock,
        is_cancelled: Option<&dyn Fn() -> bool>,
    ) -> Result<Met, WaitError> {
        let now = || clock.elapsed();
        // A session that does not answer is waited for no longer than one that does.
        let patience = || ANSWER.min(self.timeout.saturating_sub(now()));
        let mut bus = connect_within(listing, name, Role::Observer, patience())?;
        let info = bus.request(&InfoWanted::Full, patience())?;
        let end = info.status.seq;
        let mut seen = self.begin(&mut bus, info, clock, patience())?;
        let mut written = self.start(end).map(|since| Written::new(since, &mut seen.screen));
        if let Some(written) = &mut written {
            written.keep(&mut bus, &mut seen.screen, patience());
        }
        loop {
            let idle = now().saturating_sub(seen.idle_since) + seen.idle_before;
            if self.condition.holds(&seen, idle) {
                return Ok(Met { exit: None, state: seen.state });
            }
            if is_cancelled.is_some_and(|is_cancelled| is_cancelled()) {
                return Err(WaitError::Cancelled);
            }
            let Some(mut left) = self.timeout.checked_sub(now()) else {
                return Err(self.timed_out(self.unmet(&mut bus, &seen)));
            };
            // The end of an idle time is not an event: look again when it may have passed.
            if let Some(quiet) = self.condition.quiet() {
                left = left.min(quiet.saturating_sub(idle).max(Duration::from_millis(1)));
            }
            if is_cancelled.is_some() {
                left = left.min(CANCELLED);
            }
            match bus.next(Some(left))?.and_then(|frame| frame.push()) {
                Some(Push::Frame(Frame::Screen(frame))) => {
                    seen.screen = frame.contents;
                    if let Some(written) = &mut written {
                        written.keep(&mut bus, &mut seen.screen, patience());
                    }
                }
                Some(Push::Out(_)) => (seen.idle_since, seen.idle_before) = (now(), Duration::ZERO),
                Some(Push::Event(Event::State(judged))) => seen.state = judged.state,
                Some(Push::Event(Event::Closed { exit })) => {
                    if let Some(written) = &mut written {
                        written.keep(&mut bus, &mut seen.screen, patience());
                    }
                    let met = self.condition.is_met_by_end(&seen.screen);
                    if !met {
                        return Err(WaitError::Ended(exit));
                    }
                    return Ok(Met { exit: Some(exit), state: AgentStateNow::Done });
                }
                _ => {}
            }
        }
    }

    /// Subscribes to what happens in the session.
    fn begin(
        &self,
        bus: &mut Bus,
        info: Info,
        clock: &Clock,
        patience: Duration,
    ) -> Result<Watched, ClientError> {
        let idle = Duration::from_millis(info.status.idle_ms);
        let mut seen = Watched {
            screen: info.contents.unwrap_or_default(),
            state: info.status.agent_state,
            idle_since: clock.elapsed().saturating_sub(idle.min(Duration::from_hours(1))),
            // The clock starts with this wait, but idle time before that counts, too.
            idle_before: idle.saturating_sub(clock.elapsed()),
        };
        bus.request(&Sub { max_fps: Some(60), looks: false, ..Sub::default() }, patience)?;
        if matches!(self.condition, Condition::States(_))
            && !info.status.done
            && let Ok(again) = bus.request(&InfoWanted::Brief, patience)
        {
            // The state may have changed between the request and the subscription.
            seen.state = again.status.agent_state;
        }
        Ok(seen)
    }

    /// Returns the place in the output from which rows count, if not all do; `end` is where it ends
    /// now.
    fn start(&self, end: u64) -> Option<u64> {
        match self.rows {
            RowsFrom::Screen => None,
            RowsFrom::Now => Some(end),
            RowsFrom::Offset(since) => Some(since),
        }
    }

    /// Returns why the condition does not hold, for a timeout: also what state the program is in,
    /// and what it asks.
    fn unmet(&self, bus: &mut Bus, seen: &Watched) -> String {
        let unmet = self.condition.unmet();
        if !matches!(self.condition, Condition::States(_)) {
            return unmet;
        }
        let state = seen.state.name();
        let is_blocked = state == AgentState::Blocked.name();
        // The question is an addition: without it, the state is told all the same.
        let explained = is_blocked.then(|| bus.request(&Explain, ASKED).ok()).flatten();
        match explained.and_then(|explained| explained.question) {
            Some(question) => format!("{unmet}: it is {state} and asks {:?}", question.text),
            None => format!("{unmet}: it is {state}"),
        }
    }

    fn timed_out(&self, why: String) -> WaitError {
        WaitError::TimedOut { after: self.timeout, why }
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
    /// Returns how long the program must be silent for the condition to hold.
    fn quiet(&self) -> Option<Duration> {
        match self {
            Self::Idle(time) => Some(*time),
            Self::Prompt => Some(SETTLED),
            _ => None,
        }
    }

    fn holds(&self, seen: &Watched, idle: Duration) -> bool {
        match self {
            Self::Text(text) => matches(text, &seen.screen),
            Self::States(states) => states.iter().any(|state| state.name() == seen.state.name()),
            Self::Idle(time) => idle >= *time,
            Self::Prompt => idle >= SETTLED && is_at_prompt(&seen.screen),
            Self::Exit => false,
        }
    }

    /// Returns why the condition does not hold, for a timeout.
    fn unmet(&self) -> String {
        match self {
            Self::Text(text) => format!("no row matched {:?}", text.as_str()),
            Self::Idle(_) => "the program kept writing".to_owned(),
            Self::States(states) => {
                let names: Vec<&str> = states.iter().map(|state| state.name()).collect();
                format!("the program is not {}", names.join(" or "))
            }
            Self::Prompt => "no prompt was seen".to_owned(),
            Self::Exit => "the program has not ended".to_owned(),
        }
    }

    /// Returns whether the condition holds once the program has ended with this screen.
    fn is_met_by_end(&self, screen: &Contents) -> bool {
        match self {
            Self::Exit | Self::Idle(_) => true,
            Self::States(states) => states.contains(&AgentState::Done),
            Self::Text(text) => matches(text, screen),
            Self::Prompt => false,
        }
    }
}

/// Returns how a program ended.
fn how_ended(exit: &Exit) -> String {
    match &exit.signal {
        Some(signal) => format!("was ended by signal {signal}"),
        None => format!("has ended with code {}", exit.code),
    }
}

fn matches(text: &Regex, screen: &Contents) -> bool {
    screen.rows.iter().any(|row| text.is_match(row))
}

/// Returns whether the text in front of the cursor ends as prompts do.
fn is_at_prompt(screen: &Contents) -> bool {
    let row = screen.rows.get(usize::from(screen.cy)).map_or("", String::as_str);
    let text: String = row.chars().take(usize::from(screen.cx)).collect();
    let text = text.trim_end();
    text.ends_with(['$', '#', '%', '>', ':', '?', '❯', '›', '»', 'λ', ')', ']'])
}
