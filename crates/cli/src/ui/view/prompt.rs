//! A line typed at the bottom: a pattern, a command or a file's name, with the editing keys of
//! `less`, a history, and the characters with which a pattern may begin.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::Place;
use super::matcher::Query;
use super::rows::Row;

/// Text beyond this is not taken.
const MAX_TEXT: usize = 1024;
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
        }
    }

    pub(super) fn is_pattern(self) -> bool {
        matches!(self, Purpose::Search { .. } | Purpose::Filter)
    }
}

/// The effect of a key on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edited {
    Nothing,
    /// The text has changed.
    Changed,
    Accepted,
    Left,
}

/// A line being typed.
#[derive(Debug)]
pub(super) struct Prompt {
    pub(super) purpose: Purpose,
    text: String,
    cursor: usize,
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
    pub(super) back_to: Place,
    /// How far back in the history, and what was typed before going there.
    back: usize,
    typed: String,
}

impl Prompt {
    pub(super) fn new(purpose: Purpose, how: Query, nth: u64, from: Row, back_to: Place) -> Self {
        Self {
            purpose,
            text: String::new(),
            cursor: 0,
            how,
            keep: false,
            from_end: false,
            nth,
            from,
            back_to,
            back: 0,
            typed: String::new(),
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The query as typed so far.
    pub(super) fn query(&self) -> Query {
        Query { text: self.text.clone(), ..self.how.clone() }
    }

    /// The options of the pattern, and the text with a cursor in it.
    pub(super) fn shown(&self) -> String {
        let (before, behind) = self.text.split_at(self.cursor);
        let flags = [(self.how.not, "not "), (self.how.literal, "literally "), (self.keep, "staying here ")];
        let ends = if self.purpose == (Purpose::Search { forth: false }) {
            "from the end "
        } else {
            "from the start "
        };
        let flags = flags.into_iter().chain([(self.from_end, ends)]);
        let how: String = flags.filter(|(on, _)| *on).map(|(_, name)| name).collect();
        let how = if how.is_empty() { how } else { format!("({}) ", how.trim_end()) };
        format!("{how}{before}▏{behind}")
    }

    /// Inserts pasted text.
    pub(super) fn paste(&mut self, text: &str) -> Edited {
        let before = self.text.len();
        text.chars().filter(|c| !c.is_control()).for_each(|c| self.insert(c));
        if self.text.len() == before { Edited::Nothing } else { Edited::Changed }
    }

    fn insert(&mut self, c: char) {
        if self.text.len() < MAX_TEXT {
            self.text.insert(self.cursor, c);
            self.cursor += c.len_utf8();
        }
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
            && self.text.is_empty()
            && self.purpose.is_pattern()
            && !alt
            && self.modify(c, ctrl)
        {
            return Edited::Changed;
        }
        let word = ctrl || alt;
        let before = self.text.clone();
        match key.code {
            KeyCode::Esc => return Edited::Left,
            KeyCode::Char('c' | 'g') if ctrl => return Edited::Left,
            KeyCode::Enter => return Edited::Accepted,
            KeyCode::Backspace if self.text.is_empty() => return Edited::Left,
            KeyCode::Backspace if word => self.erase(self.word_before()..self.cursor),
            KeyCode::Backspace => self.erase(self.before()..self.cursor),
            KeyCode::Char('h') if ctrl => self.erase(self.before()..self.cursor),
            KeyCode::Char('w') if ctrl => self.erase(self.word_before()..self.cursor),
            KeyCode::Char('u') if ctrl => self.erase(0..self.text.len()),
            KeyCode::Delete if word => self.erase(self.cursor..self.word_behind()),
            KeyCode::Char('X') if alt => self.erase(self.cursor..self.word_behind()),
            KeyCode::Delete => self.erase(self.cursor..self.behind()),
            KeyCode::Char('x') if alt => self.erase(self.cursor..self.behind()),
            KeyCode::Left if word => self.cursor = self.word_before(),
            KeyCode::Char('b') if alt => self.cursor = self.word_before(),
            KeyCode::Right if word => self.cursor = self.word_behind(),
            KeyCode::Char('w') if alt => self.cursor = self.word_behind(),
            KeyCode::Left => self.cursor = self.before(),
            KeyCode::Char('h') if alt => self.cursor = self.before(),
            KeyCode::Right => self.cursor = self.behind(),
            KeyCode::Char('l') if alt => self.cursor = self.behind(),
            KeyCode::Home => self.cursor = 0,
            KeyCode::Char('0') if alt => self.cursor = 0,
            KeyCode::End => self.cursor = self.text.len(),
            KeyCode::Char('$') if alt => self.cursor = self.text.len(),
            KeyCode::Up => self.recall(true, history),
            KeyCode::Char('k') if alt => self.recall(true, history),
            KeyCode::Down => self.recall(false, history),
            KeyCode::Char('j') if alt => self.recall(false, history),
            KeyCode::Char(c) if !word => self.insert(c),
            _ => {}
        }
        if self.text == before { Edited::Nothing } else { Edited::Changed }
    }

    fn erase(&mut self, part: std::ops::Range<usize>) {
        self.cursor = part.start;
        self.text.drain(part);
    }

    fn before(&self) -> usize {
        self.text[..self.cursor].char_indices().next_back().map_or(0, |(i, _)| i)
    }

    fn behind(&self) -> usize {
        self.text[self.cursor..].chars().next().map_or(self.cursor, |c| self.cursor + c.len_utf8())
    }

    fn word_before(&self) -> usize {
        let kept = self.text[..self.cursor].trim_end();
        kept.char_indices().rfind(|(_, c)| c.is_whitespace()).map_or(0, |(i, c)| i + c.len_utf8())
    }

    fn word_behind(&self) -> usize {
        let rest = &self.text[self.cursor..];
        let word = rest.find(char::is_whitespace).unwrap_or(rest.len());
        self.text.len() - rest[word..].trim_start().len()
    }

    fn recall(&mut self, older: bool, history: &[String]) {
        if self.back == 0 {
            self.typed.clone_from(&self.text);
        }
        self.back = if older { (self.back + 1).min(history.len()) } else { self.back.saturating_sub(1) };
        let line = history.len().checked_sub(self.back).and_then(|i| history.get(i)).unwrap_or(&self.typed);
        self.text.clone_from(line);
        self.cursor = self.text.len();
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
    use crossterm::event::Event;

    fn typed(keys: &str) -> Prompt {
        let place = Place { top: 0, left: 0, follow: true };
        let mut prompt = Prompt::new(Purpose::Search { forth: true }, Query::default(), 1, 0, place);
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
