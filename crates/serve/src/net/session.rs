//! One session over one stream: negotiation, authority, refusal or `opened`, chunks both ways,
//! exit.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tapdeck_core::{Exit, Stream, WinSize};
use tapdeck_host::{Handle, UserProfile, UserQueues, UserSide, signals};
use tapdeck_proto::attach::Join;
use tapdeck_proto::bus::NO_SIZE;
use tapdeck_proto::tty::{ClientControl, Control, ServerControl};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::timeout;

use super::line::Line;
use super::{Opened, Pass, Peer, Refusal, RefusalCode, Server, Sessions, Unauthorised, attach};
use crate::admission::Seat;
use crate::live::exit_of;
use crate::wire::{self, ChunkKind, Decoder, MAX_CHUNK, MAX_NEGOTIATION, Negotiation, Piece, Tty, win_size};

/// A short pause where there is nothing to wait for.
pub(super) const BREATH: Duration = Duration::from_millis(20);
/// How long a client may take to read the last message.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(2);
/// Bytes that a refused client may still send before it is cut off.
const UNREAD: u64 = 1 << 20;
/// How long input may wait before the connection is probed.
const PROBE: Duration = Duration::from_millis(500);
/// Pieces in one write.
const SLICES: usize = 64;

/// Serves one session over a stream, to its end. A client can harm its own session only.
pub async fn serve_stream<R, W>(server: Arc<Server>, reader: R, writer: W, peer: Peer)
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    serve_stream_of(server, reader, writer, peer, None).await;
}

/// Serves one session over a stream of a connection with this seat.
pub(crate) async fn serve_stream_of<R, W>(
    server: Arc<Server>,
    mut reader: R,
    mut writer: W,
    peer: Peer,
    seat: Option<&Seat>,
) where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    let refusal = match negotiate(&server, &mut reader, peer, seat).await {
        Ok(None) => return,
        Ok(Some((Wish::Join(join), pass))) => match attach::join(&server, join, &pass).await {
            Ok(session) => return attach::carry(session, reader, writer, server.revoked(&pass)).await,
            Err(refusal) => refusal,
        },
        Ok(Some((Wish::Open(negotiation), pass))) => match open(&server, *negotiation).await {
            Ok(session) => return session.carry(reader, writer, server.revoked(&pass)).await,
            Err(refusal) => refusal,
        },
        Err(refusal) => refusal,
    };
    refuse(&refusal, reader, &mut writer).await;
}

/// Tells the client why it is refused.
pub(super) async fn refuse<R, W>(refusal: &Refusal, reader: R, writer: &mut W)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    refusal.log();
    // A client that is gone needs no refusal.
    let _ = timeout(LAST_WORDS, async {
        writer.write_all(&refusal.framed()).await?;
        writer.shutdown().await?;
        // Closing with unread input would reset the connection, and lose the refusal.
        tokio::io::copy(&mut reader.take(UNREAD), &mut tokio::io::sink()).await
    })
    .await;
}

/// What a client asks for.
pub(super) enum Wish {
    /// A session of its own.
    Open(Box<Negotiation>),
    /// To be attached to a session that runs.
    Join(Join),
}

/// Reads the negotiation, checks it against the credential and admits the client; `None` if the
/// client left without one.
pub(super) async fn negotiate<R>(
    server: &Server,
    reader: &mut R,
    peer: Peer,
    seat: Option<&Seat>,
) -> Result<Option<(Wish, Pass)>, Refusal>
where
    R: AsyncRead + Unpin,
{
    let malformed = |message: String| Refusal::new(RefusalCode::MalformedNegotiation, message);
    let limit = match peer {
        Peer::Owner => MAX_CHUNK,
        Peer::Stranger | Peer::Bound(_) => MAX_NEGOTIATION,
    };
    let grace = server.limits.admission.grace;
    let body = match timeout(seat.map_or(grace, Seat::time_left), read_frame(reader, limit)).await {
        Err(_) => return Err(malformed(format!("no negotiation within {grace:?}"))),
        Ok(Err(e)) if e.kind() == io::ErrorKind::InvalidData => return Err(malformed(e.to_string())),
        Ok(Err(_)) => return Ok(None),
        Ok(Ok(body)) => body,
    };
    let negotiation = Negotiation::parse(&body).map_err(|e| malformed(e.to_string()))?;
    // Authority first: a refusal must not tell what exists.
    let pass = server.authorise(peer, &negotiation);
    if let (Err(Unauthorised::Wrong(_)), Some(seat)) = (&pass, seat) {
        seat.failed().await;
    }
    let pass = pass?;
    if let Some(seat) = seat {
        seat.admit().map_err(|full| Refusal::new(RefusalCode::TooManyConnections, full.to_string()))?;
    }
    tracing::info!(by = pass.name(), backend = negotiation.backend, "admitted");
    let wish = match negotiation.backend.as_str() {
        "attach" => Wish::Join(Join::parse(&body).map_err(|e| malformed(e.to_string()))?),
        _ => Wish::Open(Box::new(negotiation)),
    };
    Ok(Some((wish, pass)))
}

async fn read_frame<R: AsyncRead + Unpin>(reader: &mut R, limit: usize) -> io::Result<Vec<u8>> {
    let len = reader.read_u32().await? as usize;
    if len > limit {
        let e = wire::WireError::TooLong { what: "negotiation", len, limit };
        return Err(io::Error::new(io::ErrorKind::InvalidData, e));
    }
    // The buffer grows with what arrives, not with the length that was announced.
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

/// Describes the user's side of a session.
pub(super) fn profile(negotiation: &Negotiation) -> UserProfile {
    let tty = negotiation.tty.as_ref();
    UserProfile {
        types: tty.is_some(),
        answers: tty.is_some_and(|t: &Tty| t.answers),
        stays: negotiation.detached,
    }
}

/// Starts a session on a thread of its own, which reports to the client.
pub(super) fn start(
    server: &Arc<Server>,
    negotiation: Negotiation,
    user: UserSide,
    teller: Teller,
) -> Result<(), Refusal> {
    let full =
        |_| Refusal::new(RefusalCode::TooManySessions, "the server has as many sessions as it may have");
    let permit = Arc::clone(&server.sessions).try_acquire_owned().map_err(full)?;
    let mut client =
        Client { teller, running: Arc::clone(&server.running), number: None, permit: Some(permit) };
    let own = Arc::clone(server);
    let thread = std::thread::Builder::new().name("tapdeck-session".into());
    let run = move || own.runner.run(&negotiation, user, &mut client);
    let failed = |e| Refusal::new(RefusalCode::AllocateFailed, format!("no thread for another session: {e}"));
    thread.spawn(run).map(drop).map_err(failed)
}

/// Opens a session for a stream.
async fn open(server: &Arc<Server>, negotiation: Negotiation) -> Result<Session, Refusal> {
    let (user, queues) = UserSide::queues(profile(&negotiation));
    let (tell_opened, opened) = oneshot::channel();
    let (tell_over, over) = oneshot::channel();
    let teller = Teller::Task { opened: Some(tell_opened), over: Some(tell_over) };
    start(server, negotiation, user, teller)?;
    match opened.await {
        Ok(opened) => Ok(Session { queues, opened, over }),
        // The sender was dropped unused.
        Err(_) => match over.await {
            Ok(Err(refusal)) => Err(refusal),
            _ => Err(Refusal::new(RefusalCode::AllocateFailed, "the session could not be started")),
        },
    }
}

/// Starts a session that goes on without its client. Returns its id.
#[cfg(feature = "web")]
pub(super) async fn open_detached(server: &Arc<Server>, negotiation: Negotiation) -> Result<String, Refusal> {
    Ok(open(server, negotiation).await?.opened.id)
}

/// The client that had a session opened, as the thread that runs the session sees it.
pub struct Client {
    teller: Teller,
    running: Arc<Sessions>,
    number: Option<u64>,
    /// Held while the session exists.
    permit: Option<OwnedSemaphorePermit>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("number", &self.number).finish_non_exhaustive()
    }
}

/// How the client is told what becomes of its session.
pub(super) enum Teller {
    /// By the task that carries its bytes.
    Task { opened: Option<oneshot::Sender<Opened>>, over: Option<oneshot::Sender<Result<Exit, Refusal>>> },
    /// Through the line at which the session serves it.
    Line(Option<Line>),
}

impl Client {
    /// Reports that the session runs.
    pub fn opened(&mut self, opened: Opened) {
        self.number = Some(self.running.add(opened.handle.clone()));
        match &mut self.teller {
            // The client may be gone already.
            Teller::Task { opened: tell, .. } => drop(tell.take().map(|tell| tell.send(opened))),
            Teller::Line(line) => drop(line.as_ref().map(|line| line.say(&self::opened(&opened.id)))),
        }
    }

    /// Reports that the session has ended, or could not be started.
    pub fn over(&mut self, outcome: Result<Exit, Refusal>) {
        let ran = self.number.take();
        match ran {
            Some(number) => drop(self.running.lock().remove(&number)),
            // No session was started, so the client may ask for another at once.
            None => self.permit = None,
        }
        match &mut self.teller {
            Teller::Task { opened, over } => {
                // The task is gone when its client is.
                let _ = over.take().map(|tell| tell.send(outcome));
                *opened = None;
            }
            Teller::Line(line) => {
                if let Some(line) = line.take() {
                    match (ran, outcome) {
                        (None, Err(refusal)) => line.end(refusal.framed()),
                        (_, outcome) => line.end(wire::control(&last_message(outcome))),
                    }
                }
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.over(Err(match self.number {
            Some(_) => Refusal::new(RefusalCode::Internal, "the session broke down"),
            None => Refusal::new(RefusalCode::AllocateFailed, "the session could not be started"),
        }));
    }
}

fn opened(id: &str) -> ServerControl {
    ServerControl::Opened { session: id.to_owned() }
}

/// Returns the last message to the client: how the session ended.
fn last_message(outcome: Result<Exit, Refusal>) -> ServerControl {
    match outcome {
        Ok(exit) => {
            let tapdeck_proto::bus::Exit { code, signal, .. } = exit_of(exit);
            ServerControl::Exit { code, signal }
        }
        Err(refusal) => ServerControl::Error { about: None, message: refusal.message },
    }
}

impl Session {
    /// Carries bytes both ways until the session is over, its client is gone, or its authority
    /// expires. Dropping the queues detaches the client.
    async fn carry<R, W>(self, reader: R, mut writer: W, revoked: impl Future<Output = ()>)
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let Session { queues, opened, over } = self;
        if writer.write_all(&wire::control(&self::opened(&opened.id))).await.is_err()
            || writer.flush().await.is_err()
        {
            return;
        }
        // Complaints about messages are sent between the output.
        let (complain, complaints) = mpsc::channel(4);
        let sent_away = complain.clone();
        let input = async {
            tokio::select! {
                () = take_input(reader, &queues, &opened.handle, complain) => {}
                () = revoked => {
                    // A client that does not read does not get it.
                    let _ = sent_away.try_send(complaint(None, REVOKED));
                    tokio::time::sleep(BREATH).await;
                }
            }
        };
        tokio::select! {
            () = input => {}
            sent = send_output(&mut writer, &queues, complaints) => if sent.is_ok() {
                let broken = |_| Err(Refusal::new(RefusalCode::Internal, "the session broke down"));
                let last = last_message(over.await.unwrap_or_else(broken));
                // A client that is gone needs no last message.
                let _ = timeout(LAST_WORDS, async {
                    writer.write_all(&wire::control(&last)).await?;
                    writer.shutdown().await
                })
                .await;
            }
        }
    }
}

/// Waits until the session takes input. Returns false when the session is over.
async fn has_room(queues: &UserQueues, complain: &mpsc::Sender<ServerControl>) -> bool {
    loop {
        match timeout(PROBE, poll_fn(|cx| queues.poll_room(cx))).await {
            Ok(room) => return room.is_ok(),
            // Unread input hides the end of the connection, so it is probed. While messages wait to
            // be sent, they probe it.
            Err(_) => drop(complain.try_send(ServerControl::Ping)),
        }
    }
}

/// Passes on what the client sends, to the end of its stream.
async fn take_input<R>(
    mut reader: R,
    queues: &UserQueues,
    handle: &Handle,
    complain: mpsc::Sender<ServerControl>,
) where
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
                if !has_room(queues, &complain).await {
                    // The session is over; its exit is being sent.
                    return std::future::pending().await;
                }
                queues.push(bytes);
            }
            Ok(Some(Piece::Control(control))) => match Command::of(&control) {
                Ok(Command::Resize(size)) => queues.resize(size),
                Ok(Command::Signal(signal)) => handle.signal(signal),
                Ok(Command::End) => queues.end_input(),
                Ok(Command::Unknown) => {}
                Err(message) => {
                    // The receiver is gone when the output has ended; the same holds below.
                    let _ = complain.send(complaint(control.name(), &message)).await;
                }
            },
            Ok(Some(Piece::Bytes(..))) => {
                let _ = complain.send(complaint(None, "output comes from the program")).await;
                return tokio::time::sleep(BREATH).await;
            }
            Err(e) => {
                let _ = complain.send(complaint(None, &e.to_string())).await;
                // Leaves time to send it.
                return tokio::time::sleep(BREATH).await;
            }
        }
    }
}

/// What a client is told whose token was revoked or has expired.
pub(super) const REVOKED: &str = "the token is no longer good";

/// Returns the message that tells a client what is wrong with what it sent.
pub(super) fn complaint(about: Option<&str>, message: &str) -> ServerControl {
    ServerControl::Error { about: about.map(str::to_owned), message: message.to_owned() }
}

/// A control message of a client, understood.
pub(super) enum Command {
    Resize(WinSize),
    Signal(i32),
    End,
    /// A message of a newer client; it is ignored.
    Unknown,
}

impl Command {
    pub(super) fn of(control: &Control) -> Result<Self, String> {
        let Some(message) = control.read() else {
            return match control.name() {
                Some("resize") => Err(NO_SIZE.to_owned()),
                Some("signal") => Err(no_signal("")),
                _ => Ok(Self::Unknown),
            };
        };
        Ok(match message {
            ClientControl::Resize { .. } => Self::Resize(win_size(control.size().ok_or(NO_SIZE)?)),
            ClientControl::Signal { name } => {
                Self::Signal(signals::number(&name).ok_or_else(|| no_signal(&name))?)
            }
            ClientControl::Eof => Self::End,
            _ => Self::Unknown,
        })
    }
}

fn no_signal(name: &str) -> String {
    format!("no signal is called {name:?}")
}

/// Sends the program's output as it comes.
async fn send_output<W>(
    writer: &mut W,
    queues: &UserQueues,
    mut complaints: mpsc::Receiver<ServerControl>,
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
