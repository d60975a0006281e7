//! Answers to the program's questions, as bytes for the host to deliver.
//!
//! Nothing that the program wrote is ever sent back to it: a title that was set cannot be asked
//! for, and unknown names are answered with the plain "no" that their protocol has.

use super::{CursorShape, MAX_REPLIES, Machine, Protection};
use crate::modes::ANSI_MODES;
use crate::parser::Params;
use crate::style::Attrs;

impl Machine {
    pub(super) fn reply(&mut self, bytes: &[u8]) {
        if self.settings.replies && self.replies.len() + bytes.len() <= MAX_REPLIES {
            self.replies.extend_from_slice(bytes);
        }
    }

    /// A reply that begins with CSI.
    pub(super) fn reply_csi(&mut self, body: &str) {
        self.reply(if self.eight_bit { b"\x9b" } else { b"\x1b[" });
        self.reply(body.as_bytes());
    }

    /// A reply in DCS … ST.
    pub(super) fn reply_dcs(&mut self, body: &str) {
        self.reply(if self.eight_bit { b"\x90" } else { b"\x1bP" });
        self.reply(body.as_bytes());
        self.reply(if self.eight_bit { b"\x9c" } else { b"\x1b\\" });
    }

    /// A reply in OSC, ended as the question was.
    pub(super) fn reply_osc(&mut self, body: &str, bell: bool) {
        self.reply(b"\x1b]");
        self.reply(body.as_bytes());
        self.reply(if bell { b"\x07" } else { b"\x1b\\" });
    }

    /// DA1: a VT420 with the extensions that are there: 132 columns, selective erase, national
    /// sets, technical set, horizontal scrolling, colour, rectangles.
    pub(super) fn device_attributes(&mut self) {
        if self.modes.vt52() {
            self.reply(b"\x1b/Z");
        } else {
            self.reply_csi("?64;1;6;9;15;21;22;28c");
        }
    }

    /// DA2: a VT420 of a version that programs take for a capable xterm.
    pub(super) fn secondary_attributes(&mut self) {
        self.reply_csi(">41;400;0c");
    }

    pub(super) fn tertiary_attributes(&mut self) {
        self.reply_dcs("!|54415044");
    }

    pub(super) fn report_version(&mut self) {
        let text = format!(">|{}", self.settings.version);
        self.reply_dcs(&text);
    }

    /// ENQ: no answerback message is set.
    pub(super) fn answerback(&mut self) {}

    /// The cursor as the program addresses it, 1-based.
    fn reported_position(&self) -> (usize, usize) {
        if self.modes.origin() {
            (self.pos.y.saturating_sub(self.top) + 1, self.pos.x.saturating_sub(self.left) + 1)
        } else {
            (self.pos.y + 1, self.pos.x + 1)
        }
    }

    pub(super) fn status_report(&mut self, what: u16) {
        match what {
            5 => self.reply_csi("0n"),
            6 => {
                let (row, col) = self.reported_position();
                self.reply_csi(&format!("{row};{col}R"));
            }
            _ => {}
        }
    }

    pub(super) fn private_status_report(&mut self, p: &Params) {
        match p.get(0) {
            6 => {
                let (row, col) = self.reported_position();
                self.reply_csi(&format!("?{row};{col};1R"));
            }
            15 => self.reply_csi("?13n"),
            25 => self.reply_csi("?20n"),
            26 => self.reply_csi("?27;1;0;0n"),
            53 | 55 => self.reply_csi("?50n"),
            56 => self.reply_csi("?57;0n"),
            62 => self.reply_csi("0*{"),
            63 => {
                let id = p.get(1);
                self.reply_dcs(&format!("{id}!~0000"));
            }
            75 => self.reply_csi("?70n"),
            85 => self.reply_csi("?83n"),
            996 => self.report_scheme(),
            _ => {}
        }
    }

    pub(crate) fn report_scheme(&mut self) {
        self.reply_csi(if self.settings.dark { "?997;1n" } else { "?997;2n" });
    }

    /// Mode 2048: the size in band.
    pub(crate) fn report_resize(&mut self) {
        let (w, h) = self.settings.cell_pixels;
        let (rows, cols) = (self.size.rows, self.size.cols);
        let (height, width) = (u32::from(rows) * u32::from(h), u32::from(cols) * u32::from(w));
        self.reply_csi(&format!("48;{rows};{cols};{height};{width}t"));
    }

    /// DECRQM.
    pub(super) fn report_mode(&mut self, n: u16, private: bool) {
        // Below level 3 there is no such request.
        if self.level < 63 {
            return;
        }
        let code = |on: bool| if on { 1 } else { 2 };
        let (state, mark) = if private {
            let state = match n {
                // Known, and never to be changed.
                60 => Some(4),
                8 | 1036 if self.dec_mode_state(n) == Some(true) => Some(1),
                14
                | 13
                | 30
                | 35
                | 38
                | 1010
                | 1011
                | 1035
                | 1037
                | 1039
                | 1040..=1044
                | 1046
                | 1050..=1053 => None,
                _ => self.dec_mode_state(n).map(code),
            };
            (state, "?")
        } else {
            let known = ANSI_MODES.iter().find(|(m, _)| *m == n).map(|(_, mode)| code(self.has(*mode)));
            let fixed = matches!(n, 1 | 3 | 5 | 7 | 10 | 11 | 13..=19).then_some(4);
            (known.or(fixed), "")
        };
        let state = state.unwrap_or(0);
        self.reply_csi(&format!("{mark}{n};{state}$y"));
    }

    pub(super) fn report_kitty_keys(&mut self) {
        let flags = self.modes.kitty;
        self.reply_csi(&format!("?{flags}u"));
    }

    /// XTQMODKEYS.
    pub(super) fn report_key_modifiers(&mut self, which: u16) {
        let value = if which == 4 {
            Some(u16::from(self.modes.modify_other_keys))
        } else {
            self.modifier_resources.get(usize::from(which)).copied().map(|v| v.unwrap_or(0))
        };
        if let Some(v) = value {
            self.reply_csi(&format!(">{which};{v}m"));
        }
    }

    /// DECREQTPARM.
    pub(super) fn terminal_parameters(&mut self, what: u16) {
        if what < 2 {
            let n = what + 2;
            self.reply_csi(&format!("{n};1;1;128;128;1;0x"));
        }
    }

    /// DECRQDE.
    pub(super) fn report_displayed_extent(&mut self) {
        let (rows, cols) = (self.rows(), self.cols());
        self.reply_csi(&format!("{rows};{cols};1;1;1\"w"));
    }

    /// DECRQPSR: cursor information or tab stops.
    pub(super) fn report_presentation(&mut self, what: u16) {
        match what {
            1 => {
                let (row, col) = self.reported_position();
                let a = crate::style::Style::from(self.pen).attrs;
                let bit = |on: bool, v: u8| if on { v } else { 0 };
                let underlined = self.pen.looks >> 16 != 0;
                let looks = char::from(
                    0x40 + bit(a.contains(Attrs::BOLD), 1)
                        + bit(underlined, 2)
                        + bit(a.contains(Attrs::BLINK), 4)
                        + bit(a.contains(Attrs::INVERSE), 8),
                );
                let protected = char::from(0x40 + bit(a.contains(Attrs::PROTECTED), 1));
                let single = self.charsets.single;
                let flags = char::from(
                    0x40 + bit(self.modes.origin(), 1)
                        + bit(single == Some(2), 2)
                        + bit(single == Some(3), 4)
                        + bit(self.pos.pending, 8),
                );
                let sizes: u8 = (0..4).map(|i| bit(self.charsets.g[i].designation().1, 1 << i)).sum();
                let sets: String = self.charsets.g.iter().map(|g| g.designation().0).collect();
                let (gl, gr) = (self.charsets.gl, self.charsets.gr);
                let sizes = char::from(0x40 + sizes);
                self.reply_dcs(&format!(
                    "1$u{row};{col};1;{looks};{protected};{flags};{gl};{gr};{sizes};{sets}"
                ));
            }
            2 => {
                let stops: Vec<String> = self
                    .tabs
                    .iter()
                    .enumerate()
                    .filter(|(_, on)| **on)
                    .map(|(x, _)| (x + 1).to_string())
                    .collect();
                let stops = stops.join("/");
                self.reply_dcs(&format!("2$u{stops}"));
            }
            _ => {}
        }
    }

    pub(super) fn report_colour_stack(&mut self) {
        let n = self.palette_stack.len();
        self.reply_csi(&format!("{n};{n}#Q"));
    }

    /// DECRQSS: the sequence that would set what is set now.
    pub(super) fn report_setting(&mut self, what: &[u8]) {
        let (top, bottom, left, right) = (self.top + 1, self.bottom + 1, self.left + 1, self.right + 1);
        let answer = match what {
            b"m" => {
                let text = crate::paint::sgr_text(&self.pen.into());
                format!("{text}m")
            }
            b"r" => format!("{top};{bottom}r"),
            b"s" => format!("{left};{right}s"),
            b"t" => format!("{}t", self.rows()),
            b"\"p" => format!("{};{}\"p", self.level, if self.eight_bit { 0 } else { 1 }),
            b"\"q" => {
                let on = self.pen.has(Attrs::PROTECTED) && self.protection == Protection::Dec;
                format!("{}\"q", u8::from(on))
            }
            b" q" => format!("{} q", self.cursor_style_number()),
            b"$|" => format!("{}$|", self.cols()),
            b"*|" => format!("{}*|", self.rows()),
            b"*x" => format!("{}*x", if self.rect_exact { 2 } else { 1 }),
            b"$}" => format!("{}$}}", self.status_display),
            b"$~" => "0$~".to_owned(),
            b">4m" | b">m" => format!(">4;{}m", self.modes.modify_other_keys),
            _ => {
                self.reply_dcs("0$r");
                return;
            }
        };
        self.reply_dcs(&format!("1$r{answer}"));
    }

    /// The number that DECSCUSR would be given.
    pub(crate) fn cursor_style_number(&self) -> u8 {
        let steady = u8::from(!self.blink);
        match self.shape {
            CursorShape::Default => 0,
            CursorShape::Block => 1 + steady,
            CursorShape::Underline => 3 + steady,
            CursorShape::Bar => 5 + steady,
        }
    }
}
