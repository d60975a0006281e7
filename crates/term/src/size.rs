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
#[non_exhaustive]
pub struct Settings {
    pub(crate) scrollback: usize,
    pub(crate) scrollback_bytes: usize,
    pub(crate) max_side: u16,
    pub(crate) replies: bool,
    pub(crate) reflow: bool,
    pub(crate) clusters: bool,
    pub(crate) newline_mode: bool,
    pub(crate) column_switch: bool,
    pub(crate) vt52: bool,
    pub(crate) string_limit: usize,
    pub(crate) cell_pixels: (u16, u16),
    pub(crate) dark: bool,
    pub(crate) version: String,
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

impl Settings {
    /// Sets how many rows are kept above the screen; 10,000 by default.
    #[must_use]
    pub fn scrollback(mut self, scrollback: usize) -> Self {
        self.scrollback = scrollback;
        self
    }

    /// Sets how many bytes those rows may take; the oldest go when there are more. 1 GiB by
    /// default.
    #[must_use]
    pub fn scrollback_bytes(mut self, scrollback_bytes: usize) -> Self {
        self.scrollback_bytes = scrollback_bytes;
        self
    }

    /// Sets the longest side of the screen that is allowed.
    #[must_use]
    pub fn max_side(mut self, max_side: u16) -> Self {
        self.max_side = max_side;
        self
    }

    /// Sets whether queries are answered, as they are by default. The answers come back from
    /// [`crate::Term::feed`].
    #[must_use]
    pub fn replies(mut self, replies: bool) -> Self {
        self.replies = replies;
        self
    }

    /// Sets whether wrapped lines are wrapped anew when the width changes, as they are by default.
    #[must_use]
    pub fn reflow(mut self, reflow: bool) -> Self {
        self.reflow = reflow;
        self
    }

    /// Sets whether grapheme clusters share a cell from the start (mode 2027), as they do by
    /// default.
    #[must_use]
    pub fn clusters(mut self, clusters: bool) -> Self {
        self.clusters = clusters;
        self
    }

    /// Sets whether a line feed also returns the carriage from the start (mode 20).
    #[must_use]
    pub fn newline_mode(mut self, newline_mode: bool) -> Self {
        self.newline_mode = newline_mode;
        self
    }

    /// Sets whether DECCOLM may change the number of columns by itself. By default the host owns
    /// the size, and the switch only clears the screen.
    #[must_use]
    pub fn column_switch(mut self, column_switch: bool) -> Self {
        self.column_switch = column_switch;
        self
    }

    /// Sets whether the terminal starts in VT52 mode, for plain legacy programs.
    #[must_use]
    pub fn vt52(mut self, vt52: bool) -> Self {
        self.vt52 = vt52;
        self
    }

    /// Sets the longest payload of an OSC, DCS or APC string that is looked at; longer ones are
    /// skipped whole. 1 MiB by default.
    #[must_use]
    pub fn string_limit(mut self, string_limit: usize) -> Self {
        self.string_limit = string_limit;
        self
    }

    /// Sets the size of a cell in pixels, width first, for the reports that ask for it.
    #[must_use]
    pub fn cell_pixels(mut self, cell_pixels: (u16, u16)) -> Self {
        self.cell_pixels = cell_pixels;
        self
    }

    /// Sets whether the colour scheme is dark (`CSI ? 996 n`).
    #[must_use]
    pub fn dark(mut self, dark: bool) -> Self {
        self.dark = dark;
        self
    }

    /// Sets the name and version told to XTVERSION.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }
}
