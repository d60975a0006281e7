//! What waits to be sent to one client: pieces that are shared with other clients, not copied.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};

use bytes::Bytes;

use crate::conn::Conn;

/// Pieces in one write.
const SLICES: usize = 64;

/// An outgoing queue.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pieces: VecDeque<Bytes>,
    len: usize,
}

impl Queue {
    pub(crate) fn push(&mut self, piece: impl Into<Bytes>) {
        let piece = piece.into();
        if !piece.is_empty() {
            self.len += piece.len();
            self.pieces.push_back(piece);
        }
    }

    /// Bytes that wait.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Sends what the other side takes without waiting.
    pub(crate) fn flush(&mut self, conn: &mut Conn) -> io::Result<()> {
        while !self.pieces.is_empty() {
            let slices: Vec<IoSlice<'_>> = self.pieces.iter().take(SLICES).map(|p| IoSlice::new(p)).collect();
            match conn.write_vectored(&slices) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => self.advance(n),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        match conn.flush() {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(()),
            other => other,
        }
    }

    fn advance(&mut self, mut n: usize) {
        self.len -= n;
        while let Some(front) = self.pieces.front_mut() {
            if n < front.len() {
                bytes::Buf::advance(front, n);
                return;
            }
            n -= front.len();
            self.pieces.pop_front();
        }
    }
}
