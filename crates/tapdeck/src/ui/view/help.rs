//! What the keys do.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::{Block, BorderType, Widget};
use unicode_width::UnicodeWidthStr;

use crate::ui::canvas::{cover, label};
use crate::ui::theme::Theme;

const READING: &[(&str, &str)] = &[
    ("j k ↑ ↓ e y", "a line on, back"),
    ("PgDn PgUp f b", "a page on, back"),
    ("d u", "half a page on, back"),
    ("g < Home, G > End", "to the first, the last row"),
    ("H L, Alt-← Alt-→", "to the left, the right"),
    ("/ ?", "search on, back (regular expression; A-Z make case count)"),
    ("n N", "the next, the one before; Esc-u puts the lights out"),
    ("m a, ' a", "set mark a, go to it; '' goes back"),
    ("t", "as many rows as fit, or the terminal's own"),
    ("[ ]", "the snapshot before, the next"),
    ("i, click", "write an instruction behind a line"),
];
const TAPE: &[(&str, &str)] = &[
    ("space", "play, pause"),
    ("← →, Shift-← →", "5 seconds, a minute"),
    ("0-9, click", "to a tenth, to a place"),
    (". ,", "one piece of output on, back"),
    ("{ }", "the marker or snapshot before, the next"),
    ("+ -", "faster, slower"),
];
const LIVE: &[(&str, &str)] = &[
    ("Enter", "type to the program, which takes the stick"),
    ("Ctrl-]", "stop typing, which lets go of it"),
    ("F", "follow what comes"),
];
const REST: &[(&str, &str)] =
    &[("= Ctrl-G", "what this is"), ("r Ctrl-L", "paint again"), ("h F1", "this page"), ("q", "quit")];

/// The keys of a recording or of a live session, in a box over the rest.
pub(super) fn draw(buf: &mut Buffer, area: Rect, live: bool, theme: Theme) {
    let lines: Vec<_> = [READING, if live { LIVE } else { TAPE }, REST].concat();
    let keys = lines.iter().map(|(k, _)| k.width()).max().unwrap_or(0) as u16;
    let text = lines.iter().map(|(_, t)| t.width()).max().unwrap_or(0) as u16;
    let width = (keys + text + 6).min(area.width);
    let height = (lines.len() as u16 + 2).min(area.height);
    let at =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    cover(buf, at);
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(theme.frame_chosen())
        .title(" Keys ")
        .title_style(theme.title())
        .title_bottom(" ◆ snapshot  ▾ marker  ✎ instruction ");
    let inner = block.inner(at);
    block.render(at, buf);
    for (y, (key, text)) in (inner.y..inner.bottom()).zip(lines) {
        label(buf, inner.x + 1, y, inner.width.saturating_sub(1), key, theme.title());
        let x = inner.x + keys + 3;
        label(buf, x, y, inner.right().saturating_sub(x), text, ratatui::style::Style::new());
    }
}
