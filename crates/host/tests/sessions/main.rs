//! Sessions as a library user runs them: scripted backends, in-process programs, replays,
//! cancellation.

#![allow(unreachable_pub, missing_docs, reason = "tests explain themselves by their names")]
#![allow(clippy::disallowed_methods, reason = "tests start programs and take the time")]

mod faulty;
mod in_process;
mod replay;
mod snapshot;
mod taps;

use tapdeck_core::{Entry, Event, LogLimits, ReaderKind, Stream, WinSize};
use tapdeck_host::backend::Backend;
use tapdeck_host::{Clock, Config, Driver, Outcome, SharedLog};

/// Runs a backend to its end and returns everything that happened.
pub fn run(backend: impl Backend) -> (std::io::Result<Outcome>, Vec<Entry>) {
    let clock = Clock::start();
    let log = SharedLog::new(LogLimits::new(64 << 20, 64 << 20));
    log.append(Event::Resize(WinSize::cells(80, 24)), clock.now());
    let reader = log.reader_from_start(ReaderKind::Lossless);
    let driver = Driver::new(backend, clock, Config::default(), log.clone()).expect("a driver");
    let outcome = driver.run();
    let mut entries = Vec::new();
    while {
        log.read(reader, usize::MAX, &mut entries);
        log.pending(reader) > 0
    } {}
    (outcome, entries)
}

/// All output of a stream.
pub fn output(entries: &[Entry], of: Stream) -> Vec<u8> {
    let pieces = entries.iter().filter_map(|e| match &e.event {
        Event::Output { stream, bytes } if *stream == of => Some(&bytes[..]),
        _ => None,
    });
    pieces.flatten().copied().collect()
}
