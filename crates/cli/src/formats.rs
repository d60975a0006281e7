//! Formats as the command line names them.

use tapdeck::convert::To;
use tapdeck_tape::Container;

/// A target as `--format` of `convert` takes it.
pub(crate) fn target(text: &str) -> Result<To, String> {
    text.parse().map_err(|e: tapdeck::convert::ConvertError| e.to_string())
}

/// A format as `--from` takes it.
pub(crate) fn container(text: &str) -> Result<Container, String> {
    text.parse().map_err(|e: tapdeck_tape::UnknownFormat| e.to_string())
}
