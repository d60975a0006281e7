//! Views of a session in the user's terminal.

pub(crate) mod crop;
pub(crate) mod detach_keys;
mod key_stream;
pub(crate) mod label_edit;
mod output_stream;
pub(crate) mod rec_keys;

use std::io::{self, Write};

pub(crate) use output_stream::{OutputStream, print_styled};
use tapdeck_term::{Line, Term};

/// The number of the screen's first row, counted from the first row that the terminal ever had.
pub(crate) fn top_row(term: &Term) -> u64 {
    term.evicted() + term.scrollback_len() as u64
}

/// Appends all lines for a terminal in raw mode, without the empty part of the screen. A line that
/// goes on in the next row is one line, so that the terminal wraps it as wide as it is.
pub(crate) fn write_lines(term: &Term, colours: bool, out: &mut Vec<u8>) {
    let mut blank = 0usize;
    let mut goes_on = false;
    for line in term.lines() {
        if line.is_blank() {
            (blank, goes_on) = (blank + 1, false);
            continue;
        }
        let ends = std::mem::take(&mut blank);
        (0..ends).for_each(|_| out.extend_from_slice(b"\r\n"));
        line.write_ansi(out, colours);
        goes_on = line.wrapped();
        if goes_on {
            // In a wrapped line, blanks at the end of a row stand between words.
            let between = line.written_blanks().map_or(0, |(_, n)| usize::from(n));
            out.extend(std::iter::repeat_n(b' ', between));
        } else {
            blank = 1;
        }
    }
    if blank > 0 || goes_on {
        out.extend_from_slice(b"\r\n");
    }
}

/// Writes rows with their styles, each followed by `end`, without the blank rows at the end, which
/// are the empty part of a screen.
pub(crate) fn write_used_rows<'a>(
    rows: impl Iterator<Item = Line<'a>>,
    colours: bool,
    end: &str,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut text = Vec::new();
    let mut blank = 0usize;
    for row in rows {
        if row.is_blank() {
            blank += 1;
            continue;
        }
        for _ in 0..std::mem::take(&mut blank) {
            out.write_all(end.as_bytes())?;
        }
        text.clear();
        row.write_ansi(&mut text, colours);
        text.extend_from_slice(end.as_bytes());
        out.write_all(&text)?;
    }
    Ok(())
}
