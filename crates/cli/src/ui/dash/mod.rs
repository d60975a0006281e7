//! The dashboard: all live sessions in one terminal, each in a tile. One tile is chosen; it can be
//! made as large as the screen, and typed to. Like the viewer it is a state machine: events, news
//! and time in, a picture out.

mod draw;
mod grid;
mod mini;
pub mod run;

use std::os::fd::BorrowedFd;
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};
use tapdeck_core::Time;
use tapdeck_core::turns::AgentState;

use super::live::Live;
use super::theme::{Mood, Theme};

/// The time between two searches for new sessions.
const LOOK: Duration = Duration::from_secs(1);
/// How long the last picture of an ended session stays.
const LINGER: Duration = Duration::from_secs(15);
const NOTICE: Duration = Duration::from_secs(6);

/// A source of sessions.
pub trait Registry {
    /// Lists the sessions.
    ///
    /// # Errors
    /// With the reason, when they cannot be listed.
    fn list(&mut self) -> Result<Vec<String>, String>;

    /// Begins to watch one of them.
    ///
    /// # Errors
    /// With the reason, when it cannot be reached.
    fn open(&mut self, id: &str) -> Result<Live, String>;
}

/// A session in its tile.
struct Tile {
    id: String,
    live: Live,
    ended: Option<Time>,
    /// The area it was drawn in, and where the program's screen begins there.
    drawn: Rect,
    origin: (u16, u16),
}

impl Tile {
    fn is_blocked(&self) -> bool {
        self.live.runs() && self.live.state() == AgentState::Blocked
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Choose,
    Type,
    Help,
    AskEnd,
}

/// What the caller has to do after an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Nothing,
    /// Leave.
    Quit,
    /// Stop this process until the user continues it.
    Suspend,
    /// Paint everything again.
    Repaint,
}

/// The dashboard's state.
pub struct Dash {
    registry: Box<dyn Registry>,
    theme: Theme,
    tiles: Vec<Tile>,
    /// Sessions that could not be reached. They are not tried every second.
    refused: Vec<String>,
    chosen: usize,
    zoomed: bool,
    scaled: bool,
    mode: Mode,
    notice: Option<(String, Mood, Time)>,
    looked: Option<Time>,
    /// The first row of tiles in sight, and how many tiles stand side by side.
    first_row: usize,
    columns: usize,
    dirty: bool,
    now: Time,
}

impl Dash {
    /// A dashboard of these sessions.
    pub fn new(registry: Box<dyn Registry>, theme: Theme) -> Self {
        Self {
            registry,
            theme,
            tiles: Vec::new(),
            refused: Vec::new(),
            chosen: 0,
            zoomed: false,
            scaled: false,
            mode: Mode::Choose,
            notice: None,
            looked: None,
            first_row: 0,
            columns: 1,
            dirty: true,
            now: Time::ZERO,
        }
    }

    /// Descriptors that are readable when there is news.
    pub fn fds(&self) -> Vec<BorrowedFd<'_>> {
        let live = self.tiles.iter().filter(|t| t.live.gone().is_none());
        live.filter_map(|t| t.live.link().fd()).collect()
    }

    /// Takes the news, and looks for new sessions now and then.
    pub fn tick(&mut self, now: Time) {
        self.now = now;
        for tile in &mut self.tiles {
            if tile.live.gone().is_none() {
                self.dirty |= tile.live.poll();
            }
            if !tile.live.runs() && tile.ended.is_none() {
                tile.ended = Some(now);
                self.dirty = true;
            }
        }
        if self.looked.is_none_or(|at| now >= at + LOOK) {
            self.looked = Some(now);
            self.look();
        }
        let denials: Vec<String> = self.tiles.iter_mut().filter_map(|t| t.live.take_denial()).collect();
        if let Some(why) = denials.into_iter().last() {
            self.mode = if self.mode == Mode::Type { Mode::Choose } else { self.mode };
            self.notify(why, Mood::Wrong);
        }
        if self.mode == Mode::Type && !self.chosen().is_some_and(|live| live.drives() && live.runs()) {
            self.mode = Mode::Choose;
            self.notify("the stick is gone", Mood::Wrong);
        }
        if self.notice.as_ref().is_some_and(|n| n.2 <= now) {
            self.notice = None;
            self.dirty = true;
        }
    }

    fn look(&mut self) {
        let found = match self.registry.list() {
            Ok(found) => found,
            Err(why) => return self.notify(why, Mood::Wrong),
        };
        self.refused.retain(|id| found.contains(id));
        for id in found {
            if self.refused.contains(&id) || self.tiles.iter().any(|t| t.id == id) {
                continue;
            }
            match self.registry.open(&id) {
                Ok(live) => {
                    self.tiles.push(Tile { id, live, ended: None, drawn: Rect::ZERO, origin: (0, 0) });
                    self.dirty = true;
                }
                Err(why) => {
                    self.notify(why, Mood::Wrong);
                    self.refused.push(id);
                }
            }
        }
        let (now, kept) = (self.now, self.tiles.get(self.chosen).map(|t| t.id.clone()));
        let before = self.tiles.len();
        let lingers = |t: &Tile| t.ended.is_none_or(|at| now < at + LINGER);
        self.tiles.retain(|t| lingers(t) || Some(&t.id) == kept.as_ref());
        self.dirty |= self.tiles.len() != before;
        self.chosen = kept.and_then(|id| self.tiles.iter().position(|t| t.id == id)).unwrap_or(0);
    }

    /// When [`Dash::tick`] has something to do again.
    pub fn due(&self) -> Option<Time> {
        let look = self.looked.map_or(Time::ZERO, |at| at + LOOK);
        Some(self.notice.as_ref().map_or(look, |n| n.2.min(look)))
    }

    /// Whether there is something new to be drawn.
    pub fn is_dirty(&self) -> bool {
        self.dirty
    }

    fn notify(&mut self, text: impl Into<String>, mood: Mood) {
        self.notice = Some((text.into(), mood, self.now + NOTICE));
        self.dirty = true;
    }

    fn chosen(&self) -> Option<&Live> {
        self.tiles.get(self.chosen).map(|t| &t.live)
    }

    fn chosen_mut(&mut self) -> Option<&mut Live> {
        self.tiles.get_mut(self.chosen).map(|t| &mut t.live)
    }

    /// Handles an event of the user.
    pub fn on_event(&mut self, event: &Event, now: Time) -> Effect {
        self.now = now;
        self.dirty = true;
        match (self.mode, event) {
            (Mode::Type, _) => {
                self.on_typed(event);
                Effect::Nothing
            }
            (Mode::Help, Event::Key(_)) => {
                self.mode = Mode::Choose;
                Effect::Nothing
            }
            (Mode::AskEnd, Event::Key(key)) => {
                self.mode = Mode::Choose;
                if matches!(key.code, KeyCode::Char('y' | 'Y'))
                    && let Some(live) = self.chosen_mut()
                {
                    live.link_mut().end();
                }
                Effect::Nothing
            }
            (_, Event::Key(key)) => self.on_key(*key),
            (_, Event::Mouse(mouse)) => {
                self.on_mouse(*mouse);
                Effect::Nothing
            }
            _ => Effect::Nothing,
        }
    }

    fn on_key(&mut self, key: KeyEvent) -> Effect {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('z') if ctrl => return Effect::Suspend,
            KeyCode::Char('l') if ctrl => return Effect::Repaint,
            KeyCode::Char('c') if ctrl => return Effect::Quit,
            _ if ctrl => {}
            KeyCode::Char('q' | 'Q') => return Effect::Quit,
            KeyCode::Esc if self.zoomed => self.zoomed = false,
            KeyCode::Tab | KeyCode::Char('n') => self.choose(1, true),
            KeyCode::BackTab | KeyCode::Char('p') => self.choose(-1, true),
            KeyCode::Right | KeyCode::Char('l') => self.choose(1, false),
            KeyCode::Left | KeyCode::Char('h') => self.choose(-1, false),
            KeyCode::Down | KeyCode::Char('j') => self.choose(self.columns as isize, false),
            KeyCode::Up | KeyCode::Char('k') => self.choose(-(self.columns as isize), false),
            KeyCode::Char(c @ '1'..='9') => {
                let nth = usize::from(c as u8 - b'1');
                if nth < self.tiles.len() {
                    self.chosen = nth;
                }
            }
            KeyCode::Char('b') => self.choose_blocked(),
            KeyCode::Char('z' | ' ') => self.zoomed = !self.zoomed && !self.tiles.is_empty(),
            KeyCode::Char('s') => self.scaled = !self.scaled,
            KeyCode::Enter | KeyCode::Char('i') => self.take(true),
            KeyCode::Char('t') => self.take(false),
            KeyCode::Char('r') => self.release(),
            KeyCode::Char('x') => match self.chosen() {
                Some(live) if live.runs() => self.mode = Mode::AskEnd,
                Some(_) => {
                    self.tiles.remove(self.chosen);
                    self.chosen = self.chosen.min(self.tiles.len().saturating_sub(1));
                }
                None => {}
            },
            KeyCode::Char('?') | KeyCode::F(1) => self.mode = Mode::Help,
            _ => {}
        }
        Effect::Nothing
    }

    fn choose(&mut self, by: isize, round: bool) {
        let count = self.tiles.len();
        if count == 0 {
            return;
        }
        let to = self.chosen.cast_signed() + by;
        if round {
            self.chosen = to.rem_euclid(count.cast_signed()) as usize;
        } else if (0..count.cast_signed()).contains(&to) {
            self.chosen = to as usize;
        }
    }

    /// The next session that waits for a person.
    fn choose_blocked(&mut self) {
        let count = self.tiles.len();
        let next =
            (1..=count).map(|by| (self.chosen + by) % count.max(1)).find(|i| self.tiles[*i].is_blocked());
        match next {
            Some(i) => self.chosen = i,
            None => self.notify("no session waits for an answer", Mood::Calm),
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
                let inside = tile.drawn.contains(at) && !self.scaled;
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
                let around = |r: Rect| r.outer(ratatui::layout::Margin::new(1, 1)).contains(at);
                let hit = self.tiles.iter().position(|t| !t.drawn.is_empty() && around(t.drawn));
                match hit {
                    Some(i) if i == self.chosen => self.zoomed = !self.zoomed,
                    Some(i) => self.chosen = i,
                    None => {}
                }
            }
            MouseEventKind::ScrollDown => self.choose(self.columns as isize, false),
            MouseEventKind::ScrollUp => self.choose(-(self.columns as isize), false),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
