//! What is asked of the engine while a session runs: by a thread of its own, so that an engine that takes its time
//! never holds up the session. Requests of a kind overtake each other; only the newest counts.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use tapdeck_core::WinSize;

/// How many different signals may wait.
const SIGNALS: usize = 16;

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
    /// Opens a desk; `serve` is called for what is wanted, until it is over.
    pub(super) fn open(mut serve: impl FnMut(Wanted) + Send + 'static) -> io::Result<Self> {
        let wanted = Arc::new((Mutex::new(Wanted::default()), Condvar::new()));
        let theirs = wanted.clone();
        let work = move || loop {
            let (lock, bell) = &*theirs;
            let mut wanted = lock.lock().unwrap_or_else(PoisonError::into_inner);
            while !wanted.anything() {
                wanted = bell.wait(wanted).unwrap_or_else(PoisonError::into_inner);
            }
            let now = std::mem::take(&mut *wanted);
            drop(wanted);
            let over = now.over;
            serve(now);
            if over {
                return;
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
