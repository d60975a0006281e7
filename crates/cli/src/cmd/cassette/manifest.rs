//! What goes into a manifest beside the evidence itself.

use std::path::Path;

use tapdeck_host::cassette::{git_sha, new_uuid, rfc3339};
use tapdeck_tape::Header;
use tapdeck_tape::cassette::{
    Closing, Command, ContentDigest, Emulator, Final, Harness, Manifest, Provenance, ScrubReport, Terminal,
    Timing, VERSION, from_header,
};

/// A manifest with everything that does not depend on the run, and an empty ending.
pub(crate) fn begin(wall_ns: u64, cwd: &Path) -> std::io::Result<Closing> {
    let now = rfc3339(wall_ns);
    let manifest = Manifest {
        version: VERSION,
        id: new_uuid(wall_ns)?,
        content_digest: ContentDigest::default(),
        harness: Harness { captured_at: now.clone(), ..Harness::default() },
        command: Command { workdir_policy: "inherited".into(), ..Command::default() },
        terminal: Terminal {
            initial_rows: 24,
            initial_cols: 80,
            emulator: Emulator::ours(),
            ..Terminal::default()
        },
        timing: Timing::default(),
        provenance: Provenance {
            git_sha: git_sha(cwd),
            contract_version: None,
            os: std::env::consts::OS.into(),
            arch: std::env::consts::ARCH.into(),
            recorded_at: now,
            recorder_version: concat!("tapdeck ", env!("CARGO_PKG_VERSION")).into(),
        },
        required_features: Vec::new(),
        optional: serde_json::Map::new(),
        extra: serde_json::Map::new(),
    };
    Ok(Closing {
        manifest,
        outcome: Final::default(),
        scrub_report: ScrubReport::not_scrubbed(),
        quota: None,
        discovery: None,
    })
}

/// The manifest of a recording that becomes a cassette.
pub(super) fn converted(header: &Header, wall_ns: u64) -> std::io::Result<Closing> {
    let mut closing = begin(wall_ns, Path::new("."))?;
    closing.manifest.provenance.git_sha = None;
    if let Some(started) = header.started_ns {
        let when = rfc3339(started);
        closing.manifest.harness.captured_at.clone_from(&when);
        closing.manifest.provenance.recorded_at = when;
    }
    closing.manifest.harness.name = "unknown".into();
    closing.manifest.command.workdir_policy = "unknown".into();
    closing.manifest.optional.insert("converted".into(), true.into());
    from_header(&mut closing, header);
    Ok(closing)
}
