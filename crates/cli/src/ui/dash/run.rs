//! The dashboard on the real terminal.

use tapdeck_core::Time;
use tapdeck_host::Clock;

use super::{Dash, Effect};
use crate::ui::alerts::Alerts;
use crate::ui::screen::{Screen, ScreenEvent};
use crate::ui::view::run::{FRAME, ViewError};

/// Shows the dashboard until the user leaves it, with the alerts that the user wants. The signal is
/// one that asked this process to end.
///
/// # Errors
/// When the terminal fails.
pub fn run(dash: &mut Dash, mouse: bool, alerts: &Alerts) -> Result<Option<i32>, ViewError> {
    let clock = Clock::start();
    let screen = Screen::take(mouse, dash.styles.cursor())?;
    let mut screen = screen.ok_or(ViewError::NoTerminal("the dashboard"))?;
    let mut drawn_at = None;
    loop {
        let now = clock.now().mono;
        dash.tick(now);
        for (name, state) in dash.take_changes() {
            screen.tell(&alerts.bytes(&name, state))?;
        }
        let may_draw_at = drawn_at.map_or(now, |last: Time| last + FRAME);
        if dash.is_dirty() && may_draw_at <= now {
            screen.draw(|frame| dash.draw(frame))?;
            drawn_at = Some(now);
        }
        let draw = dash.is_dirty().then_some(may_draw_at);
        let due = [dash.due(), draw].into_iter().flatten().min();
        let limit = due.map(|due| due.since(now));
        let events = match screen.wait(limit, &dash.fds())? {
            ScreenEvent::Signal(signal) => return Ok(Some(signal)),
            ScreenEvent::Repaint => {
                (dash.dirty, drawn_at) = (true, None);
                continue;
            }
            ScreenEvent::Input(events) => events,
        };
        for event in events {
            match dash.on_event(&event, clock.now().mono) {
                Effect::Nothing => continue,
                Effect::Quit => return Ok(None),
                Effect::Suspend => screen.suspend()?,
                Effect::Repaint => screen.clear()?,
            }
            (dash.dirty, drawn_at) = (true, None);
        }
    }
}
