//! Reading what is typed: Enter and Ctrl-C, told from the same bytes inside a paste, under either
//! keyboard protocol.

/// What was done at the keyboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Typed {
    /// Submitted what stands there.
    Enter,
    /// Interrupted.
    Interrupt,
}

/// The longest sequence that is of interest: `CSI 13;1:1u`, `CSI 200~`.
const LONGEST: usize = 24;
/// What is remembered of a line.
const LINE: usize = 1 << 20;

/// The reader.
#[derive(Debug, Clone, Default)]
pub(super) struct Typing {
    sequence: Vec<u8>,
    in_paste: bool,
    /// The text of the line so far, line ends of a paste included.
    line: Vec<u8>,
    /// Something was pressed that changes the line in ways that are not followed here: completion,
    /// history, a moved cursor.
    edited: bool,
    /// Escape was pressed since something was submitted.
    escaped: bool,
    /// Inside a string, which is an answer of the terminal: up to its end, nothing is typed.
    in_string: bool,
    /// A program runs.
    runs: bool,
}

impl Typing {
    /// Whether Escape was pressed since something was submitted, by which many programs are
    /// interrupted.
    pub(super) fn is_escaped(&self) -> bool {
        self.escaped || self.sequence == [0x1b]
    }

    /// Whether anything was pressed since something was submitted.
    pub(super) fn is_begun(&self) -> bool {
        self.edited || !self.line.is_empty()
    }

    /// What stands there and was not submitted, as far as that is known.
    pub(super) fn line(&self) -> &[u8] {
        &self.line
    }

    /// Takes bytes that were delivered; calls `did` for each act, with the line that it ends and
    /// whether there may be more or less of it than was typed. `runs`: a program runs that Ctrl-\
    /// ends, and not a line editor, which ignores that.
    pub(super) fn feed(&mut self, bytes: &[u8], runs: bool, mut did: impl FnMut(Typed, &[u8], bool)) {
        self.runs = runs;
        for &b in bytes {
            if self.in_string {
                // A key that begins like a string (Alt and a letter) has no end; Enter is one.
                let ends = matches!(b, 0x07 | b'\r' | b'\n') || (self.sequence == [0x1b] && b == b'\\');
                self.sequence.clear();
                if b == 0x1b {
                    self.sequence.push(b);
                }
                self.in_string = !ends;
                if !ends || matches!(b, 0x07 | b'\\') {
                    continue;
                }
            }
            if self.sequence == [0x1b] && b == 0x1b {
                // Escape, and then the beginning of another key or of a report.
                (self.escaped, self.edited) = (true, true);
                continue;
            }
            if !self.sequence.is_empty() {
                self.sequence.push(b);
                let begins = self.sequence.len() == 2 && !matches!(b, b'[' | b'O');
                let ends = self.sequence.len() > 2 && (0x40..=0x7e).contains(&b);
                if begins || ends || self.sequence.len() > LONGEST {
                    let act = self.sequence_act();
                    self.sequence.clear();
                    self.act(act, &mut did);
                }
                continue;
            }
            match b {
                0x1b => self.sequence.push(b),
                b'\r' | b'\n' if !self.in_paste => self.act(Some(Typed::Enter), &mut did),
                0x03 if !self.in_paste => self.act(Some(Typed::Interrupt), &mut did),
                0x1c if !self.in_paste && self.runs => self.act(Some(Typed::Interrupt), &mut did),
                0x7f | 0x08 if !self.in_paste => {
                    // The whole character goes.
                    while self.line.pop().is_some_and(|last| (0x80..0xc0).contains(&last)) {}
                }
                0x15 if !self.in_paste => self.line.clear(),
                b'\r' => self.push(b'\n'),
                b'\t' if !self.in_paste => {
                    self.edited = true;
                    self.push(b);
                }
                0..=0x1f if b != b'\t' && b != b'\n' => self.edited |= !self.in_paste,
                _ => self.push(b),
            }
        }
    }

    fn push(&mut self, b: u8) {
        if self.line.len() < LINE {
            self.line.push(b);
        }
    }

    fn act(&mut self, act: Option<Typed>, did: &mut impl FnMut(Typed, &[u8], bool)) {
        if let Some(act) = act {
            self.runs |= act == Typed::Enter;
            did(act, &self.line, self.edited);
            self.line.clear();
            self.edited = false;
            self.escaped = false;
        }
    }

    fn sequence_act(&mut self) -> Option<Typed> {
        match self.sequence.as_slice() {
            b"\x1b[200~" => self.in_paste = true,
            b"\x1b[201~" => self.in_paste = false,
            [0x1b, b'[', params @ .., b'u'] => {
                let text = std::str::from_utf8(params).unwrap_or("");
                let mut parts = text.split(';');
                let key = parts.next().and_then(|p| p.split(':').next()).unwrap_or("");
                let mut mods = parts.next().unwrap_or("1").split(':');
                let (held, event) = (mods.next().unwrap_or("1"), mods.next().unwrap_or("1"));
                match (key, held, event) {
                    (_, _, "3") => {}
                    ("13", "" | "1", _) => return Some(Typed::Enter),
                    ("99", "5", _) => return Some(Typed::Interrupt),
                    ("92", "5", _) if self.runs => return Some(Typed::Interrupt),
                    ("117", "5", _) => self.line.clear(),
                    ("27", "" | "1", _) => (self.escaped, self.edited) = (true, true),
                    _ => self.edited = true,
                }
            }
            // Keypad Enter in application mode.
            b"\x1bOM" => return Some(Typed::Enter),
            // Reports of the terminal, its focus and its mouse.
            [0x1b, b'[', .., b'c' | b'n' | b'R' | b'I' | b'O' | b'M' | b'm' | b'y' | b't'] => {}
            // Strings, which are answers too.
            [0x1b, b']' | b'P' | b'_'] => self.in_string = true,
            [0x1b, b'\\'] => {}
            _ => self.edited |= !self.in_paste,
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_a_line_unseen_is_noticed() {
        let cases: [(&[u8], bool); 10] = [
            (b"echo one\r", false),
            (b"ec\x7fcho\r", false),
            (b"x\x15echo\r", false),
            (b"x\x1b[117;5uecho\r", false),
            (b"\x1b[200~a\tb\x1b[201~\r", false),
            (b"\x1b[I\x1b[3;4Recho\r", false),
            (b"ec\t\r", true),
            (b"\x1b[A\r", true),
            (b"echo\x17x\r", true),
            (b"echo\x1bbx\r", true),
        ];
        for (bytes, wanted) in cases {
            let mut got = Vec::new();
            Typing::default().feed(bytes, false, |_, _, edited| got.push(edited));
            assert_eq!(got, [wanted], "{bytes:?}");
        }
    }

    #[test]
    fn escape_is_noticed_whatever_comes_after_it() {
        let cases: [(&[u8], bool); 7] = [
            (b"\x1b", true),
            (b"\x1b[27u", true),
            (b"\x1b[27;1:3u", false),
            (b"\x1b\x1b[I", true),
            (b"\x1b\x1b[I\x1b[O", true),
            (b"\x1b[I", false),
            (b"\x1b\r", false),
        ];
        for (bytes, wanted) in cases {
            let mut typing = Typing::default();
            typing.feed(bytes, false, |_, _, _| {});
            assert_eq!((typing.is_escaped(), typing.line()), (wanted, &b""[..]), "{bytes:?}");
        }
    }

    #[test]
    fn enter_and_interrupt_are_told_from_pastes() {
        type Case<'a> = (&'a [u8], &'a [(Typed, &'a str)]);
        let cases: [Case<'_>; 13] = [
            // Ctrl-\ ends a program, and does nothing to a line.
            (b"cat\r\x1c", &[(Typed::Enter, "cat"), (Typed::Interrupt, "")]),
            (b"cat\r\x1b[92;5u", &[(Typed::Enter, "cat"), (Typed::Interrupt, "")]),
            (b"c\x1cat\r", &[(Typed::Enter, "cat")]),
            // Answers of the terminal, one without an end.
            (b"\x1bP>|tmux 3.3a\x1b\\hi\x1b]11;rgb:0/0/0\x07!\r", &[(Typed::Enter, "hi!")]),
            (b"a\x1bPb\rc\r", &[(Typed::Enter, "a"), (Typed::Enter, "c")]),
            (b"ls\r", &[(Typed::Enter, "ls")]),
            (b"lx\x7fs\r\r", &[(Typed::Enter, "ls"), (Typed::Enter, "")]),
            (b"\x1b[200~a\rb\x03\x1b[201~", &[]),
            (b"\x1b[200~a\rb\x1b[201~\r", &[(Typed::Enter, "a\nb")]),
            (b"sleep\r\x03", &[(Typed::Enter, "sleep"), (Typed::Interrupt, "")]),
            (b"hi\x1b[13u", &[(Typed::Enter, "hi")]),
            (b"x\x1b[13;2u\x1b[13;1:3u\x1b[99;5u", &[(Typed::Interrupt, "x")]),
            ("gru\u{df}\x7f\r".as_bytes(), &[(Typed::Enter, "gru")]),
        ];
        for (bytes, wanted) in cases {
            for size in [1, 2, 100] {
                let mut typing = Typing::default();
                let mut got: Vec<(Typed, String)> = Vec::new();
                for piece in bytes.chunks(size) {
                    let runs = got.last().is_some_and(|(act, _)| *act == Typed::Enter);
                    typing.feed(piece, runs, |act, line, _| {
                        got.push((act, String::from_utf8_lossy(line).into_owned()))
                    });
                }
                let got: Vec<(Typed, &str)> = got.iter().map(|(a, l)| (*a, l.as_str())).collect();
                assert_eq!(got, wanted, "{bytes:?}");
            }
        }
    }
}
