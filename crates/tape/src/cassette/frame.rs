//! Frames: pictures of the screen as data, derived from the bytes and from nothing else. Recording,
//! checking and asserting all go through [`Model`], so that they cannot disagree about what was
//! shown.

use serde::{Deserialize, Serialize};
use tapdeck_term::{Attrs, Colour, Rgb, Settings, Size, Style, Term, Underline};

use super::{CassetteEvent, EventKind, Manifest};

/// Rows kept above the screen.
const SCROLLBACK: usize = 10_000;

/// A line of `frames.jsonl`: what the screen showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Its number among all events: it shows the state after all events with a lower one.
    pub seq: u64,
    /// When.
    pub t_ms: u64,
    /// The terminal's size.
    pub size: FrameSize,
    /// The rows from the top, without trailing blanks.
    pub text: Vec<String>,
    /// Whatever is not in the default style.
    pub runs: Vec<StyledRun>,
    /// The cursor.
    pub cursor: Cursor,
    /// The modes in force.
    pub modes: FrameModes,
    /// The window's title.
    pub title: String,
    /// The output that is new in it begins here …
    pub raw_start: u64,
    /// … and ends here: it shows the first `raw_end` bytes.
    pub raw_end: u64,
}

/// Size of a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameSize {
    /// Rows.
    pub rows: u16,
    /// Columns.
    pub cols: u16,
}

/// Neighbouring characters of one style.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StyledRun {
    /// Row, from 0.
    pub row: u16,
    /// First column, from 0.
    pub col: u16,
    /// Columns taken.
    pub width: u16,
    /// The text.
    pub text: String,
    /// Text colour: a palette number or `#rrggbb`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fg: Option<String>,
    /// Background colour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bg: Option<String>,
    /// `single`, `double`, `curly`, `dotted` or `dashed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub underline: Option<String>,
    /// Underline colour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub underline_colour: Option<String>,
    /// `bold`, `faint`, `italic`, `blink`, `inverse`, `conceal`, `strike`, `overline`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attrs: Vec<String>,
    /// Where a hyperlink leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// The cursor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// Row, from 0.
    pub row: u16,
    /// Column, from 0.
    pub col: u16,
    /// Whether it is shown.
    pub visible: bool,
    /// `default`, `block`, `underline` or `bar`.
    pub shape: String,
}

/// Modes that are in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameModes {
    /// Whether the alternate screen is shown.
    pub alternate_screen: bool,
    /// Numbers of all modes that are set, private ones with a question mark.
    pub set: Vec<String>,
}

/// The emulator over a cassette's events.
#[derive(Debug, Clone)]
pub struct Model {
    term: Term,
    framed: u64,
}

impl Model {
    /// The terminal at the start of a recording.
    pub fn new(size: Size) -> Self {
        // The program is gone, so no answer of the terminal would reach it.
        let settings = Settings::default().scrollback(SCROLLBACK).replies(false);
        Self { term: Term::new(size, settings), framed: 0 }
    }

    /// The terminal at the start of this cassette.
    pub fn of(manifest: &Manifest) -> Self {
        Self::new(manifest.terminal.initial_size())
    }

    /// Takes an event; says whether it was one that can change the picture.
    pub fn apply(&mut self, event: &CassetteEvent) -> bool {
        match &event.kind {
            EventKind::Output { bytes, .. } => self.output(bytes),
            EventKind::Resize(size) => self.resize(*size),
            _ => return false,
        }
        true
    }

    /// Takes output.
    pub fn output(&mut self, bytes: &[u8]) {
        self.term.feed(bytes);
    }

    /// Takes a size.
    pub fn resize(&mut self, size: Size) {
        self.term.resize(size);
    }

    /// The terminal as it is now.
    pub fn term(&self) -> &Term {
        &self.term
    }

    /// Bytes of output taken.
    pub fn fed(&self) -> u64 {
        self.term.offset()
    }

    /// The picture now, as a frame with this number and time.
    pub(crate) fn frame(&self, seq: u64, t_ms: u64) -> Frame {
        picture(&self.term, seq, t_ms, self.framed, self.fed())
    }

    /// Says that the picture was taken: the next frame begins where this one ends.
    pub(crate) fn framed(&mut self) {
        self.framed = self.fed();
    }
}

impl Frame {
    /// Whether two frames show the same, whenever they do.
    pub(crate) fn shows_same(&self, other: &Self) -> bool {
        self.size == other.size
            && self.text == other.text
            && self.runs == other.runs
            && self.cursor == other.cursor
            && self.modes == other.modes
            && self.title == other.title
    }

    /// What the derived frame has otherwise, a sentence a difference, for people: rows and columns
    /// count from 1.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut out = Vec::new();
        let mut fact = |name: &str, a: String, b: String| {
            if a != b {
                out.push(format!("{name}: {a} is stored, the bytes show {b}"));
            }
        };
        fact("t_ms", self.t_ms.to_string(), other.t_ms.to_string());
        let size = |f: &Self| format!("{}x{}", f.size.cols, f.size.rows);
        fact("size", size(self), size(other));
        fact("raw_start", self.raw_start.to_string(), other.raw_start.to_string());
        fact("raw_end", self.raw_end.to_string(), other.raw_end.to_string());
        let cursor = |f: &Self| {
            let c = &f.cursor;
            format!(
                "row {} column {} {} {}",
                c.row + 1,
                c.col + 1,
                c.shape,
                if c.visible { "shown" } else { "hidden" }
            )
        };
        fact("cursor", cursor(self), cursor(other));
        fact("title", format!("{:?}", self.title), format!("{:?}", other.title));
        fact("modes", self.modes.set.join(" "), other.modes.set.join(" "));
        let alternate = |f: &Self| f.modes.alternate_screen.to_string();
        fact("alternate screen", alternate(self), alternate(other));
        let rows = self.text.len().max(other.text.len());
        let row = |f: &Self, i: usize| format!("{:?}", f.text.get(i).map_or("", String::as_str));
        for i in 0..rows {
            fact(&format!("row {}", i + 1), row(self, i), row(other, i));
        }
        fact("number of rows", self.text.len().to_string(), other.text.len().to_string());
        let styles = |f: &Self, i: usize| {
            let runs = f.runs.iter().filter(|r| usize::from(r.row) == i);
            runs.map(|r| serde_json::to_string(r).unwrap_or_default()).collect::<Vec<_>>().join(" ")
        };
        for i in 0..rows.max(self.runs.iter().map(|r| usize::from(r.row) + 1).max().unwrap_or(0)) {
            fact(&format!("styles of row {}", i + 1), styles(self, i), styles(other, i));
        }
        out
    }
}

/// The screen as a frame.
fn picture(term: &Term, seq: u64, t_ms: u64, raw_start: u64, raw_end: u64) -> Frame {
    let mut text = Vec::new();
    let mut runs = Vec::new();
    for (y, line) in term.screen().enumerate() {
        let all = line.runs();
        let mut row: String = all.iter().map(|run| run.text.as_str()).collect();
        row.truncate(row.trim_end_matches(' ').len());
        text.push(row);
        for run in all.into_iter().filter(|run| run.style != Style::default()) {
            let styled = styled(term, y as u16, run);
            if !styled.is_plain() {
                runs.push(styled);
            }
        }
    }
    let (cursor, modes, size) = (term.cursor(), term.modes(), term.size());
    Frame {
        seq,
        t_ms,
        size: FrameSize { rows: size.rows, cols: size.cols },
        text,
        runs,
        cursor: Cursor {
            row: cursor.row,
            col: cursor.col,
            visible: cursor.visible,
            shape: cursor.shape.name().into(),
        },
        modes: FrameModes { alternate_screen: modes.alternate(), set: modes.names() },
        title: term.title().to_owned(),
        raw_start,
        raw_end,
    }
}

fn styled(term: &Term, row: u16, run: tapdeck_term::Run) -> StyledRun {
    let style = run.style;
    let underline = Some(style.underline).filter(|u| *u != Underline::None);
    StyledRun {
        row,
        col: run.col,
        width: run.width,
        text: run.text,
        fg: colour(style.fg),
        bg: colour(style.bg),
        underline: underline.map(|u| u.name().into()),
        underline_colour: colour(style.underline_colour),
        attrs: style.attrs.and(Attrs::VISIBLE).names().map(Into::into).collect(),
        link: term.link(style.link).map(|link| link.uri.clone()),
    }
}

impl StyledRun {
    /// Whether it is in the default style.
    fn is_plain(&self) -> bool {
        self.fg.is_none()
            && self.bg.is_none()
            && self.underline.is_none()
            && self.underline_colour.is_none()
            && self.attrs.is_empty()
            && self.link.is_none()
    }
}

fn colour(c: Colour) -> Option<String> {
    match c {
        Colour::Default => None,
        Colour::Indexed(i) => Some(i.to_string()),
        Colour::Rgb(r, g, b) => Some(Rgb(r, g, b).to_string()),
    }
}
