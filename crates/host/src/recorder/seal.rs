//! Sealing a recording while it is written: the chain goes on with every block that reached the
//! disk.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use tapdeck_tape::meta::Meta;
use tapdeck_tape::seal::{SealKey, Sealer};

use super::sidecar;
use crate::disk::DiskFile;

/// The sidecars that a seal covers, by the ends of their names.
pub const SEALED_SIDECARS: [&str; 2] = ["events.jsonl", "snapshots.jsonl"];

/// A seal in the making.
pub(super) struct Sealing {
    sealer: Sealer,
    file: DiskFile,
}

impl Sealing {
    /// Begins a seal, with its lines in this file.
    pub(super) fn begin(lines: &Path, key: SealKey) -> io::Result<Self> {
        let mut nonce = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut nonce)?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let file = DiskFile::open(lines, &options)?;
        Ok(Self { sealer: Sealer::new(key, &nonce), file })
    }

    /// Takes a block as it was written.
    pub(super) fn block(&mut self, block: &[u8]) -> io::Result<()> {
        let line = self.sealer.block(block);
        self.file.write_all(&line)
    }

    /// Puts the seal into the sidecar that is about to be written: the head only when nothing
    /// follows.
    pub(super) fn sign(&self, recording: &Path, meta: &mut Meta, closing: bool) -> io::Result<()> {
        if !closing {
            return self.sealer.open_meta(meta).map_err(io::Error::other);
        }
        self.file.sync()?;
        let contents: Vec<(&str, Vec<u8>)> = SEALED_SIDECARS
            .iter()
            .filter_map(|name| Some((*name, std::fs::read(sidecar(recording, name)).ok()?)))
            .collect();
        let sidecars: Vec<(&str, &[u8])> = contents.iter().map(|(name, bytes)| (*name, &bytes[..])).collect();
        self.sealer.close_meta(meta, &sidecars).map_err(io::Error::other)
    }
}
