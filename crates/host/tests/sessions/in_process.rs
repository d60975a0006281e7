//! A program that is a function, with turns.

use bytes::Bytes;
use tapdeck_core::{Event, Exit, LogLimits, ReaderKind, Role, Stream};
use tapdeck_host::backend::InProcess;
use tapdeck_host::{Clock, Config, Driver, SharedLog};

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
    assert_eq!((outcome.exit, outcome.ended), (Exit::Code(1), tapdeck_host::Ended::Cancelled));
}
