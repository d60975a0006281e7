//! Leaving out text that nothing remembers.
//!
//! A flood of plain lines ends with the same screen and scrollback whether or not the lines that
//! have left scrollback by then were ever drawn. What must be known of them is where they leave the
//! cursor and how many rows they are, and that is counted many times faster than drawn.

use crate::modes::Mode;
use crate::term::Term;

/// Whether all of it is printable ASCII, carriage returns and line feeds: what [`Term::skip_text`]
/// can count.
pub fn is_plain_text(bytes: &[u8]) -> bool {
    // In stretches without a way out in between, so that it is done many bytes at a time.
    let odd = |b: &u8| u8::from(!(matches!(b, b' '..=b'~') | (*b == b'\r') | (*b == b'\n')));
    bytes.chunks(1024).all(|c| c.iter().fold(0, |any, b| any | odd(b)) == 0)
}

/// Where plain text leaves the cursor, and the rows that it scrolls on the way.
#[derive(Clone, Copy)]
struct Count {
    x: usize,
    pending: bool,
    rows: usize,
    cols: usize,
    /// A line feed goes to the line's beginning, too.
    returns: bool,
}

impl Count {
    fn text(&mut self, piece: &[u8]) {
        let mut from = 0;
        for i in memchr::memchr2_iter(b'\r', b'\n', piece) {
            self.run(i - from);
            from = i + 1;
            self.pending = false;
            if piece[i] == b'\n' {
                self.rows += 1;
            }
            if piece[i] == b'\r' || self.returns {
                self.x = 0;
            }
        }
        self.run(piece.len() - from);
    }

    fn run(&mut self, n: usize) {
        if n == 0 {
            return;
        }
        if self.pending {
            self.rows += 1;
            self.x = 0;
        }
        let last = self.x + n - 1;
        self.rows += last / self.cols;
        self.pending = last % self.cols + 1 == self.cols;
        self.x = last % self.cols + usize::from(!self.pending);
    }
}

impl Term {
    /// Of pieces of plain text (see [`is_plain_text`]) that come next, tells how many at the front
    /// need not be fed: the terminal will end up the same without them. They count as fed:
    /// [`Term::offset`] moves on past them.
    pub fn skip_text<'a>(&mut self, pieces: impl IntoIterator<Item = &'a [u8]>) -> usize {
        let m = &self.m;
        let Some(keep) = m.scrollback.rows_kept(m.cols()) else { return 0 };
        if !self.parser.is_idle() || !m.scrolls_plainly() {
            return 0;
        }
        let mut count = Count {
            x: m.pos.x,
            pending: m.pos.pending,
            rows: 0,
            cols: m.cols(),
            returns: m.modes.has(Mode::Newline),
        };
        let (mut before, mut offset) = (Vec::new(), self.offset);
        for piece in pieces {
            before.push((count, offset));
            count.text(piece);
            offset += piece.len() as u64;
        }
        // Everything that is there now, and the first row, which may be half there, is gone before
        // the end.
        let needed = keep + m.rows() + 1;
        let Some(enough) = count.rows.checked_sub(needed) else { return 0 };
        let skipped = before.partition_point(|(c, _)| c.rows <= enough).saturating_sub(1);
        let Some((at, offset)) = before.get(skipped).filter(|_| skipped > 0) else { return 0 };
        self.m.scrollback.count_evicted(at.rows as u64);
        self.m.jump_along(at.x, at.pending);
        self.offset = *offset;
        skipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size::{Settings, Size};
    use proptest::prelude::*;

    fn pieces() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let line = prop_oneof![
            4 => "[ -~]{0,12}\r\n",
            1 => "[ -~]{0,40}\r\n",
            1 => "[ -~]{0,6}\n",
            1 => "[ -~]{0,9}\r",
            1 => "[ -~]{8}|[ -~]{16}",
            1 => "\r\n\n|\r",
        ];
        // Cut anywhere, not only between lines.
        let cut = (proptest::collection::vec(line, 0..200), proptest::collection::vec(1..40usize, 1..20));
        cut.prop_map(|(lines, sizes)| {
            let text = lines.concat().into_bytes();
            let mut rest = &text[..];
            let mut out = Vec::new();
            for n in sizes.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (a, b) = rest.split_at((*n).min(rest.len()));
                out.push(a.to_vec());
                rest = b;
            }
            out
        })
    }

    proptest! {
        /// The terminal ends up the same whether text is left out or not.
        #[test]
        fn skipping_changes_nothing(
            before in "([ -~]{0,9}(\r\n|\n)){0,12}|\x1b\\[20h\r\n\n\n\n\n|\x1b\\[44m\n\n\n\n\n\n|(\n){6}é|(\n){6}\x1b\\[7l",
            pieces in pieces(),
            after in "[ -~]{0,9}|\x1b\\[3b|\u{301}|\x1b\\[A\x1b\\[Kx",
            scrollback in 0..20usize,
        ) {
            let settings = Settings::default().scrollback(scrollback);
            let mut whole = Term::new(Size { cols: 8, rows: 4 }, settings);
            whole.feed(before.as_bytes());
            let mut short = whole.clone();
            let skipped = short.skip_text(pieces.iter().map(Vec::as_slice));
            for (i, piece) in pieces.iter().enumerate() {
                prop_assert!(is_plain_text(piece));
                whole.feed(piece);
                if i >= skipped {
                    short.feed(piece);
                }
            }
            whole.feed(after.as_bytes());
            short.feed(after.as_bytes());
            short.check_invariants();
            prop_assert_eq!(short.cursor(), whole.cursor());
            prop_assert_eq!(short.evicted(), whole.evicted());
            let lines = |t: &Term| t.lines().map(|l| (l.runs(), l.last_write_byte(), l.wrapped())).collect::<Vec<_>>();
            prop_assert_eq!(lines(&short), lines(&whole));
            prop_assert_eq!(short.dump(), whole.dump());
        }
    }

    #[test]
    fn most_of_a_flood_is_left_out() {
        let mut term = Term::new(Size { cols: 80, rows: 24 }, Settings::default().scrollback(100));
        term.feed(&b"\r\n".repeat(24));
        let piece = b"a line of a log\r\n".repeat(50);
        assert_eq!(term.skip_text(std::iter::repeat_n(&piece[..], 100)), 97);
        assert_eq!(term.evicted(), 97 * 50, "what was left out is counted");
    }

    #[test]
    fn plain_text() {
        assert!(is_plain_text(b"all ~ of it\r\n"));
        for odd in [&b"a\tb"[..], b"\x1b[m", b"\x7f", "é".as_bytes(), b"\x07"] {
            assert!(!is_plain_text(odd), "{odd:?}");
        }
    }
}
