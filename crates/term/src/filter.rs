//! Takes out of a recorded stream what would make a real terminal answer or act.
//!
//! A user that replays a recording must not have answers typed into their shell, their clipboard
//! written, files saved or their window moved. All else passes byte for byte. Where something is
//! taken out after an unfinished sequence or character, a CAN is put there, so that the two sides
//! cannot join into a sequence that neither was.

use crate::scan::{Kind, Scanner, Token};

/// What else to take out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilterOptions {
    strip_sgr: bool,
    strip_titles: bool,
}

impl FilterOptions {
    /// Sets whether colours and attributes (SGR) are taken out.
    #[must_use]
    pub fn strip_sgr(mut self, strip_sgr: bool) -> Self {
        self.strip_sgr = strip_sgr;
        self
    }

    /// Sets whether titles of windows and icons are taken out, and the stack on which they are
    /// kept.
    #[must_use]
    pub fn strip_titles(mut self, strip_titles: bool) -> Self {
        self.strip_titles = strip_titles;
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
    /// The long sequence going by is being dropped.
    dropping: bool,
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
        if self.gate.dangling {
            out.push(0x18);
        }
        *self = Self::new(self.options);
    }
}

impl Gate {
    fn pass(&mut self, options: FilterOptions, in_character: bool, token: Token<'_>, out: &mut Vec<u8>) {
        match token {
            Token::Text(text) => {
                out.extend_from_slice(text);
                self.dangling = in_character;
            }
            Token::Control { kind, bytes, complete } => {
                let judged = complete || is_ambiguous(kind, bytes);
                let verdict = if judged { judge(options, kind, bytes) } else { Verdict::Pass };
                match verdict {
                    Verdict::Pass if bytes.contains(&0x05) && kind != Kind::Control => {
                        // ENQ acts even inside a sequence.
                        out.extend(bytes.iter().filter(|&&b| b != 0x05));
                        self.dangling = !complete && !matches!(bytes.last(), Some(0x18 | 0x1a));
                    }
                    Verdict::Pass => {
                        out.extend_from_slice(bytes);
                        self.dangling = !complete && !matches!(bytes.last(), Some(0x18 | 0x1a));
                    }
                    Verdict::Drop => self.drop(out),
                    Verdict::Instead(new) => {
                        out.extend_from_slice(&new);
                        self.dangling = false;
                    }
                }
            }
            Token::Part { kind, bytes, first, last } => {
                if first {
                    self.dropping = matches!(judge(options, kind, bytes), Verdict::Drop) || kind == Kind::Csi;
                    if self.dropping {
                        self.drop(out);
                    }
                }
                if !self.dropping {
                    out.extend_from_slice(bytes);
                    self.dangling = !last;
                }
            }
        }
    }

    fn drop(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.dangling) {
            out.push(0x18);
        }
    }
}

enum Verdict {
    Pass,
    Drop,
    Instead(Vec<u8>),
}

fn drop_if(yes: bool) -> Verdict {
    if yes { Verdict::Drop } else { Verdict::Pass }
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

fn printable(bytes: &[u8]) -> Vec<u8> {
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

fn judge(options: FilterOptions, kind: Kind, bytes: &[u8]) -> Verdict {
    if is_ambiguous(kind, bytes) {
        return Verdict::Drop;
    }
    match kind {
        // To a terminal that reads UTF-8 a bare byte is a broken character, and to others it must
        // not be a control.
        Kind::Control if matches!(bytes, [0x80..=0x9f]) => Verdict::Instead("\u{fffd}".into()),
        Kind::Control => drop_if(matches!(bytes, [0x05] | [0xc2, 0x9a])),
        Kind::Esc => {
            let clean = printable(bytes);
            // After a switch away from UTF-8, bytes that are text here would be controls there.
            drop_if(clean == b"Z" || (clean.starts_with(b"%") && clean != b"%G"))
        }
        Kind::Csi => csi(options, bytes),
        Kind::Osc => {
            let body = body(bytes);
            drop_if(osc_acts(body) || (options.strip_titles && osc_titles(body)))
        }
        Kind::Dcs => drop_if(dcs_acts(body(bytes))),
        Kind::Apc => drop_if(matches!(body(bytes), [b'G', ..] | [b'@', ..])),
        Kind::Pm | Kind::Sos => Verdict::Pass,
    }
}

fn csi(options: FilterOptions, bytes: &[u8]) -> Verdict {
    // Controls inside do not change what the sequence is.
    let clean = printable(after_introducer(bytes));
    let Some((&last, rest)) = clean.split_last() else { return Verdict::Pass };
    let prefix = rest.first().copied().filter(|b| (b'<'..=b'?').contains(b)).unwrap_or(0);
    let inter = rest.iter().copied().find(|b| (0x20..0x30).contains(b)).unwrap_or(0);
    let first: u32 = rest
        .iter()
        .skip(usize::from(prefix != 0))
        .take_while(|b| b.is_ascii_digit())
        .fold(0u32, |n, b| n.saturating_mul(10).saturating_add(u32::from(b - b'0')));
    match (prefix, inter, last) {
        (0 | b'>' | b'=', 0, b'c') => Verdict::Drop,
        (0 | b'?', 0, b'n' | b'i') => Verdict::Drop,
        (_, b'$', b'p' | b'w' | b'u') => Verdict::Drop,
        (_, b'&', b'u') | (_, b'*', b'y' | b'z') | (_, b'"', b'v') | (_, b'\'', b'|') => Verdict::Drop,
        (_, b'#', b'R' | b'|' | b'S') | (b'?', 0, b'S' | b'u' | b'm' | b'g') => Verdict::Drop,
        (0, 0, b'x') => Verdict::Drop,
        (b'>', 0, b'q') => Verdict::Drop,
        (0, 0, b't') => drop_if(options.strip_titles || !matches!(first, 22 | 23)),
        (_, b'*' | b'$', b'|') => Verdict::Drop,
        (b'?', 0, b'h') if rest[1..].split(|b| *b == b';').any(|n| n == b"2048") => {
            // In-band size reports begin with one at once.
            let kept: Vec<&[u8]> = rest[1..].split(|b| *b == b';').filter(|n| *n != b"2048").collect();
            if kept.is_empty() {
                Verdict::Drop
            } else {
                let mut new = b"\x1b[?".to_vec();
                new.extend(kept.join(&b';'));
                new.push(b'h');
                Verdict::Instead(new)
            }
        }
        (0, 0, b'm') => drop_if(options.strip_sgr),
        _ => Verdict::Pass,
    }
}

fn osc_acts(body: &[u8]) -> bool {
    let split = body.iter().position(|&b| b == b';').unwrap_or(body.len());
    let rest = body.get(split + 1..).unwrap_or(&[]);
    let asks = || rest.split(|&b| b == b';').any(|p| p.contains(&b'?'));
    match &body[..split] {
        b"4" | b"5" | b"10" | b"11" | b"12" | b"13" | b"14" | b"15" | b"16" | b"17" | b"18" | b"19"
        | b"21" | b"22" => asks(),
        b"3" | b"9" | b"46" | b"50" | b"51" | b"52" | b"60" | b"61" | b"99" | b"777" | b"5113" | b"5522" => {
            true
        }
        b"1337" => {
            let key = rest.split(|&b| b == b'=').next().unwrap_or(&[]);
            !matches!(
                key,
                b"SetMark" | b"CurrentDir" | b"SetUserVar" | b"RemoteHost" | b"ShellIntegrationVersion"
            )
        }
        _ => false,
    }
}

/// Whether it sets the title of a window or an icon, by number or by the letters of old.
fn osc_titles(body: &[u8]) -> bool {
    let split = body.iter().position(|&b| b == b';').unwrap_or(body.len());
    let digits = body[..split].iter().position(|&b| b != b'0').unwrap_or(split);
    matches!(&body[digits..split], b"" | b"1" | b"2") || matches!(body, [b'l' | b'L' | b'I', ..])
}

fn dcs_acts(body: &[u8]) -> bool {
    if body.starts_with(b"tmux;") || body.starts_with(b"@") {
        return true;
    }
    let head = body.iter().position(|b| (0x40..0x7f).contains(b)).unwrap_or(body.len());
    let inter = body[..head].iter().copied().find(|b| (0x20..0x30).contains(b)).unwrap_or(0);
    // Setting and capability queries; macros and keys that a program defines for the user to press.
    matches!(
        (inter, body.get(head)),
        (b'$' | b'+', Some(b'q')) | (b'+', Some(b'p')) | (b'!', Some(b'z')) | (0, Some(b'|'))
    )
}
