//! What a target could not carry, in words and as data.

use serde_json::{Value, json};
use tapdeck::convert::To;
use tapdeck_tape::event::Count;
use tapdeck_tape::{Format, Loss};

use crate::human;

/// The losses that a user would miss, as a sentence's end; `None` if there are none. What a foreign
/// format never has is in the source still, and is counted in the JSON report alone.
pub(super) fn losses_that_matter(to: To, losses: &[(Loss, Count)]) -> Option<String> {
    let is_native = to.container().is_some_and(|c| c.format == Format::Ahr);
    let matters = |loss: Loss| {
        is_native
            || !matches!(
                loss,
                Loss::Exit
                    | Loss::Signal
                    | Loss::Mark
                    | Loss::Timing
                    | Loss::Pause
                    | Loss::Header
                    | Loss::Beside
            )
    };
    let said: Vec<_> = losses.iter().filter(|(loss, _)| matters(*loss)).copied().collect();
    (!said.is_empty()).then(|| losses_text(&said))
}

/// What could not be carried, as a sentence's end.
pub(crate) fn losses_text(losses: &[(Loss, Count)]) -> String {
    let one = |(loss, count): &(Loss, Count)| match (loss, count) {
        (Loss::Timing | Loss::Pause | Loss::Size, _) => loss.to_string(),
        (_, Count { events, bytes: 0 }) => format!("{loss}: {events}"),
        (_, Count { events, bytes }) => format!("{loss}: {events} with {}", human::bytes(*bytes)),
    };
    losses.iter().map(one).collect::<Vec<_>>().join("; ")
}

pub(super) fn losses_json(losses: &[(Loss, Count)]) -> Vec<Value> {
    let name = |loss: &Loss| match loss {
        Loss::InvalidUtf8 => "invalid-utf8",
        Loss::Characters => "characters",
        Loss::Input => "input",
        Loss::Resize => "resize",
        Loss::Marker => "marker",
        Loss::Exit => "exit",
        Loss::Signal => "signal",
        Loss::Mark => "mark",
        Loss::Snapshot => "snapshot",
        Loss::Size => "size",
        Loss::Timing => "timing",
        Loss::Pause => "pause",
        Loss::Header => "header",
        Loss::Beside => "beside",
        Loss::Colours => "colours",
        Loss::Scrolled => "scrolled",
        Loss::Frames => "frames",
        _ => "other",
    };
    let one = |(loss, count): &(Loss, Count)| json!({"what": name(loss), "events": count.events, "bytes": count.bytes});
    losses.iter().map(one).collect()
}
