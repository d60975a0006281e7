//! Tamper evidence: a keyed chain over the blocks of a recording.
//!
//! Each block is hashed together with the hash before it, under a key that only the owner has. The
//! hash of the last block before it, the head, is written into the final `meta.json`, which carries
//! a code over all of its own content; so a changed byte, a removed or exchanged block and an
//! addition all show, and none can be covered up without the key. Events and index stand in blocks
//! of the chain. The part `seal` has the hash after every block, a line each: it tells where a
//! change is, and it is what remains when the head is gone, because the recorder died or the end
//! was cut off. In that case what was sealed is proven, and not that it is all. Parts that are
//! added behind the head are told, and are not sealed.
//!
//! Older recordings have `meta.json`, the lines and other files beside them, and their seal covers
//! these sidecars, too.
//!
//! | what | hash (BLAKE3, keyed) |
//! | --- | --- |
//! | chain start | key *chain*, over the nonce |
//! | after block n | key *chain*, over the hash before, n and the block's length (u64 LE), block |
//! | sidecar | key *sidecar*, over its name, a zero byte, its content |
//! | meta.json | key *meta*, over its JSON without `seal.mac`, keys sorted, no spaces |
//!
//! A cassette is sealed by a code over its binding, which guards all of its files
//! ([`BindingSeal`]), under the key *binding*.
//!
//! The keys are derived from the owner's secret, each under a name of its own.

mod verify;

use std::io::Read;

use blake3::Hash;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lines::Lines;
use crate::meta::Meta;
use crate::{Error, FilePosition, Result};

pub use verify::{SealReport, Verdict, sealed_meta, verify};

const ALGORITHM: &str = "blake3-chain-1";
/// How a cassette is sealed.
const BINDING: &str = "blake3-binding-1";

/// The owner's key.
#[derive(Clone)]
pub struct SealKey {
    chain: [u8; 32],
    sidecar: [u8; 32],
    meta: [u8; 32],
    binding: [u8; 32],
    id: String,
}

impl SealKey {
    /// From a secret of any length. It should be random: a password can be guessed from a sealed
    /// recording.
    pub fn new(secret: &[u8]) -> Self {
        let id = blake3::derive_key("tapdeck recording seal v1: key id", secret);
        Self {
            chain: blake3::derive_key("tapdeck recording seal v1: chain", secret),
            sidecar: blake3::derive_key("tapdeck recording seal v1: sidecar", secret),
            meta: blake3::derive_key("tapdeck recording seal v1: meta", secret),
            binding: blake3::derive_key("tapdeck recording seal v1: binding", secret),
            id: Hash::from_bytes(id).to_hex()[..16].to_owned(),
        }
    }

    /// A name for the key that does not reveal it, to tell a wrong key from a changed recording.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Seals a cassette by its binding.
    pub fn seal_binding(&self, binding: &str) -> BindingSeal {
        let mac = blake3::keyed_hash(&self.binding, binding.as_bytes()).to_hex().to_string();
        BindingSeal { algorithm: BINDING.to_owned(), key_id: self.id.clone(), mac }
    }

    /// Checks a cassette's seal against its binding; returns why it does not hold, if so.
    pub fn check_binding(&self, seal: &BindingSeal, binding: &str) -> Option<String> {
        if seal.algorithm != BINDING {
            return Some(format!("it was sealed in a way that is not known here: {:?}", seal.algorithm));
        }
        if seal.key_id != self.id {
            return Some(format!("it was sealed with the key {:?}, this is {:?}", seal.key_id, self.id));
        }
        let holds = verify::same(&blake3::keyed_hash(&self.binding, binding.as_bytes()), &seal.mac);
        (!holds).then(|| "its content, or its id, is not what was sealed".to_owned())
    }

    fn start(&self, nonce: &str) -> Hash {
        blake3::keyed_hash(&self.chain, nonce.as_bytes())
    }

    fn link(&self, before: &Hash, n: u64, block: &[u8]) -> Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.chain);
        hasher.update(before.as_bytes());
        hasher.update(&n.to_le_bytes());
        hasher.update(&(block.len() as u64).to_le_bytes());
        hasher.update(block);
        hasher.finalize()
    }

    fn sidecar(&self, name: &str, content: &[u8]) -> Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.sidecar);
        hasher.update(name.as_bytes());
        hasher.update(&[0]);
        hasher.update(content);
        hasher.finalize()
    }

    fn meta(&self, meta: &Meta) -> Result<Hash> {
        let mut value =
            serde_json::to_value(meta).map_err(|e| Error::malformed(FilePosition::Line(1), e.to_string()))?;
        if let Some(seal) = value.get_mut("seal").and_then(Value::as_object_mut) {
            seal.remove("mac");
        }
        let mut text = String::new();
        canonical(&value, &mut text);
        Ok(blake3::keyed_hash(&self.meta, text.as_bytes()))
    }
}

impl std::fmt::Debug for SealKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SealKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// What a cassette's manifest says about its seal, under the key `content_digest.seal`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BindingSeal {
    algorithm: String,
    key_id: String,
    mac: String,
}

/// What `meta.json` says about the seal, under the key `seal`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Seal {
    /// How the chain is made.
    pub(crate) algorithm: String,
    /// Which key.
    pub(crate) key_id: String,
    /// What makes this chain different from every other.
    pub(crate) nonce: String,
    /// The head, when the recording is finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) head: Option<Head>,
    /// Codes of the sidecars, by the end of their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) sidecars: Vec<Sidecar>,
    /// Code over all of `meta.json` but this.
    #[serde(default)]
    pub(crate) mac: String,
}

impl Seal {
    /// Length of what is sealed, if the recording is finished.
    pub fn bytes(&self) -> Option<u64> {
        self.head.as_ref().map(|head| head.bytes)
    }

    /// Whether it covers a sidecar of this name.
    pub fn covers(&self, sidecar: &str) -> bool {
        self.sidecars.iter().any(|sealed| sealed.name == sidecar)
    }
}

/// The end of a finished chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    /// Number of blocks.
    pub(crate) blocks: u64,
    /// Length of the recording.
    pub(crate) bytes: u64,
    /// Hash after the last block.
    pub(crate) hash: String,
}

/// A sidecar's code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sidecar {
    /// End of the file's name, such as `snapshots.jsonl`.
    pub(crate) name: String,
    /// Its code.
    pub(crate) mac: String,
}

/// A line of the part `seal`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SealLine {
    /// Number of the block, from 0.
    n: u64,
    /// Where the block ends in the recording.
    end: u64,
    /// Hash after it.
    hash: String,
}

/// Seals a recording while it is written.
#[derive(Debug)]
pub struct Sealer {
    key: SealKey,
    nonce: String,
    hash: Hash,
    blocks: u64,
    bytes: u64,
}

impl Sealer {
    /// `nonce` is 16 random bytes, or any that are used for one recording only.
    pub fn new(key: SealKey, nonce: &[u8]) -> Self {
        let nonce: String = nonce.iter().map(|b| format!("{b:02x}")).collect();
        let hash = key.start(&nonce);
        Self { key, nonce, hash, blocks: 0, bytes: 0 }
    }

    /// Goes on with a recording that is continued, from the seal in its `meta.json` and the lines
    /// of its part `seal`. The recording has to end where the last line says: see
    /// [`Sealer::bytes`].
    ///
    /// # Errors
    /// When the reader fails, when a line is not what the recorder wrote, and when the key is
    /// another one.
    pub fn resume(key: SealKey, seal: &Seal, lines: impl Read) -> Result<Self> {
        if seal.key_id != key.id {
            return Err(Error::malformed(FilePosition::Line(1), "the recording was sealed with another key"));
        }
        let hash = key.start(&seal.nonce);
        let mut sealer = Self { key, nonce: seal.nonce.clone(), hash, blocks: 0, bytes: 0 };
        let mut lines = Lines::new(lines);
        while let Some(line) = lines.next_line()? {
            let parsed: Option<SealLine> = serde_json::from_slice(line.text).ok();
            let hash = parsed.as_ref().and_then(|l| Hash::from_hex(&l.hash).ok());
            match (parsed, hash) {
                (Some(sealed), Some(hash)) if sealed.n == sealer.blocks && sealed.end > sealer.bytes => {
                    (sealer.blocks, sealer.bytes, sealer.hash) = (sealed.n + 1, sealed.end, hash);
                }
                // The recorder died while it wrote this line; the block was not sealed.
                _ if !line.ended => break,
                _ => {
                    return Err(Error::malformed(FilePosition::Line(line.number), "not a line of this seal"));
                }
            }
        }
        Ok(sealer)
    }

    /// How much of the recording is sealed.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes the bytes of one block as written to the file; returns the line for the part
    /// `seal`.
    pub fn block(&mut self, block: &[u8]) -> Vec<u8> {
        self.hash = self.key.link(&self.hash, self.blocks, block);
        self.bytes += block.len() as u64;
        let line = SealLine { n: self.blocks, end: self.bytes, hash: self.hash.to_hex().to_string() };
        self.blocks += 1;
        // Numbers and text always make JSON.
        let mut out = serde_json::to_vec(&line).unwrap_or_default();
        out.push(b'\n');
        out
    }

    /// Puts the seal of a recording in progress into its `meta.json`.
    ///
    /// # Errors
    /// None in practice: all of it can be written as JSON.
    pub fn open_meta(&self, meta: &mut Meta) -> Result<()> {
        self.write_meta(meta, None, Vec::new())
    }

    /// Puts the seal of the finished recording into its last `meta.json`, over sidecars (ends of
    /// names and contents) if there are any. Nothing in `meta` may be changed afterwards.
    ///
    /// # Errors
    /// None in practice: all of it can be written as JSON.
    pub fn close_meta(&self, meta: &mut Meta, sidecars: &[(&str, &[u8])]) -> Result<()> {
        let head = Head { blocks: self.blocks, bytes: self.bytes, hash: self.hash.to_hex().to_string() };
        let sidecars = sidecars
            .iter()
            .map(|(name, content)| Sidecar {
                name: (*name).to_owned(),
                mac: self.key.sidecar(name, content).to_hex().to_string(),
            })
            .collect();
        self.write_meta(meta, Some(head), sidecars)
    }

    fn write_meta(&self, meta: &mut Meta, head: Option<Head>, sidecars: Vec<Sidecar>) -> Result<()> {
        meta.seal = Some(Seal {
            algorithm: ALGORITHM.to_owned(),
            key_id: self.key.id.clone(),
            nonce: self.nonce.clone(),
            head,
            sidecars,
            mac: String::new(),
        });
        let mac = self.key.meta(meta)?.to_hex().to_string();
        if let Some(seal) = &mut meta.seal {
            seal.mac = mac;
        }
        Ok(())
    }
}

/// JSON that depends on the content alone: keys sorted here, whatever order the library keeps them
/// in.
fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort_unstable();
            out.push('{');
            for (i, key) in keys.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                canonical(&map[key], out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                canonical(item, out);
            }
            out.push(']');
        }
        simple => out.push_str(&simple.to_string()),
    }
}

#[cfg(test)]
mod tests;
