//! Formats as the command line names them.

use tapdeck::convert::To;
use tapdeck_tape::Container;

/// The names of recordings' formats, as `--from` takes them.
pub(crate) const RECORDINGS: [&str; 10] =
    ["ahr", "cast", "cast-v2", "cast-v1", "ttyrec", "typescript", "ans", "3a", "raw", "cassette"];

/// The names of what `convert` writes besides.
pub(crate) const EXPORTS: [&str; 8] = ["txt", "ansi", "md", "json", "csv", "html", "svg", "svg-still"];

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
