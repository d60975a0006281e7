//! What `play` writes over the picture: the status line and the help.

use std::ops::Range;

use tapdeck_cli::keymap::Keymap;
use tapdeck_core::Time;
use tapdeck_term::{Size, text_width};

use crate::human;

/// What the status line shows.
pub(super) struct Status<'a> {
    pub(super) at: Time,
    pub(super) end: Time,
    pub(super) paused: bool,
    pub(super) speed: f64,
    /// The key that shows the keys.
    pub(super) help: &'a str,
    /// A message in place of the bar.
    pub(super) notice: Option<&'a str>,
    /// The part in sight, as rows and columns, and the whole, if they differ.
    pub(super) cut: Option<((u16, u16), Size)>,
}

impl Status<'_> {
    /// The line, as wide as the terminal.
    pub(super) fn line(&self, cols: u16) -> String {
        let time = |at: Time| human::clock(at.since_start());
        let sign = if self.paused { "❚❚" } else { "▶ " };
        let speed = if (self.speed - 1.0).abs() < 1e-9 { String::new() } else { format!(" {}x", self.speed) };
        let cols = usize::from(cols);
        let short = format!(" {sign} {} ", time(self.at));
        let long = format!(" {sign} {} / {}{speed} ", time(self.at), time(self.end));
        // That a part is missing, and how to see it, matters more than the length.
        let lefts = if self.cut.is_some() { vec![&long, &short] } else { vec![&long] };
        let notice = self.notice.map_or(0, |notice| text_width(notice) + 1);
        let fits = |(left, hint): &(&str, &str), notice| text_width(left) + notice + text_width(hint) <= cols;
        let hints = self.hints();
        let hints = hints.iter().map(String::as_str);
        let pairs: Vec<(&str, &str)> =
            hints.flat_map(|hint| lefts.iter().map(move |left| (left.as_str(), hint))).collect();
        // A notice comes before the hints: they are as long as it leaves room for.
        let whole = pairs.iter().find(|pair| fits(pair, notice));
        let best = whole.or_else(|| pairs.iter().rfind(|pair| fits(pair, 0)));
        let (left, right) = best.copied().unwrap_or((&long, ""));
        let room = cols.saturating_sub(text_width(left) + text_width(right));
        let middle = match self.notice {
            Some(notice) => {
                let mut text = notice.to_owned();
                while text_width(&text) + 1 > room && text.pop().is_some() {}
                let blanks = room.saturating_sub(text_width(&text));
                format!("{text}{}", " ".repeat(blanks))
            }
            None => {
                let share = self.at.share_of(self.end);
                let done = ((room as f64 * share) as usize).min(room);
                format!("{}{}", "━".repeat(done), "╌".repeat(room - done))
            }
        };
        let mut line = format!("{left}{middle}{right}");
        while text_width(&line) > cols && line.pop().is_some() {}
        line
    }

    /// What stands at the right, the longest first.
    fn hints(&self) -> Vec<String> {
        let help = self.help;
        let Some(((rows, cols), Size { cols: all_cols, rows: all_rows })) = self.cut else {
            return vec![format!(" {help} keys ")];
        };
        let part = format!("{cols}×{rows} of {all_cols}×{all_rows}");
        vec![
            format!(" {part} · ↑ ↓ Alt-← Alt-→ move · {help} keys "),
            format!(" of {all_cols}×{all_rows} · ↑↓ Alt-←→ · {help} keys "),
            format!(" {part} · {help} keys "),
            format!(" {part} "),
            format!(" of {all_cols}×{all_rows} "),
            format!("of {all_cols}×{all_rows}"),
        ]
    }
}

/// The keys in a box over the picture, from line `top` on; returns the bytes, the rows that it
/// covers, and the line that it begins with. Two columns take half the rows, where they fit.
pub(super) fn help(keymap: &Keymap, cols: u16, rows: u16, top: usize) -> (Vec<u8>, Range<u16>, usize) {
    let entries = keymap.help(|_| true);
    // The status line may be in the last row.
    let (cols, rows) = (usize::from(cols), usize::from(rows.saturating_sub(1)));
    let keys = entries.iter().map(|(keys, _)| text_width(keys)).max().unwrap_or(0);
    let text = entries.iter().map(|(_, text)| text_width(text)).max().unwrap_or(0);
    let column = keys + text + 4;
    let columns = if entries.len() + 2 > rows && 2 * column + 2 <= cols { 2 } else { 1 };
    let height = entries.len().div_ceil(columns);
    let cell = |(key, text): &(String, &str)| {
        let cell = format!(" {key}{}{text}", " ".repeat(keys + 2 - text_width(key)));
        format!("{cell}{}", " ".repeat(column - text_width(&cell)))
    };
    let line = |n: usize| entries.iter().skip(n).step_by(height).map(cell).collect::<String>();
    let width = (columns * column + 2).min(cols);
    let inner = width.saturating_sub(2);
    let shown = height.min(rows.saturating_sub(2));
    let top = top.min(height - shown);
    let first = rows.saturating_sub(shown + 2) / 2;
    let left = (cols - width) / 2 + 1;
    let mut title = match shown < height {
        true => format!(" Keys {}–{} of {height} · ↓ more ", top + 1, top + shown),
        false => " Keys ".to_owned(),
    };
    while text_width(&title) > inner && title.pop().is_some() {}
    let rule = |n: usize| "─".repeat(n);
    let mut out = format!(
        "\x1b[m\x1b[{};{left}H┌{title}{}┐",
        first + 1,
        rule(inner.saturating_sub(text_width(&title)))
    );
    for (i, mut line) in (top..top + shown).map(line).enumerate() {
        while text_width(&line) > inner && line.pop().is_some() {}
        let rest = " ".repeat(inner - text_width(&line));
        out += &format!("\x1b[{};{left}H│{line}{rest}│", first + 2 + i);
    }
    out += &format!("\x1b[{};{left}H└{}┘", first + 2 + shown, rule(inner));
    let end = (first + 2 + shown).min(rows);
    (out.into_bytes(), first as u16..end as u16, top)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_line_is_as_wide_as_the_terminal() {
        let whole = Status {
            at: Time::from_secs(30),
            end: Time::from_secs(60),
            paused: true,
            speed: 2.0,
            help: "?",
            notice: None,
            cut: None,
        };
        for cols in [0, 1, 5, 40, 80, 300] {
            let cut = Some(((11, 40), Size::new(80, 24)));
            for status in
                [Status { ..whole }, Status { cut, ..whole }, Status { notice: Some("not found"), ..whole }]
            {
                let line = status.line(cols);
                assert_eq!(text_width(&line), usize::from(cols), "{line:?}");
            }
        }
        let cut = Status { cut: Some(((11, 40), Size::new(80, 24))), ..whole };
        assert!(cut.line(40).contains("of 80×24"), "{}", cut.line(40));
        assert!(cut.line(100).contains("Alt-←"), "{}", cut.line(100));
        // The keys that move the part in sight are named on narrow terminals, too.
        let tour = Status { cut: Some(((11, 40), Size::new(58, 19))), ..whole };
        assert!(tour.line(40).contains("of 58×19 · ↑↓ Alt-←→ · ? keys"), "{}", tour.line(40));
        let noticed = Status { notice: Some("not found"), ..tour };
        assert!(noticed.line(40).contains("not found"), "{}", noticed.line(40));
        assert!(Status { help: "h", ..whole }.line(80).ends_with(" h keys "));
        let none = Status { end: Time::ZERO, at: Time::ZERO, paused: false, speed: 1.0, ..whole };
        assert!(none.line(40).contains("0:00 / 0:00"));
    }

    #[test]
    fn the_help_fits_small_terminals_and_scrolls() {
        let keymap = Keymap::default();
        for (cols, rows) in [(120, 50), (40, 12), (10, 4), (3, 2), (1, 1)] {
            let (_, covered, _) = help(&keymap, cols, rows, 0);
            assert!(covered.end <= rows, "{cols}x{rows}: {covered:?}");
        }
        // Every key is in sight on a terminal of the usual size, and the status line is free.
        let (all, covered, _) = help(&keymap, 80, 24, 0);
        let all = String::from_utf8_lossy(&all).into_owned();
        assert!(covered.end < 24 && !all.contains("more"), "{covered:?} {all}");
        for (keys, text) in keymap.help(|_| true) {
            assert!(all.contains(&format!(" {keys} ")) && all.contains(text), "{keys}: {all}");
        }
        let (end, _, top) = help(&keymap, 60, 12, usize::MAX);
        assert!(top > 0 && String::from_utf8_lossy(&end).contains("quit"));
    }
}
