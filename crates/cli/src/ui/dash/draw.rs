//! The dashboard's picture: tiles with their titles, and a status line.

use std::ops::RangeInclusive;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Modifier;
use ratatui::widgets::{Block, BorderType, Widget};
use tapdeck_core::Exit;
use tapdeck_core::turns::{AgentState, Dialog};
use tapdeck_term::Term;
use unicode_width::UnicodeWidthStr;

use super::grid::Grid;
use super::{Dash, Mode, Purpose, Tile, overview};
use crate::human::{shortened, wrap};
use crate::ui::canvas::{Brush, label};
use crate::ui::help;
use crate::ui::status_line::{Hint, draw_badge, draw_text};
use crate::ui::styles::{Mood, Styles};

pub(super) const HELP: &[(&str, &str)] = &[
    ("Tab ← ↑ ↓ → 1-9, click", "select a session"),
    ("PgUp PgDn Home End, wheel", "scroll, when there are more than fit"),
    ("b", "select the next session that waits for an answer"),
    ("/", "filter by name, command, title or state; Esc: all"),
    ("z space, second click", "zoom in and out"),
    ("s", "overview: readable excerpts of large screens"),
    ("Enter i", "take the stick and type; Ctrl-] stops and releases"),
    ("t r", "take the stick without typing, release it"),
    ("c", "start a session: a command, empty for your shell"),
    (",", "rename a session"),
    ("x", "end the program; remove a session that has ended"),
    ("Ctrl-L", "repaint"),
    ("? F1", "show or hide the keys"),
    ("q", "quit; the sessions keep running"),
];

impl Dash {
    /// Draws everything.
    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let cursor = self.paint(area, frame.buffer_mut());
        self.styles.recolour(frame.buffer_mut());
        if let Some(at) = cursor {
            frame.set_cursor_position(at);
        }
    }

    fn paint(&mut self, area: Rect, buf: &mut Buffer) -> Option<Position> {
        self.dirty = false;
        if area.is_empty() {
            return None;
        }
        let has_status = area.height >= 2;
        let main = Rect { height: area.height - u16::from(has_status), ..area };
        for tile in &mut self.tiles {
            tile.drawn = Rect::ZERO;
        }
        self.refilter();
        if self.shown.is_empty() {
            self.paint_empty(main, buf);
        } else if self.zoomed {
            self.paint_tile(self.place(), main, buf);
        } else {
            self.paint_grid(main, buf);
        }
        if has_status {
            self.paint_status(Rect { y: area.bottom() - 1, height: 1, ..area }, buf);
        }
        if let Mode::Help { top, .. } = self.mode {
            let (top, page) = help::draw(buf, main, HELP, "", top, self.styles);
            self.mode = Mode::Help { top, page };
            return None;
        }
        self.cursor()
    }

    fn paint_grid(&mut self, main: Rect, buf: &mut Buffer) {
        let count = self.shown.len();
        let sizes = || self.shown.iter().map(|i| self.tiles[*i].live.term().size());
        let cols = sizes().map(|size| size.cols).max().unwrap_or(80);
        let rows = sizes().map(|size| size.rows).max().unwrap_or(24);
        let grid = Grid::of(count, main, (cols, rows));
        (self.columns, self.rows) = (grid.columns, grid.shown);
        let row = self.place() / grid.columns;
        self.first_row = self.first_row.clamp((row + 1).saturating_sub(grid.shown), row);
        self.first_row = self.first_row.min(grid.rows - grid.shown);
        for nth in 0..count {
            self.paint_tile(nth, grid.tile(nth, count, self.first_row, main), buf);
        }
        let above = self.first_row * grid.columns;
        let below = count.saturating_sub((self.first_row + grid.shown) * grid.columns);
        let more = match (above, below) {
            (0, 0) => return,
            (0, _) => format!(" ▼ {below} more "),
            (_, 0) => format!(" ▲ {above} more "),
            _ => format!(" ▲ {above} more · ▼ {below} more "),
        };
        let x = main.x + main.width.saturating_sub(more.width() as u16) / 2;
        label(buf, x, main.bottom() - 1, main.width, &more, self.styles.title());
    }

    fn paint_empty(&self, area: Rect, buf: &mut Buffer) {
        let none = format!("No session matches {:?}.", self.filter);
        let lines = match self.filter.is_empty() {
            true => {
                ["No live sessions.", "", "c starts one here, tapdeck run -- PROGRAM in another terminal."]
            }
            false => [&none, "", "Esc shows all sessions."],
        };
        let width = usize::from(area.width);
        let whole = |line: &str| if line.is_empty() { vec![String::new()] } else { wrap(line, width) };
        let lines: Vec<String> = lines.iter().flat_map(|line| whole(line)).collect();
        let top = area.y + area.height.saturating_sub(lines.len() as u16) / 2;
        for (y, line) in (top..area.bottom()).zip(lines) {
            let x = area.x + area.width.saturating_sub(line.width() as u16) / 2;
            label(buf, x, y, area.width, &line, self.styles.faint());
        }
    }

    /// Paints the `nth` tile of those that are shown.
    fn paint_tile(&mut self, nth: usize, area: Rect, buf: &mut Buffer) {
        let (styles, condensed) = (self.styles, self.overview);
        let Some(i) = self.shown.get(nth).copied() else { return };
        let chosen = i == self.chosen;
        let typing = chosen && self.mode == Mode::Type;
        let Some(tile) = self.tiles.get_mut(i) else { return };
        if area.is_empty() {
            return;
        }
        let bordered = area.width >= 8 && area.height >= 3;
        let inner = if bordered {
            let style = match (typing, chosen) {
                (true, _) => styles.frame_active(),
                (_, true) => styles.frame_chosen(),
                _ => styles.frame(),
            };
            let kind = if chosen { BorderType::Thick } else { BorderType::Rounded };
            Block::bordered().border_type(kind).border_style(style).render(area, buf);
            paint_title(tile, nth, area, styles, buf);
            area.inner(ratatui::layout::Margin::new(1, 1))
        } else {
            area
        };
        tile.drawn = inner;
        let term = tile.live.term();
        let size = term.size();
        let fits = size.cols <= inner.width && size.rows <= inner.height;
        let asked = if tile.is_blocked() && !typing && !fits { question(term) } else { None };
        if condensed && !typing && !fits {
            let brush = Brush::of(term, styles.colour).dimmed(!tile.live.runs());
            overview::draw(buf, inner, term, &brush, asked.map(|rows| *rows.end()));
            return;
        }
        // Shows the part with the cursor, as a smaller window would.
        let cursor = term.cursor();
        // The part moves no farther than the cursor requires: a picture that jumps cannot be read.
        let lowest = size.rows.saturating_sub(inner.height);
        let follows = typing || (cursor.visible && !term.modes().alternate());
        let reach = (cursor.row + 1).saturating_sub(inner.height)..=cursor.row;
        let top = match tile.origin.1 {
            _ if let Some(rows) = &asked => top_for(rows, inner.height),
            top if follows => top.clamp(*reach.start(), *reach.end()),
            _ => 0,
        };
        let top = top.min(lowest);
        let left = (cursor.col + 1).saturating_sub(inner.width).min(size.cols.saturating_sub(inner.width));
        // Columns move only while the user types there.
        let left = if typing { left } else { 0 };
        tile.origin = (left, top);
        let brush = Brush::of(term, styles.colour).dimmed(!tile.live.runs());
        let width = inner.width.min(size.cols);
        for (y, line) in (inner.y..inner.bottom()).zip(term.screen().skip(usize::from(top))) {
            brush.row(buf, Rect { x: inner.x, y, width, height: 1 }, line, left, &[]);
        }
        if !typing
            && cursor.visible
            && let Some(at) = cell(tile, cursor.col, cursor.row)
        {
            buf[at].modifier.toggle(Modifier::REVERSED);
        }
    }

    fn cursor(&self) -> Option<Position> {
        let tile = self.chosen_tile().filter(|_| self.mode == Mode::Type)?;
        let cursor = tile.live.term().cursor();
        cursor.visible.then(|| cell(tile, cursor.col, cursor.row))?
    }

    fn paint_status(&self, area: Rect, buf: &mut Buffer) {
        let styles = self.styles;
        let running = self.tiles.iter().filter(|t| t.live.runs()).count();
        let blocked = self.tiles.iter().filter(|t| t.is_blocked()).count();
        let (badge, mood) = match (self.mode, &self.notice) {
            (_, Some((_, Mood::Wrong, _))) => ("!".to_owned(), Mood::Wrong),
            (Mode::Type, _) => ("⌨ TYPING".to_owned(), Mood::Driving),
            (Mode::AskEnd, _) => ("?".to_owned(), Mood::Asking),
            (Mode::Line(Purpose::Filter), _) => ("/".to_owned(), Mood::Asking),
            (Mode::Line(Purpose::Start), _) => ("new session".to_owned(), Mood::Asking),
            (Mode::Line(Purpose::Rename), _) => ("rename".to_owned(), Mood::Asking),
            _ if blocked > 0 => (format!("● {running} LIVE, {blocked} BLOCKED"), Mood::Asking),
            _ => (format!("● {running} LIVE"), Mood::Going),
        };
        let rest = draw_badge(buf, area, &badge, mood, styles);
        let only = match self.filter.is_empty() || matches!(self.mode, Mode::Line(_)) {
            true => String::new(),
            false => format!("{} of {} match {:?} · ", self.shown.len(), self.tiles.len(), self.filter),
        };
        let subject = self.tiles.iter().find(|t| t.id == self.subject);
        let text = match (self.mode, &self.notice, self.chosen_tile()) {
            (Mode::AskEnd, _, _) => {
                format!("End {}?   y yes   n no", subject.map_or("it", |tile| &tile.live.name))
            }
            (Mode::Line(_), _, _) => self.line.shown_within(usize::from(rest.width)),
            (_, Some((text, _, _)), _) => text.clone(),
            (_, None, Some(tile)) => {
                let title = tile.live.term().title();
                let dash = if title.is_empty() { "" } else { " — " };
                let state = state(tile).map_or(String::new(), |s| format!(" · {s}"));
                format!("{only}{}{dash}{title}{state} · {}", tile.live.name, holder_text(tile))
            }
            (_, None, None) => only,
        };
        let hints: &[Hint] = match self.mode {
            Mode::Type => &[("Ctrl-]", "stop typing")],
            Mode::AskEnd => &[],
            Mode::Line(Purpose::Filter) => &[("Enter", "keep"), ("Esc", "show all")],
            Mode::Line(Purpose::Start) => &[("Enter", "start"), ("Esc", "cancel")],
            Mode::Line(Purpose::Rename) => &[("Enter", "rename"), ("Esc", "cancel")],
            _ => &[
                ("Tab", "next"),
                ("z", "zoom"),
                ("Enter", "type"),
                ("/", "filter"),
                ("c", "new"),
                ("q", "quit"),
                ("?", "keys"),
            ],
        };
        // A question, a line or a notice is short-lived, and is read whole.
        let keeps_hint = self.notice.is_none() && !matches!(self.mode, Mode::AskEnd | Mode::Line(_));
        draw_text(buf, rest, &text, hints, keeps_hint, styles);
    }
}

fn paint_title(tile: &Tile, i: usize, area: Rect, styles: Styles, buf: &mut Buffer) {
    let right = match (tile.live.ended(), tile.live.gone()) {
        (Some(Exit::Code(code)), _) => format!(" exit {code} "),
        (Some(Exit::Signal(signal)), _) => format!(" signal {signal} "),
        (None, Some(_)) => " gone ".to_owned(),
        (None, None) => tile.live.holder().map_or(String::new(), |d| format!(" ⌨ {} ", shortened(d, 16))),
    };
    let room = usize::from(area.width.saturating_sub(4));
    // The state of the program tells more than the holder of the stick.
    let state = state(tile).map_or(String::new(), |s| format!(" {s} "));
    let state = if state.width() * 2 > room { String::new() } else { state };
    let right = if (right.width() + state.width()) * 2 > room { String::new() } else { right };
    let title = tile.live.term().title();
    let dash = if title.is_empty() { "" } else { " — " };
    let left = format!("{} {}{dash}{title}", i + 1, tile.live.name);
    let left = format!(" {} ", shortened(&left, room.saturating_sub(right.width() + state.width() + 2)));
    label(buf, area.x + 2, area.y, room as u16, &left, styles.title());
    let width = right.width() as u16;
    let style = if tile.live.drives() { styles.frame_active() } else { styles.marker() };
    let at = area.right().saturating_sub(2 + width);
    label(buf, at, area.y, width, &right, style);
    let width = state.width() as u16;
    label(buf, at.saturating_sub(width), area.y, width, &state, styles.state(tile.live.state()));
}

/// The state of the program, if it is known and the border does not show it already.
fn state(tile: &Tile) -> Option<AgentState> {
    Some(tile.live.state()).filter(|s| tile.live.runs() && *s != AgentState::Unknown)
}

fn holder_text(tile: &Tile) -> String {
    match (tile.live.runs(), tile.live.holder()) {
        (false, _) => tile.live.gone().unwrap_or("the program has ended").to_owned(),
        (true, Some(_)) if tile.live.drives() => "you drive".to_owned(),
        (true, Some(holder)) => format!("{holder} drives"),
        (true, None) => "not driven".to_owned(),
    }
}

/// Rows below a question that belong to it, such as the keys that it names.
const BELOW: u16 = 2;

/// The rows of the question that a blocked program asks; where it cannot be read, the lowest row in
/// use, because programs ask there.
fn question(term: &Term) -> Option<RangeInclusive<u16>> {
    let lowest = || {
        let used =
            (0..term.size().rows).rev().find(|y| term.row(*y).is_some_and(|row| !row.text().is_empty()));
        used.map(|row| row..=row)
    };
    Dialog::rows_on(term).or_else(lowest)
}

/// The first row to show of a screen, so that a question is in sight, or at least its end with what
/// can be chosen.
fn top_for(question: &RangeInclusive<u16>, height: u16) -> u16 {
    let (first, last) = (*question.start(), *question.end());
    match last - first < height {
        true => (last + 1 + BELOW).saturating_sub(height).min(first),
        false => last + 1 - height,
    }
}

/// The position at which a cell of the program's screen is drawn.
fn cell(tile: &Tile, col: u16, row: u16) -> Option<Position> {
    let (left, top) = tile.origin;
    let at = Position::new(tile.drawn.x + col.checked_sub(left)?, tile.drawn.y + row.checked_sub(top)?);
    tile.drawn.contains(at).then_some(at)
}
