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
    /// Pause the recording, or let it go on.
    Pause,
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
    /// Nothing but a first key: none of those behind it detaches.
    pub(super) fn prefix_only(key: &str) -> Result<Self, String> {
        let first = spellings(key.parse::<KeyPress>().map_err(|e| e.to_string())?);
        Ok(Self { first, then: Some(Vec::new()), pending: None, name: key.to_owned() })
    }

    /// Takes the first of the keys that were typed. Returns how many bytes it has, and what it
    /// means; `None` while that depends on the next one.
    pub(super) fn read_one(&mut self, typed: &[u8]) -> (usize, Option<Typed>) {
        let mut through = Vec::new();
        let (len, command) = match self.pending.take() {
            Some(held) => self.after_first(&held, typed, &mut through),
            None => self.first(typed, &mut through),
        };
        (len, command.or_else(|| (!through.is_empty()).then_some(Typed::Through(through))))
    }

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
                "{prefix} {leave} leaves · t takes the stick · r gives it up · m marks · p pauses · {prefix} sends {prefix}"
            ),
        }
    }

    /// Splits typed bytes into those for the program and commands for the client, up to a marker,
    /// whose label follows. Returns how many bytes that were, too.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> (usize, Vec<Typed>) {
        let mut typed = bytes;
        let mut out = Vec::new();
        let mut through = Vec::new();
        while !typed.is_empty() && out.last() != Some(&Typed::Mark) {
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
        (bytes.len() - typed.len(), out)
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
    fn after_first(&mut self, held: &[u8], typed: &[u8], through: &mut Vec<u8>) -> (usize, Option<Typed>) {
        let then = self.then.as_deref().unwrap_or_default();
        if let Some(len) = prefix_len(typed, then) {
            return (len, Some(Typed::Detach));
        }
        // Typed twice it is the key itself.
        if let Some(len) = prefix_len(typed, &self.first) {
            through.extend_from_slice(&typed[..len]);
            return (len, None);
        }
        let (len, key) = kitty_key(typed).unwrap_or((1, Pressed::Char(char::from(typed[0]))));
        let command = match key {
            Pressed::Char('t') => Some(Typed::Take),
            Pressed::Char('r') => Some(Typed::Release),
            Pressed::Char('m') => Some(Typed::Mark),
            Pressed::Char('p') => Some(Typed::Pause),
            Pressed::Char('?') => Some(Typed::Help),
            // The first key is let go, or Shift is pressed for the second.
            Pressed::Nothing => {
                self.pending = Some(held.to_vec());
                return (len, None);
            }
            // Any other key goes to the program, with the first.
            _ => {
                through.extend_from_slice(held);
                through.extend_from_slice(&typed[..len]);
                None
            }
        };
        (len, command)
    }
}

/// What a key of the kitty keyboard protocol does.
pub(super) enum Pressed {
    /// It types this.
    Char(char),
    /// It was let go, or changes what others type.
    Nothing,
    Other,
}

/// The length of the key that the bytes begin with, if it is one of the kitty keyboard protocol:
/// `CSI code:shifted ; modifiers:event ; text u`.
pub(super) fn kitty_key(typed: &[u8]) -> Option<(usize, Pressed)> {
    let rest = typed.strip_prefix(b"\x1b[")?;
    let end = rest.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b':' | b';'))?;
    let body = std::str::from_utf8(&rest[..end]).ok().filter(|_| rest[end] == b'u')?;
    let mut fields = body.split(';').map(|field| field.split(':').map(|n| n.parse::<u32>().ok()));
    let mut codes = fields.next()?;
    let (code, shifted) = (codes.next()??, codes.next().flatten());
    let mut mods = fields.next();
    let held = mods.as_mut().and_then(Iterator::next).flatten().unwrap_or(1).saturating_sub(1);
    let event = mods.as_mut().and_then(Iterator::next).flatten().unwrap_or(1);
    let text = fields.next().and_then(|mut text| text.next().flatten());
    // Caps Lock and Num Lock are no modifiers that were pressed for this key.
    let (shift, others) = (held & 1 > 0, held & 0b0011_1110 > 0);
    let key = match (event, code) {
        (3, _) | (_, 57441..=57454) => Pressed::Nothing,
        _ if others => Pressed::Other,
        _ => {
            let code = text.or(shifted.filter(|_| shift)).unwrap_or(code);
            char::from_u32(code).map_or(Pressed::Other, Pressed::Char)
        }
    };
    Some((2 + end + 1, key))
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
            ("C-\\ d", &[b"\x1cm\x1cp"], vec![Typed::Mark, Typed::Pause]),
            // A program that asked for it gets every key so, and hears of keys that are let go.
            ("C-\\ d", &[b"\x1b[92;5u\x1b[92;5:3u\x1b[109u"], vec![Typed::Mark]),
            ("C-\\ d", &[b"\x1b[92;5u\x1b[57441;2u\x1b[47:63;2;63u"], vec![Typed::Help]),
            ("C-\\ d", &[b"\x1b[92;5u\x1b[112;65u"], vec![Typed::Pause]),
            ("C-\\ d", &[b"\x1b[92;5u\x1b[112;5u"], vec![through(b"\x1b[92;5u\x1b[112;5u")]),
            ("C-p C-q", &[b"\x10\x11"], vec![Typed::Detach]),
            ("C-]", &[b"x\x1dy"], vec![through(b"x"), Typed::Detach, through(b"y")]),
        ];
        for (keys, typed, expected) in cases {
            let mut keys: DetachKeys = keys.parse().expect("keys");
            let mut got = Vec::new();
            for mut typed in typed.iter().copied() {
                while !typed.is_empty() {
                    let (taken, some) = keys.read(typed);
                    got.extend(some);
                    typed = &typed[taken..];
                }
            }
            assert_eq!(&got, expected, "{typed:?}");
        }
        assert!("C-a b c".parse::<DetachKeys>().is_err() && "nonsense".parse::<DetachKeys>().is_err());
    }
}
