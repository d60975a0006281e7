//! Rows of the terminal model on a ratatui buffer. What a program wrote is foreign text: nothing
//! reaches the buffer that could act on the terminal, and no character that the terminal might take
//! for wider or narrower than the model does, or the rest of the row would shift.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::widgets::{Clear, Widget};
use tapdeck_term::{Attrs, Colour, Line, Palette, Rgb, Term, Underline};
use unicode_width::UnicodeWidthStr;

use crate::human;

/// How the rows of a terminal are painted.
#[derive(Debug, Clone)]
pub struct Brush {
    /// Palette entries that the program changed, and its own text and background colours.
    changed: Vec<(u8, Color)>,
    text: Color,
    background: Color,
    reverse: bool,
    colour: bool,
    dim: bool,
}

impl Brush {
    /// The brush for a terminal in its present state.
    pub fn of(term: &Term, colour: bool) -> Self {
        let (palette, usual) = (term.palette(), Palette::default());
        let differs = |ours: Rgb, usual: Rgb| (ours != usual).then_some(Color::Rgb(ours.0, ours.1, ours.2));
        let changed =
            (0..=255).filter_map(|i| Some((i, differs(palette.entry(i), usual.entry(i))?))).collect();
        Self {
            changed,
            text: differs(palette.dynamic(0), usual.dynamic(0)).unwrap_or(Color::Reset),
            background: differs(palette.dynamic(1), usual.dynamic(1)).unwrap_or(Color::Reset),
            reverse: term.modes().reverse_video(),
            colour,
            dim: false,
        }
    }

    /// The brush for content that is less important.
    pub fn dimmed(self, dim: bool) -> Self {
        Self { dim, ..self }
    }

    fn colour(&self, colour: Colour, default: Color) -> Color {
        if !self.colour {
            return Color::Reset;
        }
        match colour {
            Colour::Default => default,
            Colour::Indexed(i) => {
                self.changed.iter().find(|(n, _)| *n == i).map_or(Color::Indexed(i), |(_, c)| *c)
            }
            Colour::Rgb(r, g, b) => Color::Rgb(r, g, b),
        }
    }

    fn style(&self, style: &tapdeck_term::Style) -> Style {
        let mut modifier = Modifier::empty();
        for (attr, to) in [
            (Attrs::BOLD, Modifier::BOLD),
            (Attrs::FAINT, Modifier::DIM),
            (Attrs::ITALIC, Modifier::ITALIC),
            (Attrs::BLINK, Modifier::SLOW_BLINK),
            (Attrs::CONCEAL, Modifier::HIDDEN),
            (Attrs::STRIKE, Modifier::CROSSED_OUT),
        ] {
            if style.attrs.contains(attr) {
                modifier |= to;
            }
        }
        if style.underline != Underline::None {
            modifier |= Modifier::UNDERLINED;
        }
        if style.attrs.contains(Attrs::INVERSE) != self.reverse {
            modifier |= Modifier::REVERSED;
        }
        if self.dim {
            modifier |= Modifier::DIM;
            modifier.remove(Modifier::BOLD);
        }
        let fg = self.colour(style.fg, self.text);
        let fg = if self.dim && self.colour { Color::DarkGray } else { fg };
        Style::new().fg(fg).bg(self.colour(style.bg, self.background)).add_modifier(modifier)
    }

    /// Paints a row into an area one row high, beginning with column `left` of the row. Ranges of
    /// columns are painted over in styles of their own.
    pub fn row(&self, buf: &mut Buffer, area: Rect, line: Line<'_>, left: u16, over: &[(Range<u16>, Style)]) {
        if area.is_empty() {
            return;
        }
        let right = left.saturating_add(area.width);
        let mut last = (tapdeck_term::Style::default(), self.style(&tapdeck_term::Style::default()));
        let blank = last.1;
        let mut col = 0u16;
        line.each(|text, width, style| {
            let width = width as u16;
            let (from, to) = (col, col.saturating_add(width));
            col = to;
            if to <= left || from >= right {
                return;
            }
            if style != last.0 {
                last = (style, self.style(&style));
            }
            let look =
                over.iter().filter(|(range, _)| range.contains(&from)).fold(last.1, |s, (_, o)| s.patch(*o));
            let x = area.x + from.saturating_sub(left);
            if from < left || to > right {
                // Half of a wide character is not drawn.
                buf[(x, area.y)].set_symbol(" ").set_style(look);
            } else {
                put(buf, x, area.y, text, width, look);
            }
        });
        for x in area.x + col.clamp(left, right) - left..area.right() {
            buf[(x, area.y)].set_style(blank);
        }
    }
}

/// Puts a character that has this width in the model.
fn put(buf: &mut Buffer, x: u16, y: u16, text: &str, width: u16, style: Style) {
    let cell = &mut buf[(x, y)];
    cell.set_style(style);
    match text.as_bytes() {
        [] => {
            cell.set_symbol(" ");
        }
        [b' '..=b'~'] => {
            cell.set_symbol(text);
        }
        _ => {
            cell.set_symbol(&symbol(text, width));
        }
    }
    if width == 2 {
        // Empty, as no other cell is: the next content of the cell always differs.
        buf[(x + 1, y)].set_symbol("").set_style(style);
    }
}

/// A character as it may be sent to the terminal: without control characters, and of the width that
/// the model says.
fn symbol(text: &str, width: u16) -> String {
    let fits = |s: &str| s.width() == usize::from(width);
    let tame: String = text.chars().filter(|c| !human::is_unsafe(*c)).collect();
    if fits(&tame) {
        return tame;
    }
    // Terminals disagree about the width of clusters, but rarely about their first character.
    let first: String = tame.chars().take(1).collect();
    match (fits(&first), width) {
        (true, _) => first,
        (_, 2) => "\u{fffd} ".to_owned(),
        _ => "\u{fffd}".to_owned(),
    }
}

/// Clears an area. A wide character that is cut by its edge is cleared whole.
pub fn cover(buf: &mut Buffer, area: Rect) {
    let area = area.intersection(buf.area);
    for y in area.top()..area.bottom() {
        if let Some(x) = area.x.checked_sub(1).filter(|x| *x >= buf.area.x)
            && buf[(x, y)].symbol().width() > 1
        {
            buf[(x, y)].set_symbol(" ");
        }
        if area.right() < buf.area.right() && buf[(area.right(), y)].symbol().is_empty() {
            buf[(area.right(), y)].set_symbol(" ");
        }
    }
    Clear.render(area, buf);
}

/// Writes text into a row of the buffer, cut to a width. Returns how many columns it
/// took.
pub fn label(buf: &mut Buffer, x: u16, y: u16, width: u16, text: &str, style: Style) -> u16 {
    if width == 0 || !buf.area.contains((x, y).into()) {
        return 0;
    }
    let width = width.min(buf.area.right() - x);
    let (end, _) = buf.set_stringn(x, y, human::printable(text), usize::from(width), style);
    end - x
}

#[cfg(test)]
mod tests {
    use super::*;
    use tapdeck_term::{Settings, Size};

    fn painted(bytes: &[u8], cols: u16, left: u16, width: u16) -> Buffer {
        let mut term = Term::new(Size::new(cols, 1), Settings::default());
        term.feed(bytes);
        let mut buf = Buffer::empty(Rect::new(0, 0, width, 1));
        let area = buf.area;
        if let Some(line) = term.row(0) {
            Brush::of(&term, true).row(&mut buf, area, line, left, &[]);
        }
        buf
    }

    fn text(buf: &Buffer) -> String {
        buf.content.iter().map(|cell| cell.symbol()).collect()
    }

    #[test]
    fn rows_are_cut_at_both_sides_and_halves_are_blank() {
        assert_eq!(text(&painted(b"abcdef", 6, 0, 6)), "abcdef");
        assert_eq!(text(&painted(b"abcdef", 6, 2, 3)), "cde");
        assert_eq!(text(&painted(b"ab", 6, 4, 3)), "   ");
        assert_eq!(text(&painted("a漢b".as_bytes(), 6, 0, 6)), "a漢b  ");
        assert_eq!(text(&painted("a漢b".as_bytes(), 6, 2, 3)), " b ", "the second half alone");
        assert_eq!(text(&painted("a漢b".as_bytes(), 6, 0, 2)), "a ", "the first half alone");
    }

    #[test]
    fn what_is_drawn_over_a_wide_character_is_whole() {
        let mut buf = painted("漢字漢字".as_bytes(), 8, 0, 8);
        cover(&mut buf, Rect::new(3, 0, 2, 1));
        label(&mut buf, 3, 0, 2, "ab", Style::new());
        assert_eq!(text(&buf), "漢 ab 字");
    }

    #[test]
    fn nothing_acts_and_nothing_shifts() {
        let buf = painted("e\u{301}\u{202e}x👩\u{200d}💻y".as_bytes(), 12, 0, 12);
        for cell in &buf.content {
            assert!(!cell.symbol().chars().any(human::is_unsafe), "{:?}", cell.symbol());
            assert!(cell.symbol().width() <= 2);
        }
        assert_eq!(symbol("漢", 1), "\u{fffd}", "a width that no terminal would agree with");
        assert_eq!(symbol("a\u{9b}\u{202e}", 1), "a");
    }

    #[test]
    fn colours_stay_the_users_unless_the_program_changed_them() {
        let buf = painted(b"\x1b[31ma\x1b]4;2;rgb:01/02/03\x07\x1b[32mb\x1b[38;2;9;8;7mc", 3, 0, 3);
        assert_eq!(buf[(0, 0)].fg, Color::Indexed(1));
        assert_eq!(buf[(1, 0)].fg, Color::Rgb(1, 2, 3));
        assert_eq!(buf[(2, 0)].fg, Color::Rgb(9, 8, 7));
    }
}
