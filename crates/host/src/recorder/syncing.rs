//! Puts what was written on disk, so that it outlives a power cut: on a thread of its own, out of
//! the recorder's way.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long written bytes stay in the system's memory before they are synced.
pub(super) const INTERVAL: Duration = Duration::from_secs(1);

/// When a recording is synced, besides at snapshots and at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum SyncLevel {
    /// Never: the system decides. A power cut may cost half a minute.
    None,
    /// With every block, before the next one is written.
    Block,
    /// About a second after it was written. The recorder does not wait for it.
    #[default]
    Interval,
}

/// A thread that syncs what was written an interval ago.
#[derive(Debug)]
pub(super) struct Syncer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Something was written that is not synced.
    dirty: bool,
    /// No more will be written.
    ended: bool,
    failure: Option<io::Error>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Syncer {
    /// Starts the thread. It sleeps until something is written.
    pub(super) fn start(
        interval: Duration,
        mut sync: impl FnMut() -> io::Result<()> + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let builder = thread::Builder::new().name("tapdeck-sync".into()).stack_size(64 * 1024);
        let thread = builder.spawn(move || {
            let mut state = theirs.lock();
            loop {
                while !state.dirty && !state.ended {
                    state = theirs.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                let waited = theirs.changed.wait_timeout_while(state, interval, |state| !state.ended);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                // The recorder itself syncs at the end.
                if state.ended {
                    return;
                }
                state.dirty = false;
                drop(state);
                let synced = sync();
                state = theirs.lock();
                if let Err(failure) = synced {
                    state.failure = Some(failure);
                    return;
                }
            }
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Something was written.
    pub(super) fn wrote(&self) {
        if !std::mem::replace(&mut self.shared.lock().dirty, true) {
            self.shared.changed.notify_one();
        }
    }

    /// Why a sync failed, if one did since this was last asked.
    pub(super) fn failure(&self) -> Option<io::Error> {
        self.shared.lock().failure.take()
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.changed.notify_one();
        // Its handle of the file keeps the lock, so the file is free only without it.
        if let Some(Err(_)) = self.thread.take().map(JoinHandle::join) {
            tracing::error!("the thread that syncs broke down");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    #[test]
    fn what_is_written_is_synced_and_a_failure_is_told_once() {
        let (tell, told) = mpsc::channel();
        let mut times = 0;
        let syncer = Syncer::start(Duration::from_millis(1), move || {
            times += 1;
            tell.send(times).expect("a test that listens");
            if times < 3 { Ok(()) } else { Err(io::Error::other("lost")) }
        });
        let syncer = syncer.expect("a thread");
        for time in 1..=3 {
            assert!(told.try_recv().is_err(), "nothing was written");
            syncer.wrote();
            assert_eq!(told.recv_timeout(PATIENCE), Ok(time));
        }
        // The thread ends with the failure, and with it its end of the channel.
        assert!(told.recv_timeout(PATIENCE).is_err());
        assert_eq!(syncer.failure().map(|e| e.to_string()).as_deref(), Some("lost"));
        assert!(syncer.failure().is_none());
    }

    #[test]
    fn the_thread_ends_with_the_recorder() {
        let (tell, told) = mpsc::channel::<()>();
        let syncer =
            Syncer::start(PATIENCE, move || tell.send(()).map_err(io::Error::other)).expect("a thread");
        syncer.wrote();
        drop(syncer);
        assert_eq!(told.recv_timeout(PATIENCE), Err(mpsc::RecvTimeoutError::Disconnected), "not synced");
    }
}
