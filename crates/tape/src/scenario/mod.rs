//! The scenario file: which cassette, how it is made, what must hold of it.
//!
//! A scenario is YAML for people to write. The types of the file live here (`raw.rs`); what comes
//! out are the claims of [`tapdeck_core::check`] and the steps that drive a live program. Whatever
//! is not understood is an error that names its line: a misspelt key must not become a check that
//! never runs.

mod assertion;
mod bind;
mod condition;
mod de;
mod draft;
mod expand;
mod pins;
mod pointer;
mod raw;
mod step;
#[cfg(test)]
mod tests;
mod timeline;
mod tree;
mod words;

use std::time::Duration;

use tapdeck_core::WallTime;
use tapdeck_core::check::{Claim, Condition, ParseError, length};
use tapdeck_core::scrub::{Rule, Rules};
use tapdeck_term::Size;

use crate::cassette::{ReplayMode, parse_time, parse_window};

pub use bind::bind;
pub use draft::{Draft, draft};
pub use pins::{PinChange, Pins};
pub use pointer::{Click, Drag, Scroll, Target};
pub use step::{Action, Play, PlayItem, Step, Until, step_mark};
pub use timeline::{record, service_event, timeline};
pub use tree::Line;

/// How a scenario file is called: its name ends so.
pub const SUFFIX: &str = ".scenario.yaml";

/// The longest scenario file that is read.
pub const MAX_FILE: u64 = 4 << 20;

/// Gives the text of a file beside a scenario.
pub(crate) type Stored<'a> = &'a dyn Fn(&str) -> std::io::Result<String>;

/// A scenario that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {what}")]
#[non_exhaustive]
pub struct ScenarioError {
    /// Where.
    pub line: Line,
    /// What is wrong there.
    pub what: String,
}

/// A scenario.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name.
    pub name: Option<String>,
    /// What it is about.
    pub about: Option<String>,
    /// The cassette that it is bound to.
    pub cassette: CassetteRef,
    /// The terminal's size at the start.
    pub size: Size,
    /// How the cassette is replayed.
    pub replay: ReplayMode,
    /// What the program finds in its environment; `None` for what every scenario gets.
    pub env: Option<EnvPolicy>,
    /// What the program takes for the time, if not the time itself.
    pub clock: Option<FakeClock>,
    /// The project's root, from the scenario's folder; where it is not given, that folder.
    pub root: Option<String>,
    /// Commands of `sh` in the program's folder, before it starts.
    pub setup: Vec<Script>,
    /// Commands of `sh` there, when it has ended, however it did.
    pub teardown: Vec<Script>,
    /// Where the session comes from when it is made anew.
    pub source: Option<Source>,
    /// What must not be in the cassette, beside what never is.
    pub scrub: Vec<Rule>,
    /// How long each wait may take whose step does not say.
    pub within: Duration,
    /// What is done to the program.
    pub steps: Vec<Step>,
    /// The type that the last service event must have, with its line.
    pub last_event: Option<(Line, String)>,
    /// What must hold.
    pub assertions: Vec<Assertion>,
    /// The combination of the matrix that this is, if there is a matrix.
    pub variant: Option<String>,
    /// The scenario as it was stated, with what it includes and the values of its parameters.
    stated: serde_json::Value,
}

/// A time of day for a program that shows the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FakeClock {
    /// The time at the program's start.
    pub start: WallTime,
    /// Whether it passes, rather than standing still.
    pub passes: bool,
}

fn read_clock(raw: &raw::At<raw::Clock>) -> Result<FakeClock, ScenarioError> {
    let (text, passes) = match &raw.value {
        raw::Clock::Frozen(text) => (text, false),
        raw::Clock::Long(long) => (&long.start, true),
    };
    let start = text.split_once(' ').and_then(|(date, time)| parse_time(&format!("{date}T{time}Z")));
    let wrong = || raw.error(format!("{text:?} is no time: write one such as 2026-01-31 12:00:00"));
    Ok(FakeClock { start: start.ok_or_else(wrong)?, passes })
}

/// A command of `sh`, with where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// The line.
    pub line: Line,
    /// The command.
    pub command: String,
}

/// The cassette of a scenario.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CassetteRef {
    /// Its place beside the scenario; the scenario's name with `.cassette` when left out.
    pub path: Option<String>,
    /// The id that it must have.
    pub id: Option<String>,
    /// The digest of `output.raw` that it must have.
    pub sha256: Option<String>,
    /// The binding that it must have: a digest over everything in it.
    pub binding: Option<String>,
    /// What it and the scenario had when they were bound.
    pub pins: Option<Pins>,
}

/// The program's environment: nothing but this.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EnvPolicy {
    /// Variables that are passed on.
    pub allow: Vec<String>,
    /// Variables that are set.
    pub set: Vec<(String, String)>,
}

/// Where a session comes from.
#[derive(Debug, Clone)]
pub enum Source {
    /// A program that is run.
    Program(Program),
    /// What happens, word for word.
    Play(Play),
}

/// A program to run, in an empty folder of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The program and its arguments.
    pub run: Vec<String>,
    /// The place where it runs, as a person writes it, with its line; this machine when left out.
    pub on: Option<(Line, String)>,
    /// Programs that must be installed for it on this machine; where that is not said, it is the
    /// program itself if it runs here.
    pub needs: Option<Vec<String>>,
    /// Files that it finds in its folder.
    pub files: Vec<(String, String)>,
    /// Files from beside the scenario that it finds there too.
    pub copy: Vec<String>,
    /// Its time limit.
    pub timeout: Duration,
    /// What its run is evidence for.
    pub evidence: Box<Evidence>,
}

/// What a run is evidence for, and what must hold before it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Evidence {
    /// A command that must succeed before the run, in its environment.
    pub check: Option<String>,
    /// The account that the program uses; runs with one account come one after the other.
    pub account: Option<String>,
    /// How long to wait for an account that is in use.
    pub account_wait: Option<Duration>,
    /// The kind of account.
    pub account_class: Option<String>,
    /// A command that prints the program's version.
    pub version_from: Option<String>,
    /// How long a cassette of the run may be believed.
    pub freshness: Option<String>,
    /// What the run demonstrates.
    pub capability: Option<String>,
    /// The permission mode that the program runs with.
    pub permission_mode: Option<String>,
    /// A file in the program's folder from which service events come, one JSON value a line.
    pub events: Option<String>,
}

/// A claim, with where it stands.
#[derive(Debug, Clone)]
pub struct Assertion {
    /// The line.
    pub line: Line,
    /// Its name.
    pub name: Option<String>,
    /// What must hold.
    pub claim: Claim,
}

/// What a program's whole run may take when its scenario does not say.
const TIMEOUT: Duration = Duration::from_secs(20);

/// What a wait may take when its scenario does not say: a wait in vain must not use up all the time
/// that the program has.
const WITHIN: Duration = Duration::from_secs(10);

impl Scenario {
    /// Reads a scenario. A stored text that cannot be read is a check that fails.
    ///
    /// # Errors
    /// With the line of whatever was not understood.
    pub fn parse(text: &str, stored: Stored<'_>) -> Result<Self, ScenarioError> {
        Self::parse_variant(text, None, stored)
    }

    /// The names of the combinations of its matrix, in order; none without a matrix.
    ///
    /// # Errors
    /// With the line of whatever was not understood.
    pub fn variants(text: &str, stored: Stored<'_>) -> Result<Vec<String>, ScenarioError> {
        Ok(expand::Whole::read(text, stored)?.variants.into_iter().map(|variant| variant.name).collect())
    }

    /// The file name of its cassette without a path of its own, behind the scenario's name.
    pub fn cassette_suffix(&self) -> String {
        let variant = self.variant.as_deref().map(expand::file_name);
        variant.map_or_else(String::new, |name| format!(".{name}")) + ".cassette"
    }

    /// Reads a scenario with one combination of its matrix; the first without a name.
    ///
    /// # Errors
    /// With the line of whatever was not understood.
    pub fn parse_variant(
        text: &str,
        variant: Option<&str>,
        stored: Stored<'_>,
    ) -> Result<Self, ScenarioError> {
        let whole = expand::Whole::read(text, stored)?;
        let variant = variant.map(str::to_owned).or_else(|| Some(whole.variants.first()?.name.clone()));
        let tree = whole.choose(variant.as_deref())?;
        let raw: raw::File = raw::typed(&tree)?;
        let common = condition::Common::new(&raw.normalise, &raw.masks)?;
        let source = match (raw.program, raw.play) {
            (Some(_), Some(play)) => {
                return Err(ScenarioError {
                    line: play.line,
                    what: "a scenario has a program or a play, not both".into(),
                });
            }
            (Some(program), None) => Some(Source::Program(read_program(program)?)),
            (None, Some(play)) => Some(Source::Play(step::read_play(play.value)?)),
            (None, None) => None,
        };
        if !matches!(source, Some(Source::Program(_)))
            && let Some(step) = raw.steps.first()
        {
            return Err(ScenarioError {
                line: step.line.clone(),
                what: "there are steps but no program to take them".into(),
            });
        }
        let steps =
            raw.steps.into_iter().map(|s| step::read(s, &common, stored)).collect::<Result<_, _>>()?;
        let assertions: Vec<Assertion> = raw
            .assertions
            .into_iter()
            .map(|a| assertion::read(a, &common, stored))
            .collect::<Result<_, _>>()?;
        let size = raw.size.map(|s| condition::size(&s.value).map_err(|e| s.error(e))).transpose()?;
        let replay = raw.replay.map(|r| r.value.parse().map_err(|e: ParseError| r.error(e))).transpose()?;
        let env = raw.env.map(read_env).transpose()?;
        let cassette = raw.cassette.unwrap_or_default();
        let path = condition::read_at(&cassette.path, |path| {
            let outside = path.starts_with('/') || path.split('/').any(|part| part == "..");
            let wrong = || format!("the cassette {path:?} must lie beside its scenario");
            if outside { Err(wrong()) } else { Ok(path.to_owned()) }
        })?;
        let (id, sha256, binding, pins) = match &variant {
            None => (cassette.id, cassette.sha256, cassette.binding, cassette.pins),
            Some(name) => {
                let bound = cassette.variants.get(name).cloned().unwrap_or_default();
                (bound.id, bound.sha256, bound.binding, bound.pins)
            }
        };
        Ok(Self {
            name: raw.scenario,
            about: raw.about,
            cassette: CassetteRef { path, id, sha256, binding, pins: pins.map(Pins) },
            size: size.unwrap_or_default(),
            replay: replay.unwrap_or(ReplayMode::Collapsed),
            env,
            root: condition::read_at(&raw.root, |root| {
                let wrong =
                    || format!("the root {root:?} must be a path from the scenario's folder, such as ../..");
                if root.starts_with('/') { Err(wrong()) } else { Ok(root.to_owned()) }
            })?,
            clock: raw.clock.as_ref().map(read_clock).transpose()?,
            setup: scripts(raw.setup),
            teardown: scripts(raw.teardown),
            source,
            scrub: raw.scrub.into_iter().map(scrub_rule).collect::<Result<_, _>>()?,
            within: condition::read_at(&raw.within, length)?.unwrap_or(WITHIN),
            steps,
            last_event: raw.require.and_then(|at| Some((at.line, at.value.service?))),
            assertions,
            variant,
            stated: tree.to_value(),
        })
    }
}

/// A claim, written as an assertion of a scenario is: `never: {contains: panic}`.
///
/// # Errors
/// With the line of whatever was not understood.
pub fn claim(text: &str, stored: Stored<'_>) -> Result<Claim, ScenarioError> {
    assertion::read(raw::read(text)?, &condition::Common::default(), stored).map(|a| a.claim)
}

/// A condition, written as in a scenario: `{contains: ready, cursor: {row: 1}}`.
///
/// # Errors
/// With the line of whatever was not understood.
pub fn condition(text: &str, stored: Stored<'_>) -> Result<Condition, ScenarioError> {
    let raw: raw::At<raw::Condition> = raw::read(text)?;
    condition::read(&raw.value, &raw.line, &condition::Common::default(), stored)
}

/// A rule, tried before it is believed.
fn scrub_rule(raw: raw::At<raw::Scrub>) -> Result<Rule, ScenarioError> {
    let line = raw.line;
    let raw::Scrub { name, pattern, keep } = raw.value;
    let rule = Rule { name, pack: "scenario".into(), pattern, keep, ..Rule::default() };
    let tried = Rules::new(vec![rule.clone()], Vec::new());
    tried.map(|_| rule).map_err(|e| ScenarioError { line, what: e.to_string() })
}

/// The environment. No variable can have a name that is no name.
fn read_env(raw: raw::Env) -> Result<EnvPolicy, ScenarioError> {
    let named = |name: &str, at: &raw::At<String>| {
        let fine = !name.is_empty() && !name.contains(['=', '\0']);
        let wrong = || at.error(format!("{name:?} is no name of a variable"));
        if fine { Ok(()) } else { Err(wrong()) }
    };
    raw.allow.iter().try_for_each(|at| named(&at.value, at))?;
    raw.set.iter().try_for_each(|(name, at)| named(name, at))?;
    Ok(EnvPolicy {
        allow: raw.allow.into_iter().map(|at| at.value).collect(),
        set: raw.set.into_iter().map(|(name, at)| (name, at.value)).collect(),
    })
}

fn scripts(raw: Vec<raw::At<String>>) -> Vec<Script> {
    raw.into_iter().map(|at| Script { line: at.line, command: at.value }).collect()
}

fn read_program(raw: raw::Program) -> Result<Program, ScenarioError> {
    if raw.run.value.first().is_none_or(String::is_empty) {
        return Err(raw.run.error("run wants a program and its arguments, as a list"));
    }
    let beside = raw.copy.iter().chain(&raw.events).map(|at| (&at.value, at));
    for (name, at) in raw.files.iter().chain(beside) {
        if name.is_empty()
            || name.starts_with('/')
            || name.split('/').any(|part| part == ".." || part.is_empty())
        {
            return Err(at.error(format!("the file {name:?} must lie in the program's folder")));
        }
    }
    let timeout = condition::read_at(&raw.timeout, length)?.unwrap_or(TIMEOUT);
    let freshness = condition::read_at(&raw.freshness, |text| {
        let wrong = || format!("{text:?} is no length of time such as 15m, 24h or 7d");
        parse_window(text).map(|_| text.to_owned()).ok_or_else(wrong)
    })?;
    let evidence = Evidence {
        check: raw.check,
        account: raw.account,
        account_wait: condition::read_at(&raw.account_wait, length)?,
        account_class: raw.account_class,
        version_from: raw.version_from,
        freshness,
        capability: raw.capability,
        permission_mode: raw.permission_mode,
        events: raw.events.map(|at| at.value),
    };
    Ok(Program {
        run: raw.run.value,
        on: raw.on.map(|at| (at.line, at.value)),
        needs: (!raw.needs.is_empty()).then_some(raw.needs),
        files: raw.files.into_iter().map(|(name, at)| (name, at.value)).collect(),
        copy: raw.copy.into_iter().map(|at| at.value).collect(),
        timeout,
        evidence: Box::new(evidence),
    })
}
