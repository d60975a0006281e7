//! Starts a session from the page, for a client that may start programs. It outlives the page, as
//! if `tapdeck run -d` had started it.

use std::path::PathBuf;

use axum::http::StatusCode;
use tapdeck_host::backend::command_line;
use tapdeck_proto::page::{CommandLine, OpenSession, Started};

use super::api::Refusal;
use super::guard::Pass;
use super::{Site, StartError};
use crate::NewSession;

/// The longest command that is one text, in bytes.
const LINE: usize = 2048;

/// Starts a command, or the user's shell without one.
pub(super) async fn open(site: Site, pass: Pass, asked: OpenSession) -> Result<Started, Refusal> {
    if !site.may_open(&pass) {
        return Err(Refusal::new(StatusCode::FORBIDDEN, "this credential does not let you start programs"));
    }
    let command = match asked.command {
        Some(CommandLine::Line(line)) if line.len() > LINE || line.contains(char::is_control) => {
            return Err(Refusal::malformed("a command that is a text is one line of at most 2048 bytes"));
        }
        Some(CommandLine::Line(line)) => command_line(&line),
        Some(CommandLine::Words(words)) => words,
        None => Vec::new(),
    };
    let new = NewSession { command, name: asked.name, folder: asked.cwd.map(PathBuf::from) };
    let new = new.checked().map_err(Refusal::malformed)?;
    let started = start(&site, &pass.token, new).await;
    let id = started.map_err(|why| Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, why.to_string()))?;
    Ok(Started { id })
}

/// Starts a program for the bearer of a token, who may.
pub(super) async fn start(site: &Site, token: &str, new: NewSession) -> Result<String, StartError> {
    #[cfg(feature = "net")]
    if let Some(server) = &site.0.options.tty {
        let opened = server.open_detached(token, new).await;
        return opened.map_err(|refusal| StartError::Failed(refusal.message));
    }
    // Unused in builds without `net`.
    let _ = token;
    let site = site.clone();
    let started = tokio::task::spawn_blocking(move || match &site.0.options.start {
        Some(start) => start(new),
        None => Err(StartError::NotHere),
    });
    started.await.unwrap_or_else(|e| Err(StartError::Failed(e.to_string())))
}
