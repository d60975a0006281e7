//! Lines of `NAME.events.jsonl`: what happened in a session beside the bytes of its program.

use std::sync::Arc;

use serde_json::{Value, json};
use tapdeck_core::turns::{Judgement, Turn};
use tapdeck_core::{Change, KeptTree};

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

/// A tree of files that was kept, and the snapshot of the recording that it belongs to.
pub(super) fn tree(ts: u64, snapshot: u64, anchor: u64, tree: &KeptTree) -> String {
    let line = json!({
        "ts_ns": ts,
        "kind": "tree",
        "n": tree.number,
        "snapshot": snapshot,
        "anchor_byte": anchor,
        "provider": tree.provider,
        "commit": tree.id,
        "tree": tree.tree,
        "ref": tree.reference,
        "folder": tree.folder,
        "below": tree.below,
        "turn": tree.turn,
        "reason": tree.reason,
    });
    format!("{line}\n")
}

/// Files of the session that could not be kept, and why.
pub(super) fn files_not_kept(ts: u64, why: &str) -> String {
    let line = json!({ "ts_ns": ts, "kind": "files_not_kept", "why": why });
    format!("{line}\n")
}

/// The conversation of an agent, by which it can be resumed.
pub(super) fn conversation(ts: u64, agent: &str, id: &str) -> String {
    let line = json!({ "ts_ns": ts, "kind": "conversation", "agent": agent, "id": id });
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
