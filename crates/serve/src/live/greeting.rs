//! How a client of the bus introduces itself: the authority that it gets, and its name.

use tapdeck_core::Right;
use tapdeck_proto::bus::{Denied, Hello, MAX_AGREED, Welcome};
use tapdeck_term::is_unsafe;

use super::auth::{role_of, role_on_bus};
use super::client::Client;
use super::session::LiveSession;

/// Names are cut to this many characters.
const NAME: usize = 64;

impl LiveSession {
    /// Answers `HELLO`. A refusal ends the connection.
    pub(super) fn hello(&mut self, client: &mut Client, asked: &Hello) -> Result<Welcome, Denied> {
        let authority = client.show(role_of(asked.role), asked.token.as_deref()).map_err(Denied::because)?;
        if let (Some(max), Some(bus)) = (asked.max_frame, client.bus()) {
            bus.max_frame = usize::try_from(max).unwrap_or(MAX_AGREED).clamp(1024, MAX_AGREED);
        }
        client.known = true;
        if let Some(party) = client.party.take() {
            self.access.driver().leave(party);
        }
        client.authority = authority;
        self.join(client, asked.name.as_deref().unwrap_or("anonymous"));
        if let Some(party) = client.party.filter(|_| authority.grants(Right::Drive) && !asked.watch) {
            // The first client drives. A later one is told the holder's name below.
            let _ = self.access.driver().claim(party);
        }
        let driver = self.access.holder();
        Ok(Welcome { name: client.name.clone(), driver, role: role_on_bus(authority.role()), ids: true })
    }

    /// Registers a client with the session, under a name that no other client has.
    pub(super) fn join(&mut self, client: &mut Client, name: &str) {
        let name: String = name.chars().filter(|c| !is_unsafe(*c)).take(NAME).collect();
        match self.access.driver().join_named(&name, client.authority.role()) {
            Ok((party, name)) => (client.party, client.name) = (Some(party), name.to_string()),
            Err(_) => client.name = name,
        }
    }
}
