//! Blocks on their way to disk: how hard each is compressed, and what becomes of one that the disk
//! refuses.

use std::borrow::Cow;
use std::io;
use std::time::Duration;

use tapdeck_core::WallTime;
use tapdeck_tape::ahr::{BlockBuilder, CutBlock, Mark, Place, Quality, Record};
use tapdeck_tape::encryption::Recipients;

use super::super::failure::refusal;
use super::super::file::RecordingFile;
use super::super::seal::Sealing;
use super::NativeTap;

/// Blocks that fill up faster than these times come from a program in a hurry, and are compressed
/// less.
const HURRY: [(u64, Quality); 2] = [(8_000_000, Quality::Brotli(0)), (100_000_000, Quality::Brotli(1))];
/// At full speed only output that shrinks to less than this many percent is compressed; every so
/// many blocks it is tried.
const WORTH_IT_PERCENT: usize = 28;
const TRY_EVERY: u32 = 8;
/// With this much pending even that is too slow, and blocks are stored as they are.
const STORE_PENDING: usize = 6 << 20;
/// After the disk was full, how long before it is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Room that is left free on a full disk for what tells how the recording ended and what is missing
/// from it, the room that one such block takes, and the least for which a block is cut down.
const RESERVE: usize = 1024;
const LOSS_ROOM: usize = 256;
const WORTH_CUTTING: usize = 1024;
/// What encryption to a few recipients adds to a small block.
const MESSAGE_ROOM: usize = 768;

/// Whether there may be room again: the disk or the quota is full, or the file has reached a limit.
fn may_pass(e: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(e.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// The state of the disk.
pub(super) enum Disk {
    Fine,
    /// Full; to be tried again at this time.
    Full(WallTime),
    /// Not to be trusted again.
    Broken,
}

/// Writes blocks, all or none of them. Only what reached the disk is sealed. Each comes with where
/// its output ends.
pub(super) fn append(
    file: &mut RecordingFile,
    (seal, encrypt): (Option<&mut Sealing>, Option<&Recipients>),
    blocks: &[(&[u8], u64)],
) -> io::Result<()> {
    let blocks = blocks.iter().filter(|(block, _)| !block.is_empty());
    let blocks: Vec<Cow<'_, [u8]>> = match encrypt {
        None => blocks.map(|(block, _)| Cow::Borrowed(*block)).collect(),
        Some(recipients) => {
            let encrypted = blocks.map(|(block, end)| recipients.encrypt_block(block, *end).map(Cow::Owned));
            encrypted.collect::<Result<_, _>>().map_err(io::Error::other)?
        }
    };
    match &blocks[..] {
        [block] => file.write_block(block)?,
        several => file.write_block(&several.concat())?,
    }
    if let Some(seal) = seal {
        blocks.iter().for_each(|block| seal.block(block));
    }
    Ok(())
}

impl NativeTap {
    /// How hard to compress the block in hand.
    fn quality(&mut self) -> Quality {
        let asked = Quality::Brotli(self.options.quality);
        // The records' own time: ours would count a backlog as leisure.
        let took = self.builder.first_ts().map_or(0, |first| self.last_ts.saturating_sub(first));
        let hurry = HURRY.iter().find(|(filled_in, _)| took < *filled_in);
        self.hurry = self.builder.is_full() && hurry.is_some();
        if !self.builder.is_full() || self.options.quality <= 1 {
            return asked;
        }
        if self.log.pending(self.reader) >= STORE_PENDING {
            return Quality::Stored;
        }
        let Some((_, quality)) = hurry else { return asked };
        // At full speed every processor passes bytes on, and compressing slows the program down.
        // That pays only for output that shrinks well; a block now and then shows whether it does.
        self.hurried = self.hurried.wrapping_add(1);
        let worth_it = self.shrinks || self.hurried.is_multiple_of(TRY_EVERY);
        if *quality == Quality::Brotli(0) && !worth_it { Quality::Stored } else { *quality }
    }

    /// Closes the block in hand and writes it, if the disk is worth a try.
    pub(super) fn write_block(&mut self, last: bool) {
        if self.builder.is_empty() && !last {
            return;
        }
        let now = self.clock.now().wall;
        if self.file.written() > 0 && self.parts.due().is_some_and(|due| now >= due) {
            self.write_parts();
        }
        let output = std::mem::take(&mut self.in_block);
        let try_it = match self.disk {
            Disk::Fine => true,
            // A caller waits for its snapshot: try again at once.
            Disk::Full(retry_at) => self.closing || self.snapshots.waiting() || now >= retry_at,
            Disk::Broken => false,
        };
        let quality = self.quality();
        let raw_len = self.builder.len();
        let ts = self.builder.first_ts().unwrap_or(now.as_nanos());
        let at = self.builder.byte_off().saturating_sub(output);
        // A refused block may have held how the program ended.
        let ending = self.ending.filter(|_| self.ending_refused);
        let before = self.loss_block(self.refused, ts, at, ending, false);
        let end_off = self.builder.byte_off();
        let block = self.builder.finish(quality, last);
        if quality == Quality::Brotli(0) {
            self.shrinks = block.len() * 100 < raw_len * WORTH_IT_PERCENT;
        }
        let written = match try_it {
            true => {
                let marks = (self.seal.as_mut(), self.options.encrypt.as_ref());
                append(&mut self.file, marks, &[(&before, at), (block, end_off)])
            }
            false => Err(io::Error::other(self.report.trouble.clone().unwrap_or_default())),
        };
        match written {
            Ok(()) => {
                self.disk = Disk::Fine;
                self.wrote();
            }
            Err(e) => {
                let block = block.to_vec();
                self.refusal = Some(refusal(&e));
                if try_it {
                    self.note_refusal(&e, now);
                }
                let kept = may_pass(&e).then(|| self.append_cut(&before, &block, output, last)).flatten();
                let lost = output - kept.unwrap_or(0);
                self.report.lost_bytes += lost;
                if kept.is_none() {
                    self.refused += lost;
                    self.ending_refused |= self.ending.is_some();
                }
            }
        }
    }

    /// Takes note of blocks that reached the disk.
    fn wrote(&mut self) {
        self.refused = 0;
        self.ending_refused = false;
        self.parts.place = Some(Place { ts_ns: self.last_ts, byte_off: self.builder.byte_off() });
        let indexed = self.index.wrote(self.file.written(), self.builder.byte_off(), self.hurry);
        if indexed || self.seal.is_some() || self.parts.waiting() {
            self.parts_wait();
        }
    }

    /// Writes as much of a refused block as there is room for, and what is lost of it. Returns how
    /// much of its output was kept, or `None` if nothing could be written.
    fn append_cut(&mut self, before: &[u8], block: &[u8], output: u64, last: bool) -> Option<u64> {
        // Until the end, some room is kept for it.
        let kept_free = if self.closing { 0 } else { RESERVE };
        let blocks = if self.options.encrypt.is_some() { 3 } else { 0 };
        let used = kept_free + before.len() + LOSS_ROOM + blocks * MESSAGE_ROOM;
        let room = self.file.room().checked_sub(used)?;
        let cut = CutBlock::new(block, room).filter(|_| room >= WORTH_CUTTING || self.closing);
        if cut.is_none() && !self.closing {
            return None;
        }
        let (cut, kept) = cut.map_or_else(Default::default, |cut| (cut.bytes, cut.output));
        // How the program ended is the last record, so it is in the part that was cut off.
        let ending = self.ending;
        let behind = self.loss_block(output - kept, self.last_ts, self.builder.byte_off(), ending, last);
        let marks = (self.seal.as_mut(), self.options.encrypt.as_ref());
        let end_off = self.builder.byte_off();
        let at = end_off.saturating_sub(output);
        let blocks = [(before, at), (&cut[..], at + kept), (&behind[..], end_off)];
        append(&mut self.file, marks, &blocks).ok()?;
        self.wrote();
        Some(kept)
    }

    pub(super) fn note_refusal(&mut self, e: &io::Error, now: WallTime) {
        self.disk = if may_pass(e) { Disk::Full(now + RETRY) } else { Disk::Broken };
        self.note_trouble(refusal(e));
    }

    /// Makes a block that tells what was lost before an offset of the output, and the size that a
    /// reader could not know of, and how the program ended, if that is known. A gap that
    /// is explained later, or never, is taken for damage. Empty if there is nothing to tell.
    fn loss_block(&self, lost: u64, ts: u64, at: u64, ending: Option<Mark>, last: bool) -> Vec<u8> {
        if lost == 0 && ending.is_none() && !last {
            return Vec::new();
        }
        let mut builder = BlockBuilder::new(at);
        let size = self.size.or_default();
        let marks = Mark::pieces(lost).map(|piece| Record::mark(ts, Mark::DiskLoss(piece)));
        let ending = ending.map(|mark| Record::mark(ts, mark));
        for record in marks.chain([Record::resize(ts, size.into())]).chain(ending) {
            // Some hundred small records at most: they fit.
            let _ = builder.push(record);
        }
        builder.finish(Quality::Stored, last).to_vec()
    }

    pub(super) fn sync(&mut self) {
        if let Err(e) = self.file.sync() {
            // What a failed sync left behind is unknown, and asking again would say that all is
            // well.
            self.disk = Disk::Broken;
            self.note_trouble(refusal(&e));
        }
    }

    /// Takes note of what went wrong first, and reports it at once.
    pub(super) fn note_trouble(&mut self, why: impl Into<String>) {
        if self.report.trouble.is_none() {
            self.report.trouble = Some(why.into());
            self.log.note_recording(self.file.path(), false, self.report.trouble.as_ref());
        }
    }
}
