//! Typescripts of `script(1)`: a file with the bytes and a file with their timing. Classic timing
//! has a delay and a length a line, for output only; advanced timing (`--log-io`, `--logging-format
//! advanced`) adds a letter for output, input, signals and header fields.
//!
//! The data file opens with a line `Script started on …` and closes with `Script done on …`, which
//! `script` writes but the program did not; neither is counted by the timing file.

mod read;
mod write;

pub use read::TypescriptReader;
pub use write::{Timing, TypescriptWriter};

/// How the line begins that `script` puts before the data.
pub(crate) const STARTED: &[u8] = b"Script started on ";

#[cfg(test)]
mod tests;
