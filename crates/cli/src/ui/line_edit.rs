//! A line of text being typed, with the editing keys of `less` and a history.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_width::UnicodeWidthStr;

/// Text beyond this is not taken.
pub(super) const MAX_TEXT: usize = 1024;

/// The effect of a key on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edited {
    Nothing,
    /// The text has changed.
    Changed,
    Accepted,
    Left,
}

/// A line of text with a cursor in it.
#[derive(Debug, Default)]
pub(super) struct LineEdit {
    text: String,
    cursor: usize,
    /// How far back in the history, and what was typed before going there.
    back: usize,
    typed: String,
}

impl LineEdit {
    /// A line that begins with this text, with the cursor behind it.
    pub(super) fn with(text: &str) -> Self {
        let mut line = Self::default();
        line.paste(text);
        line
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The text with a cursor in it.
    pub(super) fn shown(&self) -> String {
        let (before, behind) = self.text.split_at(self.cursor);
        format!("{before}▏{behind}")
    }

    /// The text with a cursor in it, cut at the front so that the cursor is within `width` columns.
    pub(super) fn shown_within(&self, width: usize) -> String {
        let (mut before, behind) = self.text.split_at(self.cursor);
        while before.width() + 2 > width && !before.is_empty() {
            before = &before[before.chars().next().map_or(0, char::len_utf8)..];
        }
        let cut = if before.len() < self.cursor { "…" } else { "" };
        format!("{cut}{before}▏{behind}")
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

    /// Takes a key. `history` are the lines of this kind accepted before, the newest last.
    pub(super) fn key(&mut self, key: KeyEvent, history: &[String]) -> Edited {
        let has = |modifier| key.modifiers.contains(modifier);
        let (ctrl, alt) = (has(KeyModifiers::CONTROL), has(KeyModifiers::ALT));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut_before_its_cursor() {
        let line = LineEdit::with("make -j 4 check");
        assert_eq!(line.shown_within(40), "make -j 4 check▏");
        assert_eq!(line.shown_within(10), "… 4 check▏");
        assert_eq!(LineEdit::default().shown_within(0), "▏");
    }
}
