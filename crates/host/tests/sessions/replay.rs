//! A recording as a backend.

use bytes::Bytes;
use tapdeck_core::{Event, Exit, Stream, WinSize};
use tapdeck_host::backend::{Pace, Recorded, RecordedEvent, Replay};

use crate::{output, run};

fn recording() -> Vec<Recorded> {
    let at = |ms: u64, what| Recorded { at_ns: ms * 1_000_000, what };
    vec![
        at(0, RecordedEvent::Output(Stream::Out, Bytes::from_static(b"one "))),
        at(30, RecordedEvent::Resize(WinSize::cells(100, 30))),
        at(60, RecordedEvent::Output(Stream::Out, Bytes::from(vec![b'x'; 200_000]))),
        at(90, RecordedEvent::Exit(Exit::Signal(9))),
    ]
}

#[test]
fn it_plays_in_its_own_time_and_order() {
    let (outcome, entries) = run(Replay::new(recording().into_iter().map(Ok), Pace::default()));
    assert_eq!(outcome.expect("it ends").exit, Exit::Signal(9));
    assert_eq!(output(&entries, Stream::Out).len(), 200_004);
    let resized =
        entries.iter().position(|e| matches!(e.event, Event::Resize(s) if s.cols == 100)).expect("resized");
    assert_eq!(entries[resized].offset, 4, "between the two outputs");
    let last = entries.last().expect("entries");
    assert!(last.at.mono_ns >= 90_000_000, "not early");
}

#[test]
fn an_infinite_speed_is_at_once_and_errors_come_through() {
    let pace = Pace { speed: f64::INFINITY, idle_limit_ns: None };
    let (outcome, entries) = run(Replay::new(recording().into_iter().map(Ok), pace));
    assert_eq!(
        (outcome.expect("it ends").exit, output(&entries, Stream::Out).len()),
        (Exit::Signal(9), 200_004)
    );
    let broken = vec![Ok(recording().remove(0)), Err(std::io::Error::other("damaged"))];
    let (outcome, entries) = run(Replay::new(broken.into_iter(), pace));
    assert!(outcome.is_err());
    assert_eq!(output(&entries, Stream::Out), b"one ");
}
