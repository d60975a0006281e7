//! The input field of a full-screen program: what a user has typed there and not submitted.

use tapdeck_term::{Attrs, Line, Style, Term};

use super::detector::Detector;
use super::page::skeleton;
use super::rules::Rules;

/// What stands in a program's input field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Field {
    /// The text, as it is shown; hints of the program are no part of it.
    pub text: String,
    /// How many long texts are shown only by something that stands for them.
    pub placeholders: usize,
    /// Some of the text has the usual color; hints of some programs have another.
    pub is_plain: bool,
}

impl Field {
    /// Whether nothing was typed there.
    pub fn is_empty(&self) -> bool {
        self.placeholders == 0 && skeleton(&self.text).is_empty()
    }
}

/// How long the end of a text is that must stand in the field, where the rest of it may be out of
/// sight; what is shorter must be all that stands there.
const TAIL: usize = 12;

impl Rules {
    /// The program's input field, if it is on the screen. Below it is a border, or the cursor is in
    /// its last row.
    pub fn input_field(&self, term: &Term) -> Option<Field> {
        let frame = self.frame.as_ref()?;
        let rows = term.size().rows;
        let text = |y: u16| term.row(y).map(|line| line.text()).unwrap_or_default();
        let first = (0..rows).rev().find(|y| frame.is_match(&text(*y)))?;
        let is_border = |y: &u16| self.border.as_ref().is_some_and(|border| border.is_match(&text(*y)));
        let end = (first + 1..rows).find(is_border).unwrap_or(term.cursor().row.max(first) + 1);
        let mut field = Field::default();
        for (n, line) in (first..end).filter_map(|y| term.row(y)).enumerate() {
            let typed = typed(line, |_| true);
            let plain = typed_plainly(line);
            let plain = if n == 0 { frame.replace(&plain, "$1") } else { plain.as_str().into() };
            field.is_plain |= !skeleton(&plain).is_empty();
            field.placeholders += self.placeholders(&line.text());
            if n > 0 {
                field.text.push('\n');
            }
            field.text += if n == 0 { frame.replace(&typed, "$1") } else { typed.as_str().into() }.trim();
        }
        field.text.truncate(field.text.trim_end().len());
        Some(field)
    }
}

/// The text of a row without hints, which are faint, and without the cursor that some programs draw
/// themselves.
fn typed(line: Line<'_>, is_kept: impl Fn(Style) -> bool) -> String {
    let is_typed = |style: Style| !style.attrs.contains(Attrs::FAINT) && is_kept(style);
    line.runs().into_iter().filter(|run| is_typed(run.style)).map(|run| run.text).collect()
}

fn typed_plainly(line: Line<'_>) -> String {
    typed(line, |style| style.fg == Style::default().fg && !style.attrs.contains(Attrs::INVERSE))
}

impl Detector {
    /// The program's input field, if its rules know one and it is on the screen.
    pub fn input_field(&self, term: &Term) -> Option<Field> {
        self.rules.input_field(term)
    }

    /// Whether a text, or the end of it, stands in the program's input field.
    pub fn has_in_field(&self, term: &Term, text: &str) -> bool {
        let asked = skeleton(text);
        let Some(field) = self.input_field(term).filter(|_| !asked.is_empty()) else { return false };
        let shown = skeleton(&field.text);
        let length = asked.chars().count();
        if length < TAIL {
            return shown == asked;
        }
        let tail: String = asked.chars().skip(length - TAIL).collect();
        shown.contains(&tail) || field.placeholders > 0
    }
}
