//! Matches patterns against lines of scrollback and screen. A wrapped line counts as
//! one.

use std::ops::Range;

use regex::{Regex, RegexBuilder};
use tapdeck_term::{Line, Term};

use super::rows::{self, Row};

/// The most rows of a line that are matched as one.
pub(super) const MAX_PIECE: u64 = 64;
/// The most memory for a compiled pattern.
const PATTERN_LIMIT: usize = 1 << 20;

/// How case is matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Case {
    /// Smart case: case counts if the pattern has a capital.
    #[default]
    Smart,
    Ignored,
    Counts,
}

/// A search query.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Query {
    pub(super) text: String,
    /// Plain text instead of a regular expression.
    pub(super) literal: bool,
    /// Inverted: lines that do not match.
    pub(super) not: bool,
    pub(super) case: Case,
}

/// A match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hit {
    /// The row in which it begins.
    pub row: Row,
    /// The column in that row.
    pub col: u16,
    /// The row in which it ends.
    pub end_row: Row,
    /// The column behind it.
    pub end_col: u16,
}

impl Hit {
    /// The columns that it covers in a row.
    pub fn columns(&self, row: Row) -> Option<Range<u16>> {
        let from = if row == self.row { self.col } else { 0 };
        let to = if row == self.end_row { self.end_col } else { u16::MAX };
        (self.row..=self.end_row).contains(&row).then_some(from..to)
    }
}

/// A compiled query.
#[derive(Debug)]
pub(super) struct Matcher {
    regex: Regex,
    not: bool,
}

impl Matcher {
    /// # Errors
    /// With the reason, when the pattern is no regular expression.
    pub(super) fn new(query: &Query) -> Result<Self, String> {
        let pattern = if query.literal { regex::escape(&query.text) } else { query.text.clone() };
        let capital =
            if query.literal { query.text.chars().any(char::is_uppercase) } else { has_upper(&pattern) };
        let ignore = match query.case {
            Case::Smart => !capital,
            Case::Ignored => true,
            Case::Counts => false,
        };
        RegexBuilder::new(&pattern)
            .case_insensitive(ignore)
            .size_limit(PATTERN_LIMIT)
            .dfa_size_limit(PATTERN_LIMIT)
            .build()
            .map(|regex| Self { regex, not: query.not })
            // The library's message has several lines, of which the last names the error.
            .map_err(|e| e.to_string().lines().last().unwrap_or_default().replace("error: ", ""))
    }

    /// Whether a line of text that is no row has a match. An inverted query is for rows alone.
    pub(super) fn matches(&self, line: &str) -> bool {
        !self.not && self.regex.is_match(line)
    }

    /// Whether a line matches.
    pub(super) fn takes(&self, term: &Term, piece: Range<Row>) -> bool {
        let found = if piece.end - piece.start == 1 {
            rows::line(term, piece.start).is_some_and(|line| self.regex.is_match(&line.text_ref()))
        } else {
            self.regex.is_match(&spelled(term, piece).0)
        };
        found != self.not
    }

    /// The matches in a line; the start of the line, for an inverted query.
    pub(super) fn hits(&self, term: &Term, piece: Range<Row>) -> Vec<Hit> {
        // Most rows do not match. That can be told without the places of their columns.
        let single = piece.end - piece.start == 1;
        if (single || self.not) && !self.takes(term, piece.clone()) {
            return Vec::new();
        }
        if self.not {
            return vec![Hit { row: piece.start, col: 0, end_row: piece.start, end_col: 0 }];
        }
        let (text, cells) = spelled(term, piece);
        let cell_at =
            |byte: usize| cells.get(cells.partition_point(|c| c.0 <= byte).saturating_sub(1)).copied();
        self.regex
            .find_iter(&text)
            .filter(|found| !found.is_empty())
            .filter_map(|found| {
                let (_, row, col, _) = cell_at(found.start())?;
                let (_, end_row, last, width) = cell_at(found.end() - 1)?;
                Some(Hit { row, col, end_row, end_col: last + width })
            })
            .collect()
    }
}

/// Whether a pattern has an upper-case letter that means itself.
fn has_upper(pattern: &str) -> bool {
    let mut escaped = false;
    pattern.chars().any(|c| {
        let upper = c.is_uppercase() && !escaped;
        escaped = c == '\\' && !escaped;
        upper
    })
}

fn wraps(term: &Term, row: Row) -> bool {
    rows::line(term, row).is_some_and(|l| l.wrapped())
}

/// The first row of the line that a row belongs to.
pub(super) fn piece_start(term: &Term, row: Row) -> Row {
    let first = rows::range(term).start;
    let mut start = row;
    while start > first && row - start < MAX_PIECE - 1 && wraps(term, start - 1) {
        start -= 1;
    }
    start
}

/// The row behind the line that begins with a row.
pub(super) fn piece_end(term: &Term, start: Row) -> Row {
    let end = rows::range(term).end;
    let mut at = start;
    while at + 1 < end && at - start < MAX_PIECE - 1 && wraps(term, at) {
        at += 1;
    }
    at + 1
}

/// A line's text, and where in it the cells of its rows begin: byte, row, column, width.
fn spelled(term: &Term, piece: Range<Row>) -> (String, Vec<(usize, Row, u16, u16)>) {
    let (mut text, mut cells) = (String::new(), Vec::new());
    for row in piece {
        let Some(line) = rows::line(term, row) else { continue };
        spell(line, row, &mut text, &mut cells);
    }
    text.truncate(text.trim_end_matches(' ').len());
    (text, cells)
}

fn spell(line: Line<'_>, row: Row, text: &mut String, cells: &mut Vec<(usize, Row, u16, u16)>) {
    let mut col = 0u16;
    line.each(|piece, width, _| {
        cells.push((text.len(), row, col, width as u16));
        text.push_str(if piece.is_empty() { " " } else { piece });
        col = col.saturating_add(width as u16);
    });
}
