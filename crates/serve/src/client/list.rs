//! The live sessions of this user, and what each says of itself.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tapdeck_host::registry::{self, Listing};

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

/// A connection to a session's bus as the session's owner, under this name and role.
pub fn connect_to(listing: &Listing, name: &str, role: &str) -> Result<Bus, ClientError> {
    let mut bus = Bus::connect(&Address::Unix(listing.socket.clone()))?;
    bus.hello(&Hello { role, name, token: Some(&listing.human_token) }, ANSWER)?;
    Ok(bus)
}

/// What a session says of itself; one that does not answer is described by what is known of it. The one who asks goes by
/// this name, and is not counted.
pub fn describe(listing: &Listing, asker: &str) -> Value {
    let mut info = connect_to(listing, asker, "observer")
        .and_then(|mut bus| bus.ask("INFO", "brief", ANSWER))
        .map_or_else(|e| json!({"state": "silent", "error": e.to_string()}), |frame| frame.json());
    if let Some(clients) = info.get_mut("clients").and_then(Value::as_array_mut)
        && let Some(own) =
            clients.iter().rposition(|c| c["name"].as_str().is_some_and(|n| n.starts_with(asker)))
    {
        clients.remove(own);
    }
    let fixed = json!({
        "id": listing.id,
        "name": listing.name,
        "command": listing.command,
        "cwd": listing.cwd,
        "host_pid": listing.pid,
        "started_ns": listing.started_ns,
        "detached": listing.detached,
        "socket": listing.socket.to_string_lossy(),
        "buses": listing.buses,
    });
    if let (Some(info), Value::Object(fixed)) = (info.as_object_mut(), fixed) {
        info.extend(fixed);
    }
    info
}
