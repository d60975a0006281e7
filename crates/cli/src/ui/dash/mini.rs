//! A whole terminal in a small tile: a quarter of a cell for each patch of the screen, in the
//! colour of its text. A user can recognise it and see where it changes, but not read it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use tapdeck_term::Term;

use crate::ui::canvas::Brush;

/// Quadrants by their bits: upper left 1, upper right 2, lower left 4, lower right 8.
const QUADRANTS: [&str; 16] =
    [" ", "▘", "▝", "▀", "▖", "▌", "▞", "▛", "▗", "▚", "▐", "▜", "▄", "▙", "▟", "█"];

/// Draws the whole screen into an area that may be smaller.
pub(super) fn draw(buf: &mut Buffer, area: Rect, term: &Term, colour: bool) {
    let size = term.size();
    if area.is_empty() {
        return;
    }
    // Painted at its own size first, then reduced.
    let mut whole = Buffer::empty(Rect::new(0, 0, size.cols, size.rows));
    let brush = Brush::of(term, colour);
    for (y, line) in term.screen().enumerate() {
        brush.row(&mut whole, Rect::new(0, y as u16, size.cols, 1), line, 0, &[]);
    }
    for y in 0..area.height {
        for x in 0..area.width {
            let cell = &mut buf[(area.x + x, area.y + y)];
            let (bits, style) = patch(&whole, (x, y), area);
            cell.set_symbol(QUADRANTS[bits]).set_style(style);
        }
    }
}

/// The quadrants with text, and the colours, of the part of the screen that one cell of the tile
/// shows.
fn patch(whole: &Buffer, (x, y): (u16, u16), tile: Rect) -> (usize, Style) {
    let (mut bits, mut fg, mut bg) = (0, Color::Reset, Color::Reset);
    for quarter in 0..4u16 {
        let columns = share(2 * x + quarter % 2, 2 * tile.width, whole.area.width);
        let rows = share(2 * y + quarter / 2, 2 * tile.height, whole.area.height);
        let cells = rows.flat_map(|y| columns.clone().map(move |x| (x, y)));
        for cell in cells.filter_map(|at| whole.cell(at)) {
            if !cell.symbol().trim().is_empty() {
                bits |= 1 << quarter;
                fg = cell.fg;
            }
            if cell.bg != Color::Reset {
                bg = cell.bg;
            }
        }
    }
    (bits, Style::new().fg(fg).bg(bg))
}

/// The `n`th of `of` parts of a length; none is empty.
fn share(n: u16, of: u16, length: u16) -> std::ops::Range<u16> {
    let at = |n: u16| (u32::from(n) * u32::from(length) / u32::from(of)) as u16;
    at(n)..at(n + 1).max(at(n) + 1).min(length)
}
