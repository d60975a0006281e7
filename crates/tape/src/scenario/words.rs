//! What is wrong with a scenario's text, in the words of a scenario: with the key that it is about
//! and what was probably meant, whatever the reader of YAML says.

use serde_saphyr::Error;

use super::ScenarioError;
use crate::nearest;

pub(super) fn explain(text: &str, error: &Error) -> ScenarioError {
    let (line, col) = error.location().map_or((1, 1), |l| (l.line(), l.column()));
    let first = usize::try_from(line).unwrap_or(usize::MAX).saturating_sub(1);
    if let Some(line) = tab(text, first).filter(|_| is_of_syntax(error)) {
        // The reader names the line where the text before the tab began.
        return ScenarioError { line, what: "a tab is no indentation: YAML wants blanks".into() };
    }
    let what = what_is_wrong(error);
    // A message about a value names the key that it belongs to.
    let before: String = text.lines().nth(first).unwrap_or_default().chars().take(to_index(col)).collect();
    let what = match key_before(&before).filter(|_| is_of_value(error)) {
        Some(key) => format!("{key}: {what}"),
        None => what,
    };
    ScenarioError { line, what }
}

fn to_index(col: u64) -> usize {
    usize::try_from(col).unwrap_or(usize::MAX).saturating_sub(1)
}

/// The line of the first tab that indents something from this line on.
fn tab(text: &str, first: usize) -> Option<u64> {
    let mut lines = (1..).zip(text.lines()).skip(first);
    lines.find(|(_, l)| l.trim_start_matches(' ').starts_with('\t')).map(|(line, _)| line)
}

/// The error itself, without what the library puts around it.
fn inner(error: &Error) -> &Error {
    match error {
        Error::WithSnippet { error, .. } | Error::AliasError { error, .. } => inner(error),
        other => other,
    }
}

/// Whether the text is no YAML at all.
fn is_of_syntax(error: &Error) -> bool {
    matches!(
        inner(error),
        Error::ExternalMessage { .. } | Error::Eof { .. } | Error::ContainerEndMismatch { .. }
    )
}

/// Whether it is about a value, rather than about a key.
fn is_of_value(error: &Error) -> bool {
    !is_of_syntax(error)
        && !matches!(
            inner(error),
            Error::SerdeUnknownField { .. }
                | Error::SerdeMissingField { .. }
                | Error::DuplicateMappingKey { .. }
                | Error::MultipleDocuments { .. }
                | Error::Message { .. }
        )
}

/// The key whose value begins behind this text, if that is in the same line.
fn key_before(before: &str) -> Option<&str> {
    let key = before.trim_end().strip_suffix(':')?;
    let from = key.rfind([' ', '{', '[', ',', '\t']).map_or(0, |at| at + 1);
    let key = key[from..].trim_matches(['"', '\'']);
    (!key.is_empty()).then_some(key)
}

fn what_is_wrong(error: &Error) -> String {
    match inner(error) {
        Error::Message { msg, .. } => msg.clone(),
        Error::SerdeUnknownField { field, expected, .. } => nearest::unknown("key", field, expected),
        Error::SerdeUnknownVariant { variant, expected, .. } => nearest::unknown("key", variant, expected),
        Error::SerdeMissingField { field, .. } => format!("the key {field:?} is missing"),
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("{key} is there twice"),
        Error::DuplicateMappingKey { .. } => "a key is there twice".into(),
        Error::Unexpected { expected, .. } => wanted(expected),
        Error::InvalidScalar { ty, .. } => wanted(ty),
        Error::InvalidBooleanStrict { .. } => "write true or false".into(),
        Error::NullIntoString { .. } => "there is no text here: write \"\" for an empty one".into(),
        Error::SerdeInvalidType { unexpected, expected, .. }
        | Error::SerdeInvalidValue { unexpected, expected, .. } => {
            let not = found(unexpected).map_or(String::new(), |what| format!(", not {what}"));
            format!("{}{not}", wanted(expected))
        }
        Error::MultipleDocuments { .. } => "a scenario is one document: a second one begins here".into(),
        Error::UnknownAnchor { .. } => "the alias names no anchor: write &NAME before *NAME".into(),
        Error::Eof { .. } => "the file ends too early: a bracket, a quote or a value is missing".into(),
        Error::ExternalMessage { .. } | Error::ContainerEndMismatch { .. } => {
            "this is no YAML: check the brackets, quotes, colons and the indentation before this place".into()
        }
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => "it is nested too deeply, or too large".into(),
        _ => "this cannot be understood here".into(),
    }
}

/// What is wanted, from the library's or from serde's name of it.
fn wanted(what: &str) -> String {
    let what = what.trim_matches('`');
    match what {
        _ if what.contains("sequence") => "a list is wanted here, such as [a, b]".into(),
        _ if what.contains("mapping") || what.contains("map") || what.starts_with("struct") => {
            "keys are wanted here, such as {contains: text}".into()
        }
        _ if what.contains("bool") => "write true or false".into(),
        "string" | "string scalar" | "a string" | "str" => "a text is wanted here".into(),
        "u8" | "u16" | "u32" | "u64" | "usize" | "unsigned integer" => {
            "a number is wanted here, 0 or more".into()
        }
        "i32" | "i64" | "integer" | "signed integer" => "a whole number is wanted here".into(),
        "f64" | "f32" | "floating point" => "a number is wanted here".into(),
        "one or a list" | "a plain value or a map" => format!("{what} is wanted here"),
        _ => "a value of another kind is wanted here".into(),
    }
}

/// What is there, from serde's name of it.
fn found(what: &str) -> Option<&str> {
    match what {
        "sequence" => Some("a list"),
        "map" => Some("keys"),
        "unit value" | "null" => Some("nothing"),
        _ => None,
    }
}
