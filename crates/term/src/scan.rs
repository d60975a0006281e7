//! A byte stream cut into text and control sequences, without interpreting them.
//!
//! The scanner holds back an unfinished sequence until it is whole, so any split of the stream
//! gives the same tokens. Its memory is bounded: a sequence longer than 64 KiB comes in parts.

/// Bytes of one sequence that are held back at most.
pub(crate) const LIMIT: usize = 64 << 10;

/// What a sequence is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A single control byte, or an 8-bit one (in its UTF-8 form or bare).
    Control,
    /// ESC with intermediates and a final byte.
    Esc,
    /// ESC [ …
    Csi,
    /// ESC ] …
    Osc,
    /// ESC P …
    Dcs,
    /// ESC _ …
    Apc,
    /// ESC ^ …
    Pm,
    /// ESC X …
    Sos,
}

/// A piece of the stream. The tokens' bytes, one after the other, are the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// Printable characters (UTF-8 or what passes for it), DEL included.
    Text(&'a [u8]),
    /// A whole sequence.
    Control {
        /// Its kind.
        kind: Kind,
        /// All its bytes, introducer and terminator included.
        bytes: &'a [u8],
        /// Whether it ended as it should; otherwise another sequence, CAN or SUB cut it off.
        complete: bool,
    },
    /// A piece of a sequence that is too long to hold.
    Part {
        /// The sequence's kind.
        kind: Kind,
        /// This piece.
        bytes: &'a [u8],
        /// It is the first.
        first: bool,
        /// It is the last.
        last: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Text,
    /// 0xC2 was seen, which may begin an 8-bit control.
    Lead,
    Esc,
    EscInter,
    Csi,
    Str(Kind),
    StrEsc(Kind),
    /// 0xC2 inside a string: 0x9C after it ends the string.
    StrLead(Kind),
}

/// Cuts a stream into tokens.
#[derive(Clone, Debug)]
pub struct Scanner {
    state: State,
    /// The sequence so far.
    held: Vec<u8>,
    /// Part of the sequence has been given out.
    parted: bool,
    /// Continuation bytes that the character being read still wants.
    rest: u8,
    /// The stream has left UTF-8 (`ESC % @`), so bare bytes from 0x80 to 0x9f are controls.
    eight_bit: bool,
}

impl Default for Scanner {
    fn default() -> Self {
        Self::new()
    }
}

impl Scanner {
    /// A scanner at the beginning of a stream.
    pub fn new() -> Self {
        Self { state: State::Text, held: Vec::new(), parted: false, rest: 0, eight_bit: false }
    }

    /// Whether the last byte of text left a character unfinished.
    pub fn in_character(&self) -> bool {
        self.rest > 0 && self.state == State::Text
    }

    /// Whether a sequence is being held back.
    pub fn in_sequence(&self) -> bool {
        self.state != State::Text
    }

    /// Takes the next bytes and hands over the tokens that they complete.
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(&Self, Token<'_>)) {
        let mut i = 0;
        while i < bytes.len() {
            if self.state == State::Text {
                let start = i;
                i = self.text_end(bytes, i);
                if i > start {
                    each(self, Token::Text(&bytes[start..i]));
                }
                if i < bytes.len() {
                    self.open(bytes[i], &mut each);
                    i += 1;
                }
                continue;
            }
            if let State::Str(_) = self.state {
                // Quickly over what cannot end the string.
                let rest = &bytes[i..];
                let stop = |&b: &u8| matches!(b, 0x07 | 0x18 | 0x1a | 0x1b | 0x9c | 0xc2);
                let n = rest.iter().position(stop).unwrap_or(rest.len());
                self.hold(&rest[..n], &mut each);
                i += n;
                if i == bytes.len() {
                    break;
                }
            }
            self.step(bytes[i], &mut each);
            i += 1;
        }
    }

    /// The end of the stream: what is held back is handed over.
    pub fn finish(&mut self, mut each: impl FnMut(&Self, Token<'_>)) {
        match self.state {
            State::Text => {}
            State::Lead => {
                self.state = State::Text;
                let held = std::mem::take(&mut self.held);
                each(self, Token::Text(&held));
            }
            _ => self.close(false, &mut each),
        }
    }

    /// Where the text that begins at `i` ends.
    fn text_end(&mut self, bytes: &[u8], mut i: usize) -> usize {
        while let Some(&b) = bytes.get(i) {
            match b {
                0x20..=0x7f => self.rest = 0,
                0..=0x1f => {
                    self.rest = 0;
                    break;
                }
                0x80..=0xbf if self.rest > 0 => self.rest -= 1,
                0x80..=0x9f => break,
                0xc2 => {
                    self.rest = 0;
                    break;
                }
                0xc3..=0xdf => self.rest = 1,
                0xe0..=0xef => self.rest = 2,
                0xf0..=0xf4 => self.rest = 3,
                _ => self.rest = 0,
            }
            i += 1;
        }
        i
    }

    /// A byte that is not text.
    fn open(&mut self, b: u8, each: &mut impl FnMut(&Self, Token<'_>)) {
        self.held.clear();
        self.held.push(b);
        self.parted = false;
        match b {
            0x1b => self.state = State::Esc,
            0xc2 => self.state = State::Lead,
            0x80.. if self.eight_bit => self.c1(b, each),
            // To a terminal that reads UTF-8 it is no more than a character that is broken.
            _ => each(self, Token::Control { kind: Kind::Control, bytes: &[b], complete: true }),
        }
    }

    fn c1(&mut self, b: u8, each: &mut impl FnMut(&Self, Token<'_>)) {
        self.state = match b {
            0x90 => State::Str(Kind::Dcs),
            0x98 => State::Str(Kind::Sos),
            0x9b => State::Csi,
            0x9d => State::Str(Kind::Osc),
            0x9e => State::Str(Kind::Pm),
            0x9f => State::Str(Kind::Apc),
            _ => {
                self.state = State::Text;
                let held = std::mem::take(&mut self.held);
                each(self, Token::Control { kind: Kind::Control, bytes: &held, complete: true });
                return;
            }
        };
    }

    fn step(&mut self, b: u8, each: &mut impl FnMut(&Self, Token<'_>)) {
        match (self.state, b) {
            (State::Lead, 0x80..=0x9f) => {
                self.held.push(b);
                self.c1(b, each);
            }
            (State::Lead, _) => {
                // An ordinary two-byte character, or a stray byte.
                self.state = State::Text;
                let held = std::mem::take(&mut self.held);
                self.rest = 1;
                each(self, Token::Text(&held));
                let end = self.text_end(&[b], 0);
                if end == 1 {
                    each(self, Token::Text(&[b]));
                } else {
                    self.open(b, each);
                }
            }
            (State::StrEsc(_), b'\\') => {
                self.hold(&[b], each);
                self.close(true, each);
            }
            (State::StrEsc(_), _) => {
                // The ESC began something else.
                self.held.pop();
                self.close(false, each);
                self.open(0x1b, each);
                self.step(b, each);
            }
            (State::StrLead(kind), 0x9c) => {
                self.state = State::Str(kind);
                self.hold(&[b], each);
                self.close(true, each);
            }
            (State::StrLead(kind), _) => {
                self.state = State::Str(kind);
                self.step(b, each);
            }
            (State::Str(Kind::Osc), 0x07) => {
                self.hold(&[b], each);
                self.close(true, each);
            }
            (State::Str(kind), 0x1b) => {
                self.hold(&[b], each);
                self.state = State::StrEsc(kind);
            }
            (State::Str(kind), 0xc2) => {
                self.hold(&[b], each);
                self.state = State::StrLead(kind);
            }
            (_, 0x18 | 0x1a) => {
                self.hold(&[b], each);
                self.close(false, each);
            }
            (State::Str(_), _) => self.hold(&[b], each),
            (_, 0x1b) => {
                self.close(false, each);
                self.open(b, each);
            }
            (State::Esc, b'[') => {
                self.held.push(b);
                self.state = State::Csi;
            }
            (State::Esc, b']' | b'P' | b'_' | b'^' | b'X') => {
                self.held.push(b);
                self.state = State::Str(match b {
                    b']' => Kind::Osc,
                    b'P' => Kind::Dcs,
                    b'_' => Kind::Apc,
                    b'^' => Kind::Pm,
                    _ => Kind::Sos,
                });
            }
            (State::Esc | State::EscInter, 0x20..=0x2f) => {
                self.hold(&[b], each);
                self.state = State::EscInter;
            }
            (State::Esc | State::EscInter, 0x30..=0x7e) | (State::Csi, 0x40..=0x7e) => {
                self.hold(&[b], each);
                self.close(true, each);
            }
            _ => self.hold(&[b], each),
        }
    }

    fn kind(&self) -> Kind {
        match self.state {
            State::Csi => Kind::Csi,
            State::Str(k) | State::StrEsc(k) | State::StrLead(k) => k,
            _ => Kind::Esc,
        }
    }

    fn hold(&mut self, bytes: &[u8], each: &mut impl FnMut(&Self, Token<'_>)) {
        for piece in bytes.chunks(LIMIT) {
            if self.held.len() + piece.len() > LIMIT {
                let held = std::mem::take(&mut self.held);
                let first = !std::mem::replace(&mut self.parted, true);
                each(self, Token::Part { kind: self.kind(), bytes: &held, first, last: false });
            }
            self.held.extend_from_slice(piece);
        }
    }

    fn close(&mut self, complete: bool, each: &mut impl FnMut(&Self, Token<'_>)) {
        let kind = self.kind();
        self.state = State::Text;
        let mut held = std::mem::take(&mut self.held);
        match held.as_slice() {
            [0x1b, b'%', b'@'] => self.eight_bit = true,
            [0x1b, b'%', b'G'] | [0x1b, b'c'] => self.eight_bit = false,
            _ => {}
        }
        if std::mem::take(&mut self.parted) {
            each(self, Token::Part { kind, bytes: &held, first: false, last: true });
        } else {
            each(self, Token::Control { kind, bytes: &held, complete });
        }
        held.clear();
        self.held = held;
    }
}
