//! Checking a seal: what is proven, and where the proof ends.

use std::io::Read;

use blake3::Hash;

use super::{ALGORITHM, Head, Seal, SealKey, SealLine};
use crate::ahr::{Block, BlockItem, BlockReader, HEADER_LEN, Header, MAX_COMPRESSED, VERSION};
use crate::lines::Lines;
use crate::meta::Meta;
use crate::window::Window;
use crate::{Error, Result};

/// Problems beyond this many are only counted.
const MAX_PROBLEMS: usize = 50;

/// What a check of a seal came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Everything is what was sealed, from the first byte to the head; what was added later is not
    /// looked at, but that it is nothing of the session.
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

/// The `meta.json` to check a recording against: the last that the key vouches for and that has a
/// head. Without one, the last that the key vouches for, or that has a seal at all.
pub fn sealed_meta<'a>(metas: &'a [Meta], key: &SealKey) -> Option<&'a Meta> {
    let sealed = metas.iter().filter_map(|meta| Some((meta, meta.seal.as_ref()?)));
    let ranked = sealed.map(|(meta, seal)| {
        let vouched = seal.key_id == key.id && key.meta(meta).is_ok_and(|hash| same(&hash, &seal.mac));
        ((vouched, vouched && seal.head.is_some()), meta)
    });
    ranked.max_by_key(|(rank, _)| *rank).map(|(_, meta)| meta)
}

/// Checks a recording against its `meta.json`. With the lines of the seal, a change is located
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
    check_blocks(recording, seal, lines, key, &mut report)?;
    if seal.head.is_none() && report.verdict == Verdict::Intact {
        report.verdict = Verdict::Unfinished;
    }
    Ok(report)
}

/// Equal in constant time, when the text is a hash at all.
pub(super) fn same(hash: &Hash, text: &str) -> bool {
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

/// Checks the chain. By the lines, each block is checked against the hash before it as written, so
/// that one changed block does not make all the later ones look changed. The head proves the blocks
/// that have no line.
fn check_blocks(
    recording: impl Read,
    seal: &Seal,
    lines: Option<impl Read>,
    key: &SealKey,
    report: &mut SealReport,
) -> Result<()> {
    let mut window = Window::new(recording, 0);
    let (mut hash, mut n) = (key.start(&seal.nonce), 0);
    let mut last = None;
    let has_lines = lines.is_some();
    if let Some(lines) = lines {
        (hash, n) = match check_lines(&mut window, lines, (hash, n), &mut last, key, report)? {
            Some(reached) => reached,
            None => return Ok(()),
        };
    }
    let Some(head) = &seal.head else {
        let end = window.offset();
        if !has_lines {
            report.problems.push("without a head and without the seal's lines nothing is proven".into());
        } else if window.fill(1)? > 0 {
            report.problems.push(format!("byte {end}: what follows was not sealed any more"));
        }
        return Ok(());
    };
    let proven = n;
    while window.offset() < head.bytes {
        let at = window.offset();
        let Some(len) = block_len(&mut window)? else {
            report.bad(Some(at), format!("byte {at}: here was a block when it was sealed"));
            return Ok(());
        };
        hash = key.link(&hash, n, &window.data()[..len]);
        last = Header::from_bytes(window.data());
        window.consume(len);
        n += 1;
    }
    check_head(head, n, window.offset(), &hash, report);
    if report.verdict == Verdict::Intact {
        report.blocks += n - proven;
    }
    check_behind(window, last, report)
}

/// Length of the block at which the window stands; `None` if there is none, or not all of it.
fn block_len(window: &mut Window<impl Read>) -> Result<Option<usize>> {
    window.fill(HEADER_LEN)?;
    let header = Header::from_bytes(window.data()).filter(|header| header.compressed_len <= MAX_COMPRESSED);
    let Some(header) = header else { return Ok(None) };
    let len = usize::from(header.header_len) + header.compressed_len as usize;
    Ok((window.fill(len)? >= len).then_some(len))
}

/// Checks blocks by their lines. Returns the hash behind them and how many they are; `None` when
/// the recording ends before them.
fn check_lines(
    window: &mut Window<impl Read>,
    lines: impl Read,
    (mut before, mut n): (Hash, u64),
    last: &mut Option<Header>,
    key: &SealKey,
    report: &mut SealReport,
) -> Result<Option<(Hash, u64)>> {
    let mut lines = Lines::new(lines);
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
            return Ok(None);
        }
        if key.link(&before, n, &window.data()[..len as usize]) == hash {
            report.blocks += 1;
        } else {
            report.bad(Some(at), format!("byte {at}: block {n} is not what was sealed"));
        }
        *last = Header::from_bytes(window.data());
        window.consume(len as usize);
        before = hash;
        n += 1;
    }
    Ok(Some((before, n)))
}

/// Behind the head, only parts may have been added. The first of these blocks holds the head, so
/// the chain cannot cover it: it must be what the recorder makes of its content, and follow `last`.
fn check_behind(window: Window<impl Read>, last: Option<Header>, report: &mut SealReport) -> Result<()> {
    let end = window.offset();
    let mut place = last.filter(Header::has_part).map(place_of);
    let mut blocks = BlockReader::starting_at(window.into_rest(), end);
    loop {
        match blocks.next_item() {
            Ok(Some(BlockItem::Block(block))) => {
                let at = block.offset;
                let others = block.records().flatten().any(|record| !record.is_part());
                if others || block.record_count == 0 {
                    report.bad(Some(at), format!("byte {at}: something follows the sealed end"));
                } else if !is_as_written(&block)
                    || place_of(block.header) != *place.get_or_insert(place_of(block.header))
                {
                    report.bad(Some(at), format!("byte {at}: the block behind the sealed end was changed"));
                }
            }
            Ok(Some(BlockItem::Damage(damage))) => report.bad(Some(damage.offset), damage.to_string()),
            Err(Error::Locked { at }) => {
                let what =
                    format!("{at}: what follows the sealed end cannot be read with the given identities");
                report.bad(Some(end), what);
                return Ok(());
            }
            Ok(None) => return Ok(()),
            Err(e) => return Err(e),
        }
        if report.more > 0 {
            return Ok(());
        }
    }
}

/// The time and the place in the output that all blocks of parts behind one another have.
fn place_of(header: Header) -> (u64, u64) {
    (header.start_ts_ns, header.start_byte_off)
}

/// Whether a block of parts is, but for its compression, what the recorder makes of its records
/// when the session has ended.
fn is_as_written(block: &Block) -> bool {
    let header = block.header;
    let mut bytes = Vec::new();
    for record in block.records().flatten() {
        if record.ts_ns != header.start_ts_ns {
            return false;
        }
        record.encode(&mut bytes);
    }
    let written = Header {
        version: VERSION,
        header_len: HEADER_LEN as u16,
        flags: Header::flags(true, true),
        uncompressed_len: bytes.len() as u32,
        record_count: block.record_count as u32,
        reserved: [0; 3],
        ..header
    };
    header == written && block.bytes == bytes
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
