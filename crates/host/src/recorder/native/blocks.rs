//! Blocks on their way to disk: how hard each is compressed, and what becomes of one that the disk
//! refuses.

use std::io;
use std::time::Duration;

use tapdeck_core::WallTime;
use tapdeck_tape::ahr::{BlockBuilder, Mark, Quality, Record};

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

/// The state of the disk.
pub(super) enum Disk {
    Fine,
    /// Full; to be tried again at this time.
    Full(WallTime),
    /// Not to be trusted again.
    Broken,
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
        if !self.closing {
            self.write_beside();
        }
        let now = self.clock.now().wall;
        let output = std::mem::take(&mut self.in_block);
        let try_it = match self.disk {
            Disk::Fine => true,
            // A caller waits for its snapshot: try again at once.
            Disk::Full(retry_at) => self.closing || self.snapshots.waiting() || now >= retry_at,
            Disk::Broken => false,
        };
        let told = if try_it { self.tell_loss(now, output) } else { Err(io::ErrorKind::StorageFull.into()) };
        let quality = self.quality();
        let raw_len = self.builder.len();
        let block = self.builder.finish(quality, last);
        if quality == Quality::Brotli(0) {
            self.shrinks = block.len() * 100 < raw_len * WORTH_IT_PERCENT;
        }
        let written = told.and_then(|()| self.file.write_block(block));
        // Only what reached the disk is sealed.
        if written.is_ok()
            && let Some(Err(e)) = self.seal.as_mut().map(|seal| seal.block(block))
        {
            self.report.trouble.get_or_insert_with(|| format!("the seal could not be written: {e}"));
        }
        match written {
            Ok(()) => {
                self.disk = Disk::Fine;
                self.index.wrote(self.file.written(), self.builder.byte_off(), self.hurry);
            }
            Err(e) => {
                self.report.lost_bytes += output;
                self.refused += output;
                self.refusal = Some(e.to_string());
                if try_it {
                    self.note_refusal(&e, now);
                }
            }
        }
    }

    fn note_refusal(&mut self, e: &io::Error, now: WallTime) {
        let may_pass = matches!(e.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        self.disk = if may_pass { Disk::Full(now + RETRY) } else { Disk::Broken };
        self.note_trouble(e);
    }

    /// Writes down what was lost, and the size that a reader could not know of. This has a block of
    /// its own before the one in hand: a gap that is explained later, or never, is taken for
    /// damage.
    fn tell_loss(&mut self, now: WallTime, in_hand: u64) -> io::Result<()> {
        if self.refused == 0 {
            return Ok(());
        }
        let ts = self.builder.first_ts().unwrap_or(now.as_nanos());
        let mut builder = BlockBuilder::new(self.builder.byte_off().saturating_sub(in_hand));
        let size = self.size.or_default();
        let marks = Mark::pieces(self.refused).map(|piece| Record::mark(ts, Mark::DiskLoss(piece)));
        for record in marks.chain([Record::resize(ts, size.into())]) {
            // Some hundred small records at most: they fit.
            let _ = builder.push(record);
        }
        let block = builder.finish(Quality::Stored, false);
        self.file.write_block(block)?;
        self.refused = 0;
        if let Some(Err(e)) = self.seal.as_mut().map(|seal| seal.block(block)) {
            self.report.trouble.get_or_insert_with(|| format!("the seal could not be written: {e}"));
        }
        Ok(())
    }

    pub(super) fn sync(&mut self) {
        if let Err(e) = self.file.sync() {
            // What a failed sync left behind is unknown, and asking again would say that all is
            // well.
            self.disk = Disk::Broken;
            self.note_trouble(&e);
        }
    }

    fn note_trouble(&mut self, e: &io::Error) {
        self.report.trouble.get_or_insert_with(|| e.to_string());
        let broken = matches!(self.disk, Disk::Broken);
        self.log.note_recording(self.file.path(), broken, self.report.trouble.as_ref());
    }
}
