//! A program that a server runs, as a backend: sessions use it like a local program.

use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::time::Duration;

use bytes::Bytes;
use tapdeck_core::{Exit, Stamp, Stream, Time, WinSize};
use tapdeck_host::backend::{Backend, EndOfInput, Got, StopSignal, Watch};
use tapdeck_host::signals;
use tapdeck_proto::tty::{ClientControl, Control, ServerControl};

use super::{ClientError, credentials, handshake};
use crate::conn::Conn;
use crate::live::Queue;
use crate::wire::{self, ChunkKind, Decoder, Negotiation, Piece};

/// Bytes that are read at a time.
const READ: usize = 128 * 1024;
/// Bytes that may wait to be sent before the driver has to wait.
const UNSENT: usize = 64 * 1024;
/// How long the server may take to start the program.
const OPEN: Duration = Duration::from_secs(60);

/// A program that a server runs.
pub struct RemoteProgram {
    conn: Conn,
    queue: Queue,
    decoder: Decoder,
    /// Bytes are read into this.
    buf: Box<[u8]>,
    /// Output that was read and found no room.
    held: Option<(Stream, Bytes)>,
    /// Whether there may be more to read that polling does not report.
    more: bool,
    terminal: bool,
    exit: Option<Exit>,
    /// The last error that the server reported.
    complaint: Option<String>,
}

impl std::fmt::Debug for RemoteProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteProgram")
            .field("terminal", &self.terminal)
            .field("exit", &self.exit)
            .finish_non_exhaustive()
    }
}

impl RemoteProgram {
    /// Has a server start the program. Returns the session's id there, too.
    ///
    /// # Errors
    /// When the server refuses, or does not answer in time.
    pub fn open(mut conn: Conn, negotiation: &Negotiation) -> Result<(Self, String), ClientError> {
        let (token, proof) = credentials(&conn, negotiation.token.as_deref())?;
        let request = Negotiation { token, proof, ..negotiation.clone() };
        let (opened, rest) = handshake(&mut conn, &request, OPEN)?;
        let session = match opened.read() {
            Some(ServerControl::Opened { session }) => session,
            _ => String::new(),
        };
        let mut decoder = Decoder::default();
        decoder.buffer().extend_from_slice(&rest);
        let this = Self {
            conn,
            queue: Queue::default(),
            more: !rest.is_empty(),
            decoder,
            buf: vec![0; READ].into(),
            held: None,
            terminal: negotiation.tty.is_some(),
            exit: None,
            complaint: None,
        };
        Ok((this, session))
    }

    fn control(&mut self, message: &ClientControl) -> io::Result<()> {
        self.queue.push(wire::control(message));
        self.send()
    }

    /// Sends what is queued, as far as the server takes it.
    fn send(&mut self) -> io::Result<()> {
        match self.queue.flush(&mut self.conn) {
            // The program's exit may still have to be read.
            Err(e) if matches!(e.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {
                self.queue = Queue::default();
                Ok(())
            }
            other => other,
        }
    }

    fn told(&mut self, control: &Control) {
        // A message of the wrong form is ignored, like one of a newer server.
        match control.read() {
            Some(ServerControl::Exit { code, signal }) => {
                let signal = signal.as_deref().and_then(signals::number).map(Exit::Signal);
                self.exit = Some(signal.unwrap_or(Exit::Code(code)));
            }
            Some(ServerControl::Error { message, .. }) => self.complaint = Some(message),
            _ => {}
        }
    }

    /// Reads from the connection. Returns whether something came.
    fn fill(&mut self) -> io::Result<bool> {
        match self.conn.read(&mut self.buf) {
            Ok(0) => Err(self.lost()),
            Ok(n) => {
                self.decoder.buffer().extend_from_slice(&self.buf[..n]);
                Ok(true)
            }
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(false),
            Err(e) if e.kind() == io::ErrorKind::ConnectionReset => Err(self.lost()),
            Err(e) => Err(e),
        }
    }

    fn lost(&self) -> io::Error {
        let why = self.complaint.as_deref().unwrap_or("the other side has ended the connection");
        io::Error::new(io::ErrorKind::ConnectionAborted, why)
    }
}

impl Backend for RemoteProgram {
    fn watch(&self) -> Watch<'_> {
        let fd = self.exit.is_none().then(|| self.conn.as_fd());
        Watch {
            readable: [fd, None],
            // A connection that this process keeps up does not signal room; it is tried every turn.
            writable: fd.filter(|_| !self.conn.lives_here()),
            upkeep: fd.filter(|_| self.conn.lives_here()),
            exit: None,
            read_at: (self.more || self.conn.has_more()).then_some(Time::ZERO),
            unsent: !self.queue.is_empty() || self.conn.has_unsent(),
        }
    }

    fn read(&mut self, buf: &mut [u8], _now: Stamp) -> io::Result<Got> {
        let mut filled: Option<(Stream, usize)> = None;
        self.more = false;
        loop {
            if let Some((stream, mut bytes)) = self.held.take() {
                let at = match filled {
                    Some((other, _)) if other != stream => {
                        self.held = Some((stream, bytes));
                        self.more = true;
                        break;
                    }
                    Some((_, at)) => at,
                    None => 0,
                };
                let n = bytes.len().min(buf.len() - at);
                buf[at..at + n].copy_from_slice(&bytes.split_to(n));
                filled = Some((stream, at + n));
                if !bytes.is_empty() {
                    self.held = Some((stream, bytes));
                }
                if at + n == buf.len() {
                    self.more = true;
                    break;
                }
            }
            let nonsense = |e: wire::WireError| io::Error::new(io::ErrorKind::InvalidData, e);
            match self.decoder.next().map_err(nonsense)? {
                Some(Piece::Bytes(ChunkKind::Stdout, bytes)) => self.held = Some((Stream::Out, bytes)),
                Some(Piece::Bytes(ChunkKind::Stderr, bytes)) => self.held = Some((Stream::Err, bytes)),
                Some(Piece::Bytes(..)) => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "input came back from the other side",
                    ));
                }
                Some(Piece::Control(control)) => self.told(&control),
                None if filled.is_some() || self.exit.is_some() => break,
                None if self.fill()? => {}
                None => break,
            }
        }
        if self.conn.lives_here() && !self.queue.is_empty() && self.exit.is_none() {
            // What was read may have made room.
            self.send()?;
        }
        Ok(match filled {
            Some((stream, n)) => Got::Bytes(stream, n),
            None if self.exit.is_some() => Got::Closed,
            None => Got::Nothing,
        })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.exit.is_some() {
            return Ok(bytes.len());
        }
        if self.queue.len() >= UNSENT {
            self.send()?;
        }
        if self.queue.len() >= UNSENT {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let piece = &bytes[..bytes.len().min(UNSENT)];
        self.queue.push(wire::chunk_head(ChunkKind::Stdin, piece.len()).to_vec());
        self.queue.push(piece.to_vec());
        self.send()?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.conn.tend()?;
        self.send()
    }

    fn end_input(&mut self, _line_open: bool, _quiet: Duration) -> io::Result<EndOfInput> {
        self.control(&ClientControl::Eof)?;
        Ok(EndOfInput::Told)
    }

    fn resize(&mut self, size: WinSize) -> io::Result<()> {
        let size = wire::wire_size(size);
        self.control(&ClientControl::Resize {
            cols: size.cols.into(),
            rows: size.rows.into(),
            pixel_width: size.pixel_width.into(),
            pixel_height: size.pixel_height.into(),
        })
    }

    fn signal(&mut self, signal: i32) -> io::Result<()> {
        match signals::name(signal) {
            Some(name) => self.control(&ClientControl::Signal { name: name.to_owned() }),
            None => Err(io::Error::new(io::ErrorKind::InvalidInput, "a signal without a name")),
        }
    }

    fn stop(&mut self, how: StopSignal) -> io::Result<()> {
        match how {
            StopSignal::Terminate => self.signal(how.signal()),
            // The server ends the program when its client is gone.
            StopSignal::HangUp | StopSignal::Kill => {
                self.conn.shutdown(Shutdown::Both);
                self.exit.get_or_insert(Exit::Signal(how.signal()));
                Ok(())
            }
        }
    }

    fn freeze(&mut self, _frozen: bool) -> io::Result<()> {
        // The program stops by itself when its output is not read.
        Ok(())
    }

    fn exited(&mut self) -> io::Result<Option<Exit>> {
        Ok(self.exit)
    }

    fn has_terminal(&self) -> bool {
        self.terminal
    }
}
