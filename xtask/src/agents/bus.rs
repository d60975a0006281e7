//! What a session says on its bus, with the time at which it was said.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;
use tapdeck_term::{Settings, Size, Term};

use super::clock;

/// A state, when it was reported, and by which rule.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) at: f64,
    pub(super) name: String,
    pub(super) rule: String,
}

/// A text that the screen is expected to show, or to show no longer, and since when it does.
struct Expected {
    /// Without blanks.
    text: String,
    gone: bool,
    since: Option<f64>,
}

/// Everything that was pushed so far.
struct Seen {
    states: Vec<State>,
    /// The agent's screen, drawn here from its output: to ask the session would disturb what is
    /// measured.
    term: Term,
    expected: Vec<Expected>,
    written: f64,
    closed: bool,
}

impl Seen {
    /// The screen without blanks and line ends: agents wrap texts as they like.
    fn screen(&self) -> String {
        let rows = self.term.screen().map(|line| line.text());
        rows.flat_map(|row| row.chars().filter(|c| !c.is_whitespace()).collect::<Vec<_>>()).collect()
    }

    fn check(&mut self, at: f64) {
        if self.expected.iter().any(|e| e.since.is_none()) {
            let screen = self.screen();
            for expected in self.expected.iter_mut().filter(|e| e.since.is_none()) {
                if screen.contains(&expected.text) != expected.gone {
                    expected.since = Some(at);
                }
            }
        }
    }
}

/// A subscription to a session.
#[derive(Clone)]
pub(super) struct Watch(Arc<(Mutex<Seen>, Condvar)>);

/// A text that was asked for.
#[derive(Clone, Copy)]
pub(super) struct Wanted(usize);

impl Watch {
    /// Subscribes to the session that listens at this socket and has a terminal of this size.
    pub(super) fn start(socket: &Path, size: Size) -> Result<Self> {
        let stream = UnixStream::connect(socket).with_context(|| socket.display().to_string())?;
        let mut to = stream.try_clone()?;
        to.write_all(b"HELLO {\"name\":\"judge\",\"role\":\"observer\",\"max_frame\":16777216}\n")?;
        to.write_all(b"SUB {\"frames\":\"none\",\"out\":true,\"since\":0}\nEXPLAIN\n")?;
        let seen = Seen {
            states: Vec::new(),
            term: Term::new(size, Settings::default()),
            expected: Vec::new(),
            written: clock(),
            closed: false,
        };
        let watch = Self(Arc::new((Mutex::new(seen), Condvar::new())));
        let same = watch.clone();
        std::thread::spawn(move || {
            // The connection ends with the session.
            let _held_open = to;
            for line in BufReader::new(stream).split(b'\n') {
                let Ok(line) = line else { break };
                same.take(&line);
            }
            same.lock().closed = true;
            same.0.1.notify_all();
        });
        Ok(watch)
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, line: &[u8]) {
        let at = clock();
        let line = String::from_utf8_lossy(line);
        let (verb, payload) = line.split_once(' ').unwrap_or((&line, ""));
        let value: Value = serde_json::from_str(payload).unwrap_or_default();
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let state = || State { at, name: text("state"), rule: text("rule") };
        let mut seen = self.lock();
        match (verb, value["name"].as_str()) {
            ("OUT", _) => {
                let bytes: Vec<u8> = value.as_str().unwrap_or_default().chars().map(|c| c as u8).collect();
                seen.term.feed(&bytes);
                seen.written = at;
                seen.check(at);
            }
            ("EXPLAIN", _) if seen.states.is_empty() => seen.states.push(state()),
            ("EVENT", Some("STATE")) => seen.states.push(state()),
            ("EVENT", Some("CLOSED")) => seen.closed = true,
            _ => return,
        }
        drop(seen);
        self.0.1.notify_all();
    }

    /// Waits until something is seen, and returns it; `None` after so many seconds.
    fn wait<T>(&self, seconds: f64, mut look: impl FnMut(&Seen) -> Option<T>) -> Option<T> {
        let deadline = clock() + seconds * 1000.0;
        let mut seen = self.lock();
        loop {
            if let Some(found) = look(&seen) {
                return Some(found);
            }
            let left = deadline - clock();
            if left <= 0.0 {
                return None;
            }
            let left = Duration::from_secs_f64(left / 1000.0);
            seen = self.0.1.wait_timeout(seen, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Expects a text on the screen, or its disappearance, from now on. Ask for it before what
    /// brings it, so that no moment is missed.
    pub(super) fn expect(&self, text: &str, gone: bool) -> Wanted {
        let mut seen = self.lock();
        let text = text.chars().filter(|c| !c.is_whitespace()).collect();
        seen.expected.push(Expected { text, gone, since: None });
        seen.check(clock());
        Wanted(seen.expected.len() - 1)
    }

    /// Waits until what was expected is so, and returns since when it is.
    pub(super) fn shown(&self, wanted: Wanted, seconds: f64) -> Option<f64> {
        self.wait(seconds, |seen| seen.expected[wanted.0].since)
    }

    /// Follows a change of the session's size.
    pub(super) fn resize(&self, size: Size) {
        self.lock().term.resize(size);
    }

    /// Waits until the program has written nothing for so many milliseconds.
    pub(super) fn quiet(&self, ms: f64, seconds: f64) -> bool {
        let deadline = clock() + seconds * 1000.0;
        while clock() < deadline {
            let last = self.lock().written;
            if clock() - last >= ms {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    /// Waits until the session is in this state, at this time or after it, and returns since when.
    pub(super) fn state(&self, name: &str, since: f64, seconds: f64) -> Option<f64> {
        self.wait(seconds, |seen| {
            let last = seen.states.last().filter(|s| s.name == name).map(|s| s.at.max(since));
            let later = seen.states.iter().find(|s| s.name == name && s.at >= since).map(|s| s.at);
            later.or(last)
        })
    }

    /// Waits for the session's end.
    pub(super) fn closed(&self, seconds: f64) -> bool {
        self.wait(seconds, |seen| seen.closed.then_some(())).is_some()
    }

    /// The states that were seen, oldest first.
    pub(super) fn states(&self) -> Vec<State> {
        self.lock().states.clone()
    }
}
