//! As much of HTTP as the engine's interface needs: one request a connection, over its socket, with
//! every length bounded and every wait limited. A client library would bring a runtime of its own,
//! and would hide the one thing that matters here: after an upgrade the connection is a plain
//! descriptor that the driver can wait at.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;

use super::secure::{Certificates, Secure};
use crate::clock::Clock;

/// The head of an answer, and an answer that is read whole, may be this long.
const HEAD_LIMIT: usize = 64 * 1024;
const BODY_LIMIT: usize = 8 << 20;
/// How often a wait looks whether it was called off.
const LOOK: Duration = Duration::from_millis(50);

/// Where the engine listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Endpoint {
    Unix(PathBuf),
    Tcp(String),
    Tls(String, Certificates),
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Endpoint::Unix(path) => write!(f, "unix://{}", path.display()),
            Endpoint::Tcp(address) | Endpoint::Tls(address, _) => write!(f, "tcp://{address}"),
        }
    }
}

/// A connection to the engine.
pub(super) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
    Tls(Secure),
}

fn reach(address: &str) -> io::Result<TcpStream> {
    let limit = Duration::from_secs(10);
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, limit) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(e) => last = e,
        }
    }
    Err(last)
}

impl Socket {
    fn open(endpoint: &Endpoint) -> io::Result<Self> {
        match endpoint {
            Endpoint::Unix(path) => Ok(Socket::Unix(UnixStream::connect(path)?)),
            Endpoint::Tcp(address) => Ok(Socket::Tcp(reach(address)?)),
            Endpoint::Tls(address, certificates) => {
                Ok(Socket::Tls(Secure::greet(reach(address)?, address, certificates)?))
            }
        }
    }

    pub(super) fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Socket::Unix(s) => s.set_nonblocking(true),
            Socket::Tcp(s) => s.set_nonblocking(true),
            Socket::Tls(s) => s.set_nonblocking(),
        }
    }

    /// Says that nothing more will be sent; what comes can still be read.
    pub(super) fn end_sending(&mut self) -> io::Result<()> {
        match self {
            Socket::Unix(s) => s.shutdown(std::net::Shutdown::Write),
            Socket::Tcp(s) => s.shutdown(std::net::Shutdown::Write),
            Socket::Tls(s) => s.end_sending(),
        }
    }

    /// Whether something that was taken has not been sent: it is when this is flushed.
    pub(super) fn unsent(&self) -> bool {
        matches!(self, Socket::Tls(s) if s.unsent())
    }

    /// Whether more may have come although nothing can be seen of it.
    pub(super) fn left(&self) -> bool {
        matches!(self, Socket::Tls(s) if s.left())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Unix(s) => s.as_fd(),
            Socket::Tcp(s) => s.as_fd(),
            Socket::Tls(s) => s.as_fd(),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(s) => s.read(buf),
            Socket::Tcp(s) => s.read(buf),
            Socket::Tls(s) => s.read(buf),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(s) => s.write(buf),
            Socket::Tcp(s) => s.write(buf),
            Socket::Tls(s) => s.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Socket::Unix(_) | Socket::Tcp(_) => Ok(()),
            Socket::Tls(s) => s.flush(),
        }
    }
}

/// Says by which signal something was called off.
pub(super) type CallOff<'a> = &'a mut dyn FnMut() -> Option<i32>;

/// How long an answer may take, and who may call it off.
pub(super) struct Patience<'a> {
    /// The limit for each piece of the answer; none for those that come when they come.
    pub(super) limit: Option<Duration>,
    /// Asked now and then whether the user has cancelled.
    pub(super) cancelled: Option<CallOff<'a>>,
}

/// What went wrong on the way.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it does not speak the engine's language: {0}")]
    Nonsense(&'static str),
    #[error("no answer within {0:?}")]
    Late(Duration),
    #[error("called off by signal {0}")]
    CalledOff(i32),
}

/// The request: upgraded ones leave the connection to both sides.
pub(super) fn request(method: &str, path: &str, body: Option<&Value>, upgrade: bool) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: docker\r\nUser-Agent: tapdeck\r\n");
    text.push_str(if upgrade { "Connection: Upgrade\r\nUpgrade: tcp\r\n" } else { "Connection: close\r\n" });
    let body = body.map(Value::to_string).unwrap_or_default();
    if !body.is_empty() {
        text.push_str("Content-Type: application/json\r\n");
    }
    text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    text.into_bytes()
}

/// How the end of an answer is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// So many bytes are still to come.
    Length(u64),
    /// In chunks: so many bytes of the present one are still to come.
    Chunks(u64),
    /// Chunks, and the last has been seen.
    Done,
    /// Until the connection is closed.
    Close,
}

/// An answer whose head has been read.
pub(super) struct Answer {
    pub(super) status: u16,
    headers: Vec<(String, String)>,
    socket: Socket,
    /// Read, but not looked at yet.
    inbox: Vec<u8>,
    framing: Framing,
}

impl Answer {
    /// Sends a request and reads the head of its answer.
    pub(super) fn to(
        endpoint: &Endpoint,
        request: &[u8],
        patience: &mut Patience<'_>,
    ) -> Result<Self, HttpError> {
        let mut socket = Socket::open(endpoint)?;
        socket.write_all(request)?;
        socket.flush()?;
        socket.set_nonblocking()?;
        let mut inbox = Vec::new();
        let (status, headers, at) = loop {
            if let Some(head) = parse_head(&inbox)? {
                break head;
            }
            if inbox.len() > HEAD_LIMIT {
                return Err(HttpError::Nonsense("the head of its answer does not end"));
            }
            if !fill(&mut socket, &mut inbox, patience)? {
                return Err(HttpError::Nonsense("it closed the connection without an answer"));
            }
        };
        inbox.drain(..at);
        let find = |name: &str| headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
        let framing = match (status, find("transfer-encoding"), find("content-length")) {
            (101, ..) => Framing::Close,
            (204 | 304, ..) => Framing::Length(0),
            (_, Some(coding), _) if coding.eq_ignore_ascii_case("chunked") => Framing::Chunks(0),
            (_, Some(_), _) => return Err(HttpError::Nonsense("its answer is in an unknown coding")),
            (_, None, Some(length)) => Framing::Length(
                length.parse().map_err(|_| HttpError::Nonsense("the length of its answer is no number"))?,
            ),
            (_, None, None) => Framing::Close,
        };
        Ok(Self { status, headers, socket, inbox, framing })
    }

    /// A header by its name in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// The next piece of the body as it comes; `None` at its end.
    pub(super) fn piece(&mut self, patience: &mut Patience<'_>) -> Result<Option<Vec<u8>>, HttpError> {
        loop {
            match self.framing {
                Framing::Length(0) | Framing::Done => return Ok(None),
                Framing::Length(left) if !self.inbox.is_empty() => {
                    let piece = self.take(left);
                    self.framing = Framing::Length(left - piece.len() as u64);
                    return Ok(Some(piece));
                }
                Framing::Close if !self.inbox.is_empty() => return Ok(Some(std::mem::take(&mut self.inbox))),
                Framing::Chunks(0) => {
                    // The line end of the chunk before, if there was one, stands in front of the
                    // next size.
                    let text = self.inbox.strip_prefix(b"\r\n").unwrap_or(&self.inbox);
                    let skipped = self.inbox.len() - text.len();
                    if let Some(end) = text.windows(2).position(|w| w == b"\r\n") {
                        let size = chunk_size(&text[..end])?;
                        self.inbox.drain(..skipped + end + 2);
                        self.framing = if size == 0 { Framing::Done } else { Framing::Chunks(size) };
                        continue;
                    }
                    if text.len() > 1024 {
                        return Err(HttpError::Nonsense("a chunk of its answer has no size"));
                    }
                }
                Framing::Chunks(left) if !self.inbox.is_empty() => {
                    let piece = self.take(left);
                    self.framing = Framing::Chunks(left - piece.len() as u64);
                    return Ok(Some(piece));
                }
                _ => {}
            }
            if !fill(&mut self.socket, &mut self.inbox, patience)? {
                return match self.framing {
                    Framing::Close => Ok(None),
                    _ => Err(HttpError::Nonsense("its answer broke off")),
                };
            }
        }
    }

    fn take(&mut self, at_most: u64) -> Vec<u8> {
        let n = usize::try_from(at_most).unwrap_or(usize::MAX).min(self.inbox.len());
        self.inbox.drain(..n).collect()
    }

    /// The whole body.
    pub(super) fn body(&mut self, patience: &mut Patience<'_>) -> Result<Vec<u8>, HttpError> {
        let mut body = Vec::new();
        while let Some(piece) = self.piece(patience)? {
            body.extend_from_slice(&piece);
            if body.len() > BODY_LIMIT {
                return Err(HttpError::Nonsense("its answer does not end"));
            }
        }
        Ok(body)
    }

    /// The connection itself, and what has already come through it.
    pub(super) fn into_stream(self) -> (Socket, Vec<u8>) {
        (self.socket, self.inbox)
    }
}

/// Reads what comes next; says whether anything will come any more.
fn fill(socket: &mut Socket, inbox: &mut Vec<u8>, patience: &mut Patience<'_>) -> Result<bool, HttpError> {
    let clock = Clock::start();
    loop {
        let mut buf = [0; 16 * 1024];
        match socket.read(&mut buf) {
            Ok(n) => {
                inbox.extend_from_slice(&buf[..n]);
                return Ok(n > 0);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) => return Err(e.into()),
        }
        if let Some(signal) = patience.cancelled.as_mut().and_then(|f| f()) {
            return Err(HttpError::CalledOff(signal));
        }
        let gone = clock.elapsed();
        let mut wait = patience.cancelled.is_some().then_some(LOOK);
        if let Some(limit) = patience.limit {
            let left = limit.checked_sub(gone).ok_or(HttpError::Late(limit))?;
            wait = Some(wait.map_or(left, |w| w.min(left)));
        }
        let wait = wait
            .map(|w| Timespec { tv_sec: w.as_secs().cast_signed(), tv_nsec: i64::from(w.subsec_nanos()) });
        let mut fds = [PollFd::new(socket, PollFlags::IN)];
        match poll(&mut fds, wait.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(HttpError::Io(e.into())),
        }
    }
}

type Head = (u16, Vec<(String, String)>, usize);

/// Status, headers and length of a head, once it is whole.
fn parse_head(bytes: &[u8]) -> Result<Option<Head>, HttpError> {
    let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else { return Ok(None) };
    let head = String::from_utf8_lossy(&bytes[..end]);
    let mut lines = head.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let mut words = first.split(' ');
    let status = match (words.next(), words.next().map(str::parse)) {
        (Some("HTTP/1.1" | "HTTP/1.0"), Some(Ok(status))) => status,
        _ => return Err(HttpError::Nonsense("no HTTP")),
    };
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    Ok(Some((status, headers, end + 4)))
}

fn chunk_size(line: &[u8]) -> Result<u64, HttpError> {
    let digits = line.split(|b| *b == b';').next().unwrap_or_default();
    let digits = std::str::from_utf8(digits).unwrap_or_default().trim();
    match u64::from_str_radix(digits, 16) {
        Ok(size) if !digits.starts_with('+') => Ok(size),
        _ => Err(HttpError::Nonsense("the size of a chunk of its answer is no number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a server that says this, in pieces of this size, is understood to say.
    fn answer(said: &[u8], pieces: usize) -> Result<(u16, Vec<u8>), HttpError> {
        let folder = tempfile::tempdir()?;
        let endpoint = Endpoint::Unix(folder.path().join("s"));
        let Endpoint::Unix(path) = &endpoint else { unreachable!() };
        let listener = std::os::unix::net::UnixListener::bind(path)?;
        let said = said.to_owned();
        let server = std::thread::spawn(move || -> io::Result<()> {
            let (mut conn, _) = listener.accept()?;
            let mut buf = [0; 1024];
            let _ = conn.read(&mut buf)?;
            for piece in said.chunks(pieces) {
                conn.write_all(piece)?;
            }
            Ok(())
        });
        let mut patience = Patience { limit: Some(Duration::from_secs(10)), cancelled: None };
        let result = Answer::to(&endpoint, &request("GET", "/", None, false), &mut patience)
            .and_then(|mut answer| Ok((answer.status, answer.body(&mut patience)?)));
        // It may have been cut off: what it met then is not the matter here.
        let _ = server.join();
        result
    }

    #[test]
    fn answers_are_read_however_they_are_cut() {
        let cases: [(&[u8], u16, &[u8]); 6] = [
            (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, b"hello"),
            (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
            (b"HTTP/1.0 200 OK\r\n\r\nto the end", 200, b"to the end"),
            (
                b"HTTP/1.1 201 C\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n1;x=y\r\nd\r\n0\r\n\r\n",
                201,
                b"abcd",
            ),
            (b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}", 404, b"{}"),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n", 200, b""),
        ];
        for (said, status, body) in cases {
            for pieces in [1, 3, 7, 1000] {
                let got = answer(said, pieces).expect("an answer");
                assert_eq!(got, (status, body.to_owned()));
            }
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let cases: [&[u8]; 8] = [
            b"",
            b"SSH-2.0-OpenSSH\r\n\r\n",
            b"HTTP/1.1 abc\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\nabc",
        ];
        for said in cases {
            assert!(answer(said, 4).is_err(), "{}", String::from_utf8_lossy(said));
        }
        let endless = [&b"HTTP/1.1 200 OK\r\n"[..], &vec![b'x'; HEAD_LIMIT * 2]].concat();
        assert!(answer(&endless, 8192).is_err());
    }
}
