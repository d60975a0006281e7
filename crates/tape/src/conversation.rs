//! The conversation of a recorded session: what was asked, by whom, what the program answered, the
//! tools that it ran, and the questions that it asked back, with how they were decided. It is made
//! of the events beside the bytes of a recording; [`crate::export::conversation`] writes it.

use std::borrow::Cow;
use std::io::Read;
use std::time::Duration;

use serde::Deserialize;
use tapdeck_core::WallTime;
use tapdeck_core::scrub::Scrubber;

use crate::lines::Lines;
use crate::meta::Meta;
use crate::scrub::{scrub_line, scrub_meta};
use crate::turns::{MAX_TEXT, RecordedPart, RecordedTurn, Speaker, TurnNumbers, kind_of};
use crate::{Error, FilePosition, Result};

/// A conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conversation {
    /// The title of the recording.
    pub title: Option<String>,
    /// The command line.
    pub command: Vec<String>,
    /// The folder in which the command ran.
    pub folder: Option<String>,
    /// When the session started.
    pub started: Option<WallTime>,
    /// When the session ended; unknown while it runs.
    pub ended: Option<WallTime>,
    /// What was said, in order.
    pub entries: Vec<Entry>,
}

/// An entry of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A prompt and its answer.
    Turn(Exchange),
    /// A question of the program outside any turn, such as whether a folder is to be trusted.
    Question(AskedBack),
}

/// A prompt and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exchange {
    /// Its number in the session.
    pub number: u64,
    /// The party that asked, if that is known.
    pub by: Option<Speaker>,
    /// When the prompt was submitted.
    pub asked: WallTime,
    /// When the answer was over.
    pub answered: WallTime,
    /// What was asked.
    pub prompt: String,
    /// The answer.
    pub answer: Vec<Passage>,
    /// The answer was interrupted.
    pub interrupted: bool,
    /// A part of the answer is missing.
    pub truncated: bool,
}

/// A passage of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Passage {
    /// Text.
    Text {
        /// The text.
        text: String,
        /// Whether it is Markdown, as the program wrote it down; otherwise it is what the screen
        /// showed.
        markdown: bool,
    },
    /// A tool that the program ran.
    Tool(RecordedPart),
    /// A question that the program asked back.
    Question(AskedBack),
}

/// A question that a program asked, and how it was decided.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct AskedBack {
    /// When it was asked.
    #[serde(with = "crate::nanos", rename = "start_ns")]
    pub asked: WallTime,
    /// When it was gone.
    #[serde(with = "crate::nanos", rename = "end_ns")]
    pub over: WallTime,
    /// The question.
    #[serde(default)]
    pub text: String,
    /// The rows around it: what it is about.
    #[serde(default)]
    pub detail: Vec<String>,
    /// What could be chosen.
    #[serde(default)]
    pub options: Vec<Choice>,
    /// What was chosen, if that is known.
    #[serde(default)]
    pub answer: Option<Decided>,
    /// The party that chose, if that was seen.
    #[serde(default)]
    pub by: Option<Speaker>,
}

/// An option of a question.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Choice {
    /// The number in front of it, or its place from 1.
    pub number: u32,
    /// Its text.
    #[serde(default)]
    pub label: String,
}

/// How a question was decided: by an option, a text or a key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Decided {
    /// The number of the option.
    #[serde(default)]
    pub number: Option<u32>,
    /// The text of the option.
    #[serde(default)]
    pub label: Option<String>,
    /// What was typed.
    #[serde(default)]
    pub text: Option<String>,
    /// The key that was pressed.
    #[serde(default)]
    pub key: Option<String>,
}

impl Exchange {
    /// How long the answer took.
    pub fn took(&self) -> Duration {
        self.answered.since(self.asked)
    }
}

impl AskedBack {
    /// How long the program waited.
    pub fn waited(&self) -> Duration {
        self.over.since(self.asked)
    }
}

impl Decided {
    /// In words, such as `1. Yes`.
    pub fn words(&self) -> String {
        match self {
            Self { number: Some(number), label: Some(label), .. } => format!("{number}. {label}"),
            Self { text: Some(text), .. } => text.clone(),
            Self { key: Some(key), .. } => key.clone(),
            Self { number: Some(number), .. } => format!("option {number}"),
            _ => String::new(),
        }
    }
}

impl Conversation {
    /// Reads the conversation from events. `meta` describes the recording. With a
    /// scrubber, nothing of it passes unscrubbed.
    ///
    /// # Errors
    /// When the reader fails, a turn or a question makes no sense, or they take too much memory.
    pub fn read(events: impl Read, meta: Option<&Meta>, mut scrubber: Option<&mut Scrubber>) -> Result<Self> {
        let mut found = Found::default();
        let mut lines = Lines::new(events);
        let mut room = MAX_TEXT;
        while let Some(line) = lines.next_line()? {
            let Some(kind) = kind_of(line.text).filter(|kind| KINDS.contains(&kind.as_str())) else {
                continue;
            };
            let text = match &mut scrubber {
                Some(scrubber) => Cow::Owned(scrub_line(line.text, scrubber)),
                None => Cow::Borrowed(line.text),
            };
            let at = FilePosition::Line(line.number);
            let wrong = |e| Error::malformed(at, format!("a {kind} that makes no sense: {e}"));
            let size = found.take(&kind, &text).map_err(wrong)?;
            room = room.checked_sub(size).ok_or_else(|| {
                Error::malformed(at, format!("the conversation is larger than {} MiB", MAX_TEXT >> 20))
            })?;
        }
        let mut meta = meta.cloned();
        if let (Some(meta), Some(scrubber)) = (&mut meta, scrubber) {
            scrub_meta(meta, scrubber);
        }
        let command = meta
            .as_ref()
            .map(|meta| meta.argv().iter().map(|arg| String::from_utf8_lossy(arg).into_owned()).collect());
        let known = |at: WallTime| (at > WallTime::ZERO).then_some(at);
        Ok(Self {
            entries: found.entries(),
            command: command.unwrap_or_default(),
            started: meta.as_ref().and_then(|meta| known(meta.started_at)),
            ended: meta.as_ref().and_then(|meta| meta.ended_at),
            folder: meta.as_mut().and_then(|meta| meta.cwd.take()),
            title: meta.as_mut().and_then(|meta| meta.title.take()),
        })
    }

    /// The prompts and their answers.
    pub fn turns(&self) -> impl Iterator<Item = &Exchange> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Turn(turn) => Some(turn),
            Entry::Question(_) => None,
        })
    }
}

/// The kinds of lines that tell of a conversation.
const KINDS: [&str; 4] = ["turn", "question", "driver", "state"];

#[derive(Deserialize)]
struct Driver {
    #[serde(with = "crate::nanos")]
    ts_ns: WallTime,
    to: Option<String>,
}

#[derive(Deserialize)]
struct State {
    #[serde(with = "crate::nanos")]
    ts_ns: WallTime,
    state: String,
    #[serde(default)]
    rows: Vec<(u64, String)>,
}

/// What was found in the events.
#[derive(Default)]
struct Found {
    turns: Vec<RecordedTurn>,
    questions: Vec<AskedBack>,
    drivers: Vec<Driver>,
    states: Vec<State>,
}

impl Found {
    /// Takes a line, and says how much memory that takes.
    fn take(&mut self, kind: &str, line: &[u8]) -> serde_json::Result<usize> {
        match kind {
            "turn" => self.turns.push(serde_json::from_slice(line)?),
            "question" => self.questions.push(serde_json::from_slice(line)?),
            "driver" => self.drivers.push(serde_json::from_slice(line)?),
            _ => self.states.push(serde_json::from_slice(line)?),
        }
        let turn = if kind == "turn" { self.turns.last().map_or(0, RecordedTurn::size) } else { 0 };
        Ok(turn.max(line.len() + size_of::<RecordedTurn>()))
    }

    fn entries(mut self) -> Vec<Entry> {
        if self.questions.is_empty() {
            self.questions = questions_of_states(&self.states);
        }
        TurnNumbers::assign(&mut self.turns);
        // Lines are written when a turn or a question is over.
        self.questions.sort_by_key(|question| question.asked);
        self.turns.sort_by_key(|turn| turn.start);
        let mut questions = self.questions.into_iter().peekable();
        let mut entries = Vec::new();
        for turn in self.turns {
            while let Some(before) = questions.next_if(|q| q.asked < turn.start) {
                entries.push(Entry::Question(before));
            }
            let mut asked = Vec::new();
            while let Some(during) = questions.next_if(|q| q.asked <= turn.end) {
                asked.push(during);
            }
            let by = turn.by.clone().or_else(|| holder_at(&self.drivers, turn.start));
            entries.push(Entry::Turn(Exchange {
                number: turn.number,
                by,
                asked: turn.start,
                answered: turn.end,
                answer: passages(&turn, asked),
                interrupted: turn.interrupted,
                truncated: turn.truncated,
                prompt: turn.input,
            }));
        }
        entries.extend(questions.map(Entry::Question));
        entries.retain(|entry| !matches!(entry, Entry::Question(question) if question.options.is_empty()));
        entries
    }
}

/// The questions of a recording that has none as such: while the program was blocked, with the rows
/// that showed it. How they were decided is not known.
fn questions_of_states(states: &[State]) -> Vec<AskedBack> {
    let blocked = states.iter().enumerate().filter(|(_, state)| state.state == "blocked");
    let question = |(i, state): (usize, &State)| AskedBack {
        asked: state.ts_ns,
        over: states.get(i + 1).map_or(state.ts_ns, |next| next.ts_ns),
        text: state.rows.first().map(|(_, text)| text.trim().to_owned()).unwrap_or_default(),
        detail: state.rows.iter().map(|(_, text)| text.clone()).collect(),
        options: Vec::new(),
        answer: None,
        by: None,
    };
    blocked.map(question).collect()
}

/// The party that held the stick.
fn holder_at(drivers: &[Driver], at: WallTime) -> Option<Speaker> {
    let last = drivers.iter().rev().find(|driver| driver.ts_ns <= at)?;
    last.to.clone().map(|name| Speaker { name, role: None })
}

/// The passages of an answer: its parts in order, with the questions between them by their times. A
/// tool is told of with its result, so a question that was asked while it ran stands before it.
fn passages(turn: &RecordedTurn, questions: Vec<AskedBack>) -> Vec<Passage> {
    let mut questions = questions.into_iter().peekable();
    let mut passages = Vec::new();
    let mut lines = turn.text.lines();
    let text = |lines: Vec<&str>, markdown| {
        let text = lines.join("\n").trim_end().to_owned();
        (!text.trim().is_empty()).then_some(Passage::Text { text, markdown })
    };
    let is_markdown = !turn.parts.is_empty();
    for (i, part) in turn.parts.iter().enumerate() {
        let ran = part.tool.is_some().then(|| turn.parts.get(i + 1).map_or(turn.end, |next| next.at));
        let until = ran.unwrap_or(part.at).max(part.at);
        while let Some(question) = questions.next_if(|q| q.asked < until) {
            passages.push(Passage::Question(question));
        }
        if part.tool.is_some() {
            passages.push(Passage::Tool(part.clone()));
            continue;
        }
        passages.extend(text(lines.by_ref().take(part.lines).collect(), is_markdown));
        // The blank line behind it.
        lines.next();
    }
    passages.extend(questions.map(Passage::Question));
    passages.extend(text(lines.collect(), is_markdown));
    passages
}
