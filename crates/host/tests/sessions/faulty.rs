//! A backend that does what a kernel may do on a bad day.

use std::collections::VecDeque;
use std::io;

use bytes::Bytes;
use tapdeck_core::{Event, Exit, LogLimits, Offset, Role, Stamp, Stream, Time, WinSize};
use tapdeck_host::backend::{Backend, EndOfInput, Got, StopSignal, Watch};
use tapdeck_host::{
    Clock, Config, Driver, Handle, SharedLog, SnapshotError, Unanswered, UserProfile, UserSide,
};

use crate::{output, run};

/// Room for input that the program has not read yet.
const GATE: usize = 256 * 1024;
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

/// What the next read does.
enum Read {
    Gives(Vec<u8>),
    Nothing,
    Interrupted,
    WouldBlock,
    /// Asks the session that it is a part of.
    Joins,
    Fails,
    Panics,
}

#[derive(Default)]
struct Faulty {
    reads: VecDeque<Read>,
    /// How many bytes each write takes; an error when the script says so.
    writes: VecDeque<io::Result<usize>>,
    taken: std::sync::Arc<std::sync::Mutex<Vec<u8>>>,
    killed: std::sync::Arc<std::sync::atomic::AtomicBool>,
    handle: std::sync::Arc<std::sync::OnceLock<Handle>>,
    /// Lives until this much was written to it.
    until_taken: usize,
    terminal: bool,
}

impl Backend for Faulty {
    fn watch(&self) -> Watch<'_> {
        Watch { read_at: Some(Time::ZERO), ..Watch::default() }
    }

    fn read(&mut self, buf: &mut [u8], _now: Stamp) -> io::Result<Got> {
        match self.reads.pop_front() {
            Some(Read::Gives(bytes)) => {
                buf[..bytes.len()].copy_from_slice(&bytes);
                Ok(Got::Bytes(Stream::Out, bytes.len()))
            }
            Some(Read::Nothing) => Ok(Got::Nothing),
            Some(Read::Interrupted) => Err(io::ErrorKind::Interrupted.into()),
            Some(Read::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Some(Read::Joins) => {
                let handle = self.handle.get().expect("it was given one");
                assert_eq!(handle.join("me", Role::Bot), Err(Unanswered::OwnThread));
                assert_eq!(handle.snapshot(1, "", PATIENCE), Err(Unanswered::OwnThread.into()));
                Ok(Got::Nothing)
            }
            Some(Read::Fails) => Err(io::Error::from_raw_os_error(5)),
            Some(Read::Panics) => panic!("a scripted panic"),
            None => Ok(Got::Closed),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = match self.writes.pop_front() {
            Some(Ok(n)) => n.min(bytes.len()),
            Some(Err(e)) => return Err(e),
            None => bytes.len(),
        };
        self.taken.lock().expect("no panic").extend_from_slice(&bytes[..n]);
        Ok(n)
    }

    fn has_terminal(&self) -> bool {
        self.terminal
    }

    fn end_input(&mut self, _line_open: bool, _quiet: std::time::Duration) -> io::Result<EndOfInput> {
        Ok(EndOfInput::Told)
    }

    fn resize(&mut self, _size: WinSize) -> io::Result<()> {
        Ok(())
    }

    fn signal(&mut self, _signal: i32) -> io::Result<()> {
        Ok(())
    }

    fn stop(&mut self, _how: StopSignal) -> io::Result<()> {
        self.killed.store(true, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }

    fn freeze(&mut self, _frozen: bool) -> io::Result<()> {
        Ok(())
    }

    fn exited(&mut self) -> io::Result<Option<Exit>> {
        let done = self.reads.is_empty() && self.taken.lock().expect("no panic").len() >= self.until_taken;
        Ok(done.then_some(Exit::Code(0)))
    }
}

#[test]
fn short_and_empty_reads_lose_nothing() {
    let reads = [
        Read::Nothing,
        Read::Gives(b"a".to_vec()),
        Read::Interrupted,
        Read::Gives(b"bc".to_vec()),
        Read::Nothing,
        Read::WouldBlock,
        Read::Gives(b"d".to_vec()),
    ];
    let (outcome, entries) = run(Faulty { reads: reads.into(), ..Faulty::default() });
    assert_eq!(outcome.expect("it ends").exit, Exit::Code(0));
    assert_eq!(output(&entries, Stream::Out), b"abcd");
    assert!(matches!(entries.last().map(|e| &e.event), Some(Event::Exit(Exit::Code(0)))));
}

/// Lost before: keys that were typed while the answers to a program that asks without reading
/// filled the gate.
#[test]
fn keys_wait_while_replies_fill_the_gate() {
    const PIECE: usize = 12_000;
    // Every three bytes ask, and every answer is longer than that.
    let queries = (0..GATE / PIECE).map(|_| Read::Gives(b"\x1b[c".repeat(PIECE / 3)));
    let pieces = queries.len();
    // The program reads only after that; then it takes its time to end.
    let writes = (0..=pieces).map(|_| Err(io::ErrorKind::WouldBlock.into()));
    let reads = queries.chain((0..8).map(|_| Read::Nothing)).collect();
    let backend = Faulty { reads, writes: writes.collect(), terminal: true, ..Faulty::default() };
    let taken = backend.taken.clone();
    let (user, client) = UserSide::queues(UserProfile { types: true, answers: false, stays: false });
    client.push(Bytes::from_static(b"typed"));
    let log = SharedLog::new(LogLimits::new(64 << 20, 64 << 20));
    let driver = Driver::new(backend, Clock::start(), Config::default(), log).expect("a driver");
    driver.with_user(user, None).run().expect("it ends");
    let taken = taken.lock().expect("no panic");
    assert!(taken.len() > GATE, "the gate was full: {}", taken.len());
    assert!(taken.ends_with(b"typed"), "the keys are lost");
}

/// A client that asked the driver while it held the model waited for ever when the driver waited
/// for the model.
#[test]
fn a_thread_that_holds_the_model_is_not_answered() {
    let backend = Faulty { until_taken: 1, ..Faulty::default() };
    let log = SharedLog::new(LogLimits::default());
    let driver = Driver::new(backend, Clock::start(), Config::default(), log).expect("a driver");
    let (handle, glass) = (driver.handle(), driver.glass());
    let session = std::thread::spawn(move || driver.run());
    let me = handle.join("me", Role::Bot).expect("it runs");
    let look = glass.look(&handle);
    assert_eq!(handle.holder(), Err(Unanswered::HoldsModel));
    assert_eq!(handle.clone().snapshot(1, "", PATIENCE), Err(Unanswered::HoldsModel.into()));
    let other = handle.clone();
    let asked = std::thread::spawn(move || other.holder()).join();
    assert_eq!(asked.expect("no panic"), Ok(None), "others are answered");
    drop(look);
    handle.claim(me).expect("it runs").expect("free");
    handle.input(me, None, Bytes::from_static(b"x")).expect("it runs").expect("admitted");
    session.join().expect("no panic").expect("it ends");
}

#[test]
fn a_backend_that_breaks_is_stopped_and_reported() {
    let backend =
        Faulty { reads: [Read::Gives(b"before".to_vec()), Read::Fails].into(), ..Faulty::default() };
    let killed = backend.killed.clone();
    let (outcome, entries) = run(backend);
    assert!(outcome.is_err());
    assert!(killed.load(std::sync::atomic::Ordering::Relaxed), "nothing is left running");
    assert_eq!(output(&entries, Stream::Out), b"before");
}

/// Writes that take one byte, or nothing, or fail once: each byte arrives once and in order, and
/// the log has what was delivered.
#[test]
fn short_writes_deliver_every_byte_once() {
    let writes =
        [Ok(1), Err(io::ErrorKind::Interrupted.into()), Ok(0), Ok(2), Err(io::ErrorKind::WouldBlock.into())];
    let backend = Faulty { writes: writes.into_iter().collect(), until_taken: 11, ..Faulty::default() };
    let taken = backend.taken.clone();
    let clock = Clock::start();
    let log = SharedLog::new(LogLimits::default());
    let reader = log.reader_from_start(tapdeck_core::ReaderKind::Lossless);
    let driver = Driver::new(backend, clock, Config::default(), log.clone()).expect("a driver");
    let handle = driver.handle();
    let session = std::thread::spawn(move || driver.run());
    let me = handle.join("me", Role::Bot).expect("the session runs");
    handle.take(me).expect("the session runs").expect("the stick is free");
    handle.input(me, None, Bytes::from_static(b"hello ")).expect("it runs").expect("admitted");
    handle.input(me, None, Bytes::from_static(b"world")).expect("it runs").expect("admitted");
    session.join().expect("no panic").expect("it ends");
    assert_eq!(*taken.lock().expect("no panic"), b"hello world");
    let mut entries = Vec::new();
    log.read(reader, usize::MAX, &mut entries);
    let logged: Vec<u8> = entries
        .iter()
        .filter_map(|e| match &e.event {
            Event::Input { bytes, .. } => Some(bytes.to_vec()),
            _ => None,
        })
        .flatten()
        .collect();
    assert_eq!(logged, b"hello world");
    assert!(entries.iter().any(|e| matches!(&e.event, Event::Holder(c) if c.to.as_deref() == Some("me"))));
    assert!(handle.join("late", Role::Bot).is_err(), "a session that is over cannot be joined");
}

#[test]
fn a_panic_in_a_backend_closes_the_log() {
    let clock = Clock::start();
    let log = SharedLog::new(LogLimits::default());
    let reader = log.reader_from_start(tapdeck_core::ReaderKind::Lossless);
    let backend = Faulty { reads: [Read::Gives(b"x".to_vec()), Read::Panics].into(), ..Faulty::default() };
    let driver = Driver::new(backend, clock, Config::default(), log.clone()).expect("a driver");
    let result = std::thread::spawn(move || driver.run()).join();
    assert!(result.is_err());
    // A recorder that waits must be told, or it would wait for ever.
    assert_eq!(log.wait(reader, usize::MAX, None), tapdeck_host::Woken::Closed);
}

/// A caller on the thread that answers waited for ever.
#[test]
fn the_thread_that_drives_is_told_that_it_cannot_ask() {
    let backend =
        Faulty { reads: [Read::Joins, Read::Gives(b"went on".to_vec())].into(), ..Faulty::default() };
    let given = backend.handle.clone();
    let log = SharedLog::new(LogLimits::default());
    let driver = Driver::new(backend, Clock::start(), Config::default(), log.clone()).expect("a driver");
    let handle = driver.handle();
    assert!(given.set(handle.clone()).is_ok());
    assert_eq!(driver.run().expect("it ends").exit, Exit::Code(0));
    assert_eq!(log.offset(), Offset(7));
    assert_eq!(handle.join("late", Role::Bot), Err(Unanswered::SessionOver));
    let long = "l".repeat(65_536);
    assert_eq!(handle.snapshot(1, &long, PATIENCE), Err(SnapshotError::LongLabel(65_536)));
}

/// With a log that holds less than the model may lag behind, output was missing on the screen.
#[test]
fn the_model_sees_everything_however_little_the_log_holds() {
    for cap in [10, 100_000, 4 << 20, 8 << 20] {
        let limits = LogLimits::new(0, cap);
        let mut reads = VecDeque::from([Read::Gives(b"\x1b]2;first\x07".to_vec())]);
        reads.extend((0..150).map(|_| Read::Gives(vec![b'x'; 60_000])));
        reads.push_back(Read::Gives(b"\x1b[2J\x1b[Hlast".to_vec()));
        let config = Config::default().log(limits);
        let backend = Faulty { reads, ..Faulty::default() };
        let driver = Driver::new(backend, Clock::start(), config, SharedLog::new(limits)).expect("a driver");
        let (handle, glass) = (driver.handle(), driver.glass());
        driver.run().expect("it ends");
        let look = glass.look(&handle);
        assert_eq!(look.term().screen().next().map(|row| row.text()).as_deref(), Some("last"), "cap {cap}");
        assert_eq!(look.term().title(), "first", "cap {cap}");
    }
}
