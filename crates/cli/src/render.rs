//! The terminal model as a filter: bytes in, the final screen out.
//!
//! Besides a person's view and a JSON document it serves conformance suites and other programs with
//! one request a line (`--jsonl`), so that thousands of small cases need one process.

use crate::color::Color;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{self, BufRead, BufWriter, Read, Write};
use std::path::PathBuf;
use tapdeck_term::{Attrs, Colour, Line, Rgb, Run, Settings, Size, Style, Term, Underline};

/// Arguments of `tapdeck render`.
#[derive(Args, Debug)]
pub struct RenderArgs {
    /// Columns and rows
    #[arg(long, default_value = "80x24", value_name = "COLSxROWS", value_parser = parse_size)]
    size: Size,
    /// Print a JSON document with text, styled runs, cursor, modes, replies and title
    #[arg(long, conflicts_with = "jsonl")]
    pub json: bool,
    /// Serve requests from standard input, one JSON object per line
    #[arg(long)]
    jsonl: bool,
    /// Include the scrollback
    #[arg(long)]
    scrollback: bool,
    /// When to use colors
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    color: Color,
    /// The old name of `--color always`
    #[arg(long, hide = true, conflicts_with = "color")]
    colour: bool,
    /// Treat a line feed as a new line, for files that did not pass through a terminal driver
    #[arg(long)]
    newline_mode: bool,
    /// Start in VT52 mode
    #[arg(long)]
    vt52: bool,
    /// Maximum number of scrollback rows
    #[arg(long, default_value_t = 10_000, value_name = "ROWS")]
    scrollback_limit: usize,
    /// File to read [default: `-`, standard input]
    file: Option<PathBuf>,
}

fn parse_size(text: &str) -> Result<Size, String> {
    let (cols, rows) = text.split_once(['x', 'X']).ok_or("expected COLSxROWS, such as 80x24")?;
    let side =
        |s: &str| s.parse::<u16>().ok().filter(|n| *n > 0).ok_or(format!("not a number of cells: {s}"));
    Ok(Size::new(side(cols)?, side(rows)?))
}

/// Feeds the input to a terminal model and prints the final screen, as the arguments say.
pub fn render(args: &RenderArgs) -> Result<()> {
    let settings =
        Settings::default().scrollback(args.scrollback_limit).newline_mode(args.newline_mode).vt52(args.vt52);
    let mut out = BufWriter::new(io::stdout().lock());
    if args.jsonl {
        return serve(&settings, io::stdin().lock(), &mut out);
    }
    let mut input: Box<dyn Read> = match args.file.as_deref() {
        Some(path) if path.as_os_str() != "-" => {
            Box::new(File::open(path).with_context(|| format!("cannot open {}", path.display()))?)
        }
        _ => Box::new(io::stdin().lock()),
    };
    let mut term = Term::new(args.size, settings);
    let mut replies = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let n = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => {
                let name =
                    args.file.as_deref().map_or("standard input".into(), |path| path.display().to_string());
                return Err(e).with_context(|| format!("cannot read {name}"));
            }
        };
        replies.extend(term.feed(&buffer[..n]).replies);
    }
    if args.json {
        serde_json::to_writer(&mut out, &document(&term, &replies, args.scrollback))?;
        out.write_all(b"\n")?;
    } else {
        let mut text = Vec::new();
        let colors = args.colour || args.color.is_on();
        let skip = if args.scrollback { 0 } else { term.scrollback_len() };
        for line in term.lines().skip(skip) {
            line.write_ansi(&mut text, colors);
            text.push(b'\n');
        }
        out.write_all(&text)?;
    }
    out.flush()?;
    Ok(())
}

/// The terminal as one JSON document.
fn document(term: &Term, replies: &[u8], scrollback: bool) -> Value {
    let cursor = term.cursor();
    let mut doc = json!({
        "size": { "cols": term.size().cols, "rows": term.size().rows },
        "rows": term.screen().map(|l| l.text()).collect::<Vec<_>>(),
        "cells": term.screen().map(|l| runs(term, &l)).collect::<Vec<_>>(),
        "wrapped": term.screen().map(|l| l.wrapped()).collect::<Vec<_>>(),
        "last_write_byte": term.screen().map(|l| l.written()).collect::<Vec<_>>(),
        "cursor": {
            "row": cursor.row,
            "col": cursor.col,
            "visible": cursor.visible,
            "shape": cursor.shape.name(),
            "blink": cursor.blink,
            "pending_wrap": cursor.pending_wrap,
        },
        "scrollback": term.scrollback_len(),
        "evicted": term.evicted(),
        "replies": tapdeck_core::base64::encode(replies),
        "modes": term.modes().names(),
        "title": term.title(),
    });
    if scrollback && let Some(map) = doc.as_object_mut() {
        let rows: Vec<String> = term.scrollback().map(|l| l.text()).collect();
        map.insert("scrollback_rows".to_owned(), json!(rows));
    }
    doc
}

fn runs(term: &Term, line: &Line<'_>) -> Value {
    line.runs().iter().map(|r| run_value(term, r)).collect()
}

fn run_value(term: &Term, run: &Run) -> Value {
    let mut map = Map::new();
    map.insert("col".to_owned(), json!(run.col));
    map.insert("width".to_owned(), json!(run.width));
    map.insert("text".to_owned(), json!(run.text));
    style_fields(term, &run.style, &mut map);
    Value::Object(map)
}

/// Colours keep apart what the program said: nothing for the default, a number for the palette,
/// `#rrggbb` else.
fn colour_value(c: Colour) -> Option<Value> {
    match c {
        Colour::Default => None,
        Colour::Indexed(i) => Some(json!(i)),
        Colour::Rgb(r, g, b) => Some(json!(Rgb(r, g, b).to_string())),
    }
}

fn style_fields(term: &Term, style: &Style, map: &mut Map<String, Value>) {
    for (name, c) in [("fg", style.fg), ("bg", style.bg), ("underline_colour", style.underline_colour)] {
        if let Some(v) = colour_value(c) {
            map.insert(name.to_owned(), v);
        }
    }
    for name in style.attrs.without(Attrs::RAPID).names() {
        map.insert(name.to_owned(), json!(true));
    }
    if style.underline != Underline::None {
        map.insert("underline".to_owned(), json!(style.underline.name()));
    }
    if let Some(link) = term.link(style.link) {
        map.insert("link".to_owned(), json!(link.uri));
    }
}

/// Answers requests until the input ends. A request that makes no sense gets `{"error": …}`.
fn serve(settings: &Settings, input: impl BufRead, out: &mut impl Write) -> Result<()> {
    let mut kept: Option<Term> = None;
    for line in input.lines() {
        let line = line.context("cannot read a request")?;
        if line.trim().is_empty() {
            continue;
        }
        let answer =
            answer(settings, &line, &mut kept).unwrap_or_else(|e| json!({ "error": format!("{e:#}") }));
        serde_json::to_writer(&mut *out, &answer)?;
        out.write_all(b"\n")?;
        out.flush()?;
    }
    Ok(())
}

fn answer(settings: &Settings, line: &str, kept: &mut Option<Term>) -> Result<Value> {
    let request: Value = serde_json::from_str(line).context("not JSON")?;
    let side = |v: &Value, default: u16| v.as_u64().map_or(default, |n| n.min(u64::from(u16::MAX)) as u16);
    let size = Size::new(side(&request["cols"], 80), side(&request["rows"], 24));
    let keep = request["keep"].as_bool().unwrap_or(false);
    let mut term = kept.take().filter(|_| keep).unwrap_or_else(|| Term::new(size, settings.clone()));
    let mut snaps = Vec::new();
    let mut replies = Vec::new();
    let ops = request["ops"].as_array().context("ops must be a list")?;
    for op in ops {
        match op[0].as_str() {
            Some("feed") => {
                let bytes = unhex(op[1].as_str().context("feed wants hexadecimal")?)?;
                let changes = term.feed(&bytes);
                replies.push(hex(&changes.replies));
            }
            Some("resize") => {
                term.resize(Size::new(side(&op[1], 80), side(&op[2], 24)));
            }
            Some("snap") => snaps.push(snap(&term)),
            other => bail!("unknown operation {other:?}"),
        }
    }
    *kept = Some(term);
    Ok(json!({ "snaps": snaps, "replies": replies }))
}

/// Cells and cursor; a cursor column equal to the width means that the next character wraps.
fn snap(term: &Term) -> Value {
    let cols = usize::from(term.size().cols);
    let rows: Vec<Vec<Option<String>>> = term
        .screen()
        .map(|line| {
            let mut cells = line.cells();
            cells.resize(cols, Some(String::new()));
            cells
        })
        .collect();
    let cursor = term.cursor();
    let col = if cursor.pending_wrap { term.size().cols } else { cursor.col };
    json!({ "rows": rows, "cursor": [cursor.row, col] })
}

fn unhex(text: &str) -> Result<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect();
    match digits {
        Some(d) if d.len() % 2 == 0 => Ok(d.chunks(2).map(|p| p[0] << 4 | p[1]).collect()),
        _ => bail!("not hexadecimal"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
