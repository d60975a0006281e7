//! The turns of a recorded session: what was asked and what was answered, as its recorder kept them
//! in its part `events.jsonl`.
//!
//! A program in the alternate screen leaves no lines behind, so its conversation is in the turns
//! alone. [`TurnWatch`] follows a terminal through a recording and tells these turns from those
//! whose lines are in the scrollback. Everything that prints or searches the lines of a recording
//! puts the hidden turns between them with [`crate::export::place_turns`].

use std::fmt::Write as _;
use std::io::Read;

use serde::Deserialize;
use tapdeck_core::WallTime;
use tapdeck_term::{Term, printable_lines};

use crate::lines::Lines;
use crate::{Error, FilePosition, Result};

/// The most memory for the text of all turns, far more than people read.
pub(crate) const MAX_TEXT: usize = 256 << 20;

/// A turn of a recorded session.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct RecordedTurn {
    /// Its number in the recording: see [`TurnNumbers`].
    pub number: u64,
    /// The number that its recorder gave it.
    #[serde(skip)]
    pub recorded_number: u64,
    /// Offset in the output where its answer begins.
    pub start_byte: u64,
    /// Offset in the output where its answer ends.
    pub end_byte: u64,
    /// When the answer began.
    #[serde(with = "crate::nanos", rename = "start_ns")]
    pub start: WallTime,
    /// When the answer ended.
    #[serde(with = "crate::nanos", rename = "end_ns")]
    pub end: WallTime,
    /// What was asked.
    pub input: String,
    /// What was answered.
    pub text: String,
    /// The answer was interrupted.
    #[serde(default)]
    pub interrupted: bool,
    /// A part of the answer is missing.
    #[serde(default)]
    pub truncated: bool,
    /// The party that asked, if that was seen.
    #[serde(default)]
    pub by: Option<Speaker>,
    /// What the answer is made of, if the program itself wrote it down. Then its text is Markdown;
    /// otherwise it is what the screen showed.
    #[serde(default)]
    pub parts: Vec<RecordedPart>,
}

/// A party of a session.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Speaker {
    /// Its name in the session.
    pub name: String,
    /// How it counted at the stick: `human` or `bot`; unknown in older recordings.
    #[serde(default)]
    pub role: Option<String>,
}

/// A part of an answer: the next lines of its text, or a tool that the program ran.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct RecordedPart {
    /// When it was written down.
    #[serde(with = "crate::nanos", rename = "at_ns")]
    pub at: WallTime,
    /// How many lines of the text. A blank line stands between two parts.
    #[serde(default)]
    pub lines: usize,
    /// The name of the tool.
    #[serde(default)]
    pub tool: Option<String>,
    /// What the tool worked on.
    #[serde(default)]
    pub about: Option<String>,
    /// What the tool returned.
    #[serde(default)]
    pub result: Option<String>,
    /// Whether the tool failed, or was denied.
    #[serde(default)]
    pub failed: bool,
}

impl RecordedTurn {
    /// The remarks on the answer, in parentheses behind a blank; empty when it is whole.
    pub fn remarks(&self) -> &'static str {
        match (self.interrupted, self.truncated) {
            (false, false) => "",
            (true, false) => " (interrupted)",
            (false, true) => " (incomplete)",
            (true, true) => " (interrupted, incomplete)",
        }
    }

    /// The turn as lines of text between two marks, safe to print.
    pub fn transcript(&self) -> String {
        let mut out = String::new();
        let n = self.number;
        for (part, text, remarks) in [("question", &self.input, ""), ("answer", &self.text, self.remarks())] {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "--- turn {n}: {part}{remarks} ---");
            for line in text.trim_end().lines() {
                out.push_str(&printable_lines(line));
                out.push('\n');
            }
        }
        let _ = writeln!(out, "--- turn {n}: end ---");
        out
    }

    /// Bytes of memory, about.
    pub(crate) fn size(&self) -> usize {
        let texts = |part: &RecordedPart| {
            [&part.tool, &part.about, &part.result].into_iter().flatten().map(String::len).sum::<usize>()
                + size_of::<RecordedPart>()
        };
        let parts: usize = self.parts.iter().map(texts).sum();
        self.input.len() + self.text.len() + parts + size_of::<Self>()
    }

    /// Whether every line of the turn is in one of these rows.
    fn is_within(&self, rows: &[String]) -> bool {
        let lines = self.input.lines().chain(self.text.lines()).map(str::trim);
        lines.filter(|line| !line.is_empty()).all(|line| rows.iter().any(|row| row.contains(line)))
    }
}

/// Numbers the turns of a recording in their order. A recorder counts those of its own session, so
/// the numbers begin again where a session was appended or a recording was joined. From there on,
/// turns are counted on from the last one before.
#[derive(Debug, Clone, Default)]
pub struct TurnNumbers {
    /// What is added to the numbers of this session.
    base: u64,
    /// The highest number that this session's recorder gave so far.
    last: u64,
}

impl TurnNumbers {
    /// The number in the recording of the next turn, to which its recorder gave this one.
    pub fn next(&mut self, recorded: u64) -> u64 {
        if recorded <= self.last {
            self.base = self.base.saturating_add(self.last);
        }
        self.last = recorded;
        self.base.saturating_add(recorded)
    }

    /// Numbers these turns, as they were read.
    pub fn assign(turns: &mut [RecordedTurn]) {
        let mut numbers = Self::default();
        for turn in turns {
            turn.recorded_number = turn.number;
            turn.number = numbers.next(turn.number);
        }
    }
}

/// Whether a line of events is about a turn.
pub fn is_turn(line: &[u8]) -> bool {
    kind_of(line).is_some_and(|kind| kind == "turn")
}

/// The kind of a line of events.
pub(crate) fn kind_of(line: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct KindOnly {
        kind: String,
    }
    serde_json::from_slice::<KindOnly>(line).ok().map(|line| line.kind)
}

/// Reads the turns of events, in their order. Lines of other kinds are passed over.
///
/// # Errors
/// When the reader fails, a turn makes no sense, or the turns take too much memory.
pub fn turns_of(sidecar: impl Read) -> Result<Vec<RecordedTurn>> {
    let mut lines = Lines::new(sidecar);
    let mut turns: Vec<RecordedTurn> = Vec::new();
    let mut room = MAX_TEXT;
    while let Some(line) = lines.next_line()? {
        if !is_turn(line.text) {
            continue;
        }
        let at = FilePosition::Line(line.number);
        let turn: RecordedTurn = match serde_json::from_slice(line.text) {
            Ok(turn) => turn,
            Err(e) => return Err(Error::malformed(at, format!("a turn that makes no sense: {e}"))),
        };
        let size = turn.size();
        room = room.checked_sub(size).ok_or_else(|| {
            Error::malformed(at, format!("the turns are larger than {} MiB", MAX_TEXT >> 20))
        })?;
        turns.push(turn);
    }
    TurnNumbers::assign(&mut turns);
    Ok(turns)
}

/// Finds out which turns were shown in the alternate screen, while a terminal goes through their
/// recording.
#[derive(Debug, Clone, Default)]
pub struct TurnWatch {
    turns: Vec<RecordedTurn>,
    /// For each turn, whether it was shown in the alternate screen; unknown while it lies ahead.
    hidden: Vec<Option<bool>>,
    /// The offsets where the terminal is looked at, and whose turn this is, the next one last.
    stops: Vec<(u64, usize)>,
}

impl TurnWatch {
    /// Watches for these turns.
    pub fn new(turns: Vec<RecordedTurn>) -> Self {
        let mut stops: Vec<(u64, usize)> =
            turns.iter().enumerate().flat_map(|(i, t)| [(t.start_byte, i), (t.end_byte, i)]).collect();
        stops.sort_unstable_by(|a, b| b.cmp(a));
        Self { hidden: vec![None; turns.len()], turns, stops }
    }

    /// The next offset in the output at which the terminal is to be shown to [`TurnWatch::look`].
    pub fn next_stop(&self) -> Option<u64> {
        self.stops.last().map(|(at, _)| *at)
    }

    /// Looks at the terminal after so much output.
    pub fn look(&mut self, offset: u64, term: &Term) {
        while let Some((_, i)) = self.stops.pop_if(|(at, _)| *at <= offset) {
            // An agent that quits in mid-answer has left the alternate screen at the answer's end;
            // an editor started from a shell was not there at either end.
            let known = self.hidden[i].unwrap_or(false);
            self.hidden[i] = Some(known || term.modes().alternate());
        }
    }

    /// The turns passed so far whose lines are not in this terminal, in order.
    pub fn hidden<'a>(&'a self, term: &Term) -> Vec<&'a RecordedTurn> {
        let hidden = || self.turns.iter().zip(&self.hidden).filter(|(_, hidden)| **hidden == Some(true));
        if !term.modes().alternate() || hidden().next().is_none() {
            return hidden().map(|(turn, _)| turn).collect();
        }
        // The alternate screen is still shown, and the last turns may be on it.
        let screen: Vec<String> = term.screen().map(|line| line.text()).collect();
        hidden().map(|(turn, _)| turn).filter(|turn| !turn.is_within(&screen)).collect()
    }
}
