//! Bytes that redraw a terminal: fed to a fresh one of the same size they give the same state.
//!
//! Rows are written in order, so that those of scrollback scroll off as they once did. Where a row
//! goes on in the next, the writing wraps too. Then come the modes and all that has no picture;
//! position and pen are last.

mod painter;

use std::ops::Range;

use crate::charset::{Charset, Charsets};
use crate::grid::{Grid, LineSize};
use crate::lines::Line;
use crate::machine::{Machine, Pos, Protection, Saved, default_tabs};
use crate::modes::{ANSI_MODES, DEC_MODES, Mode, Modes};
use crate::paint;
use crate::palette::{Palette, Rgb};
use crate::style::{Attrs, Style};
use crate::term::Term;
use painter::{Painter, wants_clusters};

/// Puts the cursor somewhere, with pending wrap by writing the cell before it again.
pub(crate) fn write_position(
    out: &mut Vec<u8>,
    m: &Machine,
    grid: &Grid,
    pos: Pos,
    origin: bool,
    mend: bool,
) {
    let (top, left) = if origin { (m.top, m.left) } else { (0, 0) };
    let single = grid.meta(pos.y).size == LineSize::Single;
    let end = if single { m.cols() } else { (m.cols() / 2).max(1) } - 1;
    let pos = Pos { x: pos.x.min(end), ..pos };
    let go = |out: &mut Vec<u8>, x: usize| {
        let row = pos.y.saturating_sub(top) + 1;
        let col = x.saturating_sub(left) + 1;
        out.extend_from_slice(format!("\x1b[{row};{col}H").as_bytes());
    };
    let cell = grid.cell(pos.y, pos.x);
    // Writing a cluster again ends a row that goes on. That is worth more than the wrap, unless the
    // caller mends it.
    let risky = grid.meta(pos.y).wrapped && cell.is_cluster();
    if !pos.pending || cell.is_empty() || (risky && !mend) {
        return go(out, pos.x);
    }
    let x = if cell.is_tail() { pos.x - 1 } else { pos.x };
    go(out, x);
    let cell = grid.cell(pos.y, x);
    let mut p = Painter::new(m);
    p.put("\x1b(B\x0f\x1b[m");
    let style = m.styles.get(cell.style);
    p.pen(style);
    if cell.is_cluster() {
        let text = m.clusters.get(cell.value());
        let on = |on: bool| if on { "\x1b[?2027h" } else { "\x1b[?2027l" };
        p.put(on(wants_clusters(text, if cell.is_wide() { 2 } else { 1 })));
        p.put(text);
        p.put(on(m.modes.clusters()));
    } else {
        p.put(cell.char().unwrap_or(' ').encode_utf8(&mut [0; 4]));
    }
    p.pen(Style::default());
    out.extend(p.out);
}

/// Designations and shifts.
pub(crate) fn write_charsets(out: &mut Vec<u8>, c: &Charsets, national: bool) {
    let guarded = !national && c.g.iter().any(|g| g.is_national());
    if guarded {
        out.extend_from_slice(b"\x1b[?42h");
    }
    for (i, set) in c.g.iter().enumerate() {
        let (name, big) = set.designation();
        if *set != Charset::Ascii {
            let open = if big { [b'(', b'-', b'.', b'/'][i] } else { b'(' + i as u8 };
            out.extend([0x1b, open]);
            out.extend_from_slice(name.as_bytes());
        } else {
            out.extend([0x1b, b'(' + i as u8, b'B']);
        }
    }
    out.extend_from_slice(match c.gl {
        0 => b"\x0f",
        1 => b"\x0e",
        2 => b"\x1bn",
        _ => b"\x1bo",
    });
    if c.gr != 2 {
        out.extend_from_slice(if c.gr == 1 { b"\x1b~" } else { b"\x1b|" });
    }
    if guarded {
        out.extend_from_slice(b"\x1b[?42l");
    }
    match c.single {
        Some(2) => out.extend_from_slice(b"\x1bN"),
        Some(_) => out.extend_from_slice(b"\x1bO"),
        None => {}
    }
}

/// Whether two rows show the same.
fn is_same(new: Line<'_>, old: Line<'_>) -> bool {
    (new.wrapped(), new.size()) == (old.wrapped(), old.size()) && new.runs() == old.runs()
}

/// What a terminal keeps when it becomes as at power-on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Nothing at all.
    Nothing,
    /// Its scrollback.
    Scrollback,
    /// Its scrollback, to which the lines of its main screen are added.
    Lines,
}

impl Term {
    /// Bytes that, fed to a fresh terminal of the same size and settings, give the same state: both
    /// screens, scrollback, modes, tabs, margins, charsets, cursor, saved cursors, titles, colours.
    /// Half-read input comes last, so that the stream can go on from here.
    pub fn dump(&self) -> Vec<u8> {
        self.dump_all(false, 0..usize::MAX, true).0
    }

    /// Returns [`Self::dump`], and for each row that was ever written to, in order: where in those
    /// bytes it ends, and the offset of its last write. Feed them piece by piece, each piece
    /// counted up to that offset, to restore the provenance of rows, too.
    pub fn dump_with_rows(&self) -> (Vec<u8>, Vec<(usize, u64)>) {
        self.dump_all(true, 0..usize::MAX, true)
    }

    /// Draws everything, but of the scrollback these rows alone, and of an alternate screen that is
    /// not shown nothing unless `hidden`.
    fn dump_all(&self, with_rows: bool, rows: Range<usize>, hidden: bool) -> (Vec<u8>, Vec<(usize, u64)>) {
        let m = &self.m;
        let mut p = Painter::new(m);
        p.ends = with_rows.then(Vec::new);
        let (main, alternate) = if m.modes.alternate() { (&m.hidden, &m.grid) } else { (&m.grid, &m.hidden) };
        if m.level != 65 || m.eight_bit {
            p.put(&format!("\x1b[{};{}\"p", m.level, if m.eight_bit { 0 } else { 1 }));
            p.put(if m.eight_bit { "\x1b G" } else { "" });
        }
        // On a fresh screen there is nothing for the column switch to clear.
        p.put(if m.modes.has(Mode::Columns132) { "\x1b[?3h" } else { "" });
        self.tab_stops(&mut p, false);
        self.stacks(&mut p);
        if m.modes.newline() || m.settings.newline_mode {
            p.put("\x1b[20l");
        }
        let main_rows = (0..main.rows).map(|y| Line::of_grid(m, main, y));
        let is_unprotected = m.protection == Protection::Off;
        // About as much as will be written, so that it need not be moved while it grows.
        p.out.reserve(self.scrollback_memory() + main.rows * m.cols());
        p.rows(self.scrollback().take(rows.end).skip(rows.start).chain(main_rows), None);
        let on_top = m.modes.alternate();
        if on_top {
            p.put(if is_unprotected { "\x1b[!p" } else { "" });
            self.saved_cursor(&mut p, 0);
        }
        let has_alternate = hidden
            && (0..alternate.rows).any(|y| {
                let line = Line::of_grid(m, alternate, y);
                !line.is_blank() || line.size() != LineSize::Single || line.marks() != 0
            });
        if on_top || has_alternate || m.saved[1].is_some() || !m.kitty_stacks[1].is_empty() {
            p.put("\x1b[?47h\x1b[H");
            p.protects = false;
            p.rows((0..alternate.rows).map(|y| Line::of_grid(m, alternate, y)), None);
            // Many terminals forget the alternate screen when it is left.
            p.put(if on_top { "" } else { "\x1b[?47l" });
        }
        if is_unprotected && (!on_top || p.protects) {
            p.put("\x1b[!p");
            if on_top {
                // It forgets the cursor that is saved behind.
                p.put("\x1b[?47l");
                self.saved_cursor(&mut p, 0);
                p.put("\x1b[?47h");
            }
        }
        let ends = p.ends.take().unwrap_or_default();
        (self.settle(p, true), ends)
    }

    /// Bytes that repaint a real terminal of the same size as this screen, without scrollback: the
    /// screen that is shown, modes, title, cursor. They do not reset the terminal, and leave its
    /// scrollback alone.
    pub fn dump_screen(&self) -> Vec<u8> {
        let mut p = Painter::new(&self.m);
        // First of all: it saves the cursor, which what follows moves.
        p.put(if self.m.modes.alternate() { "\x1b[?1049h" } else { "" });
        self.paint_screen(&mut p);
        self.settle(p, false)
    }

    /// Returns [`Self::dump_screen`] for a terminal that shows both screens in the same place: the
    /// bytes switch to neither, and bring the saved cursor of the screen that is shown.
    pub fn dump_in_place(&self) -> Vec<u8> {
        let mut p = Painter::new(&self.m);
        self.paint_screen(&mut p);
        if let Some(saved) = self.m.saved[self.m.screen_index()] {
            self.save_cursor(&mut p, saved, &self.m.grid);
        }
        self.settle(p, false)
    }

    fn paint_screen<'a>(&'a self, p: &mut Painter<'a>) {
        p.put("\x1b[m\x1b[?6l\x1b[?69l\x1b[r\x1b[4l\x1b[?7h\x1b(B\x0f");
        p.put("\x1b[H\x1b[2J");
        self.tab_stops(p, true);
        p.addressed(&self.m.grid);
    }

    /// Bytes that bring a real terminal of the same size, its screen just cleared, to this state:
    /// the last `lines` of scrollback go to its own scrollback, then the screen is painted as by
    /// [`Self::dump_screen`]. The alternate screen is entered last and never left, because many
    /// terminals forget it when it is.
    pub fn dump_to_terminal(&self, lines: usize) -> Vec<u8> {
        let m = &self.m;
        let mut p = Painter::new(m);
        p.put("\x1b[m\x1b[?6l\x1b[?69l\x1b[r\x1b[4l\x1b[?7h\x1b(B\x0f");
        let skipped = self.scrollback_len().saturating_sub(lines);
        if m.modes.alternate() {
            let main = (0..m.hidden.rows).map(|y| Line::of_grid(m, &m.hidden, y));
            p.rows(self.scrollback().skip(skipped).chain(main), None);
            if let Some(saved) = m.saved[0] {
                // Leaving the alternate screen comes back to here.
                p.put(&format!("\x1b[{};{}H", saved.pos.y + 1, saved.pos.x + 1));
            }
        } else if self.scrollback_len() > skipped {
            p.rows(self.scrollback().skip(skipped), None);
            p.put(&"\r\n".repeat(m.rows()));
        }
        let mut out = p.out;
        out.extend(self.dump_screen());
        out
    }

    /// Bytes that, fed to this terminal, make it as at power-on, whatever state it is in.
    pub fn renew(&self, keep: Keep) -> Vec<u8> {
        let m = &self.m;
        let mut out = Vec::new();
        // A half-read sequence would swallow what follows, and VT52 mode knows no RIS.
        out.extend_from_slice(if self.is_idle() { b"" } else { b"\x18" });
        out.extend_from_slice(if m.modes.vt52() { b"\x1b<" } else { b"" });
        // In some terminals a reset stays on the alternate screen.
        out.extend_from_slice(if m.modes.alternate() { b"\x1b[?47l" } else { b"" });
        if keep == Keep::Lines {
            let main = if m.modes.alternate() { &m.hidden } else { &m.grid };
            let last = (0..main.rows).rev().find(|y| !Line::of_grid(m, main, *y).is_blank());
            out.extend_from_slice(b"\x1b[?6l\x1b[?69l\x1b[r");
            out.extend_from_slice(format!("\x1b[{};1H", main.rows).as_bytes());
            out.resize(out.len() + last.map_or(0, |y| y + 1), b'\n');
        }
        out.extend_from_slice(b"\x1bc");
        out.extend_from_slice(if keep == Keep::Nothing { b"\x1b[3J" } else { b"" });
        out.extend_from_slice(if m.directory.is_empty() { b"" } else { b"\x1b]7;\x1b\\" });
        out
    }

    /// Bytes that bring a terminal from an earlier state of this one to its state now, if both have
    /// the same size. What is in the scrollback of the earlier one stays there where it can.
    pub fn dump_since(&self, before: &Self) -> Vec<u8> {
        let common = (before.size() == self.size()).then(|| self.rows_since(before)).flatten();
        // Rows that were on the screen then and have left scrollback since went through it.
        let through = before.evicted() + before.lines().count() as u64 <= self.evicted();
        let keep = match common {
            None => Keep::Nothing,
            Some(_) if through => Keep::Lines,
            Some(_) => Keep::Scrollback,
        };
        let mut out = before.renew(keep);
        out.extend(self.dump_all(false, common.unwrap_or(0)..usize::MAX, true).0);
        out
    }

    /// Bytes that bring a terminal from an earlier state of this one to its state now, without what
    /// came and went in between: of the rows that have scrolled away since, those alone that were
    /// on the screen then. A terminal whose size has changed since is resized before it is fed.
    pub fn redraw_since(&self, before: &Self) -> Vec<u8> {
        let cleared = self.m.scrollback.cleared() != before.m.scrollback.cleared();
        let common = (before.size() == self.size()).then(|| self.rows_since(before)).flatten();
        let first = before.evicted() + before.scrollback_len() as u64;
        let (keep, rows) = match common {
            _ if cleared => (Keep::Nothing, 0..0),
            None => (Keep::Scrollback, 0..0),
            // What was on the screen is gone even from the scrollback by now.
            Some(_) if self.evicted() > first => (Keep::Lines, 0..0),
            Some(common) => {
                let then = before.main_rows();
                let same = |(new, old): &(Line<'_>, Line<'_>)| is_same(*new, *old);
                let seen = self.scrollback().skip(common).zip(then).take_while(same).count();
                (Keep::Scrollback, common..common + seen)
            }
        };
        // What is left on an alternate screen comes back where a program does not clear it.
        let hidden = self.alternate_rows().zip(before.alternate_rows()).all(|(new, old)| is_same(new, old));
        let mut out = before.renew(keep);
        out.extend(self.dump_all(false, rows, hidden && before.size() == self.size()).0);
        out
    }

    fn main_rows(&self) -> impl Iterator<Item = Line<'_>> {
        let main = if self.m.modes.alternate() { &self.m.hidden } else { &self.m.grid };
        (0..main.rows).map(move |y| Line::of_grid(&self.m, main, y))
    }

    fn alternate_rows(&self) -> impl Iterator<Item = Line<'_>> {
        let alternate = if self.m.modes.alternate() { &self.m.grid } else { &self.m.hidden };
        (0..alternate.rows).map(move |y| Line::of_grid(&self.m, alternate, y))
    }

    /// How many rows of scrollback are those of an earlier state; `None` if that has others.
    fn rows_since(&self, before: &Self) -> Option<usize> {
        let (end, new_end) = (
            before.evicted() + before.scrollback_len() as u64,
            self.evicted() + self.scrollback_len() as u64,
        );
        let first = before.evicted().max(self.evicted());
        let common = usize::try_from(end.saturating_sub(first)).ok()?;
        // A half-read character is drawn when it is given up, and may push a row out.
        let draws = before.parser.pending().first().is_some_and(|byte| *byte != 0x1b);
        if draws || self.m.scrollback.cleared() != before.m.scrollback.cleared() {
            return None;
        }
        let skip = |term: &Self| usize::try_from(first - term.evicted()).ok();
        let mut rows = self.scrollback().skip(skip(self)?).zip(before.scrollback().skip(skip(before)?));
        let same = end <= new_end && rows.by_ref().take(common).all(|(new, old)| is_same(new, old));
        same.then(|| usize::try_from(end.saturating_sub(self.evicted())).ok()).flatten()
    }

    /// Bytes that write `text` over a row of a real terminal that shows this screen, and leave
    /// everything else as the program has it: cursor, saved cursor, pen, modes. The text must fit
    /// the row. [`Self::repaint_row`] takes it away.
    pub fn over_row(&self, row: u16, text: &str) -> Vec<u8> {
        self.aside(row, |p| p.put(text))
    }

    /// Bytes that bring a row of a real terminal that shows this screen back after something else
    /// wrote over it.
    pub fn repaint_row(&self, row: u16) -> Vec<u8> {
        self.aside(row, |p| {
            p.put("\x1b[2K");
            if let Some(line) = self.row(row) {
                p.row(line);
            }
        })
    }

    /// Paints something in a row, and goes back to where the program is.
    fn aside<'a>(&'a self, row: u16, paint: impl FnOnce(&mut Painter<'a>)) -> Vec<u8> {
        let m = &self.m;
        let mut p = Painter::new(m);
        p.clusters = m.modes.clusters();
        p.put(if m.pen.link == 0 { "" } else { "\x1b]8;;\x1b\\" });
        p.put("\x1b[m\x1b[?6l\x1b[?69l\x1b[r\x1b[4l\x1b[?7h\x1b(B\x0f");
        p.put(&format!("\x1b[{};1H", u32::from(row) + 1));
        paint(&mut p);
        p.pen(Style::default());
        p.set_clusters(m.modes.clusters());
        let mut out = p.out;
        self.write_cursor_state(&mut out);
        let mut p = Painter::new(m);
        (p.out, p.pen) = (out, Style { link: 0, ..m.pen.into() });
        p.pen(m.pen.into());
        p.put(if m.modes.insert() { "\x1b[4h" } else { "" });
        p.put(if m.modes.wrap() { "" } else { "\x1b[?7l" });
        p.out
    }

    /// Tab stops, on the first row of an empty screen.
    fn tab_stops(&self, p: &mut Painter<'_>, always: bool) {
        if always || self.m.tabs != default_tabs(self.m.cols()) {
            p.put("\x1b[3g");
            for (x, _) in self.m.tabs.iter().enumerate().filter(|(_, on)| **on) {
                p.put(&format!("\x1b[{}G\x1bH", x + 1));
            }
            p.put("\r");
        }
    }

    /// Title, colour and pen stacks, and modes saved by number.
    fn stacks(&self, p: &mut Painter<'_>) {
        let m = &self.m;
        for (icon, title) in &m.title_stack {
            if let Some(icon) = icon {
                p.put(&format!("\x1b]1;{icon}\x1b\\"));
            }
            if let Some(title) = title {
                p.put(&format!("\x1b]2;{title}\x1b\\"));
            }
            let what = match (icon, title) {
                (Some(_), None) => 1,
                (None, _) => 2,
                _ => 0,
            };
            p.put(&format!("\x1b[22;{what}t"));
        }
        for palette in &m.palette_stack {
            p.put("\x1b]104\x1b\\");
            colours(p, palette);
            p.put("\x1b[#P");
        }
        if !m.palette_stack.is_empty() {
            p.put("\x1b]104\x1b\\");
            (110..=119).for_each(|n| p.put(&format!("\x1b]{n}\x1b\\")));
        }
        for pen in &m.pen_stack {
            p.pen((*pen).into());
            p.put("\x1b[#{");
        }
        p.pen(Style::default());
        for &(n, on) in &m.saved_modes {
            // Modes whose switching leaves traces are never saved.
            if !matches!(n, 2 | 3 | 47 | 1047 | 1048 | 1049 | 2048) {
                let was = Modes::default();
                p.put(&format!("\x1b[?{n}{}\x1b[?{n}s", if on { 'h' } else { 'l' }));
                let default = DEC_MODES.iter().find(|(k, _)| *k == n).is_some_and(|(_, mode)| was.has(*mode));
                let default = if n == 2027 { m.settings.clusters } else { default };
                p.put(&format!("\x1b[?{n}{}", if default { 'h' } else { 'l' }));
            }
        }
        p.put(if m.saved_modes.is_empty() { "" } else { "\x1b[H" });
    }

    /// Everything that has no picture, then saved cursors, position and pen.
    fn settle<'a>(&'a self, mut p: Painter<'a>, full: bool) -> Vec<u8> {
        let m = &self.m;
        p.set_clusters(m.modes.clusters());
        if !m.title.is_empty() || !m.title_stack.is_empty() {
            p.put(&format!("\x1b]2;{}\x1b\\", m.title));
        }
        if !m.icon.is_empty() || !m.title_stack.is_empty() {
            p.put(&format!("\x1b]1;{}\x1b\\", m.icon));
        }
        if !m.directory.is_empty() {
            p.put(&format!("\x1b]7;{}\x1b\\", m.directory));
        }
        colours(&mut p, &m.palette);
        if full {
            if !m.modes.alternate() {
                self.saved_cursor(&mut p, 0);
            }
            self.saved_cursor(&mut p, 1);
        }
        self.modes_text(&mut p, full);
        if !full {
            kitty(&mut p, &m.kitty_stacks[m.screen_index()], m.modes.kitty);
        }
        match m.protection {
            Protection::Off => {}
            Protection::Dec => p.put("\x1b[0\"q"),
            Protection::Iso => p.put("\x1bW"),
        }
        let mut out = p.out;
        if full || m.top > 0 || m.bottom + 1 < m.rows() || m.modes.origin() || m.pos.pending {
            self.write_cursor_state(&mut out);
        } else {
            write_position(&mut out, m, &m.grid, m.pos, false, false);
            write_charsets(&mut out, &m.charsets, m.modes.has(Mode::National));
            paint::sgr(&mut out, &m.pen.into());
        }
        if m.protection == Protection::Iso && m.pen.has(Attrs::PROTECTED) {
            out.extend_from_slice(b"\x1bV");
        }
        let mut p = Painter::new(m);
        (p.out, p.pen) = (out, Style { link: 0, ..m.pen.into() });
        p.pen(m.pen.into());
        if full {
            // Insert and wrapping change how the last cell is written again, so they come after it.
            p.put(if m.modes.insert() { "\x1b[4h" } else { "" });
            p.put(if m.modes.wrap() { "" } else { "\x1b[?7l" });
            p.put(if m.utf8 { "" } else { "\x1b%@" });
            p.put(if m.modes.vt52() { "\x1b[?2l" } else { "" });
            p.out.extend(self.parser.pending());
        } else {
            p.put(if m.modes.insert() { "\x1b[4h" } else { "" });
            p.put(if m.modes.wrap() { "" } else { "\x1b[?7l" });
        }
        p.out
    }

    /// Makes a screen's saved cursor what it is, and its keyboard stack.
    fn saved_cursor<'a>(&'a self, p: &mut Painter<'a>, screen: usize) {
        let m = &self.m;
        let saved: Option<Saved> = m.saved[screen];
        let stack = &m.kitty_stacks[screen];
        let flags =
            if screen == m.screen_index() { m.modes.kitty } else { stack.last().copied().unwrap_or(0) };
        if saved.is_none() && stack.is_empty() && flags == 0 {
            return;
        }
        let is_behind = screen == 1 && screen != m.screen_index();
        p.put(if is_behind { "\x1b[?47h" } else { "" });
        if let Some(saved) = saved {
            self.save_cursor(p, saved, if screen == m.screen_index() { &m.grid } else { &m.hidden });
        }
        kitty(p, stack, flags);
        p.put(if is_behind { "\x1b[?47l" } else { "" });
    }

    /// Has the terminal save a cursor of the screen that it shows.
    fn save_cursor<'a>(&'a self, p: &mut Painter<'a>, s: Saved, grid: &'a Grid) {
        let m = &self.m;
        // Writing a cluster ends in the mode that the program left.
        p.set_clusters(m.modes.clusters());
        // Origin mode moves the cursor when it is set, but positions are kept absolute.
        p.put(if s.origin { "\x1b[?6h" } else { "" });
        let y = s.pos.y;
        // The row may have another width by now than when the cursor was saved at its end. A
        // wrap that is not at the end is not restored, and writing the cell again would move
        // the cursor on instead.
        let single = grid.meta(y).size == LineSize::Single;
        let end = if single { m.cols() } else { (m.cols() / 2).max(1) } - 1;
        let pos = Pos { pending: s.pos.pending && s.pos.x >= end, ..s.pos };
        let cluster = grid.cell(y, pos.x).is_cluster();
        let mend = pos.pending && grid.meta(y).wrapped && cluster && !s.origin;
        write_position(&mut p.out, m, grid, pos, false, mend);
        write_charsets(&mut p.out, &s.charsets, false);
        paint::sgr(&mut p.out, &s.pen.into());
        let protected = s.pen.has(Attrs::PROTECTED);
        p.put(if protected { "\x1b[1\"q" } else { "" });
        p.put("\x1b7");
        p.put(if protected { "\x1b[0\"q" } else { "" });
        p.put("\x1b[m");
        p.pen = Style::default();
        p.put(if s.origin { "\x1b[?6l" } else { "" });
        write_charsets(&mut p.out, &Charsets::new(), false);
        if mend {
            // The rows that this one goes on in, again.
            let last = (y + 1..grid.rows).find(|&y| !grid.meta(y).wrapped).unwrap_or(y);
            p.rows((y + 1..=last).map(|y| Line::of_grid(m, grid, y)), Some(Line::of_grid(m, grid, y)));
        }
    }

    fn modes_text(&self, p: &mut Painter<'_>, full: bool) {
        let m = &self.m;
        let mut fresh = Modes::default();
        fresh.set(Mode::Clusters, m.settings.clusters);
        for &(n, mode) in ANSI_MODES {
            if mode != Mode::Insert
                && (m.modes.has(mode) != fresh.has(mode) || (full && mode == Mode::Newline))
            {
                p.put(&format!("\x1b[{n}{}", if m.modes.has(mode) { 'h' } else { 'l' }));
            }
        }
        let style = m.cursor_style_number();
        if style != 0 {
            p.put(&format!("\x1b[{style} q"));
        }
        for &(n, mode) in DEC_MODES {
            let on = m.modes.has(mode);
            match mode {
                // Written with the cursor, or after it.
                Mode::Origin | Mode::Margins | Mode::Wrap | Mode::Clusters => continue,
                // The column switch clears the screen: it came first, or is left out.
                Mode::Columns132 => continue,
                Mode::Allow132 if m.modes.has(Mode::Asked132) => p.put("\x1b[?40h"),
                Mode::BlinkCursor if on == m.blink && on == (style % 2 == 1) => continue,
                // A real terminal would report its size to its own user.
                Mode::ResizeReports if !full => continue,
                _ => {}
            }
            if on != fresh.has(mode) || (mode == Mode::BlinkCursor && style % 2 == 1) {
                p.put(&format!("\x1b[?{n}{}", if on { 'h' } else { 'l' }));
            }
        }
        for n in [m.modes.mouse.number(), m.modes.mouse_encoding.number()] {
            if n != 0 {
                p.put(&format!("\x1b[?{n}h"));
            }
        }
        for (i, r) in m.modifier_resources.iter().enumerate() {
            if let Some(v) = r {
                p.put(&format!("\x1b[>{i};{v}m"));
            }
        }
        if m.modes.modify_other_keys > 0 {
            p.put(&format!("\x1b[>4;{}m", m.modes.modify_other_keys));
        }
        if m.format_other_keys > 0 {
            p.put(&format!("\x1b[>4;{}f", m.format_other_keys));
        }
        p.put(if m.rect_exact { "\x1b[2*x" } else { "" });
        if m.status_display != 0 {
            p.put(&format!("\x1b[{}$}}", m.status_display));
        }
    }
}

fn kitty(p: &mut Painter<'_>, stack: &[u8], flags: u8) {
    let (base, rest) = match stack {
        [base, rest @ ..] => (*base, rest),
        [] => (flags, stack),
    };
    if base != 0 {
        p.put(&format!("\x1b[={base}u"));
    }
    for f in rest {
        p.put(&format!("\x1b[>{f}u"));
    }
}

fn colours(p: &mut Painter<'_>, palette: &Palette) {
    let text = |c: Rgb| format!("rgb:{:02x}/{:02x}/{:02x}", c.0, c.1, c.2);
    for (n, c) in &palette.changed {
        p.put(&format!("\x1b]4;{n};{}\x1b\\", text(*c)));
    }
    for (n, c) in palette.special.iter().enumerate() {
        if let Some(c) = c {
            p.put(&format!("\x1b]5;{n};{}\x1b\\", text(*c)));
        }
    }
    for (n, c) in palette.dynamic.iter().enumerate() {
        if let Some(c) = c {
            p.put(&format!("\x1b]{};{}\x1b\\", n + 10, text(*c)));
        }
    }
}
