//! A line typed at the bottom: a pattern, a command or a file's name, with a history, and the
//! characters with which a pattern may begin.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::Scroll;
use super::matcher::Query;
use super::rows::Row;
use crate::ui::line_edit::{Edited, LineEdit};

/// Lines remembered of each kind.
const MAX_HISTORY: usize = 100;

/// The purpose of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Search {
        forth: bool,
    },
    Filter,
    Shell,
    /// A shell command that gets the rows between two.
    Pipe {
        from: Row,
        to: Row,
    },
    Save,
    /// The label of a marker.
    Mark,
}

impl Purpose {
    /// The sign in front of the line.
    pub(super) fn sign(self) -> &'static str {
        match self {
            Purpose::Search { forth: true } => "/",
            Purpose::Search { forth: false } => "?",
            Purpose::Filter => "&",
            Purpose::Shell => "!",
            Purpose::Pipe { .. } => "|",
            Purpose::Save => "save as",
            Purpose::Mark => "marker",
        }
    }

    pub(super) fn is_pattern(self) -> bool {
        matches!(self, Purpose::Search { .. } | Purpose::Filter)
    }
}

/// A line being typed.
#[derive(Debug)]
pub(super) struct Prompt {
    pub(super) purpose: Purpose,
    line: LineEdit,
    /// The options of a pattern; its text is that of the line.
    pub(super) how: Query,
    /// Highlight matches without moving.
    pub(super) keep: bool,
    /// Begin at the first row, or the last when going back.
    pub(super) from_end: bool,
    /// Which match is meant, from 1.
    pub(super) nth: u64,
    /// Where the search begins, and where to return to.
    pub(super) from: Row,
    pub(super) back_to: Scroll,
}

impl Prompt {
    pub(super) fn new(purpose: Purpose, how: Query, nth: u64, from: Row, back_to: Scroll) -> Self {
        Self { purpose, line: LineEdit::default(), how, keep: false, from_end: false, nth, from, back_to }
    }

    pub(super) fn text(&self) -> &str {
        self.line.text()
    }

    /// The query as typed so far.
    pub(super) fn query(&self) -> Query {
        Query { text: self.text().to_owned(), ..self.how.clone() }
    }

    /// The options of the pattern, and the text with a cursor in it.
    pub(super) fn shown(&self) -> String {
        let flags = [(self.how.not, "not "), (self.how.literal, "literally "), (self.keep, "staying here ")];
        let ends = if self.purpose == (Purpose::Search { forth: false }) {
            "from the end "
        } else {
            "from the start "
        };
        let flags = flags.into_iter().chain([(self.from_end, ends)]);
        let how: String = flags.filter(|(on, _)| *on).map(|(_, name)| name).collect();
        let how = if how.is_empty() { how } else { format!("({}) ", how.trim_end()) };
        format!("{how}{}", self.line.shown())
    }

    /// Inserts pasted text.
    pub(super) fn paste(&mut self, text: &str) -> Edited {
        self.line.paste(text)
    }

    /// Changes the options by a character before the pattern. Returns whether it is one.
    fn modify(&mut self, c: char, ctrl: bool) -> bool {
        let search = matches!(self.purpose, Purpose::Search { .. });
        match (c, ctrl) {
            ('!', false) | ('n', true) => self.how.not = !self.how.not,
            ('r', true) => self.how.literal = !self.how.literal,
            ('@', false) | ('f', true) if search => self.from_end = !self.from_end,
            ('k', true) if search => self.keep = !self.keep,
            // There is only one recording, and a search always wraps around its end.
            ('*', false) | ('e' | 'w', true) if search => {}
            _ => return false,
        }
        true
    }

    /// Takes a key. `history` are the lines of this kind accepted before, the newest last.
    pub(super) fn key(&mut self, key: KeyEvent, history: &[String]) -> Edited {
        let has = |modifier| key.modifiers.contains(modifier);
        let (ctrl, alt) = (has(KeyModifiers::CONTROL), has(KeyModifiers::ALT));
        if let KeyCode::Char(c) = key.code
            && self.text().is_empty()
            && self.purpose.is_pattern()
            && !alt
            && self.modify(c, ctrl)
        {
            return Edited::Changed;
        }
        self.line.key(key, history)
    }
}

/// Lines accepted before, patterns separate from the others.
#[derive(Debug, Default)]
pub(super) struct History {
    patterns: Vec<String>,
    others: Vec<String>,
}

impl History {
    fn list(&mut self, purpose: Purpose) -> &mut Vec<String> {
        if purpose.is_pattern() { &mut self.patterns } else { &mut self.others }
    }

    /// The lines of a kind.
    pub(super) fn of(&self, purpose: Purpose) -> &[String] {
        if purpose.is_pattern() { &self.patterns } else { &self.others }
    }

    /// Remembers a line.
    pub(super) fn add(&mut self, purpose: Purpose, line: &str) {
        let list = self.list(purpose);
        list.retain(|l| l != line);
        list.push(line.to_owned());
        if list.len() > MAX_HISTORY {
            list.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::keys::Decoder;
    use crate::ui::line_edit::MAX_TEXT;
    use crossterm::event::Event;

    fn typed(keys: &str) -> Prompt {
        let scroll = Scroll { top: 0, left: 0, follow: true };
        let mut prompt = Prompt::new(Purpose::Search { forth: true }, Query::default(), 1, 0, scroll);
        let history = ["first".to_owned(), "second one".to_owned()];
        let mut decoder = Decoder::default();
        let mut events = decoder.push(keys.as_bytes());
        events.extend(decoder.flush());
        for event in events {
            if let Event::Key(key) = event {
                prompt.key(key, &history);
            }
        }
        prompt
    }

    #[test]
    fn a_line_is_edited() {
        for (keys, shown) in [
            ("abc\x1b[D\x1b[DX", "aX▏bc"),
            ("añc\x1b[D\x7f", "a▏c"),
            ("one two\x17", "one ▏"),
            ("one two\x15x", "x▏"),
            ("one two\x1b[HX\x1b[FY", "Xone twoY▏"),
            ("one two three\x1bb\x1bbX", "one X▏two three"),
            ("one two\x1b[H\x1b[3~", "▏ne two"),
            ("one two\x1b[H\x1bX", "▏two"),
            ("one two\x1b[H\x1b[1;5CX", "one X▏two"),
            ("x\x1b[A", "second one▏"),
            ("x\x1b[A\x1b[A\x1b[A", "first▏"),
            ("x\x1b[A\x1b[A\x1b[B\x1b[B\x1b[B", "x▏"),
            ("!a", "(not) a▏"),
            ("!!a!", "a!▏"),
            ("\x12a", "(literally) a▏"),
            ("\x0b@!x", "(not staying here from the start) x▏"),
            ("*\x05\x17x*", "x*▏"),
        ] {
            assert_eq!(typed(keys).shown(), shown, "{keys:?}");
        }
    }

    #[test]
    fn it_has_a_length() {
        assert_eq!(typed(&"é".repeat(5000)).text().len(), MAX_TEXT);
    }
}
