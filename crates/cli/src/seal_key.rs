//! The keys that recordings are sealed with.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use tapdeck_tape::seal::SealKey;

use crate::failure::{Failure, Result};

/// The longest key, in bytes.
const MAX_KEY: u64 = 65_536;

/// Reads a key, which is all bytes of its file.
pub(crate) fn read_key(path: &Path) -> Result<SealKey> {
    let mut secret = Vec::new();
    let read = open(path)?.take(MAX_KEY + 1).read_to_end(&mut secret);
    read.map_err(|e| Failure::io(format!("{}: {e}", path.display())))?;
    if secret.len() < 16 || secret.len() as u64 > MAX_KEY {
        let path = path.display();
        return Err(Failure::usage(format!("{path}: a key has 16 to {MAX_KEY} bytes, best random ones")));
    }
    Ok(SealKey::new(&secret))
}

/// Opens a file for reading. A folder is an error.
fn open(path: &Path) -> Result<File> {
    let failed = |e: io::Error| Failure::file(path, &e);
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(Failure::io(format!("{} is a folder", path.display())));
    }
    Ok(file)
}
