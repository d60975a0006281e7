//! The health of a recording: its summary, its damaged ranges and its digest, as text and as JSON.

use std::path::Path;

use serde_json::{Value, json};
use tapdeck::convert::{ConvertError, Digest};
use tapdeck_core::Time;
use tapdeck_host::Source;
use tapdeck_tape::ahr::{Damage, Ending as Ended, Summary};
use tapdeck_tape::meta::Meta;

use tapdeck_term::Size;

use crate::failure::{Failure, Result};
use crate::human;

/// Reads a whole recording. Fails for one without a single whole block.
pub(crate) fn summarise(source: &Source) -> Result<Summary> {
    tapdeck::convert::summarise(source).map_err(|e| match e {
        ConvertError::Nothing(_) => Failure::check(e.to_string()),
        e => Failure::io(e.to_string()),
    })
}

/// What a recording says of itself, if that can be read.
pub(crate) fn meta(path: &Path) -> Option<Meta> {
    // A pipe would be read to its end.
    let source = path.is_file().then(|| Source::find(path, None, None).ok()).flatten()?;
    source.meta()
}

/// Whether a recording is what it was when it was finished, as JSON.
pub(crate) fn digest_json(digest: Digest) -> Value {
    match digest {
        Digest::Matches => true.into(),
        Digest::Differs => false.into(),
        Digest::Unknown => Value::Null,
    }
}

/// The faults of a recording besides its damaged ranges.
pub(crate) fn faults(s: &Summary) -> Vec<String> {
    let mut faults = Vec::new();
    if s.missing_bytes > s.declared_loss {
        faults.push(format!("{} of output are missing", human::bytes(s.missing_bytes - s.declared_loss)));
    }
    if s.overlaps > 0 {
        faults.push(format!(
            "output begins before the end of what came before it, {}",
            human::times(s.overlaps)
        ));
    }
    faults
}

/// Describes a damaged range; with the recording's start, also its time.
pub(crate) fn damage_text(damage: &Damage, start: Option<u64>) -> String {
    let since = |ts: u64| start.map(|start| ts.saturating_sub(start) as f64 / 1e9);
    let when = match (damage.after_ts.and_then(since), damage.before_ts.and_then(since)) {
        (Some(after), Some(before)) => format!(", from {after:.3} s to {before:.3} s"),
        (Some(after), None) => format!(", after {after:.3} s"),
        (None, Some(before)) => format!(", before {before:.3} s"),
        (None, None) => String::new(),
    };
    format!("{damage}{when}")
}

/// A damaged range as JSON.
pub(crate) fn damage_json(damage: &Damage, start: Option<u64>) -> Value {
    let since = |ts: Option<u64>| Some(ts?.saturating_sub(start?));
    json!({
        "offset": damage.offset,
        "len": damage.len,
        "kind": damage.kind.name(),
        "message": damage.to_string(),
        "lost_records": damage.lost_records,
        "lost_bytes": damage.lost_bytes,
        "after_ts_ns": damage.after_ts,
        "before_ts_ns": damage.before_ts,
        "after_ns": since(damage.after_ts),
        "before_ns": since(damage.before_ts),
    })
}

/// The summary as JSON.
pub(crate) fn summary_json(path: &Path, s: &Summary) -> Value {
    let size = |size: Option<Size>| size.map(|s| json!({"cols": s.cols, "rows": s.rows}));
    let damages: Vec<Value> = s.damages.iter().map(|d| damage_json(d, s.first_ts)).collect();
    json!({
        "file": path.to_string_lossy(),
        "whole": s.is_whole() && s.lost_while_recording() == 0,
        "blocks": s.blocks,
        "records": s.records,
        "file_bytes": s.file_bytes,
        "record_bytes": s.record_bytes,
        "output_bytes": s.output_bytes,
        "first_byte": s.begins_at,
        "end_offset": s.end_off,
        "inputs": s.inputs,
        "input_bytes": s.input_bytes,
        "resizes": s.resizes,
        "marks": s.marks,
        "snapshots": s.snapshots,
        "pauses": s.pauses,
        "paused_ns": Time::from(s.paused()).as_nanos(),
        "redrawn_bytes": s.redrawn_bytes,
        "first_size": size(s.first_size),
        "last_size": size(s.last_size),
        "first_ts_ns": s.first_ts,
        "last_ts_ns": s.last_ts,
        "duration_ns": Time::from(s.duration()).as_nanos(),
        "exit": match s.ending {
            Some(Ended::Exit(code)) => json!({"code": code.cast_signed()}),
            Some(Ended::Signal(signal)) => json!({"signal": signal}),
            None => Value::Null,
        },
        "finished": s.has_last_block,
        "declared_loss_bytes": s.declared_loss,
        "repaired_loss_bytes": s.repaired_loss,
        "missing_bytes": s.missing_bytes,
        "overlaps": s.overlaps,
        "damages": damages,
        "more_damages": s.more_damages,
    })
}
