//! What to mask in a recording: packs of rules, rules in files, and the values of secrets.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use tapdeck_core::scrub::{Rule, Scrubber, Secret};
use tapdeck_term::Size;

pub use tapdeck_core::scrub::{Report, Rules};

/// The longest file of rules or values.
const MAX_FILE: u64 = 1 << 20;

/// Rules that could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScrubError {
    /// A file could not be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file makes no sense.
    #[error("{}: {why}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// No rule has the name of one to leave out.
    #[error("there is no rule {0:?} to leave out")]
    NoRule(String),
    /// A variable whose value is to be masked is not set, or is not text.
    #[error("the variable {0} is not set here, or is no text: its value cannot be looked for")]
    NoVariable(String),
    /// A pack or a rule makes no sense.
    #[error("{0}")]
    Rule(String),
}

/// The user whose session it is, as far as that is known: their names and folders are masked.
#[derive(Debug, Clone, Default)]
pub struct Owner {
    /// The folder that the session ran in.
    pub cwd: Option<String>,
    /// The home folder.
    pub home: Option<String>,
    /// The user's name, if it is not that of the home folder.
    pub user: Option<String>,
}

impl Owner {
    /// The user of this process, in this folder.
    pub fn of_process(cwd: Option<String>) -> Self {
        let home = tapdeck_host::home_folder().and_then(|home| home.into_os_string().into_string().ok());
        let user = ["USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok());
        Self { cwd, home, user }
    }
}

/// Which rules to use.
///
/// ```
/// use tapdeck::scrub::{Owner, Selection};
///
/// let selection = Selection::default(); // the packs that are on by default
/// let rules = selection.secret_variables(["PATH"]).load(&Owner::of_process(None))?;
/// # let _ = rules;
/// # Ok::<(), tapdeck::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Selection {
    packs: Vec<String>,
    files: Vec<PathBuf>,
    without: Vec<String>,
    secret_variables: Vec<String>,
    secret_files: Vec<PathBuf>,
    secrets: Vec<(String, String)>,
    rules: Vec<Rule>,
}

impl Selection {
    /// Adds rules that stand in no file.
    #[cfg(feature = "testing")]
    #[must_use]
    pub(crate) fn rules(mut self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.rules.extend(rules);
        self
    }

    /// Sets the packs by name: `none` alone for none. Without names, those that are on by default.
    #[must_use]
    pub fn packs(mut self, packs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.packs = packs.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the files with further rules.
    #[must_use]
    pub fn files(mut self, files: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        self.files = files.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the rules to leave out, by name.
    #[must_use]
    pub fn without(mut self, without: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.without = without.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the environment variables whose values are masked.
    #[must_use]
    pub fn secret_variables(mut self, secret_variables: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.secret_variables = secret_variables.into_iter().map(Into::into).collect();
        self
    }

    /// Sets values that are masked, each with a name for reports. Those that are shorter than four
    /// characters are left out.
    #[must_use]
    pub fn secrets(mut self, secrets: impl IntoIterator<Item = (String, String)>) -> Self {
        self.secrets = secrets.into_iter().collect();
        self
    }

    /// Sets the files of which each line is masked.
    #[must_use]
    pub fn secret_files(mut self, secret_files: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        self.secret_files = secret_files.into_iter().map(Into::into).collect();
        self
    }
}

/// The packs in a list such as `secrets,paths`; the default ones where it names none.
pub fn packs(list: &[String]) -> Vec<String> {
    let given: Vec<String> = list
        .iter()
        .flat_map(|l| l.split(','))
        .map(|p| p.trim().to_owned())
        .filter(|p| !p.is_empty())
        .collect();
    if given.is_empty() { Rules::default_packs() } else { given }
}

impl Selection {
    /// Loads the rules.
    ///
    /// # Errors
    /// When a file cannot be read, or a rule makes no sense.
    pub fn load(&self, owner: &Owner) -> Result<Arc<Rules>, ScrubError> {
        let packs = packs(&self.packs);
        let none = packs.len() == 1 && packs[0] == "none";
        let packs: &[String] = if none { &[] } else { &packs };
        let mut rules = Rules::of_packs(packs).map_err(|e| ScrubError::Rule(e.to_string()))?;
        let has = |pack: &str| packs.iter().any(|p| p == pack || p == "all");
        let home = owner.home.as_deref().map(|h| h.trim_end_matches('/'));
        if has("paths") {
            rules.extend(owner.cwd.as_deref().and_then(|c| Rules::folder("working-folder", c)));
            rules.extend(home.and_then(|h| Rules::folder("own-home-folder", h)));
        }
        if has("people") {
            let home_of_cwd = owner.cwd.as_deref().and_then(|c| c.strip_prefix("/home/"));
            let user = home_of_cwd.and_then(|c| c.split('/').next()).or_else(|| home?.rsplit('/').next());
            rules.extend(user.and_then(Rules::user));
            let login = owner.user.as_deref().filter(|login| Some(*login) != user);
            rules.extend(login.and_then(Rules::user).map(|rule| Rule { name: "login-name".into(), ..rule }));
        }
        rules.extend_from_slice(&self.rules);
        for file in &self.files {
            rules.extend(read_rules(file)?);
        }
        for name in &self.without {
            let before = rules.len();
            rules.retain(|r| r.name != *name);
            if rules.len() == before {
                return Err(ScrubError::NoRule(name.clone()));
            }
        }
        let long = |(_, value): &&(String, String)| value.chars().count() >= 4;
        let given = self.secrets.iter().filter(long).cloned();
        let mut secrets: Vec<Secret> = given.map(|(name, value)| Secret { name, value }).collect();
        for name in &self.secret_variables {
            let value = std::env::var(name).map_err(|_| ScrubError::NoVariable(name.clone()))?;
            secrets.push(Secret { name: format!("env:{name}"), value });
        }
        for file in &self.secret_files {
            let text = read(file)?;
            let lines = text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty());
            let base = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            secrets.extend(
                lines.map(|(n, l)| Secret { name: format!("{base}:{}", n + 1), value: l.trim().into() }),
            );
        }
        Rules::new(rules, secrets).map(Arc::new).map_err(|e| ScrubError::Rule(e.to_string()))
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

fn read(path: &Path) -> Result<String, ScrubError> {
    let fail = |source| ScrubError::Read { path: path.to_owned(), source };
    let mut text = String::new();
    // Of a pipe or a device, no length tells how much comes.
    let file = std::fs::File::open(path).map_err(fail)?;
    file.take(MAX_FILE + 1).read_to_string(&mut text).map_err(fail)?;
    if text.len() as u64 > MAX_FILE {
        return Err(ScrubError::File { path: path.to_owned(), why: "longer than 1 MiB".into() });
    }
    Ok(text)
}

/// Reads a file of rules and holds each to its own examples.
fn read_rules(path: &Path) -> Result<Vec<Rule>, ScrubError> {
    let text = read(path)?;
    let at = |why: String| ScrubError::File { path: path.to_owned(), why };
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
