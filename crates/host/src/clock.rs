//! The one place that reads time.
//!
//! The clock counts from the session's start and includes the time that a machine sleeps. The wall
//! time of a stamp is the wall clock at the start plus that count, so a step of the wall clock
//! cannot reorder anything.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tapdeck_core::{Stamp, WallTime};

/// A session's clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    read: fn() -> u64,
    start_ns: u64,
    wall_start: WallTime,
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self::start_with(|| read(ClockId::Boottime), || read(ClockId::Realtime))
    }

    /// A clock that starts now by other sources: one that counts nanoseconds and never goes back,
    /// and the wall clock, which is asked this once. For tests of what a jump of either does.
    pub fn start_with(read: fn() -> u64, wall: fn() -> u64) -> Self {
        Self { read, start_ns: read(), wall_start: WallTime::from_nanos(wall()) }
    }

    /// The present moment.
    pub fn now(&self) -> Stamp {
        let elapsed = self.elapsed();
        Stamp { mono: elapsed.into(), wall: self.wall_start + elapsed }
    }

    /// Returns how long it has run.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos((self.read)().saturating_sub(self.start_ns))
    }

    /// Returns when it was started.
    pub fn wall_start(&self) -> WallTime {
        self.wall_start
    }
}

fn read(id: ClockId) -> u64 {
    let t = clock_gettime(id);
    let secs = u64::try_from(t.tv_sec).unwrap_or(0);
    secs.saturating_mul(1_000_000_000).saturating_add(u64::try_from(t.tv_nsec).unwrap_or(0))
}
