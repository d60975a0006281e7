//! Values that are known to be secret, found wherever they are seen, whole or in part.
//!
//! A screen shows a secret in parts all the time: a line that is typed, a field that scrolls, a box
//! that breaks it. Each value is cut into overlapping pieces of half its length (6 to 12 bytes);
//! whatever holds such a piece is masked. So of a value nothing longer than that is left to see.

use std::collections::HashMap;
use std::ops::Range;

use super::rules::Found;

/// Bytes of a piece at most and at least.
const LONGEST: usize = 12;
const SHORTEST: usize = 6;
/// Values kept, and bytes of one that are looked at.
const MAX_VALUES: usize = 4096;
const MAX_VALUE: usize = 8 << 10;

type Piece = [u8; LONGEST];

/// The values, by their pieces.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// For each length of a piece in use, the pieces and the rule that they belong to.
    pieces: Vec<(usize, HashMap<Piece, u16>)>,
    /// One bit for each hash of the first four bytes of a piece.
    filter: Vec<u64>,
    values: std::collections::HashSet<Box<[u8]>>,
}

fn bit(four: &[u8]) -> usize {
    let word = u32::from_le_bytes([four[0], four[1], four[2], four[3]]);
    (word.wrapping_mul(0x9e37_79b1) >> 16) as usize
}

fn piece(bytes: &[u8]) -> Piece {
    let mut piece = [0; LONGEST];
    piece[..bytes.len()].copy_from_slice(bytes);
    piece
}

impl Known {
    /// Adds a value. False: it is known, too short, or there are too many.
    pub(super) fn add(&mut self, value: &[u8], rule: usize) -> bool {
        if value.len() < 4 || self.values.len() >= MAX_VALUES || self.values.contains(value) {
            return false;
        }
        self.values.insert(value.into());
        let value = &value[..value.len().min(MAX_VALUE)];
        let length = (value.len() / 2).clamp(SHORTEST, LONGEST).min(value.len());
        if self.filter.is_empty() {
            self.filter = vec![0; 1 << 10];
        }
        let at = match self.pieces.iter().position(|p| p.0 == length) {
            Some(at) => at,
            None => {
                self.pieces.push((length, HashMap::new()));
                self.pieces.len() - 1
            }
        };
        for window in value.windows(length) {
            // A piece of one character over and over would mask rulers and padding.
            if window.iter().all(|b| *b == window[0]) && length < value.len() {
                continue;
            }
            self.pieces[at].1.entry(piece(window)).or_insert(rule as u16);
            let bit = bit(window);
            self.filter[bit >> 6] |= 1 << (bit & 63);
        }
        true
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// The values themselves, for a last look at the bytes.
    pub(super) fn values(&self) -> impl Iterator<Item = &[u8]> {
        self.values.iter().map(|v| &**v)
    }

    /// Whether a line holds anything of them.
    pub(super) fn is_in(&self, text: &[u8]) -> bool {
        self.pieces_in(text).next().is_some()
    }

    /// The pieces in a text: where each begins and ends, and its rule.
    fn pieces_in<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = (usize, usize, usize)> + 'a {
        let starts = if self.values.is_empty() { 0 } else { (text.len() + 1).saturating_sub(4) };
        (0..starts).filter_map(move |at| {
            let bit = bit(&text[at..]);
            if self.filter[bit >> 6] >> (bit & 63) & 1 == 0 {
                return None;
            }
            let hit = self.pieces.iter().filter_map(|(length, pieces)| {
                let rule = pieces.get(&piece(text.get(at..at + length)?))?;
                Some((at + length, usize::from(*rule)))
            });
            hit.max().map(|(end, rule)| (at, end, rule))
        })
    }

    /// What of a line belongs to known values.
    pub(super) fn scan(&self, text: &[u8], found: &mut Vec<Found>) {
        let mut open: Option<(Range<usize>, usize)> = None;
        for (at, end, rule) in self.pieces_in(text) {
            match &mut open {
                Some((range, _)) if at <= range.end => range.end = range.end.max(end),
                _ => {
                    found.extend(open.take().map(|(range, rule)| Found { rule, range }));
                    open = Some((at..end, rule));
                }
            }
        }
        found.extend(open.map(|(range, rule)| Found { rule, range }));
    }
}
