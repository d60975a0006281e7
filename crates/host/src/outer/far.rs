//! A user's side that is elsewhere and is served on the session's own thread.
//!
//! Between a key and its echo every hand-over from one thread to another costs as much as everything else that is done
//! with it. Where the far side is a descriptor, the driver waits at it like at the program's terminal, and no other thread
//! has to wake; where it is not, there is [`Port`](super::Port).

use std::os::fd::BorrowedFd;

use bytes::Bytes;
use tapdeck_core::{Stream, WinSize};

use super::Typed;

/// Output that may wait for the far side before the program is made to wait.
const LIMIT: usize = 256 * 1024;

/// What came from the far side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FarInput {
    /// Bytes for the program.
    Bytes(Bytes),
    /// Nothing yet.
    Nothing,
    /// The terminal there has this size from here on.
    Resized(WinSize),
    /// A signal for whoever has the foreground.
    Signal(i32),
    /// No more input will come.
    End,
    /// Whoever was there has gone.
    Gone,
}

/// Somebody elsewhere, at the other end of a descriptor. Nothing here waits.
pub trait Far: Send {
    /// What tells that something has come, or that more can be sent.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Whether [`Far::read`] has something of which the descriptor no longer tells.
    fn has_more(&self) -> bool;

    /// What has come.
    fn read(&mut self) -> FarInput;

    /// Takes output to be sent; all of it, whatever its length. The driver asks for [`Far::backlog`] first.
    fn write(&mut self, stream: Stream, bytes: &Bytes);

    /// Sends what can be sent. That nobody is there any more is said by [`Far::read`].
    fn flush(&mut self);

    /// Bytes that could not be sent yet.
    fn backlog(&self) -> usize;

    /// Gives up on those.
    fn abandon(&mut self);

    /// Nobody is there any more, as the descriptor says.
    fn hang_up(&mut self);

    /// Sends something that means nothing. Behind input that is not taken, the end of a connection cannot be seen; but who
    /// is gone cannot be sent anything either, and that can.
    fn probe(&mut self);
}

/// The driver's end.
pub(super) struct FarSide {
    pub(super) far: Box<dyn Far>,
    pub(super) whose: super::Whose,
}

impl FarSide {
    pub(super) fn is_blocked(&self) -> bool {
        self.far.backlog() >= LIMIT
    }

    pub(super) fn read(&mut self) -> Typed {
        match self.far.read() {
            FarInput::Bytes(bytes) => Typed::Bytes(bytes),
            FarInput::Nothing => Typed::Nothing,
            FarInput::Resized(size) => Typed::Resized(size),
            FarInput::Signal(signal) => Typed::Signal(signal),
            FarInput::End => Typed::End,
            FarInput::Gone => self.gone(),
        }
    }

    /// The descriptor says that nobody is there any more.
    pub(super) fn lost(&mut self) -> Typed {
        self.far.hang_up();
        self.gone()
    }

    fn gone(&self) -> Typed {
        if self.whose.stays { Typed::Left } else { Typed::Gone }
    }
}
