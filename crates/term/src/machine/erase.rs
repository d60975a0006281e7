//! Erasing: display, line and characters, plain and selective.

use super::{Machine, Protection};
use crate::cell::Cell;

impl Machine {
    /// Erases `x0..x1` of a row. `selective` leaves cells protected by DECSCA; plain erasure leaves
    /// those protected by SPA, while that is the protection in use.
    pub(super) fn erase_span(&mut self, y: usize, x0: usize, x1: usize, selective: bool) {
        if x0 >= x1 {
            return;
        }
        let style = self.erase_id();
        self.dirty(y);
        if x1 >= self.cols() {
            self.grid.meta_mut(y).wrapped = false;
        }
        let spare =
            if selective { self.protection != Protection::Iso } else { self.protection == Protection::Iso };
        if !spare {
            self.grid.erase(y, x0, x1, if selective { crate::style::StyleId(0) } else { style }, self.now);
            self.grid.trim_double(y);
            return;
        }
        for x in x0..x1.min(self.grid.row(y).len()) {
            let cell = self.grid.cell(y, x);
            if !self.is_protected(cell) {
                self.grid.split_wide(y, x, x + 1);
                // Selective erasure takes the character and leaves its looks.
                self.grid.set(y, x, if selective { cell.torn() } else { Cell::blank(style) });
                self.grid.meta_mut(y).written = self.now;
            }
        }
        if !selective {
            let len = self.grid.row(y).len();
            if len < x1 {
                self.grid.erase(y, len.max(x0), x1, style, self.now);
            }
        }
        self.grid.trim_double(y);
    }

    /// EL and DECSEL.
    pub(super) fn erase_line(&mut self, what: u16, selective: bool) {
        let (x, y, cols) = (self.pos.x, self.pos.y, self.cols());
        match what {
            0 => self.erase_span(y, x, cols, selective),
            1 => self.erase_span(y, 0, (x + 1).min(cols), selective),
            2 => self.erase_span(y, 0, cols, selective),
            _ => return,
        }
        self.pos.pending = false;
    }

    /// ED and DECSED.
    pub(super) fn erase_display(&mut self, what: u16, selective: bool) {
        let (x, y, cols, rows) = (self.pos.x, self.pos.y, self.cols(), self.rows());
        let whole = |m: &mut Self, y: usize| {
            m.erase_span(y, 0, cols, selective);
            if !selective {
                m.grid.meta_mut(y).size = crate::grid::LineSize::Single;
                m.grid.meta_mut(y).marks = 0;
            }
        };
        match what {
            0 => {
                if x == 0 {
                    whole(self, y)
                } else {
                    self.erase_span(y, x, cols, selective)
                }
                (y + 1..rows).for_each(|y| whole(self, y));
            }
            1 => {
                (0..y).for_each(|y| whole(self, y));
                self.erase_span(y, 0, (x + 1).min(cols), selective);
            }
            2 => (0..rows).for_each(|y| whole(self, y)),
            3 if !selective => {
                self.scrollback.clear();
                return;
            }
            _ => return,
        }
        self.pos.pending = false;
    }

    /// ECH.
    pub(super) fn erase_chars(&mut self, n: usize) {
        let (x, y) = (self.pos.x, self.pos.y);
        let x1 = (x + n).min(self.cols());
        self.erase_span(y, x, x1, false);
        self.pos.pending = false;
    }

    /// DECALN: the screen full of E, margins and origin back to normal.
    pub(super) fn alignment(&mut self) {
        self.reset_margins();
        self.modes.set(crate::modes::Mode::Origin, false);
        let cell = Cell { text: u32::from(b'E'), style: crate::style::StyleId(0) };
        for y in 0..self.rows() {
            self.grid.clear_row(y, crate::style::StyleId(0), self.now);
            let cols = self.cols();
            let (row, _) = self.grid.span(y, 0, cols);
            row.fill(cell);
        }
        self.dirty_all();
        self.go(0, 0);
    }
}
