//! `tapdeck play`: a recording on the terminal, in its own time or all at once.

mod keys;
mod screening;
mod search;
mod status;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use tapdeck_cli::color::Color;
use tapdeck_core::{Offset, Time};
use tapdeck_host::{Goal, PlayError, Player};
use tapdeck_tape::{Moment, MomentKind, RecordedTurn, TurnWatch, export};
use tapdeck_term::Settings;

use self::screening::Screening;
use super::info;
use crate::config::Config;
use crate::ending::{Ending, output_failed, say};
use crate::failure::{Failure, Result};
use crate::input::InputArgs;
use crate::screen::write_used_rows;
use crate::{human, locate, parse};

/// Replay a recording.
#[derive(Args)]
#[command(
    visible_alias = "replay",
    after_help = "\
Keys: space plays and pauses; . and , step; → and ← skip 5 seconds, with Shift a minute; ] and [ jump
to markers, 0-9 to tenths, g and G to the start and the end; > and < change the speed; / searches;
q quits; ? shows all keys. view and the web page use the same keys.

A recording plays at its own size: centered in a larger terminal, cropped in a smaller one. A cropped
view follows the cursor until you move it with ↑ ↓ Alt-← Alt-→. At the end, the recording's lines
stay in the terminal and its scrollback.

play reads every format that convert reads. A recording cannot change your terminal's modes or title,
or make it reply. If standard output is not a terminal, it gets the recorded bytes unchanged, at their
times; --fast does not wait.

Examples:
  tapdeck play demo.ahr
  tapdeck play --speed 2 --idle-time-limit 1s demo.ahr
  tapdeck play --at 50% demo.ahr
  tapdeck play --at @tests demo.cast     from the marker \"tests\"
  tapdeck play --theme light demo.ahr
  tapdeck play --fast --color always demo.ahr | less -R"
)]
pub(crate) struct PlayArgs {
    /// The recording, or `-` for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    input: InputArgs,
    /// Playback speed, such as 2 or 0.5 [default: 1, or that of the configuration]
    #[arg(short, long, value_name = "FACTOR", value_parser = parse::speed)]
    speed: Option<f64>,
    /// Limit pauses to this time
    #[arg(short, long, value_name = "TIME", value_parser = parse::duration)]
    idle_time_limit: Option<Duration>,
    /// Repeat until you quit
    #[arg(short, long)]
    r#loop: bool,
    /// Start at a time (1:23:45, 90s), a percentage (50%), a marker or snapshot (@label), a turn
    /// (turn:3), a line (line:12, as branch-points counts) or an output offset (byte:4096)
    #[arg(long, value_name = "WHERE", value_parser = parse::position)]
    at: Option<parse::Position>,
    /// Print the final scrollback and screen at once, with the turns of the alternate screen,
    /// without playing
    #[arg(long, conflicts_with_all = ["speed", "idle_time_limit", "loop", "at"])]
    fast: bool,
    /// When to use colors and styles
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    color: Color,
    /// The old name of `--color never`
    #[arg(long, alias = "no-colours", hide = true, conflicts_with = "color")]
    no_colors: bool,
    /// Color theme: dark, light, high-contrast, sepia, dracula, one of your own, or `none` for the
    /// terminal's colors
    #[arg(long, value_name = "THEME", conflicts_with = "fast")]
    theme: Option<String>,
    /// Print the recording's metadata instead of playing it
    #[arg(long)]
    print_meta: bool,
}

impl PlayArgs {
    /// Plays a file as it is.
    pub(super) fn of(file: &Path) -> Self {
        Self {
            file: file.to_owned(),
            input: InputArgs::default(),
            speed: Some(1.0),
            idle_time_limit: None,
            r#loop: false,
            at: None,
            fast: false,
            color: Color::Auto,
            no_colors: false,
            theme: None,
            print_meta: false,
        }
    }
}

impl PlayArgs {
    /// Whether a recording is shown with its colours. What goes into a file or a pipe in the
    /// recording's time are the program's bytes, which have them.
    fn has_colours(&self) -> bool {
        let bytes = self.color == Color::Auto && !io::stdout().is_terminal() && !self.fast;
        !self.no_colors && (bytes || self.color.is_on())
    }
}

/// The final lines come with this much scrollback.
const ALL_ROWS: usize = 1_000_000;
/// The lines that a recording leaves in the terminal's scrollback, at most.
const LEFT_ROWS: usize = 10_000;
const LEFT_BYTES: usize = 16 << 20;
/// A keyframe of the index has no scrollback. It is used only to skip more output than this.
const INDEX_SAVES: u64 = 32 << 20;

pub(crate) fn run(args: &PlayArgs) -> Result {
    if args.print_meta {
        info::show(&args.file, &args.input, false)?;
        return Ok(Ending::Done);
    }
    let config = Config::load()?;
    let source = args.input.find(&args.file)?;
    let result = if args.fast {
        let turns = source.turns()?;
        let player = Player::of(source, Settings::default().scrollback(ALL_ROWS))?;
        fast(player, turns, args.has_colours())
    } else {
        let settings = Settings::default().scrollback(LEFT_ROWS).scrollback_bytes(LEFT_BYTES);
        let mut player = Player::of(source, settings)?;
        player.sparing_index(INDEX_SAVES);
        let theme = config.choose_theme(args.theme.as_deref(), &config.play.theme).map_err(Failure::usage)?;
        Screening::new(args, &config, theme, player).and_then(Screening::run)
    };
    result.map_err(|stopped| match stopped {
        Stopped::Play(e) => e.into(),
        Stopped::Output(e) => output_failed(&e),
        Stopped::NoMoment(message) => Failure::not_found(message),
    })
}

/// Why the player stopped early.
enum Stopped {
    Play(PlayError),
    Output(io::Error),
    NoMoment(String),
}

impl From<PlayError> for Stopped {
    fn from(e: PlayError) -> Self {
        Stopped::Play(e)
    }
}

impl From<io::Error> for Stopped {
    fn from(e: io::Error) -> Self {
        Stopped::Output(e)
    }
}

/// Ends with a message about damaged places.
fn ended(player: &Player) -> Ending {
    if player.damages() > 0 {
        let places = human::count(player.damages(), "damaged place");
        say(format_args!("passed over {places}: see tapdeck verify"));
    }
    Ending::Done
}

/// Goes to the place where the user wants to begin.
fn go_to(player: &mut Player, position: &parse::Position) -> Result<(), Stopped> {
    let name = match position {
        parse::Position::Time(time) => {
            let end = player.known_end();
            if Time::from(*time) > end {
                let path = player.source().path().display();
                let (at, end) = (human::duration(*time), human::duration(end.since_start()));
                return Err(Stopped::NoMoment(format!("{path}: {at} is not in it: it ends at {end}")));
            }
            return Ok(player.seek(Goal::Time((*time).into()))?);
        }
        parse::Position::Share(share) => {
            let to = player.known_end().scaled(*share);
            return Ok(player.seek(Goal::Time(to))?);
        }
        parse::Position::Moment(name) => name,
        other => {
            let to = locate::offset(player.source(), other).map_err(Stopped::NoMoment)?;
            return Ok(player.seek(Goal::Byte(to))?);
        }
    };
    let moments = player.moments(None).unwrap_or_default();
    match find_moment(moments, name).cloned() {
        Some(moment) => Ok(player.seek(Goal::from(&moment))?),
        None => {
            let names: Vec<String> = moments.iter().take(10).map(moment_name).collect();
            let there = match (names.is_empty(), moments.len() > 10) {
                (true, _) => "it has none".to_owned(),
                (_, more) => format!("it has {}{}", names.join(", "), if more { " and others" } else { "" }),
            };
            let path = player.source().path().display();
            Err(Stopped::NoMoment(format!("{path}: no marker or snapshot {name:?}: {there}")))
        }
    }
}

/// Finds a moment by its label, or by a snapshot's id.
pub(super) fn find_moment<'a>(moments: &'a [Moment], name: &str) -> Option<&'a Moment> {
    let id = name.parse().ok().map(MomentKind::Snapshot);
    let labelled = moments.iter().find(|m| m.label == name);
    labelled.or_else(|| moments.iter().find(|m| Some(m.kind) == id))
}

fn moment_name(moment: &Moment) -> String {
    match moment.kind {
        MomentKind::Snapshot(id) if moment.label.is_empty() => format!("@{id}"),
        _ => format!("@{}", moment.label),
    }
}

/// Prints the final screen and scrollback of the recording, and between them the turns that were
/// shown in the alternate screen.
fn fast(mut player: Player, turns: Vec<RecordedTurn>, colours: bool) -> Result<Ending, Stopped> {
    player.forward_only();
    let mut watch = TurnWatch::new(turns);
    while let Some(stop) = watch.next_stop() {
        // Without the index, whose keyframes have no scrollback.
        player.approach(Goal::Byte(Offset(stop)), u64::MAX)?;
        watch.look(stop, player.term());
    }
    while player.advance()?.is_some() {}
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let term = player.term();
    let (mut rows, mut written) = (export::final_rows(term), 0);
    for (before, turn) in export::place_turns(term, &watch.hidden(term)) {
        write_used_rows(rows.by_ref().take(before - written), colours, "\n", &mut out)?;
        written = before;
        out.write_all(turn.transcript().as_bytes())?;
    }
    write_used_rows(rows, colours, "\n", &mut out)?;
    out.flush()?;
    drop(out);
    Ok(ended(&player))
}
