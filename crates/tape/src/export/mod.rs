//! Exports: what a recording shows, for people and tools that have no terminal. A recording is
//! untrusted text, so each export makes sure that none of it can act: control and bidirectional
//! characters are replaced, markup is escaped, and cells of a table cannot become formulas.

mod branch;
mod html;
mod html_still;
mod pieces;
mod svg;
mod text;
mod theme_css;

use std::io::{self, Write};

use crate::{Error, FilePosition, Result};

pub(crate) use branch::FinalLine;
pub use branch::{branch_csv, branch_json, branch_md, place_moments};

pub use html::{HtmlOptions, html, leads_to_the_web, row_flags};
pub use html_still::html_still;
pub use pieces::{Piece, pieces};
pub use svg::{SvgOptions, svg_animated, svg_still};
pub use text::{LinesAs, lines};
pub use theme_css::theme_css;

/// What is written at a time: lines are short, and calls are not free.
const GATHERED: usize = 128 * 1024;

/// Writes in large pieces and knows how far it came, for messages.
struct Out<W> {
    inner: W,
    /// What is not written yet.
    gathered: Vec<u8>,
    /// Bytes written.
    len: u64,
}

impl<W: Write> Out<W> {
    fn new(inner: W) -> Self {
        Self { inner, gathered: Vec::with_capacity(GATHERED + 4096), len: 0 }
    }

    fn put(&mut self, text: impl AsRef<[u8]>) -> Result<()> {
        self.gathered.extend_from_slice(text.as_ref());
        if self.gathered.len() >= GATHERED { self.pass_on() } else { Ok(()) }
    }

    fn line(&mut self, text: &str) -> Result<()> {
        self.gathered.extend_from_slice(text.as_bytes());
        self.put(b"\n")
    }

    fn pass_on(&mut self) -> Result<()> {
        self.inner.write_all(&self.gathered).map_err(|e| self.fail(e))?;
        self.len += self.gathered.len() as u64;
        self.gathered.clear();
        Ok(())
    }

    fn json<T: serde::Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        let text = serde_json::to_string(value).map_err(|e| self.fail(io::Error::other(e)))?;
        self.put(quiet_json(text))
    }

    fn flush(&mut self) -> Result<()> {
        self.pass_on()?;
        self.inner.flush().map_err(|e| self.fail(e))
    }

    fn fail(&self, source: io::Error) -> Error {
        Error::Write { at: FilePosition::Byte(self.len), source }
    }
}

/// Whether a character could do something other than show itself.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Returns the text with characters that could act replaced.
fn tame(text: &str) -> String {
    if is_tame(text) { text.to_owned() } else { replace_acting(text) }
}

/// Replaces characters that could act, without a copy where there are none.
fn tamed(text: String) -> String {
    if is_tame(&text) { text } else { replace_acting(&text) }
}

fn is_tame(text: &str) -> bool {
    // Nearly all text is plain, and plain text is told apart many bytes at a time.
    text.bytes().fold(true, |plain, b| plain & (0x20..0x7f).contains(&b)) || !text.chars().any(acts)
}

fn replace_acting(text: &str) -> String {
    text.chars().map(|c| if acts(c) { '\u{fffd}' } else { c }).collect()
}

/// A character of a cell as it can be shown in its place: what could act is replaced, or left out
/// where it takes no cell, so that the row keeps its columns.
pub fn cell_char(c: char) -> Option<char> {
    match acts(c) {
        true if tapdeck_term::char_width(c) == 0 => None,
        true => Some('\u{fffd}'),
        false => Some(c),
    }
}

/// JSON of the same meaning in which nothing can act: the format itself escapes only some control
/// characters.
fn quiet_json(text: String) -> String {
    if !text.chars().any(acts) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        if acts(c) {
            let mut units = [0; 2];
            out.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
    }
    out
}

/// Text for HTML, SVG and attributes in double quotes.
fn markup(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if acts(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}

/// JSON that can stand inside a `<script>` element: nothing in it can end the element or a line.
fn script_json<T: serde::Serialize + ?Sized>(value: &T) -> String {
    let text = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
    quiet_json(text).replace('<', "\\u003c")
}

#[cfg(test)]
mod tests;
