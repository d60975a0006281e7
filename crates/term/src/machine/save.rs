//! Saving and restoring the cursor with what belongs to it (DECSC, DECRC).

use super::{Machine, Pos};
use crate::charset::Charsets;
use crate::modes::Mode;
use crate::style::Pen;

/// What DECSC keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Saved {
    pub(crate) pos: Pos,
    pub(crate) pen: Pen,
    pub(crate) charsets: Charsets,
    pub(crate) origin: bool,
    pub(crate) wrap: bool,
}

impl Machine {
    pub(super) fn save_cursor(&mut self) {
        let saved = Saved {
            pos: self.pos,
            pen: Pen { link: 0, ..self.pen },
            charsets: Charsets { single: None, ..self.charsets },
            origin: self.modes.origin(),
            wrap: self.modes.wrap(),
        };
        let screen = self.screen_index();
        self.saved[screen] = Some(saved);
    }

    /// Without a save before, everything goes to its default.
    pub(super) fn restore_cursor(&mut self) {
        let screen = self.screen_index();
        let Some(saved) = self.saved[screen] else {
            self.modes.set(Mode::Origin, false);
            self.go(0, 0);
            self.pen = Pen { link: self.pen.link, ..Pen::default() };
            self.touch_pen();
            self.charsets = Charsets::new();
            self.update_print_path();
            return;
        };
        self.modes.set(Mode::Origin, saved.origin);
        self.pen = Pen { link: self.pen.link, ..saved.pen };
        self.touch_pen();
        self.charsets = saved.charsets;
        self.update_print_path();
        self.go(saved.pos.x, saved.pos.y);
        if self.modes.origin() {
            self.pos.x = self.pos.x.clamp(self.left, self.right);
            self.pos.y = self.pos.y.clamp(self.top, self.bottom);
        }
        // A wrap can only be pending after a character that is still there.
        let written = !self.grid.cell(self.pos.y, self.pos.x).is_empty();
        self.pos.pending = saved.pos.pending && written && self.pos.x == self.right_limit();
    }
}
