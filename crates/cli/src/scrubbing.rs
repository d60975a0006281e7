//! What to scrub, as the command line says it: packs, rules in files, values of variables.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde::Deserialize;
use tapdeck_core::scrub::{Rule, Rules, Scrubber, Secret};
use tapdeck_term::Size;

use crate::ending::code;

/// The longest file of rules or values.
const MAX_FILE: u64 = 1 << 20;

/// Rules beside the packs.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct ScrubArgs {
    /// More rules, from a TOML file
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Vec<PathBuf>,
    /// Leave out a rule of this name
    #[arg(long, value_name = "NAME")]
    pub(crate) no_rule: Vec<String>,
    /// Mask the value of this environment variable wherever it is seen
    #[arg(long, value_name = "NAME")]
    pub(crate) secret_env: Vec<String>,
    /// Mask each line of this file wherever it is seen
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Vec<PathBuf>,
}

/// Whose session it is, as far as that is known.
#[derive(Debug, Clone, Default)]
pub(crate) struct Whose {
    /// The folder that it ran in.
    pub(crate) cwd: Option<String>,
    /// The home folder.
    pub(crate) home: Option<String>,
}

impl Whose {
    /// Of a session of this process's user.
    pub(crate) fn ours(cwd: Option<String>) -> Self {
        Self {
            cwd,
            home: tapdeck_host::home_folder().and_then(|home| home.into_os_string().into_string().ok()),
        }
    }
}

/// A message, and the exit code that goes with it.
pub(crate) type Refused = (String, i32);

fn usage(message: impl Into<String>) -> Refused {
    (message.into(), code::USAGE)
}

/// The packs in a list such as `secrets,paths`.
pub(crate) fn packs(list: &[String]) -> Vec<String> {
    let given: Vec<String> = list
        .iter()
        .flat_map(|l| l.split(','))
        .map(|p| p.trim().to_owned())
        .filter(|p| !p.is_empty())
        .collect();
    if given.is_empty() { Rules::default_packs() } else { given }
}

impl ScrubArgs {
    /// The rules to use, ready.
    pub(crate) fn rules(&self, packs: &[String], whose: &Whose) -> Result<Arc<Rules>, Refused> {
        let none = packs.len() == 1 && packs[0] == "none";
        let packs = if none { &[] } else { packs };
        let mut rules = Rules::of_packs(packs).map_err(|e| usage(e.to_string()))?;
        let has = |pack: &str| packs.iter().any(|p| p == pack || p == "all");
        let home = whose.home.as_deref().map(|h| h.trim_end_matches('/'));
        if has("paths") {
            rules.extend(whose.cwd.as_deref().and_then(|c| Rules::folder("working-folder", c)));
            rules.extend(home.and_then(|h| Rules::folder("own-home-folder", h)));
        }
        if has("people") {
            let home_of_cwd = whose.cwd.as_deref().and_then(|c| c.strip_prefix("/home/"));
            let user = home_of_cwd.and_then(|c| c.split('/').next()).or_else(|| home?.rsplit('/').next());
            rules.extend(user.and_then(Rules::user));
        }
        for file in &self.rules {
            rules.extend(read_rules(file)?);
        }
        for name in &self.no_rule {
            let before = rules.len();
            rules.retain(|r| r.name != *name);
            if rules.len() == before {
                return Err(usage(format!(
                    "there is no rule {name:?} to leave out: see tapdeck scrub --list-rules"
                )));
            }
        }
        let mut secrets = Vec::new();
        for name in &self.secret_env {
            let value = std::env::var(name).map_err(|_| {
                usage(format!(
                    "the variable {name} is not set here, or is no text: its value cannot be looked for"
                ))
            })?;
            secrets.push(Secret { name: format!("env:{name}"), value });
        }
        for file in &self.secret_file {
            let text = read(file)?;
            let lines = text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty());
            let base = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            secrets.extend(
                lines.map(|(n, l)| Secret { name: format!("{base}:{}", n + 1), value: l.trim().into() }),
            );
        }
        Rules::new(rules, secrets).map(Arc::new).map_err(|e| usage(e.to_string()))
    }
}

/// A file of rules.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pack {
    #[serde(default)]
    rule: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    pattern: String,
    #[serde(default)]
    keep: String,
    #[serde(default)]
    mixed: bool,
    #[serde(default)]
    digit: bool,
    #[serde(default)]
    named: bool,
    #[serde(default)]
    secret: bool,
    /// Texts that it changes, with what they become.
    #[serde(default)]
    hits: Vec<(String, String)>,
    /// Texts that it leaves alone.
    #[serde(default)]
    misses: Vec<String>,
}

fn read(path: &Path) -> Result<String, Refused> {
    let fail = |e: std::io::Error| {
        let code = if e.kind() == std::io::ErrorKind::NotFound { code::NOT_FOUND } else { code::IO };
        (format!("{}: {e}", path.display()), code)
    };
    if std::fs::metadata(path).map_err(fail)?.len() > MAX_FILE {
        return Err(usage(format!("{}: longer than 1 MiB", path.display())));
    }
    std::fs::read_to_string(path).map_err(fail)
}

/// Reads a file of rules and holds each to its own examples.
fn read_rules(path: &Path) -> Result<Vec<Rule>, Refused> {
    let text = read(path)?;
    let at = |what: String| usage(format!("{}: {what}", path.display()));
    let pack: Pack = toml::from_str(&text).map_err(|e| at(e.to_string().trim_end().replace('\n', " ")))?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut rules = Vec::new();
    for entry in pack.rule {
        let rule = Rule {
            name: entry.name,
            pack: name.clone(),
            pattern: entry.pattern,
            keep: entry.keep,
            mixed: entry.mixed,
            digit: entry.digit,
            named: entry.named,
            secret: entry.secret,
        };
        let alone = Arc::new(Rules::new(vec![rule.clone()], Vec::new()).map_err(|e| at(e.to_string()))?);
        let misses = entry.misses.into_iter().map(|m| (m.clone(), m));
        for (text, expected) in entry.hits.into_iter().chain(misses) {
            let made = Scrubber::new(alone.clone(), Size::default()).text(&text);
            if made != expected {
                return Err(at(format!(
                    "rule {:?} makes {made:?} of its example {text:?}, which says {expected:?}",
                    rule.name
                )));
            }
        }
        rules.push(rule);
    }
    Ok(rules)
}
