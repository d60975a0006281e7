//! Turns and states against recordings: each golden is replayed on virtual time as it was read,
//! byte by byte, and cut at random a thousand times, and must give the same turns and states each
//! time.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use tapdeck_core::turns::{Detector, Limits, Notice, Rules};
use tapdeck_core::{Exit, Offset, Stamp, Time, WallTime};
use tapdeck_tape::agents::Agents;
use tapdeck_tape::cassette::{Cassette, CassetteReader};
use tapdeck_tape::export::{LinesAs, lines};
use tapdeck_tape::turns_of;
use tapdeck_term::{Settings, Size, Term};

const SPLITS: u64 = 1000;
const THREADS: u64 = 4;

/// How the output is cut.
enum Cut {
    Whole,
    Bytes,
    Random(u64),
}

impl Cut {
    fn next(&mut self, left: usize) -> usize {
        match self {
            Cut::Whole => left,
            Cut::Bytes => 1,
            Cut::Random(state) => {
                // xorshift: any sequence will do, but the same one every time.
                *state ^= *state << 13;
                *state ^= *state >> 7;
                *state ^= *state << 17;
                let most = if *state % 3 == 0 { 4 } else { 200 };
                (usize::try_from(*state >> 8).unwrap_or(0) % most + 1).min(left)
            }
        }
    }
}

/// The events of a cassette, as a golden has them.
fn of_cassette(folder: &std::path::Path) -> Value {
    let lines = |name: &str| -> Vec<Value> {
        let text = std::fs::read_to_string(folder.join(name)).expect(name);
        text.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect()
    };
    let number = |v: &Value| usize::try_from(v.as_u64().expect("a number")).expect("small");
    let raw = std::fs::read(folder.join("output.raw")).expect("output");
    let mut events = Vec::new();
    for line in lines("output.jsonl") {
        let (from, len) = (number(&line["offset"]), number(&line["length"]));
        // One character a byte: chunks may end anywhere.
        let text: String = raw[from..from + len].iter().map(|b| char::from(*b)).collect();
        events.push((number(&line["seq"]), json!([line["t_ms"], "O", text])));
    }
    for line in lines("input.jsonl") {
        if let (Some(bytes), true) = (line["bytes"].as_str(), line["source"] != "reply") {
            let bytes = tapdeck_core::base64::decode(bytes).expect("base64");
            let text = String::from_utf8(bytes).expect("text");
            events.push((number(&line["seq"]), json!([line["t_ms"], "i", text])));
        }
    }
    events.sort_by_key(|(seq, _)| *seq);
    let ended: Value =
        serde_json::from_slice(&std::fs::read(folder.join("final.json")).expect("final")).expect("JSON");
    let events = events.into_iter().map(|(_, event)| event);
    events.chain([json!([ended["t_ms"], "x", ""])]).collect()
}

fn stamp(ms: u64) -> Stamp {
    Stamp { mono: Time::from_millis(ms), wall: WallTime::from_millis(ms) }
}

fn replay(golden: &Value, rules: &Arc<Rules>, mut cut: Cut) -> Value {
    let side = |key: &str, usual| golden[key].as_u64().and_then(|n| u16::try_from(n).ok()).unwrap_or(usual);
    let mut term = Term::new(Size::new(side("cols", 80), side("rows", 24)), Settings::default());
    let mut detector = Detector::new(Arc::clone(rules), Limits::default());
    let mut offset = 0;
    let mut last = 0;
    for event in golden["events"].as_array().expect("events") {
        let ms = event[0].as_u64().expect("a time");
        last = last.max(ms);
        let at = stamp(ms);
        detector.advance(&term, at);
        let text = event[2].as_str().unwrap_or("");
        match event[1].as_str().expect("a kind") {
            kind @ ("o" | "O") => {
                let bytes = if kind == "o" {
                    text.into()
                } else {
                    text.chars().map(|c| c as u8).collect::<Vec<u8>>()
                };
                let mut rest = bytes.as_slice();
                while !rest.is_empty() {
                    let (piece, more) = rest.split_at(cut.next(rest.len()));
                    detector.advance(&term, at);
                    let changes = term.feed_at(piece, offset);
                    detector.output(piece, Offset(offset), &changes.signals, at);
                    offset += piece.len() as u64;
                    rest = more;
                }
            }
            "i" => detector.input(&term, text.as_bytes(), None, at),
            "s" => detector.signal(i32::try_from(event[2].as_i64().expect("a number")).expect("a signal")),
            "r" => {
                let (cols, rows) = text.split_once('x').expect("a size");
                term.resize(Size::new(cols.parse().expect("cols"), rows.parse().expect("rows")));
            }
            "x" => detector.exit(Exit::Code(0), at),
            other => panic!("no kind {other:?}"),
        }
    }
    detector.advance(&term, stamp(last + 60_000));
    let (mut turns, mut states, mut ready) = (Vec::new(), Vec::new(), 0);
    let mut started = 0;
    while let Some(notice) = detector.poll() {
        match notice {
            Notice::Ready(_) => ready += 1,
            Notice::Started { number, .. } => {
                assert_eq!(number, started + 1, "turns start once: {}", golden["events"]);
                started = number;
            }
            Notice::Completed(turn) => {
                assert_eq!(turn.number, started, "what ends has started");
                assert!(turn.start.byte <= turn.end.byte && turn.end.byte <= Offset(offset));
                turns.push(json!({
                    "number": turn.number,
                    "start_byte": turn.start.byte.0,
                    "end_byte": turn.end.byte.0,
                    "input": turn.input,
                    "text": turn.text,
                    "raw": String::from_utf8_lossy(&turn.raw),
                    "interrupted": turn.interrupted,
                    "truncated": turn.truncated,
                    "evidence": turn.evidence.name(),
                }));
            }
            Notice::State(judgement) => states.push(judgement.state.name()),
            _ => {}
        }
    }
    json!({"ready": ready > 0, "turns": turns, "states": states})
}

/// What is asked for must be there; what is not asked for may be anything.
fn fits(got: &Value, wanted: &Value) -> bool {
    match (got, wanted) {
        (Value::Object(got), Value::Object(wanted)) => {
            wanted.iter().all(|(k, w)| got.get(k).is_some_and(|g| fits(g, w)))
        }
        (Value::Array(got), Value::Array(wanted)) => {
            got.len() == wanted.len() && got.iter().zip(wanted).all(|(g, w)| fits(g, w))
        }
        _ => got == wanted,
    }
}

#[test]
fn goldens_hold_however_the_output_is_cut() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../agents/goldens");
    let agents = Agents::new(&[]).expect("rules");
    let (mut seen, mut wrong) = (Vec::new(), Vec::new());
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(&folder).expect("goldens").map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_stem().and_then(|s| s.to_str()).expect("a name").to_owned();
        let text = std::fs::read_to_string(&path).expect("read");
        let mut golden: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        if let Some(cassette) = golden["cassette"].as_str() {
            golden["events"] = of_cassette(&folder.join("../..").join(cassette));
        }
        let agent = golden["agent"].as_str().expect("an agent");
        let rules = Arc::new(agents.rules(agent).expect("sound").expect("there"));
        let whole = replay(&golden, &rules, Cut::Whole);
        let shown = serde_json::to_string_pretty(&whole).expect("JSON");
        if !fits(&whole, &golden["expect"]) {
            wrong.push(format!("{name} gives {shown}"));
            continue;
        }
        assert_eq!(replay(&golden, &rules, Cut::Bytes), whole, "{name}, byte by byte");
        // Recorded goldens are long, and there are many of them.
        let cuts = golden["cuts"].as_u64().unwrap_or(SPLITS);
        std::thread::scope(|scope| {
            for first in 1..=THREADS {
                let (golden, rules, whole, name) = (&golden, &rules, &whole, &name);
                scope.spawn(move || {
                    for seed in (first..=cuts).step_by(THREADS as usize) {
                        let cut = Cut::Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                        assert_eq!(&replay(golden, rules, cut), whole, "{name}, cut {seed}");
                    }
                });
            }
        });
        seen.push(agent.to_owned());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for name in agents.names() {
        // The rules that others are based on are tried with those.
        assert!(name == "common" || seen.iter().any(|s| s == name), "{name}.toml has no golden");
    }
}

/// Claude Code draws in the alternate screen, so that its conversation was in no export.
#[test]
fn a_conversation_with_a_real_agent_is_in_the_text() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cassette = root.join("cassettes/agents/claude-conversation.cassette");
    let golden = json!({"cols": 100, "rows": 30, "events": of_cassette(&cassette)});
    let rules = Agents::new(&[]).expect("rules").rules("claude").expect("sound").expect("there");
    let found = replay(&golden, &Arc::new(rules), Cut::Whole);
    let mut sidecar = String::new();
    for turn in found["turns"].as_array().expect("turns") {
        let mut turn = turn.clone();
        (turn["kind"], turn["start_ns"], turn["end_ns"]) = (json!("turn"), json!(1), json!(2));
        sidecar += &format!("{turn}\n");
    }
    let export = |turns| {
        let mut reader = CassetteReader::new(Cassette::open(&cassette).expect("a cassette"));
        let mut out = Vec::new();
        lines(LinesAs::Txt, &mut reader, turns, 1000, &mut out).expect("written");
        String::from_utf8(out).expect("text")
    };
    let answer = "The capital of France is Paris.";
    assert!(!export(Vec::new()).contains(answer), "the lines do not have it");
    let text = export(turns_of(sidecar.as_bytes()).expect("turns"));
    assert_eq!(text.matches("What is the capital of France?").count(), 1, "{text}");
    assert_eq!(text.matches(answer).count(), 1, "{text}");
}
