//! The final lines of a session, and the points from which it could be branched: each line of
//! scrollback and screen with the last byte that wrote to it, each snapshot behind the last line
//! that was complete when it was taken, and each instruction behind its line.
//!
//! A snapshot with anchor A was taken when A bytes had been written. It belongs behind the line
//! with the latest last write before A: in output that only scrolls that is plain order by
//! position, and where a program moved the cursor about it is still the line that was in work.
//! Lines keep their order, and snapshots and instructions that of time: a list merges the two. So
//! what belongs behind a line that was rewritten later stands no higher than what came before it.
//!
//! Turns of the alternate screen, which has no lines in the end, stand where their answer began.

use std::io::Write;

use serde::Serialize;
use tapdeck_core::WallTime;
use tapdeck_term::{Line, Term, printable, printable_lines};

use super::Out;
use crate::Result;
use crate::instruction::{Branch, Instruction};
use crate::replay::{Moment, MomentKind};
use crate::turns::RecordedTurn;

/// A line as it was at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct FinalLine {
    /// Number, from 0 at the oldest; lines that fell out of scrollback are counted.
    pub(crate) idx: u64,
    /// Its text, without trailing blanks.
    pub(crate) text: String,
    /// Offset of the last byte that wrote to it; `None` when none did.
    pub(crate) last_write_byte: Option<u64>,
}

/// A row of the merged list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BranchRow<'a> {
    /// A line.
    Line(FinalLine),
    /// A snapshot, or a marker.
    Moment(&'a Moment),
    /// An instruction, with the number of the line before it.
    Instruction(&'a Instruction, u64),
    /// A turn that no line shows.
    Turn(&'a RecordedTurn),
}

/// What a list of branch points is made of.
#[derive(Debug, Clone)]
pub struct BranchPoints<'a> {
    /// The terminal at the end of the recording.
    pub term: &'a Term,
    /// Snapshots and markers, in order.
    pub moments: &'a [Moment],
    /// Instructions, in any order.
    pub instructions: &'a [Instruction],
    /// Turns that no line shows.
    pub turns: Vec<&'a RecordedTurn>,
    /// Snapshots, markers and instructions that are not kept.
    pub left_out: u64,
}

impl<'a> BranchPoints<'a> {
    /// The points of a terminal with these moments, and nothing else.
    pub fn new(term: &'a Term, moments: &'a [Moment]) -> Self {
        Self { term, moments, instructions: &[], turns: Vec::new(), left_out: 0 }
    }

    /// What the list lacks, in words; `None` when it has everything.
    fn cut(&self) -> Option<String> {
        let lines = self.term.evicted();
        let lines = (lines > 0).then(|| format!("the first {lines} lines"));
        let marks =
            (self.left_out > 0).then(|| format!("{} snapshots, markers or instructions", self.left_out));
        let parts: Vec<String> = lines.into_iter().chain(marks).collect();
        (!parts.is_empty()).then(|| format!("the list is cut: it lacks {}", parts.join(" and ")))
    }
}

/// All lines of scrollback, main and alternate screen, without the blank ones at their ends.
pub(crate) fn final_lines(term: &Term) -> impl Iterator<Item = FinalLine> + '_ {
    (term.evicted()..).zip(final_rows(term)).map(|(idx, line)| FinalLine {
        idx,
        text: printable(&line.text()),
        last_write_byte: line.written(),
    })
}

/// The rows that a session leaves: scrollback, then the main screen, also while the alternate
/// screen covers it, then the alternate screen. Blank rows at the end of either are left out.
pub fn final_rows(term: &Term) -> impl Iterator<Item = Line<'_>> {
    used_rows(term, term.covered().len() - blank_at_end(term.covered()))
}

/// The rows of scrollback and of the screen that is shown, without the blank ones at the end.
fn shown_rows(term: &Term) -> impl Iterator<Item = Line<'_>> {
    used_rows(term, 0)
}

/// Scrollback, so many of the covered rows, and the screen, without the blank rows at the end.
fn used_rows(term: &Term, covered: usize) -> impl Iterator<Item = Line<'_>> {
    let screen = term.screen().len() - blank_at_end(term.screen());
    // Covered rows end with one that shows something.
    let blank = if screen + covered > 0 { 0 } else { blank_at_end(term.scrollback()) };
    let scrollback = term.scrollback().take(term.scrollback_len() - blank);
    scrollback.chain(term.covered().take(covered)).chain(term.screen().take(screen))
}

fn blank_at_end<'a>(rows: impl DoubleEndedIterator<Item = Line<'a>>) -> usize {
    rows.rev().take_while(|line| line.text_ref().is_empty()).count()
}

/// The final lines with what belongs between them.
pub(crate) fn branch_points<'a>(points: &BranchPoints<'a>) -> impl Iterator<Item = BranchRow<'a>> {
    let term = points.term;
    let moments = points.moments.iter().map(|m| (BranchRow::Moment(m), m.anchor));
    let instructions = points.instructions.iter().map(|i| (BranchRow::Instruction(i, 0), behind(i)));
    let turns = points.turns.iter().map(|t| (BranchRow::Turn(t), t.start_byte)).collect();
    let placed = place_in_time(term, moments.chain(instructions).collect(), turns);
    let mut placed = placed.into_iter().peekable();
    let mut lines = final_lines(term).enumerate().peekable();
    let (mut row, first) = (0, term.evicted());
    std::iter::from_fn(move || {
        // A moment placed at row n stands before the n-th line, so behind the one before it.
        let lines_are_over = lines.peek().is_none();
        if let Some((_, between)) = placed.next_if(|(at, _)| *at <= row || lines_are_over) {
            let before = first + (row as u64).saturating_sub(1);
            return Some(match between {
                BranchRow::Instruction(i, _) => BranchRow::Instruction(i, i.line.unwrap_or(before)),
                between => between,
            });
        }
        let (i, line) = lines.next()?;
        row = i + 1;
        Some(BranchRow::Line(line))
    })
}

/// The anchor of an instruction as that of a moment: right behind the last write of its line.
pub fn behind(instruction: &Instruction) -> u64 {
    instruction.anchor_byte.saturating_add(1)
}

/// For each moment, by whatever names it, the number of lines before it, sorted by that; equal ones
/// in order of anchor, then as they came. The line that was being written is the last of those
/// before it.
pub fn place_moments<T>(term: &Term, moments: Vec<(T, &Moment)>) -> Vec<(usize, T)> {
    let anchored = moments.into_iter().map(|(name, moment)| (name, moment.anchor)).collect();
    let mut placed = place(shown_rows(term), usize::MAX, anchored);
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|((row, _), name)| (row, name)).collect()
}

/// For each number of bytes of output, the number of the last of the [`final_rows`] that was
/// complete behind them.
pub fn lines_at(term: &Term, anchors: &[u64]) -> Vec<u64> {
    numbers_at(term, final_rows(term), anchors)
}

/// For each number of bytes of output, the number of the last row of [`Term::lines`] that was
/// complete behind them.
pub fn rows_at(term: &Term, anchors: &[u64]) -> Vec<u64> {
    numbers_at(term, shown_rows(term), anchors)
}

fn numbers_at<'a>(term: &Term, rows: impl Iterator<Item = Line<'a>>, anchors: &[u64]) -> Vec<u64> {
    let placed = place(rows, usize::MAX, anchors.iter().map(|anchor| ((), *anchor)).collect());
    let number = |before: usize| term.evicted() + (before as u64).saturating_sub(1);
    placed.into_iter().map(|((before, _), ())| number(before)).collect()
}

/// For each hidden turn of a recording, the number of lines before it, sorted by that.
pub fn place_turns<'a>(term: &Term, turns: &[&'a RecordedTurn]) -> Vec<(usize, &'a RecordedTurn)> {
    let turns = turns.iter().map(|turn| (*turn, turn.start_byte)).collect();
    place_in_time(term, Vec::new(), turns)
}

/// Places moments and turns among the final rows, each with its anchor, by the number of rows
/// before them: moments in order of time.
pub(super) fn place_in_time<T>(
    term: &Term,
    mut moments: Vec<(T, u64)>,
    turns: Vec<(T, u64)>,
) -> Vec<(usize, T)> {
    moments.sort_by_key(|(_, anchor)| *anchor);
    let mut placed = place(final_rows(term), usize::MAX, moments);
    let mut lowest = 0;
    for ((row, _), _) in &mut placed {
        lowest = lowest.max(*row);
        *row = lowest;
    }
    // What the alternate screen shows at the end comes after the turns that were on it before.
    let last = match term.modes().alternate() {
        true => final_rows(term).count() - (term.screen().len() - blank_at_end(term.screen())),
        false => usize::MAX,
    };
    placed.extend(place(final_rows(term), last, turns));
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|((row, _), name)| (row, name)).collect()
}

/// The number of rows before each name, with its anchor, but not more than `last`.
fn place<'a, T>(
    rows: impl Iterator<Item = Line<'a>>,
    last: usize,
    names: Vec<(T, u64)>,
) -> Vec<((usize, u64), T)> {
    if names.is_empty() {
        return Vec::new();
    }
    let mut writes: Vec<(u64, usize)> =
        rows.enumerate().filter_map(|(i, line)| Some((line.written()?, i))).collect();
    writes.sort_unstable();
    let row = |anchor: u64| {
        let before = writes.partition_point(|(byte, _)| *byte < anchor);
        before.checked_sub(1).map_or(0, |i| writes[i].1 + 1).min(last)
    };
    names.into_iter().map(|(name, anchor)| ((row(anchor), anchor), name)).collect()
}

/// A moment in the words of the exports.
fn describe(moment: &Moment) -> (&'static str, Option<u64>) {
    match moment.kind {
        MomentKind::Snapshot(id) => ("snapshot", Some(id)),
        MomentKind::Marker => ("marker", None),
    }
}

#[derive(Serialize)]
struct JsonLine<'a> {
    kind: &'static str,
    idx: u64,
    text: &'a str,
    last_write_byte: Option<u64>,
}

#[derive(Serialize)]
struct JsonMoment<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    anchor_byte: u64,
    ts_ns: Option<u64>,
    label: &'a str,
}

#[derive(Serialize)]
pub(super) struct JsonInstruction<'a> {
    kind: &'static str,
    id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    anchor_byte: u64,
    ts_ns: u64,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<&'a Branch>,
}

impl<'a> JsonInstruction<'a> {
    pub(super) fn of(instruction: &'a Instruction) -> Self {
        Self {
            kind: "instruction",
            id: instruction.id,
            line: instruction.line,
            anchor_byte: instruction.anchor_byte,
            ts_ns: instruction.written.as_nanos(),
            text: &instruction.text,
            snapshot: instruction.snapshot.as_ref(),
        }
    }
}

#[derive(Serialize)]
struct JsonCut<'a> {
    kind: &'static str,
    lines: u64,
    moments: u64,
    text: &'a str,
}

#[derive(Serialize)]
pub(super) struct JsonTurn<'a> {
    kind: &'static str,
    number: u64,
    start_byte: u64,
    end_byte: u64,
    start_ns: u64,
    end_ns: u64,
    input: &'a str,
    text: &'a str,
    interrupted: bool,
    truncated: bool,
}

impl<'a> JsonTurn<'a> {
    pub(super) fn of(turn: &'a RecordedTurn) -> Self {
        Self {
            kind: "turn",
            number: turn.number,
            start_byte: turn.start_byte,
            end_byte: turn.end_byte,
            start_ns: turn.start.as_nanos(),
            end_ns: turn.end.as_nanos(),
            input: &turn.input,
            text: &turn.text,
            interrupted: turn.interrupted,
            truncated: turn.truncated,
        }
    }
}

/// The merged list as a JSON array, an object a line.
///
/// # Errors
/// When the writer fails.
pub fn branch_json(points: &BranchPoints<'_>, out: impl Write) -> Result<()> {
    let mut out = Out::new(out);
    let mut open = "[\n";
    if let Some(text) = points.cut() {
        out.put(std::mem::replace(&mut open, ",\n"))?;
        let (lines, moments) = (points.term.evicted(), points.left_out);
        out.json(&JsonCut { kind: "cut", lines, moments, text: &text })?;
    }
    for row in branch_points(points) {
        out.put(open)?;
        open = ",\n";
        match row {
            BranchRow::Line(FinalLine { idx, text, last_write_byte }) => {
                out.json(&JsonLine { kind: "line", idx, text: &text, last_write_byte })?;
            }
            BranchRow::Moment(m) => {
                let (kind, id) = describe(m);
                let (anchor_byte, ts_ns, label) =
                    (m.anchor, m.wall.map(WallTime::as_nanos), m.label.as_str());
                out.json(&JsonMoment { kind, id, anchor_byte, ts_ns, label })?;
            }
            BranchRow::Instruction(i, line) => {
                out.json(&JsonInstruction { line: Some(line), ..JsonInstruction::of(i) })?;
            }
            BranchRow::Turn(turn) => out.json(&JsonTurn::of(turn))?,
        }
    }
    out.put(if open == "[\n" { "[]\n" } else { "\n]\n" })?;
    out.flush()
}

pub(super) const CSV_HEAD: &str = "kind,index,position,ts_ns,text\r\n";

/// The merged list as CSV: kind, index or id, position, time, text. A cell that a spreadsheet would
/// take for a formula gets an apostrophe in front. A turn is two rows, `question` and `answer`.
///
/// # Errors
/// When the writer fails.
pub fn branch_csv(points: &BranchPoints<'_>, out: impl Write) -> Result<()> {
    let mut out = Out::new(out);
    out.put(CSV_HEAD)?;
    if let Some(text) = points.cut() {
        out.put(csv_cut(&text))?;
    }
    for row in branch_points(points) {
        out.put(csv_row(&row))?;
    }
    out.flush()
}

/// The row that says what a list lacks.
pub(super) fn csv_cut(text: &str) -> String {
    format!("cut,,,,{}\r\n", cell(text))
}

/// One row of it.
pub(super) fn csv_row(row: &BranchRow<'_>) -> String {
    let number = |n: Option<u64>| n.map(|n| n.to_string()).unwrap_or_default();
    match row {
        BranchRow::Line(line) => {
            format!("line,{},{},,{}\r\n", line.idx, number(line.last_write_byte), cell(&line.text))
        }
        BranchRow::Moment(m) => {
            let (kind, id) = describe(m);
            format!(
                "{kind},{},{},{},{}\r\n",
                number(id),
                m.anchor,
                number(m.wall.map(WallTime::as_nanos)),
                cell(&m.label)
            )
        }
        BranchRow::Instruction(i, line) => {
            let (byte, ts) = (i.anchor_byte, i.written.as_nanos());
            format!("instruction,{line},{byte},{ts},{}\r\n", cell(i.text.trim_end()))
        }
        BranchRow::Turn(turn) => {
            let row = |kind: &str, byte: u64, at: WallTime, text: &str| {
                format!("{kind},{},{byte},{},{}\r\n", turn.number, at.as_nanos(), cell(text.trim_end()))
            };
            row("question", turn.start_byte, turn.start, &turn.input)
                + &row("answer", turn.end_byte, turn.end, &turn.text)
        }
    }
}

fn cell(text: &str) -> String {
    let text = printable_lines(text);
    let guard = if text.trim_start().starts_with(['=', '+', '-', '@', '|', '%']) { "'" } else { "" };
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

/// The merged list as a Markdown table, with a badge on what is not a line.
///
/// # Errors
/// When the writer fails.
pub fn branch_md(points: &BranchPoints<'_>, out: impl Write) -> Result<()> {
    let mut out = Out::new(out);
    out.put("| line | byte | text |\n| ---: | ---: | --- |\n")?;
    if let Some(text) = points.cut() {
        out.put(format!("| **✂ cut** | | {} |\n", plain_md(&text)))?;
    }
    for row in branch_points(points) {
        let line = match row {
            BranchRow::Line(line) => {
                let byte = line.last_write_byte.map(|b| b.to_string()).unwrap_or_default();
                format!("| {} | {byte} | {} |\n", line.idx, plain_md(&line.text))
            }
            BranchRow::Moment(m) => {
                let badge = match describe(m) {
                    (kind, Some(id)) => format!("📌 {kind} {id}"),
                    (kind, None) => format!("🔖 {kind}"),
                };
                let label = match m.label.as_str() {
                    "" => String::new(),
                    label => format!("**{}**", plain_md(label)),
                };
                format!("| **{badge}** | **{}** | {label} |\n", m.anchor)
            }
            BranchRow::Instruction(i, line) => {
                format!("| **✏️ line {line}** | **{}** | **{}** |\n", i.anchor_byte, lines_md(&i.text))
            }
            BranchRow::Turn(turn) => {
                let row = |part: &str, byte: u64, text: &str| {
                    format!("| **💬 turn {}: {part}** | {byte} | {} |\n", turn.number, lines_md(text))
                };
                let answer = format!("answer{}", turn.remarks());
                row("question", turn.start_byte, &turn.input) + &row(&answer, turn.end_byte, &turn.text)
            }
        };
        out.put(line)?;
    }
    out.flush()
}

/// Lines of text in a cell of a table.
fn lines_md(text: &str) -> String {
    text.trim_end().lines().map(plain_md).collect::<Vec<_>>().join("<br>")
}

/// Text that Markdown shows as it is.
pub(super) fn plain_md(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '#' | '+' | '-' | '.' | '!'
            | '|' | '~' | ':' | '@' | '$' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}
