//! Cassettes of later versions and of other recorders: what this version does not know is ignored,
//! guarded and kept. `cassettes/reader.py` was written from docs/formats.md alone, so that the
//! document, and not this crate, says what a cassette is.
#![expect(clippy::disallowed_methods, reason = "the reader in Python is another program")]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tapdeck_needs::has;
use tapdeck_tape::JsonValue;
use tapdeck_tape::cassette::{Cassette, Files, UnknownFields, Verdict, names, reframed, verify};

const FIXTURES: [&str; 2] = ["unknown-keys", "newer-minor"];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/cassettes/{name}.cassette"))
}

fn python(args: &[&Path]) -> Vec<Value> {
    let reader = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cassettes/reader.py");
    let output = Command::new("python3").arg(reader).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn failed(files: &Files) -> Vec<String> {
    let checks = verify(Ok(files));
    let faults = checks.iter().filter_map(|c| match &c.verdict {
        Verdict::Failed(faults) => Some(format!("{}: {}", c.name, faults.join("; "))),
        _ => None,
    });
    faults.collect()
}

fn write(folder: &Path, files: &Files) {
    for (name, bytes) in files.iter() {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
}

fn json(files: &Files, name: &str) -> Value {
    serde_json::from_slice(files.get(name).unwrap()).unwrap()
}

/// A reader of 2026 reads a cassette of 2027: unknown keys at every level, unknown files with
/// digests, a minor version that is higher than any so far.
#[test]
fn cassettes_of_a_later_minor_version_are_whole() {
    for name in FIXTURES {
        let files = Files::read(&fixture(name)).unwrap();
        let checks = verify(Ok(&files));
        assert!(checks.iter().all(|c| c.verdict == Verdict::Passed), "{name}: {checks:?}");
        assert_eq!(Cassette::from_files(&files).unwrap().outcome.exit.code, Some(0));
    }
    let manifest = json(&Files::read(&fixture("newer-minor")).unwrap(), names::MANIFEST);
    assert_eq!((&manifest["version"], &manifest["minor_version"]), (&1.into(), &7.into()));
}

#[test]
fn the_reader_in_python_agrees_about_every_cassette() {
    if !has("python3") {
        return;
    }
    let mut paths: Vec<PathBuf> = FIXTURES.map(fixture).to_vec();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cassettes");
    for group in ["agents", "programs", "synthetic"] {
        let entries = std::fs::read_dir(corpus.join(group)).unwrap().map(|e| e.unwrap().path());
        paths.extend(
            entries.filter(|path| path.extension().is_some_and(|e| e == "cassette") && path.is_dir()),
        );
    }
    assert!(paths.len() > 30);
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    for (path, answer) in paths.iter().zip(python(&paths)) {
        let cassette = Cassette::open(path).unwrap();
        assert_eq!(answer["whole"], true, "{answer}");
        assert_eq!(answer["bound"], true, "{answer}");
        assert_eq!(answer["id"], cassette.manifest.id, "{answer}");
        assert_eq!(answer["events"], cassette.events.len(), "{answer}");
        assert_eq!(answer["bytes"], cassette.raw().len(), "{answer}");
        assert_eq!(answer["exit"], serde_json::json!(cassette.outcome.exit.code), "{answer}");
    }
}

/// An unknown key is evidence too: added afterwards it is a change, at any level of any file. With
/// digests by the document it is part of the cassette.
#[test]
fn unknown_keys_are_guarded_at_every_level() {
    let original = Files::read(&fixture("newer-minor")).unwrap();
    let cases = [
        (names::MANIFEST, "\"version\": 1,"),
        (names::MANIFEST, "\"name\": \"demo\","),
        (names::MANIFEST, "\"workdir_policy\":"),
        (names::MANIFEST, "\"initial_rows\":"),
        (names::MANIFEST, "\"resizes\": [\n      {"),
        (names::MANIFEST, "\"emulator\": {"),
        (names::MANIFEST, "\"pixels\": {"),
        (names::MANIFEST, "\"resolution_ms\":"),
        (names::MANIFEST, "\"git_sha\":"),
        (names::MANIFEST, "\"optional\": {"),
        ("final.json", "\"exit\": {"),
        ("final.json", "\"metadata\": {"),
        ("scrub-report.json", "\"status\":"),
        ("quota.json", "\"windows\": [\n    {"),
        ("discovery.json", "\"models\":"),
        ("input.jsonl", "\"seq\":3,"),
        ("output.jsonl", "\"seq\":1,"),
        ("service-events.jsonl", "\"payload\":{"),
    ];
    let folder = tempfile::tempdir().unwrap();
    let mut folders = Vec::new();
    for (name, place) in cases {
        let mut files = original.clone();
        let text = String::from_utf8(files.get(name).unwrap().to_vec()).unwrap();
        assert!(text.contains(place), "{name} has no {place}: {text}");
        let new = r#""added": {"nested": [1.50, {"z": 1, "a": "ä"}]}"#;
        let with = match place.ends_with('{') {
            true => format!("{place}{new},"),
            false => format!("{new}, {place}"),
        };
        files.put(name, text.replacen(place, &with, 1).into_bytes());
        let faults = failed(&files);
        let want = format!("binding: {name} was changed after the cassette was committed");
        assert_eq!(faults, [want], "{name}: {place}");
        folders.push(folder.path().join(folders.len().to_string()));
        std::fs::create_dir(folders.last().unwrap()).unwrap();
        write(folders.last().unwrap(), &files);
    }
    if !has("python3") {
        return;
    }
    let paths: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
    let bind: Vec<&Path> = [Path::new("--bind")].into_iter().chain(paths.iter().copied()).collect();
    assert_eq!(python(&paths).iter().filter(|answer| answer["whole"] == true).count(), 0);
    python(&bind);
    for ((path, answer), case) in paths.iter().zip(python(&paths)).zip(cases) {
        assert_eq!(answer["whole"], true, "{case:?}: {answer}");
        assert_eq!(failed(&Files::read(path).unwrap()), [""; 0], "{case:?}");
    }
}

/// A name that stands twice in an object cannot hide a value from the digest.
#[test]
fn a_key_that_stands_twice_is_a_change() {
    let mut files = Files::read(&fixture("newer-minor")).unwrap();
    let text = String::from_utf8(files.get(names::MANIFEST).unwrap().to_vec()).unwrap();
    let twice = text.replacen("\"width\": 640", "\"width\": 1, \"width\": 640", 1);
    assert_ne!(text, twice);
    files.put(names::MANIFEST, twice.into_bytes());
    assert_eq!(failed(&files), ["binding: manifest.json was changed after the cassette was committed"]);
}

#[test]
fn frames_derived_anew_leave_unknown_keys_where_they_are() {
    let mut files = Files::read(&fixture("unknown-keys")).unwrap();
    let before = files.clone();
    // The frame's text was changed, so it is made anew; the other files stay as they are.
    let frames = String::from_utf8(files.get("frames.jsonl").unwrap().to_vec()).unwrap();
    let changed = frames.replacen("one", "two", 1);
    assert_ne!(frames, changed);
    files.put("frames.jsonl", changed.into_bytes());
    let mut made = Files::default();
    for (name, bytes) in reframed(&Cassette::from_files(&files).unwrap(), &files).unwrap() {
        made.put(name, bytes);
    }
    assert_eq!(failed(&made), [""; 0]);
    for name in ["final.json", "input.jsonl", "scrub-report.json", "quota.json"] {
        assert_eq!(made.get(name), before.get(name), "{name}");
    }
    let (mut old, mut new) = (json(&before, names::MANIFEST), json(&made, names::MANIFEST));
    assert_ne!(old["content_digest"]["binding"], new["content_digest"]["binding"]);
    let (old, new) = (old.as_object_mut().unwrap(), new.as_object_mut().unwrap());
    old.remove("content_digest");
    new.remove("content_digest");
    assert_eq!(old, new);
    let lines = |files: &Files| files.get("frames.jsonl").unwrap().split(|b| *b == b'\n').count();
    assert_eq!(lines(&made), lines(&before));
}

/// Unknown fields go from a cassette into one that was made of it, through a mask.
#[test]
fn unknown_fields_are_masked_and_kept() {
    let old = Files::read(&fixture("unknown-keys")).unwrap();
    // As this version writes it: without a key that it does not know.
    let mut new = Files::read(&fixture("newer-minor")).unwrap();
    let mut unknown = UnknownFields::of(&old);
    let mut visited = 0;
    unknown.each(|fields| {
        visited += 1;
        if fields.get("a_later").is_some() {
            fields.insert("a_later", "masked");
        }
    });
    assert!(visited > 15, "{visited}");
    unknown.put_into(&mut new, None).unwrap();
    assert_eq!(failed(&new), [""; 0]);
    let line = |name: &str| {
        let text = String::from_utf8(new.get(name).unwrap().to_vec()).unwrap();
        serde_json::from_str::<Value>(text.lines().next().unwrap()).unwrap()
    };
    for value in [
        &json(&new, names::MANIFEST)["terminal"]["emulator"],
        &json(&new, names::MANIFEST)["harness"],
        &json(&new, "final.json")["exit"],
        &json(&new, "quota.json")["windows"][0],
        &line("input.jsonl"),
        &line("output.jsonl"),
        &line("service-events.jsonl"),
    ] {
        assert_eq!(value["a_later"], "masked", "{value}");
        let later = value.as_object().unwrap().iter().find(|(key, _)| key.starts_with("later_"));
        assert_eq!(later.unwrap().1[0]["of"], "2027", "{value}");
    }
    let minor = JsonValue::from(7_u64).to_string();
    assert_eq!(json(&new, names::MANIFEST)["minor_version"].to_string(), minor);
}
