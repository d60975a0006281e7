//! One session over one stream: negotiation, rights, refusal or `opened`, chunks both ways, and how it ended.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tapdeck_core::{Exit, Stream, WinSize};
use tapdeck_host::{Handle, UserProfile, UserQueues, UserSide, signals};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::timeout;

use super::line::Line;
use super::{Opened, Pass, Peer, Refusal, Server, Sessions, attach};
use crate::live::exit_of;
use crate::wire::{self, ChunkKind, Decoder, MAX_CHUNK, MAX_NEGOTIATION, Piece, Tty, Wanted, size_of};

/// A short rest where there is nothing to wait for.
pub(super) const BREATH: Duration = Duration::from_millis(20);
/// How long a client that was refused may take to hear it.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(2);
/// What a client that was refused may still send before it is cut off.
const UNREAD: u64 = 1 << 20;
/// How long input may wait before it is looked whether whoever sent it is still there.
const PROBE: Duration = Duration::from_millis(500);
/// Pieces in one write.
const SLICES: usize = 64;

/// Serves one session over a stream, to its end. Nothing the other side does can harm anybody but its own session.
pub async fn serve_stream<R, W>(server: Arc<Server>, reader: R, writer: W, peer: Peer)
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    serve_stream_of(server, reader, writer, peer, || Ok(())).await;
}

/// The same for somebody who has to be admitted first, once they have shown what they want and may have it.
pub(super) async fn serve_stream_of<R, W>(
    server: Arc<Server>,
    mut reader: R,
    mut writer: W,
    peer: Peer,
    admit: impl FnOnce() -> Result<(), Refusal>,
) where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    let negotiated = negotiate(&server, &mut reader, peer).await;
    let refusal = match negotiated.and_then(|n| admit().map(|()| n)) {
        Ok(None) => return,
        Ok(Some((wanted, pass))) => {
            let revoked = server.revoked(&pass);
            if wanted.backend == "attach" {
                match attach::join(&server, &wanted, &pass).await {
                    Ok(session) => return attach::carry(session, reader, writer, revoked).await,
                    Err(refusal) => refusal,
                }
            } else {
                match open(&server, wanted).await {
                    Ok(session) => return session.carry(reader, writer, revoked).await,
                    Err(refusal) => refusal,
                }
            }
        }
        Err(refusal) => refusal,
    };
    refuse(&refusal, reader, &mut writer).await;
}

/// Tells the client that it does not get what it wants.
pub(super) async fn refuse<R, W>(refusal: &Refusal, reader: R, writer: &mut W)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    refusal.log();
    let _ = timeout(LAST_WORDS, async {
        writer.write_all(&refusal.framed()).await?;
        writer.shutdown().await?;
        // Closing while something is unread would break the connection off, and the refusal with it.
        tokio::io::copy(&mut reader.take(UNREAD), &mut tokio::io::sink()).await
    })
    .await;
}

/// What the client wants and may have; nothing, if it went without a word.
pub(super) async fn negotiate<R>(
    server: &Server,
    reader: &mut R,
    peer: Peer,
) -> Result<Option<(Wanted, Pass)>, Refusal>
where
    R: AsyncRead + Unpin,
{
    let malformed = |message: String| Refusal::new("malformed_negotiation", message);
    let limit = match peer {
        Peer::Owner => MAX_CHUNK,
        Peer::Stranger => MAX_NEGOTIATION,
    };
    let body = match timeout(server.limits.hello, read_frame(reader, limit)).await {
        Err(_) => {
            let waited = server.limits.hello;
            return Err(malformed(format!("no negotiation within {waited:?}")));
        }
        Ok(Err(e)) if e.kind() == io::ErrorKind::InvalidData => return Err(malformed(e.to_string())),
        Ok(Err(_)) => return Ok(None),
        Ok(Ok(body)) => body,
    };
    let value = wire::parse_object(&body).map_err(|e| malformed(e.to_string()))?;
    let wanted = Wanted::from_json(value).map_err(|e| malformed(e.to_string()))?;
    // The right to have it comes before whether there is such a thing.
    let pass = server.authorise(peer, &wanted)?;
    tracing::info!(by = pass.name(), backend = wanted.backend, "admitted");
    Ok(Some((wanted, pass)))
}

async fn read_frame<R: AsyncRead + Unpin>(reader: &mut R, limit: usize) -> io::Result<Vec<u8>> {
    let len = reader.read_u32().await? as usize;
    if len > limit {
        let e = wire::WireError::TooLong { what: "negotiation", len, limit };
        return Err(io::Error::new(io::ErrorKind::InvalidData, e));
    }
    // Grows with what comes, not with what is claimed.
    let mut body = Vec::with_capacity(len.min(4096));
    reader.take(len as u64).read_to_end(&mut body).await?;
    if body.len() < len { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(body) }
}

/// A session that was opened for a stream.
struct Session {
    queues: UserQueues,
    opened: Opened,
    over: oneshot::Receiver<Result<Exit, Refusal>>,
}

/// Who is at the other side of a session.
pub(super) fn profile(wanted: &Wanted) -> UserProfile {
    let tty = wanted.tty.as_ref();
    UserProfile {
        types: tty.is_some(),
        answers: tty.is_some_and(|t: &Tty| t.answers),
        stays: wanted.detached,
    }
}

/// Starts a session on a thread of its own, which tells the client what becomes of it.
pub(super) fn start(
    server: &Arc<Server>,
    wanted: Wanted,
    user: UserSide,
    teller: Teller,
) -> Result<(), Refusal> {
    let full = |_| Refusal::new("too_many_sessions", "the server has as many sessions as it may have");
    let permit = Arc::clone(&server.sessions).try_acquire_owned().map_err(full)?;
    let mut client =
        Client { teller, running: Arc::clone(&server.running), number: None, permit: Some(permit) };
    let own = Arc::clone(server);
    let thread = std::thread::Builder::new().name("tapdeck-session".into());
    let run = move || own.desk.run(&wanted, user, &mut client);
    let failed = |e| Refusal::new("allocate_failed", format!("no thread for another session: {e}"));
    thread.spawn(run).map(drop).map_err(failed)
}

/// Opens a session for a stream.
async fn open(server: &Arc<Server>, wanted: Wanted) -> Result<Session, Refusal> {
    let (user, queues) = UserSide::queues(profile(&wanted));
    let (tell_opened, opened) = oneshot::channel();
    let (tell_over, over) = oneshot::channel();
    let teller = Teller::Task { opened: Some(tell_opened), over: Some(tell_over) };
    start(server, wanted, user, teller)?;
    match opened.await {
        Ok(opened) => Ok(Session { queues, opened, over }),
        // The way to say so was dropped unused.
        Err(_) => match over.await {
            Ok(Err(refusal)) => Err(refusal),
            _ => Err(Refusal::new("allocate_failed", "the session could not be started")),
        },
    }
}

/// Starts a session whose owner goes at once, and says its id.
pub(super) async fn open_detached(server: &Arc<Server>, wanted: Wanted) -> Result<String, Refusal> {
    Ok(open(server, wanted).await?.opened.id)
}

/// Whoever had a session opened, as the thread that runs it sees them.
pub struct Client {
    teller: Teller,
    running: Arc<Sessions>,
    number: Option<u64>,
    /// Held while there is anything of the session.
    permit: Option<OwnedSemaphorePermit>,
}

/// How they are told what becomes of it.
pub(super) enum Teller {
    /// By the task that carries their bytes.
    Task { opened: Option<oneshot::Sender<Opened>>, over: Option<oneshot::Sender<Result<Exit, Refusal>>> },
    /// Through the line at which the session serves them itself.
    Line(Option<Line>),
}

impl Client {
    /// The session runs.
    pub fn opened(&mut self, opened: Opened) {
        self.number = Some(self.running.add(opened.handle.clone()));
        match &mut self.teller {
            // They may be gone already.
            Teller::Task { opened: tell, .. } => drop(tell.take().map(|tell| tell.send(opened))),
            Teller::Line(line) => drop(line.as_ref().map(|line| line.say(&hello(&opened.id)))),
        }
    }

    /// It has ended, or could not be started.
    pub fn over(&mut self, outcome: Result<Exit, Refusal>) {
        let ran = self.number.take();
        match ran {
            Some(number) => drop(self.running.lock().remove(&number)),
            // There never was one: whoever is told so may ask for another at once.
            None => self.permit = None,
        }
        match &mut self.teller {
            Teller::Task { opened, over } => {
                let _ = over.take().map(|tell| tell.send(outcome));
                *opened = None;
            }
            Teller::Line(line) => {
                if let Some(line) = line.take() {
                    match (ran, outcome) {
                        (None, Err(refusal)) => line.end(refusal.framed()),
                        (_, outcome) => line.end(wire::control(&last_word(outcome))),
                    }
                }
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.over(Err(match self.number {
            Some(_) => Refusal::new("internal", "the session broke down"),
            None => Refusal::new("allocate_failed", "the session could not be started"),
        }));
    }
}

fn hello(id: &str) -> Value {
    json!({"type": "opened", "session": id})
}

/// How it ended, as it is told to whoever had it opened.
fn last_word(outcome: Result<Exit, Refusal>) -> Value {
    match outcome {
        Ok(exit) => {
            let tapdeck_proto::bus::Exit { code, signal } = exit_of(exit);
            match signal {
                Some(signal) => json!({"type": "exit", "code": code, "signal": signal}),
                None => json!({"type": "exit", "code": code}),
            }
        }
        Err(refusal) => json!({"type": "error", "message": refusal.message}),
    }
}

impl Session {
    /// Carries bytes both ways until the session is over, its owner has gone, or may not be here any more. Dropping the
    /// port is going.
    async fn carry<R, W>(self, reader: R, mut writer: W, revoked: impl Future<Output = ()>)
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let Session { queues, opened, over } = self;
        if writer.write_all(&wire::control(&hello(&opened.id))).await.is_err()
            || writer.flush().await.is_err()
        {
            return;
        }
        // What is wrong with what came is said in between the output.
        let (complain, complaints) = mpsc::channel(4);
        let sent_away = complain.clone();
        let input = async {
            tokio::select! {
                () = take_input(reader, &queues, &opened.handle, complain) => {}
                () = revoked => {
                    // Whoever takes nothing is not waited for.
                    let _ = sent_away.try_send(complaint(None, REVOKED));
                    tokio::time::sleep(BREATH).await;
                }
            }
        };
        tokio::select! {
            () = input => {}
            sent = send_output(&mut writer, &queues, complaints) => if sent.is_ok() {
                let broken = |_| Err(Refusal::new("internal", "the session broke down"));
                let last = last_word(over.await.unwrap_or_else(broken));
                let _ = timeout(LAST_WORDS, async {
                    writer.write_all(&wire::control(&last)).await?;
                    writer.shutdown().await
                })
                .await;
            }
        }
    }
}

/// Passes on what the owner sends, until they have gone: the end of their stream is that.
async fn take_input<R>(mut reader: R, queues: &UserQueues, handle: &Handle, complain: mpsc::Sender<Value>)
where
    R: AsyncRead + Unpin,
{
    let mut decoder = Decoder::default();
    loop {
        match decoder.next() {
            Ok(None) => {
                decoder.buffer().reserve(16 * 1024);
                if !matches!(reader.read_buf(decoder.buffer()).await, Ok(n) if n > 0) {
                    return;
                }
            }
            Ok(Some(Piece::Bytes(ChunkKind::Stdin, bytes))) => {
                let room = async {
                    loop {
                        match timeout(PROBE, poll_fn(|cx| queues.poll_room(cx))).await {
                            Ok(room) => return room,
                            // Behind input that is not read, it cannot be seen that they have gone.
                            Err(_) => drop(complain.try_send(ping())),
                        }
                    }
                };
                if room.await.is_err() {
                    // The session is over; how it ended is being said.
                    return std::future::pending().await;
                }
                queues.push(bytes);
            }
            Ok(Some(Piece::Control(control))) => match Wish::of(&control) {
                Ok(Wish::Resize(size)) => queues.resize(size),
                Ok(Wish::Signal(signal)) => handle.signal(signal),
                Ok(Wish::End) => queues.end_input(),
                Ok(Wish::Unknown) => {}
                Err(message) => {
                    let _ = complain.send(complaint(control["type"].as_str(), &message)).await;
                }
            },
            Ok(Some(Piece::Bytes(..))) => {
                let _ = complain.send(complaint(None, "output comes from the program")).await;
                return tokio::time::sleep(BREATH).await;
            }
            Err(e) => {
                let _ = complain.send(complaint(None, &e.to_string())).await;
                // Time to hear it.
                return tokio::time::sleep(BREATH).await;
            }
        }
    }
}

/// What is told to those whose token was taken back.
pub(super) const REVOKED: &str = "the token is no longer good";

/// What is wrong with what came, as it is told to whoever sent it.
pub(super) fn complaint(about: Option<&str>, message: &str) -> Value {
    json!({"type": "error", "about": about, "message": message})
}

/// Something that means nothing and is ignored.
pub(super) fn ping() -> Value {
    json!({"type": "ping"})
}

/// What a client may say beside the bytes it types.
pub(super) enum Wish {
    Resize(WinSize),
    Signal(i32),
    End,
    /// Whatever else there may be one day.
    Unknown,
}

impl Wish {
    pub(super) fn of(control: &Value) -> Result<Self, String> {
        Ok(match control["type"].as_str() {
            Some("resize") => Self::Resize(size_of(control).ok_or(wire::NO_SIZE)?),
            Some("signal") => {
                let name = control["name"].as_str().unwrap_or("");
                Self::Signal(signals::number(name).ok_or_else(|| format!("no signal is called {name:?}"))?)
            }
            Some("eof") => Self::End,
            _ => Self::Unknown,
        })
    }
}

/// Sends what the program writes, as it writes it.
async fn send_output<W>(
    writer: &mut W,
    queues: &UserQueues,
    mut complaints: mpsc::Receiver<Value>,
) -> io::Result<()>
where
    W: AsyncWrite + Unpin,
{
    let mut taken = Vec::new();
    loop {
        tokio::select! {
            biased;
            Some(complaint) = complaints.recv() => writer.write_all(&wire::control(&complaint)).await?,
            more = poll_fn(|cx| queues.poll_output(cx, &mut taken)) => {
                if more.is_err() {
                    return Ok(());
                }
                send(writer, &mut taken).await?;
            }
        }
        writer.flush().await?;
    }
}

pub(super) fn kind_of(stream: Stream) -> ChunkKind {
    match stream {
        Stream::Out => ChunkKind::Stdout,
        Stream::Err => ChunkKind::Stderr,
    }
}

async fn send<W>(writer: &mut W, taken: &mut Vec<(Stream, Bytes)>) -> io::Result<()>
where
    W: AsyncWrite + Unpin,
{
    if !writer.is_write_vectored() {
        let all = taken.iter().map(|(_, bytes)| bytes.len() + 5).sum();
        let mut joined = Vec::with_capacity(all);
        for (stream, bytes) in taken.drain(..) {
            joined.extend_from_slice(&wire::chunk_head(kind_of(stream), bytes.len()));
            joined.extend_from_slice(&bytes);
        }
        return writer.write_all(&joined).await;
    }
    for some in taken.chunks(SLICES / 2) {
        let mut heads = [[0; 5]; SLICES / 2];
        let mut slices = [IoSlice::new(&[]); SLICES];
        for (head, (stream, bytes)) in heads.iter_mut().zip(some.iter()) {
            *head = wire::chunk_head(kind_of(*stream), bytes.len());
        }
        for (i, (head, (_, bytes))) in heads.iter().zip(some.iter()).enumerate() {
            slices[2 * i] = IoSlice::new(head);
            slices[2 * i + 1] = IoSlice::new(bytes);
        }
        let mut left = &mut slices[..2 * some.len()];
        while !left.is_empty() {
            let n = writer.write_vectored(left).await?;
            if n == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            IoSlice::advance_slices(&mut left, n);
        }
    }
    taken.clear();
    Ok(())
}
