//! Clients that have not negotiated yet. Each address keeps few of them; when there are too many,
//! the one that has waited longest is disconnected, so that silent clients cannot lock out the
//! others.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tracing::Instrument;

use super::{Refusal, RefusalCode, Server};

/// Serves one connection. What is logged meanwhile names its door and its peer.
pub(super) async fn logged(door: &'static str, peer: Option<SocketAddr>, serve: impl Future<Output = ()>) {
    let span = tracing::info_span!("connection", door, peer = peer.map(tracing::field::display));
    async {
        tracing::debug!("connected");
        serve.await;
        tracing::debug!("closed");
    }
    .instrument(span)
    .await;
}

/// The most clients that wait at one address.
const ROOM: usize = 256;

/// The clients of one address that have not negotiated yet.
pub(super) struct PendingClients {
    server: Arc<Server>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    next: u64,
    line: VecDeque<(u64, oneshot::Sender<()>)>,
}

impl PendingClients {
    pub(super) fn new(server: &Arc<Server>) -> Arc<Self> {
        Arc::new(Self { server: Arc::clone(server), waiting: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves a client that connects, until it has to make room for another.
    pub(super) async fn visit<F>(self: Arc<Self>, serve: impl FnOnce(Arc<Server>, PendingClient) -> F)
    where
        F: Future<Output = ()>,
    {
        let (send_away, sent_away) = oneshot::channel();
        let number = {
            let mut waiting = self.lock();
            waiting.next += 1;
            let number = waiting.next;
            waiting.line.push_back((number, send_away));
            if waiting.line.len() > ROOM
                && let Some((_, send_away)) = waiting.line.pop_front()
            {
                // That client may have left already.
                let _ = send_away.send(());
            }
            number
        };
        let client =
            PendingClient(Arc::new(Pending { pending: Arc::clone(&self), number, seat: Mutex::default() }));
        tokio::select! {
            // A client that was admitted has left the line, and is told nothing.
            Ok(()) = sent_away => tracing::warn!(error = "too_many_waiting", "refused"),
            () = serve(Arc::clone(&self.server), client) => {}
        }
    }
}

/// A client that has connected. All streams of its connection share this.
#[derive(Clone)]
pub(super) struct PendingClient(Arc<Pending>);

struct Pending {
    pending: Arc<PendingClients>,
    number: u64,
    /// Its seat, once it is admitted.
    seat: Mutex<Option<OwnedSemaphorePermit>>,
}

impl PendingClient {
    /// Admits the client, which has negotiated: gives it a seat, if there is one.
    pub(super) fn admit(&self) -> Result<(), Refusal> {
        let mut seat = self.0.seat.lock().unwrap_or_else(PoisonError::into_inner);
        if seat.is_none() {
            let free = Arc::clone(&self.0.pending.server.connections).try_acquire_owned();
            let full = "the server has as many connections as it may have";
            *seat = Some(free.map_err(|_| Refusal::new(RefusalCode::TooManyConnections, full))?);
            self.0.leave_line();
        }
        Ok(())
    }

    pub(super) fn is_admitted(&self) -> bool {
        self.0.seat.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

impl Pending {
    fn leave_line(&self) {
        let mut waiting = self.pending.lock();
        if let Ok(at) = waiting.line.binary_search_by_key(&self.number, |(number, _)| *number) {
            waiting.line.remove(at);
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.leave_line();
    }
}
