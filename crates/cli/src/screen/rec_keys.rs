//! The user's own keys while `rec` records in the foreground: a prefix, and what may follow it.

use bytes::Bytes;
use tapdeck_host::{KeyAction, UserKeys};

use super::detach_keys::{DetachKeys, Typed};
use super::label_edit::{LabelEdit, Labelled};

/// Keys behind a prefix.
pub(crate) struct RecKeys {
    keys: DetachKeys,
    /// The label of a marker, while it is typed.
    label: Option<LabelEdit>,
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

    /// Goes on with the label of a marker.
    fn labelled(&mut self, outcome: Labelled, out: &mut Vec<KeyAction>) {
        if let Labelled::Typing(shown) = outcome {
            out.push(KeyAction::Show(shown));
            return;
        }
        self.label = None;
        out.push(KeyAction::Hide);
        if let Labelled::Done(label) = outcome {
            out.push(KeyAction::Mark(label));
        }
    }
}

impl UserKeys for RecKeys {
    fn read(&mut self, mut typed: &[u8]) -> Vec<KeyAction> {
        let mut out = Vec::new();
        while !typed.is_empty() {
            if let Some(label) = &mut self.label {
                let (taken, outcome) = label.read(typed);
                self.labelled(outcome, &mut out);
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
                    let (label, shown) = LabelEdit::begin();
                    self.label = Some(label);
                    self.labelled(shown, &mut out);
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
