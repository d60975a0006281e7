//! A recording as a backend.

use bytes::Bytes;
use tapdeck_core::{Event, Exit, LogLimits, Offset, ReaderKind, Stream, Time, WinSize};
use tapdeck_host::backend::{Backend, Pace, Replay};
use tapdeck_host::{Clock, Config, Driver, Ended, SharedLog};
use tapdeck_tape::{Beside, Container, Event as Recorded, Format, Kind, open};
use tapdeck_term::Size;

use crate::{output, run};

fn recording() -> Vec<Recorded> {
    let at = |ms: u64, kind| Recorded::new(Time::from_millis(ms), kind);
    vec![
        at(0, Kind::Output(Bytes::from_static(b"one "))),
        at(30, Kind::Resize(Size::new(100, 30))),
        at(60, Kind::Output(Bytes::from(vec![b'x'; 200_000]))),
        at(90, Kind::Exit(Exit::Signal(9))),
    ]
}

#[test]
fn it_plays_in_its_own_time_and_order() {
    let (outcome, entries) = run(Replay::new(recording().into_iter().map(Ok), Pace::default()));
    assert_eq!(outcome.expect("it ends").exit, Exit::Signal(9));
    assert_eq!(output(&entries, Stream::Out).len(), 200_004);
    let resized =
        entries.iter().position(|e| matches!(e.event, Event::Resize(s) if s.cols == 100)).expect("resized");
    assert_eq!(entries[resized].offset, Offset(4), "between the two outputs");
    let last = entries.last().expect("entries");
    assert!(last.at.mono >= Time::from_millis(90), "not early");
}

#[test]
fn an_infinite_speed_is_at_once_and_errors_come_through() {
    let pace = Pace { speed: f64::INFINITY, idle_limit: None };
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

/// Played with bare lines on a terminal, the second line stood below the first instead of behind
/// it.
#[test]
fn lines_begin_where_they_did_when_recorded() {
    let rows = |pipes| {
        let written = Bytes::from_static(b"abc\ndef");
        let event = Recorded::new(Time::ZERO, Kind::Output(written));
        let replay = Replay::new(std::iter::once(Ok(event)), Pace::default()).on_pipes(pipes);
        let log = SharedLog::new(LogLimits::default());
        let driver = Driver::new(replay, Clock::start(), Config::default(), log).expect("a driver");
        let (handle, glass) = (driver.handle(), driver.glass());
        driver.run().expect("it ends");
        let look = glass.look(&handle);
        look.term().screen().take(2).map(|row| row.text()).collect::<Vec<_>>()
    };
    assert_eq!(rows(false), ["abc", "   def"]);
    assert_eq!(rows(true), ["abc", "def"]);
}

/// Everything behind the first program's exit was dropped.
#[test]
fn programs_recorded_one_after_the_other_are_all_played() {
    let at = |nanos, kind| Ok(Recorded::new(Time::from_nanos(nanos), kind));
    let say = |text: &'static str| Kind::Output(Bytes::from_static(text.as_bytes()));
    let events = [
        at(0, say("one")),
        at(1, Kind::Exit(Exit::Code(3))),
        at(2, say("")),
        at(3, say("two")),
        at(4, Kind::Exit(Exit::Code(4))),
    ];
    let (outcome, entries) = run(Replay::new(events.into_iter(), Pace::default()));
    assert_eq!(outcome.expect("it ends").exit, Exit::Code(4));
    assert_eq!(output(&entries, Stream::Out), b"onetwo");
}

#[test]
fn times_beyond_all_clocks_are_waited_for_and_can_be_cancelled_at_once() {
    let pace = Pace { speed: 0.5, idle_limit: None };
    let far = |nanos| Ok(Recorded::new(Time::from_nanos(nanos), Kind::Exit(Exit::Code(0))));
    let replay = Replay::new([far(u64::MAX / 2), far(u64::MAX)].into_iter(), pace);
    let log = SharedLog::new(LogLimits::default());
    let reader = log.reader_from_start(ReaderKind::Lossless);
    let driver = Driver::new(replay, Clock::start(), Config::default(), log.clone()).expect("a driver");
    driver.handle().cancel();
    let outcome = driver.run().expect("it ends");
    assert_eq!((outcome.exit, outcome.ended), (Exit::Signal(15), Ended::Cancelled));
    let mut entries = Vec::new();
    log.read(reader, usize::MAX, &mut entries);
    // Looked at only at the next deadline, it would have been told to hang up as well.
    let told: Vec<_> = entries.iter().filter(|e| matches!(e.event, Event::Signal(_))).collect();
    assert_eq!(told.len(), 1, "{told:?}");
}

#[test]
fn only_signals_that_end_a_program_end_it() {
    let mut replay = Replay::new(std::iter::empty(), Pace::default());
    for harmless in [libc::SIGWINCH, libc::SIGCONT] {
        replay.signal(harmless).expect("known");
    }
    for unknown in [0, 999] {
        assert!(replay.signal(unknown).is_err(), "{unknown}");
    }
    assert_eq!(replay.exited().expect("no error"), None);
    replay.signal(libc::SIGINT).expect("known");
    assert_eq!(replay.exited().expect("no error"), Some(Exit::Signal(libc::SIGINT)));
}

#[test]
fn a_recording_of_any_format_can_be_driven() {
    let cast =
        b"{\"version\": 2, \"width\": 40, \"height\": 5}\n[0.1, \"o\", \"abc\\ndef\"]\n[0.2, \"i\", \"x\"]\n";
    let container = Container { format: Format::CastV2, zst: false };
    let reader = open(container, &cast[..], Beside::default()).expect("a recording");
    let (outcome, entries) = run(Replay::of(reader, Pace { speed: f64::INFINITY, idle_limit: None }));
    assert_eq!(outcome.expect("it ends").exit, Exit::Code(0));
    assert_eq!(output(&entries, Stream::Out), b"abc\ndef");
    assert!(entries.iter().any(|e| e.event == Event::Resize(WinSize::cells(40, 5))));

    let torn = open(container, &cast[..cast.len() - 40], Beside::default()).expect("a recording");
    assert!(run(Replay::of(torn, Pace::default())).0.is_ok(), "what is there is played");
}
