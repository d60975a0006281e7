//! Views of a session in the user's terminal.

pub(crate) mod crop;
pub(crate) mod detach_keys;

use std::io::{self, Write};

use tapdeck_term::Line;

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
