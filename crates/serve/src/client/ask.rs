//! Conversations with a session's program: submit a prompt and get the answer, answer a question.

use std::time::Duration;

use serde::Serialize;
use tapdeck_core::turns::{Choice, Evidence};
use tapdeck_host::Clock;
use tapdeck_proto::bus::{
    self, AgentState, Answer, Answered, Event, Explain, Explained, Frames, MAX_PASTE, Outcome, Paste, Pasted,
    Question, Release, Sub, Turns,
};

use super::{ANSWER, Bus, ClientError};

/// How long an idle program may take to complete the turn of a prompt. A prompt such as `/clear`
/// begins none.
const NO_TURN: Duration = Duration::from_millis(700);
/// How long a program that has only begun may take to show its first prompt.
const FIRST_PROMPT: Duration = Duration::from_secs(3);
/// The newest turns that are looked through for the one of a prompt.
const RECENT: u64 = 4;
/// How long `ANSWER` may take, unless told otherwise.
const ANSWERED: Duration = Duration::from_secs(10);

/// What became of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum AskOutcome {
    /// The program has answered, and is idle.
    Answered,
    /// The program asks back, and waits for an answer.
    Blocked,
    /// The prompt was not submitted.
    Undelivered,
    /// The prompt was submitted, and the program is not done in time.
    Timeout,
    /// The program ended before it had answered.
    Ended,
}

impl AskOutcome {
    /// Returns the outcome's name.
    pub fn name(self) -> &'static str {
        match self {
            AskOutcome::Answered => "answered",
            AskOutcome::Blocked => "blocked",
            AskOutcome::Undelivered => "undelivered",
            AskOutcome::Timeout => "timeout",
            AskOutcome::Ended => "ended",
        }
    }
}

/// The answer to a prompt, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Asked {
    /// What became of the prompt.
    pub outcome: AskOutcome,
    /// The text of the answer; empty if the program showed none.
    pub answer: Option<String>,
    /// The turn that the prompt began; it still runs if the program asks back or is not done.
    pub turn_id: Option<String>,
    /// Whether text is missing from the answer.
    pub truncated: bool,
    /// Whether the answer was interrupted.
    pub interrupted: bool,
    /// What the program is doing now.
    pub state: AgentState,
    /// The question that the program asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// How the outcome is known.
    pub evidence: String,
}

impl Asked {
    fn new(outcome: AskOutcome, evidence: impl Into<String>, explained: Option<Explained>) -> Self {
        let state = explained.as_ref().map_or(AgentState::Unknown, |e| e.judged.state);
        let runs = matches!(outcome, AskOutcome::Blocked | AskOutcome::Timeout);
        let turn_id = explained.as_ref().filter(|_| runs).and_then(|e| e.turn_id.clone());
        Self {
            outcome,
            answer: None,
            turn_id,
            truncated: false,
            interrupted: false,
            state,
            question: explained.and_then(|e| e.question),
            evidence: evidence.into(),
        }
    }

    fn with(mut self, turn: bus::Turn) -> Self {
        self.truncated = turn.truncated;
        self.interrupted = turn.interrupted;
        self.answer = Some(turn.detail.map(|detail| detail.text).unwrap_or_default());
        self.turn_id = Some(turn.turn_id);
        self
    }
}

/// Pastes a prompt, presses Enter and confirms that the program took it. Each step of that may take
/// as long as `step`.
///
/// # Errors
/// When the text is too long, the session refuses or does not answer.
pub fn submit(bus: &mut Bus, text: &str, step: Duration) -> Result<Pasted, ClientError> {
    if text.len() > MAX_PASTE {
        return Err(ClientError::Unfit("a prompt has at most 8 MiB"));
    }
    let asked = Paste { wait_ms: Some(millis(step)), ..Paste::new(text) };
    // There are four steps at most.
    bus.request(&asked, step.saturating_mul(4).saturating_add(ANSWER))
}

/// Submits a prompt and waits until the program has answered it, asks back or has ended. The answer
/// is that of the turn which this prompt began, whatever other clients submit.
///
/// The connection must be allowed to drive, and gets the session's events from then on: use one
/// that serves nothing else.
///
/// # Errors
/// When the session refuses, finds no turns or does not answer.
pub fn ask(bus: &mut Bus, text: &str, within: Duration) -> Result<Asked, ClientError> {
    let clock = Clock::start();
    bus.request(&Sub { frames: Frames::None, out: false, looks: false, ..Sub::default() }, ANSWER)?;
    // Fails before anything is sent if the session does not look for turns. What is submitted
    // before the first prompt was seen begins no turn.
    while bus.request(&Explain, ANSWER)?.judged.state == AgentState::Unknown {
        let left = FIRST_PROMPT.min(within).saturating_sub(clock.elapsed());
        if left.is_zero() || is_closed(bus, left)? {
            break;
        }
    }
    let pasted = submit(bus, text, within)?;
    let (Outcome::Submitted, Some(entered)) = (pasted.outcome, pasted.entered.or(pasted.seq)) else {
        let explained = bus.request(&Explain, ANSWER).ok();
        return Ok(Asked::new(AskOutcome::Undelivered, pasted.evidence, explained));
    };
    // Others may drive while the program works: a person can step in, and prompts can queue up.
    match bus.request(&Release, ANSWER) {
        Ok(_) | Err(ClientError::Denied(_) | ClientError::Ended) => {}
        Err(e) => return Err(e),
    }
    let mut idle_since = None;
    loop {
        let explained = bus.request(&Explain, ANSWER)?;
        let state = explained.judged.state;
        let rule = explained.judged.rule.clone();
        if let Some(turn) = turn_of(bus, entered)? {
            // A question at a line editor's prompt ends the turn of what was said before it.
            let asks = state == AgentState::Blocked && explained.judged.evidence == Evidence::Prompt.name();
            let outcome = if asks { AskOutcome::Blocked } else { AskOutcome::Answered };
            return Ok(Asked::new(outcome, rule, Some(explained)).with(turn));
        }
        let now = clock.elapsed();
        let idle = (state == AgentState::Idle).then(|| *idle_since.get_or_insert(now));
        match state {
            AgentState::Blocked => return Ok(Asked::new(AskOutcome::Blocked, rule, Some(explained))),
            AgentState::Done => return Ok(Asked::new(AskOutcome::Ended, rule, Some(explained))),
            AgentState::Idle if idle.is_some_and(|since| now >= since + NO_TURN) => {
                let mut asked = Asked::new(AskOutcome::Answered, rule, Some(explained));
                asked.answer = Some(String::new());
                return Ok(asked);
            }
            AgentState::Idle => {}
            _ => idle_since = None,
        }
        let left = within.saturating_sub(now);
        if left.is_zero() {
            let why = format!("timed out after {within:?}: the program is {}", state.name());
            return Ok(Asked::new(AskOutcome::Timeout, why, Some(explained)));
        }
        let pause = idle.map_or(left, |since| (since + NO_TURN).saturating_sub(now));
        if is_closed(bus, left.min(pause.max(Duration::from_millis(1))))? {
            let ended = Asked::new(AskOutcome::Ended, "the program has ended", None);
            // The last turn ends with the program.
            let last = turn_of(bus, entered).ok().flatten();
            return Ok(match last {
                Some(turn) => Asked { state: AgentState::Done, ..ended.with(turn) },
                None => Asked { state: AgentState::Done, ..ended },
            });
        }
    }
}

/// Waits for news of the program's state or turns. Returns whether the program has ended.
fn is_closed(bus: &mut Bus, within: Duration) -> Result<bool, ClientError> {
    let clock = Clock::start();
    loop {
        let left = within.saturating_sub(clock.elapsed());
        match bus.next(Some(left)) {
            Ok(Some(frame)) => match frame.event() {
                Some(Event::Closed { .. }) => return Ok(true),
                Some(Event::State(_) | Event::Turn(_)) => return Ok(false),
                _ => {}
            },
            Ok(None) => return Ok(false),
            Err(ClientError::Ended) => return Ok(true),
            Err(e) => return Err(e),
        }
    }
}

/// Returns the turn of a prompt that was submitted at this byte, if it is over.
fn turn_of(bus: &mut Bus, entered: u64) -> Result<Option<bus::Turn>, ClientError> {
    let turns = bus.request(&Turns { limit: Some(RECENT), whole: true }, ANSWER)?;
    let is_later = |turn: &bus::Turn| turn.detail.as_ref().is_some_and(|detail| detail.start_byte >= entered);
    Ok(turns.into_iter().find(is_later))
}

/// Answers the question that a blocked program asks, and confirms that it was taken.
///
/// # Errors
/// When the session refuses or does not answer.
pub fn answer(bus: &mut Bus, choice: &Choice, within: Option<Duration>) -> Result<Answered, ClientError> {
    let within = within.unwrap_or(ANSWERED);
    let (choice, text) = match choice {
        Choice::Yes => (Some("yes".to_owned()), None),
        Choice::No => (Some("no".to_owned()), None),
        Choice::Number(number) => (Some(number.to_string()), None),
        Choice::Label(label) => (Some(label.clone()), None),
        Choice::Text(text) => (None, Some(text.clone())),
    };
    let asked = Answer { choice, text, wait_ms: Some(millis(within)) };
    bus.request(&asked, within.saturating_add(ANSWER))
}

/// Returns what the program is doing, why, and the question that it asks.
///
/// # Errors
/// When the session finds no states, or does not answer.
pub fn explain(bus: &mut Bus) -> Result<Explained, ClientError> {
    bus.request(&Explain, ANSWER)
}

/// Returns the turns that the session keeps, the oldest first, with their texts.
///
/// # Errors
/// When the session does not answer.
pub fn turns(bus: &mut Bus) -> Result<Vec<bus::Turn>, ClientError> {
    bus.request(&Turns { limit: None, whole: true }, ANSWER)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
