//! Frames of the bus: the model's screen as JSON.
//!
//! The fields of the original protocol come first and mean what they always did; what is ours stands behind them, so
//! that an old client goes on working.

use serde_json::{Value, json};
use tapdeck_host::Picture;
use tapdeck_term::{Attrs, Colour, CursorShape, Generation, Palette, Rgb, Run, Style, Term, Underline};

/// A full frame: text rows and styled runs. `cells` is left out where a client cannot take so much.
pub(crate) fn full(picture: &Picture, cells: bool) -> Value {
    let term = picture.term();
    let mut frame = base(picture);
    frame["rows"] = term.screen().map(|line| Value::from(line.text())).collect();
    if cells {
        frame["cells"] =
            term.screen().map(|line| line.runs().iter().map(|r| run(term, r)).collect::<Value>()).collect();
    } else {
        frame["cells"] = json!([]);
        frame["text_only"] = json!(true);
    }
    frame
}

/// What changed since a generation: rows by their number, each with its text and runs.
pub(crate) fn delta(picture: &Picture, since: Generation) -> Value {
    let term = picture.term();
    let mut frame = base(picture);
    let diff = term.diff(since);
    frame["delta"] = json!(true);
    frame["changed"] = diff
        .rows
        .iter()
        .map(|row| {
            let text = term.row(row.row).map(|line| line.text()).unwrap_or_default();
            json!([row.row, text, row.runs.iter().map(|r| run(term, r)).collect::<Value>()])
        })
        .collect();
    frame
}

fn base(picture: &Picture) -> Value {
    let term = picture.term();
    let (size, cursor, modes) = (term.size(), term.cursor(), term.modes());
    json!({
        "rows": [],
        "cells": [],
        "cx": cursor.col.min(size.cols.saturating_sub(1)),
        "cy": cursor.row,
        "cols": size.cols,
        "rows_n": size.rows,
        "seq": picture.offset(),
        "cursor": {
            "visible": cursor.visible,
            "blink": cursor.blink,
            "shape": match cursor.shape {
                CursorShape::Block | CursorShape::Default => "block",
                CursorShape::Underline => "underline",
                CursorShape::Bar => "bar",
            },
        },
        "title": term.title(),
        "alternate": modes.alternate(),
        "modes": modes.names(),
        "scrollback": term.scrollback_len(),
    })
}

/// The attributes that have a field of their own in a run.
const SHORT_FIELDS: Attrs = Attrs::BOLD.or(Attrs::ITALIC).or(Attrs::STRIKE).or(Attrs::BLINK);

/// `[col, text, fg, bg, bold, italic, underline, strike, blink]`, then what is ours: how the colours were named, and
/// what else there is to the style.
fn run(term: &Term, run: &Run) -> Value {
    let style = run.style;
    let has = |attr| style.attrs.contains(attr);
    let (mut fg, mut bg) = resolved(term.palette(), &style);
    if has(Attrs::INVERSE) != term.modes().reverse_video() {
        (fg, bg) = (bg, fg);
    }
    let mut value = json!([
        run.col,
        run.text,
        hex(fg),
        hex(bg),
        has(Attrs::BOLD),
        has(Attrs::ITALIC),
        style.underline != Underline::None,
        has(Attrs::STRIKE),
        has(Attrs::BLINK),
    ]);
    let mut more = serde_json::Map::new();
    let mut note = |key: &str, value: Value| {
        more.insert(key.into(), value);
    };
    if style.fg != Colour::Default {
        note("fg", colour(style.fg));
    }
    if style.bg != Colour::Default {
        note("bg", colour(style.bg));
    }
    // The fields of the original protocol tell the others.
    for name in style.attrs.and(Attrs::VISIBLE).without(SHORT_FIELDS).names() {
        note(name, json!(true));
    }
    if !matches!(style.underline, Underline::None | Underline::Single) {
        note("underline", json!(style.underline.name()));
    }
    if let Some(link) = term.link(style.link) {
        note("link", json!(link.uri));
    }
    if !more.is_empty()
        && let Some(items) = value.as_array_mut()
    {
        items.push(Value::Object(more));
    }
    value
}

fn resolved(palette: &Palette, style: &Style) -> (Rgb, Rgb) {
    (palette.foreground(style.fg), palette.background(style.bg))
}

fn colour(c: Colour) -> Value {
    match c {
        Colour::Default => Value::Null,
        Colour::Indexed(i) => json!(i),
        Colour::Rgb(r, g, b) => json!(hex(Rgb(r, g, b))),
    }
}

fn hex(Rgb(r, g, b): Rgb) -> String {
    format!("{r:02x}{g:02x}{b:02x}")
}

/// Bytes as the bus carries them: a JSON string with a character for each byte.
pub(crate) fn latin1(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + bytes.len() / 4 + 2);
    out.push('"');
    for &b in bytes {
        match b {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0..0x20 | 0x7f..0xa0 => {
                const DIGITS: &[u8; 16] = b"0123456789abcdef";
                out.push_str("\\u00");
                out.push(char::from(DIGITS[usize::from(b >> 4)]));
                out.push(char::from(DIGITS[usize::from(b & 15)]));
            }
            _ => out.push(char::from(b)),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_comes_back_as_a_character() {
        let bytes: Vec<u8> = (0..=255).collect();
        let text: String = serde_json::from_str(&latin1(&bytes)).expect("JSON");
        let back: Vec<u8> = text.chars().map(|c| u8::try_from(u32::from(c)).expect("a byte")).collect();
        assert_eq!(back, bytes);
        assert!(!latin1(&bytes).contains('\n'), "one frame stays one line");
    }
}
