//! Frames for a painter that knows nothing of terminals. A row is pieces of text, each with the
//! cells that it takes and a fully resolved style, so that a browser needs no table of widths, no
//! palette and no parser.
//!
//! A row is `[number, flags, [[col, width, text, style], …]]`. The number counts from the first row
//! that the session ever had, so that a row keeps it while it moves up into scrollback. Flags: 1
//! the text goes on in the next row, 2 double width, 4 and 8 the upper and lower half of double
//! height. A style is an index into the frame's list of `styles`, 0 for the plain one, which is not
//! listed. A negative width says that the glyph may be wider or narrower than its cells.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tapdeck_core::Offset;
use tapdeck_proto::bus;
use tapdeck_tape::export::{cell_char, pieces, row_flags};
use tapdeck_term::{
    Attrs, Colour, CursorShape, Generation, Line, MouseTracking, Palette, Rgb, Run, Size, Style, Term, Theme,
    Underline,
};

/// The most hits in one answer.
const MAX_HITS: usize = 1000;
/// The most rows in one answer.
const MAX_ROWS: u64 = 500;
/// Rows that have just left the screen and come with a frame.
const PASSED: u64 = 40;

/// How long a frame waits for the end of a synchronised update. A program that dies or hangs in the
/// middle of one must not leave its observers with an old screen.
pub(crate) const HOLD: Duration = Duration::from_millis(150);

/// What a painter has drawn: the frame after it tells what has changed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Drawn {
    generation: Generation,
    size: Size,
    top: u64,
}

impl Drawn {
    /// What has been drawn with a frame of this terminal.
    pub(crate) fn of(term: &Term) -> Self {
        Self { generation: term.generation(), size: term.size(), top: top(term) }
    }
}

/// Returns the screen at this place in the output: the changes since the last drawing, or all of
/// it. The last few rows that have left the screen since come with it: they may have changed before
/// they left.
pub(crate) fn frame(term: &Term, here: Offset, drawn: Option<Drawn>, theme: Theme) -> bus::Paint<'static> {
    let top = top(term);
    let mut rows = Rows::new(term, theme);
    // Another size is another picture.
    let drawn = drawn.filter(|drawn| drawn.size == term.size() && drawn.top <= top);
    match drawn {
        None => {
            for (y, line) in (0..).zip(term.screen()) {
                rows.push(top + y, line);
            }
        }
        Some(drawn) => {
            for n in drawn.top.max(top.saturating_sub(PASSED)).max(term.evicted())..top {
                if let Some(line) = line_at(term, n) {
                    rows.push(n, line);
                }
            }
            for row in term.diff(drawn.generation).rows {
                if let Some(line) = term.row(row.row) {
                    rows.push_runs(top + u64::from(row.row), line, &row.runs);
                }
            }
        }
    }
    let (size, cursor, modes) = (term.size(), term.cursor(), term.modes());
    let (text, width) = under_cursor(term);
    let (fg, bg) = plain_colours(term, &rows.palette);
    bus::Paint {
        paint: true,
        full: drawn.is_none(),
        seq: here.0,
        cols: size.cols,
        rows_n: size.rows,
        top,
        first: term.evicted(),
        title: shown(term.title()),
        alternate: modes.alternate(),
        mouse: modes.mouse() != MouseTracking::Off,
        moves: matches!(modes.mouse(), MouseTracking::Any),
        wheel: modes.alternate() && modes.alternate_scroll(),
        focus: modes.focus(),
        fg: hex(fg),
        bg: hex(bg),
        cursor: bus::PaintCursor {
            row: cursor.row,
            col: cursor.col.min(size.cols.saturating_sub(1)),
            visible: cursor.visible,
            blink: cursor.blink,
            shape: shape(cursor.shape),
            text,
            width,
            colour: hex(rows.palette.dynamic(2)),
        },
        styles: rows.listed,
        changed: rows.rows,
    }
}

/// Returns rows by their numbers, as many as fit in one answer. Rows that are gone, or not there
/// yet, are left out.
pub(crate) fn rows(term: &Term, asked: bus::Rows, theme: Theme) -> bus::PaintedRows<'static> {
    let (first, top) = (term.evicted(), top(term));
    let end = top + u64::from(term.size().rows);
    let from = asked.from;
    let start = from.max(first);
    let to = asked.to.min(end).min(start.saturating_add(MAX_ROWS)).max(from);
    let mut rows = Rows::new(term, theme);
    for n in start..to {
        if let Some(line) = line_at(term, n) {
            rows.push(n, line);
        }
    }
    let cols = term.size().cols;
    bus::PaintedRows { first, top, from, to, cols, styles: rows.listed, changed: rows.rows }
}

/// Looks for text in everything that the terminal holds, also where it wraps. Smart case.
pub(crate) fn find(term: &Term, asked: bus::Find) -> bus::Found {
    let exact = asked.text.chars().any(char::is_uppercase);
    let needle: Vec<char> = asked.text.chars().map(|c| fold(c, exact)).collect();
    let mut hits = VecDeque::new();
    let mut more = false;
    let mut logical: Vec<(char, u64, u16, u16)> = Vec::new();
    for (row, line) in (term.evicted()..).zip(term.lines()) {
        let mut col = 0u16;
        line.each(|text, width, _| {
            let text = if text.is_empty() { " " } else { text };
            // Marks on a letter are part of its cell.
            for (i, c) in text.chars().enumerate() {
                logical.push((fold(c, exact), row, col, if i == 0 { width as u16 } else { 0 }));
            }
            col += width as u16;
        });
        if line.wrapped() && logical.len() < 1 << 20 {
            continue;
        }
        let mut at = 0;
        while at + needle.len() <= logical.len() {
            let window = &logical[at..at + needle.len()];
            if window.iter().map(|c| &c.0).eq(&needle) {
                if hits.len() == MAX_HITS {
                    hits.pop_front();
                    more = true;
                }
                hits.push_back((window[0].1, window[0].2, window.iter().map(|c| c.3).sum()));
                at += needle.len();
            } else {
                at += 1;
            }
        }
        logical.clear();
    }
    bus::Found { text: asked.text, hits: hits.into(), more, top: top(term), first: term.evicted() }
}

fn fold(c: char, exact: bool) -> char {
    if exact { c } else { c.to_lowercase().next().unwrap_or(c) }
}

/// The number of the screen's first row.
fn top(term: &Term) -> u64 {
    term.evicted() + term.scrollback_len() as u64
}

fn line_at(term: &Term, number: u64) -> Option<Line<'_>> {
    let top = top(term);
    if number >= top {
        return term.row(u16::try_from(number - top).ok()?);
    }
    term.scrollback_row(usize::try_from(number.checked_sub(term.evicted())?).ok()?)
}

/// What stands under the cursor, so that a block over it can show it, and the cells that it takes.
fn under_cursor(term: &Term) -> (String, u16) {
    let cursor = term.cursor();
    let mut found = (String::new(), 1);
    let Some(line) = term.row(cursor.row) else { return found };
    let mut col = 0;
    line.each(|text, width, _| {
        if col == usize::from(cursor.col) {
            found = (shown(text), width as u16);
        }
        col += width;
    });
    found
}

fn shown(text: &str) -> String {
    text.chars().filter_map(cell_char).collect()
}

/// Rows on their way into a frame.
struct Rows<'a> {
    term: &'a Term,
    palette: Palette,
    rows: Vec<bus::PaintRow<'static>>,
    styles: HashMap<Style, usize>,
    listed: Vec<bus::PaintStyle>,
}

impl<'a> Rows<'a> {
    fn new(term: &'a Term, theme: Theme) -> Self {
        let palette = term.palette().under(theme);
        Self { term, palette, rows: Vec::new(), styles: HashMap::new(), listed: Vec::new() }
    }

    fn push(&mut self, number: u64, line: Line<'_>) {
        self.push_runs(number, line, &line.runs());
    }

    fn push_runs(&mut self, number: u64, line: Line<'_>, runs: &[Run]) {
        let mut row = Vec::new();
        for run in runs {
            let style = self.style(&run.style);
            row.extend(pieces(run).into_iter().map(|piece| {
                let width = i32::from(piece.width) * if piece.pinned { -1 } else { 1 };
                bus::Piece(piece.col, width, Cow::Owned(shown(piece.text)), style)
            }));
        }
        if let Some((col, width)) = line.written_blanks() {
            row.push(bus::Piece(col, i32::from(width), Cow::Owned(" ".repeat(usize::from(width))), 0));
        }
        self.rows.push(bus::PaintRow(number, row_flags(line), row));
    }

    fn style(&mut self, style: &Style) -> usize {
        if *style == Style::default() {
            return 0;
        }
        if let Some(known) = self.styles.get(style) {
            return *known;
        }
        let look = look(self.term, &self.palette, style);
        let number = if look == bus::PaintStyle::default() {
            0
        } else {
            self.listed.push(look);
            self.listed.len()
        };
        self.styles.insert(*style, number);
        number
    }
}

/// Returns a style as a painter needs it.
fn look(term: &Term, palette: &Palette, style: &Style) -> bus::PaintStyle {
    let has = |attr| style.attrs.contains(attr);
    let (mut fg, mut bg) = (palette.foreground(style.fg), palette.background(style.bg));
    if has(Attrs::INVERSE) != term.modes().reverse_video() {
        (fg, bg) = (bg, fg);
    }
    let plain = plain_colours(term, palette);
    let underlined = style.underline != Underline::None;
    let coloured = underlined && style.underline_colour != Colour::Default;
    let link = term.link(style.link);
    bus::PaintStyle {
        f: (fg != plain.0).then(|| hex(fg)),
        b: (bg != plain.1).then(|| hex(bg)),
        // The colours of inverse text are exchanged already.
        a: style.attrs.and(Attrs::VISIBLE).without(Attrs::INVERSE).letters().collect(),
        u: underlined.then(|| Cow::Borrowed(style.underline.name())),
        uc: coloured.then(|| hex(palette.foreground(style.underline_colour))),
        l: link.map(|link| link.uri.to_string()),
    }
}

pub(crate) fn shape(shape: CursorShape) -> bus::CursorShape {
    match shape {
        CursorShape::Block | CursorShape::Default => bus::CursorShape::Block,
        CursorShape::Underline => bus::CursorShape::Underline,
        CursorShape::Bar => bus::CursorShape::Bar,
    }
}

/// Text and background where the program chose none.
fn plain_colours(term: &Term, palette: &Palette) -> (Rgb, Rgb) {
    let (fg, bg) = (palette.dynamic(0), palette.dynamic(1));
    if term.modes().reverse_video() { (bg, fg) } else { (fg, bg) }
}

/// The theme that a painter asked for; xterm's colours if it asked for none.
pub(crate) fn theme(asked: Option<bus::PaintTheme>) -> Theme {
    let rgb = |bus::Hex(r, g, b)| Rgb(r, g, b);
    asked.map_or(Theme::XTERM, |asked| Theme {
        foreground: rgb(asked.fg),
        background: rgb(asked.bg),
        cursor: rgb(asked.cursor),
        ansi: asked.ansi.map(rgb),
    })
}

pub(crate) fn hex(Rgb(r, g, b): Rgb) -> String {
    format!("{r:02x}{g:02x}{b:02x}")
}

#[cfg(test)]
mod tests {
    use serde::Serialize;
    use serde_json::{Value, json};
    use tapdeck_term::Settings;

    use super::*;

    fn screen(cols: u16, rows: u16, bytes: &[u8]) -> Term {
        let mut term = Term::new(Size::new(cols, rows), Settings::default());
        term.feed(bytes);
        term
    }

    fn parsed(message: &impl Serialize) -> Value {
        serde_json::to_value(message).expect("JSON")
    }

    fn hits(term: &Term, text: &str) -> Vec<(u64, u16, u16)> {
        find(term, bus::Find { text: text.to_owned() }).hits
    }

    #[test]
    fn a_painter_gets_cells_and_colours_and_nothing_that_acts() {
        let term = screen(
            20,
            3,
            "a✻日\x1b[7mx\x1b[m\r\n\x1b[38;2;1;2;3;4:3;58;2;9;8;7mc\x1b[m\r\n\x1b]8;;https://e.x/\x07l\x1b]8;;javascript:1\x07m"
                .as_bytes(),
        );
        let frame = parsed(&frame(&term, Offset(7), None, Theme::XTERM));
        assert_eq!(frame["changed"][0][2][0], json!([0, 1, "a", 0]));
        assert_eq!(frame["changed"][0][2][1], json!([1, -1, "✻", 0]));
        assert_eq!(frame["changed"][0][2][2], json!([2, -2, "日", 0]));
        let inverse = frame["changed"][0][2][3][3].as_u64().expect("a style") as usize - 1;
        assert_eq!(frame["styles"][inverse], json!({"f": "000000", "b": "e5e5e5"}));
        let curly = frame["changed"][1][2][0][3].as_u64().expect("a style") as usize - 1;
        assert_eq!(frame["styles"][curly], json!({"f": "010203", "u": "curly", "uc": "090807"}));
        let link = frame["changed"][2][2][0][3].as_u64().expect("a style") as usize - 1;
        assert_eq!(frame["styles"][link], json!({"l": "https://e.x/"}));
        assert_eq!(frame["changed"][2][2][1][3], 0, "other schemes are no links");
        assert_eq!(frame["seq"], 7);
    }

    #[test]
    fn frames_and_rows_have_the_colours_of_a_theme() {
        let term = screen(10, 2, b"\x1b[34mblue \x1b[104mon");
        for (name, theme) in Theme::BUILT_IN {
            let styles =
                json!([{"f": hex(theme.ansi[4])}, {"f": hex(theme.ansi[4]), "b": hex(theme.ansi[12])}]);
            let frame = parsed(&frame(&term, Offset(0), None, *theme));
            let plain = [&frame["fg"], &frame["bg"], &frame["cursor"]["colour"]];
            assert_eq!(plain, [&hex(theme.foreground), &hex(theme.background), &hex(theme.cursor)], "{name}");
            assert_eq!(frame["styles"], styles, "{name}");
            let rows = parsed(&rows(&term, bus::Rows { from: 0, to: 2 }, *theme));
            assert_eq!(rows["styles"], styles, "{name}");
        }
        assert_eq!(theme(None), Theme::XTERM);
    }

    #[test]
    fn rows_keep_their_numbers_and_are_found_where_they_wrap() {
        let mut term = screen(10, 3, b"");
        for n in 0..50 {
            term.feed(format!("line {n}\r\n").as_bytes());
        }
        term.feed(b"abcdefgHello");
        let got = parsed(&rows(&term, bus::Rows { from: 10, to: 12 }, Theme::XTERM));
        assert_eq!(got["changed"][0][0], 10);
        assert_eq!(got["changed"][0][2][0][2], "line 10");
        assert_eq!(got["changed"].as_array().map(Vec::len), Some(2));
        let far = parsed(&rows(&term, bus::Rows { from: 5, to: u64::MAX }, Theme::XTERM));
        assert!(far["changed"].as_array().is_some_and(|r| r.len() <= 500));
        assert_eq!(hits(&term, "ghello"), [(50, 6, 6)], "capitals are found, and over the wrap");
        assert_eq!(hits(&term, "Ghello"), []);
    }

    #[test]
    fn deltas_hold_the_rows_that_changed() {
        let mut term = screen(10, 3, b"one\r\ntwo");
        let drawn = Drawn::of(&term);
        term.feed(b"!");
        let got = parsed(&frame(&term, Offset(0), Some(drawn), Theme::XTERM));
        assert_eq!(got["changed"], json!([[1, 0, [[0, 4, "two!", 0]]]]));
        assert_eq!(got["full"], false);
        // A row that changed and then left the screen is told as it left.
        let drawn = Drawn::of(&term);
        term.feed(b"\x1b[HONE\x1b[3;1H\r\n");
        let got = parsed(&frame(&term, Offset(0), Some(drawn), Theme::XTERM));
        assert_eq!(got["changed"][0], json!([0, 0, [[0, 3, "ONE", 0]]]));
        assert_eq!(got["top"], 1);
        term.resize(Size::new(11, 3));
        assert_eq!(parsed(&frame(&term, Offset(0), Some(drawn), Theme::XTERM))["full"], true);
    }
}
