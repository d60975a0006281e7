//! `tapdeck branch-points`: the final lines of a session with its snapshots and turns between them,
//! so that a person can point at the line from which to go on differently.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use tapdeck_core::Offset;
use tapdeck_tape::export::{self, BranchPoints};
use tapdeck_tape::{Instruction, MAX_INSTRUCTIONS, Moment, Replay};

use crate::ending::{Ending, output_failed, say};
use crate::failure::{Failure, Result};
use crate::input::InputArgs;
use tapdeck::OutFile;

/// Print a recording's final lines, with its snapshots, markers, instructions and turns in between.
#[derive(Args)]
#[command(after_help = "\
Each line has its number and the output offset of its last change. A snapshot follows the last line
that was complete when the snapshot was taken, an instruction the line that it was written at. Both
are in order of time. Turns that a program showed in the alternate screen,
as coding agents do, stand between the lines.

Examples:
  tapdeck branch-points demo.ahr
  tapdeck branch-points --format json demo.ahr | jq '.[] | select(.kind == \"snapshot\")'")]
pub(crate) struct BranchPointsArgs {
    /// The recording, in any format, or `-` for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = Form::Md)]
    format: Form,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Replace an existing file
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
    /// The form by a file's extension; Markdown for others.
    pub(crate) fn of_path(path: &Path) -> Self {
        match path.extension().and_then(|e| e.to_str()) {
            Some("json") => Form::Json,
            Some("csv") => Form::Csv,
            _ => Form::Md,
        }
    }
}

const ALL_ROWS: usize = 1_000_000;

impl BranchPointsArgs {
    /// Whether standard output gets JSON. A file gets the list or nothing.
    pub(super) fn reports_json(&self) -> bool {
        self.format == Form::Json && self.output.is_none()
    }
}

pub(crate) fn run(args: &BranchPointsArgs) -> Result {
    match args.output.as_deref().filter(|p| p.as_os_str() != "-") {
        Some(path) => write_file(&args.file, &args.input, args.format, path, args.overwrite),
        None => print_list(args),
    }
    .map_err(|failure| failure.about("file", args.file.to_string_lossy()))?;
    Ok(Ending::Done)
}

fn print_list(args: &BranchPointsArgs) -> Result<()> {
    match list(&args.file, &args.input)?.write(args.format, io::stdout().lock()) {
        Err(tapdeck_tape::Error::Write { source, .. }) => output_failed(&source),
        Err(e) => Err(Failure::io(e.to_string())),
        Ok(()) => Ok(()),
    }
}

/// Writes the list of a recording to a file.
pub(crate) fn write_file(
    recording: &Path,
    input: &InputArgs,
    form: Form,
    path: &Path,
    overwrite: bool,
) -> Result<()> {
    let cannot = |e: io::Error| Failure::write(path, &e);
    let mut out = OutFile::create_shared(path, overwrite).map_err(cannot)?;
    let list = list(recording, input)?;
    match list.write(form, &mut out) {
        Err(tapdeck_tape::Error::Write { source, .. }) => Err(cannot(source)),
        Err(e) => Err(Failure::io(e.to_string())),
        Ok(()) => out.commit().map_err(cannot),
    }
}

struct List {
    replay: Replay,
    moments: Vec<Moment>,
    instructions: Vec<Instruction>,
}

fn list(path: &Path, input: &InputArgs) -> Result<List> {
    let source = input.find(path)?;
    let mut reader = source.open()?;
    let turns = source.turns()?;
    let replay =
        Replay::to_end_with_turns(&mut *reader, ALL_ROWS, turns).map_err(|e| source.read_error(e))?;
    let damages = replay.notes().len();
    if damages > 0 && replay.offset() == Offset(0) && replay.moments().is_empty() {
        return Err(Failure::io(format!(
            "{}: nothing in it can be read: see tapdeck verify",
            path.display()
        )));
    }
    if damages > 0 {
        let places = crate::human::count(damages, "damaged place");
        say(format_args!("passed over {places}: see tapdeck verify"));
    }
    let gone = replay.term().evicted();
    if gone > 0 {
        say(format_args!("the list begins with line {}: only the last million lines are kept", gone + 1));
    }
    if replay.more_moments() > 0 {
        say(format_args!("the list is cut: it lacks {} snapshots or markers", replay.more_moments()));
    }
    let instructions = source.instructions()?;
    if instructions.len() == MAX_INSTRUCTIONS {
        say(format_args!("only the first {MAX_INSTRUCTIONS} instructions are listed"));
    }
    let mut moments = replay.moments().to_vec();
    moments.extend(source.moments_beside(&moments));
    Ok(List { replay, moments, instructions })
}

impl List {
    fn write(&self, form: Form, out: impl Write) -> tapdeck_tape::Result<()> {
        let out = BufWriter::with_capacity(1 << 16, out);
        let points = BranchPoints {
            turns: self.replay.hidden_turns(),
            instructions: &self.instructions,
            left_out: self.replay.more_moments(),
            ..BranchPoints::new(self.replay.term(), &self.moments)
        };
        match form {
            Form::Md => export::branch_md(&points, out),
            Form::Json => export::branch_json(&points, out),
            Form::Csv => export::branch_csv(&points, out),
        }
    }
}
