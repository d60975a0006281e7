//! Checking a seal: what is proven, and where the proof ends.

use std::io::Read;

use blake3::Hash;

use super::{ALGORITHM, Head, Seal, SealKey, SealLine};
use crate::Result;
use crate::ahr::{BlockItem, BlockReader, MAX_COMPRESSED};
use crate::lines::Lines;
use crate::meta::Meta;
use crate::window::Window;

/// Problems beyond this many are only counted.
const MAX_PROBLEMS: usize = 50;

/// What a check of a seal came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Recording, sidecars and meta are what was sealed, from the first byte to the last.
    Intact,
    /// The recorder never finished: all that was sealed is intact, but the end is not proven.
    Unfinished,
    /// Something was changed, removed, added or cut.
    Broken,
    /// The recording was sealed with another key.
    WrongKey,
    /// There is no seal that could be checked.
    Unsealed,
}

/// The outcome in detail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealReport {
    /// In one word.
    pub verdict: Verdict,
    /// Blocks that are proven.
    pub blocks: u64,
    /// Where the first thing is that is wrong in the recording.
    pub first_bad: Option<u64>,
    /// Everything that is wrong, in words.
    pub problems: Vec<String>,
    /// How many more things are wrong.
    pub more: u64,
}

impl SealReport {
    fn bad(&mut self, at: Option<u64>, what: impl Into<String>) {
        self.verdict = Verdict::Broken;
        self.first_bad = self.first_bad.or(at);
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(what.into());
        } else {
            self.more += 1;
        }
    }
}

/// Checks a recording against its `meta.json`. With the lines of `NAME.seal`, a change is located
/// and an unfinished recording can be checked. `sidecars` are the ends of names and contents of
/// those that exist.
///
/// # Errors
/// When a reader fails; what is wrong with the recording is in the report.
pub fn verify(
    recording: impl Read,
    meta: &Meta,
    lines: Option<impl Read>,
    sidecars: &[(&str, &[u8])],
    key: &SealKey,
) -> Result<SealReport> {
    let mut report =
        SealReport { verdict: Verdict::Intact, blocks: 0, first_bad: None, problems: Vec::new(), more: 0 };
    let Some(seal) = &meta.seal else {
        report.verdict = Verdict::Unsealed;
        return Ok(report);
    };
    if seal.algorithm != ALGORITHM {
        report.verdict = Verdict::Unsealed;
        report.problems.push(format!("sealed in a way that is not known here: {:?}", seal.algorithm));
        return Ok(report);
    }
    if seal.key_id != key.id {
        report.verdict = Verdict::WrongKey;
        report.problems.push(format!("sealed with the key {:?}, this is {:?}", seal.key_id, key.id));
        return Ok(report);
    }
    if !same(&key.meta(meta)?, &seal.mac) {
        report.bad(None, "meta.json was changed");
    }
    check_sidecars(seal, sidecars, key, &mut report);
    match lines {
        Some(lines) => check_lines(recording, seal, lines, key, &mut report)?,
        None => check_whole(recording, seal, key, &mut report)?,
    }
    if seal.head.is_none() && report.verdict == Verdict::Intact {
        report.verdict = Verdict::Unfinished;
    }
    Ok(report)
}

/// Equal in constant time, when the text is a hash at all.
fn same(hash: &Hash, text: &str) -> bool {
    Hash::from_hex(text).is_ok_and(|other| other == *hash)
}

fn check_sidecars(seal: &Seal, given: &[(&str, &[u8])], key: &SealKey, report: &mut SealReport) {
    for sealed in &seal.sidecars {
        match given.iter().find(|(name, _)| *name == sealed.name) {
            None => report.bad(None, format!("{} is missing", sealed.name)),
            Some((name, content)) if !same(&key.sidecar(name, content), &sealed.mac) => {
                report.bad(None, format!("{name} was changed"));
            }
            Some(_) => {}
        }
    }
    if seal.head.is_some() {
        for (name, _) in given.iter().filter(|(name, _)| seal.sidecars.iter().all(|s| s.name != *name)) {
            report.bad(None, format!("{name} was added"));
        }
    }
}

/// By the hashes after every block: each is checked against the one before it as written, so that
/// one changed block does not make all the later ones look changed.
fn check_lines(
    recording: impl Read,
    seal: &Seal,
    lines: impl Read,
    key: &SealKey,
    report: &mut SealReport,
) -> Result<()> {
    let mut window = Window::new(recording, 0);
    let mut lines = Lines::new(lines);
    let mut before = key.start(&seal.nonce);
    let mut n = 0;
    while let Some(line) = lines.next_line()? {
        let at = window.offset();
        let parsed = serde_json::from_slice::<SealLine>(line.text).ok();
        let hash = parsed.as_ref().and_then(|l| Hash::from_hex(&l.hash).ok());
        let (Some(sealed), Some(hash)) = (parsed, hash) else {
            // The recorder may have died while it wrote the last line.
            if line.ended {
                report.bad(None, format!("the seal's line {} is damaged", line.number));
            }
            break;
        };
        let len = sealed.end.saturating_sub(at);
        if sealed.n != n || len == 0 || len > u64::from(MAX_COMPRESSED) + 1024 {
            report.bad(Some(at), format!("the seal's line {} does not follow the one before", line.number));
            break;
        }
        let have = window.fill(len as usize)?;
        if (have as u64) < len {
            let lacking = len - have as u64;
            report
                .bad(Some(at), format!("byte {at}: block {n} is cut: at least {lacking} bytes are missing"));
            return Ok(());
        }
        if key.link(&before, n, &window.data()[..len as usize]) == hash {
            report.blocks += 1;
        } else {
            report.bad(Some(at), format!("byte {at}: block {n} is not what was sealed"));
        }
        window.consume(len as usize);
        before = hash;
        n += 1;
    }
    let end = window.offset();
    let beyond = window.fill(1)? > 0;
    match &seal.head {
        Some(head) => {
            check_head(head, n, end, &before, report);
            if beyond {
                report.bad(Some(end), format!("byte {end}: something follows the sealed end"));
            }
        }
        None if beyond => report.problems.push(format!("byte {end}: what follows was not sealed any more")),
        None => {}
    }
    Ok(())
}

/// By the head alone.
fn check_whole(recording: impl Read, seal: &Seal, key: &SealKey, report: &mut SealReport) -> Result<()> {
    let mut blocks = BlockReader::new(recording).keeping_raw().leaving_encrypted();
    let mut hash = key.start(&seal.nonce);
    let (mut n, mut end) = (0, 0);
    while let Some(item) = blocks.next_item()? {
        match item {
            BlockItem::Block(block) => {
                hash = key.link(&hash, n, block.raw.as_deref().unwrap_or_default());
                n += 1;
                end = block.offset + block.len;
            }
            BlockItem::Damage(damage) => report.bad(Some(damage.offset), damage.to_string()),
        }
    }
    match &seal.head {
        Some(head) => {
            check_head(head, n, end, &hash, report);
            if report.verdict == Verdict::Intact {
                report.blocks = n;
            }
        }
        None => report.problems.push("without a head and without the seal's lines nothing is proven".into()),
    }
    Ok(())
}

fn check_head(head: &Head, blocks: u64, bytes: u64, hash: &Hash, report: &mut SealReport) {
    if (head.blocks, head.bytes) != (blocks, bytes) {
        let what = format!(
            "{blocks} blocks of {bytes} bytes are there, {} of {} were sealed",
            head.blocks, head.bytes
        );
        report.bad(Some(bytes.min(head.bytes)), what);
    } else if !same(hash, &head.hash) && report.verdict == Verdict::Intact {
        report.bad(None, "the recording is not what was sealed");
    }
}
