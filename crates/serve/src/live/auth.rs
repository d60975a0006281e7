//! The session's own door: makes a client's authority from its token, or from the door's policy for
//! clients without one. What a client says of itself can only lower it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tapdeck_core::{Authority, Group, Need, PartyId, Right, Role};
use tapdeck_proto::bus;

use super::client::Client;
use super::session::LiveSession;

/// A token file may be this long.
const FILE_LIMIT: u64 = 64 * 1024;
/// A shorter token can be guessed.
const SHORTEST: usize = 16;

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
    ///
    /// # Errors
    /// When the file cannot be read, other users can read it, or a line is no token that is worth
    /// its name.
    pub fn from_file(path: &Path) -> io::Result<Self> {
        let wrong = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        let about = std::fs::metadata(path)?;
        if about.len() > FILE_LIMIT {
            return Err(wrong("too long to be a token file".to_owned()));
        }
        // What the shell makes of `<(…)` is no file of its own, and has no mode to speak of.
        if about.is_file() && about.mode() & 0o077 != 0 {
            return Err(wrong(format!("other users can read it; run chmod 600 {}", path.display())));
        }
        let text = std::fs::read_to_string(path)?;
        let mut grants = Vec::new();
        for (number, line) in (1..).zip(text.lines().map(str::trim)) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |what: &str| wrong(format!("line {number}: {what}"));
            let (up_to, token) = match line.split_once(char::is_whitespace) {
                None if parse_role(line).is_some() => return Err(wrong("a role without a token")),
                None => (Role::Human, line),
                Some((role, token)) => {
                    let role = parse_role(role);
                    (
                        role.ok_or_else(|| wrong("expected a token, or human, bot or observer and a token"))?,
                        token,
                    )
                }
            };
            let token = token.trim();
            if token.len() < SHORTEST {
                let why = format!("a token of less than {SHORTEST} characters can be guessed");
                return Err(wrong(&why));
            }
            grants.push(Grant { token: token.to_owned(), up_to });
        }
        if grants.is_empty() {
            return Err(wrong("there is no token in it".to_owned()));
        }
        Ok(Self { grants, required: true })
    }

    /// Returns whether every client needs a token.
    pub(crate) fn is_required(&self) -> bool {
        self.required
    }

    /// Returns the group of the people who show a token: at the user's own socket, the user.
    pub(crate) fn group(&self, token: &str) -> Group {
        if !self.required {
            return Group::OWNER;
        }
        let mut hasher = DefaultHasher::new();
        token.hash(&mut hasher);
        // Not that of the owner.
        Group(hasher.finish() | 1)
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
    use std::os::unix::fs::PermissionsExt;

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
        let mode = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode));
        let [h1, b1, o1, bare] = ["h1", "b1", "o1", "bare"].map(|name| name.repeat(8));
        std::fs::write(&file, format!("# people\nhuman {h1}\nbot  {b1} \nobserver {o1}\n{bare}\n"))
            .expect("write");
        mode(0o600).expect("a mode");
        let grants = Grants::from_file(&file).expect("read");
        let cases = [
            (Role::Human, Some(&*h1), Ok(Role::Human)),
            (Role::Human, Some(&b1), Ok(Role::Bot)),
            (Role::Bot, Some(&o1), Ok(Role::Observer)),
            (Role::Human, Some(&bare), Ok(Role::Human)),
            (Role::Observer, None, Err("a token is needed")),
            (Role::Observer, Some("human"), Err("the token is wrong")),
        ];
        for (asked, token, granted) in cases {
            assert_eq!(role(&grants, asked, token), granted, "{asked:?} {token:?}");
        }
        for (text, want) in [
            ("\n".to_owned(), "there is no token in it"),
            (format!("{h1}\nhuman \n"), "line 2: a role without a token"),
            ("human a\n".to_owned(), "line 1: a token of less than 16 characters"),
            ("a\n".to_owned(), "line 1: a token of less than 16 characters"),
            (format!("king {h1}\n"), "line 1: expected a token, or human"),
        ] {
            std::fs::write(&file, &text).expect("write");
            let said = Grants::from_file(&file).expect_err(&text).to_string();
            assert!(said.contains(want), "{text:?}: {said}");
        }
        std::fs::write(&file, h1).expect("write");
        mode(0o644).expect("a mode");
        assert!(Grants::from_file(&file).is_err_and(|e| e.to_string().contains("chmod 600")));
    }
}
