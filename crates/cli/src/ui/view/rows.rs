//! Rows of a terminal by number: scrollback and screen as one, counted from the first row that
//! there ever was, so that a number goes on meaning the same row while more come and old ones fall
//! out.

use tapdeck_term::{Line, Term};

/// A row's number.
pub type Row = u64;

/// The numbers of the rows that exist.
pub fn range(term: &Term) -> std::ops::Range<Row> {
    let first = term.evicted();
    first..first + (term.scrollback_len() + usize::from(term.size().rows)) as u64
}

/// The first row of the screen.
pub fn screen(term: &Term) -> Row {
    term.evicted() + term.scrollback_len() as u64
}

/// A row.
pub fn line(term: &Term, row: Row) -> Option<Line<'_>> {
    let at = usize::try_from(row.checked_sub(term.evicted())?).ok()?;
    match at.checked_sub(term.scrollback_len()) {
        None => term.scrollback_row(at),
        Some(y) => term.row(u16::try_from(y).ok()?),
    }
}

/// The row's place in the output: its last write, or that of the nearest written row above it.
pub fn written(term: &Term, row: Row) -> u64 {
    let first = range(term).start;
    (first..=row).rev().take(10_000).find_map(|r| line(term, r)?.written()).unwrap_or(0)
}

/// The last row up to this one that is not blank; the first row if all are.
pub fn shown_at_or_above(term: &Term, row: Row) -> Row {
    let first = range(term).start;
    (first..=row).rev().take(10_000).find(|r| line(term, *r).is_some_and(|l| !l.is_blank())).unwrap_or(first)
}
