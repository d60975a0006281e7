//! The status line of a view: the state in a word, a text, and hints about keys.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use super::canvas::label;
use super::styles::{Mood, Styles};
use crate::human::shortened;

/// A key and what it does.
pub(super) type Hint = (&'static str, &'static str);

/// Draws the line with the state at its left. Returns the area of the rest.
pub(super) fn draw_badge(buf: &mut Buffer, area: Rect, badge: &str, mood: Mood, styles: Styles) -> Rect {
    buf.set_style(area, styles.status());
    let used = label(buf, area.x, area.y, area.width, &format!(" {badge} "), styles.badge(mood)) + 1;
    let used = used.min(area.width);
    Rect { x: area.x + used, width: area.width - used, ..area }
}

/// Draws the text, and as many hints as fit: the last ones, which are the most important. With
/// `keeps_hint`, the text leaves room for the very last.
pub(super) fn draw_text(
    buf: &mut Buffer,
    area: Rect,
    text: &str,
    hints: &[Hint],
    keeps_hint: bool,
    styles: Styles,
) {
    let width = |hints: &[Hint]| -> usize { hints.iter().map(|(k, t)| k.width() + t.width() + 3).sum() };
    let room = usize::from(area.width);
    let kept = hints.last().filter(|_| keeps_hint).map_or(0, |hint| width(&[*hint]) + 1);
    let kept = if kept * 2 > room { 0 } else { kept };
    let text = shortened(text, room - kept);
    let used = usize::from(label(buf, area.x, area.y, area.width, &text, styles.status()));
    let rest = room.saturating_sub(used + 1);
    let first = (0..hints.len()).find(|from| width(&hints[*from..]) <= rest).unwrap_or(hints.len());
    let mut at = area.right().saturating_sub(width(&hints[first..]) as u16);
    for (key, text) in &hints[first..] {
        at += label(buf, at, area.y, area.right() - at, key, styles.key());
        at += label(buf, at, area.y, area.right() - at, &format!(" {text}  "), styles.status());
    }
}
