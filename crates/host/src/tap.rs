//! Taps: the one way to read a session's log.
//!
//! A [`Tap`] is told what happens, in order; recorders are taps, and so is whatever a test wants to
//! see. [`TapReader`] is a tap's place in the log: it waits, reads, tells of lags and answers
//! flushes. [`TapThread`] runs a tap on a thread of its own.

use std::fmt;
use std::io;
use std::thread::JoinHandle;
use std::time::Duration;
use std::vec::Drain;

use tapdeck_core::{Entry, Lag, ReaderId, ReaderKind, Stamp};

use crate::clock::Clock;
use crate::shared::{SharedLog, Woken};

/// Weight that is taken from the log at a time.
const PIECE: usize = 64 * 1024;

/// A consumer of a session's log.
///
/// Its methods are called one at a time, each with the present moment. None of them holds up the
/// program, but a lossless tap that does not keep up costs memory, and loses entries in the end.
pub trait Tap {
    /// The tap begins to run; called once, before anything else.
    fn started(&mut self, now: Stamp) {
        let _ = now;
    }

    /// Takes the next entries, in order.
    fn take(&mut self, entries: Drain<'_, Entry>, now: Stamp);

    /// Entries are gone before this tap could read them; those that follow come next.
    fn lagged(&mut self, lag: &Lag, now: Stamp);

    /// When to wake this tap. Asked before every wait.
    fn next_wake(&self, now: Stamp) -> Wake {
        let _ = now;
        Wake::default()
    }

    /// The tap is awake, and has taken what there was: time for what is due by now.
    fn due(&mut self, now: Stamp) {
        let _ = now;
    }

    /// Keeps everything taken so far safe, before the session is suspended for example. The driver
    /// waits for it, but not for long.
    fn flush(&mut self, now: Stamp) {
        let _ = now;
    }

    /// The session is over, or the tap was stopped: nothing more will come.
    fn closed(&mut self, now: Stamp) {
        let _ = now;
    }
}

impl<T: Tap + ?Sized> Tap for Box<T> {
    fn started(&mut self, now: Stamp) {
        (**self).started(now);
    }

    fn take(&mut self, entries: Drain<'_, Entry>, now: Stamp) {
        (**self).take(entries, now);
    }

    fn lagged(&mut self, lag: &Lag, now: Stamp) {
        (**self).lagged(lag, now);
    }

    fn next_wake(&self, now: Stamp) -> Wake {
        (**self).next_wake(now)
    }

    fn due(&mut self, now: Stamp) {
        (**self).due(now);
    }

    fn flush(&mut self, now: Stamp) {
        (**self).flush(now);
    }

    fn closed(&mut self, now: Stamp) {
        (**self).closed(now);
    }
}

/// When a tap wants to be woken: as soon as this much is pending, or after this long.
///
/// By default, as soon as there is anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wake {
    /// Weight of entries: their payload and a little for each.
    pub weight: usize,
    /// `None` to sleep until that much is pending.
    pub after: Option<Duration>,
}

impl Default for Wake {
    fn default() -> Self {
        Self { weight: 1, after: None }
    }
}

/// A tap's place in a log. Dropping it lets the log go on without it.
#[derive(Debug)]
pub struct TapReader {
    log: SharedLog,
    reader: ReaderId,
    clock: Clock,
}

impl TapReader {
    /// Begins at the oldest entry that the log keeps, and holds back what is not read yet.
    pub fn from_start(log: &SharedLog, clock: Clock) -> Self {
        let reader = log.reader_from_start(ReaderKind::Lossless);
        Self::new(log, reader, clock)
    }

    /// Begins behind the newest entry, and holds nothing back: a slow tap lags.
    pub fn from_end(log: &SharedLog, clock: Clock) -> Self {
        let reader = log.reader_from_end(ReaderKind::Lossy);
        Self::new(log, reader, clock)
    }

    pub(crate) fn new(log: &SharedLog, reader: ReaderId, clock: Clock) -> Self {
        Self { log: log.clone(), reader, clock }
    }

    pub(crate) fn log(&self) -> &SharedLog {
        &self.log
    }

    pub(crate) fn id(&self) -> ReaderId {
        self.reader
    }

    /// Gives the tap what there is, about `max_weight` of it; returns whether there was anything.
    pub fn read<T: Tap + ?Sized>(&self, tap: &mut T, max_weight: usize) -> bool {
        self.read_into(tap, max_weight, &mut Vec::new())
    }

    fn read_into<T: Tap + ?Sized>(&self, tap: &mut T, max_weight: usize, entries: &mut Vec<Entry>) -> bool {
        let lag = self.log.read(self.reader, max_weight, entries);
        if lag.is_none() && entries.is_empty() {
            return false;
        }
        let now = self.clock.now();
        if let Some(lag) = lag {
            tracing::warn!(bytes = lag.bytes(), "a reader of the log was too slow");
            tap.lagged(&lag, now);
        }
        tap.take(entries.drain(..), now);
        true
    }

    /// Leaves out what there is, for a caller that only wants to know that something happened.
    pub fn skip(&self) {
        self.log.read(self.reader, usize::MAX, &mut Vec::new());
    }

    /// Waits until there is something to read, this long at most; returns whether more can come.
    pub fn wait(&self, at_most: Option<Duration>) -> bool {
        let woken = self.log.wait(self.reader, 1, at_most);
        woken != Woken::Closed || self.log.pending(self.reader) > 0
    }

    /// Runs the tap until the session is over, or the reader is told to stop.
    pub(crate) fn run<T: Tap + ?Sized>(&self, tap: &mut T) {
        tap.started(self.clock.now());
        let mut entries = Vec::new();
        loop {
            let Wake { weight, after } = tap.next_wake(self.clock.now());
            let woken = self.log.wait(self.reader, weight.max(1), after);
            while self.read_into(tap, PIECE, &mut entries) {}
            match woken {
                Woken::Ready => tap.due(self.clock.now()),
                Woken::Flush => {
                    tap.flush(self.clock.now());
                    self.log.flushed(self.reader);
                }
                Woken::Closed => return tap.closed(self.clock.now()),
            }
        }
    }
}

impl Drop for TapReader {
    fn drop(&mut self) {
        self.log.remove_reader(self.reader);
    }
}

/// A tap that runs on a thread of its own.
pub struct TapThread<T> {
    thread: JoinHandle<T>,
    log: SharedLog,
    reader: ReaderId,
}

impl<T> fmt::Debug for TapThread<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TapThread").field("reader", &self.reader).finish_non_exhaustive()
    }
}

impl<T: Tap + Send + 'static> TapThread<T> {
    /// Starts a thread of this name, which gives the tap everything that the reader has not read.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(name: &str, reader: TapReader, mut tap: T) -> io::Result<Self> {
        let (log, id) = (reader.log.clone(), reader.reader);
        // Before the thread runs, so that a flush right after this waits for it.
        log.add_flusher(id);
        let work = move || {
            reader.run(&mut tap);
            tap
        };
        let thread = std::thread::Builder::new().name(name.into()).spawn(work)?;
        Ok(Self { thread, log, reader: id })
    }

    pub(crate) fn log(&self) -> &SharedLog {
        &self.log
    }

    /// Stops the tap behind what has happened so far, and returns it.
    ///
    /// # Errors
    /// When the tap has panicked.
    pub(crate) fn stop(self) -> Result<T, TapPanicked> {
        self.log.retire(self.reader);
        self.finish()
    }

    /// Waits for the end of the session, and returns the tap.
    ///
    /// # Errors
    /// When the tap has panicked.
    pub fn finish(self) -> Result<T, TapPanicked> {
        self.thread.join().map_err(|_| TapPanicked)
    }
}

/// A tap has panicked on its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the tap broke down")]
pub struct TapPanicked;
