//! A backend that does what a kernel may do on a bad day.

use std::collections::VecDeque;
use std::io;

use bytes::Bytes;
use tapdeck_core::{Event, Exit, LogLimits, Role, Stamp, Stream, WinSize};
use tapdeck_host::backend::{Backend, EndOfInput, Got, Stop, Watch};
use tapdeck_host::{Clock, Config, Driver, SharedLog};

use crate::{output, run};

/// What the next read does.
enum Read {
    Gives(&'static [u8]),
    Nothing,
    Interrupted,
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
    /// Lives until this much was written to it.
    until_taken: usize,
}

impl Backend for Faulty {
    fn watch(&self) -> Watch<'_> {
        Watch { read_at_ns: Some(0), ..Watch::default() }
    }

    fn read(&mut self, buf: &mut [u8], _now: Stamp) -> io::Result<Got> {
        match self.reads.pop_front() {
            Some(Read::Gives(bytes)) => {
                buf[..bytes.len()].copy_from_slice(bytes);
                Ok(Got::Bytes(Stream::Out, bytes.len()))
            }
            Some(Read::Nothing | Read::Interrupted) => Ok(Got::Nothing),
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

    fn end_input(&mut self, _line_open: bool, _quiet: std::time::Duration) -> io::Result<EndOfInput> {
        Ok(EndOfInput::Told)
    }

    fn resize(&mut self, _size: WinSize) -> io::Result<()> {
        Ok(())
    }

    fn signal(&mut self, _signal: i32) -> io::Result<()> {
        Ok(())
    }

    fn stop(&mut self, _how: Stop) -> io::Result<()> {
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
        Read::Gives(b"a"),
        Read::Interrupted,
        Read::Gives(b"bc"),
        Read::Nothing,
        Read::Gives(b"d"),
    ];
    let (outcome, entries) = run(Faulty { reads: reads.into(), ..Faulty::default() });
    assert_eq!(outcome.expect("it ends").exit, Exit::Code(0));
    assert_eq!(output(&entries, Stream::Out), b"abcd");
    assert!(matches!(entries.last().map(|e| &e.event), Some(Event::Exit(Exit::Code(0)))));
}

#[test]
fn a_backend_that_breaks_is_stopped_and_reported() {
    let backend = Faulty { reads: [Read::Gives(b"before"), Read::Fails].into(), ..Faulty::default() };
    let killed = backend.killed.clone();
    let (outcome, entries) = run(backend);
    assert!(outcome.is_err());
    assert!(killed.load(std::sync::atomic::Ordering::Relaxed), "nothing is left running");
    assert_eq!(output(&entries, Stream::Out), b"before");
}

/// Writes that take one byte, or nothing, or fail once: each byte arrives once and in order, and the log has
/// what was delivered.
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
    assert!(entries.iter().any(|e| matches!(&e.event, Event::Driver(c) if c.to.as_deref() == Some("me"))));
    assert!(handle.join("late", Role::Bot).is_err(), "nobody joins a session that is over");
}

#[test]
fn a_panic_in_a_backend_closes_the_log() {
    let clock = Clock::start();
    let log = SharedLog::new(LogLimits::default());
    let reader = log.reader_from_start(tapdeck_core::ReaderKind::Lossless);
    let backend = Faulty { reads: [Read::Gives(b"x"), Read::Panics].into(), ..Faulty::default() };
    let driver = Driver::new(backend, clock, Config::default(), log.clone()).expect("a driver");
    let result = std::thread::spawn(move || driver.run()).join();
    assert!(result.is_err());
    // A recorder that waits must be told, or it would wait for ever.
    assert_eq!(log.wait(reader, usize::MAX, None), tapdeck_host::Woken::Closed);
}
