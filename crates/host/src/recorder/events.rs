//! Lines of the part `events.jsonl`: what happened in a session beside the bytes of its program.

use std::sync::Arc;

use serde_json::{Value, json};
use tapdeck_core::Change;
use tapdeck_core::turns::{Judgement, Turn};

/// Of an answer as it was shown, this much is written; its bytes are in the recording.
const TEXT: usize = 1 << 20;

pub(super) fn holder(ts: u64, change: &Change) -> String {
    let name = |n: &Option<Arc<str>>| n.as_deref().map(str::to_owned);
    let line = json!({
        "ts_ns": ts,
        "kind": "driver",
        "from": name(&change.from),
        "to": name(&change.to),
        "why": change.why.name(),
        "fence": change.fence.0,
    });
    format!("{line}\n")
}

/// A snapshot, which has a record of its own. The line is found without reading the output.
pub(super) fn snapshot(ts: u64, id: u64, label: &str, anchor: u64) -> String {
    let line = json!({ "ts_ns": ts, "kind": "snapshot", "id": id, "label": label, "anchor_byte": anchor });
    format!("{line}\n")
}

/// A turn, with the bytes of the recording where its answer is.
pub(super) fn turn(ts: u64, base: u64, turn: &Turn) -> String {
    let mut cut = turn.text.len().min(TEXT);
    while !turn.text.is_char_boundary(cut) {
        cut -= 1;
    }
    let line = json!({
        "ts_ns": ts,
        "kind": "turn",
        "number": turn.number,
        "start_byte": base + turn.start.byte.0,
        "end_byte": base + turn.end.byte.0,
        "start_ns": turn.start.at.wall.as_nanos(),
        "end_ns": turn.end.at.wall.as_nanos(),
        "input": turn.input,
        "text": &turn.text[..cut],
        "interrupted": turn.interrupted,
        "truncated": turn.truncated || cut < turn.text.len(),
        "evidence": turn.evidence.name(),
    });
    format!("{line}\n")
}

/// A change of state, and why.
pub(super) fn state(ts: u64, judgement: &Judgement) -> String {
    let rows: Vec<Value> = judgement.rows.iter().map(|(row, text)| json!([row, text])).collect();
    let line = json!({
        "ts_ns": ts,
        "kind": "state",
        "state": judgement.state.name(),
        "evidence": judgement.evidence.name(),
        "rule": judgement.rule,
        "rows": rows,
    });
    format!("{line}\n")
}
