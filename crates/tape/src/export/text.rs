//! Exports that are lines: text, text with colours, a transcript in Markdown, JSON, a table.
//!
//! A session's lines are only certain at its end, since a program can change what is on the screen,
//! clear its scrollback, and wrap it anew by changing its size. So they are written at the end, but
//! not all of them are kept until then: of a session with more lines than a terminal would hold,
//! the oldest are written as they fall out. Memory does not grow with the recording, and no line is
//! lost.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::Write;

use serde_json::{Value, json as object};
use tapdeck_core::{Exit, WallTime};
use tapdeck_term::{Line, Size, is_printable, printable, printable_json, printable_lines};

use super::branch::{
    BranchRow, CSV_HEAD, JsonInstruction, JsonTurn, behind, csv_cut, csv_row, final_rows, place_in_time,
    plain_md,
};
use super::{FinalLine, Out};
use crate::Result;
use crate::event::{Event, EventReader, Header, Item, Kind};
use crate::instruction::Instruction;
use crate::replay::{Moment, MomentKind, Replay};
use crate::turns::RecordedTurn;

/// As many lines more than are kept may be there before the oldest are written; a single event
/// brings no more than this many.
const STEP: usize = 270_000;

/// What lines are written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinesAs {
    /// Plain text.
    Txt,
    /// Text with its colours, as SGR sequences and nothing else.
    Ansi,
    /// A transcript: what is known of the session, then its lines, with moments between them.
    Md,
    /// One object: header, moments, ending and lines, each line with its last write.
    Json,
    /// A table of lines and moments.
    Csv,
}

/// What is known of a recording that stands between its lines.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Annotations {
    /// Its turns, in order. Those that were shown in the alternate screen are written.
    pub turns: Vec<RecordedTurn>,
    /// Instructions at its lines, in any order. Plain text leaves them out.
    pub instructions: Vec<Instruction>,
}

impl From<Vec<RecordedTurn>> for Annotations {
    fn from(turns: Vec<RecordedTurn>) -> Self {
        Self { turns, ..Self::default() }
    }
}

/// Writes all lines of a recording with its annotations between them. At most `rows` lines and a
/// part more are in memory.
///
/// # Errors
/// When the recording cannot be read on or the writer fails.
pub fn lines(
    form: LinesAs,
    reader: &mut dyn EventReader,
    annotations: impl Into<Annotations>,
    rows: usize,
    out: impl Write,
) -> Result<()> {
    lines_in_steps(form, reader, annotations.into(), (rows, STEP), out)
}

pub(super) fn lines_in_steps(
    form: LinesAs,
    reader: &mut dyn EventReader,
    Annotations { turns, mut instructions }: Annotations,
    (rows, step): (usize, usize),
    out: impl Write,
) -> Result<()> {
    let header = reader.header().clone();
    let mut replay = Replay::new(&header, rows.saturating_add(2 * step)).with_turns(turns);
    let mut writer = LineWriter::new(form, header, out);
    instructions.sort_by_key(|instruction| instruction.anchor_byte);
    writer.instructions = instructions;
    while let Some(item) = reader.next_item()? {
        if let Item::Event(Event { kind: Kind::Output(bytes), .. }) = &item {
            writer.ticks |= memchr::memchr(b'`', bytes).is_some();
        }
        replay.item(item);
        let spare = replay.term().scrollback_len().saturating_sub(rows);
        if spare > step {
            writer.rows(&replay, spare, false)?;
            replay.forget_scrollback(spare);
        }
    }
    writer.finish(&replay)
}

/// The final lines of a replay as text.
///
/// # Errors
/// When the writer fails.
#[cfg(test)]
pub(crate) fn txt(replay: &Replay, out: impl Write) -> Result<()> {
    LineWriter::new(LinesAs::Txt, Header::default(), out).finish(replay)
}

struct LineWriter<W> {
    form: LinesAs,
    header: Header,
    out: Out<W>,
    /// Lines written so far.
    lines: u64,
    /// Moments that are written, and those before the last of these that are not.
    seen: usize,
    waiting: Vec<Waiting>,
    /// In order of their anchors, with how many have been reached.
    instructions: Vec<Instruction>,
    reached: usize,
    /// The turns that are written, by the places of their answers.
    told: HashSet<(u64, u64)>,
    /// There may be backticks in the lines; the terminal adds none of its own.
    ticks: bool,
}

/// What waits for its line, in order of time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Waiting {
    /// A moment, by its number in the replay.
    Moment(usize),
    /// An instruction, by its number.
    Instruction(usize),
}

/// What stands between lines.
#[derive(Clone, Copy)]
enum Between<'a> {
    Marked(Waiting),
    Turn(&'a RecordedTurn),
}

impl<W: Write> LineWriter<W> {
    fn new(form: LinesAs, header: Header, out: W) -> Self {
        Self {
            form,
            header,
            out: Out::new(out),
            lines: 0,
            seen: 0,
            waiting: Vec::new(),
            instructions: Vec::new(),
            reached: 0,
            told: HashSet::new(),
            ticks: false,
        }
    }

    /// Writes the oldest rows, and the moments and turns that belong before or between them, or all
    /// of those.
    fn rows(&mut self, replay: &Replay, count: usize, all: bool) -> Result<()> {
        if self.lines == 0 {
            self.head(replay, all)?;
        }
        let between = match self.form {
            LinesAs::Json => Vec::new(),
            _ => self.between(replay, count, all),
        };
        let fence = match self.form {
            LinesAs::Md if !self.ticks => fence_for(std::iter::empty()),
            LinesAs::Md => fence_for(final_rows(replay.term()).take(count).map(|line| line.text_ref())),
            _ => String::new(),
        };
        let mut open = false;
        let mut between = between.into_iter().peekable();
        let first = replay.term().evicted();
        for (i, line) in final_rows(replay.term()).take(count).enumerate() {
            while let Some((_, between)) = between.next_if(|(row, _)| *row <= i) {
                self.put_between(replay, between, &fence, &mut open)?;
            }
            if self.form == LinesAs::Md && !std::mem::replace(&mut open, true) {
                self.out.put(format!("{fence}text\n"))?;
            }
            self.line(first + i as u64, &line)?;
        }
        for (_, between) in between {
            self.put_between(replay, between, &fence, &mut open)?;
        }
        // The open block of a transcript ends here.
        match open {
            true => self.out.put(format!("{fence}\n")),
            false => Ok(()),
        }
    }

    /// The moments and turns to be written among these rows, each with the number of rows before
    /// it.
    fn between<'r>(&mut self, replay: &'r Replay, count: usize, all: bool) -> Vec<(usize, Between<'r>)> {
        // Plain lines have turns between them, but no moments.
        if matches!(self.form, LinesAs::Md | LinesAs::Csv) {
            self.waiting.extend((self.seen..replay.moments().len()).map(Waiting::Moment));
            self.seen = replay.moments().len();
            let written = replay.offset().0;
            let there = self.instructions.partition_point(|i| all || i.anchor_byte < written);
            self.waiting.extend((self.reached..there).map(Waiting::Instruction));
            self.reached = self.reached.max(there);
        }
        let instructions = &self.instructions;
        let anchored = |waiting| match waiting {
            Waiting::Moment(i) => (Between::Marked(waiting), replay.moments()[i].anchor),
            Waiting::Instruction(i) => (Between::Marked(waiting), behind(&instructions[i])),
        };
        let moments = self.waiting.drain(..).map(anchored).collect();
        let mut turns = replay.hidden_turns();
        turns.retain(|turn| !self.told.contains(&(turn.start_byte, turn.number)));
        let turns = turns.into_iter().map(|turn| (Between::Turn(turn), turn.start_byte)).collect();
        let (now, later) = place_in_time(replay.term(), moments, turns)
            .into_iter()
            .partition::<Vec<_>, _>(|(row, _)| all || *row <= count);
        self.waiting.extend(later.into_iter().filter_map(|(_, between)| match between {
            Between::Marked(waiting) => Some(waiting),
            Between::Turn(_) => None,
        }));
        // Of those at one place, moments come first, each kind in its order.
        self.waiting.sort_unstable();
        now
    }

    fn finish(mut self, replay: &Replay) -> Result<()> {
        let begun = self.lines > 0;
        self.rows(replay, usize::MAX, true)?;
        match self.form {
            LinesAs::Json => self.json_end(replay)?,
            LinesAs::Csv if replay.more_moments() > 0 => self.out.put(csv_cut(&left_out(replay)))?,
            LinesAs::Md if replay.more_moments() > 0 => self.out.put(format!("\n{}\n", left_out(replay)))?,
            // What was not known at the head.
            LinesAs::Md if begun => {
                self.out.put("\n")?;
                self.ending(replay)?;
            }
            _ => {}
        }
        self.out.flush()
    }

    fn head(&mut self, replay: &Replay, complete: bool) -> Result<()> {
        match self.form {
            LinesAs::Txt | LinesAs::Ansi => Ok(()),
            LinesAs::Csv => self.out.put(CSV_HEAD),
            LinesAs::Json => self.out.put("{\"version\":1,\"lines\":["),
            LinesAs::Md => {
                let title = self.header.title.as_deref().or(self.header.command.as_deref());
                self.out.put(format!("# {}\n\n", plain_md(title.unwrap_or("Session"))))?;
                if let Some(command) = self.header.command.clone() {
                    self.fact("Command", &command)?;
                }
                if let Some(Size { cols, rows }) = self.header.size {
                    self.fact("Size", &format!("{cols}x{rows}"))?;
                }
                if complete {
                    self.ending(replay)?;
                }
                self.out.put("\n")
            }
        }
    }

    fn fact(&mut self, name: &str, value: &str) -> Result<()> {
        self.out.put(format!("- {name}: {}\n", plain_md(value)))
    }

    fn ending(&mut self, replay: &Replay) -> Result<()> {
        self.fact("Duration", &format!("{:.1} s", replay.time().as_secs_f64()))?;
        match replay.ending() {
            Some(Exit::Code(code)) => self.fact("Exit code", &code.to_string()),
            Some(Exit::Signal(number)) => self.fact("Ended by signal", &number.to_string()),
            None => Ok(()),
        }
    }

    fn line(&mut self, idx: u64, line: &Line<'_>) -> Result<()> {
        self.lines += 1;
        if self.form == LinesAs::Ansi {
            let mut buf = Vec::new();
            line.write_ansi(&mut buf, true);
            buf.push(b'\n');
            return self.out.put(&buf);
        }
        let text = line.text_ref();
        if matches!(self.form, LinesAs::Txt | LinesAs::Md) {
            return match is_printable(&text) {
                true => self.out.line(&text),
                false => self.out.line(&printable(&text)),
            };
        }
        let line = FinalLine { idx, text: printable(&text), last_write_byte: line.written() };
        if self.form == LinesAs::Csv {
            return self.out.put(csv_row(&BranchRow::Line(line)));
        }
        self.out.put(if self.lines == 1 { "\n" } else { ",\n" })?;
        self.out.json(&line)
    }

    fn put_between(
        &mut self,
        replay: &Replay,
        between: Between<'_>,
        fence: &str,
        open: &mut bool,
    ) -> Result<()> {
        if std::mem::take(open) {
            self.out.put(format!("{fence}\n\n"))?;
        }
        match between {
            Between::Marked(Waiting::Moment(moment)) => self.moment(&replay.moments()[moment]),
            Between::Marked(Waiting::Instruction(i)) => {
                let instruction = &self.instructions[i];
                let line = instruction.line.unwrap_or(self.lines.saturating_sub(1));
                let text = match self.form {
                    LinesAs::Csv => csv_row(&BranchRow::Instruction(instruction, line)),
                    _ => instruction_md(instruction, line),
                };
                self.out.put(text)
            }
            Between::Turn(turn) => {
                self.told.insert((turn.start_byte, turn.number));
                self.turn(turn)
            }
        }
    }

    fn turn(&mut self, turn: &RecordedTurn) -> Result<()> {
        match self.form {
            LinesAs::Csv => return self.out.put(csv_row(&BranchRow::Turn(turn))),
            LinesAs::Md => {}
            _ => return self.out.put(turn.transcript()),
        }
        for (part, text, remarks) in [("question", &turn.input, ""), ("answer", &turn.text, turn.remarks())] {
            let fence = fence_for(text.lines().map(Cow::from));
            let text = printable_lines(text.trim_end());
            let n = turn.number;
            self.out.put(format!("**💬 turn {n}: {part}**{remarks}\n\n{fence}text\n{text}\n{fence}\n\n"))?;
        }
        Ok(())
    }

    fn moment(&mut self, moment: &Moment) -> Result<()> {
        if self.form == LinesAs::Csv {
            return self.out.put(csv_row(&BranchRow::Moment(moment)));
        }
        let label = plain_md(&moment.label);
        let time = moment.time.as_secs_f64();
        self.out.put(match moment.kind {
            MomentKind::Snapshot(id) => format!("**📌 snapshot {id}** {label} ({time:.1} s)\n\n"),
            MomentKind::Marker if label.is_empty() => format!("**🔖 marker** ({time:.1} s)\n\n"),
            MomentKind::Marker => format!("**🔖 {label}** ({time:.1} s)\n\n"),
        })
    }

    fn json_end(&mut self, replay: &Replay) -> Result<()> {
        let (exit, signal) = match replay.ending() {
            Some(Exit::Code(code)) => (Some(code), None),
            Some(Exit::Signal(number)) => (None, Some(number)),
            None => (None, None),
        };
        let moments: Vec<Value> = replay
            .moments()
            .iter()
            .map(|m| {
                let (kind, id) = match m.kind {
                    MomentKind::Snapshot(id) => ("snapshot", Some(id)),
                    MomentKind::Marker => ("marker", None),
                };
                object!({"kind": kind, "id": id, "time_ns": m.time.as_nanos(), "anchor_byte": m.anchor, "label": m.label})
            })
            .collect();
        let header = &self.header;
        let rest = object!({
            "title": header.title,
            "command": header.command,
            "term": header.term,
            "started_ns": header.started.map(WallTime::as_nanos),
            "cols": header.size.map(|s| s.cols),
            "rows": header.size.map(|s| s.rows),
            "duration_ns": replay.time().as_nanos(),
            "output_bytes": replay.offset().0,
            "exit": {"code": exit, "signal": signal},
            "notes": replay.notes().iter().map(|n| printable(&n.to_string())).collect::<Vec<_>>(),
            "moments": moments,
            "more_moments": replay.more_moments(),
            "instructions": self.instructions.iter().map(JsonInstruction::of).collect::<Vec<_>>(),
            "turns": replay.hidden_turns().into_iter().map(JsonTurn::of).collect::<Vec<_>>(),
        });
        // Behind the lines, which may be millions: the rest of the object, without its opening
        // brace.
        let rest = printable_json(rest.to_string());
        self.out.put(format!("\n],\n{}\n", rest.strip_prefix('{').unwrap_or(&rest)))
    }
}

/// An instruction, between blocks of lines.
fn instruction_md(instruction: &Instruction, line: u64) -> String {
    let fence = fence_for(instruction.text.lines().map(Cow::from));
    let text = printable_lines(instruction.text.trim_end());
    format!("**✏️ instruction at line {line}**\n\n{fence}text\n{text}\n{fence}\n\n")
}

/// What a list of moments lacks.
fn left_out(replay: &Replay) -> String {
    format!("the list is cut: it lacks {} snapshots or markers", replay.more_moments())
}

/// A fence longer than any in the text, so that no line of it can close the block.
pub(super) fn fence_for<'a>(lines: impl Iterator<Item = Cow<'a, str>>) -> String {
    let longest = lines.map(|line| longest_run(&line, b'`')).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

pub(super) fn longest_run(text: &str, of: u8) -> usize {
    let (mut longest, mut run, mut last) = (0, 0, None);
    for at in memchr::memchr_iter(of, text.as_bytes()) {
        run = if last.is_some_and(|last| last + 1 == at) { run + 1 } else { 1 };
        last = Some(at);
        longest = longest.max(run);
    }
    longest
}
