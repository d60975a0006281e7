//! How cells look: a fact about the style of one cell, or of every cell of a text.

use std::fmt;
use std::str::FromStr;

use tapdeck_term::{Attrs, Colour, Style, Underline};

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
pub struct Attr(&'static str, Attrs);

const ATTRS: &[Attr] = &[
    Attr("bold", Attrs::BOLD),
    Attr("faint", Attrs::FAINT),
    Attr("italic", Attrs::ITALIC),
    Attr("blink", Attrs::BLINK),
    Attr("inverse", Attrs::INVERSE),
    Attr("conceal", Attrs::CONCEAL),
    Attr("strike", Attrs::STRIKE),
    Attr("overline", Attrs::OVERLINE),
];

impl FromStr for Attr {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        ATTRS.iter().find(|a| a.0 == name).copied().ok_or_else(|| format!("no attribute is called {name:?}"))
    }
}

const COLOURS: [&str; 8] = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/// A colour such as `red`, `bright-red`, `208`, `#ff8700` or `default`.
pub fn colour(text: &str) -> Result<Colour, String> {
    let wrong =
        || format!("{text:?} is no colour: write red, bright-red, a number up to 255, #rrggbb or default");
    let base = |name: &str| COLOURS.iter().position(|c| *c == name);
    if text == "default" {
        return Ok(Colour::Default);
    }
    if let Some(i) = base(text) {
        return Ok(Colour::Indexed(i as u8));
    }
    if let Some(i) = text.strip_prefix("bright-").and_then(base) {
        return Ok(Colour::Indexed(8 + i as u8));
    }
    if let Some(hex) = text.strip_prefix('#').filter(|h| h.len() == 6 && h.is_ascii()) {
        let part = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).map_err(|_| wrong());
        return Ok(Colour::Rgb(part(0)?, part(2)?, part(4)?));
    }
    text.parse().map(Colour::Indexed).map_err(|_| wrong())
}

/// A colour as it is written.
pub fn colour_name(colour: Colour) -> String {
    match colour {
        Colour::Default => "default".to_owned(),
        Colour::Indexed(i @ 0..8) => COLOURS[usize::from(i)].to_owned(),
        Colour::Indexed(i @ 8..16) => format!("bright-{}", COLOURS[usize::from(i) - 8]),
        Colour::Indexed(i) => i.to_string(),
        Colour::Rgb(r, g, b) => format!("#{r:02x}{g:02x}{b:02x}"),
    }
}

/// An underline such as `single` or `curly`; `none` for none.
pub fn underline(text: &str) -> Result<Underline, String> {
    Ok(match text {
        "none" => Underline::None,
        "single" => Underline::Single,
        "double" => Underline::Double,
        "curly" => Underline::Curly,
        "dotted" => Underline::Dotted,
        "dashed" => Underline::Dashed,
        _ => {
            return Err(format!(
                "{text:?} is no underline: write none, single, double, curly, dotted or dashed"
            ));
        }
    })
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
            return Some(format!("is {}, not {}", colour_name(style.fg), colour_name(fg)));
        }
        if let Some(bg) = self.bg.filter(|c| *c != style.bg) {
            return Some(format!("has a background of {}, not {}", colour_name(style.bg), colour_name(bg)));
        }
        for (Attr(name, bit), on) in &self.attrs {
            if style.attrs.contains(*bit) != *on {
                return Some(format!("is {}{name}", if *on { "not " } else { "" }));
            }
        }
        if self.underline.is_some_and(|u| u != style.underline) {
            return Some(format!("is underlined {:?}", style.underline).to_lowercase());
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
            write!(f, " {}", colour_name(fg))?;
        }
        if let Some(bg) = self.bg {
            write!(f, " on {}", colour_name(bg))?;
        }
        for (Attr(name, _), on) in &self.attrs {
            write!(f, " {}{name}", if *on { "" } else { "not " })?;
        }
        if let Some(underline) = self.underline {
            write!(f, " underlined {underline:?}")?;
        }
        self.link.as_ref().map_or(Ok(()), |link| write!(f, " a link to {link:?}"))
    }
}
