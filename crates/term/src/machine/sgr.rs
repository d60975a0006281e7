//! SGR: colours and attributes of what is written next.

use super::Machine;
use crate::parser::Params;
use crate::style::{Attrs, Colour, Style, Underline};

impl Machine {
    #[inline]
    pub(super) fn sgr(&mut self, params: &Params) {
        let link = self.pen.link;
        apply(&mut self.pen, params, 0);
        self.pen.link = link;
        self.touch_pen();
    }
}

/// Applies the parameters from `start` on.
pub(super) fn apply(pen: &mut Style, params: &Params, start: usize) {
    let n = params.len();
    if start >= n {
        reset(pen);
        return;
    }
    let mut i = start;
    while i < n {
        let v = params.get(i);
        let grouped = params.is_sub(i + 1);
        match v {
            0 => reset(pen),
            1 => pen.attrs.set(Attrs::BOLD, true),
            2 => pen.attrs.set(Attrs::FAINT, true),
            3 => pen.attrs.set(Attrs::ITALIC, true),
            4 => {
                pen.underline =
                    if grouped { Underline::from_code(params.get(i + 1)) } else { Underline::Single };
            }
            5 => {
                pen.attrs.set(Attrs::BLINK, true);
                pen.attrs.set(Attrs::RAPID, false);
            }
            6 => {
                pen.attrs.set(Attrs::BLINK, true);
                pen.attrs.set(Attrs::RAPID, true);
            }
            7 => pen.attrs.set(Attrs::INVERSE, true),
            8 => pen.attrs.set(Attrs::CONCEAL, true),
            9 => pen.attrs.set(Attrs::STRIKE, true),
            21 => pen.underline = Underline::Double,
            22 => {
                pen.attrs.set(Attrs::BOLD, false);
                pen.attrs.set(Attrs::FAINT, false);
            }
            23 => pen.attrs.set(Attrs::ITALIC, false),
            24 => pen.underline = Underline::None,
            25 => {
                pen.attrs.set(Attrs::BLINK, false);
                pen.attrs.set(Attrs::RAPID, false);
            }
            27 => pen.attrs.set(Attrs::INVERSE, false),
            28 => pen.attrs.set(Attrs::CONCEAL, false),
            29 => pen.attrs.set(Attrs::STRIKE, false),
            30..=37 => pen.fg = Colour::Indexed((v - 30) as u8),
            39 => pen.fg = Colour::Default,
            40..=47 => pen.bg = Colour::Indexed((v - 40) as u8),
            49 => pen.bg = Colour::Default,
            53 => pen.attrs.set(Attrs::OVERLINE, true),
            55 => pen.attrs.set(Attrs::OVERLINE, false),
            59 => pen.underline_colour = Colour::Default,
            90..=97 => pen.fg = Colour::Indexed((v - 90 + 8) as u8),
            100..=107 => pen.bg = Colour::Indexed((v - 100 + 8) as u8),
            38 | 48 | 58 => {
                let (colour, used) =
                    if grouped { colon_colour(params, i + 1) } else { plain_colour(params, i + 1) };
                if let Some(c) = colour {
                    match v {
                        38 => pen.fg = c,
                        48 => pen.bg = c,
                        _ => pen.underline_colour = c,
                    }
                }
                i += used;
            }
            _ => {}
        }
        i += 1;
        // What is left of a group belongs to it.
        while params.is_sub(i) {
            i += 1;
        }
    }
}

#[inline]
fn reset(pen: &mut Style) {
    // Protection is set by other means and stays.
    let keep = pen.attrs.0 & Attrs::PROTECTED.0;
    *pen = Style { link: pen.link, ..Style::default() };
    pen.attrs.0 = keep;
}

fn byte(v: u16) -> u8 {
    v.min(255) as u8
}

/// `5;n` or `2;r;g;b` from place `i`; also how many parameters that took.
#[inline]
fn plain_colour(params: &Params, i: usize) -> (Option<Colour>, usize) {
    match params.get(i) {
        5 if i + 1 < params.len() => {
            let n = params.get(i + 1);
            ((n < 256).then_some(Colour::Indexed(n as u8)), 2)
        }
        2 if i + 3 < params.len() => {
            let [r, g, b] = [1, 2, 3].map(|k| params.get(i + k));
            let fits = r < 256 && g < 256 && b < 256;
            (fits.then_some(Colour::Rgb(r as u8, g as u8, b as u8)), 4)
        }
        // Cut short: what follows has no meaning of its own.
        5 | 2 => (None, params.len() - i),
        _ => (None, 1),
    }
}

/// `5:n`, `2:r:g:b` or `2:space:r:g:b` from place `i`.
fn colon_colour(params: &Params, i: usize) -> (Option<Colour>, usize) {
    let mut count = 0;
    while params.is_sub(i + count) {
        count += 1;
    }
    let colour = match params.get(i) {
        5 if count >= 2 => {
            let n = params.get(i + 1);
            (n < 256).then_some(Colour::Indexed(n as u8))
        }
        2 if count >= 4 => {
            // With five or more the first is the colour space.
            let at = if count >= 5 { i + 2 } else { i + 1 };
            Some(Colour::Rgb(byte(params.get(at)), byte(params.get(at + 1)), byte(params.get(at + 2))))
        }
        _ => None,
    };
    (colour, count)
}
