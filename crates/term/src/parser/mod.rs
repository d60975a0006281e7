//! Bytes to tokens of the control-sequence grammar (ECMA-48 with DEC's and xterm's habits).
//!
//! The parser keeps all its state between calls, so any split of the input gives the same tokens.
//! Its memory is bounded: at most [`MAX_PARAMS`] parameters, two intermediates and a string of a
//! settable length; what goes past is counted as overflow and the sequence is skipped whole. Runs
//! of plain ASCII are handed over as slices; that, and reading CSI parameters in one tight loop, is
//! where its speed comes from.

mod params;
mod pending;
mod strings;
mod utf8;

use params::short_number;
pub(crate) use params::{Csi, MAX_PARAMS, Params};

/// The kinds of string-bearing sequences beside OSC and DCS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StringKind {
    Osc,
    Dcs,
    Apc,
    Pm,
    Sos,
}

/// Takes the tokens. `end` is the number of bytes of the stream up to and including the token's
/// last.
pub(crate) trait Sink {
    /// Printable ASCII; `end` is for the run's last byte.
    fn ascii(&mut self, run: &[u8], end: u64);
    /// One character that is not ASCII.
    fn character(&mut self, c: char, end: u64);
    /// A chance to take many characters at once: `bytes` begins with one that is not ASCII, at
    /// offset `base`. Returns how many bytes were taken, which must be whole characters and no
    /// controls.
    fn characters(&mut self, _bytes: &[u8], _base: u64) -> usize {
        0
    }
    /// A chance to take an SGR sequence by its bytes, which begin after the introducer. Returns how
    /// many were taken.
    fn sgr(&mut self, _bytes: &[u8]) -> usize {
        0
    }
    /// A C0 or C1 control.
    fn execute(&mut self, byte: u8, end: u64);
    /// True: the parser's own modes may have to change before the next byte is read.
    fn esc(&mut self, inter: u16, last: u8, end: u64) -> bool;
    /// As [`Self::esc`].
    fn csi(&mut self, csi: &Csi, end: u64) -> bool;
    /// A finished string. `head` is the DCS's opening. `overflow`: it was too long and is not all
    /// there.
    fn string(&mut self, kind: StringKind, head: &Csi, data: &[u8], bell: bool, overflow: bool, end: u64);
    /// A string that something else cut off: its bytes so far, unless it was too long, and where
    /// they end.
    fn abandoned(&mut self, _kind: StringKind, _data: &[u8], _end: u64) {}
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

    /// Whether the stream stands between tokens.
    pub(crate) fn is_idle(&self) -> bool {
        self.state == State::Ground && self.utf8_len == 0
    }

    /// Reads `bytes`, of which the first has the offset `base`. Returns early, with how much it
    /// took, after a token for which the sink may have changed the parser's modes.
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

    /// Reads parameters up to the final byte. The bool says that the caller has to look at the
    /// parser's modes.
    #[inline]
    fn csi_params<S: Sink>(&mut self, bytes: &[u8], mut i: usize, base: u64, sink: &mut S) -> (usize, bool) {
        // Kept in locals while the parameters last: this is the loop that colourful output spends
        // its time in.
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

    /// A control byte inside a sequence: CAN, SUB and ESC end it, other C0 controls act at once,
    /// the rest is dropped.
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
                // The ESC was not part of a terminator: the string is abandoned, and the ESC begins
                // anew.
                self.finish_string_aborted(end.saturating_sub(2), sink);
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

#[cfg(test)]
mod tests;
