//! Styles as SGR sequences.

use crate::style::{Attrs, Colour, Style, Underline};
use std::fmt::Write as _;

/// Attributes with their SGR numbers, on and off.
const TABLE: [(Attrs, u8); 8] = [
    (Attrs::BOLD, 1),
    (Attrs::FAINT, 2),
    (Attrs::ITALIC, 3),
    (Attrs::BLINK, 5),
    (Attrs::INVERSE, 7),
    (Attrs::CONCEAL, 8),
    (Attrs::STRIKE, 9),
    (Attrs::OVERLINE, 53),
];

/// SGR parameters that set exactly this style, beginning with the reset: `0;1;38:2::1:2:3`.
pub(crate) fn sgr_text(s: &Style) -> String {
    let mut out = String::from("0");
    for (attr, n) in TABLE {
        if s.attrs.contains(attr) {
            let n = if attr == Attrs::BLINK && s.attrs.contains(Attrs::RAPID) { 6 } else { n };
            let _ = write!(out, ";{n}");
        }
    }
    match s.underline {
        Underline::None => {}
        Underline::Single => out.push_str(";4"),
        other => {
            let _ = write!(out, ";4:{}", other as u8);
        }
    }
    colour(&mut out, s.fg, 30);
    colour(&mut out, s.bg, 40);
    match s.underline_colour {
        Colour::Default => {}
        Colour::Indexed(i) => {
            let _ = write!(out, ";58:5:{i}");
        }
        Colour::Rgb(r, g, b) => {
            let _ = write!(out, ";58:2::{r}:{g}:{b}");
        }
    }
    out
}

/// `base` is 30 for text, 40 for the background. True colours are written with semicolons, which every reader knows.
fn colour(out: &mut String, c: Colour, base: u16) {
    let _ = match c {
        Colour::Default => Ok(()),
        Colour::Indexed(i @ 0..=7) => write!(out, ";{}", base + u16::from(i)),
        Colour::Indexed(i @ 8..=15) => write!(out, ";{}", base + 60 + u16::from(i) - 8),
        Colour::Indexed(i) => write!(out, ";{};5;{i}", base + 8),
        Colour::Rgb(r, g, b) => write!(out, ";{};2;{r};{g};{b}", base + 8),
    };
}

/// The whole sequence for a style.
pub(crate) fn sgr(out: &mut Vec<u8>, s: &Style) {
    let plain = Style { link: 0, ..*s };
    if plain == Style::default() {
        out.extend_from_slice(b"\x1b[m");
        return;
    }
    out.extend_from_slice(b"\x1b[");
    out.extend_from_slice(sgr_text(s).as_bytes());
    out.push(b'm');
}
