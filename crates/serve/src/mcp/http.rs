//! The server over streamable HTTP, behind the guards of the page.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::access::Access;
use super::server::Handler;
use super::{MESSAGE, McpServer};

/// The most clients of older versions of the protocol, which keep a session here, and how long such
/// a session is kept without a request.
const SESSIONS: usize = 256;
const IDLE: Duration = Duration::from_hours(1);
/// The header that names such a session.
const SESSION: &str = "mcp-session-id";

/// The path at which a page offers the server.
#[derive(Clone)]
pub(crate) struct Endpoint {
    service: StreamableHttpService<Handler, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
}

impl Endpoint {
    pub(crate) fn new(server: McpServer) -> Self {
        let mut config = SessionConfig::default();
        config.keep_alive = Some(IDLE);
        let mut sessions = LocalSessionManager::default();
        sessions.session_config = config;
        let sessions = Arc::new(sessions);
        // The page has checked host and origin.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(MESSAGE);
        let make = move || Ok(Handler::remote(server.clone()));
        Self { service: StreamableHttpService::new(make, Arc::clone(&sessions), config), sessions }
    }

    /// Serves a request of a client that may do what `access` says.
    pub(crate) async fn serve(&self, mut request: Request, access: Access) -> Response {
        let is_new = !request.headers().contains_key(SESSION);
        if is_new && self.sessions.sessions.read().await.len() >= SESSIONS {
            let why = "too many clients have sessions of MCP here: try again later\n";
            return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
        }
        request.extensions_mut().insert(access);
        self.service.handle(request).await.map(Body::new).into_response()
    }
}
