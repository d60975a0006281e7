//! The bytes of the stream, in and out.

use std::io::{self, IoSlice, Read, Write};

use quinn_proto::{ReadError, WriteError};

use super::{End, Flow, now};

impl Flow {
    /// Reads from the stream: `None` without bytes, and 0 at the end of the stream.
    fn take(&mut self, buf: &mut [u8]) -> io::Result<Option<usize>> {
        let Some(id) = self.stream else { return Ok(None) };
        let mut stream = self.connection.recv_stream(id);
        // A stream that was read to its end is gone.
        let Ok(mut chunks) = stream.read(true) else { return Ok(Some(0)) };
        let mut n = 0;
        let mut at_end = false;
        while n < buf.len() {
            match chunks.next(buf.len() - n) {
                Ok(Some(chunk)) => {
                    buf[n..n + chunk.bytes.len()].copy_from_slice(&chunk.bytes);
                    n += chunk.bytes.len();
                }
                // The last message of this wire says that it is the last, so the kind of end does
                // not matter.
                Ok(None) | Err(ReadError::Reset(_)) => {
                    at_end = true;
                    break;
                }
                Err(ReadError::Blocked) => {
                    self.unread = self.end.is_some();
                    break;
                }
            }
        }
        if chunks.finalize().should_transmit() {
            self.send(now())?;
        }
        Ok((n > 0 || at_end).then_some(n))
    }

    /// Writes as much as the stream takes.
    fn put(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        let Some(id) = self.stream.filter(|_| self.end.is_none()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let mut n = 0;
        for buf in bufs {
            match self.connection.send_stream(id).write(buf) {
                Ok(taken) => n += taken,
                Err(WriteError::Blocked) => break,
                Err(_) if n > 0 => break,
                Err(_) => return Err(io::ErrorKind::BrokenPipe.into()),
            }
        }
        Ok(n)
    }
}

impl Read for Flow {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.unread
            && let Some(n) = self.take(buf)?
        {
            return Ok(n);
        }
        self.tend()?;
        if self.unread
            && let Some(n) = self.take(buf)?
        {
            return Ok(n);
        }
        self.end.as_ref().map_or_else(|| Err(io::ErrorKind::WouldBlock.into()), End::verdict)
    }
}

impl Write for Flow {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(buf)])
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut n = self.put(bufs)?;
        if n == 0 {
            // Handling what the server has sent may make room.
            self.tend()?;
            n = self.put(bufs)?;
        }
        if n == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.send(now())?;
        Ok(n)
    }

    /// Bytes are sent when they are written, as far as the server allows; `Flow::tend` sends the
    /// rest.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
