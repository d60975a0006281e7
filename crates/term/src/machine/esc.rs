//! Escape sequences without parameters.

use super::{Machine, Protection};
use crate::charset::Charset;
use crate::grid::LineSize;
use crate::modes::Mode;

impl Machine {
    pub(super) fn escape(&mut self, inter: u16, last: u8) {
        let [high, low] = inter.to_be_bytes();
        match (high, low, last) {
            (0, 0, b'7') => self.save_cursor(),
            (0, 0, b'8') => self.restore_cursor(),
            (0, 0, b'D') => self.line_feed(),
            (0, 0, b'E') => {
                self.carriage_return();
                self.line_feed();
            }
            (0, 0, b'H') => self.set_tab(),
            (0, 0, b'M') => self.reverse_index(),
            (0, 0, b'N') => self.single_shift(2),
            (0, 0, b'O') => self.single_shift(3),
            (0, 0, b'V') => self.guard(true),
            (0, 0, b'W') => self.guard(false),
            (0, 0, b'Z') => self.device_attributes(),
            (0, 0, b'c') => self.full_reset(),
            (0, 0, b'=') => self.modes.set(Mode::KeypadApplication, true),
            (0, 0, b'>') => self.modes.set(Mode::KeypadApplication, false),
            (0, 0, b'6') => self.back_index(),
            (0, 0, b'9') => self.forward_index(),
            (0, 0, b'n') => self.shift(2),
            (0, 0, b'o') => self.shift(3),
            (0, 0, b'~') => self.charsets.gr = 1,
            (0, 0, b'}') => self.charsets.gr = 2,
            (0, 0, b'|') => self.charsets.gr = 3,
            (0, b'#', b'3') => self.line_size(LineSize::DoubleTop),
            (0, b'#', b'4') => self.line_size(LineSize::DoubleBottom),
            (0, b'#', b'5') => self.line_size(LineSize::Single),
            (0, b'#', b'6') => self.line_size(LineSize::DoubleWidth),
            (0, b'#', b'8') => self.alignment(),
            (0, b' ', b'F') => self.eight_bit = false,
            (0, b' ', b'G') => self.eight_bit = true,
            (0, b'%', b'G') => self.set_utf8(true),
            (0, b'%', b'@') => self.set_utf8(false),
            (0, b'(' | b')' | b'*' | b'+', _) => self.designate(low - b'(', 0, last, false),
            (0, b'-' | b'.' | b'/', _) => self.designate(low - b'-' + 1, 0, last, true),
            (b'(' | b')' | b'*' | b'+', _, _) => self.designate(high - b'(', low, last, false),
            _ => {}
        }
    }

    fn designate(&mut self, g: u8, inter: u8, last: u8, big: bool) {
        // National sets are there only while DECNRCM is set.
        if let Some(set) = Charset::designated(inter, last, big)
            && (!set.is_national() || self.has(Mode::National))
        {
            self.charsets.g[usize::from(g & 3)] = set;
            self.update_print_path();
        }
    }

    pub(super) fn set_utf8(&mut self, on: bool) {
        self.utf8 = on;
        self.parser_reset = true;
    }

    fn line_size(&mut self, size: LineSize) {
        // Side margins and double-width lines exclude each other.
        if self.has(Mode::Margins) {
            return;
        }
        let y = self.pos.y;
        self.has_double |= size != LineSize::Single;
        if size != LineSize::Single && self.grid.meta(y).size == LineSize::Single {
            // What lies in the right half is lost.
            let half = (self.cols() / 2).max(1);
            self.grid.erase(y, half, self.cols(), crate::style::StyleId(0), self.now);
        }
        let now = self.now;
        let meta = self.grid.meta_mut(y);
        meta.size = size;
        meta.written = now;
        self.dirty(y);
        let end = self.row_end();
        if self.pos.x > end {
            self.pos.x = end;
        }
    }

    /// DECSCA.
    pub(super) fn protect(&mut self, what: u16) {
        self.pen.set(crate::style::Attrs::PROTECTED, what == 1);
        self.protection = Protection::Dec;
        self.touch_pen();
    }
}
