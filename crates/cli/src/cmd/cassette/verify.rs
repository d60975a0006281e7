//! `tapdeck cassette verify`: every check of a cassette, frames derived anew included.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use tapdeck_tape::cassette::{Check, Files, Refusal, Verdict, verify};

use crate::ending::{Ending, code, print, say};
use crate::human;

/// Check a cassette: files, digests, order, time, frames and binding.
#[derive(Args)]
#[command(after_help = "\
Ends with 0 when every check holds and 1 when one fails. A check that would only repeat the failure
of an earlier one is skipped, so that one cause shows as one failure.

Examples:
  tapdeck cassette verify cassettes/top
  tapdeck cassette verify --json cassettes/*.tar.zst")]
pub(crate) struct VerifyArgs {
    /// The cassettes: folders or .tar.zst archives
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Say nothing of cassettes that are whole
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Answer in JSON, one object a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &VerifyArgs) -> Ending {
    let codes = args.paths.iter().map(|path| check_one(path, args.json, args.quiet));
    Ending::Code(codes.max().unwrap_or(0))
}

/// Checks one cassette, says what came of it, and returns the exit code.
pub(crate) fn check_one(path: &Path, as_json: bool, quiet: bool) -> i32 {
    let files = Files::read(path);
    if let Err(refusal) = &files
        && let Some(code) = unreadable(refusal)
    {
        let message = format!("{}: {refusal}", path.display());
        match as_json {
            true => {
                let value = json!({"cassette": path.to_string_lossy(), "error": message});
                print(format_args!("{}\n", human::json(&value)));
            }
            false => say(message),
        }
        return code;
    }
    let checks = verify(files.as_ref());
    let whole = !checks.iter().any(|c| matches!(c.verdict, Verdict::Failed(_)));
    match as_json {
        true => print(format_args!("{}\n", human::json(&to_json(path, whole, &checks)))),
        false if whole && quiet => {}
        false => print(format_args!("{}", to_text(path, whole, &checks))),
    }
    if whole { 0 } else { code::FAILED }
}

/// The exit code of a cassette that is not there at all, or cannot be read for reasons of the system.
fn unreadable(refusal: &Refusal) -> Option<i32> {
    match refusal {
        Refusal::Io(e) if e.kind() == io::ErrorKind::NotFound => Some(code::NOT_FOUND),
        Refusal::Io(_) => Some(code::IO),
        _ => None,
    }
}

fn to_text(path: &Path, whole: bool, checks: &[Check]) -> String {
    let mut text = format!("{}\n", human::printable(&path.to_string_lossy()));
    for check in checks {
        let (mark, tail) = match &check.verdict {
            Verdict::Passed => ("ok", check.what.to_owned()),
            Verdict::Failed(faults) => ("FAILED", faults.join("\n                    ")),
            Verdict::Skipped(why) => ("-", why.clone()),
        };
        let tail: Vec<String> = tail.split('\n').map(human::printable).collect();
        text.push_str(&format!("  {:<9} {mark:<7} {}\n", check.name, tail.join("\n")));
    }
    if whole {
        text.push_str("  whole\n");
    }
    text
}

fn to_json(path: &Path, whole: bool, checks: &[Check]) -> serde_json::Value {
    let checks: Vec<_> = checks
        .iter()
        .map(|check| {
            let (state, detail) = match &check.verdict {
                Verdict::Passed => ("passed", json!([])),
                Verdict::Failed(faults) => ("failed", json!(faults)),
                Verdict::Skipped(why) => ("skipped", json!([why])),
            };
            json!({"check": check.name, "state": state, "detail": detail})
        })
        .collect();
    json!({"cassette": path.to_string_lossy(), "whole": whole, "checks": checks})
}
