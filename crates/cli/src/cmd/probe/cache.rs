//! What earlier probes found, until it expires: `$XDG_STATE_HOME/tapdeck/probes`. An answer is kept
//! under everything that decides whose it is (program, home, the variables that name an account),
//! so that one account's is never taken for another's; of those only a digest is kept.

use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tapdeck_core::WallTime;
use tapdeck_host::cassette::rfc3339;
use tapdeck_host::probe::{Agent, Facts, Probe, Status};
use tapdeck_host::state_folder;
use tapdeck_tape::cassette::{Discovery, Quota, digest_hex};

use tapdeck::OutFile;

/// The longest answer, in bytes.
const MAX: u64 = 1 << 20;
/// For how long an agent that does not tell is not asked again, at most: its network may be back.
const UNAVAILABLE: Duration = Duration::from_mins(15);
/// A clock that was set back a little does not make an answer come from the future.
const SLACK: Duration = Duration::from_secs(60);

/// An answer as it is kept.
#[derive(Serialize, Deserialize)]
pub(super) struct CachedAnswer {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) quota: Option<Quota>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) discovery: Option<Discovery>,
    /// What a later probe found instead of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<CachedFailure>,
}

/// A probe that found no answer, as it is kept.
#[derive(Serialize, Deserialize)]
pub(super) struct CachedFailure {
    pub(super) status: Status,
    pub(super) detail: String,
    pub(super) captured_at: String,
    /// Whether the agent was started.
    #[serde(default)]
    pub(super) started: bool,
}

impl CachedFailure {
    /// Whether it is the agent's own answer, which is believed for a while as facts are. Signing
    /// in or installing the program would help at once, and an error may pass.
    pub(super) fn is_answer(&self, now: WallTime) -> bool {
        self.status == Status::Unavailable && self.started && is_fresh(&self.captured_at, UNAVAILABLE, now)
    }
}

impl CachedAnswer {
    /// When it was found.
    pub(super) fn captured_at(&self) -> &str {
        let quota = self.quota.as_ref().map(|q| q.captured_at.as_str());
        quota.or_else(|| self.discovery.as_ref().map(|d| d.captured_at.as_str())).unwrap_or_default()
    }

    /// What was found.
    pub(super) fn facts(&self) -> Facts {
        let mut facts = Facts::default();
        if let Some(quota) = &self.quota {
            facts.windows.clone_from(&quota.windows);
            facts.plan.clone_from(&quota.account_class);
        }
        if let Some(discovery) = &self.discovery {
            facts.models.clone_from(&discovery.models);
            facts.reasoning.clone_from(&discovery.reasoning_levels);
        }
        facts
    }
}

/// Whether an answer of that time has not expired.
pub(super) fn is_fresh(captured_at: &str, window: Duration, now: WallTime) -> bool {
    // Times have one format, so texts compare as times.
    let (oldest, newest) = (rfc3339(now - window), rfc3339(now + SLACK));
    captured_at.len() == oldest.len() && *oldest <= *captured_at && *captured_at <= *newest
}

/// The file for the answer of a probe.
pub(super) fn place(agent: &Agent, flow: &Probe, program: &std::ffi::OsStr) -> PathBuf {
    let mut whose = program.as_bytes().to_vec();
    for name in ["HOME"].into_iter().chain(agent.env.iter().map(String::as_str)) {
        let value = std::env::var_os(name);
        whose.extend([0, u8::from(value.is_some())]);
        whose.extend_from_slice(value.unwrap_or_default().as_bytes());
    }
    let whose = &digest_hex(&whose)[..16];
    state_folder().join("probes").join(format!("{}-{}-{whose}.json", agent.name, flow.name))
}

/// Loads a kept answer. One that cannot be read counts as missing.
pub(super) fn load(place: &std::path::Path) -> Option<CachedAnswer> {
    let mut text = String::new();
    std::fs::File::open(place).ok()?.take(MAX).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// Keeps an answer.
pub(super) fn store(place: &std::path::Path, kept: &CachedAnswer) -> io::Result<()> {
    if let Some(folder) = place.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut file = OutFile::create(place, true)?;
    file.write_all(&serde_json::to_vec(kept).map_err(io::Error::other)?)?;
    file.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_grow_old() {
        let now = WallTime::from_secs(1_709_251_199);
        let quarter = Duration::from_secs(15 * 60);
        let at = |minutes: u64| rfc3339(now - Duration::from_secs(60 * minutes));
        assert!(is_fresh(&at(0), quarter, now) && is_fresh(&at(15), quarter, now));
        assert!(!is_fresh(&at(16), quarter, now));
        assert!(is_fresh(&rfc3339(now + Duration::from_secs(30)), quarter, now));
        for odd in
            [&rfc3339(now + Duration::from_secs(300)), "", "2024-02-29", "yesterday", "9999-99-99T99:99:99Z"]
        {
            assert!(!is_fresh(odd, quarter, now), "{odd}");
        }
    }
}
