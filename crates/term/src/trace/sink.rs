//! The tokens of the stream on their way to the model: before each that takes text away, that text
//! is handed over.

use super::{PROTECTED, SINGLE, State, Witness, public};
use crate::machine::Machine;
use crate::modes::Mode;
use crate::parser::{Csi, Sink, StringKind};
use crate::style::{Attrs, StyleId};

/// Text as it was sent is kept up to this length.
const RUN: usize = 64 << 10;

/// The model with its state, and the witness that is told.
pub(super) struct Trace<'a, W> {
    pub(super) m: &'a mut Machine,
    pub(super) s: &'a mut State,
    pub(super) w: &'a mut W,
    /// The bytes being read, and the offset of the first.
    pub(super) bytes: &'a [u8],
    pub(super) base: u64,
}

impl<W: Witness> Trace<'_, W> {
    /// The model prints with this trace.
    fn pen(&mut self, trace: u32) {
        self.m.set_trace(if trace == 0 || !self.m.pen.has(Attrs::PROTECTED) {
            trace
        } else {
            trace | PROTECTED
        });
    }

    /// Before cells are erased.
    fn before(&mut self, y: usize, x0: usize, x1: usize) {
        if self.m.grid.meta(y).fresh && self.text_at(y, x0, x1).is_some() {
            self.s.lines(self.m, y..y + 1, self.w);
        }
    }

    /// The first of these columns that holds something which would be missed.
    fn text_at(&self, y: usize, x0: usize, x1: usize) -> Option<usize> {
        let row = self.m.grid.row(y);
        let cells = row.get(x0..x1.min(row.len()))?;
        cells.iter().position(|c| c.text & !0x20 != 0).map(|i| x0 + i)
    }

    /// Before text is written over: once for each row that a stretch of text runs over, so that it
    /// makes no difference in which pieces the text comes.
    fn cover(&mut self, y: usize) {
        if self.s.covered != Some(y) {
            self.s.lines(self.m, y..y + 1, self.w);
            self.s.covered = Some(y);
        }
    }

    /// Before the screen scrolls up by one at the cursor. Rows that leave the main screen come by
    /// themselves.
    fn before_line_feed(&mut self) {
        let m = &mut *self.m;
        if m.pos.y != m.bottom {
            return;
        }
        let full = m.left == 0 && m.right + 1 >= m.cols();
        if !full {
            self.all();
        } else if m.top > 0 || m.modes.alternate() {
            let top = m.top;
            self.s.lines(m, top..top + 1, self.w);
        }
    }

    /// Hands over everything new on the screen shown.
    fn all(&mut self) {
        let rows = self.m.rows();
        self.s.lines(self.m, 0..rows, self.w);
    }

    /// Every row may have another text now.
    fn touch_all(&mut self) {
        for y in 0..self.m.rows() {
            if !self.m.grid.row(y).is_empty() {
                State::touch(&mut self.m.grid, y);
            }
        }
    }

    fn touch(&mut self, y: usize) {
        State::touch(&mut self.m.grid, y);
    }

    fn end_run(&mut self) {
        if !self.s.run.is_empty() || self.s.covered.is_some() {
            self.s.end_run(self.w);
        }
    }

    fn lost(&mut self) {
        if !self.m.lost.is_empty() {
            self.s.lost(self.m, self.w);
        }
    }

    /// Notes text as it was sent.
    fn sent(&mut self, mut bytes: &[u8], mut at: u64) {
        loop {
            let n = bytes.len().min(RUN - self.s.run.len());
            // What follows the last piece in the stream as well is part of it.
            let goes_on = self
                .s
                .pieces
                .last()
                .is_some_and(|(from, start)| from + (self.s.run.len() - start) as u64 == at);
            if !goes_on {
                self.s.pieces.push((at, self.s.run.len()));
            }
            self.s.run.extend_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            at += n as u64;
            if bytes.is_empty() {
                return;
            }
            let (odd, covered) = (self.s.odd, self.s.covered);
            self.s.end_run(self.w);
            (self.s.odd, self.s.covered) = (odd, covered);
        }
    }

    /// One character, through everything that may happen to it: wraps, insertion, character sets.
    fn careful(&mut self, trace: u32, print: impl FnOnce(&mut Machine)) {
        let wraps = self.m.modes.has(Mode::Wrap);
        self.s.odd |= self.m.pos.pending && !wraps;
        if wraps {
            self.before_line_feed();
        }
        let from = self.m.pos;
        let next = (from.y + 1).min(self.m.rows() - 1);
        let (y, x) = if from.pending && wraps { (next, 0) } else { (from.y, from.x) };
        // Insertion shifts the row; wide and joined characters reach beyond their cell.
        let (x0, x1) = if self.m.modes.insert() { (0, usize::MAX) } else { (x, x + 2) };
        // A wrap at the bottom brings in a blank row.
        let scrolls = from.pending && wraps && from.y == self.m.bottom;
        if !scrolls && self.text_at(y, x0, x1).is_some() {
            if self.m.modes.insert() {
                self.s.lines(self.m, y..y + 1, self.w);
            } else {
                self.cover(y);
            }
        }
        self.pen(trace);
        print(self.m);
        self.s.last = trace;
        self.lost();
        let y = self.m.pos.y;
        if y != from.y || from.pending {
            // Two rows have become one line.
            self.m.grid.meta_mut(y).fresh = false;
        }
        self.touch(y);
    }
}

impl<W: Witness> Sink for Trace<'_, W> {
    fn ascii(&mut self, run: &[u8], end: u64) {
        let start = end - run.len() as u64;
        self.sent(run, start);
        self.s.odd |= !self.m.charsets.is_plain();
        let mut done = 0;
        while done < run.len() {
            let room = self.m.plain_room();
            let at = start + done as u64;
            if room == 0 {
                let trace = self.s.trace(at) | SINGLE;
                let one = &run[done..=done];
                self.careful(trace, |m| m.ascii(one, at + 1));
                done += 1;
                continue;
            }
            let n = room.min(run.len() - done);
            let piece = &run[done..done + n];
            let (x, y) = (self.m.pos.x, self.m.pos.y);
            let n = match self.text_at(y, x, x + n) {
                Some(over) if over == x => {
                    self.cover(y);
                    n
                }
                Some(over) if self.s.covered != Some(y) => over - x,
                _ => n,
            };
            let piece = &piece[..n];
            // Before it is printed: the last column may cut the line in two.
            if !self.m.grid.meta(y).fresh {
                self.touch(y);
            }
            self.pen(0);
            self.m.ascii(piece, at + n as u64);
            let mut trace = self.s.trace(at) | SINGLE;
            if self.m.pen.has(Attrs::PROTECTED) {
                trace |= PROTECTED;
            }
            let (row, _) = self.m.grid.span(y, x, x + n);
            for cell in &mut row[x..x + n] {
                cell.style = StyleId(trace);
                trace += 1;
            }
            self.s.last = trace - 1;
            done += n;
        }
    }

    fn character(&mut self, c: char, end: u64) {
        let single = !self.m.utf8;
        // What stands for bytes that are no character has no place to point to.
        let len = if single { 1 } else { c.len_utf8() as u64 };
        let at = end.saturating_sub(len);
        let trace = match c {
            char::REPLACEMENT_CHARACTER => 0,
            _ if single => self.s.trace(at) | SINGLE,
            _ => self.s.trace(at),
        };
        if trace != 0 && !single {
            self.sent(c.encode_utf8(&mut [0; 4]).as_bytes(), at);
        }
        self.careful(trace, |m| m.character(c, end));
    }

    fn sgr(&mut self, bytes: &[u8]) -> usize {
        self.m.sgr(bytes)
    }

    fn execute(&mut self, byte: u8, end: u64) {
        self.end_run();
        match byte {
            0x0a..=0x0c | 0x84 | 0x85 => self.before_line_feed(),
            0x8d => self.all(),
            _ => {}
        }
        self.m.execute(byte, end);
        self.lost();
    }

    fn esc(&mut self, inter: u16, last: u8, end: u64) -> bool {
        self.end_run();
        match (inter, last) {
            (0, b'D' | b'E') => self.before_line_feed(),
            (0, b'M') => self.all(),
            // Cursor, modes of keys, character sets, tab stops, shifts.
            (
                0,
                b'7' | b'8' | b'=' | b'>' | b'H' | b'N' | b'O' | b'\\' | b'n' | b'o' | b'|' | b'}' | b'~',
            )
            | (1.., b'0'..=b'2' | b'A'..=b'Z') => {}
            _ => self.s.settle(self.m, self.w),
        }
        self.pen(0);
        let again = self.m.esc(inter, last, end);
        self.lost();
        if (inter, last) == (0, b'6') || (inter, last) == (0, b'9') {
            self.touch_all();
        }
        again
    }

    fn csi(&mut self, csi: &Csi, end: u64) -> bool {
        let (y, rows) = (self.m.pos.y, self.m.rows());
        if (csi.prefix, csi.inter, csi.last) != (0, 0, b'm') {
            self.end_run();
        }
        let mut after = 0..0;
        self.pen(0);
        match (csi.prefix, csi.inter, csi.last) {
            (0 | b'?', 0, b'K') => {
                let (x0, x1) =
                    if csi.params.get(0) == 0 { (self.m.pos.x, usize::MAX) } else { (0, usize::MAX) };
                self.before(y, x0.saturating_sub(1), x1);
            }
            (0 | b'?', 0, b'J') => match csi.params.get(0) {
                0 => {
                    self.before(y, self.m.pos.x.saturating_sub(1), usize::MAX);
                    self.s.lines(self.m, (y + 1).min(rows)..rows, self.w);
                }
                _ => self.all(),
            },
            (0, 0, b'X') => self.before(y, 0, usize::MAX),
            (0, 0, b'P' | b'@') => {
                self.before(y, 0, usize::MAX);
                after = y..y + 1;
            }
            (0, 0, b'L' | b'M' | b'S' | b'T' | b'^') => self.all(),
            (0, 0, b'b') => {
                self.all();
                self.pen(self.s.last);
                after = 0..rows;
            }
            (0 | b'?', 0, b'h' | b'l') => {
                if csi.params.iter().any(|p| matches!(p, 2 | 3 | 47 | 69 | 1047..=1049)) {
                    self.s.settle(self.m, self.w);
                }
            }
            // Looks alone, which are not kept here.
            (0, 0x24, b'r' | b't') => return false,
            (0, 0x24, b'p') | (_, 0, _) | (0, 0x20, b'q') => {}
            _ => {
                self.s.settle(self.m, self.w);
                after = 0..rows;
            }
        }
        let again = self.m.csi(csi, end);
        self.lost();
        for y in after.start..after.end.min(self.m.rows()) {
            if !self.m.grid.row(y).is_empty() {
                self.touch(y);
            }
        }
        again
    }

    fn string(&mut self, kind: StringKind, head: &Csi, data: &[u8], bell: bool, overflow: bool, end: u64) {
        self.end_run();
        if overflow {
            self.w.unseen(public(kind), end);
        } else {
            // The terminator's last byte has just been read.
            let last = self.bytes.get((end - self.base - 1) as usize);
            let tail = if bell || (last == Some(&0x9c) && !self.m.utf8) { 1 } else { 2 };
            self.w.payload(public(kind), data, end.saturating_sub(data.len() as u64 + tail));
        }
        if kind == StringKind::Dcs {
            self.m.string(kind, head, data, bell, overflow, end);
        }
    }

    fn abandoned(&mut self, kind: StringKind, data: &[u8], end: u64) {
        self.w.payload(public(kind), data, end.saturating_sub(data.len() as u64));
    }

    fn vt52(&mut self, last: u8, args: [u8; 2], end: u64) -> bool {
        self.end_run();
        self.s.settle(self.m, self.w);
        let again = self.m.vt52(last, args, end);
        self.lost();
        again
    }
}
