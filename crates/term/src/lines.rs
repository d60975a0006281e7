//! Reading rows, wherever they are kept.

use crate::cell::Cell;
use crate::grid::{LineSize, RowMeta};
use crate::machine::Machine;
use crate::pack::{Packed, Piece};
use crate::paint;
use crate::style::{Attrs, Style};
use std::borrow::Cow;
use std::fmt;

/// A row of the screen or of scrollback.
#[derive(Clone, Copy)]
pub struct Line<'a> {
    m: &'a Machine,
    meta: RowMeta,
    body: Body<'a>,
}

#[derive(Clone, Copy)]
enum Body<'a> {
    Live(&'a [Cell]),
    Packed(Packed<'a>),
}

impl fmt::Debug for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Line").field(&self.text_ref()).finish()
    }
}

/// Neighbouring characters of one style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first column.
    pub col: u16,
    /// Columns taken.
    pub width: u16,
    /// The text; cells that nothing was written to are spaces.
    pub text: String,
    /// How it looks.
    pub style: Style,
}

/// One column of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StyledCell {
    /// The character, with its combining marks. Empty where nothing was written, and in the second
    /// half of a wide character.
    pub text: String,
    /// Columns that the character takes: 1, 2 for a wide one, 0 for the second half of it.
    pub width: u8,
    /// How it looks.
    pub style: Style,
}

impl<'a> Line<'a> {
    pub(crate) fn live(m: &'a Machine, y: usize) -> Self {
        Self { m, meta: *m.grid.meta(y), body: Body::Live(m.grid.row(y)) }
    }

    pub(crate) fn packed(m: &'a Machine, p: Packed<'a>) -> Self {
        Self { m, meta: p.meta, body: Body::Packed(p) }
    }

    pub(crate) fn of_grid(m: &'a Machine, grid: &'a crate::grid::Grid, y: usize) -> Self {
        Self { m, meta: *grid.meta(y), body: Body::Live(grid.row(y)) }
    }

    /// Calls `f` with text (empty where nothing was written), columns and style of each character,
    /// from the left.
    pub fn each(&self, f: impl FnMut(&str, usize, Style)) {
        match &self.body {
            Body::Packed(p) => p.each(f),
            Body::Live(cells) => each_cell(self.m, cells, f),
        }
    }

    /// Calls `f` as [`Self::each`] does, with several characters at once where the row is kept so.
    pub(crate) fn pieces(&self, mut f: impl FnMut(Piece<'_>, Style)) {
        match &self.body {
            Body::Packed(p) => p.pieces(f),
            Body::Live(cells) => each_cell(self.m, cells, |text, width, style| match text.as_bytes() {
                [] => f(Piece::Empty, style),
                [b' '..=b'~'] => f(Piece::Ascii(text), style),
                _ => f(Piece::One(text, width), style),
            }),
        }
    }

    /// The text without trailing blanks.
    pub fn text(&self) -> String {
        self.text_ref().into_owned()
    }

    /// The text without trailing blanks, borrowed where the row is kept as text.
    pub fn text_ref(&self) -> Cow<'a, str> {
        if let Some(text) = self.as_plain() {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(match &self.body {
            Body::Live(cells) => cells.len(),
            Body::Packed(_) => 0,
        });
        self.each(|text, _, _| out.push_str(if text.is_empty() { " " } else { text }));
        out.truncate(out.trim_end_matches(' ').len());
        Cow::Owned(out)
    }

    /// The text of a row that has no style and is kept as text, with every blank that was written.
    pub(crate) fn as_written(&self) -> Option<&'a [u8]> {
        match &self.body {
            Body::Packed(p) => p.as_ascii(),
            Body::Live(_) => None,
        }
    }

    /// The text of a row that has no style and is kept as text.
    fn as_plain(&self) -> Option<&'a str> {
        match &self.body {
            Body::Packed(p) => Some(p.as_plain()?.trim_end_matches(' ')),
            Body::Live(_) => None,
        }
    }

    /// The text of each column: `None` for the second half of a wide character, empty where nothing
    /// was written. Ends with the last column that is not blank by default.
    pub fn cells(&self) -> Vec<Option<String>> {
        let mut out = Vec::new();
        self.each(|text, width, _| {
            out.push(Some(text.to_owned()));
            if width == 2 {
                out.push(None);
            }
        });
        out
    }

    /// The cell in a column, counted from 0. `None` right of the last column.
    pub fn cell(&self, col: u16) -> Option<StyledCell> {
        if usize::from(col) >= self.m.cols() {
            return None;
        }
        let (mut at, mut found) = (0, None);
        self.each(|text, width, style| {
            if at == usize::from(col) {
                found = Some(StyledCell { text: text.to_owned(), width: width as u8, style });
            } else if width == 2 && at + 1 == usize::from(col) {
                found = Some(StyledCell { text: String::new(), width: 0, style });
            }
            at += width;
        });
        // Rows in scrollback end with their last column that is not blank.
        Some(found.unwrap_or(StyledCell { text: String::new(), width: 1, style: Style::default() }))
    }

    /// Offset of the last byte that wrote to the row; 0 when none did (see [`Self::written`]).
    pub fn last_write_byte(&self) -> u64 {
        self.meta.written.saturating_sub(1)
    }

    /// Offset of the last byte that wrote to the row.
    pub fn written(&self) -> Option<u64> {
        self.meta.written.checked_sub(1)
    }

    /// Whether the text goes on in the next row.
    pub fn wrapped(&self) -> bool {
        self.meta.wrapped
    }

    /// Single or double size.
    pub fn size(&self) -> LineSize {
        self.meta.size
    }

    /// Whether there is nothing more to the row than what stands in it.
    pub(crate) fn is_ordinary(&self) -> bool {
        self.meta.size == LineSize::Single && self.meta.marks == 0
    }

    /// Shell marks on the row: bits for OSC 133 A (1), B (2), C (4) and D (8).
    pub fn marks(&self) -> u8 {
        self.meta.marks
    }

    /// Whether nothing is on the row, not even colour.
    pub fn is_blank(&self) -> bool {
        match &self.body {
            Body::Live(cells) => cells.iter().all(|c| *c == Cell::BLANK),
            Body::Packed(p) => p.cells == 0,
        }
    }

    /// The row as runs of one style each; blanks of the default style at the end are left off.
    pub fn runs(&self) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        match &self.body {
            Body::Packed(p) => p.each(|text, width, style| add(&mut runs, text, width, style)),
            Body::Live(cells) => {
                for same in cells.chunk_by(|a, b| a.style == b.style) {
                    self.add_cells(&mut runs, same);
                }
            }
        }
        if let Some(r) = runs.last_mut()
            && r.style == Style::default()
        {
            let kept = r.text.trim_end_matches(' ').len();
            r.width -= (r.text.len() - kept) as u16;
            r.text.truncate(kept);
            if kept == 0 {
                runs.pop();
            }
        }
        runs
    }

    /// For a row whose text goes on in the next one: the blanks at its end that [`Self::runs`]
    /// leaves off although they were written, as their first column and their number. Where lines
    /// are joined they stand between words.
    pub fn written_blanks(&self) -> Option<(u16, u16)> {
        if !self.wrapped() {
            return None;
        }
        let (mut col, mut from) = (0, None);
        self.each(|text, width, style| {
            let blank = text == " " && style == Style::default();
            from = if blank { from.or(Some(col)) } else { None };
            col += width as u16;
        });
        from.map(|from| (from, col - from))
    }

    /// Cells of one style: together where they are ASCII, as most are.
    fn add_cells(&self, runs: &mut Vec<Run>, cells: &[Cell]) {
        let style = self.m.styles.get(cells[0].style);
        if cells.iter().fold(true, |plain, c| plain & (c.text < 0x80)) {
            let text: String =
                cells.iter().map(|c| if c.text == 0 { ' ' } else { c.text as u8 as char }).collect();
            return add(runs, &text, cells.len(), style);
        }
        each_cell(self.m, cells, |text, width, style| add(runs, text, width, style));
    }

    /// Appends the row as text, with SGR sequences where `colours`; trailing blanks are left off,
    /// nothing moves the cursor. Ends in the default style.
    pub fn write_ansi(&self, out: &mut Vec<u8>, colours: bool) {
        if let Some(text) = self.as_plain() {
            out.extend_from_slice(text.as_bytes());
            return;
        }
        if !colours {
            out.extend_from_slice(self.text().as_bytes());
            return;
        }
        let mut styled = false;
        for run in self.runs() {
            let style = Style { link: 0, attrs: Attrs(run.style.attrs.0 & !Attrs::PROTECTED.0), ..run.style };
            if style != Style::default() {
                paint::sgr(out, &style);
                styled = true;
            } else if styled {
                out.extend_from_slice(b"\x1b[m");
                styled = false;
            }
            out.extend_from_slice(run.text.as_bytes());
        }
        if styled {
            out.extend_from_slice(b"\x1b[m");
        }
    }
}

fn each_cell(m: &Machine, cells: &[Cell], mut f: impl FnMut(&str, usize, Style)) {
    let mut last = (crate::style::StyleId(0), Style::default());
    for c in cells {
        if c.style != last.0 {
            last = (c.style, m.styles.get(c.style));
        }
        let width = if c.is_wide() { 2 } else { 1 };
        if c.is_cluster() {
            f(m.clusters.get(c.value()), width, last.1);
        } else if let Some(ch) = c.char() {
            f(ch.encode_utf8(&mut [0; 4]), width, last.1);
        } else if !c.is_tail() {
            f("", 1, last.1);
        }
    }
}

/// Appends text to the last run, or begins one where that has another style.
fn add(runs: &mut Vec<Run>, text: &str, width: usize, style: Style) {
    let text = if text.is_empty() { " " } else { text };
    match runs.last_mut() {
        Some(r) if r.style == style => {
            r.text.push_str(text);
            r.width += width as u16;
        }
        last => {
            let col = last.map_or(0, |r| r.col + r.width);
            runs.push(Run { col, width: width as u16, text: text.to_owned(), style });
        }
    }
}
