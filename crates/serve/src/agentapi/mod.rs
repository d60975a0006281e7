//! The HTTP interface of coder/agentapi 0.12.1 for one session, so that clients written for
//! agentapi work unchanged.
//!
//! `follow` follows the session on a thread and publishes its `conversation`; `routes` serves
//! that. Clients show no credential, as with agentapi: the listener has to be on the loopback, and
//! `access` keeps out other host names and other web pages. `openapi.json` is agentapi's own
//! description of the interface (MIT licence, see `LICENSE-agentapi`).

mod access;
mod conversation;
mod deliver;
mod follow;
mod problem;
mod routes;
mod text;
mod upload;

use std::io;
use std::net::TcpListener as StdListener;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tapdeck_host::registry::Listing;
use tapdeck_proto::bus::Exit;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

pub use access::{Access, AccessError};

use crate::admission::{Admission, Limits, PAGE, accept_all};
use crate::client::ClientError;
use follow::Followed;

/// How long a request's head may take.
const HEAD: Duration = Duration::from_secs(10);
/// The kinds of agent that agentapi knows.
const AGENT_TYPES: [&str; 12] = [
    "claude", "goose", "aider", "codex", "gemini", "copilot", "amp", "cursor", "auggie", "amazonq",
    "opencode", "custom",
];

/// What is served.
#[derive(Debug)]
#[non_exhaustive]
pub struct AgentApiOptions {
    /// The session.
    pub session: Listing,
    /// The kind of agent to report; that of the session's rules when left out.
    pub agent_type: Option<String>,
    /// Which host names and web pages are served.
    pub access: Access,
    /// Whether this counts as having seen the session's last screen.
    pub looks: bool,
}

impl AgentApiOptions {
    /// Serves this session to the hosts and origins that agentapi serves by default.
    pub fn new(session: Listing) -> Self {
        Self { session, agent_type: None, access: Access::default(), looks: false }
    }

    /// Sets the kind of agent to report.
    #[must_use]
    pub fn agent_type(mut self, agent_type: impl Into<Option<String>>) -> Self {
        self.agent_type = agent_type.into();
        self
    }

    /// Sets which host names and web pages are served.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Sets whether this counts as having seen the session's last screen.
    #[must_use]
    pub fn looks(mut self, looks: bool) -> Self {
        self.looks = looks;
        self
    }
}

/// Why serving ended.
#[derive(Debug)]
pub enum Ended {
    /// It was asked to stop.
    Stopped,
    /// The session's program has ended.
    Exited(Exit),
}

/// Why a session cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The session cannot be followed.
    #[error(transparent)]
    Session(#[from] ClientError),
    /// The listener, a thread or the folder for uploads failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Serves a session on this thread until it ends or `stop` is ready.
///
/// # Errors
/// When the session cannot be reached or followed, or there is no listener, runtime or folder for
/// uploads. Errors of a connection end that connection only.
pub fn serve(
    options: AgentApiOptions,
    listener: StdListener,
    stop: impl Future<Output = ()>,
) -> Result<Ended, ServeError> {
    listener.set_nonblocking(true)?;
    let (tell, ended) = oneshot::channel();
    let (followed, rules) = Followed::start(&options.session, options.looks, move |end| {
        // Serving may have stopped already.
        let _ = tell.send(end);
    })?;
    let agent_type = options.agent_type.unwrap_or_else(|| agent_type(rules.as_deref()));
    let uploads = upload::Uploads::new()?;
    let server = routes::Server::new(options.session, followed, agent_type, options.access, uploads);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let served = runtime.block_on(async {
        let listener = TcpListener::from_std(listener)?;
        let admission = Admission::new(Limits::small());
        let serving = Arc::clone(&server);
        tokio::select! {
            () = stop => {
                server.close().await;
                Ok(Ended::Stopped)
            }
            end = ended => {
                server.close().await;
                match end {
                    Ok(end) => Ok(Ended::Exited(end?)),
                    Err(_) => Err(io::Error::other("the thread that follows the session has ended").into()),
                }
            }
            never = accept_all(admission, PAGE, listener, move |stream, seat| {
                let server = Arc::clone(&serving);
                async move {
                    // There is no credential: a client that connects is admitted.
                    if seat.admit().is_err() {
                        return;
                    }
                    let service = TowerToHyperService::new(routes::router(server));
                    let mut http = hyper::server::conn::http1::Builder::new();
                    http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(64 * 1024);
                    // A broken connection affects no other.
                    let _ = http.serve_connection(TokioIo::new(stream), service).await;
                }
            }) => match never {},
        }
    });
    runtime.shutdown_background();
    served
}

/// Returns agentapi's name for the agent that these rules are for.
fn agent_type(rules: Option<&str>) -> String {
    let known = rules.and_then(|rules| AGENT_TYPES.iter().find(|known| **known == rules));
    (*known.unwrap_or(&"custom")).to_owned()
}

/// Returns agentapi's name for a kind of agent, in the spellings that agentapi takes.
pub fn parse_agent_type(name: &str) -> Option<&'static str> {
    let name = match name {
        "cursor-agent" => "cursor",
        "q" => "amazonq",
        name => name,
    };
    AGENT_TYPES.into_iter().find(|known| *known == name)
}

/// Returns the names of all kinds of agent.
pub fn agent_types() -> &'static [&'static str] {
    &AGENT_TYPES
}
