//! The tty wire over the network: sessions that are opened, driven and watched from elsewhere.
//!
//! This is the one place with an async runtime. A session that is opened here is an ordinary one: a driver on a thread
//! of its own, a log, a model, doors; it is on the list of live sessions and can be attached and recorded. The runtime
//! only carries bytes between a stream and that session's [`Port`](tapdeck_host::Port). [`serve_stream`] serves one
//! session over any stream; each transport is a file that makes streams and nothing else.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use tapdeck_host::registry::Listing;
use tapdeck_host::{Handle, Outer};
use tokio::sync::Semaphore;

use crate::wire::{self, Wanted};

mod attach;
mod session;
mod unix;

pub use session::{Client, serve_stream};

/// What the server does for its clients, which only the command knows how to do.
pub trait Desk: Send + Sync + 'static {
    /// Runs a session to its end on the calling thread, with `outer` as its user's side, and tells the client what
    /// becomes of it. May return long after the program's end, while others still look at it.
    fn run(&self, wanted: &Wanted, outer: Outer, client: &mut Client);

    /// The server ends: nothing is to be left behind of sessions that have ended and were kept to be looked at.
    fn close(&self);

    /// The live session of this id or name.
    fn find(&self, session: Option<&str>) -> Result<Listing, Refusal>;
}

/// A session that runs.
pub struct Opened {
    /// Its id.
    pub id: String,
    /// To act on it.
    pub handle: Handle,
}

/// Why a client does not get what it wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// A word for programs.
    pub error: &'static str,
    /// A sentence for people.
    pub message: String,
    /// The exit code by which a shell would say the same.
    pub code: Option<i32>,
}

impl Refusal {
    /// A refusal.
    pub fn new(error: &'static str, message: impl Into<String>) -> Self {
        Self { error, message: message.into(), code: None }
    }

    fn framed(&self) -> Vec<u8> {
        let mut refusal = json!({"error": self.error, "message": self.message});
        if let Some(code) = self.code {
            refusal["code"] = json!(code);
        }
        wire::framed(&refusal)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// How much anybody may ask of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Sessions at once.
    pub sessions: usize,
    /// Connections at once.
    pub connections: usize,
    /// How long a client may take to say who it is and what it wants.
    pub hello: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { sessions: 2000, connections: 1000, hello: Duration::from_secs(10) }
    }
}

/// Who is at the other end of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// The user whose server this is, as the system says.
    Owner,
    /// Anybody: what they may do is what their token says.
    Stranger,
}

/// A server: what all its streams share.
pub struct Server {
    desk: Box<dyn Desk>,
    limits: Limits,
    sessions: Arc<Semaphore>,
    connections: Arc<Semaphore>,
    running: Arc<Sessions>,
}

/// The sessions that run.
#[derive(Default)]
struct Sessions {
    handles: Mutex<BTreeMap<u64, Handle>>,
    next: AtomicU64,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Handle>> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, handle: Handle) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.lock().insert(number, handle);
        number
    }
}

impl Server {
    /// A server that does its work by this desk, within these limits.
    pub fn new(desk: impl Desk, limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            desk: Box::new(desk),
            limits,
            sessions: Arc::new(Semaphore::new(limits.sessions)),
            connections: Arc::new(Semaphore::new(limits.connections)),
            running: Arc::default(),
        })
    }

    /// Whether this client may have what it wants.
    fn authorise(&self, peer: Peer, _wanted: &Wanted) -> Result<(), Refusal> {
        match peer {
            Peer::Owner => Ok(()),
            Peer::Stranger => Err(Refusal::new("forbidden", "a token is needed")),
        }
    }

    /// Ends all sessions, and waits until they have ended, but not for ever.
    async fn end_sessions(&self, at_most: Duration) {
        self.sessions.close();
        for handle in self.running.lock().values() {
            handle.cancel();
        }
        let all = async {
            while !self.running.lock().is_empty() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let _ = tokio::time::timeout(at_most, all).await;
        self.desk.close();
    }
}

/// A runtime with a server on it.
pub struct Running {
    runtime: tokio::runtime::Runtime,
    server: Arc<Server>,
}

/// How long sessions have at the end.
const FAREWELL: Duration = Duration::from_secs(5);

impl Running {
    /// Starts a runtime. Call with the signals of this process blocked, which its threads inherit.
    pub fn start(server: Arc<Server>) -> io::Result<Self> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().thread_name("tapdeck-net").enable_all().build()?;
        Ok(Self { runtime, server })
    }

    /// Serves those who come through this door.
    pub fn unix(&self, door: crate::door::Door) -> io::Result<()> {
        let _runtime = self.runtime.enter();
        unix::listen(Arc::clone(&self.server), door)
    }

    /// Ends all sessions and stops.
    pub fn stop(self) {
        self.runtime.block_on(self.server.end_sessions(FAREWELL));
        self.runtime.shutdown_timeout(Duration::from_secs(1));
    }
}
