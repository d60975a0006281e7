//! How a client of the bus comes to a session: who it says it is, what that is granted, and the name that it gets.

use serde_json::{Value, json};
use tapdeck_core::{Right, Role};

use super::asked::well_formed;
use super::auth::{parse_role, role_name};
use super::client::{Client, Kind, MAX_AGREED};
use super::hub::Hub;
use crate::wire::fields;

/// Names are cut to this many characters.
const NAME: usize = 64;

impl Hub {
    /// `HELLO {role, name, token, max_frame, watch}`
    pub(super) fn hello(&mut self, client: &mut Client, payload: &str) {
        let request = match payload.trim() {
            "" => json!({}),
            text => match serde_json::from_str(text) {
                Ok(value @ Value::Object(_)) => value,
                _ => return drop_with(client, "HELLO takes a JSON object"),
            },
        };
        if let Err(why) = well_formed(&request) {
            return drop_with(client, &why);
        }
        let asked = match request.get("role") {
            None | Some(Value::Null) => Role::Observer,
            Some(role) => match role.as_str().and_then(parse_role) {
                Some(role) => role,
                None => {
                    let role = fields::short(role);
                    return drop_with(client, &format!("a role is human, bot or observer, and not {role}"));
                }
            },
        };
        let token = match request.get("token") {
            None | Some(Value::Null) => None,
            Some(Value::String(token)) => Some(token.as_str()),
            Some(_) => return drop_with(client, "the token is wrong"),
        };
        let authority = match client.grants.authority(asked, token) {
            Ok(authority) => authority,
            Err(why) => return drop_with(client, why),
        };
        if let Some(max) = request.get("max_frame").and_then(Value::as_u64)
            && let Kind::Bus(bus) = &mut client.kind
        {
            bus.max_frame = usize::try_from(max).unwrap_or(MAX_AGREED).clamp(1024, MAX_AGREED);
        }
        client.known = true;
        if let Some(party) = client.party.take() {
            self.handle.leave(party);
        }
        client.authority = authority;
        self.join(client, request.get("name").and_then(Value::as_str).unwrap_or("anonymous"));
        let watches = request.get("watch").and_then(Value::as_bool).unwrap_or(false);
        if let Some(party) = client.party.filter(|_| authority.grants(Right::Drive) && !watches) {
            // The first to come drives; later ones wait.
            let _ = self.handle.claim(party);
        }
        let driver = self.handle.holder().ok().flatten();
        let role = role_name(authority.role());
        client
            .say("OK", &json!({"name": client.name, "driver": driver.as_deref(), "role": role, "ids": true}));
    }

    /// Puts a client at the session's table, under a name that nobody else has.
    pub(super) fn join(&mut self, client: &mut Client, name: &str) {
        let name: String = name.chars().filter(|c| !c.is_control()).take(NAME).collect();
        match self.handle.join_named(&name, client.authority.role()) {
            Ok((party, name)) => (client.party, client.name) = (Some(party), name.to_string()),
            Err(_) => client.name = name,
        }
    }
}

/// Refuses a client, and ends the connection.
pub(super) fn drop_with(client: &mut Client, why: &str) {
    client.say("DENIED", &json!({"error": why}));
    client.closing = true;
}
