//! Tokens of a server: the credentials of clients that come over the network.
//!
//! The file keeps the digest and the public key of a token, never the token. A token is 256 bits of
//! randomness, so a plain digest is as good as a slow one: there is nothing to guess. The file is
//! read anew whenever it has changed, so a revoked token is worth nothing from then on.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tapdeck_core::{Authority, Right, Role, WallTime};
use tapdeck_host::OutFile;
use tapdeck_host::registry::{new_token, private_folder};
use tapdeck_tape::nanos;

use crate::live::same;
use crate::net::proof::{PREFIX, public_key};

/// The longest file that is read.
const FILE_LIMIT: u64 = 4 << 20;
/// The version of the file's format.
const VERSION: u64 = 1;

/// What a token grants, by the words of the command line and the file. Several scopes together are
/// one [`Authority`]: see [`Token::authority`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scope {
    /// Run programs: everything that the server's user can do.
    #[serde(rename = "tty:open")]
    Open,
    /// Join live sessions as a person.
    #[serde(rename = "tty:attach")]
    Attach,
    /// Watch live sessions.
    #[serde(rename = "observe")]
    Observe,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Scope; 3] = [Scope::Open, Scope::Attach, Scope::Observe];
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scope::Open => "tty:open",
            Scope::Attach => "tty:attach",
            Scope::Observe => "observe",
        })
    }
}

/// A word that names no scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("{0:?} is no scope: there are tty:open, tty:attach and observe")]
pub struct UnknownScope(pub String);

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        let known = Scope::ALL.into_iter().find(|scope| scope.to_string() == text);
        known.ok_or_else(|| UnknownScope(text.to_owned()))
    }
}

/// A token as the file keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// A unique name for people.
    pub name: String,
    /// What it grants.
    pub scopes: Vec<Scope>,
    /// The digest of the secret, in hexadecimal.
    #[serde(rename = "sha256")]
    digest: String,
    /// The public key of the secret, in hexadecimal. Tokens of older versions have none.
    #[serde(rename = "ed25519", default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// When it was made.
    #[serde(rename = "created_ns", with = "nanos")]
    pub created: WallTime,
    /// When it expires.
    #[serde(rename = "expires_ns", with = "nanos::option")]
    pub expires: Option<WallTime>,
}

impl Token {
    /// Returns what the token lets its bearer do, and until when.
    pub fn authority(&self) -> Authority {
        let has = |scope| self.scopes.contains(&scope);
        let at_sessions = match (has(Scope::Attach), has(Scope::Observe)) {
            (true, _) => Authority::of(Role::Human),
            (false, true) => Authority::of(Role::Observer),
            (false, false) => Authority::none(),
        };
        let all = if has(Scope::Open) { at_sessions.and(Right::Open) } else { at_sessions };
        all.until(self.expires)
    }

    /// Returns whether the token has expired.
    pub fn has_expired(&self, now: WallTime) -> bool {
        self.expires.is_some_and(|at| now >= at)
    }
}

/// The file.
#[derive(Serialize, Deserialize)]
struct TokenFile {
    version: u64,
    tokens: Vec<Token>,
}

/// The part of the file that every version has.
#[derive(Deserialize)]
struct AnyTokenFile {
    version: Option<u64>,
}

/// What a file looked like when it was last read.
type Stamp = (i64, i64, u64, u64);

/// The tokens of a server.
#[derive(Debug)]
pub struct Tokens {
    path: PathBuf,
    read: Mutex<(Option<Stamp>, Vec<Token>)>,
}

impl Tokens {
    /// Uses the tokens in this file, which need not exist yet.
    pub fn at(path: PathBuf) -> Self {
        Self { path, read: Mutex::default() }
    }

    /// Returns where the tokens of this user's servers are.
    pub fn default_path() -> PathBuf {
        tapdeck_host::state_folder().join("serve").join("tokens.json")
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns all tokens, expired ones included.
    ///
    /// # Errors
    /// When the file is there but cannot be read or understood.
    pub fn all(&self) -> io::Result<Vec<Token>> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let meta = match fs::metadata(&self.path) {
            Ok(meta) => meta,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                *read = (None, Vec::new());
                return Ok(Vec::new());
            }
            Err(e) => return Err(e),
        };
        let stamp = (meta.mtime(), meta.mtime_nsec(), meta.ino(), meta.size());
        if read.0 != Some(stamp) {
            *read = (Some(stamp), parse(&self.path)?);
        }
        Ok(read.1.clone())
    }

    /// Returns the token with this secret, unless it has expired.
    pub fn find(&self, secret: &str, now: WallTime) -> Option<Token> {
        let digest = digest(secret);
        let mut found = None;
        // All are compared, so that the time does not tell which one matched.
        for token in self.all().ok()? {
            if same(token.digest.as_bytes(), digest.as_bytes()) {
                found = Some(token);
            }
        }
        found.filter(|token| !token.has_expired(now))
    }

    /// Returns the token with this public key, unless it has expired.
    pub(crate) fn with_key(&self, key: &str, now: WallTime) -> Option<Token> {
        let mut all = self.all().ok()?.into_iter();
        all.find(|token| token.key.as_deref() == Some(key)).filter(|token| !token.has_expired(now))
    }

    /// Returns whether a token is still in the file, unchanged and not expired.
    pub(crate) fn is_good(&self, token: &Token, now: WallTime) -> bool {
        !token.has_expired(now) && self.all().is_ok_and(|all| all.contains(token))
    }

    /// Adds a token. Returns its secret, which is stored nowhere.
    pub fn add(
        &self,
        name: Option<&str>,
        scopes: Vec<Scope>,
        created: WallTime,
        expires: Option<WallTime>,
    ) -> io::Result<(Token, String)> {
        let secret = format!("{PREFIX}{}{}", new_token()?, new_token()?);
        let token = self.change(|all| {
            let name = match name {
                Some(name) if all.iter().any(|t| t.name == name) => {
                    let message = format!("there is a token called {name:?} already");
                    return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
                }
                Some(name) => name.to_owned(),
                None => {
                    let mut numbers = 1u64..;
                    let free = |n: &u64| !all.iter().any(|t| t.name == format!("token-{n}"));
                    format!("token-{}", numbers.find(free).unwrap_or_default())
                }
            };
            let token =
                Token { name, scopes, digest: digest(&secret), key: public_key(&secret), created, expires };
            all.push(token.clone());
            Ok(token)
        })?;
        Ok((token, secret))
    }

    /// Revokes a token. Returns whether there was one with this name.
    pub fn remove(&self, name: &str) -> io::Result<bool> {
        self.change(|all| {
            let before = all.len();
            all.retain(|t| t.name != name);
            Ok(all.len() < before)
        })
    }

    /// Replaces the file: a reader sees the old one or the new one.
    fn change<T>(&self, change: impl FnOnce(&mut Vec<Token>) -> io::Result<T>) -> io::Result<T> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        private_folder(folder)?;
        let lock = File::open(folder)?;
        flock(&lock, FlockOperation::LockExclusive)?;
        let mut all = self.all()?;
        let result = change(&mut all)?;
        let mut text = serde_json::to_string_pretty(&TokenFile { version: VERSION, tokens: all })?;
        text.push('\n');
        OutFile::replace(&self.path, text.as_bytes())?;
        Ok(result)
    }
}

fn parse(path: &Path) -> io::Result<Vec<Token>> {
    let wrong =
        |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {what}", path.display()));
    let mut text = String::new();
    let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
    let file = File::open(path)?;
    if file.metadata().map_err(named)?.mode() & 0o077 != 0 {
        return Err(wrong(&format!("other users can read or change it; run chmod 600 {}", path.display())));
    }
    file.take(FILE_LIMIT).read_to_string(&mut text).map_err(named)?;
    let malformed = |e: serde_json::Error| wrong(&e.to_string());
    let any: AnyTokenFile = serde_json::from_str(&text).map_err(malformed)?;
    if any.version != Some(VERSION) {
        return Err(wrong("not a list of tokens that this program understands"));
    }
    let file: TokenFile = serde_json::from_str(&text).map_err(malformed)?;
    if file.tokens.iter().any(|token| token.digest.len() != 64) {
        return Err(wrong("a token has no SHA-256 digest"));
    }
    Ok(file.tokens)
}

fn digest(secret: &str) -> String {
    hex(&Sha256::digest(secret.as_bytes()))
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_found_by_their_secret_until_they_expire_or_are_taken_back() {
        let temp = tempfile::tempdir().expect("temp");
        let tokens = Tokens::at(temp.path().join("serve").join("tokens.json"));
        assert_eq!(tokens.all().expect("none yet"), []);
        let (made, secret) = tokens
            .add(Some("ci"), vec![Scope::Open], WallTime::from_nanos(5), Some(WallTime::from_nanos(10)))
            .expect("made");
        let (_, other) = tokens.add(None, vec![Scope::Observe], WallTime::from_nanos(5), None).expect("made");
        assert!(tokens.add(Some("ci"), vec![], WallTime::from_nanos(5), None).is_err(), "the name is taken");
        let elsewhere = Tokens::at(tokens.path().to_owned());
        assert_eq!(elsewhere.find(&secret, WallTime::from_nanos(9)), Some(made.clone()));
        assert_eq!(elsewhere.find(&secret, WallTime::from_nanos(10)), None, "expired");
        assert!(elsewhere.find(&other, WallTime::MAX).expect("for ever").authority().grants(Right::Watch));
        for wrong in ["", "x", &secret[1..], made.digest.as_str()] {
            assert_eq!(elsewhere.find(wrong, WallTime::from_nanos(5)), None, "{wrong}");
        }
        assert!(tokens.remove("ci").expect("gone") && !tokens.remove("ci").expect("gone already"));
        assert!(
            !elsewhere.is_good(&made, WallTime::from_nanos(5))
                && elsewhere.find(&secret, WallTime::from_nanos(5)).is_none()
        );
        let text = fs::read_to_string(tokens.path()).expect("text");
        assert!(!text.contains(&other), "the secret is nowhere");
        assert_eq!(fs::metadata(tokens.path()).expect("there").mode() & 0o777, 0o600);
        fs::write(tokens.path(), "{\"version\": 2}").expect("written");
        assert!(
            elsewhere.all().is_err() && elsewhere.find(&other, WallTime::from_nanos(5)).is_none(),
            "an unreadable file lets no client in"
        );
    }
}
