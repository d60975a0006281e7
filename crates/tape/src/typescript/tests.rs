use super::*;
use crate::event::{EventReader, EventWriter, Kind, Loss};
use crate::testing::{output_of, read_all, sample_events, write_all};
use tapdeck_core::{Exit, Time, WallTime};

#[test]
fn advanced_timing_carries_input_sizes_and_the_ending() {
    let (header, events) = sample_events();
    let mut writer = TypescriptWriter::new(Timing::Advanced);
    let parts = write_all(&mut writer, &header, &events);
    let (back, got, notes) = read_all(TypescriptReader::new(&parts.main[..], &parts.timing[..]).unwrap());
    assert_eq!(notes, []);
    assert_eq!((back.size, &back.command, &back.term), (header.size, &header.command, &header.term));
    assert_eq!(back.started, Some(WallTime::from_secs(1_700_000_000)));
    let mut want = events.clone();
    want.retain(|e| !matches!(e.kind, Kind::Marker(_)));
    assert_eq!(got, want);
    assert_eq!(writer.losses().of(Loss::Marker).events, 1);
}

#[test]
fn classic_timing_carries_output_exactly() {
    let (header, events) = sample_events();
    let mut writer = TypescriptWriter::new(Timing::Classic);
    let parts = write_all(&mut writer, &header, &events);
    let (_, got, notes) = read_all(TypescriptReader::new(&parts.main[..], &parts.timing[..]).unwrap());
    assert_eq!(notes, []);
    assert_eq!(output_of(&got), output_of(&events));
    assert_eq!(got.last().map(|e| &e.kind), Some(&Kind::Exit(Exit::Code(3))), "the closing line tells");
    for loss in [Loss::Input, Loss::Resize] {
        assert_eq!(writer.losses().of(loss).events, 1, "{loss}");
    }
}

#[test]
fn a_timing_file_that_does_not_fit_is_noticed() {
    // The end of a session would be missing without a note.
    let banner = "Script started on x\n";
    let (_, got, notes) = read_all(
        TypescriptReader::new(format!("{banner}abc").as_bytes(), &b"0.1 2\n0.1 5\n0.1 9\n"[..]).unwrap(),
    );
    assert_eq!(output_of(&got), b"abc");
    assert_eq!(notes.len(), 1);
    let data = format!("{banner}abcdef\nScript done on y\n");
    let (_, got, notes) = read_all(TypescriptReader::new(data.as_bytes(), &b"0.1 2\n"[..]).unwrap());
    assert_eq!(output_of(&got), b"abcdef");
    assert_eq!(notes.len(), 1);
    for bad in ["nonsense\n", "O 1\n", "0.1 99999999999\n", "nan 3\n", "-1 3\n", "1e300 1\n"] {
        assert!(TypescriptReader::new(&b"abc"[..], bad.as_bytes()).is_err(), "{bad}");
    }
    let mut cut = TypescriptReader::new(&b"abc"[..], &b"0.1 2\n0."[..]).unwrap();
    assert!(matches!(cut.next_item(), Ok(Some(crate::Item::Event(_)))));
    assert!(matches!(cut.next_item(), Ok(Some(crate::Item::Note(_)))));
}

#[test]
fn a_pause_at_the_end_is_carried_or_told() {
    let (header, mut events) = sample_events();
    events.retain(|e| !matches!(e.kind, Kind::Exit(_)));
    events.push(crate::Event::new(Time::from_secs(9), Kind::Output(bytes::Bytes::new())));
    let parts = write_all(&mut TypescriptWriter::new(Timing::Advanced), &header, &events);
    let (_, got, _) = read_all(TypescriptReader::new(&parts.main[..], &parts.timing[..]).unwrap());
    assert_eq!(got.last(), events.last());
    let mut classic = TypescriptWriter::new(Timing::Classic);
    write_all(&mut classic, &header, &events);
    assert_eq!(classic.losses().of(Loss::Pause).events, 1);
}
