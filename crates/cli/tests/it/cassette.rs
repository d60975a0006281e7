//! Cassettes as their users meet them: recorded from real programs, refused, tampered with,
//! converted.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tapdeck_tape::cassette::{Cassette, EventKind, Files, Paste};

use crate::support::{Home, Seat, eventually};

fn record(home: &Home, args: &[&str], command: &[&str]) -> Output {
    let all = ["cassette", "record", "--headless"].iter().chain(args).chain(&["--"]).chain(command);
    home.run(all)
}

#[track_caller]
fn recorded(home: &Home, name: &str, args: &[&str], command: &[&str]) -> Cassette {
    let mut all = args.to_vec();
    all.push(name);
    let output = record(home, &all, command);
    assert!(output.status.success(), "{}", said(&output));
    Cassette::open(&home.path(name)).expect("accepted")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

/// Names in a folder, hidden ones too.
fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn the_program_has_the_allowed_variables_and_no_others() {
    let home = Home::new();
    let mut command = home.tapdeck(["cassette", "record", "--headless", "--env", "WANTED"]);
    command.args(["--env", "GIVEN=by hand", "c", "--", "env"]);
    command.env("SECRET_TOKEN", "hunter2").env("WANTED", "yes").stdin(Stdio::null());
    assert!(command.output().expect("it runs").status.success());
    let cassette = Cassette::open(&home.path("c")).expect("accepted");
    let output = String::from_utf8_lossy(cassette.raw()).into_owned();
    let mut seen: Vec<&str> =
        output.lines().filter_map(|l| l.split_once('=')).map(|(name, _)| name).collect();
    seen.sort_unstable();
    assert_eq!(seen, cassette.manifest.command.env_allowlist);
    assert!(output.contains("WANTED=yes") && output.contains("GIVEN=by hand"), "{output}");
    assert!(cassette.scrub_report.environment_removed.contains(&"SECRET_TOKEN".to_owned()));
    for name in names(&home.path("c")) {
        let text = fs::read(home.path("c").join(&name)).expect("read");
        assert!(!String::from_utf8_lossy(&text).contains("hunter2"), "{name}");
    }
}

#[test]
fn keys_pastes_sizes_and_signals_are_recorded_in_order() {
    let home = Home::new();
    let script = "trap 'echo usr1' USR1; trap 'echo winch' WINCH; printf '\\033[?2004hready> '; while :; do read -r line || continue; \
                  echo \"got $line\"; [ \"$line\" = quit ] && exit 7; done";
    let mut seat =
        Seat::new(home.tapdeck(["cassette", "record", "--resolution", "1ms", "c", "--", "sh", "-c", script]));
    seat.wait_text("ready>");
    seat.send("a");
    seat.wait_text("> a");
    seat.send("\x1b[200~bc\x1b[201~");
    seat.wait_text("bc");
    seat.send("\r");
    seat.wait_text("got a");
    seat.resize(100, 30);
    seat.wait_text("winch");
    let pid = Pid::from_raw(seat.child.id().cast_signed()).expect("a pid");
    kill_process(pid, Signal::USR1).expect("signalled");
    seat.wait_text("usr1");
    seat.send("quit\r");
    let status = seat.end();
    assert!(status.success(), "a cassette was made: {}", seat.screen());
    let cassette = Cassette::open(&home.path("c")).expect("accepted");
    assert_eq!(cassette.outcome.exit.code, Some(7));
    let inputs: Vec<_> = cassette
        .events
        .iter()
        .filter_map(|e| match &e.kind {
            EventKind::Input(i) => Some((i.bytes.to_vec(), i.key.clone(), i.paste)),
            EventKind::Resize(size) => Some((size.to_string().into_bytes(), None, None)),
            EventKind::Signal { name } => Some((name.clone().into_bytes(), None, None)),
            _ => None,
        })
        .collect();
    let key = |name: &str| Some(name.to_owned());
    assert_eq!(
        inputs,
        [
            (b"a".to_vec(), key("a"), None),
            (b"\x1b[200~bc\x1b[201~".to_vec(), None, Some(Paste::Whole)),
            (b"\r".to_vec(), key("Enter"), None),
            (b"100x30".to_vec(), None, None),
            (b"SIGUSR1".to_vec(), None, None),
            (b"quit\r".to_vec(), None, None),
        ]
    );
    let verify = home.run(["cassette", "verify", "c"]);
    assert!(verify.status.success(), "{}", said(&verify));
}

#[test]
fn service_events_have_their_place_among_the_bytes() {
    let home = Home::new();
    let fifo = home.path("events");
    assert!(home.command("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let script = "printf one; echo '{\"type\":\"tool\",\"n\":1}' > events; \
                  while ! [ -e go ]; do sleep 0.01; done; printf two";
    let mut command = home.tapdeck(["cassette", "record", "--headless", "--no-scrub"]);
    command.args(["--events", "events", "c", "--"]);
    let mut child = command.args(["sh", "-c", script]).stdin(Stdio::null()).spawn().expect("it runs");
    // The event is there once its line has gone to the folder of the run.
    let runs = home.path("state/tapdeck/diagnostics");
    eventually("the event", || {
        let file = names(&runs).first().map(|name| runs.join(name).join("service-events.jsonl"));
        file.is_some_and(|f| fs::metadata(f).is_ok_and(|m| m.len() > 0))
    });
    fs::write(home.path("go"), "").expect("written");
    assert!(child.wait().expect("it ends").success());
    let cassette = Cassette::open(&home.path("c")).expect("accepted");
    let order: Vec<String> = cassette
        .events
        .iter()
        .filter_map(|e| match &e.kind {
            EventKind::Output { bytes, .. } => Some(String::from_utf8_lossy(bytes).into_owned()),
            EventKind::Service(payload) => payload.get("n").map(|n| n.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(order, ["one", "1", "two"]);
}

/// A failed run once left a folder that looked like evidence.
#[test]
fn a_failed_run_leaves_traces_under_diagnostics_alone() {
    let cases: [(&[&str], &[&str], &str); 3] = [
        (&["--timeout", "300ms"], &["sh", "-c", "echo begun; sleep 60"], "time limit"),
        (&["--expect-exit", "0"], &["sh", "-c", "echo begun; exit 3"], "exit code 3, not 0"),
        (&["--expect-exit", "0"], &["sh", "-c", "echo begun; kill -9 $$"], "SIGKILL"),
    ];
    for (args, command, why) in cases {
        let home = Home::new();
        let mut all = args.to_vec();
        all.push("c");
        let output = record(&home, &all, command);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains(why), "{}", said(&output));
        assert_eq!(names(&home.path("")), ["state"], "nothing beside the diagnostics");
        let folder = home.path("state/tapdeck/diagnostics");
        let traces = folder.join(&names(&folder)[0]);
        let failure: Value =
            serde_json::from_slice(&fs::read(traces.join("failure.json")).expect("a reason")).expect("JSON");
        assert!(failure["reason"].as_str().is_some_and(|r| r.contains(why)), "{failure}");
        assert_eq!(fs::read(traces.join("output.raw")).expect("the bytes"), b"begun\r\n");
        assert!(Cassette::open(&traces).is_err(), "no reader accepts it");
    }
    // A signal ends the recorder: the cut run is no evidence either, unless that is accepted.
    for (signal, accept, code) in
        [(Signal::INT, None, 1), (Signal::TERM, None, 1), (Signal::TERM, Some("--accept=cancelled"), 0)]
    {
        let home = Home::new();
        let mut command = home.tapdeck(["cassette", "record", "--headless"]);
        command.args(accept).args(["c", "--", "sh", "-c", "echo > started; exec sleep 60"]);
        let mut child = command.stdin(Stdio::null()).spawn().expect("it runs");
        eventually("the start", || home.path("started").exists());
        let pid = Pid::from_raw(child.id().cast_signed()).expect("a pid");
        kill_process(pid, signal).expect("signalled");
        assert_eq!(child.wait().expect("it ends").code(), Some(code), "{signal:?}");
        assert_eq!(home.path("c").exists(), code == 0);
        if code == 0 {
            let cassette = Cassette::open(&home.path("c")).expect("accepted");
            assert_eq!(cassette.outcome.metadata.get("ended"), Some("cancelled".into()));
        }
    }
    let home = Home::new();
    let accepted = ["--timeout", "300ms", "--accept", "timeout"];
    let cassette = recorded(&home, "c", &accepted, &["sh", "-c", "echo begun; sleep 60"]);
    assert_eq!(cassette.outcome.metadata.get("ended"), Some("timed_out".into()));
    assert_eq!(cassette.outcome.exit.signal.as_deref(), Some("SIGTERM"));
}

/// Everything was kept in memory until the end: a killed recorder left nothing.
#[test]
fn a_killed_recorder_leaves_traces_that_can_be_looked_at() {
    let secret = "sk-ant-api03-Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4";
    let script = format!("echo begun {secret}; echo second; sleep 60");
    for diagnostics in ["state/tapdeck/diagnostics", "other"] {
        let home = Home::new();
        let folder = home.path(diagnostics);
        let given = [format!("--diagnostics={}", folder.display())];
        let given = if diagnostics == "other" { &given[..] } else { &[] };
        let mut command = home.tapdeck(["cassette", "record", "--headless", "--size", "100x30"]);
        let command = command.args(given).args(["c", "--", "sh", "-c", &script]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("it runs");
        let raw =
            || names(&folder).first().and_then(|name| fs::read(folder.join(name).join("output.raw")).ok());
        eventually("the output to be there", || {
            raw().is_some_and(|raw| String::from_utf8_lossy(&raw).contains("second"))
        });
        child.kill().expect("killed");
        child.wait().expect("gone");
        assert!(!home.path("c").exists());
        let traces = folder.join(&names(&folder)[0]);
        for name in names(&traces) {
            let text = fs::read(traces.join(&name)).expect("read");
            assert!(!String::from_utf8_lossy(&text).contains("Zm9v"), "{name}");
        }
        let traces = traces.to_str().expect("text");
        for (args, want) in [
            (&["play", "--fast", traces][..], "begun sk-ant-api03-***"),
            (&["info", traces], "the recorder was killed"),
            (&["cassette", "frames", "--show", traces], "100x30"),
            (&["cassette", "frames", traces], "frames are what the bytes show"),
            (&["convert", traces, "-o", "-", "--to", "txt"], "second"),
        ] {
            let output = home.run(args);
            assert!(output.status.success() && said(&output).contains(want), "{args:?}: {}", said(&output));
        }
        let mut seat = Seat::new(home.tapdeck(["view", traces]));
        seat.wait_text("second");
        seat.send("q");
        seat.child.wait().expect("it ends");
        // It is no evidence for all that.
        for args in [&["verify", traces][..], &["cassette", "verify", traces]] {
            let output = home.run(args);
            assert_eq!(output.status.code(), Some(1), "{args:?}: {}", said(&output));
        }
        assert_eq!(home.run(["cassette", "frames", "--write", traces]).status.code(), Some(2));
    }
}

/// What is recognised late is masked in what was written before.
#[test]
fn a_secret_that_is_recognised_late_is_masked_on_disk_too() {
    let home = Home::new();
    // An address is one only with its end, which comes when its beginning has been written.
    let script = "printf 'first correcthorse7 ada@lovelace'; until [ -e go ]; do sleep 0.05; done; \
                  echo .org; echo password=correcthorse7";
    fs::write(home.path("s.sh"), script).expect("written");
    let mut command = home.tapdeck(["cassette", "record", "--headless", "c", "--", "sh", "s.sh"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("it runs");
    let folder = home.path("state/tapdeck/diagnostics");
    let raw = || names(&folder).first().and_then(|name| fs::read(folder.join(name).join("output.raw")).ok());
    eventually("the first line to be written", || raw().is_some_and(|raw| raw.ends_with(b"ace")));
    fs::write(home.path("go"), "").expect("written");
    assert!(child.wait().expect("it ends").success());
    for name in names(&home.path("c")) {
        let text = fs::read(home.path("c").join(&name)).expect("read");
        let text = String::from_utf8_lossy(&text);
        assert!(!text.contains("correcthorse7") && !text.contains("lovelace"), "{name}: {text}");
    }
    assert_eq!(names(&folder), [""; 0]);
    let cassette = Cassette::open(&home.path("c")).expect("accepted");
    let hits: u64 = cassette.scrub_report.rules.iter().map(|rule| rule.hits).sum();
    assert_eq!((cassette.scrub_report.status.as_str(), hits), ("scrubbed", 3));
    assert!(home.run(["cassette", "verify", "c"]).status.success());
}

/// A scrubbed recording of 20 MB took 150 MB of memory, one of 200 MB ten times that.
#[test]
fn memory_does_not_grow_with_a_cassette() {
    let home = Home::new();
    let script = "i=0; while [ $i -lt 400 ]; do cat block; i=$((i+1)); done";
    let line = "the quick brown fox jumps over the lazy dog and mails ada@lovelace.org\n";
    fs::write(home.path("block"), line.repeat(50_000 / line.len())).expect("written");
    let mut command = home.tapdeck(["cassette", "record", "--headless", "-q", "c", "--", "sh", "-c", script]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("it runs");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().expect("it runs").is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kb = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        peak = peak.max(kb.unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(child.wait().expect("it ended").success());
    assert!((1..110_000).contains(&peak), "{peak} KB");
    let raw = fs::metadata(home.path("c/output.raw")).expect("there").len();
    assert!(raw > 19_000_000, "{raw}");
    let text = fs::read(home.path("c/output.raw")).expect("read");
    assert!(!text.windows(8).any(|w| w == b"lovelace"));
}

#[test]
fn what_must_hold_before_a_run_is_checked_before_it() {
    let home = Home::new();
    fs::write(home.path("plain"), "#!/bin/sh\n").expect("written");
    let cases: [(&[&str], &str, i32, &str); 4] = [
        (&["c"], "no-such-program-here", 3, "command not found"),
        (&["c"], "./plain", 1, "may not be executed"),
        (&["--check", "echo not signed in; exit 2", "c"], "true", 1, "it said: not signed in"),
        (&["--check", "test -z \"$SECRET_TOKEN\"", "--env", "SECRET_TOKEN=x", "c"], "true", 1, "exit code 1"),
    ];
    for (args, program, code, why) in cases {
        let output = record(&home, args, &[program]);
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
        assert!(said(&output).contains(why), "{}", said(&output));
        assert_eq!(names(&home.path("")), ["plain"], "nothing was written: {}", said(&output));
    }
    let args = ["--check", "true", "--version-from", "echo; echo 1.2.3"];
    let cassette = recorded(&home, "c", &args, &["true"]);
    assert_eq!(cassette.manifest.harness.binary_version.as_deref(), Some("1.2.3"));
}

/// A lock without a process behind it locked an account for ever; one that waits hides the
/// contention.
#[test]
fn one_recording_an_account_and_the_dead_hold_nothing() {
    let home = Home::new();
    let mut first =
        home.tapdeck(["cassette", "record", "--headless", "--account", "me", "one", "--", "sh", "-c"]);
    let mut first = first.arg("echo > started; sleep 60").stdin(Stdio::null()).spawn().expect("it runs");
    eventually("the first to run", || home.path("started").exists());
    let output = record(&home, &["--account", "me", "two"], &["true"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains(&format!("in use by process {}", first.id())), "{}", said(&output));
    assert!(record(&home, &["--account", "other", "three"], &["true"]).status.success());
    first.kill().expect("killed");
    first.wait().expect("gone");
    let output = record(&home, &["--account", "me", "two"], &["true"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("was taken over"), "{}", said(&output));
    assert!(record(&home, &["one"], &["true"]).status.success());
    let left = names(&home.path("")).into_iter().filter(|n| n.starts_with('.')).count();
    assert_eq!(left, 0, "what the killed recorder left was swept");
}

#[test]
fn an_old_cassette_is_replaced_whole_and_only_when_asked() {
    let home = Home::new();
    let old = recorded(&home, "c", &[], &["echo", "old"]);
    let output = record(&home, &["c"], &["echo", "new"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(Cassette::open(&home.path("c")).expect("still there").manifest.id, old.manifest.id);
    let output = record(&home, &["--overwrite", "--expect-exit", "0", "c"], &["false"]);
    assert_eq!(output.status.code(), Some(1), "a failed run replaces nothing");
    assert_eq!(Cassette::open(&home.path("c")).expect("still there").manifest.id, old.manifest.id);
    let new = recorded(&home, "c", &["--overwrite"], &["echo", "new"]);
    assert_ne!(new.manifest.id, old.manifest.id);
    assert_eq!(names(&home.path("")), ["c", "state"]);
    let manifest = home.path("c/manifest.json");
    let text = fs::read_to_string(&manifest).expect("read").replace("\"version\": 1,", "\"version\": 2,");
    fs::write(&manifest, text).expect("written");
    let output = record(&home, &["--overwrite", "c"], &["echo", "older"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("version 2, newer"), "{}", said(&output));
    fs::create_dir(home.path("mine")).expect("made");
    fs::write(home.path("mine/precious"), "x").expect("written");
    let output = record(&home, &["--overwrite", "mine"], &["true"]);
    assert!(
        said(&output).contains("no cassette") && home.path("mine/precious").exists(),
        "{}",
        said(&output)
    );
}

#[test]
fn one_byte_fails_the_right_check_with_a_message() {
    let home = Home::new();
    recorded(&home, "c", &["--resolution", "1ms"], &["sh", "-c", "printf 'one\\n'; sleep 0.02; printf two"]);
    for (file, from, to, check) in [
        ("output.raw", "two", "twu", "digest"),
        ("frames.jsonl", "one", "oen", "frames"),
        ("output.jsonl", "\"seq\":1,", "\"seq\":9,", "seq"),
        ("manifest.json", "\"version\": \"1\"", "\"version\": \"7\"", "emulator"),
    ] {
        let path = home.path("c").join(file);
        let text = fs::read(&path).expect("read");
        let at = text.windows(from.len()).position(|w| w == from.as_bytes()).expect(from);
        let mut changed = text.clone();
        changed.splice(at..at + from.len(), to.bytes());
        fs::write(&path, changed).expect("written");
        let output = home.run(["cassette", "verify", "--json", "c"]);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let failed: Vec<&str> = value["checks"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|c| c["state"] == "failed")
            .filter_map(|c| c["check"].as_str())
            .collect();
        assert_eq!(failed, [check], "{value}");
        fs::write(&path, text).expect("written");
    }
    // Frames of another emulator are derived anew, and everything else stays.
    let manifest = home.path("c/manifest.json");
    let text =
        fs::read_to_string(&manifest).expect("read").replace("\"version\": \"1\"", "\"version\": \"0\"");
    fs::write(&manifest, text).expect("written");
    assert_eq!(home.run(["cassette", "frames", "c"]).status.code(), Some(1));
    let output = home.run(["cassette", "frames", "--write", "c"]);
    assert!(output.status.success(), "{}", said(&output));
    let output = home.run(["verify", "c"]);
    assert!(output.status.success(), "{}", said(&output));
    // What was done to the rest is not made right by that.
    for (file, from, to) in [
        ("final.json", "\"code\": 0", "\"code\": 1"),
        ("manifest.json", "\"version\": \"1\"", "\"version\": \"0\""),
    ] {
        let path = home.path("c").join(file);
        let text = fs::read_to_string(&path).expect("read").replace(from, to);
        fs::write(&path, text).expect("written");
    }
    let output = home.run(["cassette", "frames", "--write", "c"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("final.json was changed"), "{}", said(&output));
}

/// A file of a cassette that led out of it was read, and its content shown and exported.
#[test]
fn a_link_in_a_cassette_is_refused() {
    let home = Home::new();
    recorded(&home, "c", &[], &["sh", "-c", "echo one"]);
    for name in names(&home.path("c")) {
        let (file, outside) = (home.path("c").join(&name), home.path("outside"));
        fs::rename(&file, &outside).expect("moved");
        std::os::unix::fs::symlink(&outside, &file).expect("linked");
        for args in [&["cassette", "verify", "c"][..], &["verify", "c"], &["info", "c"], &["play", "c"]] {
            let output = home.run(args);
            assert!(!output.status.success(), "{args:?} {name}: {}", said(&output));
            let why = format!("{name} cannot be read: it is a symbolic link");
            assert!(said(&output).contains(&why), "{args:?} {name}: {}", said(&output));
        }
        fs::remove_file(&file).and_then(|()| fs::rename(&outside, &file)).expect("moved back");
    }
    let output = home.run(["verify", "c"]);
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn a_cassette_is_one_more_format() {
    let home = Home::new();
    let script = "printf 'a\\033[31mred\\033[m\\377\\000'; sleep 0.05; printf '\\033]0;t\\007end'; exit 4";
    let cassette = recorded(&home, "c", &["--resolution", "1ms"], &["sh", "-c", script]);
    let run = |args: &[&str]| {
        let output = home.run(args);
        assert!(output.status.success(), "{args:?}: {}", said(&output));
        output
    };
    run(&["convert", "c", "-o", "c.ahr"]);
    run(&["verify", "c.ahr"]);
    run(&["convert", "c.ahr", "-o", "back.cassette"]);
    run(&["cassette", "verify", "back.cassette"]);
    let back = Cassette::open(&home.path("back.cassette")).expect("accepted");
    assert_eq!(back.raw(), cassette.raw());
    assert_eq!(back.outcome.exit, cassette.outcome.exit);
    let chunks = |c: &Cassette| -> Vec<(u64, usize)> {
        let each = c.events.iter().filter_map(|e| match &e.kind {
            EventKind::Output { bytes, .. } => Some((e.t_ms, bytes.len())),
            _ => None,
        });
        each.collect()
    };
    assert_eq!(chunks(&back), chunks(&cassette));
    run(&["convert", "c", "-o", "c.tar.zst"]);
    assert_eq!(
        Files::read(&home.path("c.tar.zst")).expect("an archive"),
        Files::read(&home.path("c")).expect("a folder")
    );
    run(&["convert", "c.tar.zst", "-o", "again.cassette"]);
    assert_eq!(
        Files::read(&home.path("again.cassette")).expect("a folder"),
        Files::read(&home.path("c")).expect("a folder")
    );
    let text = run(&["convert", "c.tar.zst", "-o", "-", "--to", "raw"]);
    assert_eq!(text.stdout[..], cassette.raw()[..]);
    let info = run(&["info", "--json", "c"]);
    let info: Value = serde_json::from_slice(&info.stdout).expect("JSON");
    assert_eq!(info["output_bytes"], cassette.raw().len());
    let played = run(&["play", "--fast", "c"]);
    assert!(String::from_utf8_lossy(&played.stdout).contains("red"));
    let mut stdin = home.tapdeck(["convert", "-", "-o", "-", "--to", "raw"]);
    let mut stdin = stdin.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
    let archive = fs::read(home.path("c.tar.zst")).expect("read");
    stdin.stdin.take().expect("a pipe").write_all(&archive).expect("taken");
    assert_eq!(stdin.wait_with_output().expect("it ends").stdout[..], cassette.raw()[..]);
}

/// A secret typed, echoed with cursor moves, wrapped at column 80 and split into single bytes.
#[test]
fn a_secret_is_in_no_file_and_the_frames_keep_their_shape() {
    let home = Home::new();
    let secret = "sk-ant-api03-Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4";
    let script = r#"
        printf 'key: '; read -r key; printf 'one byte at a time: '
        for c in $(echo "$key" | fold -w1); do printf %s "$c"; sleep 0.001; done; echo
        printf '%60s%s\n' '' "$key"
        printf '\033[31m%s\033[10;1H%s\033[0m\033[?25h\n' "$(echo "$key" | cut -c1-9)" "$key"
        echo "token_count_total secretariat""#;
    let mut texts = Vec::new();
    for (name, extra) in [("plain", "--no-scrub"), ("masked", "-q")] {
        let args = ["cassette", "record", "--window-size", "80x24", extra, name, "--", "sh", "-c", script];
        let mut child = home.tapdeck(args);
        child.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::inherit());
        let mut child = child.spawn().expect("it runs");
        child.stdin.take().expect("a pipe").write_all(format!("{secret}\n").as_bytes()).expect("taken");
        assert!(child.wait().expect("it ends").success());
        texts.push(Cassette::open(&home.path(name)).expect("accepted"));
    }
    let (plain, masked) = (&texts[0], &texts[1]);
    assert!(
        plain.frames.iter().any(|f| f.text.iter().any(|row| row.contains(secret))),
        "the test tests something"
    );
    for name in names(&home.path("masked")) {
        let bytes = fs::read(home.path("masked").join(&name)).expect("read");
        let text = String::from_utf8_lossy(&bytes);
        for part in [secret, &secret[..16], &secret[20..]] {
            assert!(!text.contains(part), "{part} is in {name}");
        }
    }
    let typed: Vec<u8> = masked
        .events
        .iter()
        .filter_map(|e| match &e.kind {
            EventKind::Input(input) => Some(input.bytes.to_vec()),
            _ => None,
        })
        .flatten()
        .collect();
    assert!(!String::from_utf8_lossy(&typed).contains("Zm9v"), "{typed:?}");
    assert_eq!(masked.scrub_report.status, "scrubbed");
    assert!(masked.scrub_report.rules.iter().any(|r| r.hits > 0));
    // Shape: the same escapes, the same lengths, the same cells taken.
    assert_eq!(masked.raw().len(), plain.raw().len());
    let escapes = |c: &Cassette| c.raw().iter().filter(|b| **b == 0x1b).count();
    assert_eq!(escapes(masked), escapes(plain));
    let last = |c: &Cassette| -> Vec<usize> {
        c.frames.last().expect("a frame").text.iter().map(|row| row.chars().count()).collect()
    };
    assert_eq!(last(masked), last(plain));
    assert!(masked.outcome.final_text.as_ref().is_some_and(|t| t.contains("token_count_total secretariat")));
    let verify = home.run(["cassette", "verify", "masked"]);
    assert!(verify.status.success(), "{}", said(&verify));
}
