//! Snapshots of the file system, and instructions: each is anchored behind everything that the
//! program had written when its notice arrived.

use std::io;
use std::sync::mpsc::Sender;

use tapdeck_core::{Event, Stamp};

use super::Driver;
use crate::backend::{Backend, Got};
use crate::inbox::{Anchor, SnapshotError};
use crate::user_side::UserSide;

/// What a terminal or two pipes can hold is less than this, so a program that never stops writing
/// cannot keep us: everything from before the notice has been read by then.
const DRAIN_BYTES: usize = 1 << 20;
/// Output that may wait for a user's terminal that takes none.
const BACKLOG_LIMIT: usize = 8 << 20;

/// A notice, with the way back.
pub(super) struct AnchorRequest {
    pub(super) event: Event,
    pub(super) reply: Sender<Result<Anchor, SnapshotError>>,
}

impl<B: Backend> Driver<B> {
    /// Anchors those that came together at one place: one look at the output does for all.
    pub(super) fn anchor(&mut self, requests: Vec<AnchorRequest>, now: Stamp) -> io::Result<()> {
        if requests.is_empty() {
            return Ok(());
        }
        let drained = self.drain_output(now)?;
        for AnchorRequest { event, reply } in requests {
            if drained {
                self.log.append_awaited(event, now, reply);
            } else {
                // A receiver that is gone no longer wants the answer.
                let _ = reply.send(Err(SnapshotError::HeldUp));
            }
        }
        Ok(())
    }

    /// Reads what the program has written so far, also while the user's terminal takes nothing;
    /// says whether that was possible. A read that finds nothing is proof: the kernel hands over
    /// what is on its way first.
    pub(super) fn drain_output(&mut self, now: Stamp) -> io::Result<bool> {
        let mut left = DRAIN_BYTES;
        while left > 0 {
            if self.user.as_ref().map_or(0, UserSide::backlog) > BACKLOG_LIMIT {
                return Ok(false);
            }
            match self.read_output(now)? {
                Got::Bytes(_, n) => left = left.saturating_sub(n),
                Got::Nothing | Got::Closed => break,
                // These cost nothing to read and cannot be without end.
                Got::Resized(_) | Got::Turn => {}
            }
        }
        Ok(true)
    }
}
