//! Keystrokes, pastes, mouse and focus events as bytes, written as the modes in force want them.
//!
//! A sender names a key and the terminal's state decides what it becomes: the same arrow is three
//! bytes or six under different modes, and a paste must not be able to end its own brackets.

mod decode;
mod encode;
mod kitty;
mod mouse;
mod names;
mod reports;

pub use decode::decode;
pub use mouse::{Button, MouseEvent, MouseKind, mouse};
pub use names::KeyNameError;
pub use reports::is_report;

use crate::modes::Modes;

/// A key, by what is on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Key {
    /// A key that types this character when no modifier is held.
    Char(char),
    /// Return.
    Enter,
    /// Tab.
    Tab,
    /// Backspace.
    Backspace,
    /// Escape.
    Escape,
    /// Cursor up.
    Up,
    /// Cursor down.
    Down,
    /// Cursor right.
    Right,
    /// Cursor left.
    Left,
    /// Home.
    Home,
    /// End.
    End,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Insert.
    Insert,
    /// Delete.
    Delete,
    /// A function key, from 1.
    F(u8),
    /// A key of the numeric keypad: a digit or one of `.+-*/=,`.
    Keypad(char),
    /// Enter of the numeric keypad.
    KeypadEnter,
    /// The centre of the keypad without Num Lock.
    Begin,
    /// The menu key.
    Menu,
    /// Print screen.
    PrintScreen,
    /// Pause.
    Pause,
    /// Caps lock.
    CapsLock,
    /// Scroll lock.
    ScrollLock,
    /// Num lock.
    NumLock,
}

/// Modifiers held down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Mods(pub(crate) u8);

impl Mods {
    /// None held.
    pub const NONE: Self = Self(0);
    /// Shift.
    pub const SHIFT: Self = Self(1);
    /// Alt, which terminals also call Meta.
    pub const ALT: Self = Self(2);
    /// Control.
    pub const CTRL: Self = Self(4);
    /// Super, Windows or Command.
    pub const SUPER: Self = Self(8);
    /// Hyper.
    pub const HYPER: Self = Self(16);
    /// Meta proper.
    pub const META: Self = Self(32);

    /// Both sets together.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` are held.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether none is held.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The parameter that stands for them in sequences.
    fn parameter(self) -> u8 {
        self.0 + 1
    }
}

/// What happened to the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum KeyEvent {
    /// It went down.
    #[default]
    Press,
    /// It is held.
    Repeat,
    /// It came up; only programs that asked for it are told.
    Release,
}

/// A key with its modifiers. Parses from `C-c`, `M-x`, `S-F5`, `Enter` and from `Ctrl+C`,
/// `Alt+Enter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyPress {
    /// The key.
    pub key: Key,
    /// Modifiers held.
    pub mods: Mods,
    /// Down, held or up.
    pub event: KeyEvent,
}

impl KeyPress {
    /// A key going down.
    pub const fn new(key: Key, mods: Mods) -> Self {
        Self { key, mods, event: KeyEvent::Press }
    }
}

/// The bytes of a key under the modes in force; empty when there are none for it.
pub fn encode(press: KeyPress, modes: &Modes) -> Vec<u8> {
    if modes.kitty_keyboard() != 0 {
        kitty::encode(press, modes)
    } else if press.event == KeyEvent::Release {
        Vec::new()
    } else {
        encode::legacy(press, modes)
    }
}

/// The bytes of text that is typed: as it is, with line ends as the Enter key sends them.
pub fn text(text: &str, modes: &Modes) -> Vec<u8> {
    let enter = encode(KeyPress::new(Key::Enter, Mods::NONE), modes);
    let mut out = Vec::with_capacity(text.len());
    for c in text.replace("\r\n", "\n").chars() {
        if c == '\n' || c == '\r' {
            out.extend_from_slice(&enter);
        } else {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    out
}

/// The bytes of a paste: in brackets where the program asked for them, line ends as carriage
/// returns, and without the controls that could end the brackets or act by themselves.
pub fn paste(text: &str, modes: &Modes) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 12);
    if modes.bracketed_paste() {
        out.extend_from_slice(b"\x1b[200~");
    }
    for c in text.replace("\r\n", "\r").chars() {
        match c {
            '\n' => out.push(b'\r'),
            '\t' | '\r' => out.push(c as u8),
            c if c.is_control() => {}
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    if modes.bracketed_paste() {
        out.extend_from_slice(b"\x1b[201~");
    }
    out
}

/// The report of a focus change, where the program asked for it.
pub fn focus(gained: bool, modes: &Modes) -> Vec<u8> {
    match (modes.focus(), gained) {
        (false, _) => Vec::new(),
        (true, true) => b"\x1b[I".to_vec(),
        (true, false) => b"\x1b[O".to_vec(),
    }
}
