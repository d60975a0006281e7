//! The policy for connections that tasks serve: each has a seat, and is cut off when it loses it.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tapdeck_core::Time;
use tapdeck_host::Clock;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Notify, watch};
use tokio::time::sleep;
use tracing::Instrument;

use super::{Failure, Limits, Policy, Source, Ticket, TurnedAway};

/// How long to wait when no connection can be accepted, for lack of descriptors most likely.
const BREATH: Duration = Duration::from_millis(50);
/// How long a client has to read why it was too late.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Connections that the kernel completes before they are accepted; it may allow fewer.
const BACKLOG: i32 = 4096;

/// The admission of a server's connections, at all its doors.
pub struct Admission {
    limits: Limits,
    clock: Clock,
    state: Mutex<State>,
    /// Told when a pending connection has left.
    freed: Notify,
}

struct State {
    policy: Policy,
    standings: HashMap<Ticket, Arc<watch::Sender<Standing>>>,
}

impl std::fmt::Debug for Admission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admission").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl State {
    fn dismiss(&mut self, evicted: Option<Ticket>) {
        if let Some(standing) = evicted.and_then(|ticket| self.standings.remove(&ticket)) {
            standing.send_replace(Standing::Dismissed);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Pending,
    Admitted,
    Dismissed,
}

impl Admission {
    /// Makes an admission with these limits.
    pub fn new(limits: Limits) -> Arc<Self> {
        let state = State { policy: Policy::new(limits), standings: HashMap::new() };
        Arc::new(Self { limits, clock: Clock::start(), state: state.into(), freed: Notify::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Time {
        self.clock.now().mono
    }

    /// Waits until another connection may be accepted.
    pub(crate) async fn room(&self) {
        loop {
            let freed = self.freed.notified();
            let Some(wait) = self.lock().policy.wait(self.now()) else { return };
            tokio::select! {
                () = freed => {}
                () = sleep(wait) => {}
            }
        }
    }

    /// Returns whether so many are pending that some are dropped.
    #[cfg(feature = "net")]
    pub(crate) fn is_crowded(&self) -> bool {
        self.lock().policy.is_crowded()
    }

    /// Seats a connection, unless its source is locked out or has too many seats. One without an
    /// address comes from a Unix socket.
    pub(crate) fn enter(
        self: &Arc<Self>,
        door: &'static str,
        peer: Option<SocketAddr>,
    ) -> Result<Seat, TurnedAway> {
        let (now, source) = (self.now(), Source::of(peer));
        let mut state = self.lock();
        let entered = state.policy.enter(source, door == PAGE, now).inspect_err(|why| {
            tracing::debug!(door, peer = peer.map(tracing::field::display), %why, "refused");
        })?;
        state.dismiss(entered.evicted);
        let standing = Arc::new(watch::Sender::new(Standing::Pending));
        state.standings.insert(entered.ticket, Arc::clone(&standing));
        drop(state);
        let span = tracing::info_span!("connection", door, peer = peer.map(tracing::field::display));
        let (admission, deadline) = (Arc::clone(self), now + self.limits.grace);
        Ok(Seat(Arc::new(Seated { admission, ticket: entered.ticket, deadline, standing, span })))
    }

    /// Frees what the next pending connection holds.
    fn evict(&self) {
        let mut state = self.lock();
        let evicted = state.policy.evict(self.now());
        state.dismiss(evicted);
    }
}

/// The door at which clients are welcome without a credential.
pub(crate) const PAGE: &str = "page";

/// A connection's seat. All tasks of the connection share it; it is free when the last one ends.
#[derive(Clone)]
pub(crate) struct Seat(Arc<Seated>);

struct Seated {
    admission: Arc<Admission>,
    ticket: Ticket,
    deadline: Time,
    standing: Arc<watch::Sender<Standing>>,
    span: tracing::Span,
}

impl Seat {
    /// Admits the client, which has authenticated.
    pub(crate) fn admit(&self) -> Result<(), TurnedAway> {
        self.0.admission.lock().policy.admit(self.0.ticket)?;
        if self.0.standing.send_replace(Standing::Admitted) == Standing::Pending {
            self.0.admission.freed.notify_waiters();
        }
        Ok(())
    }

    fn is_admitted(&self) -> bool {
        *self.0.standing.borrow() == Standing::Admitted
    }

    /// Notes a failed attempt. Returns how long to delay its refusal.
    pub(crate) fn note_failure(&self) -> Failure {
        let Seated { admission, ticket, .. } = &*self.0;
        admission.lock().policy.fail(*ticket, admission.now())
    }

    /// Notes a failed attempt, and waits before its refusal may be sent.
    pub(crate) async fn failed(&self) {
        let failure = self.note_failure();
        sleep(failure.delay).await;
        if failure.is_last {
            self.0.standing.send_replace(Standing::Dismissed);
        }
    }

    /// Returns how long the client may take to authenticate, or for its next request.
    pub(crate) fn time_left(&self) -> Duration {
        match self.is_admitted() {
            true => self.0.admission.limits.grace,
            false => self.0.deadline.since(self.0.admission.now()),
        }
    }

    /// Completes when the client should have authenticated, if it has not by then.
    pub(crate) async fn late(&self) {
        sleep(self.time_left()).await;
        if self.is_admitted() {
            std::future::pending().await
        }
    }

    /// Serves the connection until it loses its seat.
    pub(crate) async fn keep<T>(&self, serve: impl Future<Output = T>) -> Option<T> {
        let mut standing = self.0.standing.subscribe();
        let too_late = async {
            self.late().await;
            sleep(LAST_WORDS).await;
            if self.is_admitted() {
                std::future::pending().await
            }
        };
        let kept = async {
            tokio::select! {
                _ = standing.wait_for(|standing| *standing == Standing::Dismissed) => {
                    tracing::warn!(error = "too_many_waiting", "refused");
                    None
                }
                () = too_late => {
                    tracing::warn!(error = "timed_out", "refused");
                    None
                }
                served = serve => Some(served),
            }
        };
        kept.instrument(self.0.span.clone()).await
    }

    /// Serves a whole connection, with its beginning and end in the log.
    pub(crate) async fn visit(self, serve: impl Future<Output = ()>) {
        self.0.span.in_scope(|| tracing::debug!("connected"));
        self.keep(serve).await;
        self.0.span.in_scope(|| tracing::debug!("closed"));
    }
}

impl Drop for Seated {
    fn drop(&mut self) {
        let mut state = self.admission.lock();
        state.policy.leave(self.ticket, self.admission.now());
        state.standings.remove(&self.ticket);
        drop(state);
        self.admission.freed.notify_waiters();
    }
}

/// A listener of any kind.
pub(crate) trait Listens: std::os::fd::AsFd + Send + 'static {
    type Stream: Send;

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(Self::Stream, Option<SocketAddr>)>>;
}

impl Listens for TcpListener {
    type Stream = TcpStream;

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, Option<SocketAddr>)>> {
        let settled = |(stream, peer)| {
            settle(&stream);
            (stream, Some(peer))
        };
        TcpListener::poll_accept(self, cx).map_ok(settled)
    }
}

impl Listens for UnixListener {
    type Stream = UnixStream;

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(UnixStream, Option<SocketAddr>)>> {
        UnixListener::poll_accept(self, cx).map_ok(|(stream, _)| (stream, None))
    }
}

/// Sets up a connection: keys are sent without delay, and a peer that is gone is noticed.
pub(crate) fn settle(stream: &TcpStream) {
    // The connection works without these options, too.
    let _ = stream.set_nodelay(true);
    let _ = rustix::net::sockopt::set_socket_keepalive(stream, true);
    let _ = rustix::net::sockopt::set_tcp_keepidle(stream, Duration::from_secs(30));
    let _ = rustix::net::sockopt::set_tcp_keepintvl(stream, Duration::from_secs(10));
}

/// Accepts connections for ever, and serves each in a task of its own.
pub(crate) async fn accept_all<L, F, S>(
    admission: Arc<Admission>,
    door: &'static str,
    listener: L,
    serve: F,
) -> std::convert::Infallible
where
    L: Listens,
    F: Fn(L::Stream, Seat) -> S,
    S: Future<Output = ()> + Send + 'static,
{
    // A short queue would make clients wait for a second and longer in a flood.
    let _ = rustix::net::listen(&listener, BACKLOG);
    let mut in_trouble = false;
    loop {
        admission.room().await;
        match std::future::poll_fn(|cx| listener.poll_accept(cx)).await {
            Ok((stream, peer)) => {
                in_trouble = false;
                if let Ok(seat) = admission.enter(door, peer) {
                    tokio::spawn(seat.clone().visit(serve(stream, seat)));
                }
            }
            // The client has gone already.
            Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(e) => {
                if !std::mem::replace(&mut in_trouble, true) {
                    tracing::error!(door, why = %e, "cannot accept a connection");
                }
                admission.evict();
                sleep(BREATH).await;
            }
        }
    }
}
