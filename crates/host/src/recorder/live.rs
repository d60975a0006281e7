//! The index of a recording, written while it is recorded, so that it opens at any moment right
//! after its end.
//!
//! Keyframes need the terminal model, and the model costs as much as everything else that a
//! recorder does. So it is fed on a thread of its own with the least priority, from the blocks as
//! they stand on disk, only when enough has come for a keyframe, and never while the program is in
//! a hurry: what came meanwhile is made up for when it rests. A session with less output than one
//! keyframe's worth needs no index and gets no thread. What is still missing at the end is added if
//! that takes no noticeable time, or if it was asked for; otherwise the index breaks off, holds as
//! far as it goes, and `tapdeck index` goes on with it. What the thread makes is a part of the
//! recording, and the recorder writes it with the next of these.

use std::fs::File;
use std::io::{self, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tapdeck_tape::ahr::parts::INDEX;
use tapdeck_tape::ahr::{BlockItem, BlockReader, Parts};
use tapdeck_tape::index::{Index, IndexBuilder, IndexOptions};

use super::RecordingFile;
use crate::ahead::At;

/// Output that may still be missing at the end of a session: a fraction of a second's work.
const AT_THE_END: u64 = 16 << 20;
/// Output between two keyframes.
const STEP: u64 = 4 << 20;
/// A program that was in a hurry rests when it has not been for so long.
const CALM: Duration = Duration::from_millis(500);

/// When the index of a recording is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LiveIndex {
    /// As the session goes, where that costs nothing that a user would notice.
    #[default]
    Auto,
    /// The same, and to the very end, however long that takes.
    Whole,
    /// Not at all.
    Off,
}

/// How far the recording has come, for the thread that indexes it.
#[derive(Default)]
struct Progress {
    /// Length of the file, and of the output in it.
    len: u64,
    off: u64,
    /// The program was in a hurry since this was last read.
    hurried: bool,
    closing: bool,
    /// What is made and was not taken.
    ready: Vec<u8>,
}

/// An index in the making.
pub(super) struct Indexing {
    when: LiveIndex,
    shared: Arc<(Mutex<Progress>, Condvar)>,
    work: Stage,
}

enum Stage {
    /// Nothing to do yet.
    Waiting(Box<Work>),
    Running(JoinHandle<Work>),
    Over,
}

/// Who does it, and how far that has come.
struct Work {
    recording: Arc<File>,
    begun: bool,
    /// Whether the recording goes on with one that was there.
    continued: bool,
    options: IndexOptions,
    builder: IndexBuilder,
    /// Where the next block begins.
    pos: u64,
    buffer: Vec<u8>,
    trouble: Option<String>,
}

impl Indexing {
    pub(super) fn new(file: &RecordingFile, when: LiveIndex, pipes: bool) -> Self {
        let continued = file.written() > 0;
        let options = IndexOptions::default().every_bytes(STEP).pipes(pipes);
        let work = match file.share().ok().filter(|_| when != LiveIndex::Off) {
            Some(recording) => Stage::Waiting(Box::new(Work {
                recording: Arc::new(recording),
                begun: false,
                continued,
                options,
                builder: IndexBuilder::new(options),
                pos: 0,
                buffer: Vec::new(),
                trouble: None,
            })),
            None => Stage::Over,
        };
        Self { when, shared: Arc::default(), work }
    }

    /// Says how far the recording has come, and whether the program is in a hurry. Returns whether
    /// there is something to take.
    pub(super) fn wrote(&mut self, len: u64, off: u64, hurried: bool) -> bool {
        if matches!(self.work, Stage::Over) {
            return false;
        }
        let ready = {
            let mut progress = lock(&self.shared.0);
            (progress.len, progress.off) = (len, off);
            progress.hurried |= hurried;
            !progress.ready.is_empty()
        };
        if hurried {
            return ready;
        }
        match std::mem::replace(&mut self.work, Stage::Over) {
            Stage::Waiting(work) if off >= STEP => {
                let shared = self.shared.clone();
                let builder = std::thread::Builder::new().name("tapdeck-index".into());
                let task = move || work.run(&shared);
                // Without a thread there is no index; nothing else depends on it.
                self.work = builder.spawn(task).map_or(Stage::Over, Stage::Running);
            }
            stage => self.work = stage,
        }
        self.shared.1.notify_one();
        ready
    }

    /// What was made of it since this was last asked for.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut lock(&self.shared.0).ready)
    }

    /// The end of the recording. Returns the rest of the index, and what went wrong, if anything
    /// did.
    pub(super) fn finish(&mut self) -> (Vec<u8>, Option<String>) {
        lock(&self.shared.0).closing = true;
        self.shared.1.notify_one();
        let mut work = match std::mem::replace(&mut self.work, Stage::Over) {
            Stage::Waiting(work) => *work,
            Stage::Running(thread) => match thread.join() {
                Ok(work) => work,
                Err(_) => return (Vec::new(), Some("the thread that made it broke down".into())),
            },
            Stage::Over => return (Vec::new(), None),
        };
        let (len, off) = {
            let progress = lock(&self.shared.0);
            (progress.len, progress.off)
        };
        let wanted = match self.when {
            LiveIndex::Whole => true,
            _ => off >= STEP && off.saturating_sub(work.builder.byte_off()) <= AT_THE_END,
        };
        if wanted && work.trouble.is_none() {
            let done = work.catch_up(len, || false).map(|()| work.builder.finish(len, &mut work.buffer));
            work.trouble = done.err().map(|e| e.to_string());
        }
        let mut rest = self.take();
        rest.append(&mut work.buffer);
        (rest, work.trouble)
    }
}

impl Work {
    /// Keeps up with the recording until its end, in the recorder's shadow.
    fn run(mut self, shared: &(Mutex<Progress>, Condvar)) -> Self {
        // The least priority; where that is refused, it is still done only when the program rests.
        let _ = rustix::process::setpriority_process(None, 19);
        while self.trouble.is_none() {
            let mut progress = lock(&shared.0);
            let len = loop {
                if progress.closing {
                    return self;
                }
                if std::mem::take(&mut progress.hurried) {
                    let waited = shared.1.wait_timeout(progress, CALM);
                    progress = waited.unwrap_or_else(PoisonError::into_inner).0;
                } else if progress.len > self.pos
                    && progress.off.saturating_sub(self.builder.byte_off()) >= STEP
                {
                    break progress.len;
                } else {
                    progress = shared.1.wait(progress).unwrap_or_else(PoisonError::into_inner);
                }
            };
            drop(progress);
            let stop = || {
                let progress = lock(&shared.0);
                progress.closing || progress.hurried
            };
            self.trouble = self.catch_up(len, stop).err().map(|e| e.to_string());
            lock(&shared.0).ready.append(&mut self.buffer);
        }
        self
    }

    /// Takes the blocks up to `len`, unless told to stop.
    fn catch_up(&mut self, len: u64, stop: impl Fn() -> bool) -> io::Result<()> {
        if !std::mem::replace(&mut self.begun, true) && self.continued {
            self.resume();
        }
        let Some(rest) = len.checked_sub(self.pos) else { return Ok(()) };
        // No further: behind that a block may be half written.
        let recording = At::new(self.recording.clone(), self.pos).take(rest);
        let mut blocks = BlockReader::starting_at(recording, self.pos);
        while !stop()
            && let Some(item) = blocks.next_item().map_err(io::Error::other)?
        {
            self.pos = item.end();
            if let BlockItem::Block(block) = item {
                self.builder.block(&block, &mut self.buffer);
            }
        }
        Ok(())
    }

    /// Goes on with the index of a recording that is continued, behind its last good keyframe. The
    /// beginning is written once more: the one before is left alone.
    fn resume(&mut self) -> Option<()> {
        let recording = &*self.recording;
        let parts = Parts::of(recording).ok()?;
        let mut old = parts.open(INDEX, recording)?;
        let mut index = Index::load(&mut old).ok()?;
        index.check(recording).ok()?;
        index.keyframes.truncate(index.whole_keyframes(&mut old));
        let keyframe = index.keyframes.last()?;
        let dump = index.dump(&mut old, keyframe).ok()?;
        let mut kept = Vec::new();
        let old = parts.open(INDEX, recording)?;
        old.take(keyframe.end()).read_to_end(&mut kept).ok()?;
        self.builder = IndexBuilder::resume(self.options, keyframe, &dump);
        self.pos = keyframe.block_offset;
        self.buffer = kept;
        Some(())
    }
}

fn lock(progress: &Mutex<Progress>) -> MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}
