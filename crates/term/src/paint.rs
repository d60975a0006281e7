//! Styles as SGR sequences.

use crate::style::{Attrs, Colour, Style, Underline};

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
    let mut out = Vec::new();
    parameters(&mut out, s);
    out.into_iter().map(char::from).collect()
}

fn parameters(out: &mut Vec<u8>, s: &Style) {
    out.push(b'0');
    for (attr, n) in TABLE {
        if s.attrs.contains(attr) {
            let n = if attr == Attrs::BLINK && s.attrs.contains(Attrs::RAPID) { 6 } else { n };
            number(out, b';', n);
        }
    }
    match s.underline {
        Underline::None => {}
        Underline::Single => out.extend_from_slice(b";4"),
        other => {
            out.extend_from_slice(b";4");
            number(out, b':', other as u8);
        }
    }
    colour(out, s.fg, 30);
    colour(out, s.bg, 40);
    match s.underline_colour {
        Colour::Default => {}
        Colour::Indexed(i) => {
            out.extend_from_slice(b";58:5");
            number(out, b':', i);
        }
        Colour::Rgb(r, g, b) => {
            out.extend_from_slice(b";58:2:");
            [r, g, b].into_iter().for_each(|n| number(out, b':', n));
        }
    }
}

/// `base` is 30 for text, 40 for the background. True colours are written with semicolons, which
/// every reader knows.
fn colour(out: &mut Vec<u8>, c: Colour, base: u8) {
    match c {
        Colour::Default => {}
        Colour::Indexed(i @ 0..=7) => number(out, b';', base + i),
        Colour::Indexed(i @ 8..=15) => number(out, b';', base + 60 + i - 8),
        Colour::Indexed(i) => [base + 8, 5, i].into_iter().for_each(|n| number(out, b';', n)),
        Colour::Rgb(r, g, b) => [base + 8, 2, r, g, b].into_iter().for_each(|n| number(out, b';', n)),
    }
}

/// A number behind a sign. There are many of them in a screen, and none needs the formatting of the
/// library.
fn number(out: &mut Vec<u8>, sign: u8, n: u8) {
    let digits = [sign, b'0' + n / 100, b'0' + n / 10 % 10, b'0' + n % 10];
    match n {
        0..=9 => out.extend_from_slice(&[sign, digits[3]]),
        10..=99 => out.extend_from_slice(&[sign, digits[2], digits[3]]),
        _ => out.extend_from_slice(&digits),
    }
}

/// The whole sequence for a style.
pub(crate) fn sgr(out: &mut Vec<u8>, s: &Style) {
    let plain = Style { link: 0, ..*s };
    if plain == Style::default() {
        out.extend_from_slice(b"\x1b[m");
        return;
    }
    out.extend_from_slice(b"\x1b[");
    parameters(out, s);
    out.push(b'm');
}
