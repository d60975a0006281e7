//! The line at the bottom that shows where a recording stands, with its markers and snapshots on
//! it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tapdeck_core::Time;
use tapdeck_tape::{Moment, MomentKind};

use crate::human;
use crate::ui::canvas::label;
use crate::ui::styles::Styles;

/// What the line shows.
pub(super) struct Timeline<'a> {
    /// Where the recording stands.
    pub(super) at: Time,
    /// Where it ends.
    pub(super) end: Time,
    /// How fast it plays.
    pub(super) speed: f64,
    /// Markers and snapshots.
    pub(super) moments: &'a [Moment],
}

impl Timeline<'_> {
    /// Draws the line. Returns the area of the bar, for clicks.
    pub(super) fn draw(&self, buf: &mut Buffer, area: Rect, styles: Styles) -> Rect {
        let time = |at: Time| human::clock(at.since_start());
        let times = format!(" {} / {} ", time(self.at), time(self.end));
        let speed = format!(" {}× ", self.speed);
        let left = label(buf, area.x, area.y, area.width, &times, styles.title());
        let right = (speed.chars().count() as u16).min(area.width - left);
        label(buf, area.right() - right, area.y, right, &speed, styles.faint());
        let bar = Rect { x: area.x + left, width: area.width - left - right, ..area };
        if bar.is_empty() {
            return bar;
        }
        let here = self.column(self.at, bar.width);
        for i in 0..bar.width {
            let (symbol, style) = if i < here {
                ("━", styles.passed())
            } else if i == here {
                ("●", styles.passed())
            } else {
                ("─", styles.faint())
            };
            label(buf, bar.x + i, bar.y, 1, symbol, style);
        }
        let mut last = None;
        // Snapshots are drawn over markers in the same column.
        for snapshots in [false, true] {
            for moment in self.moments {
                let is_snapshot = matches!(moment.kind, MomentKind::Snapshot(_));
                let at = self.column(moment.time, bar.width);
                if is_snapshot != snapshots || at == here || last == Some((at, is_snapshot)) {
                    continue;
                }
                last = Some((at, is_snapshot));
                let (symbol, style) =
                    if is_snapshot { ("◆", styles.snapshot()) } else { ("▾", styles.marker()) };
                label(buf, bar.x + at, bar.y, 1, symbol, style);
            }
        }
        bar
    }

    fn column(&self, at: Time, width: u16) -> u16 {
        (at.share_of(self.end) * f64::from(width - 1)).round() as u16
    }
}

/// The share of the whole that a column of the bar stands for.
pub(super) fn share(bar: Rect, column: u16) -> f64 {
    let last = f64::from(bar.width.saturating_sub(1).max(1));
    (f64::from(column.saturating_sub(bar.x)) / last).min(1.0)
}
