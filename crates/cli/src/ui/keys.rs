//! What a terminal sends, as events. The keyboard belongs to `host`, which gives bytes together
//! with signals and time; here they become keys, mouse events and pastes. Answers of the terminal,
//! and sequences that mean nothing here, are passed over whole.

use std::mem;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use tapdeck_term::keys::Key;

/// A sequence longer than this is no key.
const MAX_SEQUENCE: usize = 4096;
/// A longer paste comes in pieces.
const MAX_PASTE: usize = 64 << 10;
const PASTE_END: &[u8] = b"\x1b[201~";

/// Decodes the bytes of a terminal into events.
#[derive(Debug, Default)]
pub struct Decoder {
    pending: Vec<u8>,
    paste: Option<Vec<u8>>,
}

/// What the bytes begin with.
enum Parsed {
    /// A sequence of this length, and its event if it has one.
    Whole(usize, Option<Event>),
    /// The beginning of a sequence.
    Partial,
}

impl Decoder {
    /// Decodes more bytes.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Event> {
        self.pending.extend_from_slice(bytes);
        self.drain(false)
    }

    /// Whether the bytes so far end within a sequence, which may also be a lone Escape.
    pub fn is_waiting(&self) -> bool {
        !self.pending.is_empty() && self.paste.is_none()
    }

    /// Decodes the pending bytes as keys, after a wait in which the sequence did not go on.
    pub fn flush(&mut self) -> Vec<Event> {
        self.drain(true)
    }

    fn drain(&mut self, ended: bool) -> Vec<Event> {
        let mut events = Vec::new();
        let mut bytes = mem::take(&mut self.pending);
        let mut at = 0;
        while at < bytes.len() {
            if self.paste.is_some() {
                at += self.pasted(&bytes[at..], &mut events);
                if self.paste.is_some() {
                    break;
                }
                continue;
            }
            match parse(&bytes[at..], ended) {
                Parsed::Whole(len, event) => {
                    if bytes[at..at + len] == *b"\x1b[200~" {
                        self.paste = Some(Vec::new());
                    }
                    events.extend(event);
                    at += len;
                }
                Parsed::Partial if bytes.len() - at > MAX_SEQUENCE => at = bytes.len(),
                Parsed::Partial => break,
            }
        }
        bytes.drain(..at);
        self.pending = bytes;
        events
    }

    /// Takes the part of a paste that cannot be its end. Returns the length of that part.
    fn pasted(&mut self, bytes: &[u8], events: &mut Vec<Event>) -> usize {
        let Some(text) = &mut self.paste else { return 0 };
        let end = bytes.windows(PASTE_END.len()).position(|w| w == PASTE_END);
        let body = end.unwrap_or_else(|| {
            let tail = (1..PASTE_END.len()).rev().find(|n| bytes.ends_with(&PASTE_END[..*n]));
            bytes.len() - tail.unwrap_or(0)
        });
        text.extend_from_slice(&bytes[..body]);
        if end.is_some() || text.len() >= MAX_PASTE {
            // A character that is cut in half goes with the next piece.
            let cut = match std::str::from_utf8(text) {
                Err(e) if end.is_none() && e.error_len().is_none() => e.valid_up_to(),
                _ => text.len(),
            };
            events.push(Event::Paste(String::from_utf8_lossy(&text[..cut]).into_owned()));
            text.drain(..cut);
        }
        match end {
            Some(_) => {
                self.paste = None;
                body + PASTE_END.len()
            }
            None => body,
        }
    }
}

fn parse(bytes: &[u8], ended: bool) -> Parsed {
    let Some(&first) = bytes.first() else { return Parsed::Partial };
    if first == 0x1b {
        return match escape(bytes, ended) {
            // Two bytes and no more are Alt with that character.
            Parsed::Partial if ended && bytes.len() == 2 => match character(&bytes[1..]) {
                Parsed::Whole(_, Some(Event::Key(k))) => {
                    Parsed::Whole(2, Some(key(k.code, k.modifiers | KeyModifiers::ALT)))
                }
                _ => Parsed::Whole(1, Some(key(KeyCode::Esc, KeyModifiers::NONE))),
            },
            Parsed::Partial if ended => Parsed::Whole(1, Some(key(KeyCode::Esc, KeyModifiers::NONE))),
            front => front,
        };
    }
    match character(bytes) {
        Parsed::Partial if ended => Parsed::Whole(1, None),
        front => front,
    }
}

fn key(code: KeyCode, mods: KeyModifiers) -> Event {
    Event::Key(KeyEvent::new(code, mods))
}

/// A character, plain or of the control kind.
fn character(bytes: &[u8]) -> Parsed {
    let ctrl = |c: char| Parsed::Whole(1, Some(key(KeyCode::Char(c), KeyModifiers::CONTROL)));
    let plain = |code| Parsed::Whole(1, Some(key(code, KeyModifiers::NONE)));
    match bytes[0] {
        b'\r' => plain(KeyCode::Enter),
        b'\t' => plain(KeyCode::Tab),
        0x7f => plain(KeyCode::Backspace),
        0 => ctrl(' '),
        b @ 1..=0x1a => ctrl(char::from(b - 1 + b'a')),
        b @ 0x1c..=0x1f => ctrl(char::from(b - 0x1c + b'\\')),
        b if b < 0x80 => {
            let c = char::from(b);
            let shift = if c.is_ascii_uppercase() { KeyModifiers::SHIFT } else { KeyModifiers::NONE };
            Parsed::Whole(1, Some(key(KeyCode::Char(c), shift)))
        }
        b => {
            let len = match b {
                0xc2..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf4 => 4,
                _ => return Parsed::Whole(1, None),
            };
            let there = &bytes[..len.min(bytes.len())];
            match std::str::from_utf8(there) {
                Ok(text) => {
                    Parsed::Whole(len, text.chars().next().map(|c| key(KeyCode::Char(c), KeyModifiers::NONE)))
                }
                Err(e) if e.error_len().is_none() => Parsed::Partial,
                Err(_) => Parsed::Whole(1, None),
            }
        }
    }
}

fn escape(bytes: &[u8], ended: bool) -> Parsed {
    match bytes.get(1) {
        None => Parsed::Partial,
        Some(b'[') => csi(bytes),
        Some(b'O') => match bytes.get(2) {
            None => Parsed::Partial,
            Some(b) => Parsed::Whole(3, ss3(*b).map(|code| key(code, KeyModifiers::NONE))),
        },
        // Strings are replies of the terminal.
        Some(b']' | b'P' | b'_' | b'^' | b'X') => {
            let end = bytes[2..].iter().position(|b| *b == 7 || *b == 0x1b);
            match end.map(|i| i + 2) {
                Some(i) if bytes[i] == 7 => Parsed::Whole(i + 1, None),
                Some(i) if bytes.get(i + 1) == Some(&b'\\') => Parsed::Whole(i + 2, None),
                _ if bytes.len() == 2 => Parsed::Partial,
                // The rest of the end may come with the next bytes.
                Some(i) if i + 1 == bytes.len() && !ended => Parsed::Partial,
                Some(i) => Parsed::Whole(i, None),
                None => Parsed::Partial,
            }
        }
        Some(0x1b) => Parsed::Whole(1, Some(key(KeyCode::Esc, KeyModifiers::NONE))),
        Some(_) => match character(&bytes[1..]) {
            Parsed::Whole(len, Some(Event::Key(k))) => {
                Parsed::Whole(len + 1, Some(key(k.code, k.modifiers | KeyModifiers::ALT)))
            }
            Parsed::Whole(len, _) => Parsed::Whole(len + 1, None),
            Parsed::Partial => Parsed::Partial,
        },
    }
}

fn ss3(last: u8) -> Option<KeyCode> {
    Some(match last {
        b'M' => KeyCode::Enter,
        b'j'..=b'y' => KeyCode::Char(char::from(last - b'j' + b'*')),
        _ => return lettered(last),
    })
}

fn lettered(last: u8) -> Option<KeyCode> {
    Some(match last {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'H' => KeyCode::Home,
        b'F' => KeyCode::End,
        b'E' => KeyCode::KeypadBegin,
        b'P' => KeyCode::F(1),
        b'Q' => KeyCode::F(2),
        b'R' => KeyCode::F(3),
        b'S' => KeyCode::F(4),
        _ => return None,
    })
}

fn numbered(n: u16) -> Option<KeyCode> {
    Some(match n {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        11..=15 => KeyCode::F((n - 10) as u8),
        17..=21 => KeyCode::F((n - 11) as u8),
        23 | 24 => KeyCode::F((n - 12) as u8),
        _ => return None,
    })
}

fn modifiers(n: u16) -> KeyModifiers {
    let bits = n.saturating_sub(1);
    let mut mods = KeyModifiers::NONE;
    for (bit, m) in [
        (1, KeyModifiers::SHIFT),
        (2, KeyModifiers::ALT),
        (4, KeyModifiers::CONTROL),
        (8, KeyModifiers::SUPER),
    ] {
        if bits & bit != 0 {
            mods |= m;
        }
    }
    mods
}

fn csi(bytes: &[u8]) -> Parsed {
    // The Linux console sends ESC [ [ A.
    if bytes.get(2) == Some(&b'[') {
        return match bytes.get(3) {
            None => Parsed::Partial,
            Some(b @ b'A'..=b'E') => {
                Parsed::Whole(4, Some(key(KeyCode::F(b - b'A' + 1), KeyModifiers::NONE)))
            }
            Some(_) => Parsed::Whole(4, None),
        };
    }
    let Some(end) = bytes.iter().skip(2).position(|b| !(0x20..=0x3f).contains(b)).map(|i| i + 2) else {
        return Parsed::Partial;
    };
    let (last, body) = (bytes[end], &bytes[2..end]);
    if !(0x40..=0x7e).contains(&last) {
        return Parsed::Whole(end, None);
    }
    let len = end + 1;
    if last == b'M' && body.is_empty() {
        // The oldest kind of mouse report has three bytes behind it. It was not requested.
        return if bytes.len() < len + 3 { Parsed::Partial } else { Parsed::Whole(len + 3, None) };
    }
    if let [b'<', report @ ..] = body {
        return Parsed::Whole(len, mouse(report, last == b'm').map(Event::Mouse));
    }
    let n = numbers(body);
    let mods = modifiers(n.get(1).copied().unwrap_or(1));
    let event = match last {
        b'Z' => Some(key(KeyCode::BackTab, KeyModifiers::SHIFT)),
        b'I' if body.is_empty() => Some(Event::FocusGained),
        b'O' if body.is_empty() => Some(Event::FocusLost),
        b'~' if n.first() == Some(&27) => {
            let code = n.get(2).and_then(|c| char::from_u32(u32::from(*c)));
            code.map(|c| key(of_char(c), mods))
        }
        b'~' => n.first().and_then(|n| numbered(*n)).map(|code| key(code, mods)),
        b'u' => n.first().and_then(|c| char::from_u32(u32::from(*c))).map(|c| key(of_char(c), mods)),
        b'R' if n.len() == 2 && n[0] > 1 => None,
        _ if body.first().is_none_or(u8::is_ascii_digit) => lettered(last).map(|code| key(code, mods)),
        _ => None,
    };
    Parsed::Whole(len, event)
}

fn of_char(c: char) -> KeyCode {
    match c {
        '\r' => KeyCode::Enter,
        '\t' => KeyCode::Tab,
        '\u{1b}' => KeyCode::Esc,
        '\u{7f}' | '\u{8}' => KeyCode::Backspace,
        c => KeyCode::Char(c),
    }
}

fn numbers(body: &[u8]) -> Vec<u16> {
    let number = |part: &[u8]| {
        let digits = part.split(|b| *b == b':').next().unwrap_or_default();
        std::str::from_utf8(digits).ok().and_then(|s| s.parse().ok()).unwrap_or(0)
    };
    if body.is_empty() { Vec::new() } else { body.split(|b| *b == b';').take(8).map(number).collect() }
}

fn mouse(report: &[u8], up: bool) -> Option<MouseEvent> {
    let [code, x, y] = numbers(report)[..] else { return None };
    let button = match code & 0b1100_0011 {
        0 => Some(MouseButton::Left),
        1 => Some(MouseButton::Middle),
        2 => Some(MouseButton::Right),
        _ => None,
    };
    let kind = match (code & 0b1100_0011, code & 32 != 0) {
        (64, _) => MouseEventKind::ScrollUp,
        (65, _) => MouseEventKind::ScrollDown,
        (66, _) => MouseEventKind::ScrollLeft,
        (67, _) => MouseEventKind::ScrollRight,
        (_, true) => button.map_or(MouseEventKind::Moved, MouseEventKind::Drag),
        _ if up => MouseEventKind::Up(button?),
        _ => MouseEventKind::Down(button?),
    };
    let mut mods = KeyModifiers::NONE;
    for (bit, m) in [(4, KeyModifiers::SHIFT), (8, KeyModifiers::ALT), (16, KeyModifiers::CONTROL)] {
        if code & bit != 0 {
            mods |= m;
        }
    }
    Some(MouseEvent { kind, column: x.checked_sub(1)?, row: y.checked_sub(1)?, modifiers: mods })
}

/// The key of a code, as the terminal model names it.
pub(super) fn key_of(code: KeyCode) -> Option<Key> {
    Some(match code {
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Enter => Key::Enter,
        KeyCode::Tab | KeyCode::BackTab => Key::Tab,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Esc => Key::Escape,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Insert => Key::Insert,
        KeyCode::Delete => Key::Delete,
        KeyCode::F(n) => Key::F(n),
        KeyCode::KeypadBegin => Key::Begin,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::strategy::Strategy;

    use super::*;

    const NONE: KeyModifiers = KeyModifiers::NONE;

    #[test]
    fn keys_as_terminals_send_them() {
        let (ctrl, alt, shift) = (KeyModifiers::CONTROL, KeyModifiers::ALT, KeyModifiers::SHIFT);
        for (bytes, code, mods) in [
            (&b"a"[..], KeyCode::Char('a'), NONE),
            (b"G", KeyCode::Char('G'), shift),
            ("é".as_bytes(), KeyCode::Char('é'), NONE),
            ("漢".as_bytes(), KeyCode::Char('漢'), NONE),
            (b"\r", KeyCode::Enter, NONE),
            (b"\n", KeyCode::Char('j'), ctrl),
            (b"\x1d", KeyCode::Char(']'), ctrl),
            (b"\x00", KeyCode::Char(' '), ctrl),
            (b"\x1b[A", KeyCode::Up, NONE),
            (b"\x1bOA", KeyCode::Up, NONE),
            (b"\x1b[1;2C", KeyCode::Right, shift),
            (b"\x1b[1;3A", KeyCode::Up, alt),
            (b"\x1b[5~", KeyCode::PageUp, NONE),
            (b"\x1b[24~", KeyCode::F(12), NONE),
            (b"\x1bOP", KeyCode::F(1), NONE),
            (b"\x1b[[A", KeyCode::F(1), NONE),
            (b"\x1b\r", KeyCode::Enter, alt),
            (b"\x1bx", KeyCode::Char('x'), alt),
            (b"\x1b[27;5;13~", KeyCode::Enter, ctrl),
            (b"\x1b[13;5u", KeyCode::Enter, ctrl),
            (b"\x1b[Z", KeyCode::BackTab, shift),
        ] {
            assert_eq!(Decoder::default().push(bytes), [key(code, mods)], "{bytes:?}");
        }
    }

    #[test]
    fn the_mouse() {
        let event = |bytes: &[u8]| match Decoder::default().push(bytes)[..] {
            [Event::Mouse(m)] => (m.kind, m.column, m.row),
            ref other => panic!("{other:?}"),
        };
        assert_eq!(event(b"\x1b[<0;5;7M"), (MouseEventKind::Down(MouseButton::Left), 4, 6));
        assert_eq!(event(b"\x1b[<0;5;7m"), (MouseEventKind::Up(MouseButton::Left), 4, 6));
        assert_eq!(event(b"\x1b[<32;1;1M"), (MouseEventKind::Drag(MouseButton::Left), 0, 0));
        assert_eq!(event(b"\x1b[<65;1;2M"), (MouseEventKind::ScrollDown, 0, 1));
        assert_eq!(Decoder::default().push(b"\x1b[<0;0;0M"), [], "places are counted from 1");
    }

    #[test]
    fn a_lone_escape_waits_and_answers_are_no_keys() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.push(b"\x1b"), []);
        assert!(decoder.is_waiting());
        assert_eq!(decoder.flush(), [key(KeyCode::Esc, NONE)]);
        assert!(!decoder.is_waiting());
        assert_eq!(decoder.push(b"\x1b[?62;4c\x1b]11;rgb:0/0/0\x07\x1bP>|x\x1b\\\x1b[24;80R\xff"), []);
        assert_eq!(decoder.push(b"q"), [key(KeyCode::Char('q'), shift_of('q'))]);
        // The end of an answer that came in two pieces was taken for Alt-\\.
        assert_eq!(decoder.push(b"\x1b]11;rgb:0/0/0\x1b"), []);
        assert_eq!(decoder.push(b"\\q"), [key(KeyCode::Char('q'), NONE)]);
        assert_eq!(decoder.push(b"\x1b]11;rgb:0/0/0\x1b"), []);
        assert_eq!(decoder.flush(), [key(KeyCode::Esc, NONE)]);
    }

    fn shift_of(c: char) -> KeyModifiers {
        if c.is_ascii_uppercase() { KeyModifiers::SHIFT } else { NONE }
    }

    #[test]
    fn any_split_gives_the_same() {
        let bytes = "ab\x1b[1;2C漢\x1b[200~one\ntwo\x1b[20\x1b[201~c\x1b[<0;5;7M\x1bOPz".as_bytes();
        let whole = Decoder::default().push(bytes);
        assert!(whole.contains(&Event::Paste("one\ntwo\x1b[20".into())), "{whole:?}");
        assert_eq!(whole.len(), 9);
        for cut in 1..bytes.len() {
            let mut decoder = Decoder::default();
            let mut events = decoder.push(&bytes[..cut]);
            events.extend(decoder.push(&bytes[cut..]));
            assert_eq!(events, whole, "cut at {cut}");
        }
    }

    proptest::proptest! {
        /// Whatever a terminal sends, and wherever it is cut.
        #[test]
        fn no_cut_changes_anything(pieces in proptest::collection::vec(piece(), 0..30), cut in 0..400usize) {
            let bytes = pieces.concat();
            let whole = Decoder::default().push(&bytes);
            let mut decoder = Decoder::default();
            let (head, tail) = bytes.split_at(cut.min(bytes.len()));
            let mut events = decoder.push(head);
            events.extend(decoder.push(tail));
            proptest::prop_assert_eq!(&events, &whole);
            decoder.flush();
            proptest::prop_assert!(decoder.paste.is_some() || decoder.pending.is_empty());
        }
    }

    /// Beginnings and ends of sequences, and anything in between.
    fn piece() -> impl Strategy<Value = Vec<u8>> {
        let known: Vec<&[u8]> = vec![
            b"\x1b",
            b"\x1b[",
            b"\x1bO",
            b"\x1b[<0;3;4M",
            b"\x1b[200~",
            b"\x1b[201~",
            b"\x1b]",
            b"\x07",
            b"\x1b\\",
            b"1;5A",
            b"M",
            b"~",
            b"\xe6\xbc\xa2",
            b"\xe6",
            b"\xff",
            b"a",
        ];
        let known = proptest::sample::select(known).prop_map(<[u8]>::to_vec);
        let any = proptest::collection::vec(proptest::prelude::any::<u8>(), 0..6);
        proptest::prop_oneof![known, any]
    }

    #[test]
    fn endless_input_is_bounded() {
        let mut decoder = Decoder::default();
        decoder.push(b"\x1b]");
        for _ in 0..100 {
            decoder.push(&[b'x'; 1000]);
        }
        assert!(decoder.pending.len() <= MAX_SEQUENCE);
        let events = decoder.push(b"\x1b[200~");
        assert_eq!(events, []);
        let mut got = 0;
        for _ in 0..200 {
            for event in decoder.push(&[b'y'; 1000]) {
                let Event::Paste(text) = event else { panic!("{event:?}") };
                got += text.len();
            }
        }
        assert!(got >= 190_000 - MAX_PASTE && decoder.pending.len() < 10, "{got}");
    }
}
