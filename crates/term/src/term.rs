//! The terminal as its users see it.

use std::io;

use crate::changes::Changes;
use crate::lines::{Line, Run, StyledCell};
use crate::links::Link;
use crate::machine::{CursorShape, Machine};
use crate::modes::Modes;
use crate::palette::Palette;
use crate::parser::Parser;
use crate::size::{Settings, Size};

/// Where the cursor is and how it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Row, from the top.
    pub row: u16,
    /// Column, from the left.
    pub col: u16,
    /// The last column was written: the next character goes to the next line.
    pub pending_wrap: bool,
    /// Whether it is shown.
    pub visible: bool,
    /// Its shape.
    pub shape: CursorShape,
    /// Whether it blinks.
    pub blink: bool,
}

/// A point in the terminal's life, to ask what changed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Generation(pub u64);

/// What a painter has to draw again.
#[derive(Clone, Debug)]
pub struct Diff {
    /// Pass this to the next [`Term::diff`].
    pub generation: Generation,
    /// Changed rows, from the top.
    pub rows: Vec<RowDiff>,
    /// The cursor now.
    pub cursor: Cursor,
    /// Rows in scrollback and evicted, together: how far the screen has moved since the beginning.
    pub scrolled: u64,
}

/// A changed row.
#[derive(Clone, Debug)]
pub struct RowDiff {
    /// Row, from the top.
    pub row: u16,
    /// Its contents; what is not covered is blank.
    pub runs: Vec<Run>,
}

/// A terminal without a window.
#[derive(Clone, Debug)]
pub struct Term {
    pub(crate) parser: Parser,
    pub(crate) m: Machine,
    generation: u64,
    /// For each screen row the generation that last changed it.
    stamps: Vec<u64>,
    /// Place of the next byte in the whole stream.
    pub(crate) offset: u64,
}

impl Term {
    /// A terminal as at power-on.
    pub fn new(size: Size, settings: Settings) -> Self {
        let mut parser = Parser::new(settings.string_limit);
        parser.vt52 = settings.vt52;
        let m = Machine::new(size, settings);
        let stamps = vec![0; m.rows()];
        Self { parser, m, generation: 1, stamps, offset: 0 }
    }

    /// Takes the next bytes of the program's output.
    ///
    /// The bytes may be cut anywhere, even inside a character or a sequence. The terminal counts
    /// them, so that each row knows the offset of the last byte that wrote to it.
    pub fn feed(&mut self, bytes: &[u8]) -> Changes {
        self.feed_at(bytes, self.offset)
    }

    /// Takes bytes of the program's output whose first byte has this offset in the whole stream.
    ///
    /// For streams with gaps, such as a recording that is read from its middle. Later calls of
    /// [`Self::feed`] count on from the end of `bytes`.
    pub fn feed_at(&mut self, bytes: &[u8], offset: u64) -> Changes {
        // Leaves headroom below `u64::MAX`.
        let offset = offset.min(u64::MAX - bytes.len() as u64);
        self.offset = offset + bytes.len() as u64;
        let mut done = 0;
        while done < bytes.len() {
            done += self.parser.advance(&bytes[done..], offset + done as u64, &mut self.m);
            self.parser.utf8_mode = self.m.utf8;
            self.parser.vt52 = self.m.modes.vt52();
        }
        self.take_changes()
    }

    fn take_changes(&mut self) -> Changes {
        self.generation += 1;
        let rows = std::mem::take(&mut self.m.damage);
        self.stamps.resize(self.m.rows(), self.generation);
        for y in rows.iter() {
            if let Some(s) = self.stamps.get_mut(y) {
                *s = self.generation;
            }
        }
        Changes {
            rows,
            replies: std::mem::take(&mut self.m.replies),
            signals: std::mem::take(&mut self.m.signals),
        }
    }

    /// Changes the size. Wrapped lines of the main screen are wrapped anew; the alternate screen is
    /// cut or extended. The replies hold the report that mode 2048 asks for.
    pub fn resize(&mut self, size: Size) -> Changes {
        self.m.resize(size);
        self.take_changes()
    }

    /// Offset of the next byte in the whole stream: the number of bytes fed, unless
    /// [`Self::feed_at`] moved it.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Columns and rows.
    pub fn size(&self) -> Size {
        self.m.size
    }

    /// Where the cursor is and how it looks.
    pub fn cursor(&self) -> Cursor {
        Cursor {
            row: self.m.pos.y as u16,
            col: self.m.pos.x as u16,
            pending_wrap: self.m.pos.pending,
            visible: self.m.modes.cursor_visible(),
            shape: self.m.shape,
            blink: self.m.blink,
        }
    }

    /// The window's title, without control characters.
    pub fn title(&self) -> &str {
        &self.m.title
    }

    /// The icon's name, without control characters.
    pub fn icon_name(&self) -> &str {
        &self.m.icon
    }

    /// The working directory that the program told last (OSC 7), as sent.
    pub fn directory(&self) -> &str {
        &self.m.directory
    }

    /// The modes in force.
    pub fn modes(&self) -> Modes {
        self.m.modes
    }

    /// What colours look like.
    pub fn palette(&self) -> &Palette {
        &self.m.palette
    }

    /// The hyperlink of a style, while it is remembered.
    pub fn link(&self, id: u32) -> Option<&Link> {
        self.m.links.get(id)
    }

    /// Switches replies on or off.
    pub fn set_replies(&mut self, on: bool) {
        self.m.settings.replies = on;
    }

    /// Tells whether the host's colours are dark. Where the program asked for it (mode 2031), the
    /// replies of the next feed tell it of a change.
    pub fn set_dark(&mut self, dark: bool) {
        if std::mem::replace(&mut self.m.settings.dark, dark) != dark && self.m.modes.scheme_reports() {
            self.m.report_scheme();
        }
    }

    /// Rows that left scrollback at its far end.
    pub fn evicted(&self) -> u64 {
        self.m.scrollback.evicted()
    }

    /// Lets the oldest rows of scrollback go, as if they had left it at its far end.
    pub fn forget_scrollback(&mut self, rows: usize) {
        self.m.scrollback.forget(rows);
    }

    /// Rows in scrollback.
    pub fn scrollback_len(&self) -> usize {
        self.m.scrollback.len()
    }

    /// Bytes that scrollback takes.
    pub fn scrollback_memory(&self) -> usize {
        self.m.scrollback.memory()
    }

    /// All rows: scrollback from the oldest, then the screen.
    pub fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.scrollback().chain(self.screen())
    }

    /// The rows of scrollback, from the oldest.
    pub fn scrollback(&self) -> impl DoubleEndedIterator<Item = Line<'_>> {
        self.m.scrollback.rows().map(|p| Line::packed(&self.m, p))
    }

    /// The rows of the screen, from the top.
    pub fn screen(&self) -> impl DoubleEndedIterator<Item = Line<'_>> + ExactSizeIterator {
        (0..self.m.rows()).map(|y| Line::live(&self.m, y))
    }

    /// The rows of the main screen that the alternate screen covers, from the top; none while the
    /// main screen is shown.
    pub fn covered(&self) -> impl DoubleEndedIterator<Item = Line<'_>> + ExactSizeIterator {
        let rows = if self.m.modes.alternate() { self.m.hidden.rows } else { 0 };
        (0..rows).map(|y| Line::of_grid(&self.m, &self.m.hidden, y))
    }

    /// One row of the screen.
    pub fn row(&self, y: u16) -> Option<Line<'_>> {
        (usize::from(y) < self.m.rows()).then(|| Line::live(&self.m, usize::from(y)))
    }

    /// The text of the screen: a line for each row, without the blanks at their ends and without
    /// the blank rows at the bottom.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for line in self.screen() {
            out.push_str(&line.text_ref());
            out.push('\n');
        }
        out.truncate(out.trim_end_matches('\n').len());
        out
    }

    /// One cell of the screen, counted from 0 at the top left. `None` outside of the screen.
    pub fn cell(&self, row: u16, col: u16) -> Option<StyledCell> {
        self.row(row)?.cell(col)
    }

    /// One row of scrollback, counted from the oldest.
    pub fn scrollback_row(&self, i: usize) -> Option<Line<'_>> {
        self.m.scrollback.get(i).map(|p| Line::packed(&self.m, p))
    }

    /// Whether the stream stands between tokens: no half-read sequence or character.
    pub fn is_idle(&self) -> bool {
        self.parser.is_idle()
    }

    /// Panics when the grid contradicts itself; for tests.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        self.m.grid.check();
        self.m.hidden.check();
    }

    /// The generation to pass to [`Self::diff`] later.
    pub fn generation(&self) -> Generation {
        Generation(self.generation)
    }

    /// The rows that changed since a generation, for painters.
    pub fn diff(&self, since: Generation) -> Diff {
        let rows = self
            .stamps
            .iter()
            .enumerate()
            .filter(|(y, s)| **s > since.0 && *y < self.m.rows())
            .map(|(y, _)| RowDiff { row: y as u16, runs: Line::live(&self.m, y).runs() })
            .collect();
        Diff {
            generation: Generation(self.generation),
            rows,
            cursor: self.cursor(),
            scrolled: self.evicted() + self.scrollback_len() as u64,
        }
    }
}

/// Feeds what is written, so that `write!(term, …)` and [`io::copy`] work. Never fails. Replies and
/// signals are dropped: use [`Term::feed`] where the program may ask the terminal something.
impl io::Write for Term {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.feed(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
