//! A client of the tty wire that is attached to a live session: bytes both ways, without blocking,
//! for callers with an event loop of their own.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tapdeck_core::WinSize;
use tapdeck_proto::attach::{Asked, Join, Opened, Said};
use tapdeck_proto::tty::{Control, Tty};

use super::{CONNECT, ClientError, connect, credentials, handshake};
use crate::conn::Conn;
use crate::door::Address;
use crate::live::Queue;
use crate::wire::{self, ChunkKind, WireError, wire_size};

/// How a client wants to be attached.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Attach<'a> {
    /// A name for people.
    pub name: &'a str,
    /// What makes it a person, or lets it in.
    pub token: Option<&'a str>,
    /// Which session, where a server knows several.
    pub session: Option<&'a str>,
    /// Only watch.
    pub read_only: bool,
    /// Take the stick from its holder.
    pub takeover: bool,
    /// Type without asking other people with the same token for the stick, and let them do so.
    pub share: bool,
    /// Do not even claim it: it can be taken later.
    pub watch: bool,
    /// Be told of the rows in the first picture when each was last written to (`rows`).
    pub rows: bool,
    /// The client's own terminal, if it has one.
    pub size: Option<WinSize>,
}

impl<'a> Attach<'a> {
    /// A client of this name, for people.
    pub fn new(name: &'a str) -> Self {
        Self { name, ..Self::default() }
    }

    /// Shows a token that makes the client a person, or lets it in.
    #[must_use]
    pub fn token(mut self, token: impl Into<Option<&'a str>>) -> Self {
        self.token = token.into();
        self
    }

    /// Names the session, where a server knows several.
    #[must_use]
    pub fn session(mut self, session: impl Into<Option<&'a str>>) -> Self {
        self.session = session.into();
        self
    }

    /// Only watches.
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Takes the stick from its holder.
    #[must_use]
    pub fn takeover(mut self, takeover: bool) -> Self {
        self.takeover = takeover;
        self
    }

    /// Types without asking other people with the same token for the stick, and lets them do so.
    #[must_use]
    pub fn share(mut self, share: bool) -> Self {
        self.share = share;
        self
    }

    /// Does not even claim the stick, which can be taken later.
    #[must_use]
    pub fn watch(mut self, watch: bool) -> Self {
        self.watch = watch;
        self
    }

    /// Asks when each row of the first picture was last written to.
    #[must_use]
    pub fn rows(mut self, rows: bool) -> Self {
        self.rows = rows;
        self
    }

    /// Sets the size of the client's own terminal, if it has one.
    #[must_use]
    pub fn size(mut self, size: impl Into<Option<WinSize>>) -> Self {
        self.size = size.into();
        self
    }
}

/// What comes from the session.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// The program's output; first of all, bytes that redraw what is on the screen.
    Output(Vec<u8>),
    /// Something about the session.
    Control(Said),
    /// The session has ended the connection.
    End,
}

/// An attachment to a session.
#[derive(Debug)]
pub struct Attachment {
    conn: Conn,
    inbox: Vec<u8>,
    queue: Queue,
    ended: bool,
}

impl Attachment {
    /// Attaches, and returns the session's answer (`opened`). Call [`Attachment::receive`] before
    /// the first wait: more than the answer may have come already.
    pub fn open(address: &Address, attach: &Attach<'_>) -> Result<(Self, Opened), ClientError> {
        Self::over(connect(address)?, attach)
    }

    /// The same over a connection that is there already, to a session or to a server that knows it.
    pub fn over(mut conn: Conn, attach: &Attach<'_>) -> Result<(Self, Opened), ClientError> {
        let (token, proof) = credentials(&conn, attach.token)?;
        let request = Join {
            backend: Some("attach".to_owned()),
            token,
            proof,
            name: Some(attach.name.to_owned()),
            session: attach.session.map(str::to_owned),
            read_only: attach.read_only,
            takeover: attach.takeover,
            share: attach.share,
            watch: attach.watch,
            rows: attach.rows,
            tty: attach.size.map(|size| Tty { size: Some(wire_size(size)), ..Tty::default() }),
            ..Join::default()
        };
        let (opened, inbox) = handshake(&mut conn, &request, CONNECT)?;
        let opened = match opened.read() {
            Some(Said::Opened(opened)) => opened,
            _ => return Err(ClientError::Nonsense("the session did not say that it is open".into())),
        };
        Ok((Self { conn, inbox, queue: Queue::default(), ended: false }, opened))
    }

    /// What to wait at, and whether to wait for room to send as well.
    pub fn wants(&self) -> (BorrowedFd<'_>, bool) {
        (self.conn.as_fd(), !self.queue.is_empty() || self.conn.has_unsent())
    }

    /// Bytes that wait to be sent.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Everything that has come by now, without waiting.
    pub fn receive(&mut self) -> Result<Vec<Incoming>, ClientError> {
        self.fill()?;
        let mut incoming = Vec::new();
        while let Some(chunk) = wire::take_chunk(&mut self.inbox, wire::MAX_CHUNK).map_err(nonsense)? {
            match chunk.kind {
                ChunkKind::Stdout | ChunkKind::Stderr => incoming.push(Incoming::Output(chunk.payload)),
                ChunkKind::Control => {
                    let message = Control::parse(&chunk.payload).map_err(|e| nonsense(e.into()))?;
                    // A message that this version cannot read is like one that it does not know.
                    incoming.push(Incoming::Control(message.read().unwrap_or(Said::Unknown)));
                }
                ChunkKind::Stdin => return Err(ClientError::Nonsense("input from the session".into())),
            }
        }
        if self.ended {
            incoming.push(Incoming::End);
        }
        Ok(incoming)
    }

    /// Queues input for the program.
    pub fn type_bytes(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        for piece in bytes.chunks(wire::MAX_CHUNK / 4) {
            self.queue.push(wire::chunk_head(ChunkKind::Stdin, piece.len()).to_vec());
            self.queue.push(piece.to_vec());
        }
        self.flush()
    }

    /// Queues a control message.
    pub fn control(&mut self, message: &Asked) -> Result<(), ClientError> {
        self.queue.push(wire::control(message));
        self.flush()
    }

    /// Says how large the client's terminal is. The session follows if this client drives.
    pub fn resize(&mut self, size: WinSize) -> Result<(), ClientError> {
        self.control(&Asked::Resize(wire_size(size)))
    }

    /// Sends what the session takes without waiting.
    pub fn flush(&mut self) -> Result<(), ClientError> {
        match self.queue.flush(&mut self.conn) {
            Err(e) if matches!(e.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {
                self.ended = true;
                Ok(())
            }
            other => Ok(other?),
        }
    }

    /// Waits for something to come, or for this long.
    pub fn wait(&self, within: Duration) -> io::Result<bool> {
        let limit =
            Timespec { tv_sec: within.as_secs().cast_signed(), tv_nsec: i64::from(within.subsec_nanos()) };
        let mut fds = [PollFd::new(&self.conn, PollFlags::IN)];
        Ok(poll(&mut fds, Some(&limit))? > 0)
    }

    /// Whether something has come already of which the descriptor no longer tells.
    pub fn has_more(&self) -> bool {
        self.conn.has_more()
    }

    /// Keeps the connection up while its data is not read: see [`Attachment::upkeep`].
    pub fn tend(&mut self) -> Result<(), ClientError> {
        Ok(self.conn.tend()?)
    }

    /// What to wait at for [`Attachment::tend`], if the connection needs that.
    pub fn upkeep(&self) -> Option<BorrowedFd<'_>> {
        self.conn.lives_here().then(|| self.conn.as_fd())
    }

    fn fill(&mut self) -> Result<(), ClientError> {
        // One large read a turn, because the caller's loop has other work in between. But data that
        // the descriptor does not announce has to be taken now.
        self.read_some()?;
        if self.conn.lives_here() && !self.queue.is_empty() {
            // What was read may have made room.
            self.flush()?;
        }
        while self.conn.has_more() && !self.ended {
            self.read_some()?;
        }
        Ok(())
    }

    fn read_some(&mut self) -> Result<(), ClientError> {
        let start = self.inbox.len();
        self.inbox.resize(start + 256 * 1024, 0);
        let read = self.conn.read(&mut self.inbox[start..]);
        self.inbox.truncate(start + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => self.ended = true,
            Ok(_) => {}
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(e) if e.kind() == io::ErrorKind::ConnectionReset => self.ended = true,
            Err(e) => return Err(e.into()),
        }
        Ok(())
    }
}

#[expect(clippy::needless_pass_by_value, reason = "handed to map_err")]
fn nonsense(e: WireError) -> ClientError {
    ClientError::Nonsense(e.to_string())
}
