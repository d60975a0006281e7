//! Widths and grapheme clusters, from one property byte a code point.
//!
//! The byte holds the width (bits 0–1), the class for cluster breaking (bits 2–5), whether the
//! emoji selector makes it wide (bit 6) and whether the text selector makes it narrow (bit 7). The
//! table is generated; see `examples/gen_unicode.rs`. It is spread out on first use, so that a
//! lookup is two loads.

mod table;

use std::sync::LazyLock;

/// What a code point means for the width of a cluster and for where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prop(u8);

const EXTEND: u8 = 1;
const ZWJ: u8 = 2;
const REGIONAL: u8 = 3;
const PREPEND: u8 = 4;
const PICTOGRAPH: u8 = 5;
const LINKER: u8 = 6;
const CONSONANT: u8 = 7;
const L: u8 = 8;
const V: u8 = 9;
const T: u8 = 10;
const LV: u8 = 11;
const LVT: u8 = 12;

impl Prop {
    /// Columns taken by the character alone: 0, 1 or 2.
    pub(crate) fn width(self) -> usize {
        usize::from(self.0 & 3)
    }

    /// Whether U+FE0F after it asks for the wide emoji picture.
    pub(crate) fn widens(self) -> bool {
        self.0 & 0x40 != 0
    }

    /// Whether U+FE0E after it asks for the narrow text form.
    pub(crate) fn narrows(self) -> bool {
        self.0 & 0x80 != 0
    }

    fn class(self) -> u8 {
        (self.0 >> 2) & 15
    }
}

struct Table {
    stage1: Box<[u16]>,
    stage2: Vec<Prop>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut stage2: Vec<Prop> = Vec::new();
    let mut stage1 = Vec::with_capacity(0x1100);
    // Most blocks lie inside one range: those with the same property share one block.
    let mut uniform = [u16::MAX; 256];
    let mut range = 0;
    let end_of = |r: usize| table::RANGES.get(r + 1).map_or(0x11_0000, |n| n.0);
    for start in (0..0x11_0000u32).step_by(256) {
        while end_of(range) <= start {
            range += 1;
        }
        let p = table::RANGES[range].1;
        let next = (stage2.len() / 256) as u16;
        if end_of(range) >= start + 256 {
            let shared = &mut uniform[usize::from(p)];
            if *shared == u16::MAX {
                *shared = next;
                stage2.extend([Prop(p); 256]);
            }
            stage1.push(*shared);
        } else {
            let mut r = range;
            for cp in start..start + 256 {
                while end_of(r) <= cp {
                    r += 1;
                }
                stage2.push(Prop(table::RANGES[r].1));
            }
            stage1.push(next);
        }
    }
    Table { stage1: stage1.into_boxed_slice(), stage2 }
});

/// A handle on the table, held by the model so that a lookup does not test for initialisation.
#[derive(Clone, Copy)]
pub(crate) struct Props(&'static Table);

impl std::fmt::Debug for Props {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Props")
    }
}

impl Props {
    pub(crate) fn new() -> Self {
        Self(&TABLE)
    }

    #[inline]
    pub(crate) fn of(self, c: char) -> Prop {
        let cp = c as usize;
        let block = usize::from(self.0.stage1[cp >> 8]);
        self.0.stage2[(block << 8) | (cp & 255)]
    }
}

/// Where the running cluster stands: enough of the past to decide whether the next character joins
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Joiner {
    /// Something was written since the last control: there is a cluster to join.
    started: bool,
    class: u8,
    /// A pictograph followed by nothing but extenders.
    pictograph: bool,
    /// An odd number of regional indicators so far.
    odd_regional: bool,
    /// 0: none; 1: an Indic consonant; 2: with a linker after it.
    conjunct: u8,
}

impl Joiner {
    /// Forgets the running cluster: the next character starts one.
    pub(crate) const NONE: Self =
        Self { started: false, class: 0, pictograph: false, odd_regional: false, conjunct: 0 };

    /// After a character without any power to join.
    pub(crate) const PLAIN: Self = Self { started: true, ..Self::NONE };

    /// Whether plain text after this cannot join it (only a prepending mark reaches out to what
    /// follows).
    #[inline]
    pub(crate) fn is_closed(self) -> bool {
        self.class != PREPEND
    }

    /// Takes an ordinary character, which neither joins nor is joined. False: it may not be one.
    #[inline(always)]
    pub(crate) fn pass(&mut self, p: Prop) -> bool {
        let plain = p.class() == 0 && self.class != PREPEND;
        if plain {
            *self = Self::PLAIN;
        }
        plain
    }

    /// Whether `p` joins the running cluster; either way it is now the latest character.
    #[inline]
    pub(crate) fn push(&mut self, p: Prop) -> bool {
        let class = p.class();
        let joins = match (self.class, class) {
            (_, EXTEND | ZWJ | LINKER) => true,
            (0, 0) => false,
            (PREPEND, _) => true,
            (L, L | V | LV | LVT) | (LV | V, V | T) | (LVT | T, T) => true,
            (ZWJ, PICTOGRAPH) => self.pictograph,
            (REGIONAL, REGIONAL) => self.odd_regional,
            (_, CONSONANT) => self.conjunct == 2,
            _ => false,
        };
        self.pictograph = class == PICTOGRAPH || (self.pictograph && matches!(class, EXTEND | ZWJ | LINKER));
        self.odd_regional = class == REGIONAL && !(joins && self.odd_regional);
        self.conjunct = match class {
            CONSONANT => 1,
            LINKER if self.conjunct > 0 => 2,
            EXTEND | ZWJ => self.conjunct,
            _ => 0,
        };
        self.class = class;
        std::mem::replace(&mut self.started, true) && joins
    }
}

/// Columns that one character takes alone.
pub fn char_width(c: char) -> usize {
    Props::new().of(c).width()
}

/// Columns that a text takes on a terminal that draws each grapheme cluster in one or two cells.
pub fn text_width(s: &str) -> usize {
    let props = Props::new();
    let mut joiner = Joiner::NONE;
    let (mut total, mut last, mut base) = (0, 0, None);
    for c in s.chars() {
        let p = props.of(c);
        if joiner.push(p) && base.is_some() {
            let w = joined_width(last, base, c, p);
            total = total - last + w;
            last = w;
        } else {
            last = p.width();
            base = Some(p);
            total += last;
        }
    }
    total
}

/// The width of a cluster after `c` joined it, from the width so far and its first character.
pub(crate) fn joined_width(width: usize, base: Option<Prop>, c: char, p: Prop) -> usize {
    match c as u32 {
        0xfe0f if base.is_some_and(Prop::widens) => 2,
        0xfe0e if base.is_some_and(Prop::narrows) => 1,
        // Two regional indicators are a flag; a skin tone or a joined picture makes a picture.
        0x1f1e6..=0x1f1ff | 0x1f3fb..=0x1f3ff => 2,
        _ if p.class() == PICTOGRAPH && p.width() == 2 => 2,
        _ => width,
    }
}

#[cfg(test)]
mod tests;
