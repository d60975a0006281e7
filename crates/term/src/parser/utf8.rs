//! Characters out of bytes, across any split, with a replacement for what is none.

use super::{Parser, Sink};

impl Parser {
    /// Reads one character that is not ASCII, whole in the common case.
    #[inline]
    pub(super) fn utf8_start<S: Sink>(&mut self, bytes: &[u8], i: usize, base: u64, sink: &mut S) -> usize {
        let cont = |b: u8| b & 0xc0 == 0x80;
        let c = |b: u8| u32::from(b & 0x3f);
        let rest = &bytes[i..];
        let whole = match *rest {
            [a @ 0xc2..=0xdf, b, ..] if cont(b) => Some((u32::from(a & 0x1f) << 6 | c(b), 2)),
            [a @ 0xe0..=0xef, b, d, ..] if cont(b) && cont(d) => {
                Some((u32::from(a & 0xf) << 12 | c(b) << 6 | c(d), 3)).filter(|v| v.0 >= 0x800)
            }
            [a @ 0xf0..=0xf4, b, d, e, ..] if cont(b) && cont(d) && cont(e) => {
                Some((u32::from(a & 7) << 18 | c(b) << 12 | c(d) << 6 | c(e), 4)).filter(|v| v.0 >= 0x1_0000)
            }
            _ => None,
        };
        if let Some((v, n)) = whole
            && let Some(ch) = char::from_u32(v)
        {
            let end = base + (i + n) as u64;
            if v < 0xa0 {
                self.c1(v as u8, end, sink);
            } else {
                sink.character(ch, end);
            }
            return i + n;
        }
        let need = match rest[0] {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => {
                sink.character(char::REPLACEMENT_CHARACTER, base + i as u64 + 1);
                return i + 1;
            }
        };
        self.utf8[0] = rest[0];
        self.utf8_len = 1;
        self.utf8_need = need;
        i + 1
    }

    /// Goes on with a character that a split or an error has interrupted. An error yields one
    /// replacement for the longest part that could have begun a character; the offending byte is
    /// read again.
    pub(super) fn utf8_continue<S: Sink>(
        &mut self,
        bytes: &[u8],
        i: usize,
        base: u64,
        sink: &mut S,
    ) -> usize {
        let b = bytes[i];
        let fits = match (self.utf8_len, self.utf8[0]) {
            (1, 0xe0) => (0xa0..=0xbf).contains(&b),
            (1, 0xed) => (0x80..=0x9f).contains(&b),
            (1, 0xf0) => (0x90..=0xbf).contains(&b),
            (1, 0xf4) => (0x80..=0x8f).contains(&b),
            _ => (0x80..=0xbf).contains(&b),
        };
        if !fits {
            self.utf8_len = 0;
            sink.character(char::REPLACEMENT_CHARACTER, base + i as u64);
            return i;
        }
        self.utf8[usize::from(self.utf8_len)] = b;
        self.utf8_len += 1;
        if self.utf8_len == self.utf8_need {
            let n = usize::from(self.utf8_len);
            self.utf8_len = 0;
            let c = std::str::from_utf8(&self.utf8[..n]).ok().and_then(|s| s.chars().next());
            let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
            let end = base + i as u64 + 1;
            if (c as u32) < 0xa0 { self.c1(c as u8, end, sink) } else { sink.character(c, end) }
        }
        i + 1
    }
}
