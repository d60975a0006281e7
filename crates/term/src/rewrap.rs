//! Wrapping lines anew for another width, row by row, without holding more than about one row.

use crate::cell::{Cell, PAD};
use crate::grid::{LineSize, RowMeta};
use std::collections::VecDeque;

/// Takes rows of one width and gives rows of another.
#[derive(Debug)]
pub(crate) struct Rewrap {
    cols: usize,
    /// What is not given out yet of the line being read.
    cells: Vec<Cell>,
    /// Where those cells come from: how many of them, and that row's provenance and marks.
    sources: VecDeque<(usize, u64, u8)>,
    size: LineSize,
    open: bool,
    /// Cells of this line already given out.
    given: usize,
    /// Rows given out.
    rows: usize,
    /// A place to follow: cells from the line's start.
    wanted: Option<usize>,
    found: Option<(usize, usize)>,
}

impl Rewrap {
    pub(crate) fn new(cols: usize) -> Self {
        Self {
            cols,
            cells: Vec::new(),
            sources: VecDeque::new(),
            size: LineSize::Single,
            open: false,
            given: 0,
            rows: 0,
            wanted: None,
            found: None,
        }
    }

    /// Whether a line has begun that is not finished.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Counts rows from here on.
    pub(crate) fn restart_count(&mut self) {
        self.rows = 0;
    }

    /// Follows column `x` of the row that is pushed next.
    pub(crate) fn track(&mut self, x: usize) {
        self.wanted = Some(self.given + self.cells.len() + x);
    }

    /// Row (counted from the first one given out) and column of the place followed.
    pub(crate) fn tracked(&self) -> Option<(usize, usize)> {
        self.found
    }

    /// One row of `width` columns.
    pub(crate) fn push(
        &mut self,
        row: &[Cell],
        meta: &RowMeta,
        width: usize,
        emit: &mut impl FnMut(&[Cell], RowMeta),
    ) {
        if self.open && meta.size != LineSize::Single {
            self.finish(emit);
        }
        if !self.open {
            self.open = true;
            self.size = meta.size;
        }
        let mut row = row;
        if meta.wrapped {
            while let [rest @ .., last] = row
                && last.text & PAD != 0
            {
                row = rest;
            }
        } else {
            while let [rest @ .., Cell::BLANK] = row {
                row = rest;
            }
        }
        self.cells.extend_from_slice(row);
        let mut taken = row.len();
        if meta.wrapped && meta.size == LineSize::Single && row.len() + 1 < width {
            // Erased at its end after it had wrapped: the gap is part of the line.
            self.cells.resize(self.cells.len() + width - row.len(), Cell::BLANK);
            taken = width;
        }
        self.sources.push_back((taken, meta.written, meta.marks));
        let limit = if self.size == LineSize::Single { self.cols } else { (self.cols / 2).max(1) };
        while self.cells.len() > limit && self.size == LineSize::Single {
            self.give(limit, true, emit);
        }
        if !meta.wrapped || meta.size != LineSize::Single {
            self.finish(emit);
        }
    }

    /// Ends the line.
    pub(crate) fn finish(&mut self, emit: &mut impl FnMut(&[Cell], RowMeta)) {
        if self.open {
            self.give(self.cols, false, emit);
            self.open = false;
            self.cells.clear();
            self.sources.clear();
            self.given = 0;
        }
    }

    fn give(&mut self, limit: usize, wrapped: bool, emit: &mut impl FnMut(&[Cell], RowMeta)) {
        let mut n = self.cells.len().min(limit);
        let mut padded = false;
        if n > 1 && wrapped && self.cells[n - 1].is_wide() {
            n -= 1;
            padded = true;
        } else if n > 0 && self.cells[n - 1].is_wide() {
            // A single column cannot hold it.
            self.cells[n - 1] = self.cells[n - 1].torn();
            if let Some(tail) = self.cells.get_mut(n) {
                *tail = tail.torn();
            }
        }
        let (mut written, mut marks, mut left) = (0, 0, n);
        while let Some((count, w, m)) = self.sources.front_mut() {
            written = written.max(*w);
            marks |= std::mem::take(m);
            if *count > left {
                *count -= left;
                break;
            }
            left -= *count;
            self.sources.pop_front();
            if left == 0 && !self.sources.is_empty() && wrapped {
                break;
            }
        }
        if let Some(at) = self.wanted
            && (at < self.given + n || !wrapped)
        {
            self.found = Some((self.rows, at - self.given.min(at)));
            self.wanted = None;
        }
        let meta = RowMeta {
            written,
            wrapped,
            size: self.size,
            marks,
            len: 0,
            wide: false,
            rich: true,
            fresh: false,
        };
        if padded {
            let mut row = self.cells[..n].to_vec();
            row.push(Cell { text: PAD, style: crate::style::StyleId(0) });
            emit(&row, meta);
        } else {
            emit(&self.cells[..n], meta);
        }
        self.cells.drain(..n);
        self.given += n;
        self.rows += 1;
    }
}
