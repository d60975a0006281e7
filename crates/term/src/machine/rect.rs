//! Rectangles: copy, fill, erase, change attributes, checksum.

use super::Machine;
use crate::cell::Cell;
use crate::parser::Params;
use crate::style::{Attrs, Style, Underline};

/// An area of the screen, edges included.
#[derive(Clone, Copy, Debug)]
struct Area {
    top: usize,
    left: usize,
    bottom: usize,
    right: usize,
}

impl Machine {
    /// Four parameters as an area, relative to the margins in origin mode; `None` when it is empty.
    fn area(&self, p: &Params, at: usize) -> Option<Area> {
        let (y0, x0, y1, x1) = if self.modes.origin() {
            (self.top, self.left, self.bottom, self.right)
        } else {
            (0, 0, self.rows() - 1, self.cols() - 1)
        };
        let low = |i: usize, base: usize| base + usize::from(p.get(i)).max(1) - 1;
        let high = |i: usize, base: usize, end: usize| match p.get(i) {
            0 => end,
            n => (base + usize::from(n) - 1).min(end),
        };
        let area = Area {
            top: low(at, y0),
            left: low(at + 1, x0),
            bottom: high(at + 2, y0, y1),
            right: high(at + 3, x0, x1),
        };
        (area.top <= area.bottom && area.left <= area.right && area.top <= y1 && area.left <= x1)
            .then_some(area)
    }

    /// DECCRA.
    pub(super) fn copy_rectangle(&mut self, p: &Params) {
        let Some(from) = self.area(p, 0) else { return };
        let (y0, x0, y1, x1) = if self.modes.origin() {
            (self.top, self.left, self.bottom, self.right)
        } else {
            (0, 0, self.rows() - 1, self.cols() - 1)
        };
        let (top, left) = (y0 + p.or(5, 1) - 1, x0 + p.or(6, 1) - 1);
        if top > y1 || left > x1 {
            return;
        }
        let height = (from.bottom + 1 - from.top).min(y1 + 1 - top);
        let width = (from.right + 1 - from.left).min(x1 + 1 - left);
        let mut cells = Vec::with_capacity(width * height);
        for y in from.top..from.top + height {
            cells.extend((from.left..from.left + width).map(|x| self.grid.cell(y, x)));
        }
        for (i, line) in cells.chunks(width).enumerate() {
            let y = top + i;
            self.grid.split_wide(y, left, left + width);
            for (k, &cell) in line.iter().enumerate() {
                // Halves whose other half was not copied are blank.
                let torn = (cell.is_wide() && k + 1 == width) || (cell.is_tail() && k == 0);
                self.grid.set(y, left + k, if torn { cell.torn() } else { cell });
            }
            self.grid.meta_mut(y).written = self.now;
            self.grid.edge_changed(y, left + width - 1);
            self.grid.trim_double(y);
            self.dirty(y);
        }
    }

    /// DECFRA.
    pub(super) fn fill_rectangle(&mut self, p: &Params) {
        let ch = p.get(0);
        if !matches!(ch, 32..=126 | 160..=255) {
            return;
        }
        let Some(a) = self.area(p, 1) else { return };
        let c = if ch < 127 {
            self.charsets.g[usize::from(self.charsets.gl)].map(ch as u8)
        } else {
            char::from(ch as u8)
        };
        let cell = Cell { text: c as u32, style: self.pen_id() };
        for y in a.top..=a.bottom {
            self.grid.split_wide(y, a.left, a.right + 1);
            let now = self.now;
            let (row, meta) = self.grid.span(y, a.left, a.right + 1);
            row[a.left..=a.right].fill(cell);
            meta.written = now;
            self.grid.edge_changed(y, a.right);
            self.grid.trim_double(y);
            self.dirty(y);
        }
    }

    /// DECERA, and DECSERA when `selective`.
    pub(super) fn erase_rectangle(&mut self, p: &Params, selective: bool) {
        let Some(a) = self.area(p, 0) else { return };
        for y in a.top..=a.bottom {
            self.erase_span(y, a.left, a.right + 1, selective);
        }
    }

    /// DECCARA, and DECRARA when `toggle`.
    pub(super) fn change_attributes(&mut self, p: &Params, toggle: bool) {
        let Some(a) = self.area(p, 0) else { return };
        for y in a.top..=a.bottom {
            let (x0, x1) = if self.rect_exact {
                (a.left, a.right)
            } else {
                let first = if y == a.top { a.left } else { 0 };
                let last = if y == a.bottom { a.right } else { self.cols() - 1 };
                (first, last)
            };
            for x in x0..=x1 {
                let cell = self.grid.cell(y, x);
                let style = self.styles.get(cell.style);
                let style = if toggle { toggled(style, p) } else { Self::styled(style, p, 4) };
                let id = self.styles.intern(style);
                let cell = if cell.is_empty() && style != style.erased() { cell.torn() } else { cell };
                self.grid.set(y, x, Cell { style: id, ..cell });
            }
            self.grid.meta_mut(y).written = self.now;
            self.grid.trim_double(y);
            self.dirty(y);
        }
        if self.styles.wants_sweep() {
            self.sweep_styles();
        }
    }

    /// DECRQCRA: the negated sum of what the rectangle holds, as xterm computes it.
    pub(super) fn report_checksum(&mut self, p: &Params) {
        let id = p.get(0);
        let mut sum = 0u32;
        let mut blanks = 0u32;
        let mut first = true;
        if let Some(a) = self.area(p, 2) {
            for y in a.top..=a.bottom {
                for x in a.left..=a.right {
                    let cell = self.grid.cell(y, x);
                    if cell.is_empty() || cell.is_tail() {
                        continue;
                    }
                    let c = cell.char().map_or(0, u32::from);
                    let text: u32 = if cell.is_cluster() {
                        self.clusters.get(cell.value()).chars().map(u32::from).sum()
                    } else {
                        c
                    };
                    let s = self.styles.get(cell.style);
                    let looks = looks_sum(s);
                    if first || text != 0x20 || looks != 0 {
                        sum = sum.wrapping_add(blanks).wrapping_add(text).wrapping_add(looks);
                        blanks = 0;
                        first = false;
                    } else {
                        blanks = blanks.wrapping_add(text);
                    }
                }
            }
        }
        let sum = sum.wrapping_neg() & 0xffff;
        self.reply_dcs(&format!("{id}!~{sum:04X}"));
    }

    /// XTREPORTSGR: what all cells of a rectangle have in common.
    pub(super) fn report_common_style(&mut self, p: &Params) {
        let Some(a) = self.area(p, 0) else { return };
        let style = self.styles.get(self.grid.cell(a.top, a.left).style);
        let text = crate::paint::sgr_text(&style);
        self.reply_csi(&format!("{text}m"));
    }
}

fn looks_sum(s: Style) -> u32 {
    let bit = |on: bool, v: u32| if on { v } else { 0 };
    bit(s.attrs.contains(Attrs::PROTECTED), 0x4)
        + bit(s.attrs.contains(Attrs::CONCEAL), 0x8)
        + bit(s.underline != Underline::None, 0x10)
        + bit(s.attrs.contains(Attrs::INVERSE), 0x20)
        + bit(s.attrs.contains(Attrs::BLINK), 0x40)
        + bit(s.attrs.contains(Attrs::BOLD), 0x80)
}

/// DECRARA: the named attributes turned over.
fn toggled(style: Style, p: &Params) -> Style {
    let mut s = style;
    let mut flip = |a: Attrs| s.attrs.0 ^= a.0;
    let mut underline = false;
    let mut any = false;
    for i in 4..p.len() {
        any = true;
        match p.get(i) {
            0 => {
                flip(Attrs(Attrs::BOLD.0 | Attrs::BLINK.0 | Attrs::INVERSE.0));
                underline = !underline;
            }
            1 => flip(Attrs::BOLD),
            4 => underline = !underline,
            5 => flip(Attrs::BLINK),
            7 => flip(Attrs::INVERSE),
            8 => flip(Attrs::CONCEAL),
            _ => {}
        }
    }
    if !any {
        flip(Attrs(Attrs::BOLD.0 | Attrs::BLINK.0 | Attrs::INVERSE.0));
        underline = true;
    }
    if !s.attrs.contains(Attrs::BLINK) {
        s.attrs.set(Attrs::RAPID, false);
    }
    if underline {
        s.underline = if s.underline == Underline::None { Underline::Single } else { Underline::None };
    }
    s
}
