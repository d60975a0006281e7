//! Recordings that fail while their session runs. They used to fail in silence: a detached session
//! had no terminal to say so, and the others said so only when they ended.

use std::os::unix::fs::PermissionsExt;
use std::process::{Output, Stdio};

use serde_json::Value;
use tapdeck_proto::bus::{Event, RecordingState, Sub};
use tapdeck_serve::client::{Bus, Hello};
use tapdeck_serve::door::Address;

use crate::support::{Home, PATIENCE, Seat, TAPDECK, eventually};

/// The options of a shell that may write files of 8 KiB at most, and a program that writes more.
const LIMIT: &str = "ulimit -f 8; exec";
const FLOOD: &str = "sh -c 'head -c 200000 /dev/urandom | od -An -v -tx1; read x'";
/// A program that writes more and more, until it is ended.
const ENDLESS: &str = "sh -c 'trap : HUP; while :; do od -An -N20000 -v -tx1 /dev/urandom; sleep 0.1; done'";

fn shell(home: &Home, script: &str) -> Output {
    home.command("sh").args(["-c", script]).stdin(Stdio::null()).output().expect("it runs")
}

fn text(out: &Output) -> String {
    String::from_utf8_lossy(&[&out.stdout[..], &out.stderr[..]].concat()).into_owned()
}

fn listed(home: &Home) -> Value {
    let all: Value = serde_json::from_slice(&home.run(["ls", "--json"]).stdout).expect("JSON");
    all[0].clone()
}

fn fails(home: &Home) {
    eventually("the recording to fail", || listed(home)["recording_state"] == "failed");
}

/// Whether the bus tells a client, also one that comes late, that this recording has failed.
fn is_told(home: &Home, recording: &str) -> bool {
    let socket = listed(home)["socket"].as_str().expect("a path").to_owned();
    let mut bus = Bus::connect(&Address::Unix(socket.into())).expect("it listens");
    bus.hello(&Hello::new(tapdeck_proto::bus::Role::Observer, "o"), PATIENCE).expect("let in");
    bus.request(&Sub { out: false, ..Sub::default() }, PATIENCE).expect("subscribed");
    let path = home.path(recording).display().to_string();
    loop {
        let frame = bus.next(Some(PATIENCE)).expect("it lives").expect("something comes");
        if let Some(Event::Recording { path: told, state, error }) = frame.event() {
            return told == path && state == RecordingState::Failed && error.is_some();
        }
    }
}

#[test]
fn a_detached_recording_that_fails_is_reported_everywhere() {
    for name in ["a.ahr", "a.cast"] {
        let home = Home::new();
        let started = shell(&home, &format!("{LIMIT} {TAPDECK} rec -d --name s {name} -- {FLOOD}"));
        assert!(started.status.success(), "{}", text(&started));
        fails(&home);
        let error = listed(&home)["recording_error"].as_str().expect("an error").to_owned();
        assert!(error.contains("limit of file size"), "{error}");
        assert!(text(&home.run(["ls"])).contains("recording failed"));
        let explained = text(&home.run(["explain", "s"]));
        assert!(explained.contains("recording ") && explained.contains("failed: the limit"), "{explained}");
        assert!(is_told(&home, name));
        let mut seat = Seat::new(home.tapdeck(["attach", "s"]));
        seat.wait_text("the recording failed");
        let mut waiting = home.tapdeck(["wait", "s", "--exit"]);
        let waiting = waiting.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        eventually("it to wait", || {
            let clients = listed(&home)["clients"].as_array().cloned().unwrap_or_default();
            clients.iter().any(|client| client["name"] == "wait")
        });
        seat.send("go\r");
        seat.end();
        seat.wait_text("the recording of s failed");
        let waited = waiting.wait_with_output().expect("it ends");
        assert_eq!(waited.status.code(), Some(4), "{}", text(&waited));
        let exit: Value = serde_json::from_slice(&waited.stdout).expect("JSON");
        assert_eq!((&exit["code"], &exit["recording_error"]), (&0.into(), &error.into()));
        home.run(["kill", "s"]);
    }
}

#[test]
fn a_late_recording_that_fails_is_reported_at_once_and_at_its_end() {
    let home = Home::new();
    let script = "sh -c 'read x; head -c 200000 /dev/urandom | od -An -v -tx1; read x'";
    assert!(shell(&home, &format!("{LIMIT} {TAPDECK} run -d --name s -- {script}")).status.success());
    let recorder = home
        .tapdeck(["rec", "--attach", "s", "late.ahr"])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    eventually("it to be recorded", || listed(&home)["recording_state"] == "running");
    home.run(["type", "s", "go", "--enter"]);
    fails(&home);
    home.run(["type", "s", "go", "--enter"]);
    let out = recorder.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(4), "{said}");
    assert!(said.contains("late.ahr: the limit of file size"), "{said}");
    home.run(["kill", "s"]);
}

#[test]
fn a_strict_recording_ends_or_suspends_the_program() {
    let home = Home::new();
    let out = shell(&home, &format!("{LIMIT} {TAPDECK} rec --strict a.ahr -- {ENDLESS} >/dev/null"));
    let said = text(&out);
    assert_eq!(out.status.code(), Some(4), "{said}");
    assert!(said.contains("ended because its recording failed"), "{said}");

    // By the configuration, in a session without a terminal.
    std::fs::create_dir_all(home.path(".config/tapdeck")).expect("made");
    std::fs::write(home.path(".config/tapdeck/config.toml"), "[rec]\nstrict = \"stop\"\n").expect("written");
    assert!(shell(&home, &format!("{LIMIT} {TAPDECK} rec -d --name s b.ahr -- {ENDLESS}")).status.success());
    eventually("it to be suspended", || listed(&home)["state"] == "suspended");
    // It wrote ten times a second.
    let quiet = home.run(["wait", "s", "--idle", "500ms"]);
    assert!(quiet.status.success(), "it writes nothing more: {}", text(&quiet));
    let seq = listed(&home)["seq"].clone();
    assert!(home.run(["kill", "s", "--signal", "CONT"]).status.success());
    eventually("it to go on", || listed(&home)["state"] == "running" && listed(&home)["seq"] != seq);
    assert!(home.run(["kill", "s"]).status.success());
}

#[test]
fn a_terminal_is_alerted_if_asked() {
    let home = Home::new();
    let mut command = home.command("sh");
    command.args(["-c", &format!("{LIMIT} {TAPDECK} rec --alert both a.ahr -- {FLOOD}")]);
    let mut seat = Seat::new(command);
    seat.wait("the title", |s| s.term.title() == "the recording failed");
    seat.wait("the bell", |s| s.raw.contains(&7));
    seat.send("go\r");
    assert_eq!(seat.end().code(), Some(4));
}

/// The viewer said nothing, and ended as the program had.
#[cfg(feature = "tui")]
#[test]
fn the_viewer_reports_that_its_recording_failed() {
    let home = Home::new();
    let mut command = home.command("sh");
    command.args(["-c", &format!("{LIMIT} {TAPDECK} rec --view a.ahr -- {FLOOD}")]);
    let mut seat = Seat::with_size(command, 100, 30);
    seat.wait_text("the recording failed");
    seat.send("go\r");
    seat.wait_text("the program has ended");
    seat.send("q");
    assert_eq!(seat.end().code(), Some(4), "{}", seat.screen());
    seat.wait_text("failed: the limit of file size");
}

/// An ended session is gone after a look at it, and the look did not say what became of the
/// recording.
#[test]
fn a_look_at_an_ended_session_reports_its_failed_recording() {
    for look in ["peek", "tail"] {
        let home = Home::new();
        let flood = "sh -c 'head -c 200000 /dev/urandom | od -An -v -tx1'";
        assert!(
            shell(&home, &format!("{LIMIT} {TAPDECK} rec -d --name s a.ahr -- {flood}")).status.success()
        );
        eventually("it to end", || listed(&home)["done"] == true);
        let out = home.run([look, "s"]);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(said.contains("the recording of s failed: the limit of file size"), "{look}: {said}");
    }
}

/// What the recorder could not write was not missed by `verify`, `info` and `repair`.
#[test]
fn what_is_lost_is_known_to_every_command() {
    let home = Home::new();
    let flood = "sh -c 'head -c 200000 /dev/urandom | od -An -v -tx1'";
    for name in ["a.ahr", "a.ahr.zst"] {
        let out = shell(&home, &format!("{LIMIT} {TAPDECK} rec -q --headless {name} -- {flood} >/dev/null"));
        assert_eq!(out.status.code(), Some(4), "{name}: {}", text(&out));
        assert_eq!(home.run(["verify", name]).status.code(), Some(1), "{name}");
    }
    assert!(text(&home.run(["info", "a.ahr"])).contains("of output while recording"));
    let repaired = text(&home.run(["repair", "a.ahr", "-o", "b.ahr"]));
    assert!(repaired.contains("lost while recording") && !repaired.contains("is whole"), "{repaired}");
    assert!(home.run(["convert", "a.ahr", "-o", "c.ahr.zst"]).status.success());
    assert_eq!(home.run(["verify", "c.ahr.zst"]).status.code(), Some(1));
}

/// A host that could not put its session on the list waited for a client for ever, and the command
/// that had started it with it.
#[test]
fn a_session_that_cannot_be_listed_fails_at_once() {
    let home = Home::new();
    let out = shell(&home, &format!("ulimit -f 0; exec timeout 20 {TAPDECK} run -d --name s -- sleep 600"));
    let said = text(&out);
    assert!(!out.status.success() && out.status.code() != Some(124), "{said}");
    assert!(said.contains("clients cannot join"), "{said}");
    let left = std::fs::read_dir(home.path("run/tapdeck")).into_iter().flatten().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).filter(|name| name != "broker.sock").collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".new")), "{left:?}");
}

#[cfg(feature = "net")]
#[test]
fn a_servers_recording_that_fails_is_listed() {
    let home = Home::new();
    let own = home.path("own");
    std::fs::create_dir(&own).expect("made");
    std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o700)).expect("private");
    let socket = format!("unix:{}", own.join("s.sock").display());
    let script = format!("{LIMIT} {TAPDECK} serve --listen {socket} --record runs --strict=off");
    let mut server = home.command("sh");
    let mut server = server.args(["-c", &script]).stdout(Stdio::null()).spawn().expect("it starts");
    eventually("the server listens", || own.join("s.sock").exists());
    let opened = shell(&home, &format!("{TAPDECK} connect {socket} --detach -- {FLOOD}"));
    assert!(opened.status.success(), "{}", text(&opened));
    fails(&home);
    server.kill().expect("killed");
    server.wait().expect("it ends");
}

/// A client whose program was ended for that was told nothing.
#[cfg(feature = "net")]
#[test]
fn a_client_hears_why_a_strict_server_ended_its_program() {
    let home = Home::new();
    let own = home.path("own");
    std::fs::create_dir(&own).expect("made");
    std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o700)).expect("private");
    let socket = format!("unix:{}", own.join("s.sock").display());
    let script = format!("{LIMIT} {TAPDECK} serve --listen {socket} --record runs --strict");
    let mut server = home.command("sh");
    let mut server = server.args(["-c", &script]).stdout(Stdio::null()).spawn().expect("it starts");
    eventually("the server listens", || own.join("s.sock").exists());
    let ran = shell(&home, &format!("{TAPDECK} connect -t {socket} -- {ENDLESS} >/dev/null"));
    server.kill().expect("killed");
    server.wait().expect("it ends");
    assert!(!ran.status.success() && text(&ran).contains("because its recording failed"), "{}", text(&ran));
}
