//! A conversation as JSON, for tools: docs/formats.md describes its fields.

use std::io::Write;

use serde_json::{Value, json};
use tapdeck_core::WallTime;

use super::Out;
use crate::Result;
use crate::conversation::{AskedBack, Conversation, Entry, Exchange, Passage};
use crate::turns::{RecordedPart, Speaker};

/// The version of the format.
const VERSION: u64 = 1;

/// Writes one object, an entry of the conversation a line.
pub(super) fn write<W: Write>(conversation: &Conversation, out: &mut Out<W>) -> Result<()> {
    let head = json!({
        "kind": "conversation",
        "version": VERSION,
        "title": conversation.title,
        "command": conversation.command,
        "folder": conversation.folder,
        "started_ns": conversation.started.map(WallTime::as_nanos),
        "ended_ns": conversation.ended.map(WallTime::as_nanos),
        "prompts": conversation.turns().count(),
    });
    let head = tapdeck_term::printable_json(head.to_string());
    out.put(head.trim_end_matches('}'))?;
    out.put(",\"entries\":[")?;
    let mut comma = "\n";
    for entry in &conversation.entries {
        out.put(std::mem::replace(&mut comma, ",\n"))?;
        out.json(&match entry {
            Entry::Turn(turn) => turn_value(turn),
            Entry::Question(question) => question_value(question),
        })?;
    }
    out.put("\n]}\n")
}

fn turn_value(turn: &Exchange) -> Value {
    json!({
        "kind": "turn",
        "number": turn.number,
        "by": by(turn.by.as_ref()),
        "asked_ns": turn.asked.as_nanos(),
        "answered_ns": turn.answered.as_nanos(),
        "prompt": turn.prompt,
        "answer": turn.answer.iter().map(passage).collect::<Vec<_>>(),
        "interrupted": turn.interrupted,
        "truncated": turn.truncated,
    })
}

fn passage(passage: &Passage) -> Value {
    match passage {
        Passage::Text { text, markdown } => json!({"kind": "text", "text": text, "markdown": markdown}),
        Passage::Tool(run) => tool_value(run),
        Passage::Question(question) => question_value(question),
    }
}

fn tool_value(run: &RecordedPart) -> Value {
    json!({
        "kind": "tool",
        "name": run.tool,
        "about": run.about,
        "result": run.result,
        "failed": run.failed,
        "at_ns": run.at.as_nanos(),
    })
}

fn question_value(question: &AskedBack) -> Value {
    let options = question.options.iter().map(|o| json!({"number": o.number, "label": o.label}));
    let answer = question.answer.as_ref().map(|answer| {
        json!({"number": answer.number, "label": answer.label, "text": answer.text, "key": answer.key})
    });
    json!({
        "kind": "question",
        "text": question.text,
        "detail": question.detail,
        "options": options.collect::<Vec<_>>(),
        "answer": answer,
        "by": by(question.by.as_ref()),
        "asked_ns": question.asked.as_nanos(),
        "over_ns": question.over.as_nanos(),
    })
}

fn by(party: Option<&Speaker>) -> Value {
    party.map_or(Value::Null, |party| json!({"name": party.name, "role": party.role}))
}
