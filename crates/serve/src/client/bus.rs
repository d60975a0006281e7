//! A client of the bus: one question at a time, and whatever the session pushes in between.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};
use tapdeck_host::Clock;

use super::{ClientError, connect};
use crate::conn::Conn;
use crate::door::Address;

/// The longest frame that is taken.
const MAX_FRAME: usize = 16 << 20;
/// Pushed frames that wait while an answer is waited for; older ones go.
const PUSHED: usize = 4096;

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// `OK`, `FRAME`, `EVENT` …
    pub verb: String,
    /// What follows it, usually JSON.
    pub payload: String,
}

impl Frame {
    /// The payload as JSON, `null` when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.payload).unwrap_or(Value::Null)
    }
}

/// Who a client is.
#[derive(Debug, Clone, Default)]
pub struct Hello<'a> {
    /// `human`, `bot` or `observer`.
    pub role: &'a str,
    /// A name for people.
    pub name: &'a str,
    /// What grants the role.
    pub token: Option<&'a str>,
}

/// A connection to the bus.
#[derive(Debug)]
pub struct Bus {
    conn: Conn,
    inbox: Vec<u8>,
    /// How much of `inbox` is known to hold no line end.
    searched: usize,
    pushed: VecDeque<Frame>,
}

impl Bus {
    /// Connects; nothing is said yet.
    pub fn connect(address: &Address) -> Result<Self, ClientError> {
        let conn = connect(address)?;
        conn.set_nonblocking(true)?;
        Ok(Self { conn, inbox: Vec::new(), searched: 0, pushed: VecDeque::new() })
    }

    /// Says who this is; the answer has the name that it got and who drives. Who may drive claims the stick by this.
    pub fn hello(&mut self, hello: &Hello<'_>, within: Duration) -> Result<Value, ClientError> {
        self.introduce(hello, false, within)
    }

    /// The same, without claiming the stick: it can be taken later, or by typing while nobody has it.
    pub fn hello_to_watch(&mut self, hello: &Hello<'_>, within: Duration) -> Result<Value, ClientError> {
        self.introduce(hello, true, within)
    }

    fn introduce(&mut self, hello: &Hello<'_>, watch: bool, within: Duration) -> Result<Value, ClientError> {
        let mut request =
            json!({"role": hello.role, "name": hello.name, "max_frame": MAX_FRAME, "watch": watch});
        if let Some(token) = hello.token {
            request["token"] = json!(token);
        }
        self.ask("HELLO", &request.to_string(), within).map(|f| f.json())
    }

    /// Sends a frame. A payload with a line end would be two frames, and is refused.
    pub fn send(&mut self, verb: &str, payload: &str) -> Result<(), ClientError> {
        if verb.contains(['\n', '\r', ' ']) || payload.contains(['\n', '\r']) {
            return Err(ClientError::Unfit("a frame is one line"));
        }
        let line = if payload.is_empty() { format!("{verb}\n") } else { format!("{verb} {payload}\n") };
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            match self.conn.write(rest) {
                Ok(0) => return Err(ClientError::Ended),
                Ok(n) => rest = &rest[n..],
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    // What the session sends meanwhile must not keep it from reading this.
                    self.fill()?;
                    let mut fds = [PollFd::new(&self.conn, PollFlags::OUT | PollFlags::IN)];
                    let _ = poll(&mut fds, None);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => return Err(ClientError::Ended),
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    /// Sends a frame and waits for its answer; what is pushed meanwhile is kept for [`Bus::next`]. A refusal is an
    /// error.
    pub fn ask(&mut self, verb: &str, payload: &str, within: Duration) -> Result<Frame, ClientError> {
        self.send(verb, payload)?;
        let answer = match verb {
            "SNAP" => "FRAME",
            "INFO" => "INFO",
            "CMD" => "RESP",
            "TURNS" | "TURN" | "EXPLAIN" | "PASTE" | "ROWS" | "FIND" => verb,
            _ => "OK",
        };
        let clock = Clock::start();
        loop {
            let spent = Duration::from_nanos(clock.now().mono_ns);
            let left = within.checked_sub(spent).ok_or(ClientError::Late(within))?;
            let Some(frame) = self.receive(Some(left))? else { return Err(ClientError::Late(within)) };
            if frame.verb == answer {
                return Ok(frame);
            }
            if frame.verb == "DENIED" {
                let value = frame.json();
                let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
                let why = match (text("error"), text("driver")) {
                    (Some(error), _) => error,
                    (None, Some(driver)) => format!("{driver} drives"),
                    (None, None) => "no reason was given".into(),
                };
                return Err(ClientError::Denied(why));
            }
            if self.pushed.len() == PUSHED {
                self.pushed.pop_front();
            }
            self.pushed.push_back(frame);
        }
    }

    /// The next frame that was pushed; `None` when there is none in time.
    pub fn next(&mut self, within: Option<Duration>) -> Result<Option<Frame>, ClientError> {
        match self.pushed.pop_front() {
            Some(frame) => Ok(Some(frame)),
            None => self.receive(within),
        }
    }

    /// The connection, for somebody with a loop of their own, and what has come and was not looked at.
    #[cfg(feature = "web")]
    pub(crate) fn into_parts(self) -> (Conn, Vec<u8>) {
        (self.conn, self.inbox)
    }

    /// What to wait at.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.conn.as_fd()
    }

    fn receive(&mut self, within: Option<Duration>) -> Result<Option<Frame>, ClientError> {
        let clock = Clock::start();
        loop {
            if let Some(frame) = self.take()? {
                return Ok(Some(frame));
            }
            // With no time left it is still looked at once: what has come has come.
            let left = within.map(|w| w.saturating_sub(Duration::from_nanos(clock.now().mono_ns)));
            let left = left.map(|left| Timespec {
                tv_sec: left.as_secs().cast_signed(),
                tv_nsec: i64::from(left.subsec_nanos()),
            });
            let mut fds = [PollFd::new(&self.conn, PollFlags::IN)];
            match poll(&mut fds, left.as_ref()) {
                Ok(0) => return Ok(None),
                Ok(_) => self.fill()?,
                // A signal is for whoever called to look at.
                Err(rustix::io::Errno::INTR) => return Ok(None),
                Err(e) => return Err(io::Error::from(e).into()),
            }
        }
    }

    /// Reads what has come, without waiting.
    fn fill(&mut self) -> Result<(), ClientError> {
        let start = self.inbox.len();
        if start > MAX_FRAME {
            return Err(ClientError::Nonsense("a frame without an end".into()));
        }
        self.inbox.resize(start + 64 * 1024, 0);
        let read = self.conn.read(&mut self.inbox[start..]);
        self.inbox.truncate(start + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => Err(ClientError::Ended),
            Ok(_) => Ok(()),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::ConnectionReset => Err(ClientError::Ended),
            Err(e) => Err(e.into()),
        }
    }

    fn take(&mut self) -> Result<Option<Frame>, ClientError> {
        let Some(end) = self.inbox[self.searched..].iter().position(|b| *b == b'\n') else {
            self.searched = self.inbox.len();
            return Ok(None);
        };
        let end = self.searched + end;
        let line = String::from_utf8(self.inbox[..end].to_vec());
        self.inbox.drain(..=end);
        self.searched = 0;
        let line = line.map_err(|e| ClientError::Nonsense(e.to_string()))?;
        let (verb, payload) = line.split_once(' ').unwrap_or((&line, ""));
        Ok(Some(Frame { verb: verb.to_owned(), payload: payload.to_owned() }))
    }
}
