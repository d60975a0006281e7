//! Passes on of a stream what draws, and what can be undone when the stream ends.
//!
//! A user that looks at a session or a recording must not have answers typed into their shell,
//! their clipboard written, colours changed, files saved or their window moved. So only what is
//! listed here passes, always in its seven-bit form and whole. Where something is taken out after
//! an unfinished character, a CAN is put there, so that the two sides cannot join into what
//! neither was.

use crate::links::is_safe_id;
use crate::scan::{Kind, Scanner, Token};
use crate::untrusted::is_safe_link;

/// Control characters that may pass: bell, backspace, tabs and ends of lines, shifts between
/// charsets.
const CONTROLS: std::ops::RangeInclusive<u8> = 0x07..=0x0f;
/// Escape sequences without intermediates: cursor, keypad, tab stops, charsets, protected areas.
const ESCAPES: &[u8] = b"6789=>DEHMVWno|}~";
/// Control sequences by their prefix, intermediate and last byte.
const SEQUENCES: &[(u8, u8, &[u8])] = &[
    (0, 0, b"@ABCDEFGHIJKLMPSTXZ`abdefghlmrsu"),
    (0, b' ', b"@Aq"),
    (0, b'!', b"p"),
    (0, b'"', b"q"),
    (0, b'#', b"{}pq"),
    (0, b'$', b"rtvxz{"),
    (0, b'\'', b"}~"),
    (b'?', 0, b"JKWhlrs"),
    (b'>', 0, b"mu"),
    (b'<', 0, b"u"),
    (b'=', 0, b"u"),
];
/// DEC private modes: those that [`crate::Term::undo_modes`] undoes, and how wide clusters are.
const MODES: &[&[u8]] = &[
    b"1", b"5", b"6", b"7", b"9", b"12", b"25", b"47", b"66", b"69", b"1000", b"1002", b"1003", b"1004",
    b"1005", b"1006", b"1015", b"1016", b"1047", b"1048", b"1049", b"2004", b"2026", b"2027", b"2031",
];
/// Those of them that switch between the main and the alternate screen.
const SCREENS: &[&[u8]] = &[b"47", b"1047", b"1049"];
const CLOSE_LINK: &[u8] = b"\x1b]8;;\x1b\\";
/// Longest parameters of a control sequence.
const MAX_PARAMETERS: usize = 1024;

/// What else to take out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilterOptions {
    strip_sgr: bool,
    keep_screen: bool,
}

impl FilterOptions {
    /// Sets whether colours and attributes (SGR) are taken out.
    #[must_use]
    pub fn strip_sgr(mut self, strip_sgr: bool) -> Self {
        self.strip_sgr = strip_sgr;
        self
    }

    /// Sets whether switches between the main and the alternate screen are taken out, for a
    /// terminal that shows both in the same place. The caller paints the screen after a switch.
    #[must_use]
    pub fn keep_screen(mut self, keep_screen: bool) -> Self {
        self.keep_screen = keep_screen;
        self
    }
}

/// The filter; it keeps its place between calls.
#[derive(Clone, Debug, Default)]
pub struct ReplayFilter {
    scanner: Scanner,
    options: FilterOptions,
    gate: Gate,
}

#[derive(Clone, Copy, Debug, Default)]
struct Gate {
    /// What was let through last is unfinished.
    dangling: bool,
    passed: Passed,
}

/// What was let through that the end of the stream, or a later sequence, must know of.
#[derive(Clone, Copy, Debug, Default)]
struct Passed {
    /// The alternate screen is shown.
    alternate: bool,
    /// Keyboard flags pushed, on the main and the alternate screen: those below are the user's.
    pushed: [u16; 2],
    /// Clusters of characters share a cell (mode 2027).
    clusters: bool,
}

impl Passed {
    fn pushed(&mut self) -> &mut u16 {
        &mut self.pushed[usize::from(self.alternate)]
    }

    /// Takes note of private modes.
    fn modes(&mut self, modes: &[Vec<u8>], on: bool) {
        for mode in modes {
            match &mode[..] {
                b"47" | b"1047" | b"1049" => self.alternate = on,
                b"2027" => self.clusters = on,
                _ => {}
            }
        }
    }

    /// Stands for a full reset, which would also take the lines above the screen.
    fn reset(&mut self, keep_screen: bool) -> Vec<u8> {
        let mut out = CLOSE_LINK.to_vec();
        let pop = |n: u16| if n > 0 { format!("\x1b[<{n}u").into_bytes() } else { Vec::new() };
        let [main, alternate] = std::mem::take(&mut self.pushed);
        match (std::mem::take(&mut self.alternate), keep_screen) {
            (true, true) => out.extend(pop(alternate)),
            (true, false) => {
                out.extend(pop(alternate));
                out.extend_from_slice(b"\x1b[=0u\x1b[?1049l");
                out.extend(pop(main));
            }
            (false, _) => out.extend(pop(main)),
        }
        let screen = if keep_screen { "" } else { "1049;" };
        let modes = format!("5;1000;1002;1003;1004;1005;1006;1015;1016;{screen}2004;2026;2031");
        let rest = format!("\x1b[=0u\x1b[>4;0m\x1b[?{modes}l\x1b[!p\x1b[0 q\x1b[?5W\x1b[H\x1b[2J");
        out.extend_from_slice(rest.as_bytes());
        out
    }
}

impl ReplayFilter {
    /// A filter at the beginning of a stream.
    pub fn new(options: FilterOptions) -> Self {
        Self { scanner: Scanner::new(), options, gate: Gate::default() }
    }

    /// Appends what may pass of `bytes` to `out`. An unfinished sequence is held back until it is
    /// whole.
    pub fn filter(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let (options, gate) = (self.options, &mut self.gate);
        self.scanner.feed(bytes, |s, token| gate.pass(options, s.in_character(), token, out));
    }

    /// Whether what was let through last is unfinished, so that nothing of one's own may be written
    /// behind it.
    pub fn is_dangling(&self) -> bool {
        self.gate.dangling
    }

    /// The end of the stream. What was held back is no whole sequence and is dropped.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.interrupt(out);
        *self = Self::new(self.options);
    }

    /// Leaves the terminal to other output. The stream goes on later, where it was.
    pub fn interrupt(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.gate.dangling) {
            out.push(0x18);
        }
        if self.gate.passed.clusters {
            out.extend_from_slice(b"\x1b[?2027l");
        }
    }
}

impl Gate {
    fn pass(&mut self, options: FilterOptions, in_character: bool, token: Token<'_>, out: &mut Vec<u8>) {
        match token {
            Token::Text(text) => {
                out.extend_from_slice(text);
                self.dangling = in_character;
            }
            Token::Control { kind: Kind::Csi, bytes, complete: true } if is_common(options, bytes) => {
                out.extend_from_slice(bytes);
                self.dangling = false;
            }
            Token::Control { kind, bytes, complete } => {
                let passed = judge(&mut self.passed, options, kind, bytes, complete);
                if std::mem::take(&mut self.dangling) && passed.is_empty() {
                    out.push(0x18);
                }
                out.extend_from_slice(&passed);
            }
            // Nothing of this length draws. A dropped link must not go on as the one before.
            Token::Part { kind, first, .. } => {
                if first && std::mem::take(&mut self.dangling) {
                    out.push(0x18);
                }
                if first && kind == Kind::Osc {
                    out.extend_from_slice(CLOSE_LINK);
                }
            }
        }
    }
}

/// Whether this is one of the sequences that nearly all output is made of, which pass as they are.
fn is_common(options: FilterOptions, bytes: &[u8]) -> bool {
    let [0x1b, b'[', params @ .., last] = bytes else { return false };
    let plain = params.len() <= 32 && params.iter().all(|b| b.is_ascii_digit() || matches!(b, b';' | b':'));
    match last {
        b'm' => plain && !options.strip_sgr,
        b'A'..=b'D' | b'G' | b'H' | b'K' | b'X' | b'd' => plain && params.len() <= 5,
        _ => false,
    }
}

/// What comes after the introducer. Bytes that no terminal takes for part of it may stand between
/// ESC and its letter.
fn after_introducer(bytes: &[u8]) -> &[u8] {
    match bytes {
        [0x1b, rest @ ..] => {
            let letter = rest.iter().position(|b| matches!(b, b'[' | b']' | b'P' | b'_' | b'^' | b'X'));
            letter.map_or(&[], |i| &rest[i + 1..])
        }
        [0xc2, _, rest @ ..] | [_, rest @ ..] => rest,
        [] => bytes,
    }
}

/// The bytes between introducer and terminator.
fn body(bytes: &[u8]) -> &[u8] {
    match after_introducer(bytes) {
        [rest @ .., 0x1b, b'\\'] | [rest @ .., 0xc2, 0x9c] | [rest @ .., 0x07 | 0x9c] => rest,
        rest => rest,
    }
}

fn visible(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().copied().filter(|b| (0x20..0x7f).contains(b)).collect()
}

/// Whether terminals disagree on where the sequence begins or ends, so that another one may hide in
/// it: to one that reads UTF-8, a bare byte above 0x7f introduces nothing, and two of them may
/// introduce something within.
fn is_ambiguous(kind: Kind, bytes: &[u8]) -> bool {
    match kind {
        Kind::Control => false,
        Kind::Esc | Kind::Csi => {
            let rest = if let [0x1b, rest @ ..] = bytes { rest } else { after_introducer(bytes) };
            rest.iter().any(|b| *b >= 0x80)
        }
        _ => matches!(bytes, [0x80..=0x9f, ..]),
    }
}

/// What passes of a sequence, or in its place.
fn judge(state: &mut Passed, options: FilterOptions, kind: Kind, bytes: &[u8], complete: bool) -> Vec<u8> {
    if is_ambiguous(kind, bytes) {
        return Vec::new();
    }
    // Controls inside a sequence act at once, even when it is cut off.
    let inside = || bytes.iter().copied().filter(|b| CONTROLS.contains(b)).collect::<Vec<_>>();
    match kind {
        Kind::Control => control(state, options, bytes),
        Kind::Esc | Kind::Csi if !complete => inside(),
        Kind::Esc => [inside(), escape(state, options, &visible(bytes))].concat(),
        Kind::Csi => [inside(), csi(state, options, &visible(after_introducer(bytes)))].concat(),
        Kind::Osc if complete => osc(body(bytes)),
        Kind::Osc | Kind::Dcs | Kind::Apc | Kind::Pm | Kind::Sos => Vec::new(),
    }
}

fn control(state: &mut Passed, options: FilterOptions, bytes: &[u8]) -> Vec<u8> {
    match bytes {
        // To a terminal that reads UTF-8 a bare byte is a broken character, and to others it must
        // not be a control.
        [0x80..=0x9f] => "\u{fffd}".into(),
        [b] if CONTROLS.contains(b) || matches!(b, 0 | 0x18 | 0x1a) => vec![*b],
        [0xc2, c1 @ 0x80..=0x9f] => escape(state, options, &[c1 - 0x40]),
        _ => Vec::new(),
    }
}

fn escape(state: &mut Passed, options: FilterOptions, clean: &[u8]) -> Vec<u8> {
    let passes = match clean {
        [b'c'] => return state.reset(options.keep_screen),
        [last] => ESCAPES.contains(last),
        [b'#', size] => b"34568".contains(size),
        // After a switch away from UTF-8, bytes that are text here would be controls there.
        [b'%', charset] => *charset == b'G',
        [b'(' | b')' | b'*' | b'+' | b'-' | b'.' | b'/', _] => true,
        [b'(' | b')' | b'*' | b'+', b'"' | b'%' | b'&', _] => true,
        _ => false,
    };
    if passes { [b"\x1b", clean].concat() } else { Vec::new() }
}

fn csi(state: &mut Passed, options: FilterOptions, clean: &[u8]) -> Vec<u8> {
    let Some((&last, rest)) = clean.split_last() else { return Vec::new() };
    let prefix = rest.first().copied().filter(|b| (b'<'..=b'?').contains(b)).unwrap_or(0);
    let rest = &rest[usize::from(prefix != 0)..];
    let (params, inter) = match rest.split_last() {
        Some((inter, params)) if (0x20..0x30).contains(inter) => (params, *inter),
        _ => (rest, 0),
    };
    let known = SEQUENCES.iter().any(|(p, i, lasts)| (*p, *i) == (prefix, inter) && lasts.contains(&last));
    let plain = params.iter().all(|b| b.is_ascii_digit() || matches!(b, b';' | b':'));
    if !known || !plain || params.len() > MAX_PARAMETERS {
        return Vec::new();
    }
    let each = || params.split(|b| *b == b';');
    let first = each().next().unwrap_or_default();
    let passes = match (prefix, last) {
        (0, b'm') if inter == 0 => !options.strip_sgr,
        (0, b'h' | b'l') => params == b"4",
        // More parameters ask for the mouse to be followed by the program alone.
        (0, b'T') => each().count() <= 1,
        // The lines above the screen are the user's.
        (0 | b'?', b'J') => matches!(params, b"" | b"0" | b"1" | b"2"),
        (b'?', b'W') => params == b"5",
        (b'>', b'm') => first == b"4",
        _ => true,
    };
    if !passes {
        return Vec::new();
    }
    let mut kept: Vec<Vec<u8>> = each().map(bounded).collect();
    if prefix == b'?' && b"hlrs".contains(&last) {
        kept.retain(|mode| MODES.contains(&&mode[..]));
        if kept.is_empty() {
            return Vec::new();
        }
        if b"hl".contains(&last) {
            state.modes(&kept, last == b'h');
        }
        kept.retain(|mode| !options.keep_screen || !SCREENS.contains(&&mode[..]));
        if kept.is_empty() {
            return Vec::new();
        }
    }
    // What the user's own programs pushed stays.
    if (prefix, last) == (b'>', b'u') {
        *state.pushed() = state.pushed().saturating_add(1);
    } else if (prefix, last) == (b'<', b'u') {
        let wanted = std::str::from_utf8(first).ok().and_then(|n| n.parse().ok());
        let popped = wanted.unwrap_or(1).max(1).min(*state.pushed());
        *state.pushed() -= popped;
        if popped == 0 {
            return Vec::new();
        }
        kept = vec![popped.to_string().into_bytes()];
    }
    let mut out = b"\x1b[".to_vec();
    out.extend((prefix != 0).then_some(prefix));
    out.extend(kept.join(&b';'));
    out.extend((inter != 0).then_some(inter));
    out.push(last);
    out
}

/// A parameter without numbers that are beyond all sizes.
fn bounded(param: &[u8]) -> Vec<u8> {
    let number = |digits: &[u8]| if digits.len() > 5 { b"65535".to_vec() } else { digits.to_vec() };
    param.split(|b| *b == b':').map(number).collect::<Vec<_>>().join(&b':')
}

/// Links; nothing else of its kind draws.
fn osc(body: &[u8]) -> Vec<u8> {
    let Some(rest) = body.strip_prefix(b"8;") else { return Vec::new() };
    let text = std::str::from_utf8(rest).unwrap_or_default();
    let (params, uri) = text.split_once(';').unwrap_or_default();
    if !is_safe_link(uri) {
        return CLOSE_LINK.to_vec();
    }
    let id = params.split(':').find_map(|p| p.strip_prefix("id=")).filter(|id| is_safe_id(id));
    let id = id.map(|id| format!("id={id}")).unwrap_or_default();
    format!("\x1b]8;{id};{uri}\x1b\\").into_bytes()
}
