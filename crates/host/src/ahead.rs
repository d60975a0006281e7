//! Blocks of a native recording, read and decompressed ahead, so that a replay takes little longer
//! than showing it would alone. A few threads take blocks as they come, and the thread that wants
//! the next one helps them rather than wait: on two processors decompressing and showing share the
//! work, whichever of them is the slower.
//!
//! That works block by block, for blocks whose headers lead from one to the next. Where something
//! is odd, the blocks are read one after another from there on, by the reader that knows all about
//! damage. A short recording, or a look at a few blocks, needs no thread at all.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Empty, Read};
use std::os::unix::fs::FileExt;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;
use tapdeck_tape::ahr::{Block, BlockItem, BlockReader, Frames, Reader};
use tapdeck_tape::{Error, Result};

use crate::sys::SignalSet;

/// Blocks read without a thread.
const ALONE: u32 = 4;
/// Blocks that wait to be taken, at most.
const WAITING: usize = 12;
/// More threads than this would only wait for the disk.
const MAX_THREADS: usize = 4;

/// A place in a file that others read as well: it has no position that they would move.
#[derive(Debug, Clone)]
pub(crate) struct At {
    file: Arc<File>,
    pos: u64,
    count: Arc<AtomicU64>,
}

impl At {
    pub(crate) fn new(file: Arc<File>, pos: u64) -> Self {
        Self { file, pos, count: Arc::default() }
    }
}

impl Read for At {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read_at(buf, self.pos)?;
        self.pos += n as u64;
        self.count.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// The blocks of a recording, in order.
pub struct Blocks {
    file: At,
    state: State,
    /// The last block taken.
    last: Option<Place>,
    end: u64,
}

crate::opaque::opaque_debug!(Blocks);

/// What a reader must know of the block before the one it begins with.
#[derive(Clone, Copy)]
struct Place {
    next_off: u64,
    last_ts: Option<u64>,
}

enum State {
    Alone {
        blocks: Box<BlockReader<At>>,
        read: u32,
    },
    Team(Team),
    /// Something is odd; there is no going back.
    Careful(Box<BlockReader<At>>),
    Over,
}

impl Blocks {
    /// From an offset at which a block begins. `count` is told of the bytes that are read.
    pub fn open(file: Arc<File>, offset: u64, count: Arc<AtomicU64>) -> Self {
        let file = At { file, pos: offset, count };
        let blocks = Box::new(BlockReader::starting_at(file.clone(), offset));
        Self { file, state: State::Alone { blocks, read: 0 }, last: None, end: offset }
    }

    /// The next block or damage; `None` at the end.
    ///
    /// # Errors
    /// As [`BlockReader::next_item`].
    pub fn next_item(&mut self) -> Result<Option<BlockItem>> {
        let next = self.take();
        match &next {
            Ok(Some(item)) => {
                self.end = item.end();
                if let BlockItem::Block(block) = item {
                    let next_off = block.end_off.unwrap_or(block.header.start_byte_off);
                    self.last = Some(Place { next_off, last_ts: block.last_ts });
                }
            }
            // Nothing comes behind the end or an error.
            _ => self.state = State::Over,
        }
        next
    }

    fn take(&mut self) -> Result<Option<BlockItem>> {
        match &mut self.state {
            State::Over => return Ok(None),
            State::Careful(blocks) => return blocks.next_item(),
            State::Alone { blocks, read } if *read < ALONE => {
                *read += 1;
                let next = blocks.next_item();
                if matches!(next, Ok(Some(BlockItem::Damage(_)))) {
                    // The same reader goes on: it may know more about the damage.
                    *read = 0;
                }
                return next;
            }
            State::Alone { blocks, .. } => {
                // Nothing may be held back by a reader that is left behind.
                if blocks.offset() != self.end {
                    return blocks.next_item();
                }
                self.state = State::Team(Team::start(self.file.clone(), self.end));
            }
            State::Team(_) => {}
        }
        let State::Team(team) = &mut self.state else { return Ok(None) };
        match team.next() {
            Found::Block(block) => Ok(Some(BlockItem::Block(block))),
            Found::End => Ok(None),
            Found::Error(e) => Err(e),
            Found::Odd => {
                let mut file = self.file.clone();
                file.pos = self.end;
                let mut blocks = BlockReader::starting_at(file, self.end);
                if let Some(Place { next_off, last_ts }) = self.last {
                    blocks = blocks.behind(next_off, last_ts);
                }
                let mut blocks = Box::new(blocks);
                let next = blocks.next_item();
                self.state = State::Careful(blocks);
                next
            }
        }
    }

    /// The same blocks as records.
    pub(crate) fn into_records(mut self) -> Reader<Empty> {
        Reader::given(move || self.next_item()).with_sound_times()
    }
}

/// What became of the next part of the file.
enum Found {
    Block(Block),
    Odd,
    End,
    Error(Error),
}

/// A part of the file on its way.
enum Slot {
    Packed { offset: u64, frame: Vec<u8> },
    InWork,
    Ready(Found),
}

struct Window {
    slots: VecDeque<Slot>,
    /// Number of the first slot.
    first: u64,
    /// Taken by the thread that reads; gone when there is nothing more to read.
    frames: Option<Frames<At>>,
    reading: bool,
    quit: bool,
}

/// What the threads share with the one that takes the blocks.
struct Shared {
    window: Mutex<Window>,
    changed: Condvar,
}

/// Threads that decompress. They stop when this is dropped.
struct Team {
    shared: Arc<Shared>,
    pool: BytesMut,
}

impl Team {
    fn start(mut file: At, offset: u64) -> Self {
        file.pos = offset;
        let frames = Some(Frames::new(file, offset));
        let window = Window { slots: VecDeque::new(), first: 0, frames, reading: false, quit: false };
        let shared = Arc::new(Shared { window: Mutex::new(window), changed: Condvar::new() });
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get() - 1).clamp(1, MAX_THREADS);
        // The signals of the process are for the thread that has set them up, or will.
        let masked = SignalSet::asynchronous().block();
        for _ in 0..threads {
            let shared = shared.clone();
            let work = move || {
                let mut pool = BytesMut::new();
                while shared.work(&mut pool, true) {}
            };
            // Without a thread, the one that takes the blocks does all of it.
            let _ = std::thread::Builder::new().name("tapdeck-ahead".into()).spawn(work);
        }
        if let Ok(before) = masked {
            // The mask was this thread's a moment ago, so the system takes it again.
            let _ = before.install();
        }
        Self { shared, pool: BytesMut::new() }
    }

    /// The next part, with a hand in the work while it is not there.
    fn next(&mut self) -> Found {
        loop {
            let mut window = self.shared.lock();
            if matches!(window.slots.front(), Some(Slot::Ready(_)))
                && let Some(Slot::Ready(found)) = window.slots.pop_front()
            {
                window.first += 1;
                drop(window);
                self.shared.changed.notify_one();
                return found;
            }
            drop(window);
            self.shared.work(&mut self.pool, false);
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.lock().quit = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does one piece of work, or waits for some; says whether to go on.
    fn work(&self, pool: &mut BytesMut, helper: bool) -> bool {
        let mut window = self.lock();
        if window.quit {
            return false;
        }
        if let Some(i) = window.slots.iter().position(|slot| matches!(slot, Slot::Packed { .. }))
            && let Slot::Packed { offset, frame } = std::mem::replace(&mut window.slots[i], Slot::InWork)
        {
            let number = window.first + i as u64;
            drop(window);
            let block = unless_it_panics(|| Block::open(offset, &frame, pool)).flatten();
            let mut window = self.lock();
            let place = (number - window.first) as usize;
            window.slots[place] = Slot::Ready(block.map_or(Found::Odd, Found::Block));
            drop(window);
            self.changed.notify_all();
            return true;
        }
        if window.slots.len() < WAITING
            && let Some(mut frames) = window.frames.take()
        {
            window.reading = true;
            drop(window);
            let next = unless_it_panics(|| frames.next_frame());
            let mut window = self.lock();
            window.reading = false;
            let slot = match next {
                Some(Ok(Some((offset, frame)))) => {
                    window.frames = Some(frames);
                    Slot::Packed { offset, frame }
                }
                Some(Ok(None)) if !frames.is_odd() => Slot::Ready(Found::End),
                Some(Ok(None)) | None => Slot::Ready(Found::Odd),
                Some(Err(e)) => Slot::Ready(Found::Error(e)),
            };
            window.slots.push_back(slot);
            drop(window);
            self.changed.notify_all();
            return true;
        }
        if helper && window.frames.is_none() && !window.reading {
            // All is read, and other threads work on the rest.
            return false;
        }
        if helper || !matches!(window.slots.front(), Some(Slot::Ready(_))) {
            drop(self.changed.wait(window).unwrap_or_else(PoisonError::into_inner));
        }
        true
    }
}

/// A thread that dies with a block in hand would leave the others waiting for it.
fn unless_it_panics<T>(work: impl FnOnce() -> T) -> Option<T> {
    std::panic::catch_unwind(AssertUnwindSafe(work)).ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tapdeck_tape::ahr::{BlockBuilder, Quality, Record};

    use super::*;

    /// Blocks of different sizes, so that they are not ready in the order in which they were taken.
    fn recording(blocks: u64) -> Vec<Vec<u8>> {
        let mut builder = BlockBuilder::new(0);
        let mut off = 0;
        (0..blocks)
            .map(|i| {
                let text = format!("{i:05}").repeat(1 + (i as usize * 7919) % 3000);
                assert_eq!(builder.push(Record::data(i, off, text.clone().into_bytes())), None);
                off += text.len() as u64;
                builder.finish(Quality::Brotli(1), i + 1 == blocks).to_vec()
            })
            .collect()
    }

    fn open(content: &[u8]) -> Blocks {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(content).expect("written");
        Blocks::open(Arc::new(file), 0, Arc::default())
    }

    /// The same as a plain reader gives, damage included.
    fn check(content: &[u8], what: &str) {
        let mut plain = BlockReader::new(content);
        let mut ahead = open(content);
        loop {
            let (want, got) = (plain.next_item().expect("read"), ahead.next_item().expect("read"));
            assert_eq!(format!("{want:?}"), format!("{got:?}"), "{what}");
            if want.is_none() {
                break;
            }
        }
        assert_eq!(ahead.end, content.len() as u64, "{what}");
        assert!(ahead.next_item().expect("it stays over").is_none());
    }

    #[test]
    fn every_block_comes_once_and_in_order() {
        for count in [0, 1, u64::from(ALONE), u64::from(ALONE) + 1, 200] {
            check(&recording(count).concat(), &format!("{count} blocks"));
        }
    }

    #[test]
    fn damage_is_told_as_by_a_plain_reader() {
        let blocks = recording(60);
        let starts: Vec<usize> =
            blocks.iter().scan(0, |at, b| Some(std::mem::replace(at, *at + b.len()))).collect();
        for at in [0, 2, 4, 5, 30, 59] {
            let mut content = blocks.concat();
            content[starts[at] + 60..starts[at] + 70].fill(0x55);
            check(&content, &format!("block {at} is damaged"));
            content.drain(starts[at] + 50..starts[at] + 55);
            check(&content, &format!("block {at} lacks bytes"));
            check(&blocks.concat()[..starts[at] + 50], &format!("cut in block {at}"));
            let mut content = blocks.concat();
            content.splice(starts[at]..starts[at], *b"garbage between");
            check(&content, &format!("garbage before block {at}"));
        }
    }

    /// Threads must not outlive the reader of the blocks, nor hold it up.
    #[test]
    fn one_that_is_left_early_stops() {
        let content = recording(200).concat();
        for taken in 0..40 {
            let mut blocks = open(&content);
            for _ in 0..taken {
                assert!(blocks.next_item().expect("read").is_some());
            }
        }
    }

    /// An error on another thread must not look like the end of the recording.
    #[test]
    fn an_error_comes_through() {
        let mut blocks = Blocks::open(Arc::new(File::open("/").expect("opened")), 0, Arc::default());
        assert!(blocks.next_item().is_err(), "a folder cannot be read");
        let mut blocks = Blocks::open(Arc::new(File::open("/").expect("opened")), 0, Arc::default());
        blocks.state = State::Team(Team::start(blocks.file.clone(), 0));
        assert!(blocks.next_item().is_err());
        assert!(blocks.next_item().expect("it is over").is_none());
    }

    /// Places in one file do not move each other.
    #[test]
    fn two_readers_of_one_file() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(b"0123456789").expect("written");
        let file = Arc::new(file);
        let (mut a, mut b) = (At::new(file.clone(), 0), At::new(file, 7));
        let mut two = [0; 2];
        a.read_exact(&mut two).expect("read");
        b.read_exact(&mut two).expect("read");
        assert_eq!(&two, b"78");
        a.read_exact(&mut two).expect("read");
        assert_eq!(&two, b"23");
    }
}
