//! A recording of any format as a cassette, and a cassette as a folder or as one archive.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tapdeck_core::WallTime;
use tapdeck_host::Clock;
use tapdeck_host::cassette::{CassetteFolder, git_sha, new_uuid, rfc3339};
use tapdeck_tape::cassette::{
    Cassette, Closing, Command, ContentDigest, Emulator, Files, Harness, Manifest, Provenance, Recording,
    Taken, Terminal, Timing, VERSION, from_header,
};
use tapdeck_tape::{EventReader, Header, Item};

use super::ConvertError;

/// A recording that is becoming a cassette.
pub(super) struct Packing {
    folder: CassetteFolder,
    recording: Recording,
    taken: Taken,
    closing: Closing,
}

impl Packing {
    /// Reads a recording to its end.
    pub(super) fn read(
        reader: &mut dyn EventReader,
        to: &Path,
        overwrite: bool,
    ) -> Result<Self, ConvertError> {
        let io = |source| ConvertError::Write { path: to.to_owned(), source };
        let closing = converted(reader.header(), Clock::start().wall_start()).map_err(io)?;
        let mut folder = CassetteFolder::create(to, overwrite)?;
        // The finest resolution of a cassette keeps as much of the recording's times as possible.
        let mut recording =
            Recording::new(reader.header().size.unwrap_or_default(), Duration::from_millis(1));
        let mut taken = Taken::default();
        let failed = |source| ConvertError::Read { path: PathBuf::new(), source };
        while let Some(item) = reader.next_item().map_err(failed)? {
            if let Item::Event(event) = item {
                taken.event(&mut recording, event);
                recording.drain(|name, bytes| folder.append(name, bytes))?;
            }
        }
        Ok(Self { folder, recording, taken, closing })
    }

    /// Puts it in its place; returns its size.
    pub(super) fn commit(self) -> Result<u64, ConvertError> {
        let Self { mut folder, recording, taken, mut closing } = self;
        closing.outcome.exit = taken.exit;
        closing.outcome.metadata.insert("ended", "converted");
        if taken.lost > 0 {
            closing.outcome.metadata.insert("lost_bytes", taken.lost);
        }
        let mut written = recording.output_bytes();
        recording.finish(taken.end, closing, |name, bytes| {
            written += bytes.len() as u64;
            folder.append(name, bytes)
        })?;
        folder.commit()?;
        Ok(written)
    }
}

/// Copies a cassette into the other form, every byte of it; returns its size.
pub(super) fn repack(from: &Path, to: &Path, overwrite: bool) -> Result<u64, ConvertError> {
    let refused = |why| ConvertError::Cassette { path: from.to_owned(), why };
    let files = Files::read(from).map_err(refused)?;
    Cassette::from_files(&files).map_err(refused)?;
    let mut folder = CassetteFolder::create(to, overwrite)?;
    let written = folder.append_all(&files)?;
    folder.commit()?;
    Ok(written)
}

/// Begins a cassette's manifest, with everything that does not depend on the run, and an empty
/// ending.
///
/// # Errors
/// When the system has no random numbers.
pub fn begin_manifest(now: WallTime, cwd: &Path) -> std::io::Result<Closing> {
    let captured = rfc3339(now);
    let manifest = Manifest {
        version: VERSION,
        id: new_uuid(now)?,
        content_digest: ContentDigest::default(),
        harness: Harness { captured_at: captured.clone(), ..Harness::default() },
        command: Command { workdir_policy: "inherited".into(), ..Command::default() },
        terminal: Terminal {
            initial_rows: 24,
            initial_cols: 80,
            emulator: Emulator::ours(),
            ..Terminal::default()
        },
        timing: Timing::default(),
        provenance: Provenance { git_sha: git_sha(cwd), ..Provenance::here(captured) },
        required_features: Vec::new(),
        optional: Default::default(),
        extra: Default::default(),
    };
    Ok(Closing::new(manifest))
}

/// The manifest of a recording that becomes a cassette.
fn converted(header: &Header, now: WallTime) -> std::io::Result<Closing> {
    let mut closing = begin_manifest(now, Path::new("."))?;
    closing.manifest.provenance.git_sha = None;
    if let Some(started) = header.started {
        let when = rfc3339(started);
        closing.manifest.harness.captured_at.clone_from(&when);
        closing.manifest.provenance.recorded_at = when;
    }
    closing.manifest.harness.name = "unknown".into();
    closing.manifest.command.workdir_policy = "unknown".into();
    closing.manifest.optional.insert("converted", true);
    from_header(&mut closing, header);
    Ok(closing)
}
