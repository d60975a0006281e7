//! Which key a piece of input stands for, and where it stands in a bracketed paste.

use tapdeck_term::Modes;
use tapdeck_term::keys::{KeyPress, encode};

use super::Paste;

/// Keys with names, those first whose bytes have more than one.
const NAMES: [&str; 40] = [
    "Enter", "Tab", "Escape", "BSpace", "Up", "Down", "Right", "Left", "Home", "End", "PPage", "NPage", "IC",
    "DC", "BTab", "F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9", "F10", "F11", "F12", "C-Up",
    "C-Down", "C-Right", "C-Left", "S-Up", "S-Down", "S-Right", "S-Left", "M-Up", "M-Down", "M-Right",
    "M-Left", "M-Enter",
];

/// The name of the one key that these bytes are, as tmux calls it.
pub(super) fn key_name(bytes: &[u8], modes: &Modes) -> Option<String> {
    if bytes.is_empty() || bytes.len() > 16 {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok();
    let mut chars = text.unwrap_or_default().chars();
    if let (Some(c), None) = (chars.next(), chars.next())
        && !c.is_control()
    {
        return Some(if c == ' ' { "Space".into() } else { c.into() });
    }
    let controls = ('a'..='z').map(|c| format!("C-{c}"));
    let metas = (' '..='~').filter(|c| !" [O".contains(*c)).map(|c| format!("M-{c}"));
    let names = NAMES.iter().map(|n| (*n).to_owned()).chain(controls).chain(metas);
    for name in names {
        let Ok(press) = name.parse::<KeyPress>() else { continue };
        // A sender may not have followed the modes in force.
        if encode(press, modes) == bytes || encode(press, &Modes::default()) == bytes {
            return Some(name);
        }
    }
    None
}

/// Follows bracketed pastes over pieces of input.
#[derive(Debug, Default)]
pub(super) struct PasteWatch {
    within: bool,
}

impl PasteWatch {
    /// Where this piece stands.
    pub(super) fn next(&mut self, bytes: &[u8]) -> Option<Paste> {
        let start = memchr::memmem::rfind(bytes, b"\x1b[200~");
        let end = memchr::memmem::rfind(bytes, b"\x1b[201~");
        let before = self.within;
        self.within = match (start, end) {
            (Some(start), Some(end)) => start > end,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => before,
        };
        match (before, start.is_some(), end.is_some(), self.within) {
            (false, true, true, false) => Some(Paste::Whole),
            (_, true, _, true) => Some(Paste::Start),
            (true, _, true, _) => Some(Paste::End),
            (true, ..) => Some(Paste::Middle),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_named() {
        for (bytes, name) in [
            (&b"a"[..], Some("a")),
            (b" ", Some("Space")),
            ("\u{20ac}".as_bytes(), Some("\u{20ac}")),
            (b"\r", Some("Enter")),
            (b"\t", Some("Tab")),
            (b"\x03", Some("C-c")),
            (b"\x1b", Some("Escape")),
            (b"\x7f", Some("BSpace")),
            (b"\x1b[A", Some("Up")),
            (b"\x1b[1;5C", Some("C-Right")),
            (b"\x1b[Z", Some("BTab")),
            (b"\x1bx", Some("M-x")),
            (b"ls\r", None),
            (b"", None),
            (b"\xff", None),
        ] {
            assert_eq!(key_name(bytes, &Modes::default()).as_deref(), name, "{bytes:?}");
        }
    }

    #[test]
    fn pastes_are_followed() {
        let mut watch = PasteWatch::default();
        for (bytes, want) in [
            (&b"x"[..], None),
            (b"\x1b[200~a\x1b[201~", Some(Paste::Whole)),
            (b"\x1b[200~a", Some(Paste::Start)),
            (b"b", Some(Paste::Middle)),
            (b"c\x1b[201~", Some(Paste::End)),
            (b"d", None),
        ] {
            assert_eq!(watch.next(bytes), want, "{bytes:?}");
        }
    }
}
