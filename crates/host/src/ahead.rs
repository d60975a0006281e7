//! Blocks of a native recording, read and decompressed ahead on a thread of their own, so that a replay is as
//! fast as the slower of decompressing and showing, not as both together. The thread is only started for who
//! goes on reading: a short recording, or a look at a few blocks, needs none.

use std::fs::File;
use std::io::{self, Empty, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use tapdeck_tape::ahr::{BlockItem, BlockReader, Reader};
use tapdeck_tape::{Error, Place, Result};

use crate::sys::SignalSet;

/// Blocks read without a thread.
const ALONE: u32 = 4;
/// Blocks that wait to be taken, at most.
const WAITING: usize = 6;

/// A place in a file that others read as well: it has no position that they would move.
#[derive(Debug, Clone)]
pub(crate) struct At {
    file: Arc<File>,
    pos: u64,
}

impl At {
    pub(crate) fn new(file: Arc<File>, pos: u64) -> Self {
        Self { file, pos }
    }
}

impl Read for At {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read_at(buf, self.pos)?;
        self.pos += n as u64;
        Ok(n)
    }
}

/// The blocks of a recording, in order.
pub struct Blocks<R> {
    state: State<R>,
    end: u64,
}

enum State<R> {
    Here { blocks: Box<BlockReader<R>>, read: u32 },
    Ahead(Receiver<Result<Option<BlockItem>>>),
    Over,
}

impl<R: Read + Send + 'static> Blocks<R> {
    /// From wherever `blocks` stands.
    pub fn new(blocks: BlockReader<R>) -> Self {
        Self { end: blocks.offset(), state: State::Here { blocks: Box::new(blocks), read: 0 } }
    }

    /// The next block or damage; `None` at the end.
    ///
    /// # Errors
    /// As [`BlockReader::next_item`].
    pub fn next_item(&mut self) -> Result<Option<BlockItem>> {
        if matches!(self.state, State::Here { read: ALONE.., .. })
            && let State::Here { blocks, .. } = std::mem::replace(&mut self.state, State::Over)
        {
            self.state = read_ahead(blocks);
        }
        let next = match &mut self.state {
            State::Here { blocks, read } => {
                *read = read.saturating_add(1);
                blocks.next_item()
            }
            State::Ahead(items) => items.recv().unwrap_or_else(|_| {
                let source = io::Error::other("the thread that reads it broke down");
                Err(Error::Read { at: Place::Byte(self.end), source })
            }),
            State::Over => Ok(None),
        };
        match &next {
            Ok(Some(item)) => self.end = item.end(),
            // Nothing comes behind the end or an error.
            _ => self.state = State::Over,
        }
        next
    }

    /// The same blocks as records.
    pub(crate) fn into_records(mut self) -> Reader<Empty> {
        Reader::given(move || self.next_item())
    }
}

/// Goes on with a reader on a thread; where there can be none, here.
fn read_ahead<R: Read + Send + 'static>(blocks: Box<BlockReader<R>>) -> State<R> {
    let (tell, items) = sync_channel(WAITING);
    let (give, take) = sync_channel::<Box<BlockReader<R>>>(1);
    let work = move || {
        let Ok(mut blocks) = take.recv() else { return };
        loop {
            let next = blocks.next_item();
            let over = !matches!(next, Ok(Some(_)));
            // Nobody listens any more when the reader was dropped.
            if tell.send(next).is_err() || over {
                return;
            }
        }
    };
    // The signals of the process are for the thread that has set them up, or will.
    let masked = SignalSet::asynchronous().block();
    let started = std::thread::Builder::new().name("tapdeck-ahead".into()).spawn(work);
    if let Ok(before) = masked {
        let _ = before.install();
    }
    match started {
        Ok(_) => match give.send(blocks) {
            Ok(()) => State::Ahead(items),
            Err(back) => State::Here { blocks: back.0, read: 0 },
        },
        Err(_) => State::Here { blocks, read: 0 },
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use tapdeck_tape::ahr::{BlockBuilder, Quality, Record};

    use super::*;

    fn recording(blocks: u64) -> Vec<u8> {
        let mut builder = BlockBuilder::new(0);
        let mut file = Vec::new();
        for i in 0..blocks {
            assert_eq!(builder.push(Record::data(i, i * 5, format!("{i:05}").into_bytes())), None);
            file.extend_from_slice(builder.finish(Quality::Stored, i + 1 == blocks));
        }
        file
    }

    /// Whether a block is read here or on the other thread, they all come, in order, damage included.
    #[test]
    fn every_block_comes_once_and_in_order() {
        for count in [0, 1, u64::from(ALONE), u64::from(ALONE) + 1, 50] {
            let mut file = recording(count);
            file.extend_from_slice(b"torn");
            let total = file.len() as u64;
            let mut blocks = Blocks::new(BlockReader::new(Cursor::new(file)));
            let mut offsets = Vec::new();
            let mut damages = 0;
            while let Some(item) = blocks.next_item().expect("it reads") {
                match item {
                    BlockItem::Block(block) => offsets.push(block.header.start_byte_off),
                    BlockItem::Damage(_) => damages += 1,
                }
            }
            assert_eq!(offsets, (0..count).map(|i| i * 5).collect::<Vec<_>>());
            assert_eq!((damages, blocks.end), (1, total));
            assert!(blocks.next_item().expect("it stays over").is_none());
        }
    }

    struct Failing(Cursor<Vec<u8>>);

    impl Read for Failing {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let few = buf.len().min(64);
            match self.0.read(&mut buf[..few])? {
                0 => Err(io::Error::other("the disk is gone")),
                n => Ok(n),
            }
        }
    }

    /// An error on the other thread must not look like the end of the recording.
    #[test]
    fn an_error_comes_through() {
        let mut blocks = Blocks::new(BlockReader::new(Failing(Cursor::new(recording(30)))));
        let mut read = 0;
        let error = loop {
            match blocks.next_item() {
                Ok(Some(_)) => read += 1,
                Ok(None) => panic!("a silent end after {read} blocks"),
                Err(e) => break e,
            }
        };
        assert!(read >= 28 && error.to_string().contains("the disk is gone"), "{read}: {error}");
    }

    /// Places in one file do not move each other.
    #[test]
    fn two_readers_of_one_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x");
        std::fs::write(&path, b"0123456789").expect("written");
        let file = Arc::new(File::open(path).expect("opened"));
        let (mut a, mut b) = (At::new(file.clone(), 0), At::new(file, 7));
        let mut two = [0; 2];
        a.read_exact(&mut two).expect("read");
        b.read_exact(&mut two).expect("read");
        assert_eq!(&two, b"78");
        a.read_exact(&mut two).expect("read");
        assert_eq!(&two, b"23");
    }
}
