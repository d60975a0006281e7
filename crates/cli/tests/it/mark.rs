//! Markers that are added while a session is recorded.

use tapdeck_proto::bus::{MAX_LABEL, Mark};

use crate::live::{Detached, text};
use crate::support::{Home, PATIENCE, eventually};

/// The labels of the markers in a recording.
fn labels(home: &Home, recording: &str) -> Vec<String> {
    let out = home.run(["convert", recording, "--format", "cast", "-o", "-"]);
    let cast = String::from_utf8_lossy(&out.stdout).into_owned();
    let events = cast.lines().filter_map(|line| serde_json::from_str::<(f64, String, String)>(line).ok());
    events.filter(|(_, kind, _)| kind == "m").map(|(_, _, label)| label).collect()
}

fn mark(home: &Home, args: &[&str], code: i32, says: &str) {
    let out = home.run([&["mark"], args].concat());
    assert_eq!(out.status.code(), Some(code), "{args:?}: {}", text(&out));
    assert!(text(&out).contains(says), "{args:?}: {}", text(&out));
}

#[test]
fn markers_are_added_to_a_recording_in_progress() {
    let home = Home::new();
    let record = |flags: &[&str]| {
        let flags = [&["-d", "--name", "build", "a.ahr"], flags].concat();
        let out = home.run([&["rec"], &flags[..], &["--", "cat"]].concat());
        assert!(out.status.success(), "{}", text(&out));
    };
    let end = || {
        assert!(home.run(["kill", "build"]).status.success());
        eventually("the session to end", || home.run(["ls", "-q"]).stdout.is_empty());
    };
    record(&[]);
    mark(&home, &["build", "tests begin"], 0, "");
    mark(&home, &["the only session"], 0, "");
    mark(&home, &["build", ""], 0, "");
    mark(&home, &[], 0, "");
    mark(&home, &["build", "a\nb"], 2, "no line ends");
    mark(&home, &["build", &"x".repeat(MAX_LABEL + 1)], 1, "at most 1000 bytes");
    end();
    assert_eq!(labels(&home, "a.ahr"), ["tests begin", "the only session", "", ""]);
    // A recording that is continued counts on.
    record(&["--append"]);
    mark(&home, &["build", "again"], 0, "");
    end();
    assert_eq!(labels(&home, "a.ahr"), ["tests begin", "the only session", "", "", "again"]);
}

#[test]
fn a_session_that_is_not_recorded_takes_no_markers() {
    let home = Home::new();
    let session = Detached::start(&home, &["--name", "plain"], &["cat"]);
    mark(&home, &["plain", "here"], 1, "not being recorded");
    let denied = session.bus("observer", "test").request(&Mark::default(), PATIENCE);
    assert!(denied.is_err_and(|e| e.to_string().contains("observer")));
}
