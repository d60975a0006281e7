//! The common language of all formats: a header, then events in order, each with a time since the
//! start. A format is read by an [`EventReader`] and written by an [`EventWriter`], so any can
//! become any other, and what a target cannot carry is counted by its writer as it goes by.
//!
//! These are the events of recordings. The other event types have a purpose of their own:
//!
//! - [`tapdeck_core::Event`] is what a live session logs, with authors, turns and states. A
//!   recorder turns it into an [`Event`] or a record.
//! - [`crate::ahr::Body`] and [`crate::cassette::EventKind`] mirror what stands in those files,
//!   byte for byte; their readers and writers convert.
//! - [`tapdeck_core::check::What`] is what checks look at: a timeline without what no check asks
//!   for.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use tapdeck_core::{Exit, Time, WallTime};
pub use tapdeck_term::MAX_SIDE;
use tapdeck_term::Size;

use crate::ahr::Place;
use crate::{Extra, FilePosition, JsonValue, Result};

/// Times beyond this many seconds (some 31 years) are nonsense, not patience.
pub(crate) const MAX_SECONDS: f64 = 1e9;

/// What is known of a session before its first event.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Header {
    /// Size at the start.
    pub size: Option<Size>,
    /// When it started.
    pub started: Option<WallTime>,
    /// The command line as text.
    pub command: Option<String>,
    /// Program and arguments, where the format keeps them apart.
    pub argv: Vec<String>,
    /// The folder that the program was started in.
    pub folder: Option<String>,
    /// A title for people.
    pub title: Option<String>,
    /// Kind of terminal, as in TERM.
    pub term: Option<String>,
    /// Environment variables that the file keeps.
    pub env: BTreeMap<String, String>,
    /// Tags: names and values, which may be empty.
    pub tags: BTreeMap<String, String>,
    /// Longest pause that a player should make.
    pub idle_limit: Option<Duration>,
    /// Colours of the terminal, in asciicast's form; [`crate::cast::theme_of`] reads it.
    pub theme: Option<JsonValue>,
    /// The program had no terminal: its lines end without a carriage return, and yet begin at the
    /// left.
    pub pipes: bool,
    /// How much the program had written before the recording began, which was late.
    pub first_byte: u64,
    /// Fields of an asciicast header that have no place here; written again into another asciicast.
    pub extra: Extra,
}

/// A field of a header for which not every format has room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    Command,
    Folder,
    Title,
    Term,
    Env,
    Tags,
    IdleLimit,
    Theme,
    Pipes,
    Extra,
}

impl Header {
    /// The fields that say something.
    fn fields(&self) -> impl Iterator<Item = Field> {
        let said = [
            (Field::Command, self.command.is_some()),
            (Field::Folder, self.folder.is_some()),
            (Field::Title, self.title.is_some()),
            (Field::Term, self.term.is_some()),
            (Field::Env, !self.env.is_empty()),
            (Field::Tags, !self.tags.is_empty()),
            (Field::IdleLimit, self.idle_limit.is_some()),
            (Field::Theme, self.theme.is_some()),
            (Field::Pipes, self.pipes),
            (Field::Extra, !self.extra.is_empty()),
        ];
        said.into_iter().filter_map(|(field, said)| said.then_some(field))
    }
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// When, since the start; never earlier than the event before.
    pub time: Time,
    /// What.
    pub kind: Kind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Kind {
    /// The program wrote these bytes.
    Output(Bytes),
    /// The program was given these bytes.
    Input(Bytes),
    /// The terminal took this size.
    Resize(Size),
    /// A person or a tool marked this moment.
    Marker(String),
    /// The program ended.
    Exit(Exit),
    /// A MARK of a native recording that has no form of its own here.
    Mark {
        /// Its code.
        code: u32,
        /// Its value.
        val: u32,
    },
    /// A file-system snapshot.
    Snapshot {
        /// Its id.
        id: u64,
        /// Offset in the output.
        anchor: u64,
        /// Its label.
        label: String,
    },
    /// So many bytes of output are missing here: offsets in the output jump.
    Lost(u64),
    /// An event of an asciicast that this version does not know.
    Other {
        /// Its one-letter code.
        code: String,
        /// Its data.
        data: JsonValue,
    },
}

impl Event {
    /// An event at a time.
    pub fn new(time: Time, kind: Kind) -> Self {
        Self { time, kind }
    }
}

/// What an [`EventReader`] gives.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// An event.
    Event(Event),
    /// Something about the file that a person should hear of; reading goes on.
    Note(Note),
}

/// A remark about a place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Where.
    pub at: FilePosition,
    /// What.
    pub what: String,
    /// Whether a part of the recording could not be read.
    pub is_damage: bool,
}

impl Note {
    pub(crate) fn item(at: FilePosition, what: impl Into<String>) -> Item {
        Item::Note(Self { at, what: what.into(), is_damage: false })
    }

    pub(crate) fn damage(at: FilePosition, what: impl Into<String>) -> Item {
        Item::Note(Self { at, what: what.into(), is_damage: true })
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.what)
    }
}

/// Reads events from a file of some format, in memory that does not grow with it.
pub trait EventReader {
    /// What was known at the start.
    fn header(&self) -> &Header;

    /// The next event or remark; `None` at the end.
    ///
    /// # Errors
    /// When the file cannot be read, or is malformed in a way that hides what follows.
    fn next_item(&mut self) -> Result<Option<Item>>;

    /// How many bytes of the file have been dealt with, for a progress bar.
    fn position(&self) -> u64;
}

impl<T: EventReader + ?Sized> EventReader for Box<T> {
    fn header(&self) -> &Header {
        (**self).header()
    }

    fn next_item(&mut self) -> Result<Option<Item>> {
        (**self).next_item()
    }

    fn position(&self) -> u64 {
        (**self).position()
    }
}

/// The bytes that a writer made, which the caller appends to its files and then clears
/// afterwards.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    /// The recording itself.
    pub main: Vec<u8>,
    /// The timing file of a typescript; empty for every other format.
    pub timing: Vec<u8>,
    /// Where parts may be added behind what was written of a native recording.
    pub place: Option<Place>,
}

impl Parts {
    /// Forgets what was written and keeps the memory.
    pub fn clear(&mut self) {
        self.main.clear();
        self.timing.clear();
    }
}

/// Writes events in some format. Everything goes to memory, so nothing here can fail.
pub trait EventWriter: Send {
    /// The head of the file. Called once, first.
    fn begin(&mut self, header: &Header, out: &mut Parts);

    /// One event.
    fn event(&mut self, event: &Event, out: &mut Parts);

    /// What is still in hand, for a file that is read while it is written.
    fn flush(&mut self, _out: &mut Parts) {}

    /// The end of the file. Called once, last.
    fn finish(&mut self, out: &mut Parts);

    /// What could not be carried so far.
    fn losses(&self) -> &Losses;
}

impl<T: EventWriter + ?Sized> EventWriter for Box<T> {
    fn begin(&mut self, header: &Header, out: &mut Parts) {
        (**self).begin(header, out);
    }

    fn event(&mut self, event: &Event, out: &mut Parts) {
        (**self).event(event, out);
    }

    fn flush(&mut self, out: &mut Parts) {
        (**self).flush(out);
    }

    fn finish(&mut self, out: &mut Parts) {
        (**self).finish(out);
    }

    fn losses(&self) -> &Losses {
        (**self).losses()
    }
}

/// A kind of thing that a format may be unable to carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Loss {
    /// Bytes that are not UTF-8, replaced.
    InvalidUtf8,
    /// Characters that the target's character set lacks, replaced.
    Characters,
    /// Input.
    Input,
    /// Changes of size.
    Resize,
    /// Markers.
    Marker,
    /// The exit code or signal.
    Exit,
    /// That a signal ended the program; its number became an exit code.
    Signal,
    /// The recorder's own marks.
    Mark,
    /// Snapshots.
    Snapshot,
    /// Events of kinds that only the source knows.
    Other,
    /// The size of the terminal.
    Size,
    /// Times: the target has none.
    Timing,
    /// The pause between the last that the target carries and the end.
    Pause,
    /// Colours and attributes that the target lacks, replaced by the nearest.
    Colours,
    /// Rows that scrolled by between two frames.
    Scrolled,
    /// Frames beyond what the target may hold.
    Frames,
    /// Fields of the header.
    Header,
    /// Events of the session that only a native recording has room for.
    Beside,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InvalidUtf8 => "bytes that are not UTF-8 (replaced)",
            Self::Characters => "characters without an equivalent (replaced)",
            Self::Input => "input",
            Self::Resize => "changes of size",
            Self::Marker => "markers",
            Self::Exit => "how the program ended",
            Self::Signal => "death by signal (written as exit code 128 + n)",
            Self::Mark => "the recorder's own marks",
            Self::Snapshot => "snapshots",
            Self::Other => "events of unknown kinds",
            Self::Size => "the size of the terminal",
            Self::Timing => "times",
            Self::Pause => "the pause at the end",
            Self::Colours => "colors without an equivalent (replaced)",
            Self::Scrolled => "rows that scrolled by between frames",
            Self::Frames => "frames beyond the limit",
            Self::Header => "fields of the header",
            Self::Beside => "events of the session (turns, drivers)",
        })
    }
}

/// How often something could not be carried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Events (or header fields) concerned.
    pub events: u64,
    /// Bytes concerned, where that means anything.
    pub bytes: u64,
}

/// What a writer could not carry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses(BTreeMap<Loss, Count>);

impl Losses {
    /// Whether everything was carried.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each kind with its count.
    pub fn iter(&self) -> impl Iterator<Item = (Loss, Count)> {
        self.0.iter().map(|(&loss, &count)| (loss, count))
    }

    /// The count of one kind.
    pub fn of(&self, loss: Loss) -> Count {
        self.0.get(&loss).copied().unwrap_or_default()
    }

    pub(crate) fn add(&mut self, loss: Loss, bytes: usize) {
        let count = self.0.entry(loss).or_default();
        count.events += 1;
        count.bytes += bytes as u64;
    }

    pub(crate) fn add_many(&mut self, loss: Loss, events: u64) {
        if events > 0 {
            self.0.entry(loss).or_default().events += events;
        }
    }

    /// Counts the fields of a header that a target does not carry.
    pub(crate) fn drop_fields(&mut self, header: &Header, carried: &[Field]) {
        self.add_many(Loss::Header, header.fields().filter(|field| !carried.contains(field)).count() as u64);
    }

    /// Counts the size of the terminal, for a target that has no place for it.
    pub(crate) fn drop_size(&mut self, header: &Header) {
        self.add_many(Loss::Size, u64::from(header.size.is_some()));
    }

    /// Counts an event that is dropped whole.
    pub(crate) fn drop_event(&mut self, kind: &Kind) {
        match kind {
            Kind::Output(bytes) => self.add(Loss::Other, bytes.len()),
            Kind::Input(bytes) => self.add(Loss::Input, bytes.len()),
            Kind::Resize(_) => self.add(Loss::Resize, 0),
            Kind::Marker(label) => self.add(Loss::Marker, label.len()),
            Kind::Exit(_) => self.add(Loss::Exit, 0),
            Kind::Mark { .. } | Kind::Lost(_) => self.add(Loss::Mark, 0),
            Kind::Snapshot { .. } => self.add(Loss::Snapshot, 0),
            Kind::Other { .. } => self.add(Loss::Other, 0),
        }
    }
}

/// A size that a file declared, brought into bounds.
pub(crate) fn clamp_size(cols: u64, rows: u64) -> Size {
    let side = |n: u64| n.clamp(1, u64::from(MAX_SIDE)) as u16;
    Size::new(side(cols), side(rows))
}

/// A size that a file declared at its head, where 0 means that the recorder had no terminal.
pub(crate) fn known_size(cols: u64, rows: u64) -> Option<Size> {
    (cols > 0 && rows > 0).then(|| clamp_size(cols, rows))
}

/// Reads a number of seconds of a file; `None` for what no clock can mean.
pub(crate) fn seconds(value: f64) -> Option<Duration> {
    (0.0..=MAX_SECONDS).contains(&value).then(|| Duration::from_nanos((value * 1e9).round() as u64))
}
