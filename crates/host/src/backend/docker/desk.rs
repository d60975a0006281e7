//! What is asked of the engine while a session runs: by a thread of its own, so that an engine that takes its time
//! never holds up the session. Requests of a kind overtake each other; only the newest counts.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tapdeck_core::WinSize;

/// How many different signals may wait.
const SIGNALS: usize = 16;
/// A size that the engine did not take is offered again after so long, and so often: it may not know yet that the program
/// runs whose output has come already.
const OFFER_AGAIN: Duration = Duration::from_millis(50);
const OFFERS: u32 = 100;
/// One that it took is said once more after so long: of two that come close together, Podman's monitor may keep the first.
/// A terminal that has the size already does not even notice.
const SAY_AGAIN: Duration = Duration::from_millis(250);

/// What is wanted of the engine.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub(super) resize: Option<WinSize>,
    /// Names of signals, and whether each is for everybody.
    pub(super) signals: Vec<(String, bool)>,
    pub(super) freeze: Option<bool>,
    /// The output has ended: find out how the program did.
    pub(super) ended: bool,
    /// Nothing more will be wanted; whatever still runs is to go.
    pub(super) over: bool,
}

impl Wanted {
    fn anything(&self) -> bool {
        self.resize.is_some() || !self.signals.is_empty() || self.freeze.is_some() || self.ended || self.over
    }

    pub(super) fn signal(&mut self, name: String, everybody: bool) {
        let order = (name, everybody);
        if !self.signals.contains(&order) && self.signals.len() < SIGNALS {
            self.signals.push(order);
        }
    }
}

/// The desk where wishes are left.
pub(super) struct Desk {
    wanted: Arc<(Mutex<Wanted>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Desk {
    /// Opens a desk; `serve` is called for what is wanted, until it is over, and says whether a size was refused.
    pub(super) fn open(mut serve: impl FnMut(&Wanted) -> bool + Send + 'static) -> io::Result<Self> {
        let wanted = Arc::new((Mutex::new(Wanted::default()), Condvar::new()));
        let theirs = wanted.clone();
        let work = move || {
            let (lock, bell) = &*theirs;
            // A size to be said again, after how long, and how often.
            let mut again: Option<(WinSize, Duration, u32)> = None;
            loop {
                let mut wanted = lock.lock().unwrap_or_else(PoisonError::into_inner);
                let mut repeated = None;
                while !wanted.anything() {
                    if let Some((size, after, left)) = again {
                        let (woken, waited) =
                            bell.wait_timeout(wanted, after).unwrap_or_else(PoisonError::into_inner);
                        wanted = woken;
                        if waited.timed_out() && !wanted.anything() {
                            (wanted.resize, repeated) = (Some(size), Some(left));
                        }
                    } else {
                        wanted = bell.wait(wanted).unwrap_or_else(PoisonError::into_inner);
                    }
                }
                let now = std::mem::take(&mut *wanted);
                drop(wanted);
                let refused = serve(&now);
                if let Some(size) = now.resize {
                    again = match (refused, repeated) {
                        (true, left) => {
                            Some((size, OFFER_AGAIN, left.map_or(OFFERS, |n| n.saturating_sub(1))))
                        }
                        (false, None) => Some((size, SAY_AGAIN, 1)),
                        (false, Some(_)) => None,
                    };
                    again = again.filter(|(_, _, left)| *left > 0);
                }
                if now.over {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("tapdeck-docker".into()).spawn(work)?;
        Ok(Self { wanted, thread: Some(thread) })
    }

    /// Leaves a wish.
    pub(super) fn want(&self, change: impl FnOnce(&mut Wanted)) {
        let (lock, bell) = &*self.wanted;
        let mut wanted: MutexGuard<'_, Wanted> = lock.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut wanted);
        bell.notify_one();
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.want(|w| w.over = true);
        if let Some(thread) = self.thread.take() {
            // Each call to the engine has a limit, so this ends.
            let _ = thread.join();
        }
    }
}
