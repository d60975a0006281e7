//! Keeps secrets out of recorded input: a tap in front of a recorder that decides what is hidden.

use std::sync::Arc;
use std::vec::Drain;

use bytes::Bytes;
use tapdeck_core::withhold::{SecretPrompts, Withholding};
use tapdeck_core::{Entry, Lag, Stamp, WinSize};

use crate::tap::{Tap, Wake};

/// Stands for hidden input: as many stars as it had bytes, and the ends of its lines.
pub(crate) fn stars(bytes: &[u8]) -> Bytes {
    bytes.iter().map(|b| if matches!(b, b'\r' | b'\n' | 4) { *b } else { b'*' }).collect()
}

/// A recorder that gets input with what asks for a secret marked as hidden.
pub(crate) struct Withheld<T> {
    inner: T,
    rules: Withholding,
    ready: Vec<Entry>,
}

impl<T: Tap> Withheld<T> {
    pub(crate) fn new(inner: T, prompts: Arc<SecretPrompts>, size: WinSize) -> Self {
        Self { inner, rules: Withholding::new(prompts, size), ready: Vec::new() }
    }

    pub(crate) fn into_inner(self) -> T {
        self.inner
    }

    fn pass_on(&mut self, now: Stamp) {
        if !self.ready.is_empty() {
            self.inner.take(self.ready.drain(..), now);
        }
    }

    fn pass_all(&mut self, now: Stamp) {
        self.rules.release_all(&mut self.ready);
        self.pass_on(now);
    }
}

impl<T: Tap> Tap for Withheld<T> {
    fn started(&mut self, now: Stamp) {
        self.inner.started(now);
    }

    fn take(&mut self, entries: Drain<'_, Entry>, now: Stamp) {
        for entry in entries {
            self.rules.take(entry, &mut self.ready);
        }
        self.pass_on(now);
    }

    fn lagged(&mut self, lag: &Lag, now: Stamp) {
        self.pass_all(now);
        self.inner.lagged(lag, now);
    }

    fn next_wake(&self, now: Stamp) -> Wake {
        let wake = self.inner.next_wake(now);
        let Some(at) = self.rules.deadline() else { return wake };
        let left = at.since(now.mono);
        Wake { after: Some(wake.after.map_or(left, |after| after.min(left))), ..wake }
    }

    fn due(&mut self, now: Stamp) {
        self.rules.release(now.mono, &mut self.ready);
        self.pass_on(now);
        self.inner.due(now);
    }

    fn flush(&mut self, now: Stamp) {
        self.pass_all(now);
        self.inner.flush(now);
    }

    fn closed(&mut self, now: Stamp) {
        self.pass_all(now);
        self.inner.closed(now);
    }
}
