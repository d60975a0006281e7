//! Lines that were typed ahead: where a shell marks its prompts and its output (OSC 133), one
//! command's end and the next one's beginning are told although no key was pressed between them,
//! and though both came before the screen was looked at.
//!
//! A shell without marks tells as much if its line editor switches bracketed paste and echoes the
//! line behind its prompt.

use bytes::Bytes;
use tapdeck_term::Term;

use super::detector::{ABOVE, At, Detector, Marked, Phase, Run};
use super::page;
use super::{Evidence, Notice, OutputPoint};
use crate::log::Offset;
use crate::time::Stamp;

/// A command that was over, and the next one begun, before the screen was judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lap {
    /// The byte behind the mark at which its output begins.
    output: u64,
    /// Where its output ends.
    end: Marked,
    /// Where the line of the next one begins.
    input: Marked,
    /// When that was said.
    at: Stamp,
}

/// A line that a line editor has read while a command was thought to run.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineRead {
    /// Where the editor began, with the byte behind the sequence that says so.
    on: (u64, u16, u64),
    /// When it ended.
    at: Stamp,
}

/// A command's end, and the beginning of the next.
struct Split {
    /// Where the output of the first begins and ends, in bytes of output since it was submitted.
    from: u64,
    raw_end: usize,
    /// Where its output ends on the page.
    end: (u64, u16),
    /// The prompt of the next.
    prompt: At,
    /// The byte at which the next one begins.
    next: u64,
    /// Which of the lines that were typed it is, if that is known.
    typed: Option<usize>,
    at: Stamp,
}

/// Commands that may be over between two looks; what comes beyond is one turn.
const LAPS: usize = 1000;

impl Detector {
    /// The shell says that output begins: of the command that runs, or of the next one if its line
    /// was the last thing that was marked.
    pub(super) fn note_lap(&mut self, before: Option<Marked>) {
        let Phase::Running(run) = &self.phase else { return };
        if let (Some(output), Some(end), Some(input)) = (self.output_mark, self.end_mark, before)
            && input.mark == tapdeck_term::Mark::Input
            && output >= run.submitted.byte.0
            && end.offset > output
            && input.offset > end.offset
            && self.laps.len() < LAPS
        {
            self.laps.push_back(Lap { output: output + 1, end, input, at: self.last });
        }
    }

    /// A line editor has ended: it has read a line, and if no key was pressed since it began, the
    /// line had been typed before.
    pub(super) fn note_line_read(&mut self, off: u64) {
        let Phase::Running(run) = &self.phase else { return };
        if let Some(on) = self.editor_on.filter(|(.., on)| *on > run.submitted.byte.0 && *on < off)
            && self.editor_off.is_none_or(|before| before < on.2)
            && run.more.iter().any(|(_, asked)| !asked)
            && self.lines_read.len() < LAPS
        {
            self.lines_read.push_back(LineRead { on, at: self.last });
        }
    }

    /// Tells of the commands that are over by the marks of the shell.
    pub(super) fn close_laps(&mut self, term: &Term) {
        while let Some(lap) = self.laps.pop_front() {
            let Phase::Running(run) = &self.phase else {
                self.laps.clear();
                return;
            };
            let upto = run.place(lap.end.offset);
            let start = run.place(lap.output);
            let raw_end = memchr::memrchr(0x1b, &run.bytes[..upto]).unwrap_or(start).max(start);
            let line = page::row(term, lap.input.row);
            let prompt = At {
                text: line.map(|l| page::columns(l, 0, lap.input.col)).unwrap_or_default(),
                entry: run.at.entry,
                evidence: Evidence::Mark,
                begins: None,
                row: lap.input.row,
                col: lap.input.col,
                from_col: 0,
                editor: run.at.editor,
                sign: Some(lap.input.offset),
                right: String::new(),
            };
            let typed = run.more.iter().position(|(_, asked)| !asked);
            let split = Split {
                from: lap.output,
                raw_end,
                end: (lap.end.row, lap.end.col),
                prompt,
                next: lap.input.offset,
                typed,
                at: lap.at,
            };
            self.close(term, split);
        }
    }

    /// Tells of the commands that are over because a line editor has read the next line, where its
    /// echo shows that.
    pub(super) fn close_lines_read(&mut self, term: &Term) {
        while let Some(read) = self.lines_read.pop_front() {
            let Phase::Running(run) = &self.phase else {
                self.lines_read.clear();
                return;
            };
            let is_marked = self.output_mark.is_some_and(|mark| mark >= run.submitted.byte.0);
            if let Some(split) = self.split(term, run, read).filter(|_| !is_marked) {
                self.close(term, split);
            }
        }
    }

    /// The end of a command that a line editor's next prompt tells, if the last prompt stands there
    /// again with a line behind it that was typed.
    fn split(&self, term: &Term, run: &Run, LineRead { on, at }: LineRead) -> Option<Split> {
        let (on_row, on_col, on_offset) = on;
        let width = u16::try_from(tapdeck_term::text_width(&run.at.text)).ok()?;
        if run.at.text.trim().is_empty() {
            return None;
        }
        let stands = |row: u64, col: u16| {
            page::row(term, row).is_some_and(|l| page::columns(l, col, col + width) == run.at.text)
        };
        // The editor begins behind the prompt, or in front of it.
        let behind = on_col.checked_sub(width).filter(|col| stands(on_row, *col));
        let (row, from_col) = match behind {
            Some(col) => (on_row, col),
            None => (on_row..=on_row + ABOVE)
                .map(|row| (row, if row == on_row { on_col } else { 0 }))
                .find(|(row, col)| stands(*row, *col))?,
        };
        let col = from_col + width;
        let shown = page::logical(term, row, col);
        let shown = shown.strip_suffix(run.at.right.as_str()).unwrap_or(&shown).trim_end();
        let typed = run.more.iter().position(|(line, asked)| !asked && line.trim_end() == shown)?;
        let from = self.content_from(run)?;
        let (start, upto) = (run.place(from), run.place(on_offset));
        let before = run.bytes.get(start..upto)?;
        let eol = self.rules.eol_marks.iter().filter_map(|mark| memchr::memmem::rfind(before, mark)).max();
        let (end, raw_end) = match (behind, eol) {
            (None, _) => ((on_row, on_col), memchr::memrchr(0x1b, before).unwrap_or(before.len())),
            (Some(_), Some(eol)) => {
                let above = page::alike(&page::above(term, row, ABOVE), &self.above);
                ((row - above.min(row), 0), eol)
            }
            (Some(_), None) => {
                let above = page::alike(&page::above(term, row, ABOVE), &self.above);
                let lines: Vec<usize> = memchr::memchr_iter(b'\n', before).collect();
                let back = usize::try_from(above).unwrap_or(usize::MAX);
                let line_end = lines.len().checked_sub(1 + back).map_or(0, |at| lines[at] + 1);
                ((row - above.min(row), 0), line_end)
            }
        };
        let prompt = At {
            text: run.at.text.clone(),
            entry: run.at.entry,
            evidence: Evidence::Editor,
            begins: behind.is_none().then_some(on),
            row,
            col,
            from_col,
            editor: true,
            sign: Some(on_offset),
            right: run.at.right.clone(),
        };
        Some(Split { from, raw_end: start + raw_end, end, prompt, next: on_offset, typed: Some(typed), at })
    }

    /// Ends the turn that runs and begins the next.
    fn close(&mut self, term: &Term, split: Split) {
        let Phase::Running(run) = &mut self.phase else { return };
        let bytes = run.bytes[run.place(split.next)..].to_vec();
        let ahead: Vec<String> = run.more.iter().filter(|(_, asked)| !asked).map(|m| m.0.clone()).collect();
        let evidence = split.prompt.evidence;
        let next = next_run(run, &split, bytes);
        let start = run.place(split.from);
        let raw = Bytes::copy_from_slice(&run.bytes[start..split.raw_end.max(start)]);
        let Phase::Running(run) = std::mem::replace(&mut self.phase, Phase::Running(Box::new(next))) else {
            return;
        };
        self.answered += 1;
        let mut written = page::written(term, split.from, split.end, run.at.row);
        page::strip_eol_mark(term, &mut written, split.end);
        if written.evicted {
            written = page::rendered(&raw, term.size(), self.limits.content);
        }
        // The terminal shows what is typed while a command runs, as if that had written it.
        let echoed = written.lines.iter().zip(&ahead).take_while(|(shown, typed)| shown == typed).count();
        written.lines.drain(..echoed);
        if !written.is_answer() && !run.interrupted && !run.cut {
            self.tell(Notice::Nothing { submitted: run.submitted.byte });
            return;
        }
        let end = OutputPoint { byte: Offset(split.from + raw.len() as u64), at: split.at };
        self.finish(term, &run, split.from, end, raw, &written, evidence, Vec::new());
    }
}

/// The next command: the line that was typed while the last one ran. Lines before it were read by
/// that one.
fn next_run(run: &mut Run, split: &Split, bytes: Vec<u8>) -> Run {
    let typed = split.typed.map(|at| run.more.drain(..=at).next_back().unwrap_or_default().0);
    let submitted = OutputPoint { byte: Offset(split.next), at: split.at };
    let edited = typed.is_none();
    Run {
        bytes,
        cut: run.cut,
        edited,
        more: std::mem::take(&mut run.more),
        by: run.by.clone(),
        ..Run::new(split.prompt.clone(), submitted, typed.unwrap_or_default())
    }
}
