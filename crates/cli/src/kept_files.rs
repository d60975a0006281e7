//! `rec --snapshots`: what keeps the files of a session while it is recorded.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tapdeck::trees::{HookCommand, Keeper, Provider};
use tapdeck_host::Launch;

use crate::config::Config;
use crate::failure::{Failure, Result};

/// The longest time that a program may take to keep the files once.
const LONGEST: Duration = Duration::from_secs(3_600);

/// What `--snapshots` asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SnapshotsArg {
    /// Nothing, whatever the configuration says.
    Off,
    Git,
    /// The command of the configuration.
    Configured,
    /// A command line for the shell.
    Shell(String),
}

impl SnapshotsArg {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Ok(match text.trim() {
            "" => return Err("expected git, command, off or a command line".to_owned()),
            "off" => Self::Off,
            "git" => Self::Git,
            "command" => Self::Configured,
            line => Self::Shell(line.to_owned()),
        })
    }
}

/// What is to keep the files of a session.
pub(crate) struct Plan {
    provider: Provider,
    folder: PathBuf,
}

impl Plan {
    /// Keeps the files at the start, but for those of the recording.
    pub(crate) fn begin(self, recording: &Path) -> Result<Keeper> {
        let kept = Keeper::begin(self.provider, self.folder, recording);
        kept.map_err(|e| Failure::io(format!("the files cannot be kept: {e}")))
    }
}

/// What keeps the files around the folder of a program that is about to be started, if anything
/// does.
pub(crate) fn plan(asked: Option<&SnapshotsArg>, launch: &Launch) -> Result<Option<Plan>> {
    let config = Config::load()?.snapshots;
    // A program that never ends would keep no files at all.
    let limit = config.timeout.0.unwrap_or(LONGEST).min(LONGEST);
    let configured = || match config.command.is_empty() {
        true => Err(Failure::usage("there is no command in the configuration: set command in [snapshots]")),
        false => Ok(Provider::Command(HookCommand { argv: config.command.clone(), limit })),
    };
    let provider = match asked {
        Some(SnapshotsArg::Off) => return Ok(None),
        Some(SnapshotsArg::Git) => Provider::Git,
        Some(SnapshotsArg::Configured) => configured()?,
        Some(SnapshotsArg::Shell(line)) => {
            let argv = ["/bin/sh", "-c", line].map(str::to_owned).to_vec();
            Provider::Command(HookCommand { argv, limit })
        }
        None => match config.provider.as_str() {
            "" | "off" => return Ok(None),
            "git" => Provider::Git,
            "command" => configured()?,
            other => {
                return Err(Failure::usage(format!(
                    "provider {other:?} in [snapshots] of the configuration is unknown: use git, command or off"
                )));
            }
        },
    };
    if !launch.place.is_local() {
        // A configuration that keeps files is for programs on this machine.
        return match asked {
            Some(_) => Err(Failure::usage("--snapshots keeps files of this machine: leave out --on")),
            None => Ok(None),
        };
    }
    let folder = launch.command.cwd.clone().map_or_else(std::env::current_dir, std::path::absolute)?;
    if let Some(SnapshotsArg::Shell(line)) = asked {
        check_line(line, &folder)?;
    }
    Ok(Some(Plan { provider, folder }))
}

/// Refuses a command line that begins with a word that no shell could run.
fn check_line(line: &str, folder: &Path) -> Result<()> {
    let is_plain = |c: char| c.is_alphanumeric() || "._-/+:@%".contains(c);
    let word = line.split_whitespace().next().unwrap_or_default();
    if !word.chars().all(is_plain) {
        // Variables, quotes and the like are for the shell to read.
        return Ok(());
    }
    #[expect(clippy::disallowed_methods, reason = "it asks the shell, and starts no session's program")]
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "command -v -- \"$1\"", "sh", word]).current_dir(folder);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match shell.status() {
        Ok(status) if !status.success() => Err(Failure::usage(format!(
            "--snapshots {line:?}: there is no program {word:?}; use git, command, off or a command line"
        ))),
        _ => Ok(()),
    }
}
