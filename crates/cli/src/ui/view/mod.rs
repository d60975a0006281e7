//! The viewer shows a recorded or live terminal in a frame of its true size, to be read, searched,
//! moved through in time, and written instructions into. [`App`] is a state machine: events and
//! time in, a picture and [`Effect`]s out.

mod act;
mod brackets;
mod commands;
mod draw;
mod filter;
mod input;
mod instruct;
mod marks;
mod matcher;
mod outside;
mod prompt;
mod prompting;
pub mod rows;
pub mod run;
pub mod search;
mod select;
mod timeline;
mod turns;

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ratatui::layout::Rect;
use tapdeck_core::{Offset, Time, WallTime};
use tapdeck_host::{Goal, PlayError, Source};
use tapdeck_tape::{Instruction, Moment, nearest_snapshot};
use tapdeck_term::Term;

pub use crate::tape::Tape;

use crate::instructions::keep;
use crate::keymap::Keymap;

use super::live::Live;
use super::styles::{Mood, Styles};
use commands::Chord;
use filter::{Filter, Visible};
use instruct::Instruct;
use marks::Marks;
use matcher::{Case, Query};
use prompt::{History, Prompt};
use rows::Row;
use search::{Hit, Search, Step};
use select::Selection;
use turns::TurnSearch;

/// How long a notice stays.
const NOTICE: Duration = Duration::from_secs(6);
/// How long a key that needs the moments of a recording waits for them.
const PATIENCE: Duration = Duration::from_millis(500);
const STILL_LOOKING: &str = "the recording is still being looked through: try again";
const NO_LONGER_FOLLOWING: &str = "no longer following: F follows again";
/// The time without a change after which the terminal counts as still.
const SETTLED: Duration = Duration::from_millis(200);

/// The source of the terminal.
pub enum Origin {
    /// A recording.
    Tape(Box<Tape>),
    /// A live session, and its recording, if it has one.
    Live(Box<Live>, Option<PathBuf>),
}

impl Origin {
    /// The terminal.
    pub fn term(&self) -> &Term {
        match self {
            Origin::Tape(tape) => tape.term(),
            Origin::Live(live, _) => live.term(),
        }
    }

    /// The recording.
    fn path(&self) -> Option<&Path> {
        match self {
            Origin::Tape(tape) => Some(tape.path()),
            Origin::Live(_, path) => path.as_deref(),
        }
    }

    fn moments(&self) -> &[Moment] {
        match self {
            Origin::Tape(tape) => tape.moments(),
            Origin::Live(live, _) => live.moments(),
        }
    }
}

/// The options of the viewer.
#[derive(Debug, Clone)]
pub struct Options {
    /// The styles.
    pub styles: Styles,
    /// The command that branches a session; none when empty.
    pub branch_command: Vec<String>,
    /// The keys.
    pub keymap: Keymap,
}

/// What the caller has to do after an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Nothing,
    /// Leave.
    Quit,
    /// Stop this process until the user continues it.
    Suspend,
    /// Paint everything again.
    Repaint,
    /// Put this text on the clipboard of the terminal.
    Copy(String),
    /// Run this command on the terminal, then come back.
    Run(Vec<String>),
}

/// The mode, which decides what keys do.
enum Mode {
    /// Reading.
    Read,
    /// A pattern or a command is being typed.
    Prompt(Box<Prompt>),
    /// An instruction is being written.
    Write(Box<Instruct>),
    /// The keys are shown, from this line on.
    Help(usize),
    /// Leave although the program runs?
    AskQuit,
    /// Start the branch command?
    AskBranch(Box<Instruction>),
    /// The letter of a mark comes.
    Letter(Letter),
    /// Two brackets come, and perhaps the first is there.
    Pair { forth: bool, own: Option<char>, nth: u64 },
    /// The letter of an option comes: to change it, or to show it.
    Flag { change: bool },
    /// Everything goes to the program.
    Type,
}

/// The action on a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Letter {
    MarkTop,
    MarkBottom,
    GoTo,
    Forget,
    PipeTo,
}

/// A number being typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Count {
    n: u64,
    /// When a single digit becomes a jump to that tenth of the recording.
    tenth_at: Option<Time>,
}

/// The part of the rows that is in sight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Scroll {
    top: Row,
    left: u16,
    /// Whether the end stays in sight.
    follow: bool,
}

/// The areas of the last drawing.
#[derive(Debug, Clone, Default)]
struct Drawn {
    bar: Rect,
    inner: Rect,
    /// The row in each line of `inner`, if there is one.
    slots: Vec<Option<Row>>,
    /// Where in `inner` the box begins, and how high it is.
    boxed: Option<(u16, u16)>,
}

struct Notice {
    text: String,
    mood: Mood,
    until: Time,
}

/// The viewer's state.
pub struct App {
    origin: Origin,
    options: Options,
    mode: Mode,
    scroll: Scroll,
    /// The row that is meant: found, clicked, or that of a snapshot.
    focus: Option<Row>,
    selection: Option<Selection>,
    search: Search,
    turns: TurnSearch,
    /// The last query, and its direction.
    last: (Query, bool),
    case: Case,
    filter: Filter,
    history: History,
    /// The number and the keys of a command that is not complete.
    count: Option<Count>,
    keys: Vec<Chord>,
    /// Rows of a window and of half of one, if the user has set them.
    window: Option<u64>,
    half: Option<u64>,
    /// The row from which new rows are searched while following until a match.
    until: Option<Row>,
    /// The file that a command outside reads.
    lent: Option<tempfile::NamedTempFile>,
    marks: Marks,
    marks_stale: bool,
    /// The instructions for a live session.
    instructed: Vec<Instruction>,
    /// Rows with letters, and whether they belong to the bottom.
    letters: HashMap<char, (Row, bool)>,
    notice: Option<Notice>,
    drawn: Drawn,
    tall: bool,
    counting: bool,
    changed_at: Time,
    /// A search is to begin once the place is reached.
    wants_search: bool,
    /// The program is being ended, and the viewer goes with it.
    leaving: bool,
    dirty: bool,
    now: Time,
}

impl App {
    /// A viewer at the end of its source.
    pub fn new(mut origin: Origin, options: Options) -> Self {
        if let Origin::Tape(tape) = &mut origin {
            tape.stop_at_instructions();
        }
        let instructed = match &origin {
            Origin::Live(_, Some(path)) => written_before(path),
            _ => Vec::new(),
        };
        Self {
            origin,
            options,
            mode: Mode::Read,
            scroll: Scroll { top: 0, left: 0, follow: true },
            focus: None,
            selection: None,
            search: Search::default(),
            turns: TurnSearch::default(),
            last: (Query::default(), true),
            case: Case::default(),
            filter: Filter::default(),
            history: History::default(),
            count: None,
            keys: Vec::new(),
            window: None,
            half: None,
            until: None,
            lent: None,
            marks: Marks::default(),
            marks_stale: false,
            instructed,
            letters: HashMap::new(),
            notice: None,
            drawn: Drawn::default(),
            tall: false,
            counting: false,
            changed_at: Time::ZERO,
            wants_search: false,
            leaving: false,
            dirty: true,
            now: Time::ZERO,
        }
    }

    /// Whether the user left and the program that was to be ended is over.
    pub fn has_left(&self) -> bool {
        self.leaving && matches!(&self.origin, Origin::Live(live, _) if !live.runs())
    }

    /// The source of the terminal.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Goes to a place in a recording.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn go(&mut self, goal: Goal) -> Result<(), PlayError> {
        let now = self.now;
        self.tape().map_or(Ok(()), |tape| tape.go(goal, now))
    }

    /// Goes to a share of a recording.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn go_to_share(&mut self, share: f64) -> Result<(), PlayError> {
        let now = self.now;
        self.tape().map_or(Ok(()), |tape| tape.go_to_share(share, now))
    }

    /// Goes to a marker or snapshot by its label or id; `false` when there is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn go_to_named(&mut self, name: &str) -> Result<bool, PlayError> {
        let now = self.now;
        let Some(tape) = self.tape() else { return Ok(false) };
        tape.wait_for_moments();
        let id = name.parse().ok();
        let named = tape.moments().iter().find(|m| m.label == name);
        let found =
            named.or_else(|| tape.moments().iter().find(|m| id.is_some() && m.snapshot_id() == id)).cloned();
        match found {
            Some(moment) => tape.go(Goal::from(&moment), now).map(|()| true),
            None => Ok(false),
        }
    }

    /// Plays a recording from its present place.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn play(&mut self) -> Result<(), PlayError> {
        let now = self.now;
        self.tape().map_or(Ok(()), |tape| tape.toggle(now))
    }

    /// Searches from the first row on.
    ///
    /// # Errors
    /// With the reason, when this is no regular expression.
    pub fn search_for(&mut self, pattern: &str) -> Result<(), String> {
        let query = Query { text: pattern.to_owned(), case: self.case, ..Query::default() };
        if !self.search.set(&query) {
            return Err(self.search.error.clone().unwrap_or_default());
        }
        self.last = (query, true);
        self.wants_search = true;
        Ok(())
    }

    fn term(&self) -> &Term {
        self.origin.term()
    }

    fn tape(&mut self) -> Option<&mut Tape> {
        match &mut self.origin {
            Origin::Tape(tape) => Some(tape),
            Origin::Live(..) => None,
        }
    }

    fn live(&mut self) -> Option<&mut Live> {
        match &mut self.origin {
            Origin::Live(live, _) => Some(live),
            Origin::Tape(_) => None,
        }
    }

    /// Descriptors that are readable when there is news.
    pub fn fds(&self) -> Vec<BorrowedFd<'_>> {
        match &self.origin {
            Origin::Live(live, _) if live.gone().is_none() => live.link().fd().into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Handles what is due.
    ///
    /// # Errors
    /// When the recording cannot be read on.
    pub fn tick(&mut self, now: Time) -> Result<(), PlayError> {
        self.now = now;
        let changed = match &mut self.origin {
            Origin::Tape(tape) => tape.tick(now)?,
            Origin::Live(live, _) => live.poll(),
        };
        if changed {
            (self.dirty, self.changed_at) = (true, now);
            self.look_for_until();
        }
        self.tell_hop();
        self.watch_following();
        self.dirty |= self.filter.step(self.origin.term(), search::STEP);
        self.go_to_tenth()?;
        self.watch_holder();
        if self.may_search() {
            self.wants_search = false;
            let first = rows::range(self.origin.term()).start;
            self.search.from(self.origin.term(), first, true, 1);
        }
        self.tick_turns()?;
        self.step_search()?;
        if self.notice.as_ref().is_some_and(|n| n.until <= now) {
            self.notice = None;
            self.dirty = true;
        }
        self.dirty |= self.marks_stale;
        Ok(())
    }

    fn step_search(&mut self) -> Result<(), PlayError> {
        match self.search.step(self.origin.term(), &self.filter, search::STEP) {
            Step::Idle => self.count(),
            Step::Searching => {}
            Step::Found(hit, wrapped) if self.arrive(Some((hit, wrapped))) => {}
            Step::Found(hit, true) if self.search_turns(self.search.forth, Some(hit))? => {}
            Step::Found(hit, wrapped) => self.found(hit, wrapped),
            Step::Nowhere if self.arrive(None) || self.search_turns(self.search.forth, None)? => {}
            Step::Nowhere => self.found_nowhere(),
        }
        Ok(())
    }

    fn found_nowhere(&mut self) {
        self.dirty = true;
        if !matches!(self.mode, Mode::Prompt(_)) {
            let text = format!("not found: {}", self.search.pattern());
            self.notify(text, Mood::Wrong);
        }
    }

    /// Whether the first search can begin: the viewer is at the first place,
    /// and the filter has seen all rows.
    fn may_search(&self) -> bool {
        let on_its_way = matches!(&self.origin, Origin::Tape(tape) if tape.is_on_its_way());
        self.wants_search && !on_its_way && !self.drawn.inner.is_empty()
    }

    /// Counts matches when nothing has changed for a while, because every change begins the
    /// count anew.
    fn count(&mut self) {
        self.counting = self.search.is_set();
        if !self.counting || self.now < self.changed_at + SETTLED {
            return;
        }
        let before = self.search.counted();
        self.counting = !self.search.count_step(self.origin.term(), &self.filter, search::STEP);
        self.dirty |= self.search.counted() != before;
    }

    /// A user who scrolls away from the end no longer follows it.
    fn watch_following(&mut self) {
        let at_end = self.scroll.follow;
        if let Some(tape) = self.tape().filter(|tape| !at_end && tape.is_following()) {
            tape.unfollow();
            self.notify(NO_LONGER_FOLLOWING, Mood::Calm);
        }
    }

    /// Another client may have taken the stick, or the program may have ended.
    fn watch_holder(&mut self) {
        if let Some(why) = self.live().and_then(Live::take_denial) {
            if matches!(self.mode, Mode::Type) {
                self.mode = Mode::Read;
            }
            self.notify(why, Mood::Wrong);
        }
        if let Some(warning) = self.live().and_then(Live::take_warning) {
            self.notify(warning, Mood::Wrong);
        }
        if let Some(told) = self.live().and_then(Live::take_told) {
            self.notify(told, Mood::Calm);
        }
        let Origin::Live(live, _) = &self.origin else { return };
        if matches!(self.mode, Mode::Type) && !(live.drives() && live.runs()) {
            let (text, mood) = match (live.runs(), live.holder()) {
                (false, _) => ("the program has ended".to_owned(), Mood::Calm),
                (true, Some(name)) => (format!("{name} has taken the stick"), Mood::Wrong),
                (true, None) => ("the stick is gone".to_owned(), Mood::Wrong),
            };
            self.mode = Mode::Read;
            self.notify(text, mood);
        }
    }

    /// When [`App::tick`] has something to do again, on the same clock.
    pub fn due(&mut self, now: Time) -> Option<Time> {
        let origin = match &mut self.origin {
            Origin::Tape(tape) => tape.due(now),
            Origin::Live(live, _) => live.link().look_every().map(|every| now + every),
        };
        let busy = (self.search.is_busy() || self.filter.is_busy() || self.may_search()).then_some(now);
        let turns = self.turns.is_busy().then_some(now + turns::LOOK);
        let tenth = self.count.and_then(|count| count.tenth_at);
        let count = self.counting.then_some((self.changed_at + SETTLED).max(now));
        let notice = self.notice.as_ref().map(|n| n.until);
        let marks = self.marks_stale.then_some(now + Duration::from_millis(100));
        [origin, busy, turns, tenth, count, notice, marks].into_iter().flatten().min()
    }

    /// Whether there is something new to be drawn.
    pub fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// Whether the program is in the middle of a synchronised update.
    pub fn is_half_drawn(&self) -> bool {
        self.term().modes().synchronised()
    }

    fn notify(&mut self, text: impl Into<String>, mood: Mood) {
        self.notice = Some(Notice { text: text.into(), mood, until: self.now + NOTICE });
        self.dirty = true;
    }

    /// Shows a message about an event outside.
    pub fn tell(&mut self, text: impl Into<String>, wrong: bool) {
        self.notify(text, if wrong { Mood::Wrong } else { Mood::Calm });
    }

    /// Rows in sight.
    fn height(&self) -> u16 {
        self.drawn.inner.height.max(1)
    }

    /// The rows that the filter leaves.
    fn visible(&self) -> Visible<'_> {
        Visible::of(self.origin.term(), &self.filter)
    }

    /// The first row in sight, with `height` rows in sight.
    fn top(&self, height: u16) -> Row {
        let visible = self.visible();
        let last = visible.last_top(height);
        if !self.scroll.follow {
            return visible.moved(self.scroll.top, 0).min(last);
        }
        if self.filter.is_on() {
            return last;
        }
        // In a window smaller than the terminal, blank rows at the end are cut first,
        // and the cursor stays in sight.
        let term = self.term();
        let screen = rows::screen(term);
        let cursor = u64::from(term.cursor().row);
        let used = (0..term.size().rows).rev().find(|y| term.row(*y).is_some_and(|l| !l.text().is_empty()));
        let end = screen + used.map_or(0, u64::from).max(cursor);
        (end + 1).saturating_sub(u64::from(height)).max(screen).min(screen + cursor).min(last)
    }

    /// Moves by a number of rows.
    fn scroll(&mut self, by: i64) {
        let height = self.height();
        let visible = self.visible();
        let last = visible.last_top(height);
        let to = visible.moved(self.top(height), by).min(last);
        self.scroll.follow = by > 0 && (to == last || self.scroll.follow);
        self.scroll.top = to;
    }

    fn scroll_sideways(&mut self, by: i64) {
        let hidden = self.term().size().cols.saturating_sub(self.drawn.inner.width);
        let to = i64::from(self.scroll.left).saturating_add(by);
        self.scroll.left = to.clamp(0, i64::from(hidden)) as u16;
    }

    fn go_to_top(&mut self, top: Row) {
        self.letters.insert('\'', (self.top(self.height()), false));
        let visible = self.visible();
        let last = visible.last_top(self.height());
        self.scroll = Scroll { top: visible.moved(top, 0).min(last), follow: top >= last, ..self.scroll };
    }

    /// Brings a row into sight, with rows around it.
    fn reveal(&mut self, row: Row) {
        let height = self.height();
        let visible = self.visible();
        let (top, at) = (visible.before(self.top(height)), visible.before(row));
        if at < top || at >= top + u64::from(height) {
            let top = visible.nth(at.saturating_sub(u64::from(height) / 3));
            self.go_to_top(top);
        }
    }

    fn found(&mut self, hit: Hit, wrapped: bool) {
        self.focus = Some(hit.row);
        // No other event may come that would begin the count.
        self.counting = true;
        self.reveal(hit.row);
        let width = self.drawn.inner.width;
        if hit.col < self.scroll.left || hit.end_col > self.scroll.left.saturating_add(width) {
            self.scroll.left = 0;
            self.scroll_sideways(i64::from(hit.end_col) - i64::from(width) + 4);
        }
        if wrapped && !matches!(self.mode, Mode::Prompt(_)) {
            self.notify("the search went round the end", Mood::Calm);
        }
        self.dirty = true;
    }

    /// Opens the box behind a row.
    fn write_behind(&mut self, row: Row) {
        // With a filter, every row that is pointed at is meant.
        let row = if self.filter.is_on() { row } else { rows::shown_at_or_above(self.term(), row) };
        if self.origin.path().is_none() {
            self.notify("this session is not recorded: an instruction has nowhere to be kept", Mood::Wrong);
            return;
        }
        if let Some(tape) = self.tape() {
            tape.pause();
            tape.learn_within(PATIENCE);
            if !tape.knows_moments() {
                self.notify(STILL_LOOKING, Mood::Calm);
                return;
            }
        }
        self.refresh_marks();
        let old = self.marks.instruction_at(row).and_then(|n| self.instructions().get(n)).cloned();
        let anchor = rows::written(self.term(), row);
        let snapshot = nearest_snapshot(self.origin.moments(), Offset(anchor)).cloned();
        self.focus = Some(row);
        self.scroll = Scroll { top: self.top(self.height()), follow: false, ..self.scroll };
        self.mode = Mode::Write(Box::new(Instruct::new(row, anchor, snapshot, old, self.options.styles)));
    }

    /// The instructions about what is shown.
    fn instructions(&self) -> &[Instruction] {
        match &self.origin {
            Origin::Tape(tape) => tape.instructions(),
            Origin::Live(..) => &self.instructed,
        }
    }

    /// Keeps the instruction.
    fn submit(&mut self, wall: WallTime) {
        let Mode::Write(written) = &self.mode else { return };
        let changes = written.changes();
        let Some(instruction) = written.instruction(wall) else {
            self.mode = Mode::Read;
            let done = if changes { "changed" } else { "written" };
            self.notify(format!("nothing was {done}, so nothing is kept"), Mood::Calm);
            return;
        };
        let Some(path) = self.origin.path().map(Path::to_owned) else { return };
        let kept = match keep(&path, &instruction) {
            Ok(kept) => kept,
            Err(why) => {
                // The text stays in the box.
                self.notify(format!("not kept: {why}"), Mood::Wrong);
                return;
            }
        };
        match &mut self.origin {
            Origin::Tape(tape) => tape.instructed(instruction.clone()),
            Origin::Live(..) => instruction.clone().apply_to(&mut self.instructed),
        }
        self.marks.forget();
        self.mode = Mode::Read;
        let name = kept.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let done = if instruction.deleted { "deleted" } else { "kept" };
        self.notify(format!("{done} in {name}"), Mood::Going);
        if !instruction.deleted && !self.options.branch_command.is_empty() && instruction.snapshot.is_some() {
            self.mode = Mode::AskBranch(Box::new(instruction));
        }
    }
}

/// The instructions in a recording in progress. Those of an encrypted one cannot be read.
fn written_before(path: &Path) -> Vec<Instruction> {
    let source = Source::find(path, None, None).ok();
    source.and_then(|source| source.instructions().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
