//! The user's own keys in a foreground session, and what is shown because of them. A notice is
//! written over one row of the user's terminal while output rests, and is painted away before the
//! next byte of the program passes. So the program's bytes find the screen that they expect.

use std::fmt;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use tapdeck_core::{Event, Stamp, Stream, Time};

use super::{Driver, LOCAL};
use crate::backend::Backend;
use crate::user_keys::{KeyAction, UserKeys};
use crate::user_side::UserSide;

/// How long output must rest before a notice is shown.
const REST: Duration = Duration::from_millis(20);
/// How long a notice stays that tells what has happened.
const STAYS: Duration = Duration::from_secs(2);

/// The user's own keys.
pub(super) struct OwnKeys {
    keys: Box<dyn UserKeys>,
    notice: Option<Notice>,
}

impl fmt::Debug for OwnKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnKeys").field("notice", &self.notice).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Notice {
    text: String,
    /// It goes by itself.
    passes: bool,
    /// When it is to be shown, and when to go, from the time it was first shown.
    show_at: Time,
    until: Option<Time>,
    /// The row that it covers.
    row: Option<u16>,
}

impl OwnKeys {
    pub(super) fn new(keys: Box<dyn UserKeys>) -> Self {
        Self { keys, notice: None }
    }

    /// When [`Driver::serve_notice`] has something to do.
    pub(super) fn due(&self) -> Option<Time> {
        let notice = self.notice.as_ref()?;
        let goes = notice.until.filter(|_| notice.passes);
        let shows = notice.row.is_none().then_some(notice.show_at);
        goes.into_iter().chain(shows).min()
    }
}

impl<B: Backend> Driver<B> {
    /// Takes what was typed where the user has keys of their own.
    pub(super) fn take_keys(&mut self, typed: &[u8], now: Stamp) -> io::Result<()> {
        let Some(own) = &mut self.own_keys else { return Ok(()) };
        for action in own.keys.read(typed) {
            match action {
                KeyAction::Pass(bytes) => self.take_bytes(bytes, now)?,
                KeyAction::Mark(_) if !self.log.is_recording() => {
                    self.notify("the session is not being recorded".into(), true, now);
                }
                KeyAction::Mark(label) => {
                    self.log.append(Event::Marker { label: label.into(), by: LOCAL.into() }, now);
                    self.notify("marked".into(), true, now);
                }
                KeyAction::Pause => {
                    let told = match self.pause_recording(None, LOCAL.into(), now)? {
                        Ok(true) => "the recording is paused".to_owned(),
                        Ok(false) => "the recording goes on".to_owned(),
                        Err(e) => e.to_string(),
                    };
                    self.notify(told, true, now);
                }
                KeyAction::Show(text) => self.notify(text, false, now),
                KeyAction::Tell(text) => self.notify(text, true, now),
                KeyAction::Hide => self.forget_notice(),
            }
        }
        Ok(())
    }

    fn notify(&mut self, text: String, passes: bool, now: Stamp) {
        self.forget_notice();
        let show_at = (self.last_output + REST).max(now.mono);
        if let Some(own) = &mut self.own_keys {
            own.notice = Some(Notice { text, passes, show_at, until: None, row: None });
        }
    }

    /// Shows the notice, or lets it go, when it is time.
    pub(super) fn serve_notice(&mut self, now: Stamp) {
        let Some(notice) = self.own_keys.as_ref().and_then(|own| own.notice.as_ref()) else { return };
        if notice.passes && notice.until.is_some_and(|until| now.mono >= until) {
            return self.forget_notice();
        }
        if notice.row.is_some() || now.mono < notice.show_at {
            return;
        }
        let rests = now.mono >= self.last_output + REST;
        let free = self.user.as_ref().is_some_and(|user| user.shows_on_terminal() && !user.is_blocked());
        // A session of another size is not what this terminal shows.
        let shown = match rests && free && !self.withholds() && self.size == self.own_size {
            true => self.glass.covered(&notice.text),
            false => None,
        };
        let Some(notice) = self.own_keys.as_mut().and_then(|own| own.notice.as_mut()) else { return };
        match shown {
            Some((row, bytes)) => {
                notice.row = Some(row);
                notice.until.get_or_insert(now.mono + STAYS);
                self.serve_user(|user| user.write(Stream::Out, &Bytes::from(bytes)));
            }
            None => notice.show_at = now.mono + REST,
        }
    }

    fn forget_notice(&mut self) {
        self.uncover();
        if let Some(own) = &mut self.own_keys {
            own.notice = None;
        }
    }

    /// Brings back the row that a notice covers, before anything else is written to the user's
    /// terminal. A notice that is still to be read is shown again later.
    pub(super) fn uncover(&mut self) {
        let notice = self.own_keys.as_mut().and_then(|own| own.notice.as_mut());
        let Some(row) = notice.and_then(|notice| notice.row.take()) else { return };
        let bytes = Bytes::from(self.glass.uncovered(row));
        if self.user.as_ref().is_some_and(UserSide::shows_on_terminal) {
            self.serve_user(|user| user.write(Stream::Out, &bytes));
        }
    }
}
