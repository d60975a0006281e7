//! Facts about one state of the terminal: what is on the screen, where the cursor is, which modes
//! are set.

use std::fmt;
use std::sync::Arc;

use regex::Regex;
use tapdeck_term::{CursorShape, Size, Term};

use super::frame::Frame;
use super::look::Look;
use super::style::{Cells, StyleFact};
use crate::ParseError;

/// A state of the terminal: its picture, and the model where more than the picture is asked for.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The picture.
    pub frame: &'a Arc<Frame>,
    /// The model.
    pub term: &'a Term,
}

/// Something that must hold of a state: all of its facts.
#[derive(Clone, Debug, Default)]
pub struct Condition {
    /// How to look at the screen.
    pub look: Look,
    /// What must hold.
    pub facts: Vec<Fact>,
}

/// A text, by its whole or by a pattern.
#[derive(Clone, Debug)]
pub enum TextTest {
    /// Exactly this.
    Is(String),
    /// This is in it.
    Contains(String),
    /// This matches somewhere.
    Matches(Regex),
}

impl TextTest {
    /// Whether it holds.
    pub(crate) fn holds(&self, text: &str) -> bool {
        match self {
            Self::Is(wanted) => text == wanted,
            Self::Contains(part) => text.contains(part.as_str()),
            Self::Matches(pattern) => pattern.is_match(text),
        }
    }
}

impl fmt::Display for TextTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(text) => write!(f, "{text:?}"),
            Self::Contains(text) => write!(f, "something with {text:?}"),
            Self::Matches(pattern) => write!(f, "something that matches /{pattern}/"),
        }
    }
}

/// One fact.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Fact {
    /// The text is on the screen; it may go over several rows, and over wrapped lines.
    Contains(String),
    /// It is not.
    Lacks(String),
    /// The pattern matches on the screen.
    Matches(Regex),
    /// The screen is this text, apart from blanks at the end of rows and blank rows at the end.
    Equals {
        /// The text.
        text: String,
        /// The file that it is kept in.
        file: Option<String>,
    },
    /// The screen is this text and looks so, as [`Fact::Equals`] with styles.
    Styled {
        /// The text with its styles.
        text: String,
        /// The file that it is kept in.
        file: String,
    },
    /// The screen is the text of a file that cannot be read, so it holds of nothing.
    Unread {
        /// The file.
        file: String,
        /// Why it cannot be read.
        why: String,
        /// Whether it would be a text with styles.
        styled: bool,
    },
    /// Nothing is to be seen.
    Blank,
    /// The cursor is there.
    Cursor {
        /// Row from 0.
        row: Option<u16>,
        /// Column from 0.
        col: Option<u16>,
        /// Shown or hidden.
        visible: Option<bool>,
        /// Its shape.
        shape: Option<CursorShape>,
    },
    /// The screen has this size.
    Size(Size),
    /// The alternate screen is shown, or not.
    Alternate(bool),
    /// A mode is set, or not.
    Mode(Mode, bool),
    /// The title.
    Title(TextTest),
    /// Rows above the screen: how many at least and at most.
    Scrolled {
        /// At least.
        min: Option<u64>,
        /// At most.
        max: Option<u64>,
    },
    /// The text is in the rows above the screen.
    Above(TextTest),
    /// How a cell or a text looks.
    Style(StyleFact),
}

/// A mode, by its number or the name that people know it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mode {
    /// As it was written.
    name: String,
    /// As the terminal's list has it.
    number: String,
}

/// Names of modes that programs of our time use.
const MODES: &[(&str, &str)] = &[
    ("insert", "4"),
    ("newline", "20"),
    ("application_cursor", "?1"),
    ("reverse_video", "?5"),
    ("origin", "?6"),
    ("wrap", "?7"),
    ("cursor_visible", "?25"),
    ("application_keypad", "?66"),
    ("mouse_x10", "?9"),
    ("mouse_press", "?1000"),
    ("mouse_drag", "?1002"),
    ("mouse_motion", "?1003"),
    ("mouse_sgr", "?1006"),
    ("focus", "?1004"),
    ("alternate", "?1049"),
    ("bracketed_paste", "?2004"),
    ("synchronised", "?2026"),
    ("clusters", "?2027"),
];

impl std::str::FromStr for Mode {
    type Err = ParseError;

    fn from_str(name: &str) -> Result<Self, ParseError> {
        let digits = name.strip_prefix('?').unwrap_or(name);
        let known = MODES.iter().find(|(n, _)| *n == name).map(|(_, number)| (*number).to_owned());
        let numeric = || digits.parse::<u16>().ok().map(|_| name.to_owned());
        let number = known.or_else(numeric).ok_or_else(|| {
            let names: Vec<_> = MODES.iter().map(|(n, _)| *n).collect();
            let known = format!("write its number (?2004) or one of {}", names.join(", "));
            ParseError::new(format!("no mode is called {name:?}: {known}"))
        })?;
        Ok(Self { name: name.to_owned(), number })
    }
}

/// A place on the screen that a report should point at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Row from 0.
    pub row: u16,
    /// First column from 0.
    pub col: u16,
    /// Columns.
    pub width: u16,
}

/// A fact that does not hold, and why.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Mismatch {
    /// In one sentence.
    pub message: String,
    /// Where to look.
    pub spots: Vec<Spot>,
    /// Expected and shown text, where they are to be laid side by side.
    pub texts: Option<(String, String)>,
    /// The file that the expected text is kept in.
    pub(crate) file: Option<String>,
}

impl Mismatch {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }
}

impl Condition {
    /// Checks every fact; the first that does not hold is the answer.
    pub fn check(&self, view: View<'_>) -> Result<(), Mismatch> {
        self.outside(view.frame.size).map_or(Ok(()), |why| Err(Mismatch::new(why)))?;
        self.facts.iter().try_for_each(|fact| fact.check(&self.look, view))
    }

    /// What it speaks of that a screen of this size does not have. There nothing is ever to be
    /// seen, so that whatever must not be there would always hold.
    pub(crate) fn outside(&self, size: Size) -> Option<String> {
        let region = (self.look.region.top, self.look.region.left);
        let facts = self.facts.iter().filter_map(|fact| match fact {
            Fact::Cursor { row, col, .. } => Some((row.unwrap_or(0), col.unwrap_or(0))),
            Fact::Style(StyleFact { cells: Cells::At(spot), .. }) => {
                Some((spot.row, spot.col.saturating_add(spot.width.saturating_sub(1))))
            }
            _ => None,
        });
        let beyond = |what: &str, at: u16| {
            let Size { cols, rows } = size;
            format!("{what} {} is outside of the screen, which is {cols}x{rows}", u32::from(at) + 1)
        };
        std::iter::once(region).chain(facts).find_map(|(row, col)| match () {
            () if row >= size.rows => Some(beyond("row", row)),
            () if col >= size.cols => Some(beyond("column", col)),
            () => None,
        })
    }

    /// Why a text that it wants cannot be known.
    pub fn unread(&self) -> Option<String> {
        self.facts.iter().find_map(|fact| match fact {
            Fact::Unread { file, why, .. } => Some(unread(file, why)),
            _ => None,
        })
    }

    /// Where on the screen the texts are that the condition speaks of, for reports of what should
    /// not be there.
    pub fn spots(&self, frame: &Frame) -> Vec<Spot> {
        self.facts.iter().flat_map(|fact| fact.spots(&self.look, frame)).collect()
    }

    /// Whether only the picture's rows matter, so that two frames with the same rows give the same
    /// answer.
    pub(crate) fn is_of_rows(&self) -> bool {
        use Fact::{Blank, Contains, Equals, Lacks, Matches, Unread};
        let of_rows = |f: &Fact| {
            matches!(f, Contains(_) | Lacks(_) | Matches(_) | Equals { .. } | Unread { .. } | Blank)
        };
        self.facts.iter().all(of_rows)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.facts.is_empty() {
            return f.write_str("anything");
        }
        for (i, fact) in self.facts.iter().enumerate() {
            write!(f, "{}{fact}", if i > 0 { ", " } else { "" })?;
        }
        if self.look.region.is_all() { Ok(()) } else { write!(f, " in {}", self.look.region) }
    }
}

impl Fact {
    fn check(&self, look: &Look, view: View<'_>) -> Result<(), Mismatch> {
        let frame = view.frame;
        match self {
            Self::Contains(text) => look
                .shows(frame, text)
                .then_some(())
                .ok_or_else(|| Mismatch::new(format!("{text:?} is not on the screen"))),
            Self::Lacks(text) => (!look.shows(frame, text)).then_some(()).ok_or_else(|| Mismatch {
                spots: spots_of(look, frame, text),
                ..Mismatch::new(format!("{text:?} is on the screen"))
            }),
            Self::Matches(pattern) => found(look, frame, |t| pattern.is_match(t))
                .then_some(())
                .ok_or_else(|| Mismatch::new(format!("nothing on the screen matches /{pattern}/"))),
            Self::Equals { text, file } => equals(look, frame, text, file.as_deref()),
            Self::Styled { text, file } => styled(look, view, text, file),
            Self::Unread { file, why, styled } => Err(Mismatch {
                texts: Some((
                    String::new(),
                    match styled {
                        true => super::styled::text(look, view),
                        false => look.text(frame).into_owned(),
                    },
                )),
                file: Some(file.clone()),
                ..Mismatch::new(unread(file, why))
            }),
            Self::Blank => match look.rows(frame).iter().find(|(_, row)| !row.is_empty()) {
                None => Ok(()),
                Some((row, text)) => {
                    let width = super::frame::Row::from_text(text).width();
                    let spots = vec![Spot { row: *row, col: look.region.left, width }];
                    Err(Mismatch { spots, ..Mismatch::new(format!("row {} is not blank", row + 1)) })
                }
            },
            Self::Cursor { row, col, visible, shape } => cursor(frame, *row, *col, *visible, *shape),
            Self::Size(size) => (frame.size == *size).then_some(()).ok_or_else(|| {
                let Size { cols, rows } = frame.size;
                Mismatch::new(format!("the screen is {cols}x{rows}, not {}x{}", size.cols, size.rows))
            }),
            Self::Alternate(on) => (frame.modes.alternate() == *on).then_some(()).ok_or_else(|| {
                let shown = if *on { "main" } else { "alternate" };
                Mismatch::new(format!("the {shown} screen is shown"))
            }),
            Self::Mode(mode, on) => {
                let set = frame.modes.names().contains(&mode.number);
                (set == *on).then_some(()).ok_or_else(|| {
                    let names = frame.modes.names().join(" ");
                    let is = if set { "set" } else { "not set" };
                    Mismatch::new(format!("mode {} is {is}; set are {names}", mode.name))
                })
            }
            Self::Title(test) => test
                .holds(&frame.title)
                .then_some(())
                .ok_or_else(|| Mismatch::new(format!("the title is {:?}, not {test}", frame.title))),
            Self::Scrolled { min, max } => {
                let n = frame.scrolled;
                (n >= min.unwrap_or(0) && n <= max.unwrap_or(u64::MAX)).then_some(()).ok_or_else(|| {
                    Mismatch::new(format!("{n} rows have left the screen, {}", range(*min, *max)))
                })
            }
            Self::Above(test) => view
                .term
                .scrollback()
                .rev()
                .any(|line| test.holds(&line.text()))
                .then_some(())
                .ok_or_else(|| Mismatch::new(format!("no row above the screen is {test}"))),
            Self::Style(fact) => fact.check(look, view),
        }
    }

    fn spots(&self, look: &Look, frame: &Frame) -> Vec<Spot> {
        match self {
            Self::Contains(text) => spots_of(look, frame, text),
            Self::Matches(pattern) => {
                let mut spots = Vec::new();
                for (y, row) in look.rows(frame) {
                    let shown = super::frame::Row::from_text(&row);
                    spots.extend(pattern.find_iter(&row).filter(|m| !m.is_empty()).map(|m| Spot {
                        row: y,
                        col: look.region.left + shown.column(m.start()),
                        width: shown.column(m.end()) - shown.column(m.start()),
                    }));
                }
                spots
            }
            _ => Vec::new(),
        }
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contains(text) => write!(f, "contains {text:?}"),
            Self::Lacks(text) => write!(f, "lacks {text:?}"),
            Self::Matches(pattern) => write!(f, "matches /{pattern}/"),
            Self::Equals { file: Some(file), .. } | Self::Unread { file, .. } => write!(f, "equals {file}"),
            Self::Equals { .. } => f.write_str("equals a text"),
            Self::Styled { file, .. } => write!(f, "equals {file} with its styles"),
            Self::Blank => f.write_str("is blank"),
            Self::Cursor { row, col, visible, shape } => {
                f.write_str("cursor")?;
                if let Some(row) = row {
                    write!(f, " row {}", row + 1)?;
                }
                if let Some(col) = col {
                    write!(f, " col {}", col + 1)?;
                }
                if let Some(visible) = visible {
                    f.write_str(if *visible { " visible" } else { " hidden" })?;
                }
                shape.map_or(Ok(()), |s| write!(f, " {}", s.name()))
            }
            Self::Size(size) => write!(f, "size {size}"),
            Self::Alternate(on) => write!(f, "{} screen", if *on { "alternate" } else { "main" }),
            Self::Mode(mode, on) => write!(f, "mode {} {}", mode.name, if *on { "set" } else { "not set" }),
            Self::Title(test) => write!(f, "title {test}"),
            Self::Scrolled { min, max } => write!(f, "rows above {}", range(*min, *max)),
            Self::Above(test) => write!(f, "a row above is {test}"),
            Self::Style(fact) => write!(f, "{fact}"),
        }
    }
}

pub(crate) fn range(min: Option<u64>, max: Option<u64>) -> String {
    match (min, max) {
        (Some(a), Some(b)) if a == b => format!("wanted are {a}"),
        (Some(a), Some(b)) => format!("wanted are {a} to {b}"),
        (Some(a), None) => format!("wanted are at least {a}"),
        (None, Some(b)) => format!("wanted are at most {b}"),
        (None, None) => "any number will do".to_owned(),
    }
}

fn unread(file: &str, why: &str) -> String {
    format!("{file} cannot be read: {why}")
}

fn found(look: &Look, frame: &Frame, holds: impl Fn(&str) -> bool) -> bool {
    holds(&look.text(frame)) || look.unwrapped(frame).is_some_and(|text| holds(&text))
}

/// Where a text is; of a text over several rows, its first.
fn spots_of(look: &Look, frame: &Frame, text: &str) -> Vec<Spot> {
    let first = text.lines().next().unwrap_or_default();
    let mut spots = Vec::new();
    if first.is_empty() {
        return spots;
    }
    for (y, row) in look.rows(frame) {
        let shown = super::frame::Row::from_text(&row);
        spots.extend(row.match_indices(first).map(|(at, part)| Spot {
            row: y,
            col: look.region.left + shown.column(at),
            width: shown.column(at + part.len()) - shown.column(at),
        }));
    }
    spots
}

fn equals(look: &Look, frame: &Frame, text: &str, file: Option<&str>) -> Result<(), Mismatch> {
    let (wanted, shown) = (look.expected(text), look.text(frame));
    if wanted == shown {
        return Ok(());
    }
    let differ = |a: &str, b: &str| a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let rows = wanted.lines().count().max(shown.lines().count());
    let line = |text: &str, i: usize| text.lines().nth(i).unwrap_or_default().to_owned();
    let different: Vec<usize> = (0..rows).filter(|i| line(&wanted, *i) != line(&shown, *i)).collect();
    let spots = different.iter().map(|&i| {
        let shown = line(&shown, i);
        let same = differ(&line(&wanted, i), &shown);
        let at: usize = shown.chars().take(same).map(char::len_utf8).sum();
        let row = super::frame::Row::from_text(&shown);
        let col = row.column(at);
        let width = row.width().saturating_sub(col).max(1);
        Spot { row: look.region.top + i as u16, col: look.region.left + col, width }
    });
    let (n, what) = (different.len(), file.map_or("the expected text".to_owned(), str::to_owned));
    Err(Mismatch {
        message: format!(
            "{n} row{} differ{} from {what}",
            if n == 1 { "" } else { "s" },
            if n == 1 { "s" } else { "" }
        ),
        spots: spots.collect(),
        texts: Some((wanted, shown.into_owned())),
        file: file.map(str::to_owned),
    })
}

fn styled(look: &Look, view: View<'_>, text: &str, file: &str) -> Result<(), Mismatch> {
    let shown = super::styled::text(look, view);
    let wanted: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
    let have: Vec<&str> = shown.lines().collect();
    if wanted == have {
        return Ok(());
    }
    let same = wanted.iter().zip(&have).filter(|(a, b)| a == b).count();
    let different = wanted.len().max(have.len()) - same;
    Err(Mismatch {
        message: match different {
            1 => format!("1 line of {file} differs"),
            n => format!("{n} lines of {file} differ"),
        },
        texts: Some((wanted.join("\n"), shown)),
        file: Some(file.to_owned()),
        ..Mismatch::default()
    })
}

fn cursor(
    frame: &Frame,
    row: Option<u16>,
    col: Option<u16>,
    visible: Option<bool>,
    shape: Option<CursorShape>,
) -> Result<(), Mismatch> {
    let is = frame.cursor;
    let spot = vec![Spot { row: is.row, col: is.col, width: 1 }];
    let wrong = |message: String| Err(Mismatch { spots: spot.clone(), ..Mismatch::new(message) });
    if row.is_some_and(|r| r != is.row) || col.is_some_and(|c| c != is.col) {
        return wrong(format!("the cursor is at row {}, column {}", is.row + 1, is.col + 1));
    }
    if visible.is_some_and(|v| v != is.visible) {
        return wrong(format!("the cursor is {}", if is.visible { "shown" } else { "hidden" }));
    }
    if shape.is_some_and(|s| s != is.shape) {
        return wrong(format!("the cursor is a {}", is.shape.name()));
    }
    Ok(())
}
