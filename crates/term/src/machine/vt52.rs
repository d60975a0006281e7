//! VT52 mode: the escape sequences of a terminal from 1975.

use super::Machine;
use crate::charset::Charset;
use crate::modes::Mode;

impl Machine {
    pub(super) fn vt52_command(&mut self, last: u8, args: [u8; 2]) {
        match last {
            b'A' => self.up(1),
            b'B' => self.down(1),
            b'C' => self.forward(1),
            b'D' => self.go(self.pos.x.saturating_sub(1), self.pos.y),
            b'F' => self.vt52_set(Charset::Graphics),
            b'G' => self.vt52_set(Charset::Ascii),
            b'H' => self.go(0, 0),
            b'I' => self.reverse_index(),
            b'J' => self.erase_display(0, false),
            b'K' => self.erase_line(0, false),
            b'Y' => {
                let place = |b: u8| usize::from(b.saturating_sub(0x20));
                let (y, x) = (place(args[0]), place(args[1]));
                // A row outside the screen leaves the row alone.
                let y = if y < self.rows() { y } else { self.pos.y };
                self.go(x, y);
            }
            b'Z' => self.reply(b"\x1b/Z"),
            b'=' => self.modes.set(Mode::KeypadApplication, true),
            b'>' => self.modes.set(Mode::KeypadApplication, false),
            b'<' => self.set_vt52(false),
            _ => {}
        }
    }

    fn vt52_set(&mut self, set: Charset) {
        self.charsets.g[0] = set;
        self.charsets.gl = 0;
        self.update_print_path();
    }

    /// DECANM. Entering VT52 mode drops what a VT52 does not have.
    pub(super) fn set_vt52(&mut self, on: bool) {
        self.modes.set(Mode::Vt52, on);
        if on {
            self.charsets = crate::charset::Charsets::new();
            self.update_print_path();
            self.modes.set(Mode::Origin, false);
            self.modes.set(Mode::Margins, false);
            self.reset_margins();
        }
        self.parser_reset = true;
    }
}
