//! The label of a marker, typed as bytes that the program does not get.

use tapdeck_proto::bus::MAX_LABEL;

use super::detach_keys::{Pressed, kitty_key};

/// What is shown in front of a label while it is typed, and behind it.
const ASK: &str = "marker: ";
const HOW: &str = "  (Enter adds it, Esc does not)";

/// What came of the bytes that were typed.
pub(crate) enum Labelled {
    /// The label goes on; this shows it.
    Typing(String),
    /// The label is complete.
    Done(String),
    /// There will be no marker.
    GivenUp,
}

/// A label while it is typed.
#[derive(Default)]
pub(crate) struct LabelEdit {
    label: String,
    /// The beginning of a character or a key.
    begun: Vec<u8>,
}

impl LabelEdit {
    /// An empty label, and what shows it.
    pub(crate) fn begin() -> (Self, Labelled) {
        let edit = Self::default();
        let shown = edit.shown();
        (edit, shown)
    }

    fn shown(&self) -> Labelled {
        Labelled::Typing(format!("{ASK}{}_{HOW}", self.label))
    }

    /// Takes what is typed. Returns how much of it belongs to the label.
    pub(crate) fn read(&mut self, typed: &[u8]) -> (usize, Labelled) {
        let Self { label, begun } = self;
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
                Some('\r' | '\n') => return (i + 1, Labelled::Done(std::mem::take(label))),
                Some('\x1b' | '\x03') => return (i + 1, Labelled::GivenUp),
                Some('\x7f' | '\x08') => drop(label.pop()),
                Some(c) if !c.is_control() && label.len() + c.len_utf8() <= MAX_LABEL => label.push(c),
                _ => {}
            }
        }
        (typed.len(), self.shown())
    }
}
