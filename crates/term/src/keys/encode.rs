//! Keys as terminals have always sent them, with xterm's modifiers.

use super::{Key, KeyPress, Mods};
use crate::modes::Modes;

pub(super) fn legacy(press: KeyPress, modes: &Modes) -> Vec<u8> {
    let KeyPress { key, mods, .. } = press;
    if modes.vt52() {
        return vt52(key, mods, modes);
    }
    match key {
        Key::Char(c) => character(c, mods, modes),
        Key::Enter | Key::KeypadEnter if key == Key::KeypadEnter && modes.keypad_application() => {
            application_keypad(b'M', mods)
        }
        Key::Enter | Key::KeypadEnter => {
            if let Some(other) = other_key(13, mods, modes) {
                return other;
            }
            alt(mods, if modes.newline() { b"\r\n" } else { b"\r" })
        }
        Key::Tab if mods.contains(Mods::SHIFT) && !mods.contains(Mods::CTRL) => alt(mods, b"\x1b[Z"),
        Key::Tab => other_key(9, mods, modes).unwrap_or_else(|| alt(mods, b"\t")),
        Key::Backspace => {
            // Control turns it over.
            let bs = modes.backarrow_sends_bs() != mods.contains(Mods::CTRL);
            if modes.modify_other_keys() == 2
                && let Some(other) = other_key(127, mods, modes)
            {
                return other;
            }
            alt(mods, if bs { b"\x08" } else { b"\x7f" })
        }
        Key::Escape => other_key(27, mods, modes).unwrap_or_else(|| alt(mods, b"\x1b")),
        Key::Keypad(c) if modes.keypad_application() => match keypad_final(c) {
            Some(last) => application_keypad(last, mods),
            None => character(c, mods, modes),
        },
        Key::Keypad(c) => character(c, mods, modes),
        _ => match form(key) {
            Some(form) => function(form, mods, modes.cursor_keys()),
            None => Vec::new(),
        },
    }
}

/// How a function key is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `CSI letter`, or `SS3 letter` in application mode.
    Cursor(u8),
    /// `SS3 letter`, or `CSI 1;m letter` with modifiers.
    Ss3(u8),
    /// `CSI number ~`.
    Tilde(u8),
}

pub(super) fn form(key: Key) -> Option<Form> {
    Some(match key {
        Key::Up => Form::Cursor(b'A'),
        Key::Down => Form::Cursor(b'B'),
        Key::Right => Form::Cursor(b'C'),
        Key::Left => Form::Cursor(b'D'),
        Key::Begin => Form::Cursor(b'E'),
        Key::Home => Form::Cursor(b'H'),
        Key::End => Form::Cursor(b'F'),
        Key::Insert => Form::Tilde(2),
        Key::Delete => Form::Tilde(3),
        Key::PageUp => Form::Tilde(5),
        Key::PageDown => Form::Tilde(6),
        Key::Menu => Form::Tilde(29),
        Key::F(n @ 1..=4) => Form::Ss3(b'P' + n - 1),
        Key::F(5) => Form::Tilde(15),
        Key::F(n @ 6..=10) => Form::Tilde(n + 11),
        Key::F(n @ 11..=14) => Form::Tilde(n + 12),
        Key::F(n @ 15..=16) => Form::Tilde(n + 13),
        Key::F(n @ 17..=20) => Form::Tilde(n + 14),
        _ => return None,
    })
}

fn function(form: Form, mods: Mods, application: bool) -> Vec<u8> {
    let m = mods.parameter();
    match form {
        Form::Cursor(c) | Form::Ss3(c) if !mods.is_empty() => {
            format!("\x1b[1;{m}{}", char::from(c)).into_bytes()
        }
        Form::Cursor(c) if !application => vec![0x1b, b'[', c],
        Form::Cursor(c) | Form::Ss3(c) => vec![0x1b, b'O', c],
        Form::Tilde(n) if mods.is_empty() => format!("\x1b[{n}~").into_bytes(),
        Form::Tilde(n) => format!("\x1b[{n};{m}~").into_bytes(),
    }
}

fn keypad_final(c: char) -> Option<u8> {
    Some(match c {
        '0'..='9' => b'p' + (c as u8 - b'0'),
        '*' => b'j',
        '+' => b'k',
        ',' => b'l',
        '-' => b'm',
        '.' => b'n',
        '/' => b'o',
        '=' => b'X',
        _ => return None,
    })
}

fn application_keypad(last: u8, mods: Mods) -> Vec<u8> {
    if mods.is_empty() {
        vec![0x1b, b'O', last]
    } else {
        format!("\x1bO{}{}", mods.parameter(), char::from(last)).into_bytes()
    }
}

/// With ESC in front when Alt is held.
fn alt(mods: Mods, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 1);
    if mods.contains(Mods::ALT) {
        out.push(0x1b);
    }
    out.extend_from_slice(bytes);
    out
}

/// The control code that Ctrl makes of a key, as keyboards have it.
pub(super) fn control(c: char) -> Option<u8> {
    Some(match c {
        'a'..='z' => c as u8 - b'a' + 1,
        'A'..='Z' => c as u8 - b'A' + 1,
        ' ' | '@' | '2' => 0,
        '[' | '3' => 0x1b,
        '\\' | '4' | '|' => 0x1c,
        ']' | '5' => 0x1d,
        '^' | '6' | '~' => 0x1e,
        '_' | '7' | '/' | '-' => 0x1f,
        '?' | '8' => 0x7f,
        _ => return None,
    })
}

/// modifyOtherKeys: a key that has no code of its own with these modifiers, or at level 2 any key
/// with modifiers.
fn other_key(code: u32, mods: Mods, modes: &Modes) -> Option<Vec<u8>> {
    let level = modes.modify_other_keys();
    if level == 0 || mods.is_empty() {
        return None;
    }
    if level == 1 && mods.without(Mods::ALT).is_empty() {
        return None;
    }
    let m = mods.parameter();
    Some(format!("\x1b[27;{m};{code}~").into_bytes())
}

fn character(c: char, mods: Mods, modes: &Modes) -> Vec<u8> {
    let shifted = if mods.contains(Mods::SHIFT) { shift(c) } else { c };
    let ctrl = mods.contains(Mods::CTRL);
    // Shift alone is in the character already.
    let significant = mods.without(Mods::SHIFT);
    let known = control(c);
    let plain_control = ctrl && known.is_some() && !mods.contains(Mods::SHIFT);
    let wanted = match modes.modify_other_keys() {
        0 => false,
        1 => ctrl && !plain_control,
        _ => !significant.is_empty(),
    };
    if wanted && let Some(out) = other_key(u32::from(shifted), mods, modes) {
        return out;
    }
    if ctrl && let Some(code) = known {
        return alt(mods, &[code]);
    }
    alt(mods, shifted.encode_utf8(&mut [0; 4]).as_bytes())
}

/// The character with Shift, on a US keyboard where it is not a letter.
pub(super) fn shift(c: char) -> char {
    let pairs = "1!2@3#4$5%6^7&8*9(0)-_=+[{]}\\|;:'\",<.>/?`~";
    let mut it = pairs.chars();
    while let (Some(a), Some(b)) = (it.next(), it.next()) {
        if a == c {
            return b;
        }
    }
    let mut upper = c.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(u), None) => u,
        _ => c,
    }
}

fn vt52(key: Key, mods: Mods, modes: &Modes) -> Vec<u8> {
    let letter = match key {
        Key::Up => b'A',
        Key::Down => b'B',
        Key::Right => b'C',
        Key::Left => b'D',
        Key::F(n @ 1..=4) => b'P' + n - 1,
        Key::Keypad(c) if modes.keypad_application() => match keypad_final(c) {
            Some(last) => return vec![0x1b, b'?', last],
            None => return Vec::new(),
        },
        Key::KeypadEnter if modes.keypad_application() => return b"\x1b?M".to_vec(),
        Key::Keypad(c) | Key::Char(c) => return character(c, mods, modes),
        Key::Enter | Key::KeypadEnter => {
            return if modes.newline() { b"\r\n".to_vec() } else { b"\r".to_vec() };
        }
        Key::Tab => return b"\t".to_vec(),
        Key::Backspace => return vec![if modes.backarrow_sends_bs() { 8 } else { 0x7f }],
        Key::Escape => return vec![0x1b],
        _ => return Vec::new(),
    };
    vec![0x1b, letter]
}
