//! `CMD`: sends a line and captures the program's output up to its next prompt.
//!
//! If the session's prompt is known, the turn that the line begins is the answer. Otherwise, if the
//! shell marks its prompts (OSC 133), the marks say where the output begins and ends.
//!
//! Without marks, the prompt is the text in front of the cursor when the line was sent. The output
//! has ended when the same text stands in front of the cursor again and nothing follows for a
//! moment. A program without a prompt counts as done when it has been quiet for a while. Every
//! capture has a time limit.

use std::time::Duration;

use tapdeck_core::{Seq, Time};
use tapdeck_host::Picture;
use tapdeck_proto::bus::Captured;
use tapdeck_term::{Mark, Scanner, Token};

/// The most that is captured.
const MAX_CAPTURE: usize = 1 << 20;
/// How long the prompt must stand before it counts.
const SETTLED: Duration = Duration::from_millis(40);
/// How long a program without a prompt must be quiet.
const QUIET: Duration = Duration::from_secs(1);

/// A capture at work.
pub(crate) struct Capture {
    from: Seq,
    prompt: String,
    started: Time,
    limit: Duration,
    /// When output last came; `None` while that was not looked at.
    changed: Option<Time>,
    bytes: Vec<u8>,
    /// Where in the program's output `bytes` begins, once known.
    begins: u64,
    truncated: bool,
    /// Where the shell said that the output begins, and that it has ended.
    output_mark: Option<u64>,
    done_mark: Option<u64>,
    complete: bool,
    /// The session's prompt is known: the end of the turn is the end of the command.
    by_turn: bool,
}

impl Capture {
    /// Captures the output after a line that is sent now. `known` is the prompt as it looked
    /// before: output without a line end may stand in front of the prompt.
    pub(crate) fn new(picture: &Picture, known: &str, begins: u64, now: Time, limit: Duration) -> Self {
        let before = before_cursor(picture);
        let is_known = !known.trim().is_empty() && before.ends_with(known);
        Self {
            from: picture.next(),
            prompt: if is_known { known.to_owned() } else { before },
            started: now,
            limit,
            changed: Some(now),
            bytes: Vec::new(),
            begins,
            truncated: false,
            output_mark: None,
            done_mark: None,
            complete: false,
            by_turn: false,
        }
    }

    /// The end of the turn will be told.
    pub(crate) fn by_turn(mut self, known: bool) -> Self {
        self.by_turn = known;
        self
    }

    /// The answer, when the turn that has ended is this command's.
    pub(crate) fn turn_ended(
        &self,
        byte: u64,
        text: &str,
        truncated: bool,
        interrupted: bool,
    ) -> Option<Captured> {
        if !self.by_turn || byte < self.begins {
            return None;
        }
        let mut cut = text.len().min(MAX_CAPTURE);
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        Some(Captured {
            text: text[..cut].to_owned(),
            timeout: false,
            truncated: truncated || cut < text.len(),
            cancelled: interrupted,
        })
    }

    /// What the prompt looks like.
    pub(crate) fn prompt(&self) -> &str {
        &self.prompt
    }

    pub(crate) fn feed(&mut self, seq: Seq, bytes: &[u8]) {
        if seq >= self.from {
            let room = MAX_CAPTURE.saturating_sub(self.bytes.len());
            self.truncated |= bytes.len() > room;
            self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
            self.changed = None;
        }
    }

    /// Some of the output went by unseen.
    pub(crate) fn lost(&mut self) {
        self.truncated = true;
    }

    /// The program says itself that it waits for a line.
    pub(crate) fn prompt_came(&mut self) {
        self.complete = true;
    }

    pub(crate) fn mark(&mut self, mark: Mark, offset: u64) {
        match mark {
            _ if self.by_turn => {}
            Mark::Output if self.output_mark.is_none() => self.output_mark = Some(offset + 1),
            Mark::Done(_) if self.output_mark.is_some() => {
                self.done_mark.get_or_insert(offset);
                self.complete = true;
            }
            _ => {}
        }
    }

    /// When to look again.
    pub(crate) fn next_look(&self, now: Time) -> Time {
        if self.complete {
            return now;
        }
        let limit = self.started + self.limit;
        if self.by_turn { limit } else { limit.min(now + SETTLED / 2) }
    }

    /// The answer, once there is one.
    pub(crate) fn answer(&mut self, picture: &Picture, now: Time) -> Option<Captured> {
        let quiet = now.since(*self.changed.get_or_insert(now));
        // Its echo alone is no answer: the cursor has to have left the line.
        let begun =
            self.bytes.contains(&b'\n') || !self.prompt.is_empty() && !self.bytes.is_empty() && quiet > QUIET;
        let at_prompt = if self.prompt.trim().is_empty() {
            // A command that was still running has not let this one begin.
            let waits =
                || picture.detector().is_some_and(|d| d.is_changing()) && self.text(false).trim().is_empty();
            quiet >= QUIET && !waits()
        } else {
            quiet >= SETTLED && before_cursor(picture).ends_with(self.prompt.as_str())
        };
        let done = self.complete || (!self.by_turn && begun && at_prompt && self.output_mark.is_none());
        if done {
            return Some(self.response(false, false));
        }
        (now >= self.started + self.limit).then(|| self.response(true, false))
    }

    /// The answer when the session ends first.
    pub(crate) fn cut_short(&self) -> Captured {
        // Its end is an end of its output too.
        self.response(false, false)
    }

    fn response(&self, timeout: bool, cancelled: bool) -> Captured {
        Captured { text: self.text(timeout), timeout, truncated: self.truncated, cancelled }
    }

    fn text(&self, timeout: bool) -> String {
        let place = |offset: u64| {
            usize::try_from(offset.saturating_sub(self.begins)).unwrap_or(0).min(self.bytes.len())
        };
        if let Some(start) = self.output_mark {
            // The mark for the end may be in mid-sequence: the sequence is taken out below.
            let end = self.done_mark.map_or(self.bytes.len(), place);
            return plain(self.bytes.get(place(start)..end).unwrap_or(&[]));
        }
        let text = plain(&self.bytes);
        // The terminal's echo of the line itself, up to its end.
        let mut body = text.split_once('\n').map_or("", |(_, rest)| rest);
        if !timeout && !self.prompt.trim().is_empty() {
            body = body.trim_end_matches(' ').strip_suffix(self.prompt.trim_end()).unwrap_or(body);
        }
        body.to_owned()
    }
}

/// The text in front of the cursor.
fn before_cursor(picture: &Picture) -> String {
    let term = picture.term();
    let cursor = term.cursor();
    let Some(line) = term.row(cursor.row) else { return String::new() };
    let cells = line.cells();
    let cells = cells.iter().take(usize::from(cursor.col));
    cells.flatten().map(|t| if t.is_empty() { " " } else { t }).collect()
}

/// Text without control sequences, with line ends as they are written in files.
fn plain(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    let mut scanner = Scanner::new();
    scanner.feed(bytes, |_, token| match token {
        Token::Text(text) => out.extend_from_slice(text),
        Token::Control { bytes: [c @ (b'\n' | b'\t' | b'\r')], .. } => out.push(*c),
        _ => {}
    });
    let text = String::from_utf8_lossy(&out).replace("\r\n", "\n");
    // A return without a line feed goes over the line again: what is left is what came last.
    let lines = text.split('\n').map(|line| {
        let line = line.trim_end_matches('\r');
        line.rsplit_once('\r').map_or(line, |(_, last)| last)
    });
    lines.collect::<Vec<_>>().join("\n")
}
