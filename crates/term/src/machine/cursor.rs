//! Moving the cursor, with margins, origin mode, tabs and reverse wrap.

use super::Machine;
use crate::modes::Mode;

impl Machine {
    /// Puts the cursor at a column and row of the screen.
    pub(super) fn go(&mut self, x: usize, y: usize) {
        self.pos.y = y.min(self.rows() - 1);
        self.pos.x = x.min(self.row_end());
        self.pos.pending = false;
    }

    /// CUP: 0-based, relative to the margins in origin mode.
    pub(super) fn go_origin(&mut self, x: usize, y: usize) {
        if self.modes.origin() {
            let x = (x + self.left).min(self.right);
            let y = (y + self.top).min(self.bottom);
            self.go(x, y);
        } else {
            self.go(x, y);
        }
    }

    pub(super) fn home(&mut self) {
        self.go_origin(0, 0);
    }

    /// HPA, CHA: the column alone.
    pub(super) fn go_column(&mut self, x: usize) {
        let x = if self.modes.origin() { (x + self.left).min(self.right) } else { x };
        self.go(x, self.pos.y);
    }

    /// VPA: the row alone.
    pub(super) fn go_row(&mut self, y: usize) {
        let y = if self.modes.origin() { (y + self.top).min(self.bottom) } else { y };
        self.go(self.pos.x, y);
    }

    pub(super) fn up(&mut self, n: usize) {
        let stop = if self.pos.y >= self.top { self.top } else { 0 };
        self.go(self.pos.x, self.pos.y.saturating_sub(n).max(stop));
    }

    pub(super) fn down(&mut self, n: usize) {
        let stop = if self.pos.y <= self.bottom { self.bottom } else { self.rows() - 1 };
        self.go(self.pos.x, (self.pos.y + n).min(stop));
    }

    pub(super) fn forward(&mut self, n: usize) {
        let stop = if self.pos.x <= self.right { self.right } else { self.cols() - 1 };
        self.go((self.pos.x + n).min(stop), self.pos.y);
    }

    /// CUB and BS.
    pub(super) fn back(&mut self, n: usize) {
        let wraps = self.modes.has(Mode::Wrap);
        let soft = wraps && self.modes.has(Mode::ReverseWrap);
        let any = wraps && self.modes.has(Mode::ReverseWrapAny);
        if !soft && !any {
            let stop = if self.pos.x >= self.left { self.left } else { 0 };
            self.go(self.pos.x.saturating_sub(n).max(stop), self.pos.y);
            return;
        }
        let mut n = n.min(self.cols() * self.rows());
        if self.pos.pending {
            // The cursor stands after the last column: the first step only takes that back.
            self.pos.pending = false;
            n -= 1;
        }
        let left = if self.pos.x < self.left { 0 } else { self.left };
        let (mut x, mut y) = (self.pos.x, self.pos.y);
        while n > 0 {
            if x > left {
                let step = n.min(x - left);
                x -= step;
                n -= step;
                continue;
            }
            if y == self.top {
                if !any {
                    break;
                }
                y = self.bottom;
            } else if y == 0 {
                // Above the region there is nothing to go to.
                break;
            } else if any || self.grid.meta(y - 1).wrapped {
                y -= 1;
            } else {
                break;
            }
            x = self.right;
            n -= 1;
        }
        self.go(x, y);
    }

    pub(super) fn carriage_return(&mut self) {
        let x = if self.modes.origin() || self.pos.x >= self.left { self.left } else { 0 };
        self.pos.x = x;
        self.pos.pending = false;
    }

    /// HT, n times.
    pub(super) fn tab(&mut self, n: usize) {
        if self.pos.pending && self.modes.has(Mode::MoreFix) && self.modes.has(Mode::Wrap) {
            self.pos.pending = false;
            self.carriage_return();
            self.index();
        }
        let stop = if self.pos.x <= self.right { self.right } else { self.row_end() };
        let stop = stop.min(self.row_end());
        let mut x = self.pos.x;
        for _ in 0..n.min(self.cols()) {
            if x >= stop {
                break;
            }
            x += 1;
            while x < stop && !self.tabs[x] {
                x += 1;
            }
        }
        if x != self.pos.x {
            self.pos.x = x.min(stop);
        }
    }

    /// CBT.
    pub(super) fn back_tab(&mut self, n: usize) {
        let stop = if self.modes.origin() { self.left } else { 0 };
        let mut x = self.pos.x;
        for _ in 0..n.min(self.cols()) {
            if x <= stop {
                break;
            }
            x -= 1;
            while x > stop && !self.tabs[x] {
                x -= 1;
            }
        }
        self.go(x, self.pos.y);
    }

    /// TBC.
    pub(super) fn clear_tabs(&mut self, what: u16) {
        match what {
            0 => self.tabs[self.pos.x] = false,
            3 => self.tabs.fill(false),
            _ => {}
        }
    }
}
