//! Recordings in other formats, and what they show without a terminal.
//!
//! ```no_run
//! use tapdeck::Recording;
//! use tapdeck::convert::To;
//!
//! # fn main() -> tapdeck::Result<()> {
//! let done = Recording::open("demo.ahr")?
//!     .convert(To::Cast)
//!     .progress(|done, total| eprint!("\r{done} of {total} bytes"))
//!     .write("demo.cast")?;
//! println!("{} events; not carried: {:?}", done.events, done.losses);
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tapdeck_core::Time;
use tapdeck_host::cassette::CommitError;
use tapdeck_host::{
    RunningDigest, Source, SourceError, forget_sidecars, is_stream, open_stream, write_sidecars,
};
use tapdeck_tape::ahr::parts::{INSTRUCTIONS, META};
use tapdeck_tape::ahr::{AhrWriter, Quality, part_blocks};
use tapdeck_tape::cassette::{Refusal, header_losses};
use tapdeck_tape::cast::{theme_of, theme_value};
use tapdeck_tape::edit::Unpaused;
use tapdeck_tape::event::Count;
use tapdeck_tape::export::{self, Annotations, HtmlOptions, LinesAs, SvgOptions};
use tapdeck_tape::zst::ZstWriter;
use tapdeck_tape::{
    Container, EventReader, EventWriter, Format, Header, Item, Kind, Loss, Parts, Replay, convert as copy,
    instructions_of, writer,
};
use tapdeck_term::Theme;

use crate::OutFile;
use crate::scrub::{ScrubError, Selection};

mod beside;
mod cassette;
mod conversation;
mod edit;
#[cfg(feature = "raster")]
mod ffmpeg;
#[cfg(feature = "raster")]
mod pictures;
mod repair;
mod to;

use beside::{Beside, Side, edited_meta, new_meta};
pub use cassette::begin_manifest;
pub use conversation::ConversationReport;
use edit::Edited;
#[cfg(feature = "raster")]
pub use pictures::sheet;
pub(crate) use repair::check;
pub use repair::{Digest, Health, Repaired, repair, summarise};
pub use tapdeck_tape::edit::{EditError, Edits, Position, Removed};
pub use to::To;

/// Rows of scrollback that an export keeps until they are certain.
const ALL_ROWS: usize = 1_000_000;
/// Remarks beyond this many are only counted.
const MAX_NOTES: usize = 100;
/// So much of a part is carried at a time.
const PIECE: usize = 128 * 1024;

/// A conversion that failed. Nothing was written, unless it says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// The recording could not be opened.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The recording could not be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: tapdeck_tape::Error,
    },
    /// The recording breaks off, and what comes before is not wanted alone.
    #[error("{}: {why}: nothing was written", path.display())]
    BrokeOff {
        /// Which file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The output exists.
    #[error("{} exists", .0.display())]
    Exists(PathBuf),
    /// The output could not be written; its path is empty for a writer.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Output and recording are the same file.
    #[error("{} would be replaced by itself: give another name", .0.display())]
    SameFile(PathBuf),
    /// The name of the output says no format.
    #[error("unsupported output format {0:?}; supported: {TO}")]
    UnknownFormat(String),
    /// The format can be read, but not written.
    #[error("{0} can be read, but not written")]
    ReadOnly(Container),
    /// A cassette is a folder, and cannot go to a writer.
    #[error("a cassette is a folder: it cannot be written to a stream")]
    CassetteToWriter,
    /// A typescript goes to a writer, and its timing file has no name.
    #[error("a typescript has a timing file: say where it goes")]
    NoTimingFile,
    /// A typescript and its timing file would be the same file.
    #[error("{} cannot be both the typescript and its timing file", .0.display())]
    SameTimingFile(PathBuf),
    /// Only a native recording can be repaired.
    #[error("{} is {container}: only an .ahr can be repaired", path.display())]
    NotNative {
        /// Which.
        path: PathBuf,
        /// What it is.
        container: Container,
    },
    /// Nothing of the recording can be read.
    #[error("{}: no recording: not one whole block in it", .0.display())]
    Nothing(PathBuf),
    /// The recording is a cassette that makes no sense.
    #[error("{}: {why}", path.display())]
    Cassette {
        /// Which.
        path: PathBuf,
        /// Why.
        why: Refusal,
    },
    /// The recording has no turns.
    #[error("{} has no turns, so there is no conversation in it", .0.display())]
    NoTurns(PathBuf),
    /// A conversation is written of a whole recording.
    #[error("the conversation of an edited recording cannot be written; edit to an .ahr first")]
    EditedConversation,
    /// A conversation is not written in this format.
    #[error("a conversation cannot be written as {0}; use md, html or json")]
    NoConversationAs(To),
    /// The rules for what is to be masked could not be loaded.
    #[error(transparent)]
    Scrub(#[from] ScrubError),
    /// A cassette could not be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// Nothing could be compressed.
    #[error("{0}")]
    Compress(tapdeck_tape::Error),
    /// The edits make no sense for this recording.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// Pictures and films are left out of this build.
    #[error("{0} cannot be written: this tapdeck was built without the feature raster")]
    NoPictures(To),
    /// There is no picture, for this reason.
    #[error("{0}")]
    Picture(String),
    /// ffmpeg is not installed.
    #[error(
        "{0} is written by ffmpeg, which is not installed: install the package ffmpeg, or write gif or apng"
    )]
    NoFfmpeg(To),
    /// ffmpeg could not write the film.
    #[error("ffmpeg could not write {0}")]
    Ffmpeg(String),
}

const TO: &str = "ahr, cast, cast-v2, cast-v3, ttyrec, typescript, ans, 3a, raw or cassette, and .zst behind any of them; \
                  or txt, ansi, md, json, csv, html, svg, svg-still, png, gif, apng, webp, mp4 or webm";

impl ConvertError {
    fn write(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::AlreadyExists => Self::Exists(path),
            _ => Self::Write { path, source },
        }
    }
}

/// A conversion to carry out: see [`crate::Recording::convert`].
pub struct Conversion {
    input: PathBuf,
    to: To,
    from: Option<Container>,
    timing: Option<PathBuf>,
    out_timing: Option<PathBuf>,
    overwrite: bool,
    partial: bool,
    sidecars: bool,
    quality: u8,
    theme: Option<Theme>,
    conversation: bool,
    redact: Option<Selection>,
    theme_name: Option<String>,
    edits: Edits,
    /// Recordings that are joined to the first.
    more: Vec<PathBuf>,
    #[cfg(feature = "raster")]
    look: tapdeck_raster::Look,
    #[cfg(feature = "raster")]
    fps: u32,
    progress: Option<Box<dyn FnMut(u64, u64)>>,
}

impl fmt::Debug for Conversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversion").field("input", &self.input).field("to", &self.to).finish_non_exhaustive()
    }
}

/// A conversion that was carried out.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Converted {
    /// What the recording was.
    pub from: Container,
    /// What was written.
    pub to: To,
    /// Events that were read.
    pub events: u64,
    /// Bytes of output among them.
    pub output_bytes: u64,
    /// How long the recording lasts.
    pub duration: Duration,
    /// Bytes that were written, but for other files beside it.
    pub written: u64,
    /// What the target cannot carry, and how much of it there was.
    pub losses: Vec<(Loss, Count)>,
    /// Remarks about the recording.
    pub notes: Vec<String>,
    /// Further remarks, which are only counted.
    pub more_notes: u64,
    /// Why the recording breaks off, where it does.
    pub broke_off: Option<String>,
    /// What became of the conversation, if only that was to be written.
    pub conversation: Option<ConversationReport>,
    /// What an edit removed.
    pub removed: Removed,
}

impl Conversion {
    /// A conversion of this file, `-` for standard input, whose format is found by its content.
    pub fn new(input: impl Into<PathBuf>, to: To) -> Self {
        Self {
            input: input.into(),
            to,
            from: None,
            timing: None,
            out_timing: None,
            overwrite: false,
            partial: false,
            sidecars: false,
            quality: 4,
            theme: None,
            conversation: false,
            redact: None,
            theme_name: None,
            edits: Edits::default(),
            more: Vec::new(),
            #[cfg(feature = "raster")]
            look: tapdeck_raster::Look::default(),
            #[cfg(feature = "raster")]
            fps: pictures::FPS,
            progress: None,
        }
    }

    /// Says the recording's format.
    #[must_use]
    pub fn from(mut self, from: Container) -> Self {
        self.from = Some(from);
        self
    }

    /// Names the timing file of the typescript that is read, or of the one that is written when
    /// none is read.
    #[must_use]
    pub fn timing(mut self, path: impl Into<PathBuf>) -> Self {
        self.timing = Some(path.into());
        self
    }

    /// Names the timing file of the typescript that is written.
    #[must_use]
    pub fn out_timing(mut self, path: impl Into<PathBuf>) -> Self {
        self.out_timing = Some(path.into());
        self
    }

    /// Replaces files that exist, and their sidecars.
    #[must_use]
    pub fn overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// Keeps what can be read of a recording that breaks off.
    #[must_use]
    pub fn partial(mut self, partial: bool) -> Self {
        self.partial = partial;
        self
    }

    /// Writes `meta.json` and the other sidecars beside an `.ahr`, for tools that want files.
    #[must_use]
    pub fn sidecars(mut self, sidecars: bool) -> Self {
        self.sidecars = sidecars;
        self
    }

    /// Sets how hard an `.ahr` is compressed, from 0 to 11.
    #[must_use]
    pub fn quality(mut self, quality: u8) -> Self {
        self.quality = quality;
        self
    }

    /// Sets the colours of a page or a picture; an asciicast and an `.ahr` carry them for a player.
    /// Left out, they are those that the recording carries, or those of [`Theme::default`].
    #[must_use]
    pub fn theme(mut self, theme: Theme) -> Self {
        self.theme = Some(theme);
        self
    }

    /// Writes only the conversation, as Markdown, HTML or JSON: prompts, answers, the tools that
    /// ran, and the questions that were asked back.
    #[must_use]
    pub fn as_conversation(mut self) -> Self {
        self.conversation = true;
        self
    }

    /// Masks secrets, names and identifiers in the conversation by these rules.
    #[must_use]
    pub fn redact(mut self, rules: Selection) -> Self {
        self.redact = Some(rules);
        self
    }

    /// Edits the recording on the way. It is then read twice before it is written.
    #[must_use]
    pub fn edit(mut self, edits: Edits) -> Self {
        self.edits = edits;
        self
    }

    /// Joins another recording to the end, of any format.
    #[must_use]
    pub fn join(mut self, other: impl Into<PathBuf>) -> Self {
        self.more.push(other.into());
        self
    }

    /// Names the theme in the history of an edited recording.
    #[must_use]
    pub fn theme_name(mut self, name: impl Into<String>) -> Self {
        self.theme_name = Some(name.into());
        self
    }

    /// Calls this now and then with the bytes that were read, and how many there are: 0 where that
    /// is unknown.
    #[must_use]
    pub fn progress(mut self, progress: impl FnMut(u64, u64) + 'static) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// Writes the file. It appears whole or not at all.
    ///
    /// # Errors
    /// When the recording cannot be read, or the file cannot be written.
    pub fn write(self, path: impl AsRef<Path>) -> Result<Converted, ConvertError> {
        self.run(&mut Target::File(path.as_ref().to_owned()))
    }

    /// Writes to a stream instead of a file.
    ///
    /// # Errors
    /// As [`Conversion::write`].
    pub fn write_to(self, writer: &mut dyn Write) -> Result<Converted, ConvertError> {
        self.run(&mut Target::Writer(writer))
    }

    fn run(mut self, output: &mut Target<'_>) -> Result<Converted, ConvertError> {
        if self.conversation && self.is_edit() {
            return Err(ConvertError::EditedConversation);
        }
        if self.conversation {
            return self.write_conversation(output);
        }
        let container = self.to.container();
        if let Some(c) = container
            && c.format != Format::Cassette
            && writer(c.format, Quality::default()).is_none()
        {
            return Err(ConvertError::ReadOnly(c));
        }
        if cfg!(not(feature = "raster")) && (self.to == To::Png || self.to.is_film()) {
            return Err(ConvertError::NoPictures(self.to));
        }
        if let Target::File(path) = output {
            for input in [&self.input].into_iter().chain(&self.more) {
                // Not even when asked: the sidecars of the one would be replaced before the other
                // is safe.
                if is_existing_same(path, input) {
                    return Err(ConvertError::SameFile(path.clone()));
                }
            }
        }
        let Opened { from, reader, count, total, beside, annotations, edited } = self.open()?;
        #[cfg(feature = "raster")]
        let largest = self.largest_screen()?;
        // Only a native recording tells of its pauses. In other formats they take no time.
        let native = container.is_some_and(|to| to.format == Format::Ahr);
        let reader = if native { reader } else { Box::new(Unpaused::new(reader)) };
        let mut reader = self.watch(reader, count, total);
        let (losses, written) = match container {
            Some(Container { format: Format::Cassette, .. }) => {
                let written = self.to_cassette(output, from, &mut reader)?;
                let mut losses: Vec<_> = beside.left_behind(&self.input, self.to)?.into_iter().collect();
                losses.extend(
                    header_losses(reader.header()).iter().filter(|_| from.format != Format::Cassette),
                );
                (losses, written)
            }
            Some(to) => {
                let mut main = Main::create(output, self.overwrite, OutFile::create)?;
                let losses = self.to_tape(from, to, &mut reader, &mut main, beside, edited.as_ref())?;
                (losses, main.written)
            }
            None => {
                let mut main = Main::create(output, self.overwrite, OutFile::create_shared)?;
                let cut = match self.to {
                    #[cfg(feature = "raster")]
                    To::Png => self.still(&mut reader, &mut main).map(|()| None)?,
                    #[cfg(feature = "raster")]
                    to if to.is_film() => self.film(&mut reader, largest, &mut main).map(|()| None)?,
                    _ => self.to_export(&mut reader, annotations, &mut main)?,
                };
                self.stop_if_broken(&reader)?;
                main.commit()?;
                let mut losses = export_losses(self.to, &reader.seen);
                losses.extend(cut);
                losses.extend(beside.left_behind(&self.input, self.to)?);
                (losses, main.written)
            }
        };
        let seen = reader.seen;
        Ok(Converted {
            from,
            to: self.to,
            events: seen.events,
            output_bytes: seen.output_bytes,
            duration: seen.end.since_start(),
            written,
            losses,
            notes: seen.notes,
            more_notes: seen.more_notes,
            broke_off: seen.broke_off,
            conversation: None,
            removed: edited.map(|edited| edited.removed()).unwrap_or_default(),
        })
    }

    /// Opens the recording, as it is or edited.
    fn open(&self) -> Result<Opened, ConvertError> {
        let count = Arc::<AtomicU64>::default();
        let mut beside = Beside::default();
        let mut annotations = Annotations::default();
        let mut edited = None;
        let (from, reader, total) = if self.is_edit() {
            let source = Source::find(&self.input, self.from, self.timing.as_deref())?;
            let from = source.container();
            let opened = self.open_edited(source, &count)?;
            (beside, annotations.turns) = (opened.beside, opened.turns);
            edited = Some(opened.edited);
            if let Some(lines) = beside.instructions.take_if(|_| self.to.has_turns()) {
                let read = |why| SourceError::Read { path: self.input.clone(), why };
                annotations.instructions = instructions_of(lines).map_err(read)?;
            }
            (from, opened.reader, opened.total)
        } else if is_stream(&self.input) {
            let (from, reader) = open_stream(&self.input, self.from, self.timing.as_deref(), &count)?;
            (from, reader, 0)
        } else {
            let source = Source::find(&self.input, self.from, self.timing.as_deref())?;
            if source.container().format == Format::Ahr {
                beside = Beside::of(&source);
            }
            if self.to.has_turns() {
                annotations.turns = source.turns()?;
                annotations.instructions = source.instructions()?;
            }
            (source.container(), source.open_counted(&count)?, source.len())
        };
        Ok(Opened { from, reader, count, total, beside, annotations, edited })
    }

    /// Watches what is read.
    fn watch(&mut self, reader: Box<dyn EventReader>, count: Arc<AtomicU64>, total: u64) -> Watched {
        let progress = self.progress.take().map(|f| (f, count, total));
        let mut header = reader.header().clone();
        if let Some(theme) = self.theme.filter(|_| self.to.carries_theme()) {
            header.theme = Some(theme_value(&theme));
        }
        Watched { inner: reader, header, progress, seen: Seen::default() }
    }

    /// Writes a cassette: a folder, or one archive by its name.
    fn to_cassette(
        &self,
        output: &Target<'_>,
        from: Container,
        reader: &mut Watched,
    ) -> Result<u64, ConvertError> {
        let Target::File(path) = output else { return Err(ConvertError::CassetteToWriter) };
        if from.format == Format::Cassette && !is_stream(&self.input) && !self.is_edit() {
            // Its evidence stays the same in either form, and so do its id and digests.
            while reader.next_item().map_err(|e| self.reading_failed(e))?.is_some() {}
            return cassette::repack(&self.input, path, self.overwrite);
        }
        let packing = cassette::Packing::read(reader, path, self.overwrite)?;
        self.stop_if_broken(reader)?;
        packing.commit()
    }

    /// Writes another recording, with what a native one says of itself.
    fn to_tape(
        &self,
        from: Container,
        to: Container,
        reader: &mut Watched,
        main: &mut Main<'_>,
        mut beside: Beside,
        edited: Option<&Edited>,
    ) -> Result<Vec<(Loss, Count)>, ConvertError> {
        let native = to.format == Format::Ahr;
        let quality = Quality::Brotli(self.quality);
        let mut target: Box<dyn EventWriter> = match native {
            true => Box::new(AhrWriter::new(quality).carrying(beside.take_events())),
            false => writer(to.format, quality).ok_or(ConvertError::ReadOnly(to))?,
        };
        let mut timing = match to.format {
            Format::Typescript => Some(Side::create(self.timing_path(main, from)?, self.overwrite)?),
            _ => None,
        };
        let mut zst = match to.zst {
            true => Some(ZstWriter::new(3).map_err(ConvertError::Compress)?),
            false => None,
        };
        let mut digest = RunningDigest::default();
        let mut place = None;
        let header = reader.header().clone();
        let mut put = |main: &mut Main<'_>, bytes: &mut Vec<u8>, digest: &mut RunningDigest| {
            digest.update(bytes);
            if let Some(zst) = &mut zst {
                zst.step(bytes).map_err(ConvertError::Compress)?;
            }
            main.put(bytes)
        };
        let result = copy::<CopyError>(reader, &mut *target, |parts: &mut Parts, _| {
            place = parts.place.or(place);
            put(main, &mut parts.main, &mut digest)?;
            if let Some(timing) = &mut timing {
                timing.put(&parts.timing)?;
            }
            Ok(())
        });
        let report = match result {
            Ok(report) => report,
            Err(CopyError::Out(failed)) => return Err(failed),
            Err(CopyError::Tape(e)) => return Err(self.reading_failed(e)),
        };
        if let Some(place) = place {
            let mut add = |main: &mut Main<'_>, name, bytes: &[u8], digest: &mut RunningDigest| {
                put(main, &mut part_blocks(&[(name, bytes)], place, quality, true).concat(), digest)
            };
            if let Some(mut old) = beside.instructions.take() {
                let mut piece = vec![0; PIECE];
                loop {
                    let n = old.read(&mut piece).map_err(ConvertError::write(&self.input))?;
                    if n == 0 {
                        break;
                    }
                    add(main, INSTRUCTIONS, &piece[..n], &mut digest)?;
                }
            }
            let old = beside.meta.take();
            let mut meta = match edited {
                Some(edited) => edited_meta(&header, old, &reader.seen, edited.history.clone()),
                None => new_meta(&header, old, &reader.seen),
            };
            meta.brotli_q = Some(self.quality);
            meta.digest = Some(digest.digest());
            let line = meta.to_line().map_err(|e| self.reading_failed(e))?;
            add(main, META, &line, &mut digest)?;
        }
        if let Some(zst) = zst {
            main.put(&zst.finish().map_err(ConvertError::Compress)?)?;
        }
        self.stop_if_broken(reader)?;
        let path = main.path().to_owned();
        let in_file = native && !main.is_stream();
        if in_file && self.overwrite {
            forget_sidecars(&path).map_err(ConvertError::write(&path))?;
        }
        main.commit()?;
        let mut losses: Vec<_> = report.losses.iter().collect();
        losses.extend(beside.left_behind(&self.input, self.to)?);
        if let Some(timing) = timing {
            timing.commit()?;
        }
        if in_file && self.sidecars {
            write_sidecars(&path)?;
        }
        Ok(losses)
    }

    /// Writes a picture of the session, and returns what of it had to be left out.
    fn to_export(
        &self,
        reader: &mut Watched,
        annotations: Annotations,
        main: &mut Main<'_>,
    ) -> Result<Option<(Loss, Count)>, ConvertError> {
        let lines = |form, reader: &mut Watched, annotations: Annotations, main: &mut Main<'_>| {
            export::lines(form, reader, annotations, ALL_ROWS, BufWriter::with_capacity(1 << 16, main))
        };
        let mut cut = None;
        let mut svg = SvgOptions::default();
        svg.theme = self.theme.or_else(|| theme_of(reader.header()));
        let result = match self.to {
            To::Html => {
                let mut html = HtmlOptions::default();
                html.theme = svg.theme;
                export::html(reader, annotations, html, BufWriter::new(&mut *main))
            }
            To::Svg => {
                let film = export::svg_animated(reader, svg, BufWriter::new(&mut *main));
                film.map(|end| {
                    cut = end.map(|_| (Loss::Frames, Count { events: reader.count_rest(), bytes: 0 }));
                })
            }
            To::SvgStill => Replay::to_end(reader, 0)
                .and_then(|replay| export::svg_still(replay.term(), svg, BufWriter::new(&mut *main))),
            To::Ansi => lines(LinesAs::Ansi, reader, annotations, main),
            To::Md => lines(LinesAs::Md, reader, annotations, main),
            To::Json => lines(LinesAs::Json, reader, annotations, main),
            To::Csv => lines(LinesAs::Csv, reader, annotations, main),
            _ => lines(LinesAs::Txt, reader, annotations, main),
        };
        match result {
            Ok(()) => Ok(cut),
            Err(tapdeck_tape::Error::Write { source, .. }) => {
                Err(ConvertError::Write { path: main.path().to_owned(), source })
            }
            Err(e) => Err(self.reading_failed(e)),
        }
    }

    fn reading_failed(&self, source: tapdeck_tape::Error) -> ConvertError {
        ConvertError::Read { path: self.input.clone(), source }
    }

    /// Gives up over a source that broke off, unless what came before it is wanted, and over one in
    /// which nothing but damage was found.
    fn stop_if_broken(&self, reader: &Watched) -> Result<(), ConvertError> {
        let seen = &reader.seen;
        if seen.events == 0 && seen.broke_off.is_none() && !seen.notes.is_empty() {
            return Err(ConvertError::Nothing(self.input.clone()));
        }
        match &seen.broke_off {
            Some(why) if !self.partial => {
                Err(ConvertError::BrokeOff { path: self.input.clone(), why: why.clone() })
            }
            _ => Ok(()),
        }
    }
}

/// Whether two names lead to one file that exists.
fn is_existing_same(a: &Path, b: &Path) -> bool {
    std::fs::canonicalize(a).is_ok_and(|a| std::fs::canonicalize(b).is_ok_and(|b| a == b))
}

/// What no picture of a session shows, and what these do not.
fn export_losses(to: To, seen: &Seen) -> Vec<(Loss, Count)> {
    let mut losses = vec![(Loss::Input, seen.input)];
    if matches!(to, To::Txt | To::Ansi | To::SvgStill) {
        losses.extend([(Loss::Marker, seen.markers), (Loss::Snapshot, seen.snapshots)]);
    }
    losses.retain(|(_, count)| count.events > 0);
    losses
}

/// Why a recording was not copied.
enum CopyError {
    Tape(tapdeck_tape::Error),
    Out(ConvertError),
}

impl From<tapdeck_tape::Error> for CopyError {
    fn from(e: tapdeck_tape::Error) -> Self {
        Self::Tape(e)
    }
}

impl From<ConvertError> for CopyError {
    fn from(e: ConvertError) -> Self {
        Self::Out(e)
    }
}

/// What passed by on the way.
#[derive(Default)]
struct Seen {
    events: u64,
    output_bytes: u64,
    end: Time,
    input: Count,
    markers: Count,
    snapshots: Count,
    ending: Option<tapdeck_core::Exit>,
    notes: Vec<String>,
    more_notes: u64,
    /// Why there is no more, where that is not the end.
    broke_off: Option<String>,
}

impl Seen {
    fn item(&mut self, item: &Item) {
        let event = match item {
            Item::Note(note) if self.notes.len() < MAX_NOTES => return self.notes.push(note.to_string()),
            Item::Note(_) => return self.more_notes += 1,
            Item::Event(event) => event,
        };
        self.events += 1;
        self.end = event.time;
        let add = |count: &mut Count, bytes: usize| {
            count.events += 1;
            count.bytes += bytes as u64;
        };
        match &event.kind {
            Kind::Output(bytes) => self.output_bytes += bytes.len() as u64,
            Kind::Input(bytes) => add(&mut self.input, bytes.len()),
            Kind::Marker(_) => add(&mut self.markers, 0),
            Kind::Snapshot { .. } => add(&mut self.snapshots, 0),
            Kind::Exit(exit) => self.ending = Some(*exit),
            _ => {}
        }
    }
}

/// A progress callback, the bytes that were read, and how many there are.
type Progress = (Box<dyn FnMut(u64, u64)>, Arc<AtomicU64>, u64);

/// A reader that is watched: what passes is counted, and a source that breaks off ends instead, so
/// that what came before it can be kept.
struct Watched {
    inner: Box<dyn EventReader>,
    header: Header,
    progress: Option<Progress>,
    seen: Seen,
}

impl Watched {
    /// Reads to the end, and counts the events.
    fn count_rest(&mut self) -> u64 {
        let before = self.seen.events;
        while let Ok(Some(_)) = self.next_item() {}
        self.seen.events - before
    }
}

impl EventReader for Watched {
    fn header(&self) -> &Header {
        &self.header
    }

    fn next_item(&mut self) -> tapdeck_tape::Result<Option<Item>> {
        if let Some((progress, done, total)) = &mut self.progress {
            progress(done.load(Ordering::Relaxed), *total);
        }
        match self.inner.next_item() {
            Ok(Some(item)) => {
                self.seen.item(&item);
                Ok(Some(item))
            }
            Ok(None) => Ok(None),
            Err(e) => {
                self.seen.broke_off = Some(e.to_string());
                Ok(None)
            }
        }
    }

    fn position(&self) -> u64 {
        self.inner.position()
    }
}

/// A recording that was opened to be converted.
struct Opened {
    from: Container,
    reader: Box<dyn EventReader>,
    /// Bytes that were read.
    count: Arc<AtomicU64>,
    total: u64,
    beside: Beside,
    annotations: Annotations,
    edited: Option<Edited>,
}

/// Where the output goes.
enum Target<'a> {
    File(PathBuf),
    Writer(&'a mut dyn Write),
}

/// The output: a file that appears at the end, or a stream.
struct Main<'a> {
    path: PathBuf,
    to: Out<'a>,
    written: u64,
}

enum Out<'a> {
    File(Option<OutFile>),
    Writer(&'a mut dyn Write),
}

impl<'a> Main<'a> {
    /// Begins the output. `create` decides who may read it.
    fn create(
        target: &'a mut Target<'_>,
        overwrite: bool,
        create: fn(&Path, bool) -> io::Result<OutFile>,
    ) -> Result<Self, ConvertError> {
        let (path, to) = match target {
            Target::File(path) => {
                let file = create(path, overwrite).map_err(ConvertError::write(path))?;
                (path.clone(), Out::File(Some(file)))
            }
            Target::Writer(writer) => (PathBuf::new(), Out::Writer(&mut **writer)),
        };
        Ok(Self { path, to, written: 0 })
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn is_stream(&self) -> bool {
        matches!(self.to, Out::Writer(_))
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), ConvertError> {
        self.write_all(bytes).map_err(ConvertError::write(&self.path.clone()))
    }

    fn commit(&mut self) -> Result<(), ConvertError> {
        let done = match &mut self.to {
            Out::File(file) => file.take().map_or(Ok(()), OutFile::commit),
            Out::Writer(writer) => writer.flush(),
        };
        done.map_err(ConvertError::write(&self.path))
    }
}

impl Write for Main<'_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = match &mut self.to {
            Out::File(Some(file)) => file.write(buf)?,
            Out::File(None) => return Err(io::Error::other("the file is finished")),
            Out::Writer(writer) => writer.write(buf)?,
        };
        self.written += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            Out::File(Some(file)) => file.flush(),
            Out::File(None) => Ok(()),
            Out::Writer(writer) => writer.flush(),
        }
    }
}
