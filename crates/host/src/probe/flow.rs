//! The flows as they stand in `agents/*.toml`, with their patterns made ready.

use std::collections::BTreeMap;

use regex::Regex;
use serde::Deserialize;
use tapdeck_tape::nearest;
use tapdeck_term::keys::KeyPress;

/// The agents that come with the product.
const BUILTIN: [(&str, &str); 3] = [
    ("claude", include_str!("../../agents/claude.toml")),
    ("codex", include_str!("../../agents/codex.toml")),
    ("gemini", include_str!("../../agents/gemini.toml")),
];

/// A flow that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FlowError {
    /// There is no such agent.
    #[error("{}", no_agent(.0))]
    NoAgent(String),
    /// The agent has no such probe.
    #[error("{agent} does not show its {probe} on the screen; probe {agent} can read: {list}")]
    NoProbe {
        /// The agent.
        agent: String,
        /// What was asked for.
        probe: String,
        /// What it has.
        list: String,
    },
    /// The rules of the agent cannot be used.
    #[error("the rules of {agent}: {why}")]
    Malformed {
        /// The agent.
        agent: String,
        /// What is wrong.
        why: String,
    },
}

/// An agent.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// What to start.
    pub program: String,
    /// Columns of its terminal.
    pub(crate) cols: u16,
    /// Rows.
    pub(crate) rows: u16,
    /// Variables that it is given beside the usual ones.
    #[serde(default)]
    pub env: Vec<String>,
    /// Arguments with which it tells by its exit code whether a user is signed in.
    #[serde(default)]
    pub(crate) auth: Vec<String>,
    /// Keys that make it end.
    #[serde(default)]
    pub(crate) quit: Vec<String>,
    /// What its screen says when there is nothing to read.
    #[serde(default)]
    pub(crate) sign: Vec<Sign>,
    /// What may stand in the way.
    #[serde(default)]
    pub(crate) dialog: Vec<Dialog>,
    /// Its probes by name.
    probe: BTreeMap<String, RawProbe>,
    /// Its turns and states, which others read from the same file.
    #[serde(default, rename = "turns")]
    _turns: serde::de::IgnoredAny,
}

/// A text that tells why there is nothing to read.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sign {
    /// What it means.
    pub(crate) status: super::Status,
    /// One of these in a row …
    pub(crate) any: Vec<Pattern>,
    /// … without one of these.
    #[serde(default)]
    pub(crate) but: Vec<Pattern>,
}

/// A dialog and the way past it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Dialog {
    /// What readers of the file call it.
    #[expect(dead_code, reason = "for readers of the file")]
    pub(crate) name: String,
    /// A row that shows it.
    pub(crate) when: Pattern,
    /// The row of its menu that must be marked before the keys are sent.
    pub(crate) choose: Option<Pattern>,
    /// Keys that lead past it.
    pub(crate) keys: Vec<String>,
}

/// A regular expression, compiled as it is read.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Pattern(Regex);

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Regex::new(&text).map(Self).map_err(|e| format!("{text:?} is no pattern: {e}"))
    }
}

impl std::ops::Deref for Pattern {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        &self.0
    }
}

/// A probe as it stands in the file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawProbe {
    same_as: Option<String>,
    args: Vec<String>,
    on_exit: bool,
    ready: Option<Pattern>,
    send: Vec<String>,
    done: Vec<Pattern>,
    then: Vec<String>,
    then_choose: Option<Pattern>,
    then_done: Vec<Pattern>,
    needs: Vec<String>,
    late: Vec<Pattern>,
    more: Vec<More>,
    fresh_minutes: u64,
    reach: usize,
    used: Option<Pattern>,
    left: Option<Pattern>,
    resets: Option<Pattern>,
    plan: Option<Pattern>,
    window: Vec<Window>,
    models: Vec<Pattern>,
    reasoning: Option<Pattern>,
    reasoning_rows: Option<Pattern>,
}

/// A panel that shows only a part.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct More {
    /// A row that tells so.
    pub(crate) when: Pattern,
    /// Keys that bring more.
    pub(crate) keys: Vec<String>,
    /// How often at most.
    pub(crate) times: usize,
}

/// A window of a quota, as a panel shows it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Window {
    /// A short name that does not change.
    pub(crate) id: String,
    /// As the agent calls it.
    pub(crate) name: String,
    /// The row that it begins with.
    pub(crate) header: Pattern,
    /// Its length.
    pub(crate) minutes: Option<u64>,
}

/// A probe: one thing to read off an agent's screen.
#[derive(Debug, Clone)]
pub struct Probe {
    /// Its name: `quota`, `models`, `reasoning` or `status`.
    pub name: String,
    /// Arguments of the program.
    pub(crate) args: Vec<String>,
    /// The program prints and ends: no keys.
    pub(crate) on_exit: bool,
    /// A row that shows that it waits for a command.
    pub(crate) ready: Option<Pattern>,
    /// Steps: keys by their names, everything else is typed.
    pub(crate) steps: Vec<Step>,
    /// What must have been read.
    pub(crate) needs: Vec<String>,
    /// Rows that explain a panel that never becomes complete: the agent does not tell.
    pub(crate) late: Vec<Pattern>,
    /// What shows that there is more than is shown, and the keys that bring it.
    pub(crate) more: Vec<More>,
    /// For how long the answer may be believed.
    pub fresh_minutes: u64,
    /// Rows below a header in which its figures stand.
    pub(crate) reach: usize,
    /// Share used.
    pub(crate) used: Option<Pattern>,
    /// Share left.
    pub(crate) left: Option<Pattern>,
    /// When it starts anew.
    pub(crate) resets: Option<Pattern>,
    /// Kind of account.
    pub(crate) plan: Option<Pattern>,
    /// Windows of a quota.
    pub(crate) windows: Vec<Window>,
    /// Names of models.
    pub(crate) models: Vec<Pattern>,
    /// Levels of effort, a list in one row.
    pub(crate) reasoning: Option<Pattern>,
    /// Levels of effort, a row each.
    pub(crate) reasoning_rows: Option<Pattern>,
}

/// Something to send, and what shows that it has had its effect.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// The row of the menu that must be marked before the keys are sent.
    pub(crate) choose: Option<Pattern>,
    /// Keys and texts.
    pub(crate) keys: Vec<String>,
    /// Rows that must all be there, written after the keys.
    pub(crate) done: Vec<Pattern>,
}

fn no_agent(name: &str) -> String {
    let known = agent_names();
    let (last, first) = known.split_last().unwrap_or((&"", &[]));
    match nearest::name(name, known.iter().copied()) {
        Some(meant) => format!("cannot probe {name:?}; did you mean {meant}?"),
        None => format!(
            "cannot probe {name:?}: only {} and {last} show a quota or models in a panel that Tapdeck can \
             read; a rule file with [probe.quota] adds another agent",
            first.join(", ")
        ),
    }
}

/// The names of all agents.
pub(crate) fn agent_names() -> Vec<&'static str> {
    BUILTIN.iter().map(|(name, _)| *name).collect()
}

/// An agent's flows: those of the product, or of a user's file that takes their place. A file
/// without flows is about something else and takes no place.
///
/// # Errors
/// When there is no such agent, or its rules are wrong.
pub fn agent(name: &str, own: Option<&str>) -> Result<Agent, FlowError> {
    #[derive(Deserialize)]
    struct Flows {
        probe: Option<serde::de::IgnoredAny>,
    }
    let malformed = |e: toml::de::Error| FlowError::Malformed { agent: name.to_owned(), why: e.to_string() };
    let own = match own {
        Some(text) => toml::from_str::<Flows>(text).map_err(malformed)?.probe.map(|_| text),
        None => None,
    };
    let found = || BUILTIN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
    let text = own.or_else(found).ok_or_else(|| FlowError::NoAgent(name.to_owned()))?;
    toml::from_str(text).map_err(malformed)
}

impl Agent {
    /// One of its probes.
    ///
    /// # Errors
    /// When it has no such probe, or its rules are wrong.
    pub fn probe(&self, name: &str) -> Result<Probe, FlowError> {
        let missing = || FlowError::NoProbe {
            agent: self.name.clone(),
            probe: name.to_owned(),
            list: self.probe.keys().map(String::as_str).collect::<Vec<_>>().join(", "),
        };
        let mut raw = self.probe.get(name).ok_or_else(missing)?;
        if let Some(other) = &raw.same_as {
            raw = self.probe.get(other).ok_or_else(missing)?;
        }
        let raw = raw.clone();
        let malformed = |why: &str| FlowError::Malformed {
            agent: self.name.clone(),
            why: format!("probe {name}: {why}"),
        };
        if !raw.on_exit && (raw.ready.is_none() || raw.send.is_empty() || raw.done.is_empty()) {
            return Err(malformed("it needs ready, send and done"));
        }
        let mut steps = vec![Step { choose: None, keys: raw.send, done: raw.done }];
        if !raw.then.is_empty() {
            steps.push(Step { choose: raw.then_choose, keys: raw.then, done: raw.then_done });
        }
        Ok(Probe {
            name: name.to_owned(),
            args: raw.args,
            on_exit: raw.on_exit,
            ready: raw.ready,
            steps: if raw.on_exit { Vec::new() } else { steps },
            needs: raw.needs,
            late: raw.late,
            more: raw.more,
            fresh_minutes: raw.fresh_minutes,
            reach: raw.reach,
            used: raw.used,
            left: raw.left,
            resets: raw.resets,
            plan: raw.plan,
            windows: raw.window,
            models: raw.models,
            reasoning: raw.reasoning,
            reasoning_rows: raw.reasoning_rows,
        })
    }
}

/// Whether a word of a step is the name of a key.
pub(super) fn key_of(word: &str) -> Option<KeyPress> {
    // A single character is text.
    if word.chars().count() < 2 { None } else { word.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flow_is_whole() {
        for name in agent_names() {
            let agent = agent(name, None).expect(name);
            for probe in ["quota", "models", "reasoning", "status"] {
                // Gemini CLI has no levels of effort to tell of.
                if (name, probe) == ("gemini", "reasoning") {
                    assert!(agent.probe(probe).is_err());
                    continue;
                }
                let probe = agent.probe(probe).expect(probe);
                assert!(probe.fresh_minutes > 0 && !probe.needs.is_empty(), "{name} {}", probe.name);
            }
            assert!(agent.probe("weather").is_err());
        }
        assert!(agent("nobody", None).is_err());
    }

    #[test]
    fn the_flows_of_a_user_take_the_place_of_ours() {
        let other = "name = 'x'\nprogram = 'y'\ncols = 80\nrows = 24\n[probe.quota]\non_exit = true\n";
        assert_eq!(agent("claude", Some(other)).expect("read").program, "y");
        assert_eq!(agent("mine", Some(other)).expect("read").program, "y");
        assert_eq!(agent("claude", Some("[turns]\n")).expect("ours").program, "claude");
        assert!(agent("claude", Some("[probe.quota]\nsned = []\n")).is_err());
    }
}
