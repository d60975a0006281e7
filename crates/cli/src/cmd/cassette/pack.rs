//! A recording of any format as a cassette, and a cassette as a folder or as one archive.

use std::path::Path;

use tapdeck_host::Clock;
use tapdeck_host::cassette::CassetteFolder;
use tapdeck_tape::cassette::{Cassette, Closing, Files, Recording, Taken};
use tapdeck_tape::{EventReader, Item};

use super::manifest::converted;
use crate::failure::{Failure, Result};

/// A recording that is becoming a cassette.
pub(crate) struct Packing {
    folder: CassetteFolder,
    recording: Recording,
    taken: Taken,
    closing: Closing,
}

impl Packing {
    /// Reads a recording to its end.
    pub(crate) fn read(reader: &mut dyn EventReader, to: &Path, overwrite: bool) -> Result<Self> {
        let closing = converted(reader.header(), Clock::start().wall_start_ns())?;
        let mut folder = CassetteFolder::create(to, overwrite)?;
        // The finest resolution of a cassette keeps as much of the recording's times as possible.
        let mut recording = Recording::new(reader.header().size.unwrap_or_default(), 1);
        let mut taken = Taken::default();
        while let Some(item) = reader.next_item().map_err(|e| Failure::io(e.to_string()))? {
            if let Item::Event(event) = item {
                taken.event(&mut recording, event);
                recording.drain(|name, bytes| folder.append(name, bytes))?;
            }
        }
        Ok(Self { folder, recording, taken, closing })
    }

    /// Puts it in its place; returns its size.
    pub(crate) fn commit(self) -> Result<u64> {
        let Self { mut folder, recording, taken, mut closing } = self;
        closing.outcome.exit = taken.exit;
        closing.outcome.metadata.insert("ended".into(), "converted".into());
        if taken.lost > 0 {
            closing.outcome.metadata.insert("lost_bytes".into(), taken.lost.into());
        }
        let mut written = recording.output_bytes();
        let done = recording.finish(taken.duration_ns, closing, |name, bytes| {
            written += bytes.len() as u64;
            folder.append(name, bytes)
        });
        done?;
        folder.commit()?;
        Ok(written)
    }
}

/// Copies a cassette into the other form, every byte of it; returns its size.
pub(crate) fn repack(from: &Path, to: &Path, overwrite: bool) -> Result<u64> {
    let refused = |e| Failure::io(format!("{}: {e}", from.display()));
    let files = Files::read(from).map_err(refused)?;
    Cassette::from_files(&files).map_err(refused)?;
    let mut folder = CassetteFolder::create(to, overwrite)?;
    let written = folder.append_all(&files)?;
    folder.commit()?;
    Ok(written)
}
