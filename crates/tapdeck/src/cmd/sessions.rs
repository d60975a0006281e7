//! Finding live sessions, and talking to them: what all commands about sessions have in common.

use std::path::PathBuf;

use clap::Args;
use serde_json::Value;
use tapdeck_host::registry::Listing;
pub(crate) use tapdeck_serve::client::ANSWER;
use tapdeck_serve::client::{self, Bus, ClientError};

use crate::ending::{Ending, code, say};

/// Which session is meant.
#[derive(Args)]
pub(crate) struct Which {
    /// Id or name of a live session, or the beginning of one; left out, the only one there is
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
}

/// So many sessions are named in a sentence.
const SHOWN: usize = 10;

/// What went wrong, and the code to end with.
pub(crate) struct Failed(pub(crate) String, pub(crate) i32);

impl Failed {
    /// Says it and ends.
    pub(crate) fn end(self) -> Ending {
        say(&self.0);
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
    if which.is_some_and(str::is_empty) {
        return Err(Failed("an empty name is no session's: see tapdeck ls".into(), code::USAGE));
    }
    let (_, mut found) = alive()?;
    let none = |what: String| Err(Failed(what, code::NOT_FOUND));
    let listing = |l: &Listing| match &l.name {
        Some(name) => format!("{} ({name})", l.id),
        None => l.id.clone(),
    };
    let Some(which) = which else {
        return match found.len() {
            0 => none("there is no live session: start one with tapdeck run -d".into()),
            1 => Ok(found.remove(0)),
            _ => {
                let all: Vec<_> = found.iter().map(listing).collect();
                Err(Failed(format!("say which session is meant: {}", all.join(", ")), code::USAGE))
            }
        };
    };
    if let Some(at) = found.iter().position(|l| l.id == which) {
        return Ok(found.swap_remove(at));
    }
    for exact in [true, false] {
        let fits = |l: &Listing| {
            let name = l.name.as_deref().unwrap_or("");
            if exact { name == which } else { l.id.starts_with(which) || name.starts_with(which) }
        };
        let at: Vec<usize> = (0..found.len()).filter(|i| fits(&found[*i])).collect();
        match at.as_slice() {
            [] => {}
            [one] => return Ok(found.swap_remove(*one)),
            many => {
                let all: Vec<_> = many.iter().map(|i| listing(&found[*i])).collect();
                return Err(Failed(
                    format!("{which:?} fits several sessions: {}", all.join(", ")),
                    code::USAGE,
                ));
            }
        }
    }
    let names: Vec<_> = found.iter().take(SHOWN).map(listing).collect();
    let more = if found.len() > SHOWN { " and others" } else { "" };
    none(match names.is_empty() {
        true => format!("no live session is called {which:?}: there is none"),
        false => format!("no live session is called {which:?}: there is {}{more}", names.join(", ")),
    })
}

/// A connection to a session's bus, under this name and role.
pub(crate) fn connect(listing: &Listing, name: &str, role: &str) -> Result<Bus, Failed> {
    Ok(client::connect_to(listing, name, role)?)
}

/// One question, one answer.
pub(crate) fn ask(bus: &mut Bus, verb: &str, payload: &str) -> Result<Value, Failed> {
    Ok(bus.ask(verb, payload, ANSWER)?.json())
}
