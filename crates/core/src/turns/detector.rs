//! The detector: phases of a conversation, driven by the log and by time.

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use tapdeck_term::{Mark, Progress, Signal, Term};

use super::ahead::{Lap, LineRead};
use super::input::{Typed, Typing};
use super::journal::{Journals, Told};
use super::page::{self, Look};
use super::question::Standing;
use super::rules::Rules;
use super::{AgentState, Evidence, Judgement, Notice, OutputPoint};
use crate::event::Exit;
use crate::log::Offset;
use crate::stick::Party;
use crate::time::{Stamp, Time};

/// While output flows, the screen is judged this often.
const FLOWING: Duration = Duration::from_millis(100);
/// After this long a prompt is believed to be one although the last had a line editor behind it and
/// this has none: a plain shell may have been started from another.
pub(super) const EDITOR_WAIT: Duration = Duration::from_millis(1500);
/// The smallest step of time.
const NANOSECOND: Duration = Duration::from_nanos(1);
/// Line ends that are remembered, and rows above a prompt that may belong to it.
const LINE_ENDS: usize = 16;
pub(super) const ABOVE: u64 = 4;
/// Lines of one input that are remembered.
const MORE: usize = 10_000;
/// Notices that wait to be taken; older ones go.
const NOTICES: usize = 1024;
/// Signals that interrupt: HUP, INT, QUIT, KILL, TERM.
const INTERRUPTS: [i32; 5] = [1, 2, 3, 9, 15];

/// How much is kept.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Limits {
    pub(super) content: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { content: 4 << 20 }
    }
}

impl Limits {
    /// Sets how many bytes of one turn's text are kept, and of what the program wrote; 4 MiB by
    /// default.
    #[must_use]
    pub fn content(mut self, content: usize) -> Self {
        self.content = content;
        self
    }
}

/// A prompt, where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct At {
    /// Its last line.
    pub(super) text: String,
    /// The rule that knows it.
    pub(super) entry: Option<usize>,
    pub(super) evidence: Evidence,
    /// Where it begins, if that is certain, with the byte behind the sequence that says so.
    pub(super) begins: Option<(u64, u16, u64)>,
    /// The row of its last line, and the column behind it.
    pub(super) row: u64,
    pub(super) col: u16,
    /// The column on that row where it begins.
    pub(super) from_col: u16,
    /// A line editor stood behind it.
    pub(super) editor: bool,
    /// The byte behind the sequence that told of it: another one tells of another prompt.
    pub(super) sign: Option<u64>,
    /// What stood behind the cursor on its row: a prompt on the right.
    pub(super) right: String,
}

/// What was submitted and is not over.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) at: At,
    pub(super) submitted: OutputPoint,
    /// When Enter was last pressed.
    pub(super) entered: Stamp,
    /// From where on the echo of the last line is looked for.
    pub(super) asked_from: u64,
    /// Output since it was submitted, as far as it is kept.
    pub(super) bytes: Vec<u8>,
    pub(super) cut: bool,
    pub(super) typed: String,
    /// It stood on the screen as it was submitted.
    pub(super) shown: bool,
    /// There may be more or less of it than was typed.
    pub(super) edited: bool,
    /// Lines that were typed since, and whether the program asked for them as more of the same.
    /// Others may be anything, a password included, and are kept only if they were
    /// shown.
    pub(super) more: Vec<(String, bool)>,
    pub(super) interrupted: bool,
    pub(super) pressed: bool,
    pub(super) continued: bool,
    pub(super) started: bool,
    pub(super) worked: bool,
    /// The program has left it standing in its input field.
    pub(super) refused: bool,
    /// What the program's journals say about it.
    pub(super) told: Told,
    /// The party that submitted it.
    pub(super) by: Option<Party>,
    /// A row, and the column up to which an earlier turn has told it.
    pub(super) told_in_row: Option<(u64, u16)>,
}

impl Run {
    pub(super) fn new(at: At, submitted: OutputPoint, typed: String) -> Self {
        Self {
            at,
            submitted,
            entered: submitted.at,
            asked_from: submitted.byte.0,
            bytes: Vec::new(),
            cut: false,
            typed,
            shown: false,
            edited: false,
            more: Vec::new(),
            interrupted: false,
            pressed: false,
            continued: false,
            started: false,
            worked: false,
            refused: false,
            told: Told::default(),
            by: None,
            told_in_row: None,
        }
    }
}

impl Run {
    /// Where a byte of the output is among those that are kept, or their end.
    pub(super) fn place(&self, offset: u64) -> usize {
        let at = offset.saturating_sub(self.submitted.byte.0);
        usize::try_from(at).unwrap_or(usize::MAX).min(self.bytes.len())
    }
}

#[derive(Debug, Clone)]
pub(super) enum Phase {
    /// No prompt has been seen.
    Start,
    /// It waits.
    Ready(At),
    Running(Box<Run>),
}

/// An answer that was ended by nothing but a text that looks like a prompt. That may be output.
#[derive(Debug, Clone)]
pub(super) struct Doubted {
    /// With the output since then.
    pub(super) run: Run,
    /// The byte at which begins what has not been told.
    pub(super) from: u64,
    /// The supposed prompt.
    pub(super) at: At,
}

/// A mark of the shell.
#[derive(Debug, Clone, Copy)]
pub(super) struct Marked {
    pub(super) mark: Mark,
    pub(super) row: u64,
    pub(super) col: u16,
    pub(super) offset: u64,
}

/// Finds turns and states.
#[derive(Debug)]
pub struct Detector {
    pub(super) rules: Arc<Rules>,
    pub(super) limits: Limits,
    pub(super) typing: Typing,
    pub(super) phase: Phase,
    /// The last answer while a prompt stands that may be a part of it.
    pub(super) doubted: Option<Box<Doubted>>,
    pub(super) turns: u32,
    /// What was submitted and is over, turns or not.
    pub(super) answered: u32,
    pub(super) notices: VecDeque<Notice>,
    pub(super) judgement: Judgement,
    pub(super) offset: u64,
    pub(super) last: Stamp,
    pub(super) judged: Time,
    /// Something was written that no look at the screen has seen.
    pub(super) unseen: bool,
    /// The output up to which the screen was judged because Enter was pressed: a large
    /// paste presses it often.
    looked_at: Option<u64>,
    pub(super) line_ends: VecDeque<u64>,
    /// The newest mark, and those that begin a prompt and end an output.
    pub(super) mark: Option<Marked>,
    pub(super) prompt_mark: Option<Marked>,
    pub(super) output_mark: Option<u64>,
    pub(super) end_mark: Option<Marked>,
    /// Where a line editor last began, and where it last ended.
    pub(super) editor_on: Option<(u64, u16, u64)>,
    pub(super) editor_off: Option<u64>,
    pub(super) progress: Progress,
    /// Since when the screen of a program that was given something says that it is idle.
    pub(super) at_rest: Option<Stamp>,
    /// The rule that holds and does not count yet, and since when it holds.
    pub(super) standing: Option<(String, Time)>,
    pub(super) journals: Journals,
    pub(super) above: Vec<Look>,
    /// Commands that were over before the screen was judged.
    pub(super) laps: VecDeque<Lap>,
    /// Lines that a line editor has read since something was submitted.
    pub(super) lines_read: VecDeque<LineRead>,
    /// What stood above the last prompt, how often it has, and what was asked there.
    pub(super) seen_above: (Vec<Look>, u32, String),
    pub(super) ended: bool,
    /// The question that stands on the screen.
    pub(super) question: Option<Standing>,
    /// The rules of the program that the session began with, while another one is judged by its
    /// own.
    outer: Option<Arc<Rules>>,
}

impl Detector {
    /// A detector for a session that is about to begin.
    pub fn new(rules: Arc<Rules>, limits: Limits) -> Self {
        Self {
            rules,
            limits,
            typing: Typing::default(),
            phase: Phase::Start,
            doubted: None,
            turns: 0,
            answered: 0,
            notices: VecDeque::new(),
            judgement: Judgement::unknown(Stamp::default()),
            offset: 0,
            last: Stamp::default(),
            judged: Time::ZERO,
            unseen: false,
            looked_at: None,
            line_ends: VecDeque::new(),
            mark: None,
            prompt_mark: None,
            output_mark: None,
            end_mark: None,
            editor_on: None,
            editor_off: None,
            progress: Progress::None,
            at_rest: None,
            standing: None,
            journals: Journals::default(),
            above: Vec::new(),
            laps: VecDeque::new(),
            lines_read: VecDeque::new(),
            seen_above: (Vec::new(), 0, String::new()),
            ended: false,
            question: None,
            outer: None,
        }
    }

    /// The rules in use, to be kept.
    pub fn shared_rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules)
    }

    /// The rules in use.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Judges the session by the rules of a nested program, which was started from the first
    /// program, until `None` says that it has ended. The line that started it is no turn of the
    /// first program.
    pub fn set_nested(&mut self, nested: Option<Arc<Rules>>, term: &Term, now: Stamp) {
        let rules = match nested {
            Some(rules) => {
                if self.outer.is_none() {
                    self.outer = Some(Arc::clone(&self.rules));
                }
                // The outer program's marks say that a command runs while the nested one does.
                // Marks that come with its return are news.
                (self.mark, self.prompt_mark, self.output_mark, self.end_mark) = (None, None, None, None);
                // The nested program is not at a line editor because the outer one was: it is known
                // at once, while the last output may still be on its way.
                if let Phase::Running(run) = &self.phase
                    && self.editor_on.is_some_and(|(.., offset)| offset < run.submitted.byte.0)
                {
                    self.editor_on = None;
                }
                rules
            }
            None => match self.outer.take() {
                Some(rules) => rules,
                None => return,
            },
        };
        if self.ended {
            return;
        }
        self.rules = rules;
        self.doubted = None;
        self.forget_journals();
        if let Phase::Running(run) = std::mem::replace(&mut self.phase, Phase::Start) {
            self.tell(Notice::Nothing { submitted: run.submitted.byte });
        }
        self.at_rest = None;
        self.judge(term, now, false);
    }

    /// What the program is doing, and why.
    pub fn judgement(&self) -> &Judgement {
        &self.judgement
    }

    /// Turns so far.
    pub fn turns(&self) -> u32 {
        self.turns
    }

    /// The number of the turn that runs, if one does. A submission without an answer gets none.
    pub fn running_turn(&self) -> Option<u32> {
        matches!(self.phase, Phase::Running(_)).then(|| self.turns + 1)
    }

    /// Submissions that are over, those without an answer included.
    pub fn answered(&self) -> u32 {
        self.answered
    }

    /// Whether a prompt stands and nothing has been submitted to it.
    pub fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready(_))
    }

    /// Whether what was submitted has left the prompt: its echo is over, or the program is at work
    /// on it.
    pub fn has_taken(&self) -> bool {
        match &self.phase {
            Phase::Running(run) if self.rules.by_state => run.worked,
            Phase::Running(run) => self.content_from(run).is_some(),
            _ => false,
        }
    }

    /// Whether anything was typed that has not been submitted, on the screen or not.
    pub fn has_typed(&self) -> bool {
        self.typing.is_begun()
    }

    /// What was typed, has not been submitted and stands in front of the cursor.
    pub fn draft(&self, term: &Term) -> Option<String> {
        if self.rules.by_state
            && let Some(field) = self.input_field(term)
        {
            let is_typed = self.typing.is_begun() || field.is_plain || field.placeholders > 0;
            return (!field.is_empty() && is_typed).then_some(field.text);
        }
        let (row, col) = (page::absolute(term, term.cursor().row), term.cursor().col);
        if let Phase::Ready(at) = &self.phase
            && let Some(line) = page::row(term, row).filter(|_| !self.rules.by_state)
        {
            // On another row it may be on its way, and not have been looked at.
            let stands = page::columns(line, at.from_col, at.col) == at.text;
            if stands && at.col < col {
                // Recalled or completed, perhaps, rather than typed.
                let text = page::columns(line, at.col, col);
                return Some(text.trim().to_owned()).filter(|t| !t.is_empty());
            }
            if !stands && self.typing.is_begun() {
                // A search for an earlier line, or the like, stands in the prompt's place.
                let text = page::columns(line, 0, term.size().cols);
                return Some(text.trim().to_owned()).filter(|t| !t.is_empty());
            }
        }
        let line = String::from_utf8_lossy(self.typing.line());
        let typed = page::squeezed(&line);
        let stands = page::squeezed(&page::before_cursor(term).0).ends_with(page::ending(&typed));
        (stands && !typed.is_empty()).then(|| line.trim().to_owned())
    }

    /// Whether a line was submitted to a program that reads one at a time: what reads next may be
    /// another.
    pub fn is_changing(&self) -> bool {
        matches!(self.phase, Phase::Running(_)) && !self.rules.by_state
    }

    /// The last line of the prompt that stands, or stood when the running turn was submitted.
    pub fn prompt(&self) -> Option<&str> {
        match &self.phase {
            Phase::Start => None,
            Phase::Ready(at) => Some(&at.text),
            Phase::Running(run) => Some(&run.at.text),
        }
    }

    /// Whether [`Detector::poll`] has anything to say.
    pub fn has_news(&self) -> bool {
        !self.notices.is_empty()
    }

    /// What was found out since it was last asked.
    pub fn poll(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// When to call [`Detector::advance`] if nothing happens before.
    pub fn deadline(&self) -> Option<Time> {
        if self.ended {
            return None;
        }
        let last = self.last.mono;
        let mut next: Option<Time> = None;
        let mut at = |time: Time| {
            if time > self.judged && time > last {
                next = Some(next.map_or(time, |n| n.min(time)));
            }
        };
        let settled = last + self.rules.settle.max(NANOSECOND);
        at(settled);
        // On a busy machine what was written can arrive long after its time; the screen was looked
        // at meanwhile.
        if self.unseen && settled <= self.judged {
            at(self.judged + NANOSECOND);
        }
        if last >= self.judged {
            at((self.judged + FLOWING).max(last + NANOSECOND));
        }
        let limits = self.rules.states.iter().flat_map(|s| [s.quiet, s.changing]).flatten();
        for quiet in limits.chain(self.rules.quiet) {
            at(last + quiet);
        }
        let editor_comes = match &self.phase {
            Phase::Start => self.editor_on.is_some(),
            Phase::Ready(_) => false,
            Phase::Running(run) => run.at.editor,
        };
        if editor_comes {
            at(last + EDITOR_WAIT);
        }
        if let (Phase::Running(run), Some(within)) = (&self.phase, self.rules.answer_within) {
            at(run.entered.mono + within);
        }
        if self.rules.by_state && !matches!(self.phase, Phase::Ready(_)) {
            let since = self.at_rest.unwrap_or(self.judgement.since);
            at(since.mono + self.rules.settle);
        }
        if let Some((rule, since)) = &self.standing {
            let stands = self.rules.states.iter().find(|s| s.name == *rule).and_then(|s| s.stands);
            at(*since + stands.unwrap_or_default());
        }
        for time in self.journal_deadlines() {
            at(time);
        }
        next
    }

    /// Time has gone by until now without anything happening. To be called before everything that
    /// happens, with the model as it was.
    pub fn advance(&mut self, term: &Term, now: Stamp) {
        // Quiet rules make a handful of moments; a bound keeps a wrong rule from holding the
        // session up.
        for _ in 0..64 {
            match self.deadline() {
                Some(at) if at <= now.mono => {
                    let stamp = self.stamp(at, now);
                    self.judge(term, stamp, false);
                }
                _ => break,
            }
        }
    }

    fn stamp(&self, mono: Time, now: Stamp) -> Stamp {
        Stamp { mono, wall: now.wall - now.mono.since(mono) }
    }

    /// The program wrote; the model has seen it already and gave these signals.
    pub fn output(&mut self, bytes: &[u8], Offset(offset): Offset, signals: &[Signal], at: Stamp) {
        self.last = at;
        self.unseen = true;
        self.offset = offset + bytes.len() as u64;
        for i in memchr::memrchr_iter(b'\n', bytes).take(LINE_ENDS).collect::<Vec<_>>().into_iter().rev() {
            if self.line_ends.len() == LINE_ENDS {
                self.line_ends.pop_front();
            }
            self.line_ends.push_back(offset + i as u64 + 1);
        }
        let run = match &mut self.phase {
            Phase::Running(run) => Some(&mut **run),
            _ => self.doubted.as_mut().map(|doubted| &mut doubted.run),
        };
        if let Some(run) = run {
            // Line ends, colors and the like are no text.
            let room = self.limits.content.saturating_mul(2).saturating_sub(run.bytes.len());
            run.cut |= bytes.len() > room;
            run.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        for signal in signals {
            match signal {
                Signal::Mark { mark, row, col, offset } => {
                    let marked = Marked { mark: *mark, row: *row, col: *col, offset: *offset };
                    let before = self.mark.replace(marked);
                    match mark {
                        Mark::Prompt => {
                            self.prompt_mark = Some(marked);
                            self.end_mark.get_or_insert(marked);
                        }
                        Mark::Input => {}
                        Mark::Output => {
                            self.note_lap(before);
                            self.output_mark = Some(*offset);
                            self.end_mark = None;
                        }
                        Mark::Done(_) => {
                            self.end_mark.get_or_insert(marked);
                        }
                    }
                }
                Signal::BracketedPaste { on: true, row, col, offset } => {
                    self.editor_on = Some((*row, *col, *offset));
                }
                Signal::BracketedPaste { on: false, offset, .. } => {
                    self.note_line_read(*offset);
                    self.editor_off = Some(*offset);
                }
                Signal::Progress(progress) => self.progress = *progress,
                _ => {}
            }
        }
    }

    /// Takes the bytes that a party typed. Call it when they were delivered.
    pub fn input(&mut self, term: &Term, bytes: &[u8], by: Option<&Party>, at: Stamp) {
        self.answer_question(term, bytes, by);
        let mut acts = Vec::new();
        let mut typing = std::mem::take(&mut self.typing);
        let runs = matches!(self.phase, Phase::Running(_)) && !self.rules.by_state;
        typing.feed(bytes, runs, |act, line, edited| {
            acts.push((act, String::from_utf8_lossy(line).into_owned(), edited));
        });
        self.typing = typing;
        // What is shown from here on belongs to what is typed.
        if self.typing.is_begun() || !acts.is_empty() {
            self.doubted = None;
        }
        for (act, line, edited) in acts {
            match act {
                Typed::Interrupt => {
                    if let Phase::Running(run) = &mut self.phase {
                        run.interrupted = true;
                        run.pressed = true;
                    }
                }
                // In a menu or a panel of the program, Enter chooses.
                Typed::Enter if self.is_in_dialog() && line.trim().is_empty() => {}
                Typed::Enter => {
                    // A submitted line proves that the prompt was there, however briefly.
                    let unseen = self.looked_at != Some(self.offset);
                    if !self.is_ready() && unseen && self.last.mono < at.mono && !self.rules.by_state {
                        self.looked_at = Some(self.offset);
                        self.judge(term, at, true);
                    }
                    let shown = page::is_shown(term, &line);
                    self.follow_prompt(term);
                    self.submit(line, shown, edited, by, at);
                    // A client that waits for the answer must not be given the prompt before it.
                    if matches!(self.phase, Phase::Running(_)) && self.judgement.state == AgentState::Idle {
                        let judgement = self.by_phase(term, at);
                        self.set_judgement(judgement);
                    }
                }
            }
        }
    }

    /// Whether a full-screen program shows a dialog that the user opened.
    fn is_in_dialog(&self) -> bool {
        self.rules.by_state && self.is_ready() && self.judgement.state == AgentState::Blocked
    }

    /// A shell that lists completions draws its prompt again below them, with the line behind it.
    fn follow_prompt(&mut self, term: &Term) {
        let Phase::Ready(at) = &mut self.phase else { return };
        let (_, first) = page::before_cursor(term);
        let again = page::row(term, first).map(|line| page::columns(line, at.from_col, at.col));
        if first > at.row && !at.text.is_empty() && again.as_ref() == Some(&at.text) {
            at.row = first;
        }
    }

    fn submit(&mut self, line: String, shown: bool, edited: bool, by: Option<&Party>, at: Stamp) {
        match &mut self.phase {
            Phase::Start => {}
            Phase::Ready(prompt) => {
                let submitted = OutputPoint { byte: Offset(self.offset), at };
                let run = Run { shown, edited, by: by.cloned(), ..Run::new(prompt.clone(), submitted, line) };
                self.end_mark = None;
                self.phase = Phase::Running(Box::new(run));
            }
            Phase::Running(run) => {
                run.entered = at;
                run.refused = false;
                let asked = std::mem::take(&mut run.continued);
                if asked {
                    run.asked_from = self.offset;
                }
                if run.more.len() < MORE {
                    run.more.push((line, asked));
                }
            }
        }
    }

    /// A signal was sent to the program.
    pub fn signal(&mut self, signal: i32) {
        if let Phase::Running(run) = &mut self.phase
            && INTERRUPTS.contains(&signal)
        {
            run.interrupted = true;
        }
    }

    /// The program ended.
    pub fn exit(&mut self, exit: Exit, at: Stamp) {
        self.ended = true;
        self.end_question(at);
        let rule = match exit {
            Exit::Code(code) => format!("the program ended with code {code}"),
            Exit::Signal(signal) => format!("the program was ended by signal {signal}"),
        };
        self.set_judgement(Judgement { rule, ..Judgement::new(AgentState::Done, Evidence::Exit, at) });
    }

    pub(super) fn tell(&mut self, notice: Notice) {
        if self.notices.len() == NOTICES {
            self.notices.pop_front();
        }
        self.notices.push_back(notice);
    }

    pub(super) fn start(&mut self) {
        let number = self.turns + 1;
        if let Phase::Running(run) = &mut self.phase
            && !std::mem::replace(&mut run.started, true)
        {
            let start = run.submitted;
            self.tell(Notice::Started { number, start });
        }
    }
}
