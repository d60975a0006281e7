//! Control sequences: which one it is, and what its parameters default to.

use super::{CursorShape, Machine, sgr};
use crate::changes::Signal;
use crate::modes::Mode;
use crate::parser::Csi;
use crate::style::{Pen, Style};

impl Machine {
    #[inline]
    pub(super) fn control_sequence(&mut self, csi: &Csi) {
        let p = &csi.params;
        if csi.prefix != 0 || csi.inter != 0 {
            return self.marked_sequence(csi);
        }
        match csi.last {
            b'm' => self.sgr(p),
            b'H' | b'f' => self.go_origin(p.or(1, 1) - 1, p.or(0, 1) - 1),
            b'K' => self.erase_line(p.get(0), false),
            b'A' => self.up(p.or(0, 1)),
            b'B' => self.down(p.or(0, 1)),
            b'C' => self.forward(p.or(0, 1)),
            b'D' => self.back(p.or(0, 1)),
            b'G' | b'`' => self.go_column(p.or(0, 1) - 1),
            b'd' => self.go_row(p.or(0, 1) - 1),
            b'J' => self.erase_display(p.get(0), false),
            b'L' => self.insert_lines(p.or(0, 1)),
            b'M' => self.delete_lines(p.or(0, 1)),
            b'P' => self.delete_chars(p.or(0, 1)),
            b'X' => self.erase_chars(p.or(0, 1)),
            b'@' => self.insert_chars(p.or(0, 1)),
            _ => self.rarer_sequence(csi),
        }
    }

    fn rarer_sequence(&mut self, csi: &Csi) {
        let p = &csi.params;
        match csi.last {
            b'E' => {
                self.down(p.or(0, 1));
                self.carriage_return();
            }
            b'F' => {
                self.up(p.or(0, 1));
                self.carriage_return();
            }
            b'I' => self.tab(p.or(0, 1)),
            b'Z' => self.back_tab(p.or(0, 1)),
            b'S' => {
                self.scroll_up(p.or(0, 1));
                self.pos.pending = false;
            }
            // With more than one parameter it is highlight mouse tracking.
            b'T' if p.len() <= 1 => {
                self.scroll_down(p.or(0, 1));
                self.pos.pending = false;
            }
            b'^' => self.scroll_down(p.or(0, 1)),
            b'a' => self.relative(p.or(0, 1), 0),
            b'e' => self.relative(0, p.or(0, 1)),
            b'j' => self.back(p.or(0, 1)),
            b'k' => self.up(p.or(0, 1)),
            b'b' => self.repeat(p.or(0, 1)),
            b'c' if p.get(0) == 0 => self.device_attributes(),
            b'g' => self.clear_tabs(p.get(0)),
            b'h' => self.ansi_modes(p, true),
            b'l' => self.ansi_modes(p, false),
            b'n' => self.status_report(p.get(0)),
            b'r' => self.set_top_bottom(p.get(0), p.get(1)),
            b's' => {
                if self.has(Mode::Margins) {
                    self.set_left_right(p.get(0), p.get(1));
                } else if p.len() == 0 {
                    self.save_cursor();
                }
            }
            b'u' if p.len() == 0 => self.restore_cursor(),
            b't' => self.window(p),
            b'x' => self.terminal_parameters(p.get(0)),
            b'W' => match p.get(0) {
                0 => self.set_tab(),
                2 => self.clear_tabs(0),
                5 => self.clear_tabs(3),
                _ => {}
            },
            _ => {}
        }
    }

    /// HPR and VPR: relative, bounded by the screen or, in origin mode, by the margins.
    fn relative(&mut self, dx: usize, dy: usize) {
        let (x, y) = (self.pos.x + dx, self.pos.y + dy);
        if self.modes.origin() {
            self.go(x.min(self.right), y.min(self.bottom));
        } else {
            self.go(x, y);
        }
    }

    /// Sequences with a private prefix or an intermediate.
    fn marked_sequence(&mut self, csi: &Csi) {
        let p = &csi.params;
        let Ok(inter) = u8::try_from(csi.inter) else { return };
        match (csi.prefix, inter, csi.last) {
            (b'?', 0, b'h') => self.dec_modes(p, true),
            (b'?', 0, b'l') => self.dec_modes(p, false),
            (b'?', 0, b's') => self.save_modes(p),
            (b'?', 0, b'r') => self.restore_modes(p),
            (b'?', 0, b'J') => self.erase_display(p.get(0), true),
            (b'?', 0, b'K') => self.erase_line(p.get(0), true),
            (b'?', 0, b'n') => self.private_status_report(p),
            (b'?', 0, b'u') => self.report_kitty_keys(),
            (b'?', 0, b'm') => self.report_key_modifiers(p.get(0)),
            (b'?', 0, b'W') if p.get(0) == 5 => self.tabs = super::default_tabs(self.cols()),
            (b'>', 0, b'u') => self.push_kitty_keys(p.get(0)),
            (b'<', 0, b'u') => self.pop_kitty_keys(p.or(0, 1)),
            (b'=', 0, b'u') => self.set_kitty_keys(p.get(0), p.or(1, 1)),
            (b'>', 0, b'm') => self.key_modifiers(p),
            (b'>', 0, b'n') if p.get(0) == 4 => self.modes.modify_other_keys = 0,
            (b'>', 0, b'f') if p.get(0) == 4 => self.format_other_keys = p.get(1).min(1) as u8,
            (b'>', 0, b'c') if p.get(0) == 0 => self.secondary_attributes(),
            (b'=', 0, b'c') if p.get(0) == 0 => self.tertiary_attributes(),
            (b'>', 0, b'q') if p.get(0) == 0 => self.report_version(),
            (0, b'!', b'p') => self.soft_reset(),
            (0, b'"', b'p') => self.conformance_level(p.get(0), p.get(1)),
            (0, b'"', b'q') => self.protect(p.get(0)),
            (0, b'"', b'v') => self.report_displayed_extent(),
            (0, b' ', b'q') => self.cursor_style(p.get(0)),
            (0, b' ', b'@') => self.shift_region(p.or(0, 1), true),
            (0, b' ', b'A') => self.shift_region(p.or(0, 1), false),
            (0, b'\'', b'}') => self.insert_columns(p.or(0, 1)),
            (0, b'\'', b'~') => self.delete_columns(p.or(0, 1)),
            (0, b'$', b'p') => self.report_mode(p.get(0), false),
            (b'?', b'$', b'p') => self.report_mode(p.get(0), true),
            (0, b'$', b'r') => self.change_attributes(p, false),
            (0, b'$', b't') => self.change_attributes(p, true),
            (0, b'$', b'v') => self.copy_rectangle(p),
            (0, b'$', b'x') => self.fill_rectangle(p),
            (0, b'$', b'z') => self.erase_rectangle(p, false),
            (0, b'$', b'{') => self.erase_rectangle(p, true),
            (0, b'$', b'w') => self.report_presentation(p.get(0)),
            (0, b'$', b'|') => self.columns_request(p.get(0)),
            (0, b'*', b'|') => self.signal(Signal::ResizeRequest { cols: 0, rows: p.get(0) }),
            (0, b'$', b'}') => self.status_display = p.get(0),
            (0, b'*', b'x') => self.rect_exact = p.get(0) == 2,
            (0, b'*', b'y') => self.report_checksum(p),
            (0, b'#', b'{' | b'p') => self.push_pen(),
            (0, b'#', b'}' | b'q') => self.pop_pen(),
            (0, b'#', b'|') => self.report_common_style(p),
            (0, b'#', b'P') => self.push_colours(),
            (0, b'#', b'Q') => self.pop_colours(),
            (0, b'#', b'R') => self.report_colour_stack(),
            _ => {}
        }
    }

    fn shift_region(&mut self, n: usize, left: bool) {
        if self.in_margins() {
            self.shift_columns(self.left, n, left);
        }
    }

    /// DECSTBM.
    fn set_top_bottom(&mut self, top: u16, bottom: u16) {
        let rows = self.rows();
        let top = usize::from(top).max(1) - 1;
        let bottom = if bottom == 0 { rows } else { usize::from(bottom).min(rows) } - 1;
        if top < bottom {
            self.top = top;
            self.bottom = bottom;
            self.home();
        }
    }

    /// DECSLRM.
    fn set_left_right(&mut self, left: u16, right: u16) {
        let cols = self.cols();
        let left = usize::from(left).max(1) - 1;
        let right = if right == 0 { cols } else { usize::from(right).min(cols) } - 1;
        if left < right {
            self.left = left;
            self.right = right;
            self.home();
        }
    }

    /// DECSCUSR.
    fn cursor_style(&mut self, n: u16) {
        self.shape = match n {
            0 => CursorShape::Default,
            1 | 2 => CursorShape::Block,
            3 | 4 => CursorShape::Underline,
            5 | 6 => CursorShape::Bar,
            _ => return,
        };
        self.blink = n % 2 == 1;
        self.modes.set(Mode::BlinkCursor, self.blink);
    }

    /// DECSCL.
    fn conformance_level(&mut self, level: u16, bits: u16) {
        if (61..=65).contains(&level) {
            self.soft_reset();
            self.level = level as u8;
            self.eight_bit = level > 61 && bits != 1;
        }
    }

    /// XTPUSHSGR: all of the pen; which parts are named is of no use to a program that pops what it
    /// pushed.
    fn push_pen(&mut self) {
        if self.pen_stack.len() < 10 {
            self.pen_stack.push(self.pen);
        }
    }

    fn pop_pen(&mut self) {
        if let Some(pen) = self.pen_stack.pop() {
            self.pen = Pen { link: self.pen.link, ..pen };
            self.touch_pen();
        }
    }

    fn push_colours(&mut self) {
        if self.palette_stack.len() < 10 {
            self.palette_stack.push(self.palette.clone());
        }
    }

    fn pop_colours(&mut self) {
        if let Some(palette) = self.palette_stack.pop() {
            self.palette = palette;
            self.dirty_all();
        }
    }

    fn columns_request(&mut self, n: u16) {
        let cols = if n == 0 { 80 } else { n };
        if cols == 80 || cols == 132 {
            self.switch_columns(cols == 132);
        }
    }

    /// The pen with SGR parameters applied, for rectangles.
    pub(super) fn styled(base: Style, csi: &crate::parser::Params, from: usize) -> Style {
        let mut pen = Pen::from(base);
        sgr::apply(&mut pen, csi, from);
        pen.into()
    }
}
