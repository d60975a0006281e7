//! Starts a session from the page, for a client that may start programs. It outlives the page, as
//! if `tapdeck run -d` had started it.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tapdeck_host::backend::command_line;
use tapdeck_proto::page::{Body, OpenSession, Started};

use super::guard::{Pass, refuse};
use super::{Site, StartError};

/// The longest command line, in bytes.
const LINE: usize = 2048;

/// `POST /sessions {command}`: starts the command, or the user's shell without one; answers `{id}`.
pub(super) async fn open(
    State(site): State<Site>,
    pass: Pass,
    Json(body): Json<Body<OpenSession>>,
) -> Response {
    if !site.may_open(&pass) {
        return refuse(StatusCode::FORBIDDEN, "this link does not let you start programs");
    }
    let Body::Object(OpenSession { command }) = body else {
        return refuse(StatusCode::BAD_REQUEST, "a JSON object with a command is wanted");
    };
    let line = command.unwrap_or_default();
    if line.len() > LINE || line.contains(char::is_control) {
        return refuse(StatusCode::BAD_REQUEST, "a command is one line of at most 2048 bytes");
    }
    match start(&site, &pass.token, command_line(&line)).await {
        Ok(id) => (StatusCode::CREATED, Json(Started { id })).into_response(),
        Err(why) => refuse(StatusCode::UNPROCESSABLE_ENTITY, &why.to_string()),
    }
}

/// Starts a program for the bearer of a token, who may.
pub(super) async fn start(site: &Site, token: &str, command: Vec<String>) -> Result<String, StartError> {
    #[cfg(feature = "net")]
    if let Some(server) = &site.0.options.tty {
        let opened = server.open_detached(token, command).await;
        return opened.map_err(|refusal| StartError::Failed(refusal.message));
    }
    // Unused in builds without `net`.
    let _ = token;
    let site = site.clone();
    let started = tokio::task::spawn_blocking(move || match &site.0.options.start {
        Some(start) => start(command),
        None => Err(StartError::NotHere),
    });
    started.await.unwrap_or_else(|e| Err(StartError::Failed(e.to_string())))
}
