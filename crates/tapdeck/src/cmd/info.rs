//! `tapdeck info`: what a recording is.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tapdeck_tape::ahr::{Ending as Ended, Summary};
use tapdeck_tape::meta::Meta;

use super::verify::{meta, summarise, summary_json};
use crate::ending::{Ending, print, say};
use crate::human;

/// Say what a recording is: command, size, time, amounts.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tapdeck info demo.ahr
  tapdeck info --json demo.ahr | jq .summary.duration_ns")]
pub(crate) struct InfoArgs {
    /// The recordings
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Answer in JSON, one object a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &InfoArgs) -> Ending {
    let mut worst = 0;
    for path in &args.files {
        worst = worst.max(show(path, args.json));
    }
    Ending::Code(worst)
}

/// Prints what is known of a recording, and returns the exit code.
pub(crate) fn show(path: &Path, as_json: bool) -> i32 {
    match summarise(path) {
        Ok(summary) => {
            let meta = meta(path);
            if as_json {
                print(format_args!("{}\n", to_json(path, &summary, meta.as_ref())));
            } else {
                print(format_args!("{}", to_text(path, &summary, meta.as_ref())));
            }
            0
        }
        Err((message, code)) => {
            if as_json {
                print(format_args!("{}\n", json!({"file": path.to_string_lossy(), "error": message})));
            } else {
                say(message);
            }
            code
        }
    }
}

fn to_json(path: &Path, summary: &Summary, meta: Option<&Meta>) -> Value {
    let meta = meta.and_then(|m| m.to_bytes().ok()).and_then(|b| serde_json::from_slice::<Value>(&b).ok());
    json!({"file": path.to_string_lossy(), "meta": meta, "summary": summary_json(path, summary)})
}

fn to_text(path: &Path, s: &Summary, meta: Option<&Meta>) -> String {
    let mut text = format!("{}\n", human::printable(&path.to_string_lossy()));
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<10} {value}\n"));
    if let Some(meta) = meta {
        if let Some(title) = &meta.title {
            line("title", human::printable(title));
        }
        line("command", human::printable(&meta.cmd.join(" ")));
        if let Some(cwd) = &meta.cwd {
            line("folder", human::printable(cwd));
        }
    }
    if let Some(first) = s.first_ts {
        line("started", human::moment(first));
    }
    line("lasted", human::duration(Duration::from_nanos(s.duration_ns())));
    line(
        "ended",
        match s.ending {
            Some(Ended::Exit(code)) => format!("exit code {}", code.cast_signed()),
            Some(Ended::Signal(signal)) => format!("signal {signal}"),
            None => "not recorded".into(),
        },
    );
    if let Some((cols, rows)) = s.first_size {
        let changes = s.resizes.saturating_sub(1);
        let resized = if changes > 0 { format!(", resized {changes} times") } else { String::new() };
        line("terminal", format!("{cols}x{rows}{resized}"));
    }
    line("output", format!("{} in {} pieces", human::bytes(s.output_bytes), s.outputs));
    if s.inputs > 0 {
        line("input", format!("{} in {} pieces", human::bytes(s.input_bytes), s.inputs));
    }
    if s.snapshots > 0 {
        line("snapshots", s.snapshots.to_string());
    }
    line("on disk", format!("{} in {} blocks", human::bytes(s.file_bytes), s.blocks));
    if !s.is_whole() {
        line("health", "damaged: see tapdeck verify".into());
    }
    text
}
