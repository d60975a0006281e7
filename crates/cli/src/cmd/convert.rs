//! `tapdeck convert`: a recording in another format, or as something that needs no terminal.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tapdeck::convert::{
    ConversationReport, Conversion, ConvertError, Converted, EditError, Edits, Removed, To,
};
use tapdeck::scrub::Selection;
use tapdeck_tape::Container;
use tapdeck_term::Theme;

use crate::config::Config;
use crate::ending::{Ending, output_failed, print, say};
use crate::failure::{Failure, Result};
use crate::formats;
use crate::human;
use crate::keys::IdentityArgs;
use crate::parse::{self, Position};
use crate::progress::Progress;

mod losses;
#[cfg(feature = "raster")]
mod pictures;

pub(crate) use losses::losses_text;
use losses::{losses_json, losses_that_matter};

/// Convert a recording to another format, edit it, or export it as text, a picture or a film.
#[derive(Args)]
#[command(
    visible_alias = "export",
    after_help = "\
Formats, by extension or with --input-format and --format:
  recordings   ahr, cast (asciicast v3), cast-v2, ttyrec, typescript, ans, 3a, raw; .zst compresses any
  cassettes    a folder (--format cassette, or a name in .cassette) or one archive (.tar.zst)
  read only    cast-v1
  exports      txt, ansi (text with colors), md, json, csv, html (plays), svg, svg-still
  pictures     png; films: gif, apng, and with ffmpeg installed webp, mp4, webm
  conversation md, html and json, with --as conversation: prompts and answers

Positions for --from, --to, --cut and --mark, all in the times of IN:
  1:23, 83s    a time; what happens at that time lies before it
  50%          a share of the time
  @LABEL       a marker, or a snapshot's label or id
  turn:3       where the answer of a turn begins
  line:12      when a line was complete, as branch-points counts lines
  byte:4096    a number of bytes of output

In --mark WHERE=LABEL the first = ends WHERE; write \\= for one in a marker's own label.

A cut carries the screen: what follows looks as it did, with its scrollback. Use scrub to remove what
was shown, because it may still be on the screen after a cut. --idle-time-limit applies before --speed.
An edited .ahr says in its meta.json what was done to which recording, and is not sealed.

Reports important losses; --json counts all of them. The output is written completely or not at all.

Examples:
  tapdeck convert demo.ahr -o demo.cast
  tapdeck convert demo.ahr -o demo.html
  tapdeck convert demo.ahr -o demo.svg --theme light
  tapdeck convert claude.ahr -o chat.md --as conversation --redact
  tapdeck convert demo.ahr -o short.ahr --from 10s --to 1:00
  tapdeck convert demo.ahr -o short.cast --cut 0:20..0:50 --idle-time-limit 1s --speed 2
  tapdeck convert demo.ahr -o marked.ahr --mark 0:05=build --mark turn:2=fix
  tapdeck convert demo.ahr -o demo.gif --idle-time-limit 2s --speed 1.5
  tapdeck convert demo.ahr -o still.png --at turn:3 --window
  tapdeck convert demo.ahr -o sheet.png --sheet 4x3
  tapdeck convert typescript --timing typescript.timing -o demo.ahr
  curl -s https://example.org/demo.cast | tapdeck convert - -o - --format txt | less"
)]
pub(crate) struct ConvertArgs {
    /// The recording, or `-` for standard input
    #[arg(value_name = "IN")]
    input: PathBuf,
    #[command(flatten)]
    how: HowArgs,
}

/// Join recordings of any format into one.
#[derive(Args)]
#[command(after_help = "\
Each recording begins on a fresh terminal, right after the last event of the one before. The lines of
the one before stay in the scrollback, so text exports have all of them. Only a recording that changes
the size of its terminal clears the scrollback, because old lines would come back into its screen.

Turns, snapshots, markers and instructions come along. Turns are numbered anew. The result has the
title, the command and the start time of the first recording, and ends as the last one ended.

The options of convert edit the result: positions are times of the joined recording.

Examples:
  tapdeck cat one.ahr two.ahr -o both.ahr
  tapdeck cat *.cast -o all.cast --idle-time-limit 2s --title 'All of it'")]
pub(crate) struct CatArgs {
    /// The recordings, in order
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    inputs: Vec<PathBuf>,
    #[command(flatten)]
    how: HowArgs,
}

/// What is done to a recording, and where it goes.
#[derive(Args, Clone)]
struct HowArgs {
    /// The file to write, or `-` for standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Begin at a position. A format, such as cast, sets the input format instead
    #[arg(long, value_name = "WHERE", value_parser = position_or(formats::container))]
    from: Option<Side<Container>>,
    /// End at a position. A format, such as cast, sets the output format instead
    #[arg(long, visible_alias = "until", value_name = "WHERE", value_parser = position_or(formats::target))]
    to: Option<Side<To>>,
    /// Remove a range of the recording. Repeat it for several
    #[arg(long, value_name = "FROM..TO", value_parser = parse::range)]
    cut: Vec<(Option<Position>, Option<Position>)>,
    /// Shorten pauses to this time
    #[arg(short, long, value_name = "TIME", value_parser = parse::duration)]
    idle_time_limit: Option<Duration>,
    /// Change the speed, such as 2 or 0.5
    #[arg(short, long, value_name = "FACTOR", value_parser = parse::speed)]
    speed: Option<f64>,
    /// Add a marker. Repeat it for several
    #[arg(long, value_name = "WHERE=LABEL", value_parser = parse::mark)]
    mark: Vec<(Position, String)>,
    /// Set the title; an empty one removes it
    #[arg(long, value_name = "TITLE")]
    title: Option<String>,
    /// Leave out recorded input
    #[arg(long)]
    no_input: bool,
    /// Format of the recording [default: from its content and name]
    #[arg(long, value_name = "FORMAT", value_parser = formats::container)]
    input_format: Option<Container>,
    /// Output format [default: from OUT's extension]
    #[arg(long, value_name = "FORMAT", value_parser = formats::target)]
    format: Option<To>,
    /// Write only the conversation: prompts, answers, tools, and questions with their decisions
    #[arg(long = "as", value_name = "WHAT", value_enum)]
    part: Option<Part>,
    /// Mask secrets, names and identifiers in the conversation
    #[arg(long, requires = "part")]
    redact: bool,
    /// Timing file of the typescript to read, or of the one to write if the input is none
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    timing: Option<PathBuf>,
    /// Timing file of the typescript to write [default: OUT.timing]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    out_timing: Option<PathBuf>,
    #[command(flatten)]
    identity: IdentityArgs,
    /// Replace existing files and their sidecars
    #[arg(long)]
    overwrite: bool,
    /// Also write NAME.meta.json and other sidecars of an .ahr, for tools that want files
    #[arg(long, hide_short_help = true)]
    sidecar: bool,
    /// Keep the readable part of a truncated recording
    #[arg(long, hide_short_help = true)]
    partial: bool,
    /// Brotli compression level of an .ahr, from 0 to 11
    #[arg(long, value_name = "Q", default_value_t = 4, value_parser = clap::value_parser!(u8).range(0..=11), hide_short_help = true)]
    brotli_q: u8,
    /// Color theme of html, svg, pictures, films, cast and ahr: dark, light, high-contrast, sepia,
    /// dracula or one of your own [default: that of the recording]
    #[arg(long, value_name = "THEME", conflicts_with = "part")]
    theme: Option<String>,
    #[cfg(feature = "raster")]
    #[command(flatten)]
    pictures: pictures::PictureArgs,
    /// Print nothing on success
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Print the report as JSON, on standard error if standard output carries the recording
    #[arg(long)]
    json: bool,
}

/// A part of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Prompts and answers
    Conversation,
}

/// A value of `--from` or `--to`: where the result begins or ends, or a format, which is what these
/// options meant alone at first.
#[derive(Debug, Clone, PartialEq)]
enum Side<T> {
    Position(Position),
    Format(T),
}

fn position_or<T: Clone>(
    format: fn(&str) -> Result<T, String>,
) -> impl Fn(&str) -> Result<Side<T>, String> + Clone {
    move |text| match (parse::position(text), format(text)) {
        (Ok(position), _) => Ok(Side::Position(position)),
        (_, Ok(format)) => Ok(Side::Format(format)),
        (Err(_), Err(_)) => Err(format!(
            "expected a position (1:23, 90s, 50%, @LABEL, turn:N, line:N, byte:N) or a format, not {text:?}"
        )),
    }
}

pub(crate) fn run(args: &ConvertArgs) -> Result {
    run_on(std::slice::from_ref(&args.input), &args.how)
}

/// Joins recordings.
pub(crate) fn cat(args: &CatArgs) -> Result {
    run_on(&args.inputs, &args.how)
}

fn run_on(inputs: &[PathBuf], args: &HowArgs) -> Result {
    #[cfg(feature = "raster")]
    if let Some(done) = args.pictures.run(inputs, args) {
        return done;
    }
    let result = convert(inputs, args);
    match (&result, args.json) {
        (Ok(done), true) => args.report_json(&to_json(done, inputs, args)),
        (Ok(done), false) => report(done, inputs, args),
        (Err(failure), true) => args.report_json(&json!({
            "in": names(inputs),
            "out": args.output.to_string_lossy(),
            "error": failure.message(),
        })),
        (Err(failure), false) => say(failure.message()),
    }
    match result {
        Ok(done) => Ok(Ending::of_check(done.broke_off.is_none())),
        Err(failure) => Err(Failure::reported(failure.kind())),
    }
}

/// The names of the recordings: of one, a text.
fn names(inputs: &[PathBuf]) -> Value {
    match inputs {
        [one] => one.to_string_lossy().into(),
        several => several.iter().map(|path| path.to_string_lossy()).collect(),
    }
}

impl HowArgs {
    fn to_stdout(&self) -> bool {
        self.output.as_os_str() == "-"
    }

    fn report_json(&self, value: &Value) {
        if self.to_stdout() {
            // Standard error is the last resort: there is nowhere left to report that it is gone.
            let _ = writeln!(io::stderr(), "{}", human::json(value));
        } else {
            print(format_args!("{}\n", human::json(value)));
        }
    }

    /// What is to be done to the recording.
    fn edits(&self) -> Edits {
        let mut edits = Edits::new();
        if let Some(Side::Position(from)) = &self.from {
            edits = edits.from(from.clone());
        }
        if let Some(Side::Position(to)) = &self.to {
            edits = edits.until(to.clone());
        }
        for (from, to) in &self.cut {
            edits = edits.cut(from.clone(), to.clone());
        }
        for (at, label) in &self.mark {
            edits = edits.mark(at.clone(), label);
        }
        if let Some(limit) = self.idle_time_limit {
            edits = edits.idle_limit(limit);
        }
        if let Some(speed) = self.speed {
            edits = edits.speed(speed);
        }
        if let Some(title) = &self.title {
            edits = edits.title(title);
        }
        #[cfg(feature = "raster")]
        if let Some(at) = self.pictures.moment() {
            edits = edits.until(at.clone());
        }
        if self.no_input { edits.drop_input() } else { edits }
    }

    fn input_format(&self) -> Option<Container> {
        match &self.from {
            Some(Side::Format(format)) => self.input_format.or(Some(*format)),
            _ => self.input_format,
        }
    }

    /// The theme that the user asks for, on the command line or in the configuration.
    fn chosen_theme(&self, target: To) -> Result<Option<Theme>> {
        match &self.theme {
            Some(_) if !target.has_colours() => {
                let message =
                    "has no colors of its own: --theme is for html, svg, pictures, films, cast and ahr";
                Err(Failure::usage(format!("{target} {message}")))
            }
            _ if self.part.is_some() => Ok(None),
            // A recording keeps what it carries, unless it is asked for something else.
            None if target.container().is_some() || !target.has_colours() => Ok(None),
            name => Config::load()?.choose_theme(name.as_deref(), "").map_err(Failure::usage),
        }
    }

    fn target(&self) -> Result<To> {
        let given = match &self.to {
            Some(Side::Format(format)) => self.format.or(Some(*format)),
            _ => self.format,
        };
        let found = given.or_else(|| To::of_path(&self.output));
        let target = found.ok_or_else(|| {
            let ending = self.output.extension().map(|ending| format!(".{}", ending.to_string_lossy()));
            let ending = ending.unwrap_or_else(|| self.output.to_string_lossy().into_owned());
            Failure::usage(ConvertError::UnknownFormat(ending).to_string())
        })?;
        #[cfg(feature = "raster")]
        let target = self.pictures.target(target);
        // What shows a recording cannot act on a terminal; a recording can.
        if self.to_stdout() && target.container().is_some() && io::stdout().is_terminal() {
            return Err(Failure::usage(format!(
                "{target} could act on this terminal: name a file, or use a pipe"
            )));
        }
        Ok(target)
    }

    /// Whether the end of the result was given.
    #[cfg(feature = "raster")]
    fn has_end(&self) -> bool {
        matches!(self.to, Some(Side::Position(_)))
    }

    /// The conversion of these recordings to a target, with these edits.
    fn conversion(&self, inputs: &[PathBuf], target: To, edits: Edits) -> Result<Conversion> {
        let theme = self.chosen_theme(target)?;
        self.identity.load(inputs.iter().map(PathBuf::as_path))?;
        let Some((first, more)) = inputs.split_first() else {
            return Err(Failure::usage("name a recording"));
        };
        let mut conversion = Conversion::new(first, target)
            .overwrite(self.overwrite)
            .sidecars(self.sidecar)
            .partial(self.partial)
            .quality(self.brotli_q)
            .edit(edits);
        for other in more {
            conversion = conversion.join(other);
        }
        if let Some(format) = self.input_format() {
            conversion = conversion.from(format);
        }
        if let Some(name) = &self.theme {
            conversion = conversion.theme_name(name);
        }
        if let Some(timing) = &self.timing {
            conversion = conversion.timing(timing);
        }
        if let Some(timing) = &self.out_timing {
            conversion = conversion.out_timing(timing);
        }
        if let Some(theme) = theme {
            conversion = conversion.theme(theme);
        }
        if self.part == Some(Part::Conversation) {
            conversion = conversion.as_conversation();
        }
        if self.redact {
            conversion = conversion.redact(Selection::default());
        }
        #[cfg(feature = "raster")]
        let conversion = self.pictures.apply(conversion, target)?;
        Ok(conversion)
    }
}

fn convert(inputs: &[PathBuf], args: &HowArgs) -> Result<Converted> {
    let target = args.target()?;
    #[cfg(feature = "raster")]
    args.pictures.check(target, args.has_end())?;
    let mut line = Progress::new("converting");
    let conversion = args.conversion(inputs, target, args.edits())?;
    let conversion = conversion.progress(move |done, total| line.tick(done, total));
    let done = match args.to_stdout() {
        true => conversion.write_to(&mut io::stdout()),
        false => conversion.write(&args.output),
    };
    done.map_err(|e| refused_conversion(e, args))
}

/// Why a recording was not converted, with what to do about it.
fn refused_conversion(e: ConvertError, args: &HowArgs) -> Failure {
    match e {
        ConvertError::Source(e) => e.into(),
        ConvertError::Commit(e) => e.into(),
        ConvertError::Exists(path) => Failure::write(&path, &io::ErrorKind::AlreadyExists.into()),
        ConvertError::Write { source, .. } if args.to_stdout() => output_failed(&source),
        ConvertError::Write { path, source } => Failure::write(&path, &source),
        e @ ConvertError::BrokeOff { .. } => Failure::io(format!("{e}; --partial keeps what comes before")),
        e @ ConvertError::NoTurns(_) => {
            Failure::not_found(format!("{e}: only an .ahr of a session with prompts has turns"))
        }
        e @ ConvertError::NoTimingFile => Failure::usage(format!("{e} with --out-timing")),
        e @ ConvertError::SameTimingFile(_) => {
            Failure::usage(format!("{e}: give another name with --out-timing"))
        }
        ConvertError::Edit(e @ EditError::NotFound { .. }) => Failure::not_found(e.to_string()),
        e @ (ConvertError::Edit(_)
        | ConvertError::SameFile(_)
        | ConvertError::UnknownFormat(_)
        | ConvertError::ReadOnly(_)
        | ConvertError::NoConversationAs(_)
        | ConvertError::EditedConversation
        | ConvertError::NoPictures(_)
        | ConvertError::NoFfmpeg(_)
        | ConvertError::Picture(_)
        | ConvertError::Scrub(_)
        | ConvertError::CassetteToWriter) => Failure::usage(e.to_string()),
        e => Failure::io(e.to_string()),
    }
}

fn report(done: &Converted, inputs: &[PathBuf], args: &HowArgs) {
    let input = inputs.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>().join(", ");
    if let Some(why) = &done.broke_off {
        say(format_args!("{input}: {why}: what comes before it was kept"));
    }
    if args.quiet {
        return;
    }
    if let Some(conversation) = &done.conversation {
        return report_conversation(conversation, done);
    }
    say(format_args!(
        "{} to {}: {}, {} of output, {}; {} written",
        done.from,
        done.to,
        human::count(done.events, "event"),
        human::bytes(done.output_bytes),
        human::duration(done.duration),
        human::bytes(done.written),
    ));
    let removed: Vec<String> = done.removed.counts().collect();
    if !removed.is_empty() {
        say(format_args!("removed: {}", removed.join(", ")));
    }
    for note in done.notes.iter().take(5) {
        say(format_args!("{input}: {note}"));
    }
    let more = done.notes.len().saturating_sub(5) as u64 + done.more_notes;
    if more > 0 {
        say(format_args!("{input}: and {more} more remarks"));
    }
    if let Some(losses) = losses_that_matter(done.to, &done.losses) {
        say(format_args!("what {} cannot carry: {losses}", done.to));
    }
}

fn report_conversation(conversation: &ConversationReport, done: &Converted) {
    say(format_args!(
        "{} to {}: {}; {} written",
        done.from,
        done.to,
        human::count(conversation.prompts, "prompt"),
        human::bytes(done.written),
    ));
    let Some(redacted) = &conversation.redacted else { return };
    for (rule, hits) in redacted {
        say(format_args!("{rule}: {}", human::count(*hits, "hit")));
    }
    let hits: u64 = redacted.iter().map(|(_, hits)| hits).sum();
    let rules = human::count(redacted.len(), "rule");
    say(format_args!("redacted: {} of {rules}", human::count(hits, "hit")));
}

fn to_json(done: &Converted, inputs: &[PathBuf], args: &HowArgs) -> Value {
    let mut value = json!({
        "in": names(inputs),
        "out": args.output.to_string_lossy(),
        "from": done.from.to_string(),
        "to": done.to.to_string(),
        "events": done.events,
        "output_bytes": done.output_bytes,
        "duration_ns": u64::try_from(done.duration.as_nanos()).unwrap_or(u64::MAX),
        "written_bytes": done.written,
        "not_carried": losses_json(&done.losses),
        "notes": done.notes,
        "more_notes": done.more_notes,
        "broke_off": done.broke_off,
        "edits": args.edits().as_said(),
        "removed": removed_json(&done.removed),
    });
    if let Some(conversation) = &done.conversation {
        value["prompts"] = conversation.prompts.into();
        let rule = |(rule, hits): &(String, u64)| json!({"rule": rule, "hits": hits});
        value["redacted"] =
            conversation.redacted.as_ref().map(|r| r.iter().map(rule).collect::<Vec<_>>()).into();
    }
    value
}

fn removed_json(removed: &Removed) -> Value {
    json!({
        "events": removed.events,
        "output_bytes": removed.output_bytes,
        "inputs": removed.inputs,
        "markers": removed.markers,
        "snapshots": removed.snapshots,
        "turns": removed.turns,
        "instructions": removed.instructions,
        "others": removed.others,
    })
}
