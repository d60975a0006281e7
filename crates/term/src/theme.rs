//! Themes: what the default colours and the 16 ANSI colours look like where this product draws
//! them. The other 240 colours of the palette are the same everywhere.

use crate::palette::Rgb;

/// The colours of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Theme {
    /// Text of the default colour.
    pub foreground: Rgb,
    /// The background of the screen.
    pub background: Rgb,
    /// The cursor.
    pub cursor: Rgb,
    /// The 16 ANSI colours: black, red, green, yellow, blue, magenta, cyan, white, and their bright
    /// variants.
    pub ansi: [Rgb; 16],
}

/// `dark`.
impl Default for Theme {
    fn default() -> Self {
        DARK
    }
}

impl Theme {
    /// The built-in themes by their names. Text in every colour but black is readable on the
    /// background of its theme.
    pub const BUILT_IN: &'static [(&'static str, Theme)] = &[
        ("dark", DARK),
        ("light", LIGHT),
        ("high-contrast", HIGH_CONTRAST),
        ("sepia", SEPIA),
        ("dracula", DRACULA),
    ];

    /// The colours that xterm has, and that the model answers with. Blue text is hard to read.
    pub const XTERM: Theme = theme(
        0xe5e5e5,
        0x000000,
        0xe5e5e5,
        [
            0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd, 0x00cdcd, 0xe5e5e5, //
            0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00, 0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff,
        ],
    );

    /// Finds a built-in theme by its name.
    pub fn named(name: &str) -> Option<Self> {
        Self::BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, theme)| *theme)
    }

    /// Whether the background is brighter than the text.
    pub fn is_light(&self) -> bool {
        self.background.luminance() > self.foreground.luminance()
    }
}

const fn theme(foreground: u32, background: u32, cursor: u32, ansi: [u32; 16]) -> Theme {
    let mut colours = [Rgb(0, 0, 0); 16];
    let mut i = 0;
    while i < 16 {
        colours[i] = rgb(ansi[i]);
        i += 1;
    }
    Theme { foreground: rgb(foreground), background: rgb(background), cursor: rgb(cursor), ansi: colours }
}

const fn rgb(hex: u32) -> Rgb {
    let [_, r, g, b] = hex.to_be_bytes();
    Rgb(r, g, b)
}

const DARK: Theme = theme(
    0xd8dce4,
    0x121417,
    0xe6b450,
    [
        0x2b2f38, 0xf0717a, 0x7fd18b, 0xe6b450, 0x6ea8fe, 0xd48cff, 0x5fd3c8, 0xc3c9d4, //
        0x8b93a3, 0xff8f96, 0xa3e5ab, 0xffd479, 0x9cc4ff, 0xe6b3ff, 0x8fe8de, 0xffffff,
    ],
);

const LIGHT: Theme = theme(
    0x24292f,
    0xfafafa,
    0x0b57c2,
    [
        0x0b0e12, 0xb3202c, 0x1a6e30, 0x7d5700, 0x0b57c2, 0x8b2fb0, 0x0a6c74, 0x656d76, //
        0x57606a, 0xc02633, 0x1f7a37, 0x8a5f00, 0x1a66d6, 0x9a3bc2, 0x0b757e, 0x5d656e,
    ],
);

const HIGH_CONTRAST: Theme = theme(
    0xffffff,
    0x000000,
    0xffffff,
    [
        0x3a3a3a, 0xff7b7b, 0x4ade68, 0xffd84a, 0x7ab8ff, 0xff8cff, 0x3fe0e0, 0xe6e6e6, //
        0xb0b0b0, 0xff9d9d, 0x7df294, 0xffe680, 0xa6d0ff, 0xffb3ff, 0x85f5f5, 0xffffff,
    ],
);

const SEPIA: Theme = theme(
    0x3b3228,
    0xf6efe0,
    0x8a4b08,
    [
        0x1f1913, 0xa3271f, 0x4c6413, 0x7c5406, 0x25589c, 0x8a3a78, 0x1f6a66, 0x6f6557, //
        0x655b4d, 0xb0352c, 0x556f17, 0x855a09, 0x2f63aa, 0x963f83, 0x247370, 0x675d4f,
    ],
);

const DRACULA: Theme = theme(
    0xf8f8f2,
    0x282a36,
    0xf8f8f2,
    [
        0x21222c, 0xff5555, 0x50fa7b, 0xf1fa8c, 0xbd93f9, 0xff79c6, 0x8be9fd, 0xf8f8f2, //
        0x6272a4, 0xff6e6e, 0x69ff94, 0xffffa5, 0xd6acff, 0xff92df, 0xa4ffff, 0xffffff,
    ],
);

#[cfg(test)]
mod tests {
    use super::*;

    /// The contrast of WCAG 2, from 1 to 21.
    fn contrast(a: Rgb, b: Rgb) -> f64 {
        let (a, b) = (a.luminance(), b.luminance());
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn text_is_readable_in_every_theme() {
        for (name, theme) in Theme::BUILT_IN {
            let back = theme.background;
            assert!(contrast(theme.foreground, back) >= 7.0, "{name}: text");
            assert!(contrast(theme.cursor, back) >= 4.5, "{name}: cursor");
            for (i, colour) in theme.ansi.iter().enumerate() {
                let least = match (i, *name) {
                    // Black is the colour of shades on a dark background.
                    (0, _) if !theme.is_light() => 1.0,
                    // Dracula's comments are faint by design.
                    (8, "dracula") => 3.0,
                    _ => 4.5,
                };
                let found = contrast(*colour, back);
                assert!(found >= least, "{name}: colour {i} has a contrast of {found:.2}");
            }
        }
        assert!(contrast(Theme::XTERM.ansi[4], Theme::XTERM.background) < 4.5);
    }

    #[test]
    fn themes_have_names_and_a_brightness() {
        assert_eq!(Theme::named("dark"), Some(Theme::default()));
        assert_eq!(Theme::named("Dark"), None);
        let light: Vec<_> = Theme::BUILT_IN.iter().filter(|(_, t)| t.is_light()).map(|(n, _)| *n).collect();
        assert_eq!(light, ["light", "sepia"]);
    }
}
