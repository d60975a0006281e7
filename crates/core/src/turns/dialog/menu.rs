//! Menus: options below each other, one of them marked.

use tapdeck_term::Term;

use super::{DETAIL, Dialog, DialogOption, Form, OPTIONS, check_box, joined};

/// What stands in front of the marked option.
const MARKS: [char; 8] = ['❯', '›', '●', '▶', '➤', '→', '◉', '>'];
/// Marks that also stand in front of other things: only with a number behind them.
const WEAK: [char; 2] = ['>', '●'];
/// Says that a list goes on.
const MORE: [char; 4] = ['↓', '↑', '▲', '▼'];
/// The sides of a box.
const SIDES: [char; 6] = ['│', '┃', '║', '▌', '▏', '▕'];
/// Begins a row of a conversation rather than of a dialog.
const BULLETS: [char; 12] = ['•', '●', '◦', '✗', '✔', '■', '✻', '✶', '✽', '✢', '⏺', '✦'];
/// Words of an option that is a field for text.
const FIELDS: [&str; 4] = ["type something", "type your", "type here", "enter your own"];
/// Labels of what sends off a form of check boxes, without a number.
const SUBMITS: [&str; 3] = ["submit", "next", "done"];
/// A row with so many of them is a rule.
const RULE: usize = 10;

/// A row that may be an option.
struct Row {
    marked: bool,
    /// Where the number begins, or else the label.
    column: usize,
    number: Option<u32>,
    label: String,
}

/// Reads the lowest menu on the screen, or else a row of keys, or a panel that Escape closes.
pub(super) fn read(term: &Term) -> Option<Dialog> {
    let rows: Vec<String> = term.screen().map(|line| bare(&line.text())).collect();
    menu(&rows).or_else(|| keys(&rows)).or_else(|| panel(&rows))
}

/// Reads the panel on the screen, if Escape closes it, without options.
pub(super) fn panel_of(term: &Term) -> Option<Dialog> {
    let rows: Vec<String> = term.screen().map(|line| bare(&line.text())).collect();
    panel(&rows)
}

fn menu(rows: &[String]) -> Option<Dialog> {
    let is_marked = |text: &String| row(text).filter(|row| row.marked);
    let (at, marked) =
        rows.iter().enumerate().rev().find_map(|(y, text)| is_marked(text).map(|row| (y, row)))?;
    // The mark may stand at what sends off the numbered check boxes above it.
    let boxes = || rows[..at].iter().enumerate().rev().take(BOXED).find_map(|(y, text)| boxed_row(text, y));
    let (at, marked) = match boxes().filter(|_| is_submit(&marked)) {
        Some(last_box) => last_box,
        None => (at, marked),
    };
    let (first, mut options) = above(rows, at, &marked);
    let place = options.len();
    options.push(option(&marked, place));
    let last = below(rows, at, &marked, &mut options);
    let highest = options.iter().filter(|o| o.number != UNNUMBERED).map(|o| o.number).max().unwrap_or(0);
    for option in options.iter_mut().filter(|o| o.number == UNNUMBERED) {
        option.number = highest + 1;
    }
    let escape = rows[first..].iter().any(|text| names_escape(text));
    let says_enter = || rows[first..].iter().any(|text| text.to_lowercase().contains("enter"));
    // A mark without a number also stands in front of prompts. A dialog says how to leave it.
    if marked.number.is_none() && (options.len() < 2 || !(escape || says_enter())) {
        return None;
    }
    dialog(rows, (below_gap(rows, top(rows, first), first), first, last), options, escape)
}

/// Reads a dialog whose options are keys in one row: `[y] Approve   [n] Deny`.
fn keys(rows: &[String]) -> Option<Dialog> {
    let (at, options) = rows.iter().enumerate().rev().find_map(|(y, text)| Some((y, keyed(text)?)))?;
    dialog(rows, (below_gap(rows, top(rows, at), at), at, at), options, false)
}

/// Reads a row of two or more keys with a label each, and nothing else.
fn keyed(text: &str) -> Option<Vec<DialogOption>> {
    let mut options = Vec::new();
    for part in text.trim().split("  ").map(str::trim).filter(|part| !part.is_empty()) {
        let (key, label) = part.strip_prefix('[')?.split_once("] ")?;
        let number = u32::try_from(options.len()).ok()? + 1;
        let is_key = key.chars().count() == 1 && key.chars().all(char::is_alphanumeric);
        // A crossed box is no key.
        if !is_key || check_box(part).is_some() || number as usize > OPTIONS {
            return None;
        }
        let (label, types) = (label.trim().to_owned(), Some(key.to_owned()));
        options.push(DialogOption { number, label, marked: false, types, field: false, checked: None });
    }
    (options.len() > 1).then_some(options)
}

/// Returns the first row of a dialog without a question: two blank rows part it from the end of a
/// conversation above it.
fn below_gap(rows: &[String], top: usize, first: usize) -> usize {
    let is_blank = |y: usize| rows[y].trim().is_empty();
    let Some(last) = (top..first).rev().find(|y| !is_blank(*y)) else { return top };
    if (top..first).any(|y| rows[y].contains('?')) {
        return top;
    }
    let gap = (top..last.saturating_sub(1)).rev().find(|y| is_blank(*y) && is_blank(*y + 1));
    gap.map_or(top, |y| y + 2)
}

/// Rows between the last check box and what sends them off, at most.
const BOXED: usize = 4;
/// The number of an option until all numbers are known.
const UNNUMBERED: u32 = u32::MAX;

/// Returns a row and its place if it is a numbered check box.
fn boxed_row(text: &str, y: usize) -> Option<(usize, Row)> {
    let row = row(text)?;
    (row.number.is_some() && check_box(&row.label).is_some()).then_some((y, row))
}

fn is_submit(row: &Row) -> bool {
    row.number.is_none() && SUBMITS.contains(&row.label.to_lowercase().as_str())
}

/// Rows from the bottom that may say how to close a panel.
const HINT: usize = 3;

/// A panel without options, such as a status page.
fn panel(rows: &[String]) -> Option<Dialog> {
    let mut used = rows.iter().enumerate().rev().filter(|(_, text)| !text.trim().is_empty()).take(HINT);
    if let Some((hint, _)) = used.find(|(_, text)| names_escape(text)) {
        return dialog(rows, (top(rows, hint), hint, hint), Vec::new(), true);
    }
    // The edge of a panel that fills the rest of the screen.
    let edge = rows.iter().rposition(|text| is_edge(text))?;
    let last = rows.iter().rposition(|text| !text.trim().is_empty()).filter(|last| *last > edge)?;
    dialog(rows, (edge + 1, last + 1, last), Vec::new(), true)
}

/// Whether a row is the upper edge of a panel, in which words may stand.
fn is_edge(text: &str) -> bool {
    text.starts_with('▔') && text.chars().filter(|c| *c == '▔').count() >= RULE
}

/// Makes a dialog of its first row, the row below its text and its last row.
fn dialog(
    rows: &[String],
    (top, end, last): (usize, usize, usize),
    options: Vec<DialogOption>,
    escape: bool,
) -> Option<Dialog> {
    let is_text = |text: &&String| !text.trim().is_empty() && !is_rule(text) && !is_more(text);
    let detail = rows[top..end].iter().filter(is_text);
    Some(Dialog {
        question: question(&rows[top..end]),
        detail: outdented(detail.map(|text| text.trim_end().to_owned()).collect()),
        options,
        form: Form::Menu,
        rows: (u16::try_from(top).ok()?, u16::try_from(last).ok()?),
        escape,
    })
}

/// Whether a row says that Escape leaves the dialog.
fn names_escape(text: &str) -> bool {
    let text = text.to_lowercase();
    let hints =
        ["esc to", "esc back", "esc cancel", "esc close", "esc exit", "esc dismiss", "(esc)", "escape to"];
    // A program that is at work names Escape, too.
    hints.iter().any(|hint| text.contains(hint)) && !text.contains("esc to interrupt")
}

/// A row without the sides of the box around it.
fn bare(text: &str) -> String {
    let mut seen = false;
    let front = text.chars().map(|c| {
        let side = !seen && SIDES.contains(&c);
        seen |= !side && !c.is_whitespace();
        if side { ' ' } else { c }
    });
    let text: String = front.collect();
    text.trim_end().trim_end_matches(SIDES).trim_end().to_owned()
}

fn row(text: &str) -> Option<Row> {
    let chars: Vec<char> = text.chars().collect();
    let skip = |from: usize| from + chars[from..].iter().take_while(|c| c.is_whitespace()).count();
    let mut at = skip(0);
    let first = *chars.get(at)?;
    let spaced = chars.get(at + 1).is_some_and(|c| c.is_whitespace());
    let mark = MARKS.contains(&first) && spaced;
    if mark || (MORE.contains(&first) && spaced) {
        at = skip(at + 1);
    }
    let digits: String = chars[at..].iter().take_while(|c| c.is_ascii_digit()).take(4).collect();
    let behind = at + digits.len();
    let dotted = matches!(chars.get(behind), Some('.' | ')'))
        && chars.get(behind + 1).is_some_and(|c| c.is_whitespace());
    let number = digits.parse().ok().filter(|_| dotted);
    let label = if number.is_some() { skip(behind + 1) } else { at };
    let label = joined(&chars[label..].iter().collect::<String>());
    let marked = mark && (number.is_some() || !WEAK.contains(&first));
    (!label.is_empty()).then_some(Row { marked, column: at, number, label })
}

fn option(row: &Row, place: usize) -> DialogOption {
    let number = row.number.unwrap_or_else(|| u32::try_from(place + 1).unwrap_or(u32::MAX));
    let types = row.number.filter(|n| (1..=9).contains(n)).map(|n| n.to_string());
    let label = row.label.to_lowercase();
    let field = FIELDS.iter().any(|words| label.contains(words));
    let checked = check_box(&row.label).map(|(checked, _)| checked);
    // The digit of a field with a check box switches the box, and does not go into the field.
    let types = types.filter(|_| !(field && checked.is_some()));
    DialogOption { number, label: row.label.clone(), marked: row.marked, types, field, checked }
}

/// Whether a row only says that a list goes on.
fn is_more(text: &str) -> bool {
    let text = text.trim();
    let counts = |rest: &str| rest.trim_start().starts_with('+');
    text.strip_prefix('…').or_else(|| text.strip_prefix("...")).is_some_and(counts)
        || (!text.is_empty() && text.chars().all(|c| MORE.contains(&c)))
}

/// How a row goes with the option next to it.
enum Next {
    Option(Row),
    /// More of an option's label, or its description.
    Rest(String),
    Blank,
    Other,
}

fn next(text: &str, marked: &Row, number: Option<u32>) -> Next {
    if text.trim().is_empty() || (marked.number.is_some() && is_rule(text)) {
        return Next::Blank;
    }
    if is_more(text) {
        return Next::Rest(String::new());
    }
    let found = row(text);
    let same = |row: &Row| row.column == marked.column && !row.marked && row.number == number;
    if let Some(row) = found
        && same(&row)
    {
        return Next::Option(row);
    }
    let indent = text.chars().take_while(|c| c.is_whitespace()).count();
    if indent > marked.column { Next::Rest(joined(text)) } else { Next::Other }
}

/// The options above the marked one, and the row of the first.
fn above(rows: &[String], at: usize, marked: &Row) -> (usize, Vec<DialogOption>) {
    let (mut first, mut number) = (at, marked.number);
    let (mut found, mut rest): (Vec<Row>, Vec<String>) = (Vec::new(), Vec::new());
    let mut blank = false;
    for y in (0..at).rev().take(OPTIONS) {
        let wanted = number.map(|n| n.wrapping_sub(1));
        if wanted == Some(0) {
            break;
        }
        match next(&rows[y], marked, wanted) {
            Next::Option(mut row) if !(blank && number.is_none()) => {
                rest.reverse();
                for more in rest.drain(..) {
                    row.label = format!("{} {more}", row.label);
                }
                (first, number, blank) = (y, wanted, false);
                found.push(row);
            }
            Next::Rest(text) if text.is_empty() => {}
            Next::Rest(text) => rest.push(text),
            // One blank row may part numbered options; two do not stand between any.
            Next::Blank if number.is_some() && !blank => blank = true,
            _ => break,
        }
    }
    found.reverse();
    (first, found.iter().enumerate().map(|(place, row)| option(row, place)).collect())
}

/// Adds the options below the marked one, and returns the last row of all.
fn below(rows: &[String], at: usize, marked: &Row, options: &mut Vec<DialogOption>) -> usize {
    let (mut last, mut number) = (at, marked.number);
    let mut blank = false;
    for (y, text) in rows.iter().enumerate().skip(at + 1).take(OPTIONS) {
        let wanted = number.map(|n| n + 1);
        let boxed = options.last().is_some_and(|option| option.checked.is_some());
        if let Some(submit) = row(text).filter(|row| boxed && is_submit(row)) {
            let place = options.len();
            options.push(DialogOption { number: UNNUMBERED, ..option(&submit, place) });
            last = y;
            continue;
        }
        match next(text, marked, wanted) {
            Next::Option(row) if !(blank && number.is_none()) => {
                let place = options.len();
                options.push(option(&row, place));
                (last, number, blank) = (y, wanted, false);
            }
            Next::Rest(text) if !blank && !text.is_empty() => {
                if let Some(option) = options.last_mut() {
                    option.label = format!("{} {text}", option.label);
                }
                last = y;
            }
            Next::Rest(text) if text.is_empty() => {}
            Next::Blank if number.is_some() && !blank => blank = true,
            _ => break,
        }
    }
    last
}

/// Whether a row is a horizontal line.
fn is_rule(text: &str) -> bool {
    let drawn = |c: &char| matches!(c, '\u{2500}'..='\u{257f}' | '▔' | '▁' | '▀' | '▄' | '-' | '=');
    text.chars().filter(drawn).count() >= RULE && text.chars().take_while(|c| c.is_whitespace()).count() < 8
}

/// The first row of the dialog whose first option is here: below the rule, the box or the
/// conversation above it.
fn top(rows: &[String], first: usize) -> usize {
    let is_solid = |text: &str| is_rule(text) && !text.contains(['╌', '┄', '┈', '╍', '-']);
    let speaks = |text: &str| {
        let text = text.trim_start();
        let mut chars = text.chars();
        let (mark, gap) = (chars.next(), chars.next());
        gap == Some(' ') && mark.is_some_and(|c| BULLETS.contains(&c) || MARKS.contains(&c))
    };
    let ends = |text: &String| is_solid(text) || (speaks(text) && !text.starts_with("  "));
    let from = first.saturating_sub(DETAIL);
    let top = rows[from..first].iter().rposition(ends).map_or(from, |y| from + y + 1);
    // What a bullet says may go on for some rows, up to a blank one.
    let spoken = top > from && speaks(&rows[top - 1]);
    let tail = if spoken { rows[top..first].iter().take_while(|t| !t.trim().is_empty()).count() } else { 0 };
    if top + tail < first { top + tail } else { top }
}

/// First words of a question.
const ASKING: [&str; 13] = [
    "allow", "apply", "approve", "are", "can", "continue", "do", "is", "proceed", "run", "should", "trust",
    "would",
];
/// Rows that a question may wrap over.
const WRAPPED: usize = 4;

/// The question in these rows: the last sentence that begins as one and ends in a question mark, or
/// else the last row with a question mark, or else the heading.
fn question(rows: &[String]) -> String {
    let is_gap = |text: &String| text.trim().is_empty() || is_rule(text);
    let begins = |text: &String| {
        let text = text.trim_start().to_lowercase();
        ASKING.contains(&text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default())
    };
    let ends: Vec<usize> = (0..rows.len()).filter(|y| rows[*y].trim_end().ends_with('?')).collect();
    let from = |end: usize| {
        let near = (0..=end).rev().take(WRAPPED).take_while(|y| !is_gap(&rows[*y]));
        near.filter(|y| *y == end || !ends.contains(y)).find(|y| begins(&rows[*y]))
    };
    let sentence = ends.iter().rev().find_map(|end| Some(from(*end)?..*end + 1));
    if let Some(range) = sentence {
        return joined(&rows[range].join(" "));
    }
    // A question within a paragraph, without what stands behind it.
    if let Some(end) = rows.iter().rposition(|text| text.contains('?')) {
        let goes_on = |y: &usize| !is_gap(&rows[*y]) && !rows[*y].trim_end().ends_with(['.', ':', '!', '?']);
        let start = (0..end).rev().take(WRAPPED).take_while(goes_on).last().unwrap_or(end);
        let text = joined(&rows[start..=end].join(" "));
        return text.rfind('?').map(|at| text[..=at].to_owned()).unwrap_or(text);
    }
    rows.iter().find(|text| !is_gap(text)).map(|text| joined(text)).unwrap_or_default()
}

/// Rows without the indent that they have in common.
fn outdented(rows: Vec<String>) -> Vec<String> {
    let indent = |text: &String| text.chars().take_while(|c| c.is_whitespace()).count();
    let common = rows.iter().map(indent).min().unwrap_or(0);
    rows.into_iter().map(|text| text.chars().skip(common).collect()).collect()
}
