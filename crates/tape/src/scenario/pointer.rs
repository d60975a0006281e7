//! Steps with the mouse: where on the screen, and with which button.

use tapdeck_term::keys::{Button, Mods};

use super::condition::{Said, from_one};
use super::raw;

/// Clicks and notches of the wheel in one step, at most.
const MOST: u16 = 1000;

/// A place of the screen, rows and columns counted from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// The middle of this text, where it is once; in this row if one is given.
    Text(String, Option<u16>),
    /// A cell.
    Cell {
        /// Its row.
        row: u16,
        /// Its column.
        col: u16,
    },
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text, None) => write!(f, "{text:?}"),
            Self::Text(text, Some(row)) => write!(f, "{text:?} in row {}", row + 1),
            Self::Cell { row, col } => write!(f, "row {}, column {}", row + 1, col + 1),
        }
    }
}

/// Where this text is.
impl From<&str> for Target {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned(), None)
    }
}

/// A click.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Click {
    /// Where.
    pub at: Target,
    /// With which button.
    pub button: Button,
    /// How often.
    pub times: u16,
    /// Modifiers held.
    pub mods: Mods,
}

/// A drag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drag {
    /// Where the button goes down.
    pub from: Target,
    /// Where it comes up.
    pub to: Target,
    /// Which button.
    pub button: Button,
    /// Modifiers held.
    pub mods: Mods,
}

/// A turn of the wheel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scroll {
    /// Where the pointer is; the middle of the screen where that is not said.
    pub at: Option<Target>,
    /// The direction.
    pub wheel: Button,
    /// Notches.
    pub notches: u16,
    /// Modifiers held.
    pub mods: Mods,
}

pub(super) fn click(raw: &raw::Click) -> Said<Click> {
    let long = match raw {
        raw::Click::Text(text) => &raw::LongClick { text: Some(text.clone()), ..raw::LongClick::default() },
        raw::Click::Long(long) => &**long,
    };
    Ok(Click {
        at: target(&long.text, long.row, long.col)?,
        button: button(&long.button)?,
        times: times(long.times.unwrap_or(1))?,
        mods: mods(&long.mods)?,
    })
}

pub(super) fn drag(raw: &raw::Drag) -> Said<Drag> {
    Ok(Drag {
        from: place(&raw.from)?,
        to: place(&raw.to)?,
        button: button(&raw.button)?,
        mods: mods(&raw.mods)?,
    })
}

pub(super) fn scroll(raw: &raw::Scroll) -> Said<Scroll> {
    let ways = [
        (raw.up, Button::WheelUp),
        (raw.down, Button::WheelDown),
        (raw.left, Button::WheelLeft),
        (raw.right, Button::WheelRight),
    ];
    let mut given = ways.into_iter().filter_map(|(n, wheel)| Some((n?, wheel)));
    let (Some((notches, wheel)), None) = (given.next(), given.next()) else {
        return Err("scroll wants one of up, down, left and right, with a number of notches".into());
    };
    let somewhere = raw.text.is_some() || raw.row.is_some() || raw.col.is_some();
    let at = somewhere.then(|| target(&raw.text, raw.row, raw.col)).transpose()?;
    Ok(Scroll { at, wheel, notches: times(notches)?, mods: mods(&raw.mods)? })
}

fn place(raw: &raw::Place) -> Said<Target> {
    match raw {
        raw::Place::Text(text) => target(&Some(text.clone()), None, None),
        raw::Place::Long(long) => target(&long.text, long.row, long.col),
    }
}

fn target(text: &Option<String>, row: Option<u16>, col: Option<u16>) -> Said<Target> {
    let (row, col) = (from_one(row, "row")?, from_one(col, "column")?);
    match (text, row, col) {
        (Some(text), row, None) if !text.is_empty() => Ok(Target::Text(text.clone(), row)),
        (None, Some(row), Some(col)) => Ok(Target::Cell { row, col }),
        _ => Err("a place is a text, a text and its row, or a row and a col".into()),
    }
}

fn times(n: u16) -> Said<u16> {
    (1..=MOST)
        .contains(&n)
        .then_some(n)
        .ok_or_else(|| format!("{n} times are not possible: write 1 to {MOST}"))
}

fn button(name: &Option<String>) -> Said<Button> {
    match name.as_deref() {
        None | Some("left") => Ok(Button::Left),
        Some("middle") => Ok(Button::Middle),
        Some("right") => Ok(Button::Right),
        Some(other) => Err(format!("no button is called {other:?}: write left, middle or right")),
    }
}

fn mods(names: &raw::Many<String>) -> Said<Mods> {
    names.0.iter().try_fold(Mods::NONE, |mods, name| match name.as_str() {
        "shift" => Ok(mods.with(Mods::SHIFT)),
        "alt" => Ok(mods.with(Mods::ALT)),
        "ctrl" => Ok(mods.with(Mods::CTRL)),
        other => Err(format!("no modifier is called {other:?}: write shift, alt or ctrl")),
    })
}
