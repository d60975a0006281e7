//! A client whose transport is a descriptor. After the negotiation the session's own thread serves
//! it, so that no task has to wake between a key and its echo.

use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, poll};
use tapdeck_core::Stream;
use tapdeck_host::{SocketInput, UserProfile, UserSide, UserSocket};
use tapdeck_proto::tty::ServerControl;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::oneshot;
use tokio_rustls::server::TlsStream;

use super::session::{Command, REVOKED, Teller, Wish, complaint, kind_of, negotiate, profile, refuse, start};
use super::{Pass, Peer, Refusal, Sealed, Server, attach};
use crate::admission::Seat;
use crate::conn::Conn;
use crate::live::Queue;
use crate::wire::{self, ChunkKind, Decoder, Negotiation, Piece};

/// The most bytes of one read.
const READ: usize = 16 * 1024;
/// Output that is gathered before it is sent, while the program writes fast.
const GATHER: usize = 32 * 1024;
/// Reads of left-over input before a connection is closed all the same.
const LEFTOVERS: usize = 64;

/// A stream that can be used without the runtime.
pub(super) trait Whole: AsyncRead + AsyncWrite + Unpin + Send {
    fn apart(self) -> io::Result<Conn>;
}

impl Whole for UnixStream {
    fn apart(self) -> io::Result<Conn> {
        Ok(Conn::Unix(self.into_std()?))
    }
}

impl Whole for TlsStream<TcpStream> {
    fn apart(self) -> io::Result<Conn> {
        let (tcp, tls) = self.into_inner();
        Ok(Conn::Sealed(Box::new(Sealed::new(tcp.into_std()?, tls)?)))
    }
}

/// Serves one session over such a stream, to its end.
pub(super) async fn serve_whole<S: Whole>(server: Arc<Server>, mut stream: S, peer: Peer, seat: &Seat) {
    let negotiated = negotiate(&server, &mut stream, peer, Some(seat)).await;
    let refusal = match negotiated {
        Ok(None) => return,
        Ok(Some((Wish::Join(join), pass))) => match attach::join(&server, join, &pass).await {
            Ok(session) => {
                let (reader, writer) = tokio::io::split(stream);
                return attach::carry(session, reader, writer, server.revoked(&pass)).await;
            }
            Err(refusal) => refusal,
        },
        Ok(Some((Wish::Open(negotiation), pass))) => match stream.apart() {
            Ok(conn) => return hand_over(&server, conn, *negotiation, &pass).await,
            // The connection broke before the session began.
            Err(_) => return,
        },
        Err(refusal) => refusal,
    };
    let (reader, mut writer) = tokio::io::split(stream);
    refuse(&refusal, reader, &mut writer).await;
}

/// Hands the client over to a session of its own, and waits until that is over.
async fn hand_over(server: &Arc<Server>, conn: Conn, negotiation: Negotiation, pass: &Pass) {
    let (tell_done, done) = oneshot::channel();
    let Ok((line, user)) = Line::new(conn, profile(&negotiation), tell_done) else { return };
    if let Err(refusal) = start(server, negotiation, user, Teller::Line(Some(line.clone()))) {
        return line.refuse(&refusal);
    }
    tokio::select! {
        // The session has dropped its sender.
        _ = done => {}
        () = server.revoked(pass) => line.cut(REVOKED),
    }
}

/// What the thread of a session and the task that opened it share.
struct State {
    conn: Conn,
    queue: Queue,
    decoder: Decoder,
    buf: Box<[u8]>,
    /// Dropping it tells the task that the client is served.
    _done: oneshot::Sender<()>,
}

/// The connection to a client; `None` once it is closed.
#[derive(Clone)]
pub(super) struct Line(Arc<Mutex<Option<State>>>);

impl Line {
    fn new(conn: Conn, profile: UserProfile, done: oneshot::Sender<()>) -> io::Result<(Self, UserSide)> {
        let fd = conn.as_fd().try_clone_to_owned()?;
        // Input may have come right behind the negotiation.
        let more = conn.has_more();
        let state = State {
            conn,
            queue: Queue::default(),
            decoder: Decoder::default(),
            buf: vec![0; READ].into(),
            _done: done,
        };
        let line = Self(Arc::new(Mutex::new(Some(state))));
        let served = Served { line: line.clone(), fd, more, backlog: 0, gone: false };
        Ok((line, UserSide::socket(profile, served)))
    }

    fn lock(&self) -> MutexGuard<'_, Option<State>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a control message between the output.
    pub(super) fn say(&self, control: &ServerControl) {
        if let Some(state) = &mut *self.lock() {
            state.say(control);
        }
    }

    /// Queues the last message, sends everything however long the client takes, and closes the
    /// connection. Returns early when the client is gone or [`Line::cut`] ended the connection.
    pub(super) fn end(&self, last: Vec<u8>) {
        let Some(fd) = self.push_last(last) else { return };
        while self.flush_some() {
            // Input no longer matters; only that the client has gone.
            let mut fds = [PollFd::new(&fd, PollFlags::OUT | PollFlags::RDHUP)];
            let waited = poll(&mut fds, None);
            let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
            if waited.is_err_and(|e| e != rustix::io::Errno::INTR) || fds[0].revents().intersects(gone) {
                drop(self.lock().take());
                return;
            }
        }
        if let Some(state) = self.lock().take() {
            state.close();
        }
    }

    /// Queues the last message. Returns a descriptor to wait at without holding the connection, so
    /// that [`Line::cut`] reaches it meanwhile.
    fn push_last(&self, last: Vec<u8>) -> Option<OwnedFd> {
        let mut line = self.lock();
        let state = line.as_mut()?;
        state.queue.push(last);
        let fd = state.conn.as_fd().try_clone_to_owned().ok();
        if fd.is_none() {
            // Without a descriptor nothing can be awaited: send what the socket takes at once.
            drop(state.queue.flush(&mut state.conn));
            *line = None;
        }
        fd
    }

    /// Sends what the client takes now. Returns whether something is left.
    fn flush_some(&self) -> bool {
        let mut line = self.lock();
        let Some(state) = line.as_mut() else { return false };
        state.queue.flush(&mut state.conn).is_ok() && state.has_unsent()
    }

    /// Tells the client that there will be no session.
    fn refuse(&self, refusal: &Refusal) {
        refusal.log();
        self.end(refusal.framed());
    }

    /// Ends the connection at once. The client hears why if it takes the message without delay.
    fn cut(&self, why: &str) {
        if let Some(state) = &mut *self.lock() {
            state.say(&complaint(None, why));
            state.conn.shutdown(Shutdown::Both);
        }
    }
}

impl State {
    fn say(&mut self, control: &ServerControl) {
        self.queue.push(wire::control(control));
        // A client that is gone is noticed when it is read from.
        let _ = self.queue.flush(&mut self.conn);
    }

    fn has_unsent(&self) -> bool {
        !self.queue.is_empty() || self.conn.has_unsent()
    }

    fn close(mut self) {
        self.conn.say_goodbye();
        // Closing with unread input would reset the connection, and lose the last message. A client
        // that goes on sending is cut off.
        for _ in 0..LEFTOVERS {
            if !matches!(self.conn.read(&mut self.buf), Ok(n) if n > 0) {
                break;
            }
        }
    }

    /// Reads what has come; `None` if nothing has.
    fn fill(&mut self) -> io::Result<Option<usize>> {
        match self.conn.read(&mut self.buf) {
            Ok(n) => {
                self.decoder.buffer().extend_from_slice(&self.buf[..n]);
                Ok(Some(n))
            }
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Returns the next input. An error means that the client is gone, or why its bytes make no
    /// sense.
    fn next(&mut self) -> Result<Option<SocketInput>, Option<String>> {
        loop {
            match self.decoder.next() {
                Ok(None) => match self.fill() {
                    Ok(None) => return Ok(None),
                    Ok(Some(0)) | Err(_) => return Err(None),
                    Ok(Some(_)) => {}
                },
                Ok(Some(Piece::Bytes(ChunkKind::Stdin, bytes))) => {
                    return Ok(Some(SocketInput::Bytes(bytes)));
                }
                Ok(Some(Piece::Bytes(..))) => return Err(Some("output comes from the program".into())),
                Ok(Some(Piece::Control(control))) => match Command::of(&control) {
                    Ok(Command::Resize(size)) => return Ok(Some(SocketInput::Resized(size))),
                    Ok(Command::Signal(signal)) => return Ok(Some(SocketInput::Signal(signal))),
                    Ok(Command::End) => return Ok(Some(SocketInput::End)),
                    Ok(Command::Unknown) => {}
                    Err(message) => self.say(&complaint(control.name(), &message)),
                },
                Err(e) => return Err(Some(e.to_string())),
            }
        }
    }
}

/// The line as the session's driver uses it.
struct Served {
    line: Line,
    /// A copy of the descriptor, to wait at without locking the line.
    fd: OwnedFd,
    /// Input was read and not taken yet.
    more: bool,
    backlog: usize,
    gone: bool,
}

impl Served {
    fn with(&mut self, work: impl FnOnce(&mut State)) {
        if let Some(state) = &mut *self.line.lock() {
            work(state);
            self.backlog = state.queue.len() + usize::from(state.conn.has_unsent());
        }
    }
}

impl UserSocket for Served {
    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn has_more(&self) -> bool {
        self.more
    }

    fn read(&mut self) -> SocketInput {
        let mut got = Err(None);
        let mut more = false;
        self.with(|state| {
            got = state.next();
            more =
                matches!(got, Ok(Some(_))) && (!state.decoder.buffer().is_empty() || state.conn.has_more());
            if let Err(Some(why)) = &got {
                state.say(&complaint(None, why));
            }
        });
        self.more = more;
        match got {
            Ok(input) => input.unwrap_or(SocketInput::Nothing),
            Err(_) => {
                self.gone = true;
                SocketInput::Gone
            }
        }
    }

    fn write(&mut self, stream: Stream, bytes: &Bytes) {
        self.with(|state| {
            state.queue.push(wire::chunk_head(kind_of(stream), bytes.len()).to_vec());
            state.queue.push(bytes.clone());
            if state.queue.len() >= GATHER {
                // A client that is gone is noticed when it is read from.
                let _ = state.queue.flush(&mut state.conn);
            }
        });
    }

    fn flush(&mut self) {
        // A client that is gone is noticed when it is read from.
        self.with(|state| drop(state.queue.flush(&mut state.conn)));
    }

    fn backlog(&self) -> usize {
        self.backlog
    }

    fn abandon(&mut self) {
        self.with(|state| state.queue = Queue::default());
    }

    fn hang_up(&mut self) {
        self.gone = true;
    }

    fn probe(&mut self) {
        // Unsent output probes the connection as well.
        self.with(|state| {
            if !state.has_unsent() {
                state.say(&ServerControl::Ping);
            }
        });
    }
}

impl Drop for Served {
    /// Closes the connection of a client that is gone. Any other still gets the last message.
    fn drop(&mut self) {
        if self.gone
            && let Some(state) = self.line.lock().take()
        {
            state.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// A client whose token was revoked stayed connected for as long as it did not read, once its
    /// program had ended.
    #[test]
    fn a_revoked_client_that_stops_reading_is_cut_off_after_the_exit() {
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        ours.set_nonblocking(true).expect("a socket that does not block");
        let (tell_done, _done) = oneshot::channel();
        let profile = UserProfile { types: true, answers: true, stays: false };
        let (line, outer) = Line::new(Conn::Unix(ours), profile, tell_done).expect("a line");
        let (ended, has_ended) = mpsc::channel();
        let session = line.clone();
        std::thread::spawn(move || {
            session.end(vec![0; 16 << 20]);
            ended.send(()).expect("the test waits");
        });
        let waits = has_ended.recv_timeout(Duration::from_millis(200));
        assert_eq!(waits, Err(mpsc::RecvTimeoutError::Timeout), "the last message does not fit");
        line.cut(REVOKED);
        has_ended.recv_timeout(Duration::from_secs(5)).expect("the line is closed");
        drop((outer, theirs));
    }
}
