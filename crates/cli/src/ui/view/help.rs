//! The help page: the keys and their commands, from the tables of the lookup. It scrolls if it is
//! longer than the screen.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::{Block, BorderType, Widget};
use unicode_width::UnicodeWidthStr;

use super::commands::KeyTables;
use crate::keymap::Keymap;
use crate::ui::canvas::{cover, label};
use crate::ui::styles::Styles;

/// The keys of a recording or of a live session, in a box over the rest, beginning with line `top`;
/// returns the line that it begins with, and how many are in sight.
pub(super) fn draw(
    buf: &mut Buffer,
    area: Rect,
    (tables, keymap): (KeyTables, &Keymap),
    top: usize,
    styles: Styles,
) -> (usize, usize) {
    let lines = tables.help(keymap);
    let keys = lines.iter().map(|(k, _)| k.width()).max().unwrap_or(0) as u16;
    let text = lines.iter().map(|(_, t)| t.width()).max().unwrap_or(0) as u16;
    let width = (keys + text + 6).min(area.width);
    let height = (lines.len() as u16 + 2).min(area.height);
    let at =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    cover(buf, at);
    let shown = usize::from(height.saturating_sub(2));
    let top = top.min(lines.len().saturating_sub(shown));
    let title = match lines.len() > shown {
        true => format!(" Keys {}–{} of {} · j k to move, q to close ", top + 1, top + shown, lines.len()),
        false => " Keys · q to close ".to_owned(),
    };
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(styles.frame_chosen())
        .title(title)
        .title_style(styles.title())
        .title_bottom(" ◆ snapshot  ▾ marker  ✎ instruction ");
    let inner = block.inner(at);
    block.render(at, buf);
    for (y, (key, text)) in (inner.y..inner.bottom()).zip(lines.into_iter().skip(top)) {
        let room = |x: u16| inner.right().saturating_sub(x);
        if key.is_empty() {
            label(buf, inner.x + 1, y, room(inner.x + 1), text, styles.frame_chosen());
            continue;
        }
        label(buf, inner.x + 1, y, room(inner.x + 1).min(keys), &key, styles.title());
        let x = inner.x + keys + 3;
        label(buf, x, y, room(x), text, Style::new());
    }
    (top, shown)
}
