//! Setting and resetting modes, and the keyboard protocols.

use super::Machine;
use crate::changes::Signal;
use crate::grid::LineSize;
use crate::modes::{ANSI_MODES, DEC_MODES, Mode, MouseEncoding, MouseTracking};
use crate::parser::Params;

/// Depth of a kitty keyboard stack.
const KITTY_DEPTH: usize = 16;

impl Machine {
    pub(super) fn ansi_modes(&mut self, p: &Params, on: bool) {
        for n in p.iter() {
            if let Some(&(_, mode)) = ANSI_MODES.iter().find(|(m, _)| *m == n) {
                self.modes.set(mode, on);
            }
        }
        self.update_print_path();
    }

    pub(super) fn dec_modes(&mut self, p: &Params, on: bool) {
        for n in p.iter() {
            self.dec_mode(n, on);
        }
    }

    fn dec_mode(&mut self, n: u16, on: bool) {
        if let Some(tracking) = MouseTracking::from_number(n) {
            self.modes.mouse = if on { tracking } else { MouseTracking::Off };
            return;
        }
        if let Some(encoding) = MouseEncoding::from_number(n) {
            self.modes.mouse_encoding = if on { encoding } else { MouseEncoding::Bytes };
            return;
        }
        match n {
            2 => {
                if !on {
                    self.set_vt52(true);
                }
                return;
            }
            3 => {
                // Initialisation strings switch to 80 columns as a matter of form; that must not
                // clear the screen.
                let meant = on || self.has(Mode::Columns132) || self.has(Mode::Asked132);
                if self.has(Mode::Allow132) && meant {
                    self.switch_columns(on);
                }
                return;
            }
            47 => return self.switch_screen(on),
            1047 => {
                if !on && self.modes.alternate() {
                    self.erase_display(2, false);
                }
                return self.switch_screen(on);
            }
            1048 => {
                if on {
                    self.save_cursor()
                } else {
                    self.restore_cursor()
                }
                return;
            }
            1049 => {
                if on {
                    self.save_cursor();
                    if !self.modes.alternate() {
                        self.switch_screen(true);
                        self.erase_display(2, false);
                    }
                } else {
                    self.switch_screen(false);
                    self.restore_cursor();
                }
                return;
            }
            _ => {}
        }
        // Side margins came with level 4, keeping the screen through a column switch with level 5.
        if (n == 69 && self.level < 64) || (n == 95 && self.level < 65) {
            return;
        }
        let Some(&(_, mode)) = DEC_MODES.iter().find(|(m, _)| *m == n) else { return };
        let was = self.has(mode);
        self.modes.set(mode, on);
        match mode {
            Mode::Origin => self.home(),
            Mode::Reverse if was != on => self.dirty_all(),
            Mode::BlinkCursor => self.blink = on,
            Mode::Allow132 => self.modes.set(Mode::Asked132, on),
            Mode::Margins => {
                self.left = 0;
                self.right = self.cols() - 1;
                if on {
                    // On both screens: no row of double width exists while there are side margins.
                    for y in 0..self.rows() {
                        self.grid.meta_mut(y).size = LineSize::Single;
                        self.hidden.meta_mut(y).size = LineSize::Single;
                    }
                }
            }
            Mode::Synchronised if was != on => self.signal(Signal::Synchronised(on)),
            Mode::Paste if was != on => {
                let (row, col) = (self.absolute_row(self.pos.y), self.pos.x as u16);
                self.signal(Signal::BracketedPaste { on, row, col, offset: self.now.saturating_sub(1) });
            }
            Mode::ResizeReports if on => self.report_resize(),
            _ => {}
        }
    }

    /// Between the main (`false`) and the alternate screen. The cursor stays where it is.
    pub(super) fn switch_screen(&mut self, alternate: bool) {
        if self.modes.alternate() == alternate {
            return;
        }
        let depth = self.screen_index();
        self.kitty_current(depth);
        std::mem::swap(&mut self.grid, &mut self.hidden);
        self.modes.set(Mode::Alternate, alternate);
        self.modes.kitty = self.kitty_stacks[self.screen_index()].last().copied().unwrap_or(0);
        self.dirty_all();
        let end = self.row_end();
        if self.pos.x > end {
            self.pos.x = end;
        }
        self.pos.pending &= !self.grid.cell(self.pos.y, self.pos.x).is_empty();
        self.signal(Signal::Alternate(alternate));
    }

    /// Makes the flags in force the top of a screen's stack.
    fn kitty_current(&mut self, screen: usize) {
        let flags = self.modes.kitty;
        match self.kitty_stacks[screen].last_mut() {
            Some(top) => *top = flags,
            None if flags != 0 => self.kitty_stacks[screen].push(flags),
            None => {}
        }
    }

    pub(super) fn push_kitty_keys(&mut self, flags: u16) {
        let screen = self.screen_index();
        let stack = &mut self.kitty_stacks[screen];
        if stack.is_empty() {
            stack.push(self.modes.kitty);
        }
        if stack.len() > KITTY_DEPTH {
            stack.remove(1);
        }
        self.modes.kitty = (flags & 31) as u8;
        stack.push(self.modes.kitty);
    }

    pub(super) fn pop_kitty_keys(&mut self, n: usize) {
        let screen = self.screen_index();
        let stack = &mut self.kitty_stacks[screen];
        if n >= stack.len() {
            stack.clear();
        } else {
            stack.truncate(stack.len() - n);
        }
        if *stack == [0] {
            stack.clear();
        }
        self.modes.kitty = stack.last().copied().unwrap_or(0);
    }

    pub(super) fn set_kitty_keys(&mut self, flags: u16, how: usize) {
        let flags = (flags & 31) as u8;
        let now = self.modes.kitty;
        self.modes.kitty = match how {
            2 => now | flags,
            3 => now & !flags,
            _ => flags,
        };
        let screen = self.screen_index();
        self.kitty_current(screen);
    }

    /// XTMODKEYS; only modifyOtherKeys changes what is sent, the rest is remembered to be reported.
    pub(super) fn key_modifiers(&mut self, p: &Params) {
        if p.len() == 0 {
            self.modes.modify_other_keys = 0;
            self.modifier_resources = [None; 8];
            return;
        }
        let which = usize::from(p.get(0));
        if which == 4 {
            self.modes.modify_other_keys = p.get(1).min(3) as u8;
        } else if let Some(r) = self.modifier_resources.get_mut(which) {
            *r = p.opt(1);
        }
    }

    /// DECCOLM: clears, and changes the width where the model is allowed to.
    pub(super) fn switch_columns(&mut self, wide: bool) {
        let keep = self.has(Mode::KeepOnColumns);
        self.modes.set(Mode::Columns132, wide);
        let cols = if wide { 132 } else { 80 };
        self.signal(Signal::ResizeRequest { cols, rows: 0 });
        if self.settings.column_switch && cols <= self.settings.max_side {
            let rows = self.rows();
            self.grid.resize_plain(usize::from(cols), rows, 0);
            self.hidden.resize_plain(usize::from(cols), rows, 0);
            self.size.cols = cols;
            self.resize_tabs(usize::from(cols));
        }
        self.modes.set(Mode::Margins, false);
        self.reset_margins();
        if !keep {
            let was = std::mem::take(&mut self.protection);
            self.erase_display(2, false);
            self.protection = was;
        }
        self.go(0, 0);
        self.dirty_all();
    }

    pub(super) fn resize_tabs(&mut self, cols: usize) {
        let old = self.tabs.len();
        self.tabs.resize(cols, false);
        for x in old..cols {
            self.tabs[x] = x % 8 == 0;
        }
    }

    /// Whether a private mode is set; `None` for those that are unknown.
    pub(super) fn dec_mode_state(&self, n: u16) -> Option<bool> {
        if let Some(t) = MouseTracking::from_number(n) {
            return Some(self.modes.mouse == t);
        }
        if let Some(e) = MouseEncoding::from_number(n) {
            return Some(self.modes.mouse_encoding == e);
        }
        match n {
            2 => Some(!self.modes.vt52()),
            47 | 1047 | 1049 => Some(self.modes.alternate()),
            1048 => Some(self.saved[self.screen_index()].is_some()),
            _ => DEC_MODES.iter().find(|(m, _)| *m == n).map(|(_, mode)| self.has(*mode)),
        }
    }

    /// XTSAVE.
    pub(super) fn save_modes(&mut self, p: &Params) {
        for n in p.iter() {
            if let Some(on) = self.dec_mode_state(n) {
                self.saved_modes.retain(|(m, _)| *m != n);
                if self.saved_modes.len() < 256 {
                    self.saved_modes.push((n, on));
                }
            }
        }
    }

    /// XTRESTORE.
    pub(super) fn restore_modes(&mut self, p: &Params) {
        for n in p.iter() {
            if let Some(&(_, on)) = self.saved_modes.iter().find(|(m, _)| *m == n)
                && self.dec_mode_state(n) != Some(on)
            {
                self.dec_mode(n, on);
            }
        }
    }
}
