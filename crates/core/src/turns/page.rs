//! Reading the model as a page: rows by their absolute number, what stands in front of the cursor,
//! and the text that was written since a place in the stream.

use tapdeck_term::{Attrs, Line, Settings, Size, Style, Term};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Rows that a prompt or an echo may wrap over.
const WRAPS: u64 = 64;
/// Rows that a line of input may wrap over.
const LOGICAL: u64 = 1000;

/// Text without what a wrap, an indent or a row's end may change.
pub fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && !c.is_control()).collect()
}

/// Text without anything that a program may draw in another way than it was typed: blanks, accents
/// and other marks, characters without a width.
pub fn skeleton(text: &str) -> String {
    let is_kept = |c: &char| {
        !c.is_whitespace() && !c.is_control() && !is_combining_mark(*c) && tapdeck_term::char_width(*c) > 0
    };
    text.nfd().filter(is_kept).collect()
}

/// How much of a text's end is looked for, where all of it may not be in sight.
const ENDING: usize = 24;

/// The end of a squeezed text, enough to know it by.
pub fn ending(squeezed: &str) -> &str {
    let first = squeezed.char_indices().rev().take(ENDING).last();
    &squeezed[first.map_or(0, |(at, _)| at)..]
}

/// What a row looks like, to be compared with another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    text: String,
    styles: Vec<Style>,
}

impl Look {
    fn of(line: Line<'_>) -> Self {
        let styles = line.runs().into_iter().filter(|r| !r.text.trim().is_empty()).map(|r| r.style).collect();
        Self { text: line.text(), styles }
    }

    /// Whether both are the same part of a prompt: the same text, or other text in the same
    /// colours.
    fn is_like(&self, other: &Self) -> bool {
        let coloured = self.styles.iter().any(|s| *s != Style::default());
        self.text == other.text || (coloured && self.styles == other.styles)
    }

    fn is_blank(&self) -> bool {
        self.text.is_empty()
    }
}

/// A row by its number since the beginning.
pub(super) fn row(term: &Term, absolute: u64) -> Option<Line<'_>> {
    let at = usize::try_from(absolute.checked_sub(term.evicted())?).ok()?;
    match at.checked_sub(term.scrollback_len()) {
        None => term.scrollback_row(at),
        Some(y) => term.row(u16::try_from(y).ok()?),
    }
}

/// The number of a screen row since the beginning.
pub(super) fn absolute(term: &Term, y: u16) -> u64 {
    term.evicted() + term.scrollback_len() as u64 + u64::from(y)
}

/// The columns of a row from one to another, blanks included.
pub(super) fn columns(line: Line<'_>, from: u16, to: u16) -> String {
    let mut out = String::new();
    let mut col = 0;
    line.each(|text, width, _| {
        if col >= usize::from(from) && col < usize::from(to) {
            out.push_str(if text.is_empty() { " " } else { text });
        }
        col += width;
    });
    let have = col.max(usize::from(from));
    out.push_str(&" ".repeat(usize::from(to).saturating_sub(have)));
    out
}

/// What stands in front of the cursor, the rows that wrap into its own included, and the number of
/// the first of them.
pub(super) fn before_cursor(term: &Term) -> (String, u64) {
    let cursor = term.cursor();
    let here = absolute(term, cursor.row);
    let mut first = here;
    while here - first < WRAPS && first > 0 && row(term, first - 1).is_some_and(|l| l.wrapped()) {
        first -= 1;
    }
    let cols = term.size().cols;
    let mut text = String::new();
    for n in first..here {
        text.push_str(&row(term, n).map(|l| columns(l, 0, cols)).unwrap_or_default());
    }
    text.push_str(&row(term, here).map(|l| columns(l, 0, cursor.col)).unwrap_or_default());
    (text, first)
}

/// The last of the lines that were typed, squeezed.
fn last_line(typed: &str) -> String {
    squeezed(typed.trim_end().rsplit('\n').next().unwrap_or_default())
}

/// Whether the end of this line stands where the cursor is.
pub(super) fn is_shown(term: &Term, line: &str) -> bool {
    let behind = row(term, absolute(term, term.cursor().row))
        .map(|l| columns(l, term.cursor().col, term.size().cols))
        .unwrap_or_default();
    squeezed(&(before_cursor(term).0 + &behind)).contains(ending(&last_line(line)))
}

/// How much of an output is looked over for the echo of what was typed.
const ECHOED: usize = 64 << 10;

/// Whether a program wrote the end of this line: an echo, however it was drawn.
pub(super) fn is_echoed(output: &[u8], line: &str) -> bool {
    let text = String::from_utf8_lossy(&output[..output.len().min(ECHOED)]);
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => match chars.next() {
                Some('[') => drop(chars.find(|c| ('@'..='~').contains(c))),
                Some(']') => drop(chars.find(|c| matches!(c, '\x07' | '\\'))),
                _ => {}
            },
            c if c.is_control() => {}
            c => plain.push(c),
        }
    }
    squeezed(&plain).contains(ending(&last_line(line)))
}

/// The looks of the rows above this one, the nearest first.
pub(super) fn above(term: &Term, absolute: u64, n: u64) -> Vec<Look> {
    (1..=n).map_while(|i| row(term, absolute.checked_sub(i)?)).map(Look::of).collect()
}

/// How many of the rows above belong to a prompt that was like this before.
pub(super) fn alike(now: &[Look], before: &[Look]) -> u64 {
    let same = now.iter().zip(before).take_while(|(a, b)| a.is_like(b)).count();
    // A blank row alone may as well be output.
    let Some(last) = now[..same].iter().rposition(|l| !l.is_blank()) else { return 0 };
    let blanks = now[last + 1..same].len();
    (last + 1 + blanks) as u64
}

/// What was written between two places.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// Lines as they were written, wraps undone.
    pub(super) lines: Vec<String>,
    /// The last of them has an end.
    pub(super) terminated: bool,
    /// Some of it has left the scrollback.
    pub(super) evicted: bool,
    /// The rows that they took, but for the one that they end in.
    pub(super) rows: usize,
}

/// The text written from byte `from` on that stands above a place on the page, below the row of the
/// prompt.
pub(super) fn written(term: &Term, from: u64, end: (u64, u16), prompt: u64) -> Written {
    let mut first = end.0;
    let mut stopped = None;
    // A row that was blank already and that a line end alone passed over has not been written to.
    let mut written = collect(term, end, |n, line| {
        let before = line.written().is_some_and(|w| w < from);
        if before && !line.text().is_empty() {
            stopped = Some(n);
            return true;
        }
        if !before {
            first = n;
        }
        false
    });
    // Of those above everything that was written, the ones below the prompt are the answer's.
    if stopped.is_none_or(|n| n < prompt) {
        let top = end.0 - (written.rows as u64).min(end.0);
        let above = usize::try_from(first - top.min(first)).unwrap_or(0);
        written.lines.drain(..above.min(written.lines.len()));
    }
    written
}

/// What stands on the screen above a row, up to one that repeats the question, and what has
/// scrolled off since `from`; and whether there was such a row.
pub(super) fn answer(term: &Term, from: u64, end: u64, is_echo: impl Fn(&str) -> bool) -> (Written, bool) {
    let screen = absolute(term, 0);
    let mut above_echo = false;
    let mut found = false;
    let written = collect(term, (end, 0), |n, line| {
        // The row of the question itself is taken, and what is above it is not.
        let before = n < screen && line.written().is_some_and(|w| w < from);
        let echo = is_echo(&line.text());
        found |= echo && !above_echo && !before;
        std::mem::replace(&mut above_echo, echo) || before
    });
    (written, found)
}

/// Rows and memory of a page that is made for one answer, and bytes that it takes at a time. What
/// has scrolled off is taken off the page each time, so answers of any length fit.
const PAGE_ROWS: usize = 1 << 17;
const PAGE_BYTES: usize = 64 << 20;
const PIECE: usize = 16 << 10;

/// What these bytes show on a page that is long enough for all of it, up to so many bytes of text.
pub(super) fn rendered(raw: &[u8], size: Size, limit: usize) -> Written {
    let settings = Settings::default().scrollback(PAGE_ROWS).scrollback_bytes(PAGE_BYTES);
    let mut term = Term::new(size, settings);
    let mut taken = Taken { next: 0, goes_on: false, room: limit, written: Written::default() };
    for piece in raw.chunks(PIECE) {
        term.feed(piece);
        taken.take_to(&term, absolute(&term, 0));
        if taken.written.evicted {
            return taken.written;
        }
    }
    let cursor = term.cursor();
    let here = absolute(&term, cursor.row);
    taken.take_to(&term, here);
    taken.written.terminated = cursor.col == 0;
    if cursor.col > 0 && !taken.written.evicted {
        let tail = row(&term, here).map(|l| columns(l, 0, cursor.col)).unwrap_or_default();
        taken.push(&tail, false);
    }
    taken.written
}

/// Rows that were taken off a page.
struct Taken {
    /// The next row.
    next: u64,
    /// The last one wraps into it.
    goes_on: bool,
    /// Bytes of text that still fit.
    room: usize,
    written: Written,
}

impl Taken {
    fn take_to(&mut self, term: &Term, end: u64) {
        while self.next < end && !self.written.evicted {
            match row(term, self.next) {
                Some(line) if line.wrapped() => self.push(&columns(line, 0, term.size().cols), true),
                Some(line) => self.push(&line.text(), false),
                None => self.written.evicted = true,
            }
            self.next += 1;
            self.written.rows += 1;
        }
    }

    fn push(&mut self, text: &str, wrapped: bool) {
        // The line's end counts, too.
        let fits = text.floor_char_boundary(self.room);
        self.written.evicted |= fits < text.len() || self.room == 0;
        self.room = self.room.saturating_sub(text.len() + usize::from(!wrapped));
        let goes_on = std::mem::replace(&mut self.goes_on, wrapped);
        match self.written.lines.last_mut().filter(|_| goes_on) {
            Some(last) => last.push_str(&text[..fits]),
            None if fits > 0 || !self.written.evicted => self.written.lines.push(text[..fits].to_owned()),
            None => {}
        }
    }
}

fn collect(term: &Term, end: (u64, u16), mut stop: impl FnMut(u64, Line<'_>) -> bool) -> Written {
    let (end_row, end_col) = end;
    let cols = term.size().cols;
    // From below, because what is above may be long.
    let mut rows = Vec::new();
    let mut evicted = false;
    let mut n = end_row;
    while n > 0 {
        n -= 1;
        let Some(line) = row(term, n) else {
            evicted = true;
            break;
        };
        if stop(n, line) {
            break;
        }
        let text = if line.wrapped() { columns(line, 0, cols) } else { line.text() };
        rows.push((text, line.wrapped()));
    }
    rows.reverse();
    let taken = rows.len();
    let mut lines: Vec<String> = Vec::new();
    let mut goes_on = false;
    for (text, wrapped) in rows {
        match lines.last_mut() {
            Some(last) if goes_on => last.push_str(&text),
            _ => lines.push(text),
        }
        goes_on = wrapped;
    }
    let tail = if end_col > 0 { row(term, end_row).map(|l| columns(l, 0, end_col)) } else { None };
    let mut terminated = true;
    if let Some(tail) = tail {
        match lines.last_mut() {
            Some(last) if goes_on => last.push_str(&tail),
            _ => lines.push(tail),
        }
        terminated = false;
    }
    Written { lines, terminated, evicted, rows: taken }
}

/// Whether a row was written to at or behind a byte.
pub(super) fn is_written_since(term: &Term, absolute: u64, byte: u64) -> bool {
    row(term, absolute).and_then(|l| l.written()).is_some_and(|w| w >= byte)
}

/// Whether a row ends in the character by which a shell shows that there was no line end: an
/// inverse one, or a faint arrow.
pub(super) fn ends_in_mark(term: &Term, absolute: u64) -> bool {
    let runs = row(term, absolute).map(|l| l.runs()).unwrap_or_default();
    let last = runs.iter().rev().find(|r| !r.text.trim().is_empty());
    last.is_some_and(|r| match r.text.trim_end() {
        "%" | "#" => r.style.attrs.contains(Attrs::INVERSE),
        "⏎" => r.style.attrs.contains(Attrs::FAINT),
        _ => false,
    })
}

/// Takes out the character by which a shell shows that the output had no line end.
pub(super) fn strip_eol_mark(term: &Term, written: &mut Written, end: (u64, u16)) {
    if end.1 == 0 && end.0 > 0 && ends_in_mark(term, end.0 - 1) {
        if let Some(last) = written.lines.last_mut() {
            last.truncate(last.trim_end().len());
            last.pop();
        }
        written.terminated = false;
    }
}

/// A row from a column on, with those that it wraps into.
pub(super) fn logical(term: &Term, absolute: u64, col: u16) -> String {
    let cols = term.size().cols;
    let mut text = row(term, absolute).map(|l| columns(l, col, cols)).unwrap_or_default();
    let mut n = absolute;
    while row(term, n).is_some_and(|l| l.wrapped()) && n - absolute < LOGICAL {
        n += 1;
        text.push_str(&row(term, n).map(|l| columns(l, 0, cols)).unwrap_or_default());
    }
    text.truncate(text.trim_end().len());
    text
}

impl Written {
    /// A text that is known without the screen.
    pub(super) fn of(text: &str) -> Self {
        Self { lines: text.lines().map(str::to_owned).collect(), terminated: true, ..Self::default() }
    }

    /// Whether anything was shown, in sight or not.
    pub(super) fn is_answer(&self) -> bool {
        self.evicted || !self.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.iter().all(|l| l.trim().is_empty())
    }

    pub(super) fn text(&self) -> String {
        let mut text = self.lines.join("\n");
        if self.terminated && !self.lines.is_empty() {
            text.push('\n');
        }
        text
    }
}
