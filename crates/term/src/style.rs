//! Colours and styles, and the table that gives each style in use a small number.
//!
//! A cell refers to its style by number. The numbers are not counted: when the table has doubled,
//! the styles that the two screens still use are marked and the rest forgotten. Rows in scrollback
//! carry their styles with them, so they take no part.

use std::fmt;
use std::str::FromStr;

use crate::palette::Rgb;

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

const COLOURS: [&str; 8] = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/// `red`, `bright-red`, `208`, `#ff8700` or `default`; [`Colour::from_str`] reads it again.
impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Default => f.write_str("default"),
            Self::Indexed(i @ 0..8) => f.write_str(COLOURS[usize::from(i)]),
            Self::Indexed(i @ 8..16) => write!(f, "bright-{}", COLOURS[usize::from(i) - 8]),
            Self::Indexed(i) => write!(f, "{i}"),
            Self::Rgb(r, g, b) => Rgb(r, g, b).fmt(f),
        }
    }
}

/// The text names no colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownColour;

impl fmt::Display for UnknownColour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown color; use red, bright-red, a number up to 255, #rrggbb or default")
    }
}

impl std::error::Error for UnknownColour {}

impl FromStr for Colour {
    type Err = UnknownColour;

    fn from_str(text: &str) -> Result<Self, UnknownColour> {
        let base = |name: &str| COLOURS.iter().position(|c| *c == name).map(|i| i as u8);
        if text == "default" {
            return Ok(Self::Default);
        }
        if let Some(i) = base(text) {
            return Ok(Self::Indexed(i));
        }
        if let Some(i) = text.strip_prefix("bright-").and_then(base) {
            return Ok(Self::Indexed(8 + i));
        }
        if let Ok(Rgb(r, g, b)) = text.parse() {
            return Ok(Self::Rgb(r, g, b));
        }
        text.parse().map(Self::Indexed).map_err(|_| UnknownColour)
    }
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
    /// All of them, in the order of their SGR codes `4:0` to `4:5`.
    pub const ALL: [Self; 6] =
        [Self::None, Self::Single, Self::Double, Self::Curly, Self::Dotted, Self::Dashed];

    /// The word for it in files and protocols: `none`, `single`, `curly`, …
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Single => "single",
            Self::Double => "double",
            Self::Curly => "curly",
            Self::Dotted => "dotted",
            Self::Dashed => "dashed",
        }
    }

    /// The underline of a [name](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|u| u.name() == name)
    }

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

    /// The attributes that change how a character looks: all but protection and the speed of
    /// blinking.
    pub const VISIBLE: Self = Self(0xff);

    /// Word and letter of each attribute. Files and protocols take their names from here.
    const NAMES: [(Self, &'static str, char); 10] = [
        (Self::BOLD, "bold", 'b'),
        (Self::FAINT, "faint", 'd'),
        (Self::ITALIC, "italic", 'i'),
        (Self::BLINK, "blink", 'k'),
        (Self::INVERSE, "inverse", 'v'),
        (Self::CONCEAL, "conceal", 'c'),
        (Self::STRIKE, "strike", 's'),
        (Self::OVERLINE, "overline", 'o'),
        (Self::PROTECTED, "protected", 'p'),
        (Self::RAPID, "rapid", 'r'),
    ];

    /// The words for all attributes that are set: `bold`, `faint`, …
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |(a, ..)| self.contains(*a)).map(|(_, name, _)| name)
    }

    /// The letters for all attributes that are set; `d` (dim) is faint, `k` is blink, `v` inverse.
    pub fn letters(self) -> impl Iterator<Item = char> {
        Self::NAMES.into_iter().filter(move |(a, ..)| self.contains(*a)).map(|(.., letter)| letter)
    }

    /// The attribute of a word that [`Self::names`] gives.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(_, word, _)| *word == name).map(|(attr, ..)| attr)
    }

    /// What is set here or in `other`.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What is set both here and in `other`.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What is set here and not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

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
    /// Appends the sequence that sets exactly this style, whatever was set before; hyperlinks are
    /// left alone.
    pub fn write_sgr(&self, out: &mut Vec<u8>) {
        crate::paint::sgr(out, self);
    }

    /// The style that erasing leaves: the background colour alone.
    pub(crate) fn erased(self) -> Self {
        Self { bg: self.bg, ..Self::default() }
    }
}

/// A style in the form that is quick to change, compare and look up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Pen {
    /// Colours: 0 for the default, else a tag in the top byte and the number or the components
    /// below.
    pub(crate) fg: u32,
    pub(crate) bg: u32,
    pub(crate) underline_colour: u32,
    /// Attributes, and the underline style from bit 16 on.
    pub(crate) looks: u32,
    pub(crate) link: u32,
}

const INDEXED: u32 = 1 << 24;
const DIRECT: u32 = 2 << 24;

/// A palette colour in a pen.
#[inline]
pub(crate) const fn indexed(i: u8) -> u32 {
    INDEXED | i as u32
}

/// A direct colour in a pen.
#[inline]
pub(crate) const fn direct(r: u8, g: u8, b: u8) -> u32 {
    DIRECT | (r as u32) << 16 | (g as u32) << 8 | b as u32
}

fn pack_colour(c: Colour) -> u32 {
    match c {
        Colour::Default => 0,
        Colour::Indexed(i) => indexed(i),
        Colour::Rgb(r, g, b) => direct(r, g, b),
    }
}

fn unpack_colour(v: u32) -> Colour {
    let [b, g, r, tag] = v.to_le_bytes();
    match tag {
        0 => Colour::Default,
        1 => Colour::Indexed(b),
        _ => Colour::Rgb(r, g, b),
    }
}

impl From<Style> for Pen {
    fn from(s: Style) -> Self {
        Self {
            fg: pack_colour(s.fg),
            bg: pack_colour(s.bg),
            underline_colour: pack_colour(s.underline_colour),
            looks: u32::from(s.attrs.0) | (s.underline as u32) << 16,
            link: s.link,
        }
    }
}

impl From<Pen> for Style {
    fn from(p: Pen) -> Self {
        Self {
            fg: unpack_colour(p.fg),
            bg: unpack_colour(p.bg),
            underline_colour: unpack_colour(p.underline_colour),
            attrs: Attrs(p.looks as u16),
            underline: Underline::from_code((p.looks >> 16) as u16),
            link: p.link,
        }
    }
}

impl Pen {
    const DEFAULT: Self = Self { fg: 0, bg: 0, underline_colour: 0, looks: 0, link: 0 };

    #[inline]
    pub(crate) fn set(&mut self, attrs: Attrs, on: bool) {
        let bits = u32::from(attrs.0);
        self.looks = if on { self.looks | bits } else { self.looks & !bits };
    }

    #[inline]
    pub(crate) fn has(&self, attrs: Attrs) -> bool {
        self.looks & u32::from(attrs.0) == u32::from(attrs.0)
    }

    #[inline]
    pub(crate) fn underline(&mut self, u: Underline) {
        self.looks = self.looks & 0xffff | (u as u32) << 16;
    }

    /// Everything back to normal but the link and protection, which are set by other means.
    #[inline]
    pub(crate) fn reset(&mut self) {
        *self = Self { looks: self.looks & u32::from(Attrs::PROTECTED.0), link: self.link, ..Self::DEFAULT };
    }

    #[inline]
    fn hash(&self) -> u64 {
        let a = u64::from(self.fg) | u64::from(self.bg) << 32;
        let b = u64::from(self.looks) | u64::from(self.link) << 32;
        let h =
            (a ^ b.rotate_left(20) ^ u64::from(self.underline_colour)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        h ^ (h >> 29)
    }
}

/// Number of a style in the table; 0 is always the default style.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct StyleId(pub(crate) u32);

/// The styles in use.
#[derive(Clone, Debug)]
pub(crate) struct Styles {
    list: Vec<Pen>,
    /// Open addressing over `list`; 0 marks a free slot, as the default style is never looked up
    /// here.
    slots: Vec<u32>,
    /// When the list reaches this length it is worth looking for the dead.
    pub(crate) sweep_at: usize,
}

const FIRST_SWEEP: usize = 4096;

impl Styles {
    pub(crate) fn new() -> Self {
        Self { list: vec![Pen::DEFAULT], slots: vec![0; 64], sweep_at: FIRST_SWEEP }
    }

    #[inline]
    pub(crate) fn get(&self, id: StyleId) -> Style {
        self.list.get(id.0 as usize).copied().unwrap_or(Pen::DEFAULT).into()
    }

    #[inline]
    pub(crate) fn intern(&mut self, style: Style) -> StyleId {
        self.intern_pen(style.into())
    }

    #[inline]
    pub(crate) fn intern_pen(&mut self, style: Pen) -> StyleId {
        if style == Pen::DEFAULT {
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
    fn insert(&mut self, style: Pen, slot: usize) -> StyleId {
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
        let mut kept = vec![Pen::DEFAULT];
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_attributes_and_underlines_are_those_of_the_formats() {
        let all = Attrs(0x3ff);
        let names: Vec<_> = all.names().collect();
        let words = "bold faint italic blink inverse conceal strike overline protected rapid";
        assert_eq!(names.join(" "), words);
        assert_eq!(all.letters().collect::<String>(), "bdikvcsopr");
        assert_eq!(Attrs::FAINT.letters().collect::<String>(), "d");
        assert!(names.iter().all(|n| Attrs::from_name(n).is_some_and(|a| a.names().eq([*n]))));
        assert_eq!(Attrs::from_name("dim"), None);
        assert_eq!(all.and(Attrs::VISIBLE).names().count(), 8);
        assert!(!all.without(Attrs::BOLD).contains(Attrs::BOLD));

        let names: Vec<_> = Underline::ALL.into_iter().map(Underline::name).collect();
        assert_eq!(names, ["none", "single", "double", "curly", "dotted", "dashed"]);
        assert!(Underline::ALL.into_iter().all(|u| Underline::from_name(u.name()) == Some(u)));
        let by_code = (0..6).map(Underline::from_code);
        assert!(by_code.eq(Underline::ALL));

        use crate::machine::CursorShape;
        let names: Vec<_> = CursorShape::ALL.into_iter().map(CursorShape::name).collect();
        assert_eq!(names, ["default", "block", "underline", "bar"]);
        assert!(CursorShape::ALL.into_iter().all(|s| CursorShape::from_name(s.name()) == Some(s)));
    }

    #[test]
    fn colours_are_written_as_they_are_read() {
        for text in ["default", "black", "cyan", "bright-red", "16", "208", "#ff8700"] {
            assert_eq!(text.parse::<Colour>().map(|c| c.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "256", "#ff87", "bright-208", "Red", "#gg0000"] {
            assert_eq!(text.parse::<Colour>(), Err(UnknownColour), "{text}");
        }
    }
}
