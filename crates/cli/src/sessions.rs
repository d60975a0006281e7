//! Finding live sessions and talking to them, for all commands about sessions.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use rustix::time::Timespec;
use tapdeck_core::Time;
use tapdeck_host::registry::Listing;
use tapdeck_host::{Clock, processes};
use tapdeck_proto::bus::{Ask, Role};
pub(crate) use tapdeck_serve::client::ANSWER;
use tapdeck_serve::client::{self, Bus};

use crate::failure::{Failure, Result};
use crate::snapshot_door::SESSION_VAR;

/// The session that a command is about.
#[derive(Args)]
pub(crate) struct Which {
    /// Id or name of a live session, or a unique prefix [default: the only session]
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
}

/// Lists the live sessions, and removes the entries of killed processes.
pub(crate) fn alive() -> Result<(PathBuf, Vec<Listing>)> {
    client::alive().map_err(|e| Failure::io(format!("cannot list sessions: {e}")))
}

/// Finds the session of this id or name; without one, the only session there is.
pub(crate) fn find(which: Option<&str>) -> Result<Listing> {
    Ok(client::find(which)?)
}

/// How long a session that has just been started may take to be listed, and how often to look.
const LISTED: Duration = Duration::from_secs(1);
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// The id of the session that this command runs in: the innermost one whose terminal it is on.
pub(crate) fn around() -> Option<String> {
    if let Ok(exported) = std::env::var(SESSION_VAR) {
        return Some(exported);
    }
    let program = |pid: &str| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let own = program("self")?;
    let mut hosts = processes::terminals_above(std::process::id());
    hosts.retain(|pid| program(&pid.to_string()).as_ref() == Some(&own));
    let clock = Clock::start();
    loop {
        let sessions = alive().ok()?.1;
        let of = |host: &u32| sessions.iter().find(|session| session.pid == *host);
        if let Some(session) = hosts.iter().find_map(of) {
            return Some(session.id.clone());
        }
        // A program may be faster than the list of sessions.
        if hosts.is_empty() || clock.now().mono >= Time::ZERO + LISTED {
            let around = |session: &&Listing| processes::shows_on_terminal_of(session.pid);
            return sessions.iter().find(around).map(|session| session.id.clone());
        }
        // Interrupted, it only looks earlier.
        let _ = rustix::event::poll(&mut [], Some(&LOOK));
    }
}

/// Finds the session of exactly this id or name, if there is one.
pub(crate) fn find_exactly(name: &str) -> Result<Option<Listing>> {
    let is_called = |listing: &Listing| listing.id == name || listing.name.as_deref() == Some(name);
    Ok(alive()?.1.into_iter().find(is_called))
}

/// The id of a live session, or the name as it is: the broker knows sessions of other hosts, too.
pub(crate) fn id_or_name(name: &str) -> String {
    find(Some(name)).map_or_else(|_| name.to_owned(), |listing| listing.id)
}

/// Splits a turn's id, `SESSION:NUMBER`, or returns a session's name as it is.
pub(crate) fn split_turn_id(text: &str) -> (&str, Option<u64>) {
    let parts = text.rsplit_once(':');
    parts.and_then(|(session, number)| Some((session, Some(number.parse().ok()?)))).unwrap_or((text, None))
}

/// Refuses a session that this command runs in: the session would show itself without end.
pub(crate) fn not_within(listing: &Listing) -> Result<()> {
    let exported = std::env::var_os(SESSION_VAR).is_some_and(|own| *own == *listing.id);
    if exported || processes::shows_on_terminal_of(listing.pid) {
        let name = listing.shown();
        return Err(Failure::usage(format!(
            "this runs in session {name}, which would show itself without end: run it in another terminal"
        )));
    }
    Ok(())
}

/// Connects to a session's bus, under this name and role.
pub(crate) fn connect(listing: &Listing, name: &str, role: Role) -> Result<Bus> {
    Ok(client::connect_to(listing, name, role)?)
}

/// Sends one request and returns the reply.
pub(crate) fn ask<A: Ask>(bus: &mut Bus, asked: &A) -> Result<A::Reply> {
    Ok(bus.request(asked, ANSWER)?)
}
