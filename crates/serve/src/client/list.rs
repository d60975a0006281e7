//! The live sessions of this user, and what each says of itself.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tapdeck_core::WallTime;
use tapdeck_host::registry::{self, Listing};
use tapdeck_proto::bus::{About, InfoWanted, Role, Status};

use super::{Bus, ClientError, Hello};
use crate::door::{self, Address};

/// How long a session may take to answer a question.
pub const ANSWER: Duration = Duration::from_secs(10);

/// All live sessions, and the folder that they are in; those of killed processes are cleared away.
pub fn alive() -> io::Result<(PathBuf, Vec<Listing>)> {
    let folder = registry::folder()?;
    let mut found = registry::listed(&folder)?;
    found.retain(|listing| {
        let alive = registry::is_alive(listing.pid);
        if !alive {
            registry::clear(&folder, listing);
        }
        alive
    });
    door::sweep(&folder);
    Ok((folder, found))
}

/// So many sessions are named in a sentence.
const SHOWN: usize = 10;

/// A session that was not found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// An empty name.
    #[error("an empty name is no session's")]
    Empty,
    /// There is no session at all.
    #[error("there is no live session")]
    NoSession,
    /// None is called that.
    #[error("no live session is called {which:?}: there is {}", named(sessions))]
    Unknown {
        /// What was looked for.
        which: String,
        /// What there is, each by its id and its name.
        sessions: Vec<String>,
    },
    /// It may be one of several.
    #[error("{}: {}", several(which.as_deref()), named(sessions))]
    Several {
        /// What was looked for, if anything was said.
        which: Option<String>,
        /// Those that it may be.
        sessions: Vec<String>,
    },
    /// They could not be listed.
    #[error("cannot list sessions: {0}")]
    List(#[from] io::Error),
}

fn named(sessions: &[String]) -> String {
    match sessions.len() {
        0 => "none".to_owned(),
        n if n > SHOWN => format!("{} and {} more", sessions[..SHOWN].join(", "), n - SHOWN),
        _ => sessions.join(", "),
    }
}

fn several(which: Option<&str>) -> String {
    match which {
        Some(which) => format!("{which:?} fits several sessions"),
        None => "say which session is meant".to_owned(),
    }
}

/// Finds the session with this id or name, or the only one whose id or name begins so. Without a
/// word, finds the only session whose program has not ended, or the only session there is.
pub fn find(which: Option<&str>) -> Result<Listing, FindError> {
    if which.is_some_and(str::is_empty) {
        return Err(FindError::Empty);
    }
    pick(alive()?.1, which, has_ended)
}

/// Tells for each session whether its program has ended. One that does not answer counts as live.
pub(crate) fn has_ended(sessions: &[Listing]) -> Vec<bool> {
    let said = describe_all(sessions, "finder");
    said.iter().map(|described| described.status().is_some_and(|status| status.done)).collect()
}

/// Picks a session from a list, as [`find`] does. The programs are asked only where that decides.
pub(crate) fn pick(
    mut found: Vec<Listing>,
    which: Option<&str>,
    has_ended: impl Fn(&[Listing]) -> Vec<bool>,
) -> Result<Listing, FindError> {
    let shown = |l: &Listing| match &l.name {
        Some(name) => format!("{} ({name})", l.id),
        None => l.id.clone(),
    };
    let Some(which) = which else {
        return match found.len() {
            0 => Err(FindError::NoSession),
            1 => Ok(found.remove(0)),
            _ => {
                let ended = has_ended(&found);
                let mut found: Vec<(Listing, bool)> = found.into_iter().zip(ended).collect();
                found.sort_by_key(|(_, ended)| *ended);
                match found.iter().filter(|(_, ended)| !ended).count() {
                    1 => Ok(found.swap_remove(0).0),
                    _ => {
                        let sessions = found.iter().map(|(listing, _)| shown(listing)).collect();
                        Err(FindError::Several { which: None, sessions })
                    }
                }
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
                let sessions = many.iter().map(|i| shown(&found[*i])).collect();
                return Err(FindError::Several { which: Some(which.to_owned()), sessions });
            }
        }
    }
    Err(FindError::Unknown { which: which.to_owned(), sessions: found.iter().map(shown).collect() })
}

/// Returns what a session says about itself, as its entry in the list has it.
pub fn about(listing: &Listing) -> About {
    About {
        id: listing.id.clone(),
        name: listing.name.clone(),
        command: listing.command.clone(),
        cwd: listing.cwd.clone(),
        detached: listing.detached,
    }
}

/// How long it may take where it is only to be listed.
const LISTED: Duration = Duration::from_secs(3);

/// A connection to a session's bus as the session's owner, under this name and role.
pub fn connect_to(listing: &Listing, name: &str, role: Role) -> Result<Bus, ClientError> {
    connect_within(listing, name, role, ANSWER)
}

/// A connection as [`connect_to`] makes it, without claiming the stick.
pub fn connect_to_watch(listing: &Listing, name: &str, role: Role) -> Result<Bus, ClientError> {
    let mut bus = Bus::connect(&Address::Unix(listing.socket.clone()))?;
    bus.hello_to_watch(&Hello { role, name, token: Some(&listing.human_token) }, ANSWER)?;
    Ok(bus)
}

/// A connection as [`connect_to`] makes it, given up after this long.
pub fn connect_within(
    listing: &Listing,
    name: &str,
    role: Role,
    within: Duration,
) -> Result<Bus, ClientError> {
    let mut bus = Bus::connect(&Address::Unix(listing.socket.clone()))?;
    bus.hello(&Hello { role, name, token: Some(&listing.human_token) }, within)?;
    Ok(bus)
}

/// So many sessions are asked at a time.
const AT_ONCE: usize = 16;

/// Returns the sessions' descriptions of themselves, in their order. A session
/// that does not answer holds up no other.
pub fn describe_all(listings: &[Listing], asker: &str) -> Vec<Described> {
    let next = AtomicUsize::new(0);
    let answers: Vec<Mutex<Option<Described>>> = listings.iter().map(|_| Mutex::default()).collect();
    std::thread::scope(|scope| {
        for _ in 0..listings.len().min(AT_ONCE) {
            scope.spawn(|| {
                while let Some(n) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|n| *n < listings.len())
                {
                    *answers[n].lock().unwrap_or_else(PoisonError::into_inner) =
                        Some(describe(&listings[n], asker));
                }
            });
        }
    });
    answers.into_iter().filter_map(|a| a.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

/// A live session, and what it says of itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Described {
    /// What it is.
    #[serde(flatten)]
    pub about: About,
    /// What it says of itself, or why it does not.
    #[serde(flatten)]
    pub said: Said,
    /// The process that serves it.
    pub(crate) host_pid: u32,
    /// When it began.
    #[serde(rename = "started_ns", with = "tapdeck_tape::nanos")]
    pub(crate) started: WallTime,
    /// Its socket.
    pub(crate) socket: String,
    /// Other addresses of its bus.
    pub(crate) buses: Vec<String>,
}

/// What a session says of itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Said {
    /// Its answer.
    Status(Box<Status>),
    /// It did not answer.
    Silent {
        /// `silent`.
        state: &'static str,
        /// Why not.
        error: String,
    },
}

impl Described {
    /// Returns the session's answer, if it gave one.
    pub fn status(&self) -> Option<&Status> {
        match &self.said {
            Said::Status(status) => Some(status),
            Said::Silent { .. } => None,
        }
    }
}

/// Asks a session to describe itself. The client that asks goes by the name `asker`, and is not
/// counted.
fn describe(listing: &Listing, asker: &str) -> Described {
    let info = connect_within(listing, asker, Role::Observer, LISTED)
        .and_then(|mut bus| bus.request(&InfoWanted::Brief, LISTED));
    let said = match info {
        Ok(info) => {
            let mut status = info.status;
            if let Some(own) = status.clients.iter().rposition(|c| c.name.starts_with(asker)) {
                status.clients.remove(own);
            }
            Said::Status(Box::new(status))
        }
        Err(e) => Said::Silent { state: "silent", error: e.to_string() },
    };
    Described {
        about: about(listing),
        said,
        host_pid: listing.pid,
        started: listing.started,
        socket: listing.socket.to_string_lossy().into_owned(),
        buses: listing.buses.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(id: &str, name: Option<&str>) -> Listing {
        let (id, name) = (id.to_owned(), name.map(str::to_owned));
        Listing {
            id,
            name,
            pid: 1,
            socket: PathBuf::new(),
            buses: Vec::new(),
            command: Vec::new(),
            cwd: String::new(),
            started: WallTime::ZERO,
            detached: true,
            recording: None,
            human_token: String::new(),
        }
    }

    fn none_ended(sessions: &[Listing]) -> Vec<bool> {
        vec![false; sessions.len()]
    }

    /// A session that had ended made a command without a name ask which session is meant.
    #[test]
    fn without_a_name_only_live_sessions_count() {
        let ended = |sessions: &[Listing]| sessions.iter().map(|s| s.id.starts_with("end")).collect();
        let picked = |ids: &[&str]| {
            let sessions = ids.iter().map(|id| session(id, None)).collect();
            pick(sessions, None, ended).map_or_else(|e| e.to_string(), |l| l.id)
        };
        assert_eq!(picked(&["end1", "live", "end2"]), "live");
        assert_eq!(picked(&["end1"]), "end1", "its last screen can be looked at");
        assert_eq!(picked(&["end1", "end2"]), "say which session is meant: end1, end2");
        assert_eq!(picked(&["end1", "b", "a"]), "say which session is meant: b, a, end1");
        let many: Vec<String> = (0..13).map(|n| format!("s{n}")).collect();
        let many: Vec<&str> = ["end1"].into_iter().chain(many.iter().map(String::as_str)).collect();
        assert_eq!(
            picked(&many),
            "say which session is meant: s0, s1, s2, s3, s4, s5, s6, s7, s8, s9 and 4 more"
        );
    }

    #[test]
    fn a_session_is_meant_by_its_id_its_name_or_the_beginning_of_one() {
        let all =
            || vec![session("abc1", Some("work")), session("abd2", Some("workshop")), session("work", None)];
        let cases = [
            (Some("abc1"), "abc1"),
            (Some("workshop"), "abd2"),
            // An id before a name, a name before the beginning of another.
            (Some("work"), "work"),
            (Some("abd"), "abd2"),
            (Some("ab"), "\"ab\" fits several sessions: abc1 (work), abd2 (workshop)"),
            (None, "say which session is meant: abc1 (work), abd2 (workshop), work"),
            (Some("x"), "no live session is called \"x\": there is abc1 (work), abd2 (workshop), work"),
        ];
        for (which, expected) in cases {
            let found = pick(all(), which, none_ended).map_or_else(|e| e.to_string(), |l| l.id);
            assert_eq!(found, expected, "{which:?}");
        }
        assert_eq!(pick(vec![session("one", None)], None, none_ended).expect("the only one").id, "one");
        assert_eq!(
            pick(Vec::new(), Some("x"), none_ended).expect_err("none").to_string(),
            "no live session is called \"x\": there is none"
        );
    }
}
