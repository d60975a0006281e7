//! Searching scrollback and screen. Lines that wrap are searched as one; the work is done in steps, so that a million
//! rows do not hold up a key.

use std::ops::Range;

use regex::{Regex, RegexBuilder};
use tapdeck_term::{Generation, Line, Term};

use super::rows::{self, Row};

/// Rows looked at in one step.
pub const STEP: usize = 4096;
/// A line that wraps more often is searched in pieces.
const MAX_PIECE: u64 = 64;
/// A pattern may compile to so much.
const PATTERN_LIMIT: usize = 1 << 20;

/// A place that matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hit {
    /// Where it begins.
    pub row: Row,
    /// In that row.
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

/// A search under way.
#[derive(Debug, Clone)]
struct Scan {
    /// Begin with this row.
    at: Row,
    /// Only what lies behind this place (before it, when going back) counts, in the first piece.
    beyond: Option<(Row, u16)>,
    forth: bool,
    /// Rows still to be looked at.
    left: u64,
    /// It has gone round the end.
    wrapped: bool,
}

/// What a step found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing to do.
    Idle,
    /// Nothing yet.
    Searching,
    /// This; and whether the end was passed on the way.
    Found(Hit, bool),
    /// There is none.
    Nowhere,
}

/// How many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Count {
    generation: Generation,
    at: Row,
    total: u64,
    before: u64,
    current: Option<(Row, u16)>,
    done: bool,
}

/// A pattern and what became of it.
#[derive(Debug, Default)]
pub struct Search {
    pattern: String,
    regex: Option<Regex>,
    /// What is wrong with the pattern.
    pub error: Option<String>,
    /// The one found last.
    pub hit: Option<Hit>,
    /// Whether what matches is lit up.
    pub lit: bool,
    scan: Option<Scan>,
    count: Count,
}

impl Search {
    /// Takes a pattern; `false` when it is no regular expression. Lower-case letters match both cases, unless there
    /// are upper-case ones among them.
    pub fn set(&mut self, pattern: &str) -> bool {
        if pattern == self.pattern && self.error.is_none() {
            return true;
        }
        (self.scan, self.hit, self.count) = (None, None, Count::default());
        pattern.clone_into(&mut self.pattern);
        self.lit = true;
        if pattern.is_empty() {
            (self.regex, self.error) = (None, None);
            return true;
        }
        let built = RegexBuilder::new(pattern)
            .case_insensitive(!has_upper(pattern))
            .size_limit(PATTERN_LIMIT)
            .dfa_size_limit(PATTERN_LIMIT)
            .build();
        (self.regex, self.error) = match built {
            Ok(regex) => (Some(regex), None),
            // The library draws a picture of several lines; its last says what is wrong.
            Err(e) => (None, Some(e.to_string().lines().last().unwrap_or_default().replace("error: ", ""))),
        };
        self.error.is_none()
    }

    /// The pattern.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Whether there is one that can be searched for.
    pub fn is_set(&self) -> bool {
        self.regex.is_some()
    }

    /// Begins to search from a row on, which counts itself.
    pub fn from(&mut self, term: &Term, row: Row, forth: bool) {
        self.begin(term, row, None, forth);
    }

    /// Begins to search for the next one.
    pub fn next(&mut self, term: &Term, row: Row, forth: bool) {
        match self.hit.filter(|hit| rows::range(term).contains(&hit.row)) {
            Some(hit) => self.begin(term, hit.row, Some((hit.row, hit.col)), forth),
            None => self.begin(term, row, None, forth),
        }
    }

    fn begin(&mut self, term: &Term, row: Row, beyond: Option<(Row, u16)>, forth: bool) {
        let range = rows::range(term);
        let at = piece_start(term, row.clamp(range.start, range.end - 1));
        // All rows, and the first piece once more, for what lies on its other side.
        let left = range.end - range.start + MAX_PIECE;
        self.lit = true;
        self.scan = self.regex.is_some().then_some(Scan { at, beyond, forth, left, wrapped: false });
    }

    /// Whether [`Search::step`] has something to do.
    pub fn is_busy(&self) -> bool {
        self.scan.is_some()
    }

    /// Gives a search up.
    pub fn stop(&mut self) {
        self.scan = None;
    }

    /// Searches on, through so many rows.
    pub fn step(&mut self, term: &Term, most: usize) -> Step {
        let (Some(scan), Some(regex)) = (&mut self.scan, &self.regex) else { return Step::Idle };
        let range = rows::range(term);
        scan.at = scan.at.clamp(range.start, range.end - 1);
        let mut looked = 0;
        while looked < most as u64 {
            if scan.left == 0 {
                self.scan = None;
                return Step::Nowhere;
            }
            let start = scan.at;
            let end = piece_end(term, start);
            let beyond = scan.beyond.take();
            let mut hits = hits_in(term, regex, start..end);
            let found = match (scan.forth, beyond) {
                (true, None) => hits.first().copied(),
                (true, Some(place)) => hits.iter().find(|h| (h.row, h.col) > place).copied(),
                (false, None) => hits.pop(),
                (false, Some(place)) => hits.iter().rev().find(|h| (h.row, h.col) < place).copied(),
            };
            if let Some(hit) = found {
                let wrapped = scan.wrapped;
                (self.scan, self.hit) = (None, Some(hit));
                return Step::Found(hit, wrapped);
            }
            looked += end - start;
            scan.left = scan.left.saturating_sub(end - start);
            if scan.forth {
                scan.at = end;
                if end >= range.end {
                    (scan.at, scan.wrapped) = (range.start, true);
                }
            } else if start <= range.start {
                (scan.at, scan.wrapped) = (piece_start(term, range.end - 1), true);
            } else {
                scan.at = piece_start(term, start - 1);
            }
        }
        Step::Searching
    }

    /// What matches in these rows, for lighting up.
    pub fn hits(&self, term: &Term, shown: Range<Row>) -> Vec<Hit> {
        let Some(regex) = self.regex.as_ref().filter(|_| self.lit) else { return Vec::new() };
        let mut hits = Vec::new();
        let range = rows::range(term);
        let mut at = piece_start(term, shown.start.clamp(range.start, range.end - 1));
        while at < shown.end.min(range.end) {
            let end = piece_end(term, at);
            hits.extend(hits_in(term, regex, at..end));
            at = end;
        }
        hits
    }

    /// Counts on; says whether that is done.
    pub fn count_step(&mut self, term: &Term, most: usize) -> bool {
        let Some(regex) = &self.regex else { return true };
        let range = rows::range(term);
        let current = self.hit.map(|h| (h.row, h.col));
        let stale = self.count.generation != term.generation() || self.count.current != current;
        if stale {
            self.count =
                Count { generation: term.generation(), at: range.start, current, ..Count::default() };
        }
        let stop = self.count.at.saturating_add(most as u64);
        while self.count.at < range.end && self.count.at < stop {
            let end = piece_end(term, self.count.at);
            for hit in hits_in(term, regex, self.count.at..end) {
                self.count.total += 1;
                if current.is_some_and(|current| (hit.row, hit.col) <= current) {
                    self.count.before += 1;
                }
            }
            self.count.at = end;
        }
        self.count.done = self.count.at >= range.end;
        self.count.done
    }

    /// Which one of how many, when they are counted.
    pub fn counted(&self) -> Option<(u64, u64)> {
        self.count.done.then_some((self.count.before, self.count.total))
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
fn piece_start(term: &Term, row: Row) -> Row {
    let first = rows::range(term).start;
    let mut start = row;
    while start > first && row - start < MAX_PIECE - 1 && wraps(term, start - 1) {
        start -= 1;
    }
    start
}

/// The row behind the line that begins with a row.
fn piece_end(term: &Term, start: Row) -> Row {
    let end = rows::range(term).end;
    let mut at = start;
    while at + 1 < end && at - start < MAX_PIECE - 1 && wraps(term, at) {
        at += 1;
    }
    at + 1
}

fn hits_in(term: &Term, regex: &Regex, piece: Range<Row>) -> Vec<Hit> {
    let single = piece.end - piece.start == 1;
    if single {
        // Nearly all rows do not match, which is found out without knowing where their columns are.
        let Some(line) = rows::line(term, piece.start) else { return Vec::new() };
        if !regex.is_match(&line.text()) {
            return Vec::new();
        }
    }
    let mut text = String::new();
    let mut cells: Vec<(usize, Row, u16, u16)> = Vec::new();
    for row in piece.clone() {
        let Some(line) = rows::line(term, row) else { continue };
        spell(line, row, &mut text, &mut cells);
    }
    let blank = text.len() - text.trim_end_matches(' ').len();
    text.truncate(text.len() - blank);
    let cell_at = |byte: usize| cells.get(cells.partition_point(|c| c.0 <= byte).saturating_sub(1)).copied();
    regex
        .find_iter(&text)
        .filter(|found| !found.is_empty())
        .filter_map(|found| {
            let (_, row, col, _) = cell_at(found.start())?;
            let (_, end_row, last, width) = cell_at(found.end() - 1)?;
            Some(Hit { row, col, end_row, end_col: last + width })
        })
        .collect()
}

fn spell(line: Line<'_>, row: Row, text: &mut String, cells: &mut Vec<(usize, Row, u16, u16)>) {
    let mut col = 0u16;
    line.each(|piece, width, _| {
        cells.push((text.len(), row, col, width as u16));
        text.push_str(if piece.is_empty() { " " } else { piece });
        col = col.saturating_add(width as u16);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use tapdeck_term::{Settings, Size};

    fn term(cols: u16, rows: u16, text: &str) -> Term {
        let mut term =
            Term::new(Size::new(cols, rows), Settings { scrollback: 1_000_000, ..Settings::default() });
        term.feed(text.as_bytes(), 0);
        term
    }

    fn run(search: &mut Search, term: &Term) -> Step {
        loop {
            match search.step(term, 3) {
                Step::Searching => {}
                step => return step,
            }
        }
    }

    fn at(step: Step) -> (Row, u16, bool) {
        match step {
            Step::Found(hit, wrapped) => (hit.row, hit.col, wrapped),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn forth_and_back_and_round_the_end() {
        let term = term(20, 3, "one x\r\ntwo\r\nx three x\r\nfour\r\nfive x");
        let mut search = Search::default();
        assert!(search.set("x"));
        search.from(&term, 0, true);
        assert_eq!(at(run(&mut search, &term)), (0, 4, false));
        let mut places = Vec::new();
        for _ in 0..4 {
            search.next(&term, 0, true);
            places.push(at(run(&mut search, &term)));
        }
        assert_eq!(places, [(2, 0, false), (2, 8, false), (4, 5, false), (0, 4, true)]);
        search.next(&term, 0, false);
        assert_eq!(at(run(&mut search, &term)), (4, 5, true));
        search.next(&term, 0, false);
        assert_eq!(at(run(&mut search, &term)), (2, 8, false));
        while !search.count_step(&term, 1) {}
        assert_eq!(search.counted(), Some((3, 4)));
    }

    #[test]
    fn the_only_one_is_found_again_and_none_is_none() {
        let term = term(20, 3, "one\r\ntwo\r\nthree");
        let mut search = Search::default();
        search.set("two");
        search.from(&term, 0, true);
        assert_eq!(at(run(&mut search, &term)), (1, 0, false));
        search.next(&term, 0, true);
        assert_eq!(at(run(&mut search, &term)), (1, 0, true));
        search.set("four");
        search.from(&term, 0, true);
        assert_eq!(run(&mut search, &term), Step::Nowhere);
    }

    #[test]
    fn wrapped_lines_are_one_and_wide_characters_count_twice() {
        let term = term(6, 4, "abcdefghij\r\n漢字 find\r\n");
        let mut search = Search::default();
        search.set("efgh");
        search.from(&term, 0, true);
        let Step::Found(hit, _) = run(&mut search, &term) else { panic!("not found") };
        assert_eq!((hit.columns(0), hit.columns(1), hit.columns(2)), (Some(4..u16::MAX), Some(0..2), None));
        search.set("字");
        search.from(&term, 0, true);
        let Step::Found(hit, _) = run(&mut search, &term) else { panic!("not found") };
        assert_eq!((hit.row, hit.columns(2)), (2, Some(2..4)));
    }

    #[test]
    fn case_and_patterns() {
        let term = term(20, 2, "Make it so");
        let mut search = Search::default();
        for (pattern, found) in [
            ("make", true),
            ("Make", true),
            ("MAKE", false),
            (r"\S+ it", true),
            ("m.*o$", true),
            ("o$x*", true),
        ] {
            assert!(search.set(pattern));
            search.from(&term, 0, true);
            assert_eq!(matches!(run(&mut search, &term), Step::Found(..)), found, "{pattern}");
        }
        assert!(!search.set("a("), "{:?}", search.error);
        assert!(search.error.is_some() && !search.is_set());
        assert!(!search.set(&"(a{1000}){1000}".repeat(3)), "a pattern that would take all memory");
    }

    #[test]
    fn a_hundred_thousand_rows() {
        let text: String = (0..100_000).map(|i| format!("line {i}\r\n")).collect();
        let term = term(80, 24, &text);
        let mut search = Search::default();
        search.set("line 99998$");
        search.from(&term, 0, true);
        let mut steps = 0;
        let hit = loop {
            steps += 1;
            match search.step(&term, STEP) {
                Step::Found(hit, false) => break hit,
                Step::Searching => {}
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(hit.row, 99_998);
        assert_eq!(steps, 100_000 / STEP + 1, "each step is bounded");
    }
}
