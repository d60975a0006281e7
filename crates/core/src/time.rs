//! Points in time, as types: a time of a session is not a time of day, and neither is a number of
//! bytes. Lengths of time are [`Duration`]s.
//!
//! All arithmetic saturates: it ends at the first and at the last time that can be written.

use core::time::Duration;
use std::ops::{Add, AddAssign, Sub};

/// A point in time of a session or a recording, counted from its start on a clock that never goes
/// back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// A point in time of the wall clock, counted from the start of 1970 in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WallTime(u64);

/// Returns the nanoseconds of a duration, at most `u64::MAX` (584 years).
const fn nanos(duration: Duration) -> u64 {
    let nanos = duration.as_nanos();
    if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 }
}

macro_rules! point_in_time {
    ($name:ident) => {
        impl $name {
            /// The first point in time.
            pub const ZERO: Self = Self(0);
            /// The last point in time.
            pub const MAX: Self = Self(u64::MAX);

            /// Makes one from a count of nanoseconds.
            pub const fn from_nanos(nanos: u64) -> Self {
                Self(nanos)
            }

            /// Makes one from a count of microseconds.
            pub const fn from_micros(micros: u64) -> Self {
                Self(micros.saturating_mul(1_000))
            }

            /// Makes one from a count of milliseconds.
            pub const fn from_millis(millis: u64) -> Self {
                Self(millis.saturating_mul(1_000_000))
            }

            /// Makes one from a count of seconds.
            pub const fn from_secs(secs: u64) -> Self {
                Self(secs.saturating_mul(1_000_000_000))
            }

            /// Returns the count of nanoseconds.
            pub const fn as_nanos(self) -> u64 {
                self.0
            }

            /// Returns the count of whole microseconds.
            pub const fn as_micros(self) -> u64 {
                self.0 / 1_000
            }

            /// Returns the count of whole milliseconds.
            pub const fn as_millis(self) -> u64 {
                self.0 / 1_000_000
            }

            /// Returns the count of whole seconds.
            pub const fn as_secs(self) -> u64 {
                self.0 / 1_000_000_000
            }

            /// Returns the count of seconds with its fraction.
            pub const fn as_secs_f64(self) -> f64 {
                Duration::from_nanos(self.0).as_secs_f64()
            }

            /// Returns the time that passed since `earlier`, or zero if that is later.
            pub const fn since(self, earlier: Self) -> Duration {
                Duration::from_nanos(self.0.saturating_sub(earlier.0))
            }

            /// Returns the time between two points, whichever is earlier.
            pub const fn abs_diff(self, other: Self) -> Duration {
                Duration::from_nanos(self.0.abs_diff(other.0))
            }
        }

        impl Add<Duration> for $name {
            type Output = Self;

            fn add(self, later: Duration) -> Self {
                Self(self.0.saturating_add(nanos(later)))
            }
        }

        impl AddAssign<Duration> for $name {
            fn add_assign(&mut self, later: Duration) {
                *self = *self + later;
            }
        }

        impl Sub<Duration> for $name {
            type Output = Self;

            fn sub(self, earlier: Duration) -> Self {
                Self(self.0.saturating_sub(nanos(earlier)))
            }
        }
    };
}

point_in_time!(Time);
point_in_time!(WallTime);

impl WallTime {
    /// The date and the time of day in UTC, as `2026-03-04 05:06:07`.
    pub fn utc(self) -> String {
        let secs = self.as_secs();
        let (days, rest) = (secs / 86_400, secs % 86_400);
        // Days to a date in the Gregorian calendar, counted in 400-year eras that begin on 1 March.
        let z = days + 719_468;
        let (era, day_of_era) = (z / 146_097, z % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted + 2) / 5 + 1;
        let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
        let year = year_of_era + era * 400 + u64::from(month <= 2);
        let (h, m, s) = (rest / 3_600, rest / 60 % 60, rest % 60);
        format!("{year:04}-{month:02}-{day:02} {h:02}:{m:02}:{s:02}")
    }
}

impl Time {
    /// Returns the time that passed since the start.
    pub const fn since_start(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// Returns the time so many nanoseconds later, or earlier for a negative number.
    #[must_use]
    pub const fn shifted(self, nanos: i64) -> Self {
        Self(self.0.saturating_add_signed(nanos))
    }

    /// Returns the time that has passed at a pace, or a share of the whole. Negative factors and
    /// what is no number give the start.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        // Float to integer saturates.
        Self((self.0 as f64 * factor) as u64)
    }

    /// Returns which share of the time until `end` has passed: 1 behind it, and where it is zero.
    pub fn share_of(self, end: Self) -> f64 {
        if end.0 == 0 { 1.0 } else { (self.0 as f64 / end.0 as f64).min(1.0) }
    }
}

impl From<Duration> for Time {
    /// Returns the time so long after the start.
    fn from(since_start: Duration) -> Self {
        Self(nanos(since_start))
    }
}

impl From<Time> for Duration {
    /// Returns the time since the start.
    fn from(time: Time) -> Self {
        time.since_start()
    }
}

/// A moment. The owner of the clock reads it once a loop turn and passes it on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Stamp {
    /// When, since the session started.
    pub mono: Time,
    /// When, on the wall clock. Derived from the wall clock at the session's start plus `mono`, so
    /// that a step of the wall clock cannot reorder a recording.
    pub wall: WallTime,
}

impl Add<Duration> for Stamp {
    type Output = Self;

    fn add(self, later: Duration) -> Self {
        Self { mono: self.mono + later, wall: self.wall + later }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_ends_at_the_first_and_the_last_time() {
        let (short, long) = (Duration::from_nanos(5), Duration::MAX);
        assert_eq!(Time::from_nanos(7) + short, Time::from_nanos(12));
        assert_eq!(Time::from_nanos(7) + long, Time::MAX);
        assert_eq!(Time::from_nanos(7) - short, Time::from_nanos(2));
        assert_eq!(Time::from_nanos(7) - long, Time::ZERO);
        assert_eq!(WallTime::from_secs(u64::MAX), WallTime::MAX);
        assert_eq!(Time::from_nanos(2).since(Time::from_nanos(7)), Duration::ZERO);
        assert_eq!(Time::from_nanos(2).abs_diff(Time::from_nanos(7)), short);
        assert_eq!(Time::from(long), Time::MAX);
        assert_eq!(
            (Time::from_nanos(2).shifted(-3), Time::from_nanos(2).shifted(3)),
            (Time::ZERO, Time::from_nanos(5))
        );
        let infinite = Time::from_nanos(2).scaled(f64::INFINITY);
        assert_eq!((Time::from_nanos(2).scaled(-1.0), infinite), (Time::ZERO, Time::MAX));
        let half = Time::from_secs(1).share_of(Time::from_secs(2));
        assert!((half - 0.5).abs() < f64::EPSILON && Time::ZERO.share_of(Time::ZERO) >= 1.0);
    }

    #[test]
    fn units_are_converted() {
        let time = Time::from_millis(1_500);
        assert_eq!((time.as_nanos(), time.as_micros()), (1_500_000_000, 1_500_000));
        assert_eq!((time.as_millis(), time.as_secs()), (1_500, 1));
        assert!((time.as_secs_f64() - 1.5).abs() < f64::EPSILON);
        assert_eq!(time.since_start(), Duration::from_millis(1_500));
        assert_eq!(WallTime::from_micros(2), WallTime::from_nanos(2_000));
    }
}
