//! What is asked of the engine while a session runs. A thread of its own asks, so that a slow
//! engine never holds up the session. Of several orders of a kind only the newest counts.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tapdeck_core::WinSize;

/// How many different signals may wait.
const SIGNALS: usize = 16;
/// A size that the engine did not take is offered again after so long, and so often: it may not
/// know yet that the program runs whose output has come already.
const OFFER_AGAIN: Duration = Duration::from_millis(50);
const OFFERS: u32 = 100;
/// One that it took is said once more after so long: of two that come close together, Podman's
/// monitor may keep the first. A terminal that has the size already does not even notice.
const SAY_AGAIN: Duration = Duration::from_millis(250);

/// What the engine is to do.
#[derive(Debug, Default)]
pub(super) struct Orders {
    pub(super) resize: Option<WinSize>,
    /// Names of signals, and whether each is for every process.
    pub(super) signals: Vec<(String, bool)>,
    pub(super) freeze: Option<bool>,
    /// The output has ended: find out how the program did.
    pub(super) ended: bool,
    /// Nothing more will be ordered; whatever still runs is to go.
    pub(super) over: bool,
}

impl Orders {
    fn anything(&self) -> bool {
        self.resize.is_some() || !self.signals.is_empty() || self.freeze.is_some() || self.ended || self.over
    }

    pub(super) fn signal(&mut self, name: String, all: bool) {
        let signal = (name, all);
        if !self.signals.contains(&signal) && self.signals.len() < SIGNALS {
            self.signals.push(signal);
        }
    }
}

/// The thread that talks to the engine while the session runs.
pub(super) struct EngineWorker {
    orders: Arc<(Mutex<Orders>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl EngineWorker {
    /// Starts the thread. `serve` is called with the orders until it is over, and returns whether a
    /// size was refused.
    pub(super) fn start(mut serve: impl FnMut(&Orders) -> bool + Send + 'static) -> io::Result<Self> {
        let orders = Arc::new((Mutex::new(Orders::default()), Condvar::new()));
        let theirs = orders.clone();
        let work = move || {
            let (lock, bell) = &*theirs;
            // A size to be said again, after how long, and how often.
            let mut again: Option<(WinSize, Duration, u32)> = None;
            loop {
                let mut orders = lock.lock().unwrap_or_else(PoisonError::into_inner);
                let mut repeated = None;
                while !orders.anything() {
                    if let Some((size, after, left)) = again {
                        let (woken, waited) =
                            bell.wait_timeout(orders, after).unwrap_or_else(PoisonError::into_inner);
                        orders = woken;
                        if waited.timed_out() && !orders.anything() {
                            (orders.resize, repeated) = (Some(size), Some(left));
                        }
                    } else {
                        orders = bell.wait(orders).unwrap_or_else(PoisonError::into_inner);
                    }
                }
                let now = std::mem::take(&mut *orders);
                drop(orders);
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
        Ok(Self { orders, thread: Some(thread) })
    }

    /// Gives an order.
    pub(super) fn order(&self, change: impl FnOnce(&mut Orders)) {
        let (lock, bell) = &*self.orders;
        let mut orders: MutexGuard<'_, Orders> = lock.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut orders);
        bell.notify_one();
    }
}

impl Drop for EngineWorker {
    fn drop(&mut self) {
        self.order(|w| w.over = true);
        if let Some(thread) = self.thread.take() {
            // Each call to the engine has a limit, so this ends.
            let _ = thread.join();
        }
    }
}
