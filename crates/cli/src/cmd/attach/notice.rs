//! A notice over the session's screen: a few rows, for a few seconds, away from the cursor.

use std::ops::Range;
use std::time::Duration;

use tapdeck_core::Time;
use tapdeck_term::text_width;

use crate::human::wrap;

/// The separator of a notice's parts, which stay whole if they fit.
pub(super) const SEPARATOR: &str = " · ";

/// A notice over the session's screen.
pub(super) struct Notice {
    pub(super) text: String,
    /// It is the list of keys.
    pub(super) is_help: bool,
    /// How long it stays.
    pub(super) stays: Duration,
    /// When it goes, from the time it was first shown.
    pub(super) until: Option<Time>,
    /// The rows of the terminal that it covers, while it is on the screen.
    pub(super) covers: Option<Range<u16>>,
}

/// The rows of a notice on a terminal of this many columns, all of the same width.
pub(super) fn lines_of(text: &str, cols: u16) -> Vec<String> {
    let room = usize::from(cols).saturating_sub(2);
    let mut lines: Vec<String> = Vec::new();
    for part in text.split(SEPARATOR) {
        match lines.last_mut() {
            Some(line) if text_width(line) + text_width(SEPARATOR) + text_width(part) <= room => {
                line.push_str(SEPARATOR);
                line.push_str(part);
            }
            _ => lines.extend(wrap(part, room)),
        }
    }
    let width = lines.iter().map(|line| text_width(line)).max().unwrap_or(0);
    let padded = |line: String| {
        let blanks = " ".repeat(width - text_width(&line));
        format!("\x1b[0;7m {line}{blanks} \x1b[m")
    };
    lines.into_iter().map(padded).collect()
}

/// The rows for a notice: the last ones, or the first ones if the cursor is in the last.
pub(super) fn place(height: usize, rows: u16, cursor: Option<u16>) -> Range<u16> {
    let height = u16::try_from(height).unwrap_or(u16::MAX).min(rows);
    let last = rows - height..rows;
    if cursor.is_some_and(|row| last.contains(&row)) { 0..height } else { last }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str, cols: u16) -> Vec<String> {
        let bare = |line: String| line.replace("\x1b[0;7m", "").replace("\x1b[m", "").trim().to_owned();
        lines_of(text, cols).into_iter().map(bare).collect()
    }

    /// The text was cut at the right margin.
    #[test]
    fn a_notice_takes_as_many_rows_as_it_needs() {
        let text = "C-\\ d leaves · t takes the stick · r gives it up · C-\\ sends C-\\";
        assert_eq!(plain(text, 80), [text]);
        assert_eq!(plain(text, 60), ["C-\\ d leaves · t takes the stick · r gives it up", "C-\\ sends C-\\"]);
        assert_eq!(plain(text, 40), ["C-\\ d leaves · t takes the stick", "r gives it up · C-\\ sends C-\\"]);
        assert_eq!(plain("a long name: C-\\ d leaves", 15), ["a long name:", "C-\\ d leaves"]);
        for cols in 3..100 {
            for line in plain(text, cols) {
                assert!(text_width(&line) + 2 <= usize::from(cols), "{cols}: {line}");
            }
        }
    }

    #[test]
    fn a_notice_leaves_the_row_of_the_cursor_free() {
        assert_eq!(place(1, 24, Some(3)), 23..24);
        assert_eq!(place(1, 24, Some(23)), 0..1);
        assert_eq!(place(2, 24, Some(22)), 0..2);
        assert_eq!(place(2, 24, None), 22..24);
        assert_eq!(place(9, 2, Some(1)), 0..2);
    }
}
