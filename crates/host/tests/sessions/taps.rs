//! Several readers of one session: none of them may cost another its wake-up.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tapdeck_core::scrub::Rules;
use tapdeck_core::{Event, LogLimits, ReaderKind, Stream, WinSize};
use tapdeck_host::{Clock, LiveIndex, RecordOptions, Recorder, RecordingFile, SharedLog};
use tapdeck_tape::Container;

/// Far more than the quarter of a second that is promised, and less than a reader could sleep for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Lost before: output that came while a second recording held some back to scrub it was not in the
/// first file for as long as nothing else happened.
#[test]
fn a_second_recording_does_not_keep_the_first_asleep() {
    let folder = tempfile::tempdir().expect("a folder");
    let (clock, log) = (Clock::start(), SharedLog::new(LogLimits::default()));
    let size = WinSize::cells(80, 24);
    log.append(Event::Resize(size), clock.now());
    let options = RecordOptions::default().index(LiveIndex::Off);
    let open = |name: &str| {
        let container = Container::of_name(name).expect("a format");
        RecordingFile::open_as(&folder.path().join(name), container, false).expect("made")
    };
    let first = Recorder::start(open("a.cast"), log.clone(), clock, options.clone(), size).expect("started");
    let rules =
        Rules::new(Rules::of_packs(&Rules::default_packs()).expect("a pack"), Vec::new()).expect("rules");
    let scrubbed = options.scrub(Some(Arc::new(rules)));
    let (second, _) = Recorder::start_late(open("b.ahr"), log.clone(), clock, scrubbed).expect("started");
    let began = Instant::now();
    // Nothing is ever sent, so waiting for it is a sleep.
    let (_silent, never) = channel::<()>();
    for (at_ms, text) in [(0, "one\r\n"), (50, "two\r\n"), (272, "three\r\n")] {
        let _ = never.recv_timeout(Duration::from_millis(at_ms).saturating_sub(began.elapsed()));
        log.append(
            Event::Output { stream: Stream::Out, bytes: Bytes::from_static(text.as_bytes()) },
            clock.now(),
        );
    }
    let written = || std::fs::read_to_string(first.path()).expect("a file").contains("three");
    while !written() && began.elapsed() < PATIENCE {
        let _ = never.recv_timeout(Duration::from_millis(20));
    }
    assert!(written(), "still not in the file");
    log.close();
    assert_eq!((first.finish().trouble, second.finish().trouble), (None, None));
}

/// Lost before: half a second at every suspension of a session that nothing records.
#[test]
fn a_flush_waits_for_no_reader_that_keeps_nothing() {
    let log = SharedLog::new(LogLimits::default());
    let _model = log.reader_from_start(ReaderKind::Lossless);
    let _client = log.reader_from_start(ReaderKind::Lossy);
    assert!(log.flush(PATIENCE), "it waited until the time was over");
}
