//! A player stands where it is told to, whichever way it went there.

#![allow(missing_docs, reason = "tests explain themselves by their names")]

use std::fs::File;
use std::io::Write;
use std::path::Path;

use bytes::Bytes;
use tapdeck_core::{Offset, Time, WallTime};
use tapdeck_host::{Goal, Player};
use tapdeck_tape::ahr::Quality;
use tapdeck_tape::index::{IndexOptions, build_index};
use tapdeck_tape::{Container, Event, Header, Kind, Parts, writer};
use tapdeck_term::{Settings, Size};

const EVENTS: u64 = 300;

/// Ten megabytes of numbered lines, an event every tenth of a second.
fn write(path: &Path) {
    let events = (0..EVENTS).map(|i| {
        let mut text = String::new();
        for n in 0..550 {
            text += &format!("\x1b[3{}mevent {i} line {n} {}\x1b[m\r\n", n % 8, "x".repeat(40));
        }
        (i * 100, Kind::Output(Bytes::from(text)))
    });
    write_events(path, events);
}

/// A recording of these, with the milliseconds at which they happened.
fn write_events(path: &Path, events: impl IntoIterator<Item = (u64, Kind)>) {
    let container = Container::of_name(path.to_str().expect("a name")).expect("a format");
    let mut target = writer(container.format, Quality::Brotli(0)).expect("it can be written");
    let mut parts = Parts::default();
    let header =
        Header { size: Some(Size::new(80, 24)), started: Some(WallTime::from_secs(1)), ..Header::default() };
    target.begin(&header, &mut parts);
    for (at_ms, kind) in events {
        target.event(&Event::new(Time::from_millis(at_ms), kind), &mut parts);
    }
    target.finish(&mut parts);
    std::fs::write(path, parts.main).expect("written");
}

fn screen(player: &Player) -> String {
    player.term().screen().map(|line| line.text()).collect::<Vec<_>>().join("\n")
}

fn open(path: &Path) -> Player {
    Player::open(path, Settings::default().scrollback(0)).expect("it opens")
}

#[track_caller]
fn check(path: &Path) {
    let mut player = open(path);
    // Forth, far back (behind keyframes), forth again, and to the very ends.
    for tenth in [5, 250, 120, 299, 3, 180, 0] {
        player.seek(Goal::Time(Time::from_millis(tenth * 100 + 50))).expect("a place");
        let shown = screen(&player);
        assert!(shown.contains(&format!("event {tenth} line 549 ")), "{tenth}: {shown}");
        // An event may stand in two records, where a block was full.
        let here = player.offset();
        player.step_back().expect("a step");
        assert!(player.offset() < here && screen(&player) != shown, "before {tenth}");
        player.advance().expect("a step");
        assert_eq!((player.offset(), screen(&player)), (here, shown));
    }
    let mut offsets = Vec::new();
    for byte in [9_000_000, 4_500_000, 100, 8_999_999] {
        player.seek(Goal::Byte(Offset(byte))).expect("a place");
        assert_eq!(player.offset(), Offset(byte));
        offsets.push(screen(&player));
    }
    let mut fresh = open(path);
    fresh.seek(Goal::Byte(Offset(4_500_000))).expect("a place");
    assert_eq!(screen(&fresh), offsets[1]);
    assert_eq!(player.known_end(), Time::from_millis((EVENTS - 1) * 100));
}

#[test]
fn places_of_any_format_with_and_without_an_index() {
    let folder = tempfile::tempdir().expect("a folder");
    let native = folder.path().join("a.ahr");
    write(&native);
    check(&native);
    let mut index = File::create(folder.path().join("a.ahx")).expect("created");
    let recording = File::open(&native).expect("opened");
    build_index::<tapdeck_tape::Error>(recording, IndexOptions::default(), |piece| {
        index.write_all(piece).expect("written");
        Ok(())
    })
    .expect("an index");
    check(&native);
    // An index of something else is no index.
    std::fs::write(folder.path().join("a.ahx"), b"AHXI not an index of this").expect("written");
    check(&native);
    for name in ["a.ttyrec", "a.cast"] {
        let path = folder.path().join(name);
        write(&path);
        check(&path);
    }
}

/// Markers were passed by: a player on its way to one went on over every resize and every key up to
/// the next output, and could not get before that any more.
#[test]
fn a_moment_is_reached_before_what_happened_after_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = |text: &'static str| Kind::Output(Bytes::from_static(text.as_bytes()));
    let mark = |label: &str| Kind::Marker(label.into());
    let events = || {
        [
            (500, out("hello\r\n")),
            (1000, mark("one")),
            (1200, mark("two")),
            (1500, Kind::Resize(Size::new(120, 40))),
            (3000, out("later\r\n")),
            (4000, mark("three")),
            (4500, Kind::Input(Bytes::from_static(b"x"))),
            (5000, mark("four")),
            (6000, out("end\r\n")),
        ]
    };
    for name in ["a.cast", "a.ahr"] {
        let path = folder.path().join(name);
        write_events(&path, events());
        let mut player = open(&path);
        let moments = player.moments(None).expect("moments").to_vec();
        // Where each is, how wide the terminal was, and how much had been written.
        let places = [(1000, 80, 7), (1200, 80, 7), (4000, 120, 14), (5000, 120, 14)];
        assert_eq!(moments.len(), places.len(), "{name}");
        for (from, to) in (0..4).flat_map(|from| (0..4).map(move |to| (from, to))) {
            for i in [from, to] {
                player.seek(Goal::from(&moments[i])).expect("a place");
                let at = (player.at().as_millis(), player.term().size().cols, player.offset().0);
                assert_eq!(at, places[i], "{name}: to {i}, from {from} or elsewhere");
            }
            // What comes next is what came next.
            let next = player.peek().expect("readable").map(|(at, _)| at.as_millis());
            assert_eq!(next, [1500, 1500, 4500, 6000].get(to).copied(), "{name}: behind {to}");
        }
    }
}
