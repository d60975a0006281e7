//! Conditions that a session is waited for to meet.

use std::fmt;
use std::ops::{BitAnd, BitOr, Range};
use std::sync::Arc;
use std::time::Duration;

use tapdeck_core::check::{Condition, Fact, Frame, View, pattern};
use tapdeck_core::turns::AgentState;
use tapdeck_term::Term;

use crate::{Error, Result};

/// Something to wait for: a text, a row, a place of the cursor, a state, a pause. Made by [`row`],
/// [`text`] and the functions beside them; combined by `&` and `|`.
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
