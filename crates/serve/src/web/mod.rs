//! The page: one origin and one port, on which a browser finds this machine's sessions and
//! recordings.
//!
//! The browser only paints. The session's own model draws its screen, and the bus crosses the
//! WebSocket, one frame in each message, relayed to the session's socket: there is no second rule
//! about typing. This module owns access: host names, origins and credentials. A client without a
//! credential gets the page's files, which hold no data, and nothing else.

mod alis;
mod api;
mod deck;
mod files;
mod guard;
mod list;
#[cfg(feature = "mcp")]
mod mcp;
mod open;
mod play;
mod reading;
mod relay;
mod serving;
#[cfg(feature = "net")]
mod tty;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use axum::routing::get;
use axum::{Extension, Router};
use tapdeck_core::Authority;
use tapdeck_host::Clock;
use tapdeck_term::Theme;
use tokio::sync::watch;

pub use deck::play as play_recording;
pub use play::RecordingTask;
pub use reading::{describe_recording, recording_text};
#[cfg(feature = "net")]
pub(crate) use serving::serve_seated;
pub use serving::{serve, serve_stream};

use crate::NewSession;
use crate::admission::Seat;

/// Returns what a token grants, if anything. It is called again while a client stays, so that a
/// token can be revoked.
pub(crate) type Check = Box<dyn Fn(&str) -> Option<Authority> + Send + Sync>;

/// Starts a program as a session that outlives the page. Returns its id.
pub(crate) type Start = Box<dyn Fn(NewSession) -> Result<String, StartError> + Send + Sync>;

/// Why the page did not start a session. The page shows the message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The page starts no sessions.
    #[error("no sessions are opened here")]
    NotHere,
    /// The session did not start, for this reason.
    #[error("{0}")]
    Failed(String),
}

/// Compares two secrets in constant time.
pub fn is_same(a: &str, b: &str) -> bool {
    crate::live::same(a.as_bytes(), b.as_bytes())
}

/// How the page is served.
#[non_exhaustive]
pub struct SiteOptions {
    /// Host names, with ports, of the page: `127.0.0.1:8080`. Requests for others are refused.
    pub hosts: Vec<String>,
    /// Further host names, such as that of a proxy in front, which may speak TLS where we do not.
    pub names: Vec<String>,
    /// Whether it is reached over TLS.
    pub secure: bool,
    /// Returns what tokens grant.
    pub check: Check,
    /// The folder whose recordings are shown.
    pub recordings: Option<PathBuf>,
    /// The process that plays a recording, in a sandbox.
    pub player: Option<play::PlayerProcess>,
    /// Starts sessions for clients that may, where no server of the tty wire does.
    pub start: Option<Start>,
    /// Other origins, such as `https://docs.example`, that may show live streams to a browser that
    /// is logged in here.
    pub players: Vec<String>,
    /// The themes that the page offers.
    pub themes: Themes,
    /// The server of the tty wire, which also opens sessions.
    #[cfg(feature = "net")]
    pub tty: Option<Arc<crate::net::Server>>,
    /// The server of the Model Context Protocol, at `/mcp`.
    #[cfg(feature = "mcp")]
    pub mcp: Option<crate::mcp::McpServer>,
    /// Told when a token may have been revoked.
    changes: Option<watch::Receiver<u64>>,
}

impl SiteOptions {
    /// Serves clients that show a token for which `check` returns what it grants.
    pub fn new(check: impl Fn(&str) -> Option<Authority> + Send + Sync + 'static) -> Self {
        Self {
            hosts: Vec::new(),
            names: Vec::new(),
            secure: false,
            check: Box::new(check),
            recordings: None,
            player: None,
            start: None,
            players: Vec::new(),
            themes: Themes::default(),
            #[cfg(feature = "net")]
            tty: None,
            #[cfg(feature = "mcp")]
            mcp: None,
            changes: None,
        }
    }

    /// Sets the host names, with ports, of the page: `127.0.0.1:8080`. Requests for others are
    /// refused.
    #[must_use]
    pub fn hosts(mut self, hosts: Vec<String>) -> Self {
        self.hosts = hosts;
        self
    }

    /// Adds host names, such as that of a proxy in front.
    #[must_use]
    pub fn names(mut self, names: Vec<String>) -> Self {
        self.names = names;
        self
    }

    /// Sets whether the page is reached over TLS; not by default.
    #[must_use]
    pub fn secure(mut self, secure: bool) -> Self {
        self.secure = secure;
        self
    }

    /// Shows the recordings of this folder.
    #[must_use]
    pub fn recordings(mut self, recordings: impl Into<Option<PathBuf>>) -> Self {
        self.recordings = recordings.into();
        self
    }

    /// Reads each recording in a process that this makes, and that calls [`play_recording`],
    /// [`describe_recording`] or [`recording_text`] with its standard input. Recordings may come
    /// from strangers, and the process can shut itself in. Without it, a thread of this process
    /// reads them.
    #[must_use]
    pub fn player(
        mut self,
        player: impl Fn(&Path, RecordingTask) -> Command + Send + Sync + 'static,
    ) -> Self {
        self.player = Some(Box::new(player));
        self
    }

    /// Sets what starts sessions for clients that may, where no server of the tty wire does.
    #[must_use]
    pub fn start(
        mut self,
        start: impl Fn(NewSession) -> Result<String, StartError> + Send + Sync + 'static,
    ) -> Self {
        self.start = Some(Box::new(start));
        self
    }

    /// Lets other origins, such as `https://docs.example`, show live streams to a browser that is
    /// logged in here.
    #[must_use]
    pub fn players(mut self, players: Vec<String>) -> Self {
        self.players = players;
        self
    }

    /// Sets the themes that the page offers; the built-in ones by default.
    #[must_use]
    pub fn themes(mut self, themes: Themes) -> Self {
        self.themes = themes;
        self
    }

    /// Offers the Model Context Protocol at `/mcp`, to clients with a token. None gets more than
    /// its token grants.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn mcp(mut self, server: impl Into<Option<crate::mcp::McpServer>>) -> Self {
        self.mcp = server.into();
        self
    }

    /// Sets the server of the tty wire, which also opens sessions and tells when its tokens change.
    #[cfg(feature = "net")]
    #[must_use]
    pub fn tty(mut self, tty: Arc<crate::net::Server>) -> Self {
        self.changes = Some(tty.changes());
        self.tty = Some(tty);
        self
    }
}

impl std::fmt::Debug for SiteOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SiteOptions")
            .field("hosts", &self.hosts)
            .field("names", &self.names)
            .field("secure", &self.secure)
            .field("recordings", &self.recordings)
            .field("players", &self.players)
            .finish_non_exhaustive()
    }
}

/// The themes of a page.
#[derive(Debug, Clone)]
pub struct Themes {
    /// Themes by their names.
    pub all: Vec<(String, Theme)>,
    /// The name of the one that a browser shows until its user chooses another.
    pub usual: String,
}

/// The built-in themes; `dark` is the usual one.
impl Default for Themes {
    fn default() -> Self {
        let all = Theme::BUILT_IN.iter().map(|(name, theme)| ((*name).to_owned(), *theme)).collect();
        Self { all, usual: "dark".into() }
    }
}

impl Themes {
    fn usual(&self) -> Theme {
        self.all.iter().find(|(name, _)| *name == self.usual).map_or_else(Theme::default, |(_, theme)| *theme)
    }
}

/// The page, to be served on any number of listeners.
#[derive(Clone)]
pub struct Site(Arc<Inner>);

impl std::fmt::Debug for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Site").field("options", &self.0.options).finish_non_exhaustive()
    }
}

struct Inner {
    options: SiteOptions,
    cookie: String,
    logins: Mutex<guard::Logins>,
    clock: Clock,
    listed: tokio::sync::Mutex<list::Listed>,
    /// Recordings that can be played at once.
    decks: Arc<tokio::sync::Semaphore>,
    #[cfg(feature = "mcp")]
    mcp: Option<crate::mcp::http::Endpoint>,
    api: api::State,
}

const DECKS: usize = 64;

impl Site {
    /// Makes a page.
    pub fn new(options: SiteOptions) -> Self {
        // Cookies ignore ports: without one in the name, two pages on one machine would log each
        // other out.
        let port = options.hosts.first().and_then(|h| h.rsplit(':').next()).unwrap_or("0");
        let cookie = format!("tapdeck-{}", port.trim_matches(|c: char| !c.is_ascii_digit()));
        #[cfg(feature = "mcp")]
        let mcp = options.mcp.clone().map(crate::mcp::http::Endpoint::new);
        Self(Arc::new(Inner {
            #[cfg(feature = "mcp")]
            mcp,
            cookie,
            options,
            logins: Mutex::default(),
            clock: Clock::start(),
            listed: tokio::sync::Mutex::default(),
            decks: Arc::new(tokio::sync::Semaphore::new(DECKS)),
            api: api::State::default(),
        }))
    }

    /// Returns the routes of the page.
    fn router(&self, seat: Seat) -> Router {
        let router = Router::new();
        #[cfg(feature = "net")]
        let router = router.route("/ws/tty", get(tty::upgrade));
        #[cfg(feature = "mcp")]
        let router = router.route(mcp::PATH, axum::routing::any(mcp::serve));
        api::add_routes(router)
            .route("/", get(files::index))
            .route("/page/style.css", get(files::style))
            .route("/page/{name}", get(files::file))
            .route("/login", get(guard::logged_in).post(guard::log_in).delete(guard::log_out))
            .route("/ws/list", get(list::upgrade))
            .route("/ws/session/{id}", get(relay::upgrade))
            .route("/ws/alis", get(alis::upgrade))
            .route("/ws/alis/{id}", get(alis::upgrade_to))
            .route("/ws/play/{*name}", get(play::upgrade))
            .layer(axum::middleware::from_fn_with_state(self.clone(), guard::check))
            .layer(Extension(seat))
            .with_state(self.clone())
    }

    fn logins(&self) -> std::sync::MutexGuard<'_, guard::Logins> {
        self.0.logins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
