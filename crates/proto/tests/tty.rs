//! The tty wire's messages against recorded traffic.

#![allow(missing_docs, reason = "tests explain themselves by their names")]

use std::path::Path;

use serde_json::Value;
use tapdeck_proto::tty::{ClientControl, Negotiation, Refusal, ServerControl};

/// The bodies of the frames behind `at`, each with its type of chunk; a bare frame has none.
fn chunks(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut all = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<5>() {
        let len = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        all.push((head[0], rest[..len].to_vec()));
        bytes = &rest[len..];
    }
    all
}

fn framed(bytes: &[u8]) -> (Vec<u8>, &[u8]) {
    let (head, rest) = bytes.split_first_chunk::<4>().expect("a length");
    let (body, rest) = rest.split_at(u32::from_be_bytes(*head) as usize);
    (body.to_vec(), rest)
}

/// What is written again says the same as what was recorded.
fn check<T: serde::Serialize>(recorded: &[u8], read: &T) {
    let recorded: Value = serde_json::from_slice(recorded).expect("JSON");
    assert_eq!(serde_json::to_value(read).expect("JSON"), recorded);
}

#[test]
fn recorded_traffic_reads_and_writes_the_same() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/tty");
    let (mut refusals, mut from_server, mut from_client, mut negotiations) = (0, 0, 0, 0);
    for connection in 0..12 {
        let golden =
            |to: &str| std::fs::read(folder.join(format!("{connection}.to-{to}"))).expect("a golden");
        let answer = golden("client");
        if answer.first() == Some(&0) {
            let (body, rest) = framed(&answer);
            let refusal: Refusal = serde_json::from_slice(&body).expect("a refusal");
            check(&body, &refusal);
            assert!(rest.is_empty());
            refusals += 1;
        } else {
            for (_, body) in chunks(&answer).into_iter().filter(|(kind, _)| *kind == 3) {
                let control: ServerControl = serde_json::from_slice(&body).expect("a control message");
                check(&body, &control);
                from_server += 1;
            }
        }
        let asked = golden("server");
        let (body, behind) = framed(&asked);
        if let Ok(negotiation) = Negotiation::parse(&body) {
            // The later ones were not written by a client of ours, and leave fields out.
            if connection < 6 {
                check(&body, &negotiation);
            }
            negotiations += 1;
        }
        for (_, body) in chunks(behind).into_iter().filter(|(kind, _)| *kind == 3) {
            // Connection 11 also sent what makes no sense, and what is of the future.
            match serde_json::from_slice(&body) {
                Ok(ClientControl::Unknown) | Err(_) => assert_eq!(connection, 11),
                Ok(control) => {
                    check(&body, &control);
                    from_client += 1;
                }
            }
        }
    }
    assert_eq!(std::fs::read_dir(&folder).expect("goldens").count(), 2 * 12, "each golden was read");
    assert_eq!((refusals, negotiations), (6, 9));
    assert!(from_server >= 12 && from_client >= 6, "{from_server} from servers, {from_client} from clients");
}
