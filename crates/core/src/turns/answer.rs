//! The end of a turn: where the answer begins and ends, in bytes and on the page, and what of it is
//! echo.

use std::sync::Arc;

use bytes::Bytes;
use tapdeck_term::Term;

use super::detector::{ABOVE, At, Detector, Doubted, Phase, Run};
use super::input::Typing;
use super::page::{self, Written};
use super::prompt::columns_from;
use super::{Evidence, Notice, OutputPoint, Part, RunningTurn, Turn};
use crate::log::Offset;
use crate::time::Stamp;

impl Detector {
    pub(super) fn complete(&mut self, term: &Term, now: Stamp, from: u64, at: At) {
        let Phase::Running(mut run) = std::mem::replace(&mut self.phase, Phase::Ready(at.clone())) else {
            return;
        };
        self.answered += 1;
        let eol = self.eol_mark(&run, from);
        self.learn_rows_above(term, &run, eol, &at);
        let (end, rows_above) = self.end_of_output(term, eol, from, &at);
        if rows_above > 0 {
            self.above = page::above(term, at.row, rows_above);
        }
        let mut written = page::written(term, from, end, run.at.row);
        if eol.is_some() {
            page::strip_eol_mark(term, &mut written, end);
        }
        // A row whose beginning was told with an earlier part of the answer.
        if let Some((row, col)) = run.told_in_row.take()
            && end.0 - (written.rows as u64).min(end.0) == row
            && let Some(first) = written.lines.first_mut()
        {
            *first = columns_from(first, col);
        }
        let echoed = self.strip_echo(&mut run, &mut written);
        let from = behind_lines(&run, from, echoed);
        let raw = self.raw(&run, from, &at, rows_above);
        if written.evicted {
            written = page::rendered(&raw, term.size(), self.limits.content);
        }
        let end = OutputPoint { byte: Offset(from + raw.len() as u64), at: now };
        let told = written.is_answer() || run.interrupted || run.cut;
        if told {
            self.finish(term, &run, from, end, raw, &written, at.evidence, Vec::new());
        } else {
            self.tell(Notice::Nothing { submitted: run.submitted.byte });
        }
        if at.evidence == Evidence::Prompt {
            let mut run = *run;
            if told {
                run.started = false;
                run.told_in_row = Some((at.row, at.from_col));
                run.more.retain(|(_, asked)| *asked);
            }
            let from = if told { end.byte.0 } else { from };
            self.doubted = Some(Box::new(Doubted { run, from, at }));
        }
    }

    /// Learns what a prompt of several rows looks like that nothing else tells of: an empty line
    /// has no output, and what stands above three prompts in a row, whatever was asked, is theirs.
    fn learn_rows_above(&mut self, term: &Term, run: &Run, eol: Option<u64>, at: &At) {
        if at.evidence == Evidence::Mark || at.begins.is_some() || eol.is_some() || at.from_col > 0 {
            return;
        }
        let looks = page::above(term, at.row, ABOVE);
        let known = page::alike(&looks, &self.above);
        let between = at.row.saturating_sub(run.at.row + 1);
        let is_empty = run.typed.trim().is_empty() && run.more.is_empty() && !run.edited && !run.pressed;
        let (before, times, asked) = std::mem::take(&mut self.seen_above);
        let same = page::alike(&looks, &before).min(between);
        let is_other = asked != run.typed;
        let times = if same > 0 { times + u32::from(is_other) } else { 0 };
        let learned = match (is_empty, times) {
            (true, _) if between <= ABOVE => between,
            (_, 2..) => same,
            _ => 0,
        };
        if known == 0 && learned > 0 {
            self.above = looks[..usize::try_from(learned).unwrap_or(0).min(looks.len())].to_vec();
        }
        self.seen_above = (looks, times, run.typed.clone());
    }

    /// Where the output in front of a prompt ends on the page, and how many rows above the prompt's
    /// last one belong to it.
    pub(super) fn end_of_output(
        &self,
        term: &Term,
        eol: Option<u64>,
        from: u64,
        at: &At,
    ) -> ((u64, u16), u64) {
        match (self.end_mark.filter(|m| m.offset >= from), at.begins) {
            (Some(mark), _) if at.evidence == Evidence::Mark => ((mark.row, mark.col), 0),
            (_, Some((row, col, _))) => ((row, col), 0),
            _ if eol.is_some_and(|eol| page::is_written_since(term, at.row, eol)) => {
                // The shell wrote everything from here on as it drew its prompt.
                let mut first = at.row;
                while first > 0 && page::is_written_since(term, first - 1, eol.unwrap_or(0)) {
                    first -= 1;
                }
                ((if page::ends_in_mark(term, first) { first + 1 } else { first }, 0), 0)
            }
            _ => {
                let rows_above = page::alike(&page::above(term, at.row, ABOVE), &self.above);
                let end = if at.from_col > 0 {
                    (at.row, at.from_col)
                } else {
                    (at.row - rows_above.min(at.row), 0)
                };
                (end, rows_above)
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one turn, put together once")]
    pub(super) fn finish(
        &mut self,
        term: &Term,
        run: &Run,
        from: u64,
        end: OutputPoint,
        raw: Bytes,
        written: &Written,
        evidence: Evidence,
        parts: Vec<Part>,
    ) {
        self.turns += 1;
        let number = self.turns;
        if !run.started {
            self.tell(Notice::Started { number, start: run.submitted });
        }
        self.tell(Notice::Completed(Arc::new(Turn {
            number,
            start: OutputPoint { byte: Offset(from), at: run.submitted.at },
            end,
            input: input_text(term, run, self.told(run)),
            raw: raw.slice(..raw.len().min(self.limits.content)),
            text: written.text(),
            interrupted: run.interrupted,
            truncated: run.cut || written.evicted,
            evidence,
            by: run.by.clone(),
            parts,
        })));
    }

    /// What was typed, unless the program did not show it: that may be a password.
    pub(super) fn told<'a>(&self, run: &'a Run) -> &'a str {
        let told = self.rules.by_state || run.shown || page::is_echoed(&run.bytes, &run.typed);
        if told { &run.typed } else { "" }
    }

    /// The answer as it was written.
    fn raw(&self, run: &Run, from: u64, at: &At, rows_above: u64) -> Bytes {
        let base = run.submitted.byte.0;
        let place = |offset: u64| usize::try_from(offset.saturating_sub(base)).unwrap_or(usize::MAX);
        let start = place(from).min(run.bytes.len());
        if run.cut {
            return Bytes::copy_from_slice(&run.bytes[start..]);
        }
        // A sequence is known by its last byte; the answer ends before its first.
        let before = |offset: u64| {
            let upto = &run.bytes[..place(offset).min(run.bytes.len())];
            memchr::memrchr(0x1b, upto).unwrap_or(upto.len())
        };
        let end_mark = self.end_mark.filter(|m| m.offset >= from && at.evidence == Evidence::Mark);
        let mut end = match (end_mark, at.begins) {
            (Some(mark), _) => before(mark.offset),
            (None, Some((_, _, offset))) => before(offset),
            (None, None) if at.from_col > 0 => {
                memchr::memmem::rfind(&run.bytes, at.text.as_bytes()).unwrap_or(run.bytes.len())
            }
            (None, None) if at.evidence == Evidence::Quiet => run.bytes.len(),
            (None, None) => {
                let back = usize::try_from(rows_above).unwrap_or(0);
                self.line_ends.iter().rev().nth(back).map_or(run.bytes.len(), |o| place(*o))
            }
        };
        if let Some(eol) = self.eol_mark(run, from) {
            end = if end <= start { place(eol) } else { end.min(place(eol)) };
        }
        let mut end = end.clamp(start, run.bytes.len());
        // The line editor begins before the prompt that it draws.
        if at.editor && run.bytes[start..end].ends_with(b"\x1b[?2004h") {
            end -= b"\x1b[?2004h".len();
        }
        Bytes::copy_from_slice(&run.bytes[start..end])
    }

    /// The byte at which the shell last began to show whether the output had a line end.
    pub(super) fn eol_mark(&self, run: &Run, from: u64) -> Option<u64> {
        let start = usize::try_from(from.saturating_sub(run.submitted.byte.0)).unwrap_or(usize::MAX);
        let bytes = run.bytes.get(start..)?;
        let found =
            self.rules.eol_marks.iter().filter_map(|mark| memchr::memmem::rfind(bytes, mark)).max()?;
        Some(from + found as u64)
    }

    /// Takes out what the terminal echoed: further lines of the input, and the caret of an
    /// interrupt. Says how many lines of input it took out.
    fn strip_echo(&self, run: &mut Run, written: &mut Written) -> usize {
        let continuation =
            run.at.entry.and_then(|e| self.rules.prompts.get(e)).and_then(|p| p.continuation.as_ref());
        let mut echoed = 0;
        if let Some(continuation) = continuation {
            let mut typed = run.more.iter_mut().filter(|(_, asked)| !asked);
            for line in &written.lines {
                let Some((next, shown)) = typed.next() else { break };
                let front = line.strip_suffix(next.trim_end()).unwrap_or(line);
                if !continuation.is_match(front) && !continuation.is_match(&format!("{} ", front.trim_end()))
                {
                    break;
                }
                *shown = true;
                echoed += 1;
            }
            written.lines.drain(..echoed);
        }
        let caret = |line: &str| ["^C", "^\\"].into_iter().find(|caret| line.contains(caret));
        if run.pressed
            && let Some((at, caret)) =
                written.lines.iter().enumerate().rev().find_map(|(at, line)| Some((at, caret(line)?)))
            && let Some(line) = written.lines.get_mut(at)
        {
            *line = line.replacen(caret, "", 1);
            if line.is_empty() {
                written.lines.remove(at);
            }
        }
        echoed
    }

    /// The question as the program repeats it, for one that was not typed as it was submitted.
    fn shown_question(&self, rows: &[String]) -> String {
        let first = |row: &String| match &self.rules.frame {
            Some(frame) => frame.replace(row, "").trim().to_owned(),
            None => row.trim().to_owned(),
        };
        let rows =
            rows.iter().enumerate().map(|(n, row)| if n == 0 { first(row) } else { row.trim().to_owned() });
        rows.filter(|row| !row.is_empty()).collect::<Vec<_>>().join("\n")
    }

    /// The row behind the answer: the first of the program's own frame.
    fn end_of_answer(&self, term: &Term) -> u64 {
        let rows = term.size().rows;
        let fits = |re: Option<&regex::Regex>, y: u16| {
            re.is_some_and(|re| term.row(y).is_some_and(|l| re.is_match(&l.text())))
        };
        let mut frame = (0..rows).rev().find(|y| fits(self.rules.frame.as_ref(), *y)).unwrap_or(rows);
        while frame > 0 && fits(self.rules.border.as_ref(), frame - 1) {
            frame -= 1;
        }
        page::absolute(term, frame)
    }

    fn looks_like_echo(&self, line: &str) -> bool {
        self.rules.echo.as_ref().is_some_and(|echo| echo.is_match(line))
    }

    /// The rows from the question, if that is in sight, to the program's own frame, and whether the
    /// question is. An answer may have rows that look like the echo of a question. The one that
    /// repeats it is that; where it is shown in some other way, the lowest of them has to do.
    pub(super) fn rows_of_answer(&self, term: &Term, run: &Run) -> (Written, bool) {
        let (from, end) = (run.submitted.byte.0, self.end_of_answer(term));
        let repeats = |line: &str| self.looks_like_echo(line) && begins_echo(line, &run.typed);
        let (written, sure) = page::answer(term, from, end, repeats);
        if sure {
            return (written, true);
        }
        (page::answer(term, from, end, |line| self.looks_like_echo(line)).0, false)
    }

    /// Reads the answer off the screen.
    pub(super) fn shown_answer(&self, term: &Term, run: &Run) -> Shown {
        let (mut written, mut sure) = self.rows_of_answer(term, run);
        let end = self.end_of_answer(term);
        let mut question = None;
        written.lines.retain(|l| !self.rules.is_chrome(l));
        if self.rules.echo.is_some() {
            let is_echo = |l: &String| self.looks_like_echo(l) && (!sure || begins_echo(l, &run.typed));
            let at = written.lines.iter().rposition(is_echo);
            let asked = if run.edited { "" } else { run.typed.as_str() };
            let echoed = echo_rows(&written.lines, at, asked);
            question = at.filter(|_| run.edited).map(|at| self.shown_question(&written.lines[at..echoed]));
            sure |= echoed > 0;
            written.lines.drain(..echoed);
            // A screen without a past that does not show the question does not show where the
            // answer begins. Nor does one whose first row is the question, kept there while the
            // answer scrolls by: no blank row is between them then.
            let pinned = end - (written.rows as u64).min(end) <= page::absolute(term, 0)
                && written.lines.first().is_some_and(|l| !l.trim().is_empty());
            written.evicted |= (!sure || pinned) && term.modes().alternate();
        }
        // The program's own word that it was broken off is no part of the answer.
        let before = written.lines.len();
        written.lines.retain(|l| self.rules.interrupted.as_ref().is_none_or(|says| !says.is_match(l)));
        let interrupted = written.lines.len() < before;
        let is_blank = |l: &String| l.trim().is_empty();
        let first = written.lines.iter().position(|l| !is_blank(l)).unwrap_or(written.lines.len());
        written.lines.drain(..first);
        while written.lines.last().is_some_and(is_blank) {
            written.lines.pop();
        }
        Shown { written, sure, question, interrupted }
    }

    pub(super) fn complete_by_state(&mut self, term: &Term, now: Stamp) {
        let at = self.nowhere(term);
        // What was typed into a dialog is no beginning of the next question.
        self.typing = Typing::default();
        let Phase::Running(mut run) = std::mem::replace(&mut self.phase, Phase::Ready(at)) else { return };
        self.answered += 1;
        self.close_journal(now);
        let from = run.submitted.byte.0;
        let shown = self.shown_answer(term, &run);
        run.interrupted |= shown.interrupted;
        let question = run.told.asked.take().or(shown.question);
        if let Some(question) = question {
            run.typed = question;
        }
        // What the journal has of the answer is all of it, as the program wrote it. A journal that
        // tells only of the end is no evidence for what is read off the screen.
        let answer = Some(run.told.answer()).filter(|answer| run.told.ended && !answer.is_empty());
        let (written, evidence, parts) = match answer {
            Some(answer) => {
                run.cut = run.told.cut;
                (Written::of(&answer), Evidence::Journal, run.told.parts())
            }
            None if self.judgement.evidence == Evidence::Journal => {
                (shown.written, Evidence::Screen, Vec::new())
            }
            None => (shown.written, self.judgement.evidence, Vec::new()),
        };
        // Enter at an empty prompt asks for nothing, and what stands on the screen is no answer to
        // it.
        let asked = run.worked || !run.typed.trim().is_empty();
        if (written.lines.is_empty() || !asked) && !run.interrupted {
            self.tell(Notice::Nothing { submitted: Offset(from) });
            return;
        }
        let raw = Bytes::copy_from_slice(&run.bytes);
        let end = OutputPoint { byte: Offset(from + raw.len() as u64), at: now };
        self.finish(term, &run, from, end, raw, &written, evidence, parts);
    }
}

impl Detector {
    /// Returns what was submitted and is not over, with the answer so far.
    pub fn answer_so_far(&self, term: &Term) -> Option<RunningTurn> {
        let Phase::Running(run) = &self.phase else { return None };
        let has_journal = self.rules.has_transcript();
        let text = if has_journal { run.told.answer() } else { self.written_so_far(term, run) };
        Some(RunningTurn {
            number: self.turns + 1,
            start: run.submitted,
            input: run.told.asked.clone().unwrap_or_else(|| input_text(term, run, self.told(run))),
            text,
            parts: run.told.parts(),
            has_journal,
        })
    }

    /// The answer so far, read off the screen as at its end.
    fn written_so_far(&self, term: &Term, run: &Run) -> String {
        if self.rules.by_state {
            return self.shown_answer(term, run).written.text();
        }
        let here = page::absolute(term, term.cursor().row);
        match self.content_from(run) {
            Some(from) => page::written(term, from, (here, 0), run.at.row).text(),
            None => String::new(),
        }
    }
}

/// An answer as the screen shows it.
pub(super) struct Shown {
    pub(super) written: Written,
    /// The question is in sight, too, or the end of it.
    pub(super) sure: bool,
    /// The question, for one that was not typed as it was submitted.
    question: Option<String>,
    /// The program says that the answer was broken off.
    interrupted: bool,
}

/// Whether a row may be the first of those that repeat what was asked.
fn begins_echo(line: &str, asked: &str) -> bool {
    let (line, asked) = (letters(line), letters(asked));
    !line.is_empty() && (asked.starts_with(&line) || line.starts_with(&asked)) && !asked.is_empty()
}

/// What is the same of a text however a program formats it.
fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// How many letters of a question's end must stand there to be taken for it, where its beginning is
/// out of sight.
const SURE: usize = 12;

/// How many lines the program's echo of what was asked takes, with everything above it. `at` is the
/// line where it begins, if that is in sight; of a long one only the end may be. Programs show
/// questions as formatted text, so letters and digits alone are compared.
fn echo_rows(lines: &[String], at: Option<usize>, asked: &str) -> usize {
    let asked = letters(asked);
    let known = match at {
        Some(at) => {
            let mut rest = asked.as_str();
            lines[at..].iter().enumerate().find_map(|(n, line)| {
                // What does not fit is no echo.
                rest = rest.strip_prefix(letters(line).as_str()).unwrap_or("\0");
                (rest.is_empty() && !asked.is_empty()).then_some(at + n + 1)
            })
        }
        None => {
            let mut shown = String::new();
            let fits = |line: &String| {
                shown.push_str(&letters(line));
                let ends = !line.trim().is_empty() && shown.len() >= SURE && asked.ends_with(&shown);
                (shown.len() <= asked.len()).then_some(ends)
            };
            lines.iter().map_while(fits).enumerate().filter(|(_, ends)| *ends).map(|(n, _)| n + 1).last()
        }
    };
    match known {
        // A bracket may stand alone on the last row.
        Some(known) => {
            let more = |line: &&String| !line.trim().is_empty() && letters(line).is_empty();
            known + lines[known..].iter().take_while(more).count()
        }
        // It is shown in some other way; it ends with a blank row.
        None => at.map_or(0, |at| at + lines[at..].iter().position(|l| l.trim().is_empty()).unwrap_or(1)),
    }
}

/// The byte behind so many lines.
fn behind_lines(run: &Run, from: u64, lines: usize) -> u64 {
    let base = run.submitted.byte.0;
    let mut at = usize::try_from(from.saturating_sub(base)).unwrap_or(usize::MAX).min(run.bytes.len());
    for _ in 0..lines {
        at += memchr::memchr(b'\n', &run.bytes[at..]).map_or(0, |i| i + 1);
    }
    if lines > 0 && run.bytes[at..].starts_with(b"\x1b[?2004l\r") {
        at += b"\x1b[?2004l\r".len();
    }
    base + at as u64
}

/// What was asked, as the program showed it, or as it was typed (and may be told) where that is
/// gone.
fn input_text(term: &Term, run: &Run, typed: &str) -> String {
    let mut more = String::new();
    for (line, _) in run.more.iter().filter(|(_, shown)| *shown) {
        more.push('\n');
        more.push_str(line);
    }
    let whole = |first: &str| format!("{first}{more}").trim_end().to_owned();
    if run.at.text.is_empty() {
        return whole(typed);
    }
    let shown = || {
        let line = page::row(term, run.at.row)?;
        let front = page::columns(line, run.at.from_col, run.at.col);
        if front != run.at.text || run.at.col == 0 {
            return None;
        }
        Some(page::logical(term, run.at.row, run.at.col))
    };
    let shown = shown().map(|text| {
        let right = Some(&run.at.right).filter(|r| !r.is_empty());
        right.and_then(|r| text.strip_suffix(r.as_str())).map_or(text.clone(), |t| t.trim_end().to_owned())
    });
    match shown.filter(|s| !s.is_empty() && !run.typed.contains('\n')) {
        // What was typed is known, but for keys before it that another program took.
        Some(first) if run.edited || run.typed.ends_with(&first) => whole(&first),
        _ => whole(typed),
    }
}

#[cfg(test)]
mod tests {
    use super::echo_rows;

    #[test]
    fn an_echo_ends_where_the_question_does() {
        // The rows, the one with the mark, what was asked, and how many rows are echo.
        let cases: [(&[&str], Option<usize>, &str, usize); 11] = [
            (&["> hello", "", "well"], Some(0), "hello", 1),
            (&["> a", "", "  c capital", "", "well"], Some(0), "a\n\nc capital", 3),
            (&["old", "> one two", "  three", "well"], Some(1), "one two three", 3),
            (&["> [Pasted #1]", "  +20", "", "well"], Some(0), "x\ny\nz", 2),
            (&["> a list", "  • ticks and bold", "", "well"], Some(0), "a list\n- `ticks` and **bold**", 2),
            (&["> fn f() {", "  x", "  }", "", "well"], Some(0), "fn f() {\nx\n}", 3),
            (&["> ?", "", "well"], Some(0), "?", 1),
            (&["  forty", "  forty-one", "", "well"], None, "thirty-nine\nforty\nforty-one", 2),
            (&["  forty", "", "  forty-two", "", "well"], None, "one\nforty\n\nforty-two", 3),
            (&["yes", "then"], None, "say yes", 0),
            (&["well", "then"], None, "what?", 0),
        ];
        for (rows, at, asked, wanted) in cases {
            let rows: Vec<String> = rows.iter().map(|r| (*r).to_owned()).collect();
            assert_eq!(echo_rows(&rows, at, asked), wanted, "{rows:?}");
        }
    }
}
