//! Bringing a real terminal back: to sane modes after a program died, and the cursor after
//! something else painted.

use crate::machine::default_tabs;
use crate::modes::{Modes, MouseEncoding, MouseTracking};
use crate::paint;
use crate::style::Attrs;
use crate::term::Term;

/// Everything that a dead program may have left behind and that a shell user would suffer from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Leftovers {
    /// The number of the mode that entered the alternate screen, or 0.
    pub(crate) alternate: u16,
    pub(crate) cursor_hidden: bool,
    pub(crate) mouse: u16,
    pub(crate) mouse_encoding: u16,
    pub(crate) paste: bool,
    pub(crate) focus: bool,
    pub(crate) synchronised: bool,
    pub(crate) scheme_reports: bool,
    pub(crate) resize_reports: bool,
    pub(crate) cursor_keys: bool,
    pub(crate) keypad: bool,
    /// Entries to pop off the kitty keyboard stacks of the main and the alternate screen.
    pub(crate) kitty: [u8; 2],
    /// Kitty flags set without a push.
    pub(crate) kitty_set: [bool; 2],
    pub(crate) modify_other_keys: bool,
    pub(crate) cursor_shape: bool,
    pub(crate) margins: bool,
    pub(crate) side_margins: bool,
    pub(crate) origin: bool,
    pub(crate) charset: bool,
    /// Charsets that a shift would bring.
    pub(crate) other_charsets: bool,
    pub(crate) styled: bool,
    pub(crate) no_wrap: bool,
    pub(crate) insert: bool,
    pub(crate) reverse: bool,
    pub(crate) link: bool,
    pub(crate) protected: bool,
    /// The width of a screen whose tab stops were moved, else 0.
    pub(crate) tabs: u16,
    /// What leaving the alternate screen brings back.
    pub(crate) behind: Behind,
}

/// What the saved cursor of the main screen brings back beside its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Behind {
    /// The row and column, from 1, of a cursor that was saved in origin mode.
    pub(crate) origin: Option<(u16, u16)>,
    pub(crate) charset: bool,
    pub(crate) other_charsets: bool,
    pub(crate) styled: bool,
    pub(crate) protected: bool,
}

impl Leftovers {
    /// The bytes that clean up; empty when nothing is left.
    pub(crate) fn undo(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut put = |yes: bool, bytes: &[u8]| {
            if yes {
                out.extend_from_slice(bytes);
            }
        };
        put(self.synchronised, b"\x1b[?2026l");
        put(self.link, b"\x1b]8;;\x1b\\");
        let in_alternate = self.alternate != 0;
        // Flags below a push are in force again after its pop.
        let pop = |screen: usize| format!("\x1b[<{}u", self.kitty[screen]);
        put(self.kitty[usize::from(in_alternate)] > 0, pop(usize::from(in_alternate)).as_bytes());
        put(self.kitty_set[usize::from(in_alternate)], b"\x1b[=0u");
        put(self.modify_other_keys, b"\x1b[>4;0m");
        put(self.mouse != 0, format!("\x1b[?{}l", self.mouse).as_bytes());
        put(self.mouse_encoding != 0, format!("\x1b[?{}l", self.mouse_encoding).as_bytes());
        put(self.paste, b"\x1b[?2004l");
        put(self.focus, b"\x1b[?1004l");
        put(self.scheme_reports, b"\x1b[?2031l");
        put(self.resize_reports, b"\x1b[?2048l");
        put(self.cursor_keys, b"\x1b[?1l");
        put(self.keypad, b"\x1b>");
        put(self.insert, b"\x1b[4l");
        put(self.reverse, b"\x1b[?5l");
        put(self.no_wrap, b"\x1b[?7h");
        // These move the cursor. Leaving the alternate screen brings it back by itself, else it is
        // kept here.
        let homing = self.origin || self.margins || self.side_margins;
        let keep = homing && self.alternate != 1049;
        put(keep && self.origin, b"\x1b[?6l");
        put(keep, b"\x1b7");
        put(self.origin && !keep, b"\x1b[?6l");
        put(self.side_margins, b"\x1b[?69l");
        put(self.margins, b"\x1b[r");
        put(keep, b"\x1b8");
        put(self.charset, b"\x1b(B\x0f");
        put(self.styled, b"\x1b[m");
        put(in_alternate, format!("\x1b[?{}l", self.alternate).as_bytes());
        if in_alternate {
            put(self.kitty[0] > 0, pop(0).as_bytes());
            put(self.kitty_set[0], b"\x1b[=0u");
            put(self.styled || self.behind.styled, b"\x1b[m");
            put(self.behind.charset, b"\x1b(B\x0f");
            if let Some((row, col)) = self.behind.origin {
                put(true, format!("\x1b[?6l\x1b[{row};{col}H").as_bytes());
            }
        }
        put(self.other_charsets || self.behind.other_charsets, b"\x1b)B\x1b*B\x1b+B");
        put(self.protected || self.behind.protected, b"\x1b[0\"q");
        put(self.cursor_hidden, b"\x1b[?25h");
        put(self.cursor_shape, b"\x1b[0 q");
        put(self.tabs > 0, b"\x1b7\r\x1b[3g");
        (1..self.tabs.div_ceil(8)).for_each(|_| put(true, b"\x1b[8C\x1bH"));
        // In a row of double width the steps end early; terminals that know this do it at once.
        put(self.tabs > 0, b"\x1b8\x1b[?5W");
        out
    }

    /// The bytes that set again, after an undo, what can be: the rest is the program's to set when
    /// it is continued.
    pub(crate) fn redo(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut put = |yes: bool, bytes: &[u8]| {
            if yes {
                out.extend_from_slice(bytes);
            }
        };
        put(self.alternate != 0, format!("\x1b[?{}h", self.alternate).as_bytes());
        put(self.cursor_hidden, b"\x1b[?25l");
        put(self.cursor_keys, b"\x1b[?1h");
        put(self.keypad, b"\x1b=");
        put(self.reverse, b"\x1b[?5h");
        put(self.no_wrap, b"\x1b[?7l");
        put(self.paste, b"\x1b[?2004h");
        put(self.focus, b"\x1b[?1004h");
        put(self.scheme_reports, b"\x1b[?2031h");
        put(self.resize_reports, b"\x1b[?2048h");
        put(self.mouse != 0, format!("\x1b[?{}h", self.mouse).as_bytes());
        put(self.mouse_encoding != 0, format!("\x1b[?{}h", self.mouse_encoding).as_bytes());
        out
    }
}

/// Bytes that bring a real terminal back to sane modes when it is not known what is set: those of a
/// program that died, and those of a client that was killed. They leave the alternate screen, and
/// set the colours that the program changed back.
pub fn undo_everything() -> Vec<u8> {
    let everything = Leftovers {
        alternate: 1047,
        cursor_hidden: true,
        mouse: 1000,
        mouse_encoding: 1006,
        paste: true,
        focus: true,
        synchronised: true,
        scheme_reports: true,
        resize_reports: true,
        cursor_keys: true,
        keypad: true,
        kitty: [255, 255],
        kitty_set: [true, true],
        modify_other_keys: true,
        cursor_shape: true,
        margins: true,
        side_margins: true,
        origin: false,
        charset: true,
        other_charsets: true,
        styled: true,
        no_wrap: true,
        insert: true,
        reverse: true,
        link: true,
        protected: true,
        tabs: 0,
        behind: Behind { charset: true, styled: true, ..Behind::default() },
    };
    // First whatever is half written, then what a soft reset knows, which does not move the cursor.
    let mut out = b"\x18\x1b\\\x1b[!p\x1b[?9;1001;1002;1003;1005;1015;1016;2027l".to_vec();
    out.extend(everything.undo());
    out.extend_from_slice(b"\x1b[?5W\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\x1b]112\x1b\\");
    out
}

impl Leftovers {
    /// Only what decides how keys, pastes and the mouse arrive.
    fn of_input(self) -> Self {
        Leftovers {
            mouse: self.mouse,
            mouse_encoding: self.mouse_encoding,
            paste: self.paste,
            focus: self.focus,
            cursor_keys: self.cursor_keys,
            keypad: self.keypad,
            ..Leftovers::default()
        }
    }
}

impl Term {
    fn leftovers(&self) -> Leftovers {
        let m = &self.m;
        let modes: Modes = m.modes;
        let has = |mode| modes.has(mode);
        use crate::modes::Mode as M;
        let kitty = [0, 1].map(|s| m.kitty_stacks[s].len().saturating_sub(1).min(255) as u8);
        let current = m.screen_index();
        let mut kitty_set = [0, 1].map(|s| m.kitty_stacks[s].first().is_some_and(|f| *f != 0));
        kitty_set[current] |= modes.kitty != 0 && kitty[current] == 0;
        Leftovers {
            alternate: if modes.alternate() { 1049 } else { 0 },
            cursor_hidden: !modes.cursor_visible(),
            mouse: if modes.mouse == MouseTracking::Off { 0 } else { modes.mouse.number() },
            mouse_encoding: if modes.mouse_encoding == MouseEncoding::Bytes {
                0
            } else {
                modes.mouse_encoding.number()
            },
            paste: has(M::Paste),
            focus: has(M::Focus),
            synchronised: has(M::Synchronised),
            scheme_reports: has(M::SchemeReports),
            resize_reports: has(M::ResizeReports),
            cursor_keys: has(M::CursorKeys),
            keypad: has(M::KeypadApplication),
            kitty,
            kitty_set,
            modify_other_keys: modes.modify_other_keys > 0,
            cursor_shape: m.cursor_style_number() != 0 || m.blink,
            margins: m.top > 0 || m.bottom + 1 < m.rows(),
            side_margins: has(M::Margins),
            origin: has(M::Origin),
            charset: !m.charsets.is_plain(),
            other_charsets: m.charsets.has_others(),
            styled: crate::style::Pen { link: 0, ..m.pen } != crate::style::Pen::default(),
            no_wrap: !has(M::Wrap),
            insert: has(M::Insert),
            reverse: has(M::Reverse),
            link: m.pen.link != 0,
            protected: m.pen.has(Attrs::PROTECTED),
            tabs: if m.tabs == default_tabs(m.cols()) { 0 } else { self.size().cols },
            behind: self.behind().unwrap_or_default(),
        }
    }

    /// What leaving the alternate screen would bring back.
    fn behind(&self) -> Option<Behind> {
        let saved = self.m.saved[0].filter(|_| self.m.modes.alternate())?;
        let number = |n: usize| u16::try_from(n + 1).unwrap_or(u16::MAX);
        Some(Behind {
            origin: saved.origin.then(|| (number(saved.pos.y), number(saved.pos.x))),
            charset: !saved.charsets.is_plain(),
            other_charsets: saved.charsets.has_others(),
            styled: saved.pen != crate::style::Pen::default(),
            protected: saved.pen.has(Attrs::PROTECTED),
        })
    }

    /// Whether a real terminal of this size shows this screen when it gets what [`ReplayFilter`]
    /// lets through. Otherwise a mode that does not pass decides where text goes, and the screen is
    /// to be painted.
    ///
    /// [`ReplayFilter`]: crate::ReplayFilter
    pub fn draws_by_passing(&self) -> bool {
        use crate::modes::Mode as M;
        let unusual = [M::Newline, M::Vt52, M::National, M::ReverseWrap, M::ReverseWrapAny];
        !unusual.into_iter().any(|mode| self.m.modes.has(mode))
    }

    /// Bytes that bring a real terminal back to sane modes after the program has died: only for
    /// what is really set, empty when nothing is.
    pub fn undo_modes(&self) -> Vec<u8> {
        self.leftovers().undo()
    }

    /// Returns [`Self::undo_modes`] for a terminal that shows both screens in the same place, so
    /// that there is no switch of screens to undo.
    pub fn undo_in_place(&self) -> Vec<u8> {
        let (left, screen) = (self.leftovers(), self.m.screen_index());
        let here = |all: [u8; 2]| [all[screen], 0];
        let left = Leftovers {
            alternate: 0,
            behind: Behind::default(),
            kitty: here(left.kitty),
            kitty_set: [left.kitty_set[screen], false],
            ..left
        };
        left.undo()
    }

    /// For a caller that paints this screen in its own way but passes keys on: bytes that have a
    /// real terminal spell keys, pastes and the mouse as the program wants them, and bytes that
    /// undo that.
    pub fn input_modes(&self) -> (Vec<u8>, Vec<u8>) {
        let input = self.leftovers().of_input();
        (input.redo(), input.undo())
    }

    /// Bytes that put the cursor back, with pending wrap, pen, charsets, margins and origin mode,
    /// after something else painted on a real terminal that shows this screen.
    pub fn restore_cursor(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write_cursor_state(&mut out);
        out
    }

    /// Margins, origin mode, position, pen and charsets, in the order in which they do not undo
    /// each other.
    pub(crate) fn write_cursor_state(&self, out: &mut Vec<u8>) {
        let m = &self.m;
        let origin = m.modes.origin();
        // Position first, without origin mode, so that pending wrap can be had by writing the last
        // cell again.
        if m.modes.has(crate::modes::Mode::Margins) {
            out.extend_from_slice(format!("\x1b[?69h\x1b[{};{}s", m.left + 1, m.right + 1).as_bytes());
        } else {
            out.extend_from_slice(b"\x1b[?69l");
        }
        if m.top > 0 || m.bottom + 1 < m.rows() {
            out.extend_from_slice(format!("\x1b[{};{}r", m.top + 1, m.bottom + 1).as_bytes());
        } else {
            out.extend_from_slice(b"\x1b[r");
        }
        out.extend_from_slice(if origin { b"\x1b[?6h" } else { b"\x1b[?6l" });
        crate::dump::write_position(out, m, &m.grid, m.pos, origin, false);
        crate::dump::write_charsets(out, &m.charsets, m.modes.has(crate::modes::Mode::National));
        paint::sgr(out, &m.pen.into());
        if m.pen.has(Attrs::PROTECTED) {
            out.extend_from_slice(b"\x1b[1\"q");
        }
    }
}
