//! The dashboard on the real terminal.

use std::time::Duration;

use tapdeck_host::Clock;

use super::{Dash, Effect};
use crate::ui::screen::{Screen, ScreenEvent};
use crate::ui::view::run::{FRAME_NS, ViewError};

/// Shows the dashboard until the user leaves it. The signal is one that asked this process to end.
///
/// # Errors
/// When the terminal fails.
pub fn run(dash: &mut Dash, mouse: bool) -> Result<Option<i32>, ViewError> {
    let clock = Clock::start();
    let mut screen = Screen::take(mouse)?.ok_or(ViewError::NoTerminal)?;
    let mut drawn_ns = None;
    loop {
        let now = clock.now().mono.as_nanos();
        dash.tick(now);
        let may_draw_ns = drawn_ns.map_or(now, |last: u64| last + FRAME_NS);
        if dash.is_dirty() && may_draw_ns <= now {
            screen.draw(|frame| dash.draw(frame))?;
            drawn_ns = Some(now);
        }
        let draw = dash.is_dirty().then_some(may_draw_ns);
        let due = [dash.due_ns(), draw].into_iter().flatten().min();
        let limit = due.map(|due| Duration::from_nanos(due.saturating_sub(now)));
        let events = match screen.wait(limit, &dash.fds())? {
            ScreenEvent::Signal(signal) => return Ok(Some(signal)),
            ScreenEvent::Repaint => {
                (dash.dirty, drawn_ns) = (true, None);
                continue;
            }
            ScreenEvent::Input(events) => events,
        };
        for event in events {
            match dash.on_event(&event, clock.now().mono.as_nanos()) {
                Effect::Nothing => continue,
                Effect::Quit => return Ok(None),
                Effect::Suspend => screen.suspend()?,
                Effect::Repaint => screen.clear()?,
            }
            (dash.dirty, drawn_ns) = (true, None);
        }
    }
}
