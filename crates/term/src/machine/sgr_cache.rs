//! Remembers what SGR sequences do.
//!
//! Programs use few different ones and use them all the time. What one does to the pen can be
//! written down: each colour is kept or set, each attribute kept, set or cleared. So a sequence
//! seen before costs a look into this table; parameters are not read again, and mostly the style's
//! number is known as well.

use super::{Machine, sgr};
use crate::parser::Params;
use crate::style::{Pen, StyleId};
use crate::unicode::Joiner;

/// Longest parameter string that is remembered, in words of eight bytes.
const WORDS: usize = 5;
const ENTRIES: usize = 512;
/// A colour that no pen has: it stands for one that is kept, and for a pen that is none.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The parameters as bytes, zeros behind them. A key of zeros is `CSI m`.
    key: [u64; WORDS],
    used: bool,
    fg: u32,
    bg: u32,
    underline_colour: u32,
    keep: u32,
    set: u32,
    /// The pen that it led to last time, and that pen's number.
    pen: Pen,
    id: StyleId,
}

const EMPTY: Entry = Entry {
    key: [0; WORDS],
    used: false,
    fg: 0,
    bg: 0,
    underline_colour: 0,
    keep: 0,
    set: 0,
    pen: Pen { fg: NONE, bg: 0, underline_colour: 0, looks: 0, link: 0 },
    id: StyleId(0),
};

#[derive(Clone, Debug)]
pub(super) struct SgrCache(Vec<Entry>);

impl SgrCache {
    pub(super) fn new() -> Self {
        Self(vec![EMPTY; ENTRIES])
    }

    /// Styles have new numbers.
    pub(super) fn forget_numbers(&mut self) {
        for e in &mut self.0 {
            e.pen.fg = NONE;
        }
    }
}

/// Reads parameters up to an `m` as key, with their length. `None`: it is no SGR, too long, or the
/// bytes end too soon.
#[inline(always)]
fn read_key(bytes: &[u8]) -> Option<([u64; WORDS], usize)> {
    let block = bytes.first_chunk::<{ WORDS * 8 }>()?;
    let mut key = [0; WORDS];
    for (k, chunk) in block.as_chunks::<8>().0.iter().enumerate() {
        let word = u64::from_le_bytes(*chunk);
        // Final bytes have this bit, digits and separators do not.
        let finals = word & 0x4040_4040_4040_4040;
        if finals == 0 {
            key[k] = word;
            continue;
        }
        let below = finals.trailing_zeros() - 6;
        if (word >> below) as u8 != b'm' {
            return None;
        }
        key[k] = word & ((1u64 << below) - 1);
        return Some((key, k * 8 + (below / 8) as usize));
    }
    None
}

impl Machine {
    /// Takes the SGR sequence that begins after the introducer. Returns the bytes taken, 0 when it
    /// is something else.
    #[inline]
    pub(super) fn quick_sgr(&mut self, bytes: &[u8]) -> usize {
        let Some((key, len)) = read_key(bytes) else { return 0 };
        let mixed = key.iter().fold(0u64, |h, w| (h.rotate_left(23) ^ w).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let slot = (mixed >> 55) as usize % ENTRIES;
        let entry = &self.sgr_cache.0[slot];
        let known = entry.used && entry.key == key;
        if !known && !self.learn_sgr(slot, key, &bytes[..len]) {
            return 0;
        }
        let entry = &self.sgr_cache.0[slot];
        let choose = |new: u32, old: u32| if new == NONE { old } else { new };
        let pen = Pen {
            fg: choose(entry.fg, self.pen.fg),
            bg: choose(entry.bg, self.pen.bg),
            underline_colour: choose(entry.underline_colour, self.pen.underline_colour),
            looks: self.pen.looks & entry.keep | entry.set,
            link: self.pen.link,
        };
        self.joiner = Joiner::NONE;
        self.last_char = None;
        self.erase_changed |= pen.bg != self.pen.bg;
        self.pen = pen;
        if entry.pen == pen {
            self.pen_id = entry.id;
            self.pen_changed = false;
        } else {
            self.intern_pen();
            let entry = &mut self.sgr_cache.0[slot];
            entry.pen = pen;
            entry.id = self.pen_id;
        }
        len + 1
    }

    /// Finds out what a sequence does, by trying it on two pens that differ in everything.
    #[cold]
    fn learn_sgr(&mut self, slot: usize, key: [u64; WORDS], text: &[u8]) -> bool {
        let Some(params) = Params::parse(text) else { return false };
        let mut clear = Pen { fg: NONE, bg: NONE, underline_colour: NONE, looks: 0, link: 0 };
        let mut full = Pen { looks: u32::MAX, ..clear };
        sgr::apply(&mut clear, &params, 0);
        sgr::apply(&mut full, &params, 0);
        self.sgr_cache.0[slot] = Entry {
            key,
            used: true,
            fg: clear.fg,
            bg: clear.bg,
            underline_colour: clear.underline_colour,
            keep: full.looks,
            set: clear.looks,
            ..EMPTY
        };
        true
    }
}
