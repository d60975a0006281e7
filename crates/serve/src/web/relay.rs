//! A live session in a browser: the bus over a WebSocket, one frame in each message, relayed to the
//! session's own socket.
//!
//! The relay introduces the client by its credential, and passes everything else on as it is. It
//! holds one frame at most: while a browser does not read, the relay does not read either, and the
//! session, which waits for `ACK`, sends nothing until it can show the newest screen.

use std::time::Duration;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tapdeck_core::Authority;
use tapdeck_host::registry::Listing;
use tapdeck_proto::bus;
use tapdeck_proto::page::{PageMessage as _, SessionWelcome};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout};
use tracing::Instrument;

use super::Site;
use super::guard::{Pass, REVOKED, refuse};
use crate::client::{ANSWER, Bus, ClientError, Hello, alive};
use crate::conn::Conn;
use crate::door::Address;
use crate::live::role_on_bus;

/// The longest message from a browser.
const MESSAGE: usize = 4 << 20;
/// The longest message to a session, where it may be a paste: a frame of the bus and its line end.
/// A paste is one message, so that it arrives whole or not at all. The page knows this number.
const PASTE: usize = (16 << 20) - 1;
/// The longest frame from a session.
const FRAME: usize = 16 << 20;
/// How often to check whether the browser is still there.
pub(super) const BEAT: Duration = Duration::from_secs(10);
/// A browser is gone after this long without a sign of life.
const SILENCE: Duration = Duration::from_secs(40);
/// How long the close may take.
const FAREWELL: Duration = Duration::from_secs(2);
/// How long sending one message may take.
pub(super) const STUCK: Duration = Duration::from_secs(30);

/// The extractor of a WebSocket, which is checked last: a browser does not learn why a WebSocket
/// was refused, so a page asks by a plain request first.
pub(super) type Asked = Result<WebSocketUpgrade, WebSocketUpgradeRejection>;

/// Serves a WebSocket, with limits of our own, if one was asked for.
pub(super) fn meet<F>(
    ws: Asked,
    headers: &HeaderMap,
    set_up: impl FnOnce(WebSocketUpgrade) -> WebSocketUpgrade,
    serve: impl FnOnce(WebSocket) -> F + Send + 'static,
) -> Response
where
    F: Future<Output = ()> + Send + 'static,
{
    match ws {
        Ok(ws) => {
            // A WebSocket is served by a task of its own, whose log must name the connection, too.
            let span = tracing::Span::current();
            set_up(bounded(ws)).on_upgrade(move |socket| serve(socket).instrument(span))
        }
        Err(_) if !headers.contains_key(header::UPGRADE) => StatusCode::NO_CONTENT.into_response(),
        Err(rejection) => rejection.into_response(),
    }
}

pub(super) async fn upgrade(
    State(site): State<Site>,
    pass: Pass,
    Path(id): Path<String>,
    headers: HeaderMap,
    ws: Asked,
) -> Response {
    let Some(listing) = find(id).await else { return refuse(StatusCode::NOT_FOUND, "no such session") };
    let room = |ws: WebSocketUpgrade| ws.max_message_size(PASTE).max_frame_size(PASTE);
    meet(ws, &headers, room, move |socket| serve(site, pass, listing, socket))
}

/// A WebSocket with limits of our own.
fn bounded(ws: WebSocketUpgrade) -> WebSocketUpgrade {
    ws.max_message_size(MESSAGE).max_frame_size(MESSAGE).max_write_buffer_size(2 * FRAME)
}

/// The live session of this id.
pub(super) async fn find(id: String) -> Option<Listing> {
    let listed = tokio::task::spawn_blocking(move || {
        alive().ok().and_then(|(_, all)| all.into_iter().find(|listing| listing.id == id))
    });
    listed.await.ok().flatten()
}

/// The only live session.
pub(super) async fn only() -> Option<Listing> {
    let listed = tokio::task::spawn_blocking(|| {
        let (_, mut all) = alive().ok()?;
        if all.len() == 1 { all.pop() } else { None }
    });
    listed.await.ok().flatten()
}

/// Connects to a session with a credential's authority.
pub(super) async fn join(
    listing: Listing,
    authority: Authority,
    name: &'static str,
) -> Result<(Lines, SessionWelcome), ClientError> {
    let joined = tokio::task::spawn_blocking(move || {
        let mut bus = Bus::connect(&Address::Unix(listing.socket.clone()))?;
        let role = role_on_bus(authority.role());
        let hello = Hello { role, name, token: Some(&listing.human_token) };
        let welcome = bus.hello_to_watch(&hello, ANSWER)?;
        let Listing { id, name: session, command, .. } = listing;
        Ok::<_, ClientError>((bus.into_parts(), SessionWelcome { bus: welcome, id, session, command }))
    });
    let ((conn, buf), welcome) = joined.await.map_err(|e| ClientError::Io(std::io::Error::other(e)))??;
    let Conn::Unix(stream) = conn else {
        return Err(ClientError::Unfit("a session of this machine is at a path"));
    };
    Ok((Lines::new(UnixStream::from_std(stream)?, buf), welcome))
}

async fn serve(site: Site, pass: Pass, listing: Listing, mut socket: WebSocket) {
    let why = match join(listing, pass.authority, "web").await {
        Ok((mut session, welcome)) => {
            if say(&mut socket, welcome.line()).await.is_none() {
                return;
            }
            let relayed = site.while_valid(&pass, relay(&mut session, &SESSION, &mut socket)).await;
            relayed.unwrap_or_else(|| REVOKED.into())
        }
        Err(e) => e.to_string(),
    };
    bye(&mut socket, &why).await;
}

/// What a browser talks to.
pub(super) struct FarSide {
    /// What it is called in messages.
    pub(super) name: &'static str,
    /// Why it says no more.
    pub(super) ended: &'static str,
    /// Whether a browser may say this verb to it.
    pub(super) takes: fn(&str) -> bool,
}

const SESSION: FarSide = FarSide {
    name: "session",
    ended: "the session has ended",
    takes: |verb| bus::VERBS.iter().any(|known| known.page && known.verb == verb),
};

/// Passes messages on until one side is gone. Returns why it ended.
pub(super) async fn relay(lines: &mut Lines, far: &FarSide, socket: &mut WebSocket) -> String {
    let mut beat = tokio::time::interval(BEAT);
    let mut heard = Instant::now();
    loop {
        tokio::select! {
            line = lines.next() => match line {
                Ok(Some(line)) => {
                    if say(socket, line).await.is_none() {
                        return "gone".into();
                    }
                }
                Ok(None) => return far.ended.into(),
                Err(e) => return format!("the {} {e}", far.name),
            },
            message = socket.recv() => match message {
                Some(Ok(Message::Text(text))) => {
                    heard = Instant::now();
                    if let Err(why) = pass_on(lines, far, text.as_str()).await {
                        return why;
                    }
                }
                Some(Ok(Message::Close(_))) | None => return "gone".into(),
                Some(Ok(Message::Binary(_))) => return "messages are text".into(),
                Some(Ok(_)) => heard = Instant::now(),
                Some(Err(_)) => return "what came is no message, or too long".into(),
            },
            _ = beat.tick() => {
                if heard.elapsed() > SILENCE {
                    return "gone".into();
                }
                if ping(socket).await.is_none() {
                    return "gone".into();
                }
            }
        }
    }
}

async fn pass_on(lines: &mut Lines, far: &FarSide, text: &str) -> Result<(), String> {
    let verb = text.split([' ', '#']).next().unwrap_or_default();
    if !(far.takes)(verb) {
        return Err(format!("{verb:.20} is not said here"));
    }
    if text.contains(['\n', '\r']) {
        return Err("a message is one frame".into());
    }
    lines.put(text).await.ok_or_else(|| format!("the {} does not read", far.name))
}

/// Sends a text message; `None` when the other side is gone.
pub(super) async fn say(socket: &mut WebSocket, text: String) -> Option<()> {
    timeout(STUCK, socket.send(Message::Text(text.into()))).await.ok()?.ok()
}

/// Asks the other side for a sign of life; `None` when it is gone.
pub(super) async fn ping(socket: &mut WebSocket) -> Option<()> {
    timeout(STUCK, socket.send(Message::Ping(bytes::Bytes::new()))).await.ok()?.ok()
}

/// Ends the conversation with a reason.
pub(super) async fn bye(socket: &mut WebSocket, why: &str) {
    // A reason has room for 123 bytes.
    let reason: String = why.chars().take(40).collect();
    let close = CloseFrame { code: close_code::NORMAL, reason: reason.into() };
    let said = async {
        socket.send(Message::Close(Some(close))).await?;
        // Waits for the other side's close: closing with unread input resets the connection, and
        // may lose the reason.
        while let Some(message) = socket.recv().await {
            message?;
        }
        Ok::<_, axum::Error>(())
    };
    // A browser that is gone needs no reason.
    let _ = timeout(FAREWELL, said).await;
}

/// What the far side says, line by line.
pub(super) struct Lines {
    stream: UnixStream,
    buf: Vec<u8>,
    /// How much of it is known to hold no line end.
    searched: usize,
}

impl Lines {
    /// Reads from a stream of which this much was read already.
    pub(super) fn new(stream: UnixStream, buf: Vec<u8>) -> Self {
        Self { stream, buf, searched: 0 }
    }

    /// Sends a line; `None` when the far side does not read.
    pub(super) async fn put(&mut self, text: &str) -> Option<()> {
        let line = format!("{text}\n");
        // One that has ended reads no more; its last messages are still to be read.
        timeout(STUCK, self.stream.write_all(line.as_bytes())).await.ok().map(drop)
    }

    /// The next line. Nothing is lost when this is dropped before it is done.
    pub(super) async fn next(&mut self) -> Result<Option<String>, String> {
        loop {
            if let Some(at) = self.buf[self.searched..].iter().position(|b| *b == b'\n') {
                let rest = self.buf.split_off(self.searched + at + 1);
                let mut line = std::mem::replace(&mut self.buf, rest);
                line.pop();
                self.searched = 0;
                return String::from_utf8(line).map(Some).map_err(|_| "speaks no text".into());
            }
            self.searched = self.buf.len();
            if self.searched > FRAME {
                return Err("sends a line without an end".into());
            }
            self.buf.reserve(64 * 1024);
            match self.stream.read_buf(&mut self.buf).await {
                Ok(0) => return Ok(None),
                Ok(_) => {}
                // It ended with something unheard.
                Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => return Ok(None),
                Err(e) => return Err(format!("cannot be read: {e}")),
            }
        }
    }
}
