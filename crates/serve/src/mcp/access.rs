//! What a client may do, and which sessions it sees.

use std::future::Future;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;

use tapdeck_host::registry::Listing;

use crate::NewSession;

/// What a client may do, from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Allow {
    /// Read screens, turns and recordings.
    #[default]
    Read,
    /// Drive sessions, too: type, answer, take the stick.
    Drive,
    /// Start and end sessions, too.
    Open,
}

/// A word that is no [`Allow`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected read, drive or open")]
pub struct UnknownAllow;

impl Allow {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Drive => "drive",
            Self::Open => "open",
        }
    }
}

impl std::fmt::Display for Allow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Allow {
    type Err = UnknownAllow;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        [Self::Read, Self::Drive, Self::Open].into_iter().find(|a| a.name() == name).ok_or(UnknownAllow)
    }
}

/// A pattern of session names, in which `*` stands for any text and `?` for one character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPattern(Vec<char>);

impl From<&str> for SessionPattern {
    fn from(text: &str) -> Self {
        Self(text.chars().collect())
    }
}

impl SessionPattern {
    /// Returns whether a session's id or name matches.
    pub(super) fn fits(&self, listing: &Listing) -> bool {
        self.is_match(&listing.id) || listing.name.as_deref().is_some_and(|name| self.is_match(name))
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        let (pattern, text) = (&self.0, text.chars().collect::<Vec<_>>());
        let (mut p, mut t) = (0, 0);
        // Where the last star stands, and how much of the text it has taken so far.
        let mut star: Option<(usize, usize)> = None;
        while t < text.len() {
            match pattern.get(p) {
                Some('*') => {
                    star = Some((p, t));
                    p += 1;
                }
                Some(c) if *c == '?' || *c == text[t] => (p, t) = (p + 1, t + 1),
                _ => {
                    let Some((at, taken)) = star else { return false };
                    star = Some((at, taken + 1));
                    (p, t) = (at + 1, taken + 1);
                }
            }
        }
        pattern[p..].iter().all(|c| *c == '*')
    }
}

/// A future that a trait object can return.
pub(crate) type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What a client of the page may do, by its credential.
#[derive(Clone)]
pub(crate) struct Access {
    /// The credential, which tells its holder from others.
    pub(crate) key: String,
    /// The most that the credential allows.
    pub(crate) allow: Allow,
    /// Returns when the credential is no longer valid.
    pub(crate) revoked: Arc<dyn Fn() -> Boxed<()> + Send + Sync>,
    /// Starts a session.
    pub(crate) start: Arc<dyn Fn(NewSession) -> Boxed<Result<String, String>> + Send + Sync>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        let cases = [
            ("build", "build", true),
            ("build", "build2", false),
            ("build*", "build2", true),
            ("*", "", true),
            ("a*b*c", "a-x-b-y-c", true),
            ("a*b*c", "a-x-b-y-d", false),
            ("?", "é", true),
            ("?", "", false),
            ("**x", "aax", true),
            ("", "", true),
            ("", "x", false),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(SessionPattern::from(pattern).is_match(text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn each_level_includes_the_one_before() {
        assert!(Allow::Read < Allow::Drive && Allow::Drive < Allow::Open);
        assert_eq!("drive".parse(), Ok(Allow::Drive));
        assert_eq!("all".parse::<Allow>(), Err(UnknownAllow));
    }
}
