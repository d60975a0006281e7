//! Finding live sessions, and talking to them: what all commands about sessions have in common.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use tapdeck_host::processes;
use tapdeck_host::registry::Listing;
pub(crate) use tapdeck_serve::client::ANSWER;
use tapdeck_serve::client::{self, Bus, ClientError, FindError};

use crate::ending::{Ending, code, complain};

/// Which session is meant.
#[derive(Args)]
pub(crate) struct Which {
    /// Id or name of a live session, or the beginning of one; left out, the only one there is
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
}

/// What went wrong, and the code to end with.
pub(crate) struct Failed(pub(crate) String, pub(crate) i32);

impl Failed {
    /// Says it and ends.
    pub(crate) fn end(self) -> Ending {
        self.end_as(false)
    }

    /// The same, as data where that was asked for.
    pub(crate) fn end_as(self, as_json: bool) -> Ending {
        complain(as_json, json!({}), &self.0);
        Ending::Code(self.1)
    }
}

impl From<ClientError> for Failed {
    fn from(e: ClientError) -> Self {
        let code = match &e {
            ClientError::NobodyThere(_) => code::NOT_FOUND,
            ClientError::Denied(_) => code::FAILED,
            ClientError::Refused { code: Some(code), .. } => *code,
            ClientError::Refused { error, .. } => match error.as_str() {
                "forbidden" => code::FAILED,
                "no_such_session" => code::NOT_FOUND,
                "unknown_backend" | "malformed_negotiation" => code::USAGE,
                _ => code::IO,
            },
            _ => code::IO,
        };
        match e {
            // A program that did not start is what it is, wherever it did not start.
            ClientError::Refused { code: Some(_), message, .. } => Failed(message, code),
            e => Failed(e.to_string(), code),
        }
    }
}

/// All live sessions, those of killed processes cleared away.
pub(crate) fn alive() -> Result<(PathBuf, Vec<Listing>), Failed> {
    client::alive().map_err(|e| Failed(format!("cannot list sessions: {e}"), code::IO))
}

/// The session that is meant.
pub(crate) fn find(which: Option<&str>) -> Result<Listing, Failed> {
    client::find(which).map_err(|e| match &e {
        FindError::Empty => Failed(format!("{e}: see tapdeck ls"), code::USAGE),
        FindError::NoSession => Failed(format!("{e}: start one with tapdeck run -d"), code::NOT_FOUND),
        FindError::Several { .. } => Failed(e.to_string(), code::USAGE),
        FindError::Unknown { .. } => Failed(e.to_string(), code::NOT_FOUND),
        _ => Failed(e.to_string(), code::IO),
    })
}

/// Refuses a session that this command runs in: what it shows would be in the session, and be shown again.
pub(crate) fn not_within(listing: &Listing) -> Result<(), Failed> {
    let exported = std::env::var_os(crate::snapshot_door::SESSION_VAR).is_some_and(|own| *own == *listing.id);
    if exported || processes::shows_on_terminal_of(listing.pid) {
        let id = &listing.id;
        return Err(Failed(
            format!(
                "this runs in session {id}, which would show itself without end: run it in another terminal"
            ),
            code::USAGE,
        ));
    }
    Ok(())
}

/// A connection to a session's bus, under this name and role.
pub(crate) fn connect(listing: &Listing, name: &str, role: &str) -> Result<Bus, Failed> {
    Ok(client::connect_to(listing, name, role)?)
}

/// One question, one answer.
pub(crate) fn ask(bus: &mut Bus, verb: &str, payload: &str) -> Result<Value, Failed> {
    Ok(bus.ask(verb, payload, ANSWER)?.json())
}
