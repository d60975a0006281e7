//! The engine behind TLS, with the certificates of the user's docker client.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// How long the engine may take to say who it is.
const GREETING: Duration = Duration::from_secs(10);

/// Where docker keeps who signed the engine's certificate (`ca.pem`), and who the user is
/// (`cert.pem`, `key.pem`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Certificates(pub(super) PathBuf);

impl Certificates {
    fn config(&self) -> io::Result<ClientConfig> {
        let at = |name: &str| self.0.join(name);
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&at("ca.pem"))? {
            roots.add(certificate).map_err(|e| unusable(&at("ca.pem"), e))?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots);
        // An engine may let every client in.
        if !at("cert.pem").exists() && !at("key.pem").exists() {
            return Ok(builder.with_no_client_auth());
        }
        let own = certificates(&at("cert.pem"))?;
        let key = PrivateKeyDer::from_pem_file(at("key.pem")).map_err(|e| unusable(&at("key.pem"), e))?;
        builder.with_client_auth_cert(own, key).map_err(|e| unusable(&at("key.pem"), e))
    }
}

fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let all = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let all: Vec<_> = all.map_err(|e| unusable(path, e))?;
    if all.is_empty() { Err(unusable(path, "there is no certificate in it")) } else { Ok(all) }
}

fn unusable(path: &Path, why: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("{}: {why}", path.display()))
}

/// An encrypted connection.
pub(super) struct Secure {
    stream: Box<StreamOwned<ClientConnection, TcpStream>>,
    /// The last read may have left something that has come already.
    left: bool,
    /// The other side takes nothing any more.
    broken: bool,
}

impl Secure {
    /// Finds out whether this is the engine, within a limit.
    pub(super) fn greet(socket: TcpStream, address: &str, certificates: &Certificates) -> io::Result<Self> {
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let mut connection =
            ClientConnection::new(Arc::new(certificates.config()?), name).map_err(io::Error::other)?;
        socket.set_read_timeout(Some(GREETING))?;
        socket.set_write_timeout(Some(GREETING))?;
        let mut socket = socket;
        while connection.is_handshaking() {
            connection.complete_io(&mut socket).map_err(|e| match e.kind() {
                io::ErrorKind::WouldBlock => io::Error::other("it does not say who it is"),
                _ => e,
            })?;
        }
        Ok(Self { stream: Box::new(StreamOwned::new(connection, socket)), left: false, broken: false })
    }

    pub(super) fn set_nonblocking(&self) -> io::Result<()> {
        self.stream.sock.set_nonblocking(true)
    }

    /// Says that nothing more will be sent; what comes can still be read.
    pub(super) fn end_sending(&mut self) -> io::Result<()> {
        self.stream.conn.send_close_notify();
        self.flush()
    }

    /// Whether something that was taken has not been sent.
    pub(super) fn unsent(&self) -> bool {
        !self.broken && self.stream.conn.wants_write()
    }

    /// Whether something that has come may not have been read, although the system has nothing more
    /// to give.
    pub(super) fn left(&self) -> bool {
        self.left
    }
}

impl AsFd for Secure {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.sock.as_fd()
    }
}

impl Read for Secure {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = match self.stream.read(buf) {
            // It is for the sender's HTTP to say whether that was all.
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
            other => other,
        };
        self.left = matches!(read, Ok(n) if n > 0);
        read
    }
}

impl Write for Secure {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.stream.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.unsent() {
            match self.stream.conn.write_tls(&mut self.stream.sock) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    self.broken = true;
                    return Err(e);
                }
            }
        }
        Ok(())
    }
}
