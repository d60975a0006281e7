//! A terminal that is larger than its tile, as an excerpt that can be read: rows and columns
//! without text are left out, and where that is not enough, those far from the cursor, or from the
//! question that the program asks.

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use tapdeck_term::Term;

use crate::ui::canvas::Brush;

/// The longest run of one sign in a row that does not fit.
const MAX_RUN: usize = 3;

/// Draws the excerpt into an area. `asked` is the last row of a question.
pub(super) fn draw(buf: &mut Buffer, area: Rect, term: &Term, brush: &Brush, asked: Option<u16>) {
    let size = term.size();
    // Painted at its own size first, then cut.
    let mut whole = Buffer::empty(Rect::new(0, 0, size.cols, size.rows));
    for (y, line) in term.screen().enumerate() {
        brush.row(&mut whole, Rect::new(0, y as u16, size.cols, 1), line, 0, &[]);
    }
    let cursor = Some(term.cursor()).filter(|cursor| cursor.visible);
    if let Some(cell) = cursor.and_then(|cursor| whole.cell_mut((cursor.col, cursor.row))) {
        cell.modifier.toggle(Modifier::REVERSED);
        if cell.symbol().trim().is_empty() {
            // A no-break space is drawn as a blank and is not left out.
            cell.set_symbol("\u{a0}");
        }
    }
    let cells: Vec<&[Cell]> = whole.content.chunks(usize::from(size.cols).max(1)).collect();
    let at = asked.or(cursor.map(|cursor| cursor.row)).map(usize::from);
    let rows = rows(&cells, at, term.modes().alternate(), usize::from(area.height));
    let columns = columns(&rows);
    for (y, row) in (area.y..area.bottom()).zip(rows) {
        let mut shown = columns.iter().map(|x| &row[*x]).collect::<Vec<_>>();
        if length(&shown) > usize::from(area.width) {
            squeeze(&mut shown);
        }
        put(buf, Rect { y, height: 1, ..area }, &shown);
    }
}

/// The rows to show: all, or those with text, or of these the ones around a row.
fn rows<'a>(all: &[&'a [Cell]], anchor: Option<usize>, alternate: bool, height: usize) -> Vec<&'a [Cell]> {
    let used = all.iter().rposition(|row| !row.iter().all(is_blank)).map_or(0, |y| y + 1);
    if used <= height {
        return all[..used].to_vec();
    }
    let kept: Vec<usize> =
        (0..used).filter(|y| Some(*y) == anchor || !all[*y].iter().all(is_decoration)).collect();
    let anchor = anchor.and_then(|anchor| kept.iter().position(|y| *y == anchor));
    let last = kept.len().saturating_sub(height);
    let from = match anchor {
        // With some rows below it.
        Some(anchor) => (anchor + 1 + height / 4).saturating_sub(height).min(last),
        None if alternate => 0,
        None => last,
    };
    kept.into_iter().skip(from).take(height).map(|y| all[y]).collect()
}

/// The columns to show. Of neighbours that have text in no row, one stays as a space between
/// others.
fn columns(rows: &[&[Cell]]) -> Vec<usize> {
    let width = rows.iter().map(|row| row.len()).min().unwrap_or(0);
    let is_empty = |x: usize| rows.iter().all(|row| is_blank(&row[x]) || is_side(&row[x]));
    let mut columns = Vec::new();
    let mut empty = true;
    for x in 0..width {
        let was_empty = std::mem::replace(&mut empty, is_empty(x));
        if !(empty && was_empty) {
            columns.push(x);
        }
    }
    columns
}

/// Shortens runs of blanks to one, and runs of another sign.
fn squeeze(row: &mut Vec<&Cell>) {
    let mut run = 0;
    let mut last = "";
    row.retain(|cell| {
        let symbol = cell.symbol();
        let repeats = symbol == last && !symbol.is_empty() && !symbol.chars().all(char::is_alphanumeric);
        (run, last) = (if repeats { run + 1 } else { 1 }, symbol);
        run <= if is_blank(cell) { 1 } else { MAX_RUN }
    });
}

/// Puts cells into a row; what does not fit ends in an ellipsis.
fn put(buf: &mut Buffer, area: Rect, cells: &[&Cell]) {
    let (width, length) = (usize::from(area.width), length(cells));
    let mut end = length.min(width);
    if length > width && end > 0 {
        end -= 1;
        // The second half of a wide character is empty.
        if cells[end].symbol().is_empty() {
            end -= 1;
        }
        buf[(area.x + end as u16, area.y)].set_symbol("…");
    }
    for (x, cell) in (area.x..).zip(&cells[..end]) {
        buf[(x, area.y)] = (*cell).clone();
    }
}

/// The number of cells up to the last that is not blank.
fn length(cells: &[&Cell]) -> usize {
    cells.iter().rposition(|cell| !is_blank(cell)).map_or(0, |x| x + 1)
}

fn is_blank(cell: &Cell) -> bool {
    cell.symbol() == " "
}

/// Whether it is the side of a box.
fn is_side(cell: &Cell) -> bool {
    matches!(cell.symbol(), "│" | "┃" | "║")
}

/// Whether it is part of a line or a box, or stands for the absence of text as in vi.
fn is_decoration(cell: &Cell) -> bool {
    let symbol = cell.symbol();
    is_blank(cell) || matches!(symbol, "-" | "=" | "_" | "~") || symbol.chars().all(is_box)
}

fn is_box(c: char) -> bool {
    ('\u{2500}'..='\u{257f}').contains(&c)
}
