//! Making an index: while recording, from the blocks as they are written, or later from the file.

use std::io::Read;

use tapdeck_term::{Settings, Size, Term};

use super::{Chain, END, KEYFRAME, Keyframe, MAGIC, MOMENT, VERSION, check};
use crate::ahr::{Block, BlockItem, BlockReader, Body, Mark, Quality, compress_into, leaps};
use crate::event::clamp_size;

/// How dense an index is.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct IndexOptions {
    pub(crate) every_bytes: u64,
    pub(crate) pipes: bool,
}

impl Default for IndexOptions {
    fn default() -> Self {
        Self { every_bytes: 4 << 20, pipes: false }
    }
}

impl IndexOptions {
    /// Sets how much output comes between two keyframes: the most that has to be replayed after a
    /// jump. 4 MiB by default.
    #[must_use]
    pub fn every_bytes(mut self, every_bytes: u64) -> Self {
        self.every_bytes = every_bytes;
        self
    }

    /// Says that the program had no terminal: see [`crate::Header::pipes`].
    #[must_use]
    pub fn pipes(mut self, pipes: bool) -> Self {
        self.pipes = pipes;
        self
    }
}

/// Makes an index from the blocks of a recording, in order.
#[derive(Debug)]
pub struct IndexBuilder {
    term: Term,
    options: IndexOptions,
    chain: Chain,
    last_ts: Option<u64>,
    time_ns: u64,
    /// Time of the record before the last, by the wall clock and in the recording.
    before: Option<(u64, u64)>,
    byte_off: u64,
    since_keyframe: u64,
    began: bool,
    scratch: Vec<u8>,
}

impl IndexBuilder {
    /// For a recording from its start.
    pub fn new(options: IndexOptions) -> Self {
        Self {
            term: screens(Size::default(), options.pipes),
            options,
            chain: Chain::new(),
            last_ts: None,
            time_ns: 0,
            before: None,
            byte_off: 0,
            since_keyframe: 0,
            began: false,
            scratch: Vec::new(),
        }
    }

    /// Goes on behind a keyframe of an index that breaks off, with the keyframe's dump: the next
    /// block is the one at its offset, and what comes of it is to be written at [`Keyframe::end`].
    pub fn resume(options: IndexOptions, keyframe: &Keyframe, dump: &[u8]) -> Self {
        let mut term = screens(keyframe.size, options.pipes);
        term.feed_at(dump, keyframe.byte_off.saturating_sub(dump.len() as u64));
        Self {
            term,
            chain: Chain(keyframe.chain),
            last_ts: Some(keyframe.last_ts),
            time_ns: keyframe.time.as_nanos(),
            byte_off: keyframe.byte_off,
            began: true,
            ..Self::new(options)
        }
    }

    /// Takes the next block and appends to `out` what belongs into the index before it and of it.
    pub fn block(&mut self, block: &Block, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.began, true) {
            out.extend_from_slice(&MAGIC);
            out.extend_from_slice(&VERSION.to_le_bytes());
            out.extend_from_slice(&block.header.start_ts_ns.to_le_bytes());
        }
        if self.since_keyframe >= self.options.every_bytes {
            self.keyframe(block.offset, out);
        }
        for record in block.records().flatten() {
            let last = self.last_ts.replace(record.ts_ns).unwrap_or(record.ts_ns);
            let before = self.before.replace((last, self.time_ns));
            self.time_ns = self.time_ns.saturating_add(record.ts_ns.saturating_sub(last));
            if let Some((ts, time_ns)) = before.filter(|(ts, _)| leaps(*ts, last, record.ts_ns)) {
                self.time_ns = time_ns.saturating_add(record.ts_ns - ts);
            }
            match record.body {
                Body::Data { off, bytes } => {
                    self.term.feed_at(&bytes, off);
                    self.byte_off = off.saturating_add(bytes.len() as u64);
                    self.since_keyframe += bytes.len() as u64;
                }
                Body::Resize(size) => {
                    self.term.resize(clamp_size(size.cols.into(), size.rows.into()));
                }
                Body::Snapshot { id, anchor, label } => self.moment(1, id, anchor, &label, out),
                Body::Mark { code, val } => {
                    if let Mark::Label(n) = Mark::from_raw(code, val) {
                        self.moment(0, n.into(), self.byte_off, "", out);
                    }
                }
                Body::Input { .. } | Body::Part { .. } | Body::Unknown { .. } => {}
            }
        }
        self.chain.add(&block.header.to_bytes());
    }

    /// How much the program had written at the end of the last block.
    pub fn byte_off(&self) -> u64 {
        self.byte_off
    }

    /// The end of the recording as it is now, `file_len` bytes long. More may follow later.
    pub fn finish(&mut self, file_len: u64, out: &mut Vec<u8>) {
        let mut body = Vec::with_capacity(56);
        for n in [file_len, self.time_ns, self.byte_off] {
            body.extend_from_slice(&n.to_le_bytes());
        }
        body.extend_from_slice(&self.chain.0);
        entry(END, &body, out);
    }

    fn keyframe(&mut self, block_offset: u64, out: &mut Vec<u8>) {
        self.since_keyframe = 0;
        let dump = self.term.dump();
        let size = self.term.size();
        let mut body = std::mem::take(&mut self.scratch);
        body.clear();
        for n in [block_offset, self.time_ns, self.byte_off, self.last_ts.unwrap_or(0)] {
            body.extend_from_slice(&n.to_le_bytes());
        }
        body.extend_from_slice(&self.chain.0);
        body.extend_from_slice(&size.cols.to_le_bytes());
        body.extend_from_slice(&size.rows.to_le_bytes());
        body.extend_from_slice(&(dump.len() as u32).to_le_bytes());
        compress_into(&dump, Quality::Brotli(1), &mut body);
        entry(KEYFRAME, &body, out);
        self.scratch = body;
    }

    fn moment(&mut self, kind: u64, id: u64, anchor: u64, label: &str, out: &mut Vec<u8>) {
        let mut body = Vec::with_capacity(32 + label.len());
        for n in [self.time_ns, anchor, kind, id] {
            body.extend_from_slice(&n.to_le_bytes());
        }
        body.extend_from_slice(label.as_bytes());
        entry(MOMENT, &body, out);
    }
}

/// A terminal for keyframes. They hold the screens: scrollback would make each a hundred times
/// larger.
fn screens(size: Size, pipes: bool) -> Term {
    Term::new(size, Settings::default().scrollback(0).replies(false).newline_mode(pipes))
}

fn entry(tag: u8, body: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    out.extend_from_slice(&(body.len() as u32).to_le_bytes());
    out.extend_from_slice(&check(tag, body));
    out.extend_from_slice(body);
}

/// Makes the index of a whole recording; `sink` takes it piece by piece.
///
/// # Errors
/// When the recording cannot be read, or `sink` fails.
pub fn build_index<E: From<crate::Error>>(
    recording: impl Read,
    options: IndexOptions,
    sink: impl FnMut(&[u8]) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let mut blocks = BlockReader::new(recording);
    index_blocks(IndexBuilder::new(options), || blocks.next_item(), sink)
}

/// Builds an index from blocks that the caller reads, from where `builder` stands.
///
/// # Errors
/// When `next` or `sink` fails.
pub fn index_blocks<E: From<crate::Error>>(
    mut builder: IndexBuilder,
    mut next: impl FnMut() -> crate::Result<Option<BlockItem>>,
    mut sink: impl FnMut(&[u8]) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let mut out = Vec::new();
    let mut end = 0;
    while let Some(item) = next()? {
        end = item.end();
        if let BlockItem::Block(block) = item {
            builder.block(&block, &mut out);
            sink(&out)?;
            out.clear();
        }
    }
    builder.finish(end, &mut out);
    sink(&out)
}
