//! The parts of `~/.ssh/config` that say where a machine is and who one is there. As ssh does, the
//! first value counts.

use std::path::{Path, PathBuf};

/// Files that include each other are followed so deep, and each is read so far.
const DEPTH: usize = 8;
const FILE_LIMIT: usize = 1 << 20;

/// What the configuration says about a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct HostConfig {
    pub(super) host_name: Option<String>,
    pub(super) port: Option<u16>,
    pub(super) user: Option<String>,
    pub(super) identities: Vec<PathBuf>,
    pub(super) identities_only: bool,
    pub(super) known_hosts: Vec<PathBuf>,
    pub(super) accept_new: bool,
    /// A way there that is not simply a connection.
    pub(super) proxy: Option<Proxy>,
}

/// A way to a machine that cannot be reached from here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Proxy {
    /// Through these machines, one after another, as they are written.
    Jump(Vec<String>),
    /// Through what this command reads and writes.
    Command(String),
}

/// Reads what a file and those that it includes say about a machine. A file that is not there says
/// nothing.
pub(super) fn read(file: &Path, home: &Path, host: &str) -> Result<HostConfig, String> {
    let mut reader =
        Reader { home, host, config: HostConfig::default(), only: None, strict: None, proxy: None };
    reader.file(file, 0, &mut true)?;
    reader.config.proxy = reader.proxy.take().flatten();
    reader.config.identities_only = reader.only == Some(true);
    reader.config.accept_new =
        reader.strict.as_deref().is_some_and(|s| matches!(s, "accept-new" | "no" | "off"));
    Ok(reader.config)
}

struct Reader<'a> {
    home: &'a Path,
    host: &'a str,
    config: HostConfig,
    only: Option<bool>,
    strict: Option<String>,
    /// That there is none can be said too.
    proxy: Option<Option<Proxy>>,
}

impl Reader<'_> {
    fn file(&mut self, path: &Path, depth: usize, applies: &mut bool) -> Result<(), String> {
        if depth > DEPTH {
            return Err(format!("{}: files include each other without end", path.display()));
        }
        let Ok(bytes) = std::fs::read(path) else { return Ok(()) };
        if bytes.len() > FILE_LIMIT {
            return Err(format!("{}: too long for a configuration", path.display()));
        }
        let text = String::from_utf8_lossy(&bytes);
        for (number, line) in text.lines().enumerate() {
            let Some((key, rest, words)) = words(line) else { continue };
            let wrong = || format!("{}, line {}: {key} is not understood", path.display(), number + 1);
            let first = words.first().cloned();
            match key.to_ascii_lowercase().as_str() {
                "host" => *applies = matches(words.iter().map(String::as_str), self.host),
                // Conditions of other kinds cannot be judged here; what they say is for ssh alone.
                "match" => *applies = words.len() == 1 && words[0].eq_ignore_ascii_case("all"),
                _ if !*applies => {}
                "include" => {
                    for word in &words {
                        for file in self.included(word) {
                            // What an included file's last Host line says ends with that file.
                            self.file(&file, depth + 1, &mut true)?;
                        }
                    }
                }
                "hostname" => {
                    let name = first.ok_or_else(wrong)?.replace("%h", self.host);
                    self.config.host_name.get_or_insert(name);
                }
                "port" => {
                    let port = first.and_then(|p| p.parse().ok()).ok_or_else(wrong)?;
                    self.config.port.get_or_insert(port);
                }
                "user" => {
                    self.config.user.get_or_insert(first.ok_or_else(wrong)?);
                }
                "identityfile" => {
                    let path = self.path(&first.ok_or_else(wrong)?);
                    self.config.identities.push(path);
                }
                "identitiesonly" => {
                    self.only.get_or_insert(first.ok_or_else(wrong)?.eq_ignore_ascii_case("yes"));
                }
                "userknownhostsfile" if self.config.known_hosts.is_empty() => {
                    self.config.known_hosts = words.iter().map(|w| self.path(w)).collect();
                }
                "stricthostkeychecking" => {
                    self.strict.get_or_insert(first.ok_or_else(wrong)?.to_ascii_lowercase());
                }
                "proxyjump" => {
                    let hops = first.ok_or_else(wrong)?;
                    let hops = (hops != "none").then(|| hops.split(',').map(str::to_owned).collect());
                    self.proxy.get_or_insert(hops.map(Proxy::Jump));
                }
                "proxycommand" => {
                    let command =
                        (first.ok_or_else(wrong)? != "none").then(|| Proxy::Command(rest.to_owned()));
                    self.proxy.get_or_insert(command);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A path with `~` and `%d` for the home folder.
    fn path(&self, text: &str) -> PathBuf {
        let text = text.replace("%d", &self.home.to_string_lossy()).replace("%h", self.host);
        match text.strip_prefix("~/") {
            Some(rest) => self.home.join(rest),
            None => PathBuf::from(text),
        }
    }

    fn included(&self, word: &str) -> Vec<PathBuf> {
        let path = self.path(word);
        let path = if path.is_absolute() { path } else { self.home.join(".ssh").join(path) };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.contains(['*', '?']) {
            return vec![path];
        }
        let folder = path.parent().unwrap_or(Path::new("/"));
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = entries
            .filter(|e| wildcard(name.as_bytes(), e.file_name().to_string_lossy().as_bytes()))
            .map(|e| e.path())
            .collect();
        files.sort();
        files
    }
}

/// The key of a line, what stands behind it, and the words of that; quotes hold words together.
fn words(line: &str) -> Option<(String, &str, Vec<String>)> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let end = line.find(|c: char| c.is_whitespace() || c == '=').unwrap_or(line.len());
    let (key, rest) = line.split_at(end);
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim();
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in rest.chars() {
        match c {
            '"' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => words.push(String::new()),
            c => words.last_mut()?.push(c),
        }
    }
    words.retain(|w| !w.is_empty());
    Some((key.to_owned(), rest, words))
}

/// Whether one of the patterns fits, and none that forbids it.
pub(super) fn matches<'a>(patterns: impl Iterator<Item = &'a str>, host: &str) -> bool {
    let mut fits = false;
    for pattern in patterns {
        match pattern.strip_prefix('!') {
            Some(pattern) if wildcard(pattern.as_bytes(), host.as_bytes()) => return false,
            Some(_) => {}
            None => fits |= wildcard(pattern.as_bytes(), host.as_bytes()),
        }
    }
    fits
}

/// Whether a pattern with `*` and `?` fits a whole text, in either case.
fn wildcard(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == b'?' || c.eq_ignore_ascii_case(&text[t]) => {
                p += 1;
                t += 1;
            }
            // Let the last star take one more.
            _ => match star {
                Some((at, took)) => {
                    star = Some((at, took + 1));
                    p = at + 1;
                    t = took + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_value_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path();
        std::fs::create_dir_all(home.join(".ssh/conf.d")).expect("a folder");
        let write =
            |name: &str, text: &str| std::fs::write(home.join(".ssh").join(name), text).expect("written");
        write("conf.d/a.conf", "Host inner\n  Port 2022\nHost other\n Port 1\n");
        write(
            "config",
            "# mine\nInclude conf.d/*.conf\nHost inner !nobody\n  HostName=%h.example.org\n  User \"ada l\"\n  \
             IdentityFile ~/.ssh/one\n  IdentityFile %d/two\nHost *.jump\n ProxyJump bastion,ada@next:2222\nHost near.piped\n \
             ProxyJump none\nHost *.piped\n ProxyCommand nc \"%h\" %p\nHost *\n  User root\n  \
             Port 22\n  StrictHostKeyChecking accept-new\n",
        );
        let config = read(&home.join(".ssh/config"), home, "inner").expect("it is understood");
        assert_eq!(config.host_name.as_deref(), Some("inner.example.org"));
        assert_eq!((config.port, config.user.as_deref()), (Some(2022), Some("ada l")));
        assert_eq!(config.identities, [home.join(".ssh/one"), home.join("two")]);
        assert!(config.accept_new && config.proxy.is_none());
        let config = read(&home.join(".ssh/config"), home, "far.jump").expect("it is understood");
        assert_eq!(config.proxy, Some(Proxy::Jump(vec!["bastion".into(), "ada@next:2222".into()])));
        assert_eq!(config.user.as_deref(), Some("root"));
        let config = read(&home.join(".ssh/config"), home, "far.piped").expect("it is understood");
        assert_eq!(config.proxy, Some(Proxy::Command("nc \"%h\" %p".into())));
        let config = read(&home.join(".ssh/config"), home, "near.piped").expect("it is understood");
        assert_eq!(config.proxy, None);
        write("config", "Host *\nPort x\n");
        let error = read(&home.join(".ssh/config"), home, "h").expect_err("no port");
        assert!(error.contains("line 2"), "{error}");
        write("config", "Include config\n");
        assert!(read(&home.join(".ssh/config"), home, "h").is_err());
        assert_eq!(read(&home.join("none"), home, "h"), Ok(HostConfig::default()));
    }

    #[test]
    fn patterns() {
        let cases = [("*", "a", true), ("a*c", "abbc", true), ("a?c", "ac", false), ("*.b", "a.B", true)];
        for (pattern, text, fits) in cases {
            assert_eq!(wildcard(pattern.as_bytes(), text.as_bytes()), fits, "{pattern} {text}");
        }
        assert!(!matches(["*", "!a"].into_iter(), "a"));
    }
}
