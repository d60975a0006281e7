//! What is known of a squad between two runs of its supervisor: `squads/NAME.json` in the state
//! folder.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tapdeck_host::{OutFile, disk, registry};

/// The folder of squads in the state folder.
pub const FOLDER: &str = "squads";
/// The longest file, in bytes.
const MAX: u64 = 16 << 20;
/// The most earlier recordings of an agent that are remembered.
const MAX_EARLIER: usize = 1000;

/// A state that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct StateError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub why: String,
}

/// The state of a squad.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// The version of this file.
    pub version: u32,
    /// The squad's name.
    pub name: String,
    /// The squad file.
    pub file: PathBuf,
    /// The process of the last supervisor.
    pub supervisor: Option<u32>,
    /// What is known of each agent.
    pub agents: BTreeMap<String, SavedAgent>,
    /// How far each relay is, in the order of the file.
    pub relays: Vec<SavedRelay>,
    /// How far the vote is.
    pub vote: SavedVote,
}

/// What is known of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SavedAgent {
    /// The id of its session, running or last.
    pub session: Option<String>,
    /// The folder that it works in.
    pub folder: Option<PathBuf>,
    /// Its worktree.
    pub worktree: Option<super::Worktree>,
    /// Its present recording, or the last one.
    pub recording: Option<PathBuf>,
    /// The recordings before that, the oldest first.
    pub earlier: Vec<PathBuf>,
    /// How often it was started again since it was started by a user.
    pub restarts: u32,
    /// Whether its first prompt was sent.
    pub prompt: PromptState,
    /// Its answer to the first prompt.
    pub answer: Option<String>,
    /// The number of the last turn that was handled.
    pub turn: u32,
    /// How its program ended, such as `exit 1`; `None` while it runs.
    pub ended: Option<String>,
    /// Whether it ended successfully.
    pub succeeded: bool,
    /// Why it could not be started or driven.
    pub error: Option<String>,
}

/// How far the first prompt is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptState {
    /// Not sent.
    #[default]
    Waiting,
    /// Sent, and not answered.
    Sent,
    /// Answered.
    Answered,
}

/// How far a relay is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SavedRelay {
    /// The answers that were passed on.
    pub rounds: u32,
    /// Why it has ended, if it has.
    pub ended: Option<String>,
}

/// How far a vote is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SavedVote {
    /// Whether the judge was asked.
    pub asked: bool,
    /// The judge's answer.
    pub answer: Option<String>,
    /// The agent that the judge named.
    pub best: Option<String>,
}

impl SavedAgent {
    /// Notes a new recording. The present one becomes an earlier one, which is returned.
    pub fn records(&mut self, recording: PathBuf) -> Option<PathBuf> {
        let before = self.recording.replace(recording);
        self.earlier.extend(before.clone());
        let over = self.earlier.len().saturating_sub(MAX_EARLIER);
        self.earlier.drain(..over);
        before
    }
}

impl State {
    /// The folder of all squads, which is made if it does not exist.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn folder() -> Result<PathBuf, StateError> {
        let path = tapdeck_host::state_folder().join(FOLDER);
        match registry::private_folder(&path) {
            Ok(()) => Ok(path),
            Err(e) => Err(StateError { path, why: e.to_string() }),
        }
    }

    /// The file of a squad's state.
    fn path(folder: &Path, name: &str) -> PathBuf {
        folder.join(format!("{name}.json"))
    }

    /// Reads the state of a squad; `None` if it was never up.
    ///
    /// # Errors
    /// When the file cannot be read, or makes no sense.
    pub fn load(name: &str) -> Result<Option<Self>, StateError> {
        let path = Self::path(&Self::folder()?, name);
        let failed = |why: String| StateError { path: path.clone(), why };
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(failed(e.to_string())),
        };
        let mut text = Vec::new();
        file.take(MAX).read_to_end(&mut text).map_err(|e| failed(e.to_string()))?;
        serde_json::from_slice(&text).map(Some).map_err(|e| failed(e.to_string()))
    }

    /// Writes the state, whole or not at all.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self) -> Result<(), StateError> {
        let path = Self::path(&Self::folder()?, &self.name);
        let text = serde_json::to_vec_pretty(self).unwrap_or_default();
        OutFile::replace(&path, &text).map_err(|e| StateError { path, why: e.to_string() })
    }

    /// Forgets a squad.
    ///
    /// # Errors
    /// When its file cannot be removed.
    pub fn forget(name: &str) -> Result<(), StateError> {
        let path = Self::path(&Self::folder()?, name);
        match disk::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(StateError { path, why: e.to_string() }),
            _ => Ok(()),
        }
    }

    /// The names of all squads that were up, in order.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn names() -> Result<Vec<String>, StateError> {
        let folder = Self::folder()?;
        let entries = std::fs::read_dir(&folder)
            .map_err(|e| StateError { path: folder.clone(), why: e.to_string() })?;
        let mut names: Vec<String> = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
            .filter_map(|path| path.file_stem().and_then(|s| s.to_str()).map(str::to_owned))
            .filter(|name| !name.starts_with('.'))
            .collect();
        names.sort();
        Ok(names)
    }
}
