//! Recordings that are edited, or joined, on their way.

use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tapdeck_host::{Source, digest_of};
use tapdeck_tape::ahr::parts::EVENTS;
use tapdeck_tape::edit::{EditReader, JoinReader, Moved, MovedLines, Part, Removed, locate};
use tapdeck_tape::meta::{Edit, EditSource};
use tapdeck_tape::{EventReader, Header, Item, Kind, RecordedTurn, TurnNumbers};

use super::{Beside, Conversion, ConvertError, EditError, To};

/// Edits of the past beyond this many are forgotten, the oldest first.
const MAX_HISTORY: usize = 1_000;

type Reader = Box<dyn EventReader + Send>;

/// What was edited, and how.
pub(super) struct Edited {
    /// What the description of a native recording says of it.
    pub(super) history: Vec<Edit>,
    removed: Arc<Mutex<Removed>>,
}

impl Edited {
    /// What was removed, when all was written.
    pub(super) fn removed(&self) -> Removed {
        *self.removed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Recordings that are opened to be edited.
pub(super) struct Opened {
    pub(super) reader: Reader,
    pub(super) total: u64,
    pub(super) beside: Beside,
    pub(super) turns: Vec<RecordedTurn>,
    pub(super) edited: Edited,
}

/// The recordings of an edit, and what is known of them before they are read once more.
struct Inputs {
    sources: Vec<Source>,
    /// For each, whether its terminal changes its size.
    resizes: Vec<bool>,
    /// Where each went when they were joined.
    joined: Vec<Arc<Moved>>,
}

impl Inputs {
    /// Opens all of it anew, as one recording.
    fn open(&self, count: &Arc<AtomicU64>) -> Result<Reader, ConvertError> {
        if let [source] = &self.sources[..] {
            return Ok(source.open_counted(count)?);
        }
        let parts = self
            .sources
            .iter()
            .zip(&self.resizes)
            .map(|(source, resizes)| Ok(Part { reader: source.open_counted(count)?, resizes: *resizes }));
        let parts = parts.collect::<Result<Vec<_>, ConvertError>>()?;
        match JoinReader::new(parts) {
            Some(joined) => Ok(Box::new(joined)),
            None => Err(ConvertError::Edit(EditError::Nothing)),
        }
    }

    /// Opens it for a look ahead: where it breaks off it ends, as it does for the edit.
    fn look(&self) -> Result<Reader, ConvertError> {
        Ok(Box::new(EndsWhereBroken(self.open(&Arc::default())?)))
    }

    /// Finds out what joining needs to know.
    fn look_through(&mut self) -> Result<(), ConvertError> {
        for source in &self.sources {
            let mut reader = EndsWhereBroken(source.open()?);
            let size = reader.header().size.unwrap_or_default();
            let mut resizes = false;
            while let Ok(Some(item)) = reader.next_item() {
                resizes |= matches!(item, Item::Event(event) if matches!(event.kind, Kind::Resize(to) if to != size));
            }
            self.resizes.push(resizes);
        }
        let parts = self.sources.iter().zip(&self.resizes).map(|(source, resizes)| {
            let reader = Box::new(EndsWhereBroken(source.open()?));
            Ok(Part { reader, resizes: *resizes })
        });
        let parts = parts.collect::<Result<Vec<_>, ConvertError>>()?;
        let Some(mut reader) = JoinReader::new(parts) else { return Ok(()) };
        while let Ok(Some(_)) = reader.next_item() {}
        self.joined = reader.into_joined();
        Ok(())
    }

    /// What the recordings say of themselves, as the edit leaves it.
    fn beside(&self, edited: &Arc<Moved>, removed: &Arc<Mutex<Removed>>) -> Beside {
        let moved = |open: &dyn Fn(&Source) -> Option<Box<dyn Read + Send>>| {
            let mut all: Option<Box<dyn Read + Send>> = None;
            for (i, source) in self.sources.iter().enumerate() {
                let Some(lines) = open(source) else { continue };
                let by = self.joined.get(i).into_iter().chain([edited]).cloned().collect();
                let lines = MovedLines::new(lines, by, removed.clone());
                all = Some(match all {
                    Some(before) => Box::new(before.chain(lines)),
                    None => Box::new(lines),
                });
            }
            all
        };
        Beside {
            meta: self.sources.iter().find_map(Source::meta),
            events: moved(&|source| source.sidecar(EVENTS).map(|events| Box::new(events) as _)),
            instructions: moved(&Source::instruction_lines),
        }
    }

    /// How the result came about.
    fn history(&self, edits: Vec<String>) -> Vec<Edit> {
        let mut history: Vec<Edit> =
            self.sources.iter().filter_map(Source::meta).flat_map(|meta| meta.history).collect();
        let sources = self.sources.iter().map(|source| EditSource {
            name: file_name(source.path()),
            sha256: source.file().and_then(digest_of).ok(),
        });
        let tapdeck = Some(env!("CARGO_PKG_VERSION").to_owned());
        history.push(Edit { tapdeck, edits, sources: sources.collect() });
        history.drain(..history.len().saturating_sub(MAX_HISTORY));
        history
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

impl Conversion {
    /// Whether anything is done to the recording itself.
    pub(super) fn is_edit(&self) -> bool {
        let sets_theme = self.to == To::Ahr && self.theme_name.is_some();
        !self.edits.is_empty() || !self.more.is_empty() || sets_theme
    }

    /// Opens the recordings as the edits leave them.
    pub(super) fn open_edited(&self, first: Source, count: &Arc<AtomicU64>) -> Result<Opened, ConvertError> {
        let mut sources = vec![first];
        for path in &self.more {
            sources.push(Source::find(path, None, None)?);
        }
        let each_turns = sources.iter().map(Source::turns).collect::<Result<Vec<_>, _>>()?;
        let mut inputs = Inputs { sources, resizes: Vec::new(), joined: Vec::new() };
        let mut turns: Vec<RecordedTurn> = Vec::new();
        if inputs.sources.len() > 1 {
            inputs.look_through()?;
            for (each, by) in each_turns.iter().zip(&inputs.joined) {
                turns.extend(each.iter().filter_map(|turn| by.turn(turn)));
            }
            turns.iter_mut().for_each(|turn| turn.number = turn.recorded_number);
            TurnNumbers::assign(&mut turns);
        } else {
            turns.extend(each_turns.into_iter().flatten());
        }
        let positions = self.edits.positions();
        let located = match positions.is_empty() && self.edits.removes_nothing() {
            true => Default::default(),
            false => {
                let look = || inputs.look().map_err(LookError::Open);
                locate(look, &turns, &positions).map_err(|e| match e {
                    LookError::Open(e) => e,
                    LookError::Read(e) => self.reading_failed(e),
                })?
            }
        };
        let plan = match self.edits.plan(&located) {
            // Before its first event a recording shows an empty screen, which is a picture, too.
            Err(EditError::Nothing) if self.to.is_still() => {
                let reader = Box::new(Blank(inputs.look()?.header().clone()));
                let edited = Edited { history: Vec::new(), removed: Arc::default() };
                return Ok(Opened { reader, total: 0, beside: Beside::default(), turns: Vec::new(), edited });
            }
            plan => plan?,
        };
        // Once to see where everything goes, which what stands beside it needs to know first.
        let read_failed = |e| self.reading_failed(e);
        let mut ahead = EditReader::new(inputs.look()?, plan.clone()).map_err(read_failed)?;
        while ahead.next_item().map_err(read_failed)?.is_some() {}
        if ahead.kept() == 0 {
            return Err(EditError::Nothing.into());
        }
        let (moved, mut removed) = ahead.into_moved();
        let moved = Arc::new(moved);
        let before = turns.len();
        let turns: Vec<RecordedTurn> = turns.iter().filter_map(|turn| moved.turn(turn)).collect();
        if self.to.container().is_none() {
            removed.turns = (before - turns.len()) as u64;
        }
        let removed = Arc::new(Mutex::new(removed));
        let beside = inputs.beside(&moved, &removed);
        let mut said = self.edits.as_said();
        said.extend(self.theme_name.as_ref().map(|name| format!("theme {name}")));
        let edited = Edited { history: inputs.history(said), removed };
        let total = inputs.sources.iter().map(Source::len).sum();
        count.store(0, Ordering::Relaxed);
        let reader = EditReader::new(inputs.open(count)?, plan).map_err(read_failed)?;
        Ok(Opened { reader: Box::new(reader), total, beside, turns, edited })
    }
}

/// A recording in which nothing happens.
struct Blank(Header);

impl EventReader for Blank {
    fn header(&self) -> &Header {
        &self.0
    }

    fn next_item(&mut self) -> tapdeck_tape::Result<Option<Item>> {
        Ok(None)
    }

    fn position(&self) -> u64 {
        0
    }
}

/// Why a look ahead failed.
enum LookError {
    Open(ConvertError),
    Read(tapdeck_tape::Error),
}

impl From<tapdeck_tape::Error> for LookError {
    fn from(e: tapdeck_tape::Error) -> Self {
        Self::Read(e)
    }
}

/// A recording that ends where it breaks off.
struct EndsWhereBroken<R>(R);

impl<R: EventReader> EventReader for EndsWhereBroken<R> {
    fn header(&self) -> &Header {
        self.0.header()
    }

    fn next_item(&mut self) -> tapdeck_tape::Result<Option<Item>> {
        Ok(self.0.next_item().unwrap_or_default())
    }

    fn position(&self) -> u64 {
        self.0.position()
    }
}
