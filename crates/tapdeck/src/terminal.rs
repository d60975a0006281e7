//! What can be done with a session, wherever it runs.

use std::time::Duration;

use crate::{Cond, Result, Screen, Session, Updates};

/// A terminal session to drive and to watch: one of this process ([`Session`]) or of another
/// (`Remote`).
pub trait Terminal {
    /// Types text; line ends are the Enter key.
    ///
    /// # Errors
    /// When the program has ended, or another party holds the stick.
    fn type_text(&self, text: &str) -> Result<()>;

    /// Types text and presses Enter.
    ///
    /// # Errors
    /// As [`Terminal::type_text`].
    fn type_line(&self, text: &str) -> Result<()> {
        self.type_text(&format!("{text}\n"))
    }

    /// Presses a key by its name.
    ///
    /// # Errors
    /// As [`Terminal::type_text`]; also when there is no such key.
    fn press(&self, key: &str) -> Result<()>;

    /// Pastes text, bracketed where the program asked for it.
    ///
    /// # Errors
    /// As [`Terminal::type_text`].
    fn paste(&self, text: &str) -> Result<()>;

    /// Sets the terminal's size.
    ///
    /// # Errors
    /// When the session is over or refuses.
    fn resize(&self, cols: u16, rows: u16) -> Result<()>;

    /// Sends a signal to the terminal's foreground process group.
    ///
    /// # Errors
    /// When there is no such signal, or the session refuses.
    fn signal(&self, name: &str) -> Result<()>;

    /// The screen as it is now.
    ///
    /// # Errors
    /// When the session does not answer.
    fn screen(&self) -> Result<Screen>;

    /// Waits until the condition holds, and returns the screen of that moment.
    ///
    /// # Errors
    /// When the time has passed, or the program ended before.
    fn wait_for(&self, cond: Cond, within: Duration) -> Result<Screen>;

    /// What happens in the session from now on.
    ///
    /// # Errors
    /// When the session does not answer.
    fn subscribe(&self) -> Result<Updates>;
}

macro_rules! same_as_inherent {
    ($type:ident, $screen:expr, $subscribe:expr) => {
        impl Terminal for $type {
            fn type_text(&self, text: &str) -> Result<()> {
                $type::type_text(self, text)
            }
            fn press(&self, key: &str) -> Result<()> {
                $type::press(self, key)
            }
            fn paste(&self, text: &str) -> Result<()> {
                $type::paste(self, text)
            }
            fn resize(&self, cols: u16, rows: u16) -> Result<()> {
                $type::resize(self, cols, rows)
            }
            fn signal(&self, name: &str) -> Result<()> {
                $type::signal(self, name)
            }
            fn screen(&self) -> Result<Screen> {
                $screen(self)
            }
            fn wait_for(&self, cond: Cond, within: Duration) -> Result<Screen> {
                $type::wait_for(self, cond, within)
            }
            fn subscribe(&self) -> Result<Updates> {
                $subscribe(self)
            }
        }
    };
}

same_as_inherent!(Session, |s: &Session| Ok(s.screen()), |s: &Session| Ok(s.subscribe()));
#[cfg(feature = "live")]
use crate::Remote;
#[cfg(feature = "live")]
same_as_inherent!(Remote, Remote::screen, Remote::subscribe);
