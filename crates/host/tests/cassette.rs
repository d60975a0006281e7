//! A cassette recorded under clocks that misbehave, and one that the disk refuses.

#![allow(unreachable_pub, missing_docs, reason = "tests explain themselves by their names")]
#![allow(clippy::disallowed_methods, reason = "tests take the time")]

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tapdeck_host::backend::CommandSpec;
use tapdeck_host::cassette::{CassetteFolder, CassetteRecorder, CommitError, Recorded};
use tapdeck_host::{Clock, Launch};
use tapdeck_tape::cassette::{Cassette, Closing, Manifest, Verdict, verify};

const HOUR_NS: u64 = 3_600_000_000_000;
static WALL: AtomicU64 = AtomicU64::new(1_000 * HOUR_NS);

/// Jumps an hour, now forward, now back, whenever it is looked at.
fn jumping_wall() -> u64 {
    let reads = WALL.fetch_add(1, Ordering::SeqCst);
    if reads.is_multiple_of(2) { 1_001 * HOUR_NS } else { 999 * HOUR_NS }
}

fn elapsed() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

fn closing() -> Closing {
    let manifest = serde_json::json!({
        "version": 1, "id": "0190f3a2-7c1e-7abc-8def-0123456789ab", "content_digest": {"sha256": ""},
        "harness": {"name": "sh", "captured_at": "2026-01-01T00:00:00Z"},
        "command": {"argv": ["sh"], "workdir_policy": "inherited", "env_allowlist": []},
        "terminal": {"initial_rows": 1, "initial_cols": 1, "emulator": {"name": "", "version": ""}},
        "timing": {"resolution_ms": 1, "clock_policy": "monotonic-elapsed"},
        "provenance": {"os": "linux", "arch": "x", "recorded_at": "x", "recorder_version": "x"},
    });
    let manifest: Manifest = serde_json::from_value(manifest).expect("a manifest");
    Closing::new(manifest)
}

fn record(target: &Path, clock: Clock, script: &str) -> Recorded {
    let mut launch = Launch::new(CommandSpec::new(["sh", "-c", script]));
    launch.headless = true;
    launch.clock = Some(clock);
    let folder = CassetteFolder::create(target, true).expect("a folder");
    let (outcome, recorded) = launch
        .run_recorded(
            |log, clock, size| {
                CassetteRecorder::start(
                    folder,
                    log.clone(),
                    clock,
                    size,
                    std::time::Duration::from_millis(10),
                    None,
                )
            },
            CassetteRecorder::finish,
            |_| (),
        )
        .expect("set up");
    outcome.expect("it runs");
    recorded.expect("recorded")
}

#[test]
fn a_wall_clock_jump_of_an_hour_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().join("c");
    let clock = Clock::start_with(elapsed, jumping_wall);
    let script = "for i in 1 2 3 4; do printf $i; sleep 0.05; done";
    record(&target, clock, script).accept(closing()).expect("committed");
    let cassette = Cassette::open(&target).expect("accepted");
    assert_eq!(&cassette.raw()[..], b"1234");
    // On a busy machine several of the numbers come in one read.
    let times: Vec<u64> = cassette.events.iter().map(|e| e.t_ms).collect();
    assert!(times.is_sorted(), "{times:?}");
    let ended = times.last().copied().expect("events");
    assert!((200..HOUR_NS / 1_000_000).contains(&ended), "{times:?}");
    let files = tapdeck_tape::cassette::Files::read(&target).expect("read");
    assert!(verify(Ok(&files)).iter().all(|c| c.verdict == Verdict::Passed));
}

/// Replacing by delete-then-rename once lost the old cassette when the second step failed.
#[test]
fn a_commit_that_cannot_be_made_leaves_the_old_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().join("c");
    record(&target, Clock::start(), "printf old").accept(closing()).expect("committed");
    let second = record(&target, Clock::start(), "printf new");
    // A newer one comes to stand there while the run goes on.
    let manifest = target.join("manifest.json");
    let text =
        std::fs::read_to_string(&manifest).expect("read").replace("\"version\": 1,", "\"version\": 3,");
    std::fs::write(&manifest, &text).expect("written");
    assert!(matches!(second.accept(closing()), Err(CommitError::Newer { found: 3, .. })));
    assert_eq!(std::fs::read(target.join("output.raw")).expect("still there"), b"old");
    let left = std::fs::read_dir(folder.path()).expect("listed").count();
    assert_eq!(left, 1, "nothing half-made is left beside it");
}
