//! TLS over a non-blocking socket: after the handshake, a session needs no runtime.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use rustls::Connection;

use super::proof::{Carries, Channel};

/// Bytes that may wait to be sent before a writer has to wait.
const UNSENT: usize = 64 * 1024;

/// A connection after its handshake.
#[derive(Debug)]
pub struct Sealed {
    pub(crate) tcp: TcpStream,
    tls: Connection,
    /// Decrypted bytes that were not read yet.
    unread: usize,
}

impl Sealed {
    pub(super) fn new(tcp: TcpStream, tls: impl Into<Connection>) -> io::Result<Self> {
        tcp.set_nonblocking(true)?;
        let mut tls = tls.into();
        tls.set_buffer_limit(Some(UNSENT));
        let unread = tls.process_new_packets().map_err(nonsense)?.plaintext_bytes_to_read();
        Ok(Self { tcp, tls, unread })
    }

    /// Returns what the connection can carry of a token.
    pub(crate) fn carries(&self) -> Carries {
        let channel = match &self.tls {
            Connection::Client(tls) => Channel::of_tls(tls),
            Connection::Server(tls) => Channel::of_tls(tls),
        };
        Carries::over(channel, self.tls.alpn_protocol())
    }

    /// Returns whether there is something to read that the socket does not report.
    pub(crate) fn has_more(&self) -> bool {
        self.unread > 0
    }

    /// Returns whether something was written that is not sent yet.
    pub(crate) fn has_unsent(&self) -> bool {
        self.tls.wants_write()
    }

    /// Announces the end of the stream.
    pub(crate) fn say_goodbye(&mut self) {
        self.tls.send_close_notify();
        // The peer may be gone already.
        let _ = self.flush();
    }
}

fn nonsense(e: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, e)
}

impl Read for Sealed {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.tls.reader().read(buf) {
                Ok(n) => {
                    self.unread = self.unread.saturating_sub(n);
                    return Ok(n);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => self.unread = 0,
                // The peer is gone without a close: the last message of this wire says that it is
                // the last.
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                Err(e) => return Err(e),
            }
            self.tls.read_tls(&mut self.tcp)?;
            let state = self.tls.process_new_packets();
            if self.tls.wants_write() {
                // Sends what the protocol answers: an acknowledgement or an alert.
                let _ = self.flush();
            }
            self.unread = state.map_err(nonsense)?.plaintext_bytes_to_read();
        }
    }
}

impl Write for Sealed {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[io::IoSlice::new(buf)])
    }

    fn write_vectored(&mut self, bufs: &[io::IoSlice<'_>]) -> io::Result<usize> {
        let mut n = self.tls.writer().write_vectored(bufs)?;
        match self.flush() {
            Ok(()) if n == 0 => n = self.tls.writer().write_vectored(bufs)?,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock && n > 0 => {}
            other => other?,
        }
        Ok(n)
    }

    /// Sends what was written, as far as the socket takes it; `WouldBlock` if some is left.
    fn flush(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.tcp) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}
