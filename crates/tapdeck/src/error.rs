//! The one error of the library.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tapdeck_core::{Exit, Refused, StickError};
use tapdeck_host::{CreateError, LaunchError, PlayError, SourceError, Unanswered};

use crate::Screen;

/// What the functions of this crate return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program could not be started, or its session broke down.
    #[error(transparent)]
    Launch(Arc<LaunchError>),
    /// The session is over.
    #[error("the session is over")]
    Over,
    /// The program ended before what was waited for.
    #[error("the program ended ({exit}) before {wanted}; its last screen:\n{screen}")]
    Ended {
        /// How it ended.
        exit: Exit,
        /// What was waited for.
        wanted: String,
        /// The last screen.
        screen: Box<Screen>,
    },
    /// The time limit passed.
    #[error("timed out after {after:?}: {wanted} did not happen; the screen:\n{screen}")]
    Timeout {
        /// The time limit.
        after: Duration,
        /// What was waited for.
        wanted: String,
        /// The screen at that time.
        screen: Box<Screen>,
    },
    /// Input was refused: another party holds the stick, or the program takes no input.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// A condition, key, signal, name or other value makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// A recording could not be created.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// A recording could not be read.
    #[error(transparent)]
    Read(#[from] PlayError),
    /// A recording is damaged or incomplete.
    #[error("{}: {why}", path.display())]
    Recording {
        /// Which recording.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A conversion failed.
    #[error(transparent)]
    Convert(#[from] crate::convert::ConvertError),
    /// Scrub rules could not be loaded.
    #[error(transparent)]
    Scrub(#[from] crate::scrub::ScrubError),
    /// Rules for turns and states could not be loaded.
    #[cfg(feature = "live")]
    #[error(transparent)]
    Rules(#[from] crate::turns::RuleBookError),
    /// A socket of the session could not be opened.
    #[cfg(feature = "live")]
    #[error(transparent)]
    Door(#[from] crate::live::DoorError),
    /// No such live session, or several.
    #[cfg(feature = "live")]
    #[error(transparent)]
    Find(#[from] tapdeck_serve::client::FindError),
    /// A session of another process did not do what it was asked for.
    #[cfg(feature = "live")]
    #[error(transparent)]
    Remote(#[from] tapdeck_serve::client::ClientError),
    /// The operating system refused.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Its reason.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    /// Whether a time limit passed.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Timeout { .. })
    }

    /// The screen at the time of the failure, where one was looked at.
    pub fn screen(&self) -> Option<&Screen> {
        match self {
            Self::Timeout { screen, .. } | Self::Ended { screen, .. } => Some(screen),
            _ => None,
        }
    }
}

impl From<LaunchError> for Error {
    fn from(e: LaunchError) -> Self {
        Self::Launch(Arc::new(e))
    }
}

impl From<SourceError> for Error {
    fn from(e: SourceError) -> Self {
        Self::Read(e.into())
    }
}

impl From<StickError> for Error {
    fn from(e: StickError) -> Self {
        Self::Refused(e.into())
    }
}

impl From<Unanswered> for Error {
    fn from(e: Unanswered) -> Self {
        match e {
            Unanswered::SessionOver => Self::Over,
            other => Self::Io { what: "the session did not answer".into(), source: io::Error::other(other) },
        }
    }
}
