//! Keys in the bytes that a terminal sends, whichever keyboard protocol is in force: the inverse of
//! [`super::encode`], for a client that has keys of its own among those of the program.

use super::encode::shift;
use super::{Key, KeyEvent, KeyPress, Mods};

/// A sequence longer than this is not waited for.
const MAX_SEQUENCE: usize = 4096;
/// Keys of the kitty keyboard protocol that only change others, or lock.
const MODIFIER_KEYS: std::ops::RangeInclusive<u32> = 57441..=57454;

/// Reads the key that the bytes begin with. Returns the length of its sequence, and the key; no key
/// for reports, pastes, replies of the terminal and modifiers alone. `None` if the sequence goes on
/// in bytes to come. What a single key sends by itself, such as Escape, is never waited for.
///
/// A character has the Shift that types it in it, so that `?` is `?` on every keyboard. On a
/// keyboard of another script, the key is the one in the same place of a Latin keyboard if the
/// terminal tells.
pub fn decode(bytes: &[u8]) -> Option<(usize, Option<KeyPress>)> {
    let found = match bytes {
        [] => return None,
        [0x1b, b'[', rest @ ..] => csi(rest).map(|(len, key)| (2 + len, key)),
        [0x1b, b'O', last, ..] => Some((3, ss3(*last))),
        [0x1b, b']' | b'P' | b'_', rest @ ..] if !rest.is_empty() => string(rest).map(|len| (2 + len, None)),
        [0x1b, rest @ ..] if !rest.is_empty() && rest[0] != 0x1b => {
            let alt = |key: KeyPress| KeyPress { mods: key.mods.with(Mods::ALT), ..key };
            character(rest).map(|(len, key)| (1 + len, key.map(alt)))
        }
        _ => character(bytes),
    };
    if found.is_none() && bytes.len() > MAX_SEQUENCE { Some((bytes.len(), None)) } else { found }
}

fn press(key: Key, mods: Mods) -> Option<KeyPress> {
    Some(KeyPress::new(key, mods))
}

/// A character, or the control code of a key.
fn character(bytes: &[u8]) -> Option<(usize, Option<KeyPress>)> {
    let ctrl = |c: char| press(Key::Char(c), Mods::CTRL);
    let key = match bytes[0] {
        b'\r' => press(Key::Enter, Mods::NONE),
        b'\t' => press(Key::Tab, Mods::NONE),
        0x7f => press(Key::Backspace, Mods::NONE),
        0x1b => press(Key::Escape, Mods::NONE),
        0 => ctrl(' '),
        b @ 1..=0x1a => ctrl(char::from(b - 1 + b'a')),
        b @ 0x1c..=0x1f => ctrl(char::from(b - 0x1c + b'\\')),
        b if b < 0x80 => press(Key::Char(char::from(b)), Mods::NONE),
        _ => {
            let first = bytes.utf8_chunks().next()?;
            return match first.valid().chars().next() {
                Some(c) => Some((c.len_utf8(), press(Key::Char(c), Mods::NONE))),
                // The rest of it comes with the next bytes.
                None if std::str::from_utf8(bytes).is_err_and(|e| e.error_len().is_none()) => None,
                None => Some((1, None)),
            };
        }
    };
    Some((1, key))
}

/// The length of a string of the terminal with its terminator.
fn string(rest: &[u8]) -> Option<usize> {
    let end = rest.iter().position(|b| matches!(b, 0x07 | 0x18 | 0x1b))?;
    match (rest[end], rest.get(end + 1)) {
        (0x1b, Some(b'\\')) => Some(end + 2),
        (0x1b, None) => None,
        (0x1b, Some(_)) => Some(end),
        _ => Some(end + 1),
    }
}

/// A control sequence, without its introducer.
fn csi(rest: &[u8]) -> Option<(usize, Option<KeyPress>)> {
    let Some(end) = rest.iter().position(|b| !(0x20..=0x3f).contains(b)) else {
        // Alt and `[` is all that a single key can have sent.
        return rest.is_empty().then_some((0, press(Key::Char('['), Mods::ALT)));
    };
    let (body, last) = (&rest[..end], rest[end]);
    let len = end + 1;
    match last {
        0x40..=0x7e => {}
        _ => return Some((end, None)),
    }
    // The oldest kind of mouse report has three bytes behind it.
    if last == b'M' && body.is_empty() {
        return (rest.len() >= 4).then_some((4, None));
    }
    if !body.iter().all(|b| matches!(b, b'0'..=b'9' | b';' | b':')) {
        return Some((len, None));
    }
    Some((len, key_of(body, last)))
}

fn ss3(last: u8) -> Option<KeyPress> {
    let key = match last {
        b'M' => Key::KeypadEnter,
        b'X' => Key::Keypad('='),
        b'j'..=b'y' => Key::Keypad(char::from(last - b'j' + b'*')),
        _ => lettered(last)?,
    };
    press(key, Mods::NONE)
}

fn lettered(last: u8) -> Option<Key> {
    Some(match last {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'E' => Key::Begin,
        b'F' => Key::End,
        b'H' => Key::Home,
        b'P'..=b'S' => Key::F(last - b'P' + 1),
        _ => return None,
    })
}

fn numbered(n: u32) -> Option<Key> {
    let f = |n: u32, first: u32| u8::try_from(n - first).ok().map(Key::F);
    match n {
        1 | 7 => Some(Key::Home),
        2 => Some(Key::Insert),
        3 => Some(Key::Delete),
        4 | 8 => Some(Key::End),
        5 => Some(Key::PageUp),
        6 => Some(Key::PageDown),
        29 => Some(Key::Menu),
        11..=15 => f(n, 10),
        17..=21 => f(n, 11),
        23..=26 => f(n, 12),
        28 => f(n, 13),
        31..=34 => f(n, 14),
        _ => None,
    }
}

/// The key of `CSI number:shifted:base ; modifiers:event ; text last`.
fn key_of(body: &[u8], last: u8) -> Option<KeyPress> {
    let text = std::str::from_utf8(body).ok()?;
    let mut fields = text.split(';').map(|field| field.split(':').map(|n| n.parse::<u32>().ok()));
    let mut codes = fields.next()?;
    let (code, shifted, base) = (codes.next().flatten(), codes.next().flatten(), codes.next().flatten());
    let mut held = fields.next();
    let mut next = || held.as_mut().and_then(Iterator::next).flatten();
    // Caps Lock and Num Lock are not held for this key.
    let mods = Mods((next().unwrap_or(1).saturating_sub(1) & 0x3f) as u8);
    let event = match next() {
        Some(2) => KeyEvent::Repeat,
        Some(3) => KeyEvent::Release,
        _ => KeyEvent::Press,
    };
    let text = fields.next().and_then(|mut text| text.next().flatten());
    let key = match last {
        b'u' => return Some(KeyPress { event, ..unicode(code?, shifted, base, text, mods)? }),
        // modifyOtherKeys.
        b'~' if code == Some(27) => return unicode(text?, None, None, text, mods),
        b'~' => numbered(code?)?,
        b'Z' => return press(Key::Tab, Mods::SHIFT),
        // With other numbers it is the place of the cursor.
        _ if code.is_none_or(|code| code == 1) => lettered(last)?,
        _ => return None,
    };
    Some(KeyPress { key, mods, event })
}

fn unicode(
    code: u32,
    shifted: Option<u32>,
    base: Option<u32>,
    text: Option<u32>,
    mods: Mods,
) -> Option<KeyPress> {
    let key = match code {
        9 => Key::Tab,
        13 => Key::Enter,
        27 => Key::Escape,
        8 | 127 => Key::Backspace,
        57358 => Key::CapsLock,
        57359 => Key::ScrollLock,
        57360 => Key::NumLock,
        57361 => Key::PrintScreen,
        57362 => Key::Pause,
        57363 => Key::Menu,
        57376..=57398 => Key::F(u8::try_from(code - 57376 + 13).ok()?),
        57399..=57408 => Key::Keypad(char::from_digit(code - 57399, 10)?),
        57409 => Key::Keypad('.'),
        57410 => Key::Keypad('/'),
        57411 => Key::Keypad('*'),
        57412 => Key::Keypad('-'),
        57413 => Key::Keypad('+'),
        57414 => Key::KeypadEnter,
        57415 => Key::Keypad('='),
        57416 => Key::Keypad(','),
        code if MODIFIER_KEYS.contains(&code) => return None,
        _ => {
            let typing = mods.without(Mods::SHIFT).is_empty();
            let of = |code: u32| char::from_u32(code).filter(|c| !c.is_control());
            let foreign = code >= 0x80;
            let c = match base.filter(|_| foreign).and_then(of) {
                Some(base) if mods.contains(Mods::SHIFT) => shift(base),
                Some(base) => base,
                None if mods.contains(Mods::SHIFT) => {
                    let typed = text.filter(|_| typing).or(shifted).and_then(of);
                    typed.map_or_else(|| of(code).map(shift), Some)?
                }
                None => text.filter(|_| typing).and_then(of).map_or_else(|| of(code), Some)?,
            };
            return press(Key::Char(c), mods.without(Mods::SHIFT));
        }
    };
    press(key, mods)
}
