//! What is to be written over what: stretches of a stream and the bytes that take their place, of
//! the same length.

use std::collections::BTreeMap;

use tapdeck_term::Glyph;

use super::rules::MASK;
use crate::log::Offset;

/// The bytes that take the place of a stretch.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Patch {
    Stars(u64),
    Bytes(Box<[u8]>),
}

impl Patch {
    fn len(&self) -> u64 {
        match self {
            Self::Stars(n) => *n,
            Self::Bytes(bytes) => bytes.len() as u64,
        }
    }
}

/// All patches of one stream; none overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Masks {
    patches: BTreeMap<u64, Patch>,
    /// Bytes of those that were forgotten.
    forgotten: u64,
}

impl Masks {
    /// Bytes that are masked.
    pub(crate) fn bytes(&self) -> u64 {
        self.forgotten + self.patches.values().map(Patch::len).sum::<u64>()
    }

    /// Whether the byte at an offset is masked.
    pub(super) fn covers(&self, at: u64) -> bool {
        self.patches.range(..=at).next_back().is_some_and(|(start, patch)| at < start + patch.len())
    }

    /// Masks a single character of the terminal. False: it was masked, or there is nothing of its
    /// shape.
    pub(super) fn glyph(&mut self, glyph: &Glyph) -> bool {
        if glyph.len == 0 || self.covers(glyph.at) {
            return false;
        }
        if glyph.len == 1 {
            self.stars(glyph.at, 1);
            return true;
        }
        let Some(filler) = filler(glyph) else { return false };
        self.patches.insert(glyph.at, Patch::Bytes(filler.as_bytes().into()));
        true
    }

    /// Masks a single byte, or several. What is masked already must not be among them.
    pub(super) fn stars(&mut self, at: u64, n: u64) {
        // Most follow the one before.
        if let Some((start, Patch::Stars(len))) = self.patches.range_mut(..at).next_back()
            && start + *len == at
        {
            *len += n;
            return;
        }
        self.patches.insert(at, Patch::Stars(n));
    }

    /// Puts other bytes of the same length in the place of a stretch that holds no mask yet.
    pub(super) fn bytes_at(&mut self, at: u64, bytes: &[u8]) {
        self.patches.insert(at, Patch::Bytes(bytes.into()));
    }

    /// Whether nothing is masked.
    pub fn is_empty(&self) -> bool {
        self.patches.is_empty()
    }

    /// Adds the masks of another that begin before an offset.
    pub fn extend_before(&mut self, other: &Self, at: u64) {
        for (start, patch) in other.patches.range(..at) {
            // One of the same place that has grown.
            self.patches.insert(*start, patch.clone());
        }
    }

    /// Forgets what lies before an offset.
    pub(crate) fn forget_before(&mut self, at: u64) {
        while let Some(first) = self.patches.first_entry()
            && first.key() + first.get().len() <= at
        {
            self.forgotten += first.remove().len();
        }
    }

    /// Whether any of `n` bytes from an offset on is masked.
    pub fn touches(&self, Offset(at): Offset, n: usize) -> bool {
        let end = at + n as u64;
        self.patches.range(..end).next_back().is_some_and(|(start, patch)| start + patch.len() > at)
    }

    /// Writes the masks over a part of the stream that begins at an offset.
    pub fn apply(&self, Offset(at): Offset, bytes: &mut [u8]) {
        let end = at + bytes.len() as u64;
        let first = self.patches.range(..=at).next_back().map_or(at, |(start, _)| *start);
        for (start, patch) in self.patches.range(first..end) {
            let from = (*start).max(at);
            let to = (start + patch.len()).min(end);
            if from >= to {
                continue;
            }
            let target = &mut bytes[(from - at) as usize..(to - at) as usize];
            match patch {
                Patch::Stars(_) => target.fill(MASK as u8),
                Patch::Bytes(bytes) => {
                    target.copy_from_slice(&bytes[(from - start) as usize..(to - start) as usize]);
                }
            }
        }
    }
}

/// A character of the same length in bytes and the same width.
///
/// Only for letters that never share a cell with a letter behind them: others would fall apart.
fn filler(glyph: &Glyph) -> Option<&'static str> {
    let alone = matches!(glyph.c as u32,
        0xa0..0x900 | 0x1e00..0x2000 | 0x3000..0xa4d0 | 0xac00..0xd7a4 | 0xf900..0xfb00 | 0xff00..0xfff0
        | 0x1_d400..0x1_d800 | 0x2_0000..0x4_0000);
    if !alone || !glyph.c.is_alphanumeric() {
        return None;
    }
    Some(match (glyph.len, glyph.width) {
        (2, 1) => "×",
        (3, 1) => "␦",
        (3, 2) => "＊",
        (4, 1) => "𝚡",
        (4, 2) => "🔒",
        _ => return None,
    })
}

/// Whether a character is one that others are masked with.
pub(super) fn is_filler(c: char) -> bool {
    matches!(c, MASK | '×' | '␦' | '＊' | '𝚡' | '🔒')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fillers_have_the_shape_that_they_stand_for() {
        for (c, len, width) in [('é', 2, 1), ('ẞ', 3, 1), ('漢', 3, 2), ('𝒜', 4, 1), ('𠀀', 4, 2)] {
            let filler = filler(&Glyph { c, width, len, at: 0 }).expect("there is one");
            assert_eq!(filler.len(), usize::from(len));
            assert_eq!(tapdeck_term::text_width(filler), usize::from(width));
            assert!(filler.chars().all(is_filler));
        }
    }

    #[test]
    fn any_part_of_the_stream_is_masked_alike() {
        let mut masks = Masks::default();
        masks.stars(3, 2);
        masks.stars(5, 1);
        masks.bytes_at(8, "×".as_bytes());
        let mut whole = *b"0123456789ab";
        masks.apply(Offset(0), &mut whole);
        assert_eq!(&whole, "012***67×ab".as_bytes());
        for cut in 0..=whole.len() {
            let mut parts = *b"0123456789ab";
            let (a, b) = parts.split_at_mut(cut);
            masks.apply(Offset(0), a);
            masks.apply(Offset(cut as u64), b);
            assert_eq!(parts, whole, "cut at {cut}");
        }
        assert!(masks.touches(Offset(5), 1) && !masks.touches(Offset(6), 2) && masks.touches(Offset(0), 9));
        masks.forget_before(6);
        assert!(!masks.covers(5) && masks.covers(9));
    }
}
