//! Going on with a recording whose end is torn. A reader gives what a torn block still holds only
//! where the file ends with it, so before anything is written behind it, what it holds is written
//! anew as a whole block. That happens in a copy which takes the file's place at once: whenever
//! that is cut short, all is still there.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use tapdeck_tape::ahr::{self, BlockBuilder, MAGIC, Quality, Tail};
use tapdeck_tape::{Error, FilePosition};

use crate::disk::{self, DiskFile};

/// What became of a torn end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mended {
    /// Records that could be read, and were kept.
    pub records: u64,
    /// Length of the torn block, of which the rest is gone.
    pub torn_bytes: u64,
}

/// Where a recording can be continued; an error if the file is none. An empty one may become one.
pub(super) fn tail_of(file: &File) -> Result<Tail, Error> {
    let tail = ahr::tail(file)?;
    if tail.blocks == 0 && tail.salvaged.is_empty() && tail.file_len > 0 {
        let failed = |source| Error::Read { at: FilePosition::Byte(0), source };
        let mut head = Vec::new();
        let mut start = file;
        start.rewind().map_err(failed)?;
        start.take(MAGIC.len() as u64).read_to_end(&mut head).map_err(failed)?;
        // One that was torn within its first block has nothing whole in it, and is a recording all
        // the same.
        if !MAGIC.starts_with(&head) {
            let what = "it is no .ahr recording: not one block in it".to_owned();
            return Err(Error::Malformed { at: FilePosition::Byte(0), what });
        }
    }
    Ok(tail)
}

/// Replaces a file with a torn end by one that ends with whole blocks, and gives that, locked.
pub(super) fn mend(torn: &File, path: &Path, tail: &Tail) -> io::Result<(DiskFile, Mended)> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let mended: io::Result<DiskFile> = (|| {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(0o600);
        options.custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC);
        let mut copy = DiskFile::open(&temporary, &options)?;
        flock(&copy, FlockOperation::NonBlockingLockExclusive)?;
        let mut from = torn;
        from.rewind()?;
        if io::copy(&mut from.take(tail.end), &mut copy)? < tail.end {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut builder = BlockBuilder::new(tail.next_off);
        for record in &tail.salvaged {
            let mut rest = Some(record.clone());
            while let Some(record) = rest {
                rest = builder.push(record);
                if builder.is_full() {
                    copy.write_all(builder.finish(Quality::default(), false))?;
                }
            }
        }
        copy.write_all(builder.finish(Quality::default(), false))?;
        copy.sync()?;
        disk::rename(&temporary, path)?;
        disk::sync_folder_of(path)?;
        Ok(copy)
    })();
    if mended.is_err() {
        // The first error is the one to report.
        let _ = disk::remove_file(&temporary);
    }
    let records = tail.salvaged.len() as u64;
    Ok((mended?, Mended { records, torn_bytes: tail.file_len - tail.end }))
}
