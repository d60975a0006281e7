//! Reading ahead: blocks are read and decompressed on a thread of their own while the caller deals with
//! those before. Replay is then as fast as the slower of the two, not as both together.

use std::io::Read;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use super::block::{BlockItem, BlockReader};
use crate::Result;

/// Blocks that may wait to be taken: enough to ride out a hiccup, little enough to stay in the cache.
const DEPTH: usize = 4;

/// A [`BlockReader`] on a thread of its own. The thread ends when this is dropped.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    items: Receiver<Result<BlockItem>>,
    offset: u64,
}

impl ReadAhead {
    pub(crate) fn new<R: Read + Send + 'static>(mut blocks: BlockReader<R>) -> Self {
        let offset = blocks.offset();
        let (send, items) = sync_channel(DEPTH);
        thread::spawn(move || {
            loop {
                let next = match blocks.next_item() {
                    Ok(Some(item)) => Ok(item),
                    Ok(None) => return,
                    Err(e) => Err(e),
                };
                let failed = next.is_err();
                if send.send(next).is_err() || failed {
                    return;
                }
            }
        });
        Self { items, offset }
    }

    pub(crate) fn next_item(&mut self) -> Result<Option<BlockItem>> {
        // The channel closes when the thread is done.
        let Ok(next) = self.items.recv() else { return Ok(None) };
        let item = next?;
        self.offset = match &item {
            BlockItem::Block(block) => block.offset + block.len,
            BlockItem::Damage(damage) => damage.offset + damage.len,
        };
        Ok(Some(item))
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }
}
