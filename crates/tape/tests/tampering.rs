//! What an auditor tries: one thing in a cassette is changed, and the check that finds it is named,
//! with the place. One cause is one failure.

use std::path::Path;

use tapdeck_tape::cassette::{Files, Verdict, names, verify};

const M: &str = names::MANIFEST;
/// The file's digest shows that it was changed.
const CHANGED: &str = "changed";
const MISSING: &str = "missing";

/// A file, what stands there, what is put in its place (without that, the file is removed), and how
/// the check that fails begins.
type Tampering = (&'static str, &'static str, Option<&'static str>, &'static str);

const TAMPERINGS: &[Tampering] = &[
    (
        M,
        "\"version\": 1,",
        Some("\"version\": 2,"),
        "version: manifest.json: the cassette has version 2; this program reads up to 1: a newer one is needed",
    ),
    (
        M,
        "\"version\": 1,",
        Some("\"version\": 0,"),
        "fields: manifest.json: version 0 is no version of the format: it is a whole number from 1",
    ),
    (
        M,
        "\"version\": 1,",
        Some("\"version\": \"1\","),
        "fields: manifest.json: version \"1\" is no version of the format: it is a whole number from 1",
    ),
    (M, "\"version\": 1,\n", Some(""), "fields: manifest.json: the field \"version\" is missing"),
    (M, "\"minor_version\": 7", Some("\"minor_version\": 8"), CHANGED),
    (
        M,
        "01a1df42-3661",
        Some("01a1df42-3662"),
        "binding: the id 01a1df42-3662-7dbd-b18c-af33aef5f3e7 in manifest.json is not the one that this evidence",
    ),
    (M, "01a1df42-3661-7dbd-b18c-af33aef5f3e7", Some("one"), "fields: manifest.json: id \"one\" is no UUID"),
    (
        M,
        "\"sha256\": \"f225",
        Some("\"sha256\": \"f226"),
        "digest: output.raw is not what was recorded: its sha256 is",
    ),
    (M, "\"sha256\": \"f225", Some("\"sha256\": \"F225"), "fields: manifest.json: content_digest.sha256"),
    (
        M,
        "\"binding\": \"1002",
        Some("\"binding\": \"1003"),
        "binding: the id 01a1df42-3661-7dbd-b18c-af33aef5f3e7 in manifest.json is not the one that this evidence",
    ),
    (
        M,
        "\"final.json\": \"05c4",
        Some("\"final.json\": \"05c5"),
        "binding: final.json was changed after the cassette was committed",
    ),
    (
        M,
        "\"frames.jsonl\": \"aa7e",
        Some("\"frames.jsonl\": \"aa7f"),
        "binding: frames.jsonl was changed after the cassette was committed",
    ),
    (
        M,
        "\"input.jsonl\": \"8e7c",
        Some("\"input.jsonl\": \"8e7d"),
        "binding: input.jsonl was changed after the cassette was committed",
    ),
    (M, "\"manifest.json\": \"6ef0", Some("\"manifest.json\": \"6ef1"), CHANGED),
    (
        M,
        "\"output.jsonl\": \"9040",
        Some("\"output.jsonl\": \"9041"),
        "binding: output.jsonl was changed after the cassette was committed",
    ),
    (
        M,
        "\"scrub-report.json\": \"c54d",
        Some("\"scrub-report.json\": \"c54e"),
        "binding: scrub-report.json was changed after the cassette was committed",
    ),
    (
        M,
        "\"service-events.jsonl\": \"321f",
        Some("\"service-events.jsonl\": \"3210"),
        "binding: service-events.jsonl was changed after the cassette was committed",
    ),
    (
        M,
        "\"quota.json\": \"8467",
        Some("\"quota.json\": \"8468"),
        "binding: quota.json was changed after the cassette was committed",
    ),
    (
        M,
        "\"pictures.json\": \"0000",
        Some("\"pictures.json\": \"0001"),
        "binding: the id 01a1df42-3661-7dbd-b18c-af33aef5f3e7 in manifest.json is not the one that this evidence",
    ),
    (M, "\"name\": \"demo\"", Some("\"name\": \"other\""), CHANGED),
    (M, "\"captured_at\": \"2026-11-15", Some("\"captured_at\": \"2026-11-16"), CHANGED),
    (
        M,
        "\"captured_at\": \"2026-11-15T12:50:20Z\"",
        Some("\"captured_at\": null"),
        "fields: manifest.json: invalid type: null, expected a string at line 27 column 23",
    ),
    (M, "\"freshness_window\": null", Some("\"freshness_window\": \"7d\""), CHANGED),
    (M, "\"freshness_window\": null", Some("\"freshness_window\": \"banana\""), CHANGED),
    (M, "\"capability\": null", Some("\"capability\": \"quota\""), CHANGED),
    (M, "\"account_class\": null", Some("\"account_class\": \"pro\""), CHANGED),
    (M, "\"binary_version\": null", Some("\"binary_version\": \"9.9\""), CHANGED),
    (M, "\"binary_path_digest_sha256\": null", Some("\"binary_path_digest_sha256\": \"00\""), CHANGED),
    (M, "\"small\"", Some("\"large\""), CHANGED),
    (M, "      \"--size\",\n", Some(""), CHANGED),
    (M, "\"workdir_policy\": \"temporary\"", Some("\"workdir_policy\": \"given\""), CHANGED),
    (M, "\"env_allowlist\": []", Some("\"env_allowlist\": [\"HOME\"]"), CHANGED),
    (M, "\"timeout_ms\": null", Some("\"timeout_ms\": 1"), CHANGED),
    (M, "\"permission_mode\": null", Some("\"permission_mode\": \"bypass\""), CHANGED),
    (
        M,
        "\"initial_rows\": 3",
        Some("\"initial_rows\": 4"),
        "frames: frames.jsonl line 1 (seq 2): size: 20x3 is stored, the bytes show 20x4",
    ),
    (
        M,
        "\"initial_cols\": 20",
        Some("\"initial_cols\": 21"),
        "frames: frames.jsonl line 1 (seq 2): size: 20x3 is stored, the bytes show 21x3",
    ),
    (
        M,
        "\"initial_rows\": 3",
        Some("\"initial_rows\": 0"),
        "fields: manifest.json: terminal.initial_rows and initial_cols must be at least 1",
    ),
    (
        M,
        "\"rows\": 5",
        Some("\"rows\": 6"),
        "terminal: terminal.resizes in manifest.json lists 2 changes of size that are not the 2 in input.jsonl",
    ),
    (
        M,
        "\"t_ms\": 300",
        Some("\"t_ms\": 301"),
        "terminal: terminal.resizes in manifest.json lists 2 changes of size that are not the 2 in input.jsonl",
    ),
    (
        M,
        "\"seq\": 7",
        Some("\"seq\": 8"),
        "terminal: terminal.resizes in manifest.json lists 2 changes of size that are not the 2 in input.jsonl",
    ),
    (M, "\"locale\": \"C.UTF-8\"", Some("\"locale\": \"C\""), CHANGED),
    (M, "\"term\": \"xterm-256color\"", Some("\"term\": \"dumb\""), CHANGED),
    (M, "\"pty_mode\": null", Some("\"pty_mode\": {\"echo\": false}"), CHANGED),
    (
        M,
        "\"name\": \"tapdeck-term\"",
        Some("\"name\": \"xterm\""),
        "emulator: manifest.json: the frames were derived by xterm 1, this program has tapdeck-term 1: derive",
    ),
    (
        M,
        "\"version\": \"1\"",
        Some("\"version\": \"2\""),
        "emulator: manifest.json: the frames were derived by tapdeck-term 2, this program has tapdeck-term 1:",
    ),
    (M, "\"width\": 640", Some("\"width\": 641"), CHANGED),
    (
        M,
        "\"resolution_ms\": 1",
        Some("\"resolution_ms\": 100"),
        "time: seq 11: t_ms 410 is no multiple of 100, the resolution in the manifest",
    ),
    (
        M,
        "\"resolution_ms\": 1",
        Some("\"resolution_ms\": 0"),
        "fields: manifest.json: timing.resolution_ms is 0; it must be at least 1",
    ),
    (
        M,
        "\"clock_policy\": \"monotonic-elapsed\"",
        Some("\"clock_policy\": \"wall\""),
        "fields: manifest.json: timing.clock_policy is \"wall\"; version 1 knows \"monotonic-elapsed\" alone",
    ),
    (M, "\"replay_default\": \"realtime\"", Some("\"replay_default\": \"collapsed\""), CHANGED),
    (M, "\"recorded_at\": \"2026", Some("\"recorded_at\": \"2025"), CHANGED),
    (M, "\"recorder_version\": \"tapdeck 0.1.0\"", Some("\"recorder_version\": \"tapdeck 9\""), CHANGED),
    (M, "\"arch\": \"x86_64\"", Some("\"arch\": \"arm\""), CHANGED),
    (
        M,
        "\"required_features\": []",
        Some("\"required_features\": [\"colour\"]"),
        "features: manifest.json: the cassette requires the feature \"colour\", which this program does not know",
    ),
    (M, "\"colour_scheme\": \"dark\"", Some("\"colour_scheme\": \"light\""), CHANGED),
    (
        "output.jsonl",
        "\"seq\":1,",
        Some("\"seq\":2,"),
        "seq: seq 1 is missing: output.jsonl line 1 goes on with seq 2, so an event was lost or renumbered",
    ),
    (
        "output.jsonl",
        "\"seq\":5,",
        Some("\"seq\":15,"),
        "seq: seq 5 is missing: frames.jsonl line 3 goes on with seq 6, so an event was lost or renumbered",
    ),
    ("output.jsonl", "\"t_ms\":200", Some("\"t_ms\":199"), CHANGED),
    (
        "output.jsonl",
        "\"t_ms\":200",
        Some("\"t_ms\":500"),
        "time: frames.jsonl line 3: t_ms 200 (seq 6) is earlier than 500 of the event before it: time never goes back",
    ),
    (
        "output.jsonl",
        "\"offset\":6",
        Some("\"offset\":7"),
        "chunks: output.jsonl line 2: the chunk begins at offset 7 (seq 5), the one before ends at 6",
    ),
    (
        "output.jsonl",
        "\"length\":16",
        Some("\"length\":15"),
        "chunks: output.jsonl line 3: the chunk begins at offset 22 (seq 9), the one before ends at 21",
    ),
    (
        "output.jsonl",
        "\"length\":4",
        Some("\"length\":5"),
        "chunks: output.jsonl line 3: offset 22 and length 5 (seq 9) lie outside of output.raw, which has 26 bytes",
    ),
    (
        "output.jsonl",
        "\"sha256\":\"3602",
        Some("\"sha256\":\"3603"),
        "digest: output.raw is not what was recorded: the 16 bytes at offset 6 (seq 5, output.jsonl line 2) have",
    ),
    (
        "output.jsonl",
        ",\"sha256\":\"36027f5551e936751373716f4019c9b2016a77fccff56b9c577d4f60370b540b\"",
        Some(""),
        CHANGED,
    ),
    (
        "output.jsonl",
        "\"seq\":1,",
        Some("\"seq\":1,\"bytes\":\"b25l\","),
        "fields: output.jsonl line 1: bytes stand in the line; version 1 keeps them in output.raw alone",
    ),
    (
        "output.jsonl",
        "{\"seq\":9",
        Some("{\"sequel\":9"),
        "fields: output.jsonl line 3: the field \"seq\" is missing",
    ),
    (
        "output.jsonl",
        "\"seq\":9",
        Some("\"seq\":-9"),
        "fields: output.jsonl line 3: invalid value: integer `-9`, expected u64 at column 9",
    ),
    (
        "output.raw",
        "one",
        Some("two"),
        "digest: output.raw is not what was recorded: the 6 bytes at offset 0 (seq 1, output.jsonl line 1) have",
    ),
    (
        "output.raw",
        "green",
        Some("greem"),
        "digest: output.raw is not what was recorded: the 16 bytes at offset 6 (seq 5, output.jsonl line 2) have",
    ),
    (
        "output.raw",
        "one",
        Some(""),
        "chunks: output.jsonl line 3: offset 22 and length 4 (seq 9) lie outside of output.raw, which has 23 bytes",
    ),
    ("output.raw", "green", Some("greens"), "chunks: output.jsonl covers 26 bytes, but output.raw has 27"),
    (
        "output.raw",
        "\x1b[32m",
        Some("\x1b[31m"),
        "digest: output.raw is not what was recorded: the 16 bytes at offset 6 (seq 5, output.jsonl line 2) have",
    ),
    (
        "input.jsonl",
        "\"rows\":5",
        Some("\"rows\":6"),
        "terminal: terminal.resizes in manifest.json lists 2 changes of size that are not the 2 in input.jsonl",
    ),
    ("input.jsonl", "\"cols\":30", Some("\"cols\":0"), "fields: input.jsonl line 1: a size of 0"),
    ("input.jsonl", "\"bytes\":\"cQ==\"", Some("\"bytes\":\"cA==\""), CHANGED),
    (
        "input.jsonl",
        "\"bytes\":\"cQ==\"",
        Some("\"bytes\":\"?\""),
        "fields: input.jsonl line 3: bytes are not base64",
    ),
    ("input.jsonl", "\"key\":\"q\"", Some("\"key\":\"p\""), CHANGED),
    ("input.jsonl", "\"source\":\"user\"", Some("\"source\":\"reply\""), CHANGED),
    ("input.jsonl", "\"keyboard\":\"kitty\"", Some("\"keyboard\":\"plain\""), CHANGED),
    ("input.jsonl", "SIGWINCH", Some("SIGINT"), CHANGED),
    (
        "input.jsonl",
        "\"seq\":12",
        Some("\"seq\":11"),
        "seq: seq 11 is there twice: in input.jsonl line 3 and in input.jsonl line 4",
    ),
    (
        "input.jsonl",
        "\"kind\":\"signal\"",
        Some("\"kind\":\"smoke\""),
        "fields: input.jsonl line 4: unknown variant `smoke`, expected one of `input`, `resize`, `signal` at column 54",
    ),
    (
        "input.jsonl",
        "{\"seq\":12,\"t_ms\":410,\"kind\":\"signal\",\"name\":\"SIGWINCH\"}\n",
        Some(""),
        "seq: seq 12 is missing: service-events.jsonl line 1 goes on with seq 13, so an event was lost or renumbered",
    ),
    (
        "frames.jsonl",
        "\"text\":[\"one\",\"\",\"\"]",
        Some("\"text\":[\"oen\",\"\",\"\"]"),
        "frames: frames.jsonl line 1 (seq 2): row 1: \"oen\" is stored, the bytes show \"one\"",
    ),
    (
        "frames.jsonl",
        "\"row\":0,\"col\":8",
        Some("\"row\":1,\"col\":8"),
        "frames: frames.jsonl line 3 (seq 6): cursor: row 2 column 9 default shown is stored, the bytes show row",
    ),
    (
        "frames.jsonl",
        "\"fg\":\"2\"",
        Some("\"fg\":\"3\""),
        "frames: frames.jsonl line 3 (seq 6): styles of row 1:",
    ),
    (
        "frames.jsonl",
        "\"title\":\"title\"",
        Some("\"title\":\"titel\""),
        "frames: frames.jsonl line 5 (seq 10): title: \"titel\" is stored, the bytes show \"title\"",
    ),
    (
        "frames.jsonl",
        "\"raw_end\":22",
        Some("\"raw_end\":21"),
        "frames: frames.jsonl line 3 (seq 6): raw_end: 21 is stored, the bytes show 22",
    ),
    (
        "frames.jsonl",
        "\"alternate_screen\":false",
        Some("\"alternate_screen\":true"),
        "frames: frames.jsonl line 1 (seq 2): alternate screen: true is stored, the bytes show false",
    ),
    ("service-events.jsonl", "\"type\":\"note\"", Some("\"type\":\"final\""), CHANGED),
    ("service-events.jsonl", "[\"a\",\"b\"]", Some("[\"a\"]"), CHANGED),
    (
        "service-events.jsonl",
        "\"seq\":13",
        Some("\"seq\":14"),
        "seq: seq 13 is missing: service-events.jsonl line 1 goes on with seq 14, so an event was lost or renumbered",
    ),
    (
        "service-events.jsonl",
        "\"payload\":{\"type\":\"note\",\"words\":[\"a\",\"b\"]}",
        Some("\"payload\":"),
        "fields: service-events.jsonl line 1: expected value at column 32",
    ),
    ("final.json", "\"code\": 0", Some("\"code\": 1"), CHANGED),
    (
        "final.json",
        "\"signal\": null",
        Some("\"signal\": \"SIGKILL\""),
        "final: final.json: a program ends with an exit code or by a signal, not both",
    ),
    ("final.json", "\"duration_ms\": 410", Some("\"duration_ms\": 41"), CHANGED),
    ("final.json", "\"eof\": true", Some("\"eof\": false"), CHANGED),
    ("final.json", "\"leaked_processes\": 0", Some("\"leaked_processes\": 1"), CHANGED),
    ("final.json", "\"usage\": null", Some("\"usage\": {\"input\": 1}"), CHANGED),
    ("final.json", "\"cost\": null", Some("\"cost\": 1"), CHANGED),
    ("final.json", "\"routing_actual\": null", Some("\"routing_actual\": \"x\""), CHANGED),
    ("final.json", "\"session_log_path\": null", Some("\"session_log_path\": \"x\""), CHANGED),
    (
        "final.json",
        "\"final_text\": \"onegreen\"",
        Some("\"final_text\": \"onered\""),
        "final: final.json: final_text is not what the last screen shows",
    ),
    (
        "final.json",
        "\"seq\": 14",
        Some("\"seq\": 15"),
        "seq: seq 14 is missing: final.json goes on with seq 15, so an event was lost or renumbered",
    ),
    (
        "final.json",
        "\"t_ms\": 410",
        Some("\"t_ms\": 409"),
        "time: final.json: t_ms 409 (seq 14) is earlier than 410 of the event before it: time never goes back",
    ),
    ("final.json", "\"ended\": \"program\"", Some("\"ended\": \"timed_out\""), CHANGED),
    ("quota.json", "\"used_percent\": 12.5", Some("\"used_percent\": 99"), CHANGED),
    ("quota.json", "\"status\": \"ok\"", Some("\"status\": \"error\""), CHANGED),
    ("quota.json", "\"state\": \"ok\"", Some("\"state\": \"blocked\""), CHANGED),
    ("quota.json", "\"captured_at\": \"2026", Some("\"captured_at\": \"2027"), CHANGED),
    ("discovery.json", "\"two\"", Some("\"three\""), CHANGED),
    ("discovery.json", "\"low\"", Some("\"high\""), CHANGED),
    ("discovery.json", "\"freshness_window\": \"24h\"", Some("\"freshness_window\": \"999d\""), CHANGED),
    ("scrub-report.json", "\"status\": \"not_scrubbed\"", Some("\"status\": \"scrubbed\""), CHANGED),
    ("scrub-report.json", "\"rules\": []", Some("\"rules\": [{\"rule\": \"x\", \"hits\": 1}]"), CHANGED),
    ("scrub-report.json", "\"kept\": []", Some("\"kept\": [\"names\"]"), CHANGED),
    ("output.jsonl", "", None, MISSING),
    ("output.raw", "", None, MISSING),
    ("input.jsonl", "", None, MISSING),
    ("frames.jsonl", "", None, MISSING),
    ("service-events.jsonl", "", None, MISSING),
    ("final.json", "", None, MISSING),
    ("scrub-report.json", "", None, MISSING),
    (M, "", None, MISSING),
    ("quota.json", "", None, "binding: quota.json was removed after the cassette was committed"),
];

fn failed(files: &Files) -> Vec<String> {
    let checks = verify(Ok(files));
    let faults = checks.iter().filter_map(|c| match &c.verdict {
        Verdict::Failed(faults) => Some(format!("{}: {}", c.name, faults.join("; "))),
        _ => None,
    });
    faults.collect()
}

#[test]
fn each_tampering_is_named() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cassettes/newer-minor.cassette");
    let whole = Files::read(&fixture).unwrap();
    assert_eq!(failed(&whole), [""; 0]);
    let mut wrong = Vec::new();
    for (name, from, to, expected) in TAMPERINGS {
        let mut files = Files::default();
        for (file, bytes) in whole.iter().filter(|(file, _)| file != name) {
            files.put(file, bytes.clone());
        }
        if let Some(to) = to {
            let text = String::from_utf8(whole.get(name).unwrap().to_vec()).unwrap();
            assert!(text.contains(from), "{name} has no {from}");
            files.put(name, text.replacen(from, to, 1).into_bytes());
        }
        let expected = match *expected {
            CHANGED => format!("binding: {name} was changed after the cassette was committed"),
            MISSING => format!("files: {name} is missing: the cassette is not whole"),
            other => other.to_owned(),
        };
        let faults = failed(&files);
        // A size is told in two places, and gives every frame its form.
        let alone = faults.len() == 1 || faults.iter().all(|f| !f.starts_with("binding"));
        if !alone || !faults.first().is_some_and(|fault| fault.starts_with(&expected)) {
            wrong.push(format!("{name}: {from:?} -> {to:?}: {expected:?} is not in {faults:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(TAMPERINGS.len() >= 91, "{}", TAMPERINGS.len());
}
