use proptest::prelude::*;
use tapdeck_core::turns::Evidence;
use tapdeck_core::{Author, LogLimits, Party, Role, WallTime};
use tapdeck_term::{Settings, Size, Term};

use super::*;

/// Keeps what it is given.
#[derive(Default)]
struct Kept(Vec<Entry>, u64);

impl Tap for Kept {
    fn take(&mut self, entries: Drain<'_, Entry>, _now: Stamp) {
        self.0.extend(entries);
    }

    fn lagged(&mut self, lag: &Lag, _now: Stamp) {
        self.1 += lag.bytes();
    }
}

const SIZE: WinSize = WinSize::cells(20, 4);

fn at(ms: u64) -> Stamp {
    Stamp { mono: Time::from_millis(ms), wall: WallTime::from_nanos(1_000_000_000 + ms * 1_000_000) }
}

fn output(bytes: impl Into<Bytes>) -> Event {
    Event::Output { stream: Stream::Out, bytes: bytes.into() }
}

fn input(bytes: &'static [u8]) -> Event {
    let by = Author::Party(Party { name: "ada".into(), role: Role::Human });
    Event::Input { by, bytes: Bytes::from_static(bytes), hidden: false }
}

fn paused() -> Event {
    Event::RecordingPaused { by: "ada".into() }
}

fn resumed(redraw: impl Into<Bytes>, undelivered: usize) -> Event {
    Event::RecordingResumed { by: "ada".into(), size: SIZE, redraw: redraw.into(), undelivered }
}

/// What a recorder gets of these events, a millisecond apart.
fn recorded(events: Vec<Event>) -> Vec<Entry> {
    let log = SharedLog::new(LogLimits::default());
    let reader = log.reader_from_start(tapdeck_core::ReaderKind::Lossless);
    for (ms, event) in events.into_iter().enumerate() {
        log.append(event, at(ms as u64));
    }
    let mut entries = Vec::new();
    assert_eq!(log.read(reader, usize::MAX, &mut entries), None);
    let mut tap = Pausing::new(Kept::default(), log, SIZE);
    tap.take(entries.drain(..), at(0));
    tap.inner.0
}

fn outputs(entries: &[Entry]) -> Vec<(u64, &[u8])> {
    let output = |entry: &'_ Entry| matches!(entry.event, Event::Output { .. });
    entries
        .iter()
        .filter(|entry| output(entry))
        .map(|entry| match &entry.event {
            Event::Output { bytes, .. } => (entry.offset.0, &bytes[..]),
            _ => unreachable!("filtered"),
        })
        .collect()
}

#[test]
fn a_pause_is_kept_out_and_the_offsets_close_over_it() {
    let entries = recorded(vec![
        output("before"),
        input(b"a"),
        paused(),
        output("secret"),
        input(b"secret"),
        Event::Marker { label: "here".into(), by: "ada".into() },
        Event::Resize(WinSize::cells(1, 1)),
        resumed("drawn", 3),
        input(b"et"),
        input(b"!b"),
        output("behind"),
        Event::Exit(tapdeck_core::Exit::Code(0)),
    ]);
    assert_eq!(outputs(&entries), [(0, &b"before"[..]), (6, b"drawn"), (11, b"behind")]);
    let typed: Vec<&[u8]> = entries
        .iter()
        .filter_map(|e| if let Event::Input { bytes, .. } = &e.event { Some(&bytes[..]) } else { None })
        .collect();
    assert_eq!(typed, [&b"a"[..], b"b"], "what was typed in the pause is not delivered into the file");
    let offset_of = |found: fn(&Event) -> bool| entries.iter().find(|e| found(&e.event)).map(|e| e.offset.0);
    assert_eq!(offset_of(|e| matches!(e, Event::Marker { .. })), Some(6));
    assert_eq!(offset_of(|e| matches!(e, Event::Exit(_))), Some(17));
    assert_eq!(offset_of(|e| matches!(e, Event::Resize(_))), None, "the size is the same behind it");
}

/// A recorder that starts in the middle of a pause would have written it down.
#[test]
fn a_late_recorder_knows_of_the_pause_it_starts_in() {
    let log = SharedLog::new(LogLimits::new(200, 1 << 20));
    for (ms, event) in [output("before"), paused(), output("secret"), output("more")].into_iter().enumerate()
    {
        log.append(event, at(ms as u64));
    }
    // The log lets go of the beginning of the pause.
    log.append(output(vec![b'x'; 300]), at(10));
    let (reader, from, _, _) = log.late_reader();
    assert!(from.0 > 6, "the beginning is gone");
    log.append(resumed("drawn", 0), at(11));
    log.append(output("behind"), at(12));
    let mut entries = Vec::new();
    assert_eq!(log.read(reader, usize::MAX, &mut entries), None);
    let mut tap = Pausing::new(Kept::default(), log, SIZE);
    tap.take(entries.drain(..), at(0));
    let got = outputs(&tap.inner.0);
    assert_eq!(got.iter().map(|(_, bytes)| *bytes).collect::<Vec<_>>(), [&b"drawn"[..], b"behind"]);
    assert_eq!(got[1].0 - got[0].0, 5);
    assert!(matches!(tap.inner.0[0].event, Event::RecordingPaused { .. }));
}

#[test]
fn turns_tell_nothing_of_a_pause() {
    let point = |byte, ms| OutputPoint { byte: Offset(byte), at: at(ms) };
    let turn = |number, start, end| {
        Event::TurnEnded(Arc::new(Turn {
            number,
            start,
            end,
            input: "asked".into(),
            raw: Bytes::new(),
            text: "answered".into(),
            interrupted: false,
            truncated: false,
            evidence: Evidence::Quiet,
            by: None,
            parts: Vec::new(),
        }))
    };
    // Output: 0..6 before, 6..12 in the pause (2 to 4 ms), then 5 bytes are added.
    let entries = recorded(vec![
        output("before"),
        turn(1, point(1, 0), point(5, 1)),
        paused(),
        output("secret"),
        resumed("drawn", 0),
        turn(2, point(7, 3), point(8, 3)),
        output("behind"),
        turn(3, point(5, 1), point(14, 6)),
        output("more"),
        turn(4, point(15, 8), point(17, 9)),
    ]);
    let turns: Vec<_> = entries
        .iter()
        .filter_map(|e| match &e.event {
            Event::TurnEnded(turn) => Some((
                turn.number,
                turn.start.byte.0,
                turn.end.byte.0,
                &*turn.input,
                &*turn.text,
                turn.truncated,
            )),
            _ => None,
        })
        .collect();
    let whole = (1, 1, 5, "asked", "answered", false);
    // What was in the pause alone is not told of, and of what it was in, the texts are not.
    assert_eq!(turns, [whole, (3, 5, 13, "asked", "", true), (4, 14, 16, "asked", "answered", false)]);
}

proptest! {
    /// Whatever happens in the pauses, the recording's offsets have no holes, and its screen is the
    /// terminal's whenever the recording goes on. There is no `b`, which behind `CSI` repeats the
    /// last character: a screen that is drawn again does not carry it.
    #[test]
    fn the_screen_behind_a_pause_is_the_terminals(
        steps in prop::collection::vec((0..10u8, "[ac-z]{0,9}(\\r\\n|\\x1b\\[2J|\\x1b\\[H|\\x1b\\[31m|\\x1b\\[\\?1049[hl]|\\x1b\\[)?"), 1..60)
    ) {
        let size = Size::new(SIZE.cols, SIZE.rows);
        let mut term = Term::new(size, Settings::default().replies(false));
        let mut before: Option<Term> = None;
        let (mut events, mut pictures) = (Vec::new(), Vec::new());
        for (step, text) in steps {
            match step {
                0 if before.is_none() => {
                    before = Some(term.clone());
                    events.push(paused());
                }
                1 => if let Some(before) = before.take() {
                    events.push(resumed(term.redraw_since(&before), 0));
                }
                _ => {
                    term.feed(text.as_bytes());
                    events.push(output(text.into_bytes()));
                }
            }
            pictures.push((events.len(), before.is_none(), term.dump_screen()));
        }
        let entries = recorded(events);
        let mut copy = Term::new(size, Settings::default().replies(false));
        let mut offset = 0;
        let mut fed = 0;
        for (n, running, picture) in pictures {
            while fed < entries.len() && entries[fed].seq.0 < n as u64 {
                if let Event::Output { bytes, .. } = &entries[fed].event {
                    prop_assert_eq!(entries[fed].offset.0, offset);
                    offset += bytes.len() as u64;
                    copy.feed(bytes);
                }
                fed += 1;
            }
            if running {
                prop_assert_eq!(copy.dump_screen(), picture);
            }
        }
    }
}
