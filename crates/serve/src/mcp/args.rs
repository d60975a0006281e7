//! What the tools take. The comments are what a model reads.

use std::path::PathBuf;
use std::time::Duration;

use regex::Regex;
use schemars::JsonSchema;
use serde::Deserialize;
use tapdeck_core::turns::AgentState;

use super::call::Refusal;
use crate::NewSession;
use crate::client::{Condition, RowsFrom, Wait};

/// The longest wait, in seconds.
pub(super) const WAIT: u64 = 600;
/// The longest pattern, in bytes, and the most memory that it may take once compiled.
const PATTERN: usize = 1000;
const COMPILED: usize = 4 << 20;

/// A session, for tools that take nothing else.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SessionArgs {
    /// Name or id of the session, or the beginning of one. Leave it out if there is only one
    /// session.
    #[serde(default)]
    pub(super) session: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct NoArgs {}

/// How a screen is returned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Form {
    /// Plain text, one line for each row.
    #[default]
    Text,
    /// An SVG picture with colors, as an embedded resource.
    Svg,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ScreenArgs {
    /// Name or id of the session. Leave it out if there is only one session.
    #[serde(default)]
    pub(super) session: Option<String>,
    /// How many rows above the screen to include, at most 10000.
    #[serde(default)]
    pub(super) scrollback: u32,
    /// Return only rows written since this output offset, the "seq" or "since" of an earlier
    /// result, including rows that have scrolled off.
    #[serde(default)]
    pub(super) since: Option<u64>,
    /// "text" (default) or "svg". Use svg only if you can show pictures; PNG is not available.
    #[serde(default)]
    pub(super) form: Form,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct TypeArgs {
    /// Name or id of the session. Leave it out if there is only one session.
    #[serde(default)]
    pub(super) session: Option<String>,
    /// The text to type. A line end is the Enter key.
    pub(super) text: String,
    /// Press Enter after the text.
    #[serde(default)]
    pub(super) enter: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct KeysArgs {
    /// Name or id of the session. Leave it out if there is only one session.
    #[serde(default)]
    pub(super) session: Option<String>,
    /// Keys in the spelling of tmux: "Enter", "Escape", "Tab", "BSpace", "Up", "PageDown", "F5",
    /// "C-c" (Ctrl), "M-x" (Alt), "S-Tab" (Shift), or a single character such as "y".
    pub(super) keys: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct AskArgs {
    /// Name or id of the session. Leave it out if there is only one session.
    #[serde(default)]
    pub(super) session: Option<String>,
    /// The prompt.
    pub(super) text: String,
    /// The longest time to wait for the answer, in seconds; 300 by default, at most 600.
    #[serde(default)]
    pub(super) timeout_s: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct AnswerArgs {
    /// Name or id of the session. Leave it out if there is only one session.
    #[serde(default)]
    pub(super) session: Option<String>,
    /// "yes", "no", the number of an option, or its label or a unique part of it.
    #[serde(default)]
    pub(super) choice: Option<String>,
    /// Text to type where the question takes text.
    #[serde(default)]
    pub(super) text: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct WaitArgs {
    /// Name or id of the session. Leave it out if there is only one session.
    #[serde(default)]
    pub(super) session: Option<String>,
    /// Wait until a row of the screen matches this regular expression.
    #[serde(default)]
    pub(super) text: Option<String>,
    /// Wait until the program is in one of these states: "working", "blocked" (it asks a question
    /// or for permission), "idle" (it waits for a prompt), "done" (it has ended), "unknown".
    #[serde(default)]
    pub(super) states: Option<Vec<String>>,
    /// Wait until the program has written nothing for this many milliseconds.
    #[serde(default)]
    pub(super) idle_ms: Option<u64>,
    /// Wait until the program exits.
    #[serde(default)]
    pub(super) exit: bool,
    /// With text: match only rows written since this output offset, the "seq" or "since" of an
    /// earlier result.
    #[serde(default)]
    pub(super) since: Option<u64>,
    /// The longest time to wait, in seconds; 30 by default, at most 600.
    #[serde(default)]
    pub(super) timeout_s: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct TurnsArgs {
    /// Name or id of the session. Leave it out if there is only one session.
    #[serde(default)]
    pub(super) session: Option<String>,
    /// How many of the newest turns to list; 20 by default, at most 200.
    #[serde(default)]
    pub(super) limit: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct TurnArgs {
    /// Name or id of the session. Leave it out if there is only one session.
    #[serde(default)]
    pub(super) session: Option<String>,
    /// The turn's number, from 1; the last turn by default.
    #[serde(default)]
    pub(super) number: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct RecordingArgs {
    /// The recording's name, as list_recordings shows it.
    pub(super) recording: String,
    /// The first line to return, from 1. A negative number counts from the end: -100 returns the
    /// last 100 lines. By default the first line.
    #[serde(default)]
    pub(super) from: Option<i64>,
    /// How many lines to return; 500 by default, at most 5000.
    #[serde(default)]
    pub(super) lines: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SearchArgs {
    /// A regular expression. Case matters only if it has a capital letter.
    pub(super) pattern: String,
    /// Search only recordings whose name contains this text.
    #[serde(default)]
    pub(super) recording: Option<String>,
    /// How many matching lines to return; 50 by default, at most 500.
    #[serde(default)]
    pub(super) limit: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SizeArgs {
    /// Name or id of the session. Leave it out if there is only one session.
    #[serde(default)]
    pub(super) session: Option<String>,
    /// Columns, from 1 to 10000.
    pub(super) cols: u16,
    /// Rows, from 1 to 10000.
    pub(super) rows: u16,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct StartArgs {
    /// The program and its arguments, each as one string; the user's shell if left out.
    #[serde(default)]
    pub(super) command: Vec<String>,
    /// A name for the session.
    #[serde(default)]
    pub(super) name: Option<String>,
    /// The folder to start in, as an absolute path.
    #[serde(default)]
    pub(super) folder: Option<PathBuf>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct KillArgs {
    /// Name or id of the session. Leave it out if there is only one session.
    #[serde(default)]
    pub(super) session: Option<String>,
    /// Send this signal, such as "INT" or "TERM", instead of ending the session.
    #[serde(default)]
    pub(super) signal: Option<String>,
}

impl StartArgs {
    pub(super) fn parse(self) -> Result<NewSession, Refusal> {
        let new = NewSession { command: self.command, name: self.name, folder: self.folder };
        new.checked().map_err(Refusal::new)
    }
}

impl WaitArgs {
    pub(super) fn parse(&self) -> Result<Wait, Refusal> {
        let mut conditions = Vec::new();
        if let Some(text) = &self.text {
            conditions.push(Condition::Text(compile(text, false)?));
        }
        if let Some(states) = self.states.as_ref().filter(|states| !states.is_empty()) {
            let states: Result<Vec<AgentState>, _> = states.iter().map(|state| state.parse()).collect();
            conditions.push(Condition::States(states.map_err(|e| Refusal::new(e.to_string()))?));
        }
        conditions.extend(self.idle_ms.map(|ms| Condition::Idle(Duration::from_millis(ms.min(600_000)))));
        conditions.extend(self.exit.then_some(Condition::Exit));
        let (Some(condition), true) = (conditions.pop(), conditions.is_empty()) else {
            return Err(Refusal::new("give exactly one of text, states, idle_ms and exit"));
        };
        Ok(Wait {
            condition,
            rows: self.since.map_or(RowsFrom::Screen, RowsFrom::Offset),
            timeout: Duration::from_secs(self.timeout_s.unwrap_or(30).clamp(1, WAIT)),
        })
    }
}

/// Compiles a pattern of a client, bounded.
pub(super) fn compile(pattern: &str, smart_case: bool) -> Result<Regex, Refusal> {
    if pattern.is_empty() || pattern.len() > PATTERN {
        return Err(Refusal::new(format!("a pattern has from 1 to {PATTERN} bytes")));
    }
    let ignores_case = smart_case && !pattern.chars().any(char::is_uppercase);
    let mut builder = regex::RegexBuilder::new(pattern);
    let built = builder.case_insensitive(ignores_case).size_limit(COMPILED).build();
    built.map_err(|e| Refusal::new(format!("not a regular expression: {e}")))
}
