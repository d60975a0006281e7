//! The bytes of a keyboard, cut into keys and what is none.

use tapdeck_term::keys::{KeyPress, decode};

const PASTE: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// The next piece of what was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// A key, and its bytes.
    Key(&'a [u8], KeyPress),
    /// A modifier that was pressed or let go.
    Modifier(&'a [u8]),
    /// A report of the mouse or of the focus, an answer of the terminal, the brackets of a paste.
    Report(&'a [u8]),
    /// Pasted text, or a part of it.
    Paste(&'a [u8]),
}

/// What was typed and is not read yet.
#[derive(Debug, Clone, Default)]
pub(super) struct KeyStream {
    bytes: Vec<u8>,
    at: usize,
    in_paste: bool,
}

impl KeyStream {
    /// Adds bytes as they were read.
    pub(super) fn push(&mut self, typed: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.at));
        self.bytes.extend_from_slice(typed);
    }

    /// Returns the next whole piece.
    pub(super) fn next(&mut self) -> Option<Piece<'_>> {
        let rest = &self.bytes[self.at..];
        if self.in_paste {
            let end = rest.windows(PASTE_END.len()).position(|w| w == PASTE_END);
            let len = match end {
                Some(0) => {
                    self.in_paste = false;
                    self.at += PASTE_END.len();
                    return Some(Piece::Report(PASTE_END));
                }
                Some(end) => end,
                // What may be the beginning of the end waits.
                None => {
                    let tail = (1..PASTE_END.len()).rev().find(|n| rest.ends_with(&PASTE_END[..*n]));
                    rest.len() - tail.unwrap_or(0)
                }
            };
            self.at += len;
            return (len > 0).then_some(Piece::Paste(&rest[..len]));
        }
        let (len, key) = decode(rest)?;
        self.at += len;
        let bytes = &rest[..len];
        self.in_paste = bytes == PASTE;
        Some(match key {
            Some(key) => Piece::Key(bytes, key),
            None if bytes.ends_with(b"u") => Piece::Modifier(bytes),
            None => Piece::Report(bytes),
        })
    }
}
