//! The viewer on the real terminal: waits, and draws what changed, no more often than a screen can
//! show it.

use std::ffi::OsString;
use std::io;
use std::time::Duration;

use tapdeck_core::Exit;
use tapdeck_host::backend::CommandSpec;
use tapdeck_host::{Clock, Launch, PlayError};

use super::{App, Effect, Origin};
use crate::ui::screen::{Screen, ScreenEvent};

/// The time between two frames.
pub const FRAME_NS: u64 = 1_000_000_000 / 60;
/// How long a frame that the program does not end is held back.
const HALF_DRAWN_NS: u64 = 150_000_000;

/// Why the viewer failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// There is no terminal to show it on.
    #[error("the viewer needs a terminal to show itself on: run it on one")]
    NoTerminal,
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
    let mut screen = Some(Screen::take(mouse)?.ok_or(ViewError::NoTerminal)?);
    begin(app)?;
    if let Origin::Tape(tape) = &mut app.origin {
        tape.look_ahead();
    }
    let mut drawn_ns = None;
    loop {
        let Some(shown) = &mut screen else {
            screen = Some(Screen::take(mouse)?.ok_or(ViewError::NoTerminal)?);
            drawn_ns = None;
            continue;
        };
        let now = clock.now().mono.as_nanos();
        app.tick(now)?;
        if app.has_left() {
            return Ok(None);
        }
        let wait = if app.is_half_drawn() { HALF_DRAWN_NS } else { FRAME_NS };
        let may_draw_ns = drawn_ns.map_or(now, |last: u64| last + wait);
        if app.is_dirty() && may_draw_ns <= now {
            shown.draw(|frame| app.draw(frame))?;
            drawn_ns = Some(now);
        }
        let draw = app.is_dirty().then_some(may_draw_ns);
        let due = [app.due_ns(now), draw].into_iter().flatten().min();
        let limit = due.map(|due| Duration::from_nanos(due.saturating_sub(now)));
        let events = match shown.wait(limit, &app.fds())? {
            ScreenEvent::Signal(signal) => return Ok(Some(signal)),
            ScreenEvent::Repaint => {
                (app.dirty, drawn_ns) = (true, None);
                continue;
            }
            ScreenEvent::Input(events) => events,
        };
        for event in events {
            let stamp = clock.now();
            match app.on_event(&event, stamp.mono.as_nanos(), stamp.wall.as_nanos())? {
                Effect::Nothing => {}
                Effect::Quit => return Ok(None),
                Effect::Suspend => {
                    shown.suspend()?;
                    (app.dirty, drawn_ns) = (true, None);
                }
                Effect::Repaint => {
                    shown.clear()?;
                    (app.dirty, drawn_ns) = (true, None);
                }
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
    let name = command.first().cloned().unwrap_or_default();
    match Launch::new(spec).run(None).outcome {
        Err(e) => app.tell(e.to_string(), true),
        Ok(outcome) => match outcome.exit {
            Exit::Code(0) => app.tell(format!("{name} is done"), false),
            Exit::Code(code) => app.tell(format!("{name} ended with exit code {code}"), true),
            Exit::Signal(signal) => app.tell(format!("{name} was ended by signal {signal}"), true),
        },
    }
}
