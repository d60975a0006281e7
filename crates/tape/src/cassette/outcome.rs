//! The files of a cassette that are one object each: how the run ended, what probes found, what was
//! redacted.

use serde::{Deserialize, Serialize};

use super::signal_name;
use crate::{Extra, JsonValue};

/// `final.json`: how the run ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Final {
    /// Its number, the last.
    pub seq: u64,
    /// When.
    pub t_ms: u64,
    /// How the program ended.
    pub exit: Exit,
    /// How long it ran, exactly.
    pub duration_ms: u64,
    /// Facts about the run: `ended` (`program`, `cancelled`, `timed_out`), `leaked_processes` …
    #[serde(default)]
    pub metadata: Extra,
    /// Tokens used, where the program told.
    #[serde(default)]
    pub usage: Option<JsonValue>,
    /// What it cost, where the program told.
    #[serde(default)]
    pub cost: Option<JsonValue>,
    /// What model or provider it really used.
    #[serde(default)]
    pub routing_actual: Option<JsonValue>,
    /// Where the program keeps its own log, scrubbed.
    #[serde(default)]
    pub session_log_path: Option<String>,
    /// The text of the last screen, rows without trailing blanks.
    #[serde(default)]
    pub final_text: Option<String>,
    /// Keys that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Final {
    /// Fills in what the last service event tells of usage, cost, routing and log, where nothing
    /// else did.
    pub(crate) fn fill_from(&mut self, event: Option<&JsonValue>) {
        let find = |names: &[&str]| names.iter().find_map(|name| event?.get(name)).filter(|v| !v.0.is_null());
        self.usage = self.usage.take().or_else(|| find(&["usage", "token_usage"]));
        self.cost = self.cost.take().or_else(|| find(&["cost", "cost_usd", "total_cost_usd"]));
        self.routing_actual = self.routing_actual.take().or_else(|| find(&["routing_actual", "routing"]));
        let path = || find(&["session_log_path", "log_path"])?.as_str().map(str::to_owned);
        self.session_log_path = self.session_log_path.take().or_else(path);
    }
}

/// How the program ended; both are `null` when that is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Its exit code.
    #[serde(default)]
    pub code: Option<i32>,
    /// Name of the signal that ended it, such as `SIGTERM`.
    #[serde(default)]
    pub signal: Option<String>,
}

impl From<tapdeck_core::Exit> for Exit {
    fn from(exit: tapdeck_core::Exit) -> Self {
        match exit {
            tapdeck_core::Exit::Code(code) => Self { code: Some(code), signal: None },
            tapdeck_core::Exit::Signal(number) => Self { code: None, signal: Some(signal_name(number)) },
        }
    }
}

/// `quota.json`: what a quota or status probe found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Quota {
    /// Where it was read.
    pub source: String,
    /// `ok`, `unauthenticated`, `unavailable` or `error`.
    pub status: String,
    /// When, RFC 3339.
    pub captured_at: String,
    /// For how long it may be believed, e.g. `15m`.
    #[serde(default)]
    pub freshness_window: Option<String>,
    /// Kind of account.
    #[serde(default)]
    pub account_class: Option<String>,
    /// The windows that are counted.
    pub windows: Vec<QuotaWindow>,
    /// Keys that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A window of a quota.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct QuotaWindow {
    /// As the program calls it.
    pub name: String,
    /// A short name that does not change.
    pub limit_id: String,
    /// Its length.
    #[serde(default)]
    pub window_minutes: Option<u64>,
    /// How much is used.
    #[serde(default)]
    pub used_percent: Option<f64>,
    /// When it starts anew, as the program says it.
    #[serde(default)]
    pub resets_at: Option<String>,
    /// `ok` or `blocked`.
    pub state: String,
}

/// `discovery.json`: what a model or reasoning probe found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Discovery {
    /// Models that the program offers.
    pub models: Vec<String>,
    /// Levels of effort that it offers.
    pub reasoning_levels: Vec<String>,
    /// When, RFC 3339.
    pub captured_at: String,
    /// For how long it may be believed, e.g. `24h`.
    #[serde(default)]
    pub freshness_window: Option<String>,
    /// Keys that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// `scrub-report.json`: what was redacted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ScrubReport {
    /// `scrubbed`, or `not_scrubbed` when no rule was applied.
    pub status: String,
    /// Every rule that was applied, with how often it hit.
    #[serde(default)]
    pub rules: Vec<RuleHits>,
    /// Names of the variables that the program was not given.
    #[serde(default)]
    pub environment_removed: Vec<String>,
    /// What was left as it is, on purpose.
    #[serde(default)]
    pub kept: Vec<String>,
    /// Keys that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How often a rule hit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleHits {
    /// The rule.
    pub rule: String,
    /// Hits in all files.
    pub hits: u64,
}

impl ScrubReport {
    /// The honest report of a run to which no rule was applied.
    pub fn not_scrubbed() -> Self {
        Self { status: "not_scrubbed".into(), ..Self::default() }
    }
}
