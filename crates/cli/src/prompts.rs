//! Delivers a prompt to a session's program, and tells whether the program took it.

use std::io::Read;
use std::time::Duration;

use tapdeck_proto::bus::{MAX_PASTE, Outcome, Paste, Pasted};
use tapdeck_serve::client::Bus;

use crate::failure::{Failure, Result};

/// The longest prompt, in bytes.
pub(crate) const MAX_PROMPT: u64 = MAX_PASTE as u64;

/// How long a prompt may wait its turn.
const QUEUE: Duration = Duration::from_secs(3_600);

/// How a prompt is delivered.
#[derive(Clone, Copy)]
pub(crate) struct Delivery {
    /// Whether Enter is pressed at the end.
    pub(crate) enter: bool,
    /// Whether control characters and line ends are sent as they are.
    pub(crate) raw: bool,
    /// Whether what stands in the input field is deleted first.
    pub(crate) clear: bool,
    /// Whether it waits its turn however long that takes.
    pub(crate) queue: bool,
    /// Timeout of each step.
    pub(crate) step_limit: Duration,
}

impl Delivery {
    /// Pastes a text and waits for the outcome.
    pub(crate) fn paste(self, bus: &mut Bus, text: &str) -> Result<Pasted> {
        if text.len() as u64 > MAX_PROMPT {
            return Err(Failure::usage(format!("the text is longer than {} MiB", MAX_PROMPT >> 20)));
        }
        let wait_ms = u64::try_from(self.step_limit.as_millis()).unwrap_or(u64::MAX);
        let Self { enter, raw, clear, queue, .. } = self;
        let request = Paste { enter, raw, clear, queue, wait_ms: Some(wait_ms), ..Paste::new(text) };
        // There are six steps at most.
        let limit = self.step_limit.saturating_mul(6).saturating_add(Duration::from_secs(10));
        let limit = if queue { limit + QUEUE } else { limit };
        Ok(bus.request(&request, limit)?)
    }
}

/// Reads a prompt from standard input.
pub(crate) fn from_stdin() -> Result<String> {
    let mut text = Vec::new();
    let read = std::io::stdin().take(MAX_PROMPT + 1).read_to_end(&mut text);
    read.map_err(|e| Failure::io(format!("cannot read the text: {e}")))?;
    String::from_utf8(text).map_err(|e| {
        Failure::usage(format!("the text is not UTF-8, at byte {}", e.utf8_error().valid_up_to()))
    })
}

/// Whether the program got the text.
pub(crate) fn is_delivered(outcome: &Pasted) -> bool {
    matches!(outcome.outcome, Outcome::Submitted | Outcome::Pasted)
}
