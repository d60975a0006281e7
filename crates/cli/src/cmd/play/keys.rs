//! What a terminal sends, as keys. Answers of the terminal, mouse reports and unknown sequences are
//! skipped whole.

use tapdeck_term::keys::{Key, KeyPress, Mods};

/// A sequence longer than this is no key.
const MAX_SEQUENCE: usize = 4096;

/// Decodes typed bytes. A sequence may come in pieces.
#[derive(Default)]
pub(super) struct Decoder {
    pending: Vec<u8>,
}

impl Decoder {
    /// Decodes more bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<KeyPress> {
        self.pending.extend_from_slice(bytes);
        self.drain(false)
    }

    /// Whether the bytes so far end within a sequence, which may also be a lone Escape.
    pub(super) fn is_waiting(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Decodes the pending bytes, after a wait in which the sequence did not go on.
    pub(super) fn flush(&mut self) -> Vec<KeyPress> {
        self.drain(true)
    }

    fn drain(&mut self, ended: bool) -> Vec<KeyPress> {
        let mut keys = Vec::new();
        let mut at = 0;
        while at < self.pending.len() {
            match parse(&self.pending[at..]) {
                Some((len, key)) => {
                    keys.extend(key);
                    at += len;
                }
                None if ended && self.pending[at..] == [0x1b] => {
                    keys.push(KeyPress::new(Key::Escape, Mods::NONE));
                    at += 1;
                }
                None if ended || self.pending.len() - at > MAX_SEQUENCE => at = self.pending.len(),
                None => break,
            }
        }
        self.pending.drain(..at);
        keys
    }
}

/// The length of the first sequence and its key, if it has one. `None` if it is not complete.
fn parse(bytes: &[u8]) -> Option<(usize, Option<KeyPress>)> {
    match *bytes.first()? {
        0x1b => escape(bytes),
        _ => character(bytes).map(|(len, key)| (len, key.map(|(key, mods)| KeyPress::new(key, mods)))),
    }
}

fn character(bytes: &[u8]) -> Option<(usize, Option<(Key, Mods)>)> {
    let plain = |key| Some((1, Some((key, Mods::NONE))));
    match *bytes.first()? {
        b'\r' | b'\n' => plain(Key::Enter),
        b'\t' => plain(Key::Tab),
        0x7f | 8 => plain(Key::Backspace),
        b @ 1..=26 => Some((1, Some((Key::Char(char::from(b - 1 + b'a')), Mods::CTRL)))),
        b' '..=b'~' => plain(Key::Char(char::from(bytes[0]))),
        0xc2..=0xf4 => match bytes.utf8_chunks().next() {
            Some(chunk) if !chunk.valid().is_empty() => {
                let c = chunk.valid().chars().next()?;
                Some((c.len_utf8(), Some((Key::Char(c), Mods::NONE))))
            }
            _ if bytes.len() < 4 && std::str::from_utf8(bytes).is_err_and(|e| e.error_len().is_none()) => {
                None
            }
            _ => Some((1, None)),
        },
        _ => Some((1, None)),
    }
}

fn escape(bytes: &[u8]) -> Option<(usize, Option<KeyPress>)> {
    match *bytes.get(1)? {
        b'[' => control_sequence(bytes),
        b'O' => Some((3, lettered(*bytes.get(2)?).map(|key| KeyPress::new(key, Mods::NONE)))),
        // Strings are answers of the terminal.
        b']' | b'P' | b'_' | b'^' | b'X' => {
            let end = bytes[2..].iter().position(|b| *b == 7 || *b == 0x1b)? + 2;
            Some((if bytes[end] == 7 { end + 1 } else { (end + 2).min(bytes.len()) }, None))
        }
        0x1b => Some((1, Some(KeyPress::new(Key::Escape, Mods::NONE)))),
        _ => character(&bytes[1..])
            .map(|(len, key)| (len + 1, key.map(|(key, mods)| KeyPress::new(key, mods.with(Mods::ALT))))),
    }
}

fn control_sequence(bytes: &[u8]) -> Option<(usize, Option<KeyPress>)> {
    let end = bytes.iter().skip(2).position(|b| !(0x20..=0x3f).contains(b))? + 2;
    let (body, last) = (&bytes[2..end], bytes[end]);
    if last == b'M' && body.is_empty() {
        // The oldest kind of mouse report has three bytes behind it.
        return (bytes.len() >= end + 4).then_some((end + 4, None));
    }
    let mut numbers = body
        .split(|b| *b == b';')
        .map(|n| std::str::from_utf8(n).ok().and_then(|n| n.split(':').next()?.parse::<u32>().ok()));
    let (first, held) = (numbers.next().flatten(), numbers.next().flatten().unwrap_or(1));
    let key = match last {
        // `CSI 24;80R` and the like are answers, not function keys.
        _ if !body.iter().all(|b| b.is_ascii_digit() || matches!(b, b';' | b':')) => None,
        b'u' => first.and_then(char::from_u32).map(of_char),
        b'~' => match first {
            Some(1 | 7) => Some(Key::Home),
            Some(4 | 8) => Some(Key::End),
            Some(5) => Some(Key::PageUp),
            Some(6) => Some(Key::PageDown),
            _ => None,
        },
        _ if first.unwrap_or(1) == 1 => lettered(last),
        _ => None,
    };
    let bits = held.saturating_sub(1);
    let mut mods = Mods::NONE;
    for (bit, modifier) in [(1, Mods::SHIFT), (2, Mods::ALT), (4, Mods::CTRL)] {
        if bits & bit != 0 {
            mods = mods.with(modifier);
        }
    }
    Some((end + 1, key.map(|key| KeyPress::new(key, mods))))
}

fn of_char(c: char) -> Key {
    match c {
        '\r' => Key::Enter,
        '\t' => Key::Tab,
        '\u{1b}' => Key::Escape,
        '\u{7f}' | '\u{8}' => Key::Backspace,
        c => Key::Char(c),
    }
}

fn lettered(last: u8) -> Option<Key> {
    Some(match last {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(bytes: &[u8]) -> String {
        let mut decoder = Decoder::default();
        let mut keys = decoder.push(bytes);
        keys.extend(decoder.flush());
        keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn keys_and_sequences_that_are_none() {
        for (bytes, expected) in [
            (&b" .,5q"[..], "Space . , 5 q"),
            (b"\x1b[C\x1bOD", "Right Left"),
            (b"\x1b[1;2C\x1b[1;3D", "S-Right M-Left"),
            (b"\x1b[H\x1b[4~\x03\x1a", "Home End C-c C-z"),
            ("é漢\x7f\r".as_bytes(), "é 漢 BSpace Enter"),
            (b"\x1bx\x1b", "M-x Escape"),
            (b"\x1b[99;5u", "C-c"),
            (b"\x1b[?62;4c\x1b[5n\x1b[24;80R\x1b]11;rgb:0/0/0\x07q", "q"),
            (b"\x1b[<0;5;7M\x1b[M !!q", "q"),
            (b"\xff\xc3", ""),
        ] {
            assert_eq!(names(bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn a_sequence_in_pieces_is_one_key() {
        let mut decoder = Decoder::default();
        for piece in [&b"\x1b"[..], b"[", b"1;2"] {
            assert_eq!(decoder.push(piece), []);
            assert!(decoder.is_waiting());
        }
        assert_eq!(decoder.push(b"C"), [KeyPress::new(Key::Right, Mods::SHIFT)]);
        assert!(!decoder.is_waiting());
    }
}
