//! A live session as a view sees it: the model of its terminal, the stick's holder, and the way to
//! type to it. The session itself is behind [`Link`], so that tests need none.

use std::collections::VecDeque;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use tapdeck_core::turns::AgentState;
use tapdeck_core::{Exit, Offset};
use tapdeck_term::keys::{self, Button, KeyPress, Mods, MouseKind};
use tapdeck_term::{Settings, Size, Term};

use crate::human;

/// What a session tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// The program wrote this, or this redraws what it wrote before.
    Output(Vec<u8>),
    /// The next bytes redraw the screen as it was before this byte of the program's output.
    Picture {
        /// Its length.
        len: usize,
        /// Where the stream goes on behind it.
        offset: Offset,
    },
    /// Rows of the picture that comes: where each ends in it, and its last write.
    Drawn(Vec<(usize, u64)>),
    /// A request was refused, for this reason; and the stick's holder.
    Denied(String, Option<String>),
    /// The terminal has this size.
    Resize(Size),
    /// The stick has another holder, or none.
    Holder(Option<String>),
    /// The program does something else now.
    State(AgentState),
    /// A snapshot was taken.
    Snapshot(tapdeck_tape::Moment),
    /// Its recording failed, for this reason.
    RecordingFailed(String),
    /// What was asked for was done.
    Told(String),
    /// What was asked for was refused, for a reason that has nothing to do with the stick.
    Refused(String),
    /// The recording was paused or goes on, by another client if there is a name.
    Paused(bool, Option<String>),
    /// The program ended.
    Ended(Exit),
    /// The session cannot be reached any more.
    Gone(String),
}

/// The way to a session.
pub trait Link {
    /// Readable when there is news.
    fn fd(&self) -> Option<BorrowedFd<'_>>;

    /// Takes the news that is there, without waiting.
    fn news(&mut self, news: &mut Vec<News>);

    /// Types to the program.
    ///
    /// # Errors
    /// With the reason, when it cannot be delivered.
    fn send(&mut self, bytes: &[u8]) -> Result<(), String>;

    /// Takes the stick.
    ///
    /// # Errors
    /// With the reason, when another client keeps it.
    fn take(&mut self) -> Result<(), String>;

    /// Lets go of it.
    fn release(&mut self);

    /// Adds a marker to its recordings.
    ///
    /// # Errors
    /// With the reason, when it cannot be asked for.
    fn mark(&mut self, label: &str) -> Result<(), String>;

    /// Pauses its recordings, or lets them go on.
    ///
    /// # Errors
    /// With the reason, when it cannot be asked for.
    fn pause(&mut self) -> Result<(), String>;

    /// Ends the program.
    fn end(&mut self);

    /// Whether the program goes on after its last client has left.
    fn outlives(&self) -> bool;

    /// The name under which this view drives.
    fn own_name(&self) -> &str;

    /// How often news must be looked for although the descriptor is silent.
    fn look_every(&self) -> Option<Duration> {
        None
    }
}

/// A session being watched.
pub struct Live {
    /// What it is called.
    pub name: String,
    term: Term,
    offset: Offset,
    /// What is still to come of a picture.
    picture: Range<usize>,
    /// The rows in it: where each ends, and its last write.
    drawn: VecDeque<(usize, u64)>,
    holder: Option<String>,
    state: AgentState,
    denied: Option<String>,
    ended: Option<Exit>,
    recording_failed: Option<String>,
    recording_paused: bool,
    warning: Option<String>,
    told: Option<String>,
    gone: Option<String>,
    moments: Vec<tapdeck_tape::Moment>,
    link: Box<dyn Link>,
    news: Vec<News>,
}

impl Live {
    /// Begins to watch a session.
    pub fn new(name: impl Into<String>, size: Size, scrollback: usize, link: Box<dyn Link>) -> Self {
        Self {
            name: name.into(),
            term: Term::new(size, Settings::default().scrollback(scrollback).replies(false)),
            offset: Offset(0),
            picture: 0..0,
            drawn: VecDeque::new(),
            holder: None,
            state: AgentState::Unknown,
            denied: None,
            ended: None,
            recording_failed: None,
            recording_paused: false,
            warning: None,
            told: None,
            gone: None,
            moments: Vec::new(),
            link,
            news: Vec::new(),
        }
    }

    /// Takes the news; says whether there was any.
    pub fn poll(&mut self) -> bool {
        let mut news = std::mem::take(&mut self.news);
        self.link.news(&mut news);
        let any = !news.is_empty();
        for item in news.drain(..) {
            self.hear(item);
        }
        self.news = news;
        any
    }

    /// Takes one piece of news.
    pub fn hear(&mut self, news: News) {
        match news {
            News::Output(bytes) => {
                let (picture, stream) = bytes.split_at(self.picture.len().min(bytes.len()));
                self.draw(picture);
                self.term.feed_at(stream, self.offset.0);
                self.offset += stream.len();
            }
            News::Picture { len, offset } => {
                (self.picture, self.offset, self.drawn) = (0..len, offset, VecDeque::new());
            }
            News::Drawn(rows) => self.drawn.extend(rows),
            News::Denied(why, holder) => (self.denied, self.holder) = (Some(why), holder),
            News::Resize(size) => {
                self.term.resize(size);
            }
            News::Holder(holder) => self.holder = holder,
            News::State(state) => self.state = state,
            News::Snapshot(moment) => self.moments.push(moment),
            News::RecordingFailed(why) => {
                self.warning =
                    self.recording_failed.is_none().then(|| format!("the recording failed: {why}"));
                self.recording_failed = Some(why);
            }
            News::Told(what) => self.told = Some(what),
            News::Refused(why) => self.warning = Some(why),
            News::Paused(paused, by) => {
                self.recording_paused = paused;
                self.told = Some(human::paused(paused, by.as_deref()));
            }
            News::Ended(exit) => self.ended = Some(exit),
            News::Gone(why) => self.gone = Some(why),
        }
    }

    /// Takes a part of a picture. A row counts up to its last write. Rows of which nothing is known
    /// count up to where the stream goes on, so that they lie before everything that comes.
    fn draw(&mut self, mut picture: &[u8]) {
        while !picture.is_empty() {
            while self.drawn.front().is_some_and(|(end, _)| *end <= self.picture.start) {
                self.drawn.pop_front();
            }
            let unknown = (self.picture.end, self.offset.0.saturating_sub(1));
            let (end, written) = self.drawn.front().copied().unwrap_or(unknown);
            let left = end.min(self.picture.end) - self.picture.start;
            let (now, later) = picture.split_at(left.min(picture.len()));
            self.count_up_to(now, left, written.min(unknown.1));
            self.picture.start += now.len();
            picture = later;
        }
    }

    /// Feeds bytes of which `left` are left in the picture, the last of them counted as offset
    /// `last`. If they are more than that, the first of them all count as 0.
    fn count_up_to(&mut self, bytes: &[u8], left: usize, last: u64) {
        let room = usize::try_from(last.saturating_add(1)).unwrap_or(usize::MAX);
        let (early, late) = bytes.split_at(bytes.len().min(left.saturating_sub(room)));
        for byte in early.chunks(1) {
            self.term.feed_at(byte, 0);
        }
        let left = (left - early.len()) as u64;
        self.term.feed_at(late, last.saturating_add(1).saturating_sub(left));
    }

    /// Its terminal.
    pub fn term(&self) -> &Term {
        &self.term
    }

    /// Whether the terminal shows what the program had written when the watch began.
    pub fn is_drawn(&self) -> bool {
        self.picture.is_empty()
    }

    /// Snapshots taken since it is watched.
    pub fn moments(&self) -> &[tapdeck_tape::Moment] {
        &self.moments
    }

    /// What the program is doing, as far as is known.
    pub fn state(&self) -> AgentState {
        self.state
    }

    /// The name of the stick's holder.
    pub fn holder(&self) -> Option<&str> {
        self.holder.as_deref()
    }

    /// Whether this view holds the stick.
    pub fn drives(&self) -> bool {
        self.holder.as_deref() == Some(self.link.own_name())
    }

    /// Why the last thing that was asked for was refused; told once.
    pub fn take_denial(&mut self) -> Option<String> {
        self.denied.take()
    }

    /// What a user has to know of the session; told once.
    pub fn take_warning(&mut self) -> Option<String> {
        self.warning.take()
    }

    /// What came of something that was asked for; told once.
    pub fn take_told(&mut self) -> Option<String> {
        self.told.take()
    }

    /// Whether its recordings are paused.
    pub fn recording_paused(&self) -> bool {
        self.recording_paused
    }

    /// How much the program has written, as far as is known.
    pub fn offset(&self) -> Offset {
        self.offset
    }

    /// Why its recording failed, if it did.
    pub fn recording_failed(&self) -> Option<&str> {
        self.recording_failed.as_deref()
    }

    /// How the program ended.
    pub fn ended(&self) -> Option<Exit> {
        self.ended
    }

    /// Why the session cannot be reached any more.
    pub fn gone(&self) -> Option<&str> {
        self.gone.as_deref()
    }

    /// Whether the program still runs, as far as is known.
    pub fn runs(&self) -> bool {
        self.ended.is_none() && self.gone.is_none()
    }

    /// The way to it.
    pub fn link(&self) -> &dyn Link {
        &*self.link
    }

    /// The way to it, to act on it.
    pub fn link_mut(&mut self) -> &mut dyn Link {
        &mut *self.link
    }
}

impl Live {
    /// Takes the stick.
    ///
    /// # Errors
    /// With the reason, when another client keeps it.
    pub fn take(&mut self) -> Result<(), String> {
        if !self.runs() {
            return Err("the program has ended".to_owned());
        }
        self.link.take()?;
        self.holder = Some(self.link.own_name().to_owned());
        Ok(())
    }

    /// Lets go of the stick.
    pub fn release(&mut self) {
        if self.drives() {
            self.link.release();
            self.holder = None;
        }
    }

    /// Types an event of the user's terminal, as the program's modes want it. `at` is the place of
    /// the mouse, in cells of the program's terminal.
    ///
    /// # Errors
    /// With the reason, when it cannot be delivered.
    pub fn type_event(&mut self, event: &Event, at: Option<(u16, u16)>) -> Result<(), String> {
        let modes = self.term.modes();
        let bytes = match event {
            Event::Key(key) => press(*key).map(|press| keys::encode(press, &modes)).unwrap_or_default(),
            Event::Paste(text) => keys::paste(text, &modes),
            Event::Mouse(mouse) => {
                at.and_then(|at| mouse_event(*mouse, at)).map_or(Vec::new(), |m| keys::mouse(m, &modes))
            }
            _ => Vec::new(),
        };
        if bytes.is_empty() { Ok(()) } else { self.link.send(&bytes) }
    }
}

/// A key of the user's terminal as the model names it.
fn press(key: KeyEvent) -> Option<KeyPress> {
    let mut mods = Mods::NONE;
    for (from, to) in [
        (KeyModifiers::SHIFT, Mods::SHIFT),
        (KeyModifiers::ALT, Mods::ALT),
        (KeyModifiers::CONTROL, Mods::CTRL),
        (KeyModifiers::SUPER, Mods::SUPER),
    ] {
        // An upper-case letter has its Shift in it.
        let told = from == KeyModifiers::SHIFT && matches!(key.code, KeyCode::Char(_));
        if key.modifiers.contains(from) && !told {
            mods = mods.with(to);
        }
    }
    let code = super::keys::key_of(key.code)?;
    Some(KeyPress::new(code, mods))
}

fn mouse_event(mouse: MouseEvent, (col, row): (u16, u16)) -> Option<keys::MouseEvent> {
    let button = |b| match b {
        MouseButton::Left => Button::Left,
        MouseButton::Middle => Button::Middle,
        MouseButton::Right => Button::Right,
    };
    let kind = match mouse.kind {
        MouseEventKind::Down(b) => MouseKind::Press(button(b)),
        MouseEventKind::Up(b) => MouseKind::Release(button(b)),
        MouseEventKind::Drag(b) => MouseKind::Move(Some(button(b))),
        MouseEventKind::Moved => MouseKind::Move(None),
        MouseEventKind::ScrollUp => MouseKind::Press(Button::WheelUp),
        MouseEventKind::ScrollDown => MouseKind::Press(Button::WheelDown),
        MouseEventKind::ScrollLeft => MouseKind::Press(Button::WheelLeft),
        MouseEventKind::ScrollRight => MouseKind::Press(Button::WheelRight),
    };
    let mut mods = Mods::NONE;
    for (from, to) in [
        (KeyModifiers::SHIFT, Mods::SHIFT),
        (KeyModifiers::ALT, Mods::ALT),
        (KeyModifiers::CONTROL, Mods::CTRL),
    ] {
        if mouse.modifiers.contains(from) {
            mods = mods.with(to);
        }
    }
    Some(keys::MouseEvent { kind, col, row, x: col.saturating_mul(10), y: row.saturating_mul(20), mods })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::testing::PaperLink;

    /// A picture longer than the output that it shows shifted all offsets behind it, and with them
    /// the snapshot nearest to a row.
    #[test]
    fn offsets_are_those_of_the_program_whatever_the_picture_is_like() {
        let picture = b"\x1b[?2004l\x1b[1;31mone\x1b[m\r\ntwo\r\n\x1b[?2004h\x1b[m";
        for (offset, cut) in [(0, 1), (3, 1), (12, 7), (12, 100), (5000, 3)] {
            let size = Size::new(20, 5);
            let mut live = Live::new("x", size, 100, Box::new(PaperLink::default()));
            live.hear(News::Picture { len: picture.len(), offset: Offset(offset) });
            let stream = [&picture[..], b"three"].concat();
            stream.chunks(cut).for_each(|piece| live.hear(News::Output(piece.to_vec())));
            assert_eq!(live.offset().0, offset + 5, "{offset} {cut}");
            let written: Vec<u64> = live.term().screen().take(3).map(|l| l.last_write_byte()).collect();
            assert!(written[0] <= offset && written[1] <= offset, "{offset} {cut}: {written:?}");
            assert_eq!(written[2], offset + 4, "{offset} {cut}");
        }
    }

    /// A view that comes late knows of each row when it was written, as the session itself does.
    #[test]
    fn rows_of_a_picture_have_their_own_last_writes() {
        let settings = || Settings::default().scrollback(100).replies(false);
        let mut own = Term::new(Size::new(12, 4), settings());
        let text =
            "one\r\n\x1b[31mtwo\x1b[m is a line that wraps\r\n\r\nthree é\r\nfour\r\nfive\x1b[2A\r!\x1b[3B";
        own.feed(text.as_bytes());
        own.feed_at(b"\x1b[?1049halternate\x1b[?1049l", 1000);
        let (picture, rows) = own.dump_with_rows();
        assert_eq!(picture, own.dump());
        let mut live = Live::new("x", Size::new(12, 4), 100, Box::new(PaperLink::default()));
        live.hear(News::Picture { len: picture.len(), offset: Offset(2000) });
        rows.chunks(2).for_each(|rows| live.hear(News::Drawn(rows.to_vec())));
        picture.chunks(5).for_each(|piece| live.hear(News::Output(piece.to_vec())));
        let lines = |term: &Term| -> Vec<(String, u64)> {
            term.lines().filter(|l| !l.is_blank()).map(|l| (l.text(), l.last_write_byte())).collect()
        };
        assert_eq!(lines(live.term()), lines(&own));
        assert_eq!(live.offset(), Offset(2000));
    }
}
