//! The user's own keys while `rec` records in the foreground: a prefix, and what may follow it.

use bytes::Bytes;
use tapdeck_host::{KeyAction, UserKeys};

use super::detach_keys::{DetachKeys, Typed};
use super::label_edit::Labelled;

/// Keys behind a prefix.
pub(crate) struct RecKeys {
    keys: DetachKeys,
    helped: bool,
}

impl RecKeys {
    /// Keys behind this one, such as `C-\`.
    ///
    /// # Errors
    /// When it is no key.
    pub(crate) fn behind(prefix: &str) -> Result<Self, String> {
        Ok(Self { keys: DetachKeys::prefix_only(prefix)?, helped: false })
    }

    fn help(&self) -> String {
        let prefix = self.keys.prefix().unwrap_or_default();
        format!("{prefix} m adds a marker · p pauses the recording · ? hides this · {prefix} sends {prefix}")
    }
}

impl UserKeys for RecKeys {
    fn read(&mut self, typed: &[u8]) -> Vec<KeyAction> {
        let mut out = Vec::new();
        for key in self.keys.read(typed) {
            let helped = std::mem::take(&mut self.helped);
            if helped {
                out.push(KeyAction::Hide);
            }
            match key {
                Typed::Through(bytes) => out.push(KeyAction::Pass(Bytes::from(bytes))),
                Typed::Label(Labelled::Typing(shown)) => out.push(KeyAction::Show(shown)),
                Typed::Label(Labelled::GivenUp) => out.push(KeyAction::Hide),
                Typed::Label(Labelled::Done(label)) => {
                    out.extend([KeyAction::Hide, KeyAction::Mark(label)]);
                }
                Typed::Pause => out.push(KeyAction::Pause),
                Typed::Help if helped => {}
                Typed::Help => {
                    self.helped = true;
                    out.push(KeyAction::Show(self.help()));
                }
                Typed::Take | Typed::Release | Typed::Detach | Typed::Suspend => {
                    out.push(KeyAction::Tell(self.help()));
                }
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
