//! The rules by which turns and states are found: the product's own, and the user's in `tapdeck/agents/NAME.toml` beside
//! the configuration, which take the place of those of the same name.

use std::io::Read;
use std::sync::Arc;

use tapdeck_core::turns::{Limits, Rules};
use tapdeck_serve::live::{TURN_RING, TurnOptions};
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

/// Rules that are read once and shared by many sessions.
#[cfg(feature = "net")]
pub(crate) struct Shared {
    agents: Agents,
    made: std::sync::Mutex<std::collections::BTreeMap<String, Arc<Rules>>>,
}

#[cfg(feature = "net")]
impl Shared {
    /// Reads the rule files.
    pub(crate) fn load() -> Result<Self, String> {
        Ok(Self { agents: load()?, made: std::sync::Mutex::default() })
    }

    /// The rules for a command.
    pub(crate) fn choose(&self, argv: &[String]) -> Option<TurnOptions> {
        let name = self.agents.for_command(argv);
        let mut made = self.made.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let rules = match made.get(name) {
            Some(rules) => Arc::clone(rules),
            None => {
                let rules = Arc::new(self.agents.rules(name).ok()??);
                made.insert(name.to_owned(), Arc::clone(&rules));
                rules
            }
        };
        Some(TurnOptions { rules, limits: Limits::default(), ring: TURN_RING })
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
    let agents = load()?;
    let name = agent.unwrap_or_else(|| agents.for_command(argv));
    let rules: Rules = agents
        .rules(name)
        .map_err(|e| e.to_string())?
        .ok_or_else(|| format!("there are no rules for {name:?}: {}", agents.names().join(", ")))?;
    let rules = match prompt {
        Some(pattern) => rules.with_prompt(pattern).map_err(|e| e.to_string())?,
        None => rules,
    };
    Ok(TurnOptions { rules: Arc::new(rules), limits: Limits::default(), ring: TURN_RING })
}
