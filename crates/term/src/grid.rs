//! The cells of one screen.
//!
//! All cells lie in one allocation; an order table says which stretch of it is which row, so that
//! scrolling moves a few bytes. Each row knows how many of its cells were ever written: what lies
//! behind is blank without being touched, which makes clearing a row and keeping it in scrollback
//! cost what was written, not what is wide.

use crate::cell::Cell;
use crate::style::StyleId;

/// How a row is drawn: DECSWL, DECDWL and the halves of DECDHL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum LineSize {
    /// Ordinary.
    #[default]
    Single,
    /// Each character twice as wide.
    DoubleWidth,
    /// Twice as wide and high, upper half.
    DoubleTop,
    /// Twice as wide and high, lower half.
    DoubleBottom,
}

impl LineSize {
    pub(crate) fn from_bits(b: u8) -> Self {
        match b & 3 {
            1 => Self::DoubleWidth,
            2 => Self::DoubleTop,
            3 => Self::DoubleBottom,
            _ => Self::Single,
        }
    }
}

/// What a row knows beside its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct RowMeta {
    /// One past the offset of the last byte that wrote to the row; 0 when none did.
    pub(crate) written: u64,
    /// Cells that are not implied blanks.
    pub(crate) len: u16,
    /// The text goes on in the next row.
    pub(crate) wrapped: bool,
    /// There may be wide characters in it.
    pub(crate) wide: bool,
    /// Something else than printable ASCII of the default style may be in it.
    pub(crate) rich: bool,
    /// Written since its text was last handed out (see [`crate::Tracer`]).
    pub(crate) fresh: bool,
    pub(crate) size: LineSize,
    /// Shell marks set on the row, one bit for each of OSC 133 A, B, C and D.
    pub(crate) marks: u8,
}

#[derive(Clone, Debug)]
pub(crate) struct Grid {
    pub(crate) cols: usize,
    pub(crate) rows: usize,
    cells: Vec<Cell>,
    meta: Vec<RowMeta>,
    order: Vec<u16>,
}

impl Grid {
    pub(crate) fn new(cols: usize, rows: usize) -> Self {
        Self {
            cols,
            rows,
            cells: vec![Cell::BLANK; cols * rows],
            meta: vec![RowMeta::default(); rows],
            order: (0..rows as u16).collect(),
        }
    }

    #[inline]
    fn phys(&self, y: usize) -> usize {
        usize::from(self.order[y])
    }

    #[inline]
    pub(crate) fn meta(&self, y: usize) -> &RowMeta {
        &self.meta[self.phys(y)]
    }

    #[inline]
    pub(crate) fn meta_mut(&mut self, y: usize) -> &mut RowMeta {
        let p = self.phys(y);
        &mut self.meta[p]
    }

    /// The cells of a row that are not implied blanks.
    #[inline]
    pub(crate) fn row(&self, y: usize) -> &[Cell] {
        let p = self.phys(y);
        let start = p * self.cols;
        &self.cells[start..start + usize::from(self.meta[p].len)]
    }

    #[inline]
    pub(crate) fn cell(&self, y: usize, x: usize) -> Cell {
        self.row(y).get(x).copied().unwrap_or(Cell::BLANK)
    }

    /// The row's cells `0..upto` made real, and its meta data.
    #[inline]
    pub(crate) fn real(&mut self, y: usize, upto: usize) -> (&mut [Cell], &mut RowMeta) {
        let p = self.phys(y);
        let start = p * self.cols;
        let meta = &mut self.meta[p];
        let row = &mut self.cells[start..start + self.cols];
        let len = usize::from(meta.len);
        meta.rich = true;
        if len < upto {
            row[len..upto].fill(Cell::BLANK);
            meta.len = upto as u16;
        }
        (row, meta)
    }

    /// As [`Self::real`] for a write to `from..upto`, whose cells the caller sets itself.
    #[inline]
    pub(crate) fn span(&mut self, y: usize, from: usize, upto: usize) -> (&mut [Cell], &mut RowMeta) {
        let p = self.phys(y);
        let start = p * self.cols;
        let meta = &mut self.meta[p];
        let row = &mut self.cells[start..start + self.cols];
        let len = usize::from(meta.len);
        meta.rich = true;
        if len < upto {
            if len < from {
                row[len..from].fill(Cell::BLANK);
            }
            meta.len = upto as u16;
        }
        (row, meta)
    }

    /// Writes printable ASCII from `x` on.
    #[inline]
    pub(crate) fn write_ascii(&mut self, y: usize, x: usize, text: &[u8], style: StyleId, written: u64) {
        let p = self.phys(y);
        let start = p * self.cols;
        let meta = &mut self.meta[p];
        let row = &mut self.cells[start..start + self.cols];
        let len = usize::from(meta.len);
        let end = x + text.len();
        if len < x {
            row[len..x].fill(Cell::BLANK);
            meta.rich = true;
        }
        meta.rich |= style != StyleId(0);
        meta.len = len.max(end) as u16;
        meta.written = written;
        for (cell, &b) in row[x..end].iter_mut().zip(text) {
            *cell = Cell { text: u32::from(b), style };
        }
    }

    pub(crate) fn set(&mut self, y: usize, x: usize, cell: Cell) {
        let (row, meta) = self.span(y, x, x + 1);
        row[x] = cell;
        meta.wide |= cell.is_wide();
    }

    /// Before cells `x0..x1` are overwritten: the halves of wide characters that stick out become
    /// blanks.
    #[inline]
    pub(crate) fn split_wide(&mut self, y: usize, x0: usize, x1: usize) {
        if self.meta(y).wide {
            self.split_wide_slow(y, x0, x1);
        }
    }

    fn split_wide_slow(&mut self, y: usize, x0: usize, x1: usize) {
        let p = self.phys(y);
        let start = p * self.cols;
        let len = usize::from(self.meta[p].len);
        let row = &mut self.cells[start..start + len];
        if x0 > 0 && x0 < len && row[x0].is_tail() {
            row[x0 - 1] = row[x0 - 1].torn();
            row[x0] = row[x0].torn();
        }
        if x1 < len && row[x1].is_tail() {
            row[x1] = row[x1].torn();
            if x1 > 0 {
                row[x1 - 1] = row[x1 - 1].torn();
            }
        }
    }

    /// Fills `x0..x1` with blanks of a style; blanks of the default style up to the end cost
    /// nothing.
    #[inline]
    pub(crate) fn erase(&mut self, y: usize, x0: usize, x1: usize, style: StyleId, written: u64) {
        self.split_wide(y, x0, x1);
        let p = self.phys(y);
        let meta = &mut self.meta[p];
        meta.written = written;
        let len = usize::from(meta.len);
        if style == StyleId(0) {
            if x1 >= len {
                meta.len = len.min(x0) as u16;
                if x0 == 0 {
                    meta.wide = false;
                    meta.rich = false;
                }
                return;
            }
            let start = p * self.cols;
            self.cells[start + x0..start + x1].fill(Cell::BLANK);
            meta.rich = true;
        } else {
            let (row, _) = self.span(y, x0, x1);
            row[x0..x1].fill(Cell::blank(style));
        }
    }

    /// Makes the row a fresh one.
    #[inline]
    pub(crate) fn clear_row(&mut self, y: usize, style: StyleId, written: u64) {
        let p = self.phys(y);
        self.meta[p] = RowMeta { written, ..RowMeta::default() };
        if style != StyleId(0) {
            let start = p * self.cols;
            self.cells[start..start + self.cols].fill(Cell::blank(style));
            self.meta[p].len = self.cols as u16;
            self.meta[p].rich = true;
        }
    }

    /// Scrolls rows `top..=bottom` up by `n`; the rows that come in are blank.
    #[inline]
    pub(crate) fn scroll_up(&mut self, top: usize, bottom: usize, n: usize, style: StyleId, written: u64) {
        let n = n.min(bottom + 1 - top);
        if n == 1 {
            let first = self.order[top];
            self.order.copy_within(top + 1..=bottom, top);
            self.order[bottom] = first;
        } else {
            self.order[top..=bottom].rotate_left(n);
        }
        for y in bottom + 1 - n..=bottom {
            self.clear_row(y, style, written);
        }
    }

    /// Scrolls rows `top..=bottom` down by `n`.
    pub(crate) fn scroll_down(&mut self, top: usize, bottom: usize, n: usize, style: StyleId, written: u64) {
        let n = n.min(bottom + 1 - top);
        self.order[top..=bottom].rotate_right(n);
        for y in top..top + n {
            self.clear_row(y, style, written);
        }
    }

    /// Columns up to `right` changed by other means than writing. A row whose last column was
    /// changed so does not go on in the next one.
    pub(crate) fn edge_changed(&mut self, y: usize, right: usize) {
        if right + 1 >= self.cols {
            self.meta_mut(y).wrapped = false;
        }
    }

    /// A double-width row holds nothing beyond its half.
    #[inline]
    pub(crate) fn trim_double(&mut self, y: usize) {
        if self.meta(y).size != LineSize::Single {
            let half = (self.cols / 2).max(1);
            self.split_wide(y, half, self.cols);
            let meta = self.meta_mut(y);
            meta.len = meta.len.min(half as u16);
        }
    }

    /// Inserts `n` blanks at `x`; what passes `right` is lost.
    pub(crate) fn insert_cells(
        &mut self,
        y: usize,
        x: usize,
        right: usize,
        n: usize,
        style: StyleId,
        written: u64,
    ) {
        let n = n.min(right + 1 - x);
        self.split_wide(y, x, right + 1);
        self.edge_changed(y, right);
        let len = usize::from(self.meta(y).len);
        let upto =
            if style == StyleId(0) { (len + n).min(right + 1).max(len.min(right + 1)) } else { right + 1 };
        let (row, meta) = self.real(y, upto.max(len));
        meta.written = written;
        if upto > x {
            let n = n.min(upto - x);
            row.copy_within(x..upto - n, x + n);
            row[x..x + n].fill(Cell::blank(style));
        }
        // A wide character pushed half over the edge is gone.
        if right < usize::from(meta.len) && row[right].is_wide() {
            row[right] = row[right].torn();
        }
    }

    /// Deletes `n` cells at `x`; blanks come in at `right`.
    pub(crate) fn delete_cells(
        &mut self,
        y: usize,
        x: usize,
        right: usize,
        n: usize,
        style: StyleId,
        written: u64,
    ) {
        let n = n.min(right + 1 - x);
        self.split_wide(y, x, x + n);
        self.split_wide(y, x, right + 1);
        self.edge_changed(y, right);
        let (row, meta) = self.real(y, right + 1);
        meta.written = written;
        row.copy_within(x + n..right + 1, x);
        row[right + 1 - n..=right].fill(Cell::blank(style));
        if right + 1 >= usize::from(meta.len) && style == StyleId(0) {
            let mut len = usize::from(meta.len);
            while len > 0 && row[len - 1] == Cell::BLANK {
                len -= 1;
            }
            meta.len = len as u16;
        }
    }

    /// Copies cells `x0..=x1` of one row over the same columns of another.
    pub(crate) fn copy_span(&mut self, from: usize, to: usize, x0: usize, x1: usize, written: u64) {
        self.split_wide(to, x0, x1 + 1);
        self.split_wide(from, x0, x1 + 1);
        self.edge_changed(to, x1);
        self.real(from, x1 + 1);
        self.span(to, x0, x1 + 1);
        let wide = self.meta(from).wide;
        let (a, b) = (self.phys(from) * self.cols, self.phys(to) * self.cols);
        self.cells.copy_within(a + x0..=a + x1, b + x0);
        let meta = self.meta_mut(to);
        meta.wide |= wide;
        meta.written = written;
    }

    /// Makes a row's cells plain.
    pub(crate) fn forget_styles(&mut self, y: usize) {
        let p = self.phys(y);
        let start = p * self.cols;
        let len = usize::from(self.meta[p].len);
        self.cells[start..start + len].iter_mut().for_each(|c| c.style = StyleId(0));
    }

    /// All cells, for marking what is alive and for renumbering.
    pub(crate) fn each_mut(&mut self, mut f: impl FnMut(&mut Cell)) {
        for (p, meta) in self.meta.iter().enumerate() {
            let start = p * self.cols;
            for cell in &mut self.cells[start..start + usize::from(meta.len)] {
                f(cell);
            }
        }
    }

    /// Cuts or extends each row and the number of rows, keeping the upper left corner.
    pub(crate) fn resize_plain(&mut self, cols: usize, rows: usize, drop_top: usize) {
        let mut new = Self::new(cols, rows);
        for y in 0..rows.min(self.rows.saturating_sub(drop_top)) {
            let from = y + drop_top;
            let row = self.row(from);
            let keep = row.len().min(cols);
            let (to, meta) = new.real(y, 0);
            to[..keep].copy_from_slice(&row[..keep]);
            *meta = RowMeta { len: keep as u16, rich: true, ..*self.meta(from) };
            if keep > 0 && to[keep - 1].is_wide() {
                to[keep - 1] = to[keep - 1].torn();
            }
        }
        *self = new;
    }

    /// Puts a row's cells in place whole.
    pub(crate) fn put_row(&mut self, y: usize, cells: &[Cell], meta: RowMeta) {
        let (row, m) = self.real(y, 0);
        let n = cells.len().min(row.len());
        row[..n].copy_from_slice(&cells[..n]);
        *m = RowMeta { len: n as u16, wide: cells.iter().any(|c| c.is_wide()), rich: true, ..meta };
    }

    /// Panics when a half of a wide character is without the other.
    pub(crate) fn check(&self) {
        use crate::cell::{TAIL, WIDE};
        for y in 0..self.rows {
            let row = self.row(y);
            for (x, c) in row.iter().enumerate() {
                if c.text & WIDE != 0 {
                    assert!(self.meta(y).wide);
                    assert!(
                        row.get(x + 1).is_some_and(|t| t.text & TAIL != 0),
                        "lead without tail at {y},{x}"
                    );
                }
                if c.text & TAIL != 0 {
                    assert!(x > 0 && row[x - 1].text & WIDE != 0, "tail without lead at {y},{x}");
                }
            }
        }
    }
}
