//! Resets: DECSTR (soft) and RIS (hard).

use super::{CursorShape, Machine, Pos, Protection, default_tabs};
use crate::changes::Signal;
use crate::charset::Charsets;
use crate::grid::Grid;
use crate::modes::Mode;
use crate::palette::Palette;
use crate::style::Pen;

impl Machine {
    pub(super) fn reset_margins(&mut self) {
        self.top = 0;
        self.bottom = self.rows() - 1;
        self.left = 0;
        self.right = self.cols() - 1;
    }

    /// DECSTR.
    pub(super) fn soft_reset(&mut self) {
        let wrap = self.settings_wrap();
        for (mode, on) in [
            (Mode::CursorVisible, true),
            (Mode::Insert, false),
            (Mode::Origin, false),
            (Mode::Wrap, wrap),
            (Mode::ReverseWrap, false),
            (Mode::ReverseWrapAny, false),
            (Mode::CursorKeys, false),
            (Mode::KeypadApplication, false),
            (Mode::KeyboardLocked, false),
            (Mode::National, false),
            (Mode::BlinkCursor, false),
            (Mode::Margins, false),
        ] {
            self.modes.set(mode, on);
        }
        self.reset_margins();
        self.pen = Pen::default();
        self.touch_pen();
        self.protection = Protection::Off;
        self.charsets = Charsets::new();
        self.update_print_path();
        self.saved = [None, None];
        self.shape = CursorShape::Default;
        self.blink = false;
        self.kitty_stacks = [Vec::new(), Vec::new()];
        self.modes.kitty = 0;
        self.modes.modify_other_keys = 0;
        self.modifier_resources[4] = None;
        self.rect_exact = false;
        self.pos.pending = false;
    }

    /// xterm's soft reset leaves wrapping on; a VT420's turned it off, which no program expects
    /// today.
    fn settings_wrap(&self) -> bool {
        true
    }

    /// RIS: as at power-on, scrollback kept.
    pub(super) fn full_reset(&mut self) {
        let was_alternate = self.modes.alternate();
        let (cols, rows) = (self.cols(), self.rows());
        let mut fresh = Grid::new(cols, rows);
        for y in 0..rows {
            fresh.meta_mut(y).written = self.now;
        }
        self.grid = fresh;
        self.hidden = Grid::new(cols, rows);
        self.soft_reset();
        self.initial_modes();
        self.pos = Pos::default();
        self.saved_modes.clear();
        self.tabs = default_tabs(cols);
        self.eight_bit = false;
        self.level = 65;
        self.title.clear();
        self.icon.clear();
        self.title_stack.clear();
        self.palette = Palette::default();
        self.palette_stack.clear();
        self.pen_stack.clear();
        self.status_display = 0;
        self.format_other_keys = 0;
        self.modifier_resources = [None; 8];
        self.last_char = None;
        self.utf8 = true;
        self.parser_reset = true;
        self.dirty_all();
        if was_alternate {
            self.signal(Signal::Alternate(false));
        }
        self.signal(Signal::Reset);
    }
}
