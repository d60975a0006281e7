//! Markers that are added while a session is recorded.

use tapdeck_proto::bus::{MAX_LABEL, Mark};

use crate::live::{Detached, text};
use crate::support::{Home, PATIENCE, Seat, TAPDECK, eventually};

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

#[test]
fn people_who_watch_add_markers_with_labels() {
    let home = Home::new();
    let out = home.run(["rec", "-d", "--name", "s", "a.ahr", "--", "cat"]);
    assert!(out.status.success(), "{}", text(&out));
    let mut seat = Seat::new(home.tapdeck(["attach", "s"]));
    seat.wait_text("? shows more");
    // Everything in one piece, and a key for the program behind it.
    seat.send("\x1cmin one\rx");
    seat.wait_text("x");
    seat.send("\x1cm");
    seat.wait_text("marker: _");
    seat.send("by hand");
    seat.wait_text("marker: by hand_");
    seat.send("\r");
    seat.wait_text("marked");
    seat.send("\x1cmnever\x1b");
    seat.wait("the label to go", |seat| !seat.screen().contains("never"));
    let mut view = Seat::with_size(home.tapdeck(["view", "s"]), 80, 20);
    view.wait_text("LIVE");
    view.send("mfrom the viewer\r");
    view.wait_text("marked");
    view.send("p");
    view.wait_text("the recording is paused");
    seat.wait_text("the recording is paused (view)");
    view.send("p");
    view.wait_text("the recording goes on");
    view.send("qe");
    assert_eq!(view.end().code(), Some(0));
    seat.end();
    eventually("the session to end", || home.run(["ls", "-q"]).stdout.is_empty());
    assert_eq!(labels(&home, "a.ahr"), ["in one", "by hand", "from the viewer"]);
}

/// With a second session, the only one was asked for.
#[test]
fn a_program_marks_the_recording_around_it() {
    let home = Home::new();
    let other = home.run(["rec", "-d", "--name", "other", "other.ahr", "--", "cat"]);
    assert!(other.status.success(), "{}", text(&other));
    let mut seat = Seat::new(home.tapdeck(["rec", "-q", "a.ahr", "--", "sh"]));
    seat.wait_text("$");
    seat.send(format!("{TAPDECK} mark 'from within' && echo mar''ked\r"));
    seat.wait_text("marked");
    seat.send("exit\r");
    assert!(seat.end().success());
    eventually("the recording to be finished", || home.is_finished("a.ahr"));
    assert_eq!(labels(&home, "a.ahr"), ["from within"]);
    // In a detached session, too.
    let script = format!("{TAPDECK} mark detached && echo done");
    let out = home.run(["rec", "-d", "--name", "b", "b.ahr", "--", "sh", "-c", &script]);
    assert!(out.status.success(), "{}", text(&out));
    eventually("the recording to be finished", || home.is_finished("b.ahr"));
    assert_eq!(labels(&home, "b.ahr"), ["detached"]);
    assert!(home.run(["kill", "other", "b"]).status.success());
    eventually("the other to be finished", || home.is_finished("other.ahr"));
    assert_eq!(labels(&home, "other.ahr"), [""; 0]);
}
