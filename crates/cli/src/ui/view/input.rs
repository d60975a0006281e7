//! Handles keys and the mouse.

use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;
use tapdeck_core::{Offset, Time, WallTime};
use tapdeck_host::{Goal, PlayError};

use super::commands::{Act, Chord, Found};
use super::filter::Visible;
use super::instruct::{BoxAction, branch_command, name_of, summary_of};
use super::prompt::Purpose;
use super::rows::{self, Row};
use super::{App, Count, Effect, Letter, Mode, Mood, Origin, PATIENCE, STILL_LOOKING, Tape, timeline};
use crate::human;
use crate::tape::{NO_MARKER, Stop};
use crate::ui::line_edit::Edited;

const WHEEL: i64 = 3;
const WHEEL_COLUMNS: i64 = 8;
/// The largest count.
const MAX_COUNT: u64 = 999_999_999;
/// How long a digit stays single before it jumps to that tenth of the recording.
const ALONE: Duration = Duration::from_millis(500);

impl App {
    /// Handles an event of the user. `wall` is the time of day, for instructions.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn on_event(&mut self, event: &Event, now: Time, wall: WallTime) -> Result<Effect, PlayError> {
        self.now = now;
        self.dirty = true;
        if matches!(event, Event::Key(_)) {
            // A key dismisses the notice.
            self.notice = None;
        }
        match &self.mode {
            Mode::Type => return Ok(self.on_typed(event)),
            Mode::Write(_) => return Ok(self.on_written(event, wall)),
            _ => {}
        }
        match event {
            Event::Key(key) => self.on_key(*key),
            Event::Mouse(mouse) => self.on_mouse(*mouse),
            Event::Paste(text) => {
                if let Mode::Prompt(prompt) = &mut self.mode
                    && prompt.paste(text) == Edited::Changed
                {
                    self.search_typed();
                }
                Ok(Effect::Nothing)
            }
            _ => Ok(Effect::Nothing),
        }
    }

    fn on_key(&mut self, key: KeyEvent) -> Result<Effect, PlayError> {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        if ctrl && key.code == KeyCode::Char('z') && !matches!(self.mode, Mode::Read) {
            return Ok(Effect::Suspend);
        }
        match &mut self.mode {
            Mode::Prompt(_) => return Ok(self.on_prompt_key(key)),
            Mode::Help(_) => self.on_help_key(key),
            Mode::AskQuit => return Ok(self.on_quit_answer(key)),
            Mode::AskBranch(_) => return Ok(self.on_branch_answer(key)),
            Mode::Letter(letter) => {
                let letter = *letter;
                self.mode = Mode::Read;
                self.on_letter(letter, key);
            }
            Mode::Pair { forth, own, nth } => {
                let (forth, own, nth) = (*forth, *own, *nth);
                self.mode = Mode::Read;
                match (key.code, own) {
                    (KeyCode::Char(c), None) => self.mode = Mode::Pair { forth, own: Some(c), nth },
                    (KeyCode::Char(c), Some(first)) => self.go_to_partner(first, c, forth, nth),
                    _ => {}
                }
            }
            Mode::Flag { change } => {
                let change = *change;
                self.mode = Mode::Read;
                self.on_flag(change, key);
            }
            Mode::Read => return self.on_read_key(key),
            Mode::Write(_) | Mode::Type => {}
        }
        Ok(Effect::Nothing)
    }

    /// Collects keys into commands, and numbers before them into counts.
    fn on_read_key(&mut self, key: KeyEvent) -> Result<Effect, PlayError> {
        let interrupts = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        if interrupts && self.stop_following() {
            return Ok(Effect::Nothing);
        }
        self.until = None;
        let (escape, chord) = Chord::of(key);
        let bare = self.keys.is_empty() && escape.is_none() && !key.modifiers.contains(KeyModifiers::CONTROL);
        match (key.code, self.count) {
            (KeyCode::Char(c @ '0'..='9'), _) if bare => return self.on_digit(c).map(|()| Effect::Nothing),
            (KeyCode::Backspace, Some(count)) if bare => {
                let n = count.n / 10;
                self.count = (n > 0).then_some(Count { n, tenth_at: None });
                return Ok(Effect::Nothing);
            }
            (KeyCode::Esc, Some(_)) if bare => {
                self.count = None;
                return Ok(Effect::Nothing);
            }
            _ => {}
        }
        if let Some(count) = &mut self.count {
            count.tenth_at = None;
        }
        self.keys.extend(escape);
        self.keys.push(chord);
        if self.keys == [Chord::ESCAPE] {
            self.stop();
            self.selection = None;
        }
        let tables = self.key_tables();
        let found = match tables.look_up(&self.options.keymap, &self.keys) {
            // A key that does not continue the keys before it may be a command alone.
            Found::Nothing if self.keys.len() > 1 => {
                self.keys = vec![chord];
                tables.look_up(&self.options.keymap, &self.keys)
            }
            found => found,
        };
        if found == Found::Begun {
            return Ok(Effect::Nothing);
        }
        self.keys.clear();
        let count = self.count.take().map(|count| count.n);
        match found {
            Found::Act(act) => self.act(act, count),
            _ => Ok(Effect::Nothing),
        }
    }

    fn on_digit(&mut self, c: char) -> Result<(), PlayError> {
        let digit = u64::from(u32::from(c) - u32::from('0'));
        let tape = matches!(self.origin, Origin::Tape(_));
        self.count = match self.count {
            Some(count) => Some(Count { n: (count.n * 10 + digit).min(MAX_COUNT), tenth_at: None }),
            // No number begins with 0, so the key need not wait.
            None if digit == 0 => return self.seek_tenth(0),
            None => Some(Count { n: digit, tenth_at: tape.then_some(self.now + ALONE) }),
        };
        Ok(())
    }

    /// Jumps to the tenth of the recording that a single digit means.
    pub(super) fn go_to_tenth(&mut self) -> Result<(), PlayError> {
        let Some(Count { n, tenth_at: Some(at) }) = self.count else { return Ok(()) };
        if at > self.now {
            return Ok(());
        }
        self.count = None;
        self.dirty = true;
        self.seek_tenth(n)
    }

    fn seek_tenth(&mut self, tenth: u64) -> Result<(), PlayError> {
        let now = self.now;
        let Some(tape) = self.tape() else { return Ok(()) };
        tape.go_to_share(tenth as f64 / 10.0, now)?;
        self.scroll.follow = true;
        Ok(())
    }

    /// Cancels a search or a jump.
    fn stop(&mut self) {
        if let Some(tape) = self.tape().filter(|tape| tape.is_on_its_way()) {
            tape.pause();
        }
        self.search.stop();
        self.leave_turns();
    }

    fn on_help_key(&mut self, key: KeyEvent) {
        let page = usize::from(self.height());
        let tables = self.key_tables();
        let Mode::Help(top) = &mut self.mode else { return };
        let found = tables.look_up(&self.options.keymap, &[Chord::of(key).1]);
        *top = match found {
            // On the help page the space key turns the page, even if it plays elsewhere.
            Found::Act(Act::PageOn | Act::Play | Act::WindowOn) => top.saturating_add(page),
            Found::Act(Act::LineOn | Act::Type) => top.saturating_add(1),
            Found::Act(Act::LineBack) => top.saturating_sub(1),
            Found::Act(Act::PageBack | Act::WindowBack) => top.saturating_sub(page),
            Found::Act(Act::HalfOn) => top.saturating_add(page / 2),
            Found::Act(Act::HalfBack) => top.saturating_sub(page / 2),
            Found::Act(Act::First) => 0,
            Found::Act(Act::Last) => usize::MAX,
            _ => {
                self.mode = Mode::Read;
                return;
            }
        };
    }

    /// The row that is meant: the one found or clicked, while it is in sight; else the last that
    /// shows something.
    pub(super) fn meant_row(&self) -> Row {
        let page = self.visible().page(self.top(self.height()), self.height());
        let last = page.last().copied().unwrap_or(self.scroll.top);
        self.focus.filter(|row| page.contains(row)).unwrap_or(last)
    }

    /// Goes to the row of the next snapshot or instruction, or of the one before the meant row: by
    /// rows if it lies in the past, by time if it is still to come.
    pub(super) fn go_to_mark(&mut self, forth: bool) -> Result<(), PlayError> {
        let knows = match &mut self.origin {
            Origin::Tape(tape) => {
                tape.learn_within(PATIENCE);
                tape.knows_moments()
            }
            Origin::Live(..) => true,
        };
        if !knows {
            self.notify(STILL_LOOKING, Mood::Calm);
            return Ok(());
        }
        self.refresh_marks();
        // Several marks at one row are one stop.
        let here = match (self.focus, forth) {
            (Some(row), _) => Some(row),
            (None, true) => None,
            (None, false) => Some(Row::MAX),
        };
        let there = self.marks.snapshots().iter().chain(self.marks.instructions()).map(|(row, _)| *row);
        let row = if forth {
            there.filter(|row| here.is_none_or(|here| *row > here)).min()
        } else {
            there.filter(|row| here.is_some_and(|here| *row < here)).max()
        };
        if let Some(row) = row {
            self.focus = Some(row);
            self.reveal(row);
            let snapshots = there_at(self.marks.snapshots(), row);
            let snapshots = snapshots.filter_map(|i| self.origin.moments().get(i)).map(name_of);
            let instructions = there_at(self.marks.instructions(), row);
            let instructions = instructions.filter_map(|i| self.instructions().get(i)).map(summary_of);
            let names: Vec<String> = snapshots.chain(instructions).collect();
            self.notify(names.join(", "), Mood::Calm);
            return Ok(());
        }
        let now = self.now;
        if forth && let Origin::Tape(tape) = &mut self.origin {
            let offset = tape.offset().0;
            let next =
                tape.moments().iter().find(|m| m.anchor > offset && m.snapshot_id().is_some()).cloned();
            if let Some(next) = next {
                tape.pause();
                tape.go(Goal::from(&next), now)?;
                (self.focus, self.scroll.follow) = (None, true);
                self.notify(name_of(&next), Mood::Calm);
                return Ok(());
            }
        }
        let any = self.origin.moments().iter().any(|m| m.snapshot_id().is_some());
        let text = match (any || !self.instructions().is_empty(), forth) {
            (false, _) => "there are no snapshots and no instructions",
            (true, true) => "that was the last one",
            (true, false) => "that was the first one",
        };
        self.notify(text, Mood::Calm);
        Ok(())
    }

    /// Goes to the next marker, snapshot or instruction in time, or to the one before.
    pub(super) fn go_to_moment(&mut self, forth: bool) -> Result<(), PlayError> {
        let now = self.now;
        let Origin::Tape(tape) = &mut self.origin else { return Ok(()) };
        tape.hop(forth, now)?;
        self.tell_hop();
        Ok(())
    }

    /// Shows where a jump to a marker went, as soon as it is known.
    pub(super) fn tell_hop(&mut self) {
        match self.tape().and_then(Tape::take_hop) {
            Some(Some(Stop::Moment(moment))) => {
                (self.focus, self.scroll.follow) = (None, true);
                self.notify(name_of(&moment), Mood::Calm);
            }
            Some(Some(Stop::Instruction(instruction))) => {
                (self.focus, self.scroll.follow) = (instruction.line, true);
                self.notify(summary_of(&instruction), Mood::Calm);
            }
            Some(None) => self.notify(NO_MARKER, Mood::Calm),
            None => {}
        }
    }

    fn on_letter(&mut self, letter: Letter, key: KeyEvent) {
        let KeyCode::Char(c) = key.code else { return };
        let (top, height) = (self.top(self.height()), self.height());
        let page = self.visible().page(top, height);
        let bottom = page.last().copied().unwrap_or(top);
        match letter {
            Letter::MarkTop | Letter::MarkBottom if c.is_alphabetic() => {
                let at_bottom = letter == Letter::MarkBottom;
                self.letters.insert(c, (if at_bottom { bottom } else { top }, at_bottom));
                return self.notify(format!("mark {c} set"), Mood::Calm);
            }
            Letter::MarkTop | Letter::MarkBottom => {
                return self.notify("a mark has the name of a letter", Mood::Wrong);
            }
            Letter::Forget if self.letters.remove(&c).is_some() => {
                return self
                    .notify(format!("mark {} forgotten", human::printable(&c.to_string())), Mood::Calm);
            }
            Letter::PipeTo if c == '.' => {
                return self.open_prompt(Purpose::Pipe { from: top, to: bottom }, 1);
            }
            _ => {}
        }
        let range = rows::range(self.term());
        let (row, at_bottom) = match (c, self.letters.get(&c).copied()) {
            ('^', _) => (range.start, false),
            ('$', _) => (range.end - 1, true),
            (_, Some(mark)) => mark,
            _ => {
                let text = format!("mark {} is not set", human::printable(&c.to_string()));
                return self.notify(text, Mood::Wrong);
            }
        };
        match letter {
            Letter::GoTo if at_bottom => self.put_at_bottom(row),
            Letter::GoTo => self.go_to_top(row),
            // As in less: from the top to the mark, or from the mark to the bottom.
            Letter::PipeTo if row < top => self.open_prompt(Purpose::Pipe { from: row, to: bottom }, 1),
            Letter::PipeTo => self.open_prompt(Purpose::Pipe { from: top, to: row }, 1),
            _ => {}
        }
    }

    /// Brings a row to the bottom of what is in sight.
    pub(super) fn put_at_bottom(&mut self, row: Row) {
        let top = self.visible().moved(row, 1 - i64::from(self.height()));
        self.go_to_top(top);
    }

    fn on_written(&mut self, event: &Event, wall: WallTime) -> Effect {
        if let Event::Mouse(mouse) = event {
            match mouse.kind {
                MouseEventKind::ScrollUp => self.scroll(-WHEEL),
                MouseEventKind::ScrollDown => self.scroll(WHEEL),
                _ => {}
            }
            return Effect::Nothing;
        }
        let Mode::Write(written) = &mut self.mode else { return Effect::Nothing };
        match written.input(event) {
            BoxAction::Nothing => {}
            BoxAction::Close => self.mode = Mode::Read,
            BoxAction::Submit => self.submit(wall),
            BoxAction::TooLong => self.notify("that is more than an instruction may hold", Mood::Wrong),
            BoxAction::Move(by) => {
                written.row = Visible::of(self.origin.term(), &self.filter).moved(written.row, by);
                written.anchor = rows::written(self.origin.term(), written.row);
                let nearest = tapdeck_tape::nearest_snapshot(self.origin.moments(), Offset(written.anchor));
                written.snapshot = nearest.cloned();
                self.focus = Some(written.row);
            }
        }
        Effect::Nothing
    }

    fn on_branch_answer(&mut self, key: KeyEvent) -> Effect {
        let Mode::AskBranch(instruction) = std::mem::replace(&mut self.mode, Mode::Read) else {
            return Effect::Nothing;
        };
        match (key.code, self.origin.path()) {
            (KeyCode::Char('y' | 'Y') | KeyCode::Enter, Some(path)) => {
                Effect::Run(branch_command(&self.options.branch_command, path, &instruction))
            }
            _ => Effect::Nothing,
        }
    }

    pub(super) fn quit(&mut self) -> Effect {
        match &self.origin {
            Origin::Live(live, _) if live.runs() && !self.leaving => {
                self.mode = Mode::AskQuit;
                Effect::Nothing
            }
            _ => Effect::Quit,
        }
    }

    fn on_quit_answer(&mut self, key: KeyEvent) -> Effect {
        self.mode = Mode::Read;
        let Some(live) = self.live() else { return Effect::Quit };
        match key.code {
            KeyCode::Char('e' | 'E') => {
                live.link_mut().end();
                // The viewer stays to show how the program ends.
                self.leaving = true;
                self.notify("the program is being ended; q leaves before that", Mood::Calm);
                // The notice stays until then.
                self.notice.iter_mut().for_each(|notice| notice.until = Time::MAX);
                Effect::Nothing
            }
            KeyCode::Enter | KeyCode::Char('y' | 'Y' | 'q') if live.link().outlives() => Effect::Quit,
            _ => Effect::Nothing,
        }
    }

    /// Takes the stick of a live session, so that keys go to the program.
    pub fn start_typing(&mut self) {
        let Some(live) = self.live() else { return };
        match live.take() {
            Ok(()) => {
                self.mode = Mode::Type;
                self.scroll.follow = true;
            }
            Err(why) => self.notify(why, Mood::Wrong),
        }
    }

    fn on_typed(&mut self, event: &Event) -> Effect {
        let leave = KeyEvent::new(KeyCode::Char(']'), KeyModifiers::CONTROL);
        let at = match event {
            Event::Key(key) if *key == leave => {
                self.mode = Mode::Read;
                if let Some(live) = self.live() {
                    live.release();
                }
                return Effect::Nothing;
            }
            Event::Mouse(mouse) => self.cell_at(*mouse),
            _ => None,
        };
        self.scroll.follow = true;
        if let Some(Err(why)) = self.live().map(|live| live.type_event(event, at)) {
            self.notify(why, Mood::Wrong);
        }
        Effect::Nothing
    }

    /// The cell of the program's screen under the mouse.
    fn cell_at(&self, mouse: MouseEvent) -> Option<(u16, u16)> {
        let inner = self.drawn.inner;
        let at = Position::new(mouse.column, mouse.row);
        let row =
            inner.contains(at).then(|| self.drawn.slots.get(usize::from(at.y - inner.y)).copied())??;
        let y = row?.checked_sub(rows::screen(self.term()))?;
        Some((at.x - inner.x + self.scroll.left, u16::try_from(y).ok()?))
    }

    fn on_mouse(&mut self, mouse: MouseEvent) -> Result<Effect, PlayError> {
        let at = Position::new(mouse.column, mouse.row);
        let shift = mouse.modifiers.contains(KeyModifiers::SHIFT);
        if let Mode::Help(top) = &mut self.mode {
            match mouse.kind {
                MouseEventKind::ScrollUp => *top = top.saturating_sub(WHEEL as usize),
                MouseEventKind::ScrollDown => *top += WHEEL as usize,
                _ => {}
            }
        }
        match mouse.kind {
            _ if matches!(self.mode, Mode::Help(_)) && !matches!(mouse.kind, MouseEventKind::Down(_)) => {}
            MouseEventKind::ScrollUp if !shift => self.scroll(-WHEEL),
            MouseEventKind::ScrollDown if !shift => self.scroll(WHEEL),
            MouseEventKind::ScrollUp | MouseEventKind::ScrollLeft => self.scroll_sideways(-WHEEL_COLUMNS),
            MouseEventKind::ScrollDown | MouseEventKind::ScrollRight => self.scroll_sideways(WHEEL_COLUMNS),
            MouseEventKind::Down(MouseButton::Left) | MouseEventKind::Drag(MouseButton::Left)
                if self.drawn.bar.contains(at) =>
            {
                let (now, share) = (self.now, timeline::share(self.drawn.bar, at.x));
                if let Some(tape) = self.tape() {
                    tape.go_to_share(share, now)?;
                    self.scroll.follow = true;
                }
            }
            MouseEventKind::Down(MouseButton::Left) => self.on_click(at),
            MouseEventKind::Drag(MouseButton::Left) => self.drag(mouse),
            MouseEventKind::Up(MouseButton::Left) => self.let_go(),
            _ => {}
        }
        Ok(Effect::Nothing)
    }

    fn on_click(&mut self, at: Position) {
        if matches!(self.mode, Mode::Help(_)) {
            self.mode = Mode::Read;
            return;
        }
        let inner = self.drawn.inner;
        // The border to the left is the gutter: its marks are there to be clicked.
        let width = 1 + u16::from(self.marks.shares_rows());
        let beside = at.x < inner.x && at.x + width >= inner.x;
        let gutter = at.y >= inner.y && at.y < inner.bottom() && beside;
        let slot = self.drawn.slots.get(usize::from(at.y.saturating_sub(inner.y))).copied().flatten();
        match (&self.mode, slot) {
            (Mode::Read, Some(row)) if gutter => self.write_behind(row),
            _ => self.press(at),
        }
    }

    pub(super) fn tell_about(&mut self) {
        let range = rows::range(self.term());
        let size = self.term().size();
        let what = match &self.origin {
            Origin::Tape(tape) => {
                let (moments, damages) = (tape.moments().len(), tape.damages());
                let damage = if damages > 0 {
                    format!(", {}", human::count(damages, "damaged place"))
                } else {
                    String::new()
                };
                format!(
                    "{}: byte {}, markers and snapshots: {moments}{damage}",
                    tape.path().display(),
                    tape.offset().0
                )
            }
            Origin::Live(live, _) => match live.holder() {
                Some(holder) => format!("{}: {holder} drives", live.name),
                None => format!("{}: not driven", live.name),
            },
        };
        self.notify(
            format!(
                "{what}, {} of {}×{}",
                human::count(range.end - range.start, "row"),
                size.cols,
                size.rows
            ),
            Mood::Calm,
        );
    }
}

fn there_at(snapshots: &[(Row, usize)], row: Row) -> impl Iterator<Item = usize> {
    snapshots.iter().filter(move |(at, _)| *at == row).map(|(_, i)| *i)
}
