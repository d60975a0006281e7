//! Who may do what: a role is granted by a token or by the door's own policy, never by what a client says of itself.

use std::io;
use std::path::Path;

use tapdeck_core::Role;

/// A token file may be this long, and hold this many tokens.
const FILE_LIMIT: u64 = 64 * 1024;

/// A token, and the most that it grants.
#[derive(Clone, PartialEq, Eq)]
struct Grant {
    token: String,
    up_to: Role,
}

/// What a door grants to those who come through it.
#[derive(Clone, Default)]
pub struct Grants {
    grants: Vec<Grant>,
    /// Nobody gets in without a token.
    required: bool,
}

impl std::fmt::Debug for Grants {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Tokens are in no log.
        write!(f, "Grants({} tokens, required: {})", self.grants.len(), self.required)
    }
}

impl Grants {
    /// A door of the user's own: whoever gets to it may watch and, as a program, drive; with the token, as a person.
    pub fn own(human_token: &str) -> Self {
        Self { grants: vec![Grant { token: human_token.to_owned(), up_to: Role::Human }], required: false }
    }

    /// A door at which everybody shows a token. Each line of the file is a token, or `human`, `bot` or `observer`
    /// and a token; a bare token grants what its bearer asks for.
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

    /// Whether anybody gets in without a token.
    pub(crate) fn is_required(&self) -> bool {
        self.required
    }

    /// The role that a client gets, or why it gets none.
    pub(crate) fn role(&self, asked: Role, token: Option<&str>) -> Result<Role, &'static str> {
        let Some(token) = token else {
            return match (self.required, asked) {
                (true, _) => Err("a token is needed"),
                // A person is a person by a token, not by saying so.
                (false, Role::Human) => Ok(Role::Bot),
                (false, role) => Ok(role),
            };
        };
        let mut found = None;
        // All are compared, so that the time tells nothing.
        for grant in &self.grants {
            if same(grant.token.as_bytes(), token.as_bytes()) {
                found = Some(grant.up_to);
            }
        }
        match (found.ok_or("the token is wrong")?, asked) {
            (Role::Observer, _) | (_, Role::Observer) => Ok(Role::Observer),
            (Role::Bot, _) | (_, Role::Bot) => Ok(Role::Bot),
            (Role::Human, Role::Human) => Ok(Role::Human),
        }
    }
}

/// A role by its name, in the spellings that clients use.
pub(crate) fn parse_role(name: &str) -> Option<Role> {
    match name {
        "human" | "interactive" => Some(Role::Human),
        "bot" | "ai" | "agent" | "controller" => Some(Role::Bot),
        "observer" | "viewer" => Some(Role::Observer),
        _ => None,
    }
}

/// A role's name.
pub(crate) fn role_name(role: Role) -> &'static str {
    match role {
        Role::Human => "human",
        Role::Bot => "bot",
        Role::Observer => "observer",
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
        assert_eq!(own.role(Role::Human, None), Ok(Role::Bot));
        assert_eq!(own.role(Role::Human, Some("secret")), Ok(Role::Human));
        assert_eq!(own.role(Role::Observer, Some("secret")), Ok(Role::Observer));
        for wrong in ["", "secre", "secret2", "Secret"] {
            assert!(own.role(Role::Observer, Some(wrong)).is_err(), "{wrong:?}");
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
            assert_eq!(grants.role(asked, token), granted, "{asked:?} {token:?}");
        }
        std::fs::write(&file, "\n").expect("write");
        assert!(Grants::from_file(&file).is_err(), "no token at all");
    }
}
