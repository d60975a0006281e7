//! Snapshots through a session's handle, without any socket.

use std::time::Duration;

use bytes::Bytes;
use tapdeck_core::{Event, LogLimits, Role, WallTime, WinSize};
use tapdeck_host::backend::InProcess;
use tapdeck_host::{
    Anchor, Clock, Config, Driver, Handle, IfExists, RecordOptions, Recorder, RecordingFile, SharedLog,
    SnapshotError, Unanswered,
};

const PATIENCE: Duration = Duration::from_secs(20);

/// A program that writes a greeting, then each line that it is given, until there are none.
fn session(recording: Option<&std::path::Path>, with: impl FnOnce(&Handle)) {
    let backend = InProcess::start(|console| {
        console.emit(b"hello")?;
        while let Some(line) = console.read_line()? {
            if line == b"end" {
                break;
            }
            console.emit(&line)?;
        }
        Ok(0)
    })
    .expect("it starts");
    let (clock, log) = (Clock::start(), SharedLog::new(LogLimits::default()));
    let size = WinSize::cells(80, 24);
    log.append(Event::Resize(size), clock.now());
    let recorder = recording.map(|path| {
        let file = RecordingFile::open(path, IfExists::Refuse).expect("created");
        let options = RecordOptions::default().index(tapdeck_host::LiveIndex::Off);
        Recorder::start(file, log.clone(), clock, options, size).expect("started")
    });
    let driver = Driver::new(backend, clock, Config::default(), log.clone()).expect("a driver");
    let handle = driver.handle();
    let running = std::thread::spawn(move || driver.run());
    with(&handle);
    let me = handle.join("me", Role::Human).expect("it runs");
    handle.take(me).expect("it runs").expect("free");
    handle.input(me, None, Bytes::from_static(b"end\n")).expect("it runs").expect("admitted");
    running.join().expect("no panic").expect("it ends");
    let over = handle.snapshot(9, "late", PATIENCE);
    assert_eq!(over, Err(SnapshotError::Unanswered(Unanswered::SessionOver)));
    if let Some(report) = recorder.map(Recorder::finish) {
        assert_eq!(report.trouble, None);
    }
}

#[test]
fn what_is_not_recorded_is_no_success() {
    session(None, |handle| {
        assert_eq!(handle.snapshot(1, "", PATIENCE), Err(SnapshotError::NotRecorded));
    });
}

#[test]
fn anchors_and_times_go_forward() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s.ahr");
    session(Some(&path), |handle| {
        let me = handle.join("me", Role::Bot).expect("it runs");
        handle.take(me).expect("it runs").expect("free");
        let mut last = Anchor { byte: tapdeck_core::Offset(0), at: WallTime::ZERO };
        for id in 0..20 {
            let anchor = handle.snapshot(id, "label", PATIENCE).expect("recorded");
            assert!(anchor.byte >= last.byte && anchor.at > last.at, "{last:?} then {anchor:?}");
            let list = std::fs::read_to_string(folder.path().join("s.snapshots.jsonl")).expect("on disk");
            assert_eq!(list.lines().count() as u64, id + 1);
            assert!(list.ends_with('\n'));
            last = anchor;
            handle.input(me, None, Bytes::from_static(b"more\n")).expect("it runs").expect("admitted");
        }
        handle.leave(me);
    });
}

/// A list that cannot be written: the recording itself has the snapshot, and still it is no
/// success.
#[test]
fn a_list_that_cannot_be_written_is_a_failure() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s.ahr");
    let file = RecordingFile::open(&path, IfExists::Refuse).expect("created");
    std::fs::create_dir(folder.path().join("s.snapshots.jsonl")).expect("in the way");
    let (clock, log) = (Clock::start(), SharedLog::new(LogLimits::default()));
    let size = WinSize::cells(80, 24);
    log.append(Event::Resize(size), clock.now());
    let options = RecordOptions::default().index(tapdeck_host::LiveIndex::Off);
    let recorder = Recorder::start(file, log.clone(), clock, options, size).expect("started");
    let backend =
        InProcess::start(|console| Ok(i32::from(console.read_line()?.is_some()))).expect("it starts");
    let driver = Driver::new(backend, clock, Config::default(), log).expect("a driver");
    let handle = driver.handle();
    let running = std::thread::spawn(move || driver.run());
    let failed = handle.snapshot(1, "", PATIENCE);
    assert!(
        matches!(&failed, Err(SnapshotError::Failed(why)) if why.contains("s.snapshots.jsonl")),
        "{failed:?}"
    );
    handle.cancel();
    running.join().expect("no panic").expect("it ends");
    assert!(recorder.finish().trouble.is_some_and(|t| t.contains("s.snapshots.jsonl")));
}
