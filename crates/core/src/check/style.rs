//! How cells look: a fact about the style of one cell, or of every cell of a text.

use std::fmt;
use std::str::FromStr;

use tapdeck_term::{Attrs, Colour, Style, Underline};

use super::ParseError;
use super::condition::{Mismatch, Spot, View};
use super::look::Look;

/// Which cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cells {
    /// From this row and column (from 0) on, so many columns.
    At(Spot),
    /// All cells of the first place where this text is.
    Text(String),
}

/// What must hold of each of them; what is `None` may be anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StyleFact {
    /// Which cells.
    pub cells: Cells,
    /// Text colour.
    pub fg: Option<Colour>,
    /// Background.
    pub bg: Option<Colour>,
    /// Attributes that are on or off.
    pub attrs: Vec<(Attr, bool)>,
    /// Underlined so.
    pub underline: Option<Underline>,
    /// Leads to this address; empty for no link.
    pub link: Option<String>,
}

/// An attribute by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attr(Attrs);

impl Attr {
    fn name(self) -> &'static str {
        self.0.names().next().unwrap_or_default()
    }
}

impl FromStr for Attr {
    type Err = ParseError;

    fn from_str(name: &str) -> Result<Self, ParseError> {
        let attr = Attrs::from_name(name).filter(|attr| Attrs::VISIBLE.contains(*attr));
        attr.map(Self).ok_or_else(|| ParseError::new(format!("no attribute is called {name:?}")))
    }
}

/// Reads a colour such as `red`, `bright-red`, `208`, `#ff8700` or `default`.
///
/// # Errors
/// When the text is no colour.
pub fn colour(text: &str) -> Result<Colour, ParseError> {
    let wrong = "is not a color: write red, bright-red, a number up to 255, #rrggbb or default";
    text.parse().map_err(|_| ParseError::new(format!("{text:?} {wrong}")))
}

/// Reads an underline such as `single` or `curly`; `none` for none.
///
/// # Errors
/// When the text is no underline.
pub fn underline(text: &str) -> Result<Underline, ParseError> {
    let wrong = "is no underline: write none, single, double, curly, dotted or dashed";
    Underline::from_name(text).ok_or_else(|| ParseError::new(format!("{text:?} {wrong}")))
}

impl StyleFact {
    pub(crate) fn check(&self, look: &Look, view: View<'_>) -> Result<(), Mismatch> {
        let spot = match &self.cells {
            Cells::At(spot) => *spot,
            Cells::Text(text) => {
                let plain = Look { region: look.region, ..Look::default() };
                let found = plain.rows(view.frame).into_iter().find_map(|(row, shown)| {
                    let at = shown.find(text.as_str())?;
                    let cells = super::frame::Row::from_text(&shown);
                    let col = look.region.left + cells.column(at);
                    let width = cells.column(at + text.len()) - cells.column(at);
                    Some(Spot { row, col, width })
                });
                found.ok_or_else(|| Mismatch::new(format!("{text:?} is not on the screen")))?
            }
        };
        let mut wrong = None;
        let mut col = 0;
        let (from, to) = (usize::from(spot.col), usize::from(spot.col) + usize::from(spot.width.max(1)));
        if let Some(line) = view.term.row(spot.row) {
            line.each(|_, width, style| {
                if wrong.is_none() && col < to && col + width > from {
                    wrong = self.wrong_with(style, view).map(|why| (col, why));
                }
                col += width;
            });
        }
        // What lies behind the last written cell has the default style.
        if wrong.is_none() && col < to {
            wrong = self.wrong_with(Style::default(), view).map(|why| (from.max(col), why));
        }
        let Some((col, why)) = wrong else { return Ok(()) };
        let message = format!("the cell at row {}, column {} {why}", spot.row + 1, col + 1);
        Err(Mismatch { spots: vec![Spot { col: col as u16, width: 1, ..spot }], ..Mismatch::new(message) })
    }

    fn wrong_with(&self, style: Style, view: View<'_>) -> Option<String> {
        if let Some(fg) = self.fg.filter(|c| *c != style.fg) {
            return Some(format!("is {}, not {fg}", style.fg));
        }
        if let Some(bg) = self.bg.filter(|c| *c != style.bg) {
            return Some(format!("has a background of {}, not {bg}", style.bg));
        }
        for (attr, on) in &self.attrs {
            if style.attrs.contains(attr.0) != *on {
                return Some(format!("is {}{}", if *on { "not " } else { "" }, attr.name()));
            }
        }
        if self.underline.is_some_and(|u| u != style.underline) {
            return Some(format!("is underlined {}", style.underline.name()));
        }
        let link = view.term.link(style.link).map_or("", |l| l.uri.as_str());
        if self.link.as_ref().is_some_and(|wanted| wanted != link) {
            return Some(if link.is_empty() {
                "is no link".to_owned()
            } else {
                format!("links to {link:?}")
            });
        }
        None
    }
}

impl fmt::Display for StyleFact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cells {
            Cells::At(spot) => write!(f, "cell {},{} is", spot.row + 1, spot.col + 1)?,
            Cells::Text(text) => write!(f, "{text:?} is")?,
        }
        if let Some(fg) = self.fg {
            write!(f, " {fg}")?;
        }
        if let Some(bg) = self.bg {
            write!(f, " on {bg}")?;
        }
        for (attr, on) in &self.attrs {
            write!(f, " {}{}", if *on { "" } else { "not " }, attr.name())?;
        }
        if let Some(underline) = self.underline {
            write!(f, " underlined {}", underline.name())?;
        }
        self.link.as_ref().map_or(Ok(()), |link| write!(f, " a link to {link:?}"))
    }
}
