//! Views of a session in the user's terminal.

pub(crate) mod crop;
pub(crate) mod detach_keys;

use std::io::{self, Write};

use tapdeck_term::Line;

/// Writes rows as they look, each with `end` behind it, without the blank ones at the end: they are the empty part of a
/// screen.
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
