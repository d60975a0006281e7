//! The viewer on the real terminal: waits, and draws what changed, no more often than a screen can
//! show it.

use std::ffi::OsString;
use std::io;
use std::time::Duration;

use tapdeck_core::{Exit, Time};
use tapdeck_host::backend::CommandSpec;
use tapdeck_host::{Clock, Launch, PlayError};

use super::instruct::program_of;
use super::{App, Effect, Origin};
use crate::ui::screen::{Screen, ScreenEvent};

/// The time between two frames.
pub const FRAME: Duration = Duration::from_nanos(1_000_000_000 / 60);
/// How long a frame that the program does not end is held back.
const HALF_DRAWN: Duration = Duration::from_millis(150);

/// Why the viewer failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// There is no terminal to show it on.
    #[error("{0} needs a terminal: standard input and output must be one")]
    NoTerminal(&'static str),
    /// The place to begin at is missing, or the search to begin with is wrong.
    #[error("{message}")]
    Begin {
        /// What is wrong.
        message: String,
        /// Whether something was looked for and not found.
        missing: bool,
    },
    /// The terminal could not be used.
    #[error("this terminal cannot be used: {0}")]
    Terminal(#[from] io::Error),
    /// The recording could not be read.
    #[error(transparent)]
    Play(#[from] PlayError),
}

/// Shows the viewer until the user leaves it. `begin` goes to the first place, which may start
/// threads: that must come after the signals of this process have been taken. The signal returned
/// is one that asked this process to end.
///
/// # Errors
/// When the terminal or the recording fails.
pub fn run(
    app: &mut App,
    mouse: bool,
    begin: impl FnOnce(&mut App) -> Result<(), ViewError>,
) -> Result<Option<i32>, ViewError> {
    let clock = Clock::start();
    let mut screen =
        Some(Screen::take(mouse, app.options.styles.cursor())?.ok_or(ViewError::NoTerminal("the viewer"))?);
    begin(app)?;
    if let Origin::Tape(tape) = &mut app.origin {
        tape.look_ahead();
    }
    let mut drawn_at = None;
    loop {
        let Some(shown) = &mut screen else {
            screen = Some(
                Screen::take(mouse, app.options.styles.cursor())?
                    .ok_or(ViewError::NoTerminal("the viewer"))?,
            );
            drawn_at = None;
            continue;
        };
        let now = clock.now().mono;
        app.tick(now)?;
        if app.has_left() {
            return Ok(None);
        }
        let wait = if app.is_half_drawn() { HALF_DRAWN } else { FRAME };
        let may_draw_at = drawn_at.map_or(now, |last: Time| last + wait);
        if app.is_dirty() && may_draw_at <= now {
            shown.draw(|frame| app.draw(frame))?;
            drawn_at = Some(now);
        }
        let draw = app.is_dirty().then_some(may_draw_at);
        let due = [app.due(now), draw].into_iter().flatten().min();
        let limit = due.map(|due| due.since(now));
        let events = match shown.wait(limit, &app.fds())? {
            ScreenEvent::Signal(signal) => return Ok(Some(signal)),
            ScreenEvent::Repaint => {
                (app.dirty, drawn_at) = (true, None);
                continue;
            }
            ScreenEvent::Input(events) => events,
        };
        for event in events {
            let stamp = clock.now();
            match app.on_event(&event, stamp.mono, stamp.wall)? {
                Effect::Nothing => {}
                Effect::Quit => return Ok(None),
                Effect::Suspend => {
                    shown.suspend()?;
                    (app.dirty, drawn_at) = (true, None);
                }
                Effect::Repaint => {
                    shown.clear()?;
                    (app.dirty, drawn_at) = (true, None);
                }
                Effect::Copy(text) => shown.copy(&text)?,
                Effect::Run(command) => {
                    screen = None;
                    branch(app, &command);
                    app.take_back();
                    break;
                }
            }
        }
    }
}

/// Runs the user's command on the terminal, to its end.
fn branch(app: &mut App, command: &[String]) {
    let spec = CommandSpec::new(command.iter().map(OsString::from));
    let name = program_of(command);
    match Launch::new(spec).run(None).outcome {
        Err(e) => app.tell(e.to_string(), true),
        Ok(outcome) => match outcome.exit {
            Exit::Code(0) => app.tell(format!("{name} is done"), false),
            Exit::Code(code) => app.tell(format!("{name} ended with exit code {code}"), true),
            Exit::Signal(signal) => app.tell(format!("{name} was ended by signal {signal}"), true),
        },
    }
}
