//! Turns and states: what was asked of a program, what it answered, and what it is doing now.
//!
//! A [`Detector`] stands beside the terminal model and is told of everything in the order of the
//! log: output with the signals that it gave, input, signals, the end. It judges the *rendered*
//! screen, and only at moments that depend on times alone, never on how the output was cut into
//! chunks. So the same session gives the same turns live, replayed, and fed byte by byte.
//!
//! Evidence is ranked: what an agent itself writes down ([`Report`]), marks of shell integration
//! (OSC 133), the line editor's switching of bracketed paste, progress reports (OSC 9;4), the
//! title, prompt patterns on the line of the cursor, the screen rules of an agent, and quiet time
//! only where a rule allows it. The first prompt means ready. What has neither printed anything nor
//! was interrupted is no turn. What looks like a prompt and what an agent's screen means is data:
//! see [`Rules`].

mod ahead;
mod answer;
mod detector;
mod dialog;
mod field;
mod input;
mod journal;
mod judge;
mod page;
mod prompt;
mod question;
mod rules;
mod state;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;

use crate::log::Offset;
use crate::stick::Party;
use crate::time::Stamp;

pub use detector::{Detector, Limits};
pub use dialog::{Choice, Dialog, DialogOption, Form, Meaning, NoChoice, Reply};
pub use field::Field;
pub use journal::{Journal, JournalRecord, Part, Report, Reported, ToolCalls, ToolResults, ToolRun};
pub use page::{ending, skeleton, squeezed};
pub use question::{Answered, Decision};
pub(crate) use rules::Prompt;
pub use rules::{PromptText, RuleError, RuleText, Rules, StateText};

/// What stands in front of the cursor, the rows that wrap into its own included.
pub fn before_cursor(term: &tapdeck_term::Term) -> String {
    page::before_cursor(term).0
}

/// What a program is doing, as far as its screen tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum AgentState {
    /// Nothing tells.
    #[default]
    Unknown,
    /// It is at work.
    Working,
    /// It waits for an answer: a permission, a password, a choice.
    Blocked,
    /// It is ready for the next thing.
    Idle,
    /// It has ended.
    Done,
}

impl AgentState {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Unknown, Self::Working, Self::Blocked, Self::Idle, Self::Done];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Working => "working",
            Self::Blocked => "blocked",
            Self::Idle => "idle",
            Self::Done => "done",
        }
    }
}

impl std::fmt::Display for AgentState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for AgentState {
    type Err = crate::ParseError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|s| s.name() == name);
        found.ok_or_else(|| {
            let known = "working, blocked, idle, done or unknown";
            crate::ParseError::new(format!("no state is called {name:?}: {known}"))
        })
    }
}

/// What a judgement rests on, from the strongest to the weakest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Evidence {
    /// The program ended.
    Exit,
    /// The program wrote it down in a file of its own.
    Journal,
    /// OSC 133.
    Mark,
    /// Bracketed paste was switched, as line editors do around each line.
    Editor,
    /// OSC 9;4.
    Progress,
    /// The window's title.
    Title,
    /// A prompt pattern on the line of the cursor.
    Prompt,
    /// An agent's screen rule.
    Screen,
    /// Something was submitted and no prompt has come since.
    Input,
    /// Nothing happened for as long as a rule asks for.
    Quiet,
    /// There is none.
    None,
}

impl Evidence {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exit => "exit",
            Self::Journal => "journal",
            Self::Mark => "mark",
            Self::Editor => "line editor",
            Self::Progress => "progress",
            Self::Title => "title",
            Self::Prompt => "prompt",
            Self::Screen => "screen",
            Self::Input => "input",
            Self::Quiet => "quiet",
            Self::None => "none",
        }
    }
}

/// A state, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// What the program is doing.
    pub state: AgentState,
    /// What says so.
    pub evidence: Evidence,
    /// The rule that says so, by its name.
    pub rule: String,
    /// The rows that it rests on, with their numbers on the screen.
    pub rows: Vec<(u16, String)>,
    /// Since when.
    pub since: Stamp,
    /// What says otherwise.
    pub against: Vec<Contradiction>,
}

/// Evidence that speaks against a judgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// What the program would be doing.
    pub state: AgentState,
    /// What says so.
    pub evidence: Evidence,
    /// The rule that says so, by its name.
    pub rule: String,
}

impl Judgement {
    pub(crate) fn new(state: AgentState, evidence: Evidence, since: Stamp) -> Self {
        Self { state, evidence, rule: String::new(), rows: Vec::new(), since, against: Vec::new() }
    }

    pub(crate) fn unknown(since: Stamp) -> Self {
        let unknown = Self::new(AgentState::Unknown, Evidence::None, since);
        Self { rule: "nothing has been seen yet".into(), ..unknown }
    }

    /// Adds another judgement if it says otherwise.
    pub(crate) fn compare(&mut self, other: Option<Judgement>) {
        // A program that asks something in the middle of its work is at work, too.
        let is_usual = self.state == AgentState::Blocked;
        if let Some(other) = other.filter(|other| other.state != self.state && !is_usual) {
            let Judgement { state, evidence, rule, .. } = other;
            self.against.push(Contradiction { state, evidence, rule });
        }
    }
}

/// A point in the output: how much the program had written, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutputPoint {
    /// Bytes of output before it.
    pub byte: Offset,
    /// When.
    pub at: Stamp,
}

/// Something that was asked, and the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Its number in the session, from 1.
    pub number: u32,
    /// Where the answer begins, and when the question was submitted.
    pub start: OutputPoint,
    /// Where the answer ends, and when that was known.
    pub end: OutputPoint,
    /// What was asked, as the program showed it.
    pub input: String,
    /// The answer as the program wrote it.
    pub raw: Bytes,
    /// The answer as it was shown, without prompt and echo.
    pub text: String,
    /// Ctrl-C was pressed, or a signal was sent.
    pub interrupted: bool,
    /// The answer was longer than is kept.
    pub truncated: bool,
    /// What it rests on: the program's journal if the text is from there, or else what told of its
    /// end.
    pub evidence: Evidence,
    /// The party that submitted the question, if its keys were seen.
    pub by: Option<Party>,
    /// What the answer is made of, if the program itself wrote it down. An answer that was read off
    /// the screen has no parts.
    pub parts: Vec<Part>,
}

/// What was submitted and is not over, with the answer so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningTurn {
    /// The number that it will have if it becomes a turn.
    pub number: u32,
    /// Where in the output and when it was submitted.
    pub start: OutputPoint,
    /// What was asked.
    pub input: String,
    /// The answer so far: as the program wrote it down, or else as the screen shows it, where later
    /// output may change it.
    pub text: String,
    /// What the answer is made of, if the program itself writes it down.
    pub parts: Vec<Part>,
    /// Whether the program writes its answers down itself. Then the text is that of the parts.
    pub has_journal: bool,
}

/// What the detector has found out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The first prompt has come.
    Ready(OutputPoint),
    /// A turn has begun to show something.
    Started {
        /// Its number.
        number: u32,
        /// Where it began.
        start: OutputPoint,
    },
    /// A turn is over.
    Completed(Arc<Turn>),
    /// What was submitted at this byte is over, and has printed nothing.
    Nothing {
        /// Bytes of output when it was submitted.
        submitted: Offset,
    },
    /// The state changed.
    State(Judgement),
    /// A question of the program is over, whether it was answered or not.
    Decided(Arc<Decision>),
    /// The agent's journals say which conversation it has, by which it can be resumed.
    Conversation {
        /// The name of the agent's rules.
        agent: Arc<str>,
        /// What the agent calls the conversation.
        id: Arc<str>,
    },
}
