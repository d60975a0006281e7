//! Rules: what prompts look like, and what a screen says about its program. Data, made ready once.

use core::time::Duration;

use regex::Regex;

use super::journal::FORGOTTEN;
use super::{AgentState, Journal};

/// The longest pattern, and how many there may be.
const MAX_PATTERN: usize = 2000;
const MAX_PATTERNS: usize = 500;
/// Rows from the bottom that a screen rule looks at, unless it says.
const LAST_ROWS: u16 = 12;
/// How long a screen rests before it is judged, unless the rules say.
const SETTLE: Duration = Duration::from_millis(40);

/// A rule that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// A pattern that spans lines: prompts are looked for on the line of the cursor.
    #[error("{rule}: the pattern {pattern:?} has a line end: patterns are matched on one rendered line")]
    Newline {
        /// Which rule.
        rule: String,
        /// The pattern.
        pattern: String,
    },
    /// A pattern that is no regular expression, or is too long.
    #[error("{rule}: {why}")]
    Pattern {
        /// Which rule.
        rule: String,
        /// What is wrong.
        why: String,
    },
    /// A rule that would always or never hold.
    #[error("{0}: a state rule needs a title, a screen, a cursor, a progress, quiet_ms or changing_ms")]
    Empty(String),
    /// There are too many.
    #[error("more than {MAX_PATTERNS} patterns")]
    TooMany,
}

/// A rule file's contents, before it is checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleText {
    /// Its name.
    pub name: String,
    /// Prompts: name, pattern, continuation, strict.
    pub prompts: Vec<PromptText>,
    /// States, in the order in which they are tried.
    pub states: Vec<StateText>,
    /// How long a prompt must stand.
    pub settle: Option<Duration>,
    /// Turns begin and end with the state rather than with a prompt.
    pub by_state: bool,
    /// After this long without a sign of work, what was submitted counts as done; only for turns by
    /// state.
    pub answer_within: Option<Duration>,
    /// How long a silent program at rest is still believed to work because its journal says so.
    pub journal_within: Option<Duration>,
    /// After so much quiet a turn is over, prompt or not.
    pub quiet: Option<Duration>,
    /// The first row of the program's input field: the answer stands above it. What its first group
    /// matches is part of the text there.
    pub frame: Option<String>,
    /// Rows right above that one which belong to it.
    pub border: Option<String>,
    /// Rows that are no part of any answer.
    pub chrome: Vec<String>,
    /// The row that repeats what was asked, above the answer.
    pub echo: Option<String>,
    /// The row that says that an answer was broken off.
    pub interrupted: Option<String>,
    /// What is shown in place of a long text that was pasted.
    pub placeholder: Option<String>,
    /// The program always asks for bracketed paste once it takes prompts.
    pub brackets: bool,
    /// What a shell writes behind output without a line end, byte for byte.
    pub eol_marks: Vec<String>,
    /// The files in which the program writes down what it does.
    pub journals: Vec<Journal>,
    /// The keys that empty the input field, by their names.
    pub clear: Vec<String>,
    /// The keys that break off what the program is doing, by their names.
    pub interrupt: Vec<String>,
    /// Texts that the program does not take for a prompt: pattern and reason each.
    pub refuse: Vec<(String, String)>,
    /// Texts behind which the program offers completions, which Enter would choose; a blank behind
    /// them closes the offer.
    pub completes: Option<String>,
}

/// A prompt, before it is checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptText {
    /// Its name in explanations.
    pub name: String,
    /// What stands in front of the cursor.
    pub pattern: String,
    /// What stands there while more of the same input is wanted.
    pub continuation: Option<String>,
    /// Nothing else looks like this, so it counts without a line editor's word.
    pub strict: bool,
}

/// A state rule, before it is checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateText {
    /// Its name in explanations.
    pub name: String,
    /// The state that it means.
    pub state: AgentState,
    /// The title matches.
    pub title: Option<String>,
    /// Each matches a row near the bottom of the screen.
    pub screen: Vec<String>,
    /// None matches a row there.
    pub without: Vec<String>,
    /// The lowest row that looks like the program's input field (`frame`) matches: it is not that
    /// field, but what a dialog has in its place.
    pub field: Option<String>,
    /// What stands in front of the cursor matches.
    pub cursor: Option<String>,
    /// The progress report: `busy`, `paused`, `error` or `none`.
    pub progress: Option<String>,
    /// Rows from the bottom that count.
    pub last_rows: Option<u16>,
    /// Nothing was written for this long.
    pub quiet: Option<Duration>,
    /// It counts only after it has held for this long, because the program takes no keys before.
    pub stands: Option<Duration>,
    /// Something was written within this time.
    pub changing: Option<Duration>,
    /// The program has asked for bracketed paste.
    pub pastes: bool,
    /// What looks like options on the screen belongs to no menu.
    pub without_menu: bool,
}

/// A prompt.
#[derive(Debug, Clone)]
pub(crate) struct Prompt {
    /// Its name in explanations.
    pub(crate) name: String,
    pub(super) pattern: Regex,
    pub(super) continuation: Option<Regex>,
    pub(super) strict: bool,
}

/// A state rule.
#[derive(Debug, Clone)]
pub(crate) struct StateRule {
    /// Its name in explanations.
    pub(crate) name: String,
    /// The state that it means.
    pub(crate) state: AgentState,
    pub(super) title: Option<Regex>,
    pub(super) screen: Vec<Regex>,
    pub(super) without: Vec<Regex>,
    pub(super) field: Option<Regex>,
    pub(super) cursor: Option<Regex>,
    pub(super) progress: Option<ProgressState>,
    pub(super) last_rows: u16,
    pub(super) quiet: Option<Duration>,
    pub(super) stands: Option<Duration>,
    pub(super) changing: Option<Duration>,
    pub(super) pastes: bool,
    pub(super) without_menu: bool,
}

/// What a progress report of the program tells, as a rule names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgressState {
    Busy,
    Paused,
    Error,
    None,
}

/// Rules, ready to be used.
#[derive(Debug, Clone)]
pub struct Rules {
    /// The name of the file that they come from.
    pub name: String,
    pub(super) prompts: Vec<Prompt>,
    /// How many of them are not those of the base.
    own_prompts: usize,
    pub(super) states: Vec<StateRule>,
    pub(super) settle: Duration,
    pub(super) by_state: bool,
    pub(super) answer_within: Option<Duration>,
    pub(super) journal_within: Duration,
    pub(super) quiet: Option<Duration>,
    pub(super) frame: Option<Regex>,
    pub(super) border: Option<Regex>,
    pub(super) chrome: Vec<Regex>,
    pub(super) echo: Option<Regex>,
    pub(super) interrupted: Option<Regex>,
    pub(super) placeholder: Option<Regex>,
    pub(super) brackets: bool,
    pub(super) eol_marks: Vec<Vec<u8>>,
    journals: Vec<Journal>,
    clear: Vec<String>,
    interrupt: Vec<String>,
    refuse: Vec<(Regex, String)>,
    completes: Option<Regex>,
}

impl Rules {
    /// Checks rules and makes them ready. Those of `base`, if any, come behind their own.
    ///
    /// # Errors
    /// Names the rule that cannot be used, and why.
    pub fn new(text: &RuleText, base: Option<&Rules>) -> Result<Self, RuleError> {
        if text.prompts.len() * 2 + text.states.iter().map(|s| s.screen.len() + 4).sum::<usize>()
            > MAX_PATTERNS
        {
            return Err(RuleError::TooMany);
        }
        let mut prompts = Vec::new();
        for p in &text.prompts {
            let rule = format!("{}, prompt {:?}", text.name, p.name);
            prompts.push(Prompt {
                name: p.name.clone(),
                pattern: compile(&rule, &p.pattern)?,
                continuation: p.continuation.as_deref().map(|c| compile(&rule, c)).transpose()?,
                strict: p.strict,
            });
        }
        let mut states = Vec::new();
        for s in &text.states {
            states.push(state_rule(&text.name, s)?);
        }
        let whole = |what: &str, pattern: &Option<String>| {
            pattern.as_deref().map(|p| compile(&format!("{}, {what}", text.name), p)).transpose()
        };
        let (frame, echo) = (whole("frame", &text.frame)?, whole("echo", &text.echo)?);
        let border = whole("border", &text.border)?;
        let interrupted = whole("interrupted", &text.interrupted)?;
        let placeholder = whole("placeholder", &text.placeholder)?;
        let in_chrome = |c: &String| compile(&format!("{}, chrome", text.name), c);
        let chrome = text.chrome.iter().map(in_chrome).collect::<Result<Vec<_>, _>>()?;
        let refuse = |(pattern, why): &(String, String)| {
            Ok((compile(&format!("{}, refuse", text.name), pattern)?, why.clone()))
        };
        let mut rules = Self {
            name: text.name.clone(),
            own_prompts: prompts.len(),
            prompts,
            states,
            settle: text.settle.or(base.map(|b| b.settle)).unwrap_or(SETTLE),
            by_state: text.by_state,
            answer_within: text.answer_within,
            journal_within: text.journal_within.unwrap_or(FORGOTTEN),
            quiet: text.quiet,
            frame,
            interrupted,
            placeholder,
            brackets: text.brackets,
            border,
            chrome,
            echo,
            eol_marks: text.eol_marks.iter().map(|m| m.as_bytes().to_vec()).collect(),
            journals: text.journals.clone(),
            clear: text.clear.clone(),
            interrupt: text.interrupt.clone(),
            refuse: text.refuse.iter().map(refuse).collect::<Result<Vec<_>, RuleError>>()?,
            completes: whole("completes", &text.completes)?,
        };
        if let Some(base) = base {
            rules.prompts.extend(base.prompts.iter().cloned());
            rules.states.extend(base.states.iter().cloned());
            rules.eol_marks.extend(base.eol_marks.iter().cloned());
        }
        Ok(rules)
    }

    /// Whether the program always asks for bracketed paste once it takes prompts.
    pub fn brackets(&self) -> bool {
        self.brackets
    }

    /// The files in which the program writes down what it does.
    pub fn journals(&self) -> &[Journal] {
        &self.journals
    }

    /// Leaves out some of the journals, by their names.
    #[must_use]
    pub fn without_journals(mut self, is_ignored: impl Fn(&str) -> bool) -> Self {
        self.journals.retain(|journal| !is_ignored(&journal.name));
        self
    }

    /// Whether one of the journals has the text of answers.
    pub(super) fn has_transcript(&self) -> bool {
        self.journals.iter().flat_map(|j| &j.records).any(|r| !r.said.is_empty())
    }

    /// Whether the rule of this name, as judgements have it, says that there is no menu.
    pub(super) fn is_without_menu(&self, rule: &str) -> bool {
        let own = rule.strip_prefix(&*self.name).and_then(|rule| rule.strip_prefix(": "));
        own.is_some_and(|own| self.states.iter().any(|state| state.without_menu && state.name == own))
    }

    /// Whether the program has an input field that these rules know.
    pub fn has_field(&self) -> bool {
        self.by_state && self.frame.is_some()
    }

    /// The keys that empty the program's input field, by their names.
    pub fn clear(&self) -> &[String] {
        &self.clear
    }

    /// The keys that break off what the program is doing, by their names: `C-c` unless the rules
    /// say otherwise.
    pub fn interrupt(&self) -> Vec<String> {
        if self.interrupt.is_empty() { vec!["C-c".to_owned()] } else { self.interrupt.clone() }
    }

    /// Why the program would not take a text for a prompt.
    pub fn refusal(&self, text: &str) -> Option<&str> {
        self.refuse.iter().find(|(pattern, _)| pattern.is_match(text)).map(|(_, why)| why.as_str())
    }

    /// Whether the program offers completions behind this text, which Enter would choose.
    pub fn completes(&self, text: &str) -> bool {
        self.completes.as_ref().is_some_and(|pattern| pattern.is_match(text))
    }

    /// Puts a prompt of the user's own in front of the rules.
    ///
    /// # Errors
    /// When the pattern cannot be used.
    pub fn with_prompt(mut self, pattern: &str) -> Result<Self, RuleError> {
        let pattern = compile("the given prompt", pattern)?;
        let own = Prompt { name: "given by the user".into(), pattern, continuation: None, strict: true };
        self.prompts.insert(0, own);
        self.own_prompts = 1;
        self.by_state = false;
        Ok(self)
    }

    /// The pattern by which the prompt of this program is found, for messages that name one: that
    /// of its input field, its own prompts, or the prompts of any program.
    pub fn pattern(&self, program: &str) -> String {
        if let (true, Some(frame)) = (self.by_state, &self.frame) {
            return frame.as_str().to_owned();
        }
        let own = &self.prompts[..self.own_prompts];
        let named = || self.prompts.iter().find(|prompt| program.starts_with(&prompt.name));
        let prompts = match own {
            [] => named().map_or(self.prompts.as_slice(), std::slice::from_ref),
            own => own,
        };
        match prompts {
            [one] => one.pattern.as_str().to_owned(),
            several => {
                let each: Vec<String> =
                    several.iter().map(|p| format!("(?:{})", p.pattern.as_str())).collect();
                each.join("|")
            }
        }
    }
}

fn state_rule(file: &str, s: &StateText) -> Result<StateRule, RuleError> {
    let rule = format!("{file}, state {:?}", s.name);
    let one = |p: &Option<String>| p.as_deref().map(|p| compile(&rule, p)).transpose();
    let all = |list: &[String]| list.iter().map(|p| compile(&rule, p)).collect::<Result<Vec<_>, _>>();
    if s.title.is_none()
        && s.screen.is_empty()
        && s.cursor.is_none()
        && s.progress.is_none()
        && s.quiet.is_none()
        && s.changing.is_none()
    {
        return Err(RuleError::Empty(rule));
    }
    let progress = match s.progress.as_deref() {
        None => None,
        Some("busy") => Some(ProgressState::Busy),
        Some("paused") => Some(ProgressState::Paused),
        Some("error") => Some(ProgressState::Error),
        Some("none") => Some(ProgressState::None),
        Some(other) => {
            let why = format!("progress is busy, paused, error or none, not {other:?}");
            return Err(RuleError::Pattern { rule, why });
        }
    };
    Ok(StateRule {
        name: s.name.clone(),
        state: s.state,
        title: one(&s.title)?,
        screen: all(&s.screen)?,
        without: all(&s.without)?,
        field: one(&s.field)?,
        cursor: one(&s.cursor)?,
        progress,
        last_rows: s.last_rows.unwrap_or(LAST_ROWS),
        quiet: s.quiet,
        stands: s.stands,
        changing: s.changing,
        pastes: s.pastes,
        without_menu: s.without_menu,
    })
}

fn compile(rule: &str, pattern: &str) -> Result<Regex, RuleError> {
    let newline = pattern.contains(['\n', '\r']) || has_escape(pattern, &['n', 'r']);
    if newline {
        return Err(RuleError::Newline { rule: rule.into(), pattern: pattern.into() });
    }
    let wrong = |why: String| RuleError::Pattern { rule: rule.into(), why };
    if pattern.len() > MAX_PATTERN {
        return Err(wrong(format!("a pattern of more than {MAX_PATTERN} characters")));
    }
    let regex = regex::RegexBuilder::new(pattern).size_limit(1 << 20).build();
    regex.map_err(|e| wrong(e.to_string().lines().last().unwrap_or("no regular expression").to_owned()))
}

/// Whether the pattern has one of these escapes; an escaped backslash is none.
fn has_escape(pattern: &str, letters: &[char]) -> bool {
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if c == '\\' && chars.next().is_some_and(|next| letters.contains(&next)) {
            return true;
        }
    }
    false
}
