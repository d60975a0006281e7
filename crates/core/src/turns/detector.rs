//! The detector: phases of a conversation, driven by the log and by time.

use std::collections::VecDeque;
use std::sync::Arc;

use tapdeck_term::{Mark, Progress, Signal, Term};

use super::input::{Typed, Typing};
use super::judge::Screen;
use super::page::{self, Look};
use super::rules::Rules;
use super::{AgentState, Evidence, Judgement, Notice, Place};
use crate::event::{Exit, Stamp};

const MS: u64 = 1_000_000;
/// While output flows, the screen is judged this often.
const FLOWING_NS: u64 = 100 * MS;
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
pub struct Limits {
    /// Bytes of one turn.
    pub content: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { content: 4 << 20 }
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
}

/// What was submitted and is not over.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) at: At,
    pub(super) submitted: Place,
    /// From where on the echo of the last line is looked for.
    pub(super) asked_from: u64,
    /// Output since it was submitted, as far as it is kept.
    pub(super) bytes: Vec<u8>,
    pub(super) cut: bool,
    pub(super) typed: String,
    /// Lines that were typed since, and whether the program asked for them as more of the same. Others may be anything,
    /// a password included, and are nobody's business unless they were shown.
    pub(super) more: Vec<(String, bool)>,
    pub(super) interrupted: bool,
    pub(super) pressed: bool,
    pub(super) continued: bool,
    pub(super) started: bool,
    pub(super) worked: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Phase {
    /// No prompt has been seen.
    Start,
    /// It waits.
    Ready(At),
    Running(Box<Run>),
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
    pub(super) turns: u32,
    /// What was submitted and is over, turns or not.
    pub(super) answered: u32,
    pub(super) notices: VecDeque<Notice>,
    pub(super) judgement: Judgement,
    pub(super) offset: u64,
    pub(super) last: Stamp,
    pub(super) judged_ns: u64,
    /// The output up to which the screen was looked at because somebody pressed Enter: a large paste presses it often.
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
    pub(super) above: Vec<Look>,
    pub(super) ended: bool,
}

impl Detector {
    /// A detector for a session that is about to begin.
    pub fn new(rules: Arc<Rules>, limits: Limits) -> Self {
        Self {
            rules,
            limits,
            typing: Typing::default(),
            phase: Phase::Start,
            turns: 0,
            answered: 0,
            notices: VecDeque::new(),
            judgement: Judgement::unknown(Stamp::default()),
            offset: 0,
            last: Stamp::default(),
            judged_ns: 0,
            looked_at: None,
            line_ends: VecDeque::new(),
            mark: None,
            prompt_mark: None,
            output_mark: None,
            end_mark: None,
            editor_on: None,
            editor_off: None,
            progress: Progress::None,
            above: Vec::new(),
            ended: false,
        }
    }

    /// The rules in use.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// What the program is doing, and why.
    pub fn judgement(&self) -> &Judgement {
        &self.judgement
    }

    /// Turns so far.
    pub fn turns(&self) -> u32 {
        self.turns
    }

    /// Submissions that are over, those without an answer included.
    pub fn answered(&self) -> u32 {
        self.answered
    }

    /// Whether a prompt stands and nothing has been submitted to it.
    pub fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready(_))
    }

    /// Whether what was submitted has left the prompt: its echo is over, or the program is at work on it.
    pub fn has_taken(&self) -> bool {
        match &self.phase {
            Phase::Running(run) if self.rules.by_state => run.worked,
            Phase::Running(run) => self.content_from(run).is_some(),
            _ => false,
        }
    }

    /// The last line of the prompt that stands, or stood when the running turn was submitted.
    pub fn prompt(&self) -> Option<&str> {
        match &self.phase {
            Phase::Start => None,
            Phase::Ready(at) => Some(&at.text),
            Phase::Running(run) => Some(&run.at.text),
        }
    }

    /// What was found out since it was last asked.
    pub fn poll(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// When to call [`Detector::advance`] if nothing happens before.
    pub fn deadline_ns(&self) -> Option<u64> {
        if self.ended {
            return None;
        }
        let last = self.last.mono_ns;
        let mut next: Option<u64> = None;
        let mut at = |ns: u64| {
            if ns > self.judged_ns && ns > last {
                next = Some(next.map_or(ns, |n| n.min(ns)));
            }
        };
        at(last + self.rules.settle_ns.max(1));
        if last >= self.judged_ns {
            at((self.judged_ns + FLOWING_NS).max(last + 1));
        }
        for quiet in self.rules.states.iter().filter_map(|s| s.quiet_ns).chain(self.rules.quiet_ns) {
            at(last + quiet);
        }
        if let (Phase::Running(run), Some(within)) = (&self.phase, self.rules.answer_within_ns) {
            at(run.submitted.at.mono_ns + within);
        }
        if self.rules.by_state && !matches!(self.phase, Phase::Ready(_)) {
            at(self.judgement.since.mono_ns + self.rules.settle_ns);
        }
        next
    }

    /// Time has gone by until now without anything happening. To be called before everything that happens, with the
    /// model as it was.
    pub fn advance(&mut self, term: &Term, now: Stamp) {
        // Quiet rules make a handful of moments; a bound keeps a wrong rule from holding the session up.
        for _ in 0..64 {
            match self.deadline_ns() {
                Some(at) if at <= now.mono_ns => {
                    let stamp = self.stamp(at, now);
                    self.judge(term, stamp, false);
                }
                _ => break,
            }
        }
    }

    fn stamp(&self, mono_ns: u64, now: Stamp) -> Stamp {
        Stamp { mono_ns, wall_ns: now.wall_ns.saturating_sub(now.mono_ns.saturating_sub(mono_ns)) }
    }

    /// The program wrote; the model has seen it already and gave these signals.
    pub fn output(&mut self, bytes: &[u8], offset: u64, signals: &[Signal], at: Stamp) {
        self.last = at;
        self.offset = offset + bytes.len() as u64;
        for i in memchr::memrchr_iter(b'\n', bytes).take(LINE_ENDS).collect::<Vec<_>>().into_iter().rev() {
            if self.line_ends.len() == LINE_ENDS {
                self.line_ends.pop_front();
            }
            self.line_ends.push_back(offset + i as u64 + 1);
        }
        if let Phase::Running(run) = &mut self.phase {
            let room = self.limits.content.saturating_sub(run.bytes.len());
            run.cut |= bytes.len() > room;
            run.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        for signal in signals {
            match signal {
                Signal::Mark { mark, row, col, offset } => {
                    let marked = Marked { mark: *mark, row: *row, col: *col, offset: *offset };
                    self.mark = Some(marked);
                    match mark {
                        Mark::Prompt => {
                            self.prompt_mark = Some(marked);
                            self.end_mark.get_or_insert(marked);
                        }
                        Mark::Input => {}
                        Mark::Output => {
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
                Signal::BracketedPaste { on: false, offset, .. } => self.editor_off = Some(*offset),
                Signal::Progress(progress) => self.progress = *progress,
                _ => {}
            }
        }
    }

    /// Somebody typed; to be called when it was delivered.
    pub fn input(&mut self, term: &Term, bytes: &[u8], at: Stamp) {
        let mut acts = Vec::new();
        let mut typing = std::mem::take(&mut self.typing);
        typing.feed(bytes, |act, line| acts.push((act, String::from_utf8_lossy(line).into_owned())));
        self.typing = typing;
        for (act, line) in acts {
            match act {
                Typed::Interrupt => {
                    if let Phase::Running(run) = &mut self.phase {
                        run.interrupted = true;
                        run.pressed = true;
                    }
                }
                Typed::Enter => {
                    // Who submits has seen the prompt, however short it stood.
                    let unseen = self.looked_at != Some(self.offset);
                    if !self.is_ready() && unseen && self.last.mono_ns < at.mono_ns && !self.rules.by_state {
                        self.looked_at = Some(self.offset);
                        self.judge(term, at, true);
                    }
                    self.submit(line, at);
                    // Whoever waits for the answer must not take the prompt that was for it.
                    if matches!(self.phase, Phase::Running(_)) && self.judgement.state == AgentState::Idle {
                        let judgement = self.by_phase(term, at);
                        self.set_judgement(judgement);
                    }
                }
            }
        }
    }

    fn submit(&mut self, line: String, at: Stamp) {
        match &mut self.phase {
            Phase::Start => {}
            Phase::Ready(prompt) => {
                let run = Run {
                    at: prompt.clone(),
                    submitted: Place { byte: self.offset, at },
                    asked_from: self.offset,
                    bytes: Vec::new(),
                    cut: false,
                    typed: line,
                    more: Vec::new(),
                    interrupted: false,
                    pressed: false,
                    continued: false,
                    started: false,
                    worked: false,
                };
                self.end_mark = None;
                self.phase = Phase::Running(Box::new(run));
            }
            Phase::Running(run) => {
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
        let rule = match exit {
            Exit::Code(code) => format!("the program ended with code {code}"),
            Exit::Signal(signal) => format!("the program was ended by signal {signal}"),
        };
        self.set_judgement(Judgement {
            state: AgentState::Done,
            evidence: Evidence::Exit,
            rule,
            rows: Vec::new(),
            since: at,
        });
    }

    /// Looks at the screen. `sure` when somebody acts on what stands there.
    fn judge(&mut self, term: &Term, now: Stamp, sure: bool) {
        self.judged_ns = now.mono_ns;
        let quiet = now.mono_ns.saturating_sub(self.last.mono_ns);
        let settled = sure || quiet >= self.rules.settle_ns;
        let screen = Screen::new(term, self.progress, quiet);
        if self.rules.by_state {
            self.judge_state(&screen, term, now);
            self.turn_by_state(term, now);
        } else {
            self.turn_by_prompt(term, now, settled, quiet);
            self.judge_state(&screen, term, now);
        }
    }

    fn judge_state(&mut self, screen: &Screen<'_>, term: &Term, now: Stamp) {
        let rules = Arc::clone(&self.rules);
        // A frame that is always there says nothing before it had time to change.
        let waiting = match &self.phase {
            Phase::Running(run) if rules.by_state && !run.worked => !self.is_late(run, now),
            _ => false,
        };
        let judgement = match screen.judge(&rules) {
            Some(held) if waiting && held.rule.state == AgentState::Idle => self.by_phase(term, now),
            // At its prompt a shell is idle, whatever an old line on its screen says.
            Some(held) if rules.by_state || !self.is_ready() => Judgement {
                state: held.rule.state,
                evidence: held.evidence,
                rule: format!("{}: {}", rules.name, held.rule.name),
                rows: held.rows,
                since: now,
            },
            _ => self.by_phase(term, now),
        };
        self.set_judgement(judgement);
    }

    /// What the conversation itself says.
    fn by_phase(&self, term: &Term, now: Stamp) -> Judgement {
        let here = (term.cursor().row, page::before_cursor(term).0);
        let (state, evidence, rule, rows) = match &self.phase {
            phase
                if self.rules.by_state
                    && !matches!(phase, Phase::Running(run) if !self.is_late(run, now)) =>
            {
                (AgentState::Unknown, Evidence::None, "no rule holds".to_owned(), Vec::new())
            }
            Phase::Start => {
                (AgentState::Unknown, Evidence::None, "no prompt has been seen yet".to_owned(), Vec::new())
            }
            Phase::Ready(at) => {
                let name = at.entry.and_then(|e| self.rules.prompts.get(e)).map_or_else(
                    || format!("a prompt ({})", at.evidence.name()),
                    |p| format!("prompt {:?}", p.name),
                );
                (AgentState::Idle, at.evidence, format!("{}: {name}", self.rules.name), vec![here])
            }
            Phase::Running(run) => {
                let rule = format!("{:?} was submitted and no prompt has come since", brief(&run.typed));
                (AgentState::Working, Evidence::Input, rule, Vec::new())
            }
        };
        Judgement { state, evidence, rule, rows, since: now }
    }

    fn set_judgement(&mut self, mut new: Judgement) {
        if new.state == self.judgement.state {
            new.since = self.judgement.since;
            self.judgement = new;
            return;
        }
        self.judgement = new.clone();
        self.tell(Notice::State(new));
    }

    pub(super) fn tell(&mut self, notice: Notice) {
        if self.notices.len() == NOTICES {
            self.notices.pop_front();
        }
        self.notices.push_back(notice);
    }

    /// The prompt that stands in front of the cursor, if one does.
    fn prompt_at(&self, term: &Term, settled: bool) -> Option<At> {
        if term.modes().alternate() {
            return None;
        }
        let since = match &self.phase {
            Phase::Running(run) => run.submitted.byte,
            _ => 0,
        };
        let before = match &self.phase {
            Phase::Running(run) => Some(&run.at),
            Phase::Ready(at) => Some(at),
            Phase::Start => None,
        };
        let (text, row) = page::before_cursor(term);
        let here = page::absolute(term, term.cursor().row);
        let entry = self.rules.prompts.iter().position(|p| p.pattern.is_match(&text));
        let editor = term.modes().bracketed_paste() && self.editor_on.is_some_and(|(.., o)| o >= since);
        let at = |evidence, begins, from_col| At {
            text: columns_from(&text, from_col),
            entry,
            evidence,
            begins,
            row: here,
            col: term.cursor().col,
            from_col,
            editor,
        };
        // The shell's own word.
        let marked = self.mark.filter(|m| m.offset >= since);
        match marked.map(|m| m.mark) {
            Some(Mark::Input) => {
                let begins = self.prompt_mark.filter(|m| m.offset >= since).map(|m| (m.row, m.col, m.offset));
                return Some(at(Evidence::Mark, begins, 0));
            }
            Some(Mark::Prompt) if settled => {
                let begins = marked.map(|m| (m.row, m.col, m.offset));
                return Some(at(Evidence::Mark, begins, 0));
            }
            _ => {}
        }
        if !settled {
            return None;
        }
        let running = matches!(marked.map(|m| m.mark), Some(Mark::Output));
        let known = entry.and_then(|e| self.rules.prompts.get(e));
        if running && !editor && !known.is_some_and(|p| p.strict) {
            return None;
        }
        if editor && let Some((r, c, o)) = self.editor_on {
            // Some switch it on in front of the prompt, others behind it.
            let behind = (r, c) == (here, term.cursor().col);
            let in_front = !behind && r <= here && here - r <= ABOVE;
            let from_col = if in_front && r == here { c } else { 0 };
            return Some(at(Evidence::Editor, in_front.then_some((r, c, o)), from_col));
        }
        // Where a line editor stood behind the last prompt, one does behind the next.
        let editor_is_missing = before.is_some_and(|b| b.editor);
        if known.is_some_and(|p| p.strict) {
            return Some(at(Evidence::Prompt, None, 0));
        }
        if editor_is_missing {
            return None;
        }
        // The same prompt, perhaps behind output that had no line end.
        let literal = before.map(|b| b.text.as_str()).filter(|t| !t.trim().is_empty());
        if let Some(front) = literal.and_then(|l| text.strip_suffix(l)) {
            let width = u16::try_from(tapdeck_term::text_width(front)).unwrap_or(0);
            let from_col = if row == here { width } else { 0 };
            let entry = before.and_then(|b| b.entry);
            return Some(At { entry, ..at(Evidence::Prompt, None, from_col) });
        }
        known.map(|_| at(Evidence::Prompt, None, 0))
    }

    fn turn_by_prompt(&mut self, term: &Term, now: Stamp, settled: bool, quiet: u64) {
        let prompt = self.prompt_at(term, settled);
        match &mut self.phase {
            Phase::Start => {
                if let Some(at) = prompt {
                    self.above = page::above(term, at.row, ABOVE);
                    self.tell(Notice::Ready(Place { byte: self.offset, at: now }));
                    self.phase = Phase::Ready(at);
                }
            }
            Phase::Ready(at) => {
                // Drawn anew, moved by a resize, or behind something that a job printed.
                if let Some(new) = prompt
                    && (new.text == at.text || new.begins.is_some())
                {
                    *at = At { entry: new.entry.or(at.entry), ..new };
                }
            }
            Phase::Running(_) => self.running_by_prompt(term, now, settled, quiet, prompt),
        }
    }

    fn running_by_prompt(&mut self, term: &Term, now: Stamp, settled: bool, quiet: u64, prompt: Option<At>) {
        let Phase::Running(run) = &self.phase else { return };
        let Some(from) = self.content_from(run) else { return };
        let here = page::absolute(term, term.cursor().row);
        if settled && self.wants_more(term, run, from, here) {
            if let Phase::Running(run) = &mut self.phase {
                run.continued = true;
            }
            return;
        }
        if let Some(at) = prompt {
            return self.complete(term, now, from, at);
        }
        if self.rules.quiet_ns.is_some_and(|q| quiet >= q) {
            let col = term.cursor().col;
            let at = At {
                text: String::new(),
                evidence: Evidence::Quiet,
                begins: None,
                row: if col == 0 { here } else { here + 1 },
                col,
                from_col: 0,
                entry: None,
                editor: false,
            };
            return self.complete(term, now, from, at);
        }
        // The last rows may be a prompt that is not whole yet.
        if !run.started {
            let written = page::written(term, from, (here, 0));
            if written.lines.len() as u64 > 2 * ABOVE || (settled && !written.is_empty()) {
                self.start();
            }
        }
    }

    fn start(&mut self) {
        let number = self.turns + 1;
        if let Phase::Running(run) = &mut self.phase
            && !std::mem::replace(&mut run.started, true)
        {
            let start = run.submitted;
            self.tell(Notice::Started { number, start });
        }
    }

    /// Whether the program waits for more of the same input.
    fn wants_more(&self, term: &Term, run: &Run, from: u64, here: u64) -> bool {
        let (text, _) = page::before_cursor(term);
        let matches = |p: &super::Prompt| p.continuation.as_ref().is_some_and(|c| c.is_match(&text));
        let fits = match run.at.entry.and_then(|e| self.rules.prompts.get(e)) {
            Some(prompt) => matches(prompt),
            None => text != run.at.text && self.rules.prompts.iter().any(matches),
        };
        fits && page::written(term, from, (here, 0)).is_empty()
    }

    /// The byte at which the answer begins: behind the echo of what was asked.
    pub(super) fn content_from(&self, run: &Run) -> Option<u64> {
        if let Some(mark) = self.output_mark.filter(|o| *o >= run.submitted.byte) {
            return Some(mark + 1);
        }
        let base = run.submitted.byte;
        let skip = usize::try_from(run.asked_from - base).unwrap_or(usize::MAX);
        let bytes = run.bytes.get(skip..)?;
        let line_end = memchr::memchr(b'\n', bytes);
        // A line editor that says when it is done.
        if let Some(off) = self.first_off(run, bytes) {
            if line_end.is_some_and(|l| l < off) {
                let extra = usize::from(bytes.get(off) == Some(&b'\r'));
                return Some(run.asked_from + (off + extra) as u64);
            }
            let end = memchr::memchr(b'\n', &bytes[off..])?;
            return Some(run.asked_from + (off + end + 1) as u64);
        }
        line_end.map(|l| run.asked_from + l as u64 + 1)
    }

    /// Where in these bytes the line editor first ends.
    fn first_off(&self, run: &Run, bytes: &[u8]) -> Option<usize> {
        const OFF: &[u8] = b"\x1b[?2004l";
        // Only a switch that the model saw is one.
        self.editor_off.filter(|o| *o >= run.asked_from)?;
        memchr::memmem::find(bytes, OFF).map(|at| at + OFF.len())
    }

    fn turn_by_state(&mut self, term: &Term, now: Stamp) {
        let state = self.judgement.state;
        let stood = now.mono_ns.saturating_sub(self.judgement.since.mono_ns) >= self.rules.settle_ns;
        match &self.phase {
            Phase::Start if state == AgentState::Idle && stood => {
                self.tell(Notice::Ready(Place { byte: self.offset, at: now }));
                self.phase = Phase::Ready(self.nowhere(term));
            }
            Phase::Running(run) => match state {
                AgentState::Idle if stood && (run.worked || self.is_late(run, now)) => {
                    self.complete_by_state(term, now)
                }
                AgentState::Working | AgentState::Blocked
                    if !run.worked && self.judgement.evidence != Evidence::Input =>
                {
                    if let Phase::Running(run) = &mut self.phase {
                        run.worked = true;
                    }
                    self.start();
                }
                _ => {}
            },
            _ => {}
        }
    }

    /// Whether a program that gives no sign of work has had its time.
    fn is_late(&self, run: &Run, now: Stamp) -> bool {
        let within = self.rules.answer_within_ns;
        within.is_some_and(|w| now.mono_ns >= run.submitted.at.mono_ns + w)
    }

    pub(super) fn nowhere(&self, term: &Term) -> At {
        At {
            // A frame that is always there is no prompt in front of the cursor.
            text: String::new(),
            entry: None,
            evidence: self.judgement.evidence,
            begins: None,
            row: page::absolute(term, term.cursor().row),
            col: term.cursor().col,
            from_col: 0,
            editor: false,
        }
    }
}

/// The text from a column on.
fn columns_from(text: &str, col: u16) -> String {
    let mut seen = 0;
    let at = text.char_indices().find(|(_, c)| {
        let here = seen >= usize::from(col);
        seen += tapdeck_term::char_width(*c);
        here
    });
    at.map_or_else(String::new, |(i, _)| text[i..].to_owned())
}

fn brief(text: &str) -> String {
    let mut out: String = text.chars().filter(|c| !c.is_control()).take(40).collect();
    if out.len() < text.len() {
        out.push('…');
    }
    out
}
