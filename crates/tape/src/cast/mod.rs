//! asciicast, the text format of asciinema: version 1 is one JSON object, 2 and 3 are a header line
//! and an event a line, with absolute times in 2 and relative ones in 3. All of it is UTF-8, so
//! bytes that are not cannot be carried; they are replaced and counted.

mod halves;
mod read;
mod theme;
mod v1;
mod write;

pub use read::CastReader;
pub use theme::{theme_of, theme_value};
pub use write::CastWriter;

/// Versions that can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CastVersion {
    /// Absolute times; read by every version of asciinema since 2.0.
    V2,
    /// Relative times, exit status, comments; read by asciinema 3.
    V3,
}

#[cfg(test)]
mod tests;
