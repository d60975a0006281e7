//! The questions that a program asks while it is blocked, and how they were decided: which option
//! the keys chose that were typed while the dialog stood, and who typed them.

use std::sync::Arc;

use tapdeck_term::Term;

use super::detector::Detector;
use super::dialog::{Dialog, Form};
use super::{AgentState, Notice, page};
use crate::stick::Party;
use crate::time::Stamp;

/// What is remembered of a line that answers a question.
const LINE: usize = 1000;
/// The longest sequence that is of interest.
const LONGEST: usize = 24;

/// A question that a program asked, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The question.
    pub dialog: Dialog,
    /// When it was seen.
    pub asked: Stamp,
    /// When it was gone.
    pub over: Stamp,
    /// How it was answered; `None` if it went without an answer, or the answer was not understood.
    pub answer: Option<Answered>,
    /// The party that answered.
    pub by: Option<Party>,
}

/// How a question was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered {
    /// By this option, by its place among the dialog's.
    Option(usize),
    /// By a text.
    Text(String),
    /// With Escape.
    Escape,
}

/// A question that stands on the screen.
#[derive(Debug)]
pub(super) struct Standing {
    dialog: Dialog,
    asked: Stamp,
    answer: Option<(Answered, Option<Party>)>,
    /// The option that arrow keys have marked since the screen was last read.
    marked: Option<usize>,
    keys: Keys,
}

/// A key that may decide a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pressed {
    Enter,
    Escape,
    Up,
    Down,
    Char(char),
}

/// Reads keys.
#[derive(Debug, Default)]
struct Keys {
    sequence: Vec<u8>,
    /// What was typed since Enter was last pressed.
    line: Vec<u8>,
}

impl Keys {
    fn feed(&mut self, bytes: &[u8], mut pressed: impl FnMut(Pressed, &[u8])) {
        for &b in bytes {
            if !self.sequence.is_empty() && (b != 0x1b || self.sequence.len() > 1) {
                self.sequence.push(b);
                let begins = self.sequence.len() == 2 && !matches!(b, b'[' | b'O');
                let ends = self.sequence.len() > 2 && (0x40..=0x7e).contains(&b);
                if begins || ends || self.sequence.len() > LONGEST {
                    if let Some(key) = key_of(&self.sequence) {
                        pressed(key, &self.line);
                    }
                    self.sequence.clear();
                }
                continue;
            }
            match b {
                0x1b => self.sequence = vec![b],
                b'\r' | b'\n' => {
                    pressed(Pressed::Enter, &self.line);
                    self.line.clear();
                }
                0x03 => pressed(Pressed::Escape, &self.line),
                0x7f | 0x08 => {
                    self.line.pop();
                }
                0..=0x1f => {}
                _ => {
                    if self.line.len() < LINE {
                        self.line.push(b);
                    }
                    if b.is_ascii() {
                        pressed(Pressed::Char(char::from(b)), &self.line);
                    }
                }
            }
        }
        // Keys are delivered whole, so an Escape at the end is the key.
        if self.sequence == [0x1b] {
            self.sequence.clear();
            pressed(Pressed::Escape, &self.line);
        }
    }
}

/// The key that a sequence stands for.
fn key_of(sequence: &[u8]) -> Option<Pressed> {
    Some(match sequence {
        b"\x1b[A" | b"\x1bOA" => Pressed::Up,
        b"\x1b[B" | b"\x1bOB" => Pressed::Down,
        b"\x1bOM" | b"\x1b[13u" | b"\x1b[13;1u" | b"\x1b[13;1:1u" => Pressed::Enter,
        b"\x1b[27u" | b"\x1b[27;1u" | b"\x1b[27;1:1u" | b"\x1b[99;5u" => Pressed::Escape,
        _ => return None,
    })
}

impl Standing {
    fn new(dialog: Dialog, asked: Stamp) -> Self {
        Self { dialog, asked, answer: None, marked: None, keys: Keys::default() }
    }

    /// What a key answers, at the dialog as it stands now.
    fn answer(&mut self, key: Pressed, line: &[u8], now: &Dialog, term: &Term) -> Option<Answered> {
        let options = &now.options;
        let last = options.len().checked_sub(1);
        let at = |label: &str| options.iter().position(|o| o.label.to_lowercase().ends_with(label));
        match (now.form, key) {
            (Form::Menu, Pressed::Up | Pressed::Down) => {
                let from = self.marked.or(now.marked())?;
                let to = if key == Pressed::Up { from.saturating_sub(1) } else { from + 1 };
                self.marked = Some(to.min(last?));
                None
            }
            (Form::Menu, Pressed::Enter) => {
                let at = self.marked.or(now.marked())?;
                match &options.get(at)?.label {
                    // Switching a check box decides nothing yet.
                    _ if options[at].checked.is_some() => None,
                    // A field shows what was typed there.
                    label if now.is_field(at) => Some(Answered::Text(label.clone())),
                    _ => Some(Answered::Option(at)),
                }
            }
            // An option may name a key: "Yes, proceed (y)".
            (Form::Menu, Pressed::Escape) => Some(at("(esc)").map_or(Answered::Escape, Answered::Option)),
            (Form::Menu, Pressed::Char(c)) => {
                let digit = (0..options.len()).find(|at| now.digit(*at) == Some(c) && !now.is_field(*at));
                let digit = digit.filter(|at| options[*at].checked.is_none());
                digit.or_else(|| at(&format!("({})", c.to_ascii_lowercase()))).map(Answered::Option)
            }
            (Form::Line { secret, .. }, Pressed::Enter) => {
                let line = String::from_utf8_lossy(line);
                let word = line.trim().to_lowercase();
                let named = (0..options.len()).find(|at| now.typed(*at) == Some(word.as_str()));
                match named {
                    Some(at) => Some(Answered::Option(at)),
                    None if word.is_empty() => now.marked().map(Answered::Option),
                    // What was typed is told only if the program showed it.
                    None if secret || !page::is_shown(term, &line) => None,
                    None => Some(Answered::Text(line.trim().to_owned())),
                }
            }
            // Some programs take the letter alone.
            (Form::Line { .. }, Pressed::Char(c)) if line.len() == 1 => {
                let word = c.to_ascii_lowercase().to_string();
                (0..options.len()).find(|at| now.typed(*at) == Some(word.as_str())).map(Answered::Option)
            }
            (_, Pressed::Escape) => Some(Answered::Escape),
            (Form::Key, Pressed::Enter) => last.map(|_| Answered::Option(0)),
            _ => None,
        }
    }

    fn over(self, over: Stamp) -> Decision {
        let (answer, by) = match self.answer {
            Some((answer, by)) => (Some(answer), by),
            None => (None, None),
        };
        Decision { dialog: self.dialog, asked: self.asked, over, answer, by }
    }
}

impl Detector {
    /// Looks whether the program asks something, something else, or nothing any more.
    pub(super) fn follow_question(&mut self, term: &Term, now: Stamp) {
        let is_blocked = self.judgement.state == AgentState::Blocked;
        if !is_blocked && self.question.is_none() {
            return;
        }
        let asks = |dialog: &Dialog| !dialog.options.is_empty() || dialog.takes_text();
        let read = self.dialog(term).filter(asks);
        match (&mut self.question, read) {
            (None, Some(dialog)) => self.question = Some(Standing::new(dialog, now)),
            (Some(standing), Some(dialog)) => {
                if standing.dialog.again(term).is_some() {
                    standing.dialog = dialog;
                    standing.marked = None;
                } else if standing.answer.is_none() {
                    // It was drawn in part, or anew.
                    standing.dialog = dialog;
                } else {
                    self.end_question(now);
                    self.question = Some(Standing::new(dialog, now));
                }
            }
            (Some(_), None) if !is_blocked => self.end_question(now),
            // It is being drawn.
            (_, None) => {}
        }
    }

    /// Takes what is typed for an answer to the question that stands.
    pub(super) fn answer_question(&mut self, term: &Term, bytes: &[u8], by: Option<&Party>) {
        let Some(mut standing) = self.question.take() else { return };
        if let Some(now) = standing.dialog.again(term) {
            let mut keys = std::mem::take(&mut standing.keys);
            keys.feed(bytes, |key, line| {
                if let Some(answer) = standing.answer(key, line, &now, term) {
                    standing.answer = Some((answer, by.cloned()));
                }
            });
            standing.keys = keys;
        }
        self.question = Some(standing);
    }

    /// The question that stands is over.
    pub(super) fn end_question(&mut self, now: Stamp) {
        if let Some(standing) = self.question.take() {
            self.tell(Notice::Decided(Arc::new(standing.over(now))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_from_sequences() {
        let cases: [(&[u8], &[Pressed]); 8] = [
            (b"2", &[Pressed::Char('2')]),
            (b"\x1b[B\r", &[Pressed::Down, Pressed::Enter]),
            (b"\x1bOA\x1b[13u", &[Pressed::Up, Pressed::Enter]),
            (b"\x1b", &[Pressed::Escape]),
            (b"\x1b[27u", &[Pressed::Escape]),
            (b"\x03", &[Pressed::Escape]),
            (b"\x1b[I\x1b[200~", &[]),
            (b"\x1b[27;1:3u", &[]),
        ];
        for (bytes, wanted) in cases {
            let mut got = Vec::new();
            Keys::default().feed(bytes, |key, _| got.push(key));
            assert_eq!(got, wanted, "{bytes:?}");
        }
    }
}
