//! Formatted text that is appended to memory, which takes it all: there is no error to handle.

use std::fmt;
use std::io::Write as _;

/// A buffer in memory.
pub(crate) trait PushFmt {
    /// Appends the text.
    fn push_fmt(&mut self, text: fmt::Arguments<'_>);
}

impl PushFmt for String {
    fn push_fmt(&mut self, text: fmt::Arguments<'_>) {
        // A string takes everything, and what is formatted here never fails by itself.
        let _ = fmt::Write::write_fmt(self, text);
    }
}

impl PushFmt for Vec<u8> {
    fn push_fmt(&mut self, text: fmt::Arguments<'_>) {
        // As for a string.
        let _ = self.write_fmt(text);
    }
}
