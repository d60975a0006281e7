//! Finds the squad that a command is about, and its supervisor.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use tapdeck::squad::{Squad, SquadError, State, StateError};
use tapdeck_host::registry::{self, ClaimedName};
use tapdeck_host::{Clock, processes};

use crate::failure::{Failure, Result};
use tapdeck_tape::nearest;

/// The file in the working folder that is meant if none is named.
const USUAL: &str = "squad.toml";
/// How long a supervisor may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// The squad that a command is about.
#[derive(Args)]
pub(crate) struct Which {
    /// A squad file, or the name of a squad that was up before [default: squad.toml]
    #[arg(value_name = "FILE|NAME")]
    squad: Option<String>,
}

/// A squad's name, and its file, which may be gone.
pub(super) struct Found {
    pub(super) name: String,
    pub(super) file: PathBuf,
}

impl Which {
    /// Finds a squad by its file or by its name.
    pub(super) fn find(&self) -> Result<Found> {
        match &self.squad {
            Some(given) if Path::new(given).is_file() => of_file(Path::new(given)),
            Some(name) => of_name(name),
            None if Path::new(USUAL).is_file() => of_file(Path::new(USUAL)),
            None => match State::names()?.as_slice() {
                [only] => of_name(only),
                [] => Err(Failure::not_found(
                    "there is no squad.toml here, and no squad was up before: tapdeck squad init writes a file",
                )),
                names => Err(Failure::usage(format!(
                    "there is no squad.toml here: name a file, or one of {}",
                    names.join(", ")
                ))),
            },
        }
    }
}

fn of_file(file: &Path) -> Result<Found> {
    let squad = read(file)?;
    Ok(Found { name: squad.name, file: squad.path })
}

fn of_name(name: &str) -> Result<Found> {
    let names = State::names()?;
    // A name that leads to another folder is no squad's.
    if names.iter().any(|known| known == name)
        && let Some(state) = State::load(name)?
    {
        return Ok(Found { name: name.to_owned(), file: state.file });
    }
    let meant = nearest::name(name, names.iter().map(String::as_str));
    let hint = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
    Err(Failure::not_found(format!("{name}: there is neither a file nor a squad of that name{hint}")))
}

/// Reads a squad file.
pub(super) fn read(file: &Path) -> Result<Squad> {
    Squad::read(file).map_err(|e| match &e {
        SquadError::Wrong { mistake, .. } => {
            let unknown = mistake.unknown.as_ref();
            let meant =
                unknown.and_then(|(wrong, known)| nearest::name(wrong, known.iter().map(String::as_str)));
            let hint = meant.map(|meant| format!("; did you mean {meant:?}?")).unwrap_or_default();
            Failure::usage(format!("{e}{hint}"))
        }
        SquadError::Read { path, source } => Failure::file(path, source),
        _ => Failure::usage(e.to_string()),
    })
}

impl From<StateError> for Failure {
    fn from(e: StateError) -> Self {
        Self::io(e.to_string())
    }
}

/// The right to supervise a squad, which one process has at a time.
pub(super) struct Supervision {
    _claim: ClaimedName,
}

impl Supervision {
    /// Takes the right if no process has it.
    pub(super) fn take(name: &str) -> Result<Option<Self>> {
        let failed = |e: std::io::Error| Failure::io(format!("cannot supervise {name}: {e}"));
        let folder = registry::folder().map_err(failed)?;
        // No session can have this name.
        let claim = ClaimedName::claim(&folder, &format!("\u{1f}squad {name}")).map_err(failed)?;
        Ok(claim.map(|claim| Self { _claim: claim }))
    }

    /// Takes the right from the process that has it: that one ends, and its agents go on.
    pub(super) fn take_over(name: &str) -> Result<Self> {
        let clock = Clock::start();
        let mut told = None;
        loop {
            if let Some(taken) = Self::take(name)? {
                return Ok(taken);
            }
            let pid = State::load(name)?.and_then(|state| state.supervisor);
            if let Some(pid) = pid.filter(|pid| told != Some(*pid) && is_supervisor(*pid)) {
                told = Some(pid);
                let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
                // A process that has just ended is what is wanted.
                let _ = pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::TERM));
            }
            if clock.elapsed() > PATIENCE {
                return Err(Failure::io(format!(
                    "the supervisor of {name} does not end: see tapdeck squad status"
                )));
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }
}

/// Whether this process is a supervisor: its number may have been given to another.
fn is_supervisor(pid: u32) -> bool {
    processes::command(pid).iter().any(|arg| arg == "squad")
}
