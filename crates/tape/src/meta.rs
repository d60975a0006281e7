//! `meta.json`, the part of a recording with what is known of the session as a whole; older
//! recordings have it beside them. These are the file's own types: keys as they stand in the file,
//! unknown ones kept, so that what a later version wrote survives being rewritten by this one.
//!
//! A command line on Unix is bytes, not text. `cmd` holds each argument as text with anything that
//! is not UTF-8 replaced, for people and for tools that know only that key; when that lost
//! something, `cmdB64` holds all arguments exactly, in base64, and wins.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tapdeck_core::WallTime;

use crate::base64;
use crate::seal::Seal;
use crate::{Error, Extra, FilePosition, JsonValue, Result};

/// The version written, and the highest read.
pub(crate) const VERSION: u64 = 1;

/// A session's facts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    /// Version of the sidecar's format.
    pub version: u64,
    /// When it started.
    #[serde(default, rename = "startedAtNs", with = "crate::nanos")]
    pub started_at: WallTime,
    /// The command line as text; see [`Meta::argv`].
    #[serde(default)]
    pub cmd: Vec<String>,
    /// The command line exactly, when text cannot carry it.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "cmdB64")]
    pub cmd_b64: Option<Vec<String>>,
    /// Working folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Columns at the start.
    #[serde(default)]
    pub cols: u16,
    /// Rows at the start.
    #[serde(default)]
    pub rows: u16,
    /// Brotli quality asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brotli_q: Option<u8>,
    /// The machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
    /// The value of TERM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub term: Option<String>,
    /// The program ran on pipes: its lines end without a carriage return, and yet begin at the
    /// left.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pipes: bool,
    /// A title for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Tags for people and tools: names and values, which may be empty.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Environment variables that the user had recorded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The recording that this one continues: that of the same agent before it was restarted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<String>,
    /// The recording that this one was branched from, and where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// The longest pause that a player should make, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_limit_ms: Option<u64>,
    /// Version of the program that recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tapdeck: Option<String>,
    /// How the program ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// When it ended.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        rename = "endedAtNs",
        with = "crate::nanos::option"
    )]
    pub ended_at: Option<WallTime>,
    /// SHA-256 of the recording that this stands beside, in hexadecimal. A recording that has it
    /// inside has a [`FileDigest`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// What the finished recording is up to this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<FileDigest>,
    /// The recorder could not read what was there before, because that is encrypted: what an
    /// earlier line says holds, but for the end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continuation: bool,
    /// Proof that nothing was changed since; see [`crate::seal`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<Seal>,
    /// Colours of the terminal, in asciicast's form; [`crate::cast::theme_of`] reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<JsonValue>,
    /// How this recording was made from others by editing, the oldest edit first. Empty for an
    /// original.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Edit>,
    /// Keys that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The digest of a recording, as it was when it was finished.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDigest {
    /// Length of the recording up to the block that holds this.
    pub bytes: u64,
    /// SHA-256 of so much of it, in hexadecimal.
    pub sha256: String,
}

/// The recording that a session was branched from, and the moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Parent {
    /// Its path when the session was branched.
    pub path: String,
    /// When it started, by which it is found again after it was moved.
    #[serde(default, rename = "startedAtNs", with = "crate::nanos")]
    pub started_at: WallTime,
    /// The moment, as it was asked for.
    pub at: String,
    /// The snapshot that the files are from.
    pub snapshot: u64,
    /// What the snapshot's provider calls the files: for git, the commit.
    pub commit: String,
    /// The folder that the session works in: for git, the worktree.
    pub worktree: String,
    /// What the program was told to do differently.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
}

/// An edit by which a recording was made from others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Edit {
    /// Version of the program that edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tapdeck: Option<String>,
    /// What it did, in words.
    #[serde(default)]
    pub edits: Vec<String>,
    /// The recordings it was done to; several were joined in this order.
    #[serde(default)]
    pub sources: Vec<EditSource>,
}

/// A recording that was edited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EditSource {
    /// The name of its file, without its folder.
    pub name: String,
    /// SHA-256 of the file, in hexadecimal; there is none of a stream or a folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// The machine that a session ran on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Operating system, as Rust names it.
    pub os: String,
    /// Processor, as Rust names it.
    pub arch: String,
}

/// How a program ended: one of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Exit {
    /// With an exit code.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

impl From<tapdeck_core::Exit> for Exit {
    fn from(exit: tapdeck_core::Exit) -> Self {
        match exit {
            tapdeck_core::Exit::Code(code) => Self::Code(code),
            tapdeck_core::Exit::Signal(number) => Self::Signal(number),
        }
    }
}

/// Whether a file that begins so is a sidecar of ours, and not the asciicast that its version makes
/// it look like.
pub fn is_meta(head: &[u8]) -> bool {
    let has = |key: &[u8]| memchr::memmem::find(head, key).is_some();
    head.trim_ascii_start().starts_with(b"{") && has(b"\"startedAtNs\"") && !has(b"\"stdout\"")
}

impl Meta {
    /// The longest pause that a player should make.
    pub fn idle_limit(&self) -> Option<Duration> {
        self.idle_limit_ms.map(Duration::from_millis)
    }

    /// Sets the longest pause that a player should make.
    pub fn set_idle_limit(&mut self, limit: Option<Duration>) {
        self.idle_limit_ms = limit.map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX).max(1));
    }

    /// A sidecar of the current version, otherwise empty.
    pub fn new() -> Self {
        Self { version: VERSION, ..Self::default() }
    }

    /// Sets the command line, exactly even where it is not text.
    pub fn set_argv<A: AsRef<[u8]>>(&mut self, argv: impl IntoIterator<Item = A>) {
        let argv: Vec<A> = argv.into_iter().collect();
        self.cmd = argv.iter().map(|a| String::from_utf8_lossy(a.as_ref()).into_owned()).collect();
        let exact = argv.iter().zip(&self.cmd).all(|(a, text)| a.as_ref() == text.as_bytes());
        self.cmd_b64 = (!exact).then(|| argv.iter().map(|a| base64::encode(a.as_ref())).collect());
    }

    /// The command line, exactly.
    pub fn argv(&self) -> Vec<Vec<u8>> {
        let exact = self.cmd_b64.iter().flatten().map(|a| base64::decode(a)).collect::<Option<Vec<_>>>();
        match exact {
            Some(argv) if self.cmd_b64.is_some() => argv,
            _ => self.cmd.iter().map(|a| a.clone().into_bytes()).collect(),
        }
    }

    /// The same without the command line, the folder, the title, the tags and the environment,
    /// which may hold secrets.
    #[must_use]
    pub fn without_content(&self) -> Self {
        Self {
            cmd: Vec::new(),
            cmd_b64: None,
            cwd: None,
            title: None,
            tags: BTreeMap::new(),
            env: BTreeMap::new(),
            parent: None,
            history: Vec::new(),
            ..self.clone()
        }
    }

    /// Reads the lines of a part. Lines that are no such object are passed over.
    pub fn of_lines(lines: &[u8]) -> Vec<Self> {
        lines.split(|b| *b == b'\n').filter_map(|line| Self::from_bytes(line).ok()).collect()
    }

    /// What the lines of a part come to: the last counts.
    pub fn of_part(lines: &[u8]) -> Option<Self> {
        Self::of_lines(lines).into_iter().reduce(|before, line| match line.continuation {
            false => line,
            true => Self {
                exit: line.exit,
                ended_at: line.ended_at,
                digest: line.digest,
                seal: line.seal,
                ..before
            },
        })
    }

    /// The content on one line, as a part of a recording has it.
    ///
    /// # Errors
    /// None in practice: all of it can be written as JSON.
    pub fn to_line(&self) -> Result<Vec<u8>> {
        let mut out = serde_json::to_vec(self)
            .map_err(|e| Error::malformed(FilePosition::Line(e.line() as u64), e.to_string()))?;
        out.push(b'\n');
        Ok(out)
    }

    /// The file's content.
    ///
    /// # Errors
    /// None in practice: all of it can be written as JSON.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut out = serde_json::to_vec_pretty(self)
            .map_err(|e| Error::malformed(FilePosition::Line(e.line() as u64), e.to_string()))?;
        out.push(b'\n');
        Ok(out)
    }

    /// Reads the file's content.
    ///
    /// # Errors
    /// When it is not such a file, or one of a later version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let meta: Self = serde_json::from_slice(bytes)
            .map_err(|e| Error::malformed(FilePosition::Line(e.line() as u64), e.to_string()))?;
        if meta.version > VERSION {
            return Err(Error::Version {
                at: FilePosition::Line(1),
                format: "meta.json",
                found: meta.version,
                known: VERSION,
            });
        }
        Ok(meta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_that_is_not_text_survives() {
        // A file name in Latin-1 would come back as question marks, and the session could not be
        // run again.
        let argv: [&[u8]; 3] = [b"cat", b"caf\xe9.txt", "\u{fffd}".as_bytes()];
        let mut meta = Meta::new();
        meta.set_argv(argv);
        assert_eq!(meta.cmd[1], "caf\u{fffd}.txt");
        let back = Meta::from_bytes(&meta.to_bytes().unwrap()).unwrap();
        assert_eq!(back.argv(), argv);
        meta.set_argv(["ls", "-l"]);
        assert_eq!(meta.cmd_b64, None);
        assert_eq!(meta.argv(), [b"ls".to_vec(), b"-l".to_vec()]);
    }

    #[test]
    fn the_original_writers_sidecar_is_read_and_kept() {
        let text = r#"{"version":1,"startedAtNs":1710000000000000000,"cmd":["a","b"],"cols":120,"rows":40,
            "brotliQ":4,"host":{"os":"linux","arch":"x86_64"},"future":{"x":1}}"#;
        let mut meta = Meta::from_bytes(text.as_bytes()).unwrap();
        assert_eq!((meta.cols, meta.rows, meta.brotli_q), (120, 40, Some(4)));
        meta.exit = Some(Exit::Signal(9));
        let out: serde_json::Value = serde_json::from_slice(&meta.to_bytes().unwrap()).unwrap();
        assert_eq!(out["future"]["x"], 1);
        assert_eq!(out["exit"]["signal"], 9);
        assert_eq!(out["startedAtNs"], 1_710_000_000_000_000_000_u64);
    }

    #[test]
    fn the_last_line_counts_and_a_torn_one_does_not() {
        let mut first = Meta { title: Some("first".into()), ..Meta::new() };
        let mut lines = first.to_line().unwrap();
        first.title = Some("second".into());
        lines.extend(first.to_line().unwrap());
        lines.extend(b"{\"version\":1,\"title\":\"tor");
        assert_eq!(Meta::of_part(&lines), Some(first.clone()));
        // A recorder without the key knows nothing of the beginning.
        let digest = Some(FileDigest { bytes: 7, sha256: "x".into() });
        let end = Meta { continuation: true, digest: digest.clone(), ..Meta::new() };
        lines.extend([&b"\n"[..], &end.to_line().unwrap()].concat());
        assert_eq!(Meta::of_part(&lines), Some(Meta { digest, ..first }));
        assert_eq!(Meta::of_part(b"no line of it"), None);
    }

    #[test]
    fn a_later_version_is_refused_and_garbage_is_named() {
        assert!(matches!(Meta::from_bytes(b"{\"version\":2}"), Err(Error::Version { found: 2, .. })));
        let e = Meta::from_bytes(b"{\n\"version\": oops").unwrap_err();
        assert!(e.to_string().starts_with("line 2: "), "{e}");
    }
}
