//! The text of messages: what of a screen is an answer.

use std::collections::HashSet;

/// The longest content of a message, in bytes: agentapi's terminal has 1000 rows of 80 cells, and
/// clients take no larger events.
const MAX: usize = 80_000;
/// The input field is looked for in so many rows at the end.
const FIELD: usize = 12;

/// Joins rows, without blanks at their ends and without empty rows around them.
pub(super) fn of<'a>(rows: impl Iterator<Item = &'a str>) -> String {
    let rows: Vec<&str> = rows.map(str::trim_end).collect();
    let first = rows.iter().position(|row| !row.is_empty()).unwrap_or(rows.len());
    let last = rows.iter().rposition(|row| !row.is_empty()).map_or(first, |last| last + 1);
    rows[first..last].join("\n")
}

/// Keeps the end of a text that is too long.
pub(super) fn bounded(text: String) -> String {
    if text.len() <= MAX {
        return text;
    }
    let mut from = text.len() - MAX;
    while !text.is_char_boundary(from) {
        from += 1;
    }
    format!("[{from} bytes left out]\n{}", &text[from..])
}

/// Returns the rows of a screen without the agent's input field, if that is in a frame.
pub(super) fn without_input_field(rows: &[String]) -> String {
    of(rows[..field_start(rows)].iter().map(String::as_str))
}

/// Returns the row that the input field begins with, or the end of the rows with text.
fn field_start(rows: &[String]) -> usize {
    let end = rows.iter().rposition(|row| !row.trim().is_empty()).map_or(0, |last| last + 1);
    let low = end.saturating_sub(FIELD);
    let edge = |row: &str| row.chars().filter(|c| matches!(c, '─' | '━' | '▔' | '▀')).count() >= 10;
    let field = (low..end).find(|n| {
        let inside = rows.get(n + 1).map_or("", |row| row.trim_start_matches(['│', '┃', ' ']));
        edge(&rows[*n]) && inside.starts_with(['>', '❯', '›', '!'])
    });
    field.unwrap_or(end)
}

/// Returns what an agent has said since a prompt: the rows written since then, without those that
/// were on the screen before, the echo of the prompt and the input field.
pub(super) fn answer(written: &[String], before: &HashSet<String>, prompt: &str) -> String {
    let written = &written[..field_start(written)];
    let new = written.iter().filter(|row| row.trim().is_empty() || !before.contains(row.trim()));
    let mut echo = Echo { left: squeezed(prompt), begun: false };
    of(new.skip_while(|row| row.trim().is_empty() || echo.takes(row)).map(String::as_str))
}

/// The echo of a prompt: its first row has something in front, and long ones take several rows.
struct Echo {
    left: String,
    begun: bool,
}

impl Echo {
    /// Returns whether a row is the next one of the echo.
    fn takes(&mut self, row: &str) -> bool {
        let row = squeezed(row);
        let start: String = self.left.chars().take(8).collect();
        if start.is_empty() {
            return false;
        }
        let echoed = if self.begun { Some(&row[..]) } else { row.find(&start).map(|at| &row[at..]) };
        let Some(left) = echoed.and_then(|echoed| self.left.strip_prefix(echoed)) else { return false };
        (self.left, self.begun) = (left.to_owned(), true);
        true
    }
}

fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_what_is_new() {
        let rows = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let edge = "─".repeat(20);
        let before = HashSet::from(["Welcome".to_owned(), edge.clone(), ">".to_owned()]);
        let screen = format!("Welcome\n\n> say hi\n\n● hi  \n\n  there\n\n{edge}\n>\n{edge}\n  ? for help");
        assert_eq!(answer(&rows(&screen), &before, "say hi"), "● hi\n\n  there");
        let own = format!("● hi\n{edge}\n❯ draft\n{edge}\n  ? for help");
        assert_eq!(answer(&rows(&own), &HashSet::new(), "x"), "● hi");
        assert_eq!(answer(&rows("\n  \n"), &before, ""), "");
        let shell = "me@host $ echo a long line th\nat wraps\na long line that wraps\nme@host $";
        let wrapped = "echo a long line that wraps";
        assert_eq!(
            answer(&rows(shell), &HashSet::from(["me@host $".into()]), wrapped),
            "a long line that wraps"
        );
    }

    #[test]
    fn a_long_text_keeps_its_end() {
        let kept = bounded("é".repeat(MAX));
        assert!(kept.starts_with("[80000 bytes left out]\né") && kept.len() < MAX + 40, "{}", kept.len());
    }
}
