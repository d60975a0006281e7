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

/// A prompt that was submitted, on the way to its answer.
#[derive(Debug)]
pub(crate) struct Asking {
    clock: Clock,
    /// The byte of the output at which it was submitted.
    entered: u64,
    /// Since when the program has been idle.
    idle: Option<Duration>,
}

/// How far a prompt is.
#[derive(Debug)]
pub(crate) enum Looked {
    /// The program works on it: look again when something happens, or after so long.
    Runs(Box<Explained>, Option<Duration>),
    /// The program has answered, asks back, or has ended.
    Over(Box<Asked>),
}

impl Asking {
    /// Submits a prompt, each step of which may take as long as `step`, and lets go of the stick.
    /// The inner error says why it was not submitted. The connection gets the session's events from
    /// then on.
    pub(crate) fn begin(
        bus: &mut Bus,
        text: &str,
        step: Duration,
    ) -> Result<Result<Self, Asked>, ClientError> {
        let clock = Clock::start();
        bus.request(&Sub { frames: Frames::None, out: false, looks: false, ..Sub::default() }, ANSWER)?;
        // Fails before anything is sent if the session does not look for turns. What is submitted
        // before the first prompt was seen begins no turn.
        while bus.request(&Explain, ANSWER)?.judged.state == AgentState::Unknown {
            let left = FIRST_PROMPT.min(step).saturating_sub(clock.elapsed());
            if left.is_zero() || is_closed(bus, left)? {
                break;
            }
        }
        let pasted = submit(bus, text, step)?;
        let (Outcome::Submitted, Some(entered)) = (pasted.outcome, pasted.entered.or(pasted.seq)) else {
            let explained = bus.request(&Explain, ANSWER).ok();
            return Ok(Err(Asked::new(AskOutcome::Undelivered, pasted.evidence, explained)));
        };
        release(bus)?;
        Ok(Ok(Self { clock, entered, idle: None }))
    }

    /// The byte of the output at which it was submitted.
    #[cfg(feature = "mcp")]
    pub(crate) fn entered(&self) -> u64 {
        self.entered
    }

    /// A prompt that was submitted in another way, after this byte of the output.
    #[cfg(feature = "mcp")]
    pub(crate) fn since(entered: u64) -> Self {
        Self { clock: Clock::start(), entered, idle: None }
    }

    /// Goes on after a question of the program was answered; with a turn of its own that begins
    /// behind this byte, if there is one.
    #[cfg(feature = "mcp")]
    pub(crate) fn go_on(&mut self, from: Option<u64>) {
        (self.entered, self.idle) = (from.unwrap_or(self.entered), None);
    }

    /// Looks how far it is.
    pub(crate) fn look(&mut self, bus: &mut Bus) -> Result<Looked, ClientError> {
        let explained = bus.request(&Explain, ANSWER)?;
        let state = explained.judged.state;
        let rule = explained.judged.rule.clone();
        let over = |asked| Ok(Looked::Over(Box::new(asked)));
        if let Some(turn) = turn_of(bus, self.entered)? {
            // A question at a line editor's prompt ends the turn of what was said before it.
            let asks = state == AgentState::Blocked && explained.judged.evidence == Evidence::Prompt.name();
            let outcome = if asks { AskOutcome::Blocked } else { AskOutcome::Answered };
            return over(Asked::new(outcome, rule, Some(explained)).with(turn));
        }
        let now = self.clock.elapsed();
        let idle = (state == AgentState::Idle).then(|| *self.idle.get_or_insert(now));
        match state {
            AgentState::Blocked => return over(Asked::new(AskOutcome::Blocked, rule, Some(explained))),
            AgentState::Done => return over(Asked::new(AskOutcome::Ended, rule, Some(explained))),
            AgentState::Idle if idle.is_some_and(|since| now >= since + NO_TURN) => {
                let mut asked = Asked::new(AskOutcome::Answered, rule, Some(explained));
                asked.answer = Some(String::new());
                return over(asked);
            }
            AgentState::Idle => {}
            _ => self.idle = None,
        }
        let pause = idle.map(|since| (since + NO_TURN).saturating_sub(now).max(Duration::from_millis(1)));
        Ok(Looked::Runs(Box::new(explained), pause))
    }

    /// Returns what became of it when the program has ended.
    pub(crate) fn ended(&self, bus: &mut Bus) -> Asked {
        let ended = Asked::new(AskOutcome::Ended, "the program has ended", None);
        // The last turn ends with the program.
        let ended = match turn_of(bus, self.entered).ok().flatten() {
            Some(turn) => ended.with(turn),
            None => ended,
        };
        Asked { state: AgentState::Done, ..ended }
    }
}

/// Lets go of the stick: others may drive while the program works, a person can step in, and
/// prompts can queue up.
pub(crate) fn release(bus: &mut Bus) -> Result<(), ClientError> {
    match bus.request(&Release, ANSWER) {
        Ok(_) | Err(ClientError::Denied(_) | ClientError::Ended) => Ok(()),
        Err(e) => Err(e),
    }
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
    let mut asking = match Asking::begin(bus, text, within)? {
        Ok(asking) => asking,
        Err(undelivered) => return Ok(undelivered),
    };
    loop {
        let (explained, pause) = match asking.look(bus)? {
            Looked::Over(asked) => return Ok(*asked),
            Looked::Runs(explained, pause) => (explained, pause),
        };
        let left = within.saturating_sub(clock.elapsed());
        if left.is_zero() {
            let why = format!("timed out after {within:?}: the program is {}", explained.judged.state.name());
            return Ok(Asked::new(AskOutcome::Timeout, why, Some(*explained)));
        }
        if is_closed(bus, pause.map_or(left, |pause| left.min(pause)))? {
            return Ok(asking.ended(bus));
        }
    }
}

/// Waits for news of the program's state or turns. Returns whether the program has ended.
pub(crate) fn is_closed(bus: &mut Bus, within: Duration) -> Result<bool, ClientError> {
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
