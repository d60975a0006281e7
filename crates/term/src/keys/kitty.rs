//! The kitty keyboard protocol: keys as `CSI code ; modifiers u` and its kin.

use super::encode::{Form, form, legacy, shift};
use super::{Key, KeyEvent, KeyPress, Mods};
use crate::modes::Modes;

const DISAMBIGUATE: u8 = 1;
const EVENTS: u8 = 2;
const ALTERNATES: u8 = 4;
const ALL_KEYS: u8 = 8;
const TEXT: u8 = 16;

pub(super) fn encode(press: KeyPress, modes: &Modes) -> Vec<u8> {
    let flags = modes.kitty_keyboard();
    let KeyPress { key, mods, event } = press;
    let release = event == KeyEvent::Release;
    if release && flags & EVENTS == 0 {
        return Vec::new();
    }
    let all = flags & ALL_KEYS != 0;
    // These three keep their bytes so that a shell can still be typed to after a crash, and report
    // no release.
    let hardy = matches!(key, Key::Enter | Key::Tab | Key::Backspace);
    if hardy && !all {
        if release {
            return Vec::new();
        }
        if mods.is_empty() {
            return legacy(KeyPress::new(key, mods), modes);
        }
    }
    match key {
        Key::Char(c) => {
            let typing = mods.without(Mods::SHIFT).is_empty();
            if typing && !all {
                if release {
                    return Vec::new();
                }
                let c = if mods.contains(Mods::SHIFT) { shift(c) } else { c };
                return c.to_string().into_bytes();
            }
            if flags & (DISAMBIGUATE | ALL_KEYS) == 0 && !release && event == KeyEvent::Press {
                return legacy(press, modes);
            }
            unicode(u32::from(c), Some(c), press, flags)
        }
        Key::Enter => unicode(13, None, press, flags),
        Key::Tab => unicode(9, None, press, flags),
        Key::Backspace => unicode(127, None, press, flags),
        Key::Escape => {
            if flags & (DISAMBIGUATE | ALL_KEYS) == 0 && event == KeyEvent::Press {
                return legacy(press, modes);
            }
            unicode(27, None, press, flags)
        }
        Key::Keypad(c) => {
            if mods.is_empty() && !all && !release {
                return c.to_string().into_bytes();
            }
            let code = match c {
                '0'..='9' => 57399 + (c as u32 - '0' as u32),
                '.' => 57409,
                '/' => 57410,
                '*' => 57411,
                '-' => 57412,
                '+' => 57413,
                '=' => 57415,
                _ => 57416,
            };
            unicode(code, Some(c), press, flags)
        }
        Key::KeypadEnter => unicode(57414, None, press, flags),
        Key::CapsLock => unicode(57358, None, press, flags),
        Key::ScrollLock => unicode(57359, None, press, flags),
        Key::NumLock => unicode(57360, None, press, flags),
        Key::PrintScreen => unicode(57361, None, press, flags),
        Key::Pause => unicode(57362, None, press, flags),
        Key::Menu => unicode(57363, None, press, flags),
        Key::F(3) => tilde(13, press, flags),
        Key::F(n) if n > 12 => unicode(57376 + u32::from(n) - 13, None, press, flags),
        _ => match form(key) {
            Some(Form::Cursor(c) | Form::Ss3(c)) => {
                let tail = modifiers(press, flags);
                let one = if tail.is_empty() { "" } else { "1" };
                format!("\x1b[{one}{tail}{}", char::from(c)).into_bytes()
            }
            Some(Form::Tilde(n)) => tilde(n, press, flags),
            None => Vec::new(),
        },
    }
}

/// `;modifiers:event`, as far as there is something to say.
fn modifiers(press: KeyPress, flags: u8) -> String {
    let event = match press.event {
        KeyEvent::Repeat if flags & EVENTS != 0 => ":2",
        KeyEvent::Release => ":3",
        _ => "",
    };
    if press.mods.is_empty() && event.is_empty() {
        String::new()
    } else {
        format!(";{}{event}", press.mods.parameter())
    }
}

fn tilde(n: u8, press: KeyPress, flags: u8) -> Vec<u8> {
    format!("\x1b[{n}{}~", modifiers(press, flags)).into_bytes()
}

fn unicode(code: u32, typed: Option<char>, press: KeyPress, flags: u8) -> Vec<u8> {
    // The code is always that of the key without Shift.
    let capital = typed.filter(|c| c.is_uppercase() && c.to_lowercase().next() != Some(*c));
    let shift_held = if capital.is_some() { Mods::SHIFT } else { Mods::NONE };
    let press = KeyPress { mods: press.mods.with(shift_held), ..press };
    let code =
        typed.filter(|c| c.is_alphabetic()).and_then(|c| c.to_lowercase().next()).map_or(code, u32::from);
    let shifted = typed.map(shift).filter(|_| press.mods.contains(Mods::SHIFT));
    let alternate = match shifted {
        Some(s) if flags & ALTERNATES != 0 && u32::from(s) != code => format!(":{}", u32::from(s)),
        _ => String::new(),
    };
    let mut tail = modifiers(press, flags);
    let text = typed.filter(|_| {
        let types = press.mods.without(Mods::SHIFT).is_empty();
        flags & TEXT != 0 && types && press.event != KeyEvent::Release
    });
    if let Some(c) = text {
        let c = shifted.unwrap_or(c);
        if tail.is_empty() {
            tail.push(';');
        }
        tail.push_str(&format!(";{}", u32::from(c)));
    }
    format!("\x1b[{code}{alternate}{tail}u").into_bytes()
}
