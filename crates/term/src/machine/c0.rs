//! C0 and C1 controls, and the parser's way into the machine.

use super::Machine;
use crate::changes::Signal;
use crate::modes::Mode;
use crate::parser::{Csi, Sink, StringKind};
use crate::unicode::Joiner;

impl Sink for Machine {
    #[inline]
    fn ascii(&mut self, run: &[u8], end: u64) {
        self.print_ascii(run, end);
    }

    #[inline]
    fn character(&mut self, c: char, end: u64) {
        self.now = end;
        if !self.utf8 {
            // 8-bit text goes through the set in GR.
            let byte = c as u32 as u8;
            let c = self.charsets.g[usize::from(self.charsets.gr)].map(byte & 0x7f);
            let c = if self.charsets.gr == 2 && self.charsets.g[2] == crate::charset::Charset::Ascii {
                char::from(byte)
            } else {
                c
            };
            self.print_char(c);
            return;
        }
        self.charsets.single = None;
        self.print_char(c);
    }

    #[inline]
    fn characters(&mut self, bytes: &[u8], base: u64) -> usize {
        self.print_utf8(bytes, base)
    }

    #[inline]
    fn sgr(&mut self, bytes: &[u8]) -> usize {
        self.quick_sgr(bytes)
    }

    #[inline]
    fn execute(&mut self, byte: u8, end: u64) {
        self.now = end;
        self.joiner = Joiner::NONE;
        self.last_char = None;
        match byte {
            0x0a..=0x0c => {
                if self.modes.newline() {
                    self.carriage_return();
                }
                self.line_feed();
            }
            0x0d => self.carriage_return(),
            0x08 => self.back(1),
            0x09 => self.tab(1),
            _ => self.rare_control(byte),
        }
    }

    fn esc(&mut self, inter: u16, last: u8, end: u64) -> bool {
        self.now = end;
        self.joiner = Joiner::NONE;
        self.last_char = None;
        self.escape(inter, last);
        self.check_pending();
        std::mem::take(&mut self.parser_reset)
    }

    #[inline]
    fn csi(&mut self, csi: &Csi, end: u64) -> bool {
        self.now = end;
        self.joiner = Joiner::NONE;
        self.control_sequence(csi);
        // REP repeats only what comes right before it.
        self.last_char = None;
        self.check_pending();
        std::mem::take(&mut self.parser_reset)
    }

    fn string(&mut self, kind: StringKind, head: &Csi, data: &[u8], bell: bool, overflow: bool, end: u64) {
        self.now = end;
        match kind {
            StringKind::Osc if !overflow => self.osc(data, bell),
            StringKind::Dcs => self.device_string(head, data, overflow),
            StringKind::Apc => self.apc(data),
            _ => {}
        }
    }

    fn vt52(&mut self, last: u8, args: [u8; 2], end: u64) -> bool {
        self.now = end;
        self.joiner = Joiner::NONE;
        self.vt52_command(last, args);
        std::mem::take(&mut self.parser_reset)
    }
}

impl Machine {
    /// LF, VT, FF and IND: down a line in the same column. A pending wrap is given up, as the
    /// cursor has moved.
    #[inline]
    pub(super) fn line_feed(&mut self) {
        self.pos.pending = false;
        self.index();
    }

    /// A wrap can only be pending after a character that is still there, and a row half as long may
    /// have been scrolled under the cursor.
    #[inline]
    fn check_pending(&mut self) {
        if self.has_double {
            self.pos.x = self.pos.x.min(self.row_end());
        }
        if self.pos.pending {
            self.pos.pending = !self.grid.cell(self.pos.y, self.pos.x).is_empty();
        }
    }

    fn rare_control(&mut self, byte: u8) {
        match byte {
            0x05 => self.answerback(),
            0x07 => self.signal(Signal::Bell),
            0x0e => self.shift(1),
            0x0f => self.shift(0),
            0x1a => {
                // SUB shows that something was lost.
                self.print_char('\u{2426}');
            }
            0x84 => self.line_feed(),
            0x85 => {
                self.carriage_return();
                self.line_feed();
            }
            0x88 => self.set_tab(),
            0x8d => self.reverse_index(),
            0x8e => self.single_shift(2),
            0x8f => self.single_shift(3),
            0x96 => self.guard(true),
            0x97 => self.guard(false),
            0x9a => self.device_attributes(),
            _ => {}
        }
    }

    /// Locking shift of GL.
    pub(super) fn shift(&mut self, g: u8) {
        self.charsets.gl = g;
        self.update_print_path();
    }

    pub(super) fn single_shift(&mut self, g: u8) {
        self.charsets.single = Some(g);
        self.update_print_path();
    }

    pub(super) fn set_tab(&mut self) {
        let x = self.pos.x;
        self.tabs[x] = true;
    }

    /// SPA and EPA: guarded text, ISO style.
    pub(super) fn guard(&mut self, on: bool) {
        self.protection = super::Protection::Iso;
        self.pen.set(crate::style::Attrs::PROTECTED, on);
        self.touch_pen();
    }

    /// Whether a mode is set; for the modules beside.
    pub(super) fn has(&self, mode: Mode) -> bool {
        self.modes.has(mode)
    }
}
