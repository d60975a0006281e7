//! The 256 colours and the dynamic ones, with what the program changed of them.

use crate::style::Colour;
use crate::theme::Theme;

use std::fmt;
use std::str::FromStr;

/// A colour by its components.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Rgb(pub u8, pub u8, pub u8);

/// The colour as `#rrggbb`.
impl fmt::Display for Rgb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }
}

/// Reads `#rrggbb`.
impl FromStr for Rgb {
    type Err = NotAColour;

    fn from_str(text: &str) -> Result<Self, NotAColour> {
        let hex = text.strip_prefix('#').filter(|hex| hex.len() == 6).ok_or(NotAColour)?;
        if !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(NotAColour);
        }
        let part = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).map_err(|_| NotAColour);
        Ok(Self(part(0)?, part(2)?, part(4)?))
    }
}

/// A text that is no colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAColour;

impl fmt::Display for NotAColour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a color such as \"#6ea8fe\"")
    }
}

impl std::error::Error for NotAColour {}

impl Rgb {
    /// The relative luminance, from 0 for black to 1 for white, as WCAG defines it.
    pub fn luminance(self) -> f64 {
        let linear = |part: u8| {
            let share = f64::from(part) / 255.0;
            if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(self.0) + 0.7152 * linear(self.1) + 0.0722 * linear(self.2)
    }
}

/// Dynamic colours by their OSC number, less 10: text, background, cursor, pointer …
pub(crate) const DYNAMIC: usize = 10;

/// What palette numbers and default colours look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Palette {
    /// Entries that the program changed.
    pub(crate) changed: Vec<(u8, Rgb)>,
    /// Special colours (OSC 5): bold, underline, blink, reverse, italic.
    pub(crate) special: [Option<Rgb>; 5],
    pub(crate) dynamic: [Option<Rgb>; DYNAMIC],
    /// The colours that the program did not change.
    pub(crate) base: Theme,
}

impl Default for Palette {
    fn default() -> Self {
        Self { changed: Vec::new(), special: [None; 5], dynamic: [None; DYNAMIC], base: Theme::XTERM }
    }
}

impl Palette {
    /// Returns this palette with the colours of a theme where the program changed none.
    #[must_use]
    pub fn under(&self, theme: Theme) -> Self {
        Self { base: theme, ..self.clone() }
    }

    /// A palette entry.
    pub fn entry(&self, i: u8) -> Rgb {
        if let Some((_, c)) = self.changed.iter().find(|(n, _)| *n == i) {
            return *c;
        }
        match i {
            0..=15 => self.base.ansi[usize::from(i)],
            16..=231 => {
                let level = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
                let n = i - 16;
                Rgb(level(n / 36), level(n / 6 % 6), level(n % 6))
            }
            _ => {
                let grey = 8 + 10 * (i - 232);
                Rgb(grey, grey, grey)
            }
        }
    }

    /// What a text colour looks like.
    pub fn foreground(&self, c: Colour) -> Rgb {
        self.resolve(c, self.dynamic(0))
    }

    /// What a background colour looks like.
    pub fn background(&self, c: Colour) -> Rgb {
        self.resolve(c, self.dynamic(1))
    }

    fn resolve(&self, c: Colour, default: Rgb) -> Rgb {
        match c {
            Colour::Default => default,
            Colour::Indexed(i) => self.entry(i),
            Colour::Rgb(r, g, b) => Rgb(r, g, b),
        }
    }

    /// A dynamic colour: 0 text, 1 background, 2 cursor … 9.
    pub fn dynamic(&self, n: usize) -> Rgb {
        self.dynamic.get(n).copied().flatten().unwrap_or(match n {
            1 | 4 | 6 => self.base.background,
            2 => self.base.cursor,
            _ => self.base.foreground,
        })
    }

    pub(crate) fn set(&mut self, i: u8, c: Rgb) {
        self.reset(i);
        self.changed.push((i, c));
    }

    pub(crate) fn reset(&mut self, i: u8) {
        self.changed.retain(|(n, _)| *n != i);
    }

    pub(crate) fn reset_all(&mut self) {
        self.changed.clear();
    }
}

/// A colour as X11 writes it: `rgb:r/g/b` with one to four digits each, `#rgb` to `#rrrrggggbbbb`,
/// or a common name.
pub(crate) fn parse_colour(s: &str) -> Option<Rgb> {
    let scaled = |h: &str| {
        let v = u32::from_str_radix(h, 16).ok()?;
        let max = (1u32 << (4 * h.len())) - 1;
        Some((v * 255 / max) as u8)
    };
    if let Some(rest) = s.strip_prefix("rgb:") {
        let mut it = rest.split('/');
        let mut part = || it.next().filter(|h| (1..=4).contains(&h.len()) && h.is_ascii()).and_then(scaled);
        let c = Rgb(part()?, part()?, part()?);
        return it.next().is_none().then_some(c);
    }
    if let Some(hex) = s.strip_prefix('#') {
        if !hex.is_ascii() || hex.len() % 3 != 0 || !(3..=12).contains(&hex.len()) {
            return None;
        }
        let n = hex.len() / 3;
        // Here the digits are the upper ones: #fff is #f0f0f0.
        let top = |h: &str| {
            let v = u32::from_str_radix(h, 16).ok()?;
            Some((if n == 1 { v << 4 } else { v >> (4 * (n - 2)) }) as u8)
        };
        return Some(Rgb(top(&hex[..n])?, top(&hex[n..2 * n])?, top(&hex[2 * n..])?));
    }
    Some(match s.to_ascii_lowercase().as_str() {
        "black" => Rgb(0, 0, 0),
        "red" => Rgb(255, 0, 0),
        "green" => Rgb(0, 255, 0),
        "yellow" => Rgb(255, 255, 0),
        "blue" => Rgb(0, 0, 255),
        "magenta" => Rgb(255, 0, 255),
        "cyan" => Rgb(0, 255, 255),
        "white" => Rgb(255, 255, 255),
        "grey" | "gray" => Rgb(190, 190, 190),
        "orange" => Rgb(255, 165, 0),
        _ => return None,
    })
}
