//! What backends behind a connection have in common: the verdict on how the program ended, the end
//! of output that is still on its way then, and the keys that stand for signals.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::termios::{SpecialCodeIndex, Termios};
use tapdeck_core::{Exit, Stamp, Time};

use super::EndOfInput;

/// After the program's end: how long its output must be quiet when its end does not come, how long
/// to wait for that at most, and how often to look.
const QUIET: Duration = Duration::from_secs(1);
const LIMIT: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(100);

/// How long a session must be quiet before the end of input is typed at a terminal that cannot be
/// looked at.
const END_PATIENCE: Duration = Duration::from_secs(1);

/// The wait for the end of output, after the program has ended.
#[derive(Debug, Default)]
pub(super) struct Drain {
    begun: bool,
    /// When it was first looked at, and when something last came.
    since: Option<Time>,
    last: Time,
}

impl Drain {
    /// The program has ended.
    pub(super) fn begin(&mut self) {
        self.begun = true;
    }

    pub(super) fn begun(&self) -> bool {
        self.begun
    }

    /// When to look whether it is over.
    pub(super) fn look_at(&self) -> Option<Time> {
        self.begun.then_some(self.since.map_or(Time::ZERO, |_| self.last + LOOK))
    }

    /// Something came.
    pub(super) fn passed(&mut self, now: Stamp) {
        self.last = now.mono;
    }

    /// Nothing came: whether to wait no longer. A process that outlives the program may hold its
    /// output for ever.
    pub(super) fn over(&mut self, now: Stamp) -> bool {
        if !self.begun {
            return false;
        }
        let since = *self.since.get_or_insert(now.mono);
        let quiet = now.mono.since(self.last.max(since));
        quiet >= QUIET || now.mono >= since + LIMIT
    }
}

/// How the program ended, and a descriptor that is readable once that is known.
pub(super) struct Verdict {
    exit: Mutex<Option<Result<Exit, String>>>,
    wake: OwnedFd,
}

impl Verdict {
    pub(super) fn new() -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { exit: Mutex::default(), wake })
    }

    /// The first verdict stands.
    pub(super) fn give(&self, verdict: Result<Exit, String>) {
        self.exit.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(verdict);
        // A full counter means that the driver is being woken already.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    pub(super) fn get(&self) -> Option<Result<Exit, String>> {
        self.exit.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

/// The keys of a far terminal that stand for something.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keys {
    interrupt: u8,
    quit: u8,
    suspend: u8,
    end: u8,
}

impl Keys {
    /// The keys of a terminal with these settings, or the usual ones.
    pub(super) fn of(termios: Option<&Termios>) -> Self {
        let key = |index, usual| termios.map_or(usual, |t| t.special_codes[index]);
        Self {
            interrupt: key(SpecialCodeIndex::VINTR, 0x03),
            quit: key(SpecialCodeIndex::VQUIT, 0x1c),
            suspend: key(SpecialCodeIndex::VSUSP, 0x1a),
            end: key(SpecialCodeIndex::VEOF, 0x04),
        }
    }

    /// The key by which a person would send a signal.
    pub(super) fn of_signal(self, signal: i32) -> Option<u8> {
        let key = match signal {
            libc::SIGINT => self.interrupt,
            libc::SIGQUIT => self.quit,
            libc::SIGTSTP => self.suspend,
            _ => return None,
        };
        // Zero is a key that is switched off.
        (key != 0).then_some(key)
    }

    /// The end of input, typed once all is quiet: what the far program waits for cannot be seen.
    pub(super) fn end_of_input(self, line_open: bool, quiet: Duration) -> EndOfInput {
        if quiet < END_PATIENCE || self.end == 0 {
            return EndOfInput::NotYet;
        }
        // The first one after an open line only hands that line over.
        EndOfInput::Send(self.end, if line_open { 2 } else { 1 })
    }
}

#[cfg(test)]
mod tests {
    use tapdeck_core::Time;

    use super::*;

    #[test]
    fn output_that_does_not_end_is_not_waited_for_for_ever() {
        let at = |ms: u64| Stamp { mono: Time::from_millis(ms), ..Stamp::default() };
        let mut drain = Drain::default();
        assert!(!drain.over(at(100_000)), "the program runs");
        drain.begin();
        assert!(!drain.over(at(100_000)));
        assert!(!drain.over(at(100_900)));
        drain.passed(at(100_950));
        assert!(!drain.over(at(101_900)));
        assert!(drain.over(at(101_950)), "quiet for a second");
        drain.passed(at(104_990));
        assert!(drain.over(at(105_000)), "at most five");
    }

    #[test]
    fn keys_stand_for_signals() {
        let keys = Keys::of(None);
        assert_eq!((keys.of_signal(libc::SIGINT), keys.of_signal(libc::SIGTERM)), (Some(3), None));
        assert_eq!(keys.end_of_input(true, Duration::from_secs(2)), EndOfInput::Send(4, 2));
        assert_eq!(keys.end_of_input(false, Duration::ZERO), EndOfInput::NotYet);
    }
}
