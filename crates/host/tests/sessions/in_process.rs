//! A program that is a function, with turns.

use std::time::Duration;

use bytes::Bytes;
use tapdeck_core::{Event, Exit, LogLimits, ReaderKind, Role, Stream};
use tapdeck_host::backend::{Backend, InProcess};
use tapdeck_host::{Clock, Config, Driver, Ended, SharedLog};

use crate::{output, run};

#[test]
fn a_runner_says_when_it_is_your_turn() {
    let backend = InProcess::start(|console| {
        console.emit(b"name? ")?;
        let name = console.read_line()?.unwrap_or_default();
        console.emit(b"hello ")?;
        console.emit(&name)?;
        Ok(i32::from(console.read_line()?.is_none()))
    })
    .expect("it starts");
    let clock = Clock::start();
    let log = SharedLog::new(LogLimits::default());
    let reader = log.reader_from_start(ReaderKind::Lossless);
    let driver = Driver::new(backend, clock, Config::default(), log.clone()).expect("a driver");
    let handle = driver.handle();
    let session = std::thread::spawn(move || driver.run());
    let me = handle.join("me", Role::Bot).expect("it runs");
    handle.take(me).expect("it runs").expect("free");
    let mut entries = Vec::new();
    let mut turns = 0;
    while turns < 2 {
        log.wait(reader, 1, None);
        let from = entries.len();
        log.read(reader, usize::MAX, &mut entries);
        for entry in &entries[from..] {
            if matches!(entry.event, Event::Wait) {
                turns += 1;
                handle
                    .input(me, None, Bytes::from(format!("Ada{turns}\n")))
                    .expect("it runs")
                    .expect("admitted");
            }
        }
    }
    assert_eq!(session.join().expect("no panic").expect("it ends").exit, Exit::Code(0));
    log.read(reader, usize::MAX, &mut entries);
    assert_eq!(output(&entries, Stream::Out), b"name? hello Ada1");
}

#[test]
fn large_output_is_whole_and_bounded() {
    let backend = InProcess::start(|console| {
        for i in 0..1000u32 {
            console.emit(&i.to_le_bytes().repeat(1000))?;
        }
        Ok(7)
    })
    .expect("it starts");
    let (outcome, entries) = run(backend);
    assert_eq!(outcome.expect("it ends").exit, Exit::Code(7));
    let expected: Vec<u8> = (0..1000u32).flat_map(|i| i.to_le_bytes().repeat(1000)).collect();
    assert!(output(&entries, Stream::Out) == expected);
}

#[test]
fn a_runner_that_panics_is_an_exit_code() {
    let backend = InProcess::start(|_| panic!("a scripted panic")).expect("it starts");
    assert_eq!(run(backend).0.expect("it ends").exit, Exit::Code(101));
}

#[test]
fn a_waiting_runner_can_be_cancelled() {
    let backend = InProcess::start(|console| {
        console.read_line()?;
        Ok(0)
    })
    .expect("it starts");
    let log = SharedLog::new(LogLimits::default());
    let driver = Driver::new(backend, Clock::start(), Config::default(), log).expect("a driver");
    driver.handle().cancel();
    let outcome = driver.run().expect("it ends");
    assert_eq!((outcome.exit, outcome.ended), (Exit::Code(1), Ended::Cancelled));
}

/// A runner that neither wrote nor read kept its session for ever, whatever the time limit.
#[test]
fn a_busy_runner_is_given_up_when_its_time_is_over() {
    let (done, until_done) = std::sync::mpsc::channel::<()>();
    let backend = InProcess::start(move |_| {
        let _ = until_done.recv();
        Ok(0)
    })
    .expect("it starts");
    let short = Duration::from_millis(20);
    let config = Config::default().timeout(short).hang_up_after(short).kill_after(short);
    let driver = Driver::new(backend, Clock::start(), config, SharedLog::new(LogLimits::default()));
    let outcome = driver.expect("a driver").run().expect("it ends");
    assert_eq!((outcome.exit, outcome.ended), (Exit::Signal(libc::SIGKILL), Ended::TimedOut));
    drop(done);
}

#[test]
fn only_signals_that_end_a_program_end_a_runner() {
    let backend = InProcess::start(|console| {
        let line = console.read_line()?;
        console.emit(&line.unwrap_or_default())?;
        Ok(5)
    });
    let mut backend = backend.expect("it starts");
    for harmless in [libc::SIGWINCH, libc::SIGCONT] {
        backend.signal(harmless).expect("known");
    }
    for unknown in [0, 999] {
        assert!(backend.signal(unknown).is_err(), "{unknown}");
    }
    backend.write(b"still here\r").expect("room");
    let (outcome, entries) = run(backend);
    assert_eq!(outcome.expect("it ends").exit, Exit::Code(5));
    assert_eq!(output(&entries, Stream::Out), b"still here");
}

/// Each CR LF was a line and an empty one.
#[test]
fn a_line_has_one_end_however_it_is_spelt() {
    let mut backend = InProcess::start(|console| {
        while let Some(line) = console.read_line()? {
            console.emit(&[b"[", &line[..], b"]"].concat())?;
        }
        Ok(0)
    })
    .expect("it starts");
    for piece in [&b"one\r\ntwo\nthree\r"[..], b"\nfour\r\r\n\n", b"rest"] {
        backend.write(piece).expect("room");
    }
    backend.end_input(true, Duration::ZERO).expect("told");
    let (outcome, entries) = run(backend);
    assert_eq!(outcome.expect("it ends").exit, Exit::Code(0));
    let lines = output(&entries, Stream::Out);
    assert_eq!(String::from_utf8_lossy(&lines), "[one][two][three][four][][][rest]");
}
