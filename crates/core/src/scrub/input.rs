//! What was typed, put together as a line editor would: keys that delete take away, sequences of
//! other keys stand between, and a line ends with Enter. What is typed at a prompt for a password
//! is masked whole, and known from then on.

use tapdeck_term::{Glyph, Scanner, Token, Tracer, char_width};

use super::eye::Eye;
use super::report::Stream;

/// A line that is longer is judged in parts.
const MAX_LINE: usize = 16 << 10;
/// What of it is kept for the next part.
const KEPT: usize = 4 << 10;

/// How a line editor or a shell says that a prompt of its own begins.
const EDITOR: [&[u8]; 2] = [b"\x1b[?2004h", b"\x1b]133;A"];

/// Looks for the places where a line editor begins, however the output is cut.
#[derive(Clone, Debug, Default)]
pub(super) struct EditorWatch {
    /// The last bytes, which may be the beginning of a sequence.
    tail: Vec<u8>,
}

impl EditorWatch {
    /// Takes output that begins at an offset; calls `begins` with the offset behind each sequence.
    pub(super) fn feed(&mut self, bytes: &[u8], at: u64, mut begins: impl FnMut(u64)) {
        let before = self.tail.len();
        let longest = EDITOR.iter().map(|sequence| sequence.len()).max().unwrap_or(0);
        self.tail.extend_from_slice(&bytes[..bytes.len().min(longest)]);
        let mut found: Vec<u64> = Vec::new();
        for sequence in EDITOR {
            // Those that begin in the tail, and those behind it.
            let early = memchr::memmem::find_iter(&self.tail, sequence).filter(|start| *start < before);
            found.extend(early.map(|start| at + (start + sequence.len()) as u64 - before as u64));
            let later = memchr::memmem::find_iter(bytes, sequence);
            found.extend(later.map(|start| at + (start + sequence.len()) as u64));
        }
        found.sort_unstable();
        found.into_iter().for_each(&mut begins);
        self.tail.truncate(before);
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(longest - 1)..]);
        let excess = self.tail.len().saturating_sub(longest - 1);
        self.tail.drain(..excess);
    }
}

/// The line being typed.
#[derive(Clone, Debug)]
pub(super) struct Typed {
    /// What is typed is kept, so that it must be masked.
    pub(super) is_kept: bool,
    scanner: Scanner,
    /// Bytes taken.
    offset: u64,
    /// The line as edited, and as typed.
    edited: Vec<Glyph>,
    typed: Vec<Glyph>,
    /// A character whose bytes are not all there.
    part: Vec<u8>,
    /// The line is typed at a prompt for a password.
    prompted: Option<bool>,
    /// Something was taken away, so that the two lines differ.
    differ: bool,
}

impl Default for Typed {
    fn default() -> Self {
        Self {
            is_kept: true,
            scanner: Scanner::default(),
            offset: 0,
            edited: Vec::new(),
            typed: Vec::new(),
            part: Vec::new(),
            prompted: None,
            differ: false,
        }
    }
}

impl Typed {
    /// Takes bytes that were typed. `hidden`: the terminal showed nothing of them.
    pub(super) fn feed(&mut self, bytes: &[u8], hidden: bool, tracer: &Tracer, eye: &mut Eye) {
        let mut scanner = std::mem::take(&mut self.scanner);
        if hidden {
            self.prompted = Some(true);
        }
        scanner.feed(bytes, |_, token| match token {
            Token::Text(text) => text.iter().for_each(|b| self.byte(*b, tracer, eye)),
            Token::Control { bytes: [control], .. } => {
                self.control(*control, tracer, eye);
                if hidden {
                    self.prompted = Some(true);
                }
            }
            // Arrows and the like; the frame of a paste.
            Token::Control { bytes, .. } | Token::Part { bytes, .. } => self.offset += bytes.len() as u64,
        });
        self.scanner = scanner;
        if self.typed.is_empty() {
            self.prompted = None;
        }
    }

    fn byte(&mut self, b: u8, tracer: &Tracer, eye: &mut Eye) {
        self.offset += 1;
        if b == 0x7f {
            self.take_back();
            return;
        }
        self.part.push(b);
        let c = match std::str::from_utf8(&self.part) {
            Ok(text) => text.chars().next(),
            // More bytes may make it whole.
            Err(e) if e.error_len().is_none() => return,
            Err(_) => None,
        };
        let len = std::mem::take(&mut self.part).len();
        let Some(c) = c else { return };
        if self.prompted.is_none() {
            self.prompted = Some(eye.rules.is_password_prompt(&tracer.before_cursor()));
        }
        let glyph = Glyph { c, width: char_width(c) as u8, len: len as u8, at: self.offset - len as u64 };
        self.edited.push(glyph);
        self.typed.push(glyph);
        if self.typed.len() >= MAX_LINE {
            self.judge(eye);
            for line in [&mut self.edited, &mut self.typed] {
                line.drain(..line.len().saturating_sub(KEPT));
            }
        }
    }

    fn control(&mut self, b: u8, tracer: &Tracer, eye: &mut Eye) {
        self.offset += 1;
        self.part.clear();
        match b {
            0x08 => self.take_back(),
            // ^W
            0x17 => {
                self.differ = true;
                while self.edited.pop().is_some_and(|g| g.c == ' ') {}
                while self.edited.last().is_some_and(|g| g.c != ' ') {
                    self.edited.pop();
                }
            }
            b'\r' | b'\n' => {
                if self.prompted == Some(true) {
                    let password: String = self.edited.iter().map(|g| g.c).collect();
                    eye.learn_password(&password, tracer.offset());
                }
                self.end(eye);
            }
            0x03 | 0x04 | 0x15 => self.end(eye),
            _ => {}
        }
    }

    fn take_back(&mut self) {
        self.edited.pop();
        self.differ = true;
    }

    fn judge(&mut self, eye: &mut Eye) {
        if !self.is_kept {
            return;
        }
        if self.prompted == Some(true)
            && let Some(rule) = eye.rules.prompt_rule()
        {
            eye.mask(rule, Stream::Input, &self.typed);
        }
        let text = |line: &[Glyph]| line.iter().map(|g| g.c).collect::<String>();
        if self.differ {
            eye.judge(Stream::Input, &text(&self.edited), &self.edited);
        }
        eye.judge(Stream::Input, &text(&self.typed), &self.typed);
    }

    fn end(&mut self, eye: &mut Eye) {
        self.judge(eye);
        self.edited.clear();
        self.typed.clear();
        self.prompted = None;
        self.differ = false;
    }

    /// Judges the line so far. It goes on.
    pub(super) fn settle(&mut self, eye: &mut Eye) {
        if !self.typed.is_empty() {
            self.judge(eye);
        }
    }

    pub(super) fn is_open(&self) -> bool {
        !self.typed.is_empty()
    }
}
