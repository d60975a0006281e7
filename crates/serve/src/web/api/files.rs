//! Recordings: list, description, download and text. What has to be parsed is parsed by the process
//! that also plays recordings, in its sandbox.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use axum::Json;
use axum::body::Body;
use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use rustix::fs::OFlags;
use tapdeck_proto::api::{RecordingInfo, RecordingList};
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;

use super::{At, Refusal};
use crate::recordings;
use crate::web::Site;
use crate::web::guard::Pass;
use crate::web::play::{Process, RecordingTask, start};
use crate::web::reading::{FAILED, READ};

/// The pieces in which files are sent, and how many of them wait for a slow client.
const PIECE: usize = 64 * 1024;
const WAITING: usize = 4;
/// The longest description or reason.
const LINE: usize = 1 << 20;

pub(super) async fn list(site: At, pass: Pass) -> Result<Json<RecordingList>, Refusal> {
    let root = site.0.0.options.recordings.clone();
    let recordings =
        site.call(&pass, move || Ok(root.map(|root| recordings::list(&root)).unwrap_or_default()));
    Ok(Json(RecordingList { recordings: recordings.await? }))
}

/// Finds a recording by its name in the list.
async fn find(site: &Site, pass: &Pass, name: String) -> Result<PathBuf, Refusal> {
    let root = site.0.options.recordings.clone();
    site.call(pass, move || {
        let found = root.and_then(|root| recordings::find(&root, &name));
        found.ok_or_else(|| Refusal::not_found("no recording has this name; see the list of recordings"))
    })
    .await
}

pub(super) async fn file(site: At, pass: Pass, Path(name): Path<String>) -> Result<Response, Refusal> {
    let path = find(&site, &pass, name).await?;
    let (tell, mut pieces) = mpsc::channel::<std::io::Result<Bytes>>(WAITING);
    let opened = path.clone();
    let mut file = site.call(&pass, move || open(&opened)).await?;
    tokio::task::spawn_blocking(move || {
        loop {
            let mut piece = vec![0; PIECE];
            let read = file.read(&mut piece).map(|n| {
                piece.truncate(n);
                Bytes::from(piece)
            });
            let last = !matches!(&read, Ok(piece) if !piece.is_empty());
            if read.as_ref().is_ok_and(Bytes::is_empty) || tell.blocking_send(read).is_err() || last {
                return;
            }
        }
    });
    let shown = path.file_name().and_then(|name| name.to_str()).unwrap_or("recording");
    let plain: String =
        shown.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect();
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{plain}\"")),
    ];
    let pieces = stream::poll_fn(move |cx| pieces.poll_recv(cx));
    Ok((headers, Body::from_stream(pieces)).into_response())
}

/// Opens the file of a recording, and nothing else that may have taken its place.
fn open(path: &std::path::Path) -> Result<File, Refusal> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path).map_err(Refusal::internal)?;
    if !file.metadata().is_ok_and(|meta| meta.is_file()) {
        return Err(Refusal::conflict(
            "a cassette is a folder, which cannot be downloaded; read its text instead",
        ));
    }
    Ok(file)
}

pub(super) async fn show(
    site: At,
    pass: Pass,
    Path(name): Path<String>,
) -> Result<Json<RecordingInfo>, Refusal> {
    let path = find(&site, &pass, name).await?;
    let mut reading = read(&site, path, RecordingTask::Describe).await?;
    let mut text = Vec::new();
    let described = (&mut reading.stream).take(LINE as u64).read_to_end(&mut text).await;
    described.map_err(Refusal::internal)?;
    Ok(Json(serde_json::from_slice(&text).map_err(Refusal::internal)?))
}

pub(super) async fn text(site: At, pass: Pass, Path(name): Path<String>) -> Result<Response, Refusal> {
    let path = find(&site, &pass, name).await?;
    let reading = read(&site, path, RecordingTask::Text).await?;
    let pieces = stream::unfold(reading, async |mut reading| {
        let mut piece = Vec::with_capacity(PIECE);
        match reading.stream.read_buf(&mut piece).await {
            Ok(0) => None,
            Ok(_) => Some((Ok(Bytes::from(piece)), reading)),
            Err(e) => Some((Err(e), reading)),
        }
    });
    let kind = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    Ok((kind, Body::from_stream(pieces)).into_response())
}

/// A recording that is being read. The process ends with it.
struct Reading {
    stream: tokio::net::UnixStream,
    _process: Option<Process>,
    _place: tokio::sync::OwnedSemaphorePermit,
}

/// Has a recording read, and waits for the word that it can be.
async fn read(site: &Site, path: PathBuf, task: RecordingTask) -> Result<Reading, Refusal> {
    let place = std::sync::Arc::clone(&site.0.decks).try_acquire_owned();
    let place = place.map_err(|_| Refusal::too_many("recordings"))?;
    let started = start(site.0.options.player.as_ref(), path, task);
    let (process, stream) = started.map_err(Refusal::internal)?;
    let mut reading = Reading { stream, _process: process, _place: place };
    let mut word = [0; 1];
    let cannot = |why: &str| Refusal::conflict(format!("the recording cannot be read: {why}"));
    match reading.stream.read_exact(&mut word).await {
        Ok(_) if word == [READ] => Ok(reading),
        Ok(_) if word == [FAILED] => {
            let mut why = String::new();
            // What cannot be read of a reason is left out.
            let _ = (&mut reading.stream).take(LINE as u64).read_to_string(&mut why).await;
            Err(cannot(&why))
        }
        _ => Err(cannot("its reader has ended")),
    }
}
