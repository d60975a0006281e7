//! Character sets: what the bytes 0x20–0x7f mean under the set that is shifted in.

/// A 94- or 96-character set that can be designated to G0–G3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Charset {
    #[default]
    Ascii,
    /// DEC Special Graphics: line drawing.
    Graphics,
    /// DEC Supplemental and ISO Latin-1 supplemental: the upper half.
    Latin1,
    Supplemental,
    Technical,
    British,
    Dutch,
    Finnish,
    French,
    FrenchCanadian,
    German,
    Italian,
    NorwegianDanish,
    Portuguese,
    Spanish,
    Swedish,
    Swiss,
}

impl Charset {
    /// The set that a designation's intermediates and final byte name. `big`: a 96-character set.
    pub(crate) fn designated(inter: u8, last: u8, big: bool) -> Option<Self> {
        Some(match (big, inter, last) {
            (true, 0, b'A') => Self::Latin1,
            (true, ..) => return None,
            (_, 0, b'B' | b'1') => Self::Ascii,
            (_, 0, b'0' | b'2') => Self::Graphics,
            (_, 0, b'<') | (_, b'%', b'5') => Self::Supplemental,
            (_, 0, b'>') => Self::Technical,
            (_, 0, b'A') => Self::British,
            (_, 0, b'4') => Self::Dutch,
            (_, 0, b'C' | b'5') => Self::Finnish,
            (_, 0, b'R' | b'f') => Self::French,
            (_, 0, b'Q' | b'9') => Self::FrenchCanadian,
            (_, 0, b'K') => Self::German,
            (_, 0, b'Y') => Self::Italian,
            (_, 0, b'`' | b'E' | b'6') => Self::NorwegianDanish,
            (_, b'%', b'6') => Self::Portuguese,
            (_, 0, b'Z') => Self::Spanish,
            (_, 0, b'H' | b'7') => Self::Swedish,
            (_, 0, b'=') => Self::Swiss,
            _ => return None,
        })
    }

    /// Whether it is one of the national sets that DECNRCM guards. The British set is older than
    /// that.
    pub(crate) fn is_national(self) -> bool {
        !matches!(
            self,
            Self::Ascii
                | Self::Graphics
                | Self::Latin1
                | Self::Supplemental
                | Self::Technical
                | Self::British
        )
    }

    /// The intermediates (after the one that names G0–G3) and final byte that designate it, and
    /// whether it has 96.
    pub(crate) fn designation(self) -> (&'static str, bool) {
        match self {
            Self::Ascii => ("B", false),
            Self::Graphics => ("0", false),
            Self::Latin1 => ("A", true),
            Self::Supplemental => ("%5", false),
            Self::Technical => (">", false),
            Self::British => ("A", false),
            Self::Dutch => ("4", false),
            Self::Finnish => ("C", false),
            Self::French => ("R", false),
            Self::FrenchCanadian => ("Q", false),
            Self::German => ("K", false),
            Self::Italian => ("Y", false),
            Self::NorwegianDanish => ("`", false),
            Self::Portuguese => ("%6", false),
            Self::Spanish => ("Z", false),
            Self::Swedish => ("H", false),
            Self::Swiss => ("=", false),
        }
    }

    /// What a byte of 0x20–0x7f means.
    pub(crate) fn map(self, b: u8) -> char {
        let c = char::from(b);
        // National sets replace a few places of ASCII: pairs of place and replacement.
        let national = |table: &str| {
            let mut it = table.chars();
            while let (Some(from), Some(to)) = (it.next(), it.next()) {
                if from == c {
                    return to;
                }
            }
            c
        };
        match self {
            Self::Ascii => c,
            Self::Graphics => match b {
                0x5f..=0x7e => GRAPHICS[usize::from(b - 0x5f)],
                _ => c,
            },
            Self::Latin1 => char::from(b | 0x80),
            Self::Supplemental => match b {
                0x28 => '¤',
                0x57 => 'Œ',
                0x5d => 'Ÿ',
                0x77 => 'œ',
                0x7d => 'ÿ',
                _ => char::from(b | 0x80),
            },
            Self::Technical => TECHNICAL.get(usize::from(b).wrapping_sub(0x21)).copied().unwrap_or(c),
            Self::British => national("#£"),
            Self::Dutch => national("#£@¾[ĳ\\½]|{¨|ƒ}¼~´"),
            Self::Finnish => national("[Ä\\Ö]Å^Ü`é{ä|ö}å~ü"),
            Self::French => national("#£@à[°\\ç]§{é|ù}è~¨"),
            Self::FrenchCanadian => national("@à[â\\ç]ê^î`ô{é|ù}è~û"),
            Self::German => national("@§[Ä\\Ö]Ü{ä|ö}ü~ß"),
            Self::Italian => national("#£@§[°\\ç]é`ù{à|ò}è~ì"),
            Self::NorwegianDanish => national("@Ä[Æ\\Ø]Å^Ü`ä{æ|ø}å~ü"),
            Self::Portuguese => national("[Ã\\Ç]Õ{ã|ç}õ"),
            Self::Spanish => national("#£@§[¡\\Ñ]¿{°|ñ}ç"),
            Self::Swedish => national("@É[Ä\\Ö]Å^Ü`é{ä|ö}å~ü"),
            Self::Swiss => national("#ù@à[é\\ç]ê^î_è`ô{ä|ö}ü~û"),
        }
    }
}

/// 0x5f–0x7e of DEC Special Graphics.
const GRAPHICS: [char; 32] = [
    ' ', '◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼', '⎺', '⎻', '─', '⎼', '⎽',
    '├', '┤', '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
];

/// 0x21–0x7e of DEC Technical.
const TECHNICAL: [char; 94] = [
    '⎷', '┌', '─', '⌠', '⌡', '│', '⎡', '⎣', '⎤', '⎦', '⎛', '⎝', '⎞', '⎠', '⎨', '⎬', '⎲', '⎳', '╲', '╱', '¬',
    '¬', '¬', '¬', '¬', '¬', '¬', '≤', '≠', '≥', '∫', '∴', '∝', '∞', '÷', 'Δ', '∇', 'Φ', 'Γ', '∼', '≃', 'Θ',
    '×', 'Λ', '⇔', '⇒', '≡', 'Π', 'Ψ', '¬', 'Σ', '¬', '¬', '√', 'Ω', 'Ξ', 'Υ', '⊂', '⊃', '∩', '∪', '∧', '∨',
    '¬', 'α', 'β', 'χ', 'δ', 'ε', 'φ', 'γ', 'η', 'ι', 'θ', 'κ', 'λ', '¬', 'ν', '∂', 'π', 'ψ', 'ρ', 'σ', 'τ',
    '¬', 'ƒ', 'ω', 'ξ', 'υ', 'ζ', '←', '↑', '→', '↓',
];

/// The designated and invoked sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Charsets {
    pub(crate) g: [Charset; 4],
    pub(crate) gl: u8,
    pub(crate) gr: u8,
    /// SS2 or SS3: the set for the next character only.
    pub(crate) single: Option<u8>,
}

impl Charsets {
    pub(crate) fn new() -> Self {
        Self { gr: 2, ..Self::default() }
    }

    /// Whether the next bytes mean themselves.
    pub(crate) fn is_plain(&self) -> bool {
        self.single.is_none() && self.g[usize::from(self.gl)] == Charset::Ascii
    }

    /// Whether a shift would bring another set than ASCII.
    pub(crate) fn has_others(&self) -> bool {
        self.g[1..].iter().any(|set| *set != Charset::Ascii)
    }

    /// The meaning of a byte; a single shift is used up by it.
    pub(crate) fn map(&mut self, b: u8) -> char {
        let set = self.single.take().unwrap_or(self.gl);
        self.g[usize::from(set)].map(b)
    }
}
