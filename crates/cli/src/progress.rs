//! A progress line on standard error, for long work and a standard error that is a terminal.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use tapdeck_host::Clock;

/// Shorter work shows no line. The second constant is the time between two drawings.
const PATIENCE: Duration = Duration::from_millis(500);
const EVERY: Duration = Duration::from_millis(100);
const WIDTH: usize = 30;

/// Work in progress.
pub(crate) struct Progress {
    what: &'static str,
    clock: Clock,
    due: Duration,
    /// Calls since the clock was last read.
    calls: u32,
    watched: bool,
    drawn: bool,
}

impl Progress {
    /// The progress line of this work, which is not drawn yet.
    pub(crate) fn new(what: &'static str) -> Self {
        let watched = std::io::stderr().is_terminal();
        Self { what, clock: Clock::start(), due: PATIENCE, calls: 0, watched, drawn: false }
    }

    /// Draws the line if it is due: `done` of `total` bytes (0 if unknown) are done. Cheap enough
    /// to be called for every block.
    pub(crate) fn tick(&mut self, done: u64, total: u64) {
        self.calls += 1;
        if !self.watched || self.calls < 64 {
            return;
        }
        self.calls = 0;
        let spent = self.clock.elapsed();
        if spent < self.due {
            return;
        }
        self.due = spent + EVERY;
        self.drawn = true;
        let line = line(self.what, done, total, spent);
        // A progress line that cannot be written is not worth an error.
        let _ = write!(std::io::stderr().lock(), "\r{line}\x1b[K");
    }

    /// Removes the line.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            // A line that cannot be removed is not worth an error, either.
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

fn line(what: &str, done: u64, total: u64, spent: Duration) -> String {
    let amount = crate::human::bytes(done);
    if total == 0 {
        return format!("{what} {amount}");
    }
    let share = (done as f64 / total as f64).min(1.0);
    let full = (share * WIDTH as f64) as usize;
    let left = if share > 0.0 { spent.as_secs_f64() * (1.0 - share) / share } else { 0.0 };
    let left = crate::human::clock(Duration::from_secs_f64(left.clamp(0.0, 1e9)));
    let bar = format!("{}{}", "━".repeat(full), "╌".repeat(WIDTH - full));
    format!("{what} {bar} {:3.0}% {amount}, {left} left", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_and_how_long() {
        let line = |what, done, total| line(what, done, total, Duration::from_secs(2));
        assert!(line("converting", 50, 100).ends_with(" 50% 50 bytes, 0:02 left"));
        assert_eq!(line("converting", 1_500, 0), "converting 1.5 kB");
        assert!(line("x", 0, 100).contains("  0%") && line("x", 200, 100).contains("100%"));
    }
}
