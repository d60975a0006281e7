//! The flow as a state machine without I/O: it looks at the screen when there is something new or
//! some time has passed, and says what to send. Whatever it acts on must have stood still for a
//! moment: a half-drawn panel is no panel. What it reads must have been written after the keys that
//! asked for it.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::time::Duration;

use tapdeck_core::Time;
use tapdeck_tape::cassette::Model;
use tapdeck_term::Modes;
use tapdeck_term::keys::{KeyPress, encode, text};

use super::flow::{Agent, Dialog, More, Pattern, Probe, key_of};
use super::parse::{Facts, Status, sign};

/// How long something must hold before it is acted on.
const SETTLE: Duration = Duration::from_millis(300);
/// How long typed text may take to be drawn; then it is sent anyway, as a person would.
const DRAWN: Duration = Duration::from_secs(3);
/// How long the program may take to be ready, and a panel to be complete.
const START_LIMIT: Duration = Duration::from_secs(45);
const PANEL_LIMIT: Duration = Duration::from_secs(20);
/// How many keys a dialog is worth, and a menu.
const DIALOG_TRIES: usize = 6;
const MENU_MOVES: usize = 30;
/// How long an answer to a dialog may take to have its effect.
const ANSWER: Duration = Duration::from_secs(5);
/// How often a command that was lost is sent again; when a dialog in its place, and a prompt that
/// does not know of it, mean so.
const ATTEMPTS: usize = 3;
const DIALOG: Duration = Duration::from_millis(500);
const LOST: Duration = Duration::from_secs(4);
/// Rows above the screen that are looked at.
const ROWS_ABOVE: usize = 500;

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Send these bytes.
    Send(Vec<u8>),
    /// Nothing more is wanted.
    Finish,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Starting,
    /// At this word of this step.
    Typing {
        step: usize,
        word: usize,
    },
    Waiting {
        step: usize,
    },
    Over,
}

/// What was seen and is waited for to stand still.
#[derive(Debug, Clone, PartialEq)]
enum Sight {
    Dialog(usize),
    Sign(Status, String),
    Ready,
    Drawn,
    /// A menu, and the key that moves its mark to where it should be.
    Menu(Option<KeyPress>),
    Done(Facts),
}

/// A probe on its way.
#[derive(Debug)]
pub(crate) struct Machine<'a> {
    agent: &'a Agent,
    probe: &'a Probe,
    phase: Phase,
    /// When the phase began.
    since: Time,
    sight: Option<(Sight, Time)>,
    tries: Vec<usize>,
    /// How often more of a panel was asked for.
    more: Vec<usize>,
    /// How often the mark of a menu was moved.
    moves: usize,
    /// Output before this place is stale.
    sent_at: u64,
    /// When a dialog was last answered.
    answered: Time,
    /// How often the command was lost and is sent again.
    attempts: usize,
    result: Option<(Status, String)>,
    facts: Facts,
}

impl<'a> Machine<'a> {
    /// A probe of a program that is about to be started.
    pub(crate) fn new(agent: &'a Agent, probe: &'a Probe) -> Self {
        Self {
            agent,
            probe,
            phase: Phase::Starting,
            since: Time::ZERO,
            sight: None,
            tries: vec![0; agent.dialog.len()],
            more: vec![0; probe.more.len()],
            moves: 0,
            sent_at: 0,
            answered: Time::ZERO,
            attempts: 0,
            result: None,
            facts: Facts::default(),
        }
    }

    /// What came of it, and a sentence about it.
    pub(crate) fn result(&self) -> Option<(Status, &str)> {
        self.result.as_ref().map(|(status, detail)| (*status, detail.as_str()))
    }

    /// What was read.
    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Looks at the screen.
    pub(crate) fn look(&mut self, now: Time, model: &Model) -> Option<Action> {
        let action = match self.phase {
            Phase::Starting => self.starting(now, model),
            Phase::Typing { step, word } => self.typing(now, model, step, word),
            Phase::Waiting { step } => self.waiting(now, model, step),
            Phase::Over => Some(Action::Finish),
        };
        if self.phase == Phase::Over { Some(Action::Finish) } else { action }
    }

    /// The program has ended.
    pub(crate) fn exited(&mut self, model: &Model) {
        if self.phase == Phase::Over {
            return;
        }
        let rows = rows(model, 0);
        if self.probe.on_exit {
            self.facts = Facts::read(self.probe, &rows);
            let missing = self.facts.missing(self.probe);
            if missing.is_empty() {
                return self.finish(Status::Ok, "read off what it printed".into());
            }
        }
        match sign(self.agent, &rows) {
            Some((status, row)) => self.finish(status, row),
            None => {
                let last = rows.iter().rev().find(|r| !r.trim().is_empty()).map_or("", |r| r.trim());
                let what = if self.probe.on_exit {
                    "what it printed lacks what was asked for"
                } else {
                    "it ended early"
                };
                self.finish(Status::Error, format!("{what}; the last it said: {last:?}"));
            }
        }
    }

    fn starting(&mut self, now: Time, model: &Model) -> Option<Action> {
        if now >= self.since + START_LIMIT {
            let seconds = START_LIMIT.as_secs();
            self.finish(Status::Error, format!("it was not ready for a command within {seconds} s"));
            return None;
        }
        if self.probe.on_exit {
            return None;
        }
        // A dialog that was answered may stay above the rest; it counts anew only when the answer
        // had no effect.
        let since = if now < self.answered + ANSWER { self.sent_at } else { 0 };
        let rows = rows(model, since);
        let any = |p: &Pattern| rows.iter().any(|row| p.is_match(row));
        let sight = match self.dialog(&rows) {
            Some(i) => Some(Sight::Dialog(i)),
            None => match sign(self.agent, &rows) {
                Some((status, row)) => Some(Sight::Sign(status, row)),
                None => self.probe.ready.as_ref().is_some_and(any).then_some(Sight::Ready),
            },
        };
        match self.settled(sight, now)? {
            Sight::Dialog(i) => {
                self.tries[i] += 1;
                let modes = model.term().modes();
                let dialog = &self.agent.dialog[i];
                if let Some(key) = dialog.choose.as_ref().and_then(|choose| towards(&rows, choose)) {
                    return Some(Action::Send(encode(key, &modes)));
                }
                (self.sent_at, self.answered) = (model.fed(), now);
                Some(Action::Send(bytes_of(&dialog.keys, &modes)))
            }
            Sight::Sign(status, row) => {
                self.finish(status, row);
                None
            }
            _ => {
                self.enter(Phase::Typing { step: 0, word: 0 }, now);
                None
            }
        }
    }

    /// A dialog among these rows that is still worth an answer.
    fn dialog(&self, rows: &[String]) -> Option<usize> {
        let shown = |d: &Dialog| rows.iter().any(|row| d.when.is_match(row));
        let mut all = self.agent.dialog.iter().zip(&self.tries);
        all.position(|(dialog, tries)| *tries < DIALOG_TRIES && shown(dialog))
    }

    /// Whether the command was lost: a dialog came up in its place, or the program waits for one
    /// again that does not know of it. Agents show their prompt before they ask, and start anew
    /// after an answer.
    fn is_lost(&self, fresh: &[String], now: Time) -> bool {
        let waited = now.since(self.since);
        let any = |p: &Pattern| fresh.iter().any(|row| p.is_match(row));
        let typed = self.probe.steps[0].keys.first().map_or("", String::as_str);
        let forgotten =
            || !fresh.iter().any(|row| row.contains(typed)) && self.probe.ready.as_ref().is_some_and(any);
        self.attempts < ATTEMPTS
            && (waited >= DIALOG && self.dialog(fresh).is_some() || waited >= LOST && forgotten())
    }

    fn begin_again(&mut self, now: Time) {
        self.attempts += 1;
        self.enter(Phase::Starting, now);
    }

    fn typing(&mut self, now: Time, model: &Model, step: usize, word: usize) -> Option<Action> {
        let words = &self.probe.steps[step].keys;
        let Some(current) = words.get(word) else {
            self.enter(Phase::Waiting { step }, now);
            return None;
        };
        // A key right behind text can be swallowed: the text must be drawn first.
        if let Some(before) = word.checked_sub(1).map(|w| &words[w])
            && key_of(before).is_none()
        {
            if step == 0 && self.dialog(&rows(model, self.sent_at)).is_some() && self.attempts < ATTEMPTS {
                self.begin_again(now);
                return None;
            }
            let drawn = rows(model, 0).iter().any(|row| row.contains(before.as_str()));
            let settled = self.settled(drawn.then_some(Sight::Drawn), now).is_some();
            if !settled && now < self.since + DRAWN {
                return None;
            }
        }
        let modes = model.term().modes();
        if word == 0
            && let Some(choose) = &self.probe.steps[step].choose
        {
            let move_mark = towards(&rows(model, 0), choose);
            // Each move is seen before the next: menus take a moment to be drawn.
            self.settled(Some(Sight::Menu(move_mark)), now)?;
            if let Some(key) = move_mark.filter(|_| self.moves < MENU_MOVES) {
                self.moves += 1;
                return Some(Action::Send(encode(key, &modes)));
            }
        }
        let bytes = bytes_of(std::slice::from_ref(current), &modes);
        self.sent_at = model.fed();
        self.enter(Phase::Typing { step, word: word + 1 }, now);
        Some(Action::Send(bytes))
    }

    fn waiting(&mut self, now: Time, model: &Model, step: usize) -> Option<Action> {
        let fresh = rows(model, self.sent_at);
        let last = step + 1 == self.probe.steps.len();
        let shown = |p: &Pattern| fresh.iter().any(|row| p.is_match(row));
        let done = self.probe.steps[step].done.iter().all(shown);
        let facts = if done && last { Facts::read(self.probe, &fresh) } else { Facts::default() };
        let complete = done && (!last || facts.missing(self.probe).is_empty());
        let sight = match complete {
            true => Some(Sight::Done(facts)),
            false => sign(self.agent, &fresh).map(|(status, row)| Sight::Sign(status, row)),
        };
        if sight.is_none() && step == 0 && self.is_lost(&fresh, now) {
            self.begin_again(now);
            return None;
        }
        match self.settled(sight, now) {
            Some(Sight::Done(facts)) if last => {
                self.facts.merge(facts);
                let goes_on = |(more, used): (&More, &usize)| *used < more.times && shown(&more.when);
                if let Some(i) = self.probe.more.iter().zip(&self.more).position(goes_on) {
                    self.more[i] += 1;
                    self.enter(Phase::Waiting { step }, now);
                    let modes = model.term().modes();
                    return Some(Action::Send(bytes_of(&self.probe.more[i].keys, &modes)));
                }
                self.finish(Status::Ok, "read off its screen".into());
            }
            Some(Sight::Done(_)) => self.enter(Phase::Typing { step: step + 1, word: 0 }, now),
            Some(Sight::Sign(status, row)) => self.finish(status, row),
            _ if now >= self.since + PANEL_LIMIT => {
                let all = rows(model, 0);
                let explains = |row: &&String| self.probe.late.iter().any(|p| p.is_match(row));
                let missing = Facts::read(self.probe, &fresh).missing(self.probe).join(", ");
                if let Some(row) = all.iter().find(explains) {
                    let row = row.trim_matches(|c: char| c.is_whitespace() || "│┃|".contains(c));
                    self.finish(
                        Status::Unavailable,
                        format!("its panel says {row:?}, and does not show: {missing}"),
                    );
                    return None;
                }
                let seconds = PANEL_LIMIT.as_secs();
                let missing = if missing.is_empty() { String::new() } else { format!(": {missing} missing") };
                self.finish(Status::Error, format!("the panel was not complete within {seconds} s{missing}"));
            }
            _ => {}
        }
        None
    }

    /// The sight, once it has been the same for long enough.
    fn settled(&mut self, sight: Option<Sight>, now: Time) -> Option<Sight> {
        match (&self.sight, sight) {
            (_, None) => {
                self.sight = None;
                None
            }
            (Some((before, since)), Some(sight)) if *before == sight => {
                if now < *since + SETTLE {
                    return None;
                }
                self.sight = None;
                Some(sight)
            }
            (_, Some(sight)) => {
                self.sight = Some((sight, now));
                None
            }
        }
    }

    fn enter(&mut self, phase: Phase, now: Time) {
        self.phase = phase;
        self.since = now;
        self.sight = None;
    }

    fn finish(&mut self, status: Status, detail: String) {
        self.phase = Phase::Over;
        self.result.get_or_insert((status, detail));
    }
}

/// Keys and texts as bytes, under the modes in force.
fn bytes_of(words: &[String], modes: &Modes) -> Vec<u8> {
    let word = |w: &String| key_of(w).map_or_else(|| text(w, modes), |key| encode(key, modes));
    words.iter().flat_map(word).collect()
}

/// The key that moves the mark of a menu towards a row; `None` when it is there, or there is no
/// menu.
fn towards(rows: &[String], choose: &Pattern) -> Option<KeyPress> {
    let wanted = rows.iter().position(|row| choose.is_match(row))?;
    let nearest = |marks: &[char]| {
        let marked = |row: &str| row.trim_start_matches([' ', '│']).starts_with(marks);
        let rows = rows.iter().enumerate().filter(|(_, row)| marked(row));
        rows.map(|(i, _)| i).min_by_key(|i| i.abs_diff(wanted))
    };
    // The plain mark stands in front of much else.
    let marked = nearest(&['❯', '›', '●']).or_else(|| nearest(&['>']))?;
    match marked.cmp(&wanted) {
        Ordering::Less => key_of("Down"),
        Ordering::Equal => None,
        Ordering::Greater => key_of("Up"),
    }
}

/// The rows that were written at or after a place in the output, some above the screen included.
pub(super) fn rows(model: &Model, since: u64) -> Vec<String> {
    let term = model.term();
    let above = term.scrollback_len().saturating_sub(ROWS_ABOVE);
    let lines = term.scrollback().skip(above).chain(term.screen());
    lines.filter(|line| line.written().is_some_and(|at| at >= since)).map(|line| line.text()).collect()
}
