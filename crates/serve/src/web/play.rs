//! A recording in a browser: commands in, frames out, over a WebSocket. [`super::deck`] plays it.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path as FilePath, PathBuf};
use std::process::{Child, Command, Stdio};

use axum::extract::ws::WebSocket;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use tokio::net::UnixStream;

use super::guard::{Pass, REVOKED, refuse};
use super::reading::{describe_recording, recording_text};
use super::relay::{Asked, FarSide, Lines, bye, meet, relay};
use super::{Site, deck};
use crate::recordings;

const RECORDING: FarSide = FarSide {
    name: "recording",
    ended: "the recording cannot be played",
    // Commands of later versions are ignored by the deck.
    takes: |_| true,
};

/// Makes the process that does something with a recording for a client at its standard input.
pub(crate) type PlayerProcess = Box<dyn Fn(&FilePath, RecordingTask) -> Command + Send + Sync>;

/// What is done with a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingTask {
    /// It is played for a browser.
    Play,
    /// It is described.
    Describe,
    /// Its lines are written.
    Text,
}

pub(super) async fn upgrade(
    State(site): State<Site>,
    pass: Pass,
    Path(name): Path<String>,
    headers: HeaderMap,
    ws: Asked,
) -> Response {
    let root = site.0.options.recordings.clone();
    let found = tokio::task::spawn_blocking(move || root.and_then(|root| recordings::find(&root, &name)));
    let Ok(Some(path)) = found.await else { return refuse(StatusCode::NOT_FOUND, "no such recording") };
    meet(ws, &headers, |ws| ws, move |socket| serve(site, pass, path, socket))
}

async fn serve(site: Site, pass: Pass, path: PathBuf, mut socket: WebSocket) {
    let Ok(_seat) = site.0.decks.try_acquire() else {
        return bye(&mut socket, "too many recordings are open").await;
    };
    let why = match start(site.0.options.player.as_ref(), path, RecordingTask::Play) {
        Ok((_process, deck)) => {
            let mut deck = Lines::new(deck, Vec::new());
            let relayed = site.while_valid(&pass, relay(&mut deck, &RECORDING, &mut socket)).await;
            relayed.unwrap_or_else(|| REVOKED.into())
        }
        Err(e) => format!("it cannot be played here: {e}"),
    };
    bye(&mut socket, &why).await;
}

/// Starts a process of its own, or a thread where there is no command for one.
pub(super) fn start(
    player: Option<&PlayerProcess>,
    path: PathBuf,
    task: RecordingTask,
) -> io::Result<(Option<Process>, UnixStream)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let process = match player {
        Some(player) => {
            let mut command = player(&path, task);
            command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null()).stderr(Stdio::null());
            Some(Process(command.spawn()?))
        }
        None => {
            let thread = std::thread::Builder::new().name("tapdeck-deck".into());
            thread.spawn(move || match task {
                RecordingTask::Play => deck::play(&path, theirs),
                RecordingTask::Describe => describe_recording(&path, theirs),
                RecordingTask::Text => recording_text(&path, theirs),
            })?;
            None
        }
    };
    Ok((process, UnixStream::from_std(ours)?))
}

/// A process that ends with the client that it works for.
pub(super) struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself. Once killed, it does not keep us waiting.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
