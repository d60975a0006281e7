//! `tapdeck instruct`: writes an instruction for an agent at a moment of a session.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tapdeck_cli::instructions::{KeepError, keep, recorder_of};
use tapdeck_core::{MAX_INSTRUCTION, Offset, WallTime};
use tapdeck_host::{Clock, Source};
use tapdeck_tape::export::{behind, lines_at};
use tapdeck_tape::{Branch, Instruction, Moment, Replay, nearest_snapshot};

use super::play::find_moment;
use crate::ending::{Ending, print, print_json};
use crate::failure::{Failure, Result};
use crate::input::InputArgs;
use crate::parse::{self, Position};
use crate::unreadable::{self, FileRole};
use crate::{human, locate, sessions};

/// Every line that is kept of a recording.
const ALL_ROWS: usize = 1_000_000;
/// How long a recorder may take until the instruction can be read, and how often it is looked for.
const RECORDED: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);

/// Write an instruction for the agent at a moment of a session.
#[derive(Args)]
#[command(after_help = "\
The instruction says what to do differently from that moment on. It is saved in the recording with
the nearest snapshot, also while the session is being recorded. The viewer, branch-points and
exports show it, and tapdeck branch can continue from there.

A line has one instruction: a new text replaces it, and an empty one deletes it.

Moments:
  line:120   line 120, as tapdeck branch-points numbers them
  1:23, 90s  a time since the start; 50% is half of it
  @LABEL     a marker or snapshot
  turn:2     the end of turn 2
  byte:4096  an offset in the output

Examples:
  tapdeck instruct demo.ahr --at line:120 'Use a queue instead'
  tapdeck instruct build --at @tests 'Fix the first failure only'
  tapdeck instruct demo.ahr --at line:120 ''")]
pub(crate) struct InstructArgs {
    /// The recording, or the id or name of a live session that is recorded
    #[arg(value_name = "FILE|SESSION")]
    what: PathBuf,
    /// The moment: line:N, a time, a share, @LABEL, turn:N or byte:N
    #[arg(long, value_name = "WHERE", value_parser = parse::position)]
    at: Position,
    /// What to do differently from there on; empty to delete the instruction
    #[arg(value_name = "TEXT")]
    text: String,
    #[command(flatten)]
    input: InputArgs,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(crate) fn run(args: &InstructArgs) -> Result {
    instruct(args).map_err(|failure| failure.about("what", args.what.to_string_lossy()))
}

fn instruct(args: &InstructArgs) -> Result {
    let text = args.text.trim_end();
    if text.len() > MAX_INSTRUCTION {
        let len = text.len();
        return Err(Failure::usage(format!(
            "TEXT has {len} bytes; an instruction has at most {MAX_INSTRUCTION}"
        )));
    }
    let path = recording(&args.what)?;
    if path.as_os_str() == "-" {
        return Err(Failure::usage("an instruction cannot be written to standard input: name the recording"));
    }
    let source = args.input.find(&path)?;
    let place = Place::find(&source, &args.at)?;
    let there = source.instructions()?;
    let lines = lines_at(place.replay.term(), &there.iter().map(behind).collect::<Vec<_>>());
    let here = there.into_iter().zip(lines).filter(|(_, line)| *line == place.line).map(|(there, _)| there);
    let mut here: Vec<Instruction> = here.collect();
    let written = Clock::start().now().wall;
    let last = here.pop();
    let before = last.as_ref().map(|last| last.written);
    let (done, changes) = match (text, last) {
        ("", None) => {
            let (path, line) = (path.display(), place.line);
            return Err(Failure::not_found(format!(
                "{path} has no instruction at line {line}: see tapdeck branch-points {path}"
            )));
        }
        // Earlier versions wrote several at one line.
        ("", Some(last)) => {
            let delete = |old| Instruction { deleted: true, written, text: String::new(), ..old };
            ("deleted", here.into_iter().chain([last]).map(delete).collect())
        }
        (text, old) => {
            let done = if old.is_some() { "changed" } else { "added" };
            let id = old.map_or(written.as_nanos(), |old| old.id);
            (done, vec![place.instruction(id, written, text)])
        }
    };
    for change in &changes {
        keep(&path, change)?;
        wait_for(&source, change, before)?;
    }
    let line = place.line;
    match changes.last() {
        Some(last) if args.json => print_json(&described(last, line, done, &path)?),
        _ => print(format_args!("line {line}: {done}\n")),
    }
    Ok(Ending::Done)
}

/// The recording that is meant: a file, or that of a live session.
fn recording(what: &Path) -> Result<PathBuf> {
    // A name without a file of that name may be the name of a session.
    let Some(name) = what.to_str().filter(|name| *name != "-" && !what.exists()) else {
        return Ok(what.to_owned());
    };
    let listing = sessions::find(Some(name)).map_err(|_| {
        let hint = unreadable::instead_of(what, FileRole::Recording);
        Failure::not_found(format!("{name}: there is neither a file nor a live session of that name{hint}"))
    })?;
    listing.recording.map(PathBuf::from).ok_or_else(|| {
        let id = listing.id;
        Failure::usage(format!(
            "session {name} is not recorded, so an instruction has nowhere to be kept: tapdeck rec --attach {id}"
        ))
    })
}

/// A place in a recording.
struct Place {
    replay: Replay,
    moments: Vec<Moment>,
    /// The last line that was complete there.
    line: u64,
    /// The last byte of output before it.
    anchor: u64,
}

impl Place {
    fn find(source: &Source, at: &Position) -> Result<Self> {
        let mut reader = source.open()?;
        let replay = Replay::to_end(&mut *reader, ALL_ROWS).map_err(|e| source.read_error(e))?;
        let mut moments = replay.moments().to_vec();
        moments.extend(source.moments_beside(&moments));
        let (path, end) = (human::printable(&source.path().to_string_lossy()), replay.offset().0);
        let missing =
            |why: String| Failure::not_found(format!("{path} {why}: see tapdeck branch-points {path}"));
        let offset = match at {
            Position::Line(line) => {
                let anchor = locate::written(replay.term(), *line);
                let anchor = anchor.ok_or_else(|| missing(format!("has no line {line}")))?;
                return Ok(Self { replay, moments, line: *line, anchor });
            }
            Position::Moment(name) => {
                let found = find_moment(&moments, name).map(|moment| moment.anchor);
                found.ok_or_else(|| missing(format!("has no marker or snapshot {name:?}")))?
            }
            Position::Byte(byte) if *byte > end => {
                return Err(missing(format!("has {end} bytes of output, and not {byte}")));
            }
            position => locate::offset(source, position).map_err(Failure::not_found)?.0,
        };
        let line = lines_at(replay.term(), &[offset]).pop().unwrap_or_default();
        Ok(Self { replay, moments, line, anchor: offset.saturating_sub(1) })
    }

    fn instruction(&self, id: u64, written: WallTime, text: &str) -> Instruction {
        Instruction {
            id,
            deleted: false,
            written,
            anchor_byte: self.anchor,
            line: Some(self.line),
            snapshot: nearest_snapshot(&self.moments, Offset(self.anchor)).and_then(Branch::of),
            text: text.to_owned(),
        }
    }
}

/// Waits until a recorder has put a change on disk. `before` is when the text to be changed was
/// written.
fn wait_for(source: &Source, change: &Instruction, before: Option<WallTime>) -> Result<()> {
    let path = source.path();
    let clock = Clock::start();
    loop {
        // A recorder that is gone now has written everything before.
        let has_recorder = recorder_of(path).is_some();
        // What is written of an encrypted recording may not be readable here.
        let Ok(there) = Source::find(path, Some(source.container()), None).and_then(|s| s.instructions())
        else {
            return Ok(());
        };
        // Its text may have been masked.
        let found = there.iter().find(|there| there.id == change.id);
        let is_recorded = match found {
            Some(found) => !change.deleted && Some(found.written) != before,
            None => change.deleted,
        };
        if is_recorded {
            return Ok(());
        }
        if !has_recorder {
            return Err(Failure::io(format!("{} does not have it: its recording has ended", path.display())));
        }
        if clock.elapsed() > RECORDED {
            let (path, limit) = (path.display(), RECORDED.as_secs());
            return Err(Failure::io(format!("the recorder of {path} has not written it within {limit} s")));
        }
        std::thread::park_timeout(LOOK);
    }
}

/// A change as JSON.
fn described(change: &Instruction, line: u64, done: &str, path: &Path) -> Result<Value> {
    let mut described = serde_json::to_value(change).map_err(|e| Failure::internal(e.to_string()))?;
    described["line"] = line.into();
    described["done"] = json!(done);
    described["recording"] = json!(path.to_string_lossy());
    Ok(described)
}

impl From<KeepError> for Failure {
    fn from(e: KeepError) -> Self {
        match e {
            KeepError::Append(e) => e.into(),
            KeepError::Session(e) => e.into(),
            KeepError::Encrypted => Self::usage(e.to_string()),
            KeepError::Beside { path, why } => Self::write(&path, &why),
            e => Self::io(e.to_string()),
        }
    }
}
