//! The keys that are for the client and not for the program: a first key, and what may follow it.

use std::str::FromStr;

use tapdeck_term::keys::{self, Key, KeyEvent, KeyPress, Mods};
use tapdeck_term::{Modes, Settings, Size, Term};

use super::key_stream::{KeyStream, Piece};
use super::label_edit::{LabelEdit, Labelled};

/// The meaning of keys typed in an attached terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Typed {
    /// For the program.
    Through(Vec<u8>),
    /// Leave.
    Detach,
    /// Stop this client, as Ctrl-Z stops a program.
    Suspend,
    /// Take the stick.
    Take,
    /// Give it up.
    Release,
    /// A marker is to be added to the recording.
    Label(Labelled),
    /// Pause the recording, or let it go on.
    Pause,
    /// Show what these keys are.
    Help,
}

/// A sequence of one or two keys, in any keyboard protocol.
#[derive(Debug, Clone)]
pub(crate) struct DetachKeys {
    stream: KeyStream,
    prefix: Prefix,
    /// The label of a marker, while it is typed.
    label: Option<LabelEdit>,
    /// The name as given, for messages.
    name: String,
}

/// The first key, and what it and the next one mean.
#[derive(Debug, Clone)]
struct Prefix {
    /// The first key, by all that terminals may take it for.
    first: Vec<KeyPress>,
    /// The second key; without one, the first key alone detaches.
    then: Option<Vec<KeyPress>>,
    /// The first key, as it was typed.
    pending: Option<Vec<u8>>,
    /// Keys that the program does not know to be down: that they are let go is not for it either.
    taken: Vec<Key>,
}

impl FromStr for DetachKeys {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names: Vec<&str> = text.split([' ', ',']).filter(|n| !n.is_empty()).collect();
        let read = |name: &&str| name.parse::<KeyPress>().map(forms).map_err(|e| e.to_string());
        let (first, then) = match names.as_slice() {
            [first] => (read(first)?, None),
            [first, then] => (read(first)?, Some(read(then)?)),
            _ => return Err(format!("{text:?}: give one key or two, such as 'C-\\ d', or none")),
        };
        Ok(Self::new(first, then, names.join(" ")))
    }
}

/// The key as it is read from a terminal: control codes stand for several keys, and the newer
/// keyboard protocols tell them apart.
fn forms(key: KeyPress) -> Vec<KeyPress> {
    let modes = |setup: &[u8]| -> Modes {
        let mut term = Term::new(Size::new(2, 2), Settings::default());
        term.feed(setup);
        term.modes()
    };
    let read = |setup: &[u8]| keys::decode(&keys::encode(key, &modes(setup)))?.1;
    let mut found: Vec<KeyPress> =
        [&b""[..], b"\x1b[>1u", b"\x1b[>31u"].into_iter().filter_map(read).collect();
    found.dedup();
    found
}

impl DetachKeys {
    fn new(first: Vec<KeyPress>, then: Option<Vec<KeyPress>>, name: String) -> Self {
        Self {
            stream: KeyStream::default(),
            prefix: Prefix { first, then, pending: None, taken: Vec::new() },
            label: None,
            name,
        }
    }

    /// Nothing but a first key: none of those behind it detaches.
    pub(super) fn prefix_only(key: &str) -> Result<Self, String> {
        let first = forms(key.parse::<KeyPress>().map_err(|e| e.to_string())?);
        Ok(Self::new(first, Some(Vec::new()), key.to_owned()))
    }

    /// The name of the key in front of `t` and `r`, if there is one.
    pub(crate) fn prefix(&self) -> Option<&str> {
        self.prefix.then.as_ref()?;
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
            true => format!("{prefix} {leave} leaves · z suspends · ? hides this"),
            false => format!(
                "{prefix} {leave} leaves · z suspends · t takes the stick · r gives it up · m marks · p pauses · {prefix} sends {prefix}"
            ),
        }
    }

    /// Splits typed bytes into those for the program and commands for the client.
    pub(crate) fn read(&mut self, typed: &[u8]) -> Vec<Typed> {
        self.stream.push(typed);
        let mut out = Vec::new();
        while let Some(piece) = self.stream.next() {
            if let Some(label) = &mut self.label {
                let outcome = label.read(piece);
                if !matches!(outcome, Some(Labelled::Typing(_)) | None) {
                    self.label = None;
                }
                out.extend(outcome.map(Typed::Label));
                continue;
            }
            match (self.prefix.judge(piece), out.last_mut()) {
                (Some(Typed::Through(bytes)), Some(Typed::Through(before))) => before.extend(bytes),
                (Some(Typed::Label(shown)), _) => {
                    self.label = Some(LabelEdit::default());
                    out.push(Typed::Label(shown));
                }
                (command, _) => out.extend(command),
            }
        }
        out
    }

    /// Adds no marker after all.
    pub(crate) fn drop_label(&mut self) {
        self.label = None;
    }
}

impl Prefix {
    /// What a piece of the input means; `None` while that depends on the next one.
    fn judge(&mut self, piece: Piece<'_>) -> Option<Typed> {
        let (bytes, key) = match piece {
            Piece::Key(bytes, key) => (bytes, key),
            Piece::Modifier(_) if self.pending.is_some() => return None,
            Piece::Modifier(bytes) | Piece::Report(bytes) | Piece::Paste(bytes) => {
                return Some(Typed::Through(bytes.to_vec()));
            }
        };
        let taken = self.taken.iter().position(|taken| *taken == key.key);
        match (key.event, taken) {
            (KeyEvent::Release, Some(taken)) => {
                self.taken.remove(taken);
                return None;
            }
            (KeyEvent::Repeat, Some(_)) => return None,
            (KeyEvent::Release, None) => return Some(Typed::Through(bytes.to_vec())),
            _ => {}
        }
        let pressed = KeyPress { event: KeyEvent::Press, ..key };
        let is_first = self.first.contains(&pressed);
        let Some(held) = self.pending.take() else {
            if !is_first {
                return Some(Typed::Through(bytes.to_vec()));
            }
            if self.then.is_none() {
                return Some(Typed::Detach);
            }
            self.pending = Some(bytes.to_vec());
            self.take(key.key);
            return None;
        };
        if self.then.iter().flatten().any(|then| *then == pressed) {
            return Some(Typed::Detach);
        }
        let command = match (pressed.key, pressed.mods) {
            // Typed twice it is the key itself.
            _ if is_first => Typed::Through(bytes.to_vec()),
            (Key::Char('z'), Mods::NONE) => Typed::Suspend,
            (Key::Char('t'), Mods::NONE) => Typed::Take,
            (Key::Char('r'), Mods::NONE) => Typed::Release,
            (Key::Char('m'), Mods::NONE) => Typed::Label(LabelEdit::default().shown()),
            (Key::Char('p'), Mods::NONE) => Typed::Pause,
            (Key::Char('?'), Mods::NONE) => Typed::Help,
            // Any other key goes to the program, with the first.
            _ => Typed::Through([&held, bytes].concat()),
        };
        if matches!(command, Typed::Through(_)) {
            self.taken.clear();
        } else {
            self.take(key.key);
        }
        Some(command)
    }

    fn take(&mut self, key: Key) {
        if !self.taken.contains(&key) {
            self.taken.push(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_however_they_are_spelt() {
        let through = |bytes: &[u8]| Typed::Through(bytes.to_vec());
        let label = |text: &str| match LabelEdit::default().shown() {
            Labelled::Typing(shown) => {
                Typed::Label(Labelled::Typing(shown.replace(": _", &format!(": {text}_"))))
            }
            other => panic!("{other:?}"),
        };
        type Case<'a> = (&'a str, &'a [&'a [u8]], Vec<Typed>);
        let cases: &[Case<'_>] = &[
            ("C-\\ d", &[b"ab\x1cd"], vec![through(b"ab"), Typed::Detach]),
            ("C-\\ d", &[b"ab\x1c", b"t"], vec![through(b"ab"), Typed::Take]),
            ("C-\\ d", &[b"\x1c?x"], vec![Typed::Help, through(b"x")]),
            ("C-\\ d", &[b"\x1b[92;5ud"], vec![Typed::Detach]),
            ("C-\\ d", &[b"\x1c\x1cx"], vec![through(b"\x1cx")]),
            ("C-\\ d", &[b"\x1cq"], vec![through(b"\x1cq")]),
            ("C-\\ d", &[b"\x1cp\x1cm"], vec![Typed::Pause, label("")]),
            // A program that asked for it gets every key so, and hears of keys that are let go.
            ("C-\\ d", &[b"\x1b[92;5u\x1b[92;5:3u\x1b[109u"], vec![label("")]),
            ("C-\\ d", &[b"\x1b[92;5u\x1b[57441;2u\x1b[47:63;2;63u"], vec![Typed::Help]),
            ("C-\\ d", &[b"\x1b[92;5u\x1b[112;65u"], vec![Typed::Pause]),
            ("C-\\ d", &[b"\x1b[92;5u\x1b[112;5u"], vec![through(b"\x1b[92;5u\x1b[112;5u")]),
            // Every level of the protocol spells the key differently, and tells of modifiers.
            (
                "C-\\ d",
                &[b"\x1b[57442;5u\x1b[92;5u\x1b[92;5:3u\x1b[57442;1:3u\x1b[100u"],
                vec![through(b"\x1b[57442;5u"), Typed::Detach],
            ),
            ("C-\\ d", &[b"\x1b[92;5:1u\x1b[92;5:2u\x1b[92;5:3u\x1b[100;1:1u"], vec![Typed::Detach]),
            ("C-\\ d", &[b"\x1b[92;69u\x1b[100;65;100u"], vec![Typed::Detach]),
            ("C-\\ d", &[b"\x1b[27;5;92~d"], vec![Typed::Detach]),
            ("C-\\ d", &[b"\x1b[1074::92;5u\x1b[1074::100u"], vec![Typed::Detach]),
            ("C-\\ d", &[b"\x1b[92;5u\x1b[122u"], vec![Typed::Suspend]),
            // The mouse moves while the first key is held; keys come in pieces; pastes are no keys.
            ("C-\\ d", &[b"\x1c\x1b[<35;7;9Md"], vec![through(b"\x1b[<35;7;9M"), Typed::Detach]),
            ("C-\\ d", &[b"\x1b[92", b";5u\x1b[10", b"0u"], vec![Typed::Detach]),
            (
                "C-\\ d",
                &[b"\x1b[200~\x1cd\x1b[20", b"1~\x1cd"],
                vec![through(b"\x1b[200~\x1cd"), through(b"\x1b[201~"), Typed::Detach],
            ),
            (
                "C-\\ d",
                &[b"\x1b", b"\x1b[", b"\x1bO"],
                vec![through(b"\x1b"), through(b"\x1b["), through(b"\x1bO")],
            ),
            ("C-\\ d", &[b"\x1b[92;5:3u\x1b[97u"], vec![through(b"\x1b[92;5:3u\x1b[97u")]),
            (
                "C-\\ d",
                &[b"\x1cmc\xc3", b"\xa9", b"\r\x1cp"],
                vec![
                    label(""),
                    label("c"),
                    label("cé"),
                    Typed::Label(Labelled::Done("cé".into())),
                    Typed::Pause,
                ],
            ),
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
