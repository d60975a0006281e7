//! Replay: one scheduler for all paces. Events come in the order of their numbers, chunks as they
//! were recorded; only the waiting differs. The clock is given, so a test or a fast check brings a
//! virtual one and never waits, while every event keeps its logical time.

use std::fmt;
use std::ops::ControlFlow;
use std::time::Duration;

use tapdeck_core::{ParseError, Time};

use super::CassetteEvent;

/// How to pace a replay.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum ReplayMode {
    /// As it was recorded.
    #[default]
    Realtime,
    /// With every pause multiplied by this factor: 0.5 is twice as fast.
    Scaled(f64),
    /// Without any pause.
    Collapsed,
}

impl std::str::FromStr for ReplayMode {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text.split_once([':', '=']).unwrap_or((text, "")) {
            ("realtime", "") => Ok(Self::Realtime),
            ("collapsed", "") => Ok(Self::Collapsed),
            ("scaled", factor) => match factor.parse::<f64>() {
                Ok(factor) if factor.is_finite() && factor >= 0.0 => Ok(Self::Scaled(factor)),
                _ => Err(ParseError::new(format!("scaled needs a factor, as in scaled:0.5, not {factor:?}"))),
            },
            _ => {
                let known = "realtime, scaled:FACTOR or collapsed";
                Err(ParseError::new(format!("{text:?} is no replay mode: {known}")))
            }
        }
    }
}

impl fmt::Display for ReplayMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Realtime => f.write_str("realtime"),
            Self::Scaled(factor) => write!(f, "scaled:{factor}"),
            Self::Collapsed => f.write_str("collapsed"),
        }
    }
}

/// Where a replay gets its time from.
pub trait ReplayClock {
    /// The time on some clock that never goes back.
    fn now(&mut self) -> Time;

    /// Waits until that clock shows at least this.
    fn wait_until(&mut self, at: Time);
}

/// A replay of a cassette's events.
#[derive(Debug, Clone)]
pub struct Schedule<'a> {
    events: &'a [CassetteEvent],
    mode: ReplayMode,
    next: usize,
}

impl<'a> Schedule<'a> {
    /// From the start.
    pub fn new(events: &'a [CassetteEvent], mode: ReplayMode) -> Self {
        Self { events, mode, next: 0 }
    }

    /// When the next event is due, since the start of the replay; `None` at the end.
    pub fn due(&self) -> Option<Duration> {
        let event = self.events.get(self.next)?;
        let recorded = Time::from_millis(event.t_ms);
        Some(match self.mode {
            ReplayMode::Realtime => recorded.since_start(),
            // Float to integer saturates, so no factor can make this wrap.
            ReplayMode::Scaled(factor) => {
                Duration::from_nanos((recorded.as_nanos() as f64 * factor.max(0.0)) as u64)
            }
            ReplayMode::Collapsed => Duration::ZERO,
        })
    }

    /// The next event, if it is due so long after the start of the replay.
    pub fn poll(&mut self, elapsed: Duration) -> Option<&'a CassetteEvent> {
        if self.due()? > elapsed {
            return None;
        }
        self.next += 1;
        self.events.get(self.next - 1)
    }

    /// Replays to the end, or until `each` breaks off.
    pub fn play<B>(
        &mut self,
        clock: &mut dyn ReplayClock,
        mut each: impl FnMut(&'a CassetteEvent) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let start = clock.now();
        while let Some(due) = self.due() {
            if self.mode != ReplayMode::Collapsed {
                clock.wait_until(start + due);
            }
            self.next += 1;
            if let Some(event) = self.events.get(self.next - 1) {
                each(event)?;
            }
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::EventKind;
    use super::*;

    /// A clock that moves when it is waited for and at no other time.
    #[derive(Debug, Clone, Copy, Default)]
    struct VirtualClock {
        now: Time,
    }

    impl ReplayClock for VirtualClock {
        fn now(&mut self) -> Time {
            self.now
        }

        fn wait_until(&mut self, at: Time) {
            self.now = self.now.max(at);
        }
    }

    fn events() -> Vec<CassetteEvent> {
        let event = |seq, t_ms, bytes: &'static [u8]| CassetteEvent {
            seq,
            t_ms,
            kind: EventKind::Output { offset: 0, bytes: bytes.into() },
        };
        vec![event(1, 0, b"a"), event(2, 100, b"b"), event(3, 100, b"c"), event(4, 1_000, b"d")]
    }

    #[test]
    fn every_mode_keeps_order_and_chunks() {
        let events = events();
        for (mode, want) in [
            (ReplayMode::Realtime, [0, 100, 100, 1_000]),
            (ReplayMode::Scaled(0.5), [0, 50, 50, 500]),
            (ReplayMode::Scaled(3.0), [0, 300, 300, 3_000]),
            (ReplayMode::Collapsed, [0, 0, 0, 0]),
        ] {
            let mut clock = VirtualClock { now: Time::from_millis(7) };
            let mut seen = Vec::new();
            let mut schedule = Schedule::new(&events, mode);
            let flow: ControlFlow<()> = schedule.play(&mut clock, |event| {
                seen.push((event.seq, event.kind.clone()));
                ControlFlow::Continue(())
            });
            assert_eq!(flow, ControlFlow::Continue(()));
            let order: Vec<_> = events.iter().map(|e| (e.seq, e.kind.clone())).collect();
            assert_eq!(seen, order, "{mode}");
            assert_eq!(clock.now, Time::from_millis(7 + want[3]), "{mode}");
            let mut schedule = Schedule::new(&events, mode);
            for (i, due) in want.into_iter().enumerate() {
                let due = Duration::from_millis(due);
                assert_eq!(schedule.due(), Some(due));
                let before = due.checked_sub(Duration::from_nanos(1));
                assert!(before.is_none_or(|before| schedule.poll(before).is_none()));
                assert_eq!(schedule.poll(due).map(|e| e.seq), Some(events[i].seq));
            }
            assert_eq!(schedule.poll(Duration::MAX), None);
        }
    }

    #[test]
    fn modes_have_names() {
        for text in ["realtime", "collapsed", "scaled:0.5"] {
            assert_eq!(text.parse::<ReplayMode>().unwrap().to_string(), text);
        }
        for bad in ["fast", "scaled", "scaled:-1", "scaled:NaN", "realtime:2"] {
            assert!(bad.parse::<ReplayMode>().is_err(), "{bad}");
        }
    }
}
