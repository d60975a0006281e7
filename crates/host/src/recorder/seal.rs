//! Sealing a recording while it is written: the chain goes on with every block that reached the
//! disk.

use std::fs::File;
use std::io::{self, Read};

use tapdeck_tape::meta::Meta;
use tapdeck_tape::seal::{SealKey, Sealer};

/// A seal in the making.
pub(super) struct Sealing {
    sealer: Sealer,
    /// Lines for blocks, not yet in the recording.
    lines: Vec<u8>,
}

impl Sealing {
    /// Begins a seal.
    pub(super) fn begin(key: SealKey) -> io::Result<Self> {
        let mut nonce = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut nonce)?;
        Ok(Self { sealer: Sealer::new(key, &nonce), lines: Vec::new() })
    }

    /// Takes a block as it was written.
    pub(super) fn block(&mut self, block: &[u8]) {
        let line = self.sealer.block(block);
        self.lines.extend_from_slice(&line);
    }

    /// The lines that are not in the recording yet.
    pub(super) fn lines(&self) -> &[u8] {
        &self.lines
    }

    /// So much of the lines has reached the recording.
    pub(super) fn wrote(&mut self, len: usize) {
        self.lines.drain(..len);
    }

    /// Puts the seal into the description that is about to be written: the head only when nothing
    /// follows.
    pub(super) fn sign(&self, meta: &mut Meta, closing: bool) -> io::Result<()> {
        match closing {
            true => self.sealer.close_meta(meta, &[]),
            false => self.sealer.open_meta(meta),
        }
        .map_err(io::Error::other)
    }
}
