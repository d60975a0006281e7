//! Bytes to tokens of the control-sequence grammar (ECMA-48 with DEC's and xterm's habits).
//!
//! The parser keeps all its state between calls, so any split of the input gives the same tokens. Its memory is bounded:
//! at most [`MAX_PARAMS`] parameters, two intermediates and a string of a settable length; what goes past is counted
//! as overflow and the sequence is skipped whole. Runs of plain ASCII are handed over as slices; that, and reading CSI
//! parameters in one tight loop, is where its speed comes from.

use memchr::{memchr2, memchr3};

/// Parameters kept of one CSI or DCS; the rest are ignored.
pub(crate) const MAX_PARAMS: usize = 32;

/// Parameters of a control sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Params {
    values: [u16; MAX_PARAMS],
    /// Bit i: parameter i was written out, if only as 0.
    given: u32,
    /// Bit i: parameter i follows a colon and belongs to the one before.
    sub: u32,
    len: u8,
}

impl Params {
    pub(crate) const EMPTY: Self = Self { values: [0; MAX_PARAMS], given: 0, sub: 0, len: 0 };

    /// Reads a parameter string of nothing but digits and separators.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let mut p = Self::EMPTY;
        let mut value = 0u32;
        for &b in text {
            let n = p.len();
            match b {
                b'0'..=b'9' => {
                    value = (value * 10 + u32::from(b - b'0')).min(0xf_ffff);
                    if n < MAX_PARAMS {
                        p.given |= 1 << n;
                    }
                }
                b';' | b':' => p.push(std::mem::take(&mut value), b == b':'),
                _ => return None,
            }
        }
        if !text.is_empty() {
            p.push(value, false);
        }
        Some(p)
    }

    /// Ends a parameter; `sub`: the next belongs to it.
    fn push(&mut self, value: u32, sub: bool) {
        let n = self.len();
        if n < MAX_PARAMS {
            self.values[n] = value.min(0xffff) as u16;
            self.len += 1;
            if sub && n + 1 < MAX_PARAMS {
                self.sub |= 1 << (n + 1);
            }
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// The value, 0 when absent.
    #[inline]
    pub(crate) fn get(&self, i: usize) -> u16 {
        if i < self.len() { self.values[i] } else { 0 }
    }

    /// The value, or `default` when absent or 0.
    #[inline]
    pub(crate) fn or(&self, i: usize, default: u16) -> usize {
        let v = self.get(i);
        usize::from(if v == 0 { default } else { v })
    }

    /// The value when it was written out.
    #[inline]
    pub(crate) fn opt(&self, i: usize) -> Option<u16> {
        (i < self.len() && self.given >> i & 1 == 1).then(|| self.values[i])
    }

    /// Whether parameter `i` follows a colon.
    #[inline]
    pub(crate) fn is_sub(&self, i: usize) -> bool {
        i < self.len() && self.sub >> i & 1 == 1
    }

    /// Iterates over the values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        self.values[..self.len()].iter().copied()
    }
}

/// A finished CSI sequence, or the opening of a DCS.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Csi {
    pub(crate) params: Params,
    /// One of `<=>?`, or 0.
    pub(crate) prefix: u8,
    /// The intermediates; a second one is in the upper byte.
    pub(crate) inter: u16,
    pub(crate) last: u8,
}

/// The kinds of string-bearing sequences beside OSC and DCS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StringKind {
    Osc,
    Dcs,
    Apc,
    Pm,
    Sos,
}

/// Takes the tokens. `end` is the number of bytes of the stream up to and including the token's last.
pub(crate) trait Sink {
    /// Printable ASCII; `end` is for the run's last byte.
    fn ascii(&mut self, run: &[u8], end: u64);
    /// One character that is not ASCII.
    fn character(&mut self, c: char, end: u64);
    /// A chance to take many characters at once: `bytes` begins with one that is not ASCII, at offset `base`. Returns how
    /// many bytes were taken, which must be whole characters and no controls.
    fn characters(&mut self, _bytes: &[u8], _base: u64) -> usize {
        0
    }
    /// A chance to take an SGR sequence by its bytes, which begin after the introducer. Returns how many were taken.
    fn sgr(&mut self, _bytes: &[u8]) -> usize {
        0
    }
    /// A C0 or C1 control.
    fn execute(&mut self, byte: u8, end: u64);
    /// True: the parser's own modes may have to change before the next byte is read.
    fn esc(&mut self, inter: u16, last: u8, end: u64) -> bool;
    /// As [`Self::esc`].
    fn csi(&mut self, csi: &Csi, end: u64) -> bool;
    /// A finished string. `head` is the DCS's opening. `overflow`: it was too long and is not all there.
    fn string(&mut self, kind: StringKind, head: &Csi, data: &[u8], bell: bool, overflow: bool, end: u64);
    /// An ESC-prefixed VT52 command with its arguments.
    fn vt52(&mut self, last: u8, args: [u8; 2], end: u64) -> bool;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ground,
    Escape,
    EscapeInter,
    CsiEntry,
    CsiParam,
    CsiInter,
    CsiIgnore,
    DcsEntry,
    DcsParam,
    DcsInter,
    DcsIgnore,
    String,
    /// An ESC was seen inside a string: a backslash ends it.
    StringEscape,
    /// Waiting for the arguments of VT52's `ESC Y`.
    Vt52Row,
    Vt52Col,
}

#[derive(Clone, Debug)]
pub(crate) struct Parser {
    state: State,
    /// The sequence being read; for plain escape sequences only the intermediates.
    csi: Csi,
    /// The parameter being read.
    value: u32,
    /// The head of the DCS whose string is being read.
    head: Csi,
    kind: StringKind,
    string: Vec<u8>,
    string_limit: usize,
    overflow: bool,
    /// The sink wants the caller to look at the parser's modes.
    stop: bool,
    /// The last byte of the string so far, also when it was not kept.
    last: u8,
    utf8: [u8; 4],
    utf8_len: u8,
    utf8_need: u8,
    /// Off: bytes from 0x80 up are controls and Latin-1, as after `ESC % @`.
    pub(crate) utf8_mode: bool,
    pub(crate) vt52: bool,
    vt52_row: u8,
}

impl Parser {
    pub(crate) fn new(string_limit: usize) -> Self {
        Self {
            state: State::Ground,
            csi: Csi { params: Params::EMPTY, prefix: 0, inter: 0, last: 0 },
            value: 0,
            head: Csi { params: Params::EMPTY, prefix: 0, inter: 0, last: 0 },
            kind: StringKind::Osc,
            string: Vec::new(),
            string_limit,
            overflow: false,
            stop: false,
            last: 0,
            utf8: [0; 4],
            utf8_len: 0,
            utf8_need: 0,
            utf8_mode: true,
            vt52: false,
            vt52_row: 0,
        }
    }

    /// Bytes that bring a fresh parser to where this one stands inside a token; empty between tokens.
    pub(crate) fn pending(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let params = |out: &mut Vec<u8>| {
            for i in 0..self.csi.params.len() {
                if self.csi.params.given >> i & 1 == 1 {
                    out.extend_from_slice(self.csi.params.values[i].to_string().as_bytes());
                }
                let sub = i + 1 < MAX_PARAMS && self.csi.params.sub >> (i + 1) & 1 == 1;
                out.push(if sub { b':' } else { b';' });
            }
            if self.csi.params.len() < MAX_PARAMS && self.csi.params.given >> self.csi.params.len & 1 == 1 {
                out.extend_from_slice(self.value.to_string().as_bytes());
            }
        };
        let inter =
            |out: &mut Vec<u8>| out.extend(self.csi.inter.to_be_bytes().into_iter().filter(|&b| b != 0));
        match self.state {
            State::Ground => out.extend_from_slice(&self.utf8[..usize::from(self.utf8_len)]),
            State::Escape => out.push(0x1b),
            State::EscapeInter => {
                out.push(0x1b);
                inter(&mut out);
            }
            State::CsiEntry
            | State::CsiParam
            | State::CsiInter
            | State::DcsEntry
            | State::DcsParam
            | State::DcsInter => {
                let csi = matches!(self.state, State::CsiEntry | State::CsiParam | State::CsiInter);
                out.extend_from_slice(if csi { b"\x1b[" } else { b"\x1bP" });
                out.extend((self.csi.prefix != 0).then_some(self.csi.prefix));
                params(&mut out);
                inter(&mut out);
            }
            State::CsiIgnore => out.extend_from_slice(b"\x1b[0?"),
            State::DcsIgnore => out.extend_from_slice(b"\x1bP0?"),
            State::String | State::StringEscape => {
                let opening: &[u8] = match self.kind {
                    StringKind::Osc => b"\x1b]",
                    StringKind::Apc => b"\x1b_",
                    StringKind::Pm => b"\x1b^",
                    StringKind::Sos => b"\x1bX",
                    StringKind::Dcs => b"\x1bP",
                };
                out.extend_from_slice(opening);
                if self.kind == StringKind::Dcs {
                    out.extend((self.head.prefix != 0).then_some(self.head.prefix));
                    for i in 0..self.head.params.len() {
                        if i > 0 {
                            out.push(b';');
                        }
                        out.extend_from_slice(self.head.params.get(i).to_string().as_bytes());
                    }
                    out.extend(self.head.inter.to_be_bytes().into_iter().filter(|&b| b != 0));
                    out.extend((self.head.last != 0).then_some(self.head.last));
                }
                out.extend_from_slice(&self.string);
                if self.state == State::StringEscape {
                    out.push(0x1b);
                }
            }
            State::Vt52Row => out.extend_from_slice(b"\x1bY"),
            State::Vt52Col => out.extend([0x1b, b'Y', self.vt52_row]),
        }
        out
    }

    /// Whether the stream stands between tokens.
    pub(crate) fn is_idle(&self) -> bool {
        self.state == State::Ground && self.utf8_len == 0
    }

    /// Reads `bytes`, of which the first has the offset `base`. Returns early, with how much it took, after a token
    /// for which the sink may have changed the parser's modes.
    pub(crate) fn advance<S: Sink>(&mut self, bytes: &[u8], base: u64, sink: &mut S) -> usize {
        let mut i = 0;
        while i < bytes.len() {
            match self.state {
                State::Ground => {
                    i = self.ground(bytes, i, base, sink);
                    if std::mem::take(&mut self.stop) {
                        return i;
                    }
                }
                State::CsiEntry | State::CsiParam => {
                    let (next, stop) = self.csi_params(bytes, i, base, sink);
                    i = next;
                    if stop {
                        return i;
                    }
                }
                State::String => i = self.string_body(bytes, i, base, sink),
                _ => {
                    let stop = self.step(bytes[i], base + i as u64 + 1, sink);
                    i += 1;
                    if stop {
                        return i;
                    }
                }
            }
        }
        i
    }

    #[inline]
    fn ground<S: Sink>(&mut self, bytes: &[u8], mut i: usize, base: u64, sink: &mut S) -> usize {
        let end = |i: usize| base + i as u64;
        if self.utf8_len > 0 {
            return self.utf8_continue(bytes, i, base, sink);
        }
        while i < bytes.len() {
            let b = bytes[i];
            match b {
                0x20..=0x7e => {
                    let n = ascii_run(&bytes[i..]);
                    sink.ascii(&bytes[i..i + n], end(i + n));
                    i += n;
                }
                0x1b => {
                    i += 1;
                    self.csi.inter = 0;
                    // The common case in one step.
                    if !self.vt52 && bytes.get(i) == Some(&b'[') {
                        let n = sink.sgr(&bytes[i + 1..]);
                        if n > 0 {
                            i += n + 1;
                            continue;
                        }
                        self.enter_csi();
                        let (next, stop) = self.csi_params(bytes, i + 1, base, sink);
                        if stop || self.state != State::Ground {
                            self.stop = stop;
                            return next;
                        }
                        i = next;
                        continue;
                    }
                    self.state = State::Escape;
                    return i;
                }
                0..=0x1f => {
                    i += 1;
                    sink.execute(b, end(i));
                }
                0x7f => i += 1,
                _ if !self.utf8_mode => {
                    i += 1;
                    if b < 0xa0 {
                        self.c1(b, end(i), sink);
                        if self.state != State::Ground {
                            return i;
                        }
                    } else {
                        sink.character(char::from(b), end(i));
                    }
                }
                _ => {
                    let n = sink.characters(&bytes[i..], end(i));
                    if n > 0 {
                        i += n;
                        continue;
                    }
                    let next = self.utf8_start(bytes, i, base, sink);
                    if self.state != State::Ground || self.utf8_len > 0 {
                        return next;
                    }
                    i = next;
                }
            }
        }
        i
    }

    fn enter_csi(&mut self) {
        self.state = State::CsiEntry;
        self.csi.params.len = 0;
        self.csi.params.given = 0;
        self.csi.params.sub = 0;
        self.value = 0;
        self.csi.prefix = 0;
        self.csi.inter = 0;
    }

    /// Reads one character that is not ASCII, whole in the common case.
    #[inline]
    fn utf8_start<S: Sink>(&mut self, bytes: &[u8], i: usize, base: u64, sink: &mut S) -> usize {
        let cont = |b: u8| b & 0xc0 == 0x80;
        let c = |b: u8| u32::from(b & 0x3f);
        let rest = &bytes[i..];
        let whole = match *rest {
            [a @ 0xc2..=0xdf, b, ..] if cont(b) => Some((u32::from(a & 0x1f) << 6 | c(b), 2)),
            [a @ 0xe0..=0xef, b, d, ..] if cont(b) && cont(d) => {
                Some((u32::from(a & 0xf) << 12 | c(b) << 6 | c(d), 3)).filter(|v| v.0 >= 0x800)
            }
            [a @ 0xf0..=0xf4, b, d, e, ..] if cont(b) && cont(d) && cont(e) => {
                Some((u32::from(a & 7) << 18 | c(b) << 12 | c(d) << 6 | c(e), 4)).filter(|v| v.0 >= 0x1_0000)
            }
            _ => None,
        };
        if let Some((v, n)) = whole
            && let Some(ch) = char::from_u32(v)
        {
            let end = base + (i + n) as u64;
            if v < 0xa0 {
                self.c1(v as u8, end, sink);
            } else {
                sink.character(ch, end);
            }
            return i + n;
        }
        let need = match rest[0] {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => {
                sink.character(char::REPLACEMENT_CHARACTER, base + i as u64 + 1);
                return i + 1;
            }
        };
        self.utf8[0] = rest[0];
        self.utf8_len = 1;
        self.utf8_need = need;
        i + 1
    }

    /// Goes on with a character that a split or an error has interrupted. An error yields one replacement for the
    /// longest part that could have begun a character; the offending byte is read again.
    fn utf8_continue<S: Sink>(&mut self, bytes: &[u8], i: usize, base: u64, sink: &mut S) -> usize {
        let b = bytes[i];
        let fits = match (self.utf8_len, self.utf8[0]) {
            (1, 0xe0) => (0xa0..=0xbf).contains(&b),
            (1, 0xed) => (0x80..=0x9f).contains(&b),
            (1, 0xf0) => (0x90..=0xbf).contains(&b),
            (1, 0xf4) => (0x80..=0x8f).contains(&b),
            _ => (0x80..=0xbf).contains(&b),
        };
        if !fits {
            self.utf8_len = 0;
            sink.character(char::REPLACEMENT_CHARACTER, base + i as u64);
            return i;
        }
        self.utf8[usize::from(self.utf8_len)] = b;
        self.utf8_len += 1;
        if self.utf8_len == self.utf8_need {
            let n = usize::from(self.utf8_len);
            self.utf8_len = 0;
            let c = std::str::from_utf8(&self.utf8[..n]).ok().and_then(|s| s.chars().next());
            let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
            let end = base + i as u64 + 1;
            if (c as u32) < 0xa0 { self.c1(c as u8, end, sink) } else { sink.character(c, end) }
        }
        i + 1
    }

    /// An 8-bit control: the same as ESC and the byte less 0x40.
    fn c1<S: Sink>(&mut self, b: u8, end: u64, sink: &mut S) {
        match b {
            0x90 => self.enter_dcs(),
            0x98 => self.enter_string(StringKind::Sos),
            0x9b => self.enter_csi(),
            0x9d => self.enter_string(StringKind::Osc),
            0x9e => self.enter_string(StringKind::Pm),
            0x9f => self.enter_string(StringKind::Apc),
            _ => sink.execute(b, end),
        }
    }

    fn enter_dcs(&mut self) {
        self.enter_csi();
        self.state = State::DcsEntry;
    }

    fn enter_string(&mut self, kind: StringKind) {
        self.state = State::String;
        self.kind = kind;
        self.string.clear();
        self.overflow = false;
        self.last = 0;
    }

    fn push_param(&mut self, sub: bool) {
        self.csi.params.push(std::mem::take(&mut self.value), sub);
    }

    /// Reads parameters up to the final byte. The bool says that the caller has to look at the parser's modes.
    #[inline]
    fn csi_params<S: Sink>(&mut self, bytes: &[u8], mut i: usize, base: u64, sink: &mut S) -> (usize, bool) {
        // Kept in locals while the parameters last: this is the loop that colourful output spends its time in.
        let mut value = self.value;
        let mut len = usize::from(self.csi.params.len);
        let mut given = self.csi.params.given;
        loop {
            // Numbers of up to three digits with what ends them, without a branch for each digit.
            if value == 0 && len < MAX_PARAMS && given >> len & 1 == 0 {
                let mut sub = self.csi.params.sub;
                let start = i;
                while len + 1 < MAX_PARAMS
                    && let Some((v, digits, end)) = short_number(bytes, i)
                {
                    let separates = end.wrapping_sub(b':') < 2;
                    if !separates && !(0x40..0x7f).contains(&end) {
                        break;
                    }
                    self.csi.params.values[len % MAX_PARAMS] = v;
                    given |= 1 << len;
                    len += 1;
                    i += digits + 1;
                    if separates {
                        sub |= u32::from(end == b':') << len;
                        continue;
                    }
                    self.csi.params.sub = sub;
                    self.csi.params.given = given;
                    self.csi.params.len = len as u8;
                    self.csi.last = end;
                    self.state = State::Ground;
                    return (i, sink.csi(&self.csi, base + i as u64));
                }
                self.csi.params.sub = sub;
                if i > start {
                    self.state = State::CsiParam;
                }
            }
            let Some(&b) = bytes.get(i) else { break };
            i += 1;
            let digit = b.wrapping_sub(b'0');
            if digit < 10 {
                value = (value * 10 + u32::from(digit)).min(0xf_ffff);
                while let Some(&d) = bytes.get(i)
                    && d.wrapping_sub(b'0') < 10
                {
                    value = (value * 10 + u32::from(d - b'0')).min(0xf_ffff);
                    i += 1;
                }
                if len < MAX_PARAMS {
                    given |= 1 << len;
                }
                self.state = State::CsiParam;
                continue;
            }
            if b == b';' || b == b':' {
                if len < MAX_PARAMS {
                    self.csi.params.values[len] = value.min(0xffff) as u16;
                    len += 1;
                    if b == b':' && len < MAX_PARAMS {
                        self.csi.params.sub |= 1 << len;
                    }
                }
                value = 0;
                self.state = State::CsiParam;
                continue;
            }
            self.value = value;
            self.csi.params.len = len as u8;
            self.csi.params.given = given;
            match b {
                0x40..=0x7e => {
                    if len > 0 || given != 0 {
                        self.push_param(false);
                    }
                    self.state = State::Ground;
                    self.csi.last = b;
                    return (i, sink.csi(&self.csi, base + i as u64));
                }
                b'<'..=b'?' if self.state == State::CsiEntry => {
                    self.csi.prefix = b;
                    self.state = State::CsiParam;
                }
                b'<'..=b'?' => {
                    self.state = State::CsiIgnore;
                    return (i, false);
                }
                0x20..=0x2f => {
                    self.csi.inter = u16::from(b);
                    self.state = State::CsiInter;
                    return (i, false);
                }
                _ => {
                    self.control_inside(b, base + i as u64, sink);
                    if !matches!(self.state, State::CsiEntry | State::CsiParam) {
                        return (i, false);
                    }
                }
            }
        }
        self.value = value;
        self.csi.params.len = len as u8;
        self.csi.params.given = given;
        (i, false)
    }

    /// A control byte inside a sequence: CAN, SUB and ESC end it, other C0 controls act at once, the rest is dropped.
    fn control_inside<S: Sink>(&mut self, b: u8, end: u64, sink: &mut S) {
        match b {
            0x1b => {
                self.state = State::Escape;
                self.csi.inter = 0;
            }
            0x18 | 0x1a => {
                self.state = State::Ground;
                sink.execute(b, end);
            }
            0..=0x1f => sink.execute(b, end),
            0x80..=0x9f if !self.utf8_mode => {
                self.state = State::Ground;
                self.c1(b, end, sink);
            }
            _ => {}
        }
    }

    /// One byte in one of the rarer states. True: the caller has to look at the parser's modes.
    fn step<S: Sink>(&mut self, b: u8, end: u64, sink: &mut S) -> bool {
        match (self.state, b) {
            (State::StringEscape, b'\\') => {
                self.finish_string(false, end, sink);
                false
            }
            (State::StringEscape, _) => {
                // The ESC was not part of a terminator: the string is abandoned, and the ESC begins anew.
                self.finish_string_aborted();
                self.state = State::Escape;
                self.csi.inter = 0;
                self.step(b, end, sink)
            }
            (State::Vt52Row, 0x20..) => {
                self.vt52_row = b;
                self.state = State::Vt52Col;
                false
            }
            (State::Vt52Col, 0x20..) => {
                self.state = State::Ground;
                sink.vt52(b'Y', [self.vt52_row, b], end)
            }
            (State::Escape, _) if self.vt52 && b >= 0x20 => {
                self.state = State::Ground;
                if b == b'Y' {
                    self.state = State::Vt52Row;
                    return false;
                }
                sink.vt52(b, [0; 2], end)
            }
            (State::Escape, b'[') => {
                self.enter_csi();
                false
            }
            (State::Escape, b']') => {
                self.enter_string(StringKind::Osc);
                false
            }
            (State::Escape, b'P') => {
                self.enter_dcs();
                false
            }
            (State::Escape, b'X') => {
                self.enter_string(StringKind::Sos);
                false
            }
            (State::Escape, b'^') => {
                self.enter_string(StringKind::Pm);
                false
            }
            (State::Escape, b'_') => {
                self.enter_string(StringKind::Apc);
                false
            }
            (State::Escape | State::EscapeInter, 0x20..=0x2f) => {
                self.csi.inter = self.csi.inter << 8 | u16::from(b);
                self.state = State::EscapeInter;
                false
            }
            (State::Escape | State::EscapeInter, 0x30..=0x7e) => {
                self.state = State::Ground;
                sink.esc(self.csi.inter, b, end)
            }
            (State::CsiInter, 0x20..=0x2f) => {
                self.csi.inter = self.csi.inter << 8 | u16::from(b);
                false
            }
            (State::CsiInter, 0x40..=0x7e) => {
                if self.csi.params.len > 0 || self.csi.params.given != 0 {
                    self.push_param(false);
                }
                self.state = State::Ground;
                self.csi.last = b;
                sink.csi(&self.csi, end)
            }
            (State::CsiInter, 0x30..=0x3f) => {
                self.state = State::CsiIgnore;
                false
            }
            (State::CsiIgnore, 0x40..=0x7e) => {
                self.state = State::Ground;
                false
            }
            (State::CsiIgnore, 0x20..=0x3f) => false,
            (State::DcsEntry | State::DcsParam, b'0'..=b'9') => {
                self.state = State::DcsParam;
                self.value = (self.value * 10 + u32::from(b - b'0')).min(0xf_ffff);
                if self.csi.params.len() < MAX_PARAMS {
                    self.csi.params.given |= 1 << self.csi.params.len;
                }
                false
            }
            (State::DcsEntry | State::DcsParam, b';' | b':') => {
                self.state = State::DcsParam;
                self.push_param(b == b':');
                false
            }
            (State::DcsEntry, b'<'..=b'?') => {
                self.csi.prefix = b;
                self.state = State::DcsParam;
                false
            }
            (State::DcsEntry | State::DcsParam | State::DcsInter, 0x20..=0x2f) => {
                self.csi.inter = self.csi.inter << 8 | u16::from(b);
                self.state = State::DcsInter;
                false
            }
            (State::DcsEntry | State::DcsParam | State::DcsInter, 0x40..=0x7e) => {
                if self.csi.params.len > 0 || self.csi.params.given != 0 {
                    self.push_param(false);
                }
                self.head = Csi { last: b, ..self.csi };
                self.enter_string(StringKind::Dcs);
                false
            }
            (State::DcsParam | State::DcsInter, 0x30..=0x3f) => {
                self.state = State::DcsIgnore;
                false
            }
            (State::DcsIgnore, 0x20..=0x7e) => {
                // Skip the string as well, up to its terminator.
                self.head = Csi { params: Params::EMPTY, prefix: 0, inter: 0, last: 0 };
                self.enter_string(StringKind::Dcs);
                self.overflow = true;
                false
            }
            (State::DcsEntry | State::DcsParam | State::DcsInter | State::DcsIgnore, 0..=0x1f)
                if !matches!(b, 0x18 | 0x1a | 0x1b) =>
            {
                false
            }
            _ => {
                self.control_inside(b, end, sink);
                false
            }
        }
    }

    /// Takes the body of a string up to what may end it.
    fn string_body<S: Sink>(&mut self, bytes: &[u8], i: usize, base: u64, sink: &mut S) -> usize {
        let rest = &bytes[i..];
        // BEL ends an OSC only; CAN and SUB abandon any string. 8-bit ST counts outside UTF-8 alone.
        let mut n = if self.kind == StringKind::Osc {
            memchr3(0x1b, 0x07, 0x18, rest).unwrap_or(rest.len())
        } else {
            memchr2(0x1b, 0x18, rest).unwrap_or(rest.len())
        };
        if let Some(m) = memchr2(0x1a, if self.utf8_mode { 0x1a } else { 0x9c }, &rest[..n]) {
            n = m;
        }
        if self.utf8_mode
            && let Some(m) = find_utf8_st(self.last, &rest[..n])
        {
            // U+009C, in its two bytes.
            n = m;
        }
        let room = self.string_limit.saturating_sub(self.string.len());
        if n > room {
            self.overflow = true;
        }
        if self.overflow {
            // Nothing will look at it: keep only the head, which says what it was.
            let keep = n.min(64usize.saturating_sub(self.string.len()));
            self.string.extend_from_slice(&rest[..keep]);
        } else {
            self.string.extend_from_slice(&rest[..n]);
        }
        if n > 0 {
            self.last = rest[n - 1];
        }
        let Some(&stop) = rest.get(n) else { return i + n };
        let end = base + (i + n) as u64 + 1;
        match stop {
            0x1b => self.state = State::StringEscape,
            0x07 => self.finish_string(true, end, sink),
            0x9c => {
                if self.utf8_mode && !self.overflow {
                    self.string.pop();
                }
                self.finish_string(false, end, sink);
            }
            _ => {
                self.finish_string_aborted();
                self.state = State::Ground;
                sink.execute(stop, end);
            }
        }
        i + n + 1
    }

    fn finish_string<S: Sink>(&mut self, bell: bool, end: u64, sink: &mut S) {
        self.state = State::Ground;
        let mut data = std::mem::take(&mut self.string);
        if self.overflow {
            data.truncate(64);
        }
        sink.string(self.kind, &self.head, &data, bell, self.overflow, end);
        // Keep the buffer, unless it has grown large.
        if data.capacity() <= 1 << 16 {
            self.string = data;
            self.string.clear();
        }
    }

    fn finish_string_aborted(&mut self) {
        self.string.clear();
        if self.string.capacity() > 1 << 16 {
            self.string = Vec::new();
        }
    }
}

/// The number of one to three digits at `i`, how many they are, and the byte after them.
#[inline(always)]
fn short_number(bytes: &[u8], i: usize) -> Option<(u16, usize, u8)> {
    let four = bytes.get(i..)?.first_chunk::<4>()?;
    let word = u32::from_le_bytes(*four);
    let values = word ^ 0x3030_3030;
    // The top bit of each byte that is no digit; carries only reach bytes behind the first of those.
    let other = (values.wrapping_add(0x7676_7676) | values) & 0x8080_8080;
    // 7, 15, 23 or 31 for the first of them.
    let place = other.trailing_zeros();
    if other == 0 || place == 7 {
        return None;
    }
    let bits = place - 7;
    let aligned = values << (32 - bits);
    let number = (aligned >> 24) + (aligned >> 16 & 0xff) * 10 + (aligned >> 8 & 0xff) * 100;
    Some((number as u16, (bits / 8) as usize, (word >> bits) as u8))
}

/// Finds the second byte of U+009C, whose first may be the last byte that was already taken.
fn find_utf8_st(before: u8, bytes: &[u8]) -> Option<usize> {
    memchr::memchr_iter(0x9c, bytes).find(|&m| (if m == 0 { before } else { bytes[m - 1] }) == 0xc2)
}

/// The length of the run of printable ASCII that `bytes` begins with.
#[inline]
fn ascii_run(bytes: &[u8]) -> usize {
    let printable = |b: u8| b.wrapping_sub(0x20) < 0x5f;
    let mut n = 0;
    for chunk in bytes.chunks_exact(16) {
        let mut all = true;
        for &b in chunk {
            all &= printable(b);
        }
        if !all {
            break;
        }
        n += 16;
    }
    while n < bytes.len() && printable(bytes[n]) {
        n += 1;
    }
    n
}
