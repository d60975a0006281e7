//! Exports: what a recording shows, for people and tools that have no terminal. A recording is
//! untrusted text, so each export makes sure that none of it can act: control and bidirectional
//! characters are replaced, markup is escaped, and cells of a table cannot become formulas.

mod branch;
mod conversation;
mod html;
mod html_still;
mod pieces;
mod svg;
mod text;
mod theme_css;

use std::io::{self, Write};

use tapdeck_term::{is_unsafe, printable_json};

use crate::{Error, FilePosition, Result};

pub(crate) use branch::FinalLine;
pub use branch::{
    BranchPoints, behind, branch_csv, branch_json, branch_md, final_rows, lines_at, place_moments,
    place_turns, rows_at,
};

pub use conversation::{ConversationAs, conversation};
pub use html::{HtmlOptions, html, row_flags};
pub use html_still::html_still;
pub use pieces::{Piece, pieces};
pub use svg::{SvgOptions, svg_animated, svg_still};
pub use text::{Annotations, LinesAs, lines};
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
        self.put(printable_json(text))
    }

    fn flush(&mut self) -> Result<()> {
        self.pass_on()?;
        self.inner.flush().map_err(|e| self.fail(e))
    }

    fn fail(&self, source: io::Error) -> Error {
        Error::Write { at: FilePosition::Byte(self.len), source }
    }
}

/// A character of a cell as it can be shown in its place: what could act is replaced, or left out
/// where it takes no cell, so that the row keeps its columns.
pub fn cell_char(c: char) -> Option<char> {
    match is_unsafe(c) {
        true if tapdeck_term::char_width(c) == 0 => None,
        true => Some('\u{fffd}'),
        false => Some(c),
    }
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
            c if is_unsafe(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}

/// JSON that can stand inside a `<script>` element: nothing in it can end the element or a line.
fn script_json<T: serde::Serialize + ?Sized>(value: &T) -> String {
    let text = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
    printable_json(text).replace('<', "\\u003c")
}

#[cfg(test)]
mod tests;
