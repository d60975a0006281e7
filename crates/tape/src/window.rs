//! A window on a stream: look ahead as far as a block needs, move on, and know the offset. Its
//! memory is bounded by what callers ask for at once, which they bound by the limits of the header.

use std::io::{self, Read};

use crate::{Error, FilePosition, Result};

/// Read at least this much at a time.
const CHUNK: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Window<R> {
    inner: R,
    buf: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
    eof: bool,
}

impl<R: Read> Window<R> {
    pub(crate) fn new(inner: R, offset: u64) -> Self {
        Self { inner, buf: Vec::new(), start: 0, end: 0, offset, eof: false }
    }

    /// Offset in the file of the first byte in view.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// What is in view.
    pub(crate) fn data(&self) -> &[u8] {
        &self.buf[self.start..self.end]
    }

    /// Brings at least `want` bytes into view, or all that are left, and says how many are.
    pub(crate) fn fill(&mut self, want: usize) -> Result<usize> {
        if want > self.buf.len() - self.start && self.start > 0 {
            self.buf.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        // A length that a file claims is reached in steps, so that memory is only taken for bytes
        // that came.
        while self.end - self.start < want && !self.eof {
            if self.end == self.buf.len() {
                let step = CHUNK.max(self.buf.len());
                self.buf.resize(self.buf.len() + step, 0);
            }
            match self.inner.read(&mut self.buf[self.end..]) {
                Ok(0) => self.eof = true,
                Ok(n) => self.end += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    let at = FilePosition::Byte(self.offset + (self.end - self.start) as u64);
                    return Err(Error::Read { at, source });
                }
            }
        }
        Ok(self.end - self.start)
    }

    /// What is left to be read.
    pub(crate) fn into_rest(self) -> impl Read {
        let (buf, start, end) = (self.buf, self.start, self.end);
        let mut seen = io::Cursor::new(buf);
        seen.set_position(start as u64);
        seen.take((end - start) as u64).chain(self.inner)
    }

    /// Moves on by `n` bytes, which must be in view.
    pub(crate) fn consume(&mut self, n: usize) {
        let n = n.min(self.end - self.start);
        self.start += n;
        self.offset += n as u64;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }
}
