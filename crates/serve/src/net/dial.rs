//! The client's side of every transport but the Unix socket. A thread with a small runtime connects
//! to the server. A transport that is a descriptor is handed over as one; for any other, the thread
//! carries bytes between the server and a socket pair, so that clients need no runtime.

use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use futures_util::StreamExt;
use rustls::pki_types::ServerName;
use tapdeck_host::backend::Prompter;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite;
use tungstenite::client::IntoClientRequest;

use super::endpoint::{Endpoint, Transport, authority};
use super::identity::{ALPN, PROVING};
use super::messages::{self, Message};
use super::trust::{Expected, Trust};
use super::{Flow, Sealed, port_watch, quic, tls, wt};
use crate::client::{ClientError, Conn};

/// How long connecting may take.
const REACH: Duration = Duration::from_secs(15);
/// How long closing the connection may take.
const GOODBYE: Duration = Duration::from_millis(500);
/// How often to check whether the caller has cancelled.
const GLANCE: Duration = Duration::from_millis(50);
const PIECE: usize = 64 * 1024;

/// Connects to a server. The prompter is asked about a host that shows its key for the first time.
/// Until the answer, the server has seen no more of this client than the start of a handshake; then
/// it is reached again, with no other key.
pub fn dial(
    to: &Endpoint,
    trust: &Trust,
    token: Option<&str>,
    prompter: &mut dyn Prompter,
) -> Result<Conn, ClientError> {
    let new = match dial_known(to, trust, token, prompter) {
        Err(ClientError::NewHost(new)) => new,
        other => return other,
    };
    match prompter.is_trusted(&new)? {
        Some(true) => {
            let trust = trust.clone().fingerprint(new.fingerprint).accept_new(true);
            dial_known(to, &trust, token, prompter)
        }
        Some(false) => Err(ClientError::Denied(format!("the key of {} was not confirmed", new.name))),
        None => Err(ClientError::NewHost(new)),
    }
}

/// Connects to a server that is trusted.
fn dial_known(
    to: &Endpoint,
    trust: &Trust,
    token: Option<&str>,
    prompter: &mut dyn Prompter,
) -> Result<Conn, ClientError> {
    let (transport, host, port) = match to {
        Endpoint::Unix(path) => return Conn::unix(path),
        Endpoint::Net { transport, host, port } => (*transport, host.clone(), *port),
    };
    let name = host.clone();
    let expected = trust.expect(&name)?;
    let (ours, theirs) = UnixStream::pair()?;
    theirs.set_nonblocking(true)?;
    let (tell, told) = channel();
    let (say_done, done) = channel();
    let way = Way { transport, host, port, expected: Arc::clone(&expected), token: token.map(str::to_owned) };
    std::thread::Builder::new().name("tapdeck-dial".into()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        match runtime {
            Ok(runtime) => runtime.block_on(carry(way, theirs, tell)),
            // A caller that has cancelled no longer wants to know.
            Err(e) => drop(tell.send(Err(e))),
        }
        // `Done` waits for this, unless the connection was never used.
        let _ = say_done.send(());
    })?;
    let bridge = Bridge { stream: ours, _done: Done(done) };
    let reached = loop {
        match told.recv_timeout(GLANCE) {
            Ok(reached) => break reached,
            Err(RecvTimeoutError::Timeout) if prompter.cancelled().is_some() => {
                return Err(ClientError::Io(io::ErrorKind::Interrupted.into()));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(ClientError::Ended),
        }
    };
    let own = reached.map_err(|e| match trust.complaint(&name, &expected) {
        Some(complaint) => complaint,
        None => not_reached(to, &e),
    })?;
    if let Some(note) = trust.remember(&name, &expected)? {
        prompter.note(&note);
    }
    Ok(own.unwrap_or(Conn::Bridge(bridge)))
}

/// Why a server could not be reached.
fn not_reached(to: &Endpoint, e: &io::Error) -> ClientError {
    // The server refused the handshake; other transports refuse the negotiation.
    if e.kind() == io::ErrorKind::PermissionDenied && e.raw_os_error().is_none() {
        return ClientError::Refused { error: "forbidden".into(), message: e.to_string(), code: None };
    }
    ClientError::Io(io::Error::new(e.kind(), format!("{to}: {e}")))
}

/// A socket to the thread that carries its bytes.
#[derive(Debug)]
pub struct Bridge {
    pub(crate) stream: UnixStream,
    _done: Done,
}

/// Dropped after the socket: the process must not exit before the connection is closed.
#[derive(Debug)]
struct Done(Receiver<()>);

impl Drop for Done {
    fn drop(&mut self) {
        // The server may take no longer than this; then the process may exit.
        let _ = self.0.recv_timeout(2 * GOODBYE);
    }
}

/// How to connect.
struct Way {
    transport: Transport,
    host: String,
    port: u16,
    expected: Arc<Expected>,
    token: Option<String>,
}

type Reading = Box<dyn AsyncRead + Unpin + Send>;
type Writing = Box<dyn AsyncWrite + Unpin + Send>;

/// A connection that needs no runtime, or a stream that does.
enum Reached {
    Conn(Box<Conn>),
    Stream(Stream),
}

/// A stream, and what has to be closed after it.
struct Stream {
    reader: Reading,
    writer: Writing,
    behind: Behind,
}

enum Behind {
    Nothing,
    WebTransport(
        Box<(wtransport::Endpoint<wtransport::endpoint::endpoint_side::Client>, wtransport::Connection)>,
    ),
}

impl Behind {
    /// Completes when the server's process is gone without closing the connection.
    async fn gone(&self) {
        match self {
            Behind::Nothing => std::future::pending().await,
            Behind::WebTransport(both) => port_watch::gone(both.1.remote_address()).await,
        }
    }
}

/// Connects to the server, and reports it. Carries the bytes of a connection that needs a runtime.
async fn carry(way: Way, near: UnixStream, tell: std::sync::mpsc::Sender<io::Result<Option<Conn>>>) {
    let reached = timeout(REACH, reach(&way)).await;
    let late = || io::Error::new(io::ErrorKind::TimedOut, "no answer");
    let stream = match reached.unwrap_or_else(|_| Err(late())) {
        Ok(Reached::Conn(conn)) => {
            // The caller may have cancelled; the same holds below.
            let _ = tell.send(Ok(Some(*conn)));
            return;
        }
        Ok(Reached::Stream(stream)) => stream,
        Err(e) => {
            let _ = tell.send(Err(e));
            return;
        }
    };
    let near = match tokio::net::UnixStream::from_std(near) {
        Ok(near) => near,
        Err(e) => {
            let _ = tell.send(Err(e));
            return;
        }
    };
    let _ = tell.send(Ok(None));
    let Stream { mut reader, mut writer, behind } = stream;
    let (mut from_near, mut to_near) = near.into_split();
    tokio::select! {
        () = behind.gone() => {}
        _ = copy(&mut reader, &mut to_near) => {}
        () = send_all(&mut from_near, &mut writer) => {
            // The client is gone. The server is told so before the connection ends.
            let _ = timeout(GOODBYE, writer.shutdown()).await;
        }
    }
    drop((reader, writer));
    match behind {
        Behind::Nothing => {}
        Behind::WebTransport(both) => {
            both.1.close(0u32.into(), b"");
            // A server that does not confirm in time notices by itself.
            let _ = timeout(GOODBYE, both.0.wait_idle()).await;
        }
    }
}

/// Passes on what the client sends, until it is gone. A server that reads no more may still have
/// sent the exit, which must not get lost.
async fn send_all<R, W>(near: &mut R, to: &mut W)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut piece = vec![0; PIECE];
    let mut takes = true;
    while let Ok(n @ 1..) = near.read(&mut piece).await {
        takes = takes && to.write_all(&piece[..n]).await.is_ok() && to.flush().await.is_ok();
    }
}

/// Passes bytes on as they come.
async fn copy<R, W>(from: &mut R, to: &mut W) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut from = tokio::io::BufReader::with_capacity(PIECE, from);
    tokio::io::copy_buf(&mut from, to).await.map(drop)
}

async fn reach(way: &Way) -> io::Result<Reached> {
    let begun = tokio::time::Instant::now();
    let (host, port) = (way.host.clone(), way.port);
    let found = tokio::task::spawn_blocking(move || Endpoint::resolve(&host, port)).await;
    let found = found.map_err(io::Error::other)??;
    let mut last = Err(io::ErrorKind::NotFound.into());
    for (tried, address) in found.iter().enumerate() {
        // An address that does not answer must leave time for the others.
        let left = REACH.saturating_sub(begun.elapsed());
        let within = left / u32::try_from(found.len() - tried).unwrap_or(u32::MAX);
        last = reach_one(way, *address, within).await;
        if last.is_ok() {
            break;
        }
    }
    last
}

/// Connects within this time. A refusal is reported at once.
async fn reach_one(way: &Way, address: SocketAddr, within: Duration) -> io::Result<Reached> {
    let stream = match way.transport {
        Transport::Tls => {
            let (tcp, tls) = over_tls(way, address, &[PROVING, ALPN]).await?.into_inner();
            let sealed = Sealed::new(tcp.into_std()?, tls)?;
            return Ok(Reached::Conn(Box::new(Conn::Sealed(Box::new(sealed)))));
        }
        Transport::Wss => over_ws(way, "wss", over_tls(way, address, &[b"http/1.1"]).await?).await,
        Transport::Ws if !address.ip().is_loopback() => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "ws:// is in the clear and for this machine alone: use wss://",
        )),
        Transport::Ws => {
            let stream = TcpStream::connect(address).await?;
            tls::settle(&stream);
            over_ws(way, "ws", stream).await
        }
        Transport::Quic => {
            // Blocking is fine: this thread does nothing else.
            let flow =
                Flow::connect(way.expected.client_config(&[PROVING, ALPN])?, address, &way.host, within)?;
            return Ok(Reached::Conn(Box::new(Conn::Flow(Box::new(flow)))));
        }
        Transport::WebTransport => {
            let tls = way.expected.client_config(&[wtransport::tls::WEBTRANSPORT_ALPN])?;
            let config = wtransport::ClientConfig::builder()
                .with_bind_address(quic::any(address))
                .with_custom_tls(tls);
            let config = config.keep_alive_interval(Some(Duration::from_secs(10))).build();
            let endpoint = wtransport::Endpoint::client(config)?;
            let url = format!("https://{}{}", authority(&way.host, way.port), wt::PATH);
            let connection = endpoint.connect(url).await.map_err(io::Error::other)?;
            let opening = connection.open_bi().await.map_err(io::Error::other)?;
            let (writer, reader) = opening.await.map_err(io::Error::other)?;
            let behind = Behind::WebTransport(Box::new((endpoint, connection)));
            Ok(Stream { reader: Box::new(reader), writer: Box::new(writer), behind })
        }
    };
    stream.map(Reached::Stream)
}

async fn over_tls(
    way: &Way,
    address: SocketAddr,
    alpn: &[&[u8]],
) -> io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
    let connector = TlsConnector::from(Arc::new(way.expected.client_config(alpn)?));
    let stream = TcpStream::connect(address).await?;
    tls::settle(&stream);
    let name = ServerName::try_from(way.host.clone()).map_err(io::Error::other)?;
    connector.connect(name, stream).await
}

async fn over_ws<S>(way: &Way, scheme: &str, stream: S) -> io::Result<Stream>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let url = format!("{scheme}://{}/ws/tty", authority(&way.host, way.port));
    let mut request = url.into_client_request().map_err(io::Error::other)?;
    if let Some(token) = &way.token {
        let value = format!("Bearer {token}").parse().map_err(io::Error::other)?;
        request.headers_mut().insert("authorization", value);
    }
    let (socket, _) = tokio_tungstenite::client_async(request, stream).await.map_err(|e| match e {
        tungstenite::Error::Http(answer) => {
            let why = answer.body().as_ref().map(|b| String::from_utf8_lossy(b).trim().to_owned());
            let why = why.filter(|w| !w.is_empty()).unwrap_or_else(|| answer.status().to_string());
            match answer.status().as_u16() {
                401 | 403 => io::Error::new(io::ErrorKind::PermissionDenied, why),
                _ => io::Error::other(why),
            }
        }
        e => io::Error::other(e),
    })?;
    let (sink, source) = socket.split();
    Ok(Stream {
        reader: Box::new(messages::Reader::new(source)),
        writer: Box::new(messages::Writer::new(sink, tungstenite::Message::Binary)),
        behind: Behind::Nothing,
    })
}

impl From<tungstenite::Message> for Message {
    fn from(message: tungstenite::Message) -> Self {
        match message {
            tungstenite::Message::Binary(bytes) => Message::Bytes(bytes),
            tungstenite::Message::Close(_) => Message::End,
            _ => Message::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_takes_no_more_is_still_listened_to() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let (mut here, mut near) = tokio::io::duplex(64);
            let (mut writer, server) = tokio::io::duplex(64);
            drop(server);
            let sending = send_all(&mut near, &mut writer);
            let mut sending = std::pin::pin!(sending);
            for _ in 0..3 {
                // More than fits into the pipe: it is read although the server takes nothing.
                tokio::select! {
                    biased;
                    () = &mut sending => unreachable!("the client is still there"),
                    wrote = here.write_all(&[b'x'; 200]) => wrote.expect("written"),
                }
            }
            drop(here);
            sending.await;
        });
    }
}
