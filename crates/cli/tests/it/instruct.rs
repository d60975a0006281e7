//! Instructions from outside: on a finished recording, through a live session, and over the
//! recorder's socket.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::Value;
use tapdeck_core::MAX_INSTRUCTION;
use tapdeck_proto::bus::Instruct;

use crate::live::{Detached, text};
use crate::support::{Home, PATIENCE, TAPDECK, eventually};

/// Runs `tapdeck instruct`, and returns what it says.
#[track_caller]
fn instruct(home: &Home, args: &[&str], code: i32, says: &str) -> String {
    let out = home.run([&["instruct"], args].concat());
    assert_eq!(out.status.code(), Some(code), "{args:?}: {}", text(&out));
    assert!(text(&out).contains(says), "{args:?}: {}", text(&out));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// The rows of `branch-points`.
fn points(home: &Home, recording: &str) -> Vec<Value> {
    let out = home.run(["branch-points", "--format", "json", recording]);
    assert!(out.status.success(), "{}", text(&out));
    serde_json::from_slice(&out.stdout).expect("JSON")
}

/// Waits until a recording in progress has this many lines.
#[track_caller]
fn wait_for_lines(home: &Home, recording: &str, count: usize) {
    eventually("the lines to be recorded", || {
        let out = home.run(["branch-points", "--format", "csv", recording]);
        out.stdout.split(|b| *b == b'\n').filter(|row| row.starts_with(b"line,")).count() == count
    });
}

/// The instructions among them: the text of the line before, and their own.
fn instructions(home: &Home, recording: &str) -> Vec<(String, String)> {
    let said = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let (mut line, mut found) = (String::new(), Vec::new());
    for row in points(home, recording) {
        match row["kind"].as_str() {
            Some("line") => line = said(&row, "text"),
            Some("instruction") => found.push((line.clone(), said(&row, "text"))),
            _ => {}
        }
    }
    found
}

fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(line, text)| ((*line).to_owned(), (*text).to_owned())).collect()
}

/// What is in the folder, but for the home's own folders.
fn files(home: &Home) -> Vec<String> {
    let names = std::fs::read_dir(home.path("")).expect("listed").flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name != "run" && name != "state").collect();
    names.sort();
    names
}

#[test]
fn a_finished_recording_takes_instructions() {
    let home = Home::new();
    let script = format!(
        "echo one; echo two; {TAPDECK} snapshot --id 7 --label seven >/dev/null; echo three; echo four"
    );
    assert!(home.run(["rec", "-q", "s.ahr", "--", "sh", "-c", &script]).status.success());
    instruct(&home, &["s.ahr", "--at", "line:0", "use uno"], 0, "line 0: added");
    instruct(&home, &["s.ahr", "--at", "@seven", "use dos\nand tell"], 0, "line 1: added");
    instruct(&home, &["s.ahr", "--at", "100%", "stop"], 0, "line 3: added");
    let all = pairs(&[("one", "use uno"), ("two", "use dos\nand tell"), ("four", "stop")]);
    assert_eq!(instructions(&home, "s.ahr"), all);
    let there = points(&home, "s.ahr");
    let row = there.iter().find(|row| row["text"] == "stop").expect("it is listed");
    assert_eq!((&row["line"], &row["snapshot"]["id"]), (&3.into(), &7.into()), "{row}");

    // A line has one: a new text replaces it, an empty one deletes it.
    let said = instruct(&home, &["s.ahr", "--json", "--at", "byte:3", "use ein"], 0, "");
    let said: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(
        (&said["done"], &said["line"], &said["text"]),
        (&"changed".into(), &0.into(), &"use ein".into())
    );
    instruct(&home, &["s.ahr", "--at", "line:1", ""], 0, "line 1: deleted");
    assert_eq!(instructions(&home, "s.ahr"), pairs(&[("one", "use ein"), ("four", "stop")]));

    instruct(&home, &["s.ahr", "--at", "line:1", ""], 3, "no instruction at line 1");
    instruct(&home, &["s.ahr", "--at", "line:9", "x"], 3, "no line 9");
    instruct(&home, &["s.ahr", "--at", "@nine", "x"], 3, "no marker or snapshot \"nine\"");
    instruct(&home, &["s.ahr", "--at", "byte:4096", "x"], 3, "bytes of output, and not 4096");
    instruct(&home, &["s.ahr", "--at", "two", "x"], 2, "line:N");
    instruct(&home, &["s.ahr", "x"], 2, "--at");
    instruct(&home, &["none.ahr", "--at", "line:1", "x"], 3, "neither a file nor a live session");
    let long = "x".repeat(MAX_INSTRUCTION + 1);
    instruct(&home, &["s.ahr", "--at", "line:1", &long], 2, "at most 61440");
    assert_eq!(instructions(&home, "s.ahr").len(), 2);
    assert_eq!(files(&home), ["s.ahr"]);
    assert!(home.run(["verify", "s.ahr"]).status.success());

    // Of another format, they stand beside it.
    assert!(home.run(["convert", "-q", "s.ahr", "-o", "s.cast"]).status.success());
    instruct(&home, &["s.cast", "--at", "line:2", "beside"], 0, "line 2: added");
    assert_eq!(files(&home), ["s.ahr", "s.cast", "s.cast.instructions.jsonl"]);
    assert_eq!(instructions(&home, "s.cast"), pairs(&[("three", "beside")]));
}

#[test]
fn a_live_session_records_instructions() {
    let home = Home::new();
    let script = "echo one; echo two; cat";
    let out = home.run(["rec", "-d", "--name", "build", "a.ahr", "--", "sh", "-c", script]);
    assert!(out.status.success(), "{}", text(&out));
    wait_for_lines(&home, "a.ahr", 2);
    instruct(&home, &["build", "--at", "line:0", "use uno"], 0, "line 0: added");
    instruct(&home, &["a.ahr", "--at", "line:1", "use dos"], 0, "line 1: added");
    instruct(&home, &["build", "--at", "line:0", "use ein"], 0, "line 0: changed");
    // It is in the recording at once, and nowhere else.
    assert_eq!(instructions(&home, "a.ahr"), pairs(&[("one", "use ein"), ("two", "use dos")]));
    assert_eq!(files(&home), ["a.ahr"]);
    instruct(&home, &["build", "--at", "line:1", ""], 0, "line 1: deleted");
    assert!(home.run(["kill", "build"]).status.success());
    eventually("the session to end", || home.run(["ls", "-q"]).stdout.is_empty());
    assert_eq!(instructions(&home, "a.ahr"), pairs(&[("one", "use ein")]));
    assert_eq!(files(&home), ["a.ahr"]);
    assert!(home.run(["verify", "a.ahr"]).status.success());
}

#[test]
fn a_session_without_a_recording_takes_no_instructions() {
    let home = Home::new();
    let session = Detached::start(&home, &["--name", "plain"], &["cat"]);
    instruct(&home, &["plain", "--at", "line:0", "x"], 2, "is not recorded");
    let asked = Instruct { text: "x".into(), ..Instruct::default() };
    let denied = session.bus("observer", "test").request(&asked, PATIENCE);
    assert!(denied.is_err_and(|e| e.to_string().contains("observer")));
    let denied = session.bus("human", "test").request(&asked, PATIENCE);
    assert!(denied.is_err_and(|e| e.to_string().contains("not being recorded as an .ahr")));
}

/// A connection to a recorder's socket on which bytes are written by hand.
struct Wire(UnixStream);

impl Wire {
    fn open(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).expect("connected");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        Self(stream)
    }

    /// Sends a message behind its length, and returns the one that comes back.
    fn say(&mut self, parts: &[&[u8]]) -> Vec<u8> {
        let body = parts.concat();
        self.0.write_all(&u32::try_from(body.len()).expect("short").to_le_bytes()).expect("sent");
        self.0.write_all(&body).expect("sent");
        let mut head = [0; 4];
        self.0.read_exact(&mut head).expect("an answer");
        let mut answer = vec![0; u32::from_le_bytes(head) as usize];
        self.0.read_exact(&mut answer).expect("all of it");
        answer
    }

    /// Sends a request that is granted, and returns its id and anchor.
    #[track_caller]
    fn granted(&mut self, parts: &[&[u8]]) -> (u64, u64) {
        let answer = self.say(parts);
        assert_eq!((answer.first(), answer.len()), (Some(&0), 25), "{}", String::from_utf8_lossy(&answer));
        let number = |at: usize| u64::from_le_bytes(answer[at..at + 8].try_into().expect("eight bytes"));
        assert!(number(17) > 1_600_000_000_000_000_000, "nanoseconds since 1970");
        (number(1), number(9))
    }
}

#[test]
fn the_recorders_socket_takes_instructions_as_bytes() {
    let home = Home::new();
    let script = "stty raw; printf 'one\\r\\ntwo'; cat";
    let out = home.run(["rec", "-d", "--name", "build", "a.ahr", "--", "sh", "-c", script]);
    assert!(out.status.success(), "{}", text(&out));
    wait_for_lines(&home, "a.ahr", 2);
    let mut wire = Wire::open(Path::new(home.meta("a.ahr")["ipc"].as_str().expect("the socket is named")));
    let (offset, now) = (20_u32.to_le_bytes(), u64::MAX.to_le_bytes());
    let zero = 0_u64.to_le_bytes();
    let list = || instructions(&home, "a.ahr");

    // A new one at the newest output, and one at a place before. Each is on disk by then.
    let (newest, anchor) = wire.granted(&[&[1], &zero, &now, &offset, "use zwei".as_bytes()]);
    assert_eq!(anchor, 8);
    assert_eq!(list(), pairs(&[("two", "use zwei")]));
    let (early, anchor) = wire.granted(&[&[1], &zero, &3_u64.to_le_bytes(), &offset, "use ein".as_bytes()]);
    assert_eq!(anchor, 3);
    assert_ne!(newest, early);
    assert_eq!(list(), pairs(&[("one", "use ein"), ("two", "use zwei")]));

    // Clients that know snapshots alone are served on the same socket, as ever.
    let label = 12_u32.to_le_bytes();
    assert_eq!(wire.granted(&[&[0], &42_u64.to_le_bytes(), &label, b"cp1"]), (42, 8));

    // By its id, one is changed and deleted.
    let id = early.to_le_bytes();
    assert_eq!(wire.granted(&[&[1], &id, &8_u64.to_le_bytes(), &offset, "use both".as_bytes()]), (early, 8));
    assert_eq!(list(), pairs(&[("two", "use zwei"), ("two", "use both")]));
    assert_eq!(wire.granted(&[&[1], &id, &zero, &offset]).0, early);
    assert_eq!(list(), pairs(&[("two", "use zwei")]));

    for (bad, why) in [
        (vec![&[1][..], &zero, &now, &offset], "give its id"),
        (vec![&[1], &zero, &now, &label, b"x"], "offset 12 where 20 belongs"),
        (vec![&[1], &zero, &now], "17 bytes where 21 belong"),
        (vec![&[1], &zero, &now, &offset, &[0xff]], "not UTF-8"),
        (vec![&[2], &zero, &now, &offset], "selector 2 is unknown"),
    ] {
        let answer = wire.say(&bad);
        let said = String::from_utf8_lossy(&answer[1..]);
        assert!(answer[0] == 1 && said.contains(why), "{why}: {said}");
    }
    let long = vec![b'x'; MAX_INSTRUCTION + 1];
    let answer = wire.say(&[&[1], &zero, &now, &offset, &long]);
    assert!(answer[0] == 1 && String::from_utf8_lossy(&answer).contains("at most 61440 bytes"));
    assert_eq!(list(), pairs(&[("two", "use zwei")]));
    assert!(home.run(["kill", "build"]).status.success());
    eventually("the session to end", || home.run(["ls", "-q"]).stdout.is_empty());
    assert_eq!(list(), pairs(&[("two", "use zwei")]));
    assert!(home.run(["verify", "a.ahr"]).status.success());
}
