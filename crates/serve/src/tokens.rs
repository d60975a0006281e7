//! Credentials for those who come over the network: what each lets its bearer do, kept by its digest alone.
//!
//! A token is 256 bits of randomness, so a plain digest is as good as a slow one: there is nothing to guess. The file is
//! read anew whenever it has changed, so that what is taken back is worth nothing from then on.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tapdeck_host::registry::{new_token, private_folder};

use crate::live::same;

/// No sane list of tokens is longer.
const FILE_LIMIT: u64 = 4 << 20;

/// What a token lets its bearer do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Run programs: everything that the server's user can do.
    Open,
    /// Join sessions that run, as a person.
    Attach,
    /// Watch them.
    Observe,
}

impl Scope {
    /// All there are.
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

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Scope::ALL.into_iter().find(|scope| scope.to_string() == text);
        known.ok_or_else(|| format!("{text:?} is no scope: there are tty:open, tty:attach and observe"))
    }
}

/// A token, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// A name for people, unique.
    pub name: String,
    /// What it lets its bearer do.
    pub scopes: Vec<Scope>,
    /// The digest of the secret, in hexadecimal.
    digest: String,
    /// When it was made, in nanoseconds since 1970.
    pub created_ns: u64,
    /// Until when it is good.
    pub expires_ns: Option<u64>,
}

impl Token {
    /// Whether it lets its bearer do this.
    pub fn allows(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }

    /// Whether it is good no longer.
    pub fn has_expired(&self, now_ns: u64) -> bool {
        self.expires_ns.is_some_and(|at| now_ns >= at)
    }

    fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "scopes": self.scopes.iter().map(Scope::to_string).collect::<Vec<_>>(),
            "sha256": self.digest,
            "created_ns": self.created_ns,
            "expires_ns": self.expires_ns,
        })
    }

    fn from_json(value: &Value) -> Option<Self> {
        let scopes = value.get("scopes")?.as_array()?.iter().map(|s| s.as_str()?.parse().ok());
        Some(Self {
            name: value.get("name")?.as_str()?.to_owned(),
            scopes: scopes.collect::<Option<_>>()?,
            digest: value.get("sha256")?.as_str().filter(|d| d.len() == 64)?.to_owned(),
            created_ns: value.get("created_ns")?.as_u64()?,
            expires_ns: match value.get("expires_ns")? {
                Value::Null => None,
                at => Some(at.as_u64()?),
            },
        })
    }
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
    /// The tokens in this file, which need not be there yet.
    pub fn at(path: PathBuf) -> Self {
        Self { path, read: Mutex::default() }
    }

    /// Where the tokens of this user's servers are.
    pub fn default_path() -> PathBuf {
        tapdeck_host::state_folder().join("serve").join("tokens.json")
    }

    /// Where they are.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All tokens, those that have expired included.
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

    /// What this secret lets its bearer do now.
    pub fn find(&self, secret: &str, now_ns: u64) -> Option<Token> {
        let digest = digest(secret);
        let mut found = None;
        // All are compared, so that the time tells nothing.
        for token in self.all().ok()? {
            if same(token.digest.as_bytes(), digest.as_bytes()) {
                found = Some(token);
            }
        }
        found.filter(|token| !token.has_expired(now_ns))
    }

    /// Whether a token is still what it was.
    pub fn is_good(&self, token: &Token, now_ns: u64) -> bool {
        !token.has_expired(now_ns) && self.all().is_ok_and(|all| all.contains(token))
    }

    /// Makes a token; returns the secret, which is kept nowhere.
    pub fn add(
        &self,
        name: Option<&str>,
        scopes: Vec<Scope>,
        created_ns: u64,
        expires_ns: Option<u64>,
    ) -> io::Result<(Token, String)> {
        let secret = format!("{}{}", new_token()?, new_token()?);
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
            let token = Token { name, scopes, digest: digest(&secret), created_ns, expires_ns };
            all.push(token.clone());
            Ok(token)
        })?;
        Ok((token, secret))
    }

    /// Takes a token back; says whether there was one of this name.
    pub fn remove(&self, name: &str) -> io::Result<bool> {
        self.change(|all| {
            let before = all.len();
            all.retain(|t| t.name != name);
            Ok(all.len() < before)
        })
    }

    /// Changes the file: whoever reads it sees the old one or the new one.
    fn change<T>(&self, change: impl FnOnce(&mut Vec<Token>) -> io::Result<T>) -> io::Result<T> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        private_folder(folder)?;
        let lock = File::open(folder)?;
        flock(&lock, FlockOperation::LockExclusive)?;
        let mut all = self.all()?;
        let result = change(&mut all)?;
        let new = self.path.with_extension("new");
        let _ = fs::remove_file(&new);
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        let tokens: Vec<Value> = all.iter().map(Token::to_json).collect();
        file.write_all(format!("{:#}\n", json!({"version": 1, "tokens": tokens})).as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        lock.sync_all()?;
        Ok(result)
    }
}

fn parse(path: &Path) -> io::Result<Vec<Token>> {
    let wrong =
        |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {what}", path.display()));
    let mut text = String::new();
    File::open(path)?.take(FILE_LIMIT).read_to_string(&mut text)?;
    let value: Value = serde_json::from_str(&text).map_err(|e| wrong(&e.to_string()))?;
    if value.get("version") != Some(&json!(1)) {
        return Err(wrong("not a list of tokens that this tapdeck understands"));
    }
    let tokens = value.get("tokens").and_then(Value::as_array).ok_or_else(|| wrong("it has no tokens"))?;
    tokens.iter().map(|t| Token::from_json(t).ok_or_else(|| wrong("a token lacks something"))).collect()
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
        let (made, secret) = tokens.add(Some("ci"), vec![Scope::Open], 5, Some(10)).expect("made");
        let (_, other) = tokens.add(None, vec![Scope::Observe], 5, None).expect("made");
        assert!(tokens.add(Some("ci"), vec![], 5, None).is_err(), "the name is taken");
        let elsewhere = Tokens::at(tokens.path().to_owned());
        assert_eq!(elsewhere.find(&secret, 9), Some(made.clone()));
        assert_eq!(elsewhere.find(&secret, 10), None, "expired");
        assert!(elsewhere.find(&other, u64::MAX).expect("for ever").allows(Scope::Observe));
        for wrong in ["", "x", &secret[1..], made.digest.as_str()] {
            assert_eq!(elsewhere.find(wrong, 5), None, "{wrong}");
        }
        assert!(tokens.remove("ci").expect("gone") && !tokens.remove("ci").expect("gone already"));
        assert!(!elsewhere.is_good(&made, 5) && elsewhere.find(&secret, 5).is_none());
        let text = fs::read_to_string(tokens.path()).expect("text");
        assert!(!text.contains(&other), "the secret is nowhere");
        assert_eq!(fs::metadata(tokens.path()).expect("there").mode() & 0o777, 0o600);
        fs::write(tokens.path(), "{\"version\": 2}").expect("written");
        assert!(
            elsewhere.all().is_err() && elsewhere.find(&other, 5).is_none(),
            "nobody gets in by accident"
        );
    }
}
