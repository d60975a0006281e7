//! The label of a marker, typed as keys that the program does not get.

use tapdeck_proto::bus::MAX_LABEL;
use tapdeck_term::keys::{Key, KeyEvent, Mods};

use super::key_stream::Piece;

/// What is shown in front of a label while it is typed, and behind it.
const ASK: &str = "marker: ";
const HOW: &str = "  (Enter adds it, Esc does not)";

/// What came of the keys that were typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Labelled {
    /// The label goes on; this shows it.
    Typing(String),
    /// The label is complete.
    Done(String),
    /// There will be no marker.
    GivenUp,
}

/// A label while it is typed.
#[derive(Debug, Clone, Default)]
pub(super) struct LabelEdit {
    label: String,
}

impl LabelEdit {
    pub(super) fn shown(&self) -> Labelled {
        Labelled::Typing(format!("{ASK}{}_{HOW}", self.label))
    }

    /// Takes a piece of what is typed; `None` if it changes nothing.
    pub(super) fn read(&mut self, piece: Piece<'_>) -> Option<Labelled> {
        let key = match piece {
            Piece::Key(_, key) if key.event != KeyEvent::Release => key,
            Piece::Paste(bytes) => {
                String::from_utf8_lossy(bytes).chars().for_each(|c| self.add(c));
                return Some(self.shown());
            }
            _ => return None,
        };
        match (key.key, key.mods) {
            (Key::Enter | Key::KeypadEnter, Mods::NONE) | (Key::Char('j'), Mods::CTRL) => {
                return Some(Labelled::Done(std::mem::take(&mut self.label)));
            }
            (Key::Escape, _) | (Key::Char('c'), Mods::CTRL) => return Some(Labelled::GivenUp),
            (Key::Backspace, _) | (Key::Char('h'), Mods::CTRL) => drop(self.label.pop()),
            (Key::Char(c) | Key::Keypad(c), Mods::NONE) => self.add(c),
            _ => return None,
        }
        Some(self.shown())
    }

    fn add(&mut self, c: char) {
        if !c.is_control() && self.label.len() + c.len_utf8() <= MAX_LABEL {
            self.label.push(c);
        }
    }
}
