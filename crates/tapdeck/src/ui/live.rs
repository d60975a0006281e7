//! A live session as a view sees it: the model of its terminal, who drives it, and the way to type to it. The session
//! itself is behind [`Link`], so that a view can be tried with none.

use std::os::fd::BorrowedFd;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use tapdeck_core::Exit;
use tapdeck_core::turns::AgentState;
use tapdeck_term::keys::{self, Button, Key, KeyPress, Mods, MouseKind};
use tapdeck_term::{Settings, Size, Term};

/// What a session tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// The program wrote this, or this redraws what it wrote before.
    Output(Vec<u8>),
    /// The next byte of output is this one of all that the program has written.
    Offset(u64),
    /// Something that was asked for is refused, for this reason; and who drives instead.
    Denied(String, Option<String>),
    /// The terminal has this size.
    Resize(Size),
    /// Somebody else drives, or nobody.
    Driver(Option<String>),
    /// The program does something else now.
    State(AgentState),
    /// A snapshot was taken.
    Snapshot(tapdeck_tape::Moment),
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
    /// With the reason, when somebody else keeps it.
    fn take(&mut self) -> Result<(), String>;

    /// Lets go of it.
    fn release(&mut self);

    /// Ends the program.
    fn end(&mut self);

    /// Whether the program goes on when nobody looks any more.
    fn outlives(&self) -> bool;

    /// The name under which this view drives.
    fn own_name(&self) -> &str;

    /// How often news must be looked for although the descriptor is silent.
    fn due_ns(&self) -> Option<u64> {
        None
    }
}

/// A session being watched.
pub struct Live {
    /// What it is called.
    pub name: String,
    term: Term,
    offset: u64,
    driver: Option<String>,
    state: AgentState,
    denied: Option<String>,
    ended: Option<Exit>,
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
            term: Term::new(size, Settings { scrollback, replies: false, ..Settings::default() }),
            offset: 0,
            driver: None,
            state: AgentState::Unknown,
            denied: None,
            ended: None,
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
                let _ = self.term.feed(&bytes, self.offset);
                self.offset += bytes.len() as u64;
            }
            News::Offset(offset) => self.offset = offset,
            News::Denied(why, driver) => (self.denied, self.driver) = (Some(why), driver),
            News::Resize(size) => {
                let _ = self.term.resize(size);
            }
            News::Driver(driver) => self.driver = driver,
            News::State(state) => self.state = state,
            News::Snapshot(moment) => self.moments.push(moment),
            News::Ended(exit) => self.ended = Some(exit),
            News::Gone(why) => self.gone = Some(why),
        }
    }

    /// Its terminal.
    pub fn term(&self) -> &Term {
        &self.term
    }

    /// Snapshots taken since it is watched.
    pub fn moments(&self) -> &[tapdeck_tape::Moment] {
        &self.moments
    }

    /// What the program is doing, as far as is known.
    pub fn state(&self) -> AgentState {
        self.state
    }

    /// Who drives.
    pub fn driver(&self) -> Option<&str> {
        self.driver.as_deref()
    }

    /// Whether this view drives.
    pub fn drives(&self) -> bool {
        self.driver.as_deref() == Some(self.link.own_name())
    }

    /// Why the last thing that was asked for was refused; told once.
    pub fn take_denial(&mut self) -> Option<String> {
        self.denied.take()
    }

    /// How much the program has written, as far as is known.
    pub fn offset(&self) -> u64 {
        self.offset
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
    /// With the reason, when somebody else keeps it.
    pub fn take(&mut self) -> Result<(), String> {
        if !self.runs() {
            return Err("the program has ended".to_owned());
        }
        self.link.take()?;
        self.driver = Some(self.link.own_name().to_owned());
        Ok(())
    }

    /// Lets go of the stick.
    pub fn release(&mut self) {
        if self.drives() {
            self.link.release();
            self.driver = None;
        }
    }

    /// Types what came from the user's terminal, as the program's modes want it. `at` is where the mouse is, in
    /// cells of the program's terminal.
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
    let code = match key.code {
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Enter => Key::Enter,
        KeyCode::Tab | KeyCode::BackTab => Key::Tab,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Esc => Key::Escape,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Insert => Key::Insert,
        KeyCode::Delete => Key::Delete,
        KeyCode::F(n) => Key::F(n),
        KeyCode::KeypadBegin => Key::Begin,
        _ => return None,
    };
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
