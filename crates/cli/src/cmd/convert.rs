//! `tapdeck convert`: a recording in another format, or as something that needs no terminal.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tapdeck_host::{Source, SourceError, forget_sidecars, is_stream, open_stream, sidecar};
use tapdeck_tape::ahr::{AhrWriter, Quality};
use tapdeck_tape::cassette::header_losses;
use tapdeck_tape::event::Count;
use tapdeck_tape::export::{self, HtmlOptions, LinesAs, SvgOptions};
use tapdeck_tape::zst::ZstWriter;
use tapdeck_tape::{
    Container, EventReader, EventWriter, Format, Header, Item, Kind, Loss, Parts, Replay, convert as copy,
    writer,
};

use super::cassette;
use crate::ending::{Ending, code, output_failed, print, say};
use crate::failure::{Failure, Result};
use crate::formats::{self, Export, Target, container_name};
use crate::human;
use crate::out_file::OutFile;
use crate::progress::Progress;

mod beside;
mod losses;

use beside::{Beside, Side, beside_failed, new_meta, timing_path};
pub(crate) use losses::losses_text;
use losses::{export_losses, losses_json};

/// Convert a recording to another format, or export what it shows.
#[derive(Args)]
#[command(
    visible_alias = "export",
    after_help = "\
Formats, by the end of the name or with --from and --to:
  recordings   ahr, cast (asciicast v3), cast-v2, ttyrec, typescript, ans, 3a, raw; .zst behind any
  cassettes    a folder (--to cassette, or a name in .cassette) or one archive (.tar.zst)
  read only    cast-v1
  exports      txt, ansi (text with colours), md, json, csv, html (plays), svg, svg-still

What the target cannot carry is counted and said. The output appears whole or not at all.

Examples:
  tapdeck convert demo.ahr -o demo.cast
  tapdeck convert demo.ahr -o demo.html
  tapdeck convert typescript --timing typescript.timing -o demo.ahr
  curl -s https://example.org/demo.cast | tapdeck convert - -o - --to txt | less"
)]
pub(crate) struct ConvertArgs {
    /// The recording; `-` for standard input
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// Where to; `-` for standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// The recording's format, if it cannot be told from its content and name
    #[arg(long, value_name = "FORMAT", value_parser = formats::container)]
    from: Option<Container>,
    /// The format to write, if it is not the one that OUT's name says
    #[arg(long, value_name = "FORMAT", value_parser = formats::target)]
    to: Option<Target>,
    /// The timing file of a typescript that is read (or of the one written, when none is read)
    #[arg(long, value_name = "FILE")]
    timing: Option<PathBuf>,
    /// The timing file of a typescript that is written; OUT.timing when left out
    #[arg(long, value_name = "FILE")]
    out_timing: Option<PathBuf>,
    /// Replace files that are there, and what stands beside them
    #[arg(long)]
    overwrite: bool,
    /// Keep what could be read of a recording that breaks off
    #[arg(long)]
    partial: bool,
    /// How hard to compress an .ahr, from 0 to 11
    #[arg(long, value_name = "Q", default_value_t = 4, value_parser = clap::value_parser!(u8).range(0..=11))]
    brotli_q: u8,
    /// Say nothing when all is well
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Report in JSON: on standard output, or on standard error when that carries the recording
    #[arg(long)]
    json: bool,
}

/// Lines that an export keeps until they are certain.
const ALL_ROWS: usize = 1_000_000;
/// Remarks beyond this many are only counted.
const MAX_NOTES: usize = 100;

pub(crate) fn run(args: &ConvertArgs) -> Result {
    let result = convert(args);
    match (&result, args.json) {
        (Ok(done), true) => args.report_json(&done.to_json(args)),
        (Ok(done), false) => done.say(args),
        (Err(fail), true) => args.report_json(&json!({
            "in": args.input.to_string_lossy(),
            "out": args.output.to_string_lossy(),
            "error": fail.message,
        })),
        (Err(fail), false) => say(&fail.message),
    }
    match result {
        Ok(done) => Ok(Ending::of_check(done.seen.broke_off.is_none())),
        Err(fail) => Err(Failure::reported(Failure::from((fail.message, fail.code)).kind())),
    }
}

impl ConvertArgs {
    fn to_stdout(&self) -> bool {
        self.output.as_os_str() == "-"
    }

    fn report_json(&self, value: &Value) {
        if self.to_stdout() {
            let _ = writeln!(io::stderr(), "{}", human::json(value));
        } else {
            print(format_args!("{}\n", human::json(value)));
        }
    }

    fn target(&self) -> Result<Target, Fail> {
        let found = self.to.or_else(|| Target::of_path(&self.output));
        let target = found.ok_or_else(|| {
            let path = self.output.display();
            Fail::usage(format!("{path}: its name says no format that can be written: say which with --to"))
        })?;
        if let Target::Tape(c) = target
            && c.format != Format::Cassette
            && writer(c.format, Quality::default()).is_none()
        {
            return Err(Fail::usage(format!("{} can be read, but not written", container_name(c))));
        }
        if self.to_stdout() && !target.is_tame() && io::stdout().is_terminal() {
            let what = target.name();
            return Err(Fail::usage(format!(
                "{what} could act on this terminal: name a file, or use a pipe"
            )));
        }
        Ok(target)
    }
}

/// What went wrong, and the exit code for it.
struct Fail {
    message: String,
    code: i32,
}

impl Fail {
    fn usage(message: String) -> Self {
        Self { message, code: code::USAGE }
    }

    fn output(path: &Path, e: &io::Error) -> Self {
        if path.as_os_str() == "-" {
            output_failed(e);
        }
        let path = path.display();
        match e.kind() {
            io::ErrorKind::AlreadyExists => {
                Self::usage(format!("{path} exists: give another name, or --overwrite"))
            }
            io::ErrorKind::ResourceBusy => Self::usage(format!("cannot write {path}: {e}")),
            _ => Self { message: format!("cannot write {path}: {e}"), code: code::IO },
        }
    }
}

impl From<Failure> for Fail {
    fn from(failure: Failure) -> Self {
        Self { message: failure.message().to_owned(), code: failure.kind().exit_code() }
    }
}

impl From<SourceError> for Fail {
    fn from(e: SourceError) -> Self {
        Failure::from(e).into()
    }
}

/// A conversion that was carried through.
struct Done {
    from: Container,
    target: Target,
    seen: Seen,
    losses: Vec<(Loss, Count)>,
    written: u64,
}

fn convert(args: &ConvertArgs) -> Result<Done, Fail> {
    let target = args.target()?;
    let count = Arc::<AtomicU64>::default();
    let mut beside = Beside::default();
    let (from, reader, total) = if is_stream(&args.input) {
        let (from, reader) = open_stream(&args.input, args.from, args.timing.as_deref(), &count)?;
        (from, reader, 0)
    } else {
        let source = Source::find(&args.input, args.from, args.timing.as_deref())?;
        // Not even when asked: the sidecars of the one would be replaced before the other is safe.
        if std::fs::canonicalize(&args.output)
            .is_ok_and(|out| std::fs::canonicalize(&args.input).is_ok_and(|i| i == out))
        {
            return Err(Fail::usage(format!(
                "{} would be replaced by itself: give another name",
                args.output.display()
            )));
        }
        if source.container().format == Format::Ahr {
            beside = Beside::of(&source);
        }
        (source.container(), source.open_counted(&count)?, source.len())
    };
    let mut reader =
        Watched { inner: reader, progress: Progress::new("converting", total, count), seen: Seen::default() };
    if let Target::Tape(Container { format: Format::Cassette, .. }) = target {
        let written = to_cassette(args, from, &mut reader)?;
        reader.progress.clear();
        let mut losses: Vec<_> = beside.left_behind(args)?.into_iter().collect();
        losses.extend(header_losses(reader.header()).iter().filter(|_| from.format != Format::Cassette));
        return Ok(Done { from, target, seen: reader.seen, losses, written });
    }
    let mut main = Main::create(&args.output, args.overwrite)?;
    let losses = match target {
        Target::Tape(container) => to_tape(args, from, container, &mut reader, &mut main, beside)?,
        Target::Export(kind) => {
            let cut = to_export(args, kind, &mut reader, &mut main)?;
            main.commit(&args.output)?;
            let mut losses = export_losses(kind, &reader.seen);
            losses.extend(cut);
            losses.extend(beside.left_behind(args)?);
            losses
        }
    };
    reader.progress.clear();
    Ok(Done { from, target, seen: reader.seen, losses, written: main.written })
}

/// Writes a cassette: a folder, or one archive by its name.
fn to_cassette(args: &ConvertArgs, from: Container, reader: &mut Watched) -> Result<u64, Fail> {
    let failed = Fail::from;
    if args.to_stdout() {
        return Err(Fail::usage("a cassette is a folder: it cannot go to standard output".into()));
    }
    if from.format == Format::Cassette && !is_stream(&args.input) {
        // Its evidence stays the same in either form, and so do its id and digests.
        while reader.next_item().map_err(|e| reading_failed(args, &e))?.is_some() {}
        return cassette::repack(&args.input, &args.output, args.overwrite).map_err(failed);
    }
    let packing = cassette::Packing::read(reader, &args.output, args.overwrite).map_err(failed)?;
    reader.stop_if_broken(args)?;
    packing.commit().map_err(failed)
}

/// Writes another recording, and what goes beside it.
fn to_tape(
    args: &ConvertArgs,
    from: Container,
    to: Container,
    reader: &mut Watched,
    main: &mut Main,
    mut beside: Beside,
) -> Result<Vec<(Loss, Count)>, Fail> {
    let quality = Quality::Brotli(args.brotli_q);
    let native = to.format == Format::Ahr && !to.zst && !args.to_stdout();
    let alone = || Box::new(AhrWriter::new(quality).alone()) as Box<dyn EventWriter>;
    let made = if to.format == Format::Ahr && !native { Some(alone()) } else { writer(to.format, quality) };
    let Some(mut target) = made else {
        return Err(Fail::usage(format!("{} cannot be written", container_name(to))));
    };
    let side = |suffix| Side::create(sidecar(&args.output, suffix), args.overwrite);
    let mut events = native.then(|| side("events.jsonl")).transpose()?;
    let mut meta_file = native.then(|| side("meta.json")).transpose()?;
    let mut snapshots = match &mut beside.snapshots {
        Some(old) if native => {
            let mut file = side("snapshots.jsonl")?;
            file.copy(old)?;
            Some(file)
        }
        _ => None,
    };
    let old_meta = beside.meta.take();
    let mut labels = Count::default();
    let mut timing = match to.format {
        Format::Typescript => Some(Side::create(timing_path(args, from)?, args.overwrite)?),
        _ => None,
    };
    let mut zst = match to.zst {
        true => Some(ZstWriter::new(3).map_err(|e| Fail { message: e.to_string(), code: code::IO })?),
        false => None,
    };
    let header = reader.header().clone();
    let result = copy::<Stop>(reader, &mut *target, |parts: &mut Parts, _| {
        if let Some(zst) = &mut zst {
            zst.step(&mut parts.main)?;
        }
        main.put(&args.output, &parts.main)?;
        if let Some(timing) = &mut timing {
            timing.put(&parts.timing)?;
        }
        match (&mut events, &mut beside.events) {
            (Some(events), Some(old)) => {
                old.merge::<Stop>(&parts.events, |line| Ok(events.put(line)?))?;
            }
            (Some(events), None) => events.put(&parts.events)?,
            (None, _) => labels.events += line_count(&parts.events),
        }
        Ok(())
    });
    let report = match result {
        Ok(report) => report,
        Err(Stop::Out(fail)) => return Err(fail),
        Err(Stop::Tape(e)) => return Err(reading_failed(args, &e)),
    };
    if let Some(zst) = zst {
        let end = zst.finish().map_err(|e| reading_failed(args, &e))?;
        main.put(&args.output, &end)?;
    }
    reader.stop_if_broken(args)?;
    main.commit(&args.output)?;
    if native && args.overwrite {
        forget_sidecars(&args.output);
    }
    let mut losses: Vec<_> = report.losses.iter().collect();
    if let (Some(events), Some(old)) = (&mut events, &mut beside.events) {
        while let Some(line) = old.next_up_to(u64::MAX).map_err(|e| beside_failed(args, &e))? {
            events.put(&line)?;
        }
    } else {
        losses.extend(beside.left_behind(args)?);
    }
    if labels.events > 0 {
        losses.push((Loss::Labels, labels));
    }
    for file in [timing, events, snapshots.take()].into_iter().flatten() {
        file.commit()?;
    }
    if let Some(mut file) = meta_file.take() {
        let mut meta = new_meta(&header, old_meta, &reader.seen);
        meta.brotli_q = Some(args.brotli_q);
        meta.sha256 = tapdeck_host::file_digest(&args.output).ok();
        let bytes = meta.to_bytes().map_err(|e| Fail { message: e.to_string(), code: code::IO })?;
        file.put(&bytes)?;
        file.commit()?;
    }
    Ok(losses)
}

fn line_count(lines: &[u8]) -> u64 {
    lines.iter().filter(|b| **b == b'\n').count() as u64
}

/// Writes a picture of the session, and says what of it had to be left out.
fn to_export(
    args: &ConvertArgs,
    kind: Export,
    reader: &mut Watched,
    main: &mut Main,
) -> Result<Option<(Loss, Count)>, Fail> {
    let lines = |form, reader: &mut Watched, main: &mut Main| {
        export::lines(form, reader, ALL_ROWS, BufWriter::with_capacity(1 << 16, main))
    };
    let mut cut = None;
    let result = match kind {
        Export::Html => export::html(reader, HtmlOptions::default(), BufWriter::new(&mut *main)),
        Export::Svg => {
            let film = export::svg_animated(reader, SvgOptions::default(), BufWriter::new(&mut *main));
            film.map(|end| cut = end.map(|_| (Loss::Frames, Count { events: reader.count_rest(), bytes: 0 })))
        }
        Export::SvgStill => Replay::to_end(reader, 0).and_then(|replay| {
            export::svg_still(replay.term(), SvgOptions::default(), BufWriter::new(&mut *main))
        }),
        Export::Txt => lines(LinesAs::Txt, reader, main),
        Export::Ansi => lines(LinesAs::Ansi, reader, main),
        Export::Md => lines(LinesAs::Md, reader, main),
        Export::Json => lines(LinesAs::Json, reader, main),
        Export::Csv => lines(LinesAs::Csv, reader, main),
    };
    match result {
        Ok(()) => reader.stop_if_broken(args).map(|()| cut),
        Err(tapdeck_tape::Error::Write { source, .. }) => Err(Fail::output(&args.output, &source)),
        Err(e) => Err(reading_failed(args, &e)),
    }
}

fn reading_failed(args: &ConvertArgs, e: &tapdeck_tape::Error) -> Fail {
    Fail { message: format!("{}: {e}", args.input.display()), code: code::IO }
}

/// Why the copying stopped.
enum Stop {
    Tape(tapdeck_tape::Error),
    Out(Fail),
}

impl From<tapdeck_tape::Error> for Stop {
    fn from(e: tapdeck_tape::Error) -> Self {
        Stop::Tape(e)
    }
}

impl From<Fail> for Stop {
    fn from(fail: Fail) -> Self {
        Stop::Out(fail)
    }
}

/// What passed by on the way.
#[derive(Default)]
struct Seen {
    events: u64,
    output_bytes: u64,
    duration_ns: u64,
    input: Count,
    markers: Count,
    snapshots: Count,
    ending: Option<Kind>,
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
        self.duration_ns = event.time_ns;
        let add = |count: &mut Count, bytes: usize| {
            count.events += 1;
            count.bytes += bytes as u64;
        };
        match &event.kind {
            Kind::Output(bytes) => self.output_bytes += bytes.len() as u64,
            Kind::Input(bytes) => add(&mut self.input, bytes.len()),
            Kind::Marker(_) => add(&mut self.markers, 0),
            Kind::Snapshot { .. } => add(&mut self.snapshots, 0),
            Kind::Exit(_) | Kind::Signal(_) => self.ending = Some(event.kind.clone()),
            _ => {}
        }
    }
}

/// A reader that is watched: what passes is counted, and a source that breaks off ends instead, so that what
/// came before it can be kept.
struct Watched {
    inner: Box<dyn EventReader>,
    progress: Progress,
    seen: Seen,
}

impl Watched {
    /// Reads to the end, and counts the events.
    fn count_rest(&mut self) -> u64 {
        let before = self.seen.events;
        while let Ok(Some(_)) = self.next_item() {}
        self.seen.events - before
    }

    /// Gives up over a source that broke off, unless what came before it is wanted.
    fn stop_if_broken(&self, args: &ConvertArgs) -> Result<(), Fail> {
        match &self.seen.broke_off {
            Some(why) if !args.partial => {
                let path = args.input.display();
                let message =
                    format!("{path}: {why}: nothing was written; --partial keeps what comes before");
                Err(Fail { message, code: code::IO })
            }
            _ => Ok(()),
        }
    }
}

impl EventReader for Watched {
    fn header(&self) -> &Header {
        self.inner.header()
    }

    fn next_item(&mut self) -> tapdeck_tape::Result<Option<Item>> {
        self.progress.tick();
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

/// The output: a file that appears at the end, or standard output.
struct Main {
    file: Option<OutFile>,
    written: u64,
}

impl Main {
    fn create(path: &Path, overwrite: bool) -> Result<Self, Fail> {
        let file = match path.as_os_str() == "-" {
            true => None,
            false => Some(OutFile::create(path, overwrite).map_err(|e| Fail::output(path, &e))?),
        };
        Ok(Self { file, written: 0 })
    }

    fn put(&mut self, path: &Path, bytes: &[u8]) -> Result<(), Fail> {
        self.write_all(bytes).map_err(|e| Fail::output(path, &e))
    }

    fn commit(&mut self, path: &Path) -> Result<(), Fail> {
        let done = match self.file.take() {
            Some(file) => file.commit(),
            None => io::stdout().flush(),
        };
        done.map_err(|e| Fail::output(path, &e))
    }
}

impl Write for Main {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = match &mut self.file {
            Some(file) => file.write(buf)?,
            None => io::stdout().write(buf)?,
        };
        self.written += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.file {
            Some(file) => file.flush(),
            None => io::stdout().flush(),
        }
    }
}

impl Done {
    fn say(&self, args: &ConvertArgs) {
        if !args.quiet {
            say(format_args!(
                "{} to {}: {} events, {} of output, {}; {} written",
                container_name(self.from),
                self.target.name(),
                self.seen.events,
                human::bytes(self.seen.output_bytes),
                human::duration(Duration::from_nanos(self.seen.duration_ns)),
                human::bytes(self.written),
            ));
        }
        for note in self.seen.notes.iter().take(5) {
            say(format_args!("{}: {note}", args.input.display()));
        }
        let more = self.seen.notes.len().saturating_sub(5) as u64 + self.seen.more_notes;
        if more > 0 {
            say(format_args!("{}: and {more} more remarks", args.input.display()));
        }
        if let Some(why) = &self.seen.broke_off {
            say(format_args!("{}: {why}: what comes before it was kept", args.input.display()));
        }
        if !self.losses.is_empty() {
            say(format_args!("what {} cannot carry: {}", self.target.name(), losses_text(&self.losses)));
        }
    }

    fn to_json(&self, args: &ConvertArgs) -> Value {
        json!({
            "in": args.input.to_string_lossy(),
            "out": args.output.to_string_lossy(),
            "from": container_name(self.from),
            "to": self.target.name(),
            "events": self.seen.events,
            "output_bytes": self.seen.output_bytes,
            "duration_ns": self.seen.duration_ns,
            "written_bytes": self.written,
            "not_carried": losses_json(&self.losses),
            "notes": self.seen.notes,
            "more_notes": self.seen.more_notes,
            "broke_off": self.seen.broke_off,
        })
    }
}
