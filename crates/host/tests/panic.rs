//! A panic or a fault in the middle of a session gives the user's terminal back. The test starts
//! itself again on a terminal of its own, where a backend panics on purpose.

#![allow(clippy::disallowed_methods, reason = "tests start programs and take the time")]

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};
use tapdeck_core::{Exit, LogLimits, Stamp, Stream, WinSize};
use tapdeck_host::backend::{Backend, EndOfInput, Got, StopSignal, Watch};
use tapdeck_host::{
    Clock, Config, Driver, Keyboard, SharedLog, Signals, UserSide, restore_terminal_on_panic,
};

const ROLE: &str = "TAPDECK_TEST_PANICS";

/// Enters the alternate screen, waits to be told, and panics.
struct Bomb {
    shown: bool,
}

impl Backend for Bomb {
    fn watch(&self) -> Watch<'_> {
        Watch { read_at: (!self.shown).then_some(tapdeck_core::Time::ZERO), ..Watch::default() }
    }

    fn read(&mut self, buf: &mut [u8], _now: Stamp) -> io::Result<Got> {
        if self.shown {
            return Ok(Got::Nothing);
        }
        self.shown = true;
        let picture = b"\x1b[?1049h\x1b[?25lARMED";
        buf[..picture.len()].copy_from_slice(picture);
        Ok(Got::Bytes(Stream::Out, picture.len()))
    }

    fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        panic!("a panic on purpose")
    }

    fn end_input(&mut self, _line_open: bool, _quiet: Duration) -> io::Result<EndOfInput> {
        Ok(EndOfInput::Told)
    }

    fn resize(&mut self, _size: WinSize) -> io::Result<()> {
        Ok(())
    }

    fn signal(&mut self, _signal: i32) -> io::Result<()> {
        Ok(())
    }

    fn stop(&mut self, _how: StopSignal) -> io::Result<()> {
        Ok(())
    }

    fn freeze(&mut self, _frozen: bool) -> io::Result<()> {
        Ok(())
    }

    fn exited(&mut self) -> io::Result<Option<Exit>> {
        Ok(None)
    }
}

/// Fills the stack, past its end.
#[allow(unconditional_recursion, reason = "on purpose")]
fn deeper(n: u64) -> u64 {
    let room = std::hint::black_box([n; 1024]);
    deeper(room[0] + 1) + room[1]
}

/// The half that runs on the terminal; does nothing when the tests are run.
#[test]
fn the_half_that_panics() {
    let Some(role) = std::env::var_os(ROLE) else { return };
    restore_terminal_on_panic();
    if role != "session" {
        let mut keyboard = Keyboard::take_dressed(b"\x1b[?1049hARMED", b"\x1b[?1049l").expect("a terminal");
        let _ = keyboard.wait(None);
        match role.to_str() {
            Some("abort") => std::process::abort(),
            Some("overflow") => assert_eq!(deeper(1), 0),
            _ => {}
        }
        panic!("a panic on purpose");
    }
    let signals = Signals::install().expect("signals");
    let user = UserSide::from_stdio(true).expect("a terminal");
    let log = SharedLog::new(LogLimits::default());
    let driver =
        Driver::new(Bomb { shown: false }, Clock::start(), Config::default(), log).expect("a driver");
    let _ = driver.with_user(user, Some(signals)).run();
}

#[test]
fn a_panic_gives_the_terminal_back() {
    gives_back("session", b"a panic on purpose");
}

#[test]
fn a_fault_gives_the_terminal_back() {
    gives_back("abort", b"ARMED");
    gives_back("overflow", b"overflowed its stack");
}

#[test]
fn a_panic_of_a_view_takes_its_picture_away_before_the_message() {
    let seen = gives_back("view", b"a panic on purpose");
    let at = |what: &[u8]| seen.windows(what.len()).position(|w| w == what);
    assert!(at(b"\x1b[?1049l") < at(b"a panic on purpose"), "{}", String::from_utf8_lossy(&seen));
}

fn gives_back(role: &str, says: &[u8]) -> Vec<u8> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags).expect("a pty");
    grantpt(&master).expect("granted");
    unlockpt(&master).expect("unlocked");
    let slave = ioctl_tiocgptpeer(&master, flags).expect("its other side");
    let before = format!("{:?}", tcgetattr(&slave).expect("settings"));
    let stdio = || Stdio::from(slave.try_clone().expect("a copy"));
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "the_half_that_panics", "--nocapture"])
        .env(ROLE, role)
        .stdin(stdio())
        .stdout(stdio())
        .stderr(stdio())
        .spawn()
        .expect("it starts");
    let mut seen = Vec::new();
    read_until(&master, &mut seen, b"ARMED");
    let raw = tcgetattr(&slave).expect("settings");
    assert!(!raw.local_modes.contains(LocalModes::ICANON), "raw while it runs");
    rustix::io::write(&master, b"x").expect("typed");
    read_until(&master, &mut seen, says);
    read_until(&master, &mut seen, b"\x1b[?1049l");
    child.wait().expect("it ends");
    assert_eq!(format!("{:?}", tcgetattr(&slave).expect("settings")), before);
    seen
}

fn read_until(master: &OwnedFd, seen: &mut Vec<u8>, what: &[u8]) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !seen.windows(what.len()).any(|w| w == what) {
        assert!(
            Instant::now() < deadline,
            "waited in vain for {what:?} in {:?}",
            String::from_utf8_lossy(seen)
        );
        let mut fds = [PollFd::from_borrowed_fd(master.as_fd(), PollFlags::IN)];
        let limit = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        if poll(&mut fds, Some(&limit)).is_ok_and(|n| n > 0) {
            let mut buf = [0; 4096];
            let n = rustix::io::read(master, &mut buf).unwrap_or(0);
            seen.extend_from_slice(&buf[..n]);
        }
    }
}
