//! Events that a harness sends to a recorder while the program runs: JSON values, one a line, from
//! a file or a named pipe. They are opaque here; the session gives each its place among the bytes
//! when it arrives. What a harness says last often comes when the program has just ended, so
//! reading goes on to the end of what is there.

use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

use crate::inbox::Handle;

/// No event is longer than this.
const MAX_EVENT: usize = 1 << 20;
/// Events beyond so many bytes are passed on and not kept.
const MAX_KEPT: usize = 64 << 20;
/// How often a file that is no pipe is looked at for more.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// A source of events.
#[derive(Debug)]
pub struct Source {
    file: File,
    pipe: bool,
}

/// A source that is being read.
#[derive(Debug)]
pub struct Reading {
    stop: PipeWriter,
    thread: JoinHandle<Vec<String>>,
}

impl Source {
    /// Opens a file or a named pipe.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let pipe = std::fs::metadata(path)?.file_type().is_fifo();
        // A pipe that is open for writing here too has no end while others come and go, and opens
        // at once.
        let mut options = OpenOptions::new();
        options.read(true).write(pipe).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        Ok(Self { file: options.open(path)?, pipe })
    }

    /// Passes each line on as it comes, on a thread of its own.
    ///
    /// # Errors
    /// When no thread can be had.
    pub fn read(self, handle: Handle) -> io::Result<Reading> {
        let (stopped, stop) = io::pipe()?;
        let work = move || {
            let mut lines = Lines { handle, partial: Vec::new(), sent: Vec::new(), kept: 0 };
            // What cannot be read any more is missing from the cassette, which shows it.
            let _ = self.follow(&stopped, &mut lines);
            lines.end();
            lines.sent
        };
        let thread = std::thread::Builder::new().name("tapdeck-events".into()).spawn(work)?;
        Ok(Reading { stop, thread })
    }

    fn follow(mut self, stopped: &PipeReader, lines: &mut Lines) -> io::Result<()> {
        let mut piece = vec![0; 64 * 1024];
        let mut last = false;
        loop {
            match self.file.read(&mut piece) {
                Ok(n @ 1..) => {
                    lines.take(&piece[..n]);
                    continue;
                }
                Ok(0) if last => return Ok(()),
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock && last => return Ok(()),
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(e) => return Err(e),
            }
            let mut waited = vec![PollFd::new(stopped, PollFlags::IN)];
            if self.pipe {
                waited.push(PollFd::new(&self.file, PollFlags::IN));
            }
            poll(&mut waited, (!self.pipe).then_some(&LOOK))?;
            // Once more, for what came before the end.
            last = !waited[0].revents().is_empty();
        }
    }
}

impl Reading {
    /// Reads what is left, and returns all events that were passed on, in order.
    pub fn finish(self) -> Vec<String> {
        drop(self.stop);
        // A thread that broke down has told nothing.
        self.thread.join().unwrap_or_default()
    }
}

struct Lines {
    handle: Handle,
    partial: Vec<u8>,
    sent: Vec<String>,
    kept: usize,
}

impl Lines {
    fn take(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|b| *b == b'\n') {
            self.partial.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.partial.len() >= MAX_EVENT {
                self.end();
            }
        }
    }

    /// The line is at its end.
    fn end(&mut self) {
        let line = std::mem::take(&mut self.partial);
        let text = String::from_utf8_lossy(&line);
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        self.handle.service(text);
        self.kept += text.len();
        if self.kept <= MAX_KEPT {
            self.sent.push(text.to_owned());
        }
    }
}
