//! Traffic of sessions before their messages were types, said again to a session of today.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::{Map, Value};
use tapdeck_proto::bus::Line;

use crate::live::Detached;
use crate::support::{Home, PATIENCE};

/// The form of a message: its fields and their kinds. `null` has the form of a text.
fn form(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(key, value)| (key.clone(), form(value))).collect::<Map<_, _>>())
        }
        Value::Array(_) => Value::from("list"),
        Value::String(_) | Value::Null => Value::from("text or nothing"),
        Value::Number(_) => Value::from("number"),
        Value::Bool(_) => Value::from("flag"),
    }
}

/// Whether a form has all that another one has. Replies may gain fields, and lose none.
fn has_form(now: &Value, then: &Value) -> bool {
    match (now, then) {
        (Value::Object(now), Value::Object(then)) => {
            then.iter().all(|(key, then)| now.get(key).is_some_and(|now| has_form(now, then)))
        }
        (now, then) => now == then,
    }
}

/// Repeats what a client said, and compares the form of each reply with the recorded reply.
fn replay(name: &str) {
    let goldens = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/tests/goldens/bus");
    let text = std::fs::read_to_string(goldens.join(format!("{name}.txt"))).expect("a transcript");
    let home = Home::new();
    let session = Detached::start(
        &home,
        &["--window-size", "60x8", "--env", "PS1=$ ", "--name", "demo"],
        &["bash", "--norc", "--noprofile"],
    );
    session.wait_text(r"\$ ?$");
    let folder = home.path("work");
    std::fs::create_dir_all(&folder).expect("a folder");
    let stream = UnixStream::connect(session.socket()).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    let mut replies = BufReader::new(stream.try_clone().expect("a copy")).lines();
    let mut stream = stream;
    let recorded: Vec<&str> = text.lines().collect();
    let mut compared = 0;
    for (n, line) in recorded.iter().enumerate() {
        let Some(line) = line.strip_prefix("> ") else { continue };
        let Some(id) = Line::split(line).id else { continue };
        let then = recorded[n..].iter().filter_map(|l| l.strip_prefix("< ").map(Line::split));
        let then = then.into_iter().find(|reply| reply.id == Some(id)).expect(line);
        let said = line.replace("\"TOKEN\"", &format!("\"{}\"", session.token()));
        let said = said.replace("/home/ada", folder.to_str().expect("text"));
        writeln!(stream, "{said}").expect("it reads");
        let reply = loop {
            let reply = replies.next().expect("it goes on").expect("text");
            if Line::split(&reply).id == Some(id) {
                break reply;
            }
        };
        let now = Line::split(&reply);
        let read = |payload: &str| form(&serde_json::from_str(payload).expect("JSON"));
        assert_eq!(now.verb, then.verb, "{line}");
        let (now, then) = (read(now.payload), read(then.payload));
        assert!(has_form(&now, &then), "{line}\nnow:  {now}\nthen: {then}");
        compared += 1;
        if line.starts_with("KEY") || line.starts_with("LINE") {
            // A command is answered by its own output only after the program has read the input
            // before it.
            session.ok(&["wait", "--idle", "100"]);
        }
    }
    assert!(compared > 10, "{compared} replies");
}

#[test]
fn every_verb_is_answered_as_before() {
    replay("verbs");
}

#[test]
fn malformed_requests_are_refused_as_before() {
    replay("malformed");
}
