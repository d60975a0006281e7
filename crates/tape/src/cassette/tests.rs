//! A small cassette, and what becomes of it when one thing in it is changed.

use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::json;
use tapdeck_core::Time;

use tapdeck_term::Size;

use super::*;

pub(crate) fn closing() -> Closing {
    let manifest = json!({
        "version": 1,
        "id": "0190f3a2-7c1e-7abc-8def-0123456789ab",
        "content_digest": {"sha256": ""},
        "harness": {"name": "sh", "captured_at": "2026-01-01T00:00:00Z"},
        "command": {"argv": ["sh"], "workdir_policy": "inherited", "env_allowlist": ["TERM"]},
        "terminal": {"initial_rows": 5, "initial_cols": 20, "emulator": {"name": "", "version": ""}},
        "timing": {"resolution_ms": 100, "clock_policy": "monotonic-elapsed"},
        "provenance": {"os": "linux", "arch": "x86_64", "recorded_at": "2026-01-01T00:00:00Z",
            "recorder_version": "test"},
        "kept": {"future": true},
    });
    let outcome = Final { exit: Exit { code: Some(0), signal: None }, ..Final::default() };
    Closing::new(serde_json::from_value(manifest).unwrap()).outcome(outcome)
}

fn sample() -> Files {
    let mut rec = Recording::new(Size::new(20, 5), Duration::from_millis(100));
    rec.output(Time::from_millis(10), b"\x1b[1mhello\x1b[m\r\n");
    rec.output(Time::from_millis(20), b"$ ");
    rec.input(Time::from_millis(250), &Input { bytes: Bytes::from_static(b"ls\r"), ..Input::default() });
    rec.output(Time::from_millis(260), b"\xff\x00file\r\n");
    rec.resize(Time::from_millis(400), Size::new(30, 6));
    rec.signal(Time::from_millis(500), "SIGINT");
    rec.service(Time::from_millis(510), crate::JsonValue(json!({"type": "note", "n": 1})));
    rec.output(Time::from_millis(900), b"\x1b]0;title\x07$ ");
    rec.finish_in_memory(Time::from_millis(1_234), closing()).unwrap()
}

fn edit(files: &mut Files, name: &str, from: &str, to: &str) {
    let text = files.get(name).unwrap_or_else(|| panic!("{name}"));
    let text = std::str::from_utf8(text).unwrap();
    assert!(text.contains(from), "{name} has no {from}: {text}");
    let text = text.replacen(from, to, 1);
    files.put(name, text.into_bytes());
}

fn failed(files: &Files) -> Vec<&'static str> {
    let checks = verify(Ok(files));
    checks.iter().filter(|c| matches!(c.verdict, Verdict::Failed(_))).map(|c| c.name).collect()
}

#[test]
fn a_cassette_reads_back() {
    let files = sample();
    let cassette = Cassette::from_files(&files).unwrap();
    assert_eq!(&cassette.raw()[..], b"\x1b[1mhello\x1b[m\r\n$ \xff\x00file\r\n\x1b]0;title\x07$ ");
    let kinds: Vec<String> = cassette
        .events
        .iter()
        .map(|e| {
            let kind = match &e.kind {
                EventKind::Input(i) => format!("in {}", String::from_utf8_lossy(&i.bytes)),
                EventKind::Output { offset, bytes } => format!("out {offset}+{}", bytes.len()),
                EventKind::Frame(i) => format!("frame {i}"),
                EventKind::Resize(size) => size.to_string(),
                EventKind::Signal { name } => name.clone(),
                EventKind::Service(v) => v.0["type"].as_str().unwrap().to_owned(),
                EventKind::Final => "final".to_owned(),
            };
            format!("{} {} {kind}", e.seq, e.t_ms)
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "1 0 out 0+14",
            "2 0 out 14+2",
            "3 0 frame 0",
            "4 200 in ls\r",
            "5 200 out 16+8",
            "6 200 frame 1",
            "7 400 30x6",
            "8 400 frame 2",
            "9 500 SIGINT",
            "10 500 note",
            "11 900 out 24+12",
            "12 900 frame 3",
            "13 1200 final"
        ]
    );
    assert_eq!(cassette.frames[0].text[..2], ["hello", "$"]);
    assert_eq!(cassette.frames[0].runs[0].attrs, ["bold"]);
    assert_eq!((cassette.frames[3].raw_start, cassette.frames[3].raw_end), (24, 36));
    assert_eq!(cassette.frames[3].title, "title");
    assert_eq!(cassette.outcome.duration_ms, 1_234);
    assert_eq!(cassette.manifest.extra.0["kept"]["future"], true);
    assert_eq!(failed(&files), [""; 0]);
    assert!(verify(Ok(&files)).iter().all(|c| c.verdict == Verdict::Passed));
    let archive = files.to_archive("sample").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sample.tar.zst");
    std::fs::write(&path, &archive).unwrap();
    assert_eq!(Files::read(&path).unwrap(), files);
    for cut in [5, archive.len() / 2, archive.len() - 5] {
        std::fs::write(&path, &archive[..cut]).unwrap();
        assert!(Files::read(&path).is_err(), "{cut}");
    }
}

/// One change, the check that must fail and no other, and what the message must tell.
#[test]
fn one_change_fails_one_check() {
    let old = sample();
    let digest = Cassette::from_files(&old).unwrap().manifest.content_digest.sha256;
    let cases: [(&str, &str, &str, &str, &str); 20] = [
        ("manifest.json", "\"version\": 1", "\"version\": 2", "version", "version 2"),
        ("manifest.json", "\"id\"", "\"idx\"", "fields", "\"id\" is missing"),
        ("manifest.json", "0190f3a2-7c1e", "0190f3a2-7c1f", "binding", "the id 0190f3a2-7c1f"),
        ("manifest.json", "0190f3a2-7c1e", "0190f3a27-c1e", "fields", "no UUID"),
        (
            "manifest.json",
            &digest,
            &digest.replace(['0', '1'], "2"),
            "digest",
            "the manifest that was changed",
        ),
        (
            "manifest.json",
            "\"required_features\": []",
            "\"required_features\": [\"sixel\"]",
            "features",
            "sixel",
        ),
        ("manifest.json", "\"version\": \"1\"", "\"version\": \"0\"", "emulator", "tapdeck-term 0"),
        ("manifest.json", "\"rows\": 6", "\"rows\": 7", "terminal", "terminal.resizes"),
        ("output.jsonl", "\"seq\":5", "\"seq\":50", "seq", "seq 5 is missing"),
        ("output.jsonl", "\"seq\":5", "\"seq\":4", "seq", "seq 4 is there twice"),
        ("output.jsonl", "\"t_ms\":200", "\"t_ms\":100", "time", "t_ms 100 (seq 5)"),
        ("output.jsonl", "\"t_ms\":200", "\"t_ms\":201", "time", "t_ms 200 (seq 6) is earlier than 201"),
        ("output.jsonl", "\"length\":12", "\"length\":13", "chunks", "outside of output.raw"),
        ("output.jsonl", "\"offset\":16", "\"offset\":15", "chunks", "ends at 16"),
        ("output.jsonl", "\"length\":12", "\"lenght\":12", "fields", "\"length\" is missing"),
        ("frames.jsonl", "hello", "hallo", "frames", "row 1: \"hallo\" is stored, the bytes show \"hello\""),
        ("manifest.json", "\"os\": \"", "\"os\": \"x", "binding", "manifest.json was changed"),
        ("input.jsonl", "bHMN", "bHNN", "binding", "input.jsonl was changed"),
        ("final.json", "\"code\": 0", "\"code\": 1", "binding", "final.json was changed"),
        ("service-events.jsonl", "\"payload\"", "\"pay\"", "fields", "\"payload\" is missing"),
    ];
    for (file, from, to, check, tells) in cases {
        let mut files = old.clone();
        edit(&mut files, file, from, to);
        assert_eq!(failed(&files), [check], "{file}: {from} -> {to}: {:?}", verify(Ok(&files)));
        let checks = verify(Ok(&files));
        let found = checks.iter().find_map(|c| match &c.verdict {
            Verdict::Failed(faults) => Some(faults.join("\n")),
            _ => None,
        });
        assert!(found.as_ref().is_some_and(|f| f.contains(tells)), "{tells}: {found:?}");
        // The reader refuses the same, but for what only a derivation or the committed digests can
        // tell.
        let read = Cassette::from_files(&files);
        let only_verify = ["binding", "frames", "emulator", "terminal"].contains(&check);
        assert_eq!(read.is_ok(), only_verify, "{file}: {to}");
    }
}

/// Deriving frames anew repairs what is derived, and makes nothing else whole that was not.
#[test]
fn frames_are_not_derived_for_evidence_that_was_changed() {
    let whole = sample();
    let again = |files: &Files| reframed(&Cassette::from_files(files).unwrap(), files);
    let last = Cassette::from_files(&whole).unwrap().outcome.final_text.unwrap();
    for (file, from, to, refused) in [
        ("frames.jsonl", "hello", "hallo", None),
        ("manifest.json", "\"version\": \"1\"", "\"version\": \"0\"", None),
        ("final.json", &serde_json::to_string(&last).unwrap()[..], "\"x\"", None),
        ("final.json", "\"code\": 0", "\"code\": 1", Some("final.json was changed")),
        ("manifest.json", "\"sh\"", "\"vi\"", Some("manifest.json was changed")),
        ("manifest.json", "0190f3a2-7c1e", "0190f3a2-7c1f", Some("the id 0190f3a2-7c1f")),
        ("input.jsonl", "bHMN", "bHNN", Some("input.jsonl was changed")),
        ("scrub-report.json", "not_scrubbed", "scrubbed", Some("scrub-report.json was changed")),
    ] {
        let mut files = whole.clone();
        edit(&mut files, file, from, to);
        match (again(&files), refused) {
            (Ok(new), None) => {
                let mut made = Files::default();
                new.into_iter().for_each(|(name, bytes)| made.put(name, bytes));
                assert_eq!(made, whole, "{file}: {to}");
            }
            (Err(why), Some(part)) => assert!(why.to_string().contains(part), "{why}"),
            (answer, _) => panic!("{file}: {to}: {answer:?}"),
        }
    }
}

/// Without its binding a cassette of ours was changed, and one of another recorder is not guarded.
#[test]
fn a_cassette_without_a_binding_is_not_said_to_be_bound() {
    for (recorder, everything) in [("tapdeck 0.1.0", false), ("tapdeck 0.1.0", true), ("another", true)] {
        let mut closing = closing();
        closing.manifest.provenance.recorder_version = recorder.into();
        let mut files = Recording::new(Size::new(20, 5), Duration::from_millis(100))
            .finish_in_memory(Time::ZERO, closing)
            .unwrap();
        let mut manifest = Cassette::from_files(&files).unwrap().manifest;
        manifest.content_digest.binding = None;
        if everything {
            manifest.content_digest.files.clear();
        }
        files.put(names::MANIFEST, check::pretty(&manifest));
        let (checks, cassette) = verified(Ok(&files));
        let verdict = &checks.iter().find(|c| c.name == "binding").unwrap().verdict;
        let again = reframed(&Cassette::from_files(&files).unwrap(), &files);
        if recorder == "another" {
            assert!(
                matches!(verdict, Verdict::Skipped(why) if why.starts_with("not guarded")),
                "{verdict:?}"
            );
            let new = again.unwrap();
            let (_, bytes) = new.iter().find(|(name, _)| *name == names::MANIFEST).unwrap();
            let digest = Manifest::from_bytes(bytes).unwrap().content_digest;
            assert!(cassette.is_some() && digest.binding.is_none() && digest.files.is_empty());
        } else {
            assert!(matches!(verdict, Verdict::Failed(_)), "{verdict:?}");
            assert!(cassette.is_none() && again.is_err());
        }
    }
}

#[test]
fn a_byte_of_output_is_missed() {
    for at in [0, 10, 20, 30] {
        let mut files = sample();
        let mut raw = files.get(names::RAW).unwrap().to_vec();
        raw[at] ^= 1;
        files.put(names::RAW, raw);
        assert_eq!(failed(&files), ["digest"]);
        assert!(matches!(Cassette::from_files(&files), Err(Refusal::ChunkDigest { .. })));
    }
}

#[test]
fn files_that_are_missing_or_no_files_are_named() {
    for name in names::REQUIRED {
        let mut files = Files::default();
        sample().iter().filter(|(n, _)| *n != name).for_each(|(n, b)| files.put(n, b.clone()));
        let error = Cassette::from_files(&files).unwrap_err();
        assert_eq!(error.to_string(), format!("{name} is missing: the cassette is not whole"));
        assert_eq!(failed(&files), ["files"]);
    }
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(Files::read(folder.path()), Err(Refusal::NotACassette)));
    let file = folder.path().join("x");
    std::fs::write(&file, b"no cassette").unwrap();
    assert!(matches!(Files::read(&file), Err(Refusal::NotACassette)));
    assert!(matches!(Files::read(&folder.path().join("none")), Err(Refusal::Io(_))));
}

/// A wall-clock jump cannot be seen here at all; a monotonic clock that stands still or is read
/// late must not make time go back either.
#[test]
fn time_never_goes_back() {
    let mut rec = Recording::new(Size::new(20, 5), Duration::from_millis(100));
    for at in [500, 400, 0, 700] {
        rec.output(Time::from_millis(at), b"x");
    }
    let files = rec.finish_in_memory(Time::ZERO, closing()).unwrap();
    let times: Vec<u64> = Cassette::from_files(&files).unwrap().events.iter().map(|e| e.t_ms).collect();
    assert_eq!(times, [500, 500, 500, 500, 700, 700, 700]);
}

#[derive(Debug, Clone)]
enum Step {
    Output(Vec<u8>),
    Input(Vec<u8>),
    Resize(u16, u16),
    Service(u32),
}

fn step() -> impl Strategy<Value = (u64, Step)> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..40);
    let what = prop_oneof![
        4 => bytes().prop_map(Step::Output),
        1 => bytes().prop_map(Step::Input),
        1 => (1_u16..60, 1_u16..60).prop_map(|(r, c)| Step::Resize(r, c)),
        1 => any::<u32>().prop_map(Step::Service),
    ];
    (0_u64..400, what)
}

proptest! {
    /// Whatever is recorded, the cassette is accepted, its frames derive again and its output is
    /// exact.
    #[test]
    fn whatever_is_recorded_verifies(steps in prop::collection::vec(step(), 0..40), resolution in 1_u64..200) {
        let mut rec = Recording::new(Size::new(30, 10), Duration::from_millis(resolution));
        let (mut at, mut out, mut typed) = (Time::ZERO, Vec::new(), Vec::new());
        for (wait, step) in steps {
            at += Duration::from_millis(wait);
            match step {
                Step::Output(bytes) => {
                    rec.output(at, &bytes);
                    out.extend(bytes);
                }
                Step::Input(bytes) => {
                    typed.extend_from_slice(&bytes);
                    rec.input(at, &Input { bytes: bytes.into(), ..Input::default() });
                }
                Step::Resize(rows, cols) => rec.resize(at, Size::new(cols, rows)),
                Step::Service(n) => rec.service(at, n.into()),
            }
        }
        let files = rec.finish_in_memory(at, closing()).unwrap();
        let cassette = Cassette::from_files(&files).unwrap();
        prop_assert_eq!(cassette.raw(), &out);
        let chunks: Vec<u8> = cassette.events.iter().flat_map(|e| match &e.kind {
            EventKind::Output { bytes, .. } => bytes.to_vec(),
            _ => Vec::new(),
        }).collect();
        prop_assert_eq!(chunks, out);
        let input: Vec<u8> = cassette.events.iter().flat_map(|e| match &e.kind {
            EventKind::Input(input) => input.bytes.to_vec(),
            _ => Vec::new(),
        }).collect();
        prop_assert_eq!(input, typed);
        for check in verify(Ok(&files)) {
            prop_assert_eq!(check.verdict, Verdict::Passed, "{}", check.name);
        }
    }

    /// Garbage in any file is refused or accepted, never a panic.
    #[test]
    fn garbage_is_survived(
        name in prop::sample::select(names::REQUIRED.to_vec()),
        at in any::<prop::sample::Index>(),
        with in prop::collection::vec(any::<u8>(), 0..30),
    ) {
        let mut files = sample();
        let mut bytes = files.get(name).unwrap().to_vec();
        let at = at.index(bytes.len());
        let end = (at + with.len()).min(bytes.len());
        bytes.splice(at..end, with);
        files.put(name, bytes);
        let _ = Cassette::from_files(&files);
        let _ = verify(Ok(&files));
    }
}
