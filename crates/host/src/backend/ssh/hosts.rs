//! Machines that one has met before: `known_hosts`, looked up and added to. A machine is who it
//! was, or is refused.

use std::path::{Path, PathBuf};

use russh::keys::PublicKey;
use russh::keys::known_hosts::{known_host_keys_path, learn_known_hosts_path};
use russh::keys::parse_public_key_base64;

use super::config::matches;

/// What is known of a machine's key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// It is the machine that it was.
    Same,
    /// It is not in the list.
    New,
    /// It had another key: the file and line that say so.
    Changed(PathBuf, usize),
    /// Its key is one that must not be believed any more.
    Revoked(PathBuf, usize),
}

/// The keys that are known of a machine, and those that must not be believed.
pub(super) struct Acquaintance {
    keys: Vec<(PathBuf, usize, PublicKey)>,
    revoked: Vec<(PathBuf, usize, PublicKey)>,
}

impl Acquaintance {
    /// Reads what the files say about a machine.
    pub(super) fn read(files: &[PathBuf], host: &str, port: u16) -> Result<Self, String> {
        let mut this = Self { keys: Vec::new(), revoked: Vec::new() };
        let name = if port == 22 { host.to_owned() } else { format!("[{host}]:{port}") };
        for file in files {
            let unreadable = |e: &dyn std::fmt::Display| format!("{}: {e}", file.display());
            // Exact and hashed names.
            let found = known_host_keys_path(host, port, file).map_err(|e| unreadable(&e))?;
            this.keys.extend(found.into_iter().map(|(line, key)| (file.clone(), line, key)));
            // Patterns and marks.
            let text = match std::fs::read(file) {
                Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
                Err(e) => return Err(unreadable(&e)),
            };
            for (number, line) in text.lines().enumerate() {
                let mut words = line.split_whitespace().peekable();
                let mark = words.next_if(|w| w.starts_with('@'));
                let (Some(hosts), Some(_), Some(key)) = (words.next(), words.next(), words.next()) else {
                    continue;
                };
                let about_it = matches(hosts.split(','), &name);
                let pattern = hosts.contains(['*', '?']);
                let to = match mark {
                    Some("@revoked") if about_it => &mut this.revoked,
                    None if about_it && pattern && !hosts.starts_with('#') => &mut this.keys,
                    _ => continue,
                };
                if let Ok(key) = parse_public_key_base64(key) {
                    to.push((file.clone(), number + 1, key));
                }
            }
        }
        Ok(this)
    }

    /// The kinds of key that are known, so that the machine is asked for one of these first.
    pub(super) fn algorithms(&self) -> Vec<russh::keys::Algorithm> {
        self.keys.iter().map(|(_, _, key)| key.algorithm()).collect()
    }

    /// What is known of this key. Any known key counts: a machine that suddenly shows one of
    /// another kind may be another machine.
    pub(super) fn judge(&self, key: &PublicKey) -> Known {
        let same = |known: &PublicKey| known.key_data() == key.key_data();
        if let Some((file, line, _)) = self.revoked.iter().find(|(_, _, k)| same(k)) {
            return Known::Revoked(file.clone(), *line);
        }
        match self.keys.first() {
            None => Known::New,
            _ if self.keys.iter().any(|(_, _, k)| same(k)) => Known::Same,
            Some((file, line, _)) => Known::Changed(file.clone(), *line),
        }
    }
}

/// Remembers a machine.
pub(super) fn remember(file: &Path, host: &str, port: u16, key: &PublicKey) -> Result<(), String> {
    if let Some(folder) = file.parent().filter(|f| !f.exists()) {
        use std::os::unix::fs::DirBuilderExt;
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    learn_known_hosts_path(host, port, key, file).map_err(|e| format!("{}: {e}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";
    const TWO: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIA6rWI3G1sz07DnfFlrouTcysQlj2P+jpNSOEWD9OJ3X";

    #[test]
    fn a_machine_is_who_it_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("known_hosts");
        let key = |text| parse_public_key_base64(text).expect("a key");
        let judge = |host: &str, port, text| {
            Acquaintance::read(std::slice::from_ref(&file), host, port).expect("it is read").judge(&key(text))
        };
        assert_eq!(judge("a", 22, ONE), Known::New);
        remember(&file, "a", 22, &key(ONE)).expect("remembered");
        remember(&file, "a", 2200, &key(TWO)).expect("remembered");
        let more = format!("# x\n*.org ssh-ed25519 {TWO}\n@revoked * ssh-ed25519 {TWO}\nbroken\n");
        let text = std::fs::read_to_string(&file).expect("there");
        std::fs::write(&file, format!("{}\n{more}", text.trim())).expect("written");
        assert_eq!(judge("a", 22, ONE), Known::Same);
        assert_eq!(judge("b.org", 22, ONE), Known::Changed(file.clone(), 4));
        assert_eq!(judge("c", 22, ONE), Known::New);
        assert!(matches!(judge("a", 2200, TWO), Known::Revoked(_, 5)));
        assert!(matches!(judge("a", 2200, ONE), Known::Changed(..)));
    }
}
