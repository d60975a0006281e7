//! The dashboard's picture: tiles with their titles, and a status line.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::widgets::{Block, BorderType, Widget};
use tapdeck_core::Exit;
use tapdeck_core::turns::AgentState;
use unicode_width::UnicodeWidthStr;

use super::grid::Grid;
use super::{Dash, Mode, Tile, mini};
use crate::human::shortened;
use crate::ui::canvas::{Brush, cover, label};
use crate::ui::theme::{Mood, Theme};

const HELP: &[(&str, &str)] = &[
    ("Tab ← ↑ ↓ → 1-9, click", "choose a session"),
    ("b", "choose the next that waits for an answer"),
    ("z space, second click", "as large as the screen, and back"),
    ("Enter", "type to it, which takes the stick; Ctrl-] stops and lets go"),
    ("t r", "take the stick without typing, let go of it"),
    ("s", "the whole screen in small, or a part of it as it is"),
    ("x", "end the program; remove one that has ended"),
    ("Ctrl-L", "paint again"),
    ("q", "quit: the sessions go on"),
];

impl Dash {
    /// Draws everything.
    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let cursor = self.paint(area, frame.buffer_mut());
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
        let count = self.tiles.len();
        if count == 0 {
            self.paint_empty(main, buf);
        } else if self.zoomed {
            self.paint_tile(self.chosen, main, buf);
        } else {
            let shape = |f: fn(&Tile) -> u16| self.tiles.iter().map(f).max().unwrap_or(80);
            let shape = (shape(|t| t.live.term().size().cols), shape(|t| t.live.term().size().rows));
            let grid = Grid::of(count, main, shape);
            self.columns = grid.columns;
            let row = self.chosen / grid.columns;
            self.first_row = self.first_row.clamp((row + 1).saturating_sub(grid.shown), row);
            for i in 0..count {
                self.paint_tile(i, grid.tile(i, count, self.first_row, main), buf);
            }
        }
        if has_status {
            self.paint_status(Rect { y: area.bottom() - 1, height: 1, ..area }, buf);
        }
        if self.mode == Mode::Help {
            self.paint_help(main, buf);
            return None;
        }
        self.cursor()
    }

    fn paint_empty(&self, area: Rect, buf: &mut Buffer) {
        let lines = ["No live sessions.", "", "Start one in another terminal: tapdeck run -- PROGRAM"];
        let top = area.y + area.height.saturating_sub(lines.len() as u16) / 2;
        for (y, line) in (top..area.bottom()).zip(lines) {
            let x = area.x + area.width.saturating_sub(line.width() as u16) / 2;
            label(buf, x, y, area.width, line, self.theme.faint());
        }
    }

    fn paint_tile(&mut self, i: usize, area: Rect, buf: &mut Buffer) {
        let (theme, scaled) = (self.theme, self.scaled);
        let chosen = i == self.chosen;
        let typing = chosen && self.mode == Mode::Type;
        let Some(tile) = self.tiles.get_mut(i) else { return };
        if area.is_empty() {
            return;
        }
        let bordered = area.width >= 8 && area.height >= 3;
        let inner = if bordered {
            let style = match (typing, chosen) {
                (true, _) => theme.frame_active(),
                (_, true) => theme.frame_chosen(),
                _ => theme.frame(),
            };
            let kind = if chosen { BorderType::Thick } else { BorderType::Rounded };
            Block::bordered().border_type(kind).border_style(style).render(area, buf);
            paint_title(tile, i, area, theme, buf);
            area.inner(ratatui::layout::Margin::new(1, 1))
        } else {
            area
        };
        tile.drawn = inner;
        let term = tile.live.term();
        let size = term.size();
        if scaled && (size.cols > inner.width || size.rows > inner.height) {
            mini::draw(buf, inner, term, theme.colour);
            return;
        }
        // Shows the part with the cursor, as a smaller window would.
        let cursor = term.cursor();
        // The part moves no farther than the cursor requires: a picture that jumps cannot be read.
        let lowest = size.rows.saturating_sub(inner.height);
        let follows = typing || (cursor.visible && !term.modes().alternate());
        let reach = (cursor.row + 1).saturating_sub(inner.height)..=cursor.row;
        let top = match tile.origin.1 {
            top if follows => top.clamp(*reach.start(), *reach.end()),
            _ => 0,
        };
        let top = top.min(lowest);
        let left = (cursor.col + 1).saturating_sub(inner.width).min(size.cols.saturating_sub(inner.width));
        // Columns move only while the user types there.
        let left = if typing { left } else { 0 };
        tile.origin = (left, top);
        let brush = Brush::of(term, theme.colour).dimmed(!tile.live.runs());
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
        let tile = self.tiles.get(self.chosen).filter(|_| self.mode == Mode::Type)?;
        let cursor = tile.live.term().cursor();
        cursor.visible.then(|| cell(tile, cursor.col, cursor.row))?
    }

    fn paint_status(&self, area: Rect, buf: &mut Buffer) {
        let theme = self.theme;
        buf.set_style(area, theme.status());
        let running = self.tiles.iter().filter(|t| t.live.runs()).count();
        let blocked = self.tiles.iter().filter(|t| t.is_blocked()).count();
        let (badge, mood) = match (self.mode, &self.notice) {
            (_, Some((_, Mood::Wrong, _))) => ("!".to_owned(), Mood::Wrong),
            (Mode::Type, _) => ("⌨ TYPING".to_owned(), Mood::Driving),
            (Mode::AskEnd, _) => ("?".to_owned(), Mood::Asking),
            _ if blocked > 0 => (format!("● {running} LIVE, {blocked} BLOCKED"), Mood::Asking),
            _ => (format!("● {running} LIVE"), Mood::Going),
        };
        let text = match (self.mode, &self.notice, self.tiles.get(self.chosen)) {
            (Mode::AskEnd, _, Some(tile)) => format!("End {}?   y yes   n no", tile.live.name),
            (_, Some((text, _, _)), _) => text.clone(),
            (_, None, Some(tile)) => {
                let title = tile.live.term().title();
                let dash = if title.is_empty() { "" } else { " — " };
                let state = state(tile).map_or(String::new(), |s| format!(" · {s}"));
                format!("{}{dash}{title}{state} · {}", tile.live.name, holder_text(tile))
            }
            (_, None, None) => String::new(),
        };
        let mut x = area.x;
        x += label(buf, x, area.y, area.width, &format!(" {badge} "), theme.badge(mood)) + 1;
        let room = area.right().saturating_sub(x);
        let used = label(buf, x, area.y, room, &shortened(&text, usize::from(room)), theme.status());
        let hints: &[(&str, &str)] = match self.mode {
            Mode::Type => &[("Ctrl-]", "stop typing")],
            Mode::AskEnd => &[],
            _ => &[("Tab", "next"), ("Enter", "type"), ("z", "zoom"), ("?", "help"), ("q", "quit")],
        };
        let width: usize = hints.iter().map(|(k, t)| k.width() + t.width() + 3).sum();
        let mut at = area.right().saturating_sub(width as u16);
        if x + used < at {
            for (key, text) in hints {
                at += label(buf, at, area.y, area.right() - at, key, theme.key());
                at += label(buf, at, area.y, area.right() - at, &format!(" {text}  "), theme.status());
            }
        }
    }

    fn paint_help(&self, area: Rect, buf: &mut Buffer) {
        let keys = HELP.iter().map(|(k, _)| k.width()).max().unwrap_or(0) as u16;
        let text = HELP.iter().map(|(_, t)| t.width()).max().unwrap_or(0) as u16;
        let (width, height) = ((keys + text + 6).min(area.width), (HELP.len() as u16 + 2).min(area.height));
        let x = area.x + (area.width - width) / 2;
        let y = area.y + (area.height - height) / 2;
        let at = Rect { x, y, width, height };
        cover(buf, at);
        let block =
            Block::bordered().border_type(BorderType::Rounded).border_style(self.theme.frame_chosen());
        let block = block.title(" Keys ").title_style(self.theme.title());
        let inner = block.inner(at);
        block.render(at, buf);
        for (y, (key, text)) in (inner.y..inner.bottom()).zip(HELP) {
            label(buf, inner.x + 1, y, inner.width.saturating_sub(1), key, self.theme.title());
            let x = inner.x + keys + 3;
            label(buf, x, y, inner.right().saturating_sub(x), text, Style::new());
        }
    }
}

fn paint_title(tile: &Tile, i: usize, area: Rect, theme: Theme, buf: &mut Buffer) {
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
    label(buf, area.x + 2, area.y, room as u16, &left, theme.title());
    let width = right.width() as u16;
    let style = if tile.live.drives() { theme.frame_active() } else { theme.marker() };
    let at = area.right().saturating_sub(2 + width);
    label(buf, at, area.y, width, &right, style);
    let width = state.width() as u16;
    label(buf, at.saturating_sub(width), area.y, width, &state, theme.state(tile.live.state()));
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

/// The position at which a cell of the program's screen is drawn.
fn cell(tile: &Tile, col: u16, row: u16) -> Option<Position> {
    let (left, top) = tile.origin;
    let at = Position::new(tile.drawn.x + col.checked_sub(left)?, tile.drawn.y + row.checked_sub(top)?);
    tile.drawn.contains(at).then_some(at)
}
