//! The session's own door: makes a client's authority from its token, or from the door's policy for
//! clients without one. What a client says of itself can only lower it.

use std::io;
use std::path::Path;

use tapdeck_core::{Authority, Need, PartyId, Right, Role};
use tapdeck_proto::bus;

use super::client::Client;
use super::session::LiveSession;

/// A token file may be this long, and hold this many tokens.
const FILE_LIMIT: u64 = 64 * 1024;

/// A token, and the highest role that it grants.
#[derive(Clone, PartialEq, Eq)]
struct Grant {
    token: String,
    up_to: Role,
}

/// What a door grants to its clients.
#[derive(Clone, Default)]
pub struct Grants {
    grants: Vec<Grant>,
    /// Every client needs a token.
    required: bool,
}

impl std::fmt::Debug for Grants {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Tokens are in no log.
        write!(f, "Grants({} tokens, required: {})", self.grants.len(), self.required)
    }
}

impl Grants {
    /// Creates the policy of the user's own socket: a client without a token is a program, a client
    /// with the human token is a person.
    pub fn own(human_token: &str) -> Self {
        Self { grants: vec![Grant { token: human_token.to_owned(), up_to: Role::Human }], required: false }
    }

    /// Creates the policy of a door at which every client shows a token. Each line of the file is a
    /// token, or `human`, `bot` or `observer` and a token. A bare token counts as `human`.
    pub fn from_file(path: &Path) -> io::Result<Self> {
        let wrong = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        if std::fs::metadata(path)?.len() > FILE_LIMIT {
            return Err(wrong(format!("{} is too long to be a token file", path.display())));
        }
        let text = std::fs::read_to_string(path)?;
        let mut grants = Vec::new();
        for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
            let (up_to, token) = match line.split_once(char::is_whitespace) {
                None => (Role::Human, line),
                Some((role, token)) => {
                    let role = parse_role(role).ok_or_else(|| {
                        wrong(format!(
                            "{}: a line is a token, or `human`, `bot` or `observer` and a token",
                            path.display()
                        ))
                    })?;
                    (role, token.trim())
                }
            };
            grants.push(Grant { token: token.to_owned(), up_to });
        }
        if grants.is_empty() {
            return Err(wrong(format!("{} holds no token", path.display())));
        }
        Ok(Self { grants, required: true })
    }

    /// Returns whether every client needs a token.
    pub(crate) fn is_required(&self) -> bool {
        self.required
    }

    /// Makes the authority of a client that asks for a role and shows a token or none.
    ///
    /// # Errors
    /// When the token is wrong, or missing where one is needed.
    pub(crate) fn authority(&self, asked: Role, token: Option<&str>) -> Result<Authority, &'static str> {
        let Some(token) = token else {
            if self.required {
                return Err("a token is needed");
            }
            // Only a token makes a client a person.
            return Ok(Authority::of(Role::Bot).limited_to(asked));
        };
        let mut granted = None;
        // All are compared, so that the time does not tell which one matched.
        for grant in &self.grants {
            if same(grant.token.as_bytes(), token.as_bytes()) {
                granted = Some(Authority::of(grant.up_to));
            }
        }
        Ok(granted.ok_or("the token is wrong")?.limited_to(asked))
    }
}

impl LiveSession {
    /// Checks a request of a client against its authority: the only place at a session that does.
    pub(super) fn allows(&self, client: &Client, need: Need) -> bool {
        // Only the driver thread knows the holder: ask it where that matters.
        let matters = match need {
            Need::Hold => true,
            Need::Command => !client.authority.grants(Right::Administer),
            _ => false,
        };
        let holds = matters && client.party.is_some_and(|party| self.access.driver().holds(party));
        client.authority.check(need, holds, self.clock.now().wall).is_ok()
    }

    /// Returns the party as which a client drives, if it may.
    pub(super) fn driving_party(&self, client: &Client) -> Option<PartyId> {
        client.party.filter(|_| self.allows(client, Need::Drive))
    }
}

/// Returns the role with this name, in any spelling that clients use.
fn parse_role(name: &str) -> Option<Role> {
    bus::Role::from_name(name).map(role_of)
}

/// Returns the session's word for a role of the bus.
pub(crate) fn role_of(role: bus::Role) -> Role {
    match role {
        bus::Role::Human => Role::Human,
        bus::Role::Bot => Role::Bot,
        bus::Role::Observer => Role::Observer,
    }
}

/// Returns the bus's word for a role.
pub(crate) fn role_on_bus(role: Role) -> bus::Role {
    match role {
        Role::Human => bus::Role::Human,
        Role::Bot => bus::Role::Bot,
        Role::Observer => bus::Role::Observer,
    }
}

/// Compares in a time that depends on the lengths alone.
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    let differs = a.iter().zip(b).fold(0, |acc, (x, y)| acc | (x ^ y));
    a.len() == b.len() && std::hint::black_box(differs) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_granted_and_never_self_declared() {
        let own = Grants::own("secret");
        let role = |grants: &Grants, asked, token| grants.authority(asked, token).map(|a| a.role());
        assert_eq!(role(&own, Role::Human, None), Ok(Role::Bot));
        assert_eq!(role(&own, Role::Human, Some("secret")), Ok(Role::Human));
        assert_eq!(role(&own, Role::Observer, Some("secret")), Ok(Role::Observer));
        for wrong in ["", "secre", "secret2", "Secret"] {
            assert!(role(&own, Role::Observer, Some(wrong)).is_err(), "{wrong:?}");
        }
        let temp = tempfile::tempdir().expect("temp");
        let file = temp.path().join("tokens");
        std::fs::write(&file, "# people\nhuman h1\nbot b1\nobserver o1\nbare\n").expect("write");
        let grants = Grants::from_file(&file).expect("read");
        let cases = [
            (Role::Human, Some("h1"), Ok(Role::Human)),
            (Role::Human, Some("b1"), Ok(Role::Bot)),
            (Role::Bot, Some("o1"), Ok(Role::Observer)),
            (Role::Human, Some("bare"), Ok(Role::Human)),
            (Role::Observer, None, Err("a token is needed")),
            (Role::Observer, Some("human h1"), Err("the token is wrong")),
        ];
        for (asked, token, granted) in cases {
            assert_eq!(role(&grants, asked, token), granted, "{asked:?} {token:?}");
        }
        std::fs::write(&file, "\n").expect("write");
        assert!(Grants::from_file(&file).is_err(), "no token at all");
    }
}
