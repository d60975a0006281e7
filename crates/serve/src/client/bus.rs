//! A client of the bus: one question at a time, and whatever the session pushes in between.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tapdeck_host::Clock;
use tapdeck_proto::bus::{self, Ask, Denied, Line, Push, Role, Welcome};

use super::{ANSWER, ClientError, connect};
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
    /// Reads what was pushed. `None` for what was not, or not by a session of this version.
    pub fn push(&self) -> Option<Push> {
        Push::parse(&self.verb, &self.payload).ok().flatten()
    }

    /// Reads the event that was pushed, if it was one.
    pub fn event(&self) -> Option<bus::Event> {
        if self.verb == "EVENT" { serde_json::from_str(&self.payload).ok() } else { None }
    }
}

/// Who a client is.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Hello<'a> {
    /// What it wants to be.
    pub role: Role,
    /// A name for people.
    pub name: &'a str,
    /// What grants the role.
    pub token: Option<&'a str>,
}

impl<'a> Hello<'a> {
    /// A client that wants this role, with a name for people.
    pub fn new(role: Role, name: &'a str) -> Self {
        Self { role, name, token: None }
    }

    /// Shows a token that grants the role.
    #[must_use]
    pub fn token(mut self, token: impl Into<Option<&'a str>>) -> Self {
        self.token = token.into();
        self
    }
}

/// A connection to the bus.
#[derive(Debug)]
pub struct Bus {
    conn: Conn,
    inbox: Vec<u8>,
    /// How much of `inbox` is known to hold no line end.
    searched: usize,
    pushed: VecDeque<Frame>,
    /// What is left of a frame that could not be sent in time.
    unsent: VecDeque<u8>,
    /// Questions asked so far, if the session's replies say which they answer.
    asked: Option<u64>,
}

impl Bus {
    /// Connects; nothing is said yet.
    pub fn connect(address: &Address) -> Result<Self, ClientError> {
        let conn = connect(address)?;
        conn.set_nonblocking(true)?;
        Ok(Self {
            conn,
            inbox: Vec::new(),
            searched: 0,
            pushed: VecDeque::new(),
            unsent: VecDeque::new(),
            asked: None,
        })
    }

    /// Introduces the client. The answer has the name that the client got, and the stick's holder.
    /// A client that may drive claims the stick by this.
    pub fn hello(&mut self, hello: &Hello<'_>, within: Duration) -> Result<Welcome, ClientError> {
        self.introduce(hello, false, within)
    }

    /// Introduces the client without claiming the stick. It can be taken later, or by typing while
    /// it is free.
    pub fn hello_to_watch(&mut self, hello: &Hello<'_>, within: Duration) -> Result<Welcome, ClientError> {
        self.introduce(hello, true, within)
    }

    fn introduce(
        &mut self,
        hello: &Hello<'_>,
        watch: bool,
        within: Duration,
    ) -> Result<Welcome, ClientError> {
        let asked = bus::Hello {
            role: hello.role,
            name: Some(hello.name.to_owned()),
            token: hello.token.map(str::to_owned),
            max_frame: Some(MAX_FRAME as u64),
            watch,
        };
        let frame = self.exchange(&asked, within)?;
        // Sessions of older versions say less.
        let welcome: Welcome = serde_json::from_str(&frame.payload).unwrap_or_default();
        if welcome.ids {
            self.asked.get_or_insert(0);
        }
        Ok(welcome)
    }

    /// Sends a request and waits for its reply, both within a time. Frames that are pushed
    /// meanwhile are kept for [`Bus::next`]. A refusal is an error. A reply that comes later is
    /// dropped.
    ///
    /// With sessions of versions that did not mark their replies, the first frame of the right kind
    /// counts as the reply.
    pub fn request<A: Ask>(&mut self, asked: &A, within: Duration) -> Result<A::Reply, ClientError> {
        let frame = self.exchange(asked, within)?;
        serde_json::from_str(&frame.payload)
            .map_err(|e| ClientError::Nonsense(format!("{}: {e}", frame.verb)))
    }

    /// Sends a request and waits until it is answered, whatever the answer says. A refusal is an
    /// error.
    pub fn confirm<A: Ask>(&mut self, asked: &A, within: Duration) -> Result<(), ClientError> {
        self.exchange(asked, within).map(drop)
    }

    /// Sends a request, and does not wait for its reply: if it is refused, [`Bus::next`] returns
    /// the `DENIED`. A text with a line end would be two frames, and is refused. Fails if the
    /// session takes nothing for [`ANSWER`].
    pub fn tell<A: Ask>(&mut self, asked: &A) -> Result<(), ClientError> {
        self.put(&line_of(asked, None)?, None)
    }

    /// Sends a request and returns the frame that answers it.
    fn exchange<A: Ask>(&mut self, asked: &A, within: Duration) -> Result<Frame, ClientError> {
        let id = self.asked.as_mut().map(|asked| {
            *asked += 1;
            asked.to_string()
        });
        let line = line_of(asked, id.as_deref())?;
        let clock = Clock::start();
        self.put(&line, Some(within))?;
        loop {
            let spent = clock.elapsed();
            let left = within.checked_sub(spent).ok_or(ClientError::Late(within))?;
            let frame = match self.receive(Some(left), id.as_deref()) {
                Ok(frame) => frame.ok_or(ClientError::Late(within))?,
                Err(ClientError::Ended) => return Err(self.last_words()),
                Err(e) => return Err(e),
            };
            match frame {
                (marked, frame) if marked || id.is_none() && frame.verb == A::REPLY => {
                    return if frame.verb == "DENIED" { Err(denial(&frame)) } else { Ok(frame) };
                }
                (_, frame) if id.is_none() && frame.verb == "DENIED" => return Err(denial(&frame)),
                (_, frame) => self.keep(frame),
            }
        }
    }

    /// The next frame that was pushed; `None` when there is none in time.
    pub fn next(&mut self, within: Option<Duration>) -> Result<Option<Frame>, ClientError> {
        match self.pushed.pop_front() {
            Some(frame) => Ok(Some(frame)),
            None => Ok(self.receive(within, None)?.map(|(_, frame)| frame)),
        }
    }

    fn keep(&mut self, frame: Frame) {
        if self.pushed.len() == PUSHED {
            self.pushed.pop_front();
        }
        self.pushed.push_back(frame);
    }

    /// Why the session has ended the connection: what it refused last, if anything.
    fn last_words(&mut self) -> ClientError {
        // The connection has ended, so errors add nothing. This only looks for a `DENIED` that came
        // before.
        let _ = self.fill().and_then(|()| self.sort());
        match self.pushed.back() {
            Some(frame) if frame.verb == "DENIED" => denial(frame),
            _ => ClientError::Ended,
        }
    }

    /// Sends a line, within a time or as long as the session takes some of it. Bytes that cannot be
    /// sent in time are sent before the next line.
    fn put(&mut self, line: &[u8], within: Option<Duration>) -> Result<(), ClientError> {
        let mut clock = Clock::start();
        let limit = within.unwrap_or(ANSWER);
        let mut queued = false;
        loop {
            if self.unsent.is_empty() {
                if std::mem::replace(&mut queued, true) {
                    return Ok(());
                }
                self.unsent.extend(line);
            }
            match self.conn.write(self.unsent.as_slices().0) {
                Ok(0) => return Err(self.last_words()),
                Ok(n) => {
                    self.unsent.drain(..n);
                    if within.is_none() {
                        clock = Clock::start();
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    let left = limit.checked_sub(clock.elapsed());
                    let left = timespec(left.ok_or(ClientError::Late(limit))?);
                    let mut fds = [PollFd::new(&self.conn, PollFlags::OUT | PollFlags::IN)];
                    // A wait that a signal cut short, or that failed, tries to write again.
                    let _ = poll(&mut fds, Some(&left));
                    // What the session sends meanwhile must not keep it from reading this.
                    if fds[0].revents().contains(PollFlags::IN) {
                        self.fill()?;
                        self.sort()?;
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if matches!(e.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {
                    return Err(self.last_words());
                }
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Keeps the pushed frames that have come, and drops answers: no request waits for them.
    fn sort(&mut self) -> Result<(), ClientError> {
        while let Some((id, frame)) = self.take()? {
            if id.is_none() {
                self.keep(frame);
            }
        }
        Ok(())
    }

    /// Returns the connection, for a caller with an event loop of its own, and the unread bytes.
    #[cfg(feature = "web")]
    pub(crate) fn into_parts(self) -> (Conn, Vec<u8>) {
        (self.conn, self.inbox)
    }

    /// What to wait at.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.conn.as_fd()
    }

    /// Returns the next frame that does not answer another request, and whether it answers this
    /// one.
    fn receive(
        &mut self,
        within: Option<Duration>,
        question: Option<&str>,
    ) -> Result<Option<(bool, Frame)>, ClientError> {
        let clock = Clock::start();
        loop {
            match self.take()? {
                Some((None, frame)) => return Ok(Some((false, frame))),
                Some((id, frame)) if id.as_deref() == question => return Ok(Some((true, frame))),
                // The answer to a request that has timed out.
                Some(_) => continue,
                None => {}
            }
            // With no time left it is still looked at once: what has come has come.
            let left = within.map(|w| w.saturating_sub(clock.elapsed()));
            let left = left.map(timespec);
            let mut fds = [PollFd::new(&self.conn, PollFlags::IN)];
            match poll(&mut fds, left.as_ref()) {
                Ok(0) => return Ok(None),
                Ok(_) => self.fill()?,
                // The caller handles the signal.
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

    /// The next frame that is whole, with the id of the question that it answers.
    fn take(&mut self) -> Result<Option<(Option<String>, Frame)>, ClientError> {
        let Some(end) = self.inbox[self.searched..].iter().position(|b| *b == b'\n') else {
            self.searched = self.inbox.len();
            return Ok(None);
        };
        let end = self.searched + end;
        let line = String::from_utf8(self.inbox[..end].to_vec());
        self.inbox.drain(..=end);
        self.searched = 0;
        let line = line.map_err(|e| ClientError::Nonsense(e.to_string()))?;
        let Line { verb, id, payload } = Line::split(&line);
        Ok(Some((id.map(str::to_owned), Frame { verb: verb.to_owned(), payload: payload.to_owned() })))
    }
}

/// Returns a request as it is sent.
fn line_of<A: Ask>(asked: &A, id: Option<&str>) -> Result<Vec<u8>, ClientError> {
    let payload = asked.to_payload();
    if payload.contains(['\n', '\r']) {
        return Err(ClientError::Unfit("a frame is one line"));
    }
    Ok(format!("{}\n", Line { verb: A::VERB, id, payload: &payload }).into_bytes())
}

/// What a refusal says.
fn denial(frame: &Frame) -> ClientError {
    let denied: Denied = serde_json::from_str(&frame.payload).unwrap_or_default();
    ClientError::Denied(match (denied.error, denied.driver.flatten()) {
        (error, Some(driver)) if error.is_empty() => format!("{driver} drives"),
        (error, None) if error.is_empty() => "no reason was given".into(),
        (error, _) => error,
    })
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: i64::from(time.subsec_nanos()) }
}
