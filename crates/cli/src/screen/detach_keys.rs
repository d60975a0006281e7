//! The keys that are for the client and not for the program: a first key, and what may follow it.

use std::str::FromStr;

use tapdeck_term::keys::{self, KeyPress};
use tapdeck_term::{Modes, Settings, Size, Term};

/// The meaning of keys typed in an attached terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Typed {
    /// For the program.
    Through(Vec<u8>),
    /// Leave.
    Detach,
    /// Take the stick.
    Take,
    /// Give it up.
    Release,
    /// Add a marker to the recording.
    Mark,
    /// Show what these keys are.
    Help,
}

/// A sequence of one or two keys, with all their encodings.
#[derive(Debug, Clone)]
pub(crate) struct DetachKeys {
    first: Vec<Vec<u8>>,
    /// The second key; without one, the first key alone detaches.
    then: Option<Vec<Vec<u8>>>,
    /// The first key, as it was typed.
    pending: Option<Vec<u8>>,
    /// The name as given, for messages.
    name: String,
}

impl FromStr for DetachKeys {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names: Vec<&str> = text.split([' ', ',']).filter(|n| !n.is_empty()).collect();
        let spell = |name: &&str| name.parse::<KeyPress>().map(spellings).map_err(|e| e.to_string());
        let (first, then) = match names.as_slice() {
            [first] => (spell(first)?, None),
            [first, then] => (spell(first)?, Some(spell(then)?)),
            _ => return Err(format!("{text:?}: give one key or two, such as 'C-\\ d', or none")),
        };
        Ok(Self { first, then, pending: None, name: names.join(" ") })
    }
}

/// The key as a terminal sends it, with and without the newer keyboard protocols.
fn spellings(key: KeyPress) -> Vec<Vec<u8>> {
    let modes = |setup: &[u8]| -> Modes {
        let mut term = Term::new(Size::new(2, 2), Settings::default());
        term.feed(setup);
        term.modes()
    };
    let setups: [&[u8]; 4] = [b"", b"\x1b[>1u", b"\x1b[>31u", b"\x1b[>4;2m"];
    let mut found: Vec<Vec<u8>> = setups.iter().map(|s| keys::encode(key, &modes(s))).collect();
    found.retain(|bytes| !bytes.is_empty());
    found.sort();
    found.dedup();
    // The longest first, so that no spelling is taken for the beginning of another.
    found.sort_by_key(|bytes| std::cmp::Reverse(bytes.len()));
    found
}

impl DetachKeys {
    /// The name of the key in front of `t` and `r`, if there is one.
    pub(crate) fn prefix(&self) -> Option<&str> {
        self.then.as_ref()?;
        self.name.split(' ').next()
    }

    /// How to leave, and how to learn more, in one line.
    pub(crate) fn hint(&self) -> String {
        match self.prefix() {
            Some(prefix) => format!("{} leaves, {prefix} ? shows more", self.name),
            None => format!("{} leaves", self.name),
        }
    }

    /// Every key, separated by ` · `. A client that only watches has no stick to take.
    pub(crate) fn help(&self, read_only: bool) -> String {
        let Some((prefix, leave)) = self.name.split_once(' ') else { return self.hint() };
        match read_only {
            true => format!("{prefix} {leave} leaves · ? hides this"),
            false => format!(
                "{prefix} {leave} leaves · t takes the stick · r gives it up · m marks · {prefix} sends {prefix}"
            ),
        }
    }

    /// Splits typed bytes into those for the program and commands for the client.
    pub(crate) fn read(&mut self, mut typed: &[u8]) -> Vec<Typed> {
        let mut out = Vec::new();
        let mut through = Vec::new();
        while !typed.is_empty() {
            let (len, command) = match self.pending.take() {
                Some(held) => self.after_first(&held, typed, &mut through),
                None => self.first(typed, &mut through),
            };
            typed = &typed[len..];
            if let Some(command) = command {
                if !through.is_empty() {
                    out.push(Typed::Through(std::mem::take(&mut through)));
                }
                out.push(command);
            }
        }
        if !through.is_empty() {
            out.push(Typed::Through(through));
        }
        out
    }

    /// Takes the first key, or one byte for the program. Returns how much of `typed` was taken.
    fn first(&mut self, typed: &[u8], through: &mut Vec<u8>) -> (usize, Option<Typed>) {
        match (prefix_len(typed, &self.first), &self.then) {
            (Some(len), None) => (len, Some(Typed::Detach)),
            (Some(len), Some(_)) => {
                self.pending = Some(typed[..len].to_vec());
                (len, None)
            }
            (None, _) => {
                through.push(typed[0]);
                (1, None)
            }
        }
    }

    /// Takes what follows the first key, which is held. Returns how much of `typed` was taken.
    fn after_first(&self, held: &[u8], typed: &[u8], through: &mut Vec<u8>) -> (usize, Option<Typed>) {
        let then = self.then.as_deref().unwrap_or_default();
        if let Some(len) = prefix_len(typed, then) {
            return (len, Some(Typed::Detach));
        }
        match typed[0] {
            b't' => return (1, Some(Typed::Take)),
            b'r' => return (1, Some(Typed::Release)),
            b'm' => return (1, Some(Typed::Mark)),
            b'?' => return (1, Some(Typed::Help)),
            _ => {}
        }
        // Typed twice it is the key itself. Any other key goes to the program, with the first.
        match prefix_len(typed, &self.first) {
            Some(len) => {
                through.extend_from_slice(&typed[..len]);
                (len, None)
            }
            None => {
                through.extend_from_slice(held);
                through.push(typed[0]);
                (1, None)
            }
        }
    }
}

/// The length of the spelling that the bytes begin with.
fn prefix_len(typed: &[u8], spellings: &[Vec<u8>]) -> Option<usize> {
    spellings.iter().find(|key| typed.starts_with(key)).map(Vec::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_however_they_are_spelt() {
        let through = |bytes: &[u8]| Typed::Through(bytes.to_vec());
        type Case<'a> = (&'a str, &'a [&'a [u8]], Vec<Typed>);
        let cases: &[Case<'_>] = &[
            ("C-\\ d", &[b"ab\x1cd"], vec![through(b"ab"), Typed::Detach]),
            ("C-\\ d", &[b"ab\x1c", b"t"], vec![through(b"ab"), Typed::Take]),
            ("C-\\ d", &[b"\x1c?x"], vec![Typed::Help, through(b"x")]),
            ("C-\\ d", &[b"\x1b[92;5ud"], vec![Typed::Detach]),
            ("C-\\ d", &[b"\x1c\x1cx"], vec![through(b"\x1cx")]),
            ("C-\\ d", &[b"\x1cq"], vec![through(b"\x1cq")]),
            ("C-p C-q", &[b"\x10\x11"], vec![Typed::Detach]),
            ("C-]", &[b"x\x1dy"], vec![through(b"x"), Typed::Detach, through(b"y")]),
        ];
        for (keys, typed, expected) in cases {
            let mut keys: DetachKeys = keys.parse().expect("keys");
            let got: Vec<Typed> = typed.iter().flat_map(|t| keys.read(t)).collect();
            assert_eq!(&got, expected, "{typed:?}");
        }
        assert!("C-a b c".parse::<DetachKeys>().is_err() && "nonsense".parse::<DetachKeys>().is_err());
    }
}
