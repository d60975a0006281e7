//! The dashboard: all live sessions in one terminal, each in a tile. One tile is chosen; it can be
//! made as large as the screen, and typed to. Like the viewer it is a state machine: events, news
//! and time in, a picture out.

mod draw;
mod grid;
mod input;
mod overview;
pub mod run;

use std::os::fd::BorrowedFd;
use std::time::Duration;

use ratatui::layout::Rect;
use tapdeck_core::Time;
use tapdeck_core::turns::AgentState;

use super::line_edit::LineEdit;
use super::live::Live;
use super::styles::{Mood, Styles};

/// The time between two searches for new sessions.
const LOOK: Duration = Duration::from_secs(1);
/// How long the last picture of an ended session stays.
const LINGER: Duration = Duration::from_secs(15);
const NOTICE: Duration = Duration::from_secs(6);
/// How long a painting waits for the first pictures of sessions.
const HOLD: Duration = Duration::from_millis(500);

/// A session on the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its id.
    pub id: String,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The title of its tile: its name, or its id and program.
    pub title: String,
    /// Program and arguments.
    pub command: String,
}

/// A source of sessions.
pub trait Registry {
    /// Lists the sessions.
    ///
    /// # Errors
    /// With the reason, when they cannot be listed.
    fn list(&mut self) -> Result<Vec<Entry>, String>;

    /// Begins to watch one of them.
    ///
    /// # Errors
    /// With the reason, when it cannot be reached.
    fn open(&mut self, id: &str) -> Result<Live, String>;

    /// Starts a session that runs a command line, or the user's shell if that is empty. Returns the
    /// id of the session.
    ///
    /// # Errors
    /// With the reason, when the program cannot be started.
    fn start(&mut self, line: &str) -> Result<String, String>;

    /// Gives a session another name.
    ///
    /// # Errors
    /// With the reason, when the session refuses it.
    fn rename(&mut self, id: &str, name: &str) -> Result<(), String>;
}

/// A session in its tile.
struct Tile {
    id: String,
    name: Option<String>,
    command: String,
    live: Live,
    /// The state that was known of last.
    state: AgentState,
    ended: Option<Time>,
    /// The area it was drawn in, and where the program's screen begins there.
    drawn: Rect,
    origin: (u16, u16),
}

impl Tile {
    fn is_blocked(&self) -> bool {
        self.live.runs() && self.live.state() == AgentState::Blocked
    }

    /// Whether its name, id, command, title or state has each of these words in it.
    fn matches(&self, words: &[String]) -> bool {
        if words.is_empty() {
            return true;
        }
        let state = if self.live.runs() { self.live.state().to_string() } else { "ended".to_owned() };
        let parts = [&self.live.name, &self.id, &self.command, self.live.term().title(), &state];
        let text = parts.map(str::to_lowercase).join("\n");
        words.iter().all(|word| text.contains(word))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Choose,
    Type,
    /// The list of keys: its first row in sight, and how many are.
    Help {
        top: usize,
        page: usize,
    },
    AskEnd,
    /// A line is being typed at the bottom.
    Line(Purpose),
}

/// The purpose of a line typed at the bottom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Filter,
    Start,
    Rename,
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
    styles: Styles,
    tiles: Vec<Tile>,
    /// Sessions that could not be reached. They are not tried every second.
    refused: Vec<String>,
    /// The text of the filter, and the tiles that it shows.
    filter: String,
    shown: Vec<usize>,
    chosen: usize,
    zoomed: bool,
    overview: bool,
    mode: Mode,
    line: LineEdit,
    /// Command lines that were started here.
    started: Vec<String>,
    /// The session that a question or a line is about.
    subject: String,
    notice: Option<(String, Mood, Time)>,
    /// Changes of state that have not been told yet.
    changes: Vec<(String, AgentState)>,
    looked: Option<Time>,
    /// Until when a painting waits for first pictures.
    hold_until: Time,
    /// The first row of tiles in sight, how many tiles stand side by side, and how many rows of
    /// them are in sight.
    first_row: usize,
    columns: usize,
    rows: usize,
    dirty: bool,
    now: Time,
}

impl Dash {
    /// A dashboard of these sessions.
    pub fn new(registry: Box<dyn Registry>, styles: Styles) -> Self {
        Self {
            registry,
            styles,
            tiles: Vec::new(),
            refused: Vec::new(),
            filter: String::new(),
            shown: Vec::new(),
            chosen: 0,
            zoomed: false,
            overview: false,
            mode: Mode::Choose,
            line: LineEdit::default(),
            started: Vec::new(),
            subject: String::new(),
            notice: None,
            changes: Vec::new(),
            looked: None,
            hold_until: Time::ZERO,
            first_row: 0,
            columns: 1,
            rows: 1,
            dirty: true,
            now: Time::ZERO,
        }
    }

    /// Shows only the sessions with these words at first.
    #[must_use]
    pub fn with_filter(mut self, words: &str) -> Self {
        words.clone_into(&mut self.filter);
        self
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
            let before = std::mem::replace(&mut tile.state, tile.live.state());
            // What a session is found in is on the screen, and no news.
            if before != tile.state && before != AgentState::Unknown {
                self.changes.push((tile.live.name.clone(), tile.state));
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
        let warnings: Vec<String> = self.tiles.iter_mut().filter_map(|t| t.live.take_warning()).collect();
        if let Some(warning) = warnings.into_iter().last() {
            self.notify(warning, Mood::Wrong);
        }
        if self.mode == Mode::Type && !self.chosen().is_some_and(|live| live.drives() && live.runs()) {
            self.mode = Mode::Choose;
            self.notify("the stick is gone", Mood::Wrong);
        }
        if self.notice.as_ref().is_some_and(|n| n.2 <= now) {
            self.notice = None;
            self.dirty = true;
        }
        self.refilter();
    }

    /// Takes the changes of state since the last call: the session's name and its new state.
    pub fn take_changes(&mut self) -> Vec<(String, AgentState)> {
        std::mem::take(&mut self.changes)
    }

    /// The words of the filter.
    fn words(&self) -> Vec<String> {
        self.filter.split_whitespace().map(str::to_lowercase).collect()
    }

    /// Finds the tiles that the filter shows. The choice moves to one of them.
    fn refilter(&mut self) {
        let words = self.words();
        // A program that is typed to stays in sight whatever becomes of its state.
        let typed = (self.mode == Mode::Type).then_some(self.chosen);
        let tiles = self.tiles.iter().enumerate();
        self.shown =
            tiles.filter(|(i, tile)| Some(*i) == typed || tile.matches(&words)).map(|(i, _)| i).collect();
        if !self.shown.contains(&self.chosen) {
            let next = self.shown.iter().find(|i| **i > self.chosen).or(self.shown.last());
            self.chosen = next.copied().unwrap_or(0);
        }
    }

    fn look(&mut self) {
        let found = match self.registry.list() {
            Ok(found) => found,
            Err(why) => return self.notify(why, Mood::Wrong),
        };
        self.refused.retain(|id| found.iter().any(|entry| entry.id == *id));
        for Entry { id, name, title, command } in found {
            if let Some(tile) = self.tiles.iter_mut().find(|t| t.id == id) {
                self.dirty |= tile.live.name != title;
                (tile.live.name, tile.name) = (title, name);
                continue;
            }
            if self.refused.contains(&id) {
                continue;
            }
            match self.registry.open(&id) {
                Ok(live) => {
                    let (drawn, origin) = (Rect::ZERO, (0, 0));
                    let state = live.state();
                    self.tiles.push(Tile { id, name, command, live, state, ended: None, drawn, origin });
                    self.hold_until = self.now + HOLD;
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
        let notice = self.notice.as_ref().map(|n| n.2);
        [Some(look), notice, self.is_held().then_some(self.hold_until)].into_iter().flatten().min()
    }

    /// Whether there is something new to be drawn, and all of it is there.
    pub fn is_dirty(&self) -> bool {
        self.dirty && !self.is_held()
    }

    /// Whether first pictures of sessions are still to come: tiles are not shown empty.
    fn is_held(&self) -> bool {
        self.now < self.hold_until && self.tiles.iter().any(|t| t.live.runs() && !t.live.is_drawn())
    }

    fn notify(&mut self, text: impl Into<String>, mood: Mood) {
        self.notice = Some((text.into(), mood, self.now + NOTICE));
        self.dirty = true;
    }

    /// The chosen tile, if there is one in sight.
    fn chosen_tile(&self) -> Option<&Tile> {
        self.tiles.get(self.chosen).filter(|_| self.shown.contains(&self.chosen))
    }

    fn chosen(&self) -> Option<&Live> {
        self.chosen_tile().map(|t| &t.live)
    }

    fn chosen_mut(&mut self) -> Option<&mut Live> {
        let shown = self.shown.contains(&self.chosen);
        self.tiles.get_mut(self.chosen).filter(|_| shown).map(|t| &mut t.live)
    }

    /// The place of the chosen tile among those that the filter shows.
    fn place(&self) -> usize {
        self.shown.iter().position(|i| *i == self.chosen).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
