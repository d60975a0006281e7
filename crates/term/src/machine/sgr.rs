//! SGR: colours and attributes of what is written next.

use super::Machine;
use crate::parser::Params;
use crate::style::{Attrs, Pen, Underline, direct, indexed};

impl Machine {
    #[inline]
    pub(super) fn sgr(&mut self, params: &Params) {
        apply(&mut self.pen, params, 0);
        self.touch_pen();
    }
}

/// Applies the parameters from `start` on.
pub(super) fn apply(pen: &mut Pen, params: &Params, start: usize) {
    let n = params.len();
    if start >= n {
        pen.reset();
        return;
    }
    let mut i = start;
    while i < n {
        let v = params.get(i);
        let grouped = params.is_sub(i + 1);
        match v {
            0 => pen.reset(),
            1 => pen.set(Attrs::BOLD, true),
            2 => pen.set(Attrs::FAINT, true),
            3 => pen.set(Attrs::ITALIC, true),
            4 => {
                pen.underline(if grouped {
                    Underline::from_code(params.get(i + 1))
                } else {
                    Underline::Single
                });
            }
            5 => {
                pen.set(Attrs::BLINK, true);
                pen.set(Attrs::RAPID, false);
            }
            6 => {
                pen.set(Attrs::BLINK, true);
                pen.set(Attrs::RAPID, true);
            }
            7 => pen.set(Attrs::INVERSE, true),
            8 => pen.set(Attrs::CONCEAL, true),
            9 => pen.set(Attrs::STRIKE, true),
            21 => pen.underline(Underline::Double),
            22 => {
                pen.set(Attrs::BOLD, false);
                pen.set(Attrs::FAINT, false);
            }
            23 => pen.set(Attrs::ITALIC, false),
            24 => pen.underline(Underline::None),
            25 => {
                pen.set(Attrs::BLINK, false);
                pen.set(Attrs::RAPID, false);
            }
            27 => pen.set(Attrs::INVERSE, false),
            28 => pen.set(Attrs::CONCEAL, false),
            29 => pen.set(Attrs::STRIKE, false),
            30..=37 => pen.fg = indexed((v - 30) as u8),
            39 => pen.fg = 0,
            40..=47 => pen.bg = indexed((v - 40) as u8),
            49 => pen.bg = 0,
            53 => pen.set(Attrs::OVERLINE, true),
            55 => pen.set(Attrs::OVERLINE, false),
            59 => pen.underline_colour = 0,
            90..=97 => pen.fg = indexed((v - 90 + 8) as u8),
            100..=107 => pen.bg = indexed((v - 100 + 8) as u8),
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

fn byte(v: u16) -> u8 {
    v.min(255) as u8
}

/// `5;n` or `2;r;g;b` from place `i`; also how many parameters that took.
#[inline]
fn plain_colour(params: &Params, i: usize) -> (Option<u32>, usize) {
    match params.get(i) {
        5 if i + 1 < params.len() => {
            let n = params.get(i + 1);
            ((n < 256).then_some(indexed(n as u8)), 2)
        }
        2 if i + 3 < params.len() => {
            let [r, g, b] = [1, 2, 3].map(|k| params.get(i + k));
            let fits = r < 256 && g < 256 && b < 256;
            (fits.then_some(direct(r as u8, g as u8, b as u8)), 4)
        }
        // Cut short: what follows has no meaning of its own.
        5 | 2 => (None, params.len() - i),
        _ => (None, 1),
    }
}

/// `5:n`, `2:r:g:b` or `2:space:r:g:b` from place `i`.
fn colon_colour(params: &Params, i: usize) -> (Option<u32>, usize) {
    let mut count = 0;
    while params.is_sub(i + count) {
        count += 1;
    }
    let colour = match params.get(i) {
        5 if count >= 2 => {
            let n = params.get(i + 1);
            (n < 256).then_some(indexed(n as u8))
        }
        2 if count >= 4 => {
            // With five or more the first is the colour space.
            let at = if count >= 5 { i + 2 } else { i + 1 };
            Some(direct(byte(params.get(at)), byte(params.get(at + 1)), byte(params.get(at + 2))))
        }
        _ => None,
    };
    (colour, count)
}
