//! Reading an index. Dumps stay in the file until one is wanted; what is kept in memory is some
//! dozens of bytes for every few megabytes of recording.

use std::io::{Read, Seek, SeekFrom};
use std::time::Duration;

use bytes::BytesMut;
use tapdeck_core::{Time, WallTime};
use tapdeck_term::Size;

use super::{Chain, END, KEYFRAME, MAGIC, MAX_BODY, MAX_DUMP, MOMENT, VERSION, check};
use crate::ahr::{Scan, ScanItem, decompress_exact};
use crate::replay::{Moment, MomentKind};
use crate::{Error, FilePosition, Result};

/// No recording has more keyframes or moments than this.
const MAX_ENTRIES: usize = 1_000_000;
const ENTRY_HEAD: usize = 13;

/// Where a recording can be entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keyframe {
    /// Where the block begins that follows it.
    pub block_offset: u64,
    /// Time of the last record before it, since the start.
    pub time: Time,
    /// How much the program had written.
    pub byte_off: u64,
    /// Size of the terminal.
    pub size: Size,
    /// Wall clock of the record before it.
    pub last_ts: u64,
    pub(crate) chain: [u8; 32],
    /// Where its body lies in the index.
    at: u64,
    len: u32,
}

impl Keyframe {
    /// Where its entry ends in the index.
    pub fn end(&self) -> u64 {
        self.at + u64::from(self.len)
    }
}

/// An index, as far as it could be read.
#[derive(Debug, Clone, Default)]
pub struct Index {
    /// Wall clock at the start of the recording.
    pub started: WallTime,
    /// Keyframes, in order.
    pub keyframes: Vec<Keyframe>,
    /// Moments, in order.
    pub moments: Vec<Moment>,
    /// Length of the recording, its duration and its output, as of the last end that was written.
    pub end: Option<(u64, Time, u64)>,
    end_chain: [u8; 32],
}

impl Index {
    /// Reads an index. A torn or damaged end costs only itself.
    ///
    /// # Errors
    /// When the reader fails or this is not an index.
    pub fn load<R: Read + Seek>(mut file: R) -> Result<Self> {
        let mut head = [0; 16];
        let at = |n| FilePosition::Byte(n);
        file.seek(SeekFrom::Start(0)).map_err(|source| Error::Read { at: at(0), source })?;
        file.read_exact(&mut head).map_err(|source| Error::Read { at: at(0), source })?;
        let [m0, m1, m2, m3, v0, v1, v2, v3, start @ ..] = head;
        if [m0, m1, m2, m3] != MAGIC {
            return Err(Error::malformed(at(0), "not an index"));
        }
        let version = u32::from_le_bytes([v0, v1, v2, v3]);
        if version > VERSION {
            let (found, known) = (version.into(), VERSION.into());
            return Err(Error::Version { at: at(4), format: "ahx", found, known });
        }
        let mut index = Self { started: WallTime::from_nanos(u64::from_le_bytes(start)), ..Self::default() };
        let mut pos = 16;
        while index.keyframes.len() + index.moments.len() < MAX_ENTRIES {
            let mut head = [0; ENTRY_HEAD];
            if file.seek(SeekFrom::Start(pos)).is_err() || file.read_exact(&mut head).is_err() {
                break;
            }
            let [tag, l0, l1, l2, l3, sum @ ..] = head;
            let len = u32::from_le_bytes([l0, l1, l2, l3]);
            if len > MAX_BODY {
                break;
            }
            let body_at = pos + ENTRY_HEAD as u64;
            if !index.entry(&mut file, tag, body_at, len, sum)? {
                break;
            }
            pos = body_at + u64::from(len);
        }
        Ok(index)
    }

    /// Takes an entry; `false` when the file ends within it or it is damaged.
    fn entry<R: Read>(&mut self, file: &mut R, tag: u8, at: u64, len: u32, sum: [u8; 8]) -> Result<bool> {
        // A keyframe's dump is checked when it is used; reading them all would be reading the whole
        // index.
        let want = if tag == KEYFRAME { len.min(68) } else { len } as usize;
        if !matches!(tag, KEYFRAME | MOMENT | END) {
            return Ok(true);
        }
        let mut body = vec![0; want];
        if file.read_exact(&mut body).is_err() || (tag != KEYFRAME && check(tag, &body) != sum) {
            return Ok(false);
        }
        let word =
            |i: usize| body.get(i..i + 8).and_then(|b| b.first_chunk()).map(|b| u64::from_le_bytes(*b));
        let chain = |i: usize| body.get(i..i + 32).and_then(|b| b.first_chunk::<32>()).copied();
        let short = |i: usize| body.get(i..i + 2).map(|b| u16::from_le_bytes([b[0], b[1]]));
        let (Some(a), Some(b), Some(c)) = (word(0), word(8), word(16)) else { return Ok(false) };
        match tag {
            KEYFRAME => {
                let (Some(chain), Some(cols), Some(rows), Some(last_ts)) =
                    (chain(32), short(64), short(66), word(24))
                else {
                    return Ok(false);
                };
                self.keyframes.push(Keyframe {
                    block_offset: a,
                    time: Time::from_nanos(b),
                    byte_off: c,
                    size: Size { cols, rows },
                    last_ts,
                    chain,
                    at,
                    len,
                });
            }
            MOMENT => {
                let Some(id) = word(24) else { return Ok(false) };
                self.moments.push(Moment {
                    kind: if c == 1 { MomentKind::Snapshot(id) } else { MomentKind::Marker },
                    time: Time::from_nanos(a),
                    wall: Some(self.started + Duration::from_nanos(a)),
                    anchor: b,
                    label: String::from_utf8_lossy(body.get(32..).unwrap_or_default()).into_owned(),
                });
            }
            _ => {
                let Some(chain) = chain(24) else { return Ok(false) };
                (self.end, self.end_chain) = (Some((a, Time::from_nanos(b), c)), chain);
            }
        }
        Ok(true)
    }

    /// Keeps only what belongs to this recording: its headers are read and compared. Returns
    /// whether the index covers the recording to its end, but for parts; if not, it is stale or
    /// unfinished, and worth making anew.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn check<R: Read + Seek>(&mut self, recording: R) -> Result<bool> {
        let mut scan = Scan::new(recording)?;
        let file_len = scan.file_len();
        let mut chain = Chain::new();
        let mut good = 0;
        let mut covered = false;
        loop {
            let item = scan.next_item()?;
            let offset = match &item {
                Some(ScanItem::Block(info)) => info.offset,
                Some(ScanItem::Damage(_)) => {
                    covered = false;
                    continue;
                }
                None => file_len,
            };
            if self.end.is_some_and(|(len, ..)| len == offset) {
                covered = self.end_chain == chain.0;
            }
            while let Some(keyframe) = self.keyframes.get(good)
                && keyframe.block_offset <= offset
            {
                if keyframe.block_offset != offset || keyframe.chain != chain.0 {
                    self.keyframes.truncate(good);
                    self.end = None;
                    return Ok(false);
                }
                good += 1;
            }
            let Some(ScanItem::Block(info)) = item else { break };
            // Parts, of which the index itself is one, show nothing.
            covered &= info.header.has_part() && !info.header.is_encrypted();
            chain.add(&info.header.to_bytes());
        }
        self.keyframes.truncate(good);
        if !covered {
            self.end = None;
        }
        Ok(covered)
    }

    /// How many keyframes there are before the first whose dump is damaged.
    pub fn whole_keyframes<R: Read + Seek>(&self, file: &mut R) -> usize {
        self.keyframes.iter().take_while(|keyframe| self.dump(file, keyframe).is_ok()).count()
    }

    /// The dump of a keyframe: bytes to feed to a fresh terminal of its size.
    ///
    /// # Errors
    /// When the index cannot be read or the dump is damaged.
    pub fn dump<R: Read + Seek>(&self, file: &mut R, keyframe: &Keyframe) -> Result<Vec<u8>> {
        let at = FilePosition::Byte(keyframe.at);
        let fail = |source| Error::Read { at, source };
        let head_at = keyframe.at - ENTRY_HEAD as u64;
        file.seek(SeekFrom::Start(head_at)).map_err(fail)?;
        let mut head = [0; ENTRY_HEAD];
        file.read_exact(&mut head).map_err(fail)?;
        let mut body = vec![0; keyframe.len as usize];
        file.read_exact(&mut body).map_err(fail)?;
        let damaged = || Error::malformed(at, "the keyframe is damaged");
        if head[5..] != check(KEYFRAME, &body) {
            return Err(damaged());
        }
        let len = body.get(68..72).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        if len > MAX_DUMP {
            return Err(damaged());
        }
        let mut out = BytesMut::new();
        decompress_exact(body.get(72..).unwrap_or_default(), len as usize, &mut out).ok_or_else(damaged)?;
        Ok(out.to_vec())
    }
}
