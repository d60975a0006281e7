//! Handles keys and the mouse.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Margin, Position, Rect};
use tapdeck_core::Time;

use super::{Dash, Effect, Mode, Purpose};
use crate::ui::line_edit::{Edited, LineEdit};
use crate::ui::live::Live;
use crate::ui::styles::Mood;

/// Command lines remembered.
const MAX_STARTED: usize = 100;

impl Dash {
    /// Handles an event of the user.
    pub fn on_event(&mut self, event: &Event, now: Time) -> Effect {
        self.now = now;
        self.dirty = true;
        let mut effect = Effect::Nothing;
        match (self.mode, event) {
            (Mode::Type, _) => self.on_typed(event),
            (Mode::Help { top, page }, Event::Key(key)) => self.on_help_key(top, page, *key),
            (Mode::AskEnd, Event::Key(key)) => self.on_end_answer(*key),
            (Mode::Line(purpose), Event::Key(key)) => self.on_line_key(purpose, *key),
            (Mode::Line(purpose), Event::Paste(text)) => {
                self.line.paste(text);
                self.on_line_changed(purpose);
            }
            (_, Event::Key(key)) => effect = self.on_key(*key),
            (Mode::Choose, Event::Mouse(mouse)) => self.on_mouse(*mouse),
            _ => {}
        }
        self.refilter();
        effect
    }

    fn on_key(&mut self, key: KeyEvent) -> Effect {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let (row, page) = (self.columns.cast_signed(), (self.columns * self.rows).cast_signed());
        match key.code {
            KeyCode::Char('z') if ctrl => return Effect::Suspend,
            KeyCode::Char('l') if ctrl => return Effect::Repaint,
            KeyCode::Char('c') if ctrl => return Effect::Quit,
            _ if ctrl => {}
            KeyCode::Char('q' | 'Q') => return Effect::Quit,
            KeyCode::Esc if self.zoomed => self.zoomed = false,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Tab | KeyCode::Char('n') => self.choose_round(1),
            KeyCode::BackTab | KeyCode::Char('p') => self.choose_round(-1),
            KeyCode::Right | KeyCode::Char('l') => self.choose(1),
            KeyCode::Left | KeyCode::Char('h') => self.choose(-1),
            KeyCode::Down | KeyCode::Char('j') => self.choose(row),
            KeyCode::Up | KeyCode::Char('k') => self.choose(-row),
            KeyCode::PageDown => self.choose_near(page),
            KeyCode::PageUp => self.choose_near(-page),
            KeyCode::Home | KeyCode::Char('g') => self.choose_nth(0),
            KeyCode::End | KeyCode::Char('G') => self.choose_nth(self.shown.len().saturating_sub(1)),
            KeyCode::Char(c @ '1'..='9') => self.choose_nth(usize::from(c as u8 - b'1')),
            KeyCode::Char('b') => self.choose_blocked(),
            KeyCode::Char('/') => self.open_line(Purpose::Filter, &self.filter.clone()),
            KeyCode::Char('c') => self.open_line(Purpose::Start, ""),
            KeyCode::Char(',') => self.ask_name(),
            KeyCode::Char('z' | ' ') => self.zoomed = !self.zoomed && !self.shown.is_empty(),
            KeyCode::Char('s') => self.toggle_overview(),
            KeyCode::Enter | KeyCode::Char('i') => self.take(true),
            KeyCode::Char('t') => self.take(false),
            KeyCode::Char('r') => self.release(),
            KeyCode::Char('x') => self.ask_end(),
            KeyCode::Char('?') | KeyCode::F(1) => self.mode = Mode::Help { top: 0, page: 0 },
            _ => {}
        }
        Effect::Nothing
    }

    /// Scrolls the list of keys, or closes it.
    fn on_help_key(&mut self, top: usize, page: usize, key: KeyEvent) {
        let top = match key.code {
            KeyCode::Down | KeyCode::Char('j') => top.saturating_add(1),
            KeyCode::Up | KeyCode::Char('k') => top.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => top.saturating_add(page),
            KeyCode::PageUp => top.saturating_sub(page),
            KeyCode::Home | KeyCode::Char('g') => 0,
            KeyCode::End | KeyCode::Char('G') => usize::MAX,
            _ => {
                self.mode = Mode::Choose;
                return;
            }
        };
        self.mode = Mode::Help { top, page };
    }

    fn choose_nth(&mut self, nth: usize) {
        if let Some(i) = self.shown.get(nth) {
            self.chosen = *i;
        }
    }

    /// Moves the choice, if there is a tile at that distance.
    fn choose(&mut self, by: isize) {
        if let Some(to) = self.place().checked_add_signed(by) {
            self.choose_nth(to);
        }
    }

    /// Moves the choice, and beyond an end to that end.
    fn choose_near(&mut self, by: isize) {
        let last = self.shown.len().saturating_sub(1);
        self.choose_nth(self.place().saturating_add_signed(by).min(last));
    }

    /// Moves the choice, and beyond an end on from the other.
    fn choose_round(&mut self, by: isize) {
        let count = self.shown.len().max(1).cast_signed();
        self.choose_nth((self.place().cast_signed() + by).rem_euclid(count).cast_unsigned());
    }

    /// The next session that waits for a person.
    fn choose_blocked(&mut self) {
        let (place, count) = (self.place(), self.shown.len());
        let mut next = (1..=count).map(|by| (place + by) % count.max(1));
        match next.find(|nth| self.tiles[self.shown[*nth]].is_blocked()) {
            Some(nth) => self.choose_nth(nth),
            None => self.notify("no session waits for an answer", Mood::Calm),
        }
    }

    /// Moves the tiles by a row; the choice stays in sight.
    fn scroll(&mut self, down: bool) {
        if self.zoomed {
            return self.choose(if down { 1 } else { -1 });
        }
        let count = self.shown.len();
        let last = count.div_ceil(self.columns).saturating_sub(self.rows);
        self.first_row = self.first_row.saturating_add_signed(if down { 1 } else { -1 }).min(last);
        let (row, column) = (self.place() / self.columns, self.place() % self.columns);
        let row = row.clamp(self.first_row, self.first_row + self.rows - 1);
        self.choose_nth((row * self.columns + column).min(count.saturating_sub(1)));
    }

    fn toggle_overview(&mut self) {
        self.overview = !self.overview;
        let text = match self.overview {
            true => "overview: blank and decorative parts of large screens are left out",
            false => "each tile shows a part of its screen as it is",
        };
        self.notify(text, Mood::Calm);
    }

    fn open_line(&mut self, purpose: Purpose, text: &str) {
        self.notice = None;
        self.line = LineEdit::with(text);
        self.mode = Mode::Line(purpose);
    }

    fn on_line_key(&mut self, purpose: Purpose, key: KeyEvent) {
        let history = if purpose == Purpose::Start { &self.started[..] } else { &[] };
        match self.line.key(key, history) {
            Edited::Nothing => {}
            Edited::Changed => self.on_line_changed(purpose),
            Edited::Left => {
                self.mode = Mode::Choose;
                if purpose == Purpose::Filter {
                    self.filter.clear();
                }
            }
            Edited::Accepted => {
                self.mode = Mode::Choose;
                match purpose {
                    Purpose::Filter => {}
                    Purpose::Start => self.start(),
                    Purpose::Rename => self.rename(),
                }
            }
        }
    }

    fn on_line_changed(&mut self, purpose: Purpose) {
        if purpose == Purpose::Filter {
            self.line.text().trim().clone_into(&mut self.filter);
            self.first_row = 0;
        }
    }

    /// Starts a session with the command line that was typed, and chooses it.
    fn start(&mut self) {
        let line = self.line.text().trim().to_owned();
        if !line.is_empty() && self.started.last() != Some(&line) {
            self.started.push(line.clone());
            let excess = self.started.len().saturating_sub(MAX_STARTED);
            self.started.drain(..excess);
        }
        let id = match self.registry.start(&line) {
            Ok(id) => id,
            Err(why) => return self.notify(why, Mood::Wrong),
        };
        self.looked = Some(self.now);
        self.look();
        if let Some(i) = self.tiles.iter().position(|t| t.id == id) {
            self.chosen = i;
            // The user wants to see what was started, whatever the filter is for.
            if !self.tiles[i].matches(&self.words()) {
                self.filter.clear();
            }
            self.notify(format!("started {}", self.tiles[i].live.name), Mood::Going);
        }
    }

    fn ask_name(&mut self) {
        match self.chosen_tile().map(|tile| (tile.id.clone(), tile.name.clone(), tile.live.runs())) {
            Some((id, name, true)) => {
                self.subject = id;
                self.open_line(Purpose::Rename, &name.unwrap_or_default());
            }
            Some(_) => self.notify("a session that has ended cannot be renamed", Mood::Wrong),
            None => {}
        }
    }

    /// Gives the session the name that was typed.
    fn rename(&mut self) {
        let name = self.line.text().trim().to_owned();
        if name.is_empty() {
            return;
        }
        if let Err(why) = self.registry.rename(&self.subject, &name) {
            return self.notify(why, Mood::Wrong);
        }
        self.notify(format!("renamed to {name}"), Mood::Going);
        self.looked = Some(self.now);
        self.look();
    }

    fn ask_end(&mut self) {
        match self.chosen_tile().map(|tile| (tile.id.clone(), tile.live.runs())) {
            Some((id, true)) => (self.subject, self.mode) = (id, Mode::AskEnd),
            Some(_) => {
                self.tiles.remove(self.chosen);
            }
            None => {}
        }
    }

    fn on_end_answer(&mut self, key: KeyEvent) {
        self.mode = Mode::Choose;
        let subject = self.tiles.iter_mut().find(|t| t.id == self.subject);
        if let (KeyCode::Char('y' | 'Y'), Some(tile)) = (key.code, subject) {
            tile.live.link_mut().end();
        }
    }

    fn take(&mut self, and_type: bool) {
        match self.chosen_mut().map(Live::take) {
            Some(Ok(())) if and_type => self.mode = Mode::Type,
            Some(Ok(())) => self.notify("you drive: Enter types", Mood::Driving),
            Some(Err(why)) => self.notify(why, Mood::Wrong),
            None => {}
        }
    }

    fn release(&mut self) {
        match self.chosen_mut() {
            Some(live) if live.drives() => {
                live.release();
                self.notify("the stick is free", Mood::Calm);
            }
            Some(_) => self.notify("you do not drive this one", Mood::Wrong),
            None => {}
        }
    }

    fn on_typed(&mut self, event: &Event) {
        if *event == Event::Key(KeyEvent::new(KeyCode::Char(']'), KeyModifiers::CONTROL)) {
            self.mode = Mode::Choose;
            if let Some(live) = self.chosen_mut() {
                live.release();
            }
            return;
        }
        let at = match (event, self.tiles.get(self.chosen)) {
            (Event::Mouse(mouse), Some(tile)) => {
                let at = Position::new(mouse.column, mouse.row);
                let inside = tile.drawn.contains(at);
                inside.then(|| (at.x - tile.drawn.x + tile.origin.0, at.y - tile.drawn.y + tile.origin.1))
            }
            _ => None,
        };
        if let Some(Err(why)) = self.chosen_mut().map(|live| live.type_event(event, at)) {
            self.notify(why, Mood::Wrong);
        }
    }

    fn on_mouse(&mut self, mouse: MouseEvent) {
        let at = Position::new(mouse.column, mouse.row);
        match mouse.kind {
            MouseEventKind::Down(MouseButton::Left) => {
                // The border belongs to its tile.
                let around = |r: Rect| r.outer(Margin::new(1, 1)).contains(at);
                let hit = self.tiles.iter().position(|t| !t.drawn.is_empty() && around(t.drawn));
                match hit {
                    Some(i) if i == self.chosen => self.zoomed = !self.zoomed,
                    Some(i) => self.chosen = i,
                    None => {}
                }
            }
            MouseEventKind::ScrollDown => self.scroll(true),
            MouseEventKind::ScrollUp => self.scroll(false),
            _ => {}
        }
    }
}
