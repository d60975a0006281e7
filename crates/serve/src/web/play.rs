//! A recording in a browser: commands in, frames out, over a WebSocket. [`super::deck`] plays it.

use std::path::PathBuf;
use std::sync::mpsc;

use axum::extract::ws::{Message, WebSocket};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::guard::{Pass, no_credential, refuse};
use super::relay::{Asked, BEAT, bye, meet, ping, say};
use super::{Site, deck, recordings};

/// Commands that wait for the deck.
const COMMANDS: usize = 1024;

pub(super) async fn upgrade(
    State(site): State<Site>,
    Path(name): Path<String>,
    headers: HeaderMap,
    ws: Asked,
) -> Response {
    let Some(pass) = site.pass(&headers) else { return no_credential() };
    let root = site.0.options.recordings.clone();
    let found = tokio::task::spawn_blocking(move || root.and_then(|root| recordings::find(&root, &name)));
    let Ok(Some(path)) = found.await else { return refuse(StatusCode::NOT_FOUND, "no such recording") };
    meet(ws, &headers, |ws| ws, move |socket| serve(site, pass, path, socket))
}

async fn serve(site: Site, pass: Pass, path: PathBuf, mut socket: WebSocket) {
    let Ok(_seat) = site.0.decks.try_acquire() else {
        return bye(&mut socket, "too many recordings are open").await;
    };
    let (command, commands) = mpsc::sync_channel(COMMANDS);
    let (said, mut heard) = tokio::sync::mpsc::channel(8);
    let deck = std::thread::Builder::new().name("tapdeck-deck".into());
    if deck.spawn(move || deck::play(&path, &commands, &said)).is_err() {
        return bye(&mut socket, "no thread to be had").await;
    }
    let mut beat = tokio::time::interval(BEAT);
    loop {
        tokio::select! {
            text = heard.recv() => match text {
                Some(text) => {
                    if say(&mut socket, text).await.is_none() {
                        return;
                    }
                }
                None => return bye(&mut socket, "the recording cannot be played").await,
            },
            message = socket.recv() => match message {
                Some(Ok(Message::Text(text))) => {
                    // A deck this far behind has no page that waits for it.
                    if command.try_send(text.as_str().to_owned()).is_err() {
                        return bye(&mut socket, "too many commands at once").await;
                    }
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                _ => return,
            },
            _ = beat.tick() => {
                if !site.still(&pass) {
                    return bye(&mut socket, "the credential is no longer good").await;
                }
                if ping(&mut socket).await.is_none() {
                    return;
                }
            }
        }
    }
}
