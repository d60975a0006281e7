//! Mouse events as reports, in the encoding that the program chose.

use super::{Key, KeyPress, Mods};
use crate::modes::{Modes, MouseEncoding, MouseTracking};

/// A mouse button or a direction of the wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Button {
    /// The left one.
    Left,
    /// The middle one.
    Middle,
    /// The right one.
    Right,
    /// A notch up.
    WheelUp,
    /// A notch down.
    WheelDown,
    /// A notch to the left.
    WheelLeft,
    /// A notch to the right.
    WheelRight,
    /// Buttons 8 to 11: back, forward and further ones.
    Extra(u8),
}

impl Button {
    fn code(self) -> u16 {
        match self {
            Self::Left => 0,
            Self::Middle => 1,
            Self::Right => 2,
            Self::WheelUp => 64,
            Self::WheelDown => 65,
            Self::WheelLeft => 66,
            Self::WheelRight => 67,
            Self::Extra(n) => 128 + u16::from(n.saturating_sub(8) & 3),
        }
    }

    fn is_wheel(self) -> bool {
        matches!(self, Self::WheelUp | Self::WheelDown | Self::WheelLeft | Self::WheelRight)
    }
}

/// What the mouse did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MouseKind {
    /// A button went down, or the wheel turned.
    Press(Button),
    /// A button came up.
    Release(Button),
    /// It moved, with a button held or none.
    Move(Option<Button>),
}

/// A mouse event, by cell and by pixel, both from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MouseEvent {
    /// What it did.
    pub kind: MouseKind,
    /// Column.
    pub col: u16,
    /// Row.
    pub row: u16,
    /// Pixel from the left, for mode 1016.
    pub x: u16,
    /// Pixel from the top.
    pub y: u16,
    /// Modifiers held.
    pub mods: Mods,
}

/// The bytes of a mouse event; empty when the program did not ask for it. On the alternate screen a
/// wheel that the program did not ask for becomes arrow keys where mode 1007 says so.
pub fn mouse(event: MouseEvent, modes: &Modes) -> Vec<u8> {
    let tracking = modes.mouse();
    let (button, release, motion) = match event.kind {
        MouseKind::Press(b) => (Some(b), false, false),
        MouseKind::Release(b) => (Some(b), true, false),
        MouseKind::Move(b) => (b, false, true),
    };
    if tracking == MouseTracking::Off {
        return wheel_as_keys(event.kind, modes);
    }
    let wanted = match tracking {
        MouseTracking::Off => false,
        MouseTracking::X10 => {
            !release && !motion && matches!(button, Some(Button::Left | Button::Middle | Button::Right))
        }
        MouseTracking::Normal | MouseTracking::Highlight => !motion,
        MouseTracking::Button => !motion || button.is_some(),
        MouseTracking::Any => true,
    };
    // The wheel has no release.
    if !wanted || (release && button.is_some_and(Button::is_wheel)) {
        return Vec::new();
    }
    let encoding = modes.mouse_encoding();
    let tells_release = matches!(encoding, MouseEncoding::Sgr | MouseEncoding::SgrPixels);
    let mut code = match button {
        Some(_) if release && !tells_release => 3,
        Some(b) => b.code(),
        None => 3,
    };
    if motion {
        code += 32;
    }
    if tracking != MouseTracking::X10 {
        let bit = |m: Mods, v: u16| if event.mods.contains(m) { v } else { 0 };
        code += bit(Mods::SHIFT, 4) + bit(Mods::ALT, 8) + bit(Mods::CTRL, 16);
    }
    let (col, row) = (u32::from(event.col) + 1, u32::from(event.row) + 1);
    let last = if release { 'm' } else { 'M' };
    match encoding {
        MouseEncoding::Sgr => format!("\x1b[<{code};{col};{row}{last}").into_bytes(),
        MouseEncoding::SgrPixels => format!("\x1b[<{code};{};{}{last}", event.x, event.y).into_bytes(),
        MouseEncoding::Urxvt => format!("\x1b[{};{col};{row}M", code + 32).into_bytes(),
        MouseEncoding::Bytes => {
            // A place beyond what a byte can say is not reported at all.
            let byte = |n: u32| u8::try_from(n + 32).ok();
            match (byte(u32::from(code)), byte(col), byte(row)) {
                (Some(b), Some(x), Some(y)) => vec![0x1b, b'[', b'M', b, x, y],
                _ => Vec::new(),
            }
        }
        MouseEncoding::Utf8 => {
            let mut out = b"\x1b[M".to_vec();
            for n in [u32::from(code), col, row] {
                match char::from_u32(n + 32).filter(|c| (*c as u32) < 2048) {
                    Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                    None => return Vec::new(),
                }
            }
            out
        }
    }
}

fn wheel_as_keys(kind: MouseKind, modes: &Modes) -> Vec<u8> {
    let key = match kind {
        MouseKind::Press(Button::WheelUp) => Key::Up,
        MouseKind::Press(Button::WheelDown) => Key::Down,
        _ => return Vec::new(),
    };
    if modes.alternate() && modes.alternate_scroll() {
        super::encode(KeyPress::new(key, Mods::NONE), modes).repeat(3)
    } else {
        Vec::new()
    }
}
