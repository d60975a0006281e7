//! The broker's messages against recorded traffic, and against bytes that are none.

#![allow(missing_docs, reason = "tests explain themselves by their names")]

use std::path::Path;

use proptest::prelude::*;
use tapdeck_proto::broker::{
    Answer, Blob, Desktop, ErrorCode, Message, Refusal, Request, Response, Role, Target,
};

/// The frames of a recorded direction, each with its length.
fn frames(path: &Path) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(path).expect("a golden");
    let (mut rest, mut all) = (&bytes[..], Vec::new());
    while let Some((head, behind)) = rest.split_first_chunk::<4>() {
        let (body, behind) = behind.split_at(u32::from_be_bytes(*head) as usize);
        all.push([&head[..], body].concat());
        rest = behind;
    }
    all
}

/// Goldens were written by a codec that put fields in another order; a map has none.
fn check(golden: &[u8], written: &[u8], what: &str) {
    assert_eq!(Message::decode(&golden[4..]), Message::decode(&written[4..]), "{what}");
    assert_eq!(golden.len(), written.len(), "{what}: the same fields in the same forms");
}

#[test]
fn recorded_traffic_reads_and_writes_the_same() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/broker");
    let (mut hellos, mut requests, mut responses, mut injected) = (0, 0, 0, 0);
    for connection in 0..10 {
        let mut role = None;
        for golden in frames(&folder.join(format!("{connection}.to-server"))) {
            let message = Message::decode(&golden[4..]).expect("a message");
            let id = message.id().expect("an id");
            let Some(sender) = role else {
                let hello = message.hello().expect("a greeting");
                check(&golden, &hello.frame(), "hello");
                role = Some(hello.role);
                hellos += 1;
                continue;
            };
            // The last connection also sent what the broker refuses.
            let Ok(request) = message.request(sender) else { continue };
            check(&golden, &request.frame(id), &format!("{request:?}"));
            requests += 1;
        }
        let to_client = frames(&folder.join(format!("{connection}.to-client")));
        for (at, golden) in to_client.into_iter().enumerate() {
            let message = Message::decode(&golden[4..]).expect("a message");
            if let Some(inject) = message.inject() {
                check(&golden, &inject.frame(), "inject");
                injected += 1;
                continue;
            }
            let response = message.response().expect("a response");
            if at == 0 {
                let outcome = response.outcome.map(drop).map_err(|refusal| refusal.code);
                check(&golden, &Response::hello_frame(outcome), "hello_ack");
                continue;
            }
            check(&golden, &response.frame(), &format!("{response:?}"));
            responses += 1;
        }
    }
    assert_eq!(std::fs::read_dir(&folder).expect("goldens").count(), 2 * 10, "each golden was read");
    assert_eq!((hellos, injected), (10, 3), "goldens were found");
    assert!(requests >= 15 && responses >= 15, "{requests} requests, {responses} responses");
}

/// The types of requests are written by hand, so the schema could name other fields.
#[cfg(feature = "schema")]
#[test]
fn recorded_requests_have_the_fields_of_the_schema() {
    use std::collections::{BTreeMap, BTreeSet};

    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum Any {
        Text(String),
        Other(serde::de::IgnoredAny),
    }

    /// The names of the fields in a schema, and in those that it refers to.
    fn names(schema: &serde_json::Value, all: &serde_json::Value, into: &mut BTreeSet<String>) {
        into.extend(schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()));
        if let Some(place) = schema["$ref"].as_str() {
            names(all.pointer(&place[1..]).expect("a definition"), all, into);
        }
        schema["oneOf"].as_array().into_iter().flatten().for_each(|one| names(one, all, into));
    }

    let schema = schemars::schema_for!(Request).to_value();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/broker");
    let mut kinds = BTreeSet::new();
    for connection in 0..10 {
        for golden in frames(&folder.join(format!("{connection}.to-server"))) {
            let message = Message::decode(&golden[4..]).expect("a message");
            let request = [Role::Wrapper, Role::Client].into_iter().find_map(|r| message.request(r).ok());
            let Some(request) = request else { continue };
            let written = request.frame(1);
            let fields: BTreeMap<String, Any> = rmp_serde::from_slice(&written[4..]).expect("a map");
            let Any::Text(kind) = &fields["type"] else { panic!("a type is a text") };
            let variants = schema["oneOf"].as_array().expect("variants");
            let variant = variants.iter().find(|v| v["properties"]["type"]["const"] == kind.as_str());
            let mut known = BTreeSet::from(["id".to_owned()]);
            names(variant.expect("a variant"), &schema, &mut known);
            let unknown: Vec<_> = fields.keys().filter(|name| !known.contains(*name)).collect();
            assert!(unknown.is_empty(), "{kind}: the schema lacks {unknown:?}");
            for required in variant.expect("a variant")["required"].as_array().expect("fields") {
                assert!(fields.contains_key(required.as_str().expect("a name")), "{kind}: {required}");
            }
            kinds.insert(kind.clone());
        }
    }
    assert!(kinds.len() >= 8, "{kinds:?}");
}

#[test]
fn a_request_is_refused_with_the_right_word() {
    let message = |json: serde_json::Value| {
        Message::decode(&rmp_serde::to_vec_named(&json).expect("encoded")).expect("a map")
    };
    let cases = [
        (serde_json::json!({"type": "deliver", "sink": "moon"}), ErrorCode::UnknownSink),
        (serde_json::json!({"type": "deliver", "sink": "file"}), ErrorCode::MissingField),
        (serde_json::json!({"type": "fly"}), ErrorCode::UnknownType),
        (serde_json::json!({"type": "get_turn"}), ErrorCode::MissingField),
        (serde_json::json!({"type": "get_turn", "turn_id": null}), ErrorCode::MissingField),
        // A value of the wrong kind was taken for a missing one.
        (serde_json::json!({"type": "get_turn", "turn_id": [1]}), ErrorCode::Malformed),
        (serde_json::json!({"type": "list_turns", "session": "s", "limit": "2"}), ErrorCode::Malformed),
        (serde_json::json!({"type": "list_turns", "session": "s", "limit": -1}), ErrorCode::Malformed),
        (serde_json::json!({"type": "list_turns", "session": 5}), ErrorCode::Malformed),
        (serde_json::json!({"type": "paste", "session": "s", "raw": "yes"}), ErrorCode::Malformed),
        (
            serde_json::json!({"type": "deliver", "sink": "inject", "session": "s", "raw": 1}),
            ErrorCode::Malformed,
        ),
        (serde_json::json!({"type": "deliver", "sink": "clipboard", "display": {}}), ErrorCode::Malformed),
        (
            serde_json::json!({"type": "deliver", "sink": "clipboard", "xauthority": "a\0b"}),
            ErrorCode::Malformed,
        ),
        (
            serde_json::json!({"type": "deliver", "sink": "clipboard", "display": "x".repeat(5000)}),
            ErrorCode::Malformed,
        ),
        (serde_json::json!({"type": "register", "session": "s", "pid": 1}), ErrorCode::Forbidden),
        (serde_json::json!({"type": 5}), ErrorCode::Malformed),
        (serde_json::json!({}), ErrorCode::Malformed),
    ];
    for (json, code) in cases {
        assert_eq!(message(json.clone()).request(Role::Client), Err(code), "{json}");
    }
    let cases = [
        serde_json::json!({"type": "register", "session": "s", "pid": "1"}),
        serde_json::json!({"type": "register", "session": "s", "pid": 1, "pattern": 5}),
        serde_json::json!({"type": "turn_completed", "session": "s", "content": 5}),
        serde_json::json!({"type": "turn_completed", "session": "s", "content": "x", "interrupted": "no"}),
        serde_json::json!({"type": "turn_completed", "session": "s", "content": "x", "truncated": 0}),
        serde_json::json!({"type": "turn_completed", "session": "s", "content": "x", "timestamp": 1.5}),
    ];
    for json in cases {
        assert_eq!(message(json.clone()).request(Role::Wrapper), Err(ErrorCode::Malformed), "{json}");
    }
    let hello =
        |version, role| message(serde_json::json!({"type": "hello", "version": version, "role": role}));
    assert_eq!(hello(9, "client").hello(), Err(ErrorCode::VersionMismatch));
    assert_eq!(hello(1, "king").hello(), Err(ErrorCode::Malformed));
    let lists = message(serde_json::json!({"type": "list_sessions", "new": {"a": [1, {}]}, "raw": -1}));
    assert_eq!(lists.request(Role::Client), Ok(Request::ListSessions));
}

#[test]
fn lies_about_lengths_and_depths_are_refused() {
    let deep = [&[0x81, 0xa1, b'x'][..], &[0x91; 100], &[0xc0]].concat();
    for bytes in [
        &b"\xdd\xff\xff\xff\xff"[..],
        b"\xdf\xff\xff\xff\xff",
        b"\x81\xa7content\xc6\xff\xff\xff\xff",
        b"\x81\xa4type\xdb\x7f\xff\xff\xff",
        b"\x81\xa8sessions\xdd\xff\xff\xff\xff",
        b"\xc1",
        b"\xc0",
        b"\x90",
        b"\x80\x80",
        b"",
        &deep,
    ] {
        assert!(Message::decode(bytes).is_err(), "{bytes:x?}");
    }
}

fn any_request() -> impl Strategy<Value = (Role, Request)> {
    let text = || ".{0,40}";
    let bytes = prop::collection::vec(any::<u8>(), 0..300).prop_map(Blob);
    prop_oneof![
        (text(), any::<u64>(), text()).prop_map(|(session, pid, pattern)| {
            (Role::Wrapper, Request::Register { session, pid, pattern })
        }),
        (text(), bytes, any::<bool>(), any::<bool>(), any::<Option<u64>>()).prop_map(
            |(session, content, interrupted, truncated, timestamp)| {
                let turn = Request::TurnCompleted { session, content, interrupted, truncated, timestamp };
                (Role::Wrapper, turn)
            }
        ),
        (text(), any::<Option<u64>>())
            .prop_map(|(session, limit)| (Role::Client, Request::ListTurns { session, limit })),
        (text(), any::<bool>())
            .prop_map(|(session, raw)| (Role::Client, Request::Deliver(Target::Inject { session, raw }))),
        text().prop_map(|path| (Role::Client, Request::Deliver(Target::File { path }))),
        (any::<Option<u32>>(), any::<Option<u32>>()).prop_map(|(display, authority)| {
            let desktop = Desktop {
                display: display.map(|n| format!(":{n}")),
                wayland_display: None,
                xauthority: authority.map(|n| format!("/run/{n}")),
            };
            (Role::Client, Request::Deliver(Target::Clipboard(desktop)))
        }),
        text().prop_map(|turn_id| (Role::Client, Request::CaptureById { turn_id })),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read_and_cut_short_is_refused(
        (role, request) in any_request(),
        cut in any::<prop::sample::Index>(),
    ) {
        let frame = request.frame(7);
        let body = &frame[4..];
        prop_assert_eq!(Message::decode(body).expect("a message").request(role), Ok(request));
        prop_assert!(Message::decode(&body[..cut.index(body.len())]).is_err());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(message) = Message::decode(&bytes) {
            // Whatever they say, reading them harms nothing.
            let _ = (message.hello(), message.request(Role::Client), message.response(), message.inject());
        }
    }
}

#[test]
fn a_refusal_carries_its_sentence() {
    let refusal = Refusal { code: ErrorCode::SinkFailed, message: Some("no such file".into()) };
    let response = Response { id: 9, outcome: Err(refusal) };
    let read = Message::decode(&response.frame()[4..]).expect("a message").response();
    assert_eq!(read, Some(response));
    let other = Response { id: 1, outcome: Err(ErrorCode::from("of_a_newer_broker").into()) };
    let read = Message::decode(&other.frame()[4..]).expect("a message").response().expect("a response");
    assert_eq!(
        read.outcome.map(|_: Answer| ()).map_err(|r| r.code.to_string()),
        Err("of_a_newer_broker".into())
    );
}
