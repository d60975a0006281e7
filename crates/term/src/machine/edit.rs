//! Inserting and deleting characters and columns.

use super::Machine;

impl Machine {
    /// ICH.
    pub(super) fn insert_chars(&mut self, n: usize) {
        self.pos.pending = false;
        if !self.in_side_margins() {
            return;
        }
        let style = self.erase_id();
        let (x, y) = (self.pos.x, self.pos.y);
        let right = self.right.min(self.row_end());
        self.grid.insert_cells(y, x, right, n, style, self.now);
        self.dirty(y);
    }

    /// DCH.
    pub(super) fn delete_chars(&mut self, n: usize) {
        self.pos.pending = false;
        if !self.in_side_margins() {
            return;
        }
        let style = self.erase_id();
        let (x, y) = (self.pos.x, self.pos.y);
        let right = self.right.min(self.row_end());
        self.grid.delete_cells(y, x, right, n, style, self.now);
        self.dirty(y);
    }

    /// DECIC.
    pub(super) fn insert_columns(&mut self, n: usize) {
        if self.in_margins() {
            self.shift_columns(self.pos.x, n, false);
        }
    }

    /// DECDC.
    pub(super) fn delete_columns(&mut self, n: usize) {
        if self.in_margins() {
            self.shift_columns(self.pos.x, n, true);
        }
    }
}
