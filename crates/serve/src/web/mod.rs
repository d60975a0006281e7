//! The page: one origin, one port, on which a browser finds the sessions and the recordings of this machine.
//!
//! The browser is a painter. A session's screen is drawn by the session's own model, and what crosses the wire is the
//! bus: one frame a message, relayed to the session's socket, so that there is no second rule about who may type. What
//! this module owns is the way in: which host names are answered, which origins may speak, and which credential is
//! shown. Whoever has none gets the page's files, which hold nothing, and no more.

mod alis;
mod deck;
mod files;
mod guard;
mod list;
mod open;
mod play;
mod recordings;
mod relay;
mod serving;
#[cfg(feature = "net")]
mod tty;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::routing::{get, post};
use tapdeck_core::Authority;
use tapdeck_host::Clock;

pub use serving::{serve, serve_stream};

/// Returns what a token grants, if anything. It is called again while a client stays, so that a token
/// can be revoked.
pub type Check = Box<dyn Fn(&str) -> Option<Authority> + Send + Sync>;

/// Starts a program as a session that outlives the page, and says its id, or why there is none.
pub type Start = Box<dyn Fn(Vec<String>) -> Result<String, String> + Send + Sync>;

/// Whether two secrets are the same, in a time that does not tell where they differ.
pub fn is_same(a: &str, b: &str) -> bool {
    crate::live::same(a.as_bytes(), b.as_bytes())
}

/// How the page is served.
pub struct SiteOptions {
    /// Names, with ports, under which the page is reached: `127.0.0.1:8080`. Requests for others are refused.
    pub hosts: Vec<String>,
    /// Further names, such as that of a proxy in front, which may speak TLS where we do not.
    pub names: Vec<String>,
    /// Whether it is reached over TLS.
    pub secure: bool,
    /// What tokens grant.
    pub check: Check,
    /// The folder whose recordings are shown.
    pub recordings: Option<PathBuf>,
    /// Who starts sessions for those who may, where it is not whoever speaks the tty wire here.
    pub start: Option<Start>,
    /// Pages elsewhere, such as `https://docs.example`, that may show live streams to whoever has logged in here.
    pub players: Vec<String>,
    /// Who opens sessions for those who speak the tty wire here.
    #[cfg(feature = "net")]
    pub tty: Option<Arc<crate::net::Server>>,
}

/// The page, to be served on any number of listeners.
#[derive(Clone)]
pub struct Site(Arc<Inner>);

struct Inner {
    options: SiteOptions,
    cookie: String,
    logins: Mutex<guard::Logins>,
    clock: Clock,
    listed: tokio::sync::Mutex<list::Listed>,
    /// Recordings that can be played at once.
    decks: tokio::sync::Semaphore,
}

const DECKS: usize = 64;

impl Site {
    /// A page with nobody at it yet.
    pub fn new(options: SiteOptions) -> Self {
        // Cookies know no ports: without one in the name, two pages on one machine would log each other out.
        let port = options.hosts.first().and_then(|h| h.rsplit(':').next()).unwrap_or("0");
        let cookie = format!("tapdeck-{}", port.trim_matches(|c: char| !c.is_ascii_digit()));
        Self(Arc::new(Inner {
            cookie,
            options,
            logins: Mutex::default(),
            clock: Clock::start(),
            listed: tokio::sync::Mutex::default(),
            decks: tokio::sync::Semaphore::new(DECKS),
        }))
    }

    /// All that is served.
    fn router(&self) -> Router {
        let router = Router::new();
        #[cfg(feature = "net")]
        let router = router.route("/ws/tty", get(tty::upgrade));
        router
            .route("/", get(files::index))
            .route("/page/{name}", get(files::file))
            .route("/login", get(guard::logged_in).post(guard::log_in).delete(guard::log_out))
            .route("/sessions", post(open::open))
            .route("/ws/list", get(list::upgrade))
            .route("/ws/session/{id}", get(relay::upgrade))
            .route("/ws/alis", get(alis::upgrade))
            .route("/ws/alis/{id}", get(alis::upgrade_to))
            .route("/ws/play/{*name}", get(play::upgrade))
            .layer(axum::extract::DefaultBodyLimit::max(4096))
            .layer(axum::middleware::from_fn_with_state(self.clone(), guard::check))
            .with_state(self.clone())
    }

    fn logins(&self) -> std::sync::MutexGuard<'_, guard::Logins> {
        self.0.logins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
