//! `tapdeck cassette verify`: every check of a cassette, frames derived anew included.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use tapdeck_host::Clock;
use tapdeck_tape::cassette::{Check, Files, Refusal, Verdict, check_freshness, check_seal, verified};
use tapdeck_tape::seal::SealKey;

use crate::ending::{Ending, Report, print, print_json};
use crate::failure::{DERIVE_FRAMES, Failure, Result};
use crate::human;
use crate::seal_key::read_key;

/// Check a cassette's files, digests, order, times, frames and binding.
#[derive(Args)]
#[command(after_help = "\
The exit code is 0 if all checks pass and 1 if one fails. Checks that depend on a failed check are
skipped, so that one cause is one failure.

Examples:
  tapdeck cassette verify cassettes/top
  tapdeck cassette verify --key seal.key evidence    was it changed since it was sealed?
  tapdeck cassette verify --json cassettes/*.tar.zst")]
pub(crate) struct VerifyArgs {
    /// Cassettes: folders or .tar.zst archives
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Fail if a cassette is too old to be believed, by its freshness window, or has none
    #[arg(long)]
    fresh: bool,
    /// Key file that the cassettes were sealed with
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Print only cassettes that fail
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &VerifyArgs) -> Result {
    let report = Report::json(args.json);
    let key = args.key.as_deref().map(read_key).transpose()?;
    let endings = args.paths.iter().map(|path| {
        check_one(path, report, args.quiet, (key.as_ref(), args.fresh))
            .map_or_else(|failure| failure.report(report), Ending::of_check)
    });
    Ok(endings.fold(Ending::Done, Ending::worse))
}

/// Checks one cassette, prints the result, and returns whether it is whole. Fails if the cassette
/// cannot be read.
pub(crate) fn check_one(
    path: &Path,
    report: Report,
    quiet: bool,
    (key, fresh): (Option<&SealKey>, bool),
) -> Result<bool> {
    let files = match Files::read(path) {
        Err(e @ Refusal::Io(_)) => {
            return Err(Failure::cassette(path, e).about("cassette", path.to_string_lossy()));
        }
        files => files,
    };
    let (mut checks, cassette) = verified(files.as_ref());
    if let Some(cassette) = cassette {
        let now = Clock::start().wall_start();
        checks.extend([check_seal(&cassette, key), check_freshness(&cassette, now, fresh)]);
    }
    let whole = !checks.iter().any(|c| matches!(c.verdict, Verdict::Failed(_)));
    match report {
        Report::Text if whole && quiet => {}
        Report::Text => print(format_args!("{}", to_text(path, whole, &checks))),
        _ => print_json(&to_json(path, whole, &checks)),
    }
    Ok(whole)
}

/// Returns what is wrong, with what to do about it.
fn faults(check: &Check) -> Vec<String> {
    let Verdict::Failed(faults) = &check.verdict else { return Vec::new() };
    let hint = if check.is_other_emulator() { DERIVE_FRAMES } else { "" };
    faults.iter().map(|fault| format!("{fault}{hint}")).collect()
}

fn to_text(path: &Path, whole: bool, checks: &[Check]) -> String {
    let mut text = format!("{}\n", human::printable(&path.to_string_lossy()));
    for check in checks {
        let (mark, tail) = match &check.verdict {
            Verdict::Passed => ("ok", check.what.to_owned()),
            Verdict::Failed(_) => ("FAILED", faults(check).join("\n                    ")),
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
                Verdict::Failed(_) => ("failed", json!(faults(check))),
                Verdict::Skipped(why) => ("skipped", json!([why])),
            };
            json!({"check": check.name, "state": state, "detail": detail})
        })
        .collect();
    json!({"cassette": path.to_string_lossy(), "whole": whole, "checks": checks})
}
