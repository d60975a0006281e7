//! `tapdeck branch-points`: the final lines of a session with its snapshots between them, so that a person can
//! point at the line from which to go on differently.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::json;
use tapdeck_tape::{Moment, Replay, export};

use crate::ending::{Ending, code, complain, output_failed, say};
use crate::input::{InputArgs, refused};
use crate::out_file::OutFile;

/// Print the final lines of a recording with its snapshots and markers between them.
#[derive(Args)]
#[command(after_help = "\
Each line comes with its number and the last byte of output that wrote to it; each snapshot stands
behind the last line that was complete when it was taken.

Examples:
  tapdeck branch-points demo.ahr
  tapdeck branch-points --format json demo.ahr | jq '.[] | select(.kind == \"snapshot\")'")]
pub(crate) struct BranchPointsArgs {
    /// The recording, in any format; `-` for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How to print them
    #[arg(long, value_enum, default_value_t = Form::Md)]
    format: Form,
    /// Write to a file instead
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Replace a file that is there
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    input: InputArgs,
}

/// A form of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// A Markdown table
    Md,
    /// A JSON array, an object a line
    Json,
    /// Comma-separated values
    Csv,
}

impl Form {
    /// By the end of a file's name; Markdown when it says nothing.
    pub(crate) fn of_path(path: &Path) -> Self {
        match path.extension().and_then(|e| e.to_str()) {
            Some("json") => Form::Json,
            Some("csv") => Form::Csv,
            _ => Form::Md,
        }
    }
}

const ALL_ROWS: usize = 1_000_000;

pub(crate) fn run(args: &BranchPointsArgs) -> Ending {
    let result = match args.output.as_deref().filter(|p| p.as_os_str() != "-") {
        Some(path) => write_file(&args.file, &args.input, args.format, path, args.overwrite),
        None => list(&args.file, &args.input).and_then(|list| {
            match list.write(args.format, io::stdout().lock()) {
                Err(tapdeck_tape::Error::Write { source, .. }) => output_failed(&source),
                Err(e) => Err((e.to_string(), code::IO)),
                Ok(()) => Ok(()),
            }
        }),
    };
    match result {
        Ok(()) => Ending::Code(0),
        Err((message, code)) => {
            // To a file goes the list or nothing.
            let as_json = args.format == Form::Json && args.output.is_none();
            complain(as_json, json!({"file": args.file.to_string_lossy()}), message);
            Ending::Code(code)
        }
    }
}

/// Writes the list of a recording to a file.
pub(crate) fn write_file(
    recording: &Path,
    input: &InputArgs,
    form: Form,
    path: &Path,
    overwrite: bool,
) -> Result<(), (String, i32)> {
    let cannot = |e: io::Error| match e.kind() {
        io::ErrorKind::AlreadyExists => {
            (format!("{} exists: give another name, or --overwrite", path.display()), code::USAGE)
        }
        _ => (format!("cannot write {}: {e}", path.display()), code::IO),
    };
    let mut out = OutFile::create(path, overwrite).map_err(cannot)?;
    let list = list(recording, input)?;
    match list.write(form, &mut out) {
        Err(tapdeck_tape::Error::Write { source, .. }) => Err(cannot(source)),
        Err(e) => Err((e.to_string(), code::IO)),
        Ok(()) => out.commit().map_err(cannot),
    }
}

struct List {
    replay: Replay,
    moments: Vec<Moment>,
}

fn list(path: &Path, input: &InputArgs) -> Result<List, (String, i32)> {
    let source = input.find(path)?;
    let mut reader = source.open().map_err(refused)?;
    let replay = Replay::to_end(&mut *reader, ALL_ROWS).map_err(|e| refused(source.read_error(e)))?;
    let damages = replay.notes().len();
    if damages > 0 && replay.byte_off() == 0 && replay.moments().is_empty() {
        return Err((format!("{}: nothing in it can be read: see tapdeck verify", path.display()), code::IO));
    }
    if damages > 0 {
        say(format_args!("{damages} damaged places were passed over: see tapdeck verify"));
    }
    let gone = replay.term().evicted();
    if gone > 0 {
        say(format_args!("the list begins with line {}: only the last million lines are kept", gone + 1));
    }
    let mut moments = replay.moments().to_vec();
    moments.extend(source.moments_beside(&moments));
    Ok(List { replay, moments })
}

impl List {
    fn write(&self, form: Form, out: impl Write) -> tapdeck_tape::Result<()> {
        let out = BufWriter::with_capacity(1 << 16, out);
        let term = self.replay.term();
        match form {
            Form::Md => export::branch_md(term, &self.moments, out),
            Form::Json => export::branch_json(term, &self.moments, out),
            Form::Csv => export::branch_csv(term, &self.moments, out),
        }
    }
}
