//! Times that cannot be: one damaged bit in a record's time makes it centuries late. A wall clock
//! may be set, and then later times go on from there; a single time that is far ahead of the one
//! before and of the one behind it is damage, and the one behind it is a better guess.

/// What is less late than this may be a clock that was set.
pub(super) const LEAP: u64 = 60_000_000_000;

/// What is later than this behind all others is no pause: a last time has none behind it to prove
/// it wrong.
pub(super) const NEVER: u64 = 366 * 86_400 * 1_000_000_000;

/// Whether a time of the first block is far before what its header says, which one behind bears
/// out.
pub(super) fn falls(header: u64, ts: u64, behind: u64) -> bool {
    header.saturating_sub(ts) > LEAP && behind >= header && behind - header < header - ts
}

/// Whether the time of a record leaps ahead of those before and behind it.
pub(crate) fn leaps(before: u64, ts: u64, behind: u64) -> bool {
    behind >= before
        && ts.saturating_sub(behind) > LEAP
        // Most of the leap was undone: a clock set back a little after a long rest is none.
        && ts - before > (behind - before).saturating_mul(2)
}

#[cfg(test)]
mod tests {
    use super::leaps;

    #[test]
    fn a_leap_is_told_from_a_clock_that_was_set() {
        const S: u64 = 1_000_000_000;
        const H: u64 = 3_600 * S;
        for (before, ts, behind, leap) in [
            (10, 1 << 63, 20, true),
            (10, 1 << 63, 10, true),
            (0, 2 * H, 3 * S, true),
            (0, 10 * S, 5 * S, false),
            (5 * H, 6 * H, 4 * H, false),
            (0, 8 * H, 8 * H - 120 * S, false),
            (0, 8 * H, 9 * H, false),
            (8 * H, H, 2 * H, false),
        ] {
            assert_eq!(leaps(before, ts, behind), leap, "{before} {ts} {behind}");
        }
    }
}
