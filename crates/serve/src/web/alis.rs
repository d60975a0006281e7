//! The asciinema live stream (ALiS, version 1), so that asciinema's player can watch a session: a
//! header, the state of the terminal, then events with their times, each in a binary message.
//!
//! The stream is UTF-8. Other bytes of the program are sent as U+FFFD, as that player would show
//! them.

use std::time::Duration;

use axum::extract::ws::{Message, WebSocket};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use tapdeck_core::TextDecoder;
use tapdeck_host::Clock;
use tapdeck_host::registry::Listing;
use tapdeck_proto::attach::{Opened, Said};
use tapdeck_term::{Rgb, Theme};
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::time::timeout;

use super::Site;
use super::guard::{Pass, REVOKED, refuse};
use super::relay::{Asked, BEAT, STUCK, bye, find, meet, only, ping};
use crate::client::{Attach, Attachment, ClientError, Incoming};
use crate::door::Address;

const MAGIC: &[u8] = b"ALiS\x01";
const PROTOCOL: &str = "v1.alis";
/// How often the thread checks whether the player is still there.
const LOOK: Duration = Duration::from_millis(500);

/// `GET /ws/alis`: streams the only live session.
pub(super) async fn upgrade(State(site): State<Site>, pass: Pass, headers: HeaderMap, ws: Asked) -> Response {
    let Some(listing) = only().await else {
        return refuse(StatusCode::NOT_FOUND, "say which session is meant: /ws/alis/ID");
    };
    begin(site, pass, listing, &headers, ws)
}

/// `GET /ws/alis/ID`: streams a session.
pub(super) async fn upgrade_to(
    State(site): State<Site>,
    pass: Pass,
    Path(id): Path<String>,
    headers: HeaderMap,
    ws: Asked,
) -> Response {
    let Some(listing) = find(id).await else { return refuse(StatusCode::NOT_FOUND, "no such session") };
    begin(site, pass, listing, &headers, ws)
}

fn begin(site: Site, pass: Pass, listing: Listing, headers: &HeaderMap, ws: Asked) -> Response {
    meet(ws, headers, |ws| ws.protocols([PROTOCOL]), move |socket| serve(site, pass, listing, socket))
}

async fn serve(site: Site, pass: Pass, listing: Listing, mut socket: WebSocket) {
    let Ok(_seat) = site.0.decks.try_acquire() else {
        return bye(&mut socket, "too many are watching").await;
    };
    let (said, mut heard) = tokio::sync::mpsc::channel(16);
    let (clock, theme) = (site.0.clock, site.0.options.themes.usual());
    let watcher = std::thread::Builder::new().name("tapdeck-alis".into());
    if watcher.spawn(move || watch(&listing, clock, theme, &said)).is_err() {
        return bye(&mut socket, "no thread to be had").await;
    }
    let why = site.while_valid(&pass, relay(&mut socket, &mut heard)).await;
    if let Some(why) = why.unwrap_or(Some(REVOKED)) {
        bye(&mut socket, why).await;
    }
}

/// Passes the stream on. Returns why it ended, unless the player is gone.
async fn relay(socket: &mut WebSocket, heard: &mut Receiver<Vec<u8>>) -> Option<&'static str> {
    let mut beat = tokio::time::interval(BEAT);
    loop {
        tokio::select! {
            message = heard.recv() => {
                let Some(message) = message else { return Some("the session has ended") };
                let sent = timeout(STUCK, socket.send(Message::Binary(Vec::into(message)))).await;
                if !matches!(sent, Ok(Ok(()))) {
                    return None;
                }
            }
            message = socket.recv() => match message {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(_)) => {}
            },
            _ = beat.tick() => {
                ping(socket).await?;
            }
        }
    }
}

/// Follows a session until it ends or the player is gone. An error ends the stream.
fn watch(listing: &Listing, clock: Clock, theme: Theme, say: &Sender<Vec<u8>>) {
    // An error ends the stream, which the player sees.
    let _ = follow(listing, clock, theme, say);
}

fn follow(listing: &Listing, clock: Clock, theme: Theme, say: &Sender<Vec<u8>>) -> Result<(), ClientError> {
    let attach = Attach::new("alis").read_only(true).watch(true);
    let (mut session, opened) = Attachment::open(&Address::Unix(listing.socket.clone()), &attach)?;
    let mut stream = Stream::new(&opened, theme);
    let now = || clock.now().wall.since(listing.started).as_micros() as u64;
    let gone = || ClientError::Ended;
    say.blocking_send(MAGIC.to_vec()).map_err(|_| gone())?;
    loop {
        for incoming in session.receive()? {
            for message in stream.hear(incoming, now()) {
                say.blocking_send(message).map_err(|_| gone())?;
            }
        }
        if stream.over || say.is_closed() {
            return Ok(());
        }
        session.wait(LOOK)?;
    }
}

/// Turns what a session sends into messages of the stream.
struct Stream {
    theme: Theme,
    size: (u64, u64),
    /// The bytes that redraw the screen, while they arrive.
    dump: Option<Vec<u8>>,
    decoder: TextDecoder,
    id: u64,
    time: u64,
    begun: bool,
    over: bool,
}

impl Stream {
    fn new(opened: &Opened, theme: Theme) -> Self {
        Self {
            theme,
            size: (opened.cols.into(), opened.rows.into()),
            dump: Some(Vec::new()),
            decoder: TextDecoder::default(),
            id: 0,
            time: 0,
            begun: false,
            over: false,
        }
    }

    /// Returns the messages for one thing that came, at a time in microseconds since the session's
    /// start.
    fn hear(&mut self, incoming: Incoming, now: u64) -> Vec<Vec<u8>> {
        match incoming {
            Incoming::Output(bytes) => match &mut self.dump {
                Some(dump) => {
                    dump.extend_from_slice(&bytes);
                    Vec::new()
                }
                None => self.output(&bytes, now).into_iter().collect(),
            },
            Incoming::Control(message) => match message {
                Said::Live => vec![self.init(now)],
                // The stream has no word for a gap; the screen follows anew.
                Said::Gap(gap) => {
                    self.size = (gap.cols.into(), gap.rows.into());
                    self.dump = Some(Vec::new());
                    self.decoder = TextDecoder::default();
                    vec![self.eot(now)]
                }
                Said::Resize { cols, rows } => {
                    self.size = (cols.into(), rows.into());
                    // While the screen is still arriving, its size comes with it.
                    if self.dump.is_some() { Vec::new() } else { vec![self.resize(now)] }
                }
                Said::Exit(exit) => {
                    self.over = true;
                    vec![self.exit(u64::try_from(exit.code).unwrap_or(0), now), self.eot(now)]
                }
                _ => Vec::new(),
            },
            Incoming::End => {
                self.over = true;
                if self.begun { vec![self.eot(now)] } else { Vec::new() }
            }
        }
    }

    fn init(&mut self, now: u64) -> Vec<u8> {
        let mut text = String::new();
        let dump = self.dump.take().unwrap_or_default();
        TextDecoder::default().decode(&dump, &mut text);
        (self.time, self.begun) = (now, true);
        let mut out = vec![1];
        for n in [self.id, now, self.size.0, self.size.1] {
            varint(n, &mut out);
        }
        out.push(16);
        let fixed = [self.theme.foreground, self.theme.background];
        for Rgb(r, g, b) in fixed.into_iter().chain(self.theme.ansi) {
            out.extend_from_slice(&[r, g, b]);
        }
        put(text.as_bytes(), &mut out);
        out
    }

    /// Returns the kind, number and time of an event.
    fn event(&mut self, kind: u8, now: u64) -> Vec<u8> {
        self.id += 1;
        let mut out = vec![kind];
        varint(self.id, &mut out);
        self.since(now, &mut out);
        out
    }

    fn since(&mut self, now: u64, out: &mut Vec<u8>) {
        let now = now.max(self.time);
        varint(now - self.time, out);
        self.time = now;
    }

    fn output(&mut self, bytes: &[u8], now: u64) -> Option<Vec<u8>> {
        let mut text = String::new();
        self.decoder.decode(bytes, &mut text);
        if text.is_empty() {
            return None;
        }
        let mut out = self.event(b'o', now);
        put(text.as_bytes(), &mut out);
        Some(out)
    }

    fn resize(&mut self, now: u64) -> Vec<u8> {
        let mut out = self.event(b'r', now);
        varint(self.size.0, &mut out);
        varint(self.size.1, &mut out);
        out
    }

    fn exit(&mut self, code: u64, now: u64) -> Vec<u8> {
        let mut out = self.event(b'x', now);
        varint(code, &mut out);
        out
    }

    fn eot(&mut self, now: u64) -> Vec<u8> {
        let mut out = vec![4];
        self.since(now, &mut out);
        out
    }
}

fn put(bytes: &[u8], out: &mut Vec<u8>) {
    varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Encodes a number as LEB128: seven bits in each byte, the low ones first.
fn varint(mut n: u64, out: &mut Vec<u8>) {
    while n > 0x7f {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use tapdeck_proto::attach::Gap;
    use tapdeck_proto::bus::Exit;

    #[test]
    fn events_are_encoded_as_the_protocol_has_them() {
        let mut stream = Stream::new(&Opened { cols: 180, rows: 24, ..Opened::default() }, Theme::default());
        let mut hear = |incoming, now| stream.hear(incoming, now);
        let control = |value| Incoming::Control(value);
        assert!(hear(Incoming::Output(b"dump".to_vec()), 900).is_empty());
        let init = hear(control(Said::Live), 1000);
        let [init] = init.as_slice() else { panic!("one message") };
        assert_eq!(init[..7], [1, 0, 0xe8, 0x07, 0xb4, 0x01, 24]);
        assert_eq!(init[7], 16, "sixteen colours follow");
        let blue = 8 + (2 + 4) * 3;
        assert_eq!(init[blue..blue + 3], [0x6e, 0xa8, 0xfe], "the theme's own");
        assert_eq!(init[8 + 18 * 3..], *b"\x04dump");
        let cases: [(Incoming, u64, &[&[u8]]); 7] = [
            (Incoming::Output("世".as_bytes().to_vec()), 1200, &[b"o\x01\xc8\x01\x03\xe4\xb8\x96"]),
            // A character comes whole, when it has come.
            (Incoming::Output(b"\xe4\xb8".to_vec()), 1300, &[]),
            (Incoming::Output(b"\x96!".to_vec()), 1300, &[b"o\x02\x64\x04\xe4\xb8\x96!"]),
            (control(Said::Resize { cols: 100, rows: 50 }), 1300, &[b"r\x03\x00\x64\x32"]),
            // Time does not go back.
            (Incoming::Output(b"x".to_vec()), 1, &[b"o\x04\x00\x01x"]),
            (control(Said::Driver { driver: None, you: false }), 1300, &[]),
            (
                control(Said::Exit(Exit { code: 130, signal: None, recording_error: None })),
                1301,
                &[b"x\x05\x01\x82\x01", b"\x04\x00"],
            ),
        ];
        for (incoming, now, expected) in cases {
            let shown = format!("{incoming:?}");
            assert_eq!(hear(incoming, now), expected, "{shown}");
        }
    }

    #[test]
    fn after_a_gap_the_screen_comes_anew() {
        let mut stream = Stream::new(&Opened { cols: 80, rows: 24, ..Opened::default() }, Theme::default());
        stream.hear(Incoming::Control(Said::Live), 0);
        let gap = Said::Gap(Gap { from: 0, to: 1, bytes: 1, cols: 90, rows: 30, dump: 0 });
        assert_eq!(stream.hear(Incoming::Control(gap), 5), [vec![4, 5]]);
        assert!(stream.hear(Incoming::Output(b"new".to_vec()), 6).is_empty());
        let init = stream.hear(Incoming::Control(Said::Live), 7);
        assert_eq!(init[0][..5], [1, 0, 7, 90, 30]);
        assert!(init[0].ends_with(b"\x03new"));
    }
}
