//! The user's own keys while `rec` records in the foreground: a prefix, and what may follow it.

use bytes::Bytes;
use tapdeck_host::{KeyAction, UserKeys};
use tapdeck_proto::bus::MAX_LABEL;

use super::detach_keys::{DetachKeys, Pressed, Typed, kitty_key};

/// What is shown in front of a label while it is typed, and behind it.
const ASK: &str = "marker: ";
const HOW: &str = "  (Enter adds it, Esc does not)";

/// Keys behind a prefix.
pub(crate) struct RecKeys {
    keys: DetachKeys,
    /// The label of a marker, while it is typed, and the beginning of a character or a key of it.
    label: Option<(String, Vec<u8>)>,
    helped: bool,
}

impl RecKeys {
    /// Keys behind this one, such as `C-\`.
    ///
    /// # Errors
    /// When it is no key.
    pub(crate) fn behind(prefix: &str) -> Result<Self, String> {
        Ok(Self { keys: DetachKeys::prefix_only(prefix)?, label: None, helped: false })
    }

    fn help(&self) -> String {
        let prefix = self.keys.prefix().unwrap_or_default();
        format!("{prefix} m adds a marker · p pauses the recording · ? hides this · {prefix} sends {prefix}")
    }

    /// Takes what is typed of a label. Returns how much of it that was.
    fn edit(&mut self, typed: &[u8], out: &mut Vec<KeyAction>) -> usize {
        let Some((label, begun)) = &mut self.label else { return 0 };
        for (i, byte) in typed.iter().enumerate() {
            begun.push(*byte);
            let key = match begun[..] {
                [b'\x1b'] if i + 1 < typed.len() => continue,
                [b'\x1b'] => Some('\x1b'),
                [b'\x1b', b'[' | b'O'] => continue,
                [b'\x1b', b'[' | b'O', .., last] if !(0x40..=0x7e).contains(&last) => continue,
                [b'\x1b', ..] => match kitty_key(begun) {
                    Some((_, Pressed::Char(c))) => Some(c),
                    _ => None,
                },
                _ => match std::str::from_utf8(begun) {
                    Ok(text) => text.chars().next(),
                    Err(e) if e.error_len().is_none() => continue,
                    Err(_) => None,
                },
            };
            begun.clear();
            match key {
                Some('\r' | '\n') => {
                    out.extend([KeyAction::Hide, KeyAction::Mark(std::mem::take(label))]);
                    self.label = None;
                    return i + 1;
                }
                Some('\x1b' | '\x03') => {
                    out.push(KeyAction::Hide);
                    self.label = None;
                    return i + 1;
                }
                Some('\x7f' | '\x08') => drop(label.pop()),
                Some(c) if !c.is_control() && label.len() + c.len_utf8() <= MAX_LABEL => label.push(c),
                _ => {}
            }
        }
        out.push(KeyAction::Show(format!("{ASK}{label}_{HOW}")));
        typed.len()
    }
}

impl UserKeys for RecKeys {
    fn read(&mut self, mut typed: &[u8]) -> Vec<KeyAction> {
        let mut out = Vec::new();
        while !typed.is_empty() {
            if self.label.is_some() {
                let taken = self.edit(typed, &mut out);
                typed = &typed[taken..];
                continue;
            }
            let (taken, key) = self.keys.read_one(typed);
            typed = &typed[taken..];
            let helped = key.is_some() && std::mem::take(&mut self.helped);
            if helped {
                out.push(KeyAction::Hide);
            }
            match key {
                Some(Typed::Through(bytes)) => match out.last_mut() {
                    Some(KeyAction::Pass(before)) => *before = [&before[..], &bytes].concat().into(),
                    _ => out.push(KeyAction::Pass(Bytes::from(bytes))),
                },
                Some(Typed::Mark) => {
                    self.label = Some(Default::default());
                    out.push(KeyAction::Show(format!("{ASK}_{HOW}")));
                }
                Some(Typed::Pause) => out.push(KeyAction::Pause),
                Some(Typed::Help) if helped => {}
                Some(Typed::Help) => {
                    self.helped = true;
                    out.push(KeyAction::Show(self.help()));
                }
                Some(Typed::Take | Typed::Release | Typed::Detach) => {
                    out.push(KeyAction::Tell(self.help()));
                }
                None => {}
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(bytes: &'static [u8]) -> KeyAction {
        KeyAction::Pass(Bytes::from_static(bytes))
    }

    #[test]
    fn keys_behind_the_prefix_are_ours() {
        let mut keys = RecKeys::behind("C-\\").expect("a key");
        assert_eq!(keys.read(b"ab"), [pass(b"ab")]);
        assert_eq!(keys.read(b"a\x1cpb"), [pass(b"a"), KeyAction::Pause, pass(b"b")]);
        assert_eq!(keys.read(b"\x1c"), []);
        assert_eq!(keys.read(b"\x1c"), [pass(b"\x1c")], "twice, it is the program's");
        assert_eq!(keys.read(b"\x1b[92;5u\x1b[112u"), [KeyAction::Pause]);
        assert!(RecKeys::behind("C-\\ d").is_err() && RecKeys::behind("nonsense").is_err());
    }

    #[test]
    fn a_label_is_typed_edited_and_given_up() {
        let mut keys = RecKeys::behind("C-\\").expect("a key");
        let marks = |keys: &mut RecKeys, typed: &[&[u8]]| -> Vec<KeyAction> {
            let all: Vec<KeyAction> = typed.iter().flat_map(|typed| keys.read(typed)).collect();
            all.into_iter().filter(|a| matches!(a, KeyAction::Mark(_) | KeyAction::Pass(_))).collect()
        };
        let mark = |label: &str| KeyAction::Mark(label.into());
        assert_eq!(marks(&mut keys, &[b"\x1cm\rx"]), [mark(""), pass(b"x")]);
        let typed: [&[u8]; 5] = [b"\x1cm", b"he\xc3", b"\xa9yz\x7f\x7f", b"\x1b[D", b"!\r"];
        assert_eq!(marks(&mut keys, &typed), [mark("heé!")]);
        assert_eq!(marks(&mut keys, &[b"\x1cmno", b"\x1b", b"x"]), [pass(b"x")]);
        // As a program that has every key reported gets them.
        assert_eq!(marks(&mut keys, &[b"\x1b[92;5u\x1b[109u\x1b[97u\x1b[13u"]), [mark("a")]);
    }
}
