//! Follows only the modes that must be undone when a program dies.
//!
//! A wrapper that passes bytes through and runs no model still has to leave the user's terminal
//! usable. This scanner looks for ESC and the shifts with `memchr` and reads only the sequences
//! that it finds, so that plain text costs next to nothing.

use crate::modes::{MouseEncoding, MouseTracking};
use crate::restore::Leftovers;
use memchr::{memchr, memchr2, memchr3, memrchr};

/// Parameter bytes of a sequence that are looked at; modes are set with far fewer.
const ROOM: usize = 96;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Text,
    Esc,
    /// After an intermediate of an escape sequence.
    Inter(u8),
    Csi,
    Str {
        osc: bool,
    },
    StrEsc {
        osc: bool,
    },
}

/// A cheap follower of modes.
#[derive(Clone, Debug)]
pub struct ModeWatch {
    state: State,
    held: [u8; ROOM],
    len: usize,
    left: Leftovers,
}

impl Default for ModeWatch {
    fn default() -> Self {
        Self::new()
    }
}

impl ModeWatch {
    /// A watch on a terminal in its normal state.
    pub fn new() -> Self {
        Self { state: State::Text, held: [0; ROOM], len: 0, left: Leftovers::default() }
    }

    /// Looks at the next bytes of the program's output.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.state {
                State::Text => {
                    let Some(i) = memchr3(0x1b, 0x0e, 0x0f, rest) else { return };
                    let shift = rest[i];
                    rest = &rest[i + 1..];
                    if shift != 0x1b {
                        self.left.charset = shift == 0x0e;
                    } else if let [b'[', after @ ..] = rest {
                        self.len = 0;
                        self.state = State::Csi;
                        rest = after;
                    } else {
                        self.state = State::Esc;
                    }
                }
                State::Str { osc } => {
                    let end = if osc { memchr3(0x1b, 0x07, 0x18, rest) } else { memchr2(0x1b, 0x18, rest) };
                    let Some(i) = end else {
                        // Of an OSC the beginning tells whether a link is open.
                        self.hold_all(rest);
                        return;
                    };
                    self.hold_all(&rest[..i]);
                    self.state = match rest[i] {
                        0x1b => State::StrEsc { osc },
                        b => {
                            if b == 0x07 && osc {
                                self.osc();
                            }
                            State::Text
                        }
                    };
                    rest = &rest[i + 1..];
                }
                State::Csi => {
                    let n = rest.iter().position(|b| !(0x20..0x40).contains(b)).unwrap_or(rest.len());
                    let (params, after) = rest.split_at(n);
                    match after {
                        // Whole in one piece, as nearly always: no need to copy it.
                        [last @ 0x40..=0x7e, after @ ..] if self.len == 0 => {
                            self.csi(params, *last);
                            self.state = State::Text;
                            rest = after;
                        }
                        [b, after @ ..] => {
                            self.hold_all(params);
                            self.step(*b);
                            rest = after;
                        }
                        [] => {
                            self.hold_all(params);
                            return;
                        }
                    }
                }
                _ => {
                    self.step(rest[0]);
                    rest = &rest[1..];
                }
            }
        }
    }

    /// Whether the alternate screen is shown.
    pub fn alternate(&self) -> bool {
        self.left.alternate != 0
    }

    /// Whether a synchronised update is going on.
    pub fn synchronised(&self) -> bool {
        self.left.synchronised
    }

    /// Whether a sequence is unfinished, so that nothing of one's own may be written in between.
    pub fn in_sequence(&self) -> bool {
        self.state != State::Text
    }

    /// Looks at bytes of a flood: only the private modes are followed exactly, which are the ones
    /// that matter most. The rest is taken to be set when anything could have set it, so that
    /// [`ModeWatch::undo`] resets it in vain at worst.
    pub fn skim(&mut self, bytes: &[u8]) {
        let mut at = self.finish_sequence(bytes, 0);
        if memchr(0x1b, &bytes[at..]).is_none() {
            return;
        }
        self.left.styled = true;
        self.left.charset = true;
        self.left.margins |= self.left.alternate != 0;
        while let Some(i) = memchr3(b'?', b'>', b'<', &bytes[at..]) {
            let sign = at + i;
            at = sign + 1;
            // Only behind an introducer does the sign mean something; text is full of it.
            if sign >= 2 && bytes[sign - 2..sign] == *b"\x1b[" {
                self.feed(&bytes[sign - 2..at]);
                at = self.finish_sequence(bytes, at);
            }
        }
        // What may go on in the next bytes.
        if let Some(i) = memrchr(0x1b, &bytes[at..]) {
            self.feed(&bytes[at + i..]);
        }
    }

    /// Feeds an unfinished sequence to its end, and returns where that is.
    fn finish_sequence(&mut self, bytes: &[u8], mut at: usize) -> usize {
        while at < bytes.len() && self.in_sequence() {
            self.feed(&bytes[at..=at]);
            at += 1;
        }
        at
    }

    /// Bytes that bring the terminal back to normal; empty when nothing is set.
    pub fn undo(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let undo = self.left.undo();
        if self.in_sequence() {
            // An unfinished sequence would swallow what follows.
            out.extend_from_slice(b"\x18");
        }
        out.extend_from_slice(&undo);
        out
    }

    /// The bytes that set again what [`ModeWatch::undo`] undid, as far as that is known.
    pub fn redo(&self) -> Vec<u8> {
        self.left.redo()
    }

    fn hold_all(&mut self, bytes: &[u8]) {
        let n = bytes.len().min(ROOM - self.len);
        self.held[self.len..self.len + n].copy_from_slice(&bytes[..n]);
        self.len += n;
    }

    fn step(&mut self, b: u8) {
        match (self.state, b) {
            (State::StrEsc { osc }, b'\\') => {
                if osc {
                    self.osc();
                }
                self.state = State::Text;
            }
            (State::StrEsc { .. }, _) => {
                self.state = State::Esc;
                self.step(b);
            }
            (_, 0x1b) => self.state = State::Esc,
            (_, 0x18 | 0x1a) => self.state = State::Text,
            (_, 0..=0x1f | 0x7f) => {}
            (State::Esc, b'[') => {
                self.len = 0;
                self.state = State::Csi;
            }
            (State::Esc, b']') => {
                self.len = 0;
                self.state = State::Str { osc: true };
            }
            (State::Esc, b'P' | b'_' | b'^' | b'X') => self.state = State::Str { osc: false },
            (State::Esc | State::Inter(_), 0x20..=0x2f) => self.state = State::Inter(b),
            (State::Esc, _) => {
                self.esc(b);
                self.state = State::Text;
            }
            (State::Inter(inter), _) => {
                if inter == b'(' {
                    self.left.charset = b != b'B';
                }
                self.state = State::Text;
            }
            (State::Csi, 0x40..=0x7e) => {
                if self.len < ROOM {
                    let held = self.held;
                    self.csi(&held[..self.len], b);
                }
                self.state = State::Text;
            }
            (State::Csi, _) => self.hold_all(&[b]),
            _ => self.state = State::Text,
        }
    }

    fn esc(&mut self, b: u8) {
        match b {
            b'c' => self.left = Leftovers::default(),
            b'=' => self.left.keypad = true,
            b'>' => self.left.keypad = false,
            _ => {}
        }
    }

    fn osc(&mut self) {
        if let Some(rest) = self.held[..self.len].strip_prefix(b"8;") {
            let uri = rest.iter().position(|&b| b == b';').map_or(0, |i| rest.len() - i - 1);
            self.left.link = uri > 0;
        }
    }

    /// Whether colours or attributes are left on by an SGR.
    fn sgr(&mut self, params: &[u8]) {
        let mut styled = self.left.styled;
        for p in params.split(|b| *b == b';') {
            match p {
                b"" | b"0" | b"00" => styled = false,
                b"22" | b"23" | b"24" | b"25" | b"27" | b"28" | b"29" | b"39" | b"49" | b"55" | b"59" => {}
                _ => {
                    styled = true;
                    // The numbers after these are a colour's, not attributes.
                    if matches!(p, b"38" | b"48" | b"58") {
                        break;
                    }
                }
            }
        }
        self.left.styled = styled;
    }

    fn csi(&mut self, held: &[u8], last: u8) {
        match last {
            b'm' if !matches!(held, [b'<'..=b'?', ..]) => return self.sgr(held),
            b'h' | b'l' | b'm' | b'n' | b'p' | b'q' | b'r' | b'u' => {}
            // Nothing else leaves a mode behind.
            _ => return,
        }
        let (prefix, held) = match held {
            [p @ b'<'..=b'?', rest @ ..] => (*p, rest),
            _ => (0, held),
        };
        let split = held.iter().position(|b| (0x20..0x30).contains(b)).unwrap_or(held.len());
        let (params, inter) = held.split_at(split);
        let number = |p: &[u8]| {
            p.iter()
                .fold(0u32, |n, b| n.saturating_mul(10).saturating_add(u32::from(b.wrapping_sub(b'0') % 10)))
        };
        let mut numbers = params.split(|b| *b == b';').map(number);
        let first = params.split(|b| *b == b';').next().map_or(0, number);
        let screen = usize::from(self.left.alternate != 0);
        match (prefix, inter, last) {
            (b'?', b"", b'h') => numbers.for_each(|n| self.mode(n, true)),
            (b'?', b"", b'l') => numbers.for_each(|n| self.mode(n, false)),
            (0, b"", b'h') => self.left.insert |= numbers.any(|n| n == 4),
            (0, b"", b'l') => self.left.insert &= numbers.all(|n| n != 4),
            (0, b"", b'r') => self.left.margins = params.iter().any(u8::is_ascii_digit),
            (b'>', b"", b'u') => self.left.kitty[screen] = self.left.kitty[screen].saturating_add(1),
            (b'<', b"", b'u') => {
                let n = first.clamp(1, 255) as u8;
                self.left.kitty[screen] = self.left.kitty[screen].saturating_sub(n);
            }
            (b'=', b"", b'u') => self.left.kitty_set[screen] = first != 0,
            (b'>', b"", b'm') => {
                let level = numbers.nth(1).unwrap_or(0);
                if first == 4 || params.is_empty() {
                    self.left.modify_other_keys = level > 0;
                }
            }
            (b'>', b"", b'n') => self.left.modify_other_keys = false,
            (0, b" ", b'q') => self.left.cursor_shape = first != 0,
            (0, b"!", b'p') => {
                let kept = self.left;
                self.left = Leftovers {
                    alternate: kept.alternate,
                    mouse: kept.mouse,
                    mouse_encoding: kept.mouse_encoding,
                    paste: kept.paste,
                    focus: kept.focus,
                    synchronised: kept.synchronised,
                    scheme_reports: kept.scheme_reports,
                    resize_reports: kept.resize_reports,
                    kitty: kept.kitty,
                    kitty_set: kept.kitty_set,
                    modify_other_keys: kept.modify_other_keys,
                    reverse: kept.reverse,
                    link: kept.link,
                    ..Leftovers::default()
                };
            }
            _ => {}
        }
    }

    fn mode(&mut self, n: u32, on: bool) {
        let left = &mut self.left;
        let Ok(n) = u16::try_from(n) else { return };
        match n {
            1 => left.cursor_keys = on,
            5 => left.reverse = on,
            6 => left.origin = on,
            7 => left.no_wrap = !on,
            25 => left.cursor_hidden = !on,
            47 | 1047 | 1049 => left.alternate = if on { n } else { 0 },
            66 => left.keypad = on,
            69 => left.side_margins = on,
            1004 => left.focus = on,
            2004 => left.paste = on,
            2026 => left.synchronised = on,
            2031 => left.scheme_reports = on,
            2048 => left.resize_reports = on,
            _ if MouseTracking::from_number(n).is_some() => left.mouse = if on { n } else { 0 },
            _ if MouseEncoding::from_number(n).is_some() => left.mouse_encoding = if on { n } else { 0 },
            _ => {}
        }
    }
}
