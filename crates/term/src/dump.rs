//! Bytes that redraw a terminal: fed to a fresh one of the same size they give the same state.
//!
//! Rows are written in order, so that those of scrollback scroll off as they once did. Where a row goes on in the next,
//! the writing wraps too. Then come the modes and all that has no picture; position and pen are last.

use crate::charset::{Charset, Charsets};
use crate::grid::{Grid, LineSize};
use crate::lines::Line;
use crate::machine::{Machine, Pos, Protection, Saved, default_tabs};
use crate::modes::{ANSI_MODES, DEC_MODES, Mode, Modes};
use crate::pack::Piece;
use crate::paint;
use crate::palette::{Palette, Rgb};
use crate::style::{Attrs, Style};
use crate::term::Term;
use crate::unicode::{Joiner, Props, text_width};

/// Writes rows, keeping track of the pen.
struct Painter<'a> {
    out: Vec<u8>,
    m: &'a Machine,
    pen: Style,
    joiner: Joiner,
    /// The ASCII character that was put last, which `joiner` has yet to be told of: most text is nothing else.
    ascii: Option<u8>,
    clusters: bool,
    /// Where rows end, and their last writes, where that is wanted.
    ends: Option<Vec<(usize, u64)>>,
}

impl<'a> Painter<'a> {
    fn new(m: &'a Machine) -> Self {
        let clusters = m.settings.clusters;
        let (out, pen, joiner) = (Vec::new(), Style::default(), Joiner::NONE);
        Self { out, m, pen, joiner, ascii: None, clusters, ends: None }
    }

    fn put(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
        self.part();
    }

    /// What was put last joins nothing.
    fn part(&mut self) {
        self.joiner = Joiner::NONE;
        self.ascii = None;
    }

    fn pen(&mut self, style: Style) {
        if style == self.pen {
            return;
        }
        self.part();
        if style.link != self.pen.link {
            match self.m.links.get(style.link) {
                Some(l) if l.id.is_empty() => self.put(&format!("\x1b]8;;{}\x1b\\", l.uri)),
                Some(l) => self.put(&format!("\x1b]8;id={};{}\x1b\\", l.id, l.uri)),
                None => self.put("\x1b]8;;\x1b\\"),
            }
        }
        let protected = style.attrs.contains(Attrs::PROTECTED);
        if protected != self.pen.attrs.contains(Attrs::PROTECTED) {
            self.put(if protected { "\x1b[1\"q" } else { "\x1b[0\"q" });
        }
        let looks = |s: Style| Style { link: 0, attrs: Attrs(s.attrs.0 & !Attrs::PROTECTED.0), ..s };
        if looks(style) != looks(self.pen) {
            paint::sgr(&mut self.out, &looks(style));
        }
        self.pen = style;
    }

    /// One character. Where it would join the one before, or not be as wide as it is, the cluster mode is used.
    fn character(&mut self, text: &str, width: usize) {
        // ASCII behind ASCII never joins, and is as wide in either mode.
        let fresh = self.ascii.is_some() || self.joiner == Joiner::NONE;
        if let ([c], true) = (text.as_bytes(), fresh) {
            self.out.push(*c);
            self.ascii = Some(*c);
            return;
        }
        let props = Props::new();
        if let Some(c) = self.ascii.take() {
            self.joiner = Joiner::NONE;
            self.joiner.push(props.of(char::from(c)));
        }
        let mut chars = text.chars();
        let Some(first) = chars.next() else { return };
        if self.joiner.push(props.of(first)) {
            // Any control sequence keeps the two apart.
            paint::sgr(&mut self.out, &self.pen);
            self.joiner = Joiner::NONE;
            self.joiner.push(props.of(first));
        }
        let joined = chars.clone().next().is_some();
        if joined && wants_clusters(text, width) != self.clusters {
            let clusters = !self.clusters;
            self.clusters = clusters;
            self.put(if clusters { "\x1b[?2027h" } else { "\x1b[?2027l" });
            self.joiner.push(props.of(first));
        }
        self.out.extend_from_slice(text.as_bytes());
        chars.for_each(|c| {
            self.joiner.push(props.of(c));
        });
    }

    /// Any number of ASCII characters.
    fn ascii(&mut self, text: &[u8]) {
        let ([first, ..], [.., last]) = (text, text) else { return };
        if self.ascii.is_some() || self.joiner == Joiner::NONE {
            self.out.extend_from_slice(text);
        } else {
            // Of these, only the first could join anything.
            self.character(char::from(*first).encode_utf8(&mut [0; 4]), 1);
            self.out.extend_from_slice(&text[1..]);
        }
        self.ascii = Some(*last);
    }

    /// A row from its first column on, on a blank row. Leaves the cursor wherever it ends.
    fn row(&mut self, line: Line<'_>) {
        if let Some(text) = line.as_written() {
            self.pen(Style::default());
            self.ascii(text);
            return;
        }
        let mut gap = 0;
        let mut gap_style = Style::default();
        line.pieces(|piece, style| {
            // Erasing can leave a background behind, but nothing more; the rest must be written.
            if matches!(piece, Piece::Empty) && style == style.erased() {
                if gap > 0 && style != gap_style {
                    self.gap(gap, gap_style);
                    gap = 0;
                }
                gap_style = style;
                gap += 1;
                return;
            }
            if gap > 0 {
                self.gap(gap, gap_style);
                gap = 0;
            }
            self.pen(style);
            match piece {
                Piece::Ascii(text) => self.ascii(text.as_bytes()),
                Piece::One(text, width) => self.character(text, width),
                Piece::Empty => self.ascii(b" "),
            }
        });
        if gap > 0 && gap_style != Style::default() {
            self.gap(gap, gap_style);
        }
    }

    /// Cells that nothing was written to.
    fn gap(&mut self, n: usize, style: Style) {
        if style != Style::default() {
            self.pen(style.erased());
            self.put(&format!("\x1b[{n}X"));
        }
        self.put(&format!("\x1b[{n}C"));
    }

    /// What makes a row more than its text.
    fn row_extras(&mut self, line: Line<'_>, marks: bool) {
        let size = match line.size() {
            LineSize::Single => "",
            LineSize::DoubleTop => "\x1b#3",
            LineSize::DoubleBottom => "\x1b#4",
            LineSize::DoubleWidth => "\x1b#6",
        };
        if !size.is_empty() {
            self.put(size);
        }
        if marks {
            for (bit, letter) in [(1, 'A'), (2, 'B'), (4, 'C'), (8, 'D')] {
                if line.marks() & bit != 0 {
                    self.put(&format!("\x1b]133;{letter}\x1b\\"));
                }
            }
        }
    }

    /// All rows one after the other, from the first row of an empty screen, or from the end of the row `before` them.
    fn rows(&mut self, lines: impl Iterator<Item = Line<'a>>, before: Option<Line<'a>>) {
        let mut first = before.is_none();
        // The row before, where it goes on in this one. (Nothing else is kept of it: copying rows costs more than writing them.)
        let mut wraps = before.filter(|line| line.wrapped());
        lines.for_each(|line| {
            self.pen(Style::default());
            if let Some(prev) = wraps {
                // The row is full: a character more wraps. It is painted over right after.
                if let Some(style) = ends_padded(prev, self.m) {
                    self.pen(style);
                    self.put(&format!("\x1b[{}G\u{3000}", self.m.cols()));
                    self.pen(Style::default());
                } else {
                    // The sequence keeps it from joining what stands at the edge.
                    self.put("\x1b[m ");
                }
                self.put("\r\x1b[K");
            } else if !first {
                self.put("\r\n");
            }
            first = false;
            match line.as_written() {
                // Most rows are nothing but text.
                Some(text) if line.is_ordinary() => self.ascii(text),
                _ => {
                    self.row_extras(line, true);
                    self.row(line);
                }
            }
            if let (Some(ends), Some(written)) = (&mut self.ends, line.written()) {
                ends.push((self.out.len(), written));
            }
            if line.wrapped() {
                wraps = Some(line);
            } else if wraps.is_some() {
                wraps = None;
            }
        });
        self.pen(Style::default());
    }

    /// The rows of a screen, each by its address.
    fn addressed(&mut self, grid: &'a Grid) {
        for y in 0..grid.rows {
            let line = Line::of_grid(self.m, grid, y);
            if line.is_blank() && line.size() == LineSize::Single {
                continue;
            }
            self.pen(Style::default());
            self.put(&format!("\x1b[{};1H", y + 1));
            self.row_extras(line, false);
            self.row(line);
        }
        self.pen(Style::default());
    }
}

/// The style of a wrapped row's last column, when it was left to a wide character that did not fit.
fn ends_padded(line: Line<'_>, m: &Machine) -> Option<Style> {
    let cols = if line.size() == LineSize::Single { m.cols() } else { (m.cols() / 2).max(1) };
    let mut width = 0;
    let mut padding = Some(Style::default());
    line.each(|text, w, style| {
        if width < cols && width + w >= cols {
            padding = text.is_empty().then_some(style);
        }
        width += w;
    });
    padding
}

/// Which cluster mode makes this text as wide as it is. Marks alone can be kept narrow by the older rule; what joined by
/// the newer one needs that again.
fn wants_clusters(text: &str, width: usize) -> bool {
    let props = Props::new();
    let marks = text.chars().skip(1).all(|c| props.of(c).width() == 0);
    !marks || text_width(text).max(1) == width
}

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
    // Writing a cluster again ends a row that goes on. That is worth more than the wrap, unless the caller mends it.
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

impl Term {
    /// Bytes that, fed to a fresh terminal of the same size and settings, give the same state: both screens, scrollback,
    /// modes, tabs, margins, charsets, cursor, saved cursors, titles, colours. Half-read input comes last, so that the
    /// stream can go on from here.
    pub fn dump(&self) -> Vec<u8> {
        self.dump_all(false).0
    }

    /// The same, and for each row that was ever written to, in order: where in those bytes it ends, and the offset of its last
    /// write. Whoever feeds them piece by piece, each piece counted up to that offset, has the rows' provenance too.
    pub fn dump_with_rows(&self) -> (Vec<u8>, Vec<(usize, u64)>) {
        self.dump_all(true)
    }

    fn dump_all(&self, with_rows: bool) -> (Vec<u8>, Vec<(usize, u64)>) {
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
        // About as much as will be written, so that it need not be moved while it grows.
        p.out.reserve(self.scrollback_memory() + main.rows * m.cols());
        p.rows(self.scrollback().chain(main_rows), None);
        let has_alternate = (0..alternate.rows).any(|y| {
            let line = Line::of_grid(m, alternate, y);
            !line.is_blank() || line.size() != LineSize::Single || line.marks() != 0
        });
        if has_alternate || m.modes.alternate() || m.saved[1].is_some() || !m.kitty_stacks[1].is_empty() {
            p.put("\x1b[?47h\x1b[H");
            p.rows((0..alternate.rows).map(|y| Line::of_grid(m, alternate, y)), None);
            p.put("\x1b[?47l");
        }
        if m.protection == Protection::Off {
            p.put("\x1b[!p");
        }
        let ends = p.ends.take().unwrap_or_default();
        (self.settle(p, true), ends)
    }

    /// Bytes that repaint a real terminal of the same size as this screen, without scrollback: the screen that is shown,
    /// modes, title, cursor. They do not reset the terminal, and leave its scrollback alone.
    pub fn dump_screen(&self) -> Vec<u8> {
        let m = &self.m;
        let mut p = Painter::new(m);
        p.put("\x1b[m\x1b[?6l\x1b[?69l\x1b[r\x1b[4l\x1b[?7h\x1b(B\x0f");
        p.put(if m.modes.alternate() { "\x1b[?1049h" } else { "" });
        p.put("\x1b[H\x1b[2J");
        self.tab_stops(&mut p, true);
        p.addressed(&m.grid);
        self.settle(p, false)
    }

    /// Bytes that bring a real terminal of the same size, its screen just cleared, to this state: scrollback goes to its
    /// own scrollback, then the screen is painted as by [`Self::dump_screen`]. The alternate screen is entered last and
    /// never left, because many terminals forget it when it is.
    pub fn dump_to_terminal(&self) -> Vec<u8> {
        let m = &self.m;
        let mut p = Painter::new(m);
        p.put("\x1b[m\x1b[?6l\x1b[?69l\x1b[r\x1b[4l\x1b[?7h\x1b(B\x0f");
        if m.modes.alternate() {
            let main = (0..m.hidden.rows).map(|y| Line::of_grid(m, &m.hidden, y));
            p.rows(self.scrollback().chain(main), None);
        } else if self.scrollback_len() > 0 {
            p.rows(self.scrollback(), None);
            p.put(&"\r\n".repeat(m.rows()));
        }
        let mut out = p.out;
        out.extend(self.dump_screen());
        out
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
            // Those whose switching leaves traces are not saved by anyone.
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
        if !p.clusters {
            p.put("\x1b[?2027h");
        }
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
            for screen in [0, 1] {
                self.saved_cursor(&mut p, screen);
            }
        }
        self.modes_text(&mut p, full);
        let active = m.screen_index();
        if full {
            p.put(if m.modes.alternate() { "\x1b[?47h" } else { "" });
        } else {
            kitty(&mut p, &m.kitty_stacks[active], m.modes.kitty);
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
        let mut p = Painter {
            out,
            m,
            pen: Style { link: 0, ..m.pen.into() },
            joiner: Joiner::NONE,
            ascii: None,
            clusters: true,
            ends: None,
        };
        p.pen(m.pen.into());
        if full {
            // Insert and wrapping change how the last cell is written again, so they come after it.
            p.put(if m.modes.insert() { "\x1b[4h" } else { "" });
            p.put(if m.modes.wrap() { "" } else { "\x1b[?7l" });
            p.put(if m.modes.clusters() { "\x1b[?2027h" } else { "\x1b[?2027l" });
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
        if screen == 1 {
            p.put("\x1b[?47h");
        }
        if let Some(s) = saved {
            // Origin mode moves the cursor when it is set, but positions are kept absolute.
            p.put(if s.origin { "\x1b[?6h" } else { "" });
            let grid = if screen == m.screen_index() { &m.grid } else { &m.hidden };
            let y = s.pos.y;
            // The row may have another width by now than when the cursor was saved at its end. A wrap that is not at the
            // end is not restored, and writing the cell again would move the cursor on instead.
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
        kitty(p, stack, flags);
        if screen == 1 {
            p.put("\x1b[?47l");
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
