//! The tty wire over the network: sessions that are opened, driven and watched from elsewhere.
//!
//! A session that is opened here is an ordinary one, with a driver thread, a log, a model and
//! doors. It is listed with the live sessions, and can be attached to and recorded. Where a
//! transport is a descriptor (Unix socket, TLS), the async runtime only negotiates, and the
//! session's own thread serves its client. Otherwise the runtime carries bytes between a stream and
//! the session's [`UserQueues`](tapdeck_host::UserQueues). [`serve_stream`] serves one session over
//! any stream; each transport is a module that only makes streams.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tapdeck_core::{Authority, Need, WallTime};
use tapdeck_host::registry::Listing;
use tapdeck_host::{Clock, Handle, UserSide};
use tokio::sync::{Semaphore, watch};

use crate::admission::{self, Admission};
use crate::tokens::{Token, Tokens};
use crate::wire::{self, Negotiation};

mod attach;
mod datagrams;
mod dial;
mod endpoint;
mod flow;
mod identity;
mod line;
pub(crate) mod messages;
mod port_watch;
pub(crate) mod proof;
mod quic;
mod sealed;
mod session;
mod tls;
mod trust;
mod unix;
mod wt;

pub use dial::{Bridge, dial};
pub use endpoint::{Endpoint, EndpointError, Transport};
pub use flow::Flow;
pub use identity::Identity;
pub use proof::Channel;
pub use sealed::Sealed;
#[cfg(feature = "web")]
pub(crate) use session::serve_stream_of;
pub use session::{Client, serve_stream};
pub use tapdeck_proto::tty::RefusalCode;
pub use trust::Trust;

/// Starts and finds the sessions of a server.
pub trait SessionRunner: Send + Sync + 'static {
    /// Runs a session to its end on the calling thread, with `user` as its user's side, and reports
    /// to the client. May return long after the program's end, while other clients still look at
    /// the session.
    fn run(&self, negotiation: &Negotiation, user: UserSide, client: &mut Client);

    /// Removes what is left of ended sessions that were kept for a last look. Called when the
    /// server ends.
    fn close(&self);

    /// Finds the live session of this id or name; without one, the only live session.
    fn find(&self, session: Option<&str>) -> Result<Listing, Refusal>;
}

/// A session that was opened.
#[derive(Debug)]
pub struct Opened {
    /// Its id.
    pub id: String,
    /// Acts on the session.
    pub handle: Handle,
}

/// Why a server refuses a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// A word for programs.
    pub error: RefusalCode,
    /// A sentence for people.
    pub message: String,
    /// The exit code with which a shell would report the same.
    pub code: Option<i32>,
}

impl Refusal {
    /// Returns a refusal without an exit code.
    pub fn new(error: RefusalCode, message: impl Into<String>) -> Self {
        Self { error, message: message.into(), code: None }
    }

    fn log(&self) {
        tracing::warn!(error = self.error.name(), why = self.message, "refused");
    }

    fn framed(&self) -> Vec<u8> {
        wire::framed(&tapdeck_proto::tty::Refusal {
            code: self.code,
            error: self.error.name().to_owned(),
            message: self.message.clone(),
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// How much a server serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The most sessions at once.
    pub sessions: usize,
    /// What it grants to connections.
    pub admission: admission::Limits,
}

impl Default for Limits {
    fn default() -> Self {
        Self { sessions: 2000, admission: admission::Limits::default() }
    }
}

impl Limits {
    /// Sets the most sessions at once; 2,000 by default.
    #[must_use]
    pub fn sessions(mut self, sessions: usize) -> Self {
        self.sessions = sessions;
        self
    }

    /// Sets what it grants to connections.
    #[must_use]
    pub fn admission(mut self, admission: admission::Limits) -> Self {
        self.admission = admission;
        self
    }
}

/// The client at the other end of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// A process of the user whose server this is, as the kernel says.
    Owner,
    /// Any other client. Its token says what it may do.
    Stranger,
    /// A stranger at the other end of this channel, which can prove that it has a token.
    Bound(Channel),
}

/// Decides what a client may do by the secret that it shows.
pub trait Authenticate: Send + Sync + 'static {
    /// Returns what the bearer of this secret may do; `None` when it is wrong. It is called once: a
    /// client stays until its authority expires.
    fn authenticate(&self, secret: &str) -> Option<Authority>;
}

impl<F: Fn(&str) -> Option<Authority> + Send + Sync + 'static> Authenticate for F {
    fn authenticate(&self, secret: &str) -> Option<Authority> {
        self(secret)
    }
}

/// A server: the state that all its streams share.
pub struct Server {
    runner: Box<dyn SessionRunner>,
    limits: Limits,
    sessions: Arc<Semaphore>,
    admission: Arc<Admission>,
    running: Arc<Sessions>,
    tokens: Tokens,
    /// Checks credentials in place of the tokens.
    authenticate: Option<Box<dyn Authenticate>>,
    clock: Clock,
    /// Counts the times when a token may have been revoked.
    changes: watch::Sender<u64>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// A valid credential, and what it grants.
#[derive(Debug, Clone)]
struct Pass {
    authority: Authority,
    /// `None` for the server's own user, and for a client that was admitted without the tokens.
    token: Option<Token>,
}

impl Pass {
    /// Returns the client's name in the log. It never has the token in it.
    fn name(&self) -> &str {
        self.token.as_ref().map_or("owner or authenticated", |token| &token.name)
    }

    /// Returns the pass of the server's own user.
    fn owner() -> Self {
        Self { authority: Authority::owner(), token: None }
    }
}

/// Why a credential does not do.
#[derive(Debug)]
enum Unauthorised {
    /// It was shown, and is wrong: a guess, for all that the server knows.
    Wrong(Refusal),
    /// There is none, or it does not allow what was asked for.
    Lacking(Refusal),
}

impl From<Unauthorised> for Refusal {
    fn from(why: Unauthorised) -> Self {
        match why {
            Unauthorised::Wrong(refusal) | Unauthorised::Lacking(refusal) => refusal,
        }
    }
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
    /// Makes a server that uses this runner within these limits.
    pub fn new(runner: impl SessionRunner, limits: Limits, tokens: Tokens) -> Arc<Self> {
        Self::with_authenticator(runner, limits, tokens, None)
    }

    /// Makes a server that checks credentials with `authenticate`, if there is one, and not with
    /// the tokens.
    pub fn with_authenticator(
        runner: impl SessionRunner,
        limits: Limits,
        tokens: Tokens,
        authenticate: Option<Box<dyn Authenticate>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            runner: Box::new(runner),
            limits,
            sessions: Arc::new(Semaphore::new(limits.sessions)),
            admission: Admission::new(limits.admission),
            running: Arc::default(),
            tokens,
            authenticate,
            clock: Clock::start(),
            changes: watch::Sender::new(0),
        })
    }

    /// Returns the tokens that admit strangers.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Returns what is told when a token may have been revoked.
    #[cfg(feature = "web")]
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn now(&self) -> WallTime {
        self.clock.now().wall
    }

    /// The protocols to offer. Only the tokens have keys to check proofs with.
    fn protocols(&self) -> &'static [&'static [u8]] {
        if self.authenticate.is_some() { &[identity::ALPN] } else { &[identity::PROVING, identity::ALPN] }
    }

    /// Checks that the client may have what it asks for. Whether that exists is checked later, so
    /// that a refusal does not reveal it.
    fn authorise(&self, peer: Peer, negotiation: &Negotiation) -> Result<Pass, Unauthorised> {
        let forbidden = |why: &str| Refusal::new(RefusalCode::Forbidden, why);
        let wrong = |why: &str| Unauthorised::Wrong(forbidden(why));
        let now = self.now();
        let pass = match (peer, &negotiation.token) {
            (Peer::Owner, _) => Pass::owner(),
            (Peer::Bound(channel), None) if negotiation.proof.is_some() => {
                let proof = negotiation.proof.as_deref().unwrap_or_default();
                let token = proof::find(&self.tokens, proof, &channel, now);
                let token = token.ok_or_else(|| wrong("the token is wrong, or no longer good"))?;
                Pass { authority: token.authority(), token: Some(token) }
            }
            (_, None) => {
                return Err(Unauthorised::Lacking(forbidden("a token is needed")));
            }
            (_, Some(secret)) if self.authenticate.is_some() => {
                let found = self.authenticate.as_ref().and_then(|a| a.authenticate(secret));
                let authority = found.ok_or_else(|| wrong("the token is wrong"))?;
                Pass { authority, token: None }
            }
            (_, Some(secret)) => {
                let token = self.tokens.find(secret, now);
                let token = token.ok_or_else(|| wrong("the token is wrong, or no longer good"))?;
                Pass { authority: token.authority(), token: Some(token) }
            }
        };
        let (need, scopes) = match negotiation.backend.as_str() {
            "attach" => (Need::Watch, "tty:attach or observe"),
            _ => (Need::Open, "tty:open"),
        };
        match pass.authority.check(need, false, now) {
            Ok(()) => Ok(pass),
            Err(_) => {
                let why = format!("the token does not allow it: {scopes} is needed");
                Err(Unauthorised::Lacking(forbidden(&why)))
            }
        }
    }

    /// Opens a detached session on a terminal for the bearer of a token. Returns its id.
    ///
    /// # Errors
    /// When the token does not allow it, there is no room, or the program cannot be started.
    #[cfg(feature = "web")]
    pub(crate) async fn open_detached(
        self: &Arc<Self>,
        token: &str,
        new: crate::NewSession,
    ) -> Result<String, Refusal> {
        let cwd = new.folder.map(|folder| folder.to_string_lossy().into_owned());
        let negotiation = Negotiation {
            name: new.name,
            cwd,
            token: Some(token.to_owned()),
            // No terminal is attached, so the model answers the program's queries.
            tty: Some(wire::Tty { answers: false, ..wire::Tty::default() }),
            cmd: new.command,
            detached: true,
            ..Negotiation::default()
        };
        self.authorise(Peer::Stranger, &negotiation)?;
        session::open_detached(self, negotiation).await
    }

    /// Waits until the client's authority has expired or its token was revoked.
    async fn revoked(&self, pass: &Pass) {
        let mut changes = self.changes.subscribe();
        let until = pass.authority.expires();
        loop {
            let now = self.now();
            let is_revoked = |token: &Token| !self.tokens.is_good(token, now);
            if until.is_some_and(|at| now >= at) || pass.token.as_ref().is_some_and(is_revoked) {
                return;
            }
            let left = until.map_or(Duration::MAX, |at| at.since(now));
            // A timer cannot wait much longer than a year.
            let left = left.min(Duration::from_secs(365 * 86_400));
            // Whether the time is over or the tokens have changed, the loop looks again.
            let _ = tokio::time::timeout(left, changes.changed()).await;
        }
    }

    /// Ends all sessions, and waits at most this long for their end.
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
        // Sessions that are late are left behind.
        let _ = tokio::time::timeout(at_most, all).await;
        self.runner.close();
    }
}

/// A server and the runtime that it runs on.
pub struct Running {
    runtime: tokio::runtime::Runtime,
    server: Arc<Server>,
    quic: Mutex<Vec<quic::Running>>,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("server", &self.server).finish_non_exhaustive()
    }
}

/// Where a server listens.
#[derive(Debug)]
#[non_exhaustive]
pub struct Listening {
    /// The address, with the actual port.
    pub at: Endpoint,
    /// The hash of the certificate for browsers, where the transport needs one.
    pub browser_hash: Option<String>,
}

/// Why a server does not listen at an address that other machines reach. [`Running::net`] wraps it
/// in its error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it can be reached from other machines, and there is no valid token")]
pub struct NoToken;

#[cfg(feature = "web")]
pub use crate::web::Site;

/// The page, which this build does not have.
#[cfg(not(feature = "web"))]
#[derive(Debug)]
pub enum Site {}

/// Serves a page, in the clear or over TLS.
#[cfg(feature = "web")]
fn page(
    server: Arc<Server>,
    listener: tokio::net::TcpListener,
    identity: Option<&Arc<Identity>>,
    site: Site,
) -> io::Result<()> {
    let acceptor = identity.map(|i| i.server_config(&[b"http/1.1"])).transpose()?;
    let acceptor = acceptor.map(|config| tokio_rustls::TlsAcceptor::from(Arc::new(config)));
    let admission = Arc::clone(&server.admission);
    tokio::spawn(admission::accept_all(admission, admission::PAGE, listener, move |stream, seat| {
        let (acceptor, site) = (acceptor.clone(), site.clone());
        async move {
            match acceptor {
                None => crate::web::serve_seated(&site, stream, seat).await,
                Some(acceptor) => {
                    if let Some(stream) = tls::hands_shaken(&seat, acceptor, stream).await {
                        crate::web::serve_seated(&site, stream, seat).await;
                    }
                }
            }
        }
    }));
    Ok(())
}

#[cfg(not(feature = "web"))]
fn page(_: Arc<Server>, _: tokio::net::TcpListener, _: Option<&Arc<Identity>>, site: Site) -> io::Result<()> {
    match site {}
}

/// Wakes every [`Server::revoked`] when the token file changes. A thread waits for that.
fn watch_tokens(server: Arc<Server>) -> io::Result<()> {
    use rustix::fs::inotify;
    let folder = server.tokens.path().parent().unwrap_or(Path::new(".")).to_owned();
    tapdeck_host::registry::private_folder(&folder)?;
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC)?;
    let events =
        inotify::WatchFlags::MOVED_TO | inotify::WatchFlags::CLOSE_WRITE | inotify::WatchFlags::DELETE;
    inotify::add_watch(&watch, &folder, events)?;
    let thread = std::thread::Builder::new().name("tapdeck-tokens".into());
    thread.spawn(move || {
        let mut buf = [0; 4096];
        while matches!(rustix::io::read(&watch, &mut buf), Ok(n) if n > 0) {
            server.changes.send_modify(|n| *n += 1);
            if let Err(e) = server.tokens.all() {
                tracing::error!(why = %e, "cannot read the tokens, so none is valid");
            }
        }
    })?;
    Ok(())
}

/// How long sessions may take to end when the server stops.
const FAREWELL: Duration = Duration::from_secs(5);

impl Running {
    /// Starts a runtime. Call it with the signals of this process blocked: its threads inherit
    /// that.
    ///
    /// # Errors
    /// When the tokens cannot be read, or there is no thread.
    pub fn start(server: Arc<Server>) -> io::Result<Self> {
        if server.authenticate.is_none() {
            let broken = |e: io::Error| {
                let message = format!("cannot use the list of tokens: {e}; repair or remove the file");
                io::Error::new(e.kind(), message)
            };
            server.tokens.all().map_err(broken)?;
        }
        let runtime =
            tokio::runtime::Builder::new_multi_thread().thread_name("tapdeck-net").enable_all().build()?;
        watch_tokens(Arc::clone(&server))?;
        Ok(Self { runtime, server, quic: Mutex::default() })
    }

    /// Serves the clients of a Unix socket.
    pub fn unix(&self, door: crate::door::Door) -> io::Result<()> {
        let _runtime = self.runtime.enter();
        unix::listen(Arc::clone(&self.server), door)
    }

    /// Serves the clients of a port. A WebSocket transport also serves a page: `site` makes it,
    /// given the address with the actual port.
    ///
    /// # Errors
    /// When the port cannot be bound, or other machines can reach it and there is no valid token.
    pub fn net(
        &self,
        at: &Endpoint,
        identity: &Arc<Identity>,
        site: impl FnOnce(&Endpoint, Arc<Server>) -> Option<Site>,
    ) -> io::Result<Listening> {
        let Endpoint::Net { transport, host, port } = at else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not an address of a network"));
        };
        let refuse = |why: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        let address = Endpoint::resolve(host, *port)?[0];
        if !address.ip().is_loopback() {
            if *transport == Transport::Ws {
                return refuse(
                    "it can be reached from other machines, and ws:// is in the clear: use wss://",
                );
            }
            if !self.has_token()? {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, NoToken));
            }
        }
        let _runtime = self.runtime.enter();
        let server = Arc::clone(&self.server);
        let (bound, browser_hash) = match transport {
            Transport::Tls => {
                let listener = tls::bind(address)?;
                let bound = listener.local_addr()?;
                tls::listen(server, listener, identity)?;
                (bound, None)
            }
            Transport::Quic => {
                let running = quic::listen(&server, address, identity)?;
                let bound = running.at();
                self.quic.lock().unwrap_or_else(PoisonError::into_inner).push(running);
                (bound, None)
            }
            Transport::WebTransport => wt::listen(server, address, Arc::clone(identity))?,
            Transport::Ws | Transport::Wss => {
                let listener = tls::bind(address)?;
                let bound = listener.local_addr()?;
                let Some(site) = site(&at.with_port(bound.port()), Arc::clone(&server)) else {
                    return refuse("this server was built without its page");
                };
                let identity = (*transport == Transport::Wss).then_some(identity);
                page(server, listener, identity, site)?;
                (bound, None)
            }
        };
        Ok(Listening { at: at.with_port(bound.port()), browser_hash })
    }

    /// Returns whether there is a token that has not expired.
    ///
    /// # Errors
    /// When the tokens cannot be read.
    pub fn has_token(&self) -> io::Result<bool> {
        let now = self.server.now();
        if self.server.authenticate.is_some() {
            return Ok(true);
        }
        Ok(self.server.tokens.all()?.iter().any(|token| !token.has_expired(now)))
    }

    /// Lets ssh clients attach to sessions. Returns the address.
    #[cfg(feature = "ssh")]
    pub fn ssh(
        &self,
        door: crate::ssh_door::SshDoor,
        listener: std::net::TcpListener,
    ) -> io::Result<std::net::SocketAddr> {
        let _runtime = self.runtime.enter();
        crate::ssh_door::listen(door, listener, Arc::clone(&self.server.admission))
    }

    /// Ends all sessions and stops.
    pub fn stop(self) {
        self.runtime.block_on(self.server.end_sessions(FAREWELL));
        for quic in self.quic.into_inner().unwrap_or_else(PoisonError::into_inner) {
            self.runtime.block_on(quic.stop());
        }
        self.runtime.shutdown_timeout(Duration::from_secs(1));
    }
}
