//! Pauses of a session's recordings. What happens in one is in none of them; they go on with the
//! screen as it is then, which only the model knows.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use tapdeck_core::{Event, Stamp};
use tapdeck_term::Term;

use super::Driver;
use crate::backend::Backend;
use crate::inbox::NotRecorded;

/// A pause of the recordings.
pub(super) struct Pause {
    /// The terminal as it was when it began. A program on pipes has none to be drawn again.
    before: Option<Term>,
}

impl<B: Backend> Driver<B> {
    /// Pauses the recordings, or lets them go on; without a wish, whichever they do not do now.
    /// Returns whether they are paused then.
    pub(super) fn pause_recording(
        &mut self,
        wish: Option<bool>,
        by: Arc<str>,
        now: Stamp,
    ) -> io::Result<Result<bool, NotRecorded>> {
        let pause = wish.unwrap_or(self.pause.is_none());
        if pause == self.pause.is_some() {
            return Ok(Ok(pause));
        }
        if pause && !self.log.is_recording() {
            return Ok(Err(NotRecorded));
        }
        // What the program has written by now is still on this side of the change. If the user's
        // terminal holds it up, it is on the other side.
        self.drain_output(now)?;
        match self.pause.take() {
            None => {
                let before = self.backend.has_terminal().then(|| self.glass.copied());
                self.pause = Some(Pause { before });
                self.log.append(Event::RecordingPaused { by }, now);
                tracing::info!("recording paused");
            }
            Some(Pause { before }) => {
                let redraw = before.map(|before| self.glass.redraw_since(&before)).unwrap_or_default();
                let (redraw, undelivered) = (Bytes::from(redraw), self.gate.waiting());
                self.log.append(Event::RecordingResumed { by, size: self.size, redraw, undelivered }, now);
                tracing::info!("recording resumed");
            }
        }
        Ok(Ok(pause))
    }
}
