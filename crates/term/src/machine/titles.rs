//! Titles, their stack, and the window requests and reports of `CSI t`.

use super::Machine;
use crate::changes::Signal;
use crate::parser::Params;

/// Titles longer than this are cut.
const MAX_TITLE: usize = 4096;
const MAX_STACK: usize = 32;

impl Machine {
    /// The text of a program without control characters, bounded.
    pub(super) fn clean(text: &[u8], limit: usize) -> String {
        let text = String::from_utf8_lossy(text);
        let mut out: String = text.chars().filter(|c| !c.is_control()).collect();
        if out.len() > limit {
            let mut end = limit;
            while !out.is_char_boundary(end) {
                end -= 1;
            }
            out.truncate(end);
        }
        out
    }

    pub(super) fn set_title(&mut self, text: &[u8]) {
        self.title = Self::clean(text, MAX_TITLE);
        let title = self.title.clone();
        self.signal(Signal::Title(title));
    }

    pub(super) fn set_icon(&mut self, text: &[u8]) {
        self.icon = Self::clean(text, MAX_TITLE);
        let icon = self.icon.clone();
        self.signal(Signal::IconName(icon));
    }

    pub(super) fn window(&mut self, p: &Params) {
        let (rows, cols) = (self.size.rows, self.size.cols);
        let (w, h) = self.settings.cell_pixels;
        let (width, height) = (u32::from(cols) * u32::from(w), u32::from(rows) * u32::from(h));
        match p.get(0) {
            8 => self.signal(Signal::ResizeRequest { cols: p.get(2), rows: p.get(1) }),
            11 => self.reply_csi("1t"),
            13 => self.reply_csi("3;0;0t"),
            14 => self.reply_csi(&format!("4;{height};{width}t")),
            15 => self.reply_csi(&format!("5;{height};{width}t")),
            16 => self.reply_csi(&format!("6;{h};{w}t")),
            18 => self.reply_csi(&format!("8;{rows};{cols}t")),
            19 => self.reply_csi(&format!("9;{rows};{cols}t")),
            // 20 and 21 would report the titles: what the program wrote is never typed back at it.
            22 => self.push_title(p.get(1)),
            23 => self.pop_title(p.get(1)),
            n if n >= 24 => self.signal(Signal::ResizeRequest { cols: 0, rows: n }),
            _ => {}
        }
    }

    fn push_title(&mut self, what: u16) {
        if self.title_stack.len() >= MAX_STACK {
            self.title_stack.remove(0);
        }
        let icon = (what != 2).then(|| self.icon.clone());
        let title = (what != 1).then(|| self.title.clone());
        self.title_stack.push((icon, title));
    }

    fn pop_title(&mut self, what: u16) {
        let Some((icon, title)) = self.title_stack.pop() else { return };
        if let Some(icon) = icon.filter(|_| what != 2) {
            self.set_icon(icon.as_bytes());
        }
        if let Some(title) = title.filter(|_| what != 1) {
            self.set_title(title.as_bytes());
        }
    }
}
