//! Programs that read a line at a time: their prompt stands in front of the cursor.

use std::collections::BTreeMap;

use regex::Regex;
use tapdeck_term::char_width;

use super::{Sample, escaped};

/// The longest prompt, in columns.
const LONGEST: usize = 60;
/// The sides of a box: what stands behind one is an input field.
const SIDES: [char; 4] = ['│', '┃', '║', '▌'];

/// What was seen of a prompt.
pub(super) enum Seen {
    /// This prompt, again and again.
    Prompt(String),
    /// A text that may be one.
    Perhaps(String),
    /// Nothing like a prompt.
    Nothing,
}

/// Looks for a text that stands in front of the cursor at rest, and came back after something was
/// submitted behind it.
pub(super) fn learn(rests: &[&Sample]) -> Seen {
    let mut texts: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for text in rests.iter().filter_map(|sample| before_cursor(sample)) {
        let (times, _) = texts.entry(escaped(&text)).or_insert_with(|| (0, text));
        *times += 1;
    }
    let is_submitted = |pattern: &str| {
        // A pattern that was made of a text is sound.
        let Ok(echo) = Regex::new(&format!("^{pattern}\\S")) else { return false };
        rests.iter().any(|sample| sample.rows.iter().take(sample.cursor_row).any(|row| echo.is_match(row)))
    };
    let best = texts
        .iter()
        .filter(|(pattern, (times, _))| *times > 1 && is_submitted(pattern))
        .max_by_key(|(pattern, (times, _))| (*times, std::cmp::Reverse(pattern.len())));
    let last = || rests.last().and_then(|sample| before_cursor(sample));
    match (best, last()) {
        (Some((_, (_, text))), _) => Seen::Prompt(text.clone()),
        (None, Some(text)) => Seen::Perhaps(text),
        (None, None) => Seen::Nothing,
    }
}

/// The text in front of the cursor, if it may be a prompt: nothing stands behind it, and either
/// nothing below it or a word in it, so that it is no mark of an input field.
fn before_cursor(sample: &Sample) -> Option<String> {
    if sample.alternate {
        return None;
    }
    let row = sample.rows.get(sample.cursor_row)?;
    let mut col = 0;
    let mut text = String::new();
    let mut chars = row.chars().peekable();
    while let Some(c) = chars.next_if(|c| col + char_width(*c) <= sample.cursor_col) {
        col += char_width(c);
        text.push(c);
    }
    if !chars.all(char::is_whitespace) || sample.cursor_col > LONGEST {
        return None;
    }
    text.push_str(&" ".repeat(sample.cursor_col.saturating_sub(col)));
    let is_last = || sample.rows.iter().skip(sample.cursor_row + 1).all(|row| row.trim().is_empty());
    let has_word = text.contains(char::is_alphanumeric);
    let is_boxed = text.trim_start().starts_with(SIDES);
    (!text.trim().is_empty() && !is_boxed && (has_word || is_last())).then_some(text)
}

/// The rules for a prompt.
pub(super) fn rules(text: &str) -> String {
    // Output may end in a sign, but hardly in a word with one.
    let strict = if text.contains(char::is_alphanumeric) { "strict = true\n" } else { "" };
    format!(
        "base = \"common\"\nsettle_ms = 40\n\n\
         # What stands in front of the cursor while it waits for a line.\n\
         [[turns.prompt]]\nname = \"prompt\"\npattern = '^{}$'\n{strict}",
        escaped(text)
    )
}
