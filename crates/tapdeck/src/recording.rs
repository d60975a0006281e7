//! A recording on disk.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tapdeck_host::{Goal, Player};
use tapdeck_tape::{Event, EventReader, Item};
use tapdeck_term::{Settings, Term};

use crate::convert::{self, Conversion, ConvertError, Health, Repaired, To};
use crate::{Result, Screen};

/// A recording of any format that can be read, at a moment of it.
///
/// ```no_run
/// use tapdeck::Recording;
///
/// # fn main() -> tapdeck::Result<()> {
/// let mut tape = Recording::open("demo.ahr")?;
/// tape.seek(tape.duration()? / 2)?;
/// println!("{}", tape.screen());
/// # Ok(())
/// # }
/// ```
pub struct Recording {
    path: PathBuf,
    player: Player,
    length: Duration,
}

impl Recording {
    /// Opens a recording and stands at its start. Its format is found by its content.
    ///
    /// # Errors
    /// When it cannot be read, or is no recording.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mut player = Player::open(path, Settings::default())?;
        let length = player.known_end().since_start();
        Ok(Self { path: path.to_owned(), player, length })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Goes to a moment, counted from the start.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn seek(&mut self, to: Duration) -> Result<()> {
        Ok(self.player.seek(Goal::Time(to.into()))?)
    }

    /// How long the recording lasts.
    ///
    /// # Errors
    /// None yet; a recording that is still written may need to be read again.
    pub fn duration(&self) -> Result<Duration> {
        Ok(self.length)
    }

    /// The screen at this moment.
    pub fn screen(&self) -> Screen {
        Screen::of(self.player.term())
    }

    /// All events from the start, whatever the moment is. What cannot be read in between is passed
    /// over.
    ///
    /// # Errors
    /// When the recording cannot be opened again.
    pub fn events(&self) -> Result<Events> {
        Ok(Events(self.player.source().open()?))
    }

    /// Looks through the whole recording for damage.
    ///
    /// # Errors
    /// When it cannot be read at all.
    pub fn verify(&self) -> Result<Health> {
        Ok(convert::check(self.player.source())?)
    }

    /// Writes a clean copy of a damaged recording; only of an `.ahr`.
    ///
    /// # Errors
    /// When it is of another format, or the copy exists or cannot be written.
    pub fn repair_to(&self, path: impl AsRef<Path>) -> Result<Repaired> {
        Ok(convert::repair(self.player.source(), path.as_ref(), false)?)
    }

    /// Prepares a conversion of the whole recording.
    pub fn convert(&self, to: To) -> Conversion {
        Conversion::new(&self.path, to)
    }

    /// The terminal model at this moment, with its scrollback.
    pub fn term(&self) -> &Term {
        self.player.term()
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The events of a recording: see [`Recording::events`].
pub struct Events(Box<dyn EventReader + Send>);

impl Iterator for Events {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Result<Event>> {
        loop {
            match self.0.next_item() {
                Ok(Some(Item::Event(event))) => return Some(Ok(event)),
                Ok(Some(_)) => {}
                Ok(None) => return None,
                Err(source) => {
                    return Some(Err(ConvertError::Read { path: PathBuf::new(), source }.into()));
                }
            }
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("position", &self.0.position()).finish_non_exhaustive()
    }
}
