//! Why a command failed: the kind of failure, which decides the exit code, and the message.

use std::io;
use std::path::Path;

use serde_json::{Map, Value};
use tapdeck::testing::Remedy;
use tapdeck::turns::RuleBookError;
#[cfg(feature = "tui")]
use tapdeck_cli::ui::view::run::ViewError;
use tapdeck_host::backend::SpawnError;
use tapdeck_host::cassette::{CommitError, PreflightError};
use tapdeck_host::{AppendError, LaunchError};
use tapdeck_proto::broker::ErrorCode;
use tapdeck_serve::broker::BrokerError;
use tapdeck_serve::client::{ClientError, FindError};
use tapdeck_serve::snapshot::AskError;
use tapdeck_tape::cassette::Refusal;

use crate::ending::{Ending, Kind, Report};
use crate::unreadable::{self, FileRole};

/// A failure of a command. It is reported once, by [`Failure::report`].
#[derive(Debug, PartialEq)]
pub(crate) struct Failure {
    kind: Kind,
    /// `None` if the message has been printed.
    message: Option<String>,
    /// What the failure is about, for a report in JSON.
    about: Map<String, Value>,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.message.as_deref().unwrap_or_default())
    }
}

/// What to do about frames that were derived by another emulator.
pub(crate) const DERIVE_FRAMES: &str = "; `tapdeck cassette frames --write` derives them";

/// Returns what to do about a scenario that fails, to be put behind the message.
pub(crate) fn advice(remedy: Option<Remedy>) -> &'static str {
    match remedy {
        Some(Remedy::Record) => ": make it with `tapdeck test --record`",
        Some(Remedy::Make) => ": --update or --record makes it",
        Some(Remedy::Rebind) => "; record it again with --record, or accept it with --rebind",
        Some(Remedy::DeriveFrames) => DERIVE_FRAMES,
        _ => "",
    }
}

/// What a command ends with.
pub(crate) type Result<T = Ending, E = Failure> = std::result::Result<T, E>;

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: Some(message.into()), about: Map::new() }
    }

    /// A failure that another process has reported.
    pub(crate) fn reported(kind: Kind) -> Self {
        Self { kind, message: None, about: Map::new() }
    }

    pub(crate) fn check(message: impl Into<String>) -> Self {
        Self::new(Kind::Check, message)
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(Kind::NotFound, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(Kind::Internal, message)
    }

    pub(crate) fn io(message: impl Into<String>) -> Self {
        Self::new(Kind::Io, message)
    }

    /// A failure to read this file.
    pub(crate) fn file(path: &Path, e: &io::Error) -> Self {
        unreadable::file(path, e, FileRole::Other)
    }

    /// A cassette that cannot be used.
    pub(crate) fn cassette(path: &Path, e: Refusal) -> Self {
        match e {
            Refusal::Io(e) => unreadable::file(path, &e, FileRole::Recording),
            e => {
                let failure = Self::from(e);
                let message = format!("{}: {failure}", path.display());
                failure.with_message(message)
            }
        }
    }

    /// A failure to write this file.
    pub(crate) fn write(path: &Path, e: &io::Error) -> Self {
        let shown = path.display();
        let folder = path.parent().filter(|f| !f.as_os_str().is_empty());
        match (e.kind(), folder) {
            (io::ErrorKind::AlreadyExists, _) => {
                Self::usage(format!("{shown} exists: give another name, or --overwrite"))
            }
            (io::ErrorKind::ResourceBusy, _) => Self::usage(format!("cannot write {shown}: {e}")),
            (io::ErrorKind::NotFound, Some(folder)) if !folder.exists() => {
                let folder = folder.display();
                Self::io(format!("cannot write {shown}: there is no folder {folder}; create it first"))
            }
            _ => Self::io(format!("cannot write {shown}: {e}")),
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn message(&self) -> &str {
        self.message.as_deref().unwrap_or_default()
    }

    /// Replaces the message.
    pub(crate) fn with_message(self, message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), ..self }
    }

    /// Replaces the kind.
    pub(crate) fn with_kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    /// Adds what the failure is about to a report in JSON.
    pub(crate) fn about(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.about.insert(key.to_owned(), value.into());
        self
    }

    /// Prints the failure, and returns how the command ends.
    pub(crate) fn report(self, report: Report) -> Ending {
        if let Some(message) = &self.message {
            report.failure(self.about, message);
        }
        Ending::Failed(self.kind)
    }
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Self {
        Self::io(e.to_string())
    }
}

impl From<LaunchError> for Failure {
    fn from(e: LaunchError) -> Self {
        let kind = match &e {
            LaunchError::Spawn(e) => Kind::NotStarted(e.kind()),
            _ => Kind::Io,
        };
        let hint = match &e {
            LaunchError::Spawn(SpawnError::NotAdmitted { .. }) => {
                ". Add a key to your agent, or name one with --identity"
            }
            LaunchError::Spawn(SpawnError::UnknownKey { .. }) => {
                ". Meet it once with ssh, or give --accept-new"
            }
            LaunchError::Spawn(SpawnError::NoTerminalThere { .. }) => ": try --no-pty",
            _ => "",
        };
        Self::new(kind, format!("{e}{hint}"))
    }
}

impl From<AppendError> for Failure {
    fn from(e: AppendError) -> Self {
        match e {
            AppendError::Busy(_) | AppendError::Encrypted(_) => Self::usage(e.to_string()),
            AppendError::Torn(_) => Self::check(format!("{e}; tapdeck repair writes a whole copy")),
            AppendError::Sidecar { .. } => Self::check(e.to_string()),
            AppendError::Write { path, why } => Self::write(&path, &why),
            e => Self::io(e.to_string()),
        }
    }
}

impl From<ClientError> for Failure {
    fn from(e: ClientError) -> Self {
        let kind = match &e {
            ClientError::NotListening(_) => Kind::NotFound,
            ClientError::Denied(_) | ClientError::NewHost(_) => Kind::Check,
            ClientError::Refused { code: Some(code), .. } => Kind::Relayed(*code),
            ClientError::Refused { error, .. } => match error.as_str() {
                "forbidden" => Kind::Check,
                "no_such_session" => Kind::NotFound,
                "unknown_backend" | "malformed_negotiation" => Kind::Usage,
                _ => Kind::Io,
            },
            _ => Kind::Io,
        };
        match e {
            ClientError::NewHost(_) => Self::new(
                kind,
                format!(
                    "{e}. Compare it with the one that the server printed, then give it with \
                     --fingerprint, or trust the server unseen with --accept-new"
                ),
            ),
            ClientError::Refused { ref message, .. } if message == "a token is needed" => {
                Self::new(kind, format!("{e}; give one with --token-file FILE or TAPDECK_TOKEN"))
            }
            ClientError::Refused { ref message, .. } if message == "this server does not go by that name" => {
                Self::new(kind, format!("{e}; start it with tapdeck serve --host NAME"))
            }
            // The program could not be started there: the message is the same as for one here.
            ClientError::Refused { code: Some(_), message, .. } => Self::new(kind, message),
            e => Self::new(kind, e.to_string()),
        }
    }
}

impl From<FindError> for Failure {
    fn from(e: FindError) -> Self {
        match &e {
            FindError::Empty => Self::usage(format!("{e}: see tapdeck ls")),
            FindError::NoSession => Self::not_found(format!("{e}: start one with tapdeck run -d")),
            FindError::Several { .. } => Self::usage(e.to_string()),
            FindError::Unknown { sessions, .. } if sessions.is_empty() => {
                Self::not_found(format!("{e}: start one with tapdeck run -d --name NAME"))
            }
            FindError::Unknown { .. } => Self::not_found(e.to_string()),
            _ => Self::io(e.to_string()),
        }
    }
}

impl From<BrokerError> for Failure {
    fn from(e: BrokerError) -> Self {
        let kind = match &e {
            BrokerError::NotThere => Kind::NotFound,
            BrokerError::Refused { error: ErrorCode::SessionNotFound | ErrorCode::TurnNotFound, .. } => {
                Kind::NotFound
            }
            BrokerError::Refused { .. } => Kind::Check,
            _ => Kind::Io,
        };
        let hint = match &e {
            BrokerError::NotThere => ": start one with tapdeck broker",
            BrokerError::Refused { error, .. } => match error {
                ErrorCode::SessionNotFound => ": see tapdeck ls",
                ErrorCode::TurnNotFound => ": see tapdeck turns",
                ErrorCode::BufferEmpty => ": see tapdeck capture",
                _ => "",
            },
            _ => "",
        };
        Self::new(kind, format!("{e}{hint}"))
    }
}

impl From<RuleBookError> for Failure {
    fn from(e: RuleBookError) -> Self {
        match &e {
            RuleBookError::Prompt(why) => Self::usage(format!("--prompt: {why}")),
            _ => Self::usage(e.to_string()),
        }
    }
}

impl From<Refusal> for Failure {
    fn from(e: Refusal) -> Self {
        let kind = match &e {
            Refusal::Io(e) => Kind::of_io(e),
            _ => Kind::Check,
        };
        let hint = if matches!(e, Refusal::Emulator { .. }) { DERIVE_FRAMES } else { "" };
        Self::new(kind, format!("{e}{hint}"))
    }
}

impl From<PreflightError> for Failure {
    fn from(e: PreflightError) -> Self {
        let kind = match e {
            PreflightError::NotFound(_) => Kind::NotFound,
            PreflightError::Check(_) => Kind::Io,
            _ => Kind::Check,
        };
        Self::new(kind, e.to_string())
    }
}

impl From<CommitError> for Failure {
    fn from(e: CommitError) -> Self {
        let kind = match e {
            CommitError::Exists(path) => {
                return Self::write(&path, &io::ErrorKind::AlreadyExists.into());
            }
            CommitError::Io { .. } => Kind::Io,
            CommitError::Refused(_) => Kind::Check,
            _ => Kind::Usage,
        };
        Self::new(kind, e.to_string())
    }
}

impl From<AskError> for Failure {
    fn from(e: AskError) -> Self {
        let kind = match e {
            AskError::NotListening(_) => Kind::NotFound,
            AskError::Refused(_) | AskError::NotOurs(_) => Kind::Check,
            AskError::Unfit(_) => Kind::Usage,
            _ => Kind::Io,
        };
        Self::new(kind, e.to_string())
    }
}

#[cfg(feature = "tui")]
impl From<ViewError> for Failure {
    fn from(e: ViewError) -> Self {
        let kind = match e {
            ViewError::Play(e) => return e.into(),
            ViewError::NoTerminal(_) | ViewError::Begin { missing: false, .. } => Kind::Usage,
            ViewError::Begin { .. } => Kind::NotFound,
            _ => Kind::Io,
        };
        Self::new(kind, e.to_string())
    }
}
