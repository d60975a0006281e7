//! Snapshots through a session's handle, without any socket.

use std::time::Duration;

use bytes::Bytes;
use tapdeck_core::{Event, LogLimits, Role, WallTime, WinSize};
use tapdeck_host::backend::InProcess;
use tapdeck_host::{
    Anchor, Clock, Config, Driver, Handle, IfExists, RecordOptions, Recorder, RecordingFile, SharedLog,
    SnapshotError, SnapshotWatch, Unanswered,
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
        let mut watch = SnapshotWatch::new(path.clone());
        let mut last = Anchor { byte: tapdeck_core::Offset(0), at: WallTime::ZERO };
        for id in 0..20 {
            let anchor = handle.snapshot(id, "label", PATIENCE).expect("recorded");
            assert!(anchor.byte >= last.byte && anchor.at > last.at, "{last:?} then {anchor:?}");
            // It is on disk by now, for those that look at the recording alone.
            let found: Vec<_> = watch.look().iter().map(|m| (m.snapshot_id(), m.anchor)).collect();
            assert_eq!(found, [(Some(id), anchor.byte.0)]);
            last = anchor;
            handle.input(me, None, Bytes::from_static(b"more\n")).expect("it runs").expect("admitted");
        }
        handle.leave(me);
    });
}
