//! Searching scrollback and screen. Lines that wrap are searched as one; the work is done in steps,
//! so that a million rows do not hold up a key.

use tapdeck_term::{Generation, Term};

use super::filter::Filter;
pub use super::matcher::Hit;
use super::matcher::{MAX_PIECE, Matcher, Query, piece_end, piece_start};
use super::rows::{self, Row};

/// Rows looked at in one step.
pub const STEP: usize = 4096;

/// A search in progress.
#[derive(Debug, Clone)]
struct Scan {
    /// Begin with this row.
    at: Row,
    /// Only what lies behind this place (before it, when going back) counts, in the first piece.
    beyond: Option<(Row, u16)>,
    forth: bool,
    /// Rows still to be looked at.
    left: u64,
    /// The number of matches to skip.
    pass: u64,
    /// Whether it has wrapped around the end.
    wrapped: bool,
}

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing to do.
    Idle,
    /// Nothing yet.
    Searching,
    /// A match, and whether the search wrapped around the end.
    Found(Hit, bool),
    /// There is no match.
    Nowhere,
}

/// The count of matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Count {
    generation: Generation,
    filters: usize,
    at: Row,
    total: u64,
    before: u64,
    current: Option<(Row, u16)>,
    done: bool,
}

/// A pattern and its matches.
#[derive(Debug, Default)]
pub struct Search {
    query: Query,
    matcher: Option<Matcher>,
    /// What is wrong with the pattern.
    pub error: Option<String>,
    /// The current match.
    pub hit: Option<Hit>,
    /// Whether matches are highlighted.
    pub lit: bool,
    /// The direction of the last search.
    pub(super) forth: bool,
    scan: Option<Scan>,
    count: Count,
}

impl Search {
    /// Sets the pattern. Returns `false` if it is no regular expression.
    pub(super) fn set(&mut self, query: &Query) -> bool {
        if *query == self.query && self.error.is_none() {
            return true;
        }
        (self.scan, self.hit, self.count) = (None, None, Count::default());
        query.clone_into(&mut self.query);
        self.lit = true;
        (self.matcher, self.error) = match Matcher::new(query) {
            _ if query.text.is_empty() => (None, None),
            Ok(matcher) => (Some(matcher), None),
            Err(error) => (None, Some(error)),
        };
        self.error.is_none()
    }

    /// The pattern.
    pub(super) fn pattern(&self) -> &str {
        &self.query.text
    }

    /// Whether a line of text has a match.
    pub(super) fn matches(&self, line: &str) -> bool {
        self.matcher.as_ref().is_some_and(|matcher| matcher.matches(line))
    }

    /// Whether there is a valid pattern.
    pub(super) fn is_set(&self) -> bool {
        self.matcher.is_some()
    }

    /// Begins a search for the n-th match from a row on, including it.
    pub(super) fn from(&mut self, term: &Term, row: Row, forth: bool, nth: u64) {
        self.begin(term, row, None, forth, nth);
    }

    /// Begins a search for the next match, or the n-th.
    pub(super) fn next(&mut self, term: &Term, row: Row, forth: bool, nth: u64) {
        match self.hit.filter(|hit| rows::range(term).contains(&hit.row)) {
            Some(hit) => self.begin(term, hit.row, Some((hit.row, hit.col)), forth, nth),
            None => self.begin(term, row, None, forth, nth),
        }
    }

    fn begin(&mut self, term: &Term, row: Row, beyond: Option<(Row, u16)>, forth: bool, nth: u64) {
        let range = rows::range(term);
        let at = piece_start(term, row.clamp(range.start, range.end - 1));
        // All rows, and the first piece again for matches on the other side of the start.
        let left = range.end - range.start + MAX_PIECE;
        let pass = nth.saturating_sub(1);
        (self.lit, self.forth) = (true, forth);
        self.scan = self.matcher.is_some().then_some(Scan { at, beyond, forth, left, pass, wrapped: false });
    }

    /// Returns whether the search has something to do.
    pub fn is_busy(&self) -> bool {
        self.scan.is_some()
    }

    /// Cancels a search.
    pub fn stop(&mut self) {
        self.scan = None;
    }

    /// Searches up to `most` more rows, without those that the filter hides.
    pub(super) fn step(&mut self, term: &Term, filter: &Filter, most: usize) -> Step {
        let (Some(scan), Some(matcher)) = (&mut self.scan, &self.matcher) else { return Step::Idle };
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
            let mut hits = matcher.hits(term, start..end);
            if !hits.is_empty() && !filter.takes(term, start..end) {
                hits.clear();
            }
            let found = match (scan.forth, beyond) {
                (true, None) => hits.first().copied(),
                (true, Some(place)) => hits.iter().find(|h| (h.row, h.col) > place).copied(),
                (false, None) => hits.pop(),
                (false, Some(place)) => hits.iter().rev().find(|h| (h.row, h.col) < place).copied(),
            };
            match found {
                Some(hit) if scan.pass > 0 => {
                    scan.pass -= 1;
                    scan.beyond = Some((hit.row, hit.col));
                    looked += 1;
                    continue;
                }
                Some(hit) => {
                    let wrapped = scan.wrapped;
                    (self.scan, self.hit) = (None, Some(hit));
                    return Step::Found(hit, wrapped);
                }
                None => {}
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

    /// The matches in these rows, to highlight them.
    pub(super) fn lights(&self, term: &Term, shown: &[Row]) -> Vec<Hit> {
        if self.lit { self.hits(term, shown) } else { Vec::new() }
    }

    /// The matches in these rows.
    pub(super) fn hits(&self, term: &Term, shown: &[Row]) -> Vec<Hit> {
        let Some(matcher) = &self.matcher else { return Vec::new() };
        let mut hits = Vec::new();
        let mut seen = 0;
        for row in shown.iter().filter(|row| rows::range(term).contains(row)) {
            if *row < seen {
                continue;
            }
            let start = piece_start(term, *row);
            seen = piece_end(term, start);
            hits.extend(matcher.hits(term, start..seen));
        }
        hits
    }

    /// Counts up to `most` more rows. Returns whether the count is complete.
    pub(super) fn count_step(&mut self, term: &Term, filter: &Filter, most: usize) -> bool {
        let Some(matcher) = &self.matcher else { return true };
        let range = rows::range(term);
        let current = self.hit.map(|h| (h.row, h.col));
        let now = (term.generation(), filter.patterns().len());
        let stale = (self.count.generation, self.count.filters) != now || self.count.current != current;
        if stale {
            let (generation, filters) = now;
            self.count = Count { generation, filters, at: range.start, current, ..Count::default() };
        }
        let stop = self.count.at.saturating_add(most as u64);
        while self.count.at < range.end && self.count.at < stop {
            let piece = self.count.at..piece_end(term, self.count.at);
            self.count.at = piece.end;
            let hits = matcher.hits(term, piece.clone());
            if hits.is_empty() || !filter.takes(term, piece) {
                continue;
            }
            self.count.total += hits.len() as u64;
            let before = |hit: &&Hit| current.is_some_and(|current| (hit.row, hit.col) <= current);
            self.count.before += hits.iter().filter(before).count() as u64;
        }
        self.count.done = self.count.at >= range.end;
        self.count.done
    }

    /// The number of the current match and of all, if they are counted.
    pub fn counted(&self) -> Option<(u64, u64)> {
        self.count.done.then_some((self.count.before, self.count.total))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tapdeck_term::{Settings, Size};

    fn term(cols: u16, rows: u16, text: &str) -> Term {
        let mut term = Term::new(Size::new(cols, rows), Settings::default().scrollback(1_000_000));
        term.feed(text.as_bytes());
        term
    }

    fn query(text: &str) -> Query {
        Query { text: text.to_owned(), ..Query::default() }
    }

    fn run(search: &mut Search, term: &Term) -> Step {
        loop {
            match search.step(term, &Filter::default(), 3) {
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
        assert!(search.set(&query("x")));
        search.from(&term, 0, true, 1);
        assert_eq!(at(run(&mut search, &term)), (0, 4, false));
        let mut places = Vec::new();
        for _ in 0..4 {
            search.next(&term, 0, true, 1);
            places.push(at(run(&mut search, &term)));
        }
        assert_eq!(places, [(2, 0, false), (2, 8, false), (4, 5, false), (0, 4, true)]);
        search.next(&term, 0, false, 1);
        assert_eq!(at(run(&mut search, &term)), (4, 5, true));
        search.next(&term, 0, false, 1);
        assert_eq!(at(run(&mut search, &term)), (2, 8, false));
        while !search.count_step(&term, &Filter::default(), 1) {}
        assert_eq!(search.counted(), Some((3, 4)));
    }

    #[test]
    fn the_nth_those_that_do_not_match_and_what_a_filter_leaves() {
        let term = term(20, 3, "one x\r\ntwo\r\nx three x\r\nfour\r\nfive x");
        let mut search = Search::default();
        search.set(&query("x"));
        for (forth, nth, place) in
            [(true, 3, (2, 8, false)), (false, 2, (0, 4, false)), (true, 5, (2, 0, true))]
        {
            search.next(&term, 0, forth, nth);
            assert_eq!(at(run(&mut search, &term)), place, "{nth}");
        }
        search.from(&term, 0, true, 99);
        assert_eq!(run(&mut search, &term), Step::Nowhere, "there are not so many");
        search.set(&Query { not: true, ..query("x") });
        search.from(&term, 0, true, 2);
        assert_eq!(at(run(&mut search, &term)), (3, 0, false));
        search.set(&Query { literal: true, ..query("x$") });
        search.from(&term, 0, true, 1);
        assert_eq!(run(&mut search, &term), Step::Nowhere, "no row has that very text");
        let mut filter = Filter::default();
        let only = query("three|five");
        let matcher = Matcher::new(&only).expect("a pattern");
        filter.add(only, matcher);
        search.set(&query("x$"));
        search.from(&term, 0, true, 1);
        assert_eq!(at(search.step(&term, &filter, 100)), (2, 8, false), "the first is hidden");
        while !search.count_step(&term, &filter, 1) {}
        assert_eq!(search.counted(), Some((1, 2)));
    }

    #[test]
    fn the_only_one_is_found_again_and_none_is_none() {
        let term = term(20, 3, "one\r\ntwo\r\nthree");
        let mut search = Search::default();
        search.set(&query("two"));
        search.from(&term, 0, true, 1);
        assert_eq!(at(run(&mut search, &term)), (1, 0, false));
        search.next(&term, 0, true, 1);
        assert_eq!(at(run(&mut search, &term)), (1, 0, true));
        search.set(&query("four"));
        search.from(&term, 0, true, 1);
        assert_eq!(run(&mut search, &term), Step::Nowhere);
    }

    #[test]
    fn wrapped_lines_are_one_and_wide_characters_count_twice() {
        let term = term(6, 4, "abcdefghij\r\n漢字 find\r\n");
        let mut search = Search::default();
        search.set(&query("efgh"));
        search.from(&term, 0, true, 1);
        let Step::Found(hit, _) = run(&mut search, &term) else { panic!("not found") };
        assert_eq!((hit.columns(0), hit.columns(1), hit.columns(2)), (Some(4..u16::MAX), Some(0..2), None));
        search.set(&query("字"));
        search.from(&term, 0, true, 1);
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
            assert!(search.set(&query(pattern)));
            search.from(&term, 0, true, 1);
            assert_eq!(matches!(run(&mut search, &term), Step::Found(..)), found, "{pattern}");
        }
        assert!(!search.set(&query("a(")), "{:?}", search.error);
        assert!(search.error.is_some() && !search.is_set());
        assert!(!search.set(&query(&"(a{1000}){1000}".repeat(3))), "a pattern that would take all memory");
    }

    #[test]
    fn a_hundred_thousand_rows() {
        let text: String = (0..100_000).map(|i| format!("line {i}\r\n")).collect();
        let term = term(80, 24, &text);
        let mut search = Search::default();
        search.set(&query("line 99998$"));
        search.from(&term, 0, true, 1);
        let mut steps = 0;
        let hit = loop {
            steps += 1;
            match search.step(&term, &Filter::default(), STEP) {
                Step::Found(hit, false) => break hit,
                Step::Searching => {}
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(hit.row, 99_998);
        assert_eq!(steps, 100_000 / STEP + 1, "each step is bounded");
    }
}
