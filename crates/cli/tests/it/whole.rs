//! One file is the recording: moved, killed, added to, and made of an older one.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::support::{Home, Seat, TAPDECK, eventually, older, recorded_output};

fn text(out: &Output) -> String {
    String::from_utf8_lossy(&[&out.stdout[..], &out.stderr[..]].concat()).into_owned()
}

#[track_caller]
fn ok(home: &Home, args: &[&str]) -> String {
    let out = home.run(args);
    assert!(out.status.success(), "{args:?}: {}", text(&out));
    text(&out)
}

fn files(home: &Home) -> Vec<String> {
    let names = std::fs::read_dir(home.path("")).expect("listed").flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name != "run" && name != "state").collect();
    names.sort();
    names
}

/// A session with turns, snapshots and much output, sealed and with an index.
fn session(home: &Home) {
    std::fs::write(home.path("key"), [9; 32]).expect("written");
    let script = format!(
        "yes {} | head -n 26000; for i in 1 2 3; do printf '$ '; read x; echo answer $i; done; \
         {TAPDECK} snapshot --id 5 --label five >/dev/null; echo the end; exit 3",
        "0123456789".repeat(19)
    );
    let args = ["rec", "-q", "-I", "--title", "a title", "--seal", "key", "--index", "whole", "s.ahr", "--"];
    let mut command = home.tapdeck(args);
    command.args(["sh", "-c", &script]);
    let mut seat = Seat::new(command);
    for i in 1..=3 {
        seat.wait("a prompt", |seat| seat.screen().trim_end().ends_with('$'));
        seat.send(format!("question {i}\r"));
        seat.wait_text(&format!("answer {i}"));
    }
    assert_eq!(seat.end().code(), Some(3));
}

/// What is said of a recording, but for its own name and folder.
fn said(home: &Home, name: &str) -> Vec<String> {
    let asked: [&[&str]; 7] = [
        &["info"],
        &["turns", "--json"],
        &["branch-points", "--format", "json"],
        &["play", "--fast"],
        &["play", "--speed", "1000000", "--at", "byte:4600000"],
        &["play", "--speed", "1000000", "--at", "@five"],
        &["verify", "--key", "key"],
    ];
    let mut all: Vec<String> = Vec::new();
    for args in asked {
        let mut args = args.to_vec();
        args.push(name);
        let out = home.run(&args);
        assert!(out.status.success(), "{args:?}: {}", text(&out));
        all.push(text(&out).replace(name, "NAME"));
    }
    all
}

/// What the viewer shows at the end: the rows and their marks, but not the recording's name.
fn viewed(home: &Home, name: &str) -> Vec<String> {
    let mut seat = Seat::new(home.tapdeck(["view", name]));
    let is_marked = |screen: &str| screen.contains('◆') && screen.contains('✎');
    seat.wait("the marks", |seat| seat.screen().contains("the end") && is_marked(&seat.screen()));
    let screen = seat.screen();
    seat.send("q");
    seat.end();
    let is_row = |line: &&str| ["│", "◆", "✎"].iter().any(|side| line.trim_start().starts_with(side));
    screen.lines().filter(is_row).map(str::to_owned).collect()
}

/// A recording that was moved alone lost its title, command, turns, index and seal.
#[test]
fn a_recording_moved_alone_loses_nothing() {
    let (home, other) = (Home::new(), Home::new());
    session(&home);
    ok(&home, &["instruct", "s.ahr", "--at", "100%", "go on"]);
    assert_eq!(files(&home), ["key", "s.ahr"]);
    let (before, seen) = (said(&home, "s.ahr"), viewed(&home, "s.ahr"));
    for want in ["title      a title", "ended      exit code 3", "ahx: ", "seal: ", "events.jsonl: "] {
        assert!(before[0].contains(want), "{want}: {}", before[0]);
    }
    assert!(!before[0].contains("not in it"), "{}", before[0]);
    assert!(before[2].contains("\"five\""), "{}", &before[2][before[2].len() - 500..]);
    assert!(before[2].contains("\"go on\""), "{}", &before[2][before[2].len() - 500..]);
    assert!(before[6].contains("seal intact"), "{}", before[6]);
    std::fs::rename(home.path("s.ahr"), other.path("moved.ahr")).expect("moved");
    std::fs::copy(home.path("key"), other.path("key")).expect("copied");
    let after = said(&other, "moved.ahr");
    for (before, after) in before.iter().zip(&after) {
        assert!(before == after, "{before}\n{after}");
    }
    assert!(seen.len() > 10, "{seen:?}");
    assert_eq!(viewed(&other, "moved.ahr"), seen);
    let mut seat = Seat::new(other.tapdeck(["view", "--search", "answer 2", "moved.ahr"]));
    seat.wait_text("answer 2");
    seat.send("q");
    seat.end();
}

/// `kill -9` at any moment: what is in the file alone tells of the session up to a quarter of a
/// second before.
#[test]
#[expect(clippy::print_stdout, reason = "cargo xtask kills shows it")]
fn a_killed_recorder_leaves_everything_up_to_a_moment_before() {
    let home = Home::new();
    let moments: u64 = std::env::var("TAPDECK_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    let mut random = 12345_u64;
    let mut all_lost = Vec::new();
    for n in 0..moments {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let after = Duration::from_millis((random >> 33) % 1500);
        let name = format!("{n}.ahr");
        // Each line says when it was written.
        let script = "while :; do date +%s%N; sleep 0.02; done";
        let mut command = home.tapdeck(["rec", "-q", "--title", "killed", &name, "--", "sh", "-c", script]);
        let mut recorder = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("it starts");
        eventually("a recording", || std::fs::metadata(home.path(&name)).is_ok_and(|file| file.len() > 0));
        // What was confirmed is in it, whenever it is killed.
        let instructed = n % 4 == 0 && {
            let line = || ok_or_not(&home, &["instruct", &name, "--at", "line:0", "kept"]);
            eventually("a line to be recorded", line);
            true
        };
        std::thread::sleep(after);
        let killed = now();
        recorder.kill().expect("killed");
        recorder.wait().expect("it is gone");
        std::fs::remove_dir_all(home.path("state")).unwrap_or_default();
        let output = String::from_utf8(recorded_output(&home.path(&name))).expect("text");
        let last = output.lines().rev().find_map(|line| line.trim().parse::<u64>().ok()).unwrap_or(0);
        let lost = killed.saturating_sub(last.max(killed.saturating_sub(after.as_nanos() as u64)));
        // The machine may be busy; a recorder that is on time writes within 250 ms.
        assert!(lost < 1_000_000_000, "{n}: {lost} ns are lost after {after:?}");
        all_lost.push(lost);
        let told = home.part_now(&name, "instructions.jsonl").unwrap_or_default();
        assert_eq!(told.contains("\"text\":\"kept\""), instructed, "{n}: {told}");
        let info: Value = serde_json::from_str(&ok(&home, &["info", "--json", &name])).expect("JSON");
        if after > Duration::from_secs(1) {
            assert_eq!(info["meta"]["title"], "killed", "{n}: {info}");
        }
        assert!(info["missing"].as_array().is_some_and(|m| m.contains(&"its end".into())), "{info}");
        let verified = home.run(["verify", &name]);
        assert!(verified.status.success() || text(&verified).contains("block"), "{}", text(&verified));
    }
    all_lost.sort_unstable();
    let (median, most) = (all_lost[all_lost.len() / 2] / 1_000_000, all_lost[all_lost.len() - 1] / 1_000_000);
    println!("killed at {moments} moments: {median} ms are lost at the median, {most} ms at most");
    let others = files(&home).into_iter().filter(|name| !name.ends_with(".ahr")).count();
    assert_eq!(others, 0, "{:?}", files(&home));
}

fn ok_or_not(home: &Home, args: &[&str]) -> bool {
    home.run(args).status.success()
}

fn now() -> u64 {
    let out = Command::new("date").arg("+%s%N").output().expect("date runs");
    String::from_utf8_lossy(&out.stdout).trim().parse().expect("a number")
}

/// What older recordings have beside them is read, and can be put into them.
#[test]
fn files_beside_an_older_recording_are_read_and_adopted() {
    let home = Home::new();
    session(&home);
    ok(&home, &["convert", "-q", "--sidecar", "s.ahr", "-o", "n.ahr"]);
    assert!(files(&home).contains(&"n.meta.json".to_owned()), "{:?}", files(&home));
    older(&home, "n.ahr", "old.ahr");
    let meta = std::fs::read(home.path("n.meta.json")).expect("read");
    let mut meta: Value = serde_json::from_slice(&meta).expect("JSON");
    meta["digest"].take();
    meta["sha256"] = tapdeck_host::file_digest(&home.path("old.ahr")).expect("read").into();
    std::fs::write(home.path("n.meta.json"), meta.to_string()).expect("written");
    for suffix in ["meta.json", "events.jsonl", "snapshots.jsonl"] {
        std::fs::rename(home.path(&format!("n.{suffix}")), home.path(&format!("old.{suffix}")))
            .expect("moved");
    }
    std::fs::write(home.path("old.instructions.jsonl"), INSTRUCTION).expect("written");
    let lines = |name: &str| home.run(["turns", "--json", name]).stdout;
    let (info, turns) = (ok(&home, &["info", "old.ahr"]), lines("old.ahr"));
    assert!(info.contains("a title") && info.contains("beside it  old.meta.json"), "{info}");
    let adopted = ok(&home, &["repair", "--adopt", "old.ahr"]);
    assert!(adopted.contains("old.events.jsonl is in old.ahr now"), "{adopted}");
    assert!(!files(&home).iter().any(|name| name.starts_with("old.") && name != "old.ahr"));
    let verified: Value = serde_json::from_str(&ok(&home, &["verify", "--json", "old.ahr"])).expect("JSON");
    assert_eq!(verified["sha256_matches"], true);
    let info = ok(&home, &["info", "old.ahr"]);
    assert!(info.contains("a title") && info.contains("instructions.jsonl: 1 instruction"), "{info}");
    assert_eq!(lines("old.ahr"), turns);
    ok(&home, &["verify", "old.ahr"]);
    assert!(ok(&home, &["repair", "--adopt", "old.ahr"]).contains("nothing to put into it"));
    // A recording that is continued takes them along, too.
    older(&home, "n.ahr", "more.ahr");
    std::fs::write(home.path("more.events.jsonl"), "{\"ts_ns\":1,\"kind\":\"driver\"}\n").expect("written");
    ok(&home, &["rec", "-q", "--append", "more.ahr", "--", "echo", "more"]);
    assert!(home.part("more.ahr", "events.jsonl").starts_with("{\"ts_ns\":1,\"kind\":\"driver\"}\n"));
    assert!(!home.path("more.events.jsonl").exists());
    ok(&home, &["verify", "more.ahr"]);
    // One that is torn, or being recorded, is left alone.
    let whole = std::fs::read(home.path("old.ahr")).expect("read");
    std::fs::write(home.path("torn.ahr"), &whole[..whole.len() - 5]).expect("written");
    let torn = home.run(["repair", "--adopt", "torn.ahr"]);
    assert!(torn.status.code() == Some(1) && text(&torn).contains("ends within a block"), "{}", text(&torn));
    assert_eq!(std::fs::read(home.path("torn.ahr")).expect("read"), whole[..whole.len() - 5]);
    let mut live = home.tapdeck(["rec", "-q", "live.ahr", "--", "cat"]);
    let mut live = live.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
    home.part("live.ahr", "meta.json");
    let busy = home.run(["repair", "--adopt", "live.ahr"]);
    assert!(busy.status.code() == Some(2) && text(&busy).contains("is being recorded"), "{}", text(&busy));
    // What is written about it meanwhile is in it at its end.
    std::fs::write(home.path("live.instructions.jsonl"), INSTRUCTION).expect("written");
    drop(live.stdin.take());
    live.wait().expect("it ends");
    assert_eq!(home.part("live.ahr", "instructions.jsonl"), INSTRUCTION);
    assert!(!home.path("live.instructions.jsonl").exists());
    ok(&home, &["verify", "live.ahr"]);
}

const INSTRUCTION: &str = "{\"ts_ns\":7,\"anchor_byte\":3,\"line\":0,\"text\":\"use tabs\"}\n";

#[test]
fn tools_that_want_files_get_them() {
    let home = Home::new();
    let script = format!("echo hi; {TAPDECK} snapshot --id 5 --label five >/dev/null");
    ok(&home, &["rec", "-q", "--sidecar", "a.ahr", "--", "sh", "-c", &script]);
    assert_eq!(files(&home), ["a.ahr", "a.events.jsonl", "a.meta.json", "a.snapshots.jsonl"]);
    let list = std::fs::read_to_string(home.path("a.snapshots.jsonl")).expect("read");
    let line: Value = serde_json::from_str(&list).expect("a line");
    assert_eq!((&line["id"], &line["label"], &line["kind"]), (&5.into(), &"five".into(), &"ipc".into()));
    let meta = std::fs::read_to_string(home.path("a.meta.json")).expect("read");
    let meta: Value = serde_json::from_str(&meta).expect("JSON");
    assert_eq!(meta["exit"]["code"], 0);
    // They are a copy: the recording has everything in itself.
    std::fs::write(home.path("a.meta.json"), "{}").expect("written");
    assert!(ok(&home, &["info", "a.ahr"]).contains("echo hi"));
    let is_there = |name: &str| Path::new(&home.path(name)).exists();
    let left = ok(&home, &["repair", "--adopt", "a.ahr"]);
    assert!(left.contains("a.meta.json is left"), "{left}");
    assert!(is_there("a.meta.json") && !is_there("a.events.jsonl"));
    ok(&home, &["convert", "-q", "a.ahr", "-o", "b.ahr"]);
    assert!(!is_there("b.meta.json") && !is_there("b.events.jsonl"));
}

/// Copies were added a second time, and a seal no longer covered the recording.
#[test]
fn copies_beside_a_recording_are_not_added_to_it() {
    let home = Home::new();
    std::fs::write(home.path("key"), [7; 32]).expect("written");
    let script = format!("echo hi; {TAPDECK} snapshot --id 5 --label five >/dev/null");
    ok(&home, &["rec", "-q", "--sidecar", "--seal", "key", "a.ahr", "--", "sh", "-c", &script]);
    let recorded = std::fs::read(home.path("a.ahr")).expect("read");
    let names = files(&home);
    assert!(names.contains(&"a.snapshots.jsonl".to_owned()), "{names:?}");
    std::fs::write(home.path("a.instructions.jsonl"), INSTRUCTION).expect("written");
    let done: Value =
        serde_json::from_str(&ok(&home, &["repair", "--adopt", "--json", "a.ahr"])).expect("JSON");
    assert_eq!(done["adopted"].as_array().map(Vec::len), Some(1), "{done}");
    assert_eq!(
        (done["known"].as_array().map(Vec::len), &done["left"]),
        (Some(3), &Value::Array(vec![])),
        "{done}"
    );
    assert_eq!(files(&home), ["a.ahr", "key"]);
    let added = std::fs::read(home.path("a.ahr")).expect("read");
    assert!(added.starts_with(&recorded) && added.len() > recorded.len());
    let verified = ok(&home, &["verify", "--key", "key", "a.ahr"]);
    assert!(verified.contains("seal"), "{verified}");
    // The same lines again are known.
    std::fs::write(home.path("a.instructions.jsonl"), INSTRUCTION).expect("written");
    ok(&home, &["repair", "--adopt", "a.ahr"]);
    assert_eq!(std::fs::read(home.path("a.ahr")).expect("read"), added);
    assert_eq!(files(&home), ["a.ahr", "key"]);
}

/// An asciicast in progress was said to be from a recorder that was killed.
#[test]
fn recordings_in_progress_are_told_from_those_of_killed_recorders() {
    let home = Home::new();
    for file in ["a.cast", "a.ahr"] {
        let out = home.run(["rec", "-d", "--name", "s", file, "--", "cat"]);
        assert!(out.status.success(), "{}", text(&out));
        eventually("the recording to begin", || home.path(file).metadata().is_ok_and(|m| m.len() > 0));
        if file == "a.ahr" {
            ok(&home, &["instruct", file, "--at", "byte:0", "use tabs"]);
        }
        let said = ok(&home, &["verify", file]);
        assert!(said.contains("whole") && said.contains("in progress"), "{said}");
        assert!(!said.contains("killed") && !said.contains("sealed"), "{said}");
        let json: Value = serde_json::from_str(&ok(&home, &["verify", "--json", file])).expect("JSON");
        assert_eq!((&json["in_progress"], &json["whole"]), (&true.into(), &true.into()));
        ok(&home, &["kill", "s"]);
        eventually("the session to end", || home.run(["ls", "-q"]).stdout.is_empty());
        let said = ok(&home, &["verify", file]);
        assert!(!said.contains("in progress"), "{said}");
    }
}

#[test]
fn programs_that_keep_files_are_looked_for_at_the_start() {
    let home = Home::new();
    let rec = |line: &str| home.run(["rec", "-q", "--overwrite", "--snapshots", line, "a.ahr", "--", "true"]);
    let refused = rec("gti");
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(text(&refused).contains("there is no program \"gti\""), "{}", text(&refused));
    assert!(!home.path("a.ahr").exists());
    for line in ["true --all", "KEEP=1 true", "off"] {
        let out = rec(line);
        assert!(out.status.success(), "{line}: {}", text(&out));
    }
}
