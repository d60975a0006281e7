//! The recording that a command is to read: what it is, and with which exit code it is refused.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use tapdeck_host::{Source, SourceError};
use tapdeck_tape::{Container, Format};

use crate::ending::code;
use crate::formats;

/// What a recording is, where it does not say so itself.
#[derive(Args, Clone, Default)]
pub(crate) struct InputArgs {
    /// The recording's format, if it cannot be told from its content and name
    #[arg(long, value_name = "FORMAT", value_parser = formats::container)]
    pub(crate) from: Option<Container>,
    /// The timing file of a typescript
    #[arg(long, value_name = "FILE")]
    pub(crate) timing: Option<PathBuf>,
}

impl InputArgs {
    /// Finds a recording; an error comes with its exit code.
    pub(crate) fn find(&self, path: &Path) -> Result<Source, (String, i32)> {
        Source::find(path, self.from, self.timing.as_deref()).map_err(refused)
    }

    /// The same for whoever asks about a recording's health: that it is none is an answer.
    pub(crate) fn judge(&self, path: &Path) -> Result<Source, (String, i32)> {
        Source::find(path, self.from, self.timing.as_deref()).map_err(|e| match e {
            SourceError::Unknown(_) | SourceError::Not { .. } => (e.to_string(), code::FAILED),
            e => refused(e),
        })
    }
}

/// A native recording, for what can be done with no other; `done` says what.
pub(crate) fn native(path: &Path, done: &str) -> Result<Source, (String, i32)> {
    let source = InputArgs::default().judge(path)?;
    let container = source.container();
    if container.format != Format::Ahr || container.zst {
        let (path, name) = (path.display(), formats::container_name(container));
        return Err((format!("{path} is {name}: only an .ahr can be {done}"), code::FAILED));
    }
    Ok(source)
}

/// Why a recording is not read, with the exit code for it.
#[expect(clippy::needless_pass_by_value, reason = "handed to map_err")]
pub(crate) fn refused(e: SourceError) -> (String, i32) {
    let code = match &e {
        SourceError::Open { why, .. } if why.kind() == io::ErrorKind::NotFound => code::NOT_FOUND,
        SourceError::NoTiming(_) => code::USAGE,
        _ => code::IO,
    };
    (e.to_string(), code)
}
