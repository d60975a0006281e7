//! Names of keys, as tmux writes them and as people do.

use super::{Key, KeyEvent, KeyPress, Mods};
use std::fmt;
use std::str::FromStr;

/// A name that stands for no key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyNameError(String);

impl fmt::Display for KeyNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no key is called {:?}", self.0)
    }
}

impl std::error::Error for KeyNameError {}

/// Names, the first of each the one that is written back.
const NAMES: &[(&str, Key)] = &[
    ("Enter", Key::Enter),
    ("Return", Key::Enter),
    ("CR", Key::Enter),
    ("Tab", Key::Tab),
    ("BSpace", Key::Backspace),
    ("Backspace", Key::Backspace),
    ("BS", Key::Backspace),
    ("Escape", Key::Escape),
    ("Esc", Key::Escape),
    ("Space", Key::Char(' ')),
    ("Up", Key::Up),
    ("ArrowUp", Key::Up),
    ("Down", Key::Down),
    ("ArrowDown", Key::Down),
    ("Right", Key::Right),
    ("ArrowRight", Key::Right),
    ("Left", Key::Left),
    ("ArrowLeft", Key::Left),
    ("Home", Key::Home),
    ("End", Key::End),
    ("PPage", Key::PageUp),
    ("PageUp", Key::PageUp),
    ("PgUp", Key::PageUp),
    ("NPage", Key::PageDown),
    ("PageDown", Key::PageDown),
    ("PgDn", Key::PageDown),
    ("IC", Key::Insert),
    ("Insert", Key::Insert),
    ("Ins", Key::Insert),
    ("DC", Key::Delete),
    ("Delete", Key::Delete),
    ("Del", Key::Delete),
    ("KPEnter", Key::KeypadEnter),
    ("KP0", Key::Keypad('0')),
    ("KP1", Key::Keypad('1')),
    ("KP2", Key::Keypad('2')),
    ("KP3", Key::Keypad('3')),
    ("KP4", Key::Keypad('4')),
    ("KP5", Key::Keypad('5')),
    ("KP6", Key::Keypad('6')),
    ("KP7", Key::Keypad('7')),
    ("KP8", Key::Keypad('8')),
    ("KP9", Key::Keypad('9')),
    ("KP.", Key::Keypad('.')),
    ("KP+", Key::Keypad('+')),
    ("KP-", Key::Keypad('-')),
    ("KP*", Key::Keypad('*')),
    ("KP/", Key::Keypad('/')),
    ("KP=", Key::Keypad('=')),
    ("KP,", Key::Keypad(',')),
    ("Begin", Key::Begin),
    ("Menu", Key::Menu),
    ("PrintScreen", Key::PrintScreen),
    ("Pause", Key::Pause),
    ("CapsLock", Key::CapsLock),
    ("ScrollLock", Key::ScrollLock),
    ("NumLock", Key::NumLock),
];

/// Modifiers in both styles: `C-` and `Ctrl+`.
const MODS: &[(&str, &str, Mods)] = &[
    ("C", "ctrl", Mods::CTRL),
    ("C", "control", Mods::CTRL),
    ("M", "alt", Mods::ALT),
    ("A", "option", Mods::ALT),
    ("M", "meta", Mods::ALT),
    ("S", "shift", Mods::SHIFT),
    ("D", "super", Mods::SUPER),
    ("D", "cmd", Mods::SUPER),
    ("D", "win", Mods::SUPER),
    ("H", "hyper", Mods::HYPER),
];

impl FromStr for KeyPress {
    type Err = KeyNameError;

    fn from_str(name: &str) -> Result<Self, KeyNameError> {
        let unknown = || KeyNameError(name.to_owned());
        let mut rest = name;
        let mut mods = Mods::NONE;
        loop {
            // A prefix only counts when something follows it: `-` and `C--` are the minus key.
            let found = MODS.iter().find_map(|(short, long, m)| {
                let after_short = rest.strip_prefix(short).and_then(|r| r.strip_prefix('-'));
                let after_long = rest
                    .get(..long.len())
                    .filter(|head| head.eq_ignore_ascii_case(long))
                    .and_then(|_| rest[long.len()..].strip_prefix(['+', '-']));
                after_short.or(after_long).filter(|r| !r.is_empty()).map(|r| (r, *m))
            });
            match found {
                Some((r, m)) => {
                    rest = r;
                    mods = mods.with(m);
                }
                None => break,
            }
        }
        if let Some(r) = rest.strip_prefix('^').filter(|r| r.chars().count() == 1) {
            rest = r;
            mods = mods.with(Mods::CTRL);
        }
        let mut chars = rest.chars();
        let key = if let (Some(c), None) = (chars.next(), chars.next()) {
            if mods.contains(Mods::CTRL) && c.is_ascii_uppercase() && !name.starts_with("C-") {
                // `Ctrl+C` names the key by its cap.
                Key::Char(c.to_ascii_lowercase())
            } else if mods.contains(Mods::CTRL) {
                Key::Char(c.to_ascii_lowercase())
            } else {
                Key::Char(c)
            }
        } else if rest.eq_ignore_ascii_case("BTab") {
            mods = mods.with(Mods::SHIFT);
            Key::Tab
        } else if let Some(&(_, key)) = NAMES.iter().find(|(n, _)| n.eq_ignore_ascii_case(rest)) {
            key
        } else if let Some(n) = rest.strip_prefix(['F', 'f']).and_then(|n| n.parse::<u8>().ok()) {
            if !(1..=35).contains(&n) {
                return Err(unknown());
            }
            Key::F(n)
        } else {
            return Err(unknown());
        };
        Ok(Self { key, mods, event: KeyEvent::Press })
    }
}

impl fmt::Display for KeyPress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (prefix, m) in [
            ("C-", Mods::CTRL),
            ("M-", Mods::ALT),
            ("S-", Mods::SHIFT),
            ("D-", Mods::SUPER),
            ("H-", Mods::HYPER),
        ] {
            if self.mods.contains(m) {
                f.write_str(prefix)?;
            }
        }
        match self.key {
            Key::F(n) => write!(f, "F{n}"),
            key => match (NAMES.iter().find(|(_, k)| *k == key), key) {
                (Some((name, _)), _) => f.write_str(name),
                (None, Key::Char(c)) => write!(f, "{c}"),
                (None, _) => Ok(()),
            },
        }
    }
}
