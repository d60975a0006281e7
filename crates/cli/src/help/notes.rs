//! The text below a command's options: paragraphs and two-column lists, laid out for a width.
//!
//! In the source a paragraph is lines that begin in the first column. A line indented by two spaces
//! is a row of a list, with two or more spaces between its columns. A paragraph right above the
//! first row is the list's heading.

use std::fmt::Write as _;

use crate::human::wrap;

/// Rows with less room than this for the second column put it below the first.
const NARROWEST: usize = 24;

/// The parts of the text.
#[derive(Debug, PartialEq)]
pub(crate) enum Part {
    Paragraph(String),
    List { heading: String, rows: Vec<(String, String)> },
}

impl Part {
    /// Whether the part is a list of examples.
    pub(crate) fn is_examples(&self) -> bool {
        matches!(self, Part::List { heading, .. } if heading == "Examples:" || heading == "Example:")
    }
}

/// Reads the text as it stands in the source.
pub(crate) fn parse(text: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        if line.trim().is_empty() {
            open = false;
            continue;
        }
        let last = parts.pop_if(|_| open);
        open = true;
        match line.strip_prefix("  ") {
            Some(row) => parts.extend(with_row(last, row)),
            None => parts.extend(with_line(last, line.trim())),
        }
    }
    parts
}

/// Adds a row to the list that is open. A paragraph right above it becomes its heading.
fn with_row(last: Option<Part>, row: &str) -> [Part; 1] {
    let (left, right) = row.split_once("  ").unwrap_or((row, ""));
    let row = (left.to_owned(), right.trim().to_owned());
    let (heading, mut rows) = match last {
        Some(Part::List { heading, rows }) => (heading, rows),
        Some(Part::Paragraph(text)) => (text, Vec::new()),
        None => (String::new(), Vec::new()),
    };
    rows.push(row);
    [Part::List { heading, rows }]
}

/// Adds a line to the paragraph that is open, or begins one behind a list.
fn with_line(last: Option<Part>, line: &str) -> Vec<Part> {
    match last {
        Some(Part::Paragraph(text)) => vec![Part::Paragraph(format!("{text} {line}"))],
        last => last.into_iter().chain([Part::Paragraph(line.to_owned())]).collect(),
    }
}

/// Returns the first two examples alone.
pub(crate) fn shortened(parts: &[Part]) -> Vec<Part> {
    let examples = parts.iter().find(|part| part.is_examples());
    let Some(Part::List { heading, rows }) = examples else { return Vec::new() };
    vec![Part::List { heading: heading.clone(), rows: rows.iter().take(2).cloned().collect() }]
}

/// Lays the text out for a width. `heading` makes a title of a line.
pub(crate) fn render(parts: &[Part], width: usize, heading: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    for part in parts {
        if !out.is_empty() {
            out.push('\n');
        }
        match part {
            Part::Paragraph(text) => lines(&mut out, text, width, "", ""),
            Part::List { heading: title, rows } => {
                if part.is_examples() {
                    add(&mut out, format_args!("{}\n", heading(title)));
                } else {
                    lines(&mut out, title, width, "", "");
                }
                list(&mut out, rows, width);
            }
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// Adds a two-column list.
pub(crate) fn list(out: &mut String, rows: &[(String, String)], width: usize) {
    let room = (width / 2).min(width.saturating_sub(NARROWEST + 4));
    let lefts = rows.iter().filter(|(_, right)| !right.is_empty()).map(|(left, _)| columns(left));
    let column = lefts.filter(|columns| *columns <= room).max().unwrap_or(0);
    for (left, right) in rows {
        if !right.is_empty() && columns(left) <= column {
            let blank = " ".repeat(column + 4);
            let front = format!("  {left}{}", " ".repeat(column + 2 - columns(left)));
            lines(out, right, width, &front, &blank);
        } else {
            lines(out, left, width, "  ", "      ");
            lines(out, right, width, "      ", "      ");
        }
    }
}

/// Adds a text in lines, the first behind `first`, the others behind `other`.
fn lines(out: &mut String, text: &str, width: usize, first: &str, other: &str) {
    for (n, line) in wrap(text, width.saturating_sub(columns(other))).into_iter().enumerate() {
        add(out, format_args!("{}{line}\n", if n == 0 { first } else { other }));
    }
}

/// How many columns a text takes; help has no wide characters.
fn columns(text: &str) -> usize {
    text.chars().count()
}

fn add(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
One paragraph that is broken
by hand.

Endings:
  0   fine
  1   not fine at all, for a reason that takes more than one line

Examples:
  tapdeck one              the first
  tapdeck two --with-an-option-that-is-long and-an-argument
  tapdeck three            the third";

    #[test]
    fn paragraphs_are_filled_and_lists_keep_their_columns() {
        let parts = parse(TEXT);
        let text = render(&parts, 40, str::to_uppercase);
        assert_eq!(
            text,
            "\
One paragraph that is broken by hand.

Endings:
  0  fine
  1  not fine at all, for a reason that
     takes more than one line

EXAMPLES:
  tapdeck one  the first
  tapdeck two
      --with-an-option-that-is-long
      and-an-argument
  tapdeck three
      the third"
        );
        let wide = render(&shortened(&parts), 80, str::to_owned);
        assert_eq!(
            wide,
            "Examples:\n  tapdeck one  the first\n  tapdeck two --with-an-option-that-is-long and-an-argument"
        );
    }

    #[test]
    fn no_line_is_too_wide() {
        for width in 8..120 {
            let text = render(&parse(TEXT), width, str::to_owned);
            // A heading and the fronts of lists are never cut.
            let widest = text.lines().map(columns).max().unwrap_or(0);
            assert!(widest <= width.max(9), "{width}:\n{text}");
        }
    }
}
