//! Lines of the part `events.jsonl`: what happened in a session beside the bytes of its program.

use std::sync::Arc;

use serde_json::{Value, json};
use tapdeck_core::turns::{Answered, Decision, Judgement, Part, Turn};
use tapdeck_core::{Change, KeptTree, Party};

/// Of an answer as it was shown, this much is written; its bytes are in the recording.
const TEXT: usize = 1 << 20;
/// Of the texts of the tools that a turn ran, this much is written.
const TOOLS: usize = 256 << 10;

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

/// A marker, by the number that its record has.
pub(super) fn marker(ts: u64, n: u32, label: &str, by: &str) -> String {
    format!("{}\n", json!({"ts_ns": ts, "kind": "marker", "n": n, "label": label, "by": by}))
}

/// A pause of the recording, and who asked for it.
pub(super) fn paused(ts: u64, by: &str) -> String {
    format!("{}\n", json!({"ts_ns": ts, "kind": "paused", "by": by}))
}

/// The end of a pause, and who asked for it.
pub(super) fn resumed(ts: u64, by: &str) -> String {
    format!("{}\n", json!({"ts_ns": ts, "kind": "resumed", "by": by}))
}

/// A turn, with the bytes of the recording where its answer is.
pub(super) fn turn(ts: u64, base: u64, turn: &Turn) -> String {
    let mut cut = turn.text.len().min(TEXT);
    while !turn.text.is_char_boundary(cut) {
        cut -= 1;
    }
    let mut line = json!({
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
    if let Some(by) = &turn.by {
        line["by"] = party(by);
    }
    if !turn.parts.is_empty() {
        let mut room = TOOLS;
        line["parts"] = turn.parts.iter().map(|p| part(p, &mut room)).collect();
    }
    format!("{line}\n")
}

fn party(party: &Party) -> Value {
    json!({"name": *party.name, "role": party.role.name()})
}

/// A part of an answer: how many of its lines, or a tool that was run. Without room, the texts of
/// tools are left out.
fn part(part: &Part, room: &mut usize) -> Value {
    match part {
        Part::Text { at, lines } => json!({"at_ns": at.as_nanos(), "lines": lines}),
        Part::Tool(run) => {
            let mut keep = |text: &str| {
                let kept = text.len() <= *room;
                *room -= if kept { text.len() } else { 0 };
                kept.then(|| text.to_owned())
            };
            json!({
                "at_ns": run.at.as_nanos(),
                "tool": run.name,
                "about": keep(&run.about),
                "result": run.result.as_deref().and_then(keep),
                "failed": run.failed,
            })
        }
    }
}

/// A question of the program, and how it was decided.
pub(super) fn question(ts: u64, decision: &Decision) -> String {
    let dialog = &decision.dialog;
    let options: Vec<Value> =
        dialog.options.iter().map(|o| json!({"number": o.number, "label": o.label})).collect();
    let answer = decision.answer.as_ref().map(|answer| match answer {
        Answered::Option(at) => match dialog.options.get(*at) {
            Some(option) => json!({"number": option.number, "label": option.label}),
            None => json!({"number": at + 1}),
        },
        Answered::Text(text) => json!({"text": text}),
        Answered::Escape => json!({"key": "Escape"}),
    });
    let line = json!({
        "ts_ns": ts,
        "kind": "question",
        "start_ns": decision.asked.wall.as_nanos(),
        "end_ns": decision.over.wall.as_nanos(),
        "text": dialog.question,
        "detail": dialog.detail,
        "options": options,
        "answer": answer,
        "by": decision.by.as_ref().map(party),
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
