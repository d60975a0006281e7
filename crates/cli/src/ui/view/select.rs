//! Text that the user selects with the mouse, and copies to the clipboard of the terminal.

use std::ops::Range;

use crossterm::event::MouseEvent;
use ratatui::layout::Position;
use tapdeck_term::Line;

use super::rows::{self, Row};
use super::{App, Effect, Mode, Mood};
use crate::human::count;

/// The longest text that is copied: terminals cut or ignore more than 100 kB in Base64.
const MAX_COPY: usize = 74_994;

/// A cell of the rows: its row and its column.
type Cell = (Row, u16);

/// A selection: the cell where the mouse button went down, and the cell where it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Selection {
    anchor: Cell,
    head: Cell,
    /// The mouse has been moved since the button went down: a click selects nothing.
    dragged: bool,
    /// The button is still down.
    open: bool,
}

impl Selection {
    /// The first and the last cell.
    fn ends(&self) -> (Cell, Cell) {
        (self.anchor.min(self.head), self.anchor.max(self.head))
    }

    /// The selected columns of a row.
    pub(super) fn columns(&self, row: Row) -> Option<Range<u16>> {
        let (first, last) = self.ends();
        let from = if row == first.0 { first.1 } else { 0 };
        let to = if row == last.0 { last.1.saturating_add(1) } else { u16::MAX };
        (self.dragged && (first.0..=last.0).contains(&row)).then_some(from..to)
    }
}

impl App {
    /// Begins a selection at a cell under the mouse.
    pub(super) fn press(&mut self, at: Position) {
        self.selection = None;
        if self.drawn.inner.contains(at)
            && matches!(self.mode, Mode::Read)
            && let Some(cell) = self.cell(at)
        {
            self.selection = Some(Selection { anchor: cell, head: cell, dragged: false, open: true });
        }
    }

    /// Selects up to the cell under the mouse. Above and below the rows it scrolls.
    pub(super) fn drag(&mut self, mouse: MouseEvent) {
        let inner = self.drawn.inner;
        if !self.selection.is_some_and(|selection| selection.open) || inner.is_empty() {
            return;
        }
        if mouse.row < inner.y {
            self.scroll(-1);
        } else if mouse.row >= inner.bottom() {
            self.scroll(1);
        }
        let x = mouse.column.clamp(inner.x, inner.right() - 1);
        let y = mouse.row.clamp(inner.y, inner.bottom() - 1);
        let cell = self.cell(Position::new(x, y));
        if let (Some(selection), Some(cell)) = (&mut self.selection, cell) {
            selection.dragged |= selection.head != cell;
            selection.head = cell;
        }
    }

    /// Ends the selection; a click alone is none.
    pub(super) fn let_go(&mut self) {
        self.selection = self.selection.filter(|selection| selection.dragged);
        self.selection.iter_mut().for_each(|selection| selection.open = false);
    }

    /// The cell at a place within the frame; below the last row, one of that row.
    fn cell(&self, at: Position) -> Option<Cell> {
        let inner = self.drawn.inner;
        // What was drawn last may have been scrolled since.
        let page = self.visible().page(self.top(self.height()), self.height());
        let row = *page.get(usize::from(at.y - inner.y)).or(page.last())?;
        Some((row, (at.x - inner.x).saturating_add(self.scroll.left)))
    }

    /// Copies the selection; without one, the line that is meant.
    pub(super) fn copy(&mut self) -> Effect {
        let selection = self.selection.unwrap_or_else(|| {
            let row = self.meant_row();
            let row = if self.filter.is_on() { row } else { rows::shown_at_or_above(self.term(), row) };
            let (first, last) = self.line_around(row);
            Selection { anchor: (first, 0), head: (last, u16::MAX), dragged: true, open: false }
        });
        let text = self.selected(&selection);
        if text.is_empty() {
            self.notify("there is no text to copy", Mood::Wrong);
            return Effect::Nothing;
        }
        if text.len() > MAX_COPY {
            let text = format!("cannot copy {} bytes: terminals take at most {MAX_COPY}", text.len());
            self.notify(text, Mood::Wrong);
            return Effect::Nothing;
        }
        let (lines, characters) = (text.lines().count(), text.chars().count());
        let (lines, characters) = (count(lines, "line"), count(characters, "character"));
        self.notify(format!("copied {lines}, {characters}"), Mood::Going);
        Effect::Copy(text)
    }

    /// The rows of the line that a row belongs to.
    fn line_around(&self, row: Row) -> (Row, Row) {
        let term = self.term();
        let wraps = |row: Row| rows::line(term, row).is_some_and(|line| line.wrapped());
        let first = (rows::range(term).start..row).rev().take_while(|above| wraps(*above)).last();
        let last = (row..rows::range(term).end).find(|row| !wraps(*row));
        (first.unwrap_or(row), last.unwrap_or(row))
    }

    /// The selected text. A wrapped line is one line, and blanks at its end are left out.
    fn selected(&self, selection: &Selection) -> String {
        let visible = self.visible();
        let (first, last) = selection.ends();
        let (from, to) = (visible.before(first.0), visible.before(last.0.saturating_add(1)));
        let mut text = String::new();
        for row in (from..to).map(|n| visible.nth(n)) {
            let (Some(line), Some(columns)) = (rows::line(self.term(), row), selection.columns(row)) else {
                continue;
            };
            push_columns(&mut text, &line, &columns);
            if !line.wrapped() {
                text.truncate(text.trim_end_matches(' ').len());
                text.push('\n');
            }
            if text.len() > 4 * MAX_COPY {
                break;
            }
        }
        text.truncate(text.trim_end().len());
        text
    }
}

fn push_columns(text: &mut String, line: &Line<'_>, columns: &Range<u16>) {
    let mut at = 0u16;
    line.each(|character, width, _| {
        if columns.contains(&at) {
            text.push_str(if character.is_empty() { " " } else { character });
        }
        at = at.saturating_add(width as u16);
    });
}
