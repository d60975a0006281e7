//! Turns and states of interactive programs: what was asked, what was answered, what the program is
//! doing.
//!
//! They are found by rules. [`RuleBook`] has the built-in ones and the user's, which are
//! `agents/NAME.toml` in the folder of the configuration and replace built-in rules of the same
//! name.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tapdeck_core::Time;
use tapdeck_host::processes::{self, Process};
use tapdeck_serve::live::{Follow, NestedProgram};
use tapdeck_tape::agents::{AgentError, Agents};

#[doc(inline)]
pub use tapdeck_core::turns::Choice;
pub use tapdeck_core::turns::{AgentState, Evidence, Judgement, Limits, OutputPoint, RuleError, Rules, Turn};
/// What [`Remote`](crate::Remote) tells of a session's turns, prompts and questions.
#[doc(inline)]
pub use tapdeck_proto::bus::{
    AnswerOutcome, Answered, Explained, Outcome, Pasted, Question, Turn as TurnTold,
};
#[doc(inline)]
pub use tapdeck_serve::client::{AskOutcome, Asked};
pub use tapdeck_serve::live::TurnOptions;

use crate::paths;

/// The longest rule file, and the most files.
const MAX: u64 = 1 << 20;
const FILES: usize = 200;

/// Rules that could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuleBookError {
    /// A file or the folder of rules could not be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A rule file makes no sense.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// No rules have this name.
    #[error("there are no rules for {name:?}: {}", known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// The prompt pattern that was given makes no sense.
    #[error(transparent)]
    Prompt(#[from] RuleError),
}

/// How the turns and states of a session are found.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Turns {
    /// By the rules for its command, or of the agent that is started from it.
    #[default]
    Auto,
    /// Not at all.
    Off,
    /// By the rules of this name.
    Agent(String),
    /// By these rules.
    Rules(Arc<Rules>),
}

/// Reads all rule files, built-in and the user's.
///
/// # Errors
/// When one cannot be read, or makes no sense.
pub fn load() -> Result<Agents, RuleBookError> {
    let mut own = Vec::new();
    if let Some(folder) = paths::config_folder().map(|f| f.join("agents")) {
        let failed = |source| RuleBookError::Read { path: folder.clone(), source };
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => Some(entries),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(failed(e)),
        };
        for entry in entries.into_iter().flatten().take(FILES) {
            let path = entry.map_err(failed)?.path();
            let (Some(stem), Some("toml")) =
                (path.file_stem().and_then(|s| s.to_str()), path.extension().and_then(|e| e.to_str()))
            else {
                continue;
            };
            let text = read(&path).map_err(|source| RuleBookError::Read { path: path.clone(), source })?;
            own.push((stem.to_owned(), text));
        }
    }
    own.sort();
    Ok(Agents::new(&own)?)
}

/// The user's own file about an agent, if there is one.
///
/// # Errors
/// When it cannot be read.
pub fn own_file(name: &str) -> Result<Option<String>, RuleBookError> {
    // A name that leads to another folder is no agent's.
    let Some(folder) = paths::config_folder().filter(|_| !name.contains('/')) else { return Ok(None) };
    let path = folder.join("agents").join(format!("{name}.toml"));
    match read(&path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(RuleBookError::Read { path, source }),
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// The rule files, read once, and the rules that were made of them.
#[derive(Debug)]
pub struct RuleBook {
    agents: Agents,
    made: Mutex<BTreeMap<String, Arc<Rules>>>,
    /// Journals that are not read: `AGENT`, `AGENT/JOURNAL`, or `*` for all.
    ignored: Vec<String>,
}

impl RuleBook {
    /// Reads the rule files.
    ///
    /// # Errors
    /// When one cannot be read, or makes no sense.
    pub fn load() -> Result<Arc<Self>, RuleBookError> {
        Self::load_ignoring(Vec::new())
    }

    /// Reads the rule files, and leaves out some of the agents' journals: all of an `AGENT`, one of
    /// them as `AGENT/JOURNAL`, or all of all agents as `*`.
    ///
    /// # Errors
    /// When a file cannot be read, or makes no sense.
    pub fn load_ignoring(journals: Vec<String>) -> Result<Arc<Self>, RuleBookError> {
        Ok(Arc::new(Self { agents: load()?, made: Mutex::default(), ignored: journals }))
    }

    fn ignores(&self, agent: &str, journal: &str) -> bool {
        let is_it = |one: &String| match one.split_once('/') {
            Some((of, name)) => of == agent && name == journal,
            None => one == "*" || one == agent,
        };
        self.ignored.iter().any(is_it)
    }

    /// The rules of this name.
    ///
    /// # Errors
    /// When there are none.
    pub fn rules(&self, name: &str) -> Result<Arc<Rules>, RuleBookError> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rules) = made.get(name) {
            return Ok(Arc::clone(rules));
        }
        let known = || self.agents.names().into_iter().map(str::to_owned).collect();
        let rules = self.agents.rules(name)?;
        let rules = rules.ok_or_else(|| RuleBookError::Unknown { name: name.to_owned(), known: known() })?;
        let rules = Arc::new(rules.without_journals(|journal| self.ignores(name, journal)));
        made.insert(name.to_owned(), Arc::clone(&rules));
        Ok(rules)
    }

    /// The rules for a command. Where those are for any program, an agent that is started from it
    /// gets its own.
    ///
    /// # Errors
    /// When the rules make no sense.
    pub fn choose(self: &Arc<Self>, argv: &[String]) -> Result<TurnOptions, RuleBookError> {
        let name = self.agents.for_command(argv);
        let follow: Option<Follow> = PLAIN.contains(&name).then(|| {
            let mut follower = Follower::new(Arc::clone(self));
            Box::new(move |leader, now| follower.look(leader, now)) as Follow
        });
        Ok(TurnOptions::new(self.rules(name)?).follow(follow))
    }

    /// The rules of an agent, or for a command, with this pattern as their prompt.
    ///
    /// # Errors
    /// When there are no such rules, or the pattern makes no sense.
    pub fn choose_as(
        self: &Arc<Self>,
        argv: &[String],
        agent: Option<&str>,
        prompt: Option<&str>,
    ) -> Result<TurnOptions, RuleBookError> {
        if agent.is_none() && prompt.is_none() {
            return self.choose(argv);
        }
        let rules = self.rules(agent.unwrap_or_else(|| self.agents.for_command(argv)))?;
        match prompt {
            Some(pattern) => Ok(TurnOptions::new(Arc::new(Rules::clone(&rules).with_prompt(pattern)?))),
            None => Ok(TurnOptions::new(rules)),
        }
    }
}

impl Turns {
    /// What finds the turns of a session that runs this command.
    pub(crate) fn options(&self, argv: &[String]) -> Result<Option<TurnOptions>, RuleBookError> {
        Ok(match self {
            Self::Off => None,
            Self::Auto => Some(RuleBook::load()?.choose(argv)?),
            Self::Agent(name) => Some(RuleBook::load()?.choose_as(argv, Some(name), None)?),
            Self::Rules(rules) => Some(TurnOptions::new(Arc::clone(rules))),
        })
    }
}

/// Rules of programs that others are started from.
pub const PLAIN: [&str; 2] = ["generic", "shell"];
/// While no agent is known to be there, the processes at the terminal are gone through this often
/// at most.
const WALK: Duration = Duration::from_millis(300);

/// Notices an agent that is started from a shell or by a script.
struct Follower {
    book: Arc<RuleBook>,
    /// The processes in the foreground when they were last gone through, and when that was.
    group: i32,
    walked: Time,
    /// The agent that is there, and its rules.
    agent: Option<(u32, String)>,
}

impl Follower {
    fn new(book: Arc<RuleBook>) -> Self {
        Self { book, group: 0, walked: Time::ZERO, agent: None }
    }

    fn look(&mut self, leader: u32, now: Time) -> Option<NestedProgram> {
        let group = Process::find(leader)?.foreground;
        let known = group == self.group
            && match &self.agent {
                Some((pid, _)) => Process::find(*pid).is_some_and(|p| p.group == group && !p.is_dead()),
                None => now < self.walked + WALK,
            };
        if known {
            return None;
        }
        (self.group, self.walked) = (group, now);
        let found = self.agent_in(group);
        let same = |a: &Option<(u32, String)>| a.as_ref().map(|(_, name)| name.clone());
        let changed = same(&found) != same(&self.agent);
        self.agent = found;
        if !changed {
            return None;
        }
        Some(match self.agent.as_ref().and_then(|(_, name)| self.book.rules(name).ok()) {
            Some(rules) => NestedProgram::Started(rules),
            None => NestedProgram::Ended,
        })
    }

    /// An agent among the processes of a group.
    fn agent_in(&self, group: i32) -> Option<(u32, String)> {
        let leader = u32::try_from(group).ok().filter(|g| *g > 0)?;
        processes::group(leader).into_iter().find_map(|pid| {
            let name = self.book.agents.for_command(&processes::command(pid));
            (!PLAIN.contains(&name)).then(|| (pid, name.to_owned()))
        })
    }
}
