//! Journals: files in which an agent itself writes down what it does. What they say ranks above
//! what the screen shows, because the agent knows and the screen only tells.
//!
//! Which files these are and what their records mean is data of the rules; others find and read
//! them, and tell the detector in [`Report`]s.

use core::time::Duration;
use std::sync::Arc;

use tapdeck_term::Term;

use super::detector::{Detector, Phase, Run};
use super::{AgentState, Evidence, Judgement, Notice, OutputPoint, page};
use crate::log::Offset;
use crate::time::{Stamp, Time, WallTime};

/// How long the screen may go on showing work after the journal said that there is none.
const SCREEN_LAGS: Duration = Duration::from_millis(1500);
/// How long a journal may speak of a question before the screen shows one.
const QUESTION_LAGS: Duration = Duration::from_millis(1000);
/// How long the journal's text of an answer is waited for after its end, and how long for a sign
/// that it has one.
const TEXT_LAGS: Duration = Duration::from_millis(450);
const PROMPT_LAGS: Duration = Duration::from_millis(250);
/// The parts of one answer that are kept.
const PARTS: usize = 10_000;
/// After this long at a silent prompt, a journal that still speaks of work is not believed.
pub(super) const FORGOTTEN: Duration = Duration::from_secs(10);

/// A kind of file that an agent writes, as its rules describe it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Journal {
    /// Its name in explanations.
    pub name: String,
    /// Where it is: `*` stands for a part of a name, `{pid}` for a process at the terminal, `{id}`
    /// for what the journal before it calls the conversation, `{NAME:other}` for a variable of the
    /// program's environment.
    pub path: String,
    /// Whether it is one record a line, and grows; otherwise it is one record, rewritten.
    pub lines: bool,
    /// The field that names the conversation.
    pub id: Option<String>,
    /// The field of the first record that names the program's folder.
    pub folder: Option<String>,
    /// The field of the first record with the time at which the conversation began. One that began
    /// before the program belongs to another session.
    pub born: Option<String>,
    /// The argument with which the program goes on with an older conversation.
    pub resume: Option<String>,
    /// The field with the time of a record.
    pub time: Option<String>,
    /// What its records mean.
    pub records: Vec<JournalRecord>,
}

/// What a record of a journal means, if it has these fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JournalRecord {
    /// Fields and their values; `*` is any value.
    pub when: Vec<(String, String)>,
    /// The state that it reports.
    pub state: Option<AgentState>,
    /// The field that says more about the state.
    pub detail: Option<String>,
    /// The fields with the text of a prompt.
    pub asked: Vec<String>,
    /// The fields with the text of an answer, or a part of one.
    pub said: Vec<String>,
    /// The answer is over.
    pub ended: bool,
    /// The answer was broken off.
    pub interrupted: bool,
    /// The tools that the program ran.
    pub used: Option<ToolCalls>,
    /// What these returned.
    pub returned: Option<ToolResults>,
}

/// Where a record has the tools that the program ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolCalls {
    /// The path to each of them; empty for the record itself.
    pub each: String,
    /// The field with its name. What has none is no tool.
    pub name: String,
    /// The field that its result repeats.
    pub id: String,
    /// The fields that say what it works on; the first that is there counts.
    pub about: Vec<String>,
}

/// Where a record has what tools returned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolResults {
    /// The path to each of them; empty for the record itself.
    pub each: String,
    /// The field that repeats the id of the tool's run.
    pub id: String,
    /// The fields with the text; the first that is there counts.
    pub text: Vec<String>,
    /// The field that is `true`, or a number other than 0, if the tool failed.
    pub failed: Option<String>,
}

/// A tool that the program ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolRun {
    /// When it was written down.
    pub at: WallTime,
    /// The name of the tool.
    pub name: String,
    /// What it worked on: a command, a file.
    pub about: String,
    /// What it returned, if that is known.
    pub result: Option<String>,
    /// Whether it failed, or was denied.
    pub failed: bool,
}

/// A part of an answer that the program wrote down itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// The next lines of the answer's text. A blank line stands between two of these.
    Text {
        /// When they were written down.
        at: WallTime,
        /// How many lines.
        lines: usize,
    },
    /// A tool that the program ran.
    Tool(ToolRun),
}

/// Something that a journal says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The journal, by its name in the rules.
    pub source: Arc<str>,
    /// Which file it was; other files may belong to other sessions.
    pub file: u64,
    /// Whether the file is known to be of this session's program.
    pub sure: bool,
    /// What the agent calls the conversation, where the file says so.
    pub conversation: Option<Arc<str>>,
    /// When it was written down.
    pub at: WallTime,
    /// What it says.
    pub what: Reported,
}

/// What a journal says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reported {
    /// What the program is doing, with its own words for it.
    State(AgentState, String),
    /// A prompt, as the program took it.
    Asked(String),
    /// An answer, or a part of one.
    Said(String),
    /// The answer is over; `true` if it was broken off.
    Ended(bool),
    /// The program ran a tool.
    Used {
        /// What its result repeats.
        id: String,
        /// The name of the tool.
        name: String,
        /// What it works on.
        about: String,
    },
    /// A tool returned.
    Returned {
        /// The id of its run.
        id: String,
        /// What it returned.
        text: String,
        /// Whether it failed, or was denied.
        failed: bool,
    },
}

/// The newest word of the journals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) state: AgentState,
    detail: String,
    source: Arc<str>,
    /// When it was written, and when it was read.
    at: WallTime,
    seen: Stamp,
}

impl Word {
    fn judgement(&self, rules: &str, now: Stamp) -> Judgement {
        let detail = if self.detail.is_empty() { String::new() } else { format!(", {}", self.detail) };
        Judgement {
            rule: format!("{rules}: {}{detail}", self.source),
            ..Judgement::new(self.state, Evidence::Journal, now)
        }
    }
}

/// What the journals have said in a session.
#[derive(Debug, Default)]
pub(super) struct Journals {
    word: Option<Word>,
    /// The file that is known to be of this session, of those that could be of others.
    file: Option<u64>,
    /// The last prompt that a journal has, and when it was written down.
    asked: Option<(String, WallTime)>,
    /// Prompts from before this are over.
    closed: WallTime,
    /// What the agent calls the conversation.
    conversation: Option<Arc<str>>,
}

/// What the journals have said about a turn.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    pub(super) asked: Option<String>,
    said: Vec<Said>,
    bytes: usize,
    pub(super) cut: bool,
    pub(super) ended: bool,
    pub(super) interrupted: bool,
}

/// A part of an answer.
#[derive(Debug, Clone)]
enum Said {
    Text(WallTime, String),
    /// A tool's run, by its id.
    Tool(String, ToolRun),
}

impl Told {
    /// The answer.
    pub(super) fn answer(&self) -> String {
        let texts = self.said.iter().filter_map(|said| match said {
            Said::Text(_, text) => Some(text.as_str()),
            Said::Tool(..) => None,
        });
        texts.collect::<Vec<_>>().join("\n\n")
    }

    /// What the answer is made of.
    pub(super) fn parts(&self) -> Vec<Part> {
        let part = |said: &Said| match said {
            Said::Text(at, text) => Part::Text { at: *at, lines: text.lines().count() },
            Said::Tool(_, run) => Part::Tool(run.clone()),
        };
        self.said.iter().map(part).collect()
    }

    /// Whether so many bytes more may be kept of a turn.
    fn takes(&mut self, bytes: usize, room: usize) -> bool {
        let fits = self.bytes + bytes <= room && self.said.len() < PARTS;
        self.bytes += if fits { bytes } else { 0 };
        fits
    }

    fn say(&mut self, text: &str, at: WallTime, room: usize) {
        let text = text.trim_end();
        if text.is_empty() {
            return;
        }
        let fits = self.takes(text.len(), room);
        self.cut |= !fits;
        if fits {
            self.said.push(Said::Text(at, text.to_owned()));
        }
    }

    /// Notes a tool's run, or more about one that is known.
    fn use_tool(&mut self, id: String, run: ToolRun, room: usize) {
        let known = !id.is_empty() && self.tool(&id).is_some();
        if !known && self.takes(id.len() + run.name.len() + run.about.len(), room) {
            self.said.push(Said::Tool(id, run));
        }
    }

    fn tool(&mut self, wanted: &str) -> Option<&mut ToolRun> {
        self.said.iter_mut().rev().find_map(|said| match said {
            Said::Tool(id, run) if id == wanted => Some(run),
            _ => None,
        })
    }

    fn tool_returned(&mut self, id: &str, text: String, failed: bool, room: usize) {
        // What comes first is what the tool said; later records repeat it in other words.
        if self.tool(id).is_none_or(|run| run.result.is_some()) {
            return;
        }
        let text = if self.takes(text.len(), room) { text } else { String::new() };
        if let Some(run) = self.tool(id) {
            (run.result, run.failed) = (Some(text), failed);
        }
    }
}

impl Detector {
    /// Takes what a journal says.
    pub fn report(&mut self, term: &Term, report: Report, now: Stamp) {
        if self.ended || !self.is_own(&report) {
            return;
        }
        let Report { source, at, what, conversation, .. } = report;
        if let Some(id) = conversation.filter(|id| self.journals.conversation.as_ref() != Some(id)) {
            self.journals.conversation = Some(Arc::clone(&id));
            self.tell(Notice::Conversation { agent: self.rules.name.as_str().into(), id });
        }
        match what {
            Reported::State(state, detail) => {
                if self.journals.word.as_ref().is_none_or(|word| word.at <= at) {
                    self.journals.word = Some(Word { state, detail, source, at, seen: now });
                }
            }
            Reported::Asked(text) => self.take_asked(term, text, at, now),
            Reported::Said(text) => {
                if let Phase::Running(run) = &mut self.phase {
                    run.told.say(&text, at, self.limits.content);
                }
            }
            Reported::Used { id, name, about } => {
                if let Phase::Running(run) = &mut self.phase {
                    let tool = ToolRun { at, name, about, ..ToolRun::default() };
                    run.told.use_tool(id, tool, self.limits.content);
                }
            }
            Reported::Returned { id, text, failed } => {
                if let Phase::Running(run) = &mut self.phase {
                    run.told.tool_returned(&id, text, failed, self.limits.content);
                }
            }
            Reported::Ended(interrupted) => {
                if let Phase::Running(run) = &mut self.phase
                    && run.told.asked.is_some()
                {
                    run.told.ended = true;
                    run.told.interrupted |= interrupted;
                    run.interrupted |= interrupted;
                }
            }
        }
        self.judge(term, now, false);
    }

    /// The last prompt that a journal has, and when it was written down.
    pub fn journal_prompt(&self) -> Option<(&str, WallTime)> {
        self.journals.asked.as_ref().map(|(text, at)| (text.as_str(), *at))
    }

    /// Whether a journal of this session has been found that has its prompts.
    pub fn has_journal(&self) -> bool {
        self.journals.asked.is_some()
    }

    /// Whether a report is of this session's program: a file that could be of another one counts
    /// once it has the prompt that was submitted here.
    fn is_own(&mut self, report: &Report) -> bool {
        if report.sure || self.journals.file == Some(report.file) {
            return true;
        }
        let (Reported::Asked(text), Phase::Running(run)) = (&report.what, &self.phase) else { return false };
        let same = run.told.asked.is_none()
            && report.at + SCREEN_LAGS >= run.entered.wall
            && page::skeleton(text) == page::skeleton(&run.typed);
        if same {
            self.journals.file = Some(report.file);
        }
        same
    }

    fn take_asked(&mut self, term: &Term, text: String, at: WallTime, now: Stamp) {
        if at <= self.journals.closed {
            return;
        }
        self.journals.asked = Some((text.clone(), at));
        if !matches!(self.phase, Phase::Running(_)) {
            // It was submitted in a way that was not noticed, before the first prompt for instance.
            let wall = at.min(now.wall);
            let submitted = Stamp { mono: now.mono - now.wall.since(wall), wall };
            let start = OutputPoint { byte: Offset(self.offset), at: submitted };
            self.phase = Phase::Running(Box::new(Run::new(self.nowhere(term), start, text.clone())));
        }
        if let Phase::Running(run) = &mut self.phase {
            run.worked = true;
            match &mut run.told.asked {
                // One more prompt that the program took while it was at work.
                Some(asked) => {
                    asked.push('\n');
                    asked.push_str(&text);
                }
                none => *none = Some(text),
            }
            run.told.ended = false;
        }
        self.start();
    }

    /// Notes that everything that was asked until now is over.
    pub(super) fn close_journal(&mut self, now: Stamp) {
        self.journals.closed = now.wall;
    }

    /// Forgets what another program's journals said.
    pub(super) fn forget_journals(&mut self) {
        self.journals = Journals::default();
    }

    /// The word of the journals that holds now: one of rest from before the last prompt is old.
    fn word(&self) -> Option<&Word> {
        let word = self.journals.word.as_ref()?;
        match &self.phase {
            Phase::Running(run) if word.state == AgentState::Idle && word.at < run.entered.wall => None,
            _ => Some(word),
        }
    }

    /// Weighs the journals against the screen. `Ok(None)` where the journals have nothing to say;
    /// an error where it is too early to say anything new.
    pub(super) fn weigh(
        &self,
        screen: Option<&Judgement>,
        now: Stamp,
    ) -> Result<Option<Judgement>, TooEarly> {
        let Some(word) = self.word() else { return Ok(None) };
        let shown = screen.map(|judgement| judgement.state);
        let own = word.judgement(&self.rules.name, now);
        let lasts = now.mono.since(word.seen.mono);
        let at_rest = screen.filter(|s| s.state == AgentState::Idle).is_some();
        match (word.state, shown) {
            // A question on the screen is one, whatever else the program does.
            (_, Some(AgentState::Blocked)) => Ok(None),
            (AgentState::Working, _) => {
                let silent = now.mono.since(self.last.mono.max(word.seen.mono));
                Ok((!at_rest || silent < self.rules.journal_within).then_some(own))
            }
            (AgentState::Blocked, _) if lasts < QUESTION_LAGS => Err(TooEarly),
            (AgentState::Idle, Some(AgentState::Working)) if lasts < SCREEN_LAGS => Ok(None),
            (AgentState::Idle, _) if !self.has_text(lasts) => Err(TooEarly),
            _ => Ok(Some(own)),
        }
    }

    /// Whether the journal has the whole answer, or has had time to write it down.
    fn has_text(&self, lasts: Duration) -> bool {
        match &self.phase {
            Phase::Running(run) if self.rules.has_transcript() => run.told.ended || lasts >= self.lag(run),
            _ => true,
        }
    }

    /// How long the end of an answer is waited for. A prompt that was taken back has none.
    fn lag(&self, run: &Run) -> Duration {
        let has_answer = run.told.asked.is_some() && !(self.typing.is_escaped() && run.told.said.is_empty());
        if has_answer { TEXT_LAGS } else { PROMPT_LAGS }
    }

    /// Whether the journals say that what was submitted is over.
    pub(super) fn is_over(&self, run: &Run, now: Stamp) -> bool {
        let says_idle = self.word().filter(|word| word.state == AgentState::Idle);
        says_idle.is_some_and(|word| {
            run.told.ended || !self.rules.has_transcript() || now.mono.since(word.seen.mono) >= self.lag(run)
        })
    }

    /// When a word of the journals may mean something else than now.
    pub(super) fn journal_deadlines(&self) -> impl Iterator<Item = Time> {
        let word = self.word();
        let silent = word.filter(|w| w.state == AgentState::Working).map(|w| w.seen.mono.max(self.last.mono));
        let lags = word.filter(|w| w.state != AgentState::Working).into_iter();
        let lags = lags
            .flat_map(|w| [PROMPT_LAGS, TEXT_LAGS, QUESTION_LAGS, SCREEN_LAGS].map(|lag| w.seen.mono + lag));
        lags.chain(silent.map(|at| at + self.rules.journal_within))
    }

    /// What the journals say now, for an explanation.
    pub(super) fn journal_says(&self, now: Stamp) -> Option<Judgement> {
        self.journals.word.as_ref().map(|word| word.judgement(&self.rules.name, now))
    }
}

/// Nothing new can be said yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooEarly;
