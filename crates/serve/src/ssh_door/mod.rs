//! The door for ssh clients: whoever has a key that the user's list names attaches to a live session by its name.
//!
//! A visitor gets a terminal here, on which the command attaches to the session through the session's own socket like
//! anybody else. So the door knows nothing of sessions, and a visitor sees and may do what `attach` shows and allows.
//! No shell, no files, no forwarding.

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
use tokio::sync::Semaphore;

mod keys;
mod terminal;
mod visitor;

pub use keys::{Grant, check, host_key};

use visitor::Visitor;

/// How long somebody may take to make themselves known.
const HELLO: Duration = Duration::from_secs(30);
/// A quiet connection is tried this often, and given up after so many tries in vain.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// Visitors at once.
const VISITORS: usize = 100;
/// How long to wait when no connection can be taken.
const BREATH: Duration = Duration::from_millis(100);

/// What a visitor asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The name under which they came, which is that of a session.
    pub user: String,
    /// What they typed behind it, if anything.
    pub command: Option<String>,
    /// What their key opens.
    pub grant: Grant,
    /// Whether they have a terminal.
    pub terminal: bool,
}

/// Turns a request into a command of ours, or into what to tell instead, with an exit code.
pub type Porter = Box<dyn Fn(&Request) -> Result<CommandSpec, (String, i32)> + Send + Sync>;

/// What makes a door.
pub struct SshDoor {
    /// Whose keys open it.
    pub authorized_keys: PathBuf,
    /// By which it is known.
    pub host_key: PrivateKey,
    /// What visitors get.
    pub porter: Porter,
    /// The signals that commands start with.
    pub signals: InheritedSignals,
}

/// The kind and size of a visitor's terminal.
#[derive(Debug, Clone)]
struct Kind {
    term: String,
    size: WinSize,
}

/// Serves those who come, from within a runtime, until it stops.
///
/// # Errors
/// When the listener cannot be used.
pub fn listen(door: SshDoor, listener: TcpListener) -> io::Result<SocketAddr> {
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
    let room = Arc::new(Semaphore::new(VISITORS));
    tokio::spawn(async move {
        loop {
            // With too many visitors, the next one waits outside.
            let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
            let Ok((stream, peer)) = listener.accept().await else {
                tokio::time::sleep(BREATH).await;
                continue;
            };
            let (door, config) = (Arc::clone(&door), Arc::clone(&config));
            tokio::spawn(async move {
                let _permit = permit;
                let (visitor, known) = Visitor::new(door, peer.ip());
                let greeted = tokio::time::timeout(HELLO, server::run_stream(config, stream, visitor)).await;
                let Ok(Ok(session)) = greeted else { return };
                let handle = session.handle();
                let mut session = std::pin::pin!(session);
                tokio::select! {
                    _ = &mut session => return,
                    // Somebody who does not say who they are does not get to stay.
                    () = async { if tokio::time::timeout(HELLO, known).await.is_ok() { std::future::pending().await } } => {}
                }
                let late = "nobody made themselves known in time";
                let _ = handle.disconnect(russh::Disconnect::ByApplication, late.into(), String::new()).await;
                let _ = tokio::time::timeout(BREATH, session).await;
            });
        }
    });
    Ok(address)
}
