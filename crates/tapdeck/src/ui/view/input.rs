//! What the viewer does with keys and the mouse.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;
use tapdeck_host::PlayError;
use tapdeck_tape::Moment;

use super::instruct::{Wants, branch_command};
use super::rows::{self, Row};
use super::{App, Do, Mode, Mood, Origin, PATIENCE, Place, Prompt, STILL_LOOKING, timeline};
use crate::human;

const SKIP: i64 = 5_000_000_000;
const LONG_SKIP: i64 = 60_000_000_000;
/// While it plays, a moment passed less than this ago is not the one before: nobody could ever get behind it.
const JUST_PASSED: u64 = 1_000_000_000;
const WHEEL: i64 = 3;
const MAX_PATTERN: usize = 1024;

impl App {
    /// Takes what the user did. `wall_ns` is the time of day, for what is kept.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn on_event(&mut self, event: &Event, now: u64, wall_ns: u64) -> Result<Do, PlayError> {
        self.now = now;
        self.dirty = true;
        if matches!(event, Event::Key(_)) {
            // What was said is read; the next key gets an answer of its own.
            self.notice = None;
        }
        match &self.mode {
            Mode::Type => return Ok(self.on_typed(event)),
            Mode::Write(_) => return Ok(self.on_written(event, wall_ns)),
            _ => {}
        }
        match event {
            Event::Key(key) => self.on_key(*key),
            Event::Mouse(mouse) => self.on_mouse(*mouse),
            Event::Paste(text) => {
                if let Mode::Prompt(prompt) = &mut self.mode {
                    prompt.text.extend(text.chars().filter(|c| !c.is_control()));
                    self.search_typed();
                }
                Ok(Do::Nothing)
            }
            _ => Ok(Do::Nothing),
        }
    }

    fn on_key(&mut self, key: KeyEvent) -> Result<Do, PlayError> {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        if ctrl && key.code == KeyCode::Char('z') {
            return Ok(Do::Suspend);
        }
        match &mut self.mode {
            Mode::Prompt(_) => self.on_prompt_key(key),
            Mode::Help => self.mode = Mode::Read,
            Mode::AskQuit => return Ok(self.on_quit_answer(key)),
            Mode::AskBranch(_) => return Ok(self.on_branch_answer(key)),
            Mode::Letter { set } => {
                let set = *set;
                self.mode = Mode::Read;
                self.on_letter(set, key);
            }
            Mode::Escape => {
                self.mode = Mode::Read;
                match key.code {
                    KeyCode::Char('u') => self.search.lit = !self.search.lit,
                    KeyCode::Char('(') | KeyCode::Left => self.scroll_sideways(-8),
                    KeyCode::Char(')') | KeyCode::Right => self.scroll_sideways(8),
                    KeyCode::Esc => {}
                    _ => return self.on_read_key(key),
                }
            }
            Mode::Read => return self.on_read_key(key),
            Mode::Write(_) | Mode::Type => {}
        }
        Ok(Do::Nothing)
    }

    fn on_read_key(&mut self, key: KeyEvent) -> Result<Do, PlayError> {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        if !self.is_tape_key(key)
            && let Some(done) = self.move_by_key(key.code, ctrl, alt)
        {
            return Ok(done);
        }
        match key.code {
            KeyCode::Char('c') if ctrl => return Ok(self.quit()),
            KeyCode::Char('g') if ctrl => self.tell_about(),
            KeyCode::Char('l' | 'r') if ctrl => return Ok(Do::Repaint),
            _ if ctrl => {}
            KeyCode::Char('u') if alt => self.search.lit = !self.search.lit,
            KeyCode::Char('q' | 'Q') => return Ok(self.quit()),
            KeyCode::Char('h') | KeyCode::F(1) => self.mode = Mode::Help,
            KeyCode::Char('r' | 'R') => return Ok(Do::Repaint),
            KeyCode::Char('=') => self.tell_about(),
            KeyCode::Char('/') => self.prompt(true),
            KeyCode::Char('?') => self.prompt(false),
            KeyCode::Char('n') => self.search_again(self.last_pattern.1),
            KeyCode::Char('N') => self.search_again(!self.last_pattern.1),
            KeyCode::Char('m') => self.mode = Mode::Letter { set: true },
            KeyCode::Char('\'') => self.mode = Mode::Letter { set: false },
            KeyCode::Char('t') => self.tall = !self.tall,
            KeyCode::Char('[') => self.go_to_snapshot(false)?,
            KeyCode::Char(']') => self.go_to_snapshot(true)?,
            KeyCode::Char('i') => {
                let row = self.meant_row();
                self.write_behind(row);
            }
            KeyCode::Char('F') => self.place.follow = true,
            KeyCode::Enter => self.start_typing(),
            KeyCode::Esc => {
                if let Some(tape) = self.tape().filter(|tape| tape.is_on_its_way()) {
                    tape.pause();
                }
                self.search.stop();
                self.mode = Mode::Escape;
            }
            _ => self.on_tape_key(key)?,
        }
        Ok(Do::Nothing)
    }

    /// Keys that mean the timeline where there is one.
    fn is_tape_key(&self, key: KeyEvent) -> bool {
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        matches!(self.origin, Origin::Tape(_))
            && (key.code == KeyCode::Char(' ')
                || (matches!(key.code, KeyCode::Left | KeyCode::Right) && !alt))
    }

    /// The keys of `less` that move.
    fn move_by_key(&mut self, code: KeyCode, ctrl: bool, alt: bool) -> Option<Do> {
        let page = i64::from(self.height());
        match (code, ctrl) {
            (KeyCode::Char('j' | 'e') | KeyCode::Down, false) | (KeyCode::Char('e' | 'n' | 'j'), true) => {
                self.scroll(1)
            }
            (KeyCode::Char('k' | 'y') | KeyCode::Up, false) | (KeyCode::Char('y' | 'p' | 'k'), true) => {
                self.scroll(-1)
            }
            (KeyCode::Char('f' | ' ') | KeyCode::PageDown, false) | (KeyCode::Char('f' | 'v'), true) => {
                self.scroll(page)
            }
            (KeyCode::Char('b') | KeyCode::PageUp, false) | (KeyCode::Char('b'), true) => self.scroll(-page),
            (KeyCode::Char('v'), false) if alt => self.scroll(-page),
            (KeyCode::Char('d'), _) => self.scroll((page / 2).max(1)),
            (KeyCode::Char('u'), _) if !alt => self.scroll(-(page / 2).max(1)),
            (KeyCode::Char('g' | '<') | KeyCode::Home, false) => {
                self.go_to_top(rows::range(self.term()).start)
            }
            (KeyCode::Char('G' | '>') | KeyCode::End, false) => self.go_to_top(Row::MAX),
            (KeyCode::Char('H') | KeyCode::Left, false) => self.scroll_sideways(-8),
            (KeyCode::Char('L') | KeyCode::Right, false) => self.scroll_sideways(8),
            _ => return None,
        }
        Some(Do::Nothing)
    }

    fn on_tape_key(&mut self, key: KeyEvent) -> Result<(), PlayError> {
        let now = self.now;
        let shift = key.modifiers.contains(KeyModifiers::SHIFT);
        let Origin::Tape(tape) = &mut self.origin else { return Ok(()) };
        // Whoever moves in time wants to see what was on the screen then.
        let moves =
            matches!(key.code, KeyCode::Right | KeyCode::Left | KeyCode::Char('0'..='9' | '.' | ',' | ' '));
        self.place.follow |= moves;
        match key.code {
            KeyCode::Char(' ') => tape.toggle(now)?,
            KeyCode::Right => tape.skip(if shift { LONG_SKIP } else { SKIP }, now)?,
            KeyCode::Left => tape.skip(if shift { -LONG_SKIP } else { -SKIP }, now)?,
            KeyCode::Char(c @ '0'..='9') => {
                tape.go_to_share(f64::from(u32::from(c) - u32::from('0')) / 10.0, now)?
            }
            KeyCode::Char('.') => tape.step_forth()?,
            KeyCode::Char(',') => tape.step_back()?,
            KeyCode::Char('+') => tape.change_speed(true, now),
            KeyCode::Char('-') => tape.change_speed(false, now),
            KeyCode::Char('{') => self.go_to_moment(false)?,
            KeyCode::Char('}') => self.go_to_moment(true)?,
            _ => {}
        }
        Ok(())
    }

    /// The row that is meant: the one found or clicked, while it is in sight; else the last that shows something.
    fn meant_row(&self) -> Row {
        let top = self.top(self.height());
        let shown = top..top + u64::from(self.height());
        self.focus.filter(|row| shown.contains(row)).unwrap_or(shown.end - 1)
    }

    /// Goes to the next snapshot, or the one before the meant row: in the rows where it lies in the past, in time
    /// where it is still to come.
    fn go_to_snapshot(&mut self, forth: bool) -> Result<(), PlayError> {
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
        // Several snapshots at one row are one stop.
        let here = match (self.focus, forth) {
            (Some(row), _) => Some(row),
            (None, true) => None,
            (None, false) => Some(Row::MAX),
        };
        let there = self.marks.snapshots();
        let row = if forth {
            there.iter().map(|(row, _)| *row).filter(|row| here.is_none_or(|here| *row > here)).min()
        } else {
            there.iter().map(|(row, _)| *row).filter(|row| here.is_some_and(|here| *row < here)).max()
        };
        if let Some(row) = row {
            self.focus = Some(row);
            self.reveal(row);
            let names: Vec<String> = there_at(self.marks.snapshots(), row)
                .filter_map(|i| self.origin.moments().get(i))
                .map(super::instruct::name_of)
                .collect();
            self.notify(names.join(", "), Mood::Calm);
            return Ok(());
        }
        let now = self.now;
        if forth && let Origin::Tape(tape) = &mut self.origin {
            let offset = tape.offset();
            let next =
                tape.moments().iter().find(|m| m.anchor > offset && m.snapshot_id().is_some()).cloned();
            if let Some(next) = next {
                tape.pause();
                tape.go_to_moment(&next, now)?;
                (self.focus, self.place.follow) = (None, true);
                self.notify(super::instruct::name_of(&next), Mood::Calm);
                return Ok(());
            }
        }
        let text = match (self.origin.moments().iter().any(|m| m.snapshot_id().is_some()), forth) {
            (false, _) => "there are no snapshots",
            (true, true) => "that was the last snapshot",
            (true, false) => "that was the first snapshot",
        };
        self.notify(text, Mood::Calm);
        Ok(())
    }

    /// Goes to the next marker or snapshot in time, or to the one before.
    fn go_to_moment(&mut self, forth: bool) -> Result<(), PlayError> {
        let now = self.now;
        let Origin::Tape(tape) = &mut self.origin else { return Ok(()) };
        let (at, offset) = (tape.at_ns(now), tape.offset());
        let since = if tape.plays() { JUST_PASSED } else { 0 };
        let mut before = tape.moments().iter().rev();
        let moment: Option<Moment> = if forth {
            tape.moments().iter().find(|m| m.anchor > offset).cloned()
        } else {
            before.find(|m| m.anchor < offset && m.time_ns + since <= at).cloned()
        };
        let Some(moment) = moment else {
            self.notify(if forth { "no marker behind this" } else { "no marker before this" }, Mood::Calm);
            return Ok(());
        };
        tape.go_to_moment(&moment, now)?;
        (self.focus, self.place.follow) = (None, true);
        self.notify(super::instruct::name_of(&moment), Mood::Calm);
        Ok(())
    }

    fn on_letter(&mut self, set: bool, key: KeyEvent) {
        let KeyCode::Char(c) = key.code else { return };
        let top = self.top(self.height());
        if set && c.is_alphabetic() {
            self.letters.insert(c, top);
            self.notify(format!("mark {c} set"), Mood::Calm);
            return;
        }
        match (c, self.letters.get(&c).copied()) {
            ('^', _) => self.go_to_top(rows::range(self.term()).start),
            ('$', _) => self.go_to_top(Row::MAX),
            (_, Some(row)) => self.go_to_top(row),
            _ => self.notify(format!("mark {} is not set", human::printable(&c.to_string())), Mood::Wrong),
        }
    }

    fn prompt(&mut self, forth: bool) {
        let top = self.top(self.height());
        let from = if forth { top } else { top + u64::from(self.height()) - 1 };
        self.mode =
            Mode::Prompt(Prompt { forth, text: String::new(), from, back_to: Place { top, ..self.place } });
    }

    fn on_prompt_key(&mut self, key: KeyEvent) {
        let Mode::Prompt(prompt) = &mut self.mode else { return };
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return self.leave_prompt(),
            KeyCode::Char('c' | 'g') if ctrl => return self.leave_prompt(),
            KeyCode::Backspace if prompt.text.is_empty() => return self.leave_prompt(),
            KeyCode::Enter => return self.accept_prompt(),
            KeyCode::Backspace => {
                prompt.text.pop();
            }
            KeyCode::Char('h') if ctrl => {
                prompt.text.pop();
            }
            KeyCode::Char('u') if ctrl => prompt.text.clear(),
            KeyCode::Char('w') if ctrl => {
                let kept = prompt.text.trim_end().rfind(char::is_whitespace).map_or(0, |i| i + 1);
                prompt.text.truncate(kept);
            }
            KeyCode::Up => prompt.text.clone_from(&self.last_pattern.0),
            KeyCode::Char(c) if !ctrl && prompt.text.len() < MAX_PATTERN => prompt.text.push(c),
            _ => return,
        }
        self.search_typed();
    }

    /// Searches for what has been typed so far.
    fn search_typed(&mut self) {
        let Mode::Prompt(Prompt { text, from, forth, back_to }) = &self.mode else { return };
        let (from, forth, back_to) = (*from, *forth, *back_to);
        if self.search.set(text) && self.search.is_set() {
            self.search.from(self.origin.term(), from, forth);
        } else {
            self.place = back_to;
            self.focus = None;
        }
    }

    fn leave_prompt(&mut self) {
        if let Mode::Prompt(prompt) = std::mem::replace(&mut self.mode, Mode::Read) {
            self.place = prompt.back_to;
            self.search.set(&self.last_pattern.0);
        }
    }

    fn accept_prompt(&mut self) {
        let Mode::Prompt(prompt) = std::mem::replace(&mut self.mode, Mode::Read) else { return };
        if prompt.text.is_empty() {
            // As in less: the last pattern, in this direction.
            self.last_pattern.1 = prompt.forth;
            return self.search_again(prompt.forth);
        }
        if let Some(error) = self.search.error.clone() {
            self.notify(format!("{:?} is no regular expression: {error}", prompt.text), Mood::Wrong);
            self.place = prompt.back_to;
            return;
        }
        self.last_pattern = (prompt.text, prompt.forth);
        if !self.search.is_busy() && self.search.hit.is_none() {
            self.notify(format!("not found: {}", self.last_pattern.0), Mood::Wrong);
        }
    }

    fn search_again(&mut self, forth: bool) {
        if self.last_pattern.0.is_empty() {
            return self.notify("nothing has been searched for yet", Mood::Wrong);
        }
        self.search.set(&self.last_pattern.0);
        let top = self.top(self.height());
        let from = if forth { top } else { top + u64::from(self.height()) - 1 };
        self.search.next(self.origin.term(), from, forth);
    }

    fn on_written(&mut self, event: &Event, wall_ns: u64) -> Do {
        if let Event::Mouse(mouse) = event {
            match mouse.kind {
                MouseEventKind::ScrollUp => self.scroll(-WHEEL),
                MouseEventKind::ScrollDown => self.scroll(WHEEL),
                _ => {}
            }
            return Do::Nothing;
        }
        let Mode::Write(written) = &mut self.mode else { return Do::Nothing };
        match written.input(event) {
            Wants::Nothing => {}
            Wants::Close => self.mode = Mode::Read,
            Wants::Submit => self.submit(wall_ns),
            Wants::TooLong => self.notify("that is more than an instruction may hold", Mood::Wrong),
            Wants::Move(by) => {
                let range = rows::range(self.origin.term());
                written.row = written.row.saturating_add_signed(by).clamp(range.start, range.end - 1);
                written.anchor = rows::written(self.origin.term(), written.row);
                let nearest = tapdeck_tape::nearest_snapshot(self.origin.moments(), written.anchor);
                written.snapshot = nearest.cloned();
                self.focus = Some(written.row);
            }
        }
        Do::Nothing
    }

    fn on_branch_answer(&mut self, key: KeyEvent) -> Do {
        let Mode::AskBranch(instruction) = std::mem::replace(&mut self.mode, Mode::Read) else {
            return Do::Nothing;
        };
        match (key.code, self.origin.path()) {
            (KeyCode::Char('y' | 'Y') | KeyCode::Enter, Some(path)) => {
                Do::Run(branch_command(&self.options.branch_command, path, &instruction))
            }
            _ => Do::Nothing,
        }
    }

    fn quit(&mut self) -> Do {
        match &self.origin {
            Origin::Live(live, _) if live.runs() => {
                self.mode = Mode::AskQuit;
                Do::Nothing
            }
            _ => Do::Quit,
        }
    }

    fn on_quit_answer(&mut self, key: KeyEvent) -> Do {
        self.mode = Mode::Read;
        let Some(live) = self.live() else { return Do::Quit };
        match key.code {
            KeyCode::Char('e' | 'E') => {
                live.link_mut().end();
                Do::Quit
            }
            KeyCode::Char('y' | 'Y' | 'q') if live.link().outlives() => Do::Quit,
            _ => Do::Nothing,
        }
    }

    /// Takes the stick of a live session, so that keys go to the program.
    pub fn start_typing(&mut self) {
        let Some(live) = self.live() else {
            return self.scroll(1);
        };
        match live.take() {
            Ok(()) => {
                self.mode = Mode::Type;
                self.place.follow = true;
            }
            Err(why) => self.notify(why, Mood::Wrong),
        }
    }

    fn on_typed(&mut self, event: &Event) -> Do {
        let leave = KeyEvent::new(KeyCode::Char(']'), KeyModifiers::CONTROL);
        let at = match event {
            Event::Key(key) if *key == leave => {
                self.mode = Mode::Read;
                if let Some(live) = self.live() {
                    live.release();
                }
                return Do::Nothing;
            }
            Event::Mouse(mouse) => self.cell_at(*mouse),
            _ => None,
        };
        self.place.follow = true;
        if let Some(Err(why)) = self.live().map(|live| live.type_event(event, at)) {
            self.notify(why, Mood::Wrong);
        }
        Do::Nothing
    }

    /// The cell of the program's screen under the mouse.
    fn cell_at(&self, mouse: MouseEvent) -> Option<(u16, u16)> {
        let inner = self.drawn.inner;
        let at = Position::new(mouse.column, mouse.row);
        let row =
            inner.contains(at).then(|| self.drawn.slots.get(usize::from(at.y - inner.y)).copied())??;
        let y = row?.checked_sub(rows::screen(self.term()))?;
        Some((at.x - inner.x + self.place.left, u16::try_from(y).ok()?))
    }

    fn on_mouse(&mut self, mouse: MouseEvent) -> Result<Do, PlayError> {
        let at = Position::new(mouse.column, mouse.row);
        let shift = mouse.modifiers.contains(KeyModifiers::SHIFT);
        match mouse.kind {
            MouseEventKind::ScrollUp if !shift => self.scroll(-WHEEL),
            MouseEventKind::ScrollDown if !shift => self.scroll(WHEEL),
            MouseEventKind::ScrollUp | MouseEventKind::ScrollLeft => self.scroll_sideways(-8),
            MouseEventKind::ScrollDown | MouseEventKind::ScrollRight => self.scroll_sideways(8),
            MouseEventKind::Down(MouseButton::Left) | MouseEventKind::Drag(MouseButton::Left)
                if self.drawn.bar.contains(at) =>
            {
                let (now, share) = (self.now, timeline::share(self.drawn.bar, at.x));
                if let Some(tape) = self.tape() {
                    tape.go_to_share(share, now)?;
                    self.place.follow = true;
                }
            }
            MouseEventKind::Down(MouseButton::Left) => self.on_click(at),
            _ => {}
        }
        Ok(Do::Nothing)
    }

    fn on_click(&mut self, at: Position) {
        if matches!(self.mode, Mode::Help) {
            self.mode = Mode::Read;
            return;
        }
        let inner = self.drawn.inner;
        // The border to the left is the gutter: its marks are there to be clicked.
        let hit = at.y >= inner.y && at.y < inner.bottom() && at.x + 1 >= inner.x && at.x < inner.right();
        let slot = self.drawn.slots.get(usize::from(at.y.saturating_sub(inner.y))).copied().flatten();
        if let (true, Mode::Read, Some(row)) = (hit, &self.mode, slot) {
            self.write_behind(row);
        }
    }

    fn tell_about(&mut self) {
        let range = rows::range(self.term());
        let size = self.term().size();
        let what = match &self.origin {
            Origin::Tape(tape) => {
                let (moments, damages) = (tape.moments().len(), tape.damages());
                let damage = if damages > 0 { format!(", {damages} damaged places") } else { String::new() };
                format!(
                    "{}: byte {}, {moments} markers and snapshots{damage}",
                    tape.path().display(),
                    tape.offset()
                )
            }
            Origin::Live(live, _) => match live.driver() {
                Some(driver) => format!("{}: {driver} drives", live.name),
                None => format!("{}: nobody drives", live.name),
            },
        };
        self.notify(
            format!("{what}, {} rows of {}×{}", range.end - range.start, size.cols, size.rows),
            Mood::Calm,
        );
    }
}

fn there_at(snapshots: &[(Row, usize)], row: Row) -> impl Iterator<Item = usize> {
    snapshots.iter().filter(move |(at, _)| *at == row).map(|(_, i)| *i)
}
