//! `squad.toml`, read and checked. Every mistake has its line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

use crate::turns::{RuleBook, RuleBookError};

/// The longest file, in bytes.
const MAX: u64 = 1 << 20;
/// The most agents of a squad: each is a program with a terminal of its own.
const MAX_AGENTS: usize = 100;
/// The longest name of a squad or an agent: both are parts of file names.
const MAX_NAME: usize = 40;

/// A squad file that could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SquadError {
    /// The file could not be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file makes no sense.
    #[error("{}:{}: {}", path.display(), mistake.line, mistake.message)]
    Wrong {
        /// Which.
        path: PathBuf,
        /// Where and why.
        mistake: Mistake,
    },
}

/// What is wrong in a squad file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub message: String,
    /// A name that does not exist, and those that do.
    pub unknown: Option<(String, Vec<String>)>,
}

/// A squad.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Squad {
    /// The name; [`Squad::read`] takes that of the folder if the file has none.
    #[serde(default)]
    pub name: String,
    /// The folder for recordings, relative to the file; without one, the usual folder.
    pub recordings: Option<PathBuf>,
    /// The agents by name.
    #[serde(default)]
    pub agents: BTreeMap<String, Agent>,
    /// Which answers go where.
    #[serde(default, rename = "relay")]
    pub relays: Vec<Relay>,
    /// The vote over the agents' answers.
    pub vote: Option<Vote>,
    /// The file.
    #[serde(skip)]
    pub path: PathBuf,
}

/// An agent of a squad.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Agent {
    /// The program and its arguments.
    pub command: Spanned<Vec<String>>,
    /// The command that takes up an earlier conversation, when the agent is started again.
    pub resume: Option<Vec<String>>,
    /// The working folder, relative to the file.
    #[serde(default)]
    pub folder: PathBuf,
    /// Whether it works in a git worktree of its own.
    #[serde(default)]
    pub worktree: WorktreeOf,
    /// The rules for its turns and states; without them, those for the command.
    pub rules: Option<Spanned<String>>,
    /// A pattern for its prompt.
    pub prompt_pattern: Option<Spanned<String>>,
    /// Environment variables.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The first prompt.
    pub prompt: Option<String>,
    /// Agents that come first: `NAME` or `NAME:CONDITION`.
    #[serde(default)]
    pub after: Vec<Spanned<String>>,
    /// When it is started again.
    #[serde(default)]
    pub restart: Restart,
    /// How often it is started again before it is given up.
    #[serde(default = "five")]
    pub restart_limit: u32,
    /// Whether it is recorded.
    #[serde(default = "yes")]
    pub record: bool,
    /// The size of its terminal, `COLSxROWS`.
    pub size: Option<Spanned<String>>,
}

fn five() -> u32 {
    5
}

fn yes() -> bool {
    true
}

/// Where an agent works.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected true, false or the name of a branch")]
pub enum WorktreeOf {
    /// In a worktree with a branch of its own, or in its folder.
    Own(bool),
    /// In a worktree of this branch, which is made if it does not exist.
    Branch(String),
}

impl Default for WorktreeOf {
    fn default() -> Self {
        Self::Own(false)
    }
}

/// When an agent is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// Never.
    #[default]
    No,
    /// When it failed: a signal, or an exit code other than 0.
    OnFailure,
    /// However it ended.
    Always,
}

/// How far an agent must be before another is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// Its program runs.
    Started,
    /// It was ready for a prompt.
    Idle,
    /// It has answered its first prompt.
    Answered,
    /// Its program has ended successfully.
    Done,
}

impl Condition {
    const NAMES: [(&str, Self); 4] = [
        ("started", Self::Started),
        ("idle", Self::Idle),
        ("answered", Self::Answered),
        ("done", Self::Done),
    ];
}

/// Passes each answer of one agent on to another.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Relay {
    /// The agent whose answers are passed on.
    pub from: Spanned<String>,
    /// The agent that gets them.
    pub to: Spanned<String>,
    /// Text in front of each answer.
    #[serde(default)]
    pub before: String,
    /// An answer with this text is the last: it is not passed on, and the relay back ends, too.
    pub until: Option<String>,
    /// The number of answers to pass on, at most.
    #[serde(default = "five")]
    pub rounds: u32,
    /// Whether an answer of which a part is missing is passed on.
    #[serde(default)]
    pub allow_truncated: bool,
}

/// Gives the answers and changes of several agents to a judge.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Vote {
    /// The agents that are judged, each by its answer to the first prompt.
    pub agents: Vec<Spanned<String>>,
    /// The agent that judges.
    pub judge: Spanned<String>,
    /// Text in front of the answers.
    #[serde(default)]
    pub before: String,
}

impl Agent {
    /// Whether there are such rules, and the pattern for the prompt makes sense.
    fn check_rules(&self) -> Result<(), Wrong> {
        let Some(span) = self.rules.iter().chain(&self.prompt_pattern).map(Spanned::span).next() else {
            return Ok(());
        };
        let text = |spanned: &Option<Spanned<String>>| spanned.as_ref().map(|s| s.get_ref().clone());
        let (rules, prompt) = (text(&self.rules), text(&self.prompt_pattern));
        let chosen = RuleBook::load().and_then(|book| {
            book.choose_as(self.command.get_ref(), rules.as_deref(), prompt.as_deref()).map(drop)
        });
        chosen.map_err(|e| {
            let unknown = match &e {
                RuleBookError::Unknown { name, known } => Some((name.clone(), known.clone())),
                _ => None,
            };
            (Some(span), e.to_string(), unknown)
        })
    }

    /// The agents that come first, each with the condition that it must meet.
    pub fn waits_for(&self) -> impl Iterator<Item = (&str, Condition)> {
        self.after.iter().filter_map(|after| split_condition(after.get_ref()).ok())
    }
}

fn split_condition(text: &str) -> Result<(&str, Condition), &str> {
    let (name, condition) = text.split_once(':').unwrap_or((text, "started"));
    let known = Condition::NAMES.iter().find(|(name, _)| *name == condition);
    known.map(|(_, condition)| (name, *condition)).ok_or(condition)
}

impl Squad {
    /// Reads a squad file.
    ///
    /// # Errors
    /// When it cannot be read, or makes no sense.
    pub fn read(path: &Path) -> Result<Self, SquadError> {
        let failed = |source| SquadError::Read { path: path.to_owned(), source };
        let mut text = String::new();
        let read = File::open(path).and_then(|file| file.take(MAX + 1).read_to_string(&mut text));
        if read.map_err(failed)? as u64 > MAX {
            return Err(failed(io::Error::other("a squad file is not longer than 1 MiB")));
        }
        let path = std::path::absolute(path).map_err(failed)?;
        let wrong = |mistake| SquadError::Wrong { path: path.clone(), mistake };
        let mut squad = Self::parse(&text).map_err(wrong)?;
        if squad.name.is_empty() {
            let folder = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
            squad.name = folder.unwrap_or_default().to_owned();
            check_name(&squad.name).map_err(|why| {
                let message = format!("{why}: give the squad a name with name = \"…\"");
                wrong(Mistake { line: 1, message, unknown: None })
            })?;
        }
        squad.path = path;
        Ok(squad)
    }

    /// Reads the text of a squad file.
    ///
    /// # Errors
    /// With the first mistake.
    pub fn parse(text: &str) -> Result<Self, Mistake> {
        let line_at = |at: usize| text.bytes().take(at).filter(|b| *b == b'\n').count() + 1;
        let squad: Self = toml::from_str(text).map_err(|e| {
            let line = line_at(e.span().map_or(0, |span| span.start));
            of_toml(line, e.message())
        })?;
        squad.check().map_err(|(span, message, unknown)| {
            let line = span.map_or(1, |span| line_at(span.start));
            Mistake { line, message, unknown }
        })?;
        Ok(squad)
    }

    /// The folder that paths in the file are relative to.
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    fn check(&self) -> Result<(), Wrong> {
        let plain = |message: String| Err((None, message, None));
        if !self.name.is_empty()
            && let Err(why) = check_name(&self.name)
        {
            return plain(why);
        }
        if self.agents.is_empty() || self.agents.len() > MAX_AGENTS {
            return plain(format!("a squad has between 1 and {MAX_AGENTS} agents: write [agents.NAME]"));
        }
        for (name, agent) in &self.agents {
            let span = || Some(agent.command.span());
            check_name(name).map_err(|why| (span(), why, None))?;
            if agent.command.get_ref().first().is_none_or(String::is_empty) {
                return Err((span(), format!("command of {name} is empty"), None));
            }
            agent.check_rules()?;
            for after in &agent.after {
                let (first, _) = split_condition(after.get_ref()).map_err(|condition| {
                    let known = Condition::NAMES.map(|(name, _)| name.to_owned()).to_vec();
                    let message = format!("unknown condition {condition:?}; use {}", known.join(", "));
                    (Some(after.span()), message, Some((condition.to_owned(), known)))
                })?;
                self.known(first, after.span())?;
            }
            if let Some(size) = &agent.size
                && parse_size(size.get_ref()).is_none()
            {
                return Err((Some(size.span()), "size is COLSxROWS, such as \"120x40\"".to_owned(), None));
            }
        }
        for relay in &self.relays {
            self.known(relay.from.get_ref(), relay.from.span())?;
            self.known(relay.to.get_ref(), relay.to.span())?;
            if relay.from.get_ref() == relay.to.get_ref() {
                let message = "an agent cannot be relayed to itself".to_owned();
                return Err((Some(relay.to.span()), message, None));
            }
        }
        for name in self.vote.iter().flat_map(|vote| vote.agents.iter().chain([&vote.judge])) {
            self.known(name.get_ref(), name.span())?;
        }
        for agent in self.vote.iter().flat_map(|vote| &vote.agents) {
            if self.agents.get(agent.get_ref()).is_some_and(|agent| agent.prompt.is_none()) {
                let message = format!("{} has no prompt, so there is no answer to judge", agent.get_ref());
                return Err((Some(agent.span()), message, None));
            }
        }
        self.check_order()
    }

    fn known(&self, name: &str, span: Range<usize>) -> Result<(), Wrong> {
        if self.agents.contains_key(name) {
            return Ok(());
        }
        let known: Vec<String> = self.agents.keys().cloned().collect();
        let message = format!("there is no agent {name:?}; agents: {}", known.join(", "));
        Err((Some(span), message, Some((name.to_owned(), known))))
    }

    /// Fails if agents wait for each other.
    fn check_order(&self) -> Result<(), Wrong> {
        let mut ordered: Vec<&str> = Vec::new();
        while ordered.len() < self.agents.len() {
            let free = |agent: &Agent| agent.waits_for().all(|(first, _)| ordered.contains(&first));
            let next: Vec<&str> = self
                .agents
                .iter()
                .filter(|(name, agent)| !ordered.contains(&name.as_str()) && free(agent))
                .map(|(name, _)| name.as_str())
                .collect();
            if next.is_empty() {
                let rest = self.agents.iter().find(|(name, _)| !ordered.contains(&name.as_str()));
                let span = rest.and_then(|(_, agent)| Some(agent.after.first()?.span()));
                let name = rest.map_or("", |(name, _)| name);
                return Err((span, format!("{name} waits for an agent that waits for {name}"), None));
            }
            ordered.extend(next);
        }
        Ok(())
    }
}

/// Where, what, and a name that does not exist with those that do.
type Wrong = (Option<Range<usize>>, String, Option<(String, Vec<String>)>);

/// Columns and rows of `COLSxROWS`.
fn parse_size(text: &str) -> Option<(u16, u16)> {
    let (cols, rows) = text.split_once('x')?;
    Some((cols.parse().ok().filter(|n| *n > 0)?, rows.parse().ok().filter(|n| *n > 0)?))
}

/// Names are parts of file names, branches and session names.
fn check_name(name: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let starts = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    // git allows neither in a branch.
    let git = !name.contains("..") && !name.ends_with('.') && !name.ends_with(".lock");
    if starts && git && name.len() <= MAX_NAME && name.chars().all(allowed) {
        return Ok(());
    }
    Err(format!("{name:?} is no name: up to {MAX_NAME} letters, digits, - _ and ., a letter or digit first"))
}

/// An error of the parser, in the words of the file.
fn of_toml(line: usize, message: &str) -> Mistake {
    let message = message.trim_end();
    let quoted = |text: &str| text.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<String>>();
    if let Some(rest) = message.strip_prefix("unknown field ") {
        let mut names = quoted(rest).into_iter();
        let wrong = names.next().unwrap_or_default();
        let known: Vec<String> = names.collect();
        let message = format!("unknown key {wrong:?}; keys: {}", known.join(", "));
        return Mistake { line, message, unknown: Some((wrong, known)) };
    }
    if let Some(rest) = message.strip_prefix("unknown variant ") {
        let mut names = quoted(rest).into_iter();
        let wrong = names.next().unwrap_or_default();
        let known: Vec<String> = names.collect();
        let message = format!("unknown value {wrong:?}; use {}", known.join(", "));
        return Mistake { line, message, unknown: Some((wrong, known)) };
    }
    Mistake { line, message: message.replace("missing field", "missing key"), unknown: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_squad_is_read() {
        let squad = Squad::parse(
            "name = 'pair'\n[agents.writer]\ncommand = ['claude']\nworktree = true\nprompt = 'go'\n\
             restart = 'on-failure'\nenv = { A = 'b' }\n[agents.reviewer]\ncommand = ['codex', '-x']\n\
             worktree = 'review'\nafter = ['writer:idle']\nsize = '120x40'\n\
             [[relay]]\nfrom = 'writer'\nto = 'reviewer'\nuntil = 'APPROVED'\nrounds = 3\n",
        )
        .expect("a squad");
        let reviewer = &squad.agents["reviewer"];
        assert_eq!(reviewer.waits_for().collect::<Vec<_>>(), [("writer", Condition::Idle)]);
        assert_eq!(reviewer.worktree, WorktreeOf::Branch("review".into()));
        let writer = &squad.agents["writer"];
        assert_eq!((writer.restart, writer.restart_limit, writer.record), (Restart::OnFailure, 5, true));
        assert_eq!((squad.relays[0].rounds, squad.relays[0].until.as_deref()), (3, Some("APPROVED")));
    }

    #[test]
    fn every_mistake_has_its_line_and_the_words_of_the_file() {
        let agent = "[agents.a]\ncommand = ['x']\n";
        for (text, line, message) in [
            ("[agents.a]\ncomand = ['x']\n", 2, "unknown key \"comand\"; keys: command, resume"),
            ("name = 'x'\n", 1, "between 1 and 100 agents"),
            ("[agents.a]\nprompt = 'x'\n", 1, "missing key `command`"),
            ("[agents.a]\ncommand = []\n", 2, "command of a is empty"),
            ("[agents.a]\ncommand = 'x'\n", 2, "invalid type: string \"x\", expected a sequence"),
            ("[agents.'a/b']\ncommand = ['x']\n", 2, "\"a/b\" is no name"),
            (&format!("{agent}after = ['b']\n"), 3, "there is no agent \"b\"; agents: a"),
            (&format!("{agent}after = ['a:soon']\n"), 3, "unknown condition \"soon\"; use started, idle"),
            (&format!("{agent}after = ['a']\n"), 3, "a waits for an agent that waits for a"),
            (&format!("{agent}restart = 'yes'\n"), 3, "unknown value \"yes\"; use no, on-failure, always"),
            (&format!("{agent}worktree = 3\n"), 3, "expected true, false or the name of a branch"),
            (&format!("{agent}size = '0x4'\n"), 3, "size is COLSxROWS"),
            (&format!("{agent}[[relay]]\nfrom = 'a'\nto = 'a'\n"), 5, "cannot be relayed to itself"),
            (&format!("{agent}[vote]\nagents = ['a']\njudge = 'a'\n"), 4, "a has no prompt"),
            ("[agents.a\n", 1, ""),
        ] {
            let mistake = Squad::parse(text).expect_err(text);
            assert_eq!(mistake.line, line, "{text}: {mistake:?}");
            assert!(mistake.message.contains(message), "{text}: {mistake:?}");
        }
    }
}
