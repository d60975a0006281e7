//! The recording that a command reads: its arguments, and how it is found.

use std::path::{Path, PathBuf};

use clap::Args;
use tapdeck_host::{Source, SourceError};
use tapdeck_tape::{Container, Format};

use crate::ending::Kind;
use crate::failure::{Failure, Result};
use crate::formats;
use crate::keys::IdentityArgs;

/// The format of a recording that cannot be told from the file.
#[derive(Args, Clone, Default)]
pub(crate) struct InputArgs {
    /// Format of the recording [default: from its content and name]
    #[arg(long, value_name = "FORMAT", value_parser = formats::container)]
    pub(crate) from: Option<Container>,
    /// Timing file of a typescript
    #[arg(long, value_name = "FILE")]
    pub(crate) timing: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) identity: IdentityArgs,
}

impl InputArgs {
    /// Finds a recording.
    pub(crate) fn find(&self, path: &Path) -> Result<Source> {
        self.identity.load([path])?;
        Ok(Source::find(path, self.from, self.timing.as_deref())?)
    }

    /// Finds a recording to check it: a file that is no recording fails the check.
    pub(crate) fn judge(&self, path: &Path) -> Result<Source> {
        self.identity.load([path])?;
        Source::find(path, self.from, self.timing.as_deref()).map_err(|e| match e {
            SourceError::Unknown(_) | SourceError::Misnamed { .. } | SourceError::Not { .. } => {
                Failure::from(e).with_kind(Kind::Check)
            }
            e => e.into(),
        })
    }
}

/// Finds a native recording, for a command that works with no other; `done` says what it does.
pub(crate) fn native(path: &Path, identity: &IdentityArgs, done: &str) -> Result<Source> {
    identity.load([path])?;
    let source = Source::find(path, None, None).map_err(|e| match e {
        SourceError::Unknown(_) | SourceError::Misnamed { .. } => {
            Failure::check(format!("{e}; only an .ahr can be {done}"))
        }
        SourceError::Not { .. } => Failure::check(e.to_string()),
        e => e.into(),
    })?;
    let container = source.container();
    if container.format != Format::Ahr || container.zst {
        let path = path.display();
        return Err(Failure::check(format!("{path} is {container}: only an .ahr can be {done}")));
    }
    Ok(source)
}
