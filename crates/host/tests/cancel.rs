//! Cancelling at any moment leaves no process and no descriptor behind. A test program of its own,
//! because it counts the descriptors of the whole process.

#![allow(clippy::disallowed_methods, reason = "tests start programs and take the time")]

use std::time::Duration;

use tapdeck_core::{Event, LogLimits, WinSize};
use tapdeck_host::backend::{CommandSpec, LocalPty, TerminalSetup};
use tapdeck_host::{Clock, Config, Driver, Ended, InheritedSignals, SharedLog};

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// The processes, living or dead, with this word in their command line.
fn marked(word: &str) -> Vec<String> {
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    let lines = all.flatten().filter_map(|e| std::fs::read(e.path().join("cmdline")).ok());
    lines.map(|l| String::from_utf8_lossy(&l).replace('\0', " ")).filter(|l| l.contains(word)).collect()
}

#[test]
fn a_thousand_runs_cancelled_at_random_moments_leave_nothing() {
    let word = format!("tapdeck-cancel-{}", std::process::id());
    let scripts = [
        format!(": {word}; sleep 300"),
        format!(": {word}; sleep 300 & sleep 301 & wait"),
        format!(": {word}; trap '' HUP; (trap '' TERM; sleep 302) & wait"),
        format!(": {word}; yes"),
        format!(": {word}; exit 3"),
    ];
    let one = |i: u64| {
        let spec = CommandSpec::new(["sh", "-c", &scripts[i as usize % scripts.len()]]);
        let clock = Clock::start();
        let setup = TerminalSetup::default().size(WinSize::cells(80, 24));
        let backend = LocalPty::spawn(&spec, InheritedSignals::note(), &setup).expect("it starts");
        let log = SharedLog::new(LogLimits::default());
        log.append(Event::Resize(WinSize::cells(80, 24)), clock.now());
        let quick = Duration::from_millis(20);
        let config = Config::default().hang_up_after(quick).kill_after(quick);
        let driver = Driver::new(backend, clock, config, log).expect("a driver");
        let handle = driver.handle();
        let wait = Duration::from_micros(i.wrapping_mul(2_654_435_761) % 4_000);
        let canceller = std::thread::spawn(move || {
            std::thread::park_timeout(wait);
            handle.cancel();
        });
        let outcome = driver.run().expect("it ends");
        canceller.join().expect("no panic");
        assert!(matches!(outcome.ended, Ended::Cancelled | Ended::Program));
    };
    one(0);
    let before = descriptors();
    for i in 1..=1000 {
        one(i);
    }
    assert_eq!(descriptors(), before, "no descriptor is left");
    assert_eq!(marked(&word), Vec::<String>::new(), "no process is left");
}
