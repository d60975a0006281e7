//! `manifest.json`: what was run, how, on which terminal, and what the evidence is bound to. These
//! are the file's own types; keys that this version does not know are kept.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tapdeck_term::Size;

use super::check::{digest_hex, is_uuid};
use super::unknown::{manifest_digest, pretty_keeping};
use super::{Refusal, names};
use crate::seal::{BindingSeal, SealKey};
use crate::{Extra, JsonValue};

/// The version written, and the highest read.
pub const VERSION: u64 = 1;

/// Features that a cassette may require of its reader. None so far.
const KNOWN_FEATURES: [&str; 0] = [];

/// The manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the format.
    pub version: u64,
    /// A UUID, given when it was recorded; assertions name it.
    pub id: String,
    /// What the evidence was when it was recorded.
    pub content_digest: ContentDigest,
    /// What was recorded.
    pub harness: Harness,
    /// How it was started.
    pub command: Command,
    /// On which terminal.
    pub terminal: Terminal,
    /// How time was kept.
    pub timing: Timing,
    /// Where it comes from.
    pub provenance: Provenance,
    /// What a reader must be able to do.
    #[serde(default)]
    pub required_features: Vec<String>,
    /// What a reader may ignore.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub optional: Extra,
    /// Keys that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Digests of the evidence, in hexadecimal.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ContentDigest {
    /// SHA-256 of `output.raw`.
    pub sha256: String,
    /// SHA-256 of every other file by name; of the manifest, of what it says beside its id and
    /// these digests.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// SHA-256 over the id and all of these, so that evidence cannot pass under another id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<String>,
    /// A code over the binding, under a key that only its owner has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<BindingSeal>,
}

/// The program that was recorded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Harness {
    /// Its name.
    pub name: String,
    /// SHA-256 of the path of its binary, as it was resolved: a fingerprint that gives no folder
    /// away.
    #[serde(default)]
    pub binary_path_digest_sha256: Option<String>,
    /// SHA-256 of the file itself, links resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary_sha256: Option<String>,
    /// Its version, where it could be had: by the program itself, or by the package that it is in.
    #[serde(default)]
    pub binary_version: Option<String>,
    /// Every file that ran: the program, the interpreter of a script, the script of an interpreter,
    /// and the programs that a scenario needs beside them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub binaries: Vec<Binary>,
    /// What the recording is evidence for.
    #[serde(default)]
    pub capability: Option<JsonValue>,
    /// Kind of account, never which.
    #[serde(default)]
    pub account_class: Option<String>,
    /// When it was recorded, RFC 3339.
    pub captured_at: String,
    /// For how long it supports a claim about the live program, e.g. `24h`.
    #[serde(default)]
    pub freshness_window: Option<String>,
}

/// A file that was run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Binary {
    /// The name that it was called by.
    pub name: String,
    /// `program`, `interpreter`, `script` or `needed`.
    pub role: String,
    /// Name and version of its package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// SHA-256 of its path, links resolved.
    #[serde(default)]
    pub path_digest_sha256: Option<String>,
    /// SHA-256 of its content.
    #[serde(default)]
    pub sha256: Option<String>,
    /// Keys that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How the program was started.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// Program and arguments, scrubbed.
    pub argv: Vec<String>,
    /// Where it ran: `inherited`, `given` or `temporary`.
    pub workdir_policy: String,
    /// Names of the variables that it was given; it had no others.
    pub env_allowlist: Vec<String>,
    /// Its time limit.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// What it was allowed to do, for programs that ask.
    #[serde(default)]
    pub permission_mode: Option<String>,
}

/// The terminal.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Terminal {
    /// Rows at the start.
    pub initial_rows: u16,
    /// Columns at the start.
    pub initial_cols: u16,
    /// Every later size; the same as in `input.jsonl`.
    #[serde(default)]
    pub resizes: Vec<Resize>,
    /// The locale that the program saw.
    #[serde(default)]
    pub locale: Option<String>,
    /// The value of TERM that it saw.
    #[serde(default)]
    pub term: Option<String>,
    /// How its terminal was set up at the start.
    #[serde(default)]
    pub pty_mode: Option<JsonValue>,
    /// What frames were derived with.
    pub emulator: Emulator,
}

impl Terminal {
    /// Size at the start.
    pub fn initial_size(&self) -> Size {
        Size::new(self.initial_cols, self.initial_rows)
    }
}

/// A change of size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resize {
    /// Its number.
    pub seq: u64,
    /// When.
    pub t_ms: u64,
    /// Rows.
    pub rows: u16,
    /// Columns.
    pub cols: u16,
}

/// Identity of a terminal emulator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Emulator {
    /// Its name.
    pub name: String,
    /// Its version: the same bytes give the same frames as long as it is the same.
    pub version: String,
}

impl Emulator {
    /// The emulator of this program.
    pub fn ours() -> Self {
        Self { name: tapdeck_term::EMULATOR_NAME.into(), version: tapdeck_term::EMULATOR_VERSION.into() }
    }

    /// Refuses frames of another emulator.
    ///
    /// # Errors
    /// [`Refusal::Emulator`], with what to do about it.
    pub fn check(&self) -> Result<(), Refusal> {
        let ours = Self::ours();
        if *self == ours {
            return Ok(());
        }
        Err(Refusal::Emulator { found: self.to_string(), ours: ours.to_string() })
    }
}

impl std::fmt::Display for Emulator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

/// How time was kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Times are whole multiples of this.
    pub resolution_ms: u64,
    /// Always `monotonic-elapsed`.
    pub clock_policy: String,
    /// `realtime`, `scaled` or `collapsed`.
    #[serde(default)]
    pub replay_default: Option<String>,
}

impl Timing {
    /// Times are whole multiples of this.
    pub fn resolution(&self) -> Duration {
        Duration::from_millis(self.resolution_ms)
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            resolution_ms: 100,
            clock_policy: "monotonic-elapsed".into(),
            replay_default: Some("realtime".into()),
        }
    }
}

/// Where a cassette comes from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// Commit of the work tree that it was recorded in, if it was one.
    #[serde(default)]
    pub git_sha: Option<String>,
    /// Version of the contract that its service events keep.
    #[serde(default)]
    pub contract_version: Option<String>,
    /// Operating system.
    pub os: String,
    /// Processor.
    pub arch: String,
    /// When, RFC 3339.
    pub recorded_at: String,
    /// Name and version of the recorder.
    pub recorder_version: String,
}

impl Provenance {
    /// Returns that of a recording by this version on this machine, at this time in RFC 3339.
    pub fn here(recorded_at: String) -> Self {
        Self {
            os: std::env::consts::OS.to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
            recorded_at,
            recorder_version: concat!("tapdeck ", env!("CARGO_PKG_VERSION")).to_owned(),
            ..Self::default()
        }
    }
}

impl Manifest {
    /// Reads and checks a manifest.
    ///
    /// # Errors
    /// A higher version, a missing field, an unknown required feature, or values that mean nothing.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, Refusal> {
        let json = |e: serde_json::Error| Refusal::json(names::MANIFEST, 0, &e);
        let value: Value = serde_json::from_slice(bytes).map_err(json)?;
        // The version comes first: what a later one means by the other fields is unknown.
        let Some(version) = value.get("version") else {
            return Err(Refusal::MissingField { file: names::MANIFEST, line: 0, field: "version".into() });
        };
        match version.as_u64() {
            Some(VERSION) => {}
            Some(found) if found > VERSION => return Err(Refusal::Version { found, known: VERSION }),
            _ => {
                let what =
                    format!("version {version} is no version of the format: it is a whole number from 1");
                return Err(Refusal::malformed(names::MANIFEST, 0, what));
            }
        }
        drop(value);
        // Read from the text, so that an error has its line.
        let manifest: Self = serde_json::from_slice(bytes).map_err(json)?;
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), Refusal> {
        let bad = |what: String| Err(Refusal::malformed(names::MANIFEST, 0, what));
        if let Some(unknown) = self.required_features.iter().find(|f| !KNOWN_FEATURES.contains(&f.as_str())) {
            return Err(Refusal::UnknownFeature(unknown.clone()));
        }
        if !is_uuid(&self.id) {
            return bad(format!("id {:?} is no UUID", self.id));
        }
        let digest = &self.content_digest.sha256;
        if digest.len() != 64 || !digest.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return bad(format!(
                "content_digest.sha256 {digest:?} is not 64 hexadecimal digits in lower case"
            ));
        }
        if self.timing.resolution_ms == 0 {
            return bad("timing.resolution_ms is 0; it must be at least 1".into());
        }
        if self.timing.clock_policy != "monotonic-elapsed" {
            let policy = &self.timing.clock_policy;
            return bad(format!(
                "timing.clock_policy is {policy:?}; version 1 knows \"monotonic-elapsed\" alone"
            ));
        }
        if self.terminal.initial_rows == 0 || self.terminal.initial_cols == 0 {
            return bad("terminal.initial_rows and initial_cols must be at least 1".into());
        }
        Ok(())
    }

    /// What the binding should be: a digest over the id and the digests of all files.
    pub(crate) fn binding(&self) -> String {
        let ContentDigest { sha256, files, .. } = &self.content_digest;
        let mut text = format!("tapdeck cassette 1\n{}\n{} {sha256}\n", self.id, names::RAW);
        for (name, digest) in files {
            text.push_str(&format!("{name} {digest}\n"));
        }
        digest_hex(text.as_bytes())
    }

    /// Binds the evidence, and what is said of it, to the id; returns the file's content, with the
    /// keys of its stored form that this version does not know. It is sealed with the key, if there
    /// is one.
    pub(crate) fn bound_bytes(&mut self, stored: &[u8], key: Option<&SealKey>) -> Vec<u8> {
        let own = manifest_digest(&pretty_keeping(stored, self)).unwrap_or_default();
        self.content_digest.files.insert(names::MANIFEST.into(), own);
        let binding = self.binding();
        self.content_digest.seal = key.map(|key| key.seal_binding(&binding));
        self.content_digest.binding = Some(binding);
        pretty_keeping(stored, self)
    }
}
