//! Ends programs under test from outside: a test runner that is told to end leaves no processes
//! behind.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tapdeck_host::{Handle, InheritedSignals};

/// A rein on all programs that are started under it. Its copies are the same one.
#[derive(Clone, Default)]
pub struct Halt(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// The signals that programs are to have, where this process has changed its own.
    signals: Option<InheritedSignals>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    called: bool,
    started: u64,
    running: BTreeMap<u64, Handle>,
}

impl Halt {
    /// For a process that has taken its signals over: programs get these.
    pub fn with_signals(signals: InheritedSignals) -> Self {
        Self(Arc::new(Inner { signals: Some(signals), ..Inner::default() }))
    }

    /// Ends every program that runs, first by asking; no other is started.
    pub fn call(&self) {
        let mut state = self.state();
        state.called = true;
        state.running.values().for_each(Handle::cancel);
    }

    /// Whether that has happened.
    pub fn is_called(&self) -> bool {
        self.state().called
    }

    pub(super) fn signals(&self) -> InheritedSignals {
        self.0.signals.unwrap_or_else(InheritedSignals::note)
    }

    /// Takes a session under the rein until it is let go.
    pub(super) fn hold(&self, handle: &Handle) -> Held {
        let mut state = self.state();
        if state.called {
            handle.cancel();
        }
        state.started += 1;
        let number = state.started;
        state.running.insert(number, handle.clone());
        Held { halt: self.clone(), number }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Halt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Halt").field("called", &self.is_called()).finish_non_exhaustive()
    }
}

/// A session under a rein.
pub(super) struct Held {
    halt: Halt,
    number: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.halt.state().running.remove(&self.number);
    }
}
