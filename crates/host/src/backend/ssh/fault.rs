//! Why a program could not be started on another machine.

use std::fmt;

use crate::backend::SpawnError;

/// A machine that could not be reached, or refused.
#[derive(Debug, Clone)]
pub(super) enum Fault {
    /// It does not let the user in.
    NotAdmitted(String),
    /// Its key is new to the user, who cannot be asked.
    UnknownKey(String),
    /// It gives no terminal.
    NoTerminal,
    Other(String),
}

impl Fault {
    /// Says where on the way it happened.
    pub(super) fn within(self, place: &str) -> Self {
        match self {
            Self::NotAdmitted(why) => Self::NotAdmitted(format!("{place}: {why}")),
            Self::UnknownKey(why) => Self::UnknownKey(format!("{place}: {why}")),
            Self::NoTerminal => self,
            Self::Other(why) => Self::Other(format!("{place}: {why}")),
        }
    }

    pub(super) fn into_spawn_error(self, place: &str) -> SpawnError {
        let place = place.to_owned();
        match self {
            Self::NotAdmitted(why) => SpawnError::NotAdmitted { place, why },
            Self::UnknownKey(why) => SpawnError::UnknownKey { place, why },
            Self::NoTerminal => SpawnError::NoTerminalThere { place },
            Self::Other(why) => SpawnError::Unreachable { place, why },
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAdmitted(why) | Self::UnknownKey(why) | Self::Other(why) => f.write_str(why),
            Self::NoTerminal => f.write_str("it gives no terminal"),
        }
    }
}

impl From<String> for Fault {
    fn from(why: String) -> Self {
        Self::Other(why)
    }
}

impl From<&str> for Fault {
    fn from(why: &str) -> Self {
        Self::Other(why.to_owned())
    }
}
