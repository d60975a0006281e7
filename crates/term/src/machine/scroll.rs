//! Line feeds and scrolling, within the margins and into scrollback.

use super::Machine;
use crate::modes::Mode;
use crate::unicode::Joiner;

impl Machine {
    /// Whether the left and right margins are narrower than the screen.
    #[inline]
    fn has_side_margins(&self) -> bool {
        self.left > 0 || self.right + 1 < self.cols()
    }

    /// Whether the cursor is between the left and right margins.
    pub(super) fn in_side_margins(&self) -> bool {
        self.pos.x >= self.left && self.pos.x <= self.right
    }

    pub(super) fn in_margins(&self) -> bool {
        self.in_side_margins() && self.pos.y >= self.top && self.pos.y <= self.bottom
    }

    /// IND: down a line, scrolling at the bottom margin.
    #[inline]
    pub(super) fn index(&mut self) {
        if self.pos.y == self.bottom {
            if self.in_side_margins() {
                self.scroll_up(1);
            }
        } else if self.pos.y + 1 < self.rows() {
            self.pos.y += 1;
            self.clamp_to_row();
        }
    }

    /// RI: up a line, scrolling at the top margin.
    pub(super) fn reverse_index(&mut self) {
        self.pos.pending = false;
        if self.pos.y == self.top {
            if self.in_side_margins() {
                self.scroll_down(1);
            }
        } else if self.pos.y > 0 {
            self.pos.y -= 1;
            self.clamp_to_row();
        }
    }

    /// A double-width row is half as long.
    #[inline]
    fn clamp_to_row(&mut self) {
        let end = self.row_end();
        if self.pos.x > end {
            self.pos.x = end;
        }
    }

    /// Scrolls the region up; rows that leave the top of the main screen go to scrollback.
    #[inline]
    pub(super) fn scroll_up(&mut self, n: usize) {
        self.scroll_up_from(self.top, n, true);
    }

    pub(super) fn scroll_up_from(&mut self, top: usize, n: usize, keep: bool) {
        let style = self.erase_id();
        let bottom = self.bottom;
        let n = n.min(bottom + 1 - top);
        if n == 0 {
            return;
        }
        self.damage.insert_range(top..=bottom);
        if self.has_side_margins() {
            self.scroll_columns(top, n, true);
            return;
        }
        if keep && top == 0 && !self.modes.alternate() {
            for y in 0..n {
                if self.tracing {
                    self.lose_row(y);
                }
                let meta = *self.grid.meta(y);
                self.scrollback.push(self.grid.row(y), &meta, &self.styles, &self.clusters);
            }
        } else if top > 0 {
            // The row above no longer goes on in what followed it.
            self.grid.meta_mut(top - 1).wrapped = false;
            self.dirty(top - 1);
        }
        self.grid.scroll_up(top, bottom, n, style, self.now);
        if bottom + 1 < self.rows() && n <= bottom {
            self.grid.meta_mut(bottom).wrapped = false;
        }
    }

    #[inline]
    pub(super) fn scroll_down(&mut self, n: usize) {
        self.scroll_down_from(self.top, n);
    }

    pub(super) fn scroll_down_from(&mut self, top: usize, n: usize) {
        let style = self.erase_id();
        let bottom = self.bottom;
        let n = n.min(bottom + 1 - top);
        if n == 0 {
            return;
        }
        self.damage.insert_range(top..=bottom);
        if self.has_side_margins() {
            self.scroll_columns(top, n, false);
            return;
        }
        if top > 0 {
            self.grid.meta_mut(top - 1).wrapped = false;
            self.dirty(top - 1);
        }
        self.grid.scroll_down(top, bottom, n, style, self.now);
        self.grid.meta_mut(bottom).wrapped = false;
    }

    /// Whether each line feed and each wrap moves one row of the whole screen into scrollback, and
    /// does nothing else.
    pub(crate) fn scrolls_plainly(&self) -> bool {
        let rows = (self.top, self.bottom) == (0, self.rows() - 1);
        rows && !self.has_side_margins()
            && self.pos.y == self.bottom
            && self.plain_print
            && self.modes.has(Mode::Wrap)
            && !self.modes.alternate()
            && !self.has_double
            && !self.tracing
    }

    /// Puts the cursor where text that is left out would have left it on its row.
    pub(crate) fn jump_along(&mut self, x: usize, pending: bool) {
        self.pos.x = x;
        self.pos.pending = pending;
        self.joiner = Joiner::PLAIN;
    }

    /// Scrolls only the columns between the side margins.
    fn scroll_columns(&mut self, top: usize, n: usize, up: bool) {
        let style = self.erase_id();
        let (left, right, bottom, now) = (self.left, self.right, self.bottom, self.now);
        let height = bottom + 1 - top;
        for i in 0..height {
            let y = if up { top + i } else { bottom - i };
            if i + n < height {
                let from = if up { y + n } else { y - n };
                self.grid.copy_span(from, y, left, right, now);
            } else {
                self.grid.erase(y, left, right + 1, style, now);
            }
            self.grid.meta_mut(y).wrapped = false;
            self.grid.trim_double(y);
        }
    }

    /// IL.
    pub(super) fn insert_lines(&mut self, n: usize) {
        if self.in_margins() {
            self.scroll_down_from(self.pos.y, n);
            self.carriage_return();
        }
    }

    /// DL.
    pub(super) fn delete_lines(&mut self, n: usize) {
        if self.in_margins() {
            self.scroll_up_from(self.pos.y, n, false);
            self.carriage_return();
        }
    }

    /// SL (left) and SR: the whole region sideways; DECIC and DECDC from a column on.
    pub(super) fn shift_columns(&mut self, from: usize, n: usize, left: bool) {
        let style = self.erase_id();
        for y in self.top..=self.bottom {
            if left {
                self.grid.delete_cells(y, from, self.right, n, style, self.now);
            } else {
                self.grid.insert_cells(y, from, self.right, n, style, self.now);
            }
            self.grid.trim_double(y);
            self.dirty(y);
        }
        self.pos.pending = false;
    }

    /// DECBI: back a column, shifting at the left margin.
    pub(super) fn back_index(&mut self) {
        self.pos.pending = false;
        if self.pos.x == self.left && self.pos.y >= self.top && self.pos.y <= self.bottom {
            self.shift_columns(self.left, 1, false);
        } else if self.pos.x > 0 {
            self.pos.x -= 1;
        }
    }

    /// DECFI: forward a column, shifting at the right margin.
    pub(super) fn forward_index(&mut self) {
        self.pos.pending = false;
        if self.pos.x == self.right && self.pos.y >= self.top && self.pos.y <= self.bottom {
            self.shift_columns(self.left, 1, true);
        } else if self.pos.x + 1 < self.cols() {
            self.pos.x += 1;
        }
    }
}
