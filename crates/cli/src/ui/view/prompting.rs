//! The actions of lines typed at the bottom: searches as they are typed, filters,
//! commands and files.

use crossterm::event::KeyEvent;

use super::matcher::{Matcher, Query};
use super::prompt::{Prompt, Purpose};
use super::{App, Effect, Mode, Mood, Scroll, outside, rows};
use crate::ui::line_edit::Edited;

impl App {
    /// Opens the prompt for a line.
    pub(super) fn open_prompt(&mut self, purpose: Purpose, nth: u64) {
        self.leave_turns();
        let top = self.top(self.height());
        let forth = purpose != Purpose::Search { forth: false };
        let from = if forth { top } else { top + u64::from(self.height()) - 1 };
        let how = Query { case: self.case, ..Query::default() };
        let back_to = Scroll { top, ..self.scroll };
        self.mode = Mode::Prompt(Box::new(Prompt::new(purpose, how, nth, from, back_to)));
    }

    pub(super) fn on_prompt_key(&mut self, key: KeyEvent) -> Effect {
        let Mode::Prompt(prompt) = &mut self.mode else { return Effect::Nothing };
        let history = self.history.of(prompt.purpose);
        match prompt.key(key, history) {
            Edited::Nothing => {}
            Edited::Changed => self.search_typed(),
            Edited::Left => self.leave_prompt(),
            Edited::Accepted => return self.accept_prompt(),
        }
        Effect::Nothing
    }

    /// Searches for what has been typed so far.
    pub(super) fn search_typed(&mut self) {
        let Mode::Prompt(prompt) = &self.mode else { return };
        let Purpose::Search { forth } = prompt.purpose else { return };
        let (back_to, nth, stay) = (prompt.back_to, prompt.nth, prompt.keep);
        let range = rows::range(self.origin.term());
        let from = match (prompt.from_end, forth) {
            (false, _) => prompt.from,
            (true, true) => range.start,
            (true, false) => range.end - 1,
        };
        if self.search.set(&prompt.query()) && self.search.is_set() && !stay {
            self.search.from(self.origin.term(), from, forth, nth);
        } else {
            self.scroll = back_to;
            self.focus = None;
        }
    }

    fn leave_prompt(&mut self) {
        if let Mode::Prompt(prompt) = std::mem::replace(&mut self.mode, Mode::Read) {
            self.scroll = prompt.back_to;
            self.search.set(&self.last.0);
        }
    }

    fn accept_prompt(&mut self) -> Effect {
        let Mode::Prompt(prompt) = std::mem::replace(&mut self.mode, Mode::Read) else {
            return Effect::Nothing;
        };
        let text = prompt.text();
        if !text.is_empty() {
            self.history.add(prompt.purpose, text);
        }
        match prompt.purpose {
            Purpose::Search { forth } => self.accept_search(&prompt, forth),
            Purpose::Filter => self.accept_filter(&prompt),
            Purpose::Shell if text.is_empty() => {}
            Purpose::Shell => return outside::shell(text),
            Purpose::Pipe { from, to } if !text.is_empty() => return self.pipe(text, from, to),
            Purpose::Save if !text.is_empty() => self.save(text),
            Purpose::Mark => self.ask_live(|link| link.mark(text)),
            Purpose::Pipe { .. } | Purpose::Save => {}
        }
        Effect::Nothing
    }

    fn accept_search(&mut self, prompt: &Prompt, forth: bool) {
        if prompt.text().is_empty() {
            // As in less: the last pattern, in this direction.
            self.last.1 = forth;
            return self.search_again(forth, prompt.nth);
        }
        if let Some(error) = self.search.error.clone() {
            self.notify(format!("{:?} is no regular expression: {error}", prompt.text()), Mood::Wrong);
            self.scroll = prompt.back_to;
            return;
        }
        self.last = (prompt.query(), forth);
        if !self.search.is_busy() && self.search.hit.is_none() && !prompt.keep {
            // What no row has may be in a turn: the search ends there.
            self.search_again(forth, prompt.nth);
        }
    }

    fn accept_filter(&mut self, prompt: &Prompt) {
        if prompt.text().is_empty() {
            self.filter.clear();
            return;
        }
        match Matcher::new(&prompt.query()) {
            Ok(matcher) => self.filter.add(prompt.query(), matcher),
            Err(error) => {
                self.notify(format!("{:?} is no regular expression: {error}", prompt.text()), Mood::Wrong);
            }
        }
    }

    pub(super) fn search_again(&mut self, forth: bool, nth: u64) {
        if self.last.0.text.is_empty() {
            return self.notify("nothing has been searched for yet", Mood::Wrong);
        }
        if self.owe_search(forth) {
            return;
        }
        self.search.set(&self.last.0);
        let top = self.top(self.height());
        let from = if forth { top } else { top + u64::from(self.height()) - 1 };
        self.search.next(self.origin.term(), from, forth, nth);
    }
}
