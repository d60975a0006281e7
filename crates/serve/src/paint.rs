//! Frames for a painter that knows nothing of terminals: rows as pieces of text, each with the cells that it takes and
//! a style that is fully resolved, so that a browser needs no table of widths, no palette and no parser.
//!
//! A row is `[number, flags, [[col, width, text, style], …]]`. The number counts from the first row that the session
//! ever had, so that it stays the row's own while it moves up into scrollback. Flags: 1 the text goes on in the next
//! row, 2 double width, 4 and 8 the upper and lower half of double height. A style is a place in the frame's list of
//! `styles`, 0 for the plain one, which is not listed. A negative width says that the glyph may be wider or narrower
//! than its cells.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::{Value, json};
use tapdeck_tape::export::{cell_char, leads_to_the_web, pieces, row_flags};
use tapdeck_term::{
    Attrs, Colour, CursorShape, Generation, Line, MouseTracking, Rgb, Run, Size, Style, Term, Underline,
};

/// The longest text that is searched for, and the most hits that are told.
const MAX_NEEDLE: usize = 1000;
const MAX_HITS: usize = 1000;
/// The most rows in one answer.
const MAX_ROWS: u64 = 500;
/// Rows that have just left the screen and come with a frame.
const PASSED: u64 = 40;

/// How long a frame waits for the end of a synchronised update. A program that dies or forgets in the middle of one
/// must not leave its watchers with an old screen.
pub(crate) const HOLD_NS: u64 = 150_000_000;

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

/// The screen as JSON: what changed since something was drawn, or all of it. `seq` is the place in the output. Of the rows
/// that have left the screen since, the last few come with it: they may have changed before they left.
pub(crate) fn frame(term: &Term, seq: u64, drawn: Option<Drawn>) -> String {
    let top = top(term);
    let mut rows = Rows::new(term);
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
    let shape = match cursor.shape {
        CursorShape::Block | CursorShape::Default => "block",
        CursorShape::Underline => "underline",
        CursorShape::Bar => "bar",
    };
    let (fg, bg) = plain_colours(term);
    let head = json!({
        "paint": true,
        "full": drawn.is_none(),
        "seq": seq,
        "cols": size.cols,
        "rows_n": size.rows,
        "top": top,
        "first": term.evicted(),
        "title": shown(term.title()),
        "alternate": modes.alternate(),
        "mouse": modes.mouse() != MouseTracking::Off,
        "moves": matches!(modes.mouse(), MouseTracking::Any),
        "wheel": modes.alternate() && modes.alternate_scroll(),
        "focus": modes.focus(),
        "fg": hex(fg),
        "bg": hex(bg),
        "cursor": {
            "row": cursor.row,
            "col": cursor.col.min(size.cols.saturating_sub(1)),
            "visible": cursor.visible,
            "blink": cursor.blink,
            "shape": shape,
            "text": text,
            "width": width,
            "colour": hex(term.palette().dynamic(2)),
        },
    });
    rows.finish(&head)
}

/// Some rows, wherever they are by now: `{first, top, cols, from, styles, changed}`. What is gone or not yet there is
/// left out.
pub(crate) fn rows(term: &Term, request: &Value) -> Result<String, &'static str> {
    let number = |key: &str| request.get(key).and_then(Value::as_u64);
    let (Some(from), Some(to)) = (number("from"), number("to")) else {
        return Err("ROWS takes {\"from\": …, \"to\": …}, the second not included");
    };
    let (first, top) = (term.evicted(), top(term));
    let end = top + u64::from(term.size().rows);
    let start = from.max(first);
    let to = to.min(end).min(start.saturating_add(MAX_ROWS)).max(from);
    let mut rows = Rows::new(term);
    for n in start..to {
        if let Some(line) = line_at(term, n) {
            rows.push(n, line);
        }
    }
    let head = json!({"first": first, "top": top, "from": from, "to": to, "cols": term.size().cols});
    Ok(rows.finish(&head))
}

/// Looks for text in everything that the terminal holds, also where it wraps: `{text, hits: [[row, col, width], …],
/// more}`, the newest hits last. Small letters find capitals as well.
pub(crate) fn find(term: &Term, request: &Value) -> Result<Value, &'static str> {
    let needle = request.get("text").and_then(Value::as_str).unwrap_or_default();
    if needle.is_empty() || needle.len() > MAX_NEEDLE {
        return Err("FIND takes {\"text\": …} of at most 1000 bytes");
    }
    let exact = needle.chars().any(char::is_uppercase);
    let needle_folded: Vec<char> = needle.chars().map(|c| fold(c, exact)).collect();
    let mut hits: std::collections::VecDeque<Value> = std::collections::VecDeque::new();
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
        while at + needle_folded.len() <= logical.len() {
            let window = &logical[at..at + needle_folded.len()];
            if window.iter().map(|c| &c.0).eq(&needle_folded) {
                let (row, col) = (window[0].1, window[0].2);
                let width: u16 = window.iter().map(|c| c.3).sum();
                if hits.len() == MAX_HITS {
                    hits.pop_front();
                    more = true;
                }
                hits.push_back(json!([row, col, width]));
                at += needle_folded.len();
            } else {
                at += 1;
            }
        }
        logical.clear();
    }
    Ok(json!({"text": needle, "hits": hits, "more": more, "top": top(term), "first": term.evicted()}))
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

/// Rows on their way into a frame. They are written as text at once: as values first, they would take longer than
/// everything else.
struct Rows<'a> {
    term: &'a Term,
    text: String,
    styles: HashMap<Style, usize>,
    listed: Vec<Value>,
}

impl<'a> Rows<'a> {
    fn new(term: &'a Term) -> Self {
        Self { term, text: String::new(), styles: HashMap::new(), listed: Vec::new() }
    }

    fn push(&mut self, number: u64, line: Line<'_>) {
        self.push_runs(number, line, &line.runs());
    }

    fn push_runs(&mut self, number: u64, line: Line<'_>, runs: &[Run]) {
        let flags = row_flags(line);
        let comma = if self.text.is_empty() { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{comma}[{number},{flags},[");
        let mut comma = "";
        for run in runs {
            let style = self.style(&run.style);
            for piece in pieces(run) {
                let width = i32::from(piece.width) * if piece.pinned { -1 } else { 1 };
                let _ = write!(self.text, "{comma}[{},{width},", piece.col);
                put_text(piece.text, &mut self.text);
                let _ = write!(self.text, ",{style}]");
                comma = ",";
            }
        }
        if let Some((col, width)) = line.written_blanks() {
            let _ = write!(self.text, "{comma}[{col},{width},\"{:1$}\",0]", "", usize::from(width));
        }
        self.text.push_str("]]");
    }

    fn style(&mut self, style: &Style) -> usize {
        if *style == Style::default() {
            return 0;
        }
        if let Some(known) = self.styles.get(style) {
            return *known;
        }
        let look = look(self.term, style);
        let number = if look.as_object().is_some_and(serde_json::Map::is_empty) {
            0
        } else {
            self.listed.push(look);
            self.listed.len()
        };
        self.styles.insert(*style, number);
        number
    }

    fn finish(self, head: &Value) -> String {
        let mut text = head.to_string();
        text.pop();
        let styles = Value::from(self.listed);
        let _ = write!(text, ",\"styles\":{styles},\"changed\":[{}]}}", self.text);
        text
    }
}

/// Text of cells as JSON. What could act is replaced, or left out where it takes no cell.
fn put_text(text: &str, out: &mut String) {
    out.push('"');
    if text.bytes().all(|b| matches!(b, 0x20..=0x7e) && !matches!(b, b'"' | b'\\')) {
        out.push_str(text);
    } else {
        for c in text.chars().filter_map(cell_char) {
            if matches!(c, '"' | '\\') {
                out.push('\\');
            }
            out.push(c);
        }
    }
    out.push('"');
}

/// A style as a painter needs it: `f` and `b` colours where they are not the screen's own, `a` letters of attributes,
/// `u` and `uc` kind and colour of an underline, `l` where a link leads.
fn look(term: &Term, style: &Style) -> Value {
    let has = |attr| style.attrs.contains(attr);
    let palette = term.palette();
    let mut look = serde_json::Map::new();
    let mut note = |key: &str, value: Value| {
        look.insert(key.into(), value);
    };
    let (mut fg, mut bg) = (palette.foreground(style.fg), palette.background(style.bg));
    if has(Attrs::INVERSE) != term.modes().reverse_video() {
        (fg, bg) = (bg, fg);
    }
    let plain = plain_colours(term);
    if fg != plain.0 {
        note("f", json!(hex(fg)));
    }
    if bg != plain.1 {
        note("b", json!(hex(bg)));
    }
    // The colours of inverse text are exchanged already.
    let letters: String = style.attrs.and(Attrs::VISIBLE).without(Attrs::INVERSE).letters().collect();
    if !letters.is_empty() {
        note("a", json!(letters));
    }
    if style.underline != Underline::None {
        note("u", json!(style.underline.name()));
        if style.underline_colour != Colour::Default {
            note("uc", json!(hex(palette.foreground(style.underline_colour))));
        }
    }
    if let Some(link) = term.link(style.link).filter(|link| leads_to_the_web(&link.uri)) {
        note("l", json!(link.uri));
    }
    Value::Object(look)
}

/// Text and background where the program chose none.
fn plain_colours(term: &Term) -> (Rgb, Rgb) {
    let (fg, bg) = (term.palette().dynamic(0), term.palette().dynamic(1));
    if term.modes().reverse_video() { (bg, fg) } else { (fg, bg) }
}

fn hex(Rgb(r, g, b): Rgb) -> String {
    format!("{r:02x}{g:02x}{b:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tapdeck_term::Settings;

    fn screen(cols: u16, rows: u16, bytes: &[u8]) -> Term {
        let mut term = Term::new(Size::new(cols, rows), Settings::default());
        term.feed(bytes);
        term
    }

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).expect("JSON")
    }

    #[test]
    fn a_painter_gets_cells_and_colours_and_nothing_that_acts() {
        let term = screen(
            20,
            3,
            "a✻日\x1b[7mx\x1b[m\r\n\x1b[38;2;1;2;3;4:3;58;2;9;8;7mc\x1b[m\r\n\x1b]8;;https://e.x/\x07l\x1b]8;;javascript:1\x07m"
                .as_bytes(),
        );
        let frame = parsed(&frame(&term, 7, None));
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
    fn rows_keep_their_numbers_and_are_found_where_they_wrap() {
        let mut term = screen(10, 3, b"");
        for n in 0..50 {
            term.feed(format!("line {n}\r\n").as_bytes());
        }
        term.feed(b"abcdefgHello");
        let got = parsed(&rows(&term, &json!({"from": 10, "to": 12})).expect("rows"));
        assert_eq!(got["changed"][0][0], 10);
        assert_eq!(got["changed"][0][2][0][2], "line 10");
        assert_eq!(got["changed"].as_array().map(Vec::len), Some(2));
        let far = parsed(&rows(&term, &json!({"from": 5, "to": u64::MAX})).expect("rows"));
        assert!(far["changed"].as_array().is_some_and(|r| r.len() <= 500));
        assert!(rows(&term, &json!({})).is_err());
        let found = find(&term, &json!({"text": "ghello"})).expect("found");
        assert_eq!(found["hits"], json!([[50, 6, 6]]), "capitals are found, and over the wrap");
        assert_eq!(find(&term, &json!({"text": "Ghello"})).expect("found")["hits"], json!([]));
        assert!(find(&term, &json!({"text": ""})).is_err());
    }

    #[test]
    fn deltas_hold_the_rows_that_changed() {
        let mut term = screen(10, 3, b"one\r\ntwo");
        let drawn = Drawn::of(&term);
        term.feed(b"!");
        let got = parsed(&frame(&term, 0, Some(drawn)));
        assert_eq!(got["changed"], json!([[1, 0, [[0, 4, "two!", 0]]]]));
        assert_eq!(got["full"], false);
        // A row that changed and then left the screen is told as it left.
        let drawn = Drawn::of(&term);
        term.feed(b"\x1b[HONE\x1b[3;1H\r\n");
        let got = parsed(&frame(&term, 0, Some(drawn)));
        assert_eq!(got["changed"][0], json!([0, 0, [[0, 3, "ONE", 0]]]));
        assert_eq!(got["top"], 1);
        term.resize(Size::new(11, 3));
        assert_eq!(parsed(&frame(&term, 0, Some(drawn)))["full"], true);
    }
}
