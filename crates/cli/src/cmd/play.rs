//! `tapdeck play`: a recording on the terminal, in its own time or all at once.

mod keys;

use std::collections::VecDeque;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tapdeck_host::backend::Pace;
use tapdeck_host::{Clock, Goal, Keyboard, PlayError, Played, Player, Pressed, Source};
use tapdeck_tape::{AddReturns, Moment, MomentKind};
use tapdeck_term::{FilterOptions, ReplayFilter, Settings, Term};

use self::keys::{Key, keys_of};
use super::info;
use crate::ending::{Ending, output_failed, say};
use crate::failure::{Failure, Result};
use crate::input::InputArgs;
use crate::screen::write_used_rows;
use crate::{human, parse};

/// Replay a recording.
#[derive(Args)]
#[command(
    visible_alias = "replay",
    after_help = "\
Keys: space pauses; . and , step forth and back; → and ← skip 5 seconds, ↑ and ↓ a minute; 0-9
jump to tenths; ] and [ jump to the next and last marker or snapshot; q quits.

All formats play that `convert` reads. Nothing in a recording can act on your terminal, set its
title or make it answer. Where standard output is not a terminal, it gets the program's bytes, exactly.

Examples:
  tapdeck play demo.ahr
  tapdeck play --speed 2 --idle-time-limit 1s demo.ahr
  tapdeck play --at 50% demo.ahr
  tapdeck play --at @tests demo.cast     from the marker \"tests\"
  tapdeck play --fast --no-colors demo.ahr | less"
)]
pub(crate) struct PlayArgs {
    /// The recording; `-` for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    input: InputArgs,
    /// So many times as fast
    #[arg(short, long, value_name = "FACTOR", default_value_t = 1.0, value_parser = speed)]
    speed: f64,
    /// Make pauses no longer than this
    #[arg(short, long, value_name = "TIME", value_parser = parse::duration)]
    idle_time_limit: Option<Duration>,
    /// Begin again at the end, until stopped
    #[arg(short, long)]
    r#loop: bool,
    /// Start at a time (1:23:45, 90s), a share (50%), a marker or snapshot (@label) or in the
    /// output (byte:4096)
    #[arg(long, value_name = "PLACE", value_parser = parse::place)]
    at: Option<parse::Place>,
    /// Print what is left at the end at once: all of the scrollback and the screen
    #[arg(long, conflicts_with_all = ["speed", "idle_time_limit", "loop", "at"])]
    fast: bool,
    /// Leave colours and styles out
    #[arg(long, alias = "no-colours")]
    no_colors: bool,
    /// Print what is known about the recording instead
    #[arg(long)]
    print_meta: bool,
}

fn speed(text: &str) -> Result<f64, String> {
    let factor: f64 =
        text.trim_end_matches('x').parse().map_err(|_| "expected a number such as 2 or 0.5x")?;
    if factor.is_finite() && (0.001..=1e6).contains(&factor) {
        Ok(factor)
    } else {
        Err("the speed must be between 0.001 and 1000000".into())
    }
}

/// The final lines come with this much scrollback.
const ALL_ROWS: usize = 1_000_000;
/// The most keys that wait for moments: more come from a key that is held down.
const MAX_OWED: usize = 16;
const JUST_PASSED: u64 = 1_000_000_000;
const TICK: Duration = Duration::from_millis(250);
/// With --loop, the least time between two starts.
const LEAST_TURN_NS: u64 = 250_000_000;

pub(crate) fn run(args: &PlayArgs) -> Result {
    if args.print_meta {
        info::show(&args.file, &args.input, false)?;
        return Ok(Ending::Done);
    }
    let scrollback = if args.fast { ALL_ROWS } else { 0 };
    let source = Source::find(&args.file, args.input.from, args.input.timing.as_deref())?;
    let player = Player::of(source, Settings { scrollback, ..Settings::default() })?;
    let result = if args.fast { fast(player, !args.no_colors) } else { Screening::new(args, player).run() };
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
        say(format_args!("{} damaged places were passed over: see tapdeck verify", player.damages()));
    }
    Ending::Done
}

/// Goes to the place where the user wants to begin.
fn go_to(player: &mut Player, place: &parse::Place) -> Result<(), Stopped> {
    let name = match place {
        parse::Place::Time(time) => {
            let to = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            return Ok(player.seek(Goal::Time(to))?);
        }
        parse::Place::Share(share) => {
            let to = (player.whole_duration_ns() as f64 * share) as u64;
            return Ok(player.seek(Goal::Time(to))?);
        }
        parse::Place::Byte(to) => return Ok(player.seek(Goal::Byte(*to))?),
        parse::Place::Moment(name) => name,
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
fn find_moment<'a>(moments: &'a [Moment], name: &str) -> Option<&'a Moment> {
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

/// Prints the final screen and scrollback of the recording.
fn fast(mut player: Player, colours: bool) -> Result<Ending, Stopped> {
    player.forward_only();
    while player.advance()?.is_some() {}
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let colours = colours && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    write_used_rows(player.term().lines(), colours, "\n", &mut out)?;
    out.flush()?;
    drop(out);
    Ok(ended(&player))
}

/// A recording being shown.
struct Screening<'a> {
    args: &'a PlayArgs,
    player: Player,
    pace: Pace,
    clock: Clock,
    filter: ReplayFilter,
    /// Adds carriage returns to the output of a program that ran on pipes.
    returns: Option<AddReturns>,
    out: Vec<u8>,
    paused: bool,
    /// When the next event is due, on our clock.
    due_ns: u64,
    /// Whether the progress line is on the screen, and whether it covers a row of the picture.
    drawn: bool,
    covered: bool,
    /// The length that the progress line shows.
    told_ns: u64,
    /// When the last round began.
    begun_ns: u64,
    /// Until when the progress line is shown even if it covers a row.
    announce_until_ns: u64,
    /// Jumps to moments that wait until the moments are known, in the order of the keys: forth or
    /// back.
    owed: VecDeque<bool>,
}

impl<'a> Screening<'a> {
    fn new(args: &'a PlayArgs, player: Player) -> Self {
        let asked = args.idle_time_limit.map(|d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX));
        let idle_limit_ns = asked.or(player.idle_limit_ns());
        let returns = (player.is_of_pipes() && is_terminal()).then(AddReturns::default);
        Self {
            args,
            player,
            pace: Pace { speed: args.speed, idle_limit_ns },
            clock: Clock::start(),
            filter: filter(args),
            returns,
            out: Vec::new(),
            paused: false,
            due_ns: 0,
            drawn: false,
            told_ns: 0,
            covered: false,
            begun_ns: 0,
            announce_until_ns: 0,
            owed: VecDeque::new(),
        }
    }

    fn run(mut self) -> Result<Ending, Stopped> {
        let mut keyboard = Keyboard::take_of_terminal()?;
        let on_terminal = keyboard.screen_size().is_some();
        if keyboard.is_there() {
            self.player.look_ahead();
        }
        if let Some(place) = &self.args.at {
            go_to(&mut self.player, place)?;
        }
        if on_terminal {
            self.open_curtain(&keyboard)?;
        }
        if self.args.at.is_some() {
            self.picture();
            self.flush()?;
        }
        self.schedule()?;
        let ending = loop {
            match self.turn(&mut keyboard)? {
                ControlFlow::Continue(()) => {}
                ControlFlow::Break(ending) => break ending,
            }
        };
        if on_terminal {
            self.close_curtain(&keyboard)?;
        }
        drop(keyboard);
        if ending == Ending::Done {
            return Ok(ended(&self.player));
        }
        Ok(ending)
    }

    /// Makes room: what the user has on the screen goes up into the scrollback, whole.
    fn open_curtain(&mut self, keyboard: &Keyboard) -> Result<(), Stopped> {
        let screen = keyboard.screen_size().unwrap_or_default().or_default();
        let recorded = self.player.term().size();
        if recorded.cols > screen.cols || recorded.rows > screen.rows {
            say(format_args!(
                "recorded on {}x{}, this terminal is {}x{}: make it larger to see it right",
                recorded.cols, recorded.rows, screen.cols, screen.rows
            ));
        }
        self.out.extend(std::iter::repeat_n(b'\n', usize::from(screen.rows)));
        self.out.extend_from_slice(b"\x1b[H\x1b[2J");
        self.flush()
    }

    /// Leaves the last picture, sane modes, and the cursor on a free line.
    fn close_curtain(&mut self, keyboard: &Keyboard) -> Result<(), Stopped> {
        if self.covered {
            self.picture();
        }
        let rows = keyboard.screen_size().unwrap_or_default().or_default().rows;
        let written = self.player.term().screen().rposition(|line| !line.is_blank());
        let used = written.map_or(0, |row| row + 1).min(usize::from(rows));
        let undo = self.player.term().undo_modes();
        let alternate = self.player.term().modes().alternate();
        self.out.extend_from_slice(&undo);
        if !alternate {
            if usize::from(rows) > usize::from(self.player.term().size().rows) {
                self.out.extend_from_slice(format!("\x1b[{rows};1H\x1b[K").as_bytes());
            }
            self.out.extend_from_slice(format!("\x1b[{};1H", used.max(1)).as_bytes());
            self.out.extend_from_slice(if used > 0 { b"\r\n" } else { b"" });
        }
        self.flush()
    }

    fn turn(&mut self, keyboard: &mut Keyboard) -> Result<ControlFlow<Ending>, Stopped> {
        let now = self.clock.now().mono.as_nanos();
        let has_next = self.player.peek()?.is_some();
        let mut limit = None;
        if !self.paused && has_next {
            limit = Some(Duration::from_nanos(self.due_ns.saturating_sub(now)));
        }
        if !has_next && !self.paused {
            if !self.args.r#loop {
                return Ok(ControlFlow::Break(Ending::Done));
            }
            // A recording without duration would keep the machine busy.
            let rest = (self.begun_ns + LEAST_TURN_NS).saturating_sub(now);
            if rest == 0 {
                self.begun_ns = now;
                self.player.rewind()?;
                self.filter = filter(self.args);
                self.picture();
                self.schedule()?;
            }
            limit = Some(Duration::from_nanos(rest));
        }
        if keyboard.is_there() && !self.paused {
            limit = limit.map(|l| l.min(TICK));
        } else if keyboard.is_there()
            && (self.player.is_looking_ahead() || self.player.duration_ns() != self.told_ns)
        {
            // The progress line lacks the length, and keys may wait for moments.
            limit = Some(TICK);
        }
        match keyboard.wait(limit)? {
            Pressed::Signal(signal) => return Ok(ControlFlow::Break(Ending::by_signal(signal))),
            Pressed::Keys(keys) => {
                for key in keys_of(&keys) {
                    if let ControlFlow::Break(ending) = self.obey(key, keyboard)? {
                        return Ok(ControlFlow::Break(ending));
                    }
                }
            }
            Pressed::Repaint => self.picture(),
            Pressed::Nothing => {}
        }
        self.jump_to_moments(Duration::ZERO)?;
        self.show_what_is_due()?;
        self.progress(keyboard);
        self.flush()?;
        Ok(ControlFlow::Continue(()))
    }

    fn show_what_is_due(&mut self) -> Result<(), Stopped> {
        while !self.paused && self.due_ns <= self.clock.now().mono.as_nanos() {
            if self.player.peek()?.is_none() {
                break;
            }
            self.uncover();
            self.show_next()?;
            self.schedule()?;
            if self.out.len() > 1 << 16 {
                break;
            }
        }
        Ok(())
    }

    /// Plays one event.
    fn show_next(&mut self) -> Result<(), Stopped> {
        let played = self.player.advance()?;
        if let Some(Played::Resize(_)) = played {
            // The picture may use the row of the progress line now.
            self.covered |= self.drawn;
        }
        if let Some(Played::Output(bytes)) = played {
            let straight = self.returns.as_mut().map(|returns| returns.add(&bytes));
            let bytes = straight.as_deref().unwrap_or(&bytes);
            // A file or a pipe gets the program's bytes; a terminal only what cannot act on it.
            if is_terminal() || self.args.no_colors {
                self.filter.filter(bytes, &mut self.out);
            } else {
                self.out.extend_from_slice(bytes);
            }
        }
        Ok(())
    }

    /// Sets when the next event is due, counted from now.
    fn schedule(&mut self) -> Result<(), Stopped> {
        let at = self.player.at_ns();
        if let Some((next, _)) = self.player.peek()? {
            let gap = self.pace.gap_ns(next.saturating_sub(at));
            // Counted from the time at which the last event was due, so that small delays do not
            // add up.
            let now = self.clock.now().mono.as_nanos();
            let from = if self.due_ns + 1_000_000_000 > now { self.due_ns.min(now) } else { now };
            self.due_ns = from + gap;
        }
        Ok(())
    }

    fn obey(&mut self, key: Key, keyboard: &mut Keyboard) -> Result<ControlFlow<Ending>, Stopped> {
        let (at, end) = (self.player.at_ns(), self.player.duration_ns());
        if matches!(key, Key::StepForth | Key::StepBack | Key::Skip(_) | Key::Tenth(_)) {
            // A jump elsewhere gives up waiting for moments.
            self.owed.clear();
        }
        match key {
            Key::Quit => return Ok(ControlFlow::Break(Ending::Done)),
            Key::Suspend => {
                keyboard.suspend()?;
                self.picture();
            }
            Key::Pause => self.paused = !self.paused,
            Key::StepForth => {
                self.paused = true;
                self.uncover();
                while let Some((_, event)) = self.player.peek()? {
                    let shows = matches!(event, Played::Output(_));
                    self.show_next()?;
                    if shows {
                        break;
                    }
                }
            }
            Key::StepBack => {
                self.paused = true;
                self.player.step_back()?;
                self.picture();
            }
            Key::Skip(by) => self.jump(at.saturating_add_signed(by).min(end))?,
            Key::Tenth(n) => {
                // A tenth of the length that is known so far would be the wrong place.
                let end = if self.player.is_looking_ahead() { self.player.whole_duration_ns() } else { end };
                self.jump(end / 10 * u64::from(n))?;
            }
            Key::NextMoment | Key::LastMoment => {
                // The moments of a large recording are known late: the key waits for them rather
                // than be lost.
                if self.owed.len() < MAX_OWED {
                    self.owed.push_back(key == Key::NextMoment);
                }
                self.jump_to_moments(TICK)?;
            }
        }
        self.due_ns = self.clock.now().mono.as_nanos();
        self.schedule()?;
        self.announce_until_ns = self.clock.now().mono.as_nanos() + 1_500_000_000;
        Ok(ControlFlow::Continue(()))
    }

    fn jump(&mut self, to_ns: u64) -> Result<(), Stopped> {
        self.player.seek(Goal::Time(to_ns))?;
        self.picture();
        Ok(())
    }

    /// Performs the jumps of waiting keys, if the moments become known within the time.
    fn jump_to_moments(&mut self, within: Duration) -> Result<(), Stopped> {
        while !self.owed.is_empty() && self.player.moments(Some(within)).is_some() {
            if let Some(forth) = self.owed.pop_front() {
                self.jump_to_moment(forth)?;
                self.due_ns = self.clock.now().mono.as_nanos();
                self.schedule()?;
            }
        }
        Ok(())
    }

    fn jump_to_moment(&mut self, forth: bool) -> Result<(), Stopped> {
        let (at, offset, paused) = (self.player.at_ns(), self.player.offset(), self.paused);
        let Some(moments) = self.player.moments(Some(Duration::ZERO)) else { return Ok(()) };
        let moment = if forth {
            // While it plays, time has passed since the last event, and with it those that the
            // output did not move.
            let past = if paused { at } else { u64::MAX };
            moments.iter().find(|m| (m.anchor, m.time_ns) > (offset, past))
        } else {
            // While it plays, the moment just passed does not count: otherwise no key could get
            // before it.
            let since = if paused { 0 } else { JUST_PASSED };
            moments
                .iter()
                .rev()
                .find(|m| (m.anchor, m.time_ns) < (offset, at) && m.time_ns.saturating_add(since) <= at)
        };
        if let Some(moment) = moment.cloned() {
            self.player.seek(Goal::from(&moment))?;
            self.picture();
        }
        Ok(())
    }

    /// Paints the whole picture from the model.
    fn picture(&mut self) {
        if is_terminal() {
            self.filter = filter(self.args);
            if !self.player.term().modes().alternate() {
                // The recording may have left the other screen at an earlier place than the
                // picture's.
                self.out.extend_from_slice(b"\x1b[?1049l");
            }
            // The picture is complete, so the filter must not hold any of it back.
            filter(self.args).filter(&self.player.term().dump_screen(), &mut self.out);
            (self.drawn, self.covered) = (false, false);
        }
    }

    fn uncover(&mut self) {
        if std::mem::take(&mut self.covered) {
            self.picture();
        }
    }

    /// Draws the progress line: always where the picture leaves a row free, else while paused and
    /// after a key.
    fn progress(&mut self, keyboard: &Keyboard) {
        let end_ns = self.player.duration_ns();
        self.told_ns = end_ns;
        let Some(screen) = keyboard.screen_size().filter(|_| keyboard.is_there()) else { return };
        let term = self.player.term();
        let free = screen.rows > term.size().rows;
        let announced = self.paused || self.clock.now().mono.as_nanos() < self.announce_until_ns;
        if screen.rows == 0 || !(free || announced) {
            self.uncover();
            return;
        }
        self.drawn = true;
        self.covered |= !free;
        let line = progress_line(self.player.at_ns(), end_ns, self.paused, self.pace.speed, screen.cols);
        let head = format!("\x1b[?6l\x1b[r\x1b[{};1H\x1b[0;7m", screen.rows);
        self.out.extend_from_slice(head.as_bytes());
        self.out.extend_from_slice(line.as_bytes());
        self.out.extend_from_slice(b"\x1b[m");
        self.out.extend_from_slice(&restore(term));
    }

    fn flush(&mut self) -> Result<(), Stopped> {
        if !self.out.is_empty() {
            let mut stdout = io::stdout().lock();
            stdout.write_all(&self.out)?;
            stdout.flush()?;
            self.out.clear();
        }
        Ok(())
    }
}

fn restore(term: &Term) -> Vec<u8> {
    term.restore_cursor()
}

fn filter(args: &PlayArgs) -> ReplayFilter {
    ReplayFilter::new(FilterOptions { strip_sgr: args.no_colors, strip_titles: true })
}

fn is_terminal() -> bool {
    io::IsTerminal::is_terminal(&io::stdout())
}

fn progress_line(at_ns: u64, end_ns: u64, paused: bool, speed: f64, cols: u16) -> String {
    let time = |ns: u64| human::clock(Duration::from_nanos(ns));
    let sign = if paused { "❚❚" } else { "▶ " };
    let speed = if (speed - 1.0).abs() < 1e-9 { String::new() } else { format!(" {speed}x") };
    let left = format!(" {sign} {} / {}{speed} ", time(at_ns), time(end_ns));
    let room = usize::from(cols).saturating_sub(left.chars().count() + 1);
    let share = if end_ns == 0 { 1.0 } else { at_ns as f64 / end_ns as f64 };
    let done = ((room as f64 * share) as usize).min(room);
    let line = format!("{left}{}{}", "━".repeat(done), "╌".repeat(room - done));
    line.chars().take(usize::from(cols)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_progress_line_fits() {
        for cols in [0, 1, 5, 80, 300] {
            let line = progress_line(30_000_000_000, 60_000_000_000, true, 2.0, cols);
            assert!(line.chars().count() <= usize::from(cols), "{cols}: {line:?}");
        }
        assert!(progress_line(0, 0, false, 1.0, 40).contains("0:00 / 0:00"));
    }
}
