//! What the program is doing: the rules' word about the screen, and what the conversation itself
//! says. For agents whose prompt never leaves the screen, turns begin and end with it.

use std::sync::Arc;

use tapdeck_term::{Term, is_unsafe};

use super::detector::{At, Detector, Phase, Run};
use super::input::Typing;
use super::journal::TooEarly;
use super::judge::{Held, Screen};
use super::page::{self, skeleton};
use super::{AgentState, Evidence, Judgement, Notice, OutputPoint};
use crate::log::Offset;
use crate::time::Stamp;

/// How much of a question is looked for, and how many rows above the program's frame it is looked
/// for in.
const ECHO: usize = 16;
const ECHO_ROWS: u64 = 500;

impl Detector {
    /// Looks at the screen. `sure` when a decision is made from what stands there.
    pub(super) fn judge(&mut self, term: &Term, now: Stamp, sure: bool) {
        self.judged = now.mono;
        self.unseen = false;
        let quiet = now.mono.since(self.last.mono);
        let settled = sure || quiet >= self.rules.settle;
        let screen = Screen::new(term, self.progress, quiet);
        if self.rules.by_state {
            self.judge_state(&screen, term, now);
            self.turn_by_state(term, now);
        } else {
            self.close_laps(term);
            self.close_lines_read(term);
            self.turn_by_prompt(term, now, settled, quiet);
            self.judge_state(&screen, term, now);
        }
        self.follow_question(term, now);
    }

    fn judge_state(&mut self, screen: &Screen<'_>, term: &Term, now: Stamp) {
        let rules = Arc::clone(&self.rules);
        let held = screen.judge(&rules);
        let Some(held) = self.after_standing(held, now) else { return };
        // At its prompt a shell is idle, whatever an old line on its screen says.
        let held = held.filter(|held| rules.by_state || !self.is_ready() || self.is_asked(held));
        let shown = held.map(|held| Judgement {
            rule: format!("{}: {}", rules.name, held.rule.name),
            rows: held.rows,
            ..Judgement::new(held.rule.state, held.evidence, now)
        });
        let mut judgement = match self.weigh(shown.as_ref(), now) {
            Err(TooEarly) => return self.stay_at_work(term, now),
            Ok(Some(written)) => written,
            Ok(None) => match self.by_screen(shown.clone(), term, now) {
                Some(judgement) => judgement,
                None => return,
            },
        };
        self.at_rest = None;
        judgement.compare(shown);
        judgement.compare(self.journal_says(now));
        let answered = self.judgement.state == AgentState::Blocked && judgement.state == AgentState::Idle;
        if answered && self.input_field(term).is_some_and(|field| field.is_empty()) {
            // What was typed into a dialog is no beginning of the next question.
            self.typing = Typing::default();
        }
        self.set_judgement(judgement);
    }

    /// Returns what the screen says, once it may be believed; `None` while that is too early to
    /// tell.
    fn by_screen(&mut self, shown: Option<Judgement>, term: &Term, now: Stamp) -> Option<Judgement> {
        let says_idle = shown.as_ref().is_some_and(|shown| shown.state == AgentState::Idle);
        self.note_refusal(term, now);
        if let Phase::Running(run) = &self.phase
            && self.rules.by_state
            && says_idle
            && !run.refused
        {
            // A frame that is always there says nothing before it had time to change.
            if !self.is_late(run, now) && !self.may_be_over(term, run, now) {
                return Some(self.by_phase(term, now));
            }
            // A pause between two steps looks like the end. What it was doing, it goes on doing
            // until the turn is over, so that a client that waits for the answer finds it there.
            let since = self.at_rest.get_or_insert(now).mono;
            if now.mono.since(since) < self.rules.settle {
                return None;
            }
        }
        Some(shown.unwrap_or_else(|| self.by_phase(term, now)))
    }

    /// Returns the rule that holds, but nothing at all while that rule has not held for as long as
    /// it must: many dialogs take no keys when they have just been drawn.
    fn after_standing<'r>(&mut self, held: Option<Held<'r>>, now: Stamp) -> Option<Option<Held<'r>>> {
        let Some((rule, stands)) = held.as_ref().and_then(|held| Some((held.rule, held.rule.stands?))) else {
            self.standing = None;
            return Some(held);
        };
        if self.judgement.state == rule.state {
            return Some(held);
        }
        let since = match &self.standing {
            Some((name, since)) if *name == rule.name => *since,
            _ => {
                self.standing = Some((rule.name.clone(), now.mono));
                now.mono
            }
        };
        (now.mono.since(since) >= stands).then_some(held)
    }

    /// Whether the prompt that stands is a question of this rule: line editors read answers, too.
    fn is_asked(&self, held: &Held<'_>) -> bool {
        let question = held.rule.cursor.as_ref().filter(|_| held.rule.state == AgentState::Blocked);
        question.is_some_and(|question| self.prompt().is_some_and(|prompt| question.is_match(prompt)))
    }

    /// Keeps the state until there is more to say, unless it is one of rest.
    fn stay_at_work(&mut self, term: &Term, now: Stamp) {
        if matches!(self.phase, Phase::Running(_)) && self.judgement.state == AgentState::Idle {
            let judgement = self.by_phase(term, now);
            self.set_judgement(judgement);
        }
    }

    /// What the conversation itself says.
    pub(super) fn by_phase(&self, term: &Term, now: Stamp) -> Judgement {
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
                let told = match (brief(self.told(run)), run.typed.is_empty()) {
                    (told, false) if told.is_empty() => "a line".to_owned(),
                    (told, _) => format!("{told:?}"),
                };
                let rule = format!("{told} was submitted and no prompt has come since");
                (AgentState::Working, Evidence::Input, rule, Vec::new())
            }
        };
        Judgement { rule, rows, ..Judgement::new(state, evidence, now) }
    }

    pub(super) fn set_judgement(&mut self, mut new: Judgement) {
        if new.state == self.judgement.state {
            new.since = self.judgement.since;
            self.judgement = new;
            return;
        }
        self.judgement = new.clone();
        self.tell(Notice::State(new));
    }

    fn turn_by_state(&mut self, term: &Term, now: Stamp) {
        let state = self.judgement.state;
        // What a journal says needs no time to settle.
        let stood = self.judgement.evidence == Evidence::Journal
            || now.mono.since(self.judgement.since.mono) >= self.rules.settle;
        match &self.phase {
            Phase::Start if state == AgentState::Idle && stood => {
                self.tell(Notice::Ready(OutputPoint { byte: Offset(self.offset), at: now }));
                self.phase = Phase::Ready(self.nowhere(term));
            }
            Phase::Running(run) => match state {
                AgentState::Idle if self.may_be_over(term, run, now) => self.complete_by_state(term, now),
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

    /// Whether an idle screen can mean that what was submitted is over: it was worked on, or has
    /// had its time. A program that is still starting works too, but not on this: it has not
    /// repeated the question yet. Nor has one that still shows it in its input field taken it,
    /// however long ago Enter was pressed.
    fn may_be_over(&self, term: &Term, run: &Run, now: Stamp) -> bool {
        self.is_over(run, now)
            || (self.is_late(run, now) && !self.stands(term, run))
            || (run.worked && self.is_echoed(term, run))
            || self.is_answered(term, run)
    }

    /// Whether text stands between the question and the program's input field, which is empty. A
    /// short answer may come and go between two looks, without a sign of work.
    fn is_answered(&self, term: &Term, run: &Run) -> bool {
        if self.rules.echo.is_none() || self.input_field(term).is_none_or(|field| !field.is_empty()) {
            return false;
        }
        let shown = self.shown_answer(term, run);
        shown.sure && !shown.written.is_empty()
    }

    /// Notes that the program has drawn something since Enter was pressed, is quiet again, and has
    /// not taken what stands in its input field: a command that it does not know, for instance. The
    /// screen is believed from then on.
    fn note_refusal(&mut self, term: &Term, now: Stamp) {
        let quiet = now.mono.since(self.last.mono) >= self.rules.settle;
        let has_drawn = |run: &Run| self.offset > run.submitted.byte.0 && self.last.mono > run.entered.mono;
        let is_refused = matches!(&self.phase, Phase::Running(run) if self.rules.by_state
            && !run.worked && quiet && has_drawn(run) && self.stands(term, run));
        if let Phase::Running(run) = &mut self.phase {
            run.refused = (run.refused || is_refused) && !run.worked;
        }
    }

    /// Whether what was submitted still stands in the program's input field.
    pub fn is_standing(&self, term: &Term) -> bool {
        matches!(&self.phase, Phase::Running(run) if self.rules.by_state && self.stands(term, run))
    }

    fn stands(&self, term: &Term, run: &Run) -> bool {
        self.has_in_field(term, &run.typed)
    }

    /// Whether the question stands above the program's own frame.
    fn is_echoed(&self, term: &Term, run: &Run) -> bool {
        let asked: String =
            skeleton(run.typed.trim().lines().next().unwrap_or("")).chars().take(ECHO).collect();
        let Some(echo) = self.rules.echo.as_ref().filter(|_| !asked.is_empty()) else { return true };
        let end = page::absolute(term, self.rules.input_row(term));
        (1..=ECHO_ROWS).map_while(|up| page::row(term, end.checked_sub(up)?)).any(|line| {
            let text = line.text();
            echo.is_match(&text) && (skeleton(&text).contains(&asked) || self.rules.placeholders(&text) > 0)
        })
    }

    /// Whether a program that gives no sign of work has had its time.
    pub(super) fn is_late(&self, run: &Run, now: Stamp) -> bool {
        let within = self.rules.answer_within;
        within.is_some_and(|w| now.mono >= run.entered.mono + w)
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
            sign: None,
            right: String::new(),
        }
    }
}

fn brief(text: &str) -> String {
    let mut out: String = text.chars().filter(|c| !is_unsafe(*c)).take(40).collect();
    if out.len() < text.len() {
        out.push('…');
    }
    out
}
