//! Lines typed at the bottom, and what is done with them: searches as they are typed, filters, commands and files.

use crossterm::event::KeyEvent;

use super::matcher::{Matcher, Sought};
use super::prompt::{Edited, Prompt, Wanted};
use super::{App, Do, Mode, Mood, Place, outside, rows};

impl App {
    /// Lets a line be typed.
    pub(super) fn ask(&mut self, wanted: Wanted, nth: u64) {
        let top = self.top(self.height());
        let forth = wanted != Wanted::Search { forth: false };
        let from = if forth { top } else { top + u64::from(self.height()) - 1 };
        let how = Sought { case: self.case, ..Sought::default() };
        let back_to = Place { top, ..self.place };
        self.mode = Mode::Prompt(Box::new(Prompt::new(wanted, how, nth, from, back_to)));
    }

    pub(super) fn on_prompt_key(&mut self, key: KeyEvent) -> Do {
        let Mode::Prompt(prompt) = &mut self.mode else { return Do::Nothing };
        let history = self.history.of(prompt.wanted);
        match prompt.key(key, history) {
            Edited::Nothing => {}
            Edited::Changed => self.search_typed(),
            Edited::Left => self.leave_prompt(),
            Edited::Accepted => return self.accept_prompt(),
        }
        Do::Nothing
    }

    /// Searches for what has been typed so far.
    pub(super) fn search_typed(&mut self) {
        let Mode::Prompt(prompt) = &self.mode else { return };
        let Wanted::Search { forth } = prompt.wanted else { return };
        let (back_to, nth, stay) = (prompt.back_to, prompt.nth, prompt.keep);
        let range = rows::range(self.origin.term());
        let from = match (prompt.from_end, forth) {
            (false, _) => prompt.from,
            (true, true) => range.start,
            (true, false) => range.end - 1,
        };
        if self.search.set(&prompt.sought()) && self.search.is_set() && !stay {
            self.search.from(self.origin.term(), from, forth, nth);
        } else {
            self.place = back_to;
            self.focus = None;
        }
    }

    fn leave_prompt(&mut self) {
        if let Mode::Prompt(prompt) = std::mem::replace(&mut self.mode, Mode::Read) {
            self.place = prompt.back_to;
            self.search.set(&self.last.0);
        }
    }

    fn accept_prompt(&mut self) -> Do {
        let Mode::Prompt(prompt) = std::mem::replace(&mut self.mode, Mode::Read) else { return Do::Nothing };
        let text = prompt.text();
        if !text.is_empty() {
            self.history.add(prompt.wanted, text);
        }
        match prompt.wanted {
            Wanted::Search { forth } => self.accept_search(&prompt, forth),
            Wanted::Filter => self.accept_filter(&prompt),
            Wanted::Shell if text.is_empty() => {}
            Wanted::Shell => return outside::shell(text),
            Wanted::Pipe { from, to } if !text.is_empty() => return self.pipe(text, from, to),
            Wanted::Save if !text.is_empty() => self.save(text),
            Wanted::Pipe { .. } | Wanted::Save => {}
        }
        Do::Nothing
    }

    fn accept_search(&mut self, prompt: &Prompt, forth: bool) {
        if prompt.text().is_empty() {
            // As in less: the last pattern, in this direction.
            self.last.1 = forth;
            return self.search_again(forth, prompt.nth);
        }
        if let Some(error) = self.search.error.clone() {
            self.notify(format!("{:?} is no regular expression: {error}", prompt.text()), Mood::Wrong);
            self.place = prompt.back_to;
            return;
        }
        self.last = (prompt.sought(), forth);
        if !self.search.is_busy() && self.search.hit.is_none() && !prompt.keep {
            self.notify(format!("not found: {}", prompt.text()), Mood::Wrong);
        }
    }

    fn accept_filter(&mut self, prompt: &Prompt) {
        if prompt.text().is_empty() {
            self.filter.clear();
            return;
        }
        match Matcher::new(&prompt.sought()) {
            Ok(matcher) => self.filter.add(prompt.sought(), matcher),
            Err(error) => {
                self.notify(format!("{:?} is no regular expression: {error}", prompt.text()), Mood::Wrong);
            }
        }
    }

    pub(super) fn search_again(&mut self, forth: bool, nth: u64) {
        if self.last.0.text.is_empty() {
            return self.notify("nothing has been searched for yet", Mood::Wrong);
        }
        self.search.set(&self.last.0);
        let top = self.top(self.height());
        let from = if forth { top } else { top + u64::from(self.height()) - 1 };
        self.search.next(self.origin.term(), from, forth, nth);
    }
}
