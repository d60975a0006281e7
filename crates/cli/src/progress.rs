//! A progress line on standard error, for long work and a standard error that is a terminal.

use std::io::{IsTerminal, Write};

use tapdeck_host::Clock;

/// Shorter work shows no line. The second constant is the time between two drawings.
const PATIENCE_NS: u64 = 500_000_000;
const EVERY_NS: u64 = 100_000_000;
const WIDTH: usize = 30;

/// Work in progress.
pub(crate) struct Progress {
    what: &'static str,
    clock: Clock,
    due_ns: u64,
    /// Calls since the clock was last read.
    calls: u32,
    watched: bool,
    drawn: bool,
}

impl Progress {
    /// The progress line of this work, which is not drawn yet.
    pub(crate) fn new(what: &'static str) -> Self {
        let watched = std::io::stderr().is_terminal();
        Self { what, clock: Clock::start(), due_ns: PATIENCE_NS, calls: 0, watched, drawn: false }
    }

    /// Draws the line if it is due: `done` of `total` bytes (0 if unknown) are done. Cheap enough
    /// to be called for every block.
    pub(crate) fn tick(&mut self, done: u64, total: u64) {
        self.calls += 1;
        if !self.watched || self.calls < 64 {
            return;
        }
        self.calls = 0;
        let now = self.clock.now().mono.as_nanos();
        if now < self.due_ns {
            return;
        }
        self.due_ns = now + EVERY_NS;
        self.drawn = true;
        // A progress line that cannot be written is not worth an error.
        let line = line(self.what, done, total, now);
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

fn line(what: &str, done: u64, total: u64, now_ns: u64) -> String {
    let amount = crate::human::bytes(done);
    if total == 0 {
        return format!("{what} {amount}");
    }
    let share = (done as f64 / total as f64).min(1.0);
    let full = (share * WIDTH as f64) as usize;
    let left = if share > 0.0 { now_ns as f64 / 1e9 * (1.0 - share) / share } else { 0.0 };
    let left = crate::human::clock(std::time::Duration::from_secs_f64(left.clamp(0.0, 1e9)));
    let bar = format!("{}{}", "━".repeat(full), "╌".repeat(WIDTH - full));
    format!("{what} {bar} {:3.0}% {amount}, {left} left", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn the_line_says_how_far_and_how_long() {
        assert!(line("converting", 50, 100, 2_000_000_000).ends_with(" 50% 50 bytes, 0:02 left"));
        assert_eq!(line("converting", 1_500, 0, 1), "converting 1.5 kB");
        assert!(line("x", 0, 100, 1).contains("  0%") && line("x", 200, 100, 1).contains("100%"));
    }
}
