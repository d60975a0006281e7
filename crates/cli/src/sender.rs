//! Sends keys and text to a session.

use std::time::Duration;

use clap::Args;
use tapdeck_proto::bus::{Key, Role, Take, Typing};

use crate::failure::{Failure, Result};
use crate::sessions::{ask, connect, find};

/// The time between two attempts to type to a program that does not read.
const RETRY: Duration = Duration::from_millis(20);

/// The party that types.
#[derive(Args)]
pub(crate) struct SenderArgs {
    /// Take the stick (control) from another client
    #[arg(long, alias = "take")]
    pub(crate) takeover: bool,
    /// Act as a bot, which never takes the stick from a person
    #[arg(long)]
    pub(crate) bot: bool,
}

impl SenderArgs {
    /// Sends one `KEY` request to a session: the only one there is if none is named.
    pub(crate) fn send(&self, session: Option<&str>, typing: Typing) -> Result<()> {
        self.send_all(session, std::iter::once(typing))
    }

    /// Sends `KEY` requests to a session, in order. Waits for a program that is slow to read.
    pub(crate) fn send_all(
        &self,
        session: Option<&str>,
        requests: impl Iterator<Item = Typing>,
    ) -> Result<()> {
        let listing = find(session)?;
        let mut bus = connect(&listing, "send", if self.bot { Role::Bot } else { Role::Human })?;
        if self.takeover {
            ask(&mut bus, &Take)?;
        }
        for request in requests {
            let key = Key::Typed(Typing { confirm: true, ..request });
            loop {
                match ask(&mut bus, &key) {
                    Ok(_) => break,
                    Err(failure) if failure.message().contains("is not reading") => {
                        bus.next(Some(RETRY))?;
                    }
                    Err(failure) => return Err(failure),
                }
            }
        }
        Ok(())
    }
}

/// What to do about a command line with at most a session: the first argument always names one, so
/// that a forgotten argument is never typed into a program.
pub(crate) fn nothing_to_send(session: Option<&str>, what: &str, command: &str) -> Failure {
    let (name, given) = (session.unwrap_or("SESSION"), session.map(|given| format!(" -- {given}")));
    let placeholder = what.to_uppercase();
    let whole = given.unwrap_or_else(|| format!(" -- {placeholder}"));
    Failure::usage(format!(
        "no {what} to send: tapdeck {command} {name} {placeholder}, or tapdeck {command}{whole} for the \
         only session"
    ))
}
