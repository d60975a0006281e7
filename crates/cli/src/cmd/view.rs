//! `tapdeck view` and `rec --view`: the viewer of recordings and of live sessions.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use tapdeck_cli::ui::session;
use tapdeck_cli::ui::styles::Styles;
use tapdeck_cli::ui::view::run::{ViewError, run as show};
use tapdeck_cli::ui::view::{App, Options, Origin, Tape};
use tapdeck_core::{Exit, Offset, WinSize};
use tapdeck_host::registry::Listing;
use tapdeck_host::{Goal, Source};
use tapdeck_tape::Container;

use super::branch::has_kept_files;
use crate::config::Config;
use crate::detached_host;
use crate::ending::{Ending, Kind, say};
use crate::failure::{Failure, Result};
use crate::keys::IdentityArgs;
use crate::sessions;
use crate::unreadable::{self, FileRole};
use crate::{formats, locate, parse};

/// Read, search and step through a recording or a live session.
#[derive(Args)]
#[command(after_help = "\
Shows the terminal at its own size, in a frame, with its scrollback. The keys are those of play
and of less; ? shows them.

A search that ends in the rows goes on in the turns of the alternate screen, where coding agents talk:
it moves to the time at which the answer was on the screen.

Drag to select text; y copies it to the clipboard.

i, or a click on the left border, adds an instruction to a line. It is saved in
the recording with the nearest snapshot. If the recording has kept files, tapdeck branch can then
branch the session there; the setting [view] branch_command names another program.

Viewing a live session does not resize it and sends no input. Enter takes the stick (control) to type
to the program; Ctrl-] releases it.

Examples:
  tapdeck view demo.ahr
  tapdeck view build                    the live session of that name
  tapdeck view --at 50% demo.cast
  tapdeck view --search 'error|failed' demo.ahr
  tapdeck view --play demo.ahr          play from the start")]
pub(crate) struct ViewArgs {
    /// A recording, or the id or name of a live session [default: the only live session]
    #[arg(value_name = "FILE|SESSION")]
    what: Option<OsString>,
    /// Start at a time (1:23:45, 90s), a percentage (50%), a marker or snapshot (@label), a turn
    /// (turn:3), a line (line:12) or an output offset (byte:4096) [default: the end]
    #[arg(long, value_name = "WHERE", value_parser = parse::position)]
    at: Option<parse::Position>,
    /// Start playing at once
    #[arg(short, long)]
    play: bool,
    /// Playback speed, such as 2 or 0.5 [default: 1, or that of the configuration]
    #[arg(short, long, value_name = "FACTOR", value_parser = parse::speed)]
    speed: Option<f64>,
    /// Limit pauses to this time
    #[arg(short, long, value_name = "TIME", value_parser = parse::duration)]
    idle_time_limit: Option<Duration>,
    /// Search for this at the start
    #[arg(long, value_name = "REGEX")]
    search: Option<String>,
    /// Format of the recording [default: from its content and name]
    #[arg(long, value_name = "FORMAT", value_parser = formats::container)]
    from: Option<Container>,
    /// Timing file of a typescript
    #[arg(long, value_name = "FILE")]
    timing: Option<PathBuf>,
    #[command(flatten)]
    identity: IdentityArgs,
    /// Do not use the mouse
    #[arg(long)]
    no_mouse: bool,
    /// Color theme: dark, light, high-contrast, sepia, dracula, one of your own, or `none` for the
    /// terminal's colors
    #[arg(long, value_name = "THEME")]
    theme: Option<String>,
}

pub(crate) fn run(args: &ViewArgs) -> Result {
    let mut config = Config::load()?;
    if let Some(theme) = &args.theme {
        config.check_theme(theme).map_err(Failure::usage)?;
        config.view.theme.clone_from(theme);
    }
    let mouse = config.view.mouse && !args.no_mouse;
    let file = args.what.as_deref().map(Path::new);
    // A name without a file of that name may be the name of a session. Those of a squad have a
    // slash.
    let is_session = |name: &str| !name.contains('/') || sessions::find(Some(name)).is_ok();
    let named = file.filter(|f| !f.exists()).and_then(|f| f.to_str()).filter(|n| is_session(n));
    let Some(file) = file.filter(|_| named.is_none()) else {
        let listing = sessions::find(named).map_err(|failure| match named {
            Some(name) if failure.kind() == Kind::NotFound => {
                let hint = unreadable::instead_of(Path::new(name), FileRole::Recording);
                failure.with_message(format!(
                    "{name}: there is neither a file nor a live session of that name{hint}"
                ))
            }
            _ => failure,
        })?;
        if args.at.is_some() || args.play || args.from.is_some() || args.timing.is_some() {
            let message =
                "--at, --play, --from and --timing are for recordings: a live session is where it is";
            return Err(Failure::usage(message));
        }
        let watched = watch(&listing, config, mouse, |app| search_for(app, args.search.as_deref()))?;
        return Ok(watched.ending);
    };
    args.identity.load([file])?;
    let source = Source::find(file, args.from, args.timing.as_deref())?;
    let mut tape = Tape::open(source, config.view.scrollback).map_err(ViewError::from)?;
    tape.set_pace(args.speed.unwrap_or(config.play.speed), args.idle_time_limit.or(config.play.idle_limit.0));
    let mut options = options(config);
    if options.branch_command.is_empty() && has_kept_files(tape.source()) {
        options.branch_command = branch_command();
    }
    let mut app = App::new(Origin::Tape(Box::new(tape)), options);
    let signal = show(&mut app, mouse, |app| begin(app, args, file))?;
    Ok(signal.map_or(Ending::Done, Ending::by_signal))
}

/// The command that branches a session at the snapshot of an instruction, by the files that were
/// kept then.
fn branch_command() -> Vec<String> {
    let own = std::env::current_exe().ok().and_then(|path| path.into_os_string().into_string().ok());
    let words = ["branch", "{recording}", "--at", "byte:{anchor}", "--instruction", "{text}"];
    [own.unwrap_or_else(|| "tapdeck".to_owned())].into_iter().chain(words.map(str::to_owned)).collect()
}

fn options(config: Config) -> Options {
    Options {
        // Reading the configuration has checked the theme.
        styles: Styles::from_env(config.choose_theme(None, &config.view.theme).unwrap_or_default()),
        // Reading the configuration has checked the keys.
        keymap: config.keymap().unwrap_or_default(),
        branch_command: config.view.branch_command,
    }
}

/// How it went to show a live session.
struct Watched {
    ending: Ending,
    /// How its program ended, if it has.
    exit: Option<Exit>,
    /// Why its recording failed, if it did.
    recording_failed: Option<String>,
}

/// Shows a live session.
fn watch(
    listing: &Listing,
    config: Config,
    mouse: bool,
    begin: impl FnOnce(&mut App) -> Result<(), ViewError>,
) -> Result<Watched> {
    sessions::not_within(listing)?;
    let live = session::watch(listing, "view", config.view.scrollback, true)?;
    let recording = listing.recording.as_ref().map(PathBuf::from);
    let mut app = App::new(Origin::Live(Box::new(live), recording), options(config));
    let signal = show(&mut app, mouse, begin)?;
    let (exit, recording_failed) = match app.origin() {
        Origin::Live(live, _) => (live.ended(), live.recording_failed().map(str::to_owned)),
        Origin::Tape(_) => (None, None),
    };
    Ok(Watched { ending: signal.map_or(Ending::Done, Ending::by_signal), exit, recording_failed })
}

/// `rec --view`: starts the session in a host of its own, which outlives the viewer, and shows it.
/// Ends as the program ended, if it has. `own` is the size of this terminal, unless one was asked
/// for.
pub(crate) fn run_viewed(own: Option<WinSize>) -> Result {
    let config = Config::load()?;
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return Err(ViewError::NoTerminal("the viewer").into());
    }
    // The program's terminal fits into the viewer's frame.
    let fitting =
        |own: WinSize| WinSize::cells(own.cols.saturating_sub(2).max(20), own.rows.saturating_sub(3).max(5));
    let id = detached_host::start_host(own.map(fitting))?;
    let listing = sessions::find(Some(&id))?;
    let mouse = config.view.mouse;
    // The user who starts a program wants to type to it.
    let begin = |app: &mut App| {
        app.start_typing();
        Ok(())
    };
    let Watched { ending, exit, recording_failed } = watch(&listing, config, mouse, begin)?;
    let name = listing.shown().to_owned();
    let recording = listing.recording.unwrap_or_default();
    if let Some(why) = &recording_failed {
        say(format_args!("the recording in {recording} failed: {why}"));
    }
    match exit {
        None => say(format_args!("session {name} goes on: tapdeck attach {name}, tapdeck view {name}")),
        Some(_) if recording_failed.is_none() => say(format_args!("recorded in {recording}")),
        Some(_) => {}
    }
    let ending = match (ending, exit) {
        (Ending::Done, Some(exit)) => Ending::As(exit),
        (ending, _) => ending,
    };
    Ok(if recording_failed.is_some() { ending.or_failed(Kind::Io) } else { ending })
}

/// Goes to the place where the user wants to begin.
fn begin(app: &mut App, args: &ViewArgs, file: &Path) -> Result<(), ViewError> {
    match &args.at {
        None if args.play => {}
        None => app.go(Goal::Byte(Offset::MAX))?,
        Some(parse::Position::Time(time)) => {
            app.go(Goal::Time((*time).into()))?;
        }
        Some(parse::Position::Share(share)) => app.go_to_share(*share)?,
        Some(parse::Position::Moment(name)) => {
            if !app.go_to_named(name)? {
                let message = format!("{}: no marker or snapshot {name:?}", file.display());
                return Err(ViewError::Begin { message, missing: true });
            }
        }
        Some(other) => {
            let begin = |message| ViewError::Begin { message, missing: true };
            let source = Source::find(file, args.from, args.timing.as_deref());
            let source = source.map_err(|e| begin(e.to_string()))?;
            let to = locate::offset(&source, other).map_err(begin)?;
            app.go(Goal::Byte(to))?;
        }
    }
    if args.play {
        app.play()?;
    }
    search_for(app, args.search.as_deref())
}

fn search_for(app: &mut App, pattern: Option<&str>) -> Result<(), ViewError> {
    match pattern.map(|pattern| app.search_for(pattern)) {
        Some(Err(why)) => Err(ViewError::Begin { message: format!("--search: {why}"), missing: false }),
        _ => Ok(()),
    }
}
