//! The judge: is shown lines and payloads, and decides which of their bytes are masked.

use std::collections::VecDeque;
use std::sync::Arc;

use tapdeck_term::{Glyph, Kind, Witness};

use super::known::Known;
use super::masks::{Masks, is_filler};
use super::report::{Hit, Report, RuleReport, Stream};
use super::rules::{Found, MASK, PEM_BEGIN, Rules};

/// Hits that are listed one by one.
const MAX_POSITIONS: usize = 10_000;
/// Lines that a PEM block may have.
const PEM_LINES: u32 = 400;
/// A value must be this long to be looked for everywhere; shorter ones, and such without a digit,
/// are words.
const LEARN: usize = 8;
const LEARN_WORDS: usize = 20;
/// A typed password must be this long to be looked for.
const SHORTEST: usize = 4;
/// Offsets that are remembered: lines are judged soon after they were written.
const OFFSETS: usize = 4096;
/// What the prompts of shells end in.
const PROMPTS: [char; 7] = ['$', '#', '%', '>', '❯', '➜', '»'];
/// How often a line in which something was found is looked at again.
const ROUNDS: usize = 8;
/// Characters at the end of a line that may be the beginning of something.
const OPEN: usize = 4096;

#[derive(Clone, Debug)]
pub(super) struct Eye {
    pub(super) rules: Arc<Rules>,
    pub(super) output: Masks,
    pub(super) input: Masks,
    known: Known,
    counts: Vec<[u64; 3]>,
    positions: Vec<Hit>,
    more_positions: u64,
    unseen: u64,
    residue: u64,
    /// The end of what was inspected last.
    tail: Vec<u8>,
    /// Lines that may still belong to a PEM block.
    pem: u32,
    pem_rule: Option<usize>,
    found: Vec<Found>,
    /// Offsets of the output at which a typed password was submitted, and at which a line editor
    /// began, the newest last.
    submitted: VecDeque<u64>,
    editors: VecDeque<u64>,
}

impl Eye {
    pub(super) fn new(rules: Arc<Rules>) -> Self {
        let mut known = Known::default();
        for (rule, value) in rules.secrets() {
            // As it is, and as it is when it is spread over lines.
            for line in value.lines().filter(|l| l.len() >= 4) {
                known.add(line.as_bytes(), rule);
            }
        }
        let pem_rule = rules.names().position(|(name, _)| name == "pem-private-key");
        Self {
            counts: vec![[0; 3]; rules.len()],
            rules,
            output: Masks::default(),
            input: Masks::default(),
            known,
            positions: Vec::new(),
            more_positions: 0,
            unseen: 0,
            residue: 0,
            tail: Vec::new(),
            pem: 0,
            pem_rule,
            found: Vec::new(),
            submitted: VecDeque::new(),
            editors: VecDeque::new(),
        }
    }

    pub(super) fn again(self) -> Self {
        Self { known: self.known, ..Self::new(self.rules) }
    }

    pub(super) fn learned(&self) -> usize {
        self.known.len() - self.rules.secrets().count().min(self.known.len())
    }

    /// A password was typed and submitted when the output had this length.
    pub(super) fn learn_password(&mut self, password: &str, output: u64) {
        let Some(rule) = self.rules.prompt_rule() else { return };
        remember(&mut self.submitted, output);
        // Stars stand for a password that is kept nowhere.
        if password.chars().count() >= SHORTEST && !password.chars().all(is_filler) {
            self.known.add(password.as_bytes(), rule);
        }
    }

    /// A line editor began at this offset of the output.
    pub(super) fn editor_begins(&mut self, output: u64) {
        remember(&mut self.editors, output);
    }

    /// Where on a line something new begins behind a request for a password that was answered: what
    /// stands there is not the password.
    fn answered(&self, text: &str, glyphs: &[Glyph]) -> Option<usize> {
        let (first, last) = (glyphs.first()?.at, glyphs.last()?.at);
        let split = |at: u64| {
            let here = glyphs.partition_point(|g| g.at < at);
            // Text that was written out of order has no such place.
            let in_order =
                glyphs[..here].iter().all(|g| g.at < at) && glyphs[here..].iter().all(|g| g.at >= at);
            in_order.then(|| text.char_indices().nth(here).map_or(text.len(), |(byte, _)| byte))
        };
        let within = |offsets: &VecDeque<u64>| {
            let from = offsets.partition_point(|at| *at <= first);
            let upto = offsets.partition_point(|at| *at <= last);
            offsets.range(from..upto.max(from)).next_back().copied()
        };
        if let Some(at) = within(&self.submitted).and_then(split) {
            return Some(at);
        }
        // Where the input is not known: a line editor's prompt, if it looks like one.
        let at = within(&self.editors).and_then(split)?;
        let word = text[at..].split(' ').next().unwrap_or_default();
        word.ends_with(PROMPTS).then_some(at)
    }

    /// What is to be masked in a text, as ranges of bytes that are whole characters.
    pub(super) fn find(&mut self, text: &str) -> Vec<Found> {
        self.find_from(text, None)
    }

    /// Adds what the rules find. What begins at `answered` is no value of a name in front of it.
    fn scan(&self, text: &[u8], answered: Option<usize>, found: &mut Vec<Found>) {
        let before = found.len();
        self.rules.scan(text, found);
        let Some(cut) = answered else { return };
        let is_value = |f: &Found| {
            let name = text[..f.range.start].trim_ascii_end();
            !(self.rules.is_named(f.rule) && f.range.start >= cut && name.len() <= cut)
        };
        let new = found.split_off(before);
        found.extend(new.into_iter().filter(is_value));
    }

    fn find_from(&mut self, text: &str, answered: Option<usize>) -> Vec<Found> {
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        self.pem(text, &mut found);
        self.scan(text.as_bytes(), answered, &mut found);
        self.learn(text, &mut found);
        self.known.scan(text.as_bytes(), &mut found);
        let mut done = 0;
        let mut masked = Vec::new();
        // What is masked may uncover the edge of something else, and what is learned may be there
        // twice.
        for _ in 0..ROUNDS {
            if found.len() == done {
                break;
            }
            if masked.is_empty() {
                masked.extend_from_slice(text.as_bytes());
            }
            for f in &mut found[done..] {
                // Patterns work on bytes; characters are masked whole.
                f.range.start = text.floor_char_boundary(f.range.start);
                f.range.end = text.ceil_char_boundary(f.range.end);
                let keep = self.rules.keep(f.rule).as_bytes();
                let left = |b: &&mut u8| !keep.contains(*b) && **b != b' ';
                masked[f.range.clone()].iter_mut().filter(left).for_each(|b| *b = MASK as u8);
            }
            done = found.len();
            self.scan(&masked, answered, &mut found);
            self.learn(text, &mut found[done..]);
            self.known.scan(&masked, &mut found);
        }
        found
    }

    /// Remembers what the rules for secrets found.
    fn learn(&mut self, text: &str, found: &mut [Found]) {
        for f in found {
            f.range.start = text.floor_char_boundary(f.range.start);
            f.range.end = text.ceil_char_boundary(f.range.end);
            let value = &text[f.range.clone()];
            if self.rules.is_secret(f.rule) && is_worth_learning(value) {
                self.known.add(value.as_bytes(), f.rule);
            }
        }
    }

    /// Gives the memory back.
    pub(super) fn done(&mut self, found: Vec<Found>) {
        self.found = found;
    }

    /// Masks characters of a stream.
    pub(super) fn mask(&mut self, rule: usize, stream: Stream, glyphs: &[Glyph]) {
        let keep = self.rules.keep(rule).to_owned();
        let masks = if stream == Stream::Input { &mut self.input } else { &mut self.output };
        let mut length = 0;
        let mut at = None;
        for glyph in glyphs.iter().filter(|g| !keep.contains(g.c) && !is_filler(g.c) && g.c != ' ') {
            if masks.glyph(glyph) {
                length += 1;
                at.get_or_insert(glyph.at);
            }
        }
        if let Some(at) = at {
            self.count(rule, stream, at, length);
        }
    }

    pub(super) fn count(&mut self, rule: usize, stream: Stream, at: u64, length: usize) {
        let Some(counts) = self.counts.get_mut(rule) else { return };
        counts[stream as usize] += 1;
        if self.positions.len() < MAX_POSITIONS {
            let name = self.rules.names().nth(rule).map_or("", |n| n.0).to_owned();
            self.positions.push(Hit { rule: name, stream, at, length });
        } else {
            self.more_positions += 1;
        }
    }

    /// Judges a line of a stream.
    pub(super) fn judge(&mut self, stream: Stream, text: &str, glyphs: &[Glyph]) {
        let answered = if stream == Stream::Output { self.answered(text, glyphs) } else { None };
        let found = self.find_from(text, answered);
        let ascii = text.len() == glyphs.len();
        for f in &found {
            let range = match ascii {
                true => f.range.clone(),
                false => text[..f.range.start].chars().count()..text[..f.range.end].chars().count(),
            };
            if let Some(glyphs) = glyphs.get(range) {
                self.mask(f.rule, stream, glyphs);
            }
        }
        self.done(found);
    }

    /// Follows a PEM block from line to line.
    fn pem(&mut self, text: &str, found: &mut Vec<Found>) {
        let Some(rule) = self.pem_rule else { return };
        if text.contains(PEM_BEGIN) && text.contains("PRIVATE KEY") {
            self.pem = PEM_LINES;
            return;
        }
        if self.pem == 0 {
            return;
        }
        if text.contains("-----END ") {
            self.pem = 0;
            return;
        }
        self.pem -= 1;
        let base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
        let body = text.trim_matches(|c: char| !base64(c));
        let start = text.len() - text.trim_start_matches(|c: char| !base64(c)).len();
        if body.len() >= 4 && body.chars().all(base64) {
            found.push(Found { rule, range: start..start + body.len() });
            return;
        }
        // Beside something else on the row.
        let mut at = 0;
        for word in text.split(|c: char| !base64(c)) {
            if word.len() >= 32 {
                found.push(Found { rule, range: at..at + word.len() });
            }
            at += word.len() + text[at + word.len()..].chars().next().map_or(0, char::len_utf8);
        }
    }

    /// A text beside the session.
    pub(super) fn field(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            let found = self.find(line);
            let mut chars: Vec<(usize, char)> = line.char_indices().collect();
            for f in &found {
                let keep = self.rules.keep(f.rule).to_owned();
                let mut length = 0;
                for (at, c) in &mut chars {
                    if f.range.contains(at) && !keep.contains(*c) && *c != MASK && *c != ' ' {
                        *c = MASK;
                        length += 1;
                    }
                }
                if length > 0 {
                    self.count(f.rule, Stream::Field, 0, length);
                }
            }
            self.done(found);
            out.extend(chars.into_iter().map(|(_, c)| c));
        }
        out
    }

    pub(super) fn forget_fields(&mut self) {
        self.counts.iter_mut().for_each(|c| c[Stream::Field as usize] = 0);
        self.positions.retain(|p| p.stream != Stream::Field);
    }

    /// Whether a line that ends here may be the beginning of something: what follows could make it
    /// a hit.
    pub(super) fn is_open(&self, text: &str) -> bool {
        let from = text.len().saturating_sub(OPEN);
        let tail = text.get(from..).unwrap_or(text);
        let mut tried = String::with_capacity(tail.len() + 64);
        // A text that becomes a hit when more of a value follows it, behind it or behind a name
        // that it ends with.
        for more in
            ["a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6e7f8", "A1B2C3D4E5F6A7B8", "=a1b2c3d4", " a1b2c3d4e5f6a7b8"]
        {
            tried.clear();
            tried.push_str(tail);
            tried.push_str(more);
            let mut found = Vec::new();
            self.rules.scan(tried.as_bytes(), &mut found);
            if found.iter().any(|f| f.range.end > tail.len() && self.rules.is_secret(f.rule)) {
                return true;
            }
        }
        false
    }

    pub(super) fn inspect(&mut self, masked: &[u8]) {
        if self.known.len() == 0 {
            return;
        }
        let before = self.tail.len();
        self.tail.extend_from_slice(masked);
        let mut found = Vec::new();
        self.known.scan(&self.tail, &mut found);
        for f in &found {
            let bytes = &self.tail[f.range.clone()];
            // What ends in the old part has been counted.
            if f.range.end > before && self.known.values().any(|v| v.len() == bytes.len() && v == bytes) {
                self.residue += 1;
            }
        }
        let keep = self.tail.len().saturating_sub(OPEN);
        self.tail.drain(..keep);
    }

    pub(super) fn report(&self) -> Report {
        let rule = |((name, pack), counts): ((&str, &str), &[u64; 3])| RuleReport {
            name: name.to_owned(),
            pack: pack.to_owned(),
            output: counts[0],
            input: counts[1],
            fields: counts[2],
        };
        Report {
            rules: self.rules.names().zip(&self.counts).map(rule).collect(),
            positions: self.positions.clone(),
            more_positions: self.more_positions,
            masked_bytes: self.output.bytes() + self.input.bytes(),
            learned: self.learned(),
            unseen_payloads: self.unseen,
            residue: self.residue,
        }
    }
}

/// Notes an offset; they come in order.
fn remember(offsets: &mut VecDeque<u64>, at: u64) {
    if offsets.len() == OFFSETS {
        offsets.pop_front();
    }
    offsets.push_back(at);
}

fn is_worth_learning(value: &str) -> bool {
    let mixed = value.bytes().any(|b| b.is_ascii_digit()) && value.bytes().any(|b| b.is_ascii_alphabetic());
    value.len() >= if mixed { LEARN } else { LEARN_WORDS }
}

impl Witness for Eye {
    fn cares(&mut self, text: &str) -> bool {
        self.pem > 0 || self.rules.suspects(text.as_bytes()) || self.known.is_in(text.as_bytes())
    }

    fn line(&mut self, text: &str, glyphs: &[Glyph]) {
        self.judge(Stream::Output, text, glyphs);
    }

    fn payload(&mut self, kind: Kind, data: &[u8], at: u64) {
        self.judge_payload(kind, data, at);
    }

    fn unseen(&mut self, _: Kind, _: u64) {
        self.unseen += 1;
    }
}
