//! Playing a recording: a cursor in its events with the terminal model kept up to it.
//!
//! The player can stand at any event and go on from there. Going back means starting from the nearest keyframe
//! before the place: a picture of the model taken every few megabytes while reading, so a step back costs the
//! same wherever it is taken. Pace and keys are the caller's.

use std::fs::File;
use std::io::{self, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use tapdeck_core::{Exit, WinSize};
use tapdeck_tape::ahr::{self, BlockReader, Body, Item, Mark};
use tapdeck_term::{Settings, Size, Term};

/// Output between two keyframes.
const KEYFRAME_EVERY: u64 = 4 << 20;

/// One event of a recording, as far as a player cares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Played {
    /// The program wrote this.
    Output(Bytes),
    /// The terminal's size was set.
    Resize(WinSize),
    /// Something was typed.
    Input(Bytes),
    /// The program ended.
    Exit(Exit),
}

/// A recording that could not be played.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlayError {
    /// It could not be opened.
    #[error("{}: {why}", path.display())]
    Open {
        /// Which.
        path: PathBuf,
        /// Why not.
        why: io::Error,
    },
    /// It could not be read.
    #[error("{}: {why}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why not.
        why: tapdeck_tape::Error,
    },
    /// There is nothing in it.
    #[error("{}: no recording: not one whole block in it", .0.display())]
    Empty(PathBuf),
}

struct Keyframe {
    /// Where the block begins that follows the picture.
    block: u64,
    at_ns: u64,
    ordinal: u64,
    offset: u64,
    size: Size,
    picture: Vec<u8>,
}

/// A place in a recording.
pub struct Player {
    path: PathBuf,
    file: File,
    reader: ahr::Reader<BufReader<File>>,
    settings: Settings,
    term: Term,
    first_ts: u64,
    last_ns: u64,
    next: Option<(u64, Played)>,
    /// Time of the last event passed, and how many have been.
    at_ns: u64,
    ordinal: u64,
    offset: u64,
    keyframes: Vec<Keyframe>,
    keyframe_due: u64,
    block: Option<u64>,
    damages: u64,
}

impl Player {
    /// Opens a recording and stands before its first event.
    pub fn open(path: &Path, settings: Settings) -> Result<Self, PlayError> {
        let open = |why| PlayError::Open { path: path.to_owned(), why };
        let read = |why| PlayError::Read { path: path.to_owned(), why };
        let file = File::open(path).map_err(open)?;
        if file.metadata().map_err(open)?.is_dir() {
            return Err(open(io::ErrorKind::IsADirectory.into()));
        }
        let tail = ahr::tail(&file).map_err(read)?;
        let reader = reader_at(&file, 0).map_err(open)?;
        let mut player = Self {
            path: path.to_owned(),
            file,
            reader,
            term: Term::new(Size { cols: 80, rows: 24 }, settings.clone()),
            settings,
            first_ts: 0,
            last_ns: 0,
            next: None,
            at_ns: 0,
            ordinal: 0,
            offset: 0,
            keyframes: Vec::new(),
            keyframe_due: KEYFRAME_EVERY,
            block: None,
            damages: 0,
        };
        let first = player.next_record()?.ok_or_else(|| PlayError::Empty(path.to_owned()))?;
        player.first_ts = first;
        player.last_ns = tail.last_ts.unwrap_or(first).saturating_sub(first);
        player.rewind()?;
        // A recording begins with its size; stand behind it, so that the model has it from the start.
        if matches!(player.peek()?, Some((_, Played::Resize(_)))) {
            player.advance()?;
        }
        Ok(player)
    }

    /// The terminal as it is at this place.
    pub fn term(&self) -> &Term {
        &self.term
    }

    /// Length of the recording in nanoseconds.
    pub fn duration_ns(&self) -> u64 {
        self.last_ns
    }

    /// Time of the last event passed.
    pub fn at_ns(&self) -> u64 {
        self.at_ns
    }

    /// Damaged ranges passed so far.
    pub fn damages(&self) -> u64 {
        self.damages
    }

    /// The event that comes next, and when.
    pub fn peek(&mut self) -> Result<Option<&(u64, Played)>, PlayError> {
        if self.next.is_none() {
            self.next_record()?;
        }
        Ok(self.next.as_ref())
    }

    /// Passes the next event: the model takes it, and it comes back to be shown.
    pub fn advance(&mut self) -> Result<Option<Played>, PlayError> {
        self.peek()?;
        let Some((at_ns, event)) = self.next.take() else { return Ok(None) };
        self.at_ns = at_ns;
        self.ordinal += 1;
        match &event {
            Played::Output(bytes) => {
                self.term.feed(bytes, self.offset);
                self.offset += bytes.len() as u64;
            }
            Played::Resize(size) => {
                self.term.resize(Size { cols: size.cols, rows: size.rows });
            }
            _ => {}
        }
        Ok(Some(event))
    }

    /// Goes to the last moment that is not later than `to_ns`.
    pub fn seek(&mut self, to_ns: u64) -> Result<(), PlayError> {
        if to_ns < self.at_ns {
            self.go_to_keyframe(|k| k.at_ns <= to_ns)?;
        }
        while let Some((at, _)) = self.peek()? {
            if *at > to_ns {
                break;
            }
            self.advance()?;
        }
        self.at_ns = to_ns.min(self.last_ns);
        Ok(())
    }

    /// Goes back to before the last event that showed something.
    pub fn step_back(&mut self) -> Result<(), PlayError> {
        let target = self.ordinal.saturating_sub(1);
        self.go_to_keyframe(|k| k.ordinal <= target)?;
        while self.ordinal < target && self.advance()?.is_some() {}
        Ok(())
    }

    /// Goes back to the start.
    pub fn rewind(&mut self) -> Result<(), PlayError> {
        self.go_to_keyframe(|_| false)
    }

    fn go_to_keyframe(&mut self, fits: impl Fn(&Keyframe) -> bool) -> Result<(), PlayError> {
        let open = |why| PlayError::Open { path: self.path.clone(), why };
        self.next = None;
        self.block = None;
        match self.keyframes.iter().rev().find(|k| fits(k)) {
            Some(k) => {
                self.reader = reader_at(&self.file, k.block).map_err(open)?;
                self.term = Term::new(k.size, self.settings.clone());
                self.term.feed(&k.picture, k.offset);
                (self.at_ns, self.ordinal, self.offset) = (k.at_ns, k.ordinal, k.offset);
            }
            None => {
                self.reader = reader_at(&self.file, 0).map_err(open)?;
                self.term = Term::new(Size { cols: 80, rows: 24 }, self.settings.clone());
                (self.at_ns, self.ordinal, self.offset) = (0, 0, 0);
            }
        }
        Ok(())
    }

    /// Reads on to the next event that matters, and returns the raw time of the first record met.
    fn next_record(&mut self) -> Result<Option<u64>, PlayError> {
        loop {
            let item = self.reader.next_item();
            let item = item.map_err(|why| PlayError::Read { path: self.path.clone(), why })?;
            let record = match item {
                None => return Ok(None),
                Some(Item::Damage(_)) => {
                    self.damages += 1;
                    continue;
                }
                Some(Item::Record(record)) => record,
            };
            self.take_keyframe();
            // A clock that was set back must not make time run backwards.
            let at_ns = record.ts_ns.saturating_sub(self.first_ts).max(self.at_ns);
            let event = match record.body {
                Body::Data { bytes, off } => {
                    self.offset = off;
                    Played::Output(bytes)
                }
                Body::Resize { cols, rows } => Played::Resize(WinSize::cells(cols, rows)),
                Body::Input { bytes } => Played::Input(bytes),
                Body::Mark { code, val } => match Mark::from_raw(code, val) {
                    Mark::Exit(code) => Played::Exit(Exit::Code(code.cast_signed())),
                    Mark::Signal(signal) => Played::Exit(Exit::Signal(signal.cast_signed())),
                    _ => continue,
                },
                _ => continue,
            };
            self.next = Some((at_ns, event));
            return Ok(Some(record.ts_ns));
        }
    }

    /// Takes a picture where a block begins, if enough has passed since the last one.
    fn take_keyframe(&mut self) {
        let Some((block, _)) = self.reader.block() else { return };
        if self.block == Some(block) {
            return;
        }
        self.block = Some(block);
        let newest = self.keyframes.last().map_or(0, |k| k.block);
        if block > newest && self.offset >= self.keyframe_due {
            self.keyframe_due = self.offset + KEYFRAME_EVERY;
            self.keyframes.push(Keyframe {
                block,
                at_ns: self.at_ns,
                ordinal: self.ordinal,
                offset: self.offset,
                size: self.term.size(),
                picture: self.term.dump(),
            });
        }
    }
}

fn reader_at(file: &File, offset: u64) -> io::Result<ahr::Reader<BufReader<File>>> {
    let mut file = file.try_clone()?;
    file.seek(SeekFrom::Start(offset))?;
    Ok(ahr::Reader::over(BlockReader::starting_at(BufReader::with_capacity(1 << 16, file), offset)))
}
