//! Where every character on the screen came from.
//!
//! A [`Tracer`] is the terminal model with one difference: a cell that was printed remembers the
//! bytes of the stream that printed it, in the place of its style. Nothing else can tell what a
//! terminal shows: text arrives in pieces, in any order, wrapped, with colours inside. Before a
//! text is lost (overwritten, erased, scrolled away) and at the end, each logical line is handed to
//! a [`Witness`] with the place of each of its characters, once for every time that it changed. So
//! are the payloads of strings such as titles, links and the clipboard.

mod sink;

use crate::cell::Cell;
use crate::clusters::Clusters;
use crate::grid::Grid;
use crate::machine::Machine;
use crate::parser::{Parser, StringKind};
use crate::scan::Kind;
use crate::size::{Settings, Size};
use crate::style::StyleId;

/// In a cell's trace: erasure that honours protection spares it.
pub(crate) const PROTECTED: u32 = 1 << 31;
/// In a cell's trace: it was printed by a single byte.
const SINGLE: u32 = 1 << 30;
/// The rest of it: one more than the offset since the tracer's base.
const PLACE: u32 = SINGLE - 1;
/// When the stream is this far beyond the base, a new base is taken.
const REBASE: u64 = 1 << 29;
/// Characters of one line kept beyond the top of the screen, and how many of them are kept when
/// there are more.
const CARRY: usize = 16 << 10;
const CARRY_KEPT: usize = 4 << 10;
/// Rows kept for growing screens.
const SCROLLBACK: usize = 1000;

/// A character of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glyph {
    /// What is shown; a space where nothing is.
    pub c: char,
    /// Columns taken.
    pub width: u8,
    /// Bytes of the stream that printed it; 0 when they are not known, or are none.
    pub len: u8,
    /// Offset of the first of them.
    pub at: u64,
}

/// Is told what the terminal showed.
pub trait Witness {
    /// Whether a line of this text is to be told of. Most are not, and where each of their
    /// characters came from need not be found out.
    fn cares(&mut self, _text: &str) -> bool {
        true
    }
    /// The text of a logical line, wrapped rows joined, and its characters, one each.
    fn line(&mut self, text: &str, glyphs: &[Glyph]);
    /// The payload of a string sequence, which begins at an offset of the stream.
    fn payload(&mut self, kind: Kind, data: &[u8], at: u64);
    /// A payload that is too long to be looked at ended before this offset.
    fn unseen(&mut self, kind: Kind, end: u64);
}

/// The terminal model with the place in the stream of everything that it shows.
#[derive(Clone, Debug)]
pub struct Tracer {
    parser: Parser,
    m: Machine,
    state: State,
}

#[derive(Clone, Debug, Default)]
struct State {
    /// Offset that the cells' traces count from.
    base: u64,
    /// Bytes fed.
    offset: u64,
    /// The beginning of the line at the top of the main screen, when it has scrolled off.
    carry: Vec<Glyph>,
    /// Text since the last control, colours apart: where its pieces begin in the stream and in
    /// `run`.
    run: Vec<u8>,
    pieces: Vec<(u64, usize)>,
    /// The screen does not show that text as it was sent.
    odd: bool,
    /// The row that the text in `run` writes over, once what it held has been handed over.
    covered: Option<usize>,
    /// The trace of the character that REP would repeat.
    last: u32,
    glyphs: Vec<Glyph>,
    text: String,
    bytes: Vec<u8>,
}

impl Tracer {
    /// A terminal as at power-on.
    pub fn new(size: Size) -> Self {
        let settings = Settings::default().scrollback(SCROLLBACK).replies(false);
        let parser = Parser::new(settings.string_limit);
        let mut m = Machine::new(size, settings);
        m.tracing = true;
        Self { parser, m, state: State::default() }
    }

    /// Takes the next bytes of the stream.
    pub fn feed(&mut self, bytes: &[u8], witness: &mut impl Witness) {
        for piece in bytes.chunks(REBASE as usize / 2) {
            if self.state.offset + piece.len() as u64 - self.state.base > REBASE {
                self.rebase(witness);
            }
            let mut done = 0;
            while done < piece.len() {
                let rest = &piece[done..];
                let base = self.state.offset;
                let mut sink =
                    sink::Trace { m: &mut self.m, s: &mut self.state, w: &mut *witness, bytes: rest, base };
                let n = self.parser.advance(rest, base, &mut sink);
                self.state.offset += n as u64;
                done += n;
                self.parser.utf8_mode = self.m.utf8;
                self.parser.vt52 = self.m.modes.vt52();
            }
            self.m.signals.clear();
            self.m.replies.clear();
        }
    }

    /// So many bytes of the stream are missing here.
    pub fn skip(&mut self, n: u64, witness: &mut impl Witness) {
        self.settle(witness);
        self.state.offset += n;
        if self.state.offset - self.state.base > REBASE {
            self.rebase(witness);
        }
    }

    /// Bytes fed and skipped.
    pub fn offset(&self) -> u64 {
        self.state.offset
    }

    /// Changes the size, as [`crate::Term::resize`] does.
    pub fn resize(&mut self, size: Size, witness: &mut impl Witness) {
        self.settle(witness);
        self.m.resize(size);
        self.m.lost.clear();
        self.m.lost_cells.clear();
    }

    /// Hands over every line that has changed since it was last handed over, on both screens.
    pub fn settle(&mut self, witness: &mut impl Witness) {
        self.state.end_run(witness);
        self.state.lost(&mut self.m, witness);
        self.state.settle(&mut self.m, witness);
    }

    /// The end of the stream: all lines, and the payload of a string that was not finished.
    pub fn finish(&mut self, witness: &mut impl Witness) {
        self.settle(witness);
        if let Some((kind, data)) = self.parser.open_string() {
            let at = self.state.offset.saturating_sub(data.len() as u64 + self.parser.string_escape());
            witness.payload(public(kind), data, at);
        }
    }

    /// The text of the row that the cursor is on, up to the cursor.
    pub fn before_cursor(&self) -> String {
        let row = self.m.grid.row(self.m.pos.y);
        let mut text = String::new();
        for cell in row.iter().take(self.m.pos.x).filter(|c| !c.is_tail()) {
            text.push(shown(*cell, &self.m.clusters));
        }
        text
    }

    /// A new base: what is older cannot be found any more.
    fn rebase(&mut self, witness: &mut impl Witness) {
        self.settle(witness);
        for grid in [&mut self.m.grid, &mut self.m.hidden] {
            grid.each_mut(|c| c.style = StyleId(0));
        }
        self.state.carry.clear();
        self.state.last = 0;
        self.state.base = self.state.offset;
    }
}

impl State {
    /// The trace of a character that begins at an offset.
    fn trace(&self, at: u64) -> u32 {
        // The base is never more than REBASE and one piece behind.
        (at.saturating_sub(self.base) as u32 + 1) & PLACE
    }

    fn glyph(&self, cell: Cell, clusters: &Clusters) -> Glyph {
        let c = shown(cell, clusters);
        let width = if cell.is_wide() { 2 } else { 1 };
        let place = cell.style.0 & PLACE;
        let single = cell.style.0 & SINGLE != 0;
        // What is left of half a wide character is a space that its bytes did not print; and
        // several characters in one cell, other than a letter with marks, cannot be changed one by
        // one.
        if cell.is_empty() || place == 0 || (!single && (c.is_ascii() || cell.is_cluster())) {
            return Glyph { c, width, len: 0, at: 0 };
        }
        let len = if single { 1 } else { c.len_utf8() as u8 };
        Glyph { c, width, len, at: self.base + u64::from(place) - 1 }
    }

    /// Adds a row to the text in hand, as [`Self::gather`] does to the line.
    fn read(&mut self, row: &[Cell], wrapped: bool, clusters: &Clusters) {
        if row.iter().all(|c| c.text < 0x80) {
            self.bytes.extend(row.iter().map(|c| (c.text as u8).max(b' ')));
        } else {
            for &cell in row.iter().filter(|c| !c.is_tail() && !c.is_pad()) {
                match cell.text {
                    text @ ..0x80 => self.bytes.push((text as u8).max(b' ')),
                    _ => {
                        let c = shown(cell, clusters);
                        self.bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                    }
                }
            }
        }
        if !wrapped {
            let end = self.bytes.iter().rposition(|b| *b != b' ').map_or(0, |last| last + 1);
            self.bytes.truncate(end);
        }
    }

    /// Whether a witness wants the text in hand.
    fn is_wanted(&mut self, w: &mut impl Witness) -> bool {
        let text = std::str::from_utf8(&self.bytes).unwrap_or_default();
        let wanted = !text.is_empty() && w.cares(text);
        self.bytes.clear();
        wanted
    }

    /// Adds a row to the line in hand.
    fn gather(&mut self, row: &[Cell], wrapped: bool, clusters: &Clusters) {
        for &cell in row {
            if !cell.is_tail() && !cell.is_pad() {
                let glyph = self.glyph(cell, clusters);
                self.glyphs.push(glyph);
            }
        }
        if wrapped {
            return;
        }
        while self.glyphs.last().is_some_and(|g| g.c == ' ') {
            self.glyphs.pop();
        }
    }

    /// Hands over the line in hand.
    fn emit(&mut self, w: &mut impl Witness) {
        if !self.glyphs.is_empty() {
            self.text.clear();
            self.text.extend(self.glyphs.iter().map(|g| g.c));
            w.line(&self.text, &self.glyphs);
            self.glyphs.clear();
        }
    }

    /// Hands over the logical line that a row is part of.
    fn line(&mut self, grid: &mut Grid, clusters: &Clusters, y: usize, main: bool, w: &mut impl Witness) {
        let mut first = y;
        while first > 0 && grid.meta(first - 1).wrapped {
            first -= 1;
        }
        let mut last = first;
        grid.meta_mut(first).fresh = false;
        while grid.meta(last).wrapped && last + 1 < grid.rows {
            last += 1;
            grid.meta_mut(last).fresh = false;
        }
        let carried = first == 0 && main && !self.carry.is_empty();
        if !carried {
            for y in first..=last {
                self.read(grid.row(y), grid.meta(y).wrapped, clusters);
            }
            if !self.is_wanted(w) {
                return;
            }
        }
        self.glyphs.clear();
        if carried {
            std::mem::swap(&mut self.glyphs, &mut self.carry);
        }
        for y in first..=last {
            self.gather(grid.row(y), grid.meta(y).wrapped, clusters);
        }
        self.emit(w);
    }

    /// Hands over the lines of these rows of the screen that have changed.
    fn lines(&mut self, m: &mut Machine, rows: std::ops::Range<usize>, w: &mut impl Witness) {
        let main = !m.modes.alternate();
        for y in rows {
            if m.grid.meta(y).fresh {
                self.line(&mut m.grid, &m.clusters, y, main, w);
            }
        }
    }

    fn settle(&mut self, m: &mut Machine, w: &mut impl Witness) {
        let main = !m.modes.alternate();
        for (grid, main) in [(&mut m.grid, main), (&mut m.hidden, !main)] {
            for y in 0..grid.rows {
                if grid.meta(y).fresh {
                    self.line(grid, &m.clusters, y, main, w);
                }
            }
        }
        if !self.carry.is_empty() {
            self.glyphs.clear();
            std::mem::swap(&mut self.glyphs, &mut self.carry);
            self.emit(w);
        }
    }

    /// Takes in the rows that have left at the top of the main screen.
    fn lost(&mut self, m: &mut Machine, w: &mut impl Witness) {
        let (rows, cells) = (std::mem::take(&mut m.lost), std::mem::take(&mut m.lost_cells));
        let mut at = 0;
        for (len, meta) in &rows {
            let row = &cells[at..at + len];
            at += len;
            if self.carry.is_empty() {
                if !meta.fresh {
                    continue;
                }
                if !meta.wrapped {
                    self.read(row, false, &m.clusters);
                    if !self.is_wanted(w) {
                        continue;
                    }
                }
            }
            // A long line is carried over many rows: it is not copied for each.
            self.glyphs.clear();
            std::mem::swap(&mut self.glyphs, &mut self.carry);
            self.gather(row, meta.wrapped, &m.clusters);
            if !meta.wrapped {
                self.emit(w);
                continue;
            }
            // The line goes on: it is told of when it is whole, or very long.
            std::mem::swap(&mut self.carry, &mut self.glyphs);
            if self.carry.len() > CARRY {
                let tail = self.carry[self.carry.len() - CARRY_KEPT..].to_vec();
                std::mem::swap(&mut self.carry, &mut self.glyphs);
                self.emit(w);
                self.carry = tail;
            }
        }
        // The memory is kept.
        (m.lost, m.lost_cells) = (rows, cells);
        m.lost.clear();
        m.lost_cells.clear();
    }

    /// A row was written to: so have the rows that its text goes on in.
    fn touch(grid: &mut Grid, y: usize) {
        if std::mem::replace(&mut grid.meta_mut(y).fresh, true) {
            return;
        }
        let mut up = y;
        while up > 0 && grid.meta(up - 1).wrapped && !grid.meta(up - 1).fresh {
            up -= 1;
            grid.meta_mut(up).fresh = true;
        }
        let mut down = y;
        while down + 1 < grid.rows && grid.meta(down).wrapped && !grid.meta(down + 1).fresh {
            down += 1;
            grid.meta_mut(down).fresh = true;
        }
    }

    /// The text as it was sent ends here. It is handed over only where the screen did not show it
    /// so.
    fn end_run(&mut self, w: &mut impl Witness) {
        if std::mem::take(&mut self.odd) {
            self.glyphs.clear();
            for (i, &(at, start)) in self.pieces.iter().enumerate() {
                let end = self.pieces.get(i + 1).map_or(self.run.len(), |p| p.1);
                let bytes = &self.run[start..end];
                let Ok(text) = std::str::from_utf8(bytes) else { continue };
                let glyph = |(i, c): (usize, char)| Glyph {
                    c,
                    width: crate::char_width(c) as u8,
                    len: c.len_utf8() as u8,
                    at: at + i as u64,
                };
                self.glyphs.extend(text.char_indices().map(glyph));
            }
            self.emit(w);
        }
        self.run.clear();
        self.pieces.clear();
        self.covered = None;
    }
}

fn shown(cell: Cell, clusters: &Clusters) -> char {
    if cell.is_cluster() {
        return clusters.get(cell.value()).chars().next().unwrap_or(' ');
    }
    cell.char().unwrap_or(' ')
}

fn public(kind: StringKind) -> Kind {
    match kind {
        StringKind::Osc => Kind::Osc,
        StringKind::Dcs => Kind::Dcs,
        StringKind::Apc => Kind::Apc,
        StringKind::Pm => Kind::Pm,
        StringKind::Sos => Kind::Sos,
    }
}
