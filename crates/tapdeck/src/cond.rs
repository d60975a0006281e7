//! Conditions that a session is waited for to meet.

use std::fmt;
use std::ops::{BitAnd, BitOr, Range};
use std::sync::Arc;
use std::time::Duration;

use tapdeck_core::check::{Cells, Condition, Fact, Frame, ParseError, StyleFact, View, colour, pattern};
use tapdeck_core::turns::AgentState;
use tapdeck_term::{Term, Underline};

use crate::{Error, Result};

/// Something to wait for: a text, a row, a style, a place of the cursor, a state, a pause. Made by
/// [`row`], [`text`] and the functions beside them; combined by `&` and `|`.
///
/// ```
/// use tapdeck::{row, text};
///
/// let ready = row(r"^\$ $").in_rows(0..2) | text("login:");
/// let said = r#"(a match of /^\$ $/ in rows 1 to 2 or "login:" on the screen)"#;
/// assert_eq!(ready.to_string(), said);
/// ```
#[derive(Debug, Clone)]
pub struct Cond(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Screen(Condition),
    State(AgentState),
    Quiet(Duration),
    All(Box<Cond>, Box<Cond>),
    Any(Box<Cond>, Box<Cond>),
    /// A pattern that could not be read; the wait fails with it.
    Invalid(String),
}

fn fact(fact: Fact) -> Cond {
    Cond(Kind::Screen(Condition { facts: vec![fact], ..Condition::default() }))
}

/// A row of the screen matches this regular expression. A line that wraps counts as one row.
pub fn row(regex: &str) -> Cond {
    match pattern(regex) {
        Ok(regex) => fact(Fact::Matches(regex)),
        Err(why) => Cond(Kind::Invalid(why.into())),
    }
}

/// The text is on the screen; it may wrap.
pub fn text(text: impl Into<String>) -> Cond {
    fact(Fact::Contains(text.into()))
}

/// The text is on the screen in this style: attributes, a color, and `on` with a background, in
/// any order, as in `bold`, `red on default`, `bold bright-red on 236` or `not underline`.
///
/// Attributes are `underline` and the names of [`Attrs`](tapdeck_term::Attrs), such as `italic`. A
/// color is a name, a number up to 255, `#rrggbb` or `default`. What is not named may be
/// anything. The first place of the text counts.
///
/// ```
/// use tapdeck::style;
///
/// let failed = style("FAILED", "bold red");
/// assert_eq!(failed.to_string(), r#""FAILED" is red bold"#);
/// ```
pub fn style(text: impl Into<String>, style: &str) -> Cond {
    match style_fact(text.into(), style) {
        Ok(style) => fact(Fact::Style(style)),
        Err(why) => Cond(Kind::Invalid(why.into())),
    }
}

fn style_fact(text: String, words: &str) -> std::result::Result<StyleFact, ParseError> {
    let cells = Cells::Text(text);
    let mut fact = StyleFact { cells, fg: None, bg: None, attrs: Vec::new(), underline: None, link: None };
    let mut words = words.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "on" => fact.bg = Some(colour(words.next().unwrap_or_default())?),
            "underline" => fact.underline = Some(Underline::Single),
            "not" => match words.next().unwrap_or_default() {
                "underline" => fact.underline = Some(Underline::None),
                attr => fact.attrs.push((attr.parse()?, false)),
            },
            word => match word.parse() {
                Ok(attr) => fact.attrs.push((attr, true)),
                Err(_) => fact.fg = Some(colour(word)?),
            },
        }
    }
    Ok(fact)
}

/// The cursor is in this row and column, counted from 0.
pub fn cursor(row: u16, col: u16) -> Cond {
    fact(Fact::Cursor { row: Some(row), col: Some(col), visible: None, shape: None })
}

/// The program is in this state, as the rules for its turns judge it.
pub fn state(state: AgentState) -> Cond {
    Cond(Kind::State(state))
}

/// The screen has not changed for this long.
pub fn quiet(time: Duration) -> Cond {
    Cond(Kind::Quiet(time))
}

/// What a condition is checked against.
pub(crate) struct Seen<'a> {
    pub(crate) term: &'a Term,
    pub(crate) state: Option<AgentState>,
    pub(crate) quiet: Duration,
}

impl Cond {
    /// Looks only at these rows, counted from 0, the end not included.
    #[must_use]
    pub fn in_rows(self, rows: Range<u16>) -> Self {
        let within = |cond: Box<Self>| Box::new(cond.in_rows(rows.clone()));
        Self(match self.0 {
            Kind::Screen(mut condition) => {
                condition.look.region.top = rows.start;
                condition.look.region.bottom = rows.end.saturating_sub(1);
                Kind::Screen(condition)
            }
            Kind::All(a, b) => Kind::All(within(a), within(b)),
            Kind::Any(a, b) => Kind::Any(within(a), within(b)),
            other => other,
        })
    }

    /// Fails when a part of it was not understood.
    pub(crate) fn checked(self) -> Result<Self> {
        match self.invalid() {
            Some(why) => Err(Error::Invalid(why.to_owned())),
            None => Ok(self),
        }
    }

    fn invalid(&self) -> Option<&str> {
        match &self.0 {
            Kind::Invalid(why) => Some(why),
            Kind::All(a, b) | Kind::Any(a, b) => a.invalid().or_else(|| b.invalid()),
            _ => None,
        }
    }

    /// The shortest pause that it waits for.
    pub(crate) fn pause(&self) -> Option<Duration> {
        match &self.0 {
            Kind::Quiet(time) => Some(*time),
            Kind::All(a, b) | Kind::Any(a, b) => a.pause().into_iter().chain(b.pause()).min(),
            _ => None,
        }
    }

    /// Whether it asks for the program's state.
    #[cfg(feature = "live")]
    pub(crate) fn asks_state(&self) -> bool {
        match &self.0 {
            Kind::State(_) => true,
            Kind::All(a, b) | Kind::Any(a, b) => a.asks_state() || b.asks_state(),
            _ => false,
        }
    }

    pub(crate) fn holds(&self, seen: &Seen<'_>) -> bool {
        match &self.0 {
            Kind::Screen(condition) => {
                let frame = Arc::new(Frame::of(seen.term));
                condition.check(View { frame: &frame, term: seen.term }).is_ok()
            }
            Kind::State(state) => seen.state == Some(*state),
            Kind::Quiet(time) => seen.quiet >= *time,
            Kind::All(a, b) => a.holds(seen) && b.holds(seen),
            Kind::Any(a, b) => a.holds(seen) || b.holds(seen),
            Kind::Invalid(_) => false,
        }
    }
}

impl From<&str> for Cond {
    fn from(shown: &str) -> Self {
        text(shown)
    }
}

impl From<AgentState> for Cond {
    fn from(wanted: AgentState) -> Self {
        state(wanted)
    }
}

impl From<Condition> for Cond {
    fn from(condition: Condition) -> Self {
        Self(Kind::Screen(condition))
    }
}

impl BitAnd for Cond {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(Kind::All(Box::new(self), Box::new(other)))
    }
}

impl BitOr for Cond {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(Kind::Any(Box::new(self), Box::new(other)))
    }
}

impl fmt::Display for Cond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Screen(condition) => {
                let region = condition.look.region;
                match condition.facts.as_slice() {
                    [Fact::Matches(regex)] => write!(f, "a match of /{regex}/")?,
                    [Fact::Contains(text)] => write!(f, "{text:?}")?,
                    _ => return write!(f, "{condition}"),
                }
                if region.is_all() { f.write_str(" on the screen") } else { write!(f, " in {region}") }
            }
            Kind::State(state) => write!(f, "the state {state}"),
            Kind::Quiet(time) => write!(f, "a screen that stays the same for {time:?}"),
            Kind::All(a, b) => write!(f, "({a} and {b})"),
            Kind::Any(a, b) => write!(f, "({a} or {b})"),
            Kind::Invalid(why) => f.write_str(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use tapdeck_term::{Settings, Size};

    use super::*;

    #[test]
    fn styles_are_those_of_every_cell_of_the_text() {
        let mut term = Term::new(Size::new(40, 4), Settings::default());
        term.feed(b"\x1b[1;31;48;5;236mFAILED\x1b[m one, \x1b[4mtwo\x1b[m, \x1b[1mhal\x1b[mf");
        let seen = Seen { term: &term, state: None, quiet: Duration::ZERO };
        for (text, wanted, holds) in [
            ("FAILED", "bold", true),
            ("FAILED", "red bold on 236 not italic", true),
            ("FAILED", "bold green", false),
            ("FAILED", "on default", false),
            ("FAILED", "not bold", false),
            ("one", "default not bold", true),
            ("two", "underline", true),
            ("one", "not underline", true),
            ("half", "bold", false),
            ("half", "", true),
            ("three", "bold", false),
        ] {
            let cond = style(text, wanted).checked().expect(wanted);
            assert_eq!(cond.holds(&seen), holds, "{text:?} is {wanted}");
        }
        assert!((style("FAILED", "bold") & style("two", "underline")).holds(&seen));
        assert!(!style("FAILED", "bold").in_rows(1..3).holds(&seen));
        for wrong in ["bald", "on", "not", "not red", "bold #12"] {
            assert!(matches!(style("FAILED", wrong).checked(), Err(Error::Invalid(_))), "{wrong}");
        }
    }
}
