//! Records: what a block holds once decompressed. Payloads are slices of the block's buffer, so
//! reading a record copies nothing, and writing one takes whatever buffer the recorder already has.

use bytes::Bytes;
use tapdeck_term::Size;

use super::header::MAX_OFFSET;
use super::mark::Mark;
use super::times::NEVER;

/// Bytes of a DATA record before its payload.
pub(crate) const DATA_HEAD: usize = 24;
/// Bytes of an INPUT record before its payload.
pub(crate) const INPUT_HEAD: usize = 16;
/// Bytes of a PART record before its name.
pub(crate) const PART_HEAD: usize = 17;
const PREFIX: usize = 12;
/// From this tag on, every record has its length behind the common prefix, so that readers can
/// skip those that they do not know.
const FIRST_SKIPPABLE: u8 = 6;
/// Where nothing else bears it out, no more output than this can be missing between two DATA.
pub(super) const MAX_GAP: u64 = 1 << 30;

/// One event of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Wall clock in nanoseconds since 1970.
    pub ts_ns: u64,
    /// What happened.
    pub body: Body,
}

/// What a record says. It differs from [`crate::Kind`] in that marks are numbers, as in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Body {
    /// Bytes that the program wrote.
    Data {
        /// Offset of the first of them in all that the program wrote.
        off: u64,
        /// The bytes, exact.
        bytes: Bytes,
    },
    /// The terminal took this size.
    Resize(Size),
    /// Bytes that were delivered to the program.
    Input {
        /// The bytes, exact.
        bytes: Bytes,
    },
    /// Something of the recorder's own; see [`Mark`].
    Mark {
        /// What it is.
        code: u32,
        /// A value to go with it.
        val: u32,
    },
    /// A file-system snapshot was taken at this point.
    Snapshot {
        /// The snapshot's id, given by the service that took it.
        id: u64,
        /// Offset in the output at which it was taken.
        anchor: u64,
        /// Its label; bytes that are not UTF-8 were replaced on reading.
        label: String,
    },
    /// The next bytes of a part: see [`super::parts`].
    Part {
        /// The part's name, such as `events.jsonl`; at most 255 bytes.
        name: String,
        /// What comes next in it.
        bytes: Bytes,
    },
    /// A record of a kind that a later version added.
    Unknown {
        /// Its tag.
        tag: u8,
        /// What follows its length.
        bytes: Bytes,
    },
}

impl Record {
    /// Bytes that the program wrote, the first of them at `off`.
    pub fn data(ts_ns: u64, off: u64, bytes: impl Into<Bytes>) -> Self {
        Self { ts_ns, body: Body::Data { off, bytes: bytes.into() } }
    }

    /// A new size of the terminal.
    pub fn resize(ts_ns: u64, size: Size) -> Self {
        Self { ts_ns, body: Body::Resize(size) }
    }

    /// Bytes that were delivered to the program.
    pub fn input(ts_ns: u64, bytes: impl Into<Bytes>) -> Self {
        Self { ts_ns, body: Body::Input { bytes: bytes.into() } }
    }

    /// Something of the recorder's own.
    pub fn mark(ts_ns: u64, mark: Mark) -> Self {
        let (code, val) = mark.to_raw();
        Self { ts_ns, body: Body::Mark { code, val } }
    }

    /// A file-system snapshot.
    pub fn snapshot(ts_ns: u64, id: u64, anchor: u64, label: impl Into<String>) -> Self {
        Self { ts_ns, body: Body::Snapshot { id, anchor, label: label.into() } }
    }

    /// The next bytes of a part. Its name is cut to 255 bytes.
    pub fn part(ts_ns: u64, name: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        let mut name = name.into();
        name.truncate(name.floor_char_boundary(usize::from(u8::MAX)));
        Self { ts_ns, body: Body::Part { name, bytes: bytes.into() } }
    }

    /// Whether it belongs to a block that holds parts.
    pub(crate) fn is_part(&self) -> bool {
        matches!(self.body, Body::Part { .. })
    }

    /// Length of the record in a block.
    pub(crate) fn encoded_len(&self) -> usize {
        match &self.body {
            Body::Data { bytes, .. } => DATA_HEAD + bytes.len(),
            Body::Resize(_) => PREFIX + 4,
            Body::Input { bytes } => INPUT_HEAD + bytes.len(),
            Body::Mark { .. } => PREFIX + 8,
            Body::Snapshot { label, .. } => PREFIX + 18 + fitting_label(label).len(),
            Body::Part { name, bytes } => PART_HEAD + name.len() + bytes.len(),
            Body::Unknown { bytes, .. } => PREFIX + 4 + bytes.len(),
        }
    }

    /// The record, or a beginning of its output, in at most `room` bytes; `None` if none fits.
    pub(crate) fn cut_to(self, room: usize) -> Option<Self> {
        if self.encoded_len() <= room {
            return Some(self);
        }
        match self.body {
            Body::Data { off, bytes } if room > DATA_HEAD => {
                Some(Self::data(self.ts_ns, off, bytes.slice(..room - DATA_HEAD)))
            }
            _ => None,
        }
    }

    /// Appends the record as it stands in a block. Payloads are shorter than 4 GiB: the builder
    /// splits them.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let tag: u8 = match &self.body {
            Body::Data { .. } => 0,
            Body::Resize(_) => 1,
            Body::Input { .. } => 2,
            Body::Mark { .. } => 3,
            Body::Snapshot { .. } => 4,
            Body::Part { .. } => 6,
            Body::Unknown { tag, .. } => *tag,
        };
        out.extend_from_slice(&[tag, 0, 0, 0]);
        out.extend_from_slice(&self.ts_ns.to_le_bytes());
        match &self.body {
            Body::Data { off, bytes } => {
                out.extend_from_slice(&off.to_le_bytes());
                out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
                out.extend_from_slice(bytes);
            }
            Body::Resize(Size { cols, rows }) => {
                out.extend_from_slice(&cols.to_le_bytes());
                out.extend_from_slice(&rows.to_le_bytes());
            }
            Body::Input { bytes } => {
                out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
                out.extend_from_slice(bytes);
            }
            Body::Mark { code, val } => {
                out.extend_from_slice(&code.to_le_bytes());
                out.extend_from_slice(&val.to_le_bytes());
            }
            Body::Snapshot { id, anchor, label } => {
                let label = fitting_label(label);
                out.extend_from_slice(&id.to_le_bytes());
                out.extend_from_slice(&anchor.to_le_bytes());
                out.extend_from_slice(&(label.len() as u16).to_le_bytes());
                out.extend_from_slice(label.as_bytes());
            }
            Body::Part { name, bytes } => {
                out.extend_from_slice(&((1 + name.len() + bytes.len()) as u32).to_le_bytes());
                out.push(name.len() as u8);
                out.extend_from_slice(name.as_bytes());
                out.extend_from_slice(bytes);
            }
            Body::Unknown { bytes, .. } => {
                out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
                out.extend_from_slice(bytes);
            }
        }
    }
}

/// A label has 16 bits of length; what is beyond is cut between two characters.
fn fitting_label(label: &str) -> &str {
    let mut end = label.len().min(usize::from(u16::MAX));
    while !label.is_char_boundary(end) {
        end -= 1;
    }
    &label[..end]
}

/// What a walk over the records of a block finds, without touching their payloads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Walk {
    /// Records that are whole.
    pub(crate) count: u64,
    /// Where the last whole one ends.
    pub(crate) len: usize,
    /// Offset in the output of the first DATA.
    pub(crate) start_off: Option<u64>,
    /// Offset in the output behind the last DATA.
    pub(crate) end_off: Option<u64>,
    /// Time of the last record.
    pub(crate) last_ts: Option<u64>,
    /// Why the walk ended early.
    pub(crate) error: Option<RecordError>,
}

/// Steps from record to record. Readers do this once for every block, so that what they hand out is
/// known to be whole.
pub(crate) fn walk(bytes: &[u8]) -> Walk {
    walk_while(bytes, |_, _| None)
}

/// Steps through the beginning of a block whose end is missing or cannot be read. Nothing tells
/// whether it is sound, so the walk ends before the first record that is a year later than the one
/// before it, or whose output begins elsewhere than where it can.
pub(crate) fn walk_torn(bytes: &[u8]) -> Walk {
    let (mut last_ts, mut end) = (None, None);
    walk_while(bytes, |ts, data: Option<(u64, u64)>| {
        if last_ts.replace(ts).is_some_and(|last: u64| ts.saturating_sub(last) > NEVER) {
            return Some("impossible time");
        }
        let (off, len) = data?;
        let known = end.replace(off.saturating_add(len));
        known.is_some_and(|end: u64| off < end || off - end > MAX_GAP).then_some("impossible offset")
    })
}

/// Steps for as long as nothing tells what is wrong with a record's time, or with where its output
/// begins and how long it is.
fn walk_while(bytes: &[u8], mut wrong: impl FnMut(u64, Option<(u64, u64)>) -> Option<&'static str>) -> Walk {
    let mut walk = Walk::default();
    let u32_at = |i: usize| bytes.get(i..)?.first_chunk().map(|b| u32::from_le_bytes(*b));
    let u64_at = |i: usize| bytes.get(i..)?.first_chunk().map(|b| u64::from_le_bytes(*b));
    while walk.len < bytes.len() {
        let at = walk.len;
        let what = "record is cut short";
        let end = match bytes[at] {
            0 => u32_at(at + 20).map(|n| at + DATA_HEAD + n as usize),
            1 => Some(at + PREFIX + 4),
            2 => u32_at(at + 12).map(|n| at + INPUT_HEAD + n as usize),
            3 => Some(at + PREFIX + 8),
            4 => bytes.get(at + 28..at + 30).map(|b| at + 30 + usize::from(u16::from_le_bytes([b[0], b[1]]))),
            5 => bytes
                .get(at + PREFIX)
                .zip(u32_at(at + PREFIX + 1))
                .map(|(name, n)| at + PART_HEAD + usize::from(*name) + n as usize),
            FIRST_SKIPPABLE.. => {
                let len = u32_at(at + PREFIX).map(|n| n as usize);
                // The name of a part is within the record.
                let name = bytes.get(at + PREFIX + 4).map(|name| 1 + usize::from(*name));
                let fits =
                    |len: &usize| bytes[at] != FIRST_SKIPPABLE || name.is_some_and(|name| name <= *len);
                len.filter(fits).map(|len| at + PREFIX + 4 + len)
            }
        };
        let Some(end) = end.filter(|&end| end <= bytes.len()) else {
            walk.error = Some(RecordError { at, what });
            break;
        };
        let data = (bytes[at] == 0).then(|| u64_at(at + 12)).flatten();
        let data = data.map(|off| (off, (end - at - DATA_HEAD) as u64));
        let found = data.and_then(|(off, _)| (off > MAX_OFFSET).then_some("impossible offset"));
        if let Some(what) = found.or_else(|| wrong(u64_at(at + 4).unwrap_or(0), data)) {
            walk.error = Some(RecordError { at, what });
            break;
        }
        if let Some((off, len)) = data {
            walk.start_off.get_or_insert(off);
            walk.end_off = Some(off.saturating_add(len));
        }
        walk.last_ts = u64_at(at + 4);
        walk.count += 1;
        walk.len = end;
    }
    walk
}

/// The records of a block, in order. Ends after the first error: without knowing a record's length
/// nothing behind it can be found.
#[derive(Debug, Clone)]
pub(crate) struct Records {
    bytes: Bytes,
    pos: usize,
    broken: bool,
}

/// Why the rest of a block could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordError {
    /// Offset in the decompressed block.
    pub(crate) at: usize,
    /// What is wrong there.
    pub(crate) what: &'static str,
}

impl Records {
    /// Over the decompressed bytes of a block.
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self { bytes, pos: 0, broken: false }
    }

    /// How far the walk has come: behind the last record.
    pub(super) fn position(&self) -> usize {
        self.pos
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let got = *self.bytes.get(self.pos..)?.first_chunk::<N>()?;
        self.pos += N;
        Some(got)
    }

    fn take_bytes(&mut self, len: usize) -> Option<Bytes> {
        let end = self.pos.checked_add(len).filter(|&end| end <= self.bytes.len())?;
        let got = self.bytes.slice(self.pos..end);
        self.pos = end;
        Some(got)
    }

    fn record(&mut self) -> Result<Record, &'static str> {
        const SHORT: &str = "record is cut short";
        let [tag, _, _, _] = self.take().ok_or(SHORT)?;
        let ts_ns = u64::from_le_bytes(self.take().ok_or(SHORT)?);
        let body = match tag {
            0 => {
                let off = u64::from_le_bytes(self.take().ok_or(SHORT)?);
                let len = u32::from_le_bytes(self.take().ok_or(SHORT)?);
                Body::Data { off, bytes: self.take_bytes(len as usize).ok_or(SHORT)? }
            }
            1 => Body::Resize(Size {
                cols: u16::from_le_bytes(self.take().ok_or(SHORT)?),
                rows: u16::from_le_bytes(self.take().ok_or(SHORT)?),
            }),
            2 => {
                let len = u32::from_le_bytes(self.take().ok_or(SHORT)?);
                Body::Input { bytes: self.take_bytes(len as usize).ok_or(SHORT)? }
            }
            3 => Body::Mark {
                code: u32::from_le_bytes(self.take().ok_or(SHORT)?),
                val: u32::from_le_bytes(self.take().ok_or(SHORT)?),
            },
            4 => {
                let id = u64::from_le_bytes(self.take().ok_or(SHORT)?);
                let anchor = u64::from_le_bytes(self.take().ok_or(SHORT)?);
                let len = u16::from_le_bytes(self.take().ok_or(SHORT)?);
                let label = self.take_bytes(usize::from(len)).ok_or(SHORT)?;
                Body::Snapshot { id, anchor, label: String::from_utf8_lossy(&label).into_owned() }
            }
            5 => {
                let [name_len] = self.take().ok_or(SHORT)?;
                let len = u32::from_le_bytes(self.take().ok_or(SHORT)?);
                let name = self.take_bytes(usize::from(name_len)).ok_or(SHORT)?;
                let bytes = self.take_bytes(len as usize).ok_or(SHORT)?;
                Body::Part { name: String::from_utf8_lossy(&name).into_owned(), bytes }
            }
            FIRST_SKIPPABLE => {
                let len = u32::from_le_bytes(self.take().ok_or(SHORT)?) as usize;
                let [name_len] = self.take().ok_or(SHORT)?;
                let name = self.take_bytes(usize::from(name_len)).ok_or(SHORT)?;
                let rest = len.checked_sub(1 + name.len()).ok_or(SHORT)?;
                let bytes = self.take_bytes(rest).ok_or(SHORT)?;
                Body::Part { name: String::from_utf8_lossy(&name).into_owned(), bytes }
            }
            7.. => {
                let len = u32::from_le_bytes(self.take().ok_or(SHORT)?);
                Body::Unknown { tag, bytes: self.take_bytes(len as usize).ok_or(SHORT)? }
            }
        };
        Ok(Record { ts_ns, body })
    }
}

impl Iterator for Records {
    type Item = Result<Record, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.broken || self.pos == self.bytes.len() {
            return None;
        }
        let at = self.pos;
        Some(self.record().map_err(|what| {
            self.broken = true;
            RecordError { at, what }
        }))
    }
}
