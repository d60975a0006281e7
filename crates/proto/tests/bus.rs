//! Recorded traffic of sessions before the messages were types: every line must still be read, and
//! written with the same value.

#![allow(missing_docs, reason = "tests explain themselves by their names")]

use std::path::Path;

use serde_json::Value;
use tapdeck_proto::bus::{Line, Push, Reply, Request, RequestError};

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
