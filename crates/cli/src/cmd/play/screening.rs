//! A recording on the user's terminal.
//!
//! The picture is painted from the model, at the recording's own size, on the alternate screen. So
//! a terminal gets text, colors and cursor positions, and nothing else that a recording contains.
//! At the end, the lines that the recording left go to the terminal's own screen and scrollback.
//! Standard output that is not a terminal gets the program's bytes.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::time::Duration;

use tapdeck_cli::keymap::{Action, Keymap};
use tapdeck_cli::tape::{NO_MARKER, Stop, Tape};
use tapdeck_core::{Offset, Time};
use tapdeck_host::{Clock, Goal, Keyboard, Player, Pressed};
use tapdeck_tape::Kind;
use tapdeck_term::keys::{Key, KeyPress, Mods};
use tapdeck_term::{FilterOptions, ReplayFilter, Size, Theme};

use super::keys::Decoder;
use super::search::{self, Search, Step};
use super::status::{self, Status};
use super::{PlayArgs, Stopped, ended, go_to, moment_name};
use crate::config::Config;
use crate::ending::Ending;
use crate::human;
use crate::screen::crop::{Crop, Overlay, Room};
use crate::screen::write_lines;

const SECOND: i64 = 1_000_000_000;
/// The least time between two paintings.
const FRAME: Duration = Duration::from_nanos(1_000_000_000 / 60);
/// How long a frame that the program does not end is held back.
const HALF_DRAWN: Duration = Duration::from_millis(150);
/// How long the status line stays after a key where the picture needs its row.
const ANNOUNCE: Duration = Duration::from_millis(1_500);
/// How long a notice stays.
const NOTICE: Duration = Duration::from_secs(3);
/// After so long without more, a lone Escape is the key.
const ESCAPE_WAIT: Duration = Duration::from_millis(30);
/// With --loop, the least time between two starts.
const LEAST_TURN: Duration = Duration::from_millis(250);

/// What a painted picture needs, and what undoes it.
const ON: &[u8] = b"\x1b[?1049h\x1b[?25l";
const OFF: &[u8] = b"\x1b[?2026l\x1b[m\x1b[?25h\x1b[?1049l";

/// How the recording is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Standard output is no terminal and gets the program's bytes.
    Exact,
    /// Painted from the model.
    Painted,
}

/// What keys do.
enum Mode {
    Watch,
    /// The keys are shown, from this line on.
    Help(usize),
    /// A pattern is being typed.
    Prompt(String),
}

/// A recording being shown.
pub(super) struct Screening<'a> {
    args: &'a PlayArgs,
    tape: Tape,
    keyboard: Keyboard,
    clock: Clock,
    way: Way,
    /// Takes the styles out of bytes that are not painted.
    filter: ReplayFilter,
    out: Vec<u8>,
    crop: Crop,
    /// The first row and column in sight, once the user has chosen them.
    pan: Option<(u16, u16)>,
    keymap: Keymap,
    decoder: Decoder,
    mode: Mode,
    notice: Option<(String, Time)>,
    /// Until when the status line is shown even if the picture needs its row.
    announce_until: Option<Time>,
    /// The picture differs from what was painted.
    stale: bool,
    painted: Option<Time>,
    /// The jumps that the player had made then.
    jumps: u64,
    search: Option<Search>,
    pattern: String,
    /// When the last round began.
    begun: Time,
}

impl<'a> Screening<'a> {
    /// Prepares to show a recording; with a theme, in its colours.
    pub(super) fn new(
        args: &'a PlayArgs,
        config: &Config,
        theme: Option<Theme>,
        mut player: Player,
    ) -> Result<Self, Stopped> {
        let colours = args.has_colours();
        let keyboard = Keyboard::take_of_terminal()?;
        if let Some(size) = size_of(&keyboard) {
            player.assume_size(size);
        }
        if keyboard.is_there() {
            player.look_ahead();
        }
        if let Some(place) = &args.at {
            go_to(&mut player, place)?;
        }
        let mut tape = Tape::of(player);
        tape.set_pace(
            args.speed.unwrap_or(config.play.speed),
            args.idle_time_limit.or(config.play.idle_limit.0),
        );
        Ok(Self {
            args,
            tape,
            keyboard,
            clock: Clock::start(),
            way: Way::Exact,
            filter: filter_of(colours),
            out: Vec::new(),
            crop: Crop::centred(colours, theme.filter(|_| colours)),
            pan: None,
            // Reading the configuration has checked the keys.
            keymap: config.keymap().unwrap_or_default(),
            decoder: Decoder::default(),
            mode: Mode::Watch,
            notice: None,
            announce_until: None,
            stale: false,
            painted: None,
            jumps: 0,
            search: None,
            pattern: String::new(),
            begun: Time::ZERO,
        })
    }

    pub(super) fn run(mut self) -> Result<Ending, Stopped> {
        self.open();
        let result = self.watch();
        let closed = self.close();
        let ending = result?;
        if ending != Ending::Done {
            // A terminal that has gone cannot be left in disorder.
            return Ok(ending);
        }
        closed?;
        let Self { mut tape, keyboard, .. } = self;
        drop(keyboard);
        Ok(ended(tape.player()))
    }

    /// Chooses how to show the recording, and makes room for it.
    fn open(&mut self) {
        if size_of(&self.keyboard).is_none() {
            return;
        }
        self.way = Way::Painted;
        let (on, off) = dress_of(self.crop.theme());
        self.keyboard.dress(&on, &off);
        self.out.extend_from_slice(&on);
        self.repaint();
    }

    /// Shows the recording until it ends or the user leaves.
    fn watch(&mut self) -> Result<Ending, Stopped> {
        let now = self.clock.now().mono;
        self.begun = now;
        self.tape.play(now)?;
        loop {
            if let ControlFlow::Break(ending) = self.turn()? {
                return Ok(ending);
            }
        }
    }

    fn turn(&mut self) -> Result<ControlFlow<Ending>, Stopped> {
        let now = self.clock.now().mono;
        if let ControlFlow::Break(ending) = self.advance(now)? {
            return Ok(ControlFlow::Break(ending));
        }
        if self.notice.as_ref().is_some_and(|(_, until)| *until <= now) {
            (self.notice, self.stale) = (None, true);
        }
        if self.announce_until.is_some_and(|until| until <= now) {
            // The picture gets its last row back.
            (self.announce_until, self.stale) = (None, true);
        }
        let may_paint_at = self.painted.map_or(now, |last| {
            last + if self.tape.term().modes().synchronised() { HALF_DRAWN } else { FRAME }
        });
        if self.way == Way::Painted && self.stale && may_paint_at <= now {
            self.paint(now);
        }
        self.flush()?;
        let mut due = vec![self.tape.due(now)];
        if self.tape.is_over() {
            due.push(Some(self.begun + LEAST_TURN));
        }
        if self.way == Way::Painted {
            due.push(self.stale.then_some(may_paint_at));
            due.push(self.notice.as_ref().map(|(_, until)| *until));
            due.push(self.announce_until);
            due.push(self.search.as_ref().map(|_| now));
        }
        let due = due.into_iter().flatten().min();
        let mut limit = due.map(|due| due.since(now));
        if self.decoder.is_waiting() {
            limit = Some(limit.map_or(ESCAPE_WAIT, |l| l.min(ESCAPE_WAIT)));
        }
        let keys = match self.keyboard.wait(limit)? {
            Pressed::Signal(signal) => return Ok(ControlFlow::Break(Ending::by_signal(signal))),
            Pressed::Keys(bytes) => self.decoder.push(&bytes),
            Pressed::Repaint => {
                self.repaint();
                Vec::new()
            }
            Pressed::Suspend => {
                self.keyboard.suspend()?;
                self.repaint();
                Vec::new()
            }
            Pressed::Nothing if self.decoder.is_waiting() => self.decoder.flush(),
            Pressed::Nothing => Vec::new(),
        };
        for key in keys {
            if let ControlFlow::Break(ending) = self.press(key)? {
                return Ok(ControlFlow::Break(ending));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Plays what is due, and goes on with a search.
    fn advance(&mut self, now: Time) -> Result<ControlFlow<Ending>, Stopped> {
        if let Some(search) = &mut self.search {
            let step = search.step(self.tape.player())?;
            self.searched(step, now)?;
            return Ok(ControlFlow::Continue(()));
        }
        let (way, plain) = (self.way, !self.crop.colours());
        let (out, filter) = (&mut self.out, &mut self.filter);
        self.stale |= self.tape.tick_with(now, |event| match event {
            Kind::Output(bytes) if way == Way::Exact && plain => filter.filter(bytes, out),
            Kind::Output(bytes) if way == Way::Exact => out.extend_from_slice(bytes),
            _ => {}
        })?;
        self.tell_hop(now);
        if !self.tape.is_over() {
            return Ok(ControlFlow::Continue(()));
        }
        if !self.args.r#loop {
            return Ok(ControlFlow::Break(Ending::Done));
        }
        // A recording without duration would keep the machine busy.
        if now >= self.begun + LEAST_TURN {
            self.begun = now;
            self.tape.restart(now)?;
            self.stale = true;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Has everything painted anew.
    fn repaint(&mut self) {
        self.crop.forget();
        (self.stale, self.painted) = (true, None);
    }

    fn paint(&mut self, now: Time) {
        let screen = size_of(&self.keyboard).unwrap_or(Size::new(80, 24));
        let size = self.tape.term().size();
        let cut = size.cols > screen.cols || size.rows > screen.rows;
        let there = self.keyboard.is_there();
        let busy = self.notice.is_some() || !matches!(self.mode, Mode::Watch) || self.search.is_some();
        let announced = !self.tape.plays() || self.announce_until.is_some() || busy;
        // The line has a row of its own, which a picture as high as the terminal gives up while the
        // line is shown. The view follows the cursor, so what is being typed stays in sight.
        let has_line = screen.rows > 1 && (cut || (there && (announced || size.rows < screen.rows)));
        let room = Room {
            cols: screen.cols,
            rows: screen.rows,
            free: screen.rows - u16::from(has_line),
            pan: self.pan,
        };
        let layout = self.crop.layout_of(self.tape.term(), room);
        let mut over = Overlay::default();
        if has_line {
            let text = match &self.mode {
                Mode::Prompt(text) => Some(format!("/{text}▏")),
                _ if self.search.is_some() => Some(format!("searching for {} …", self.pattern)),
                _ => self.notice.as_ref().map(|(text, _)| text.clone()),
            };
            let help = self.keymap.help(|action| action == Action::Help);
            let line = Status {
                at: self.tape.at(now),
                end: self.tape.end(),
                paused: !self.tape.plays(),
                speed: self.tape.speed(),
                help: help.first().map_or("?", |(keys, _)| keys),
                notice: text.as_deref(),
                cut: layout.hides(size).then_some((layout.shown, size)),
            }
            .line(screen.cols);
            over.rows = screen.rows - 1..screen.rows;
            over.bytes = format!("\x1b[{};1H\x1b[0;7m{line}\x1b[m", screen.rows).into_bytes();
        }
        if let Mode::Help(top) = &mut self.mode {
            let (bytes, rows, first) = status::help(&self.keymap, screen.cols, room.free, *top);
            *top = first;
            over.bytes.extend_from_slice(&bytes);
            over.rows = if over.rows.is_empty() { rows } else { rows.start..over.rows.end };
        }
        let jumps = self.tape.player().jumps();
        if std::mem::replace(&mut self.jumps, jumps) != jumps {
            self.crop.forget();
        }
        self.crop.paint(self.tape.term(), room, &over, &mut self.out);
        (self.stale, self.painted) = (false, Some(now));
    }

    fn press(&mut self, key: KeyPress) -> Result<ControlFlow<Ending>, Stopped> {
        let suspend = KeyPress::new(Key::Char('z'), Mods::CTRL);
        let action = self.keymap.action_of(key);
        if key == suspend {
            self.flush()?;
            self.keyboard.suspend()?;
            self.repaint();
            return Ok(ControlFlow::Continue(()));
        }
        match &mut self.mode {
            Mode::Help(top) => {
                match (action, key.key) {
                    (Some(Action::PanDown), _) => *top = top.saturating_add(1),
                    (Some(Action::PanUp), _) => *top = top.saturating_sub(1),
                    (Some(Action::Pause), _) | (_, Key::PageDown) => *top = top.saturating_add(8),
                    (_, Key::PageUp) => *top = top.saturating_sub(8),
                    _ => self.mode = Mode::Watch,
                }
                self.stale = true;
            }
            Mode::Prompt(_) => self.edit(key)?,
            Mode::Watch => match action {
                Some(Action::Quit) => return Ok(ControlFlow::Break(Ending::Done)),
                Some(action) => self.obey(action)?,
                None if key.key == Key::Escape => self.stop_search()?,
                None if key == KeyPress::new(Key::Char('d'), Mods::CTRL) => {
                    return Ok(ControlFlow::Break(Ending::Done));
                }
                None => {}
            },
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Does what a key asks for, and has the status line say so.
    fn obey(&mut self, action: Action) -> Result<(), Stopped> {
        self.stop_search()?;
        let now = self.clock.now().mono;
        (self.stale, self.notice) = (true, None);
        self.announce_until = Some(now + ANNOUNCE);
        let tape = &mut self.tape;
        match action {
            Action::Pause => tape.toggle(now)?,
            Action::StepOn => tape.step_forth()?,
            Action::StepBack => tape.step_back()?,
            Action::SkipOn => tape.skip(5 * SECOND, now)?,
            Action::SkipBack => tape.skip(-5 * SECOND, now)?,
            Action::LongSkipOn => tape.skip(60 * SECOND, now)?,
            Action::LongSkipBack => tape.skip(-60 * SECOND, now)?,
            Action::MarkerOn => tape.hop(true, now)?,
            Action::MarkerBack => tape.hop(false, now)?,
            Action::Tenth(n) => tape.go_to_share(f64::from(n) / 10.0, now)?,
            Action::Start => tape.go(Goal::Time(Time::ZERO), now)?,
            Action::End => {
                tape.pause();
                tape.go(Goal::Byte(Offset::MAX), now)?;
            }
            Action::Faster => tape.change_speed(true, now),
            Action::Slower => tape.change_speed(false, now),
            Action::Search => self.mode = Mode::Prompt(String::new()),
            Action::Next => self.search()?,
            Action::PanUp | Action::PanDown | Action::PanLeft | Action::PanRight | Action::Follow => {
                self.pan(action, now);
            }
            Action::Help => self.mode = Mode::Help(0),
            Action::Quit => {}
        }
        self.tell_hop(now);
        Ok(())
    }

    /// Moves the part in sight by half of what is in sight.
    fn pan(&mut self, action: Action, now: Time) {
        let (layout, size) = (self.crop.layout(), self.tape.term().size());
        if !layout.hides(size) {
            return self.notify("all of it is in sight", now);
        }
        // Several keys may come before the next painting.
        let (row, col) = self.pan.unwrap_or(layout.corner);
        let (down, right) = ((layout.shown.0 / 2).max(1), (layout.shown.1 / 2).max(1));
        let (last_row, last_col) = (size.rows - layout.shown.0, size.cols - layout.shown.1);
        self.pan = match action {
            Action::PanUp => Some((row.saturating_sub(down), col)),
            Action::PanDown => Some(((row + down).min(last_row), col)),
            Action::PanLeft => Some((row, col.saturating_sub(right))),
            Action::PanRight => Some((row, (col + right).min(last_col))),
            _ => None,
        };
        let text = match self.pan {
            Some((row, col)) => format!("from row {}, column {}; F follows the cursor", row + 1, col + 1),
            None => "follows the cursor".to_owned(),
        };
        self.notify(&text, now);
    }

    fn notify(&mut self, text: &str, now: Time) {
        self.notice = Some((human::printable(text), now + NOTICE));
        self.stale = true;
    }

    /// Shows where a jump to a marker went, as soon as it is known.
    fn tell_hop(&mut self, now: Time) {
        match self.tape.take_hop() {
            Some(Some(Stop::Moment(moment))) => self.notify(&moment_name(&moment), now),
            Some(Some(Stop::Instruction(instruction))) => self.notify(&instruction.text, now),
            Some(None) => self.notify(NO_MARKER, now),
            None => {}
        }
    }

    /// Takes a key of the pattern.
    fn edit(&mut self, key: KeyPress) -> Result<(), Stopped> {
        let Mode::Prompt(text) = &mut self.mode else { return Ok(()) };
        self.stale = true;
        match key.key {
            Key::Char('c') if key.mods == Mods::CTRL => self.mode = Mode::Watch,
            Key::Char('u') if key.mods == Mods::CTRL => text.clear(),
            Key::Char(c) if key.mods == Mods::NONE => text.push(c),
            Key::Escape => self.mode = Mode::Watch,
            Key::Backspace if text.pop().is_none() => self.mode = Mode::Watch,
            Key::Enter => {
                if !text.is_empty() {
                    self.pattern = std::mem::take(text);
                }
                self.mode = Mode::Watch;
                self.search()?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Begins to search for the pattern from here on.
    fn search(&mut self) -> Result<(), Stopped> {
        let now = self.clock.now().mono;
        if self.pattern.is_empty() {
            self.notify("nothing to search for: type / and a pattern", now);
            return Ok(());
        }
        match search::pattern(&self.pattern) {
            Ok(regex) => {
                self.tape.pause();
                self.search = Some(Search::new(regex, self.tape.player()));
            }
            Err(why) => self.notify(&format!("{}: {why}", self.pattern), now),
        }
        Ok(())
    }

    /// Takes note of what a search came to.
    fn searched(&mut self, step: Step, now: Time) -> Result<(), Stopped> {
        match step {
            Step::Searching => {}
            Step::Found => {
                self.search = None;
                self.notify(&format!("found {}; n finds the next", self.pattern), now);
            }
            Step::Nowhere => {
                self.stop_search()?;
                self.notify(&format!("not found after this place: {}", self.pattern), now);
            }
        }
        Ok(())
    }

    /// Ends a search, back where it began.
    fn stop_search(&mut self) -> Result<(), Stopped> {
        if let Some(search) = self.search.take() {
            self.tape.go(search.began(), self.clock.now().mono)?;
            self.stale = true;
        }
        Ok(())
    }

    /// Gives the terminal back: with the lines that the recording left, sane modes, and the cursor
    /// on a free line below.
    fn close(&mut self) -> Result<(), Stopped> {
        if self.way == Way::Exact {
            return self.flush();
        }
        let term = self.tape.term();
        self.keyboard.dress(b"", b"");
        self.crop.leave(&mut self.out);
        self.out.extend_from_slice(&dress_of(self.crop.theme()).1);
        let mut main = term.clone();
        // A program that still has the alternate screen leaves the lines that it covers.
        main.feed(&term.undo_modes());
        write_lines(&main, self.crop.colours(), &mut self.out);
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Stopped> {
        if !self.out.is_empty() {
            let mut stdout = io::stdout().lock();
            stdout.write_all(&self.out)?;
            stdout.flush()?;
            self.out.clear();
        }
        Ok(())
    }
}

/// The size of the terminal that shows the output, if one does.
fn size_of(keyboard: &Keyboard) -> Option<Size> {
    let size = keyboard.screen_size()?.or_default();
    Some(Size::new(size.cols, size.rows))
}

/// What a painted picture needs, and what undoes it. A theme has a cursor of its own, because that
/// of the terminal might not be seen on its background.
fn dress_of(theme: Option<Theme>) -> (Vec<u8>, Vec<u8>) {
    let Some(theme) = theme else { return (ON.to_owned(), OFF.to_owned()) };
    let cursor = format!("\x1b]12;{}\x1b\\", theme.cursor);
    ([ON, cursor.as_bytes()].concat(), [b"\x1b]112\x1b\\", OFF].concat())
}

fn filter_of(colours: bool) -> ReplayFilter {
    ReplayFilter::new(FilterOptions::default().strip_sgr(!colours))
}
