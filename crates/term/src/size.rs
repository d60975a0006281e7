//! The size of a terminal, and the settings that bound what it may hold.

use std::fmt;

/// The longest side of a terminal that is modelled, and so of one that can be asked for: memory has
/// to be bounded.
pub const MAX_SIDE: u16 = 1000;

/// Columns and rows of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Size {
    /// Cells in a row.
    pub cols: u16,
    /// Rows on the screen.
    pub rows: u16,
}

impl Size {
    /// A size as given; the terminal clamps it.
    pub const fn new(cols: u16, rows: u16) -> Self {
        Self { cols, rows }
    }

    /// Both sides brought into `1..=limit`, so that neither a zero nor a giant is ever allocated.
    pub(crate) fn clamped(self, limit: u16) -> Self {
        let limit = limit.clamp(1, 10_000);
        Self { cols: self.cols.clamp(1, limit), rows: self.rows.clamp(1, limit) }
    }
}

/// Columns and rows as `80x24`.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.cols, self.rows)
    }
}

impl Default for Size {
    fn default() -> Self {
        Self::new(80, 24)
    }
}

/// What a terminal may hold and how it presents itself.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Rows kept above the screen.
    pub scrollback: usize,
    /// Bytes that those rows may take; the oldest go when there are more.
    pub scrollback_bytes: usize,
    /// The longest side of the screen that is allowed.
    pub max_side: u16,
    /// Whether queries are answered (the answers come back from [`crate::Term::feed`]).
    pub replies: bool,
    /// Whether wrapped lines are wrapped anew when the width changes.
    pub reflow: bool,
    /// Whether grapheme clusters share a cell from the start (mode 2027).
    pub clusters: bool,
    /// Whether a line feed also returns the carriage from the start (mode 20).
    pub newline_mode: bool,
    /// Whether DECCOLM may change the number of columns by itself. Off, the host owns the size and
    /// the switch only clears the screen.
    pub column_switch: bool,
    /// Start in VT52 mode, for plain legacy programs.
    pub vt52: bool,
    /// The longest payload of an OSC, DCS or APC string that is looked at; longer ones are skipped
    /// whole.
    pub string_limit: usize,
    /// Size of a cell in pixels, for the reports that ask for it.
    pub cell_pixels: (u16, u16),
    /// Whether the colour scheme is dark (`CSI ? 996 n`).
    pub dark: bool,
    /// Name and version told to XTVERSION.
    pub version: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            scrollback: 10_000,
            scrollback_bytes: 1 << 30,
            max_side: MAX_SIDE,
            replies: true,
            reflow: true,
            clusters: true,
            newline_mode: false,
            column_switch: false,
            vt52: false,
            string_limit: 1 << 20,
            cell_pixels: (10, 20),
            dark: true,
            version: concat!("tapdeck ", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}
