//! The question that a blocked program shows: what it asks, what can be chosen, and how.
//!
//! A menu has one marked option (`❯ 1. Yes`) and others in the same column; a question on the line
//! of the cursor names its answers (`[y/N]`, `(Y)es/(N)o`) or takes text. Both are read from the
//! rendered screen, for any program: only whether it is blocked is for its rules to say.

mod choose;
mod line;
mod menu;
#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;

use tapdeck_term::Term;

use super::{AgentState, Detector, Evidence, Judgement, ending, squeezed};

pub use choose::{Choice, Meaning, NoChoice};

/// Rows above the options that belong to a dialog, at most.
const DETAIL: usize = 40;
/// The most options that are read.
const OPTIONS: usize = 100;

/// A question on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialog {
    /// The question.
    pub question: String,
    /// The rows above the options, without blank ones: what the question is about.
    pub detail: Vec<String>,
    /// What can be chosen.
    pub options: Vec<DialogOption>,
    /// How it is answered.
    pub form: Form,
    /// Its first and last row on the screen.
    rows: (u16, u16),
    /// Escape calls it off.
    escape: bool,
}

/// An option of a dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DialogOption {
    /// The number in front of it, or its place from 1.
    pub number: u32,
    /// Its text.
    pub label: String,
    /// Whether Enter chooses it.
    pub marked: bool,
    /// What chooses it: the text that is typed, or for menus the digit.
    types: Option<String>,
    /// Whether it is a field for text of any kind.
    field: bool,
    /// Whether its box is checked, if it has one: then it is one of several that may be chosen.
    pub checked: Option<bool>,
}

/// How a dialog is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// By moving a mark, or by the number of an option.
    Menu,
    /// By a line of text, behind which Enter is pressed.
    Line {
        /// Whether other text than the options is taken.
        free: bool,
        /// Whether it is a password or the like.
        secret: bool,
        /// The number of its row since the beginning.
        row: u64,
    },
    /// By Enter alone.
    Key,
}

/// What answers a dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// This option of a menu, by its place.
    Option(usize),
    /// Text in the field that this option of a menu is.
    Field(usize, String),
    /// Escape.
    Escape,
    /// A line of text.
    Line(String),
    /// Enter.
    Enter,
}

impl Dialog {
    /// Reads the question that a program shows, if it is blocked by one.
    pub fn read(term: &Term, judgement: &Judgement) -> Option<Self> {
        match (judgement.state, judgement.evidence) {
            (AgentState::Blocked, Evidence::Prompt) => line::read(term),
            (AgentState::Blocked, _) => menu::read(term).or_else(|| {
                // A rule for the screen may know a question on the line of the cursor.
                let is_evidence = judgement.rows.iter().any(|(row, _)| *row == term.cursor().row);
                line::read(term).filter(|_| is_evidence)
            }),
            _ => None,
        }
    }

    /// Returns the rows of the question on the screen of a program that is known to be blocked.
    pub fn rows_on(term: &Term) -> Option<RangeInclusive<u16>> {
        let (first, last) = menu::read(term).or_else(|| line::read(term))?.rows;
        Some(first..=last)
    }

    /// Reads the dialog again, whatever the program's state is now. `None` when there is none of
    /// the same form, or another one.
    pub fn again(&self, term: &Term) -> Option<Self> {
        let now = match self.form {
            Form::Menu if self.options.is_empty() => menu::panel_of(term)?,
            Form::Menu => menu::read(term)?,
            Form::Line { .. } | Form::Key => return line::stands(self, term).then(|| self.clone()),
        };
        // A field shows what was typed there in place of its label.
        let alike = |(was, is): (&DialogOption, &DialogOption)| {
            was.number == is.number && (was.field || unboxed(&was.label) == unboxed(&is.label))
        };
        let same = now.question == self.question
            && now.detail.iter().map(|row| unchecked(row)).eq(self.detail.iter().map(|row| unchecked(row)))
            && now.options.len() == self.options.len()
            && self.options.iter().zip(&now.options).all(alike);
        same.then_some(now)
    }

    /// Whether an option shows the end of this text.
    pub fn shows(&self, option: usize, text: &str) -> bool {
        let label = self.options.get(option).map(|o| squeezed(&o.label)).unwrap_or_default();
        label.contains(ending(&squeezed(text)))
    }

    /// Bytes of its texts.
    pub(crate) fn text_len(&self) -> usize {
        let labels = self.options.iter().map(|option| option.label.len());
        self.question.len() + self.detail.iter().map(String::len).chain(labels).sum::<usize>()
    }

    /// The place of the marked option.
    pub fn marked(&self) -> Option<usize> {
        self.options.iter().position(|option| option.marked)
    }

    /// Whether an option is a field for text.
    pub(super) fn is_field(&self, option: usize) -> bool {
        self.options.get(option).is_some_and(|option| option.field)
    }

    /// What is typed to choose an option.
    pub(super) fn typed(&self, option: usize) -> Option<&str> {
        self.options.get(option)?.types.as_deref()
    }

    /// What is typed to choose an option of a menu at once: its digit.
    pub fn digit(&self, option: usize) -> Option<char> {
        self.options.get(option)?.types.as_ref()?.chars().next()
    }

    /// Offset of the last byte that wrote to any of its rows.
    pub fn written(&self, term: &Term) -> u64 {
        let rows = self.rows.0..=self.rows.1;
        rows.filter_map(|y| term.row(y)?.written()).max().unwrap_or(0)
    }
}

impl Detector {
    /// Reads the question that the program asks, if it is blocked by one.
    pub fn dialog(&self, term: &Term) -> Option<Dialog> {
        let judgement = self.judgement();
        if self.rules().is_without_menu(&judgement.rule) {
            return menu::panel_of(term);
        }
        Dialog::read(term, judgement)
    }
}

/// Signs of a check box: an empty one, and checked ones.
const BOXES: [char; 3] = ['☐', '☑', '☒'];

/// Reads the check box in front of a label. Returns whether it is checked, and the text behind it.
fn check_box(label: &str) -> Option<(bool, &str)> {
    let mut chars = label.chars();
    let (checked, rest) = match chars.next()? {
        '[' => {
            let sign = chars.next()?;
            let rest = chars.as_str().strip_prefix(']')?;
            (
                matches!(sign, 'x' | 'X' | '*' | '✔' | '✓')
                    .then_some(true)
                    .or((sign == ' ').then_some(false))?,
                rest,
            )
        }
        sign if BOXES.contains(&sign) => (sign != BOXES[0], chars.as_str()),
        _ => return None,
    };
    rest.is_empty().then_some("").or_else(|| rest.strip_prefix(' ')).map(|text| (checked, text))
}

/// A label without its check box.
fn unboxed(label: &str) -> &str {
    check_box(label).map_or(label, |(_, text)| text)
}

/// Text with all its boxes empty.
fn unchecked(text: &str) -> String {
    text.chars().map(|c| if BOXES.contains(&c) { BOXES[0] } else { c }).collect()
}

/// Text with each run of blanks as one.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
