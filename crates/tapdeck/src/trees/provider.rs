//! What keeps the files of a session: git, or a program of the user.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tapdeck_core::KeptTree;

use super::snapshot::Snapshots;
use super::{TreeError, tool};

/// The longest text of a program's answer that is recorded.
const MAX_TEXT: usize = 4096;

/// A program of the user that keeps the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCommand {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// How long it may take.
    pub limit: Duration,
}

/// What keeps the files of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Provider {
    /// The git repository around the program's folder.
    Git,
    /// A program of the user.
    Command(HookCommand),
}

/// Why the files are to be kept now.
#[derive(Debug, Clone)]
pub(super) struct Moment<'a> {
    pub(super) reason: &'static str,
    /// How many turns are over.
    pub(super) turn: u64,
    /// The snapshot that a program in the session takes itself.
    pub(super) snapshot: Option<(u64, &'a str)>,
}

impl Moment<'_> {
    fn label(&self) -> String {
        match (self.snapshot, self.reason) {
            (Some((_, label)), _) if !label.is_empty() => label.to_owned(),
            (None, "turn") => format!("turn {}", self.turn),
            (_, reason) => reason.to_owned(),
        }
    }
}

/// Files that were kept.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) tree: KeptTree,
    pub(super) label: String,
    /// Whether they differ from those that were kept before.
    pub(super) is_new: bool,
}

/// A provider at work for one session.
#[derive(Debug)]
pub(super) struct Worker {
    provider: Provider,
    session: String,
    folder: PathBuf,
    git: Snapshots,
    /// What the user's program kept.
    count: u64,
}

impl Worker {
    pub(super) fn new(provider: Provider, session: String, folder: PathBuf, without: Vec<PathBuf>) -> Self {
        let git = Snapshots::new(&session).without(without);
        Self { provider, session, folder, git, count: 0 }
    }

    /// What could not be kept as it is.
    pub(super) fn remarks(&self) -> &[String] {
        self.git.remarks()
    }

    /// Keeps the files as they are now; `None` where there is nothing to note.
    pub(super) fn take(&mut self, moment: &Moment<'_>) -> Result<Option<Taken>, TreeError> {
        match &self.provider {
            Provider::Git => self.take_by_git(moment),
            Provider::Command(hook) => {
                let answer = ask(hook, &self.session, self.count + 1, &self.folder, moment)?;
                let Some(id) = answer.id.as_text() else { return Ok(None) };
                self.count += 1;
                let tree = KeptTree {
                    number: self.count,
                    provider: "command".to_owned(),
                    id,
                    folder: self.folder.to_string_lossy().into_owned(),
                    turn: moment.turn,
                    reason: moment.reason,
                    ..KeptTree::default()
                };
                let label = answer.label.map_or_else(|| moment.label(), |label| cut(&label));
                Ok(Some(Taken { tree, label, is_new: true }))
            }
        }
    }

    fn take_by_git(&mut self, moment: &Moment<'_>) -> Result<Option<Taken>, TreeError> {
        let label = moment.label();
        let is_new = self.git.take(&self.folder, &format!("{label}, session {}", self.session))?.is_some();
        // A snapshot that was asked for has its files even if they did not change.
        let Some(kept) = self.git.last().filter(|_| is_new || moment.snapshot.is_some()) else {
            return Ok(None);
        };
        let text = |path: &Path| path.to_string_lossy().trim_end_matches('/').to_owned();
        let tree = KeptTree {
            number: kept.number,
            provider: "git".to_owned(),
            id: kept.commit.clone(),
            tree: Some(kept.tree.clone()),
            reference: Some(kept.reference.clone()),
            folder: text(&kept.repository.root),
            below: text(&kept.repository.below),
            turn: moment.turn,
            reason: moment.reason,
        };
        Ok(Some(Taken { tree, label, is_new }))
    }
}

/// What the user's program is told.
#[derive(Serialize)]
struct Asked<'a> {
    session: &'a str,
    n: u64,
    folder: std::borrow::Cow<'a, str>,
    reason: &'a str,
    turn: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<u64>,
    label: String,
}

/// What it answers.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    id: Id,
    label: Option<String>,
}

/// The name of what it kept.
#[derive(Deserialize, Default)]
#[serde(untagged)]
enum Id {
    Number(u64),
    Text(String),
    /// It kept nothing.
    #[default]
    Nothing,
}

impl Id {
    fn as_text(&self) -> Option<String> {
        match self {
            Id::Number(number) => Some(number.to_string()),
            Id::Text(text) => Some(cut(text)),
            Id::Nothing => None,
        }
    }
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}

/// Has the user's program keep the files.
fn ask(
    hook: &HookCommand,
    session: &str,
    n: u64,
    folder: &Path,
    moment: &Moment<'_>,
) -> Result<Answer, TreeError> {
    let failed = |why: String| TreeError::Hook { what: hook.argv.join(" "), why };
    let (program, args) = hook.argv.split_first().ok_or_else(|| failed("the command is empty".to_owned()))?;
    #[expect(clippy::disallowed_methods, reason = "the user's own program, beside the session")]
    let mut command = Command::new(program);
    command.args(args).current_dir(folder);
    let asked = Asked {
        session,
        n,
        folder: folder.to_string_lossy(),
        reason: moment.reason,
        turn: moment.turn,
        snapshot: moment.snapshot.map(|(id, _)| id),
        label: moment.label(),
    };
    let mut input = serde_json::to_vec(&asked).map_err(|e| failed(e.to_string()))?;
    input.push(b'\n');
    let ran = tool::run(command, input, hook.limit).map_err(|e| failed(e.to_string()))?;
    if !ran.success {
        let said = ran.err.lines().last().unwrap_or("it failed").to_owned();
        return Err(failed(said));
    }
    serde_json::from_slice(&ran.out).map_err(|e| failed(format!("its answer makes no sense: {e}")))
}
