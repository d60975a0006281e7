use std::collections::BTreeMap;

use tapdeck_core::{Exit, Time, WallTime};
use tapdeck_term::Size;

use super::*;
use crate::event::{EventReader, EventWriter, Item, Kind, Loss};
use crate::testing::{output_of, read_all, sample_events, write_all};

#[test]
fn everything_that_text_can_carry_comes_back() {
    let (header, events) = sample_events();
    for version in [CastVersion::V2, CastVersion::V3] {
        let mut writer = CastWriter::new(version);
        let file = write_all(&mut writer, &header, &events).main;
        assert!(file.starts_with(b"{\"version\":"));
        let (back, got, notes) = read_all(CastReader::new(&file[..]).unwrap());
        assert_eq!(notes, []);
        assert_eq!((back.size, &back.command, &back.title), (header.size, &header.command, &header.title));
        assert_eq!((&back.term, &back.env["SHELL"]), (&header.term, &header.env["SHELL"]));
        let tags = if version == CastVersion::V3 { header.tags.clone() } else { BTreeMap::new() };
        assert_eq!(back.tags, tags, "only version 3 has tags");
        assert_eq!(back.started, Some(WallTime::from_secs(1_700_000_000)));
        let text = String::from_utf8_lossy(&output_of(&events)).into_owned();
        assert_eq!(String::from_utf8(output_of(&got)).unwrap(), text);
        assert_eq!(writer.losses().of(Loss::InvalidUtf8).bytes, 2);
        let kinds = |events: &[crate::Event]| {
            events.iter().filter(|e| !matches!(e.kind, Kind::Output(_))).cloned().collect::<Vec<_>>()
        };
        let mut want = kinds(&events);
        if version == CastVersion::V2 {
            assert!(matches!(want.pop().unwrap().kind, Kind::Exit(Exit::Code(3))));
            assert_eq!(writer.losses().of(Loss::Exit).events, 1);
        }
        assert_eq!(kinds(&got), want);
    }
}

#[test]
fn relative_times_do_not_drift() {
    // A million tiny pauses, each rounded for itself, would end seconds off.
    let (header, _) = sample_events();
    let events: Vec<_> = (0..20_000_u64)
        .map(|i| crate::Event::new(Time::from_nanos(i * 333_333), Kind::Output(b"x"[..].into())))
        .collect();
    let file = write_all(&mut CastWriter::new(CastVersion::V3), &header, &events).main;
    let (_, got, _) = read_all(CastReader::new(&file[..]).unwrap());
    assert_eq!(got.last().unwrap().time, Time::from_micros(19_999 * 333_333 / 1000));
}

#[test]
fn files_of_others_are_read() {
    let v3 = b"# made by hand\n{\"version\":3,\"term\":{\"cols\":80,\"rows\":24,\"type\":\"xterm\",\"version\":\"x(1)\",\
        \"theme\":{\"fg\":\"#fff\"}},\"timestamp\":1.5,\"tags\":[\"a\"],\"env\":{\"X\":null}}\r\n# comment\n\n\
        [0.5, \"o\", \"a\"]\n[0.5,\"r\",\"100x50\"]\n[ 1, \"x\", \"7\" ]\n[0,\"z\",{\"k\":[1]}]\n";
    let (header, events, notes) = read_all(CastReader::new(&v3[..]).unwrap());
    assert_eq!(notes, []);
    assert_eq!(header.tags, [("a".to_owned(), String::new())].into());
    assert_eq!(events[1].time, Time::from_secs(1));
    assert_eq!(events[1].kind, Kind::Resize(Size::new(100, 50)));
    assert_eq!(events[2].kind, Kind::Exit(Exit::Code(7)));
    // An unknown kind is kept, and so are fields of the header.
    let again = write_all(&mut CastWriter::new(CastVersion::V3), &header, &events).main;
    let again = String::from_utf8(again).unwrap();
    assert!(again.contains("\"z\",{\"k\":[1]}"), "{again}");
    assert!(again.contains("\"version\":\"x(1)\"") && again.contains("\"tags\":[\"a\"]"), "{again}");

    // Without a terminal, asciinema writes a size of zero: that is no size, not the smallest.
    let zero = b"{\"version\":3,\"term\":{\"cols\":0,\"rows\":0}}\n";
    assert_eq!(CastReader::new(&zero[..]).unwrap().header().size, None);

    let v1 = b"{\n \"version\": 1, \"width\": 80, \"height\": 24, \"duration\": 1.5,\n\
        \"command\": \"/bin/sh\", \"title\": \"\", \"env\": {\"TERM\": \"xterm\"},\n\
        \"stdout\": [[0.25, \"a\"], [0.5, \"b\\u001b[0m\"]]}";
    let (header, events, _) = read_all(CastReader::new(&v1[..]).unwrap());
    assert_eq!((header.size, header.term.as_deref()), (Some(Size::new(80, 24)), Some("xterm")));
    assert_eq!(events[1].time, Time::from_millis(750));
    assert_eq!(output_of(&events), b"ab\x1b[0m");
}

/// The events of version 1 are made one at a time, wherever the list stands in the object.
#[test]
fn version_1_is_read_event_by_event() {
    let read = |stdout: &str| {
        let file = format!("{{\"stdout\":{stdout},\"version\":1,\"width\":80,\"height\":24}}");
        let mut reader = CastReader::new(file.as_bytes()).map_err(|e| e.to_string())?;
        let mut all = Vec::new();
        while let Some(item) = reader.next_item().map_err(|e| e.to_string())? {
            if let Item::Event(crate::event::Event { time, kind: Kind::Output(text), .. }) = item {
                all.push((time.as_millis(), String::from_utf8_lossy(&text).into_owned()));
            }
        }
        Ok::<_, String>(all)
    };
    assert_eq!(read("[]"), Ok(vec![]));
    assert_eq!(read(" [ ] "), Ok(vec![]));
    let two = Ok(vec![(1000, "a,]".to_owned()), (1500, "\"é".to_owned())]);
    assert_eq!(read(r#"[[1,"a,]"],[0.5,"\"\u00e9"]]"#), two);
    assert_eq!(read("\n[ [ 1 , \"a,]\" ]\n , [0.5,\"\\\"é\"] ]"), two);
    for (stdout, want) in [
        ("{}", "stdout is not a list"),
        ("[[1,\"a\"],[1]]", "event 2 is not a delay and a text"),
        ("[[1,\"a\"],7]", "event 2 is not a delay and a text"),
        ("[[-1,\"a\"]]", "event 1 has an impossible delay of -1"),
        ("[[1,\"a\"],]", "not an asciicast"),
        ("[[1,\"a\"]", "not an asciicast"),
    ] {
        let said = read(stdout).expect_err(stdout);
        assert!(said.contains(want), "{stdout}: {said}");
    }
}

#[test]
fn malformed_files_are_named_by_line_or_noted() {
    let head = "{\"version\":2,\"width\":80,\"height\":24}\n";
    let check = |body: &str, want: Result<usize, &str>| {
        let file = format!("{head}{body}");
        let mut reader = CastReader::new(file.as_bytes()).unwrap();
        let mut notes = 0;
        let got = loop {
            match reader.next_item() {
                Ok(Some(Item::Note(_))) => notes += 1,
                Ok(Some(Item::Event(_))) => {}
                Ok(None) => break Ok(notes),
                Err(e) => break Err(e.to_string()),
            }
        };
        match (&got, want) {
            (Ok(notes), Ok(want)) => assert_eq!(*notes, want, "{body}"),
            (Err(e), Err(want)) => assert!(e.starts_with(want), "{body}: {e}"),
            _ => panic!("{body}: {got:?}"),
        }
    };
    check("[1,\"o\",\"a\"]\n[2,\"o\",", Ok(1));
    check("[1,\"o\",\"a\"]\nnonsense\n[2,\"o\",\"b\"]\n", Err("line 3: "));
    check("[1,\"r\",\"-1x0\"]\n[1,\"r\",\"99999x99999\"]\n", Ok(1));
    check("[-1,\"o\",\"a\"]\n[5,\"o\",\"b\"]\n[3,\"o\",\"b\"]\n", Ok(1));
    check("[1e308,\"o\",\"a\"]\n", Err("line 2: impossible time"));
    check("[1,\"o\",7]\n", Err("line 2: "));
    check("[1,\"o\",\"\\ud800\"]\n[1,\"o\",\"\\udcff\"]\n", Ok(1));
    check(&format!("{}\n", "[".repeat(100_000)), Err("line 2: "));
    assert!(CastReader::new(&b"{\"version\":4}\n"[..]).unwrap_err().to_string().contains("version 4"));
    for bad in ["", "\n\n", "hello", "{}", "[]", "{\"version\":\"2\"}"] {
        assert!(CastReader::new(bad.as_bytes()).is_err(), "{bad}");
    }
}

#[test]
fn every_truncation_ends_cleanly() {
    let (header, events) = sample_events();
    let file = write_all(&mut CastWriter::new(CastVersion::V3), &header, &events).main;
    let head = file.iter().position(|&b| b == b'\n').unwrap();
    for cut in 0..file.len() {
        match CastReader::new(&file[..cut]) {
            Ok(reader) => {
                read_all(reader);
            }
            Err(_) => assert!(cut < head),
        }
    }
}
