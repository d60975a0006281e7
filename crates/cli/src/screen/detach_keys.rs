//! The keys that are for the client and not for the program: a first key, and what may follow it.

use std::str::FromStr;

use tapdeck_term::keys::{self, KeyPress};
use tapdeck_term::{Modes, Settings, Size, Term};

/// What keys typed in an attached terminal mean.
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
}

/// A sequence of one or two keys, with every way in which terminals spell them.
#[derive(Debug, Clone)]
pub(crate) struct DetachKeys {
    first: Vec<Vec<u8>>,
    /// Nothing: the first key alone detaches.
    then: Option<Vec<Vec<u8>>>,
    /// The first key, as it was typed.
    pending: Option<Vec<u8>>,
    /// As it was given, for messages.
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
    /// The key in front of `t` and `r`, where there is one.
    pub(crate) fn prefix(&self) -> Option<&str> {
        self.then.as_ref()?;
        self.name.split(' ').next()
    }

    /// Cuts what was typed into what is for the program and what is for the client.
    pub(crate) fn read(&mut self, mut typed: &[u8]) -> Vec<Typed> {
        let mut out = Vec::new();
        let mut through = Vec::new();
        let starts =
            |typed: &[u8], keys: &[Vec<u8>]| keys.iter().find(|k| typed.starts_with(k)).map(Vec::len);
        while !typed.is_empty() {
            if let Some(held) = self.pending.take() {
                let command = match &self.then {
                    Some(then) if starts(typed, then).is_some() => Some(Typed::Detach),
                    _ if typed.starts_with(b"t") => Some(Typed::Take),
                    _ if typed.starts_with(b"r") => Some(Typed::Release),
                    _ => None,
                };
                match command {
                    Some(command) => {
                        let len = self.then.as_ref().and_then(|then| starts(typed, then)).unwrap_or(1);
                        typed = &typed[len..];
                        if !through.is_empty() {
                            out.push(Typed::Through(std::mem::take(&mut through)));
                        }
                        out.push(command);
                    }
                    // Typed twice it is the key itself; anything else was not meant for us, and goes through with it.
                    None => match starts(typed, &self.first) {
                        Some(len) => {
                            through.extend_from_slice(&typed[..len]);
                            typed = &typed[len..];
                        }
                        None => {
                            through.extend_from_slice(&held);
                            through.push(typed[0]);
                            typed = &typed[1..];
                        }
                    },
                }
                continue;
            }
            match starts(typed, &self.first) {
                Some(len) => {
                    let (key, rest) = typed.split_at(len);
                    typed = rest;
                    if self.then.is_some() {
                        self.pending = Some(key.to_vec());
                    } else {
                        if !through.is_empty() {
                            out.push(Typed::Through(std::mem::take(&mut through)));
                        }
                        out.push(Typed::Detach);
                    }
                }
                None => {
                    through.push(typed[0]);
                    typed = &typed[1..];
                }
            }
        }
        if !through.is_empty() {
            out.push(Typed::Through(through));
        }
        out
    }
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
