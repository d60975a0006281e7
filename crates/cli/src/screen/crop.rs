//! Paints a model into a terminal of another size: the part around the cursor, and only rows that
//! changed.

use tapdeck_term::{Generation, Line, Style, Term};

/// Paints one model into one terminal.
#[derive(Default)]
pub(crate) struct Crop {
    seen: Option<Generation>,
    /// The first row and column shown.
    corner: (u16, u16),
    /// Rows and columns of the terminal.
    size: (u16, u16),
}

impl Crop {
    /// The generation that has been painted.
    pub(crate) fn seen(&self) -> Option<Generation> {
        self.seen
    }

    /// Has everything painted anew.
    pub(crate) fn forget(&mut self) {
        self.seen = None;
    }

    /// Appends what brings a terminal of this size up to date, with `notice` over its last row if
    /// there is one. To have that row back, everything is to be painted anew.
    pub(crate) fn paint(
        &mut self,
        term: &Term,
        cols: u16,
        rows: u16,
        notice: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) {
        let (cursor, size) = (term.cursor(), term.size());
        // The beginning of a line comes back into sight as soon as the cursor does
        // not keep it out.
        let left = if cursor.col < cols { 0 } else { self.corner.1 };
        let corner =
            (follow(self.corner.0, cursor.row, rows, size.rows), follow(left, cursor.col, cols, size.cols));
        let all = self.seen.is_none() || corner != self.corner || self.size != (rows, cols);
        (self.corner, self.size) = (corner, (rows, cols));
        let changed: Vec<u16> = match self.seen {
            Some(since) if !all => term.diff(since).rows.iter().map(|r| r.row).collect(),
            _ => (0..size.rows).collect(),
        };
        self.seen = Some(term.generation());
        out.extend_from_slice(b"\x1b[?2026h\x1b[?25l");
        if all {
            out.extend_from_slice(b"\x1b[m\x1b[H\x1b[2J");
        }
        for y in changed {
            let Some(shown) = y.checked_sub(corner.0).filter(|y| *y < rows) else { continue };
            out.extend_from_slice(format!("\x1b[{};1H\x1b[m\x1b[2K", shown + 1).as_bytes());
            if let Some(line) = term.row(y) {
                write_part(&line, corner.1, cols, out);
            }
        }
        if let Some(notice) = notice {
            out.extend_from_slice(format!("\x1b[{rows};1H").as_bytes());
            out.extend_from_slice(notice);
        }
        let (y, x) = (cursor.row.saturating_sub(corner.0), cursor.col.saturating_sub(corner.1));
        out.extend_from_slice(format!("\x1b[{};{}H", y.min(rows) + 1, x.min(cols) + 1).as_bytes());
        out.extend_from_slice(if cursor.visible { b"\x1b[?25h\x1b[?2026l" } else { b"\x1b[?2026l" });
    }
}

/// The first place shown so that `at` is in sight, moved no more than it must be.
fn follow(first: u16, at: u16, room: u16, whole: u16) -> u16 {
    let last = whole.saturating_sub(room);
    let low = at.saturating_sub(room.saturating_sub(1));
    first.clamp(low.min(last), at.min(last).max(low.min(last)))
}

/// The columns of a row that are in sight. A wide character that is cut in half is left blank.
fn write_part(line: &Line<'_>, from: u16, cols: u16, out: &mut Vec<u8>) {
    let (from, to) = (usize::from(from), usize::from(from) + usize::from(cols));
    let mut col = 0;
    let mut pen = Style::default();
    let mut blanks = 0;
    line.each(|text, width, style| {
        let at = col;
        col += width;
        if col <= from || at >= to {
            return;
        }
        let blank = text.is_empty() || at < from || col > to;
        let shown = col.min(to) - at.max(from);
        if blank && style == Style::default() {
            blanks += shown;
            return;
        }
        if blanks > 0 {
            out.extend_from_slice(format!("\x1b[{blanks}C").as_bytes());
            blanks = 0;
        }
        if style != pen {
            style.write_sgr(out);
            pen = style;
        }
        if blank {
            out.extend(std::iter::repeat_n(b' ', shown));
        } else {
            out.extend_from_slice(text.as_bytes());
        }
    });
    if pen != Style::default() {
        out.extend_from_slice(b"\x1b[m");
    }
}

#[cfg(test)]
mod tests {
    use tapdeck_term::{Settings, Size};

    use super::*;

    /// What is painted into a small terminal is the part of the large one around its cursor.
    #[test]
    fn the_part_around_the_cursor_is_shown() {
        let mut term = Term::new(Size::new(20, 6), Settings::default());
        let mut small = Term::new(Size::new(8, 3), Settings::default());
        let mut crop = Crop::default();
        for bytes in [
            &b"one two three four\r\n2\r\n3\r\n"[..],
            b"\x1b[6;20H\x1b[31mX",
            b"\x1b[H",
            b"\xe4\xb8\xad\xe4\xb8\xad",
        ] {
            term.feed(bytes);
            let mut out = Vec::new();
            crop.paint(&term, 8, 3, None, &mut out);
            small.feed(&out);
            let (y0, x0) = crop.corner;
            for y in 0..3 {
                let text: String = small.row(y).map(|l| l.text()).unwrap_or_default();
                let whole: String = term.row(y + y0).map(|l| l.text()).unwrap_or_default();
                if whole.is_ascii() {
                    let part: String = whole.chars().skip(usize::from(x0)).take(8).collect();
                    assert_eq!(text, part.trim_end(), "row {y}");
                }
            }
            let (a, b) = (small.cursor(), term.cursor());
            assert_eq!((a.row + y0, a.col + x0), (b.row, b.col.min(x0 + 7)));
        }
        assert_eq!(small.row(0).map(|l| l.text()).as_deref(), Some("中中two"));
    }

    /// A long line moves the view to the right; the next one, which fits, is seen from its
    /// beginning again.
    #[test]
    fn the_view_goes_back_to_the_left_when_the_cursor_fits_there() {
        let mut term = Term::new(Size::new(60, 12), Settings::default());
        let mut crop = Crop::default();
        for (bytes, left) in
            [(&b"$ "[..], 0), (b"0123456789012345678901234567890123456789", 13), (b"\r\n$ ", 0)]
        {
            term.feed(bytes);
            crop.paint(&term, 30, 8, None, &mut Vec::new());
            assert_eq!(crop.corner.1, left, "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    /// A notice stands in the last row, the cursor where it belongs, and the row comes back.
    #[test]
    fn a_notice_stands_over_the_last_row() {
        let mut term = Term::new(Size::new(20, 6), Settings::default());
        let mut small = Term::new(Size::new(8, 3), Settings::default());
        let mut crop = Crop::default();
        term.feed(b"one\r\ntwo\r\nthree\x1b[H");
        for (notice, last) in [(None, "three"), (Some(&b"notice"[..]), "notice"), (None, "three")] {
            crop.forget();
            let mut out = Vec::new();
            crop.paint(&term, 8, 3, notice, &mut out);
            small.feed(&out);
            assert_eq!(small.row(2).map(|l| l.text()).as_deref(), Some(last));
            assert_eq!((small.cursor().row, small.cursor().col), (0, 0));
        }
    }
}
