//! Events that a harness sends to a recorder while the program runs: JSON values, one a line, from
//! a file or a named pipe. They are opaque here; the session gives each its place among the bytes
//! when it arrives.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use tapdeck_host::Handle;

/// No event is longer than this.
const MAX_EVENT: u64 = 1 << 20;

/// A source of events.
pub(crate) struct Source(File);

impl Source {
    /// Opens a file or a named pipe.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let pipe = std::fs::metadata(path)?.file_type().is_fifo();
        // A pipe that is open for writing here too has no end while others come and go, and opens
        // at once.
        Ok(Self(OpenOptions::new().read(true).write(pipe).open(path)?))
    }

    /// Passes each line on until there are no more, on a thread that ends with the process.
    pub(crate) fn read(self, handle: Handle) {
        let mut lines = BufReader::new(self.0);
        let work = move || {
            loop {
                let mut line = Vec::new();
                match (&mut lines).take(MAX_EVENT).read_until(b'\n', &mut line) {
                    Ok(0) | Err(_) => break,
                    Ok(_) => {}
                }
                let text = String::from_utf8_lossy(&line);
                if !text.trim().is_empty() {
                    handle.service(text.trim());
                }
            }
        };
        // Without a thread there are no events, which the cassette shows.
        let _ = std::thread::Builder::new().name("tapdeck-events".into()).spawn(work);
    }
}
