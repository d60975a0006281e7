//! Lines that were typed ahead: where a shell marks its prompts and its output (OSC 133), one
//! command's end and the next one's beginning are told although no key was pressed between them,
//! and though both came before the screen was looked at.

use bytes::Bytes;
use tapdeck_term::Term;

use super::detector::{At, Detector, Marked, Phase, Run};
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

    /// Tells of the commands that are over.
    pub(super) fn close_laps(&mut self, term: &Term) {
        while let Some(lap) = self.laps.pop_front() {
            let Phase::Running(run) = &mut self.phase else {
                self.laps.clear();
                return;
            };
            let (base, length) = (run.submitted.byte.0, run.bytes.len());
            let upto =
                |offset: u64| usize::try_from(offset.saturating_sub(base)).unwrap_or(usize::MAX).min(length);
            let bytes = run.bytes[upto(lap.input.offset)..].to_vec();
            let ahead: Vec<String> =
                run.more.iter().filter(|(_, asked)| !asked).map(|m| m.0.clone()).collect();
            let next = next_run(term, run, lap, bytes);
            let before_mark = memchr::memrchr(0x1b, &run.bytes[..upto(lap.end.offset)]);
            let start = upto(lap.output);
            let raw = Bytes::copy_from_slice(&run.bytes[start..before_mark.unwrap_or(start).max(start)]);
            let Phase::Running(run) = std::mem::replace(&mut self.phase, Phase::Running(Box::new(next)))
            else {
                return;
            };
            self.answered += 1;
            let mut written = page::written(term, lap.output, (lap.end.row, lap.end.col), run.at.row);
            if written.evicted && !run.cut {
                written = page::rendered(&raw, term.size());
            }
            // The terminal shows what is typed while a command runs, as if that had written it.
            let echoed = written.lines.iter().zip(&ahead).take_while(|(shown, typed)| shown == typed).count();
            written.lines.drain(..echoed);
            if written.is_empty() && !run.interrupted {
                self.tell(Notice::Nothing { submitted: run.submitted.byte });
                continue;
            }
            let end = OutputPoint { byte: Offset(lap.output + raw.len() as u64), at: lap.at };
            self.finish(term, &run, lap.output, end, raw, &written, Evidence::Mark, Vec::new());
        }
    }
}

/// The next command: the line that was typed while the last one ran.
fn next_run(term: &Term, run: &mut Run, lap: Lap, bytes: Vec<u8>) -> Run {
    let ahead = run.more.iter().position(|(_, asked)| !asked);
    let typed = ahead.map(|at| run.more.remove(at).0);
    let line = page::row(term, lap.input.row);
    let at = At {
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
    let submitted = OutputPoint { byte: Offset(lap.input.offset), at: lap.at };
    let edited = typed.is_none();
    Run {
        bytes,
        cut: run.cut,
        edited,
        more: std::mem::take(&mut run.more),
        ..Run::new(at, submitted, typed.unwrap_or_default())
    }
}
