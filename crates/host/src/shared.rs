//! The log as threads share it: the driver appends, readers wait.
//!
//! Appending takes one uncontended lock and, most of the time, wakes nobody: a reader says how much must be
//! pending before it wants to be woken, and sleeps on its own deadline otherwise. That keeps the path between
//! program and terminal free of work that is not its own.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};

use crate::inbox::{Anchor, SnapshotError};
use tapdeck_core::{Entry, Event, Lag, Log, LogLimits, ReaderId, ReaderKind, Seq, Stamp, WinSize};

struct Inner {
    log: Log,
    /// Pending weight at which the sleeping reader wants to be woken.
    wake_at: Option<(ReaderId, usize)>,
    /// Readers that wait at a descriptor rather than in [`SharedLog::wait`]: armed once, at this weight.
    armed: Vec<(ReaderId, usize, Bell)>,
    closed: bool,
    /// The program has no terminal.
    pipes: bool,
    /// Readers that are to read what there is and stop.
    retired: Vec<ReaderId>,
    /// Requests to have everything so far on disk, and the last one done.
    flush_wanted: u64,
    flush_done: u64,
    /// Who puts the log on disk, if anybody.
    recorder: Option<ReaderId>,
    /// Who waits to hear that an entry is on disk, by its place.
    awaited: BTreeMap<Seq, Sender<Result<Anchor, SnapshotError>>>,
    /// Something awaited was appended since the recorder last woke.
    urgent: bool,
}

/// A log shared between the driver and its readers.
#[derive(Clone)]
pub struct SharedLog(Arc<(Mutex<Inner>, Condvar)>);

/// A descriptor that becomes readable when rung; shared by who rings and who waits.
#[derive(Clone)]
pub struct Bell(Arc<OwnedFd>);

impl Bell {
    /// A silent bell.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    /// Makes it readable.
    pub fn ring(&self) {
        // A full counter means that it is ringing already.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Makes it silent again.
    pub fn quieten(&self) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.0, &mut count);
    }

    /// What to wait at.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// Enough is pending, or the time is over.
    Ready,
    /// Somebody wants everything so far to be on disk.
    Flush,
    /// The session is over; read what is left.
    Closed,
}

impl SharedLog {
    /// An empty log.
    pub fn new(limits: LogLimits) -> Self {
        let inner = Inner {
            log: Log::new(limits),
            wake_at: None,
            armed: Vec::new(),
            closed: false,
            pipes: false,
            retired: Vec::new(),
            flush_wanted: 0,
            flush_done: 0,
            recorder: None,
            awaited: BTreeMap::new(),
            urgent: false,
        };
        Self(Arc::new((Mutex::new(inner), Condvar::new())))
    }

    /// How much it keeps.
    pub fn limits(&self) -> LogLimits {
        self.lock().log.limits()
    }

    /// Says that the program has no terminal, for whoever records what it writes.
    pub fn set_pipes(&self) {
        self.lock().pipes = true;
    }

    /// Whether the program has no terminal.
    pub fn is_on_pipes(&self) -> bool {
        self.lock().pipes
    }

    /// Appends an event; never waits for a reader.
    pub fn append(&self, event: Event, at: Stamp) -> Seq {
        let mut inner = self.lock();
        let seq = inner.log.append(event, at);
        let Inner { armed, log, .. } = &mut *inner;
        if !armed.is_empty() {
            armed.retain(|(reader, weight, bell)| {
                let due = log.pending(*reader) >= *weight;
                if due {
                    bell.ring();
                }
                !due
            });
        }
        let due = inner.wake_at.is_some_and(|(reader, weight)| inner.log.pending(reader) >= weight);
        if due {
            inner.wake_at = None;
            drop(inner);
            self.0.1.notify_all();
        }
        seq
    }

    /// Appends an event that somebody wants to hear of once it is on disk. The recorder is woken at once and
    /// answers through `reply`; where nothing records, that is the answer.
    pub(crate) fn append_awaited(
        &self,
        event: Event,
        at: Stamp,
        reply: Sender<Result<Anchor, SnapshotError>>,
    ) {
        let mut inner = self.lock();
        if inner.recorder.is_none() {
            // A receiver that is gone no longer wants the answer.
            let _ = reply.send(Err(SnapshotError::NotRecorded));
            return;
        }
        let seq = inner.log.append(event, at);
        inner.awaited.insert(seq, reply);
        inner.urgent = true;
        drop(inner);
        self.0.1.notify_all();
    }

    /// The recorder's answer to [`SharedLog::append_awaited`].
    pub(crate) fn answer(&self, seq: Seq, result: Result<Anchor, SnapshotError>) {
        let reply = self.lock().awaited.remove(&seq);
        if let Some(reply) = reply {
            let _ = reply.send(result);
        }
    }

    /// The recorder's answer for entries that it never saw.
    pub(crate) fn answer_lost(&self, lag: &Lag) {
        let mut inner = self.lock();
        let rest = inner.awaited.split_off(&lag.seqs.start);
        for (seq, reply) in rest {
            if seq < lag.seqs.end {
                let _ = reply.send(Err(SnapshotError::Failed("the disk was too slow".into())));
            } else {
                inner.awaited.insert(seq, reply);
            }
        }
    }

    /// Says which reader is a recorder at work.
    pub(crate) fn set_recorder(&self, recorder: ReaderId) {
        self.lock().recorder = Some(recorder);
    }

    /// A recorder stops; whoever still waits for it is told so.
    pub(crate) fn unset_recorder(&self, recorder: ReaderId) {
        let mut inner = self.lock();
        if inner.recorder == Some(recorder) {
            inner.recorder = None;
            inner.awaited.clear();
        }
    }

    /// Adds a reader that starts at the oldest entry kept.
    pub fn reader_from_start(&self, kind: ReaderKind) -> ReaderId {
        self.lock().log.reader_from_start(kind)
    }

    /// Adds a reader that starts behind the newest entry.
    pub fn reader_from_end(&self, kind: ReaderKind) -> ReaderId {
        self.lock().log.reader_from_end(kind)
    }

    /// Adds a lossless reader that starts at the oldest entry kept; with the byte of output where that is, its time and
    /// the terminal's size there.
    pub(crate) fn late_reader(&self) -> (ReaderId, u64, Option<Stamp>, WinSize) {
        let mut inner = self.lock();
        let (offset, at, size) = inner.log.oldest();
        (inner.log.reader_from_start(ReaderKind::Lossless), offset, at, size)
    }

    /// Tells a reader to read what there is and stop.
    pub(crate) fn retire(&self, id: ReaderId) {
        self.lock().retired.push(id);
        self.0.1.notify_all();
    }

    /// How far a recorder is behind, and how far it has got; nothing when none is at work. A recorder that gets on is
    /// worth waiting for.
    pub(crate) fn recorder_lag(&self) -> Option<(usize, u64)> {
        let inner = self.lock();
        let reader = inner.recorder?;
        Some((inner.log.pending(reader), inner.log.consumed(reader)))
    }

    /// Whether somebody puts the log on disk.
    pub(crate) fn is_recorded(&self) -> bool {
        self.lock().recorder.is_some()
    }

    /// The oldest byte of output still kept.
    pub fn oldest(&self) -> u64 {
        self.lock().log.oldest().0
    }

    /// Removes a reader; what only it held is let go.
    pub fn remove_reader(&self, id: ReaderId) {
        let mut inner = self.lock();
        inner.retired.retain(|r| *r != id);
        inner.log.remove_reader(id);
    }

    /// Reads on; see [`Log::read`].
    pub fn read(&self, id: ReaderId, max_weight: usize, into: &mut Vec<Entry>) -> Option<Lag> {
        self.lock().log.read(id, max_weight, into)
    }

    /// Weight that the reader has not read yet.
    pub fn pending(&self, id: ReaderId) -> usize {
        self.lock().log.pending(id)
    }

    /// Bytes of output so far.
    pub fn offset(&self) -> u64 {
        self.lock().log.offset()
    }

    /// The number that comes next. Whoever reads only as far as this comes to an end, however fast others write.
    pub fn end(&self) -> Seq {
        self.lock().log.end()
    }

    /// Waits until `weight` is pending for the reader, something else wants its attention, or `at_most` is over.
    pub fn wait(&self, id: ReaderId, weight: usize, at_most: Option<Duration>) -> Woken {
        let mut inner = self.lock();
        inner.wake_at = Some((id, weight));
        let asleep = |i: &mut Inner| {
            let urgent = i.urgent && i.recorder == Some(id);
            !i.closed
                && !i.retired.contains(&id)
                && !urgent
                && i.flush_wanted == i.flush_done
                && i.log.pending(id) < weight
        };
        let condvar = &self.0.1;
        let mut inner = match at_most {
            Some(limit) => {
                condvar.wait_timeout_while(inner, limit, asleep).unwrap_or_else(PoisonError::into_inner).0
            }
            None => condvar.wait_while(inner, asleep).unwrap_or_else(PoisonError::into_inner),
        };
        inner.wake_at = None;
        if inner.recorder == Some(id) {
            inner.urgent = false;
        }
        if inner.flush_wanted != inner.flush_done {
            Woken::Flush
        } else if inner.closed || inner.retired.contains(&id) {
            Woken::Closed
        } else {
            Woken::Ready
        }
    }

    /// Asks the recorder to put everything so far on disk, and waits for it, but not for ever.
    pub fn flush(&self, at_most: Duration) -> bool {
        let mut inner = self.lock();
        inner.flush_wanted += 1;
        let wanted = inner.flush_wanted;
        self.0.1.notify_all();
        let waited = self.0.1.wait_timeout_while(inner, at_most, |i| i.flush_done < wanted);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// The recorder's answer to [`SharedLog::flush`].
    pub fn flushed(&self) {
        let mut inner = self.lock();
        inner.flush_done = inner.flush_wanted;
        self.0.1.notify_all();
    }

    /// Rings the bell once, as soon as this much is pending for the reader (now, if it is already), or the log is
    /// closed. Replaces what the reader asked for before.
    pub fn arm(&self, id: ReaderId, weight: usize, bell: &Bell) {
        let mut inner = self.lock();
        inner.armed.retain(|(reader, ..)| *reader != id);
        if inner.closed || inner.log.pending(id) >= weight {
            bell.ring();
        } else {
            inner.armed.push((id, weight, bell.clone()));
        }
    }

    /// Whether nothing more will be appended.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Says that nothing more will be appended.
    pub fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        for (.., bell) in inner.armed.drain(..) {
            bell.ring();
        }
        drop(inner);
        self.0.1.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{RecvError, channel};

    use tapdeck_core::Stream;

    use super::*;

    fn snapshot(id: u64) -> Event {
        Event::Snapshot { id, label: "".into() }
    }

    /// Whoever waits for an entry must not wait for ever because the recorder never saw it.
    #[test]
    fn what_the_recorder_lost_is_answered() {
        let log = SharedLog::new(LogLimits { keep: 1000, cap: 1000 });
        let reader = log.reader_from_start(ReaderKind::Lossless);
        log.set_recorder(reader);
        let (tx, lost) = channel();
        log.append_awaited(snapshot(1), Stamp::default(), tx);
        let bytes = bytes::Bytes::from(vec![b'x'; 5000]);
        log.append(Event::Output { stream: Stream::Out, bytes }, Stamp::default());
        let (tx, kept) = channel();
        log.append_awaited(snapshot(2), Stamp::default(), tx);
        let mut entries = Vec::new();
        let lag = log.read(reader, usize::MAX, &mut entries).expect("it lost something");
        log.answer_lost(&lag);
        assert!(matches!(lost.try_recv(), Ok(Err(SnapshotError::Failed(_)))));
        assert!(kept.try_recv().is_err(), "not lost, not yet on disk");
        let anchor = Anchor { byte: 5000, ts_ns: 1 };
        log.answer(entries.last().expect("the second").seq, Ok(anchor));
        assert_eq!(kept.recv(), Ok(Ok(anchor)));
        let (tx, waiting) = channel();
        log.append_awaited(snapshot(3), Stamp::default(), tx);
        log.unset_recorder(reader);
        assert_eq!(waiting.recv(), Err(RecvError), "told when the recorder stops");
    }
}
