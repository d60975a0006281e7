//! Lines of a text file, bounded: a file without a line end must not become one allocation.

use std::io::Read;

use crate::window::Window;
use crate::{Error, FilePosition, Result};

/// No line may be longer than this.
pub(crate) const MAX_LINE: usize = 32 << 20;

#[derive(Debug)]
pub(crate) struct Lines<R> {
    window: Window<R>,
    /// Bytes of the current line and its end, to be consumed before the next.
    pending: usize,
    number: u64,
}

/// A line without its end.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) number: u64,
    /// Whether a line end followed: without, the line may be the torn end of a file.
    pub(crate) ended: bool,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { window: Window::new(inner, 0), pending: 0, number: 0 }
    }

    pub(crate) fn position(&self) -> u64 {
        self.window.offset() + self.pending as u64
    }

    pub(crate) fn place(&self) -> FilePosition {
        FilePosition::Line(self.number.max(1))
    }

    pub(crate) fn next_line(&mut self) -> Result<Option<Line<'_>>> {
        self.window.consume(std::mem::take(&mut self.pending));
        let mut seen = 0;
        let (len, ended) = loop {
            let have = self.window.fill(seen + 1)?;
            if have == seen {
                break (have, false);
            }
            if let Some(at) = memchr::memchr(b'\n', &self.window.data()[seen..]) {
                break (seen + at, true);
            }
            seen = have;
            if seen > MAX_LINE {
                let what = format!("line is longer than {} MiB", MAX_LINE >> 20);
                return Err(Error::malformed(FilePosition::Line(self.number + 1), what));
            }
        };
        if len == 0 && !ended {
            return Ok(None);
        }
        self.pending = len + usize::from(ended);
        self.number += 1;
        let text = &self.window.data()[..len];
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        Ok(Some(Line { text, number: self.number, ended }))
    }

    /// All that follows the current line, at most `limit` bytes of it.
    pub(crate) fn rest(&mut self, limit: usize) -> Result<Vec<u8>> {
        self.window.consume(std::mem::take(&mut self.pending));
        let have = self.window.fill(limit.saturating_add(1))?;
        if have > limit {
            let what = format!("longer than {} MiB and not made of lines", limit >> 20);
            return Err(Error::malformed(self.place(), what));
        }
        let rest = self.window.data().to_vec();
        self.window.consume(have);
        Ok(rest)
    }
}
