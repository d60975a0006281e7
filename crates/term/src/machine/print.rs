//! Putting characters on the grid.

use super::Machine;
use crate::cell::{CLUSTER, Cell, PAD, TAIL, WIDE};
use crate::clusters::MAX_CLUSTER;
use crate::grid::LineSize;
use crate::modes::Mode;
use crate::unicode::{Joiner, Prop, joined_width};

/// The printable character that `bytes` begins with, when it is whole and valid.
#[inline]
fn next_char(bytes: &[u8]) -> Option<(char, usize)> {
    let cont = |b: u8| b & 0xc0 == 0x80;
    let low = |b: u8| u32::from(b & 0x3f);
    let (v, n) = match *bytes {
        [a @ 0x20..=0x7e, ..] => return Some((char::from(a), 1)),
        [a @ 0xe0..=0xef, b, c, ..] if cont(b) && cont(c) => {
            let v = u32::from(a & 0xf) << 12 | low(b) << 6 | low(c);
            if v < 0x800 {
                return None;
            }
            (v, 3)
        }
        [a @ 0xc2..=0xdf, b, ..] if cont(b) => {
            let v = u32::from(a & 0x1f) << 6 | low(b);
            if v < 0xa0 {
                return None;
            }
            (v, 2)
        }
        [a @ 0xf0..=0xf4, b, c, d, ..] if cont(b) && cont(c) && cont(d) => {
            let v = u32::from(a & 7) << 18 | low(b) << 12 | low(c) << 6 | low(d);
            if v < 0x1_0000 {
                return None;
            }
            (v, 4)
        }
        _ => return None,
    };
    char::from_u32(v).map(|c| (c, n))
}

impl Machine {
    /// The last column that text may use on the cursor's row before it wraps.
    #[inline]
    pub(super) fn right_limit(&self) -> usize {
        let mut last = self.cols() - 1;
        if self.pos.x <= self.right {
            last = self.right;
        }
        if self.grid.meta(self.pos.y).size != LineSize::Single {
            last = last.min((self.cols() / 2).max(1) - 1);
        }
        last
    }

    /// The last column of the cursor's row.
    pub(super) fn row_end(&self) -> usize {
        if self.grid.meta(self.pos.y).size == LineSize::Single {
            self.cols() - 1
        } else {
            (self.cols() / 2).max(1) - 1
        }
    }

    /// Goes to the next line because the row is full.
    pub(super) fn wrap(&mut self) {
        let (x, y) = (self.pos.x, self.pos.y);
        // Only text that reaches the edge goes on in the next row; a wrap at a margin is none that
        // could be undone.
        let moves = y == self.bottom || y + 1 < self.rows();
        if moves && x == self.row_end() && self.grid.cell(y, x).text != 0 {
            self.grid.meta_mut(y).wrapped = true;
            // Painters have to know, or they would copy two lines where there is one.
            self.dirty(y);
        }
        self.pos.pending = false;
        self.carriage_return();
        self.index();
    }

    /// Printable ASCII, as many at a time as the row takes.
    #[inline]
    pub(super) fn print_ascii(&mut self, run: &[u8], end: u64) {
        self.print_run(run, end, 1);
    }

    /// `pace` is 1 when each character is a byte of the stream, 0 when one sequence wrote them all.
    fn print_run(&mut self, run: &[u8], end: u64, pace: u64) {
        if !self.plain_print || !self.joiner.is_closed() {
            return self.print_ascii_slow(run, end);
        }
        let style = self.pen_id();
        let mut run = run;
        while !run.is_empty() {
            if self.pos.pending {
                if self.modes.has(Mode::Wrap) {
                    self.now = end - (run.len() as u64 - 1) * pace;
                    self.wrap();
                } else {
                    self.pos.pending = false;
                }
            }
            let last = self.right_limit();
            let (x, y) = (self.pos.x, self.pos.y);
            if x > last {
                // Only on a row that has just become double width.
                self.pos.x = last;
                continue;
            }
            let n = run.len().min(last + 1 - x);
            let (now, rest) = run.split_at(n);
            let mut edge = if x + n > last { self.grid.cell(y, last) } else { Cell::BLANK };
            if edge.is_tail() && n > 1 {
                // One by one, the character before would have torn it.
                edge = edge.torn();
            }
            self.grid.split_wide(y, x, x + n);
            self.grid.write_ascii(y, x, now, style, end - rest.len() as u64 * pace);
            self.damage.insert(y);
            if x + n > last {
                self.pos.x = last;
                if !self.same_looks(edge, Cell { text: u32::from(now[n - 1]), style }) {
                    // Other text at the edge: it does not go on in the next row as the old one did.
                    self.grid.meta_mut(y).wrapped = false;
                }
                self.pos.pending = true;
                if !rest.is_empty() && !self.modes.has(Mode::Wrap) {
                    // All that is left overwrites the last column; only the final one stays.
                    let (row, meta) = self.grid.span(y, last, last + 1);
                    row[last] = Cell { text: u32::from(run[run.len() - 1]), style };
                    meta.written = end;
                    self.last_char = Some(char::from(run[run.len() - 1]));
                    break;
                }
            } else {
                self.pos.x = x + n;
            }
            self.last_char = Some(char::from(now[n - 1]));
            run = rest;
        }
        self.joiner = Joiner::PLAIN;
    }

    /// Text of any script that goes to the end of the row's text, as most does: many characters
    /// without looking at the machine in between. Returns the bytes taken; stops at anything out of
    /// the ordinary.
    pub(super) fn print_utf8(&mut self, bytes: &[u8], base: u64) -> usize {
        if !self.utf8 || !self.plain_print || self.pos.pending || !self.joiner.is_closed() {
            return 0;
        }
        let style = self.pen_id();
        let last = self.right_limit();
        let (mut x, y) = (self.pos.x, self.pos.y);
        let props = self.props;
        let mut joiner = self.joiner;
        let start = usize::from(self.grid.meta(y).len);
        if x < start || x > last {
            return 0;
        }
        let (row, meta) = self.grid.span(y, x, last + 1);
        let mut taken = 0;
        let mut wide = false;
        let mut last_char = self.last_char;
        while let Some((c, n)) = next_char(&bytes[taken..]) {
            let p = props.of(c);
            let width = p.width();
            let mut next = joiner;
            if width == 0 || x + width > last + 1 || (!next.pass(p) && next.push(p)) {
                break;
            }
            joiner = next;
            row[x] = Cell { text: c as u32, style };
            if width == 2 {
                row[x].text |= WIDE;
                row[x + 1] = Cell { text: TAIL, style };
                wide = true;
            }
            x += width;
            taken += n;
            last_char = Some(c);
        }
        meta.len = if taken > 0 { x as u16 } else { start as u16 };
        if taken == 0 {
            return 0;
        }
        meta.wide |= wide;
        meta.written = base + taken as u64;
        if x > last {
            meta.wrapped = false;
            self.pos.pending = true;
            x = last;
        }
        self.pos.x = x;
        self.joiner = joiner;
        self.last_char = last_char;
        self.charsets.single = None;
        self.damage.insert(y);
        taken
    }

    #[cold]
    fn print_ascii_slow(&mut self, run: &[u8], end: u64) {
        let first = end - run.len() as u64;
        for (i, &b) in run.iter().enumerate() {
            self.now = first + i as u64 + 1;
            let c = self.charsets.map(b);
            self.update_print_path();
            self.print_char(c);
        }
    }

    /// One character of any kind.
    pub(super) fn print_char(&mut self, c: char) {
        let p = self.props.of(c);
        let joins = !self.joiner.pass(p) && self.joiner.push(p);
        if p.width() == 0 || joins {
            if self.modes.clusters() || p.width() == 0 {
                let fresh = self.join(c, p);
                if fresh {
                    return;
                }
            }
            if p.width() == 0 {
                return;
            }
        }
        self.place(c as u32, p.width());
        self.last_char = Some(c);
    }

    /// Puts a text of one or two columns at the cursor and moves on.
    pub(super) fn place(&mut self, text: u32, width: usize) {
        let wraps = self.modes.has(Mode::Wrap);
        if self.pos.pending {
            if wraps {
                self.wrap();
            } else {
                self.pos.pending = false;
            }
        }
        let mut last = self.right_limit();
        self.pos.x = self.pos.x.min(last);
        let mut width = width;
        if width == 2 && self.pos.x == last {
            // The second half does not fit here.
            if wraps && last > 0 && self.pos.x > self.wrap_column() {
                let style = self.erase_id();
                let (x, y) = (self.pos.x, self.pos.y);
                self.grid.split_wide(y, x, x + 1);
                self.grid.set(y, x, Cell { text: PAD, style });
                self.grid.meta_mut(y).written = self.now;
                self.dirty(y);
                self.wrap();
                last = self.right_limit();
            } else if last > 0 && self.pos.x > 0 && !wraps {
                self.pos.x = last - 1;
            }
            if self.pos.x == last {
                width = 1;
            }
        }
        let style = self.pen_id();
        let (x, y) = (self.pos.x, self.pos.y);
        if self.modes.insert() {
            let erase = self.erase_id();
            self.grid.insert_cells(y, x, last, width, erase, self.now);
        }
        self.grid.split_wide(y, x, x + width);
        let now = self.now;
        let (row, meta) = self.grid.span(y, x, x + width);
        let before = row[x];
        if width == 2 {
            row[x] = Cell { text: text | WIDE, style };
            row[x + 1] = Cell { text: TAIL, style };
            meta.wide = true;
        } else {
            row[x] = Cell { text: text & !WIDE, style };
        }
        meta.written = now;
        let after = row[x];
        if !self.same_looks(after, before) && x + width > last {
            // Other text at the edge: it does not go on in the next row as the old one did.
            self.grid.meta_mut(y).wrapped = false;
        }
        self.damage.insert(y);
        if x + width > last {
            self.pos.x = last;
            self.pos.pending = true;
        } else {
            self.pos.x = x + width;
        }
    }

    /// Where a wrap from the cursor's column goes.
    fn wrap_column(&self) -> usize {
        if self.pos.x >= self.left { self.left } else { 0 }
    }

    /// Adds a character to the cluster before the cursor. False: there is none, or it must stand
    /// alone.
    fn join(&mut self, c: char, p: Prop) -> bool {
        let Some((y, x)) = self.cell_before() else { return false };
        let cell = self.grid.cell(y, x);
        let before = if cell.is_wide() { 2 } else { 1 };
        if let Some(id) = self.clusters.cached(cell.text, c) {
            let base = self.clusters.get(id).chars().next().unwrap_or(' ');
            let width = self.width_joined(before, base, c, p);
            self.last_char = None;
            self.rewrite(y, x, id | CLUSTER, before, width);
            return true;
        }
        let mut text = String::with_capacity(16);
        if cell.is_cluster() {
            text.push_str(self.clusters.get(cell.value()));
        } else if let Some(base) = cell.char() {
            text.push(base);
        } else if p.width() == 0 {
            // A mark on a cell that nothing was written to makes it a space.
            text.push(' ');
        } else {
            return false;
        }
        let Some(base) = text.chars().next() else { return false };
        if text.len() + c.len_utf8() > MAX_CLUSTER {
            return true;
        }
        text.push(c);
        let width = self.width_joined(before, base, c, p);
        if self.clusters.wants_sweep() {
            self.sweep_clusters();
        }
        let id = self.clusters.intern(&text);
        // After a sweep the cell has another number.
        let code = self.grid.cell(y, x).text;
        self.clusters.remember(code, c, id);
        self.last_char = None;
        self.rewrite(y, x, id | CLUSTER, before, width);
        true
    }

    fn width_joined(&self, before: usize, base: char, c: char, p: Prop) -> usize {
        if self.modes.clusters() {
            joined_width(before, Some(self.props.of(base)), c, p).max(1)
        } else {
            before
        }
    }

    /// Gives the cell before the cursor a new text, which may be wider or narrower than what it
    /// held.
    fn rewrite(&mut self, y: usize, x: usize, text: u32, before: usize, width: usize) {
        let now = self.now;
        let style = self.grid.cell(y, x).style;
        self.dirty(y);
        if self.pos.pending {
            // Other text at the edge: it does not go on in the next row as the old one did.
            self.grid.meta_mut(y).wrapped = false;
        }
        if width <= before {
            let (row, meta) = self.grid.real(y, x + before);
            meta.written = now;
            row[x].text = if width == 2 { text | WIDE } else { text };
            if before == 2 && width == 1 {
                row[x + 1].text = 0;
                let was_pending = std::mem::take(&mut self.pos.pending);
                self.pos.x = if was_pending { self.pos.x } else { self.pos.x - 1 };
            }
            return;
        }
        // From one column to two.
        if self.pos.pending {
            // It was in the last column: it moves to the next line as a wide character would have.
            let wraps = self.modes.has(Mode::Wrap);
            if !wraps && x > 0 {
                // It takes the column before it as well, where a wide character would have been
                // put.
                self.grid.split_wide(y, x - 1, x + 1);
                let (row, meta) = self.grid.span(y, x - 1, x + 1);
                row[x - 1] = Cell { text: text | WIDE, style };
                row[x] = Cell { text: TAIL, style };
                meta.wide = true;
                meta.written = now;
                return;
            }
            if !wraps || self.right_limit() == self.wrap_column() {
                let (row, meta) = self.grid.real(y, x + 1);
                meta.written = now;
                row[x].text = text;
                return;
            }
            let erase = self.erase_id();
            self.grid.set(y, x, Cell { text: PAD, style: erase });
            self.grid.meta_mut(y).written = now;
            self.wrap();
            let (keep, changed) = (self.pen_id, std::mem::replace(&mut self.pen_changed, false));
            self.pen_id = style;
            self.place(text, 2);
            self.pen_id = keep;
            self.pen_changed = changed;
            return;
        }
        if x + 1 >= self.cols() {
            let (row, meta) = self.grid.real(y, x + 1);
            meta.written = now;
            row[x].text = text;
            return;
        }
        self.grid.split_wide(y, x + 1, x + 2);
        let (row, meta) = self.grid.span(y, x, x + 2);
        row[x] = Cell { text: text | WIDE, style };
        row[x + 1] = Cell { text: TAIL, style };
        meta.wide = true;
        meta.written = now;
        let last = self.right_limit();
        if self.pos.x >= last {
            self.pos.pending = true;
            self.grid.meta_mut(y).wrapped = false;
        } else {
            self.pos.x += 1;
        }
    }

    /// The cell that a joining character at the cursor belongs to.
    fn cell_before(&self) -> Option<(usize, usize)> {
        let y = self.pos.y;
        let x = if self.pos.pending {
            self.pos.x
        } else if self.pos.x > 0 {
            self.pos.x - 1
        } else {
            return None;
        };
        if self.grid.cell(y, x).is_tail() && x > 0 { Some((y, x - 1)) } else { Some((y, x)) }
    }

    /// REP: the last character again.
    pub(super) fn repeat(&mut self, n: usize) {
        let Some(c) = self.last_char else { return };
        let n = n.min(self.cols() * self.rows());
        if c.is_ascii() && self.plain_print {
            self.print_run(&vec![c as u8; n], self.now, 0);
        } else {
            for _ in 0..n {
                let width = self.props.of(c).width();
                if width > 0 {
                    self.place(c as u32, width);
                }
            }
        }
    }
}
