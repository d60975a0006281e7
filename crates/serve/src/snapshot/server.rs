//! The server: a thread that accepts clients, and one for each of them.
//!
//! Every wait for a client has a limit, and a client can delay only itself. When all places are
//! taken, a client that has been silent for a while makes room for the next; when all are busy, the
//! next waits in the kernel's queue.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use tapdeck_core::Time;
use tapdeck_host::Clock;

use super::frames::NoFrame;
use crate::conn::Conn;
use crate::door::{Address, Door};
use tapdeck_proto::snapshot::{Request, Response};

/// What a client's thread needs: a frame, and a little to handle it.
const STACK: usize = 256 * 1024;
/// How long to wait before letting clients in again when the system has no descriptors or threads
/// left.
const RECOVER: Duration = Duration::from_millis(100);

/// How long a client may take, and how many there may be.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Limits {
    /// Clients at once.
    pub clients: usize,
    /// Between two requests.
    pub idle: Duration,
    /// For one frame, in either direction, from its first byte.
    pub frame: Duration,
    /// A client that has said nothing for this long makes room when all places are taken.
    pub patience: Duration,
    /// At the end, for answers that are on their way.
    pub farewell: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            clients: 128,
            idle: Duration::from_secs(300),
            frame: Duration::from_secs(5),
            patience: Duration::from_secs(1),
            farewell: Duration::from_secs(1),
        }
    }
}

impl Limits {
    /// Sets the most clients at once; 128 by default.
    #[must_use]
    pub fn clients(mut self, clients: usize) -> Self {
        self.clients = clients;
        self
    }

    /// Sets how long a client may take between two requests; five minutes by default.
    #[must_use]
    pub fn idle(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }

    /// Sets how long one frame may take, in either direction; five seconds by default.
    #[must_use]
    pub fn frame(mut self, frame: Duration) -> Self {
        self.frame = frame;
        self
    }

    /// Sets after which silence a client makes room when all places are taken; a second by
    /// default.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets how long answers that are on their way may take at the end; a second by default.
    #[must_use]
    pub fn farewell(mut self, farewell: Duration) -> Self {
        self.farewell = farewell;
        self
    }
}

type Handler = dyn Fn(Request) -> Response + Send + Sync;

/// A client that has been let in.
struct Client {
    number: u64,
    /// A second hold on its stream, to end it from outside.
    conn: Conn,
    /// Since when it says nothing; `None` while its request is served.
    quiet_since: Option<Time>,
}

struct Inner {
    limits: Limits,
    clock: Clock,
    handler: Box<Handler>,
    stop: OwnedFd,
    clients: Mutex<Vec<Client>>,
    changed: Condvar,
}

/// A running server. Dropping it stops it: no client is accepted any more, pending requests are
/// answered, and the socket is removed.
pub struct Server {
    inner: Arc<Inner>,
    thread: Option<JoinHandle<()>>,
    address: Address,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Server {
    /// Answers at a door. The handler is called on the clients' threads, one request at a time for
    /// each.
    pub fn start(
        door: Door,
        limits: Limits,
        handler: impl Fn(Request) -> Response + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let inner = Arc::new(Inner {
            limits,
            clock: Clock::start(),
            handler: Box::new(handler),
            stop: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            clients: Mutex::new(Vec::new()),
            changed: Condvar::new(),
        });
        let address = door.address().clone();
        let own = inner.clone();
        let thread = std::thread::Builder::new()
            .name("tapdeck-snapshots".into())
            .spawn(move || own.let_clients_in(&door))?;
        Ok(Self { inner, thread: Some(thread), address })
    }

    /// Where it answers.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A counter that is full has been written already.
        let _ = rustix::io::write(&self.inner.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so, and is gone, too.
            let _ = thread.join();
        }
        let mut clients = self.inner.clients();
        for client in clients.iter_mut() {
            // Clients that wait for a request see the end; a request in progress is answered first.
            client.conn.shutdown(Shutdown::Read);
        }
        // Clients that are still there after this time are dropped with the process.
        let _ = self.inner.changed.wait_timeout_while(clients, self.inner.limits.farewell, |c| !c.is_empty());
    }
}

impl Inner {
    fn let_clients_in(self: &Arc<Self>, door: &Door) {
        let mut number = 0;
        loop {
            let full = !self.make_room();
            // With all places taken, look again soon; otherwise wait for the next client.
            let listener = (!full).then(|| door.fd());
            let limit = full.then_some(Duration::from_millis(20));
            if self.wait_for(listener, limit) {
                return;
            }
            if full {
                continue;
            }
            match door.accept() {
                Ok(Some(conn)) => {
                    number += 1;
                    if self.admit(conn, number).is_err() && self.wait_for(None, Some(RECOVER)) {
                        return;
                    }
                }
                // The client is another user's, or gone again.
                Ok(None) => {}
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => {}
                // Most likely out of descriptors. Trying again at once would spin.
                Err(_) => {
                    if self.wait_for(None, Some(RECOVER)) {
                        return;
                    }
                }
            }
        }
    }

    /// Waits for a client or the time to pass. Returns whether to stop.
    fn wait_for(&self, listener: Option<rustix::fd::BorrowedFd<'_>>, limit: Option<Duration>) -> bool {
        let mut fds = vec![PollFd::from_borrowed_fd(self.stop.as_fd(), PollFlags::IN)];
        fds.extend(listener.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let limit = limit.and_then(|l| Timespec::try_from(l).ok());
        // A wait that a signal cut short ends early; the caller's loop waits again.
        let _ = poll(&mut fds, limit.as_ref());
        !fds[0].revents().is_empty()
    }

    /// Returns whether there is a place for one more, after disconnecting the quietest client if
    /// need be.
    fn make_room(&self) -> bool {
        let mut clients = self.clients();
        if clients.len() < self.limits.clients {
            return true;
        }
        let now = self.clock.now().mono;
        let quietest = clients.iter_mut().filter(|c| c.quiet_since.is_some());
        let Some(quietest) = quietest.min_by_key(|c| c.quiet_since) else { return false };
        let quiet = now.since(quietest.quiet_since.unwrap_or(now));
        if quiet >= self.limits.patience {
            // Its thread sees the end at once and gives the place up.
            quietest.conn.shutdown(Shutdown::Both);
            quietest.quiet_since = None;
        }
        false
    }

    fn admit(self: &Arc<Self>, conn: Conn, number: u64) -> io::Result<()> {
        let quiet_since = Some(self.clock.now().mono);
        let client = Client { number, conn: conn.try_clone()?, quiet_since };
        self.clients().push(client);
        let place = Place { inner: self.clone(), number };
        let thread = std::thread::Builder::new().name("tapdeck-client".into()).stack_size(STACK);
        // When it cannot be started, the closure is dropped, and the place with it.
        thread.spawn(move || place.serve(conn)).map(|_| ())
    }

    fn clients(&self) -> MutexGuard<'_, Vec<Client>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client's place, given up when this is dropped, however its thread ends.
struct Place {
    inner: Arc<Inner>,
    number: u64,
}

impl Place {
    fn serve(&self, mut conn: Conn) {
        let Limits { idle, frame, .. } = self.inner.limits;
        loop {
            let bytes = conn.read_frame(idle, frame);
            self.note(true);
            let (response, goes_on) = match bytes {
                Ok(bytes) => (self.answer(&bytes), true),
                Err(NoFrame::Wire(e)) => (Response::Failure(e.to_string()), false),
                Err(NoFrame::Late { begun: true }) => {
                    (Response::Failure("the rest of the frame did not come".into()), false)
                }
                Err(NoFrame::Late { begun: false } | NoFrame::End | NoFrame::Half | NoFrame::Io(_)) => return,
            };
            if conn.write_frame(&response.to_frame(), frame).is_err() {
                return;
            }
            if !goes_on {
                // What follows cannot be told from noise.
                conn.linger(frame.min(Duration::from_secs(1)));
                return;
            }
            self.note(false);
        }
    }

    /// A frame that is whole is answered, and the next one may be better.
    fn answer(&self, bytes: &[u8]) -> Response {
        match Request::from_bytes(bytes) {
            Ok(request) => (self.inner.handler)(request),
            Err(e) => Response::Failure(e.to_string()),
        }
    }

    fn note(&self, busy: bool) {
        let now = self.inner.clock.now().mono;
        let mut clients = self.inner.clients();
        if let Some(client) = clients.iter_mut().find(|c| c.number == self.number) {
            client.quiet_since = (!busy).then_some(now);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.inner.clients().retain(|c| c.number != self.number);
        self.inner.changed.notify_all();
    }
}
