//! Recorded traffic of sessions before the messages were types: every line must still be read, and
//! written with the same value.

#![allow(missing_docs, reason = "tests explain themselves by their names")]

use std::path::Path;

use serde_json::Value;
use tapdeck_proto::attach::{Asked, Join, Said};
use tapdeck_proto::bus::{Line, Push, Reply, Request, RequestError};
use tapdeck_proto::tty::{Control, Refusal};

/// The transcripts of the bus, each with its lines: `> ` from the client, `< ` from the session.
fn transcripts() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/bus");
    let files = std::fs::read_dir(folder).expect("goldens").map(|entry| entry.expect("an entry").path());
    let named = files.map(|path| {
        let text = std::fs::read_to_string(&path).expect("text");
        (path.file_stem().expect("a name").to_string_lossy().into_owned(), text)
    });
    named.filter(|(name, _)| name != "attach").collect()
}

fn value(payload: &str) -> Value {
    serde_json::from_str(payload).expect("JSON")
}

#[test]
fn what_sessions_said_is_read_and_written_alike() {
    let mut seen = 0;
    for (name, text) in transcripts() {
        for line in text.lines().filter_map(|line| line.strip_prefix("< ")) {
            let Line { verb, id, payload } = Line::split(line);
            // A frame without an id is pushed; only then may it be a painter's.
            let written = match Push::parse(verb, payload).expect(line) {
                Some(push) if id.is_none() => (push.verb(), push.payload()),
                _ => {
                    let reply = Reply::parse(verb, payload).expect(line).expect(line);
                    (reply.verb(), reply.payload())
                }
            };
            assert_eq!(written.0, verb, "{name}: {line}");
            assert_eq!(value(&written.1), value(payload), "{name}: {line}");
            seen += 1;
        }
    }
    assert!(seen > 350, "{seen} lines");
}

/// Each line with an id is followed by its reply. A request that cannot be read must have been
/// refused, with the same words. A request that was refused for its form must not be read now.
#[test]
fn what_clients_said_is_read_and_refused_alike() {
    let mut seen = (0, 0);
    for (name, text) in transcripts() {
        let lines: Vec<&str> = text.lines().collect();
        for (n, line) in lines.iter().enumerate() {
            let Some(asked) = line.strip_prefix("> ").map(Line::split) else { continue };
            if !asked.has_valid_id() {
                continue;
            }
            match Request::parse(asked.verb, asked.payload) {
                Ok(request) => {
                    let again = Request::parse(request.verb(), &request.payload()).expect(line);
                    assert_eq!(again, request, "{name}: {line}");
                    seen.0 += 1;
                }
                Err(RequestError::UnknownVerb(_)) if asked.id.is_none() => {}
                Err(e) => {
                    let replies = lines[n..].iter().filter_map(|l| l.strip_prefix("< ").map(Line::split));
                    let reply = replies.into_iter().find(|reply| reply.id == asked.id).expect(line);
                    assert_eq!(
                        (reply.verb, &value(reply.payload)["error"]),
                        ("DENIED", &Value::from(e.to_string())),
                        "{line}"
                    );
                    seen.1 += 1;
                }
            }
        }
    }
    assert!(seen.0 > 140 && seen.1 > 50, "{seen:?}");
}

/// serde reads a struct from a list of its fields, too; the protocol has objects only.
#[test]
fn a_list_is_no_object() {
    for (verb, payload) in [
        ("HELLO", r#"["human"]"#),
        ("SNAP", "[true]"),
        ("SUB", r#"["none"]"#),
        ("ROWS", "[0, 5]"),
        ("FIND", r#"["x"]"#),
        ("KEY", r#"[["a"]]"#),
        ("KEY", r#"{"mouse": ["press", "left", 1, 1]}"#),
        ("PASTE", r#"["x"]"#),
        ("TURNS", "[1]"),
        ("TURN", "[1]"),
        ("RESIZE", "[80, 24]"),
        ("KILL", r#"["TERM"]"#),
        ("REC", r#"[null, "/tmp/x.ahr"]"#),
    ] {
        let read = Request::parse(verb, payload);
        assert!(matches!(read, Err(RequestError::Payload(_))), "{verb} {payload}: {read:?}");
    }
    assert!(Join::parse(br#"["raw", "attach"]"#).is_err());
    assert!(Refusal::parse(br#"[1, "internal", "no"]"#).is_err());
    assert!(Control::parse(br#"["take"]"#).is_err());
}

/// The attach wire, spoken at the same socket: each message without its length or its chunk.
#[test]
fn what_attached_clients_said_and_heard_is_read_and_written_alike() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/bus/attach.txt");
    let text = std::fs::read_to_string(path).expect("a golden");
    let lines: Vec<&str> = text.lines().collect();
    let heard = |n: usize| lines.get(n).and_then(|line| line.strip_prefix("< ")).map(value);
    let (mut joined, mut asked, mut told, mut refused) = (0, 0, 0, 0);
    let mut begins = false;
    for (n, line) in lines.iter().enumerate() {
        if let Some(said) = line.strip_prefix("< ") {
            let recorded = value(said);
            let written = if recorded.get("type").is_some() {
                let said: Said = serde_json::from_str(said).expect(line);
                assert_ne!(said, Said::Unknown, "{line}");
                told += 1;
                serde_json::to_value(said)
            } else {
                serde_json::to_value(Refusal::parse(said.as_bytes()).expect(line))
            };
            assert_eq!(written.expect("JSON"), recorded, "{line}");
        } else if let Some(request) = line.strip_prefix("> ").filter(|_| begins) {
            begins = false;
            match Join::parse(request.as_bytes()) {
                Ok(join) => {
                    let again = serde_json::to_vec(&join).expect("JSON");
                    assert_eq!(Join::parse(&again), Ok(join), "{line}");
                    joined += 1;
                }
                Err(e) => {
                    let refusal = heard(n + 1).expect("a refusal");
                    assert_eq!(refusal["message"], e.to_string(), "{line}");
                    refused += 1;
                }
            }
        } else if let Some(message) = line.strip_prefix("> ") {
            let read = Control::parse(message.as_bytes()).map_err(|e| e.to_string());
            match read.and_then(|m| Asked::from_message(&m).map_err(|e| e.to_string())) {
                Ok(Some(wanted)) => {
                    let again = serde_json::to_vec(&wanted).expect("JSON");
                    let again = Control::parse(&again).expect("an object");
                    assert_eq!(Asked::from_message(&again), Ok(Some(wanted)), "{line}");
                    asked += 1;
                }
                Ok(None) => {
                    let known = heard(n + 1).is_some_and(|reply| reply["about"].is_string());
                    assert!(!known, "{line}: the session knew it");
                }
                Err(e) => {
                    assert_eq!(heard(n + 1).expect("an error")["message"], e, "{line}");
                    refused += 1;
                }
            }
        } else {
            begins = *line == "# connection";
        }
    }
    assert_eq!((joined, asked, told, refused), (8, 12, 31, 10), "messages were found");
}
