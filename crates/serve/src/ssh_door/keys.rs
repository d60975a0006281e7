//! The keys of the ssh door: the user's `authorized_keys`, read anew for each connection, and the
//! door's own host key, made on first use.
//!
//! Options in front of a key limit it: `restrict`, `no-pty` and `environment="TAPDECK=read-only"`
//! to watching, `environment="TAPDECK_SESSIONS=one,two"` to these sessions, and `from="…"` to these
//! addresses. Keys with any other limiting option, such as `command=` or `expiry-time=`, are
//! rejected.

use std::fs;
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use russh::keys::ssh_key::LineEnding;
use russh::keys::{Algorithm, PrivateKey, PublicKey, load_secret_key, parse_public_key_base64};
use tapdeck_core::{Authority, Role};
use tapdeck_host::{OutFile, disk};

/// The longest list of keys that is read.
const FILE_LIMIT: u64 = 1 << 20;

/// What a key grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// What its bearer may do at a session: drive as a person, or watch.
    pub authority: Authority,
    /// Only these sessions, by name or id.
    pub sessions: Option<Vec<String>>,
}

impl Default for Grant {
    /// Returns what a key without options grants.
    fn default() -> Self {
        Self { authority: Authority::of(Role::Human), sessions: None }
    }
}

/// Reads the list of keys. Returns how many of them open this door.
///
/// # Errors
/// When it cannot be read, or other users can write to it.
pub fn check(path: &Path) -> io::Result<usize> {
    Ok(read(path)?.lines().filter(|line| parse(line).is_some()).count())
}

fn read(path: &Path) -> io::Result<String> {
    let about = fs::metadata(path)?;
    if about.mode() & 0o022 != 0 {
        return Err(io::Error::other("others can write to it: chmod go-w"));
    }
    if about.len() > FILE_LIMIT {
        return Err(io::Error::other("too long for a list of keys"));
    }
    Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
}

/// Returns what a key grants to a client from this address.
pub(super) fn grant(path: &Path, key: &PublicKey, from: IpAddr) -> Option<Grant> {
    // An unreadable list grants nothing.
    let text = read(path).ok()?;
    let lines = text.lines().filter_map(parse);
    let mut mine = lines.filter(|line| line.key.key_data() == key.key_data());
    mine.find(|line| line.from.as_ref().is_none_or(|from_list| reaches(from_list, from)))
        .map(|line| line.grant)
}

struct Line {
    key: PublicKey,
    grant: Grant,
    from: Option<String>,
}

/// Parses a line that lets a client in.
fn parse(line: &str) -> Option<Line> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let mut words = fields(line);
    let first = words.first()?.clone();
    let named =
        |word: &str| word.starts_with("ssh-") || word.starts_with("ecdsa-") || word.starts_with("sk-");
    let options = if named(&first) { String::new() } else { words.remove(0) };
    let key = parse_public_key_base64(words.get(1).filter(|_| named(&words[0]))?).ok()?;
    let (mut grant, mut from) = (Grant::default(), None);
    for option in commas(&options) {
        let (name, value) = option.split_once('=').unwrap_or((&option, ""));
        let value = value.trim_matches('"');
        match name.to_ascii_lowercase().as_str() {
            "" | "pty" => {}
            // The door offers none of these.
            "no-agent-forwarding" | "no-port-forwarding" | "no-x11-forwarding" | "no-user-rc" => {}
            "agent-forwarding" | "port-forwarding" | "x11-forwarding" | "user-rc" | "permitopen" => {}
            "permitlisten" | "touch-required" => {}
            "restrict" | "no-pty" => grant.authority = grant.authority.limited_to(Role::Observer),
            "from" => from = Some(value.to_owned()),
            "environment" => match value.split_once('=') {
                Some(("TAPDECK", "read-only")) => {
                    grant.authority = grant.authority.limited_to(Role::Observer);
                }
                Some(("TAPDECK_SESSIONS", list)) => {
                    grant.sessions = Some(list.split(',').map(|s| s.trim().to_owned()).collect());
                }
                Some(("TAPDECK", _)) => return None,
                _ => {}
            },
            // A key for one command, for some time or of a certificate authority is not for this
            // door.
            _ => return None,
        }
    }
    Some(Line { key, grant, from })
}

/// Splits at spaces outside quotes.
fn fields(line: &str) -> Vec<String> {
    split(line, |c| c.is_ascii_whitespace())
}

fn commas(options: &str) -> Vec<String> {
    split(options, |c| c == ',')
}

fn split(text: &str, part: impl Fn(char) -> bool) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let (mut quoted, mut escaped) = (false, false);
    for c in text.chars() {
        if c == '"' && !escaped {
            quoted = !quoted;
        }
        escaped = c == '\\' && !escaped;
        if part(c) && !quoted {
            pieces.push(String::new());
        } else if let Some(last) = pieces.last_mut() {
            last.push(c);
        }
    }
    pieces.retain(|p| !p.is_empty());
    pieces
}

/// Returns whether an address matches a list of patterns: `*` at the end matches the rest, `!`
/// excludes.
fn reaches(list: &str, address: IpAddr) -> bool {
    let address = address.to_canonical().to_string();
    let fits = |pattern: &str| match pattern.split_once('*') {
        Some((front, "")) => address.starts_with(front),
        // An unknown pattern matches nothing.
        Some(_) => false,
        None => address == pattern,
    };
    let mut allowed = false;
    for pattern in list.split(',').map(str::trim) {
        match pattern.strip_prefix('!') {
            Some(pattern) if fits(pattern) => return false,
            Some(_) => {}
            None => allowed |= fits(pattern),
        }
    }
    allowed
}

/// Reads the door's own key, and makes it if there is none.
///
/// # Errors
/// When the key can be neither read nor made.
pub fn host_key(path: &Path) -> io::Result<PrivateKey> {
    match load_secret_key(path, None) {
        Ok(key) => return Ok(key),
        Err(russh::keys::Error::IO(e)) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(io::Error::other(format!("{}: {e}", path.display()))),
    }
    if let Some(folder) = path.parent() {
        disk::create_folders(folder)?;
    }
    let key = PrivateKey::random(&mut russh::keys::key::safe_rng(), Algorithm::Ed25519)
        .map_err(io::Error::other)?;
    let text = key.to_openssh(LineEnding::LF).map_err(io::Error::other)?;
    // Written whole or not at all: a partial key would keep the door from opening.
    let file = OutFile::create(path, false);
    match file.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.commit())) {
        // Another process was quicker; its key is the one.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => host_key(path),
        other => other.map(|()| key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";

    #[test]
    fn a_key_opens_what_its_line_says() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("keys");
        let key = parse_public_key_base64(KEY.split(' ').nth(1).expect("a key")).expect("a key");
        let from = IpAddr::from([127, 0, 0, 1]);
        let watch = Grant { authority: Authority::of(Role::Observer), sessions: None };
        let some = Grant { sessions: Some(vec!["a".into(), "b".into()]), ..Grant::default() };
        let cases = [
            (format!("{KEY} ada@home"), Some(Grant::default())),
            (format!("# a\n\nno-port-forwarding {KEY}"), Some(Grant::default())),
            (format!("restrict {KEY}"), Some(watch.clone())),
            (format!("environment=\"TAPDECK=read-only\",no-pty {KEY} a b c"), Some(watch)),
            (format!("environment=\"TAPDECK_SESSIONS=a, b\" {KEY}"), Some(some)),
            (format!("from=\"10.*,127.0.0.*\" {KEY}"), Some(Grant::default())),
            (format!("from=\"*,!127.0.0.1\" {KEY}"), None),
            (format!("from=\"10.0.0.1\" {KEY}"), None),
            (format!("command=\"echo hi, there\" {KEY}"), None),
            (format!("cert-authority {KEY}"), None),
            (format!("expiry-time=\"20200101\" {KEY}"), None),
            ("ssh-ed25519 AAAA".into(), None),
            ("restrict".into(), None),
            (KEY.replace("IJdD", "IJdE"), None),
        ];
        for (text, wanted) in cases {
            fs::write(&file, &text).expect("written");
            assert_eq!(grant(&file, &key, from), wanted, "{text}");
        }
        fs::write(&file, KEY).expect("written");
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("opened");
        assert_eq!(grant(&file, &key, from), None, "other users can write to the list");
        assert!(check(&file).is_err());
    }

    #[test]
    fn the_door_has_one_key() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("deep/key");
        let made = host_key(&file).expect("made");
        let read = host_key(&file).expect("read");
        assert_eq!(made.public_key().key_data(), read.public_key().key_data());
        assert_eq!(fs::metadata(&file).expect("there").mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(file.parent().expect("a folder")).expect("a folder").count(), 1);
        fs::write(&file, "nonsense").expect("written");
        assert!(host_key(&file).is_err());
    }
}
