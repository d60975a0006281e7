//! Playing a recording of any format: a cursor in its events with the terminal model kept up to it.
//!
//! The player can stand at any event and go on from there. Going back means starting from the
//! nearest keyframe before the place: a picture of the model taken every few megabytes while
//! reading, or one from the index of a native recording. Only a native recording can be entered at
//! a keyframe; others are read again from their start, but nothing before the keyframe is shown to
//! the model. Pace and keys are the caller's.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tapdeck_core::{Offset, Time};
use tapdeck_tape::ahr;
use tapdeck_tape::index::Index;
use tapdeck_tape::{Format, Kind, Moment};
use tapdeck_term::{Settings, Size, Term};

use crate::source::{ReadSeek, Source, SourceError};

mod feed;
mod survey;

use feed::{Feed, Got, Native, Other, Spot};
use survey::{Survey, Surveyor};

/// Output between two keyframes, to begin with.
const KEYFRAME_EVERY: u64 = 4 << 20;
/// When there are so many keyframes, every other is dropped: memory does not grow with the
/// recording.
const MAX_KEYFRAMES: usize = 128;
/// The same when their scrollbacks take so much memory.
const MAX_KEYFRAME_BYTES: usize = 96 << 20;

/// A place to go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// The last moment that is not later.
    Time(Time),
    /// So many bytes of output, and everything else up to the next of them.
    Byte(Offset),
    /// A marker or a snapshot: its bytes of output, and of what happened before the next of them no
    /// more than its time has seen.
    Moment {
        /// How much output.
        anchor: Offset,
        /// When.
        time: Time,
    },
}

impl From<&Moment> for Goal {
    fn from(moment: &Moment) -> Self {
        Goal::Moment { anchor: Offset(moment.anchor), time: moment.time }
    }
}

/// A recording that could not be played.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlayError {
    /// It could not be opened or read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// There is nothing in it.
    #[error("{}: no recording: not one whole block in it", .0.display())]
    Empty(PathBuf),
}

struct Keyframe {
    spot: Spot,
    at: Time,
    offset: Offset,
    /// The model itself, so that every row still knows its last write.
    term: Term,
}

/// A place in a recording.
pub struct Player {
    source: Source,
    feed: Feed,
    settings: Settings,
    term: Term,
    first_size: Size,
    size_known: bool,
    jumps: u64,
    idle_limit: Option<Duration>,
    length: Time,
    next: Option<Got>,
    /// The length of the file when its end was last looked for.
    seen_len: u64,
    /// The event passed last is the exit of the program.
    exited: bool,
    /// The place, and the time of the last event passed, which may be earlier.
    at: Time,
    event_at: Time,
    offset: Offset,
    keyframes: Vec<Keyframe>,
    keyframe_every: u64,
    index: Option<(Index, Box<dyn ReadSeek>)>,
    /// An index is used only where it saves more than so much output.
    index_saves: u64,
    surveyor: Surveyor,
}

crate::opaque::opaque_debug!(Player);

impl Player {
    /// Opens a recording of any format and stands before its first event.
    pub fn open(path: &Path, settings: Settings) -> Result<Self, PlayError> {
        Self::of(Source::find(path, None, None)?, settings)
    }

    /// Opens a recording whose format is known.
    pub fn of(source: Source, settings: Settings) -> Result<Self, PlayError> {
        let container = source.container();
        let mut first_size = Size { cols: 80, rows: 24 };
        let mut size_known = false;
        let (idle_limit, pipes);
        let feed = if container.format == Format::Ahr && !container.zst {
            let meta = source.meta();
            pipes = meta.as_ref().is_some_and(|meta| meta.pipes);
            idle_limit = meta.and_then(|meta| meta.idle_limit());
            Feed::Native(Box::new(Native::open(&source)?))
        } else {
            let other = Other::open(&source)?;
            let header = other.reader().header();
            if let Some(size) = header.size {
                (first_size, size_known) = (size, true);
            }
            idle_limit = header.idle_limit;
            pipes = header.pipes;
            Feed::Other(other)
        };
        let settings = if pipes { settings.newline_mode(true) } else { settings };
        let mut player = Self {
            source,
            feed,
            term: Term::new(first_size, settings.clone()),
            settings,
            first_size,
            size_known,
            jumps: 0,
            idle_limit,
            length: Time::ZERO,
            next: None,
            seen_len: 0,
            exited: false,
            at: Time::ZERO,
            event_at: Time::ZERO,
            offset: Offset(0),
            keyframes: Vec::new(),
            keyframe_every: KEYFRAME_EVERY,
            index: None,
            index_saves: 0,
            surveyor: Surveyor::Idle,
        };
        player.seen_len = player.source.len();
        player.prepare_native()?;
        // A recording begins with its size; stand behind it, so that the model has it from the
        // start.
        if matches!(player.peek()?, Some((Time::ZERO, Kind::Resize(_)))) {
            player.advance()?;
            player.size_known = true;
        }
        Ok(player)
    }

    /// Plays a recording that does not tell the size of its terminal on one of this size. Call it
    /// before anything is played.
    pub fn assume_size(&mut self, size: Size) {
        if !self.size_known {
            self.first_size = size;
            self.term.resize(size);
        }
    }

    /// How often the model was replaced by another, because the place was left for a keyframe or
    /// the start. Generations of the model before mean nothing to the one after.
    pub fn jumps(&self) -> u64 {
        self.jumps
    }

    /// A native recording tells its length at its end, and may have an index.
    fn prepare_native(&mut self) -> Result<(), PlayError> {
        let first = self.feed.next()?;
        let Feed::Native(native) = &mut self.feed else {
            self.next = first;
            return Ok(());
        };
        if first.is_none() {
            return Err(PlayError::Empty(self.source.path().to_owned()));
        }
        let first_ts = native.last_ts();
        self.index = self.source.index();
        match self.index.as_ref().and_then(|(index, _)| index.end) {
            // An index that covers everything knows the length; otherwise the end of the recording
            // tells it.
            Some((_, end, _)) => self.length = end,
            None => {
                let tail = ahr::tail(native.file()).map_err(|why| self.source.read_error(why))?;
                let nanos = tail.last_ts.unwrap_or(0).saturating_sub(first_ts.unwrap_or(0));
                self.length = Time::from_nanos(nanos);
            }
        }
        if let Some(survey) = self.index.as_ref().and_then(|(index, _)| survey::by_index(&self.source, index))
        {
            self.surveyor = Surveyor::Done(survey);
        }
        self.next = first;
        Ok(())
    }

    /// The terminal as it is at this place.
    pub fn term(&self) -> &Term {
        &self.term
    }

    /// What is played.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The longest pause that the recording itself asks for.
    pub fn idle_limit(&self) -> Option<Duration> {
        self.idle_limit
    }

    /// Takes no more keyframes: for those who will not go back, and have a long scrollback in every
    /// picture.
    pub fn forward_only(&mut self) {
        self.keyframe_every = u64::MAX;
    }

    /// Uses the index only where that saves more than so much output: its keyframes hold the screen
    /// alone, with no scrollback and without the place of each row's last write.
    pub fn sparing_index(&mut self, saves: u64) {
        self.index_saves = saves;
    }

    /// Looks through the whole recording on a thread of its own, where its length is not known
    /// otherwise. Signals must have been set up before.
    pub fn look_ahead(&mut self) {
        if matches!(self.feed, Feed::Other(_)) {
            self.surveyor.start(&self.source);
        }
    }

    /// The end of the recording, as far as it is known.
    pub fn end(&mut self) -> Time {
        if let Some(survey) = self.surveyor.within(Some(Duration::ZERO)) {
            self.length = self.length.max(survey.end);
        }
        self.length.max(self.event_at)
    }

    /// The end of the recording, when all of it has been looked at.
    pub fn known_end(&mut self) -> Time {
        if matches!(self.feed, Feed::Other(_)) {
            self.surveyor.start(&self.source);
            self.surveyor.within(None);
        }
        self.end()
    }

    /// The markers and snapshots, if they can be had within the time; without a limit, when they
    /// can.
    pub fn moments(&mut self, within: Option<Duration>) -> Option<&[Moment]> {
        self.surveyor.start(&self.source);
        self.surveyor.within(within).map(|survey: &Survey| &survey.moments[..])
    }

    /// The place in time.
    pub fn at(&self) -> Time {
        self.at
    }

    /// The place in the output.
    pub fn offset(&self) -> Offset {
        self.offset
    }

    /// Damaged ranges, or other things to remark, passed so far.
    pub fn damages(&self) -> u64 {
        match &self.feed {
            Feed::Native(native) => native.damages(),
            Feed::Other(other) => other.notes(),
        }
    }

    /// The event that comes next, and when: output, a size, input or the exit. Others are passed
    /// over.
    pub fn peek(&mut self) -> Result<Option<(Time, &Kind)>, PlayError> {
        if self.next.is_none() {
            self.next = self.feed.next()?;
            self.take_keyframe();
        }
        Ok(self.next.as_ref().map(|got| (got.at, &got.event)))
    }

    /// Whether the recording was paused in front of the event that comes next. The time up to it is
    /// none to show.
    pub fn is_after_pause(&self) -> bool {
        self.next.as_ref().is_some_and(|got| got.after_pause)
    }

    /// Whether the file is longer than when its end was last looked for. A recording that is no
    /// plain file does not grow.
    pub fn has_grown(&self) -> bool {
        self.file_len().is_some_and(|len| len > self.seen_len)
    }

    fn file_len(&self) -> Option<u64> {
        let meta = self.source.file().and_then(|file| file.metadata()).ok()?;
        meta.is_file().then_some(meta.len())
    }

    /// Whether the event passed last is the exit of the program. Nothing follows it in a finished
    /// recording.
    pub fn has_exited(&self) -> bool {
        self.exited
    }

    /// At the end of a recording in progress, looks for what was added to it. Returns whether there
    /// are more events.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn look_for_more(&mut self) -> Result<bool, PlayError> {
        if self.peek()?.is_some() {
            return Ok(true);
        }
        let Some(len) = self.file_len().filter(|len| *len > self.seen_len) else { return Ok(false) };
        self.seen_len = len;
        self.feed.resume()?;
        Ok(self.peek()?.is_some())
    }

    /// Passes the next event: the model takes it, and it comes back to be shown.
    pub fn advance(&mut self) -> Result<Option<Kind>, PlayError> {
        self.peek()?;
        let Some(Got { at, off, event, .. }) = self.next.take() else { return Ok(None) };
        (self.at, self.event_at, self.exited) = (at, at, matches!(event, Kind::Exit(_)));
        match &event {
            Kind::Output(bytes) => {
                self.term.feed_at(bytes, off.0);
                self.offset = off + bytes.len();
            }
            Kind::Resize(size) => {
                self.term.resize(*size);
            }
            _ => {}
        }
        Ok(Some(event))
    }

    /// Goes to a place, by way of the nearest keyframe where that is shorter.
    pub fn seek(&mut self, goal: Goal) -> Result<(), PlayError> {
        self.begin_seek(goal)?;
        self.approach(goal, u64::MAX)?;
        Ok(())
    }

    /// Enters at the keyframe from which the way to a place is the shortest. [`Player::approach`]
    /// goes on.
    pub fn begin_seek(&mut self, goal: Goal) -> Result<(), PlayError> {
        let behind = match goal {
            Goal::Time(to) => to < self.event_at,
            Goal::Byte(to) => to < self.offset,
            Goal::Moment { anchor, time } => (anchor, time) < (self.offset, self.event_at),
        };
        self.enter(behind, |at, offset| match goal {
            Goal::Time(to) => at <= to,
            Goal::Byte(to) => offset <= to,
            Goal::Moment { anchor, time } => (offset, at) <= (anchor, time),
        })
    }

    /// Goes on towards a place that lies ahead, by about so much output; says whether it is
    /// reached.
    pub fn approach(&mut self, goal: Goal, at_most: u64) -> Result<bool, PlayError> {
        let stop = self.offset + at_most;
        // Events without output count a little, or a recording of nothing but resizes would not let
        // go.
        let mut steps = at_most;
        let mut go_on = |player: &Self| {
            steps = steps.saturating_sub(64);
            player.offset < stop && steps > 0
        };
        match goal {
            Goal::Time(to) => {
                while self.peek()?.is_some_and(|(at, _)| at <= to) {
                    self.advance()?;
                    if !go_on(self) {
                        return Ok(false);
                    }
                }
                self.at = to.min(self.end()).max(self.event_at);
            }
            Goal::Byte(to) => {
                while self.advance_within(to)? {
                    if !go_on(self) {
                        return Ok(false);
                    }
                }
            }
            Goal::Moment { anchor, time } => {
                while (self.offset < anchor || self.peek()?.is_some_and(|(at, _)| at <= time))
                    && self.advance_within(anchor)?
                {
                    if !go_on(self) {
                        return Ok(false);
                    }
                }
                // It may have come long after the last event before it. What its file says of the
                // time is taken as it is, even where the clock was set meanwhile: a search for the
                // next moment must get past this one.
                self.at = time;
            }
        }
        Ok(true)
    }

    /// Goes back to before the last event that showed something.
    pub fn step_back(&mut self) -> Result<(), PlayError> {
        let to = self.offset;
        self.enter(true, |_, offset| offset < to)?;
        while self.peek()?.is_some() {
            if let Some(Got { off, event: Kind::Output(bytes), .. }) = &self.next
                && *off + bytes.len() >= to
            {
                break;
            }
            self.advance()?;
        }
        Ok(())
    }

    /// Goes back to the start.
    pub fn rewind(&mut self) -> Result<(), PlayError> {
        self.go_to(Spot::Start)
    }

    /// Passes the next event, or the part of it that lies before an offset; says whether there is
    /// more to pass.
    fn advance_within(&mut self, to: Offset) -> Result<bool, PlayError> {
        self.peek()?;
        let Some(got) = &mut self.next else { return Ok(false) };
        if let Kind::Output(bytes) = &mut got.event
            && got.off + bytes.len() > to
        {
            if got.off < to {
                let before = bytes.split_to((to - got.off) as usize);
                self.term.feed_at(&before, got.off.0);
                (got.off, got.spot) = (to, None);
                (self.at, self.event_at, self.offset) = (got.at, got.at, to);
            }
            return Ok(false);
        }
        self.advance()?;
        Ok(true)
    }

    /// Enters at the last keyframe that fits, if the place lies behind or the keyframe is ahead of
    /// this place.
    fn enter(&mut self, behind: bool, fits: impl Fn(Time, Offset) -> bool) -> Result<(), PlayError> {
        let own = self.keyframes.iter().rposition(|k| fits(k.at, k.offset));
        let own_offset = own.map_or(Offset(0), |i| self.keyframes[i].offset);
        let ahead = |offset: Offset, here: Offset| behind || offset > here;
        if let Some((index, file)) = &mut self.index {
            let fitting = index.keyframes.iter().rposition(|k| fits(k.time, Offset(k.byte_off)));
            if let Some(keyframe) = fitting.map(|i| index.keyframes[i])
                && let byte_off = Offset(keyframe.byte_off)
                && byte_off > own_offset
                && ahead(byte_off, self.offset)
                && byte_off - own_offset.max(if behind { Offset(0) } else { self.offset }) > self.index_saves
                // One that is damaged is as good as none.
                && let Ok(picture) = index.dump(file, &keyframe)
            {
                let (offset, time, last_ts) = (keyframe.block_offset, keyframe.time, Some(keyframe.last_ts));
                self.go_to(Spot::Block { offset, time, last_ts })?;
                self.show(keyframe.size, &picture, byte_off);
                (self.at, self.event_at) = (time, time);
                return Ok(());
            }
        }
        match own {
            Some(i) if ahead(own_offset, self.offset) => {
                self.go_to(self.keyframes[i].spot)?;
                let k = &self.keyframes[i];
                self.term = k.term.clone();
                (self.at, self.event_at, self.offset) = (k.at, k.at, k.offset);
                Ok(())
            }
            None if behind => self.go_to(Spot::Start),
            _ => Ok(()),
        }
    }

    fn go_to(&mut self, spot: Spot) -> Result<(), PlayError> {
        self.next = None;
        self.feed.go_to(spot)?;
        self.term = Term::new(self.first_size, self.settings.clone());
        (self.at, self.event_at, self.offset) = (Time::ZERO, Time::ZERO, Offset(0));
        self.jumps += 1;
        Ok(())
    }

    fn show(&mut self, size: Size, picture: &[u8], offset: Offset) {
        self.term = Term::new(size, self.settings.clone());
        // Which byte drew what is not known any more; it was all before this place.
        self.term.feed_at(picture, offset.0.saturating_sub(picture.len() as u64));
        self.offset = offset;
    }

    /// Takes a picture where the recording can be entered, if enough has passed since the last one.
    fn take_keyframe(&mut self) {
        let newest = self.keyframes.last().map_or(Offset(0), |k| k.offset);
        let Some(spot) = self.next.as_ref().and_then(|got| got.spot) else { return };
        if self.offset < newest + self.keyframe_every {
            return;
        }
        let bytes: usize = self.keyframes.iter().map(|k| k.term.scrollback_memory()).sum();
        if self.keyframes.len() >= MAX_KEYFRAMES || bytes >= MAX_KEYFRAME_BYTES {
            let mut nth = 0;
            self.keyframes.retain(|_| {
                nth += 1;
                nth % 2 == 0
            });
            self.keyframe_every = self.keyframe_every.saturating_mul(2);
        }
        self.keyframes.push(Keyframe {
            spot,
            at: self.event_at,
            offset: self.offset,
            term: self.term.clone(),
        });
    }
}
