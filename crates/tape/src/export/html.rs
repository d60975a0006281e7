//! A recording as one HTML file that plays, seeks, searches and copies, with no network and nothing
//! to install. The screen is rendered here, not in the page: the file holds the rows that changed
//! in each frame, so the page has no parser that a recording could attack, and its text only ever
//! becomes text nodes. A content policy forbids everything but the page's own script.

use std::collections::HashMap;
use std::io::Write;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tapdeck_core::Time;
use tapdeck_term::{Attrs, Colour, Generation, Line, LineSize, Palette, Size, Style, Term, Theme, Underline};

use super::branch::{BranchPoints, BranchRow, branch_points};
use super::pieces::pieces;
use super::theme_css::theme_css;
use super::{Annotations, Out, markup, script_json};
use crate::cast::theme_of;
use crate::event::{EventReader, Item, Kind};
use crate::instruction::Instruction;
use crate::push_fmt::PushFmt;
use crate::replay::Replay;
use crate::{Result, base64};

const SCRIPT: &str = include_str!("player.js");
const STYLE: &str = include_str!("player.css");
/// Frames in one element of the page.
const CHUNK: usize = 500;
const CHUNK_BYTES: usize = 1 << 20;
/// How long a frame waits for the end of a synchronised update.
const HOLD: Duration = Duration::from_millis(150);

/// How to make the page.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct HtmlOptions {
    /// Frames a second at most: what changes in between is shown together.
    pub fps: u32,
    /// Rows of scrollback in the transcript below the player; 0 leaves the transcript out.
    pub transcript: usize,
    /// The colours; without them those of the recording, if it carries any.
    pub theme: Option<Theme>,
}

impl Default for HtmlOptions {
    fn default() -> Self {
        Self { fps: 30, transcript: 10_000, theme: None }
    }
}

/// Writes the page, streaming: memory does not grow with the recording. The transcript has those of
/// the instructions between its lines, and the turns that were shown in the alternate screen.
///
/// # Errors
/// When the recording cannot be read on or the writer fails.
pub fn html(
    reader: &mut dyn EventReader,
    annotations: impl Into<Annotations>,
    options: HtmlOptions,
    out: impl Write,
) -> Result<()> {
    let mut out = Out::new(out);
    let Annotations { turns, instructions } = annotations.into();
    let header = reader.header().clone();
    let mut title = String::new();
    markup(header.title.as_deref().or(header.command.as_deref()).unwrap_or("Recording"), &mut title);
    let mut replay = Replay::new(&header, options.transcript).with_turns(turns);
    let theme = options.theme.or_else(|| theme_of(&header)).unwrap_or_default();
    let css = format!("{}{STYLE}", theme_css(&theme));
    out.put(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-{}'; \
         style-src 'sha256-{}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>{css}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<main id=\"player\"></main>\n",
        digest(SCRIPT),
        digest(&css),
    ))?;
    let size = replay.term().size();
    let head = json!({
        "cols": size.cols,
        "rows": size.rows,
        "fg": theme.foreground.to_string(),
        "bg": theme.background.to_string(),
    });
    out.put(format!("<script type=\"application/json\" id=\"head\">{}</script>\n", script_json(&head)))?;

    let mut frames = Frames::new(theme);
    let step = Duration::from_secs(1) / options.fps.clamp(1, 120);
    // When the screen began to change since the last frame.
    let mut due: Option<Time> = None;
    while let Some(item) = reader.next_item()? {
        if let Item::Event(event) = &item {
            // Half a redraw is nothing to look at, unless the program never says that it has done.
            let drawing = replay.term().modes().synchronised();
            if let Some(start) = due
                && event.time >= start + if drawing { HOLD.max(step) } else { step }
            {
                frames.take(replay.term(), start, &mut out)?;
                due = None;
            }
            if matches!(event.kind, Kind::Output(_) | Kind::Resize(_)) {
                due.get_or_insert(event.time);
            }
        }
        replay.item(item);
    }
    frames.take(replay.term(), due.unwrap_or(replay.time()), &mut out)?;
    frames.flush(&mut out)?;

    let moments: Vec<Value> = replay.moments().iter().map(|m| json!([m.time.as_millis(), m.label])).collect();
    let tail = json!({"duration": replay.time().as_millis(), "moments": moments});
    out.put(format!("<script type=\"application/json\" id=\"tail\">{}</script>\n", script_json(&tail)))?;
    if options.transcript > 0 {
        transcript(&replay, &instructions, &mut out)?;
    }
    out.put(format!("<script>{SCRIPT}</script>\n</body>\n</html>\n"))?;
    out.flush()
}

/// Writes the final lines, the instructions and the hidden turns, which a reader can search and
/// copy.
fn transcript<W: Write>(replay: &Replay, instructions: &[Instruction], out: &mut Out<W>) -> Result<()> {
    let left_out = match replay.term().evicted() {
        0 => String::new(),
        n => format!(" (without the first {n} lines)"),
    };
    out.put(format!("<details><summary>Transcript{left_out}</summary>\n<pre id=\"transcript\">"))?;
    let turns = replay.hidden_turns();
    let points = BranchPoints { turns, instructions, ..BranchPoints::new(replay.term(), &[]) };
    for row in branch_points(&points) {
        let mut text = String::new();
        match row {
            BranchRow::Line(line) => markup(&line.text, &mut text),
            BranchRow::Turn(turn) => {
                for line in turn.transcript().lines() {
                    text.push_str(if text.is_empty() { "" } else { "\n" });
                    markup(line, &mut text);
                }
            }
            BranchRow::Instruction(instruction, line) => {
                text.push_fmt(format_args!("<mark>✏️ instruction at line {line}: "));
                for (i, line) in instruction.text.trim_end().lines().enumerate() {
                    text.push_str(if i == 0 { "" } else { "\n" });
                    markup(line, &mut text);
                }
                text.push_str("</mark>");
            }
            BranchRow::Moment(_) => continue,
        }
        text.push('\n');
        out.put(text)?;
    }
    out.put("</pre>\n</details>\n")
}

/// For the content policy.
pub(super) fn digest(text: &str) -> String {
    base64::encode(&Sha256::digest(text.as_bytes()))
}

/// Collects frames: time, rows that changed, cursor, size when it changed. They are written as text
/// at once: as values first, they would take longer than everything else.
struct Frames {
    theme: Theme,
    since: Generation,
    styles: HashMap<Style, usize>,
    size: Option<Size>,
    /// The frames of the element in hand, with commas between them.
    text: String,
    count: usize,
}

impl Frames {
    fn new(theme: Theme) -> Self {
        Self {
            theme,
            since: Generation::default(),
            styles: HashMap::new(),
            size: None,
            text: String::new(),
            count: 0,
        }
    }

    fn take<W: Write>(&mut self, term: &Term, time: Time, out: &mut Out<W>) -> Result<()> {
        let (size, palette) = (term.size(), term.palette().under(self.theme));
        if self.size.is_some_and(|before| before != size) {
            self.since = Generation(0);
        }
        let diff = term.diff(self.since);
        self.since = diff.generation;
        let mut fresh = Vec::new();
        let text = &mut self.text;
        let comma = if self.count > 0 { "," } else { "" };
        text.push_fmt(format_args!("{comma}{{\"t\":{},\"r\":[", time.as_millis()));
        for (n, row) in diff.rows.iter().enumerate() {
            text.push_fmt(format_args!("{}[{},[", if n > 0 { "," } else { "" }, row.row));
            let mut comma = "";
            for run in &row.runs {
                let next = self.styles.len();
                let id = *self.styles.entry(run.style).or_insert_with(|| {
                    fresh.push(style(term, &palette, &run.style));
                    next
                });
                for piece in pieces(run) {
                    text.push_fmt(format_args!("{comma}[{},{id},", piece.col));
                    comma = ",";
                    let chars = cell_text(piece.text, text);
                    // The width is only told where the page cannot count on the text for it.
                    if piece.pinned || usize::from(piece.width) != chars {
                        text.push_fmt(format_args!(",{}", piece.width));
                    }
                    text.push(']');
                }
            }
            // That its text goes on in the next row, and the blanks at its end, matter to a user
            // that copies it.
            let line = term.row(row.row);
            if let Some((col, width)) = line.and_then(|line| line.written_blanks()) {
                let next = self.styles.len();
                let id = *self.styles.entry(Style::default()).or_insert_with(|| {
                    fresh.push(style(term, &palette, &Style::default()));
                    next
                });
                text.push_fmt(format_args!("{comma}[{col},{id},\"{:1$}\"]", "", usize::from(width)));
            }
            match line.map_or(0, row_flags) {
                0 => text.push_str("]]"),
                flags => {
                    text.push_fmt(format_args!("],{flags}]"));
                }
            }
        }
        let cursor = diff.cursor;
        text.push_fmt(format_args!("],\"c\":[{},{},{}]", cursor.row, cursor.col, u8::from(cursor.visible)));
        if !fresh.is_empty() {
            text.push_fmt(format_args!(",\"d\":{}", script_json(&fresh)));
        }
        if self.size != Some(size) {
            text.push_fmt(format_args!(",\"s\":[{},{}]", size.cols, size.rows));
            self.size = Some(size);
        }
        text.push('}');
        self.count += 1;
        if self.count >= CHUNK || self.text.len() >= CHUNK_BYTES {
            self.flush(out)?;
        }
        Ok(())
    }

    fn flush<W: Write>(&mut self, out: &mut Out<W>) -> Result<()> {
        if std::mem::take(&mut self.count) > 0 {
            out.put("<script type=\"application/json\" class=\"frames\">[")?;
            out.put(&self.text)?;
            out.put("]</script>\n")?;
            self.text.clear();
        }
        Ok(())
    }
}

/// What a page must know of a row beside its text: 1 it goes on in the next row, 2 double width, 4
/// and 8 the upper and lower half of double height.
pub fn row_flags(line: Line<'_>) -> u8 {
    u8::from(line.wrapped())
        | match line.size() {
            LineSize::Single => 0,
            LineSize::DoubleWidth => 2,
            LineSize::DoubleTop => 2 | 4,
            LineSize::DoubleBottom => 2 | 8,
        }
}

/// Appends text of cells as JSON that can stand in a script element, and says how many characters
/// it has. What could act is replaced, or left out where it takes no cell.
fn cell_text(text: &str, out: &mut String) -> usize {
    out.push('"');
    let mut chars = 0;
    if text.bytes().all(|b| matches!(b, 0x20..=0x7e) && !matches!(b, b'"' | b'\\' | b'<')) {
        out.push_str(text);
        chars = text.len();
    } else {
        for c in text.chars().filter_map(super::cell_char) {
            chars += 1;
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '<' => out.push_str("\\u003c"),
                c => out.push(c),
            }
        }
    }
    out.push('"');
    chars
}

/// Text colour, background, attributes as a string of letters, how the line under the text looks
/// where it is not plain, and where a link leads.
fn style(term: &Term, palette: &Palette, style: &Style) -> Value {
    let hex = |c: Colour, back: bool| match c {
        Colour::Default => String::new(),
        c => {
            let rgb = if back { palette.background(c) } else { palette.foreground(c) };
            rgb.to_string()
        }
    };
    // A page does not blink.
    let mut letters: String = style.attrs.and(Attrs::VISIBLE).without(Attrs::BLINK).letters().collect();
    if style.underline != Underline::None {
        letters.push('u');
    }
    let kind = match style.underline {
        Underline::None | Underline::Single => "",
        Underline::Double => "double",
        Underline::Curly => "wavy",
        Underline::Dotted => "dotted",
        Underline::Dashed => "dashed",
    };
    let under = format!("{kind} {}", hex(style.underline_colour, false));
    let link = term.link(style.link).map_or("", |link| &link.uri);
    let mut look = vec![hex(style.fg, false), hex(style.bg, true), letters, under.trim().to_owned()];
    look.push(link.to_owned());
    while look.len() > 3 && look.last().is_some_and(String::is_empty) {
        look.pop();
    }
    json!(look)
}
