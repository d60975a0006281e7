//! Questions on the line of the cursor, answered by a line of text.

use std::sync::LazyLock;

use regex::Regex;
use tapdeck_term::Term;

use super::{Dialog, DialogOption, Form, joined};
use crate::turns::page;

/// Rows above the question that tell what it is about.
const ABOUT: u64 = 10;

/// A pattern of this file; the tests use each.
fn pattern(text: &str) -> Option<Regex> {
    Regex::new(text).ok()
}

static SECRET: LazyLock<Option<Regex>> = LazyLock::new(|| {
    pattern(r"(?i)(?:password|passphrase|passcode|verification code|\bpin|token)\b[^:]*: ?$")
});
static ANY_KEY: LazyLock<Option<Regex>> =
    LazyLock::new(|| pattern(r"(?i)press (?:any key|enter|return)[^.]*$"));
/// `(Y)es/(N)o/(D)on't ask again`
static LETTERS: LazyLock<Option<Regex>> = LazyLock::new(|| pattern(r"\(([A-Za-z])\)([^/\[(:?]*)"));
/// `[Yes]` behind such letters.
static DEFAULT: LazyLock<Option<Regex>> = LazyLock::new(|| pattern(r"\[([A-Za-z]+)\]: ?$"));
/// `[y/N]`, `(yes/no/[fingerprint])`
static WORDS: LazyLock<Option<Regex>> =
    LazyLock::new(|| pattern(r"[\[(]([A-Za-z]+(?:/\[?[A-Za-z]+\]?)+)[\])]"));

/// Reads the question in front of the cursor.
pub(super) fn read(term: &Term) -> Option<Dialog> {
    let (text, row) = page::before_cursor(term);
    if text.trim().is_empty() {
        return None;
    }
    let is = |pattern: &LazyLock<Option<Regex>>| pattern.as_ref().is_some_and(|p| p.is_match(&text));
    let mut free = false;
    let secret = is(&SECRET);
    let mut options = Vec::new();
    if is(&ANY_KEY) {
        options.push(word("continue", "", true, 0));
    } else if secret {
        free = true;
    } else {
        options = letters(&text);
        if options.is_empty() {
            (options, free) = words(&text);
        }
        free |= options.is_empty();
    }
    let form = if is(&ANY_KEY) { Form::Key } else { Form::Line { free, secret, row } };
    let y = term.cursor().row;
    Some(Dialog {
        question: joined(&text),
        detail: about(term, row),
        options,
        form,
        rows: (y, y),
        escape: false,
    })
}

/// Whether the question still stands: the cursor has not left its row.
pub(super) fn stands(dialog: &Dialog, term: &Term) -> bool {
    let (text, row) = page::before_cursor(term);
    let here = match dialog.form {
        Form::Line { row: asked, .. } => row == asked,
        _ => true,
    };
    here && joined(&text).starts_with(&dialog.question)
}

fn word(label: &str, types: &str, marked: bool, place: usize) -> DialogOption {
    let number = u32::try_from(place + 1).unwrap_or(u32::MAX);
    DialogOption {
        number,
        label: label.to_owned(),
        marked,
        types: Some(types.to_owned()),
        field: false,
        checked: None,
    }
}

/// Options by a letter in parentheses.
fn letters(text: &str) -> Vec<DialogOption> {
    let default = DEFAULT.as_ref().and_then(|p| p.captures(text)).map(|c| c[1].to_lowercase());
    let Some(letters) = LETTERS.as_ref() else { return Vec::new() };
    let found: Vec<(String, String)> = letters
        .captures_iter(text)
        .map(|c| (c[1].to_owned(), format!("{}{}", &c[1], c[2].trim_end())))
        .collect();
    // One alone is a remark, such as "file(s)".
    if found.len() < 2 {
        return Vec::new();
    }
    let option = |(place, (letter, label)): (usize, &(String, String))| {
        word(label, &letter.to_lowercase(), default.as_deref() == Some(&label.to_lowercase()), place)
    };
    found.iter().enumerate().map(option).collect()
}

/// Options by words between slashes, and whether one of them stands for any text.
fn words(text: &str) -> (Vec<DialogOption>, bool) {
    let Some(found) = WORDS.as_ref().and_then(|p| p.captures_iter(text).last()) else {
        return (Vec::new(), false);
    };
    let all: Vec<&str> = found[1].split('/').collect();
    // The capital one is the default, unless all are.
    let is_upper = |word: &str| word.chars().next().is_some_and(char::is_uppercase);
    let uppers = all.iter().filter(|w| is_upper(w)).count();
    let named = all.iter().filter(|word| !word.starts_with('['));
    let option = |(place, w): (usize, &&str)| {
        let marked = uppers == 1 && all.len() > 1 && is_upper(w);
        word(w, &w.to_lowercase(), marked, place)
    };
    (named.clone().enumerate().map(option).collect(), named.count() < all.len())
}

/// The rows right above the question, up to a blank one.
fn about(term: &Term, row: u64) -> Vec<String> {
    let text = |up: u64| Some(page::row(term, row.checked_sub(up)?)?.text().trim_end().to_owned());
    let mut rows: Vec<String> =
        (1..=ABOUT).map_while(text).take_while(|text| text.chars().any(char::is_alphanumeric)).collect();
    rows.reverse();
    rows
}
