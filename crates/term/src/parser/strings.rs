//! The strings of OSC, DCS, APC, PM and SOS: bounded, and skipped whole when they are too long.

use super::{Parser, Sink, State, StringKind};
use memchr::{memchr2, memchr3};

impl Parser {
    /// Takes the body of a string up to what may end it.
    pub(super) fn string_body<S: Sink>(&mut self, bytes: &[u8], i: usize, base: u64, sink: &mut S) -> usize {
        let rest = &bytes[i..];
        // BEL ends an OSC only; CAN and SUB abandon any string. 8-bit ST counts outside UTF-8
        // alone.
        let mut n = if self.kind == StringKind::Osc {
            memchr3(0x1b, 0x07, 0x18, rest).unwrap_or(rest.len())
        } else {
            memchr2(0x1b, 0x18, rest).unwrap_or(rest.len())
        };
        if let Some(m) = memchr2(0x1a, if self.utf8_mode { 0x1a } else { 0x9c }, &rest[..n]) {
            n = m;
        }
        if self.utf8_mode
            && let Some(m) = find_utf8_st(self.last, &rest[..n])
        {
            // U+009C, in its two bytes.
            n = m;
        }
        let room = self.string_limit.saturating_sub(self.string.len());
        if n > room {
            self.overflow = true;
        }
        if self.overflow {
            // Nothing will look at it: keep only the head, which says what it was.
            let keep = n.min(64usize.saturating_sub(self.string.len()));
            self.string.extend_from_slice(&rest[..keep]);
        } else {
            self.string.extend_from_slice(&rest[..n]);
        }
        if n > 0 {
            self.last = rest[n - 1];
        }
        let Some(&stop) = rest.get(n) else { return i + n };
        let end = base + (i + n) as u64 + 1;
        match stop {
            0x1b => self.state = State::StringEscape,
            0x07 => self.finish_string(true, end, sink),
            0x9c => {
                if self.utf8_mode && !self.overflow {
                    self.string.pop();
                }
                self.finish_string(false, end, sink);
            }
            _ => {
                self.finish_string_aborted(end - 1, sink);
                self.state = State::Ground;
                sink.execute(stop, end);
            }
        }
        i + n + 1
    }

    pub(super) fn finish_string<S: Sink>(&mut self, bell: bool, end: u64, sink: &mut S) {
        self.state = State::Ground;
        let mut data = std::mem::take(&mut self.string);
        if self.overflow {
            data.truncate(64);
        }
        sink.string(self.kind, &self.head, &data, bell, self.overflow, end);
        // Keep the buffer, unless it has grown large.
        if data.capacity() <= 1 << 16 {
            self.string = data;
            self.string.clear();
        }
    }

    pub(super) fn finish_string_aborted<S: Sink>(&mut self, end: u64, sink: &mut S) {
        if !self.overflow {
            sink.abandoned(self.kind, &self.string, end);
        }
        self.string.clear();
        if self.string.capacity() > 1 << 16 {
            self.string = Vec::new();
        }
    }
}

/// Finds the second byte of U+009C, whose first may be the last byte that was already taken.
fn find_utf8_st(before: u8, bytes: &[u8]) -> Option<usize> {
    memchr::memchr_iter(0x9c, bytes).find(|&m| (if m == 0 { before } else { bytes[m - 1] }) == 0xc2)
}
