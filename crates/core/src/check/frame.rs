//! Frames: what was on the screen, derived from the bytes by the terminal model and by nothing
//! else.

use std::sync::{Arc, OnceLock};

use tapdeck_term::{Changes, Cursor, Line, Modes, RowSet, Settings, Size, Term, char_width};

use super::timeline::{Pos, What};

/// A text that is worked out once for all claims with the same rules: many claims look at the same
/// rows through the same rules. It is no part of what a row or a frame is.
#[derive(Debug, Default)]
pub(crate) struct Memo(OnceLock<(Vec<usize>, String)>);

impl Memo {
    /// The text under this key; `None` when the place was taken by another.
    pub(crate) fn get(&self, key: &[usize], make: impl FnOnce() -> String) -> Option<&str> {
        let (is, text) = self.0.get_or_init(|| (key.to_vec(), make()));
        (is == key).then_some(text.as_str())
    }
}

impl Clone for Memo {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Memo {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Memo {}

/// A row of the screen as text that knows its columns.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Row {
    text: String,
    /// Where each column begins in the text; empty when every byte is a column.
    stops: Vec<u32>,
    /// The text goes on in the next row.
    wrapped: bool,
    /// The text with its rules applied.
    pub(crate) normalised: Memo,
}

impl Row {
    fn of(line: &Line<'_>) -> Self {
        let mut row = Self { wrapped: line.wrapped(), text: line.text(), ..Self::default() };
        // Most rows are of characters that take a byte and a column each.
        if row.text.is_ascii() {
            return row;
        }
        let (mut at, end) = (0, row.text.len());
        line.each(|text, width, _| {
            if at >= end {
                return;
            }
            row.stops.push(at as u32);
            at += text.len().max(1);
            // The second half of a wide character belongs to what comes next.
            row.stops.resize(row.stops.len() + width.saturating_sub(1), at.min(end) as u32);
        });
        row
    }

    /// A row that shows this text.
    pub fn from_text(text: &str) -> Self {
        let mut row = Self { text: text.to_owned(), ..Self::default() };
        if text.is_ascii() {
            return row;
        }
        for (at, c) in text.char_indices() {
            match char_width(c) {
                0 => {}
                width => {
                    row.stops.push(at as u32);
                    row.stops.resize(row.stops.len() + width - 1, (at + c.len_utf8()) as u32);
                }
            }
        }
        row
    }

    /// The text, without blanks at its end.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the text goes on in the next row.
    pub(crate) fn wrapped(&self) -> bool {
        self.wrapped
    }

    fn offset(&self, col: u16) -> usize {
        let col = usize::from(col);
        let at = if self.stops.is_empty() { Some(col) } else { self.stops.get(col).map(|o| *o as usize) };
        at.unwrap_or(usize::MAX).min(self.text.len())
    }

    /// The text of some columns, counted from 0, the last not included.
    pub(crate) fn slice(&self, from: u16, to: u16) -> &str {
        let (from, to) = (self.offset(from), self.offset(to));
        &self.text[from..to.max(from)]
    }

    /// The column of a place in the text.
    pub fn column(&self, byte: usize) -> u16 {
        let col = if self.stops.is_empty() {
            byte
        } else if byte >= self.text.len() {
            self.stops.len()
        } else {
            self.stops.iter().take_while(|o| **o as usize <= byte).count().saturating_sub(1)
        };
        u16::try_from(col).unwrap_or(u16::MAX)
    }

    /// Columns that the text takes.
    pub(crate) fn width(&self) -> u16 {
        self.column(self.text.len())
    }
}

/// What a terminal showed, from a place in the timeline on.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Since when.
    pub(crate) at: Pos,
    /// Bytes of output so far.
    pub(crate) offset: u64,
    /// Columns and rows.
    pub size: Size,
    /// The rows from the top; those that did not change are shared with the frame before.
    pub rows: Vec<Arc<Row>>,
    /// The cursor.
    pub cursor: Cursor,
    /// The modes in force.
    pub modes: Modes,
    /// The window's title.
    pub(crate) title: Arc<str>,
    /// Rows that have left the screen at its top since the start.
    pub(crate) scrolled: u64,
    /// All rows as one text, with its rules applied.
    pub(crate) joined: Memo,
}

impl Frame {
    /// A picture of this terminal, from the start of no timeline.
    pub fn of(term: &Term) -> Self {
        Self {
            at: Pos::default(),
            offset: 0,
            size: term.size(),
            rows: term.screen().map(|line| Arc::new(Row::of(&line))).collect(),
            cursor: term.cursor(),
            modes: term.modes(),
            title: term.title().into(),
            scrolled: term.evicted() + term.scrollback_len() as u64,
            joined: Memo::default(),
        }
    }

    /// The screen as text, blank rows at the end left off.
    pub fn text(&self) -> String {
        let mut text: Vec<&str> = self.rows.iter().map(|r| r.text()).collect();
        while text.last().is_some_and(|t| t.is_empty()) {
            text.pop();
        }
        text.join("\n")
    }
}

/// Feeds a terminal and takes pictures of it.
#[derive(Debug)]
pub struct Screen {
    term: Term,
    at: Pos,
    dirty: RowSet,
    all_dirty: bool,
    last: Option<Arc<Frame>>,
}

impl Screen {
    /// A blank terminal of this size.
    pub fn new(size: Size) -> Self {
        let term = Term::new(size, Settings::default());
        Self { term, at: Pos::default(), dirty: RowSet::default(), all_dirty: true, last: None }
    }

    /// Takes in what happened. `Some` when it is something that a screen can show, with what it
    /// gave rise to.
    pub fn advance(&mut self, at: Pos, what: &What) -> Option<Changes> {
        let changes = match what {
            What::Output(bytes) => {
                let changes = self.term.feed(bytes);
                if self.last.is_none() || self.dirty.is_empty() {
                    self.dirty.clone_from(&changes.rows);
                } else {
                    self.all_dirty |= !changes.rows.is_empty() && changes.rows != self.dirty;
                }
                changes
            }
            What::Resize(size) => {
                self.all_dirty = true;
                self.term.resize(*size)
            }
            _ => return None,
        };
        self.at = at;
        Some(changes)
    }

    /// The terminal, when no more is to come.
    pub fn into_term(self) -> Term {
        self.term
    }

    /// The terminal itself.
    pub fn term(&self) -> &Term {
        &self.term
    }

    /// A picture of the screen as it is now.
    pub fn frame(&mut self) -> Arc<Frame> {
        let clean = !self.all_dirty && self.dirty.is_empty();
        let rows = match &self.last {
            Some(last) if clean => last.rows.clone(),
            Some(last) if !self.all_dirty && last.rows.len() == usize::from(self.term.size().rows) => {
                let mut rows = last.rows.clone();
                for y in self.dirty.iter() {
                    if let (Some(row), Some(line)) = (rows.get_mut(y), self.term.row(y as u16)) {
                        let new = Row::of(&line);
                        if **row != new {
                            *row = Arc::new(new);
                        }
                    }
                }
                rows
            }
            last => {
                let old = last.as_ref().map_or(&[][..], |f| &f.rows[..]);
                let fresh = self.term.screen().map(|line| Row::of(&line)).enumerate();
                fresh
                    .map(|(y, row)| match old.get(y) {
                        Some(same) if **same == row => same.clone(),
                        _ => Arc::new(row),
                    })
                    .collect()
            }
        };
        let title = match &self.last {
            Some(last) if *last.title == *self.term.title() => last.title.clone(),
            _ => self.term.title().into(),
        };
        let frame = Arc::new(Frame {
            at: self.at,
            offset: self.term.offset(),
            size: self.term.size(),
            rows,
            cursor: self.term.cursor(),
            modes: self.term.modes(),
            title,
            scrolled: self.term.evicted() + self.term.scrollback_len() as u64,
            joined: Memo::default(),
        });
        self.dirty = RowSet::default();
        self.all_dirty = false;
        self.last = Some(frame.clone());
        frame
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn out(screen: &mut Screen, bytes: &[u8]) -> Arc<Frame> {
        screen.advance(Pos::default(), &What::Output(Bytes::copy_from_slice(bytes)));
        screen.frame()
    }

    #[test]
    fn rows_know_their_columns() {
        let mut screen = Screen::new(Size::new(20, 2));
        let frame = out(&mut screen, "a漢b e\u{301}x".as_bytes());
        let row = &frame.rows[0];
        assert_eq!((row.text(), row.width()), ("a漢b e\u{301}x", 7));
        for row in [&**row, &Row::from_text("a漢b e\u{301}x")] {
            assert_eq!(row.slice(0, 1), "a");
            assert_eq!(row.slice(1, 3), "漢");
            assert_eq!(row.slice(2, 4), "b");
            assert_eq!(row.slice(5, 99), "e\u{301}x");
            assert_eq!(row.column(4), 3);
        }
        assert_eq!(Row::from_text("abc").slice(1, 2), "b");
    }

    /// Pictures are made from the rows that changed; the result must be what a whole look would
    /// give.
    #[test]
    fn what_did_not_change_is_shared() {
        let mut screen = Screen::new(Size::new(20, 3));
        let one = out(&mut screen, b"one\r\ntwo");
        let two = out(&mut screen, b"!");
        assert!(Arc::ptr_eq(&one.rows[0], &two.rows[0]) && !Arc::ptr_eq(&one.rows[1], &two.rows[1]));
        screen.advance(Pos::default(), &What::Output(Bytes::from_static(b"\x1b[1;1Hx")));
        screen.advance(Pos::default(), &What::Output(Bytes::from_static(b"\x1b[3;1Hy")));
        assert_eq!(screen.frame().text(), "xne\ntwo!\ny");
        screen.advance(Pos::default(), &What::Resize(Size::new(2, 2)));
        assert_eq!(screen.frame().size, Size::new(2, 2));
    }
}
