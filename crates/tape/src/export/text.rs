//! Plain exports of a session's final lines: text, text with colours, a transcript in Markdown, JSON.

use std::io::Write;

use serde_json::{Value, json as object};

use super::branch::{BranchRow, branch_points, final_lines, plain_md, shown_rows};
use super::{Out, quiet_json, tame};
use crate::Result;
use crate::event::{Header, Kind};
use crate::replay::{MomentKind, Replay};

/// The final lines as text.
///
/// # Errors
/// When the writer fails.
pub fn txt(replay: &Replay, out: impl Write) -> Result<()> {
    let mut out = Out::new(out);
    for line in final_lines(replay.term()) {
        out.put(line.text)?;
        out.put("\n")?;
    }
    out.flush()
}

/// The final lines with their colours, as SGR sequences and nothing else.
///
/// # Errors
/// When the writer fails.
pub fn ansi(replay: &Replay, out: impl Write) -> Result<()> {
    let mut out = Out::new(out);
    let mut buf = Vec::new();
    for line in replay.term().lines().take(shown_rows(replay.term())) {
        buf.clear();
        line.write_ansi(&mut buf, true);
        buf.push(b'\n');
        out.put(&buf)?;
    }
    out.flush()
}

/// A transcript: what is known of the session, then its lines, with moments between them.
///
/// # Errors
/// When the writer fails.
pub fn md(header: &Header, replay: &Replay, out: impl Write) -> Result<()> {
    let mut out = Out::new(out);
    let title = header.title.as_deref().or(header.command.as_deref()).unwrap_or("Session");
    out.put(format!("# {}\n\n", plain_md(title)))?;
    let mut fact = |name: &str, value: String| out.put(format!("- {name}: {}\n", plain_md(&value)));
    if let Some(command) = &header.command {
        fact("Command", command.clone())?;
    }
    if let Some((cols, rows)) = header.size {
        fact("Size", format!("{cols}x{rows}"))?;
    }
    fact("Duration", format!("{:.1} s", replay.time_ns() as f64 / 1e9))?;
    match replay.ending() {
        Some(Kind::Exit(code)) => fact("Exit code", code.to_string())?,
        Some(Kind::Signal(number)) => fact("Ended by signal", number.to_string())?,
        _ => {}
    }
    out.put("\n")?;

    // A fence longer than any in the text, so that no line of it can close the block.
    let longest = replay.term().lines().map(|line| longest_run(&line.text(), b'`')).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let mut open = false;
    for row in branch_points(replay.term(), replay.moments()) {
        match row {
            BranchRow::Line(line) => {
                if !std::mem::replace(&mut open, true) {
                    out.put(format!("{fence}text\n"))?;
                }
                out.put(line.text)?;
                out.put("\n")?;
            }
            BranchRow::Moment(moment) => {
                if std::mem::replace(&mut open, false) {
                    out.put(format!("{fence}\n\n"))?;
                }
                let label = plain_md(&moment.label);
                let time = moment.time_ns as f64 / 1e9;
                out.put(match moment.kind {
                    MomentKind::Snapshot(id) => format!("**📌 snapshot {id}** {label} ({time:.1} s)\n\n"),
                    MomentKind::Marker => format!("**🔖 {label}** ({time:.1} s)\n\n"),
                })?;
            }
        }
    }
    if open {
        out.put(format!("{fence}\n"))?;
    }
    out.flush()
}

fn longest_run(text: &str, of: u8) -> usize {
    let (mut longest, mut run, mut last) = (0, 0, None);
    for at in memchr::memchr_iter(of, text.as_bytes()) {
        run = if last.is_some_and(|last| last + 1 == at) { run + 1 } else { 1 };
        last = Some(at);
        longest = longest.max(run);
    }
    longest
}

/// Everything as one JSON object: header, final lines, moments, ending.
///
/// # Errors
/// When the writer fails.
pub fn json(header: &Header, replay: &Replay, out: impl Write) -> Result<()> {
    let mut out = Out::new(out);
    let (exit, signal) = match replay.ending() {
        Some(Kind::Exit(code)) => (Some(*code), None),
        Some(Kind::Signal(number)) => (None, Some(*number)),
        _ => (None, None),
    };
    let moments: Vec<Value> = replay
        .moments()
        .iter()
        .map(|m| {
            let (kind, id) = match m.kind {
                MomentKind::Snapshot(id) => ("snapshot", Some(id)),
                MomentKind::Marker => ("marker", None),
            };
            object!({"kind": kind, "id": id, "time_ns": m.time_ns, "anchor_byte": m.anchor, "label": m.label})
        })
        .collect();
    let head = object!({
        "version": 1,
        "title": header.title,
        "command": header.command,
        "term": header.term,
        "started_ns": header.started_ns,
        "cols": header.size.map(|s| s.0),
        "rows": header.size.map(|s| s.1),
        "duration_ns": replay.time_ns(),
        "output_bytes": replay.byte_off(),
        "exit": {"code": exit, "signal": signal},
        "notes": replay.notes().iter().map(|n| tame(&n.to_string())).collect::<Vec<_>>(),
        "moments": moments,
    });
    // The lines may be a million: they are written one by one into the open object.
    let head = quiet_json(head.to_string());
    out.put(head.strip_suffix('}').unwrap_or(&head))?;
    let mut open = ",\"lines\":[\n";
    for line in final_lines(replay.term()) {
        out.put(open)?;
        open = ",\n";
        out.json(&line)?;
    }
    out.put(if open == ",\n" { "\n]}\n" } else { ",\"lines\":[]}\n" })?;
    out.flush()
}
