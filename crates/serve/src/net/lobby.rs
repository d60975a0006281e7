//! Where those wait who have not shown yet who they are and what they want: few, and for a short time. When it is full,
//! whoever has waited longest has to make room, so that a crowd that says nothing cannot keep those out who do.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tracing::Instrument;

use super::{Refusal, Server};

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

/// How many may wait at one address.
const ROOM: usize = 256;

/// The lobby of one address.
pub(super) struct Lobby {
    server: Arc<Server>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    next: u64,
    line: VecDeque<(u64, oneshot::Sender<()>)>,
}

impl Lobby {
    pub(super) fn new(server: &Arc<Server>) -> Arc<Self> {
        Arc::new(Self { server: Arc::clone(server), waiting: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something for somebody who comes in, until they have to make room for others.
    pub(super) async fn visit<F>(self: Arc<Self>, serve: impl FnOnce(Arc<Server>, Visitor) -> F)
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
                let _ = send_away.send(());
            }
            number
        };
        let visitor = Visitor(Arc::new(Visit { lobby: Arc::clone(&self), number, seat: Mutex::default() }));
        tokio::select! {
            // A client that was admitted has left the line, and is told nothing.
            Ok(()) = sent_away => tracing::warn!(error = "too_many_waiting", "refused"),
            () = serve(Arc::clone(&self.server), visitor) => {}
        }
    }
}

/// Somebody who came in; all that is theirs shares this.
#[derive(Clone)]
pub(super) struct Visitor(Arc<Visit>);

struct Visit {
    lobby: Arc<Lobby>,
    number: u64,
    /// Theirs once they were let in.
    seat: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Visitor {
    /// They have shown who they are: they get a seat, if there is one, and need not make room any more.
    pub(super) fn admit(&self) -> Result<(), Refusal> {
        let mut seat = self.0.seat.lock().unwrap_or_else(PoisonError::into_inner);
        if seat.is_none() {
            let free = Arc::clone(&self.0.lobby.server.connections).try_acquire_owned();
            let full = "the server has as many connections as it may have";
            *seat = Some(free.map_err(|_| Refusal::new("too_many_connections", full))?);
            self.0.leave_line();
        }
        Ok(())
    }

    pub(super) fn is_admitted(&self) -> bool {
        self.0.seat.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

impl Visit {
    fn leave_line(&self) {
        let mut waiting = self.lobby.lock();
        if let Ok(at) = waiting.line.binary_search_by_key(&self.number, |(number, _)| *number) {
            waiting.line.remove(at);
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.leave_line();
    }
}
