//! Delivers a prompt to a session's program, and tells whether the program took it.

use std::time::Duration;

use serde_json::{Value, json};
use tapdeck_serve::client::Bus;

use crate::failure::{Failure, Result};

/// The longest prompt, in bytes.
pub(crate) const MAX_PROMPT: u64 = 8 << 20;

/// How a prompt is delivered.
#[derive(Clone, Copy)]
pub(crate) struct Delivery {
    /// Whether Enter is pressed at the end.
    pub(crate) enter: bool,
    /// Whether control characters and line ends are sent as they are.
    pub(crate) raw: bool,
    /// How long each step may take.
    pub(crate) step_limit: Duration,
}

impl Delivery {
    /// Pastes a text and waits for the outcome.
    pub(crate) fn paste(self, bus: &mut Bus, text: &str) -> Result<Value> {
        if text.len() as u64 > MAX_PROMPT {
            return Err(Failure::usage(format!("the text is longer than {} MiB", MAX_PROMPT >> 20)));
        }
        let wait_ms = u64::try_from(self.step_limit.as_millis()).unwrap_or(u64::MAX);
        let request = json!({"text": text, "enter": self.enter, "raw": self.raw, "wait_ms": wait_ms});
        // There are four steps at most.
        let limit = self.step_limit * 4 + Duration::from_secs(10);
        Ok(bus.ask("PASTE", &request.to_string(), limit)?.json())
    }
}

/// Whether the program got the text.
pub(crate) fn is_delivered(outcome: &Value) -> bool {
    matches!(outcome["outcome"].as_str(), Some("submitted" | "pasted"))
}
