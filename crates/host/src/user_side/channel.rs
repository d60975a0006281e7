//! The user's side of the bytes: standard input and output without waiting on either.
//!
//! The descriptors may be shared with the shell and with siblings, so they are not made
//! non-blocking in place: that would outlive this process. They are opened anew instead, where the
//! system can, and otherwise changed and put back.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use bytes::Bytes;
use rustix::fs::{FileType, Mode, OFlags, fcntl_getfl, fcntl_setfl, fstat, open};
use rustix::io::Errno;

/// A descriptor that can be used without waiting.
pub(crate) struct Channel {
    fd: OwnedFd,
    /// Flags to put back on a description that is shared.
    put_back: Option<OFlags>,
}

impl Channel {
    pub(crate) fn open(fd: BorrowedFd<'_>, mode: OFlags) -> io::Result<Self> {
        let kind = FileType::from_raw_mode(fstat(fd)?.st_mode);
        let can_reopen = matches!(kind, FileType::CharacterDevice | FileType::Fifo);
        if can_reopen {
            let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
            let flags = mode | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
            if let Ok(fd) = open(path, flags, Mode::empty()) {
                return Ok(Self { fd, put_back: None });
            }
        }
        let own = fd.try_clone_to_owned()?;
        // Regular files never make a writer wait long, and have no readiness to ask for.
        let flags = fcntl_getfl(&own)?;
        let put_back = (kind != FileType::RegularFile && !flags.contains(OFlags::NONBLOCK)).then_some(flags);
        if put_back.is_some() {
            fcntl_setfl(&own, flags | OFlags::NONBLOCK)?;
        }
        Ok(Self { fd: own, put_back })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        if let Some(flags) = self.put_back {
            // The descriptor was set like this before.
            let _ = fcntl_setfl(&self.fd, flags);
        }
    }
}

/// Where output goes, with what it has not taken yet.
pub struct Sink {
    channel: Channel,
    pending: VecDeque<Bytes>,
}

crate::opaque::opaque_debug!(Sink);

impl Sink {
    pub(crate) fn new(channel: Channel) -> Self {
        Self { channel, pending: VecDeque::new() }
    }

    /// This process's standard output, without waiting.
    pub fn stdout() -> io::Result<Self> {
        Ok(Self::new(Channel::open(rustix::stdio::stdout(), OFlags::WRONLY)?))
    }

    /// Writable means: [`Sink::flush`] can write more.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.channel.fd()
    }

    /// Whether earlier bytes still wait.
    pub fn is_blocked(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Bytes that wait.
    pub(crate) fn backlog(&self) -> usize {
        self.pending.iter().map(Bytes::len).sum()
    }

    /// Writes what can be taken now and keeps the rest, behind what waits already. A caller that
    /// writes while something waits keeps the backlog bounded.
    pub fn write(&mut self, bytes: &Bytes) -> io::Result<()> {
        let n = if self.is_blocked() { 0 } else { self.write_some(bytes)? };
        if n < bytes.len() {
            self.pending.push_back(bytes.slice(n..));
        }
        Ok(())
    }

    /// Tries again with what waits.
    pub fn flush(&mut self) -> io::Result<()> {
        while let Some(mut front) = self.pending.pop_front() {
            let n = self.write_some(&front)?;
            if n < front.len() {
                // What was written is dropped.
                let _ = front.split_to(n);
                self.pending.push_front(front);
                break;
            }
        }
        Ok(())
    }

    /// Gives up on what waits.
    pub(crate) fn abandon(&mut self) {
        self.pending.clear();
    }

    fn write_some(&self, mut bytes: &[u8]) -> io::Result<usize> {
        let all = bytes.len();
        while !bytes.is_empty() {
            match rustix::io::write(&self.channel.fd, bytes) {
                Ok(0) => break,
                Ok(n) => bytes = &bytes[n..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(e) => return Err(e.into()),
            }
        }
        Ok(all - bytes.len())
    }
}
