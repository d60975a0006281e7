//! `tapdeck convert`: a recording in another format, or as something that needs no terminal.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use tapdeck::convert::{Conversion, ConvertError, Converted, To};
use tapdeck_tape::Container;
use tapdeck_term::Theme;

use crate::config::Config;
use crate::ending::{Ending, output_failed, print, say};
use crate::failure::{Failure, Result};
use crate::formats;
use crate::human;
use crate::keys::IdentityArgs;
use crate::progress::Progress;

mod losses;

pub(crate) use losses::losses_text;
use losses::{losses_json, losses_that_matter};

/// Convert a recording to another format, or export it as text, HTML or SVG.
#[derive(Args)]
#[command(
    visible_alias = "export",
    after_help = "\
Formats, by extension or with --from and --format:
  recordings   ahr, cast (asciicast v3), cast-v2, ttyrec, typescript, ans, 3a, raw; .zst compresses any
  cassettes    a folder (--format cassette, or a name in .cassette) or one archive (.tar.zst)
  read only    cast-v1
  exports      txt, ansi (text with colors), md, json, csv, html (plays), svg, svg-still

Reports important losses; --json counts all of them. The output is written completely or not at all.

Examples:
  tapdeck convert demo.ahr -o demo.cast
  tapdeck convert demo.ahr -o demo.html
  tapdeck convert demo.ahr -o demo.svg --theme light
  tapdeck convert typescript --timing typescript.timing -o demo.ahr
  curl -s https://example.org/demo.cast | tapdeck convert - -o - --format txt | less"
)]
pub(crate) struct ConvertArgs {
    /// The recording, or `-` for standard input
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The file to write, or `-` for standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Format of the recording [default: from its content and name]
    #[arg(long, value_name = "FORMAT", value_parser = formats::container)]
    from: Option<Container>,
    /// Output format [default: from OUT's extension]
    #[arg(long, alias = "to", value_name = "FORMAT", value_parser = formats::target)]
    format: Option<To>,
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
    /// Color theme of html, svg, svg-still and cast: dark, light, high-contrast, sepia, dracula or
    /// one of your own [default: that of the recording]
    #[arg(long, value_name = "THEME")]
    theme: Option<String>,
    /// Print nothing on success
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Print the report as JSON, on standard error if standard output carries the recording
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ConvertArgs) -> Result {
    let result = convert(args);
    match (&result, args.json) {
        (Ok(done), true) => args.report_json(&to_json(done, args)),
        (Ok(done), false) => report(done, args),
        (Err(failure), true) => args.report_json(&json!({
            "in": args.input.to_string_lossy(),
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

impl ConvertArgs {
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

    /// The theme that the user asks for, on the command line or in the configuration.
    fn chosen_theme(&self, target: To) -> Result<Option<Theme>> {
        match &self.theme {
            Some(_) if !target.has_colours() => {
                let message = "has no colors of its own: --theme is for html, svg, svg-still and cast";
                Err(Failure::usage(format!("{target} {message}")))
            }
            // A recording keeps what it carries, unless it is asked for something else.
            None if target.container().is_some() || !target.has_colours() => Ok(None),
            name => Config::load()?.choose_theme(name.as_deref(), "").map_err(Failure::usage),
        }
    }

    fn target(&self) -> Result<To> {
        let found = self.format.or_else(|| To::of_path(&self.output));
        let target = found.ok_or_else(|| {
            let ending = self.output.extension().map(|ending| format!(".{}", ending.to_string_lossy()));
            let ending = ending.unwrap_or_else(|| self.output.to_string_lossy().into_owned());
            Failure::usage(ConvertError::UnknownFormat(ending).to_string())
        })?;
        // What shows a recording cannot act on a terminal; a recording can.
        if self.to_stdout() && target.container().is_some() && io::stdout().is_terminal() {
            return Err(Failure::usage(format!(
                "{target} could act on this terminal: name a file, or use a pipe"
            )));
        }
        Ok(target)
    }
}

fn convert(args: &ConvertArgs) -> Result<Converted> {
    let target = args.target()?;
    let theme = args.chosen_theme(target)?;
    args.identity.load([args.input.as_path()])?;
    let mut conversion = Conversion::new(&args.input, target)
        .overwrite(args.overwrite)
        .sidecars(args.sidecar)
        .partial(args.partial)
        .quality(args.brotli_q);
    if let Some(from) = args.from {
        conversion = conversion.from(from);
    }
    if let Some(timing) = &args.timing {
        conversion = conversion.timing(timing);
    }
    if let Some(timing) = &args.out_timing {
        conversion = conversion.out_timing(timing);
    }
    if let Some(theme) = theme {
        conversion = conversion.theme(theme);
    }
    let mut line = Progress::new("converting");
    let conversion = conversion.progress(move |done, total| line.tick(done, total));
    let done = match args.to_stdout() {
        true => conversion.write_to(&mut io::stdout()),
        false => conversion.write(&args.output),
    };
    done.map_err(|e| refused_conversion(e, args))
}

/// Why a recording was not converted, with what to do about it.
fn refused_conversion(e: ConvertError, args: &ConvertArgs) -> Failure {
    match e {
        ConvertError::Source(e) => e.into(),
        ConvertError::Commit(e) => e.into(),
        ConvertError::Exists(path) => Failure::write(&path, &io::ErrorKind::AlreadyExists.into()),
        ConvertError::Write { source, .. } if args.to_stdout() => output_failed(&source),
        ConvertError::Write { path, source } => Failure::write(&path, &source),
        e @ ConvertError::BrokeOff { .. } => Failure::io(format!("{e}; --partial keeps what comes before")),
        e @ ConvertError::NoTimingFile => Failure::usage(format!("{e} with --out-timing")),
        e @ ConvertError::SameTimingFile(_) => {
            Failure::usage(format!("{e}: give another name with --out-timing"))
        }
        e @ (ConvertError::SameFile(_)
        | ConvertError::UnknownFormat(_)
        | ConvertError::ReadOnly(_)
        | ConvertError::CassetteToWriter) => Failure::usage(e.to_string()),
        e => Failure::io(e.to_string()),
    }
}

fn report(done: &Converted, args: &ConvertArgs) {
    let input = args.input.display();
    if let Some(why) = &done.broke_off {
        say(format_args!("{input}: {why}: what comes before it was kept"));
    }
    if args.quiet {
        return;
    }
    say(format_args!(
        "{} to {}: {} events, {} of output, {}; {} written",
        done.from,
        done.to,
        done.events,
        human::bytes(done.output_bytes),
        human::duration(done.duration),
        human::bytes(done.written),
    ));
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

fn to_json(done: &Converted, args: &ConvertArgs) -> Value {
    json!({
        "in": args.input.to_string_lossy(),
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
    })
}
