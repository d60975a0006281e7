//! Edits of random recordings, and of small ones whose result is known.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use tapdeck_core::{Exit, Time, WallTime};
use tapdeck_term::{Line, Size, Style, Term};

use super::*;
use crate::event::{Event, EventReader, Header, Item, Kind};
use crate::turns::RecordedTurn;
use crate::{Error, Result};

/// A recording in memory.
#[derive(Debug, Clone)]
struct Tape {
    header: Header,
    events: Vec<Event>,
    next: usize,
}

impl Tape {
    fn new(size: Size, events: impl IntoIterator<Item = (u64, Kind)>) -> Self {
        let header = Header {
            size: Some(size),
            started: Some(WallTime::from_nanos(1_000_000_000)),
            title: Some("old".into()),
            ..Header::default()
        };
        let events = events.into_iter().map(|(ms, kind)| Event::new(Time::from_millis(ms), kind));
        Self { header, events: events.collect(), next: 0 }
    }

    fn boxed(&self) -> Box<dyn EventReader + Send> {
        Box::new(self.clone())
    }
}

impl EventReader for Tape {
    fn header(&self) -> &Header {
        &self.header
    }

    fn next_item(&mut self) -> Result<Option<Item>> {
        self.next += 1;
        Ok(self.events.get(self.next - 1).cloned().map(Item::Event))
    }

    fn position(&self) -> u64 {
        self.next as u64
    }
}

fn out(text: &str) -> Kind {
    Kind::Output(Bytes::copy_from_slice(text.as_bytes()))
}

fn row(line: &Line<'_>) -> String {
    let mut text = String::new();
    for mut run in line.runs() {
        // Numbers of links are each terminal's own.
        run.style.link = u32::from(run.style.link != 0);
        text += &match run.style == Style::default() {
            true => format!("{:?}@{}+{} ", run.text, run.col, run.width),
            false => format!("{:?}@{}+{}{:?} ", run.text, run.col, run.width, run.style),
        };
    }
    format!("{text}{}", line.size() as u8)
}

/// All that a viewer could show; with scrollback, or the screen alone.
fn frame(term: &Term, scrollback: bool) -> Vec<String> {
    let mut rows: Vec<String> = if scrollback {
        term.lines().map(|l| row(&l)).collect()
    } else {
        term.screen().map(|l| row(&l)).collect()
    };
    rows.push(format!(
        "{:?} {:?} {:?} {:?} {:?}",
        term.size(),
        term.cursor(),
        term.modes(),
        term.title(),
        term.palette()
    ));
    rows
}

/// The frame at each time at which something happened.
fn frames(mut reader: impl EventReader, scrollback: bool) -> BTreeMap<Time, Vec<String>> {
    let mut term = super::reader::follower(reader.header());
    let mut frames = BTreeMap::new();
    while let Some(item) = reader.next_item().expect("in memory") {
        let Item::Event(event) = item else { continue };
        match &event.kind {
            Kind::Output(bytes) => {
                term.feed(bytes);
            }
            Kind::Resize(size) => {
                term.resize(*size);
            }
            _ => {}
        }
        frames.insert(event.time, frame(&term, scrollback));
    }
    frames
}

fn plan(tape: &Tape, edits: &Edits, turns: &[RecordedTurn]) -> Result<Plan, EditError> {
    let located = locate(|| Ok::<_, Error>(tape.boxed()), turns, &edits.positions()).expect("in memory");
    edits.plan(&located)
}

fn edited(tape: &Tape, edits: &Edits) -> (Header, Vec<Event>, Moved, Removed) {
    let plan = plan(tape, edits, &[]).expect("a plan");
    let mut reader = EditReader::new(tape.boxed(), plan).expect("in memory");
    let header = reader.header().clone();
    let mut events = Vec::new();
    while let Some(item) = reader.next_item().expect("in memory") {
        let Item::Event(event) = item else { continue };
        events.push(event);
    }
    let (moved, removed) = reader.into_moved();
    (header, events, moved, removed)
}

/// Pieces of what a program writes: text, wide characters, colours, cursor moves, modes, screens.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "[a-zA-Z0-9 .,:-]{1,30}",
        3 => "[漢字かなカナ한글äöü→─]{1,12}",
        5 => Just("\r\n".to_owned()),
        4 => (0u32..12, 0u32..30).prop_map(|(y, x)| format!("\x1b[{y};{x}H")),
        3 => (0u32..8).prop_map(|n| format!("\x1b[{};4{n}m", n + 30)),
        3 => (0u32..6, prop::sample::select(b"ABCDJKLMPSTX@".to_vec()))
            .prop_map(|(n, c)| format!("\x1b[{n}{}", char::from(c))),
        4 => prop::sample::select(vec![
            "\x1b[?1049h", "\x1b[?1049l", "\x1b[?47h", "\x1b[?47l", "\x1b[?25l", "\x1b[?25h", "\x1b[?2004h",
            "\x1b[?1h", "\x1b[?7l", "\x1b[?7h", "\x1b[4h", "\x1b[4l", "\x1b7", "\x1b8", "\x1bM", "\x1bD",
            "\x1b[2;4r", "\x1b[r", "\x1b[?6h", "\x1b[?6l", "\x1b]2;title\x1b\\", "\x1b]2;two\x07", "\x1b(0",
            "\x1b(B", "\x1b[m", "\x1b]4;3;#112233\x07", "\x1b]8;;http://a\x1b\\", "\x1b]8;;\x1b\\", "\t",
            "👨‍👩‍👧", "e\u{301}", "\x1b[", "\x1b]0;half", "\x1b[3J", "\x1bH", "\x1b[?1000h", "\x1b[?1006h",
        ]).prop_map(str::to_owned),
    ]
}

fn size() -> impl Strategy<Value = Size> {
    // In a single column there are no wide characters, until it gets wider.
    (2u16..24, 1u16..9).prop_map(|(cols, rows)| Size::new(cols, rows))
}

/// A recording of up to two seconds, whose events happen at different times.
fn tape() -> impl Strategy<Value = Tape> {
    let event = prop_oneof![
        8 => prop::collection::vec(piece(), 1..4).prop_map(|v| out(&v.concat())),
        1 => size().prop_map(Kind::Resize),
        1 => "[a-z]{0,3}".prop_map(Kind::Marker),
        1 => "[a-z]{1,3}".prop_map(|s| Kind::Input(Bytes::from(s))),
    ];
    let events = prop::collection::vec((1u64..200, event), 1..40);
    (size(), events).prop_map(|(size, events)| {
        let mut at = 0;
        let timed = events.into_iter().map(move |(pause, kind)| {
            at += pause;
            (at, kind)
        });
        Tape::new(size, timed)
    })
}

fn end_of(tape: &Tape) -> u64 {
    tape.events.last().map_or(0, |event| event.time.as_millis())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Whatever is cut, by time or in the middle of a sequence, every frame outside of the cuts is
    /// the one of the original, with its scrollback. The bytes that carry a screen tell no blanks
    /// that were written from those that were not, which makes a difference when lines that were
    /// wrapped are wrapped anew: so frames are compared until the width changes behind a cut.
    #[test]
    fn frames_outside_of_cuts_are_the_same(
        tape in tape(),
        at in prop::collection::vec(0.0f64..1.0, 2..6),
        by_byte: bool,
    ) {
        let bytes: u64 = tape.events.iter().map(|e| match &e.kind {
            Kind::Output(bytes) => bytes.len() as u64,
            _ => 0,
        }).sum();
        // What a half-written cluster joins with is not carried.
        let joins = |e: &Event| matches!(&e.kind, Kind::Output(b) if b.windows(3).any(|b| b == "\u{200d}".as_bytes()));
        let by_byte = by_byte && !tape.events.iter().any(joins);
        let mut at = at;
        at.sort_by(f64::total_cmp);
        let position = |share: f64| match by_byte {
            true => Position::Byte((bytes as f64 * share) as u64),
            false => Position::Time(Duration::from_millis((end_of(&tape) as f64 * share) as u64)),
        };
        let mut edits = Edits::new();
        for pair in at.chunks_exact(2) {
            edits = edits.cut(Some(position(pair[0])), Some(position(pair[1])));
        }
        let plan = match plan(&tape, &edits, &[]) {
            Ok(plan) => plan,
            Err(why) => { prop_assert_eq!(why, EditError::Nothing); return Ok(()) }
        };
        let removed = plan.removed.clone();
        let mut reader = EditReader::new(tape.boxed(), plan.clone()).expect("in memory");
        while reader.next_item().expect("in memory").is_some() {}
        let (moved, _) = reader.into_moved();
        let behind = removed.first().map_or(Time::MAX, |(start, _)| start.time);
        let (mut cols, mut until) = (tape.header.size.map(|size| size.cols), Time::MAX);
        for event in &tape.events {
            if let Kind::Resize(size) = event.kind
                && cols.replace(size.cols) != Some(size.cols)
                && event.time > behind
            {
                until = until.min(event.time);
            }
        }
        let want = frames(tape.clone(), true).into_iter().take_while(|(time, _)| *time < until);
        let got = frames(EditReader::new(tape.boxed(), plan).expect("in memory"), true);
        for (time, want) in want {
            // At the ends of a cut two frames have one time.
            if removed.iter().any(|(a, b)| a.time <= time && time <= b.time) {
                continue;
            }
            let now = moved.time(time);
            let got = got.range(..=now).next_back().map(|(_, frame)| frame);
            prop_assert_eq!(Some(&want), got, "{:?} is now {:?}", time, now);
        }
    }

    /// What was joined shows the first and then the second, each as it was.
    #[test]
    fn joined_recordings_show_one_after_the_other(one in tape(), two in tape()) {
        let parts = || [&one, &two].map(|tape| Part {
            reader: tape.boxed(),
            resizes: tape.events.iter().any(|e| matches!(e.kind, Kind::Resize(_))),
        }).into();
        let shift = one.events.last().map_or(Duration::ZERO, |e| e.time.since_start());
        let got = frames(JoinReader::new(parts()).expect("two"), false);
        for (time, want) in frames(one.clone(), false) {
            // Then the second begins.
            if time.since_start() < shift {
                prop_assert_eq!(&want, &got[&time]);
            }
        }
        for (time, want) in frames(two.clone(), false) {
            prop_assert_eq!(&want, &got[&(time + shift)]);
        }
    }

    /// Speed and idle limits change when things happen, and neither what nor in which order.
    #[test]
    fn pace_keeps_content_and_order(tape in tape(), speed in 0.1f64..10.0, limit in 1u64..200) {
        let limit = Duration::from_millis(limit);
        let (_, events, moved, _) = edited(&tape, &Edits::new().speed(speed).idle_limit(limit));
        prop_assert_eq!(events.len(), tape.events.len());
        let mut last = Time::ZERO;
        for (old, new) in tape.events.iter().zip(&events) {
            prop_assert_eq!(&old.kind, &new.kind);
            prop_assert!(new.time >= last);
            let pause = new.time.since(last).mul_f64(speed);
            prop_assert!(pause <= limit + Duration::from_micros(1), "{pause:?}");
            prop_assert!(moved.time(old.time).abs_diff(new.time) < Duration::from_micros(1));
            last = new.time;
        }
    }
}

fn five() -> Tape {
    Tape::new(
        Size::new(10, 3),
        [
            (0, out("a")),
            (1_000, out("b")),
            (2_000, Kind::Marker("two".into())),
            (2_000, out("c")),
            (3_000, Kind::Snapshot { id: 7, anchor: 3, label: "snap".into() }),
            (4_000, Kind::Input(Bytes::from_static(b"x"))),
            (4_000, out("d")),
            (9_000, out("e")),
            (9_500, Kind::Exit(Exit::Code(0))),
        ],
    )
}

fn seconds(n: f64) -> Position {
    Position::Time(Duration::from_secs_f64(n))
}

#[test]
fn the_start_and_the_end_are_cut_off() {
    let (header, events, _, removed) = edited(&five(), &Edits::new().from(seconds(1.5)).until(seconds(4.0)));
    assert_eq!(header.started, Some(WallTime::from_nanos(2_500_000_000)), "times of day stay true");
    let mut term = super::reader::follower(&header);
    let mut shown = Vec::new();
    for event in &events {
        if let Kind::Output(bytes) = &event.kind {
            term.feed(bytes);
        }
        shown.push((event.time.as_millis(), term.text()));
    }
    let want = [(0, "ab"), (500, "ab"), (500, "abc"), (1_500, "abc"), (2_500, "abc"), (2_500, "abcd")];
    assert_eq!(shown, want.map(|(at, text)| (at, text.to_owned())));
    assert_eq!((removed.events, removed.output_bytes, removed.markers), (4, 3, 0));
    // The snapshot is behind the three bytes that are drawn again.
    let drawn = events.iter().find_map(|e| if let Kind::Output(b) = &e.kind { Some(b.len()) } else { None });
    let Kind::Snapshot { anchor, .. } = &events[3].kind else { panic!("{events:?}") };
    assert_eq!(*anchor, drawn.expect("a screen") as u64 + 1);
}

#[test]
fn a_cut_moves_what_comes_behind_and_drops_what_is_in_it() {
    let edits = Edits::new()
        .cut(Some(Position::Moment("two".into())), Some(Position::Moment("7".into())))
        .mark(seconds(5.0), "new")
        .drop_input()
        .title("new title");
    let (header, events, moved, removed) = edited(&five(), &edits);
    assert_eq!(header.title.as_deref(), Some("new title"));
    assert_eq!((removed.markers, removed.inputs, removed.snapshots), (1, 1, 0));
    let kinds: Vec<(u64, &str)> = events
        .iter()
        .map(|e| {
            let kind = match &e.kind {
                Kind::Output(bytes) if bytes.len() == 1 => "one",
                Kind::Output(_) => "screen",
                Kind::Snapshot { .. } => "snapshot",
                Kind::Marker(label) => label,
                Kind::Exit(_) => "exit",
                _ => "other",
            };
            (e.time.as_millis(), kind)
        })
        .collect();
    let want = [
        (0, "one"),
        (1_000, "one"),
        (2_000, "screen"),
        (2_000, "snapshot"),
        (3_000, "one"),
        (4_000, "new"),
        (8_000, "one"),
        (8_500, "exit"),
    ];
    assert_eq!(kinds, want);
    // Beside it: what was within is gone, and what was behind has moved.
    let sidecar = concat!(
        "{\"ts_ns\":3500000000,\"kind\":\"state\",\"state\":\"idle\"}\n",
        "{\"ts_ns\":10000000000,\"kind\":\"turn\",\"number\":1,\"start_byte\":1,\"end_byte\":3,\"start_ns\":0,\"end_ns\":0}\n",
        "{\"ts_ns\":10000000000,\"kind\":\"turn\",\"number\":2,\"start_byte\":3,\"end_byte\":5,",
        "\"start_ns\":5000000000,\"end_ns\":10000000000}\n",
        "{\"ts_ns\":99,\"anchor_byte\":2,\"line\":0,\"text\":\"gone\"}\n",
        "{\"ts_ns\":99,\"anchor_byte\":3,\"line\":0,\"text\":\"kept\",\"snapshot\":{\"id\":7,\"anchor_byte\":3}}\n",
        "no JSON\n",
    );
    let counted = Arc::new(Mutex::new(Removed::default()));
    let mut text = String::new();
    let mut lines = MovedLines::new(sidecar.as_bytes(), vec![Arc::new(moved.clone())], counted.clone());
    lines.read_to_string(&mut text).expect("in memory");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 2, "{text}");
    let behind = moved.offset(3);
    assert!(behind > 3);
    assert_eq!(lines[0]["number"], 2);
    assert_eq!((&lines[0]["start_byte"], &lines[0]["end_byte"]), (&behind.into(), &(behind + 2).into()));
    assert_eq!(lines[0]["ts_ns"], 9_000_000_000u64);
    assert_eq!(
        (&lines[1]["anchor_byte"], &lines[1]["snapshot"]["anchor_byte"]),
        (&behind.into(), &behind.into())
    );
    assert_eq!(lines[1].get("line"), None, "its place tells it");
    assert_eq!(lines[1]["ts_ns"], 99, "when it was written is no time of the session");
    let counted = *counted.lock().expect("unpoisoned");
    assert_eq!((counted.turns, counted.instructions, counted.others), (1, 1, 2));
}

#[test]
fn copies_of_an_instruction_are_told_apart_when_they_are_joined() {
    let one = "{\"id\":5,\"ts_ns\":99,\"anchor_byte\":2,\"line\":1,\"text\":\"x\"}\n";
    let mut joined = String::new();
    for begins in [0, 10] {
        let by = Moved::by(Default::default(), Time::ZERO, (0, begins));
        let mut lines = MovedLines::new(one.as_bytes(), vec![Arc::new(by)], Arc::default());
        lines.read_to_string(&mut joined).expect("in memory");
    }
    let all = crate::instructions_of(joined.as_bytes()).expect("in memory");
    let places: Vec<_> = all.iter().map(|there| (there.anchor_byte, there.line)).collect();
    assert_eq!(places, [(2, None), (12, None)]);
}

#[test]
fn edits_that_make_no_sense_say_which() {
    let turn = |number| Position::Turn(number);
    let cut = |a: f64, b: f64| Edits::new().cut(Some(seconds(a)), Some(seconds(b)));
    for (edits, want) in [
        (cut(1.0, 10.0), "cut 1s..10s: 10s is not in the recording: the recording lasts 9.5s"),
        (cut(3.0, 2.0), "cut 3s..2s: the range ends before it begins"),
        (cut(1.0, 4.0).cut(Some(seconds(3.0)), None), "cut 1s..4s and cut 3s.. overlap"),
        (Edits::new().from(seconds(4.0)).until(seconds(3.0)), "overlap"),
        (Edits::new().from(Position::Moment("x".into())), "it has @two, @snap"),
        (Edits::new().until(turn(3)), "the recording has no turns"),
        (Edits::new().until(Position::Line(9)), "the lines 0 to 0"),
        (Edits::new().until(Position::Byte(6)), "5 bytes"),
        (cut(1.0, 4.0).mark(seconds(2.0), "m"), "marker \"m\" at 2s would be removed by cut 1s..4s"),
        (Edits::new().from(Position::Share(1.0)), "nothing of the recording would be left"),
        (Edits::new().cut(None, None), "nothing of the recording would be left"),
    ] {
        let why = plan(&five(), &edits, &[]).expect_err(want).to_string();
        assert!(why.contains(want), "{why}: {want}");
    }
    // Ranges may touch, and one that removes nothing does no harm.
    let edits =
        cut(1.0, 2.0).cut(Some(seconds(2.0)), Some(seconds(3.0))).cut(Some(seconds(9.0)), Some(seconds(9.0)));
    assert_eq!(plan(&five(), &edits, &[]).expect("a plan").removed.len(), 1);
    // A line is there once its last byte was written.
    let (_, events, ..) = edited(&five(), &Edits::new().until(Position::Line(0)));
    assert_eq!(events.len(), 9, "{events:?}");
}

/// More lines than a terminal holds scroll by during a cut; those before it are not lost to
/// exports, which keep more.
#[test]
fn lines_before_a_long_cut_stay() {
    let lines = |range: std::ops::Range<u32>| out(&range.map(|n| format!("{n}\r\n")).collect::<String>());
    let tape =
        Tape::new(Size::new(10, 3), [(0, lines(0..100)), (1_000, lines(100..30_000)), (2_000, lines(0..5))]);
    for (clears, first) in [(false, "0"), (true, "19998")] {
        let mut tape = tape.clone();
        if clears {
            tape.events.insert(1, Event::new(Time::from_millis(900), out("\x1b[3J")));
        }
        let edits = Edits::new().cut(Some(seconds(0.5)), Some(seconds(1.5)));
        let reader = EditReader::new(tape.boxed(), plan(&tape, &edits, &[]).expect("a plan"));
        let mut text = Vec::new();
        let form = crate::export::LinesAs::Txt;
        crate::export::lines(form, &mut reader.expect("in memory"), Vec::new(), 1_000_000, &mut text)
            .expect("text");
        let text = String::from_utf8(text).expect("text");
        let want = if clears { 10_002 + 5 } else { 100 + 10_002 + 5 };
        assert_eq!((text.lines().next(), text.lines().count()), (Some(first), want));
    }
}

#[test]
fn joined_lines_stay_unless_the_size_changes() {
    let one =
        Tape::new(Size::new(10, 3), [(0, out("one\r\n\x1b[?1049hvim\x1b[")), (5, Kind::Exit(Exit::Code(1)))]);
    let mut two = Tape::new(Size::new(8, 4), [(3, out("two")), (4, Kind::Exit(Exit::Code(0)))]);
    for (resizes, want) in [(false, "one\ntwo"), (true, "two")] {
        two.header.pipes = resizes;
        let part = |tape: &Tape| Part { reader: tape.boxed(), resizes };
        let mut reader = JoinReader::new(vec![part(&one), part(&two)]).expect("two");
        let mut term = super::reader::follower(reader.header());
        let mut ends = Vec::new();
        while let Some(Item::Event(event)) = reader.next_item().expect("in memory") {
            match event.kind {
                Kind::Output(bytes) => drop(term.feed(&bytes)),
                Kind::Resize(size) => drop(term.resize(size)),
                Kind::Exit(exit) => ends.push((event.time.as_millis(), exit)),
                _ => {}
            }
        }
        let lines: Vec<String> = term.lines().map(|line| line.text()).collect();
        assert_eq!(lines.join("\n").trim_end(), want);
        assert_eq!((term.size(), term.modes().newline()), (Size::new(8, 4), resizes));
        assert_eq!(ends, [(9, Exit::Code(0))], "the exit of the first comes at 5, and is no end");
        let joined = reader.into_joined();
        assert_eq!(joined[1].time(Time::from_millis(3)), Time::from_millis(8));
    }
}
