//! A user's side behind a descriptor, served on the session's own thread.
//!
//! Between a key and its echo every hand-over between threads costs as much as all other work.
//! Where the client is a descriptor, the driver waits at it as at the program's terminal, and no
//! other thread has to wake. Where it is not, there are [`UserQueues`](super::UserQueues).

use std::os::fd::BorrowedFd;

use bytes::Bytes;
use tapdeck_core::{Stream, WinSize};

use super::Typed;

/// Output that may wait for the client before the program is made to wait.
const LIMIT: usize = 256 * 1024;

/// What came from the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SocketInput {
    /// Bytes for the program.
    Bytes(Bytes),
    /// Nothing yet.
    Nothing,
    /// The terminal there has this size from here on.
    Resized(WinSize),
    /// A signal for the foreground process group.
    Signal(i32),
    /// No more input will come.
    End,
    /// The client is gone.
    Gone,
}

/// A client at the other end of a descriptor. No call may wait.
pub trait UserSocket: Send {
    /// What tells that something has come, or that more can be sent.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Whether [`UserSocket::read`] has something of which the descriptor no longer tells.
    fn has_more(&self) -> bool;

    /// What has come.
    fn read(&mut self) -> SocketInput;

    /// Takes output to be sent; all of it, whatever its length. The driver asks for
    /// [`UserSocket::backlog`] first.
    fn write(&mut self, stream: Stream, bytes: &Bytes);

    /// Sends what can be sent. [`UserSocket::read`] tells when the client is gone.
    fn flush(&mut self);

    /// Bytes that could not be sent yet.
    fn backlog(&self) -> usize;

    /// Drops the bytes that could not be sent yet.
    fn abandon(&mut self);

    /// The descriptor has told that the client is gone.
    fn hang_up(&mut self);

    /// Sends a message without meaning. Behind input that is not taken, the end of a connection
    /// does not show; but sending to a client that is gone fails, and that does.
    fn probe(&mut self);
}

/// The driver's end.
pub struct SocketSide {
    pub(super) socket: Box<dyn UserSocket>,
    pub(super) profile: super::UserProfile,
}

crate::opaque::opaque_debug!(SocketSide);

impl SocketSide {
    pub(super) fn is_blocked(&self) -> bool {
        self.socket.backlog() >= LIMIT
    }

    pub(super) fn read(&mut self) -> Typed {
        match self.socket.read() {
            SocketInput::Bytes(bytes) => Typed::Bytes(bytes),
            SocketInput::Nothing => Typed::Nothing,
            SocketInput::Resized(size) => Typed::Resized(size),
            SocketInput::Signal(signal) => Typed::Signal(signal),
            SocketInput::End => Typed::End,
            SocketInput::Gone => self.gone(),
        }
    }

    /// The descriptor has told that the client is gone.
    pub(super) fn lost(&mut self) -> Typed {
        self.socket.hang_up();
        self.gone()
    }

    fn gone(&self) -> Typed {
        if self.profile.stays { Typed::Left } else { Typed::Gone }
    }
}
