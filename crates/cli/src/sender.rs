//! Sends keys and text to a session.

use std::time::Duration;

use clap::Args;
use tapdeck_proto::bus::{Key, Role, Take, Typing};

use crate::failure::Result;
use crate::sessions::{ask, connect, find};

/// The time between two attempts to type to a program that does not read.
const RETRY: Duration = Duration::from_millis(20);

/// The party that types.
#[derive(Args)]
pub(crate) struct SenderArgs {
    /// Take the stick if another client drives
    #[arg(long, alias = "take")]
    pub(crate) takeover: bool,
    /// As a program, which never takes the stick from a person
    #[arg(long)]
    pub(crate) bot: bool,
}

impl SenderArgs {
    /// Sends one `KEY` request to a session.
    pub(crate) fn send(&self, session: &str, typing: Typing) -> Result<()> {
        self.send_all(session, std::iter::once(typing))
    }

    /// Sends `KEY` requests to a session, in order. Waits for a program that is slow to read.
    pub(crate) fn send_all(&self, session: &str, requests: impl Iterator<Item = Typing>) -> Result<()> {
        let listing = find(Some(session))?;
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
