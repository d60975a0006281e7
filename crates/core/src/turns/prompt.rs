//! Turns by their prompts: where one stands, whether it is one at all, and where the echo of what
//! was asked ends.

use core::time::Duration;

use tapdeck_term::{Mark, Term};

use super::detector::{ABOVE, At, Detector, EDITOR_WAIT, Marked, Phase, Run};
use super::page;
use super::{Evidence, Notice, OutputPoint};
use crate::log::Offset;
use crate::time::Stamp;

/// The line in front of the cursor.
struct PromptLine {
    text: String,
    /// The rule for prompts that it matches.
    entry: Option<usize>,
    /// Whether a line editor is on.
    editor: bool,
    /// The row where the text begins.
    first_row: u64,
    /// The cursor.
    row: u64,
    col: u16,
    /// The text behind the cursor.
    right: String,
}

impl PromptLine {
    /// The line as a prompt that begins in this column.
    fn at(
        &self,
        evidence: Evidence,
        begins: Option<(u64, u16, u64)>,
        from_col: u16,
        sign: Option<u64>,
    ) -> At {
        At {
            text: columns_from(&self.text, from_col),
            entry: self.entry,
            evidence,
            begins,
            row: self.row,
            col: self.col,
            from_col,
            editor: self.editor,
            sign,
            right: self.right.clone(),
        }
    }
}

impl Detector {
    /// The prompt that stands in front of the cursor, if one does.
    fn prompt_at(&self, term: &Term, settled: bool, quiet: bool) -> Option<At> {
        if term.modes().alternate() {
            return None;
        }
        let line = self.prompt_line(term);
        if let Some(at) = self.marked_prompt(term, &line, settled) {
            return Some(at);
        }
        if !settled {
            return None;
        }
        let running = matches!(self.last_mark().map(|m| m.mark), Some(Mark::Output));
        let known = line.entry.and_then(|e| self.rules.prompts.get(e));
        if running && !line.editor && !known.is_some_and(|p| p.strict) {
            return None;
        }
        if let Some(at) = self.prompt_of_editor(&line, quiet) {
            return Some(at);
        }
        let before = self.prompt_before();
        // A program that has a line editor behind its own prompt does not leave it out once.
        let lacks_editor = before.is_some_and(|b| b.editor && b.entry == line.entry) && !quiet;
        if known.is_some_and(|p| p.strict) && !lacks_editor {
            return Some(line.at(Evidence::Prompt, None, 0, None));
        }
        // Where a line editor stood behind the last prompt, one does behind the next, or comes
        // soon.
        if before.is_some_and(|b| b.editor) && !quiet {
            return None;
        }
        // The same prompt, perhaps behind output that had no line end.
        let literal = before.map(|b| b.text.as_str()).filter(|t| !t.trim().is_empty());
        if let Some(front) = literal.and_then(|l| line.text.strip_suffix(l)) {
            let width = u16::try_from(tapdeck_term::text_width(front)).unwrap_or(0);
            let from_col = if line.first_row == line.row { width } else { 0 };
            let entry = before.and_then(|b| b.entry);
            return Some(At { entry, ..line.at(Evidence::Prompt, None, from_col, None) });
        }
        known.map(|_| line.at(Evidence::Prompt, None, 0, None))
    }

    /// The line in front of the cursor, as far as it matters for prompts.
    fn prompt_line(&self, term: &Term) -> PromptLine {
        let since = self.submitted_byte();
        let (text, first_row) = page::before_cursor(term);
        let row = page::absolute(term, term.cursor().row);
        let (col, cols) = (term.cursor().col, term.size().cols);
        let right = page::row(term, row).map(|l| page::columns(l, col, cols)).unwrap_or_default();
        PromptLine {
            entry: self.rules.prompts.iter().position(|p| p.pattern.is_match(&text)),
            editor: term.modes().bracketed_paste() && self.editor_on.is_some_and(|(.., o)| o >= since),
            text,
            first_row,
            row,
            col,
            right: right.trim().to_owned(),
        }
    }

    /// The byte at which the running turn was submitted; 0 when none runs.
    fn submitted_byte(&self) -> u64 {
        match &self.phase {
            Phase::Running(run) => run.submitted.byte.0,
            _ => 0,
        }
    }

    /// The last prompt.
    fn prompt_before(&self) -> Option<&At> {
        match &self.phase {
            Phase::Running(run) => Some(&run.at),
            Phase::Ready(at) => Some(at),
            Phase::Start => None,
        }
    }

    /// The last mark of the shell in this turn.
    fn last_mark(&self) -> Option<Marked> {
        self.mark.filter(|m| m.offset >= self.submitted_byte())
    }

    /// The prompt that the shell itself has marked (OSC 133).
    fn marked_prompt(&self, term: &Term, line: &PromptLine, settled: bool) -> Option<At> {
        let marked = self.last_mark()?;
        let begins = |m: Marked| (m.row, m.col, m.offset);
        match marked.mark {
            Mark::Input => {
                let since = self.submitted_byte();
                let prompt = self.prompt_mark.filter(|m| m.offset >= since).map(begins);
                let whole = line.at(Evidence::Mark, prompt, 0, Some(marked.offset));
                // What is typed already is no part of it.
                let typed = (marked.row, marked.col) < (line.row, line.col);
                Some(match page::row(term, marked.row).filter(|_| typed) {
                    Some(row) => {
                        let text = page::columns(row, 0, marked.col);
                        let entry = self.rules.prompts.iter().position(|p| p.pattern.is_match(&text));
                        let (row, col) = (marked.row, marked.col);
                        At { text, entry, row, col, right: String::new(), ..whole }
                    }
                    None => whole,
                })
            }
            Mark::Prompt if settled => {
                Some(line.at(Evidence::Mark, Some(begins(marked)), 0, Some(marked.offset)))
            }
            _ => None,
        }
    }

    /// The prompt that a line editor stands behind.
    fn prompt_of_editor(&self, line: &PromptLine, quiet: bool) -> Option<At> {
        // Some take their time between the editor and the prompt that it stands behind.
        let blank = line.text.trim().is_empty() && !quiet;
        let (row, col, offset) = self.editor_on.filter(|_| line.editor && !blank)?;
        // Some switch it on in front of the prompt, others behind it.
        let behind = (row, col) == (line.row, line.col);
        let in_front = !behind && row <= line.row && line.row - row <= ABOVE;
        let from_col = if in_front && row == line.row { col } else { 0 };
        let begins = in_front.then_some((row, col, offset));
        Some(line.at(Evidence::Editor, begins, from_col, Some(offset)))
    }

    pub(super) fn turn_by_prompt(&mut self, term: &Term, now: Stamp, settled: bool, quiet: Duration) {
        let prompt = self.prompt_at(term, settled, quiet >= EDITOR_WAIT);
        if let Some(at) = &prompt
            && self.goes_on(term, at)
        {
            return self.complete_doubted(term, now, at.clone());
        }
        match &mut self.phase {
            Phase::Start => {
                if let Some(at) = prompt {
                    self.above = page::above(term, at.row, ABOVE);
                    self.tell(Notice::Ready(OutputPoint { byte: Offset(self.offset), at: now }));
                    self.phase = Phase::Ready(at);
                }
            }
            Phase::Ready(at) => {
                // Drawn anew, moved by a resize, or behind something that a job printed.
                if let Some(new) = prompt
                    && (new.text == at.text
                        || (new.sign.is_some() && new.sign != at.sign)
                        || (at.text.trim().is_empty() && !self.typing.is_begun()))
                {
                    // With the cursor back at its beginning, a line that is being edited is no
                    // prompt on the right.
                    let right = if new.sign == at.sign { at.right.clone() } else { new.right.clone() };
                    let mut new = At { entry: new.entry.or(at.entry), right, ..new };
                    if new.text != at.text && self.typing.is_begun() {
                        // Typing came before it was judged. It is the last one, moved, rather
                        // than that and what was typed.
                        (new.text, new.col, new.from_col) = (at.text.clone(), at.col, at.from_col);
                    }
                    *at = new;
                }
            }
            Phase::Running(_) => self.running_by_prompt(term, now, settled, quiet, prompt),
        }
    }

    /// Whether the last prompt was a part of the answer, because the program wrote more behind it
    /// and then this prompt, with nothing typed between.
    fn goes_on(&self, term: &Term, at: &At) -> bool {
        let (Phase::Ready(_), Some(doubted)) = (&self.phase, &self.doubted) else { return false };
        let before = &doubted.at;
        if at.row <= before.row {
            return false;
        }
        let eol = self.eol_mark(&doubted.run, doubted.from);
        let (end, _) = self.end_of_output(term, eol, doubted.from, at);
        let rest = page::written(term, doubted.from, end, doubted.run.at.row).text();
        !rest.trim_start().trim_start_matches(before.text.trim()).trim().is_empty()
    }

    /// Tells the rest of an answer that a supposed prompt had cut off.
    fn complete_doubted(&mut self, term: &Term, now: Stamp, at: At) {
        let Some(doubted) = self.doubted.take() else { return };
        self.phase = Phase::Running(Box::new(doubted.run));
        // It is counted already.
        self.answered = self.answered.saturating_sub(1);
        self.complete(term, now, doubted.from, at);
    }

    fn running_by_prompt(
        &mut self,
        term: &Term,
        now: Stamp,
        settled: bool,
        quiet: Duration,
        prompt: Option<At>,
    ) {
        let Phase::Running(run) = &self.phase else { return };
        let Some(from) = self.content_from(run) else { return };
        let here = page::absolute(term, term.cursor().row);
        if settled && self.wants_more(term, run, from, here) {
            if let Phase::Running(run) = &mut self.phase {
                run.continued = true;
            }
            return;
        }
        if let Some(at) = prompt {
            return self.complete(term, now, from, at);
        }
        if self.rules.quiet.is_some_and(|q| quiet >= q) {
            let col = term.cursor().col;
            let at = At {
                text: String::new(),
                evidence: Evidence::Quiet,
                begins: None,
                row: if col == 0 { here } else { here + 1 },
                col,
                from_col: 0,
                entry: None,
                editor: false,
                sign: None,
                right: String::new(),
            };
            return self.complete(term, now, from, at);
        }
        // The last rows may be a prompt that is not whole yet.
        if !run.started {
            let written = page::written(term, from, (here, 0), run.at.row);
            if written.lines.len() as u64 > 2 * ABOVE || (settled && !written.is_empty()) {
                self.start();
            }
        }
    }

    /// Whether the program waits for more of the same input.
    fn wants_more(&self, term: &Term, run: &Run, from: u64, here: u64) -> bool {
        let (text, _) = page::before_cursor(term);
        let matches = |p: &super::Prompt| p.continuation.as_ref().is_some_and(|c| c.is_match(&text));
        let fits = match run.at.entry.and_then(|e| self.rules.prompts.get(e)) {
            Some(prompt) => matches(prompt),
            None => text != run.at.text && self.rules.prompts.iter().any(matches),
        };
        fits && page::written(term, from, (here, 0), run.at.row).is_empty()
    }

    /// The byte at which the answer begins: behind the echo of what was asked.
    pub(super) fn content_from(&self, run: &Run) -> Option<u64> {
        if let Some(mark) = self.output_mark.filter(|o| *o >= run.submitted.byte.0) {
            return Some(mark + 1);
        }
        let base = run.submitted.byte.0;
        let skip = usize::try_from(run.asked_from - base).unwrap_or(usize::MAX);
        let bytes = run.bytes.get(skip..)?;
        let line_end = memchr::memchr(b'\n', bytes);
        // A line editor that says when it is done.
        if let Some(off) = self.first_off(run, bytes) {
            if line_end.is_some_and(|l| l < off) {
                let extra = usize::from(bytes.get(off) == Some(&b'\r'));
                return Some(run.asked_from + (off + extra) as u64);
            }
            let end = match stepped_down(&bytes[off..]) {
                Some(end) => end,
                None => memchr::memchr(b'\n', &bytes[off..])? + 1,
            };
            return Some(run.asked_from + (off + end) as u64);
        }
        line_end.map(|l| run.asked_from + l as u64 + 1)
    }

    /// Where in these bytes the line editor first ends.
    fn first_off(&self, run: &Run, bytes: &[u8]) -> Option<usize> {
        const OFF: &[u8] = b"\x1b[?2004l";
        // Only a switch that the model saw is one.
        self.editor_off.filter(|o| *o >= run.asked_from)?;
        memchr::memmem::find(bytes, OFF).map(|at| at + OFF.len())
    }
}

/// How many bytes take the cursor to the start of a row below: a shell that had drawn something
/// under the line (what it searched for, or a menu) needs no line end for that.
fn stepped_down(bytes: &[u8]) -> Option<usize> {
    let rest = bytes.strip_prefix(b"\x1b[")?;
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    rest[digits..].starts_with(b"B\r").then_some(2 + digits + 2)
}

/// The text from a column on.
pub(super) fn columns_from(text: &str, col: u16) -> String {
    let mut seen = 0;
    let at = text.char_indices().find(|(_, c)| {
        let here = seen >= usize::from(col);
        seen += tapdeck_term::char_width(*c);
        here
    });
    at.map_or_else(String::new, |(i, _)| text[i..].to_owned())
}
