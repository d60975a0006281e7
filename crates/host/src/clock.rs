//! The one place that reads time.
//!
//! The clock counts from the session's start and includes the time that a machine sleeps. The wall
//! time of a stamp is the wall clock at the start plus that count, so a step of the wall clock
//! cannot reorder anything.

use rustix::time::{ClockId, clock_gettime};
use tapdeck_core::Stamp;

/// A session's clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    elapsed: fn() -> u64,
    start_ns: u64,
    wall_start_ns: u64,
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self::start_with(|| read(ClockId::Boottime), || read(ClockId::Realtime))
    }

    /// A clock that starts now by other sources: one that counts nanoseconds and never goes back,
    /// and the wall clock, which is asked this once. For tests of what a jump of either does.
    pub fn start_with(elapsed: fn() -> u64, wall: fn() -> u64) -> Self {
        Self { elapsed, start_ns: elapsed(), wall_start_ns: wall() }
    }

    /// The present moment.
    pub fn now(&self) -> Stamp {
        let mono_ns = (self.elapsed)().saturating_sub(self.start_ns);
        Stamp { mono_ns, wall_ns: self.wall_start_ns.saturating_add(mono_ns) }
    }

    /// Wall time of the start, in nanoseconds since 1970.
    pub fn wall_start_ns(&self) -> u64 {
        self.wall_start_ns
    }
}

fn read(id: ClockId) -> u64 {
    let t = clock_gettime(id);
    let secs = u64::try_from(t.tv_sec).unwrap_or(0);
    secs.saturating_mul(1_000_000_000).saturating_add(u64::try_from(t.tv_nsec).unwrap_or(0))
}
