//! Colours and styles, and the table that gives each style in use a small number.
//!
//! A cell refers to its style by number. The numbers are not counted: when the table has doubled, the styles that the
//! two screens still use are marked and the rest forgotten. Rows in scrollback carry their styles with them, so they
//! take no part.

/// A colour as the program named it; what it looks like is the palette's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Colour {
    /// The terminal's own foreground or background.
    #[default]
    Default,
    /// One of the 256 palette entries.
    Indexed(u8),
    /// A colour by its components.
    Rgb(u8, u8, u8),
}

/// How text is underlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Underline {
    /// Not at all.
    #[default]
    None,
    /// One line.
    Single,
    /// Two lines.
    Double,
    /// A wave.
    Curly,
    /// Dots.
    Dotted,
    /// Dashes.
    Dashed,
}

impl Underline {
    pub(crate) fn from_code(n: u16) -> Self {
        match n {
            0 => Self::None,
            2 => Self::Double,
            3 => Self::Curly,
            4 => Self::Dotted,
            5 => Self::Dashed,
            _ => Self::Single,
        }
    }
}

/// A set of on/off attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Attrs(pub(crate) u16);

impl Attrs {
    /// SGR 1.
    pub const BOLD: Self = Self(1);
    /// SGR 2.
    pub const FAINT: Self = Self(1 << 1);
    /// SGR 3.
    pub const ITALIC: Self = Self(1 << 2);
    /// SGR 5 or 6.
    pub const BLINK: Self = Self(1 << 3);
    /// SGR 7.
    pub const INVERSE: Self = Self(1 << 4);
    /// SGR 8.
    pub const CONCEAL: Self = Self(1 << 5);
    /// SGR 9.
    pub const STRIKE: Self = Self(1 << 6);
    /// SGR 53.
    pub const OVERLINE: Self = Self(1 << 7);
    /// DECSCA or SPA: selective erase leaves it alone.
    pub const PROTECTED: Self = Self(1 << 8);
    /// SGR 6, told apart from the slow one.
    pub const RAPID: Self = Self(1 << 9);

    /// Whether all of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether nothing is set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub(crate) fn set(&mut self, other: Self, on: bool) {
        if on {
            self.0 |= other.0;
        } else {
            self.0 &= !other.0;
        }
    }
}

/// Everything about a cell but its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Style {
    /// Text colour.
    pub fg: Colour,
    /// Background colour.
    pub bg: Colour,
    /// Underline colour; the default is the text's.
    pub underline_colour: Colour,
    /// On/off attributes.
    pub attrs: Attrs,
    /// Underline style.
    pub underline: Underline,
    /// Hyperlink, 0 for none; see [`crate::Term::link`].
    pub link: u32,
}

impl Style {
    /// The style that erasing leaves: the background colour alone.
    pub(crate) fn erased(self) -> Self {
        Self { bg: self.bg, ..Self::default() }
    }

    fn words(self) -> [u64; 2] {
        let colour = |c: Colour| match c {
            Colour::Default => 0u64,
            Colour::Indexed(i) => 0x100_0000 | u64::from(i),
            Colour::Rgb(r, g, b) => 0x200_0000 | u64::from(r) << 16 | u64::from(g) << 8 | u64::from(b),
        };
        let rest = u64::from(self.attrs.0) | (self.underline as u64) << 16;
        [
            colour(self.fg) | colour(self.bg) << 32,
            colour(self.underline_colour) ^ rest << 28 ^ u64::from(self.link) << 47,
        ]
    }

    #[inline]
    fn hash(self) -> u64 {
        let [a, b] = self.words();
        let h = (a ^ b.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let h = (h ^ (h >> 29) ^ b).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        h ^ (h >> 32)
    }
}

/// Number of a style in the table; 0 is always the default style.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct StyleId(pub(crate) u32);

/// The styles in use.
#[derive(Clone, Debug)]
pub(crate) struct Styles {
    list: Vec<Style>,
    /// Open addressing over `list`; 0 marks a free slot, as the default style is never looked up here.
    slots: Vec<u32>,
    /// When the list reaches this length it is worth looking for the dead.
    pub(crate) sweep_at: usize,
}

const FIRST_SWEEP: usize = 4096;

impl Styles {
    pub(crate) fn new() -> Self {
        Self { list: vec![Style::default()], slots: vec![0; 64], sweep_at: FIRST_SWEEP }
    }

    #[inline]
    pub(crate) fn get(&self, id: StyleId) -> Style {
        self.list[id.0 as usize]
    }

    #[inline]
    pub(crate) fn intern(&mut self, style: Style) -> StyleId {
        if style == Style::default() {
            return StyleId(0);
        }
        let mask = self.slots.len() - 1;
        let mut slot = style.hash() as usize & mask;
        loop {
            match self.slots[slot] {
                0 => break,
                id if self.list[id as usize] == style => return StyleId(id),
                _ => slot = (slot + 1) & mask,
            }
        }
        self.insert(style, slot)
    }

    #[cold]
    fn insert(&mut self, style: Style, slot: usize) -> StyleId {
        let id = self.list.len() as u32;
        self.list.push(style);
        self.slots[slot] = id;
        if self.list.len() * 2 > self.slots.len() {
            self.rehash();
        }
        StyleId(id)
    }

    fn rehash(&mut self) {
        let size = (self.list.len() * 4).next_power_of_two().max(64);
        self.slots.clear();
        self.slots.resize(size, 0);
        for id in 1..self.list.len() {
            let mut slot = self.list[id].hash() as usize & (size - 1);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (size - 1);
            }
            self.slots[slot] = id as u32;
        }
    }

    pub(crate) fn wants_sweep(&self) -> bool {
        self.list.len() >= self.sweep_at
    }

    /// Forgets all styles whose entry in `live` is false; returns the new number of each old one.
    pub(crate) fn sweep(&mut self, live: &[bool]) -> Vec<StyleId> {
        let mut renumbered = vec![StyleId(0); self.list.len()];
        let mut kept = vec![Style::default()];
        for (id, style) in self.list.iter().enumerate().skip(1) {
            if live[id] {
                renumbered[id] = StyleId(kept.len() as u32);
                kept.push(*style);
            }
        }
        self.list = kept;
        self.sweep_at = (self.list.len() * 2).max(FIRST_SWEEP);
        self.rehash();
        renumbered
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }
}
