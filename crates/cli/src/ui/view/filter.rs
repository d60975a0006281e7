//! Only lines that match, as with `&` in `less`. Rows that have scrolled off the screen do not
//! change any more, so they are looked at once, in steps; those on the screen each time that it
//! changes.

use tapdeck_term::{Generation, Size, Term};

use super::matcher::{Matcher, Query, piece_end};
use super::rows::{self, Row};

/// The lines that a filter shows.
#[derive(Debug, Default)]
pub(super) struct Filter {
    matchers: Vec<Matcher>,
    patterns: Vec<Query>,
    rows: Vec<Row>,
    /// The number of rows that do not change any more, and the row that ends them.
    settled: usize,
    scanned: Row,
    made: Option<(Generation, Size)>,
    done: bool,
}

impl Filter {
    /// Whether there is a filter.
    pub(super) fn is_on(&self) -> bool {
        !self.matchers.is_empty()
    }

    /// The patterns that a line must match.
    pub(super) fn patterns(&self) -> &[Query] {
        &self.patterns
    }

    /// Adds a pattern.
    pub(super) fn add(&mut self, query: Query, matcher: Matcher) {
        self.matchers.push(matcher);
        self.patterns.push(query);
        self.restart(0);
    }

    /// Shows everything again.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn restart(&mut self, first: Row) {
        self.rows.clear();
        (self.settled, self.scanned, self.made, self.done) = (0, first, None, false);
    }

    /// Whether a line is shown.
    pub(super) fn takes(&self, term: &Term, piece: std::ops::Range<Row>) -> bool {
        self.matchers.iter().all(|m| m.takes(term, piece.clone()))
    }

    /// The rows that are shown, as far as they are known.
    pub(super) fn rows(&self) -> Option<&[Row]> {
        self.is_on().then_some(&self.rows)
    }

    /// Whether [`Filter::step`] has something to do.
    pub(super) fn is_busy(&self) -> bool {
        self.is_on() && !self.done
    }

    /// Looks at up to `most` more rows. Returns whether it found something new.
    pub(super) fn step(&mut self, term: &Term, most: usize) -> bool {
        let now = (term.generation(), term.size());
        if !self.is_on() || self.done && self.made == Some(now) {
            return false;
        }
        let (range, screen) = (rows::range(term), rows::screen(term));
        // Another size wraps lines elsewhere. Less scrollback than before means another place in
        // time.
        if self.made.is_some_and(|(_, size)| size != now.1) || screen < self.scanned {
            self.restart(range.start);
        }
        self.rows.truncate(self.settled);
        let gone = self.rows.partition_point(|row| *row < range.start);
        self.rows.drain(..gone);
        self.settled -= gone;
        self.made = Some(now);
        let mut at = self.scanned.max(range.start);
        let stop = at.saturating_add(most as u64);
        while at < range.end && at < stop {
            let end = piece_end(term, at);
            if self.takes(term, at..end) {
                self.rows.extend(at..end);
            }
            at = end;
            // A line that reaches the screen may go on.
            if end <= screen {
                (self.settled, self.scanned) = (self.rows.len(), end);
            }
        }
        self.done = at >= range.end;
        true
    }
}

/// The rows that can be seen, all of them or those that a filter leaves, as a list to move in.
#[derive(Debug, Clone)]
pub(super) struct Visible<'a> {
    range: std::ops::Range<Row>,
    only: Option<&'a [Row]>,
}

impl<'a> Visible<'a> {
    pub(super) fn of(term: &Term, filter: &'a Filter) -> Self {
        Self { range: rows::range(term), only: filter.rows() }
    }

    /// How many there are.
    pub(super) fn len(&self) -> u64 {
        self.only.map_or(self.range.end - self.range.start, |rows| rows.len() as u64)
    }

    /// How many are before a row.
    pub(super) fn before(&self, row: Row) -> u64 {
        match self.only {
            Some(rows) => rows.partition_point(|r| *r < row) as u64,
            None => row.clamp(self.range.start, self.range.end) - self.range.start,
        }
    }

    /// The n-th row; past the end the last, and without any the first row of all.
    pub(super) fn nth(&self, n: u64) -> Row {
        let n = n.min(self.len().saturating_sub(1));
        match self.only {
            Some(rows) => rows.get(n as usize).copied().unwrap_or(self.range.start),
            None => self.range.start + n,
        }
    }

    /// The row a number of visible rows away from another.
    pub(super) fn moved(&self, row: Row, by: i64) -> Row {
        self.nth(self.before(row).saturating_add_signed(by))
    }

    /// The first row of the last page.
    pub(super) fn last_top(&self, height: u16) -> Row {
        self.nth(self.len().saturating_sub(u64::from(height)))
    }

    /// So many rows from one on, fewer at the end.
    pub(super) fn page(&self, top: Row, height: u16) -> Vec<Row> {
        let from = self.before(top);
        let to = from.saturating_add(u64::from(height)).min(self.len());
        (from..to).map(|n| self.nth(n)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tapdeck_term::Settings;

    fn filter(patterns: &[&str]) -> Filter {
        let mut filter = Filter::default();
        for pattern in patterns {
            let (not, text) = pattern.strip_prefix('!').map_or((false, *pattern), |rest| (true, rest));
            let query = Query { text: text.to_owned(), not, ..Query::default() };
            let matcher = Matcher::new(&query).expect("a pattern");
            filter.add(query, matcher);
        }
        filter
    }

    fn settle(filter: &mut Filter, term: &Term) -> Vec<Row> {
        for _ in 0..1000 {
            filter.step(term, 3);
            if !filter.is_busy() {
                break;
            }
        }
        filter.rows().expect("it is on").to_vec()
    }

    /// Whatever comes, in whatever pieces: the same rows as when everything is looked at at once.
    #[test]
    fn rows_are_the_same_however_they_came() {
        let mut term = Term::new(Size::new(8, 3), Settings::default().scrollback(1000));
        let mut kept = filter(&["x", "!b"]);
        for i in 0..60u32 {
            let text = match i % 7 {
                0 => format!("x{i}\r\n"),
                1 => "a long line with an x in it\r\n".to_owned(),
                2 => "bx\r\n".to_owned(),
                3 => "\x1b[A\x1b[2Kx".to_owned(),
                4 => "\r\n".to_owned(),
                5 if i % 2 == 0 => "\x1b[3J".to_owned(),
                _ => format!("y{i}"),
            };
            term.feed(text.as_bytes());
            if i == 30 {
                term.resize(Size::new(11, 4));
            }
            assert_eq!(settle(&mut kept, &term), settle(&mut filter(&["x", "!b"]), &term), "after {i}");
        }
        assert!(!kept.rows().expect("on").is_empty());
        kept.clear();
        assert_eq!(kept.rows(), None);
    }

    #[test]
    fn moving_among_what_is_left() {
        let rows = [3, 5, 9, 10];
        let some = Visible { range: 2..20, only: Some(&rows) };
        assert_eq!((some.len(), some.nth(0), some.nth(99)), (4, 3, 10));
        assert_eq!((some.moved(3, 2), some.moved(4, 1), some.moved(9, -9), some.moved(9, 9)), (9, 9, 3, 10));
        assert_eq!((some.last_top(3), some.last_top(9)), (5, 3));
        assert_eq!((some.page(4, 2), some.page(10, 5)), (vec![5, 9], vec![10]));
        let all = Visible { range: 2..6, only: None };
        assert_eq!(
            (all.moved(3, -9), all.moved(3, 9), all.last_top(3), all.page(4, 9)),
            (2, 5, 3, vec![4, 5])
        );
        let none = Visible { range: 2..6, only: Some(&[]) };
        assert_eq!((none.len(), none.last_top(3), none.moved(4, 1), none.page(2, 3)), (0, 2, 2, vec![]));
    }
}
