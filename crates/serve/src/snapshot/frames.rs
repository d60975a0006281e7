//! Frames on a connection, with every wait bounded.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::time::Duration;

use tapdeck_host::Clock;

use crate::conn::Conn;

use tapdeck_proto::snapshot::{WireError, frame_len};

/// What came instead of a frame.
#[derive(Debug)]
pub(super) enum NoFrame {
    /// The other side has ended, between two frames.
    End,
    /// It has ended within one.
    Half,
    /// It took too long, before the first byte of a frame or within it.
    Late {
        begun: bool,
    },
    /// It announced a frame that cannot be.
    Wire(WireError),
    Io(io::Error),
}

impl Conn {
    fn read_within(&mut self, buf: &mut [u8], left: Duration) -> io::Result<usize> {
        // Zero would mean for ever.
        let left = Some(left.max(Duration::from_millis(1)));
        match self {
            Conn::Unix(s) => s.set_read_timeout(left).and_then(|()| s.read(buf)),
            Conn::Tcp(s) => s.set_read_timeout(left).and_then(|()| s.read(buf)),
            // The snapshot protocol is not spoken there.
            #[cfg(feature = "net")]
            Conn::Sealed(_) | Conn::Flow(_) => Err(io::ErrorKind::Unsupported.into()),
            #[cfg(feature = "net")]
            Conn::Bridge(b) => b.stream.set_read_timeout(left).and_then(|()| b.stream.read(buf)),
        }
    }

    fn write_within(&mut self, bytes: &[u8], left: Duration) -> io::Result<usize> {
        let left = Some(left.max(Duration::from_millis(1)));
        match self {
            Conn::Unix(s) => s.set_write_timeout(left).and_then(|()| s.write(bytes)),
            Conn::Tcp(s) => s.set_write_timeout(left).and_then(|()| s.write(bytes)),
            // The snapshot protocol is not spoken there.
            #[cfg(feature = "net")]
            Conn::Sealed(_) | Conn::Flow(_) => Err(io::ErrorKind::Unsupported.into()),
            #[cfg(feature = "net")]
            Conn::Bridge(b) => b.stream.set_write_timeout(left).and_then(|()| b.stream.write(bytes)),
        }
    }

    /// Reads one frame's bytes: it may take `idle` to begin, and `within` from then on. A client
    /// that sends single bytes gets no more time than any other.
    pub(super) fn read_frame(&mut self, idle: Duration, within: Duration) -> Result<Vec<u8>, NoFrame> {
        let mut head = [0; 4];
        let first = self.read_some(&mut head, Timer::start(idle), false)?;
        let timer = Timer::start(within);
        if first == 0 {
            return Err(NoFrame::End);
        }
        self.fill(&mut head[first..], timer)?;
        // Nothing is allocated for a frame that cannot be.
        let mut body = vec![0; frame_len(head).map_err(NoFrame::Wire)?];
        self.fill(&mut body, timer)?;
        Ok(body)
    }

    fn fill(&mut self, mut buf: &mut [u8], timer: Timer) -> Result<(), NoFrame> {
        while !buf.is_empty() {
            match self.read_some(buf, timer, true)? {
                0 => return Err(NoFrame::Half),
                n => buf = &mut buf[n..],
            }
        }
        Ok(())
    }

    fn read_some(&mut self, buf: &mut [u8], timer: Timer, begun: bool) -> Result<usize, NoFrame> {
        loop {
            let left = timer.left().ok_or(NoFrame::Late { begun })?;
            match self.read_within(buf, left) {
                Ok(n) => return Ok(n),
                Err(e) if is_passing(&e) => {}
                Err(e) => return Err(NoFrame::Io(e)),
            }
        }
    }

    /// Writes a whole frame, or fails after this long.
    pub(super) fn write_frame(&mut self, mut frame: &[u8], within: Duration) -> io::Result<()> {
        let timer = Timer::start(within);
        while !frame.is_empty() {
            let left = timer.left().ok_or(io::ErrorKind::TimedOut)?;
            match self.write_within(frame, left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => frame = &frame[n..],
                Err(e) if is_passing(&e) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Ends the connection so that the last answer arrives: closing with unread bytes resets it,
    /// and a reset may overtake the answer.
    pub(super) fn linger(&mut self, within: Duration) {
        self.shutdown(Shutdown::Write);
        let timer = Timer::start(within);
        let mut sink = [0; 4096];
        for _ in 0..64 {
            if !matches!(self.read_some(&mut sink, timer, true), Ok(n) if n > 0) {
                break;
            }
        }
    }
}

fn is_passing(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// A stretch of time.
#[derive(Clone, Copy)]
struct Timer {
    clock: Clock,
    length: Duration,
}

impl Timer {
    fn start(length: Duration) -> Self {
        Self { clock: Clock::start(), length }
    }

    /// What is left of it, if anything.
    fn left(self) -> Option<Duration> {
        let spent = self.clock.elapsed();
        self.length.checked_sub(spent).filter(|left| !left.is_zero())
    }
}
