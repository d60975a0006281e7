//! From a bracket to its partner, over any number of rows.

use tapdeck_term::Term;

use super::rows::{self, Row};

/// The most rows searched: few enough to take no noticeable time.
const MOST: usize = 200_000;

/// The row with the bracket that closes the n-th `own` bracket of a row, or opens it when going
/// back.
pub(super) fn partner(term: &Term, row: Row, own: char, other: char, forth: bool, nth: u64) -> Option<Row> {
    let text = |row| rows::line(term, row).map(|line| line.text());
    let first = text(row)?;
    let ordered = |text: String| -> Vec<char> {
        if forth { text.chars().collect() } else { text.chars().rev().collect() }
    };
    let mut begins = ordered(first);
    let mut left = nth.max(1);
    let at = begins.iter().position(|c| {
        left -= u64::from(*c == own);
        left == 0
    })?;
    begins.drain(..at);
    let mut depth = 0u64;
    let mut line = begins;
    let mut here = row;
    for _ in 0..MOST {
        for c in line {
            // A pair of the same character closes at once.
            if c == other && depth > 0 {
                depth -= 1;
                if depth == 0 {
                    return Some(here);
                }
            } else if c == own {
                depth += 1;
            }
        }
        here = if forth { here + 1 } else { here.checked_sub(1)? };
        line = ordered(text(here)?);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use tapdeck_term::{Settings, Size};

    #[test]
    fn brackets_find_each_other() {
        let mut term = Term::new(Size::new(20, 3), Settings::default().scrollback(100));
        term.feed(b"a (b (c)\r\nd (\r\ne)\r\n) f {x\r\n} \"q\r\n\" (");
        for (row, own, other, forth, nth, want) in [
            (0, '(', ')', true, 1, Some(3)),
            (0, '(', ')', true, 2, Some(0)),
            (0, '(', ')', true, 3, None),
            (1, '(', ')', true, 1, Some(2)),
            (3, ')', '(', false, 1, Some(0)),
            (2, ')', '(', false, 1, Some(1)),
            (3, '{', '}', true, 1, Some(4)),
            (4, '"', '"', true, 1, Some(5)),
            (5, '(', ')', true, 1, None),
            (9, '(', ')', true, 1, None),
        ] {
            assert_eq!(partner(&term, row, own, other, forth, nth), want, "{row} {own} {forth} {nth}");
        }
    }
}
