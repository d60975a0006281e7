//! QUIC without a runtime: a connection with one stream, which lives in the thread that uses it.
//! Its descriptor is readable for datagrams and for timers. Reading handles both; a caller that
//! does not want to read has to call [`Flow::tend`].

use std::fmt;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quinn_proto::crypto::rustls::{HandshakeData, QuicClientConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint,
    Event, StreamEvent, StreamId,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::datagrams::Datagrams;
use super::port_watch::PortWatch;
use super::proof::{Carries, Channel};
use super::quic;

mod stream;

/// How long a server on another machine may take to confirm the close.
const GOODBYE: Duration = Duration::from_millis(500);

/// One stream on a connection of its own.
pub struct Flow {
    endpoint: Endpoint,
    handle: ConnectionHandle,
    connection: Connection,
    datagrams: Datagrams,
    /// The stream, after the handshake.
    stream: Option<StreamId>,
    /// Whether there may be unread bytes, or an unread end of the stream.
    unread: bool,
    end: Option<End>,
    /// Watches the server's port, if the server is on this machine.
    port_watch: Option<PortWatch>,
}

/// Why the stream has ended.
enum End {
    /// No process has the server's port any more.
    Gone,
    Lost(ConnectionError),
}

impl End {
    /// Returns the error for a reader.
    fn verdict(&self) -> io::Result<usize> {
        match self {
            End::Gone
            | End::Lost(
                ConnectionError::ApplicationClosed(_)
                | ConnectionError::ConnectionClosed(_)
                | ConnectionError::LocallyClosed
                | ConnectionError::Reset,
            ) => Ok(0),
            End::Lost(ConnectionError::TimedOut) => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "the server does not answer any more"))
            }
            End::Lost(reason) => Err(io::Error::other(reason.clone())),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the protocol measures its round trips by a clock of its own")]
fn now() -> Instant {
    Instant::now()
}

impl Flow {
    /// Connects to a server and opens the stream, within this time.
    pub(super) fn connect(
        tls: rustls::ClientConfig,
        to: SocketAddr,
        name: &str,
        within: Duration,
    ) -> io::Result<Self> {
        let crypto = QuicClientConfig::try_from(tls).map_err(io::Error::other)?;
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.transport_config(quic::transport(to));
        let datagrams = Datagrams::open(to)?;
        let mut endpoint =
            Endpoint::new(Arc::new(quic::endpoint_config()), None, datagrams.are_whole(), None);
        let begun = now();
        let (handle, connection) = endpoint.connect(begun, config, to, name).map_err(io::Error::other)?;
        let port_watch = to.ip().is_loopback().then(|| PortWatch::new(to, begun));
        let mut flow = Self {
            endpoint,
            handle,
            connection,
            datagrams,
            stream: None,
            unread: false,
            end: None,
            port_watch,
        };
        flow.settle(begun)?;
        while flow.stream.is_none() {
            match &flow.end {
                None => {}
                Some(End::Gone) => {
                    return Err(io::Error::new(io::ErrorKind::ConnectionRefused, "no server listens there"));
                }
                Some(End::Lost(reason)) => return Err(io::Error::other(reason.clone())),
            }
            let left = within.saturating_sub(now().duration_since(begun));
            if left.is_zero() {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer"));
            }
            flow.wait(left)?;
            flow.tend()?;
        }
        Ok(flow)
    }

    /// Returns what the connection can carry of a token.
    pub(crate) fn carries(&self) -> Carries {
        let session = self.connection.crypto_session();
        let agreed = session.handshake_data().and_then(|data| data.downcast::<HandshakeData>().ok());
        let alpn = agreed.and_then(|data| data.protocol);
        Carries::over(Channel::of_flow(session), alpn.as_deref())
    }

    /// Waits until there is something to do.
    fn wait(&self, within: Duration) -> io::Result<()> {
        let limit =
            Timespec { tv_sec: within.as_secs().cast_signed(), tv_nsec: i64::from(within.subsec_nanos()) };
        match poll(&mut [PollFd::new(&self.datagrams, PollFlags::IN)], Some(&limit)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// Serves the connection: receives, sends, handles timers. Bytes of the stream are kept until
    /// they are read; flow control limits what the server sends.
    pub(crate) fn tend(&mut self) -> io::Result<()> {
        let now = now();
        let (endpoint, connection) = (&mut self.endpoint, &mut self.connection);
        let mut answer = Vec::new();
        self.datagrams.receive(|meta, data| {
            let ecn = meta.ecn.and_then(|e| EcnCodepoint::from_bits(e as u8));
            let event = endpoint.handle(now, meta.addr, meta.dst_ip, ecn, data, &mut answer);
            // A datagram of no connection gets no answer.
            answer.clear();
            if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
                connection.handle_event(event);
            }
        })?;
        self.settle(now)
    }

    /// Handles the connection's events, and sends what follows from them.
    fn settle(&mut self, now: Instant) -> io::Result<()> {
        if self.connection.poll_timeout().is_some_and(|at| at <= now) {
            self.connection.handle_timeout(now);
        }
        while let Some(event) = self.connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                self.connection.handle_event(event);
            }
        }
        while let Some(event) = self.connection.poll() {
            match event {
                Event::Connected => self.stream = self.connection.streams().open(Dir::Bi),
                Event::Stream(StreamEvent::Available { dir: Dir::Bi }) if self.stream.is_none() => {
                    self.stream = self.connection.streams().open(Dir::Bi);
                }
                Event::Stream(StreamEvent::Readable { .. }) => self.unread = true,
                Event::ConnectionLost { reason } => self.ended(End::Lost(reason)),
                _ => {}
            }
        }
        if self.port_watch.as_mut().is_some_and(|port_watch| port_watch.is_gone(now)) {
            self.ended(End::Gone);
        }
        self.send(now)
    }

    fn ended(&mut self, how: End) {
        self.end.get_or_insert(how);
        self.unread = true;
        self.port_watch = None;
    }

    fn send(&mut self, now: Instant) -> io::Result<()> {
        let connection = &mut self.connection;
        self.datagrams.send(|segments, buf| connection.poll_transmit(now, segments, buf))?;
        let look = self.port_watch.as_ref().map(PortWatch::next_look);
        let at = [self.connection.poll_timeout(), look].into_iter().flatten().min();
        self.datagrams.wake_at(at, now)
    }

    /// Returns whether there is something to read that the descriptor does not report.
    pub(crate) fn has_more(&self) -> bool {
        self.unread
    }

    /// Ends this side of the stream, or the connection.
    pub(crate) fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        match (how, self.stream) {
            (Shutdown::Read, _) | (Shutdown::Write, None) => return Ok(()),
            // A stream that has ended already needs no end.
            (Shutdown::Write, Some(id)) => drop(self.connection.send_stream(id).finish()),
            (Shutdown::Both, _) if self.connection.is_closed() => return Ok(()),
            (Shutdown::Both, _) => {
                self.connection.close(now(), 0u32.into(), Bytes::new());
                self.ended(End::Lost(ConnectionError::LocallyClosed));
            }
        }
        self.send(now())
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        let far = !self.connection.remote_address().ip().is_loopback();
        let ends_here = !self.connection.is_closed();
        // A server that cannot be told notices by the idle timeout.
        let _ = self.shutdown(Shutdown::Both);
        let begun = now();
        // On this machine, what was sent has arrived. Elsewhere it may have to be sent again.
        while far && ends_here && !self.connection.is_drained() {
            let left = GOODBYE.saturating_sub(now().duration_since(begun));
            if left.is_zero() || self.wait(left).and_then(|()| self.tend()).is_err() {
                return;
            }
        }
    }
}

impl fmt::Debug for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flow").field("to", &self.connection.remote_address()).finish_non_exhaustive()
    }
}

impl AsFd for Flow {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.datagrams.as_fd()
    }
}
