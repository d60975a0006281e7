//! Live sessions, and how to find them: one small file a session beside its socket, in a folder
//! that only this user can enter.
//!
//! The file says what the session is and carries the secret that makes a client of its owner's a
//! person. It goes with the process; what a killed one has left behind is removed by the next
//! process that lists.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tapdeck_core::WallTime;

use crate::processes::Process;

/// A registry file may be this long; command lines are cut to fit.
const FILE_LIMIT: u64 = 256 * 1024;
const COMMAND_LIMIT: usize = 64 * 1024;

/// What a session's file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The session's name for programs: unique among those alive.
    pub id: String,
    /// Its name for people, if it has one.
    pub name: Option<String>,
    /// The process that hosts it.
    pub pid: u32,
    /// Where to reach it.
    pub socket: PathBuf,
    /// Further addresses, as given.
    pub buses: Vec<String>,
    /// What runs.
    pub command: Vec<String>,
    /// Where.
    pub cwd: String,
    /// Since when, in nanoseconds since 1970.
    pub started: WallTime,
    /// It has no terminal of its own.
    pub detached: bool,
    /// Where it is recorded.
    pub recording: Option<String>,
    /// What a client shows to count as a person.
    pub human_token: String,
}

impl Listing {
    /// What people call the session: its name, or its id.
    pub fn shown(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.id)
    }
}

/// The folder for the sockets of live sessions: the one of the user's login, or a private one under
/// `/tmp`.
pub fn folder() -> io::Result<PathBuf> {
    let given = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|p| p.is_absolute());
    let uid = rustix::process::geteuid().as_raw();
    let usual = PathBuf::from(format!("/run/user/{uid}"));
    let folder = match given {
        Some(given) => given.join("tapdeck"),
        None if fs::symlink_metadata(&usual).is_ok_and(|m| m.is_dir() && m.uid() == uid) => {
            usual.join("tapdeck")
        }
        None => std::env::temp_dir().join(format!("tapdeck-{uid}")),
    };
    private_folder(&folder)?;
    Ok(folder)
}

/// Makes sure of a folder that only this user can enter.
pub fn private_folder(folder: &Path) -> io::Result<()> {
    let wrong = |what: &str| Err(io::Error::other(format!("{} {what}", folder.display())));
    if !fs::symlink_metadata(folder).is_ok_and(|m| m.is_symlink()) {
        crate::disk::create_folders(folder)?;
    }
    let meta = fs::symlink_metadata(folder)?;
    if meta.is_symlink() {
        return wrong("is a symbolic link: a socket's folder must be a real one");
    }
    if !meta.is_dir() {
        return wrong("is not a folder");
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return wrong("belongs to another user");
    }
    if meta.mode() & 0o077 != 0 {
        return wrong("can be entered by other users: choose a folder of your own");
    }
    Ok(())
}

/// The files of a session.
pub fn socket_path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.sock"))
}

fn listing_path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.json"))
}

/// A session's file, removed when this is dropped.
#[derive(Debug)]
pub struct Registered {
    path: PathBuf,
}

impl Registered {
    /// Puts the session on the list.
    pub fn new(folder: &Path, listing: &Listing) -> io::Result<Self> {
        let this = Self { path: listing_path(folder, &listing.id) };
        this.update(listing)?;
        Ok(this)
    }

    /// Replaces what the list says of the session.
    ///
    /// # Errors
    /// When the file cannot be written; then the list says what it said before.
    pub fn update(&self, listing: &Listing) -> io::Result<()> {
        let new = self.path.with_file_name(format!(".{}.new", listing.id));
        // There is one only after a crash.
        let _ = fs::remove_file(&new);
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        // A process that lists sees all of it or nothing.
        let written = io::Write::write_all(&mut file, listing.to_json().to_string().as_bytes())
            .and_then(|()| crate::disk::rename(&new, &self.path));
        if written.is_err() {
            // The error says more than a second one.
            let _ = fs::remove_file(&new);
        }
        written
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // Another process may have removed it.
        let _ = fs::remove_file(&self.path);
    }
}

/// The file whose lock is the claim of a name. A name may have any characters, and more bytes than
/// a file's name.
fn name_path(folder: &Path, name: &str) -> PathBuf {
    let hash = Sha256::digest(name.as_bytes());
    let hash: String = hash.iter().take(16).map(|b| format!("{b:02x}")).collect();
    folder.join(format!(".name-{hash}"))
}

/// A session's name, which no other session can have while this lives. It is a lock that the system
/// lifts when the process ends, however it ends.
#[derive(Debug)]
pub struct ClaimedName {
    path: PathBuf,
    _lock: fs::File,
}

impl ClaimedName {
    /// Claims a name; `None` if another session has it.
    ///
    /// # Errors
    /// When the lock's file cannot be made.
    pub fn claim(folder: &Path, name: &str) -> io::Result<Option<Self>> {
        let path = name_path(folder, name);
        loop {
            let mut options = fs::OpenOptions::new();
            options.write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
            let lock = options.open(&path)?;
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
                Err(e) => return Err(e.into()),
            }
            // The process that had the name may have removed the file after it was opened here.
            let own = lock.metadata()?;
            if fs::metadata(&path).is_ok_and(|m| (m.dev(), m.ino()) == (own.dev(), own.ino())) {
                return Ok(Some(Self { path, _lock: lock }));
            }
        }
    }
}

impl Drop for ClaimedName {
    fn drop(&mut self) {
        // Before the lock is lifted, so that it is still this claim's file. One that stays is empty
        // and can be locked again.
        let _ = fs::remove_file(&self.path);
    }
}

/// A random secret, in hexadecimal.
pub fn new_token() -> io::Result<String> {
    use std::io::Read;
    let mut bytes = [0; 16];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

/// Everything on the list, oldest first, the dead included.
pub fn listed(folder: &Path) -> io::Result<Vec<Listing>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|s| s.to_str()).unwrap_or("");
        if path.extension().is_none_or(|e| e != "json") || stem.starts_with('.') {
            continue;
        }
        // One that is being removed, or is no session's, is none.
        if fs::metadata(&path).is_ok_and(|m| m.len() <= FILE_LIMIT)
            && let Ok(text) = fs::read(&path)
            && let Some(listing) = Listing::from_json(folder, stem, &text)
        {
            found.push(listing);
        }
    }
    found.sort_by_key(|l| (l.started, l.pid));
    Ok(found)
}

/// Takes the files of a session whose process is gone off the list.
pub fn clear(folder: &Path, listing: &Listing) {
    // Another process may have removed them.
    let _ = fs::remove_file(listing_path(folder, &listing.id));
    let _ = fs::remove_file(&listing.socket);
    if let Some(name) = &listing.name {
        // A name that another session has by now stays. One that is claimed here is given back.
        let _ = ClaimedName::claim(folder, name);
    }
}

/// Takes the files of a session off the list that this process is about to end with.
pub fn clear_own(folder: &Path, listing: &Listing) {
    clear(folder, listing);
    if let Some(name) = &listing.name {
        // A file that stays is empty, and can be locked again.
        let _ = fs::remove_file(name_path(folder, name));
    }
}

/// Whether the process is there. One that has ended is not, even before its parent reaps it: in a
/// container the first process often never does.
pub fn is_alive(pid: u32) -> bool {
    let Some(known) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) else { return false };
    !matches!(rustix::process::test_kill_process(known), Err(rustix::io::Errno::SRCH))
        && Process::find(pid).is_none_or(|process| !process.is_dead())
}

impl Listing {
    fn to_json(&self) -> Value {
        let mut command = Vec::new();
        let mut room = COMMAND_LIMIT;
        for arg in &self.command {
            if arg.len() > room {
                command.push("…".to_owned());
                break;
            }
            room -= arg.len();
            command.push(arg.clone());
        }
        json!({
            "version": 1,
            "id": self.id,
            "name": self.name,
            "pid": self.pid,
            "socket": self.socket.to_string_lossy(),
            "buses": self.buses,
            "command": command,
            "cwd": self.cwd,
            "started_ns": self.started.as_nanos(),
            "detached": self.detached,
            "recording": self.recording,
            "human_token": self.human_token,
        })
    }

    fn from_json(folder: &Path, stem: &str, text: &[u8]) -> Option<Self> {
        let value: Map<String, Value> = serde_json::from_slice(text).ok()?;
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let list = |key: &str| {
            let items = value.get(key).and_then(Value::as_array)?;
            Some(items.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect::<Vec<_>>())
        };
        let id = text("id").filter(|id| id == stem)?;
        Some(Self {
            name: text("name"),
            pid: u32::try_from(value.get("pid")?.as_u64()?).ok()?,
            // Only where sessions listen: a file cannot send a client elsewhere.
            socket: socket_path(folder, &id),
            buses: list("buses")?,
            command: list("command")?,
            cwd: text("cwd")?,
            started: WallTime::from_nanos(value.get("started_ns")?.as_u64()?),
            detached: value.get("detached")?.as_bool()?,
            recording: text("recording"),
            human_token: text("human_token")?,
            id,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::DirBuilderExt;

    use super::*;

    #[test]
    fn a_listing_comes_back_and_goes_with_its_owner() {
        let temp = tempfile::tempdir().expect("temp");
        let folder = temp.path().join("run");
        private_folder(&folder).expect("made");
        let listing = Listing {
            id: "12".into(),
            name: Some("say \"hi\"\n".into()),
            pid: std::process::id(),
            socket: socket_path(&folder, "12"),
            buses: vec!["tcp:127.0.0.1:9".into()],
            command: vec!["sh".into(), "-c".into(), "x".repeat(2 * COMMAND_LIMIT)],
            cwd: "/".into(),
            started: WallTime::from_nanos(5),
            detached: true,
            recording: None,
            human_token: new_token().expect("random"),
        };
        let registered = Registered::new(&folder, &listing).expect("registered");
        fs::write(folder.join("13.json"), b"{\"id\": 13").expect("write");
        let got = listed(&folder).expect("listed");
        let shown = Listing { command: vec!["sh".into(), "-c".into(), "…".into()], ..listing };
        assert_eq!(got, [shown]);
        assert!(is_alive(got[0].pid) && !is_alive(0x7fff_fff0));
        drop(registered);
        assert_eq!(listed(&folder).expect("listed"), []);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a process of its own that ends")]
    fn a_zombie_is_gone() {
        let mut child = std::process::Command::new("true").spawn().expect("it starts");
        while Process::find(child.id()).is_some_and(|p| !p.is_dead()) {
            std::thread::yield_now();
        }
        assert!(!is_alive(child.id()));
        child.wait().expect("it has ended");
    }

    #[test]
    fn a_name_is_had_once_and_given_back() {
        let temp = tempfile::tempdir().expect("temp");
        let claim = |name: &str| ClaimedName::claim(temp.path(), name).expect("claimed or taken");
        let long = "/ä".repeat(32);
        let (first, other) = (claim("build"), claim(&long));
        assert!(first.is_some() && other.is_some() && claim("build").is_none() && claim(&long).is_none());
        drop(first);
        assert_eq!(fs::read_dir(temp.path()).expect("listed").count(), 1);
        assert!(claim("build").is_some());
        // Many at once: each time exactly one has it.
        let start = std::sync::Barrier::new(8);
        let race = || {
            start.wait();
            claim("raced")
        };
        let winners = std::thread::scope(|scope| {
            let racers: Vec<_> = (0..8).map(|_| scope.spawn(race)).collect();
            racers.into_iter().filter_map(|r| r.join().expect("ran")).collect::<Vec<_>>()
        });
        assert_eq!(winners.len(), 1);
    }

    #[test]
    fn a_folder_that_others_can_enter_is_refused() {
        let temp = tempfile::tempdir().expect("temp");
        let open = temp.path().join("open");
        fs::DirBuilder::new().mode(0o755).create(&open).expect("made");
        fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("mode");
        assert!(private_folder(&open).is_err());
        std::os::unix::fs::symlink(&open, temp.path().join("link")).expect("link");
        assert!(private_folder(&temp.path().join("link")).is_err());
    }
}
