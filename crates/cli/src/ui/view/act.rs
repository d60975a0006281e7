//! Performs the commands of the viewer.

use crossterm::event::{KeyCode, KeyEvent};
use tapdeck_host::PlayError;

use super::commands::Act;
use super::matcher::{Case, Query};
use super::prompt::Purpose;
use super::rows::{self, Row};
use super::{App, Effect, Letter, Mode, Mood, NO_LONGER_FOLLOWING, Origin, Tape, brackets};
use crate::ui::live::Link;
use crate::ui::session::is_being_recorded;

const SECOND: i64 = 1_000_000_000;
const SKIP: u64 = 5;
/// The most steps at once: more would delay the next key.
const MAX_STEPS: u64 = 1000;

impl App {
    /// Performs the command of a key, with the number typed before it.
    pub(super) fn act(&mut self, act: Act, n: Option<u64>) -> Result<Effect, PlayError> {
        let nth = n.unwrap_or(1).max(1);
        match act {
            Act::Quit => return Ok(self.quit()),
            Act::Suspend => return Ok(Effect::Suspend),
            Act::Repaint => return Ok(Effect::Repaint),
            Act::Edit => return Ok(self.edit()),
            Act::Copy => return Ok(self.copy()),
            Act::Help => self.mode = Mode::Help(0),
            Act::SearchOn => self.open_prompt(Purpose::Search { forth: true }, nth),
            Act::SearchBack => self.open_prompt(Purpose::Search { forth: false }, nth),
            Act::Filter => self.open_prompt(Purpose::Filter, 1),
            Act::Shell => self.open_prompt(Purpose::Shell, 1),
            Act::Save => self.open_prompt(Purpose::Save, 1),
            Act::Next => self.search_again(self.last.1, nth),
            Act::Previous => self.search_again(!self.last.1, nth),
            Act::Unlight => self.search.lit = !self.search.lit,
            Act::Forget => {
                self.last = (Query::default(), true);
                self.search.set(&self.last.0);
            }
            Act::MarkTop => self.mode = Mode::Letter(Letter::MarkTop),
            Act::MarkBottom => self.mode = Mode::Letter(Letter::MarkBottom),
            Act::GoToMark => self.mode = Mode::Letter(Letter::GoTo),
            Act::Unmark => self.mode = Mode::Letter(Letter::Forget),
            Act::Pipe => self.mode = Mode::Letter(Letter::PipeTo),
            Act::ToggleMark => match self.letters.get(&'\'').copied() {
                Some((row, _)) => self.go_to_top(row),
                None => self.go_to_top(rows::range(self.term()).start),
            },
            Act::CloseRound => self.go_to_partner('(', ')', true, nth),
            Act::OpenRound => self.go_to_partner('(', ')', false, nth),
            Act::CloseAny => self.mode = Mode::Pair { forth: true, own: None, nth },
            Act::OpenAny => self.mode = Mode::Pair { forth: false, own: None, nth },
            Act::Option => self.mode = Mode::Flag { change: true },
            Act::ShowOption => self.mode = Mode::Flag { change: false },
            Act::About => self.tell_about(),
            Act::Version => self.notify(concat!("tapdeck ", env!("CARGO_PKG_VERSION")), Mood::Calm),
            Act::NoTags => self.notify("there are no tags here", Mood::Calm),
            Act::NoFiles => {
                self.notify("there is one recording here: open another with tapdeck view FILE", Mood::Calm);
            }
            Act::Tall => self.tall = !self.tall,
            Act::SnapshotOn => self.go_to_mark(true)?,
            Act::SnapshotBack => self.go_to_mark(false)?,
            Act::Instruct if self.visible().len() == 0 => {
                self.notify("no line is left to write behind: & and Enter shows all", Mood::Wrong);
            }
            Act::Instruct => {
                let row = self.meant_row();
                self.write_behind(row);
            }
            Act::Follow => self.follow()?,
            Act::FollowUntil => self.follow_until()?,
            Act::Type => self.start_typing(),
            Act::Mark => self.open_prompt(Purpose::Mark, 1),
            Act::Pause => self.ask_live(|link| link.pause()),
            Act::LineOn | Act::LineBack | Act::PageOn | Act::PageBack | Act::WindowOn | Act::WindowBack => {
                self.move_rows(act, n);
            }
            Act::HalfOn | Act::HalfBack | Act::First | Act::Last | Act::Percent => self.move_rows(act, n),
            Act::Right | Act::Left | Act::RightEnd | Act::LeftEnd => self.move_columns(act, n),
            Act::MomentOn => self.go_to_moment(true)?,
            Act::MomentBack => self.go_to_moment(false)?,
            Act::Play | Act::SkipOn | Act::SkipBack | Act::LongSkipOn | Act::LongSkipBack => {
                self.move_in_time(act, n)?;
            }
            Act::StepOn | Act::StepBack | Act::Faster | Act::Slower => self.move_in_time(act, n)?,
        }
        Ok(Effect::Nothing)
    }

    /// Asks something of a live session, which answers with news.
    pub(super) fn ask_live(&mut self, ask: impl FnOnce(&mut dyn Link) -> Result<(), String>) {
        if let Some(Err(why)) = self.live().map(|live| ask(live.link_mut())) {
            self.notify(why, Mood::Wrong);
        }
    }

    fn move_rows(&mut self, act: Act, n: Option<u64>) {
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        if let (Act::WindowOn | Act::WindowBack, Some(n)) = (act, n) {
            self.window = Some(n.max(1));
        }
        if let (Act::HalfOn | Act::HalfBack, Some(n)) = (act, n) {
            self.half = Some(n.max(1));
        }
        let height = u64::from(self.height());
        let window = self.window.unwrap_or(height);
        let half = self.half.unwrap_or((height / 2).max(1));
        let lines = signed(n.unwrap_or(1));
        let page = signed(n.unwrap_or(window));
        let nth_row = |n: u64| rows::range(self.term()).start.saturating_add(n.saturating_sub(1));
        match (act, n) {
            (Act::LineOn, _) => self.scroll(lines),
            (Act::LineBack, _) => self.scroll(-lines),
            (Act::PageOn, _) => self.scroll(page),
            (Act::PageBack, _) => self.scroll(-page),
            (Act::WindowOn, _) => self.scroll(signed(window)),
            (Act::WindowBack, _) => self.scroll(-signed(window)),
            (Act::HalfOn, _) => self.scroll(signed(half)),
            (Act::HalfBack, _) => self.scroll(-signed(half)),
            (Act::First | Act::Last, Some(n)) => self.go_to_top(nth_row(n)),
            (Act::Last, None) => self.go_to_top(Row::MAX),
            (Act::Percent, Some(n)) => {
                let visible = self.visible();
                let row = visible.nth(visible.len() * n.min(100) / 100);
                self.go_to_top(row);
            }
            _ => self.go_to_top(rows::range(self.term()).start),
        }
    }

    fn move_columns(&mut self, act: Act, n: Option<u64>) {
        let half = u64::from(self.drawn.inner.width / 2).max(1);
        let by = i64::try_from(n.unwrap_or(half)).unwrap_or(i64::MAX);
        match act {
            Act::Right => self.scroll_sideways(by),
            Act::Left => self.scroll_sideways(-by),
            Act::RightEnd => self.scroll_sideways(i64::from(u16::MAX)),
            _ => self.scroll_sideways(-i64::from(u16::MAX)),
        }
    }

    fn move_in_time(&mut self, act: Act, n: Option<u64>) -> Result<(), PlayError> {
        let now = self.now;
        let times = |unit: i64, usual: u64| unit.saturating_mul(n.unwrap_or(usual).min(1 << 30) as i64);
        let Origin::Tape(tape) = &mut self.origin else { return Ok(()) };
        // A user who moves in time wants to see the screen of that time.
        self.scroll.follow |= !matches!(act, Act::Faster | Act::Slower);
        match act {
            Act::Play => tape.toggle(now)?,
            Act::SkipOn => tape.skip(times(SECOND, SKIP), now)?,
            Act::SkipBack => tape.skip(-times(SECOND, SKIP), now)?,
            Act::LongSkipOn => tape.skip(times(60 * SECOND, 1), now)?,
            Act::LongSkipBack => tape.skip(-times(60 * SECOND, 1), now)?,
            Act::StepOn => (0..n.unwrap_or(1).min(MAX_STEPS)).try_for_each(|_| tape.step_forth())?,
            Act::StepBack => (0..n.unwrap_or(1).min(MAX_STEPS)).try_for_each(|_| tape.step_back())?,
            Act::Faster => tape.change_speed(true, now),
            Act::Slower => tape.change_speed(false, now),
            _ => {}
        }
        Ok(())
    }

    /// Keeps the end in sight. A recording in progress is shown as it grows; any other plays.
    fn follow(&mut self) -> Result<(), PlayError> {
        let now = self.now;
        self.scroll.follow = true;
        let Some(tape) = self.tape() else { return Ok(()) };
        if tape.has_ended() {
            self.notify("the recording has ended", Mood::Calm);
            return Ok(());
        }
        let in_progress = tape.has_grown() || is_being_recorded(tape.path());
        tape.follow(in_progress, now)
    }

    /// Stops following, as Ctrl-C does in `less +F`. Returns whether there was anything to stop.
    pub(super) fn stop_following(&mut self) -> bool {
        let waited = self.until.take().is_some();
        let followed = self.tape().filter(|tape| tape.is_following()).map(Tape::pause).is_some();
        if waited || followed {
            self.notify(NO_LONGER_FOLLOWING, Mood::Calm);
        }
        waited || followed
    }

    fn follow_until(&mut self) -> Result<(), PlayError> {
        if !self.search.is_set() {
            self.notify("nothing has been searched for yet", Mood::Wrong);
            return Ok(());
        }
        // Rows that are there already do not count. The last line counts once it has changed.
        let end = rows::screen(self.term()) + u64::from(self.term().cursor().row);
        self.follow()?;
        let waits = match &self.origin {
            Origin::Tape(tape) => tape.is_following(),
            Origin::Live(..) => true,
        };
        self.until = waits.then_some(end);
        Ok(())
    }

    /// Stops following when the search has a match.
    pub(super) fn look_for_until(&mut self) {
        let Some(from) = self.until else { return };
        let (screen, end) = (rows::screen(self.term()), rows::range(self.term()).end);
        let new: Vec<Row> = (from.min(end)..end).collect();
        let Some(hit) = self.search.hits(self.term(), &new).into_iter().find(|hit| hit.row >= from) else {
            // Rows that have left the screen will not change any more.
            self.until = Some(from.max(screen));
            return;
        };
        self.until = None;
        (self.focus, self.search.hit, self.scroll.follow) = (Some(hit.row), Some(hit), false);
        if let Some(tape) = self.tape() {
            tape.pause();
        }
        self.reveal(hit.row);
        self.notify("it has come", Mood::Going);
    }

    /// Goes to the row of a bracket's partner.
    pub(super) fn go_to_partner(&mut self, open: char, close: char, forth: bool, nth: u64) {
        let page = self.visible().page(self.top(self.height()), self.height());
        let from = if forth { page.first() } else { page.last() };
        let (own, other) = if forth { (open, close) } else { (close, open) };
        let Some(from) = from.copied() else { return };
        match brackets::partner(self.term(), from, own, other, forth, nth) {
            Some(row) if forth => self.put_at_bottom(row),
            Some(row) => self.go_to_top(row),
            None => {
                let row = if forth { "top" } else { "bottom" };
                self.notify(format!("no {own} in the {row} row that has its {other}"), Mood::Wrong);
            }
        }
    }

    pub(super) fn on_flag(&mut self, change: bool, key: KeyEvent) {
        let toggled = match key.code {
            KeyCode::Char('i') if self.case == Case::Smart => Case::Counts,
            KeyCode::Char('i') => Case::Smart,
            KeyCode::Char('I') if self.case == Case::Ignored => Case::Counts,
            KeyCode::Char('I') => Case::Ignored,
            KeyCode::Esc => return,
            _ => return self.notify("there is no such option here: i and I are about case", Mood::Wrong),
        };
        if change {
            self.case = toggled;
            self.last.0.case = toggled;
            self.search.set(&self.last.0);
        }
        let text = match self.case {
            Case::Smart => "searches ignore case, unless there is a capital in the pattern",
            Case::Ignored => "searches ignore case",
            Case::Counts => "case counts in searches",
        };
        self.notify(text, Mood::Calm);
    }
}
