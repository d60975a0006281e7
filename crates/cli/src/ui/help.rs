//! The list of keys in a box over a view. Keys and texts wrap, and the box scrolls if it is higher
//! than its area.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::{Block, BorderType, Widget};
use unicode_width::UnicodeWidthStr;

use super::canvas::{cover, label};
use super::styles::Styles;
use crate::human::wrap;

/// A row of the box: keys and a part of their text. The heading of a group has no keys.
struct Row {
    keys: String,
    text: String,
    is_heading: bool,
}

/// Draws the keys and their texts, beginning with row `top`, and `legend` below them. Returns the
/// row that it begins with, and how many are in sight.
pub(super) fn draw(
    buf: &mut Buffer,
    area: Rect,
    lines: &[(&str, &str)],
    legend: &str,
    top: usize,
    styles: Styles,
) -> (usize, usize) {
    let widest = |of: fn(&(&str, &str)) -> usize| lines.iter().map(of).max().unwrap_or(0);
    // Two borders and a blank at the left.
    let room = usize::from(area.width).saturating_sub(3);
    let keys = widest(|(keys, _)| keys.width()).min(room * 2 / 5);
    let text = widest(|(_, text)| text.width()).min(room.saturating_sub(keys + 2));
    let rows: Vec<Row> = lines.iter().flat_map(|line| wrapped(*line, keys, text)).collect();
    let width = ((keys + text + 5) as u16).min(area.width);
    let height = u16::try_from(rows.len() + 2).unwrap_or(u16::MAX).min(area.height);
    let at =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    cover(buf, at);
    let shown = usize::from(height.saturating_sub(2));
    let top = top.min(rows.len().saturating_sub(shown));
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(styles.frame_chosen())
        .title(title(top, shown, rows.len(), usize::from(width)))
        .title_style(styles.title())
        .title_bottom(legend);
    let inner = block.inner(at);
    block.render(at, buf);
    for (y, row) in (inner.y..inner.bottom()).zip(&rows[top..]) {
        let room = |x: u16| inner.right().saturating_sub(x);
        let x = inner.x + 1;
        if row.is_heading {
            label(buf, x, y, room(x), &row.text, styles.frame_chosen());
            continue;
        }
        label(buf, x, y, room(x), &row.keys, styles.title());
        let x = x + keys as u16 + 2;
        label(buf, x, y, room(x), &row.text, Style::new());
    }
    (top, shown)
}

/// The rows of a line, in columns of these widths.
fn wrapped((keys, text): (&str, &str), keys_width: usize, text_width: usize) -> Vec<Row> {
    if keys.is_empty() {
        let heading = |text| Row { keys: String::new(), text, is_heading: true };
        return wrap(text, keys_width + 2 + text_width).into_iter().map(heading).collect();
    }
    let (keys, text) = (wrap(keys, keys_width), wrap(text, text_width));
    let part = |parts: &[String], n: usize| parts.get(n).cloned().unwrap_or_default();
    let row = |n| Row { keys: part(&keys, n), text: part(&text, n), is_heading: false };
    (0..keys.len().max(text.len())).map(row).collect()
}

/// The title, with the rows in sight if there are more.
fn title(top: usize, shown: usize, all: usize, width: usize) -> String {
    if all <= shown {
        return " Keys · q to close ".to_owned();
    }
    let part = format!(" Keys {}–{} of {all} ", top + 1, top + shown);
    let long = format!("{part}· j k to move, q to close ");
    if long.width() + 2 <= width { long } else { format!("{part}· ↑ ↓ ") }
}
