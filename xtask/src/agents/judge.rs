//! Compares the states that a session reported with the truth.

use serde_json::{Value, json};

use super::bus::State;

/// How long a state may lag behind the truth.
pub(super) const LAG_MS: f64 = 500.0;

/// A stretch of time in which the truth is known.
pub(super) struct Phase {
    pub(super) name: &'static str,
    pub(super) from: f64,
    pub(super) to: f64,
    /// States that are true meanwhile.
    pub(super) right: &'static [&'static str],
    /// Whether the agent is in the middle of a turn: idle is never true, not even for a moment.
    pub(super) busy: bool,
}

/// A state that was reported while it was not true.
#[derive(Clone)]
pub(super) struct Wrong {
    pub(super) phase: &'static str,
    pub(super) state: String,
    pub(super) rule: String,
    pub(super) ms: f64,
    pub(super) false_idle: bool,
}

impl Wrong {
    pub(super) fn to_json(&self) -> Value {
        json!({"phase": self.phase, "state": self.state, "rule": self.rule, "ms": self.ms.round(), "false_idle": self.false_idle})
    }
}

/// The states that were wrong, or wrong for too long, in a situation that began then.
pub(super) fn judge(states: &[State], phases: &[Phase], began: f64) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    for phase in phases {
        for (i, state) in states.iter().enumerate() {
            let until = states.get(i + 1).map_or(f64::INFINITY, |next| next.at).min(phase.to);
            let ms = until - state.at.max(phase.from);
            if ms <= 0.0 || phase.right.contains(&state.name.as_str()) {
                continue;
            }
            // A state from before the situation was true then. If it lasts, the next one is late.
            let false_idle = phase.busy && state.name == "idle" && state.at > began;
            if false_idle || ms > LAG_MS {
                let (state, rule) = (state.name.clone(), state.rule.clone());
                wrong.push(Wrong { phase: phase.name, state, rule, ms, false_idle });
            }
        }
    }
    wrong
}

/// How long after `since` the session was in this state for good, as far as was looked.
pub(super) fn latency(states: &[State], name: &str, since: f64, until: f64) -> Option<f64> {
    let before = states.iter().rposition(|s| s.at <= until)?;
    let mut first = before;
    if states[before].name != name {
        return None;
    }
    while first > 0 && states[first - 1].name == name {
        first -= 1;
    }
    Some((states[first].at - since).max(0.0))
}

/// The value below which this share of them is.
pub(super) fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index of a short list")]
    let index = (share * last as f64).round() as usize;
    sorted.get(index).copied().unwrap_or(f64::NAN)
}
