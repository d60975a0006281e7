//! The door for ssh clients: a client with a key in the user's list attaches to a live session by
//! its name.
//!
//! A client gets a terminal here, on which the command attaches to the session through the
//! session's own socket, like any other client. So the door knows nothing about sessions, and a
//! client sees and may do what `attach` shows and allows. There is no shell, no file transfer and
//! no forwarding.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use russh::keys::PrivateKey;
use russh::server;
use tapdeck_core::WinSize;
use tapdeck_host::InheritedSignals;
use tapdeck_host::backend::CommandSpec;
use tokio::net::TcpStream;
use tokio::time::timeout;

mod client;
mod keys;
mod leash;
mod terminal;

pub use keys::{Grant, check, host_key};

use client::Client;
use leash::Leash;

use crate::admission::{Admission, Seat, accept_all};

/// How often a quiet connection is probed; after some probes without a reply it is closed.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// How long the last message to a client may take.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The user name that it gave, which names a session.
    pub user: String,
    /// The command that it gave, if any.
    pub command: Option<String>,
    /// What its key grants.
    pub grant: Grant,
    /// Whether it has a terminal.
    pub terminal: bool,
}

/// The refusal of a request: what the client reads, and the exit code that it gets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Denied {
    message: String,
    exit_code: i32,
}

impl Denied {
    /// Refuses with this message and exit code.
    pub fn new(message: impl Into<String>, exit_code: i32) -> Self {
        Self { message: message.into(), exit_code }
    }
}

/// Turns a request into a command.
type Dispatch = Box<dyn Fn(&Request) -> Result<CommandSpec, Denied> + Send + Sync>;

/// The options of a door.
pub struct SshDoor {
    authorized_keys: PathBuf,
    host_key: PrivateKey,
    dispatch: Dispatch,
    signals: InheritedSignals,
}

impl SshDoor {
    /// Makes a door with this host key. It accepts the keys in the file `authorized_keys`, and
    /// `dispatch` makes the command for a client, which starts with `signals`.
    pub fn new(
        authorized_keys: PathBuf,
        host_key: PrivateKey,
        signals: InheritedSignals,
        dispatch: impl Fn(&Request) -> Result<CommandSpec, Denied> + Send + Sync + 'static,
    ) -> Self {
        Self { authorized_keys, host_key, dispatch: Box::new(dispatch), signals }
    }
}

impl std::fmt::Debug for SshDoor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SshDoor").field("authorized_keys", &self.authorized_keys).finish_non_exhaustive()
    }
}

/// The type and size of a client's terminal.
#[derive(Debug, Clone)]
struct ClientTerminal {
    term: String,
    size: WinSize,
}

/// Serves clients, from within a runtime, until it stops.
///
/// # Errors
/// When the listener cannot be used.
pub fn listen(door: SshDoor, listener: TcpListener, admission: Arc<Admission>) -> io::Result<SocketAddr> {
    let address = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let config = Arc::new(server::Config {
        server_id: russh::SshId::Standard(concat!("SSH-2.0-tapdeck_", env!("CARGO_PKG_VERSION")).into()),
        methods: [russh::MethodKind::PublicKey].as_slice().into(),
        keys: vec![door.host_key.clone()],
        auth_rejection_time: Duration::from_millis(500),
        auth_rejection_time_initial: Some(Duration::ZERO),
        max_auth_attempts: 10,
        inactivity_timeout: None,
        keepalive_interval: Some(KEEPALIVE),
        keepalive_max: 3,
        channel_buffer_size: 32,
        nodelay: true,
        ..server::Config::default()
    });
    let door = Arc::new(door);
    tokio::spawn(accept_all(admission, "ssh", listener, move |stream, seat| {
        serve(Arc::clone(&door), Arc::clone(&config), stream, seat)
    }));
    Ok(address)
}

/// Serves one client to its end. One that does not authenticate in time is disconnected.
async fn serve(door: Arc<SshDoor>, config: Arc<server::Config>, stream: TcpStream, seat: Seat) {
    let Ok(peer) = stream.peer_addr() else { return };
    let client = Client::new(door, peer.ip(), seat.clone());
    // When this task ends, so does the connection.
    let (stream, _holder) = Leash::new(stream);
    let greeted = timeout(seat.time_left(), server::run_stream(config, stream, client)).await;
    let Ok(Ok(session)) = greeted else { return };
    let handle = session.handle();
    let mut session = std::pin::pin!(session);
    tokio::select! {
        _ = &mut session => return,
        () = seat.late() => {}
    }
    let why = "authentication timed out";
    // The client may be gone already.
    let _ = handle.disconnect(russh::Disconnect::ByApplication, why.into(), String::new()).await;
    let _ = timeout(LAST_WORDS, session).await;
}
