//! Runs of text in pieces that keep their cells. A browser takes glyphs that the font lacks from
//! another one, of any width, so that one symbol would move the rest of the row. Characters that
//! every font of fixed width has stay together; each other one stands for itself, to be put into
//! the cells that the terminal gave it.

use tapdeck_term::{Run, char_width};

/// A part of a run.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The first column.
    pub col: u16,
    /// Columns taken.
    pub width: u16,
    /// The text.
    pub text: &'a str,
    /// Whether its glyphs may be of another width than its cells.
    pub pinned: bool,
}

/// The pieces of a run, from the left.
pub fn pieces(run: &Run) -> Vec<Piece<'_>> {
    let whole = |pinned| Piece { col: run.col, width: run.width, text: &run.text, pinned };
    if run.text.is_ascii() {
        return vec![whole(false)];
    }
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    let (mut start, mut width, mut pinned, mut joined) = (0, 0, false, false);
    let mut col = run.col;
    let mut close = |range: std::ops::Range<usize>, width: u16, pinned: bool| {
        if width > 0 {
            pieces.push(Piece { col, width, text: &run.text[range], pinned });
            col = col.saturating_add(width);
        }
    };
    for (at, c) in run.text.char_indices() {
        let own = char_width(c) as u16;
        if c == '\u{fe0f}' && pinned && width == 1 {
            // The picture form of a symbol.
            width = 2;
        }
        if own == 0 || std::mem::replace(&mut joined, false) {
            joined = c == '\u{200d}';
            continue;
        }
        let steady = own == 1 && is_steady(c);
        if width > 0 && (pinned || !steady) {
            close(start..at, width, pinned);
            (start, width) = (at, 0);
        }
        width += own;
        pinned = !steady;
    }
    close(start..run.text.len(), width, pinned);
    // Where the terminal saw other characters than these rules do, the run stays whole.
    if col != run.col.saturating_add(run.width) {
        return vec![whole(true)];
    }
    pieces
}

/// Whether every font of fixed width has a glyph for it.
fn is_steady(c: char) -> bool {
    matches!(c, '\u{20}'..='\u{17f}' | '\u{370}'..='\u{3ff}' | '\u{400}'..='\u{45f}' | '\u{2010}'..='\u{2027}')
        || matches!(c, '\u{2500}'..='\u{259f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, width: u16) -> Vec<(u16, u16, String, bool)> {
        let run = Run { col: 3, width, text: text.to_owned(), style: tapdeck_term::Style::default() };
        pieces(&run).into_iter().map(|p| (p.col, p.width, p.text.to_owned(), p.pinned)).collect()
    }

    #[test]
    fn a_symbol_does_not_move_what_follows() {
        let s = str::to_owned;
        assert_eq!(of("plain", 5), [(3, 5, s("plain"), false)]);
        assert_eq!(of("│ é ─", 5), [(3, 5, s("│ é ─"), false)]);
        assert_eq!(
            of("a✻b日本c", 8),
            [
                (3, 1, s("a"), false),
                (4, 1, s("✻"), true),
                (5, 1, s("b"), false),
                (6, 2, s("日"), true),
                (8, 2, s("本"), true),
                (10, 1, s("c"), false)
            ]
        );
        // Marks stay with their letter, and an emoji of several characters in one place.
        assert_eq!(of("e\u{301}x", 2), [(3, 2, s("e\u{301}x"), false)]);
        assert_eq!(of("👩\u{200d}🚀!", 3), [(3, 2, s("👩\u{200d}🚀"), true), (5, 1, s("!"), false)]);
        assert_eq!(of("❤\u{fe0f}!", 3), [(3, 2, s("❤\u{fe0f}"), true), (5, 1, s("!"), false)]);
        // A width that cannot be explained.
        assert_eq!(of("日x", 7), [(3, 7, s("日x"), true)]);
    }
}
