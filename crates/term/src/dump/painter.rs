//! The painter of a dump: rows as text that draws them, with the pen in hand.

use crate::grid::{Grid, LineSize};
use crate::lines::Line;
use crate::machine::Machine;
use crate::pack::Piece;
use crate::paint;
use crate::style::{Attrs, Style};
use crate::unicode::{Joiner, Props, text_width};

/// Writes rows, keeping track of the pen.
pub(super) struct Painter<'a> {
    pub(super) out: Vec<u8>,
    m: &'a Machine,
    pub(super) pen: Style,
    joiner: Joiner,
    /// The ASCII character that was put last, which `joiner` has yet to be told of: most text is
    /// nothing else.
    ascii: Option<u8>,
    pub(super) clusters: bool,
    /// Something was written protected.
    pub(super) protects: bool,
    /// Where rows end, and their last writes, where that is wanted.
    pub(super) ends: Option<Vec<(usize, u64)>>,
}

impl<'a> Painter<'a> {
    pub(super) fn new(m: &'a Machine) -> Self {
        let clusters = m.settings.clusters;
        let (out, pen, joiner) = (Vec::new(), Style::default(), Joiner::NONE);
        Self { out, m, pen, joiner, ascii: None, clusters, protects: false, ends: None }
    }

    pub(super) fn put(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
        self.part();
    }

    /// Switches the cluster mode, if need be.
    pub(super) fn set_clusters(&mut self, on: bool) {
        if self.clusters != on {
            self.clusters = on;
            self.put(if on { "\x1b[?2027h" } else { "\x1b[?2027l" });
        }
    }

    /// What was put last joins nothing.
    fn part(&mut self) {
        self.joiner = Joiner::NONE;
        self.ascii = None;
    }

    pub(super) fn pen(&mut self, style: Style) {
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
            self.protects |= protected;
        }
        let looks = |s: Style| Style { link: 0, attrs: Attrs(s.attrs.0 & !Attrs::PROTECTED.0), ..s };
        if looks(style) != looks(self.pen) {
            paint::sgr(&mut self.out, &looks(style));
        }
        self.pen = style;
    }

    /// One character. Where it would join the one before, or not be as wide as it is, the cluster
    /// mode is used.
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
        let clusters = wants_clusters(text, width);
        if joined && clusters != self.clusters {
            self.set_clusters(clusters);
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
    pub(super) fn row(&mut self, line: Line<'_>) {
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

    /// All rows one after the other, from the first row of an empty screen, or from the end of the
    /// row `before` them.
    pub(super) fn rows(&mut self, lines: impl Iterator<Item = Line<'a>>, before: Option<Line<'a>>) {
        let mut first = before.is_none();
        // The row before, where it goes on in this one. (Nothing else is kept of it: copying rows
        // costs more than writing them.)
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
    pub(super) fn addressed(&mut self, grid: &'a Grid) {
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

/// Which cluster mode makes this text as wide as it is. Marks alone can be kept narrow by the older
/// rule; what joined by the newer one needs that again.
pub(super) fn wants_clusters(text: &str, width: usize) -> bool {
    let props = Props::new();
    let marks = text.chars().skip(1).all(|c| props.of(c).width() == 0);
    !marks || text_width(text).max(1) == width
}
