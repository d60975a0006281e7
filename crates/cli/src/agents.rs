//! The rules by which turns and states are found: the product's own, and the user's in `tapdeck/agents/NAME.toml` beside
//! the configuration, which take the place of those of the same name.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use tapdeck_core::turns::{Limits, Rules};
use tapdeck_host::processes::{self, Process};
use tapdeck_serve::live::{Follow, Guest, TURN_RING, TurnOptions};
use tapdeck_tape::agents::Agents;

use crate::config;

/// No sane rule file is longer, and nobody has more of them.
const MAX: u64 = 1 << 20;
const FILES: usize = 200;

/// All rule files.
pub(crate) fn load() -> Result<Agents, String> {
    let mut own = Vec::new();
    if let Some(folder) = config::folder().map(|f| f.join("agents")) {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => Some(entries),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
            Err(e) => return Err(format!("{}: {e}", folder.display())),
        };
        for entry in entries.into_iter().flatten().take(FILES) {
            let path = entry.map_err(|e| format!("{}: {e}", folder.display()))?.path();
            let (Some(stem), Some("toml")) =
                (path.file_stem().and_then(|s| s.to_str()), path.extension().and_then(|e| e.to_str()))
            else {
                continue;
            };
            let text = read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            own.push((stem.to_owned(), text));
        }
    }
    own.sort();
    Agents::new(&own).map_err(|e| e.to_string())
}

/// The rule files, read once, and the rules that were made of them.
pub(crate) struct RuleBook {
    agents: Agents,
    made: Mutex<BTreeMap<String, Arc<Rules>>>,
}

impl RuleBook {
    /// Reads the rule files.
    pub(crate) fn load() -> Result<Arc<Self>, String> {
        Ok(Arc::new(Self { agents: load()?, made: Mutex::default() }))
    }

    fn rules(&self, name: &str) -> Result<Arc<Rules>, String> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rules) = made.get(name) {
            return Ok(Arc::clone(rules));
        }
        let rules = self.agents.rules(name).map_err(|e| e.to_string())?;
        let rules = rules
            .ok_or_else(|| format!("there are no rules for {name:?}: {}", self.agents.names().join(", ")))?;
        let rules = Arc::new(rules);
        made.insert(name.to_owned(), Arc::clone(&rules));
        Ok(rules)
    }

    /// The rules for a command; what is started from it is noticed.
    pub(crate) fn choose(self: &Arc<Self>, argv: &[String]) -> Result<TurnOptions, String> {
        let name = self.agents.for_command(argv);
        let follow: Option<Follow> = PLAIN.contains(&name).then(|| {
            let mut follower = Follower::new(Arc::clone(self));
            Box::new(move |leader, now_ns| follower.look(leader, now_ns)) as Follow
        });
        Ok(TurnOptions { follow, ..options(self.rules(name)?) })
    }
}

fn options(rules: Arc<Rules>) -> TurnOptions {
    TurnOptions { rules, limits: Limits::default(), ring: TURN_RING, follow: None }
}

/// Rules of programs that others are started from.
pub(crate) const PLAIN: [&str; 2] = ["generic", "shell"];
/// While nobody else is known to be there, the processes at the terminal are gone through this often at most.
const WALK_NS: u64 = 300_000_000;

/// Notices an agent that is started from a shell or by a script.
struct Follower {
    book: Arc<RuleBook>,
    /// The processes in the foreground when they were last gone through, and when that was.
    group: i32,
    walked_ns: u64,
    /// The agent that is there, and its rules.
    guest: Option<(u32, String)>,
}

impl Follower {
    fn new(book: Arc<RuleBook>) -> Self {
        Self { book, group: 0, walked_ns: 0, guest: None }
    }

    fn look(&mut self, leader: u32, now_ns: u64) -> Option<Guest> {
        let group = Process::find(leader)?.foreground;
        let known = group == self.group
            && match &self.guest {
                Some((pid, _)) => Process::find(*pid).is_some_and(|p| p.group == group && !p.is_dead()),
                None => now_ns < self.walked_ns + WALK_NS,
            };
        if known {
            return None;
        }
        (self.group, self.walked_ns) = (group, now_ns);
        let found = self.agent_in(group);
        let same = |a: &Option<(u32, String)>| a.as_ref().map(|(_, name)| name.clone());
        let changed = same(&found) != same(&self.guest);
        self.guest = found;
        if !changed {
            return None;
        }
        Some(match self.guest.as_ref().and_then(|(_, name)| self.book.rules(name).ok()) {
            Some(rules) => Guest::Comes(rules),
            None => Guest::Goes,
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

/// The user's own file about an agent, if there is one.
pub(crate) fn own(name: &str) -> Result<Option<String>, String> {
    // A name that leads elsewhere is nobody's.
    let Some(folder) = config::folder().filter(|_| !name.contains('/')) else { return Ok(None) };
    let path = folder.join("agents").join(format!("{name}.toml"));
    match read(&path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(format!("{}: {e}", path.display())),
    }
}

fn read(path: &std::path::Path) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// The rules for a command, or those that were asked for.
pub(crate) fn choose(
    argv: &[String],
    agent: Option<&str>,
    prompt: Option<&str>,
) -> Result<TurnOptions, String> {
    let book = RuleBook::load()?;
    if agent.is_none() && prompt.is_none() {
        return book.choose(argv);
    }
    // What was asked for is kept to.
    let rules = book.rules(agent.unwrap_or_else(|| book.agents.for_command(argv)))?;
    match prompt {
        Some(pattern) => {
            let rules = Rules::clone(&rules).with_prompt(pattern).map_err(|e| e.to_string())?;
            Ok(options(Arc::new(rules)))
        }
        None => Ok(options(rules)),
    }
}
