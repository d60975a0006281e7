//! The log as threads share it: the driver appends, readers wait.
//!
//! Appending takes one uncontended lock and rarely wakes a thread. A reader says how much must be
//! pending before it wants to be woken, and sleeps on its own deadline otherwise. That keeps the
//! path between program and terminal free of work that is not its own.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};

use crate::inbox::{Anchor, Handle, NewSnapshot, SnapshotError};
use crate::recorder::OnFailure;
use tapdeck_core::{Entry, Event, Lag, Log, LogLimits, Offset, ReaderId, ReaderKind, Seq, Stamp, WinSize};

struct Inner {
    log: Log,
    /// One for each reader that sleeps.
    alarms: Vec<Alarm>,
    closed: bool,
    /// The program has no terminal.
    pipes: bool,
    /// Readers that are to read what there is and stop.
    retired: Vec<ReaderId>,
    /// Number of the last flush that was asked for.
    flush: u64,
    flushers: Vec<Flusher>,
    /// The recorder that anchors snapshots.
    recorder: Option<ReaderId>,
    /// Other readers that the program waits for.
    waited_for: Vec<ReaderId>,
    /// Where to tell that an entry is on disk, by its place.
    awaited: BTreeMap<Seq, Sender<Result<Anchor, SnapshotError>>>,
    /// Something awaited was appended since the recorder last woke.
    urgent: bool,
    /// The recordings of the session, in the order of their start.
    recordings: Vec<RecordingStatus>,
    /// Those that failed, in the order in which they did.
    failures: Vec<RecordingStatus>,
    /// Pauses of the recordings, by their first and last entries; the last may not be over. Those
    /// that no reader can meet any more are let go.
    pauses: VecDeque<(Seq, Option<Seq>)>,
    /// Who paused them, or let them go on, last.
    paused_by: Arc<str>,
    /// Rung when a recording fails, pauses, goes on or ends.
    watchers: Vec<Bell>,
    /// The session's driver, once there is one.
    driver: Option<Handle>,
    /// What is done when the program has ended, before the log is closed.
    last_words: Vec<LastWords>,
}

/// Something that is done at a session's end, while its log can still be written to.
type LastWords = Box<dyn FnOnce() + Send>;

/// How a recording of a session is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordingStatus {
    /// Its absolute path.
    pub path: PathBuf,
    /// Whether nothing more is written to it.
    pub ended: bool,
    /// Whether it is paused.
    pub paused: bool,
    /// The first thing that went wrong, in a sentence.
    pub error: Option<String>,
    /// What the session does if it fails.
    pub(crate) on_failure: OnFailure,
}

/// A sleeping reader, to be woken once, when this much is pending for it.
struct Alarm {
    reader: ReaderId,
    weight: usize,
    wakes: Wakes,
}

/// What an alarm wakes. Every reader has one of its own, so that readers cannot miss each other's.
enum Wakes {
    /// A thread in [`SharedLog::wait`].
    Thread(Arc<Condvar>),
    /// A poll that watches the bell's descriptor.
    Poll(Bell),
}

impl Wakes {
    fn wake(&self) {
        match self {
            Self::Thread(condvar) => condvar.notify_one(),
            Self::Poll(bell) => bell.ring(),
        }
    }
}

/// A reader that keeps what it reads elsewhere, and can say when all of it is there.
struct Flusher {
    reader: ReaderId,
    /// The flush that it was last woken for, and the last that it has completed.
    woken: u64,
    done: u64,
}

struct Shared {
    inner: Mutex<Inner>,
    /// A flush was completed.
    flushed: Condvar,
}

/// A log shared between the driver and its readers.
#[derive(Clone)]
pub struct SharedLog(Arc<Shared>);

impl fmt::Debug for SharedLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.lock();
        f.debug_struct("SharedLog")
            .field("end", &inner.log.end())
            .field("offset", &inner.log.offset())
            .field("closed", &inner.closed)
            .finish_non_exhaustive()
    }
}

/// A descriptor that becomes readable when rung; shared by those that ring and those that wait.
#[derive(Debug, Clone)]
pub struct Bell(Arc<OwnedFd>);

impl Bell {
    /// Makes a silent bell.
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
        // It fails only when the bell is silent already.
        let _ = rustix::io::read(&self.0, &mut count);
    }

    /// The descriptor to poll.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// Enough is pending, or the time is over.
    Ready,
    /// Everything so far is to be kept safe; answer with `SharedLog::flushed`.
    Flush,
    /// The session is over; read what is left.
    Closed,
}

impl Inner {
    /// What the reader is wanted for, apart from entries.
    fn called(&self, id: ReaderId) -> Option<Woken> {
        if self.flushers.iter().any(|f| f.reader == id && f.done < self.flush) {
            Some(Woken::Flush)
        } else if self.closed || self.retired.contains(&id) {
            Some(Woken::Closed)
        } else if self.urgent && self.recorder == Some(id) {
            Some(Woken::Ready)
        } else {
            None
        }
    }

    /// Notes that the recordings pause or go on at this entry, and has that told.
    fn note_pause(&mut self, seq: Seq, pauses: bool, by: Arc<str>) {
        self.paused_by = by;
        let oldest = self.log.first();
        while self.pauses.front().is_some_and(|(_, end)| end.is_some_and(|end| end < oldest)) {
            self.pauses.pop_front();
        }
        if pauses {
            self.pauses.push_back((seq, None));
        } else if let Some((_, end)) = self.pauses.back_mut() {
            *end = Some(seq);
        }
        self.watchers.iter().for_each(Bell::ring);
    }

    /// Takes the alarms to ring. Rung without the lock, they do not make the woken threads wait.
    fn alarms_of(&mut self, due: impl Fn(&Log, &Alarm) -> bool) -> Vec<Alarm> {
        let Self { alarms, log, .. } = self;
        alarms.extract_if(.., |alarm| due(log, alarm)).collect()
    }
}

impl SharedLog {
    /// Makes an empty log.
    pub fn new(limits: LogLimits) -> Self {
        let inner = Inner {
            log: Log::new(limits),
            alarms: Vec::new(),
            closed: false,
            pipes: false,
            retired: Vec::new(),
            flush: 0,
            flushers: Vec::new(),
            recorder: None,
            waited_for: Vec::new(),
            awaited: BTreeMap::new(),
            urgent: false,
            recordings: Vec::new(),
            failures: Vec::new(),
            pauses: VecDeque::new(),
            paused_by: "".into(),
            watchers: Vec::new(),
            driver: None,
            last_words: Vec::new(),
        };
        Self(Arc::new(Shared { inner: Mutex::new(inner), flushed: Condvar::new() }))
    }

    /// How much it keeps.
    pub(crate) fn limits(&self) -> LogLimits {
        self.lock().log.limits()
    }

    /// Says that the program has no terminal; recorders note it.
    pub(crate) fn set_pipes(&self) {
        self.lock().pipes = true;
    }

    /// Whether the program has no terminal.
    pub(crate) fn is_on_pipes(&self) -> bool {
        self.lock().pipes
    }

    /// Appends an event; never waits for a reader.
    pub fn append(&self, event: Event, at: Stamp) -> Seq {
        let mut inner = self.lock();
        let pause = match &event {
            Event::RecordingPaused { by } => Some((true, Arc::clone(by))),
            Event::RecordingResumed { by, .. } => Some((false, Arc::clone(by))),
            _ => None,
        };
        let seq = inner.log.append(event, at);
        if let Some((pauses, by)) = pause {
            inner.note_pause(seq, pauses, by);
        }
        let due = inner.alarms_of(|log, alarm| log.pending(alarm.reader) >= alarm.weight);
        drop(inner);
        due.iter().for_each(|alarm| alarm.wakes.wake());
        seq
    }

    /// Appends an event and has the recorder answer through `reply` once it is on disk. The
    /// recorder is woken at once. In a session that is not recorded, that is the answer.
    pub(crate) fn append_awaited(
        &self,
        event: Event,
        at: Stamp,
        reply: Sender<Result<Anchor, SnapshotError>>,
    ) {
        let mut inner = self.lock();
        let Some(recorder) = inner.recorder else {
            // A receiver that is gone no longer wants the answer.
            let _ = reply.send(Err(SnapshotError::NotRecorded));
            return;
        };
        let seq = inner.log.append(event, at);
        inner.awaited.insert(seq, reply);
        inner.urgent = true;
        let due = inner
            .alarms_of(|log, alarm| alarm.reader == recorder || log.pending(alarm.reader) >= alarm.weight);
        drop(inner);
        due.iter().for_each(|alarm| alarm.wakes.wake());
    }

    /// The recorder's answer to [`SharedLog::append_awaited`].
    pub(crate) fn answer(&self, seq: Seq, result: Result<Anchor, SnapshotError>) {
        let reply = self.lock().awaited.remove(&seq);
        if let Some(reply) = reply {
            // A receiver that is gone no longer wants the answer.
            let _ = reply.send(result);
        }
    }

    /// The recorder's answer for entries that it never saw.
    pub(crate) fn answer_lost(&self, lag: &Lag) {
        let mut inner = self.lock();
        let rest = inner.awaited.split_off(&lag.seqs.start);
        for (seq, reply) in rest {
            if seq < lag.seqs.end {
                // A receiver that is gone no longer wants the answer.
                let _ = reply.send(Err(SnapshotError::Failed("the disk was too slow".into())));
            } else {
                inner.awaited.insert(seq, reply);
            }
        }
    }

    /// Makes a reader the recorder that anchors snapshots.
    pub(crate) fn set_recorder(&self, recorder: ReaderId) {
        self.lock().recorder = Some(recorder);
    }

    /// Has the program wait for this reader, too, while it is far behind but gets on.
    pub(crate) fn wait_for_reader(&self, reader: ReaderId) {
        self.lock().waited_for.push(reader);
    }

    /// Ends a recorder's part; callers that still wait for it get no answer.
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

    /// Adds a lossless reader that starts at the oldest entry kept. Returns also the byte of output
    /// there, its time, and the terminal's size before it.
    pub(crate) fn late_reader(&self) -> (ReaderId, Offset, Option<Stamp>, WinSize) {
        let mut inner = self.lock();
        let (offset, at, size) = inner.log.oldest();
        (inner.log.reader_from_start(ReaderKind::Lossless), offset, at, size)
    }

    /// Tells a reader to read what there is and stop.
    pub(crate) fn retire(&self, id: ReaderId) {
        let mut inner = self.lock();
        inner.retired.push(id);
        let due = inner.alarms_of(|_, alarm| alarm.reader == id);
        drop(inner);
        due.iter().for_each(|alarm| alarm.wakes.wake());
    }

    /// How far the recorder is behind, and how far it has got; `None` in a session that is not
    /// recorded. The driver waits for a recorder that advances.
    pub(crate) fn recorder_lag(&self) -> Option<(usize, u64)> {
        let inner = self.lock();
        let readers = inner.recorder.iter().chain(&inner.waited_for);
        let lags = readers.map(|reader| (inner.log.pending(*reader), inner.log.consumed(*reader)));
        lags.max()
    }

    /// Whether a native recorder puts the log on disk: it alone keeps snapshots and instructions.
    pub fn is_recorded(&self) -> bool {
        self.lock().recorder.is_some()
    }

    /// Notes that a recording starts.
    pub(crate) fn begin_recording(&self, path: &Path, on_failure: OnFailure) {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut inner = self.lock();
        inner.recordings.push(RecordingStatus { path, ended: false, paused: false, error: None, on_failure });
    }

    /// Notes how a recording is doing, and tells the driver and the watchers.
    pub(crate) fn note_recording(&self, path: &Path, ended: bool, error: Option<&String>) {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut guard = self.lock();
        let inner = &mut *guard;
        let known = inner.recordings.iter_mut().rfind(|r| r.path == path && !r.ended);
        let Some(recording) = known else { return };
        let fails = recording.error.is_none() && error.is_some();
        (recording.ended, recording.error) = (ended, error.cloned());
        if fails {
            inner.failures.push(recording.clone());
            if let Some(driver) = &inner.driver {
                driver.recording_failed(recording.on_failure);
            }
        }
        inner.watchers.iter().for_each(Bell::ring);
    }

    /// Forgets a recording that was stopped before the session ended, unless it failed.
    pub(crate) fn forget_recording(&self, path: &Path) {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        self.lock().recordings.retain(|recording| recording.path != path || recording.error.is_some());
    }

    /// Has the driver told of recordings that fail, and of those that have failed already.
    pub(crate) fn set_driver(&self, driver: Handle) {
        let mut inner = self.lock();
        inner.failures.iter().for_each(|failed| driver.recording_failed(failed.on_failure));
        inner.driver = Some(driver);
    }

    /// Whether an entry is in a pause of the recordings, which begins and ends with entries of its
    /// own.
    pub(crate) fn is_paused_at(&self, seq: Seq) -> bool {
        let inner = self.lock();
        inner.pauses.iter().any(|(start, end)| *start < seq && end.is_none_or(|end| seq <= end))
    }

    /// Whether the recordings of the session are paused, and the client that has paused them or let
    /// them go on last.
    pub fn is_paused(&self) -> (bool, Arc<str>) {
        let inner = self.lock();
        let paused = inner.pauses.back().is_some_and(|(_, end)| end.is_none());
        (paused, Arc::clone(&inner.paused_by))
    }

    /// Rings the bell whenever a recording fails, pauses, goes on or ends.
    pub fn watch_recordings(&self, bell: &Bell) {
        self.lock().watchers.push(bell.clone());
    }

    /// Returns the recording that failed, or else the newest that is still written, or else the
    /// newest.
    pub fn recording(&self) -> Option<RecordingStatus> {
        let inner = self.lock();
        let failed = inner.recordings.iter().find(|recording| recording.error.is_some());
        let running = || inner.recordings.iter().rfind(|recording| !recording.ended);
        let status = failed.or_else(running).or(inner.recordings.last()).cloned()?;
        let paused = inner.pauses.back().is_some_and(|(_, end)| end.is_none());
        Some(RecordingStatus { paused: paused && !status.ended, ..status })
    }

    /// Whether a recording is still written.
    pub fn is_recording(&self) -> bool {
        self.lock().recordings.iter().any(|recording| !recording.ended)
    }

    /// Returns the recordings that failed, in the order in which they did, from the `from`th on.
    pub fn failed_recordings(&self, from: usize) -> Vec<RecordingStatus> {
        self.lock().failures.get(from..).unwrap_or_default().to_vec()
    }

    /// The oldest byte of output still kept.
    pub fn oldest(&self) -> Offset {
        self.lock().log.oldest().0
    }

    /// Removes a reader; what only it held is let go.
    pub fn remove_reader(&self, id: ReaderId) {
        let mut inner = self.lock();
        inner.retired.retain(|r| *r != id);
        inner.alarms.retain(|alarm| alarm.reader != id);
        inner.flushers.retain(|f| f.reader != id);
        inner.waited_for.retain(|reader| *reader != id);
        inner.log.remove_reader(id);
        drop(inner);
        // A flush may have waited for this reader alone.
        self.0.flushed.notify_all();
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
    pub fn offset(&self) -> Offset {
        self.lock().log.offset()
    }

    /// The number of the entry that comes next. A reader that reads only as far as this comes to an
    /// end, however fast the program writes.
    pub fn end(&self) -> Seq {
        self.lock().log.end()
    }

    /// Waits until `weight` is pending for the reader, the reader is wanted for something else, or
    /// `at_most` is over.
    pub fn wait(&self, id: ReaderId, weight: usize, at_most: Option<Duration>) -> Woken {
        let mut inner = self.lock();
        let asleep = |i: &mut Inner| i.called(id).is_none() && i.log.pending(id) < weight;
        if asleep(&mut inner) {
            let alarm = Arc::new(Condvar::new());
            inner.alarms.retain(|alarm| alarm.reader != id);
            inner.alarms.push(Alarm { reader: id, weight, wakes: Wakes::Thread(Arc::clone(&alarm)) });
            inner = match at_most {
                Some(limit) => {
                    let waited = alarm.wait_timeout_while(inner, limit, asleep);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => alarm.wait_while(inner, asleep).unwrap_or_else(PoisonError::into_inner),
            };
            inner.alarms.retain(|alarm| alarm.reader != id);
        }
        let woken = inner.called(id).unwrap_or(Woken::Ready);
        if inner.recorder == Some(id) {
            inner.urgent = false;
        }
        let flush = inner.flush;
        if let Some(flusher) = inner.flushers.iter_mut().find(|f| f.reader == id) {
            flusher.woken = flush;
        }
        woken
    }

    /// Has [`SharedLog::flush`] wait for this reader from now on, until it is removed.
    pub(crate) fn add_flusher(&self, reader: ReaderId) {
        let mut inner = self.lock();
        let flush = inner.flush;
        inner.flushers.push(Flusher { reader, woken: flush, done: flush });
    }

    /// Has every tap keep safe what was appended so far, and waits for them, but no longer than
    /// this. Returns whether all have done so; where none runs, that is at once.
    pub fn flush(&self, at_most: Duration) -> bool {
        let mut inner = self.lock();
        if inner.flushers.is_empty() {
            return true;
        }
        inner.flush += 1;
        let flush = inner.flush;
        let wanted: Vec<ReaderId> = inner.flushers.iter().map(|f| f.reader).collect();
        let due = inner.alarms_of(|_, alarm| wanted.contains(&alarm.reader));
        due.iter().for_each(|alarm| alarm.wakes.wake());
        let unsafe_yet = |i: &mut Inner| i.flushers.iter().any(|f| f.done < flush);
        let waited = self.0.flushed.wait_timeout_while(inner, at_most, unsafe_yet);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// A reader's answer to the flush that it was woken for.
    pub(crate) fn flushed(&self, reader: ReaderId) {
        let mut inner = self.lock();
        if let Some(flusher) = inner.flushers.iter_mut().find(|f| f.reader == reader) {
            flusher.done = flusher.woken;
        }
        drop(inner);
        self.0.flushed.notify_all();
    }

    /// Rings the bell once, as soon as this much is pending for the reader (now, if it is already),
    /// or the log is closed. Replaces what the reader asked for before.
    pub fn arm(&self, id: ReaderId, weight: usize, bell: &Bell) {
        let mut inner = self.lock();
        inner.alarms.retain(|alarm| alarm.reader != id);
        if inner.closed || inner.log.pending(id) >= weight {
            bell.ring();
        } else {
            inner.alarms.push(Alarm { reader: id, weight, wakes: Wakes::Poll(bell.clone()) });
        }
    }

    /// Whether nothing more will be appended.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Has this done when the program has ended, before the log is closed. The session ends only
    /// after it has returned, so it must not take long.
    pub fn before_close(&self, last_words: impl FnOnce() + Send + 'static) {
        self.lock().last_words.push(Box::new(last_words));
    }

    /// Records a snapshot of a session whose program has ended. A driver that still runs has to be
    /// asked instead, because only it knows what the program has written: see
    /// [`Handle::record_snapshot`].
    pub fn record_last_snapshot(
        &self,
        taken: NewSnapshot,
        now: Stamp,
        at_most: Duration,
    ) -> Result<Anchor, SnapshotError> {
        let (tx, rx) = channel();
        self.append_awaited(taken.event(), now, tx);
        rx.recv_timeout(at_most).unwrap_or(Err(SnapshotError::Late(at_most)))
    }

    /// Says that nothing more will be appended.
    pub fn close(&self) {
        let last_words = std::mem::take(&mut self.lock().last_words);
        last_words.into_iter().for_each(|say| say());
        let mut inner = self.lock();
        inner.closed = true;
        let due = std::mem::take(&mut inner.alarms);
        drop(inner);
        due.iter().for_each(|alarm| alarm.wakes.wake());
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::RecvError;

    use tapdeck_core::{Stream, WallTime};

    use super::*;

    fn snapshot(id: u64) -> Event {
        Event::Snapshot { id, label: "".into(), tree: None }
    }

    /// A caller must not wait for ever for an entry that the recorder never saw.
    #[test]
    fn what_the_recorder_lost_is_answered() {
        let log = SharedLog::new(LogLimits::new(1000, 1000));
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
        let anchor = Anchor { byte: Offset(5000), at: WallTime::from_nanos(1) };
        log.answer(entries.last().expect("the second").seq, Ok(anchor));
        assert_eq!(kept.recv(), Ok(Ok(anchor)));
        let (tx, waiting) = channel();
        log.append_awaited(snapshot(3), Stamp::default(), tx);
        log.unset_recorder(reader);
        assert_eq!(waiting.recv(), Err(RecvError), "told when the recorder stops");
    }

    /// One reader's wish for much must not replace another's for anything.
    #[test]
    fn each_reader_has_a_wake_up_of_its_own() {
        let log = SharedLog::new(LogLimits::default());
        let [light, heavy] = [(); 2].map(|()| log.reader_from_start(ReaderKind::Lossless));
        std::thread::scope(|scope| {
            let first = scope.spawn(|| log.wait(light, 1, None));
            let second = scope.spawn(|| log.wait(heavy, 1 << 20, None));
            while log.lock().alarms.len() < 2 {
                std::thread::yield_now();
            }
            log.append(snapshot(1), Stamp::default());
            assert_eq!(first.join().expect("no panic"), Woken::Ready);
            assert!(!second.is_finished(), "it wants more");
            log.close();
            assert_eq!(second.join().expect("no panic"), Woken::Closed);
        });
    }

    /// A flush is done when each of the readers that keep something has answered, or is gone.
    #[test]
    fn a_flush_waits_for_each_reader_that_keeps_something() {
        let log = SharedLog::new(LogLimits::default());
        let [answers, leaves] = [(); 2].map(|()| {
            let reader = log.reader_from_start(ReaderKind::Lossless);
            log.add_flusher(reader);
            reader
        });
        std::thread::scope(|scope| {
            let flush = scope.spawn(|| log.flush(Duration::from_secs(60)));
            assert_eq!(log.wait(answers, 1, None), Woken::Flush);
            log.flushed(answers);
            assert_eq!(log.wait(leaves, 1, None), Woken::Flush);
            assert!(!flush.is_finished(), "one has not answered");
            log.remove_reader(leaves);
            assert!(flush.join().expect("no panic"));
        });
        assert_eq!(log.wait(answers, 1, Some(Duration::ZERO)), Woken::Ready, "answered once");
    }
}
