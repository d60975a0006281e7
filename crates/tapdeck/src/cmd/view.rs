//! `tapdeck view`: the viewer of recordings.

use std::io;
use std::path::PathBuf;

use clap::Args;
use tapdeck::ui::theme::Theme;
use tapdeck::ui::view::run::{ViewError, run as show};
use tapdeck::ui::view::{App, Options, Origin, Tape};
use tapdeck_host::{Goal, PlayError, Source, SourceError};
use tapdeck_tape::Container;

use crate::config::Config;
use crate::ending::{Ending, code, say};
use crate::{formats, parse};

/// Read, search and move through a recording.
#[derive(Args)]
#[command(after_help = "\
The terminal is shown in a frame of its true size, with everything that scrolled off it. The keys are
those of less, and those of play for moving in time; h shows them all.

i, or a click, opens a box behind a line. What is written there is kept in NAME.instructions.jsonl,
with the snapshot nearest to the line, and can be handed to a command of yours that branches the
session, as [view] branch_command in the configuration says.

Examples:
  tapdeck view demo.ahr
  tapdeck view --at 50% demo.cast
  tapdeck view --search 'error|failed' demo.ahr
  tapdeck view --play demo.ahr          begin at the start, playing")]
pub(crate) struct ViewArgs {
    /// The recording
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Begin at a time (1:23:45, 90s), a share (50%) or in the output (byte:4096); at the end when left out
    #[arg(long, value_name = "PLACE", value_parser = parse::place)]
    at: Option<parse::Place>,
    /// Begin playing
    #[arg(short, long)]
    play: bool,
    /// Begin with a search for this
    #[arg(short, long, value_name = "REGEX")]
    search: Option<String>,
    /// The recording's format, if it cannot be told from its content and name
    #[arg(long, value_name = "FORMAT", value_parser = formats::container)]
    from: Option<Container>,
    /// The timing file of a typescript
    #[arg(long, value_name = "FILE")]
    timing: Option<PathBuf>,
    /// Leave the mouse to the terminal
    #[arg(long)]
    no_mouse: bool,
}

pub(crate) fn run(args: &ViewArgs) -> Ending {
    match view(args) {
        Ok(ending) => ending,
        Err((message, code)) => {
            say(message);
            Ending::Code(code)
        }
    }
}

fn view(args: &ViewArgs) -> Result<Ending, (String, i32)> {
    let config = Config::load().map_err(|e| (e, code::USAGE))?;
    let source = Source::find(&args.file, args.from, args.timing.as_deref())
        .map_err(|e| failed(&ViewError::Play(PlayError::Source(e))))?;
    let tape = Tape::open(source, config.view.scrollback).map_err(|e| failed(&e.into()))?;
    let options = Options { theme: Theme::from_env(), branch_command: config.view.branch_command };
    let mut app = App::new(Origin::Tape(Box::new(tape)), options);
    let mouse = config.view.mouse && !args.no_mouse;
    let signal = show(&mut app, mouse, |app| begin(app, args)).map_err(|e| failed(&e))?;
    Ok(signal.map_or(Ending::Code(0), Ending::Signal))
}

/// Goes to where the user wants to begin.
fn begin(app: &mut App, args: &ViewArgs) -> Result<(), ViewError> {
    match &args.at {
        None if args.play => {}
        None => app.go(Goal::Byte(u64::MAX))?,
        Some(parse::Place::Time(time)) => {
            app.go(Goal::Time(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))?;
        }
        Some(parse::Place::Byte(to)) => app.go(Goal::Byte(*to))?,
        Some(parse::Place::Share(share)) => app.go_to_share(*share)?,
        Some(parse::Place::Moment(name)) => {
            if !app.go_to_named(name)? {
                let message = format!("{}: no marker or snapshot {name:?}", args.file.display());
                return Err(ViewError::Begin { message, missing: true });
            }
        }
    }
    if args.play {
        app.play()?;
    }
    match args.search.as_deref().map(|pattern| app.search_for(pattern)) {
        Some(Err(why)) => Err(ViewError::Begin { message: format!("--search: {why}"), missing: false }),
        _ => Ok(()),
    }
}

fn failed(e: &ViewError) -> (String, i32) {
    let code = match e {
        ViewError::NoTerminal | ViewError::Begin { missing: false, .. } => code::USAGE,
        ViewError::Begin { .. } => code::NOT_FOUND,
        ViewError::Play(PlayError::Source(SourceError::Open { why, .. }))
            if why.kind() == io::ErrorKind::NotFound =>
        {
            code::NOT_FOUND
        }
        _ => code::IO,
    };
    (e.to_string(), code)
}
