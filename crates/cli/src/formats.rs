//! Formats as the command line names them.

use std::path::Path;

use tapdeck::convert::To;
use tapdeck_host::can_record;
use tapdeck_tape::Container;

/// The names of recordings' formats, as `--from` takes them.
pub(crate) const RECORDINGS: [&str; 10] =
    ["ahr", "cast", "cast-v2", "cast-v1", "ttyrec", "typescript", "ans", "3a", "raw", "cassette"];

/// The names of what `convert` writes besides.
pub(crate) const EXPORTS: [&str; 14] = [
    "txt",
    "ansi",
    "md",
    "json",
    "csv",
    "html",
    "svg",
    "svg-still",
    "png",
    "gif",
    "apng",
    "webp",
    "mp4",
    "webm",
];

/// The endings of what `rec` writes.
const RECORDED: &str = ".ahr, .cast, .ttyrec, .typescript, .raw, each also with .zst";

/// The format of a new recording: the one that was asked for, or the one that its name ends with;
/// none for a name without an ending.
pub(crate) fn recorded(name: &str, asked: Option<Container>) -> Result<Option<Container>, String> {
    let ending = Path::new(name).extension().filter(|ending| !ending.is_empty());
    let unsupported = match (asked.or_else(|| Container::of_name(name)), ending) {
        (Some(container), _) if can_record(container.format) => return Ok(Some(container)),
        (Some(container), _) => container.to_string(),
        (None, Some(ending)) => format!("\".{}\"", ending.to_string_lossy()),
        (None, None) => return Ok(None),
    };
    Err(format!("unsupported output format {unsupported}; supported: {RECORDED}"))
}

/// A target as `--format` of `convert` takes it.
pub(crate) fn target(text: &str) -> Result<To, String> {
    text.parse().map_err(|e: tapdeck::convert::ConvertError| e.to_string())
}

/// A format as `--from` takes it.
pub(crate) fn container(text: &str) -> Result<Container, String> {
    text.parse().map_err(|e: tapdeck_tape::UnknownFormat| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken() {
        for name in RECORDINGS {
            assert!(container(name).is_ok(), "{name}");
        }
        for name in EXPORTS {
            assert!(target(name).is_ok() && container(name).is_err(), "{name}");
        }
    }
}
