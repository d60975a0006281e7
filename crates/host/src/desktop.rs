//! The X11 desktop: keys that work whatever window has the focus, and whose window that is.
//!
//! Keys are grabbed, not listened to: nothing is learnt of what else is typed. Locks (Caps Lock,
//! Num Lock) make no difference, a key that is held counts once, and a keyboard whose layout
//! changes is read anew.

use tapdeck_term::keys::{Key, KeyPress, Mods};
use x11rb::connection::Connection;
use x11rb::errors::{ConnectError, ConnectionError, ReplyError};
use x11rb::protocol::res::{ClientIdMask, ClientIdSpec, ConnectionExt as _};
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _, GrabMode, Keycode, Mapping, ModMask, Window};
use x11rb::protocol::{ErrorKind, Event};
use x11rb::rust_connection::RustConnection;

/// Windows inside windows, at most.
const DEPTH: usize = 64;
const CAPS_LOCK: u16 = 2;

/// What the desktop refuses.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DesktopError {
    /// There is none.
    #[error("no X11 desktop can be reached: {0}")]
    NotThere(#[from] ConnectError),
    /// It is gone.
    #[error("the X11 desktop is gone: {0}")]
    Gone(#[from] ConnectionError),
    /// It did not like a request.
    #[error("the X11 desktop refused: {0}")]
    Refused(#[from] ReplyError),
    /// A key that every window needs for typing.
    #[error("{0} is typed in every window: add Ctrl, Alt or Super to it")]
    Plain(KeyPress),
    /// A key that the keyboard has not.
    #[error("this keyboard has no key {0}")]
    NoKey(KeyPress),
    /// Another program has it already.
    #[error("{0} is taken by another program: choose another key")]
    Taken(KeyPress),
    /// No window has the focus.
    #[error("no window has the focus")]
    NoFocus,
    /// The window's owner is not known.
    #[error("the window that has the focus does not say whose it is")]
    NobodysWindow,
}

/// A connection to the desktop, with the keys that were asked for.
pub struct Desktop {
    conn: RustConnection,
    root: Window,
    keys: Vec<Grabbed>,
    /// The key that came up last, and when: a key that is held comes up and goes down at the same
    /// time.
    released: Option<(Keycode, u32)>,
    /// The modifier that Num Lock is.
    num_lock: u16,
}

crate::opaque::opaque_debug!(Desktop);

struct Grabbed {
    press: KeyPress,
    codes: Vec<Keycode>,
    mods: u16,
}

impl Desktop {
    /// Connects to the desktop that `DISPLAY` names.
    ///
    /// # Errors
    /// When there is none.
    pub fn connect() -> Result<Self, DesktopError> {
        let (conn, screen) = x11rb::connect(None)?;
        let root = conn.setup().roots.get(screen).ok_or(ConnectError::InvalidScreen)?.root;
        let mut desktop = Self { conn, root, keys: Vec::new(), released: None, num_lock: 0 };
        desktop.num_lock = Keyboard::read(&desktop.conn)?.modifier(&[0xff7f]);
        Ok(desktop)
    }

    /// Has a key for itself from now on; [`Desktop::wait`] gives its number, in the order of these
    /// calls.
    ///
    /// # Errors
    /// When the key cannot be had.
    pub fn grab(&mut self, press: KeyPress) -> Result<(), DesktopError> {
        let typed = matches!(press.key, Key::Char(_) | Key::Enter | Key::Tab | Key::Backspace);
        let held = [Mods::CTRL, Mods::ALT, Mods::SUPER, Mods::HYPER].iter().any(|m| press.mods.contains(*m));
        if typed && !held {
            return Err(DesktopError::Plain(press));
        }
        let grabbed = self.hold(press)?;
        self.keys.push(grabbed);
        Ok(())
    }

    fn hold(&self, press: KeyPress) -> Result<Grabbed, DesktopError> {
        let keyboard = Keyboard::read(&self.conn)?;
        let codes = keyboard.codes(keysym(press.key));
        let mods = keyboard.mask(press.mods).filter(|_| !codes.is_empty());
        let mods = mods.ok_or(DesktopError::NoKey(press))?;
        for code in &codes {
            for locks in [0, CAPS_LOCK, self.num_lock, CAPS_LOCK | self.num_lock] {
                let mask = ModMask::from(mods | locks);
                let grab =
                    self.conn.grab_key(false, self.root, mask, *code, GrabMode::ASYNC, GrabMode::ASYNC)?;
                match grab.check() {
                    Ok(()) => {}
                    Err(ReplyError::X11Error(e)) if e.error_kind == ErrorKind::Access => {
                        return Err(DesktopError::Taken(press));
                    }
                    Err(e) => return Err(e.into()),
                }
            }
        }
        Ok(Grabbed { press, codes, mods })
    }

    /// Waits until one of the keys is pressed.
    ///
    /// # Errors
    /// When the desktop is gone, or a key is lost with a new layout.
    pub fn wait(&mut self) -> Result<usize, DesktopError> {
        loop {
            match self.conn.wait_for_event()? {
                Event::KeyPress(key) => {
                    if self.released == Some((key.detail, key.time)) {
                        continue;
                    }
                    let held = u16::from(key.state) & 0xff & !(CAPS_LOCK | self.num_lock);
                    let is = |k: &Grabbed| k.codes.contains(&key.detail) && k.mods == held;
                    if let Some(at) = self.keys.iter().position(is) {
                        return Ok(at);
                    }
                }
                Event::KeyRelease(key) => self.released = Some((key.detail, key.time)),
                Event::MappingNotify(change) if change.request != Mapping::POINTER => self.hold_again()?,
                _ => {}
            }
        }
    }

    fn hold_again(&mut self) -> Result<(), DesktopError> {
        for code in self.keys.iter().flat_map(|k| &k.codes) {
            self.conn.ungrab_key(*code, self.root, ModMask::ANY)?;
        }
        self.num_lock = Keyboard::read(&self.conn)?.modifier(&[0xff7f]);
        for i in 0..self.keys.len() {
            self.keys[i] = self.hold(self.keys[i].press)?;
        }
        Ok(())
    }

    /// The process whose window has the focus.
    ///
    /// # Errors
    /// When none has, or it cannot be told whose it is.
    pub fn focused_process(&self) -> Result<u32, DesktopError> {
        let window = self.focused_window()?;
        self.owner(window)?.ok_or(DesktopError::NobodysWindow)
    }

    fn focused_window(&self) -> Result<Window, DesktopError> {
        if let Some(active) = self.number(self.root, "_NET_ACTIVE_WINDOW", AtomEnum::WINDOW)? {
            return Ok(active);
        }
        // Without a window manager that says so: where the keys go.
        match self.conn.get_input_focus()?.reply()?.focus {
            0 => Err(DesktopError::NoFocus),
            // Whatever window the pointer is in.
            1 => {
                let mut window = self.root;
                for _ in 0..DEPTH {
                    match self.conn.query_pointer(window)?.reply()?.child {
                        0 => break,
                        child => window = child,
                    }
                }
                if window == self.root { Err(DesktopError::NoFocus) } else { Ok(window) }
            }
            window => Ok(window),
        }
    }

    fn owner(&self, window: Window) -> Result<Option<u32>, DesktopError> {
        // The server's own word, where it gives one: what a window says of itself may be another
        // machine's.
        let spec = [ClientIdSpec { client: window, mask: ClientIdMask::LOCAL_CLIENT_PID }];
        if let Ok(answer) =
            self.conn.res_query_client_ids(&spec).map_err(ReplyError::from).and_then(|c| c.reply())
            && let Some(pid) = answer.ids.first().and_then(|id| id.value.first()).filter(|pid| **pid != 0)
        {
            return Ok(Some(*pid));
        }
        let mut window = window;
        for _ in 0..DEPTH {
            if let Some(pid) = self.number(window, "_NET_WM_PID", AtomEnum::CARDINAL)? {
                return Ok(Some(pid).filter(|_| self.is_local(window)));
            }
            match self.conn.query_tree(window)?.reply()?.parent {
                0 => break,
                parent => window = parent,
            }
        }
        Ok(None)
    }

    /// Whether a window's program runs on this machine, as far as it says.
    fn is_local(&self, window: Window) -> bool {
        let name = self
            .conn
            .get_property(false, window, AtomEnum::WM_CLIENT_MACHINE, AtomEnum::ANY, 0, 64)
            .map_err(ReplyError::from)
            .and_then(|c| c.reply())
            .map(|p| p.value)
            .unwrap_or_default();
        let own = std::fs::read("/proc/sys/kernel/hostname").unwrap_or_default();
        name.is_empty() || name == own.trim_ascii_end()
    }

    fn number(&self, window: Window, name: &str, kind: AtomEnum) -> Result<Option<u32>, DesktopError> {
        let atom = self.conn.intern_atom(true, name.as_bytes())?.reply()?.atom;
        if atom == 0 {
            return Ok(None);
        }
        let property = self.conn.get_property(false, window, atom, kind, 0, 1)?.reply()?;
        Ok(property.value32().and_then(|mut values| values.next()).filter(|n| *n != 0))
    }
}

/// The keyboard's layout.
struct Keyboard {
    first: Keycode,
    per_key: usize,
    symbols: Vec<u32>,
    mod_keys: Vec<Keycode>,
    per_mod: usize,
}

impl Keyboard {
    fn read(conn: &RustConnection) -> Result<Self, DesktopError> {
        let (first, last) = (conn.setup().min_keycode, conn.setup().max_keycode);
        let keys = conn.get_keyboard_mapping(first, last.saturating_sub(first).saturating_add(1))?.reply()?;
        let mods = conn.get_modifier_mapping()?.reply()?;
        Ok(Self {
            first,
            per_key: usize::from(keys.keysyms_per_keycode).max(1),
            symbols: keys.keysyms,
            per_mod: usize::from(mods.keycodes_per_modifier()).max(1),
            mod_keys: mods.keycodes,
        })
    }

    /// The keys that give this symbol without a modifier, in the first layout or else in the
    /// second.
    fn codes(&self, symbol: u32) -> Vec<Keycode> {
        let in_column = |column: usize| -> Vec<Keycode> {
            let keys = self.symbols.chunks(self.per_key).zip(self.first..=Keycode::MAX);
            keys.filter(|(symbols, _)| symbols.get(column) == Some(&symbol)).map(|(_, code)| code).collect()
        };
        Some(in_column(0)).filter(|found| !found.is_empty()).unwrap_or_else(|| in_column(2))
    }

    /// The bit of the modifier that one of these keys is; 0 when none is one.
    fn modifier(&self, symbols: &[u32]) -> u16 {
        let codes: Vec<Keycode> = symbols.iter().flat_map(|s| self.codes(*s)).collect();
        let found =
            self.mod_keys.chunks(self.per_mod).position(|keys| keys.iter().any(|k| codes.contains(k)));
        found.map_or(0, |at| 1 << at)
    }

    /// These modifiers as bits, if the keyboard has all of them.
    fn mask(&self, mods: Mods) -> Option<u16> {
        // Alt, Super and Hyper are where the layout puts them; most put the first two here.
        let or = |bit: u16, usual: u16| if bit == 0 { usual } else { bit };
        let known = [
            (Mods::SHIFT, 1),
            (Mods::CTRL, 4),
            (Mods::ALT, or(self.modifier(&[0xffe9, 0xffea]), 8)),
            (Mods::SUPER, or(self.modifier(&[0xffeb, 0xffec]), 0x40)),
            (Mods::HYPER, self.modifier(&[0xffed, 0xffee])),
        ];
        let asked: Vec<u16> = known.iter().filter(|(m, _)| mods.contains(*m)).map(|(_, bit)| *bit).collect();
        if asked.contains(&0) { None } else { Some(asked.iter().fold(0, |all, bit| all | bit)) }
    }
}

/// The symbol of a key, as X11 numbers them; 0 for one that it does not know.
fn keysym(key: Key) -> u32 {
    match key {
        Key::Char(c) => match u32::from(c.to_lowercase().next().unwrap_or(c)) {
            latin @ (0x20..=0x7e | 0xa0..=0xff) => latin,
            other => 0x0100_0000 | other,
        },
        Key::F(n) => 0xffbd + u32::from(n),
        Key::Enter => 0xff0d,
        Key::Tab => 0xff09,
        Key::Backspace => 0xff08,
        Key::Escape => 0xff1b,
        Key::Up => 0xff52,
        Key::Down => 0xff54,
        Key::Right => 0xff53,
        Key::Left => 0xff51,
        Key::Home => 0xff50,
        Key::End => 0xff57,
        Key::PageUp => 0xff55,
        Key::PageDown => 0xff56,
        Key::Insert => 0xff63,
        Key::Delete => 0xffff,
        Key::KeypadEnter => 0xff8d,
        Key::Keypad(c) if c.is_ascii() => 0xff80 | u32::from(c),
        Key::Begin => 0xff58,
        Key::Menu => 0xff67,
        Key::PrintScreen => 0xff61,
        Key::Pause => 0xff13,
        Key::ScrollLock => 0xff14,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_numbers_that_x11_gives_them() {
        for (name, symbol) in [
            ("Ctrl+Alt+C", 0x63),
            ("Super+C", 0x63),
            ("C-M-é", 0xe9),
            ("F12", 0xffc9),
            ("M-Insert", 0xff63),
            ("Super+KP5", 0xffb5),
            ("Ctrl+ж", 0x0100_0436),
        ] {
            let press: KeyPress = name.parse().expect(name);
            assert_eq!(keysym(press.key), symbol, "{name}");
        }
    }

    #[test]
    fn a_layout_says_where_keys_and_modifiers_are() {
        // Two layouts with two levels each, from key 8 on; Alt is the fourth modifier, Num Lock the
        // fifth.
        let symbols = vec![
            0x63, 0x43, 0x6d, 0x4d, // c C m M
            0xffe9, 0, 0xffe9, 0, // Alt
            0xff7f, 0, 0xff7f, 0, // Num Lock
        ];
        let keyboard =
            Keyboard { first: 8, per_key: 4, symbols, mod_keys: vec![0, 0, 0, 9, 10, 0, 0, 0], per_mod: 1 };
        assert_eq!(
            (keyboard.codes(0x63), keyboard.codes(0x6d), keyboard.codes(0x78)),
            (vec![8], vec![8], vec![])
        );
        assert_eq!((keyboard.modifier(&[0xff7f]), keyboard.modifier(&[0xffeb])), (16, 0));
        assert_eq!(keyboard.mask(Mods::CTRL.with(Mods::ALT)), Some(12));
        assert_eq!(keyboard.mask(Mods::SUPER), Some(0x40));
        assert_eq!(keyboard.mask(Mods::HYPER), None);
    }
}
