//! The list of live sessions and recordings, sent anew when it has changed.

use std::path::Path;
use std::sync::Arc;

use axum::extract::State;
use axum::extract::ws::{Message, WebSocket};
use axum::http::HeaderMap;
use axum::response::Response;
use tapdeck_core::Time;
use tapdeck_proto::bus::About;
use tapdeck_proto::page::{List, ListedSession, PageMessage as _, ShownStatus};
use tokio::time::{Duration, interval};

use super::Site;
use super::guard::{Pass, REVOKED};
use super::relay::{Asked, bye, meet, say};
use crate::client::{Described, Said, alive, describe_all};
use crate::recordings;

/// How often the list is made, however many clients ask.
pub(super) const LOOK: Duration = Duration::from_millis(1000);

/// What was found last, and when.
#[derive(Default)]
pub(super) struct Listed(Option<(Time, Arc<str>)>);

pub(super) async fn upgrade(State(site): State<Site>, pass: Pass, headers: HeaderMap, ws: Asked) -> Response {
    meet(ws, &headers, |ws| ws, move |socket| serve(site, pass, socket))
}

async fn serve(site: Site, pass: Pass, mut socket: WebSocket) {
    if site.while_valid(&pass, follow(&site, &mut socket)).await.is_none() {
        bye(&mut socket, REVOKED).await;
    }
}

/// Sends the list until the browser is gone.
async fn follow(site: &Site, socket: &mut WebSocket) {
    let mut shown: Option<Arc<str>> = None;
    let mut beat = interval(LOOK);
    loop {
        tokio::select! {
            _ = beat.tick() => {
                let list = site.list().await;
                if shown.as_ref() != Some(&list) {
                    if say(socket, list.to_string()).await.is_none() {
                        return;
                    }
                    shown = Some(list);
                }
            }
            message = socket.recv() => match message {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => {}
            }
        }
    }
}

impl Site {
    /// The list as a message, at most one look old.
    pub(super) async fn list(&self) -> Arc<str> {
        let mut listed = self.0.listed.lock().await;
        let now = self.0.clock.now().mono;
        match &listed.0 {
            Some((at, list)) if now < *at + LOOK / 2 => Arc::clone(list),
            _ => {
                let root = self.0.options.recordings.clone();
                let list =
                    tokio::task::spawn_blocking(move || look(root.as_deref())).await.unwrap_or_default();
                let list: Arc<str> = list.into();
                listed.0 = Some((self.0.clock.now().mono, Arc::clone(&list)));
                list
            }
        }
    }
}

fn look(root: Option<&Path>) -> String {
    let sessions = match alive() {
        Ok((_, listings)) => describe_all(&listings, "web-list").into_iter().map(brief).collect(),
        Err(_) => Vec::new(),
    };
    let recordings = root.map(recordings::list).unwrap_or_default();
    List { sessions, recordings }.line()
}

/// Returns what is worth showing, without what changes all the time.
pub(super) fn brief(session: Described) -> ListedSession {
    let About { id, name, command, cwd, detached } = session.about;
    let listed = ListedSession {
        id,
        name,
        command,
        cwd,
        detached,
        started_ns: session.started.as_nanos(),
        ..ListedSession::default()
    };
    match session.said {
        Said::Status(status) => ListedSession {
            clients: status.clients,
            state: status.state.name().to_owned(),
            shown: Some(ShownStatus {
                agent_state: status.agent_state,
                agent: status.agent,
                driver: status.driver,
                cols: status.cols,
                rows_n: status.rows_n,
                title: status.title,
                exit: status.exit,
                recording: status.recording,
                recording_error: status.recording_error,
            }),
            ..listed
        },
        Said::Silent { state, error } => {
            ListedSession { state: state.to_owned(), error: Some(error), ..listed }
        }
    }
}
