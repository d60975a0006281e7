//! `tapdeck verify`: is every block of a recording whole, and if not, what is lost?

use std::fs::File;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use tapdeck_tape::ahr::{Ending as Ended, Summary};
use tapdeck_tape::meta::Meta;

use crate::ending::{Ending, code, print, say};
use crate::human;

/// Check that a recording is whole, and say exactly what is lost where it is not.
#[derive(Args)]
#[command(after_help = "\
Exit code 0: whole. 1: damaged. 3: no such file. 4: it cannot be read.

Examples:
  tapdeck verify demo.ahr
  tapdeck verify --json *.ahr")]
pub(crate) struct VerifyArgs {
    /// The recordings
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Answer in JSON, one object a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &VerifyArgs) -> Ending {
    let mut worst = 0;
    for path in &args.files {
        let code = match summarise(path) {
            Ok(summary) => {
                let digest = check_digest(path);
                if args.json {
                    print(format_args!("{}\n", to_json(path, &summary, &digest)));
                } else {
                    report(path, &summary, &digest);
                }
                let whole = summary.is_whole() && !matches!(digest, Digest::Differs);
                if whole { 0 } else { code::FAILED }
            }
            Err((message, code)) => {
                if args.json {
                    print(format_args!("{}\n", json!({"file": path.to_string_lossy(), "error": message})));
                } else {
                    say(message);
                }
                code
            }
        };
        worst = worst.max(code);
    }
    Ending::Code(worst)
}

/// Reads a whole recording; an error comes with its exit code.
pub(crate) fn summarise(path: &Path) -> Result<Summary, (String, i32)> {
    let file = open(path)?;
    let summary = Summary::of(std::io::BufReader::with_capacity(1 << 16, file))
        .map_err(|e| (format!("{}: {e}", path.display()), code::IO))?;
    if summary.blocks == 0 {
        return Err((format!("{}: no recording: not one whole block in it", path.display()), code::FAILED));
    }
    Ok(summary)
}

/// Opens a file for reading; an error comes with its exit code.
pub(crate) fn open(path: &Path) -> Result<File, (String, i32)> {
    let wrong = |e: std::io::Error| {
        let code = if e.kind() == std::io::ErrorKind::NotFound { code::NOT_FOUND } else { code::IO };
        (format!("{}: {e}", path.display()), code)
    };
    let file = File::open(path).map_err(wrong)?;
    if file.metadata().map_err(wrong)?.is_dir() {
        return Err((format!("{} is a folder", path.display()), code::IO));
    }
    Ok(file)
}

/// What the sidecar says of a recording, if there is one.
pub(crate) fn meta(path: &Path) -> Option<Meta> {
    let bytes = std::fs::read(tapdeck_host::sidecar(path, "meta.json")).ok()?;
    Meta::from_bytes(&bytes).ok()
}

enum Digest {
    Matches,
    Differs,
    Unknown,
}

fn check_digest(path: &Path) -> Digest {
    let Some(expected) = meta(path).and_then(|m| m.sha256) else { return Digest::Unknown };
    match tapdeck_host::file_digest(path) {
        Ok(found) if found == expected => Digest::Matches,
        Ok(_) => Digest::Differs,
        Err(_) => Digest::Unknown,
    }
}

fn report(path: &Path, s: &Summary, digest: &Digest) {
    let whole = if s.is_whole() { "whole" } else { "damaged" };
    let ended = match s.ending {
        Some(Ended::Exit(code)) => format!("ended with exit code {}", code.cast_signed()),
        Some(Ended::Signal(signal)) => format!("ended by signal {signal}"),
        None => "no end recorded".into(),
    };
    print(format_args!(
        "{}: {whole}: {} blocks, {} records, {} of output, {}, {ended}\n",
        path.display(),
        s.blocks,
        s.records,
        human::bytes(s.output_bytes),
        human::duration(std::time::Duration::from_nanos(s.duration_ns())),
    ));
    for damage in &s.damages {
        print(format_args!("  {damage}\n"));
    }
    if s.more_damages > 0 {
        print(format_args!("  and {} more damaged ranges\n", s.more_damages));
    }
    if s.declared_loss > 0 {
        print(format_args!(
            "  {} of output were lost while recording, as the recording says itself\n",
            human::bytes(s.declared_loss)
        ));
    }
    if s.missing_bytes > s.declared_loss {
        print(format_args!("  {} of output are missing\n", human::bytes(s.missing_bytes - s.declared_loss)));
    }
    if matches!(digest, Digest::Differs) {
        print(format_args!("  the file is not the one that its meta.json describes: SHA-256 differs\n"));
    }
}

/// The summary as data.
pub(crate) fn summary_json(path: &Path, s: &Summary) -> Value {
    let size = |size: Option<(u16, u16)>| size.map(|(cols, rows)| json!({"cols": cols, "rows": rows}));
    let damages: Vec<Value> = s
        .damages
        .iter()
        .map(|d| {
            json!({
                "offset": d.offset,
                "len": d.len,
                "kind": d.kind.name(),
                "message": d.to_string(),
                "lost_records": d.lost_records,
                "lost_bytes": d.lost_bytes,
                "after_ts_ns": d.after_ts,
                "before_ts_ns": d.before_ts,
            })
        })
        .collect();
    json!({
        "file": path.to_string_lossy(),
        "whole": s.is_whole(),
        "blocks": s.blocks,
        "records": s.records,
        "file_bytes": s.file_bytes,
        "record_bytes": s.record_bytes,
        "output_bytes": s.output_bytes,
        "end_offset": s.end_off,
        "inputs": s.inputs,
        "input_bytes": s.input_bytes,
        "resizes": s.resizes,
        "marks": s.marks,
        "snapshots": s.snapshots,
        "first_size": size(s.first_size),
        "last_size": size(s.last_size),
        "first_ts_ns": s.first_ts,
        "last_ts_ns": s.last_ts,
        "duration_ns": s.duration_ns(),
        "exit": match s.ending {
            Some(Ended::Exit(code)) => json!({"code": code.cast_signed()}),
            Some(Ended::Signal(signal)) => json!({"signal": signal}),
            None => Value::Null,
        },
        "finished": s.has_last_block,
        "declared_loss_bytes": s.declared_loss,
        "missing_bytes": s.missing_bytes,
        "damages": damages,
        "more_damages": s.more_damages,
    })
}

fn to_json(path: &Path, summary: &Summary, digest: &Digest) -> Value {
    let mut value = summary_json(path, summary);
    value["sha256_matches"] = match digest {
        Digest::Matches => true.into(),
        Digest::Differs => false.into(),
        Digest::Unknown => Value::Null,
    };
    value
}
